"""`simplemem install` and `uninstall`: shown, asked for, kept, idempotent; whatever is in the way is said."""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path

import pytest

from simplemem.clients.client import clients
from tests.cli.conftest import Run

FILES = [name for name, each in clients().items() if each.file]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder of our own: no test touches a client of this machine."""
    home = tmp_path / "home"
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    return home


@pytest.fixture
def run(run: Run) -> Run:
    """These commands name the vault themselves, where they want one."""
    return partial(run, vault=None)


@pytest.mark.parametrize("client", FILES)
def test_a_client_is_told_once_and_forgets_to_the_byte(run: Run, vault: Path, client: str, home: Path) -> None:
    def files() -> dict[str, bytes]:
        every = (each for each in home.rglob("*") if each.is_file() and ".before-simplemem" not in each.name)
        return {str(each): each.read_bytes() for each in every}

    file = home / "none"
    for before in (None, "# mine\n" if client in ("codex", "goose") else "{ }"):
        if before is not None:
            file.write_text(before)
        was = files()
        told = run("install", client, "--vault", str(vault), "--yes", "--json").json
        file = Path(told["file"])
        assert told["changed"] and str(vault) in file.read_text()
        now = files()
        again = run("install", client, "--vault", str(vault), "--yes", "--json").json
        assert not again["changed"] and files() == now
        assert run("install", client, "--vault", str(vault), "--profile", "memento", "--yes").code == 0
        assert "memento" in file.read_text()
        assert run("uninstall", client, "--yes").code == 0
        assert files() == was, before


def test_nothing_is_written_unless_somebody_agrees(run: Run, vault: Path, home: Path) -> None:
    shown = run("install", "codex", "--vault", str(vault), "--dry-run")
    assert "+[mcp_servers.simplemem]" in shown.out
    refused = run("install", "codex", "--vault", str(vault))
    assert refused.code == 1 and "--yes" in refused.err
    assert not list(home.rglob("*.toml"))


def test_the_file_as_it_was_lies_beside_it_with_its_mode_and_links_are_followed(
    run: Run, vault: Path, home: Path
) -> None:
    real = home / "dotfiles" / "mcp.json"
    real.parent.mkdir()
    real.write_text('{"mcpServers": {"other": {}}}')
    real.chmod(0o600)
    (home / ".cursor").mkdir()
    (home / ".cursor" / "mcp.json").symlink_to(real)
    assert run("install", "cursor", "--vault", str(vault), "--yes").code == 0
    assert (home / ".cursor" / "mcp.json").is_symlink()
    assert "simplemem" in json.loads(real.read_text())["mcpServers"]
    kept = real.with_name("mcp.json.before-simplemem")
    assert kept.read_text() == '{"mcpServers": {"other": {}}}'
    assert {real.stat().st_mode & 0o777, kept.stat().st_mode & 0o777} == {0o600}


@pytest.mark.parametrize("text", ['{"mcpServers": [', '{"mcpServers": []}', b"\xff\xfe{"])
def test_a_wrong_file_is_left_alone_and_said(run: Run, vault: Path, home: Path, text: str | bytes) -> None:
    file = home / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_bytes(data := text if isinstance(text, bytes) else text.encode())
    for command in (["install", "cursor", "--vault", str(vault), "--yes"], ["uninstall", "cursor", "--yes"]):
        done = run(*command)
        assert done.code == 1 and "left as it is" in done.err
    assert file.read_bytes() == data
    assert "left as it is" in run("install", "--json").json["clients"][2]["state"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_write_protected_file_is_left_alone(run: Run, vault: Path, home: Path) -> None:
    file = home / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text("{}")
    file.chmod(0o444)
    assert "write-protected" in run("install", "cursor", "--vault", str(vault), "--yes").err


def test_without_a_client_those_of_this_machine_are_listed(run: Run, home: Path) -> None:
    (home / ".codex").mkdir()
    states = {each["client"]: each["state"] for each in run("install", "--json").json["clients"]}
    assert (states["codex"], states["zed"], set(states)) == ("not yet", "not here", set(FILES))


def test_mistakes_are_told_here_and_not_in_the_log_of_a_client(run: Run, vault: Path, tmp_path: Path) -> None:
    where = ("--vault", str(vault), "--yes")
    for said, wanted in (
        (("install", "cursr", *where), "Did you mean cursor?"),
        (("install", "cursor", "--vault", str(tmp_path / "gone"), "--yes"), "simplemem init"),
        (("install", "cursor", "--profile", "nobody", *where), "nobody"),
        (("install", "cursor", *where, "--", "--tools=core,original"), "Two toolsets"),
        (("install", "claude-desktop", "--http", "http://127.0.0.1:8080/mcp", "--yes"), "connector"),
        (("install", "cursor", "--http", "127.0.0.1", "--yes"), "http://"),
        (("install", "zed", "--http", "http://x.y/mcp", "--token-env", "T", "--yes"), "--token-env"),
        (("uninstall", "cursor", "--yes"), "no file of servers"),
    ):
        done = run(*said)
        assert done.code == 1 and wanted in done.err, said


def test_other_options_are_kept_and_json_is_printed_for_any_other_client(run: Run, vault: Path) -> None:
    said = run("install", "json", "--vault", str(vault), "--", "--read-only", "--db", "index.db")
    command = said.json["mcpServers"]["simplemem"]["args"]
    assert command == ["serve", "--vault", str(vault), "--read-only", "--db", str(Path.cwd() / "index.db")]
    said = run("install", "json", "--http", "https://m.example.org/mcp", "--name", "work")
    assert said.json == {"mcpServers": {"work": {"type": "http", "url": "https://m.example.org/mcp"}}}
