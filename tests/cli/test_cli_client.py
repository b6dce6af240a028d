"""`connect` and `disconnect` show a change, ask for confirmation and can be repeated."""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path

import pytest

from simplemem.clients.client import clients
from tests.cli.conftest import Run, in_a_terminal

FILES = [name for name, client in clients().items() if client.files]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set a home folder for the test, so that it touches no client of this machine."""
    home = tmp_path / "home"
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME", "GEMINI_CLI_HOME", "CLINE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    return home


@pytest.fixture
def run(run: Run) -> Run:
    """Run a command without a vault; the tests pass one where they need it."""
    return partial(run, vault=None)


@pytest.mark.parametrize("client", FILES)
def test_disconnect_restores_the_file_byte_for_byte(
    run: Run, vault: Path, client: str, home: Path
) -> None:
    def files() -> dict[str, bytes]:
        paths = [path for path in home.rglob("*") if path.is_file()]
        kept_paths = [path for path in paths if ".before-simplemem" not in path.name]
        return {str(path): path.read_bytes() for path in kept_paths}

    file = home / "none"
    for original in (None, "# mine\n" if client in ("codex", "goose") else "{ }"):
        if original is not None:
            file.write_text(original)
        old_files = files()
        facts = run("connect", client, "--vault", str(vault), "--yes", "--json").json
        file = Path(facts["file"])
        assert facts["changed"] and str(vault) in file.read_text()
        now = files()
        again = run("connect", client, "--vault", str(vault), "--yes", "--json").json
        assert not again["changed"] and files() == now
        assert (
            run("connect", client, "--vault", str(vault), "--profile", "memento", "--yes").code == 0
        )
        assert "memento" in file.read_text()
        assert run("disconnect", client, "--yes").code == 0
        assert files() == old_files, original


def test_nothing_is_written_without_confirmation(run: Run, vault: Path, home: Path) -> None:
    output = run("connect", "codex", "--vault", str(vault), "--dry-run")
    assert "+[mcp_servers.simplemem]" in output.out
    refused = run("connect", "codex", "--vault", str(vault))
    assert refused.code == 1 and "--yes" in refused.err
    assert not list(home.rglob("*.toml"))


def test_the_old_file_is_copied_beside_the_new_one_with_its_mode_and_links_are_followed(
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
    backup = real.with_name("mcp.json.before-simplemem")
    assert backup.read_text() == '{"mcpServers": {"other": {}}}'
    assert {real.stat().st_mode & 0o777, backup.stat().st_mode & 0o777} == {0o600}


@pytest.mark.parametrize("text", ['{"mcpServers": [', '{"mcpServers": []}', b"\xff\xfe{"])
def test_an_invalid_file_is_not_changed_and_the_error_says_why(
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


def test_a_path_that_is_no_regular_file_is_not_changed(run: Run, vault: Path, home: Path) -> None:
    file = home / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.symlink_to(file)
    assert "symbolic links" in run("connect", "cursor", "--vault", str(vault), "--yes").err
    file.unlink()
    file.mkdir()
    assert "directory" in run("connect", "cursor", "--vault", str(vault), "--yes").err
    assert "directory" in run("connect", "--json").json["clients"][2]["state"]
    assert list(home.rglob("*simplemem*")) == []


def test_connect_creates_the_target_of_a_dangling_link_and_disconnect_removes_it(
    run: Run, vault: Path, home: Path
) -> None:
    file, real = home / ".cursor" / "mcp.json", home / "dotfiles" / "mcp.json"
    file.parent.mkdir()
    file.symlink_to(real)
    assert run("connect", "cursor", "--vault", str(vault), "--yes").code == 0 and real.is_file()
    assert (
        run("disconnect", "cursor", "--yes").code == 0 and file.is_symlink() and not real.exists()
    )


def test_a_file_that_was_saved_during_the_question_is_not_overwritten(
    run: Run, vault: Path, home: Path
) -> None:
    file = home / ".cursor" / "mcp.json"
    file.parent.mkdir()

    def save_then_agree(output: bytes) -> bytes:
        if not output.endswith(b"]: "):
            return b""
        file.write_text('{"mine": 1}')
        return b"y\n"

    for command in (["connect", "cursor", "--vault", str(vault)], ["disconnect", "cursor"]):
        code, output = in_a_terminal(*command, reply=save_then_agree)
        assert code == 1 and b"Try again." in output and file.read_text() == '{"mine": 1}'
        assert run("connect", "cursor", "--vault", str(vault), "--yes").code == 0


def test_several_servers_are_added_and_removed_by_name(run: Run, vault: Path, home: Path) -> None:
    file = home / ".config" / "goose" / "config.yaml"
    file.parent.mkdir(parents=True)
    original = b"# mine\nextensions: {}  # none\nz: 1"
    file.write_bytes(original)
    for name in ("work", "home"):
        assert run("connect", "goose", "--vault", str(vault), "--name", name, "--yes").code == 0
    assert b'name: "home"' in file.read_bytes()
    for name in ("home", "work"):
        assert run("disconnect", "goose", "--name", name, "--yes").code == 0
    assert file.read_bytes() == original and [*file.parent.iterdir()] == [file]


def test_an_entry_written_by_hand_is_shown_and_copied_before_it_is_replaced(
    run: Run, vault: Path, home: Path
) -> None:
    file = home / ".codex" / "config.toml"
    file.parent.mkdir()
    original = '[mcp_servers.simplemem]  # by hand\ncommand = "other"\n\n[tui]\n'
    file.write_text(original)
    output = run("connect", "codex", "--vault", str(vault), "--yes").out
    assert '-command = "other"' in output
    assert file.with_name("config.toml.before-simplemem").read_text() == original
    assert run("disconnect", "codex", "--yes").code == 0 and file.read_text() == "\n[tui]\n"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_write_protected_file_is_not_changed(run: Run, vault: Path, home: Path) -> None:
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
        row["client"]: row for row in run("connect", "--vault", where, "--json").json["clients"]
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


def test_mistakes_in_options_are_reported_by_connect(run: Run, vault: Path, tmp_path: Path) -> None:
    where = ("--vault", str(vault), "--yes")
    for arguments, message in (
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
        result = run(*arguments)
        assert result.code == 1 and message in result.err, arguments


def test_further_options_are_passed_to_serve_and_json_prints_an_entry(
    run: Run, vault: Path
) -> None:
    result = run("connect", "json", "--vault", str(vault), "--", "--read-only", "--db", "index.db")
    command = result.json["mcpServers"]["simplemem"]["args"]
    assert command == [
        "serve",
        "--vault",
        str(vault),
        "--read-only",
        "--db",
        str(Path.cwd() / "index.db"),
    ]
    result = run("connect", "json", "--http", "https://m.example.org/mcp", "--name", "work")
    assert result.json == {
        "mcpServers": {"work": {"type": "http", "url": "https://m.example.org/mcp"}}
    }


@pytest.mark.parametrize("path", ["", "/", "/mcp", "/mcp/"])
def test_the_url_of_a_running_server_ends_in_mcp(run: Run, path: str) -> None:
    result = run("connect", "json", "--http", f"https://m.example.org{path}")
    assert result.json["mcpServers"]["simplemem"]["url"] == "https://m.example.org/mcp"


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


def test_a_missing_vault_is_shown_and_created_after_confirmation(
    run: Run, tmp_path: Path, home: Path
) -> None:
    new, file = tmp_path / "new" / "notes", home / ".cursor" / "mcp.json"
    output = run("connect", "cursor", "--vault", str(new), "--dry-run")
    assert output.code == 0 and f"This creates the vault {new}" in output.out.replace("\n", " ")
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
    questions: list[bytes] = []

    def reply(output: bytes) -> bytes:
        if not output.endswith(b"]: ") or questions:
            return b""
        questions.append(output)
        return answer

    code, output = in_a_terminal("connect", "cursor", "--vault", str(new), reply=reply)
    assert (code == 0) == is_made and b"Create the vault and write this?" in output
    assert new.is_dir() == is_made and (home / ".cursor" / "mcp.json").exists() == is_made


def test_a_vault_that_is_a_file_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    refused = run("connect", "cursor", "--vault", str(tmp_path / "file"), "--yes")
    assert refused.code == 1 and "is a file" in refused.err


def test_before_the_question_connect_says_what_the_client_can_do_and_who_receives_it(
    run: Run, vault: Path, home: Path
) -> None:
    def preview_of(*options: str) -> str:
        return " ".join(run("connect", "cursor", "--dry-run", *options).out.split())

    where = ("--vault", str(vault))
    sends = "What it reads goes to the provider of its model. See docs/privacy.md."
    assert (
        f"Cursor will be able to read, change and delete notes in {vault}. {sends}"
        in preview_of(*where)
    )
    assert f"Cursor will be able to read notes in {vault}. {sends}" in preview_of(
        *where, "--", "--read-only"
    )
    assert f"Cursor will be able to read and change notes in {vault}." in preview_of(
        *where, "--", "--no-delete"
    )
    assert "use the notes of the server at http://x.y/mcp. What it reads" in preview_of(
        "--http", "http://x.y/mcp"
    )


def test_the_question_of_connect_follows_the_line_about_the_model(vault: Path, home: Path) -> None:
    code, output = in_a_terminal("connect", "cursor", "--vault", str(vault), answer=b"n\n")
    assert code == 1 and 0 < output.find(b"docs/privacy.md") < output.find(b"Write this?")


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


def test_disconnect_says_if_a_client_is_not_connected(run: Run, home: Path) -> None:
    assert "Cursor is not connected" in run("disconnect", "cursor", "--yes").err
    (home / ".cursor").mkdir()
    (home / ".cursor" / "mcp.json").write_text('{"mcpServers": {"other": {}}}')
    ran = run("disconnect", "cursor", "--yes")
    assert ran.code == 0 and "Cursor is not connected" in ran.out


def test_connect_suggests_a_folder_of_a_similar_name(run: Run, tmp_path: Path, home: Path) -> None:
    (tmp_path / "Garden").mkdir()
    output = run("connect", "cursor", "--vault", str(tmp_path / "gardne"), "--dry-run")
    assert f"Did you mean {tmp_path / 'Garden'}?" in " ".join(output.out.split())
    refused = run("connect", "cursor", "--vault", str(tmp_path / "gardne"))
    assert refused.code == 1 and f"Did you mean {tmp_path / 'Garden'}?" in " ".join(
        refused.err.split()
    )
    assert (
        "Did you mean"
        not in run("connect", "cursor", "--vault", str(tmp_path / "zzzzzz"), "--dry-run").out
    )
