"""`simplemem connect` and `disconnect`: shown, asked for, kept, idempotent; whatever is in the way is said."""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path

import pytest

from simplemem.clients.client import clients
from tests.cli.conftest import Run, in_a_terminal

FILES = [name for name, each in clients().items() if each.files]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder of our own: no test touches a client of this machine."""
    home = tmp_path / "home"
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME", "GEMINI_CLI_HOME", "CLINE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    return home


@pytest.fixture
def run(run: Run) -> Run:
    """These commands name the vault themselves, where they want one."""
    return partial(run, vault=None)


@pytest.mark.parametrize("client", FILES)
def test_a_client_is_told_once_and_forgets_to_the_byte(
    run: Run, vault: Path, client: str, home: Path
) -> None:
    def files() -> dict[str, bytes]:
        every = (
            each
            for each in home.rglob("*")
            if each.is_file() and ".before-simplemem" not in each.name
        )
        return {str(each): each.read_bytes() for each in every}

    file = home / "none"
    for before in (None, "# mine\n" if client in ("codex", "goose") else "{ }"):
        if before is not None:
            file.write_text(before)
        was = files()
        told = run("connect", client, "--vault", str(vault), "--yes", "--json").json
        file = Path(told["file"])
        assert told["changed"] and str(vault) in file.read_text()
        now = files()
        again = run("connect", client, "--vault", str(vault), "--yes", "--json").json
        assert not again["changed"] and files() == now
        assert (
            run("connect", client, "--vault", str(vault), "--profile", "memento", "--yes").code == 0
        )
        assert "memento" in file.read_text()
        assert run("disconnect", client, "--yes").code == 0
        assert files() == was, before


def test_nothing_is_written_unless_somebody_agrees(run: Run, vault: Path, home: Path) -> None:
    shown = run("connect", "codex", "--vault", str(vault), "--dry-run")
    assert "+[mcp_servers.simplemem]" in shown.out
    refused = run("connect", "codex", "--vault", str(vault))
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
    assert run("connect", "cursor", "--vault", str(vault), "--yes").code == 0
    assert (home / ".cursor" / "mcp.json").is_symlink()
    assert "simplemem" in json.loads(real.read_text())["mcpServers"]
    kept = real.with_name("mcp.json.before-simplemem")
    assert kept.read_text() == '{"mcpServers": {"other": {}}}'
    assert {real.stat().st_mode & 0o777, kept.stat().st_mode & 0o777} == {0o600}


@pytest.mark.parametrize("text", ['{"mcpServers": [', '{"mcpServers": []}', b"\xff\xfe{"])
def test_a_wrong_file_is_left_alone_and_said(
    run: Run, vault: Path, home: Path, text: str | bytes
) -> None:
    file = home / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_bytes(data := text if isinstance(text, bytes) else text.encode())
    for command in (
        ["connect", "cursor", "--vault", str(vault), "--yes"],
        ["disconnect", "cursor", "--yes"],
    ):
        done = run(*command)
        assert done.code == 1 and "was not changed" in done.err
    assert file.read_bytes() == data
    assert "was not changed" in run("connect", "--json").json["clients"][2]["state"]


def test_what_is_no_file_is_left_alone(run: Run, vault: Path, home: Path) -> None:
    file = home / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.symlink_to(file)
    assert "symbolic links" in run("connect", "cursor", "--vault", str(vault), "--yes").err
    file.unlink()
    file.mkdir()
    assert "directory" in run("connect", "cursor", "--vault", str(vault), "--yes").err
    assert "directory" in run("connect", "--json").json["clients"][2]["state"]
    assert list(home.rglob("*simplemem*")) == []


def test_a_link_to_nothing_gets_its_target_and_loses_it_again(
    run: Run, vault: Path, home: Path
) -> None:
    file, real = home / ".cursor" / "mcp.json", home / "dotfiles" / "mcp.json"
    file.parent.mkdir()
    file.symlink_to(real)
    assert run("connect", "cursor", "--vault", str(vault), "--yes").code == 0 and real.is_file()
    assert (
        run("disconnect", "cursor", "--yes").code == 0 and file.is_symlink() and not real.exists()
    )


def test_what_somebody_saves_while_the_question_stands_is_not_overwritten(
    run: Run, vault: Path, home: Path
) -> None:
    file = home / ".cursor" / "mcp.json"
    file.parent.mkdir()

    def save_then_agree(shown: bytes) -> bytes:
        if not shown.endswith(b"]: "):
            return b""
        file.write_text('{"mine": 1}')
        return b"y\n"

    for command in (["connect", "cursor", "--vault", str(vault)], ["disconnect", "cursor"]):
        code, shown = in_a_terminal(*command, reply=save_then_agree)
        assert code == 1 and b"Try again." in shown and file.read_text() == '{"mine": 1}'
        assert run("connect", "cursor", "--vault", str(vault), "--yes").code == 0


def test_several_servers_come_and_go_each_by_its_name(run: Run, vault: Path, home: Path) -> None:
    file = home / ".config" / "goose" / "config.yaml"
    file.parent.mkdir(parents=True)
    file.write_bytes(before := b"# mine\nextensions: {}  # none\nz: 1")
    for name in ("work", "home"):
        assert run("connect", "goose", "--vault", str(vault), "--name", name, "--yes").code == 0
    assert b'name: "home"' in file.read_bytes()
    for name in ("home", "work"):
        assert run("disconnect", "goose", "--name", name, "--yes").code == 0
    assert file.read_bytes() == before and [*file.parent.iterdir()] == [file]


def test_an_entry_by_hand_is_shown_before_it_is_replaced_and_is_kept(
    run: Run, vault: Path, home: Path
) -> None:
    file = home / ".codex" / "config.toml"
    file.parent.mkdir()
    file.write_text(before := '[mcp_servers.simplemem]  # by hand\ncommand = "other"\n\n[tui]\n')
    shown = run("connect", "codex", "--vault", str(vault), "--yes").out
    assert '-command = "other"' in shown
    assert file.with_name("config.toml.before-simplemem").read_text() == before
    assert run("disconnect", "codex", "--yes").code == 0 and file.read_text() == "\n[tui]\n"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_write_protected_file_is_left_alone(run: Run, vault: Path, home: Path) -> None:
    file = home / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text("{}")
    file.chmod(0o444)
    assert "write-protected" in run("connect", "cursor", "--vault", str(vault), "--yes").err


def test_without_a_client_those_of_this_machine_are_listed(
    run: Run, vault: Path, home: Path
) -> None:
    for name in ("codex", "cursor", "gemini"):
        (home / f".{name}").mkdir()
    (home / ".cursor" / "mcp.json").write_text('{"mcpServers": {"simplemem": {"command": "x"}}}')
    where = str(vault)
    assert run("connect", "gemini-cli", "--vault", where, "--yes").code == 0
    rows = {
        each["client"]: each for each in run("connect", "--vault", where, "--json").json["clients"]
    }
    states = {
        name: rows[name]["state"]
        for name in ("codex", "zed", "cursor", "gemini-cli", "claude-code")
    }
    assert list(states.values()) == ["not yet", "not here", "has another", "knows it", "not here"]
    assert (
        rows["cursor"]["now"] == {"command": "x"}
        and rows["cursor"]["gets"] == rows["gemini-cli"]["now"]
    )
    assert where in run("connect", "--vault", where).out.replace("\n", "")


def test_mistakes_are_told_here_and_not_in_the_log_of_a_client(
    run: Run, vault: Path, tmp_path: Path
) -> None:
    where = ("--vault", str(vault), "--yes")
    for said, wanted in (
        (("connect", "cursr", *where), "Did you mean cursor?"),
        (("connect", "cursor", "--vault", str(tmp_path / "gone")), "Add --yes"),
        (("connect", "cursor", "--profile", "nobody", *where), "nobody"),
        (("connect", "cursor", *where, "--", "--tools=core,original"), "two tool groups"),
        (
            ("connect", "claude-desktop", "--http", "http://127.0.0.1:8080/mcp", "--yes"),
            "connector",
        ),
        (("connect", "cursor", "--http", "127.0.0.1", "--yes"), "http://"),
        (
            ("connect", "zed", "--http", "http://x.y/mcp", "--token-env", "T", "--yes"),
            "--token-env",
        ),
        (
            ("connect", "cursor", "--http", "http://x.y/mcp", "--token-env", "sm-1f", "--yes"),
            "Pass the name of the variable",
        ),
        (
            ("connect", "json", "--http", "http://x.y/mcp", "--token-env", "T"),
            "Authorization: Bearer TOKEN",
        ),
        (("connect", "cursor", "--http", "http://x.y/work/", "--yes"), "Pass http://x.y/work/mcp."),
        (("connect", "cursor", "--token-env", "T", *where), "needs --http"),
        (("connect", "cursor", "--name", "a.b", *where), "is not a server name"),
        (("disconnect", "cursor", "--yes"), "has no configuration file"),
    ):
        done = run(*said)
        assert done.code == 1 and wanted in done.err, said


def test_other_options_are_kept_and_json_is_printed_for_any_other_client(
    run: Run, vault: Path
) -> None:
    said = run("connect", "json", "--vault", str(vault), "--", "--read-only", "--db", "index.db")
    command = said.json["mcpServers"]["simplemem"]["args"]
    assert command == [
        "serve",
        "--vault",
        str(vault),
        "--read-only",
        "--db",
        str(Path.cwd() / "index.db"),
    ]
    said = run("connect", "json", "--http", "https://m.example.org/mcp", "--name", "work")
    assert said.json == {
        "mcpServers": {"work": {"type": "http", "url": "https://m.example.org/mcp"}}
    }


@pytest.mark.parametrize("path", ["", "/", "/mcp", "/mcp/"])
def test_the_url_of_a_running_server_ends_in_mcp(run: Run, path: str) -> None:
    said = run("connect", "json", "--http", f"https://m.example.org{path}")
    assert said.json["mcpServers"]["simplemem"]["url"] == "https://m.example.org/mcp"


def test_a_client_of_a_running_server_is_listed_as_connected_to_it(
    run: Run, vault: Path, home: Path
) -> None:
    url = "https://m.example.org/mcp"
    for client in ("cursor", "codex", "goose"):
        run("connect", client, "--http", url, "--token-env", "T", "--yes", vault=None)
    listed = run("connect")
    for client in ("cursor", "codex", "goose"):
        [row] = [line for line in listed.out.splitlines() if line.startswith(f"{client} ")]
        assert f"connected over HTTP to {url}" in row
    states = {row["client"]: row["state"] for row in run("connect", "--json").json["clients"]}
    assert states["cursor"] == "knows it over http" and states["zed"] == "not here"


def test_a_vault_that_does_not_exist_is_shown_and_made_once_somebody_agrees(
    run: Run, tmp_path: Path, home: Path
) -> None:
    new, file = tmp_path / "new" / "notes", home / ".cursor" / "mcp.json"
    shown = run("connect", "cursor", "--vault", str(new), "--dry-run")
    assert shown.code == 0 and f"This creates the vault {new}" in shown.out.replace("\n", " ")
    refused = run("connect", "cursor", "--vault", str(new))
    assert (
        refused.code == 1
        and f"the vault {new} does not exist" in refused.err
        and "--yes" in refused.err
    )
    assert not new.exists() and not file.exists()
    done = run("connect", "cursor", "--vault", str(new), "--yes", "--json").json
    assert (
        done["creates"] == str(new)
        and (new / ".simplemem").is_dir()
        and str(new) in file.read_text()
    )
    assert "creates" not in run("connect", "cursor", "--vault", str(new), "--yes", "--json").json


@pytest.mark.parametrize(("answer", "is_made"), [(b"y\n", True), (b"n\n", False)])
def test_connect_in_a_terminal_asks_one_question_for_vault_and_file(
    tmp_path: Path, home: Path, answer: bytes, is_made: bool
) -> None:
    new = tmp_path / "new"
    asked: list[bytes] = []

    def reply(shown: bytes) -> bytes:
        if not shown.endswith(b"]: ") or asked:
            return b""
        asked.append(shown)
        return answer

    code, shown = in_a_terminal("connect", "cursor", "--vault", str(new), reply=reply)
    assert (code == 0) == is_made and b"Create the vault and write this?" in shown
    assert new.is_dir() == is_made and (home / ".cursor" / "mcp.json").exists() == is_made


def test_a_vault_that_is_a_file_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    refused = run("connect", "cursor", "--vault", str(tmp_path / "file"), "--yes")
    assert refused.code == 1 and "is a file" in refused.err


def test_before_the_question_connect_says_what_the_client_can_do_and_who_receives_it(
    run: Run, vault: Path, home: Path
) -> None:
    def shown(*options: str) -> str:
        return " ".join(run("connect", "cursor", "--dry-run", *options).out.split())

    where = ("--vault", str(vault))
    sends = "What it reads goes to the provider of its model. See docs/privacy.md."
    assert f"Cursor will be able to read, change and delete notes in {vault}. {sends}" in shown(
        *where
    )
    assert f"Cursor will be able to read notes in {vault}. {sends}" in shown(
        *where, "--", "--read-only"
    )
    assert f"Cursor will be able to read and change notes in {vault}." in shown(
        *where, "--", "--no-delete"
    )
    assert "use the notes of the server at http://x.y/mcp. What it reads" in shown(
        "--http", "http://x.y/mcp"
    )


def test_the_question_of_connect_follows_the_line_about_the_model(vault: Path, home: Path) -> None:
    code, shown = in_a_terminal("connect", "cursor", "--vault", str(vault), answer=b"n\n")
    assert code == 1 and 0 < shown.find(b"docs/privacy.md") < shown.find(b"Write this?")


def test_the_table_of_clients_says_whether_each_is_connected(
    run: Run, vault: Path, home: Path
) -> None:
    for name in ("codex", "cursor", "gemini"):
        (home / f".{name}").mkdir()
    (home / ".cursor" / "mcp.json").write_text('{"mcpServers": {"simplemem": {"command": "x"}}}')
    run("connect", "gemini-cli", "--vault", str(vault), "--yes")
    lines = run("connect", "--vault", str(vault)).out.splitlines()
    rows = {line.split()[0]: line for line in lines if line.split()}
    assert " connected to something else " in rows["cursor"] and " connected " in rows["gemini-cli"]
    assert " not connected " in rows["codex"] and " not installed " in rows["zed"]


def test_disconnect_says_that_it_removed_a_file_that_connect_had_created(
    run: Run, vault: Path, home: Path
) -> None:
    run("connect", "cursor", "--vault", str(vault), "--yes")
    out = " ".join(run("disconnect", "cursor", "--yes").out.split())
    assert (
        f"Removed {home / '.cursor' / 'mcp.json'}, which connect had created." in out
        and "Restart Cursor" in out
    )


def test_what_is_not_connected_is_said_to_be_not_connected(run: Run, home: Path) -> None:
    assert "Cursor is not connected" in run("disconnect", "cursor", "--yes").err
    (home / ".cursor").mkdir()
    (home / ".cursor" / "mcp.json").write_text('{"mcpServers": {"other": {}}}')
    ran = run("disconnect", "cursor", "--yes")
    assert ran.code == 0 and "Cursor is not connected" in ran.out


def test_connect_suggests_a_folder_of_nearly_the_same_name(
    run: Run, tmp_path: Path, home: Path
) -> None:
    (tmp_path / "Garden").mkdir()
    shown = run("connect", "cursor", "--vault", str(tmp_path / "gardne"), "--dry-run")
    assert f"Did you mean {tmp_path / 'Garden'}?" in " ".join(shown.out.split())
    refused = run("connect", "cursor", "--vault", str(tmp_path / "gardne"))
    assert refused.code == 1 and f"Did you mean {tmp_path / 'Garden'}?" in " ".join(
        refused.err.split()
    )
    assert (
        "Did you mean"
        not in run("connect", "cursor", "--vault", str(tmp_path / "zzzzzz"), "--dry-run").out
    )
