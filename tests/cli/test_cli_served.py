"""Commands that a running server of the vault answers, and when they do their work themselves."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from processes import Program, run_program
from waiting import eventually

from simplemem import __version__
from simplemem.cli.local import run_on_server
from simplemem.cli.served import _CollectingStream
from simplemem.server import local_protocol
from tests.cli.conftest import NOTES, PROGRAM, in_a_terminal

pytestmark = [
    pytest.mark.usefixtures("words_only"),
    pytest.mark.skipif(
        not local_protocol.is_supported(), reason="this system has no Unix sockets for Python"
    ),
]


def code_for(modules_file: str) -> str:
    """Run the program, and write into a file which modules it has imported at its end."""
    return (
        "import sys\nsys.argv[0] = 'simplemem'\nfrom simplemem.__main__ import main\n"
        "try:\n    code = main()\n"
        "except SystemExit as end:\n    code = end.code\n"
        f"open({modules_file!r}, 'w').write('\\n'.join(sys.modules))\nsys.exit(code)"
    )


@pytest.fixture
def vault() -> Iterator[Path]:
    """A vault with a short path, as a socket needs one."""
    with tempfile.TemporaryDirectory(prefix="sm-") as room:
        folder = Path(room) / "notes"
        for path, text in NOTES.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
        yield folder


@contextmanager
def serving(
    vault: Path, *options: str, env: dict[str, str] | None = None, cwd: Path | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A server that a client has greeted and asked for its tools."""
    command = [*PROGRAM, "serve", "--vault", str(vault), *options]
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    server = Program(command, **pipes, env={**os.environ, **(env or {})}, cwd=cwd)
    assert server.stdin is not None
    assert server.stdout is not None
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    try:
        for message in (
            {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
        ):
            server.stdin.write(json.dumps(message).encode() + b"\n")
            server.stdin.flush()
            if "id" in message:
                server.stdout.readline()
        yield server
    finally:
        server.kill()
        server.wait()
        for stream in (server.stdin, server.stdout, server.stderr):
            assert stream is not None
            with suppress(BrokenPipeError):
                stream.close()


def socket_of(vault: Path) -> Path:
    return vault / ".simplemem" / "server.sock"


@contextmanager
def served(vault: Path, *options: str, **more: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A server that answers commands."""
    with serving(vault, *options, **more) as server:
        assert eventually(socket_of(vault).exists)
        yield server


class Ran:
    """A command that ran as a process: what it printed, and whether it did its work by itself.

    It is forked, and came to the command line, or it began `anew`, with nothing imported, and then imported the store.
    """

    def __init__(
        self,
        vault: Path | None,
        *arguments: str,
        env: dict[str, str] | None = None,
        cwd: Path | None = None,
        anew: bool = False,
    ) -> None:
        named = [] if vault is None else ["--vault", str(vault)]
        env = {**os.environ, **(env or {})}
        how: dict[str, Any] = {"env": env, "cwd": cwd}
        with tempfile.NamedTemporaryFile("r") as said:
            if anew or sys.platform != "linux":
                command = [sys.executable, "-c", code_for(said.name), *arguments, *named]
                ran = subprocess.run(command, capture_output=True, **how, timeout=60)
                loaded = set(said.read().split("\n"))
                self.by_itself = "simplemem.store" in loaded
                self.is_light = not loaded & HEAVY
            else:
                how |= {"text": False, "command_line_used": Path(said.name)}
                ran = run_program(*arguments, *named, **how)
                self.by_itself = {"yes": True, "no": False}[said.read()]
        self.printed = (ran.returncode, ran.stdout, ran.stderr)
        self.out = ran.stdout.decode(errors="replace")


HEAVY = {"typer", "rich", "pydantic", "numpy", "apsw", "simplemem.settings.model"}

COMMANDS = (
    ("search", "budget", "approved"),
    ("search", "budget", "approved", "--json"),
    ("search", "launch", "--tag", "project", "--explain"),
    ("search", "launch", "--mode", "text", "--limit", "1", "--json"),
    ("search", "xylograph"),
    ("search", "launch", "--explain-note", "people/Ada"),
    ("search", "--tag", "project"),
    ("list",),
    ("list", "--sort", "name", "--json"),
    ("ls", "--prefix", "people/"),
    ("show", "Apollo"),
    ("show", "Apollo", "--json"),
    ("show", "Apollo", "--section", "Budget"),
    ("cat", "Countess", "--links"),
    ("show", "nobody"),
    ("show", "nobody", "--json"),
    ("backlinks", "Apollo", "--kind", "link"),
    ("context", "who flies", "--json"),
    ("context", "budget", "--budget", "60"),
)


@pytest.mark.slow
def test_a_command_is_answered_by_the_server_to_the_byte_as_by_itself(vault: Path) -> None:
    alone = {arguments: Ran(vault, *arguments) for arguments in COMMANDS}
    assert all(ran.by_itself for ran in alone.values())
    with served(vault):
        for arguments in COMMANDS:
            asked = Ran(vault, *arguments, anew=True)
            assert (arguments, asked.by_itself, asked.is_light) == (arguments, False, True)
            assert (arguments, asked.printed) == (arguments, alone[arguments].printed)


def test_a_terminal_shows_what_the_server_answers_as_its_own_process_would(vault: Path) -> None:
    env = {"PAGER": "cat", "COLUMNS": "70", "LINES": "30"}
    (vault / "long.md").write_text(
        "\n\n".join(f"Line {number} é." for number in range(100)), encoding="utf-8"
    )
    commands = (
        ("search", "budget"),
        ("list",),
        ("show", "Apollo"),
        ("show", "long"),
        ("list", "--limit", "1"),
    )
    alone = [in_a_terminal(*arguments, "--vault", str(vault), env=env) for arguments in commands]
    with served(vault):
        asked = [
            in_a_terminal(*arguments, "--vault", str(vault), env=env) for arguments in commands
        ]
    assert asked == alone
    assert any(b"\x1b[" in shown for _, shown in asked)


def test_what_was_saved_a_moment_ago_is_in_the_answer_of_the_server(vault: Path) -> None:
    with served(vault):
        for word in ("xylograph", "zeugma"):
            (vault / f"{word}.md").write_text(f"A {word}.\n", encoding="utf-8")
            ran = Ran(vault, "search", word, "--json")
            assert not ran.by_itself
            assert [hit["name"] for hit in json.loads(ran.out)["hits"]] == [word]


def test_a_note_of_any_bytes_goes_through_the_server_to_the_byte(vault: Path) -> None:
    data = "\ufeff---\r\ntitle: Odd\r\n---\r\n\r\nb\x1b[31mell\u2028\x85\r\nno newline at the end".encode()
    (vault / "odd.md").write_bytes(data)
    with served(vault):
        ran = Ran(vault, "show", "odd")
        assert (ran.by_itself, ran.printed[1]) == (False, data)


def test_a_note_that_is_not_utf_8_is_shown_by_the_server_as_by_the_process(vault: Path) -> None:
    (vault / "latin.md").write_bytes("Café naïve\n".encode("latin-1"))
    alone = Ran(vault, "show", "latin")
    with served(vault):
        asked = Ran(vault, "show", "latin")
    assert (alone.by_itself, asked.by_itself) == (True, False)
    assert asked.printed == alone.printed


def test_any_byte_that_a_command_prints_goes_to_the_same_stream_and_stays_the_same(
    vault: Path,
) -> None:
    every_byte = bytes(range(256)) + "\ud83d".encode("utf-8", "surrogatepass")
    printed: list[tuple[str, str]] = []
    for kind in ("out", "err"):
        _CollectingStream(kind, is_terminal=False, printed=printed).buffer.write(every_byte)
    answer = {"code": 3, "printed": printed}
    hello = {"protocol": local_protocol.PROTOCOL, "version": local_protocol.code_version()}
    with impostor(vault, hello, answer):
        ran = Ran(vault, "list")
    assert (ran.by_itself, ran.printed) == (False, (3, every_byte, every_byte))


def test_an_answer_of_an_unknown_kind_is_not_printed(vault: Path) -> None:
    hello = {"protocol": local_protocol.PROTOCOL, "version": local_protocol.code_version()}
    with impostor(vault, hello, {"code": 3, "printed": [["out", "a"], ["sound", "b"]]}):
        ran = Ran(vault, "list")
    assert ran.by_itself and ran.printed[0] == 0


def test_a_relative_argument_means_the_same_to_the_server_as_to_the_process(vault: Path) -> None:
    commands = (
        ("show", "./Ada.md"),
        ("show", "./people/Ada.md"),
        ("show", "../people/Ada"),
        ("list", "--prefix", "./"),
    )
    alone = [Ran(vault, *arguments, cwd=vault / "people").printed for arguments in commands]
    with served(vault):
        asked = [Ran(vault, *arguments, cwd=vault / "people") for arguments in commands]
    assert [ran.printed for ran in asked] == alone
    assert not any(ran.by_itself for ran in asked)


def test_a_relative_path_in_the_settings_means_the_folder_of_the_command(vault: Path) -> None:
    env = {"SIMPLEMEM_DB": "index.db"}
    here, there = vault.parent / "here", vault.parent / "there"
    here.mkdir()
    there.mkdir()
    with served(vault, env=env, cwd=here):
        assert not Ran(vault, "list", env=env, cwd=here).by_itself
        assert Ran(vault, "list", env=env, cwd=there).by_itself


def test_an_empty_vault_option_is_refused_whatever_is_served(vault: Path) -> None:
    other = vault.parent / "other"
    other.mkdir()
    with served(vault):
        ran = Ran(None, "list", "--vault=", env={"SIMPLEMEM_VAULT": str(vault)}, cwd=other)
    assert ran.printed[0] == 2 and b"--vault is empty" in ran.printed[2]
    assert list(other.iterdir()) == []


def test_a_command_in_a_deleted_folder_fails_without_a_traceback(vault: Path) -> None:
    gone = vault.parent / "gone"
    gone.mkdir()
    script = 'cd "$0" && rmdir "$0" && exec "$@"'
    with served(vault):
        command = ["/bin/sh", "-c", script, str(gone), *PROGRAM, "list", "--vault", str(vault)]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 1 and ran.stderr.startswith("error: ")
    assert "Traceback" not in ran.stderr


def test_a_closed_stream_is_left_to_the_command_itself(
    vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = io.StringIO()
    closed.close()
    with served(vault):
        monkeypatch.setattr(sys, "stderr", closed)
        assert run_on_server(["list", "--vault", str(vault)]) is None


def test_a_path_is_relative_to_the_folder_of_the_command_not_of_the_server(
    vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(vault / "people")
    alone = [Ran(vault, "show", path).printed for path in ("./Ada.md", "Ada.md", "nobody.md")]
    monkeypatch.chdir(vault.parent)
    with served(vault):
        monkeypatch.chdir(vault / "people")
        asked = [Ran(vault, "show", path) for path in ("./Ada.md", "Ada.md", "nobody.md")]
    assert [ran.printed for ran in asked] == alone and not any(ran.by_itself for ran in asked)
    assert b"flies balloons" in alone[0][1]


def test_the_vault_is_the_one_that_the_command_would_find_by_itself(
    vault: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(vault):
        monkeypatch.chdir(vault / "people")
        code = code_for(str(tmp_path / "modules"))

        def loaded(*arguments: str, **env: str) -> set[str]:
            command = [sys.executable, "-c", code, *arguments]
            subprocess.run(
                command, capture_output=True, env={**os.environ, **env}, check=True, timeout=60
            )
            return set((tmp_path / "modules").read_text(encoding="utf-8").split("\n"))

        assert "simplemem.store" not in loaded("list")
        assert "simplemem.store" not in loaded("list", "--vault", "..")
        assert "simplemem.store" not in loaded("list", SIMPLEMEM_VAULT=str(vault))
        other = tmp_path / "other"
        (other / ".simplemem").mkdir(parents=True)
        assert "simplemem.store" in loaded("list", SIMPLEMEM_VAULT=str(other))


def test_a_command_with_other_settings_than_the_server_does_its_work_itself(
    vault: Path, tmp_path: Path
) -> None:
    others = {
        "SIMPLEMEM_SEARCH_LIMIT": "1",
        "SIMPLEMEM_EMBED_PROVIDER": "wordllama",
        "SIMPLEMEM_NOW": "2026-01-24T09:00:00Z",
        "TZ": "Pacific/Chatham",
        "SIMPLEMEM_DB": str(tmp_path / "index.db"),
        "FORCE_COLOR": "1",
        "COLUMNS": "10001",
        "LINES": "9" * 5000,
    }
    with served(vault):
        assert not Ran(vault, "list").by_itself
        alike = [
            name
            for name, other in others.items()
            if not Ran(vault, "list", env={name: other}, anew=name == "TZ").by_itself
        ]
        assert alike == []
        assert not Ran(vault, "list").by_itself


def test_settings_that_were_changed_after_the_server_began_hold_for_a_command(vault: Path) -> None:
    with served(vault):
        assert not Ran(vault, "search", "launch").by_itself
        (vault / ".simplemem" / "config.toml").write_text("[search]\nlimit = 1\n", encoding="utf-8")
        ran = Ran(vault, "search", "launch", "--json")
        assert ran.by_itself
        assert len(json.loads(ran.out)["hits"]) == 1


def test_a_server_that_hides_notes_answers_no_command(vault: Path) -> None:
    (vault / ".simplemem").mkdir()
    (vault / ".simplemem" / "config.toml").write_text(
        '[access]\nhidden = ["people/"]\n', encoding="utf-8"
    )
    with serving(vault) as server:
        assert eventually(lambda: any(vault.glob(".simplemem/index-*.db")))
        ran = Ran(vault, "list")
        assert ran.by_itself and "people/Ada" in ran.out
        assert server.poll() is None and not socket_of(vault).exists()


def test_a_server_that_may_not_write_leaves_no_socket_in_a_vault_without_an_index(
    vault: Path,
) -> None:
    with serving(vault, "--read-only") as server:
        assert server.stdin is not None
        assert server.stdout is not None
        call = {"name": "read_memory", "arguments": {"name": "projects/apollo"}}
        request = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": call}
        server.stdin.write(json.dumps(request).encode() + b"\n")
        server.stdin.flush()
        assert b"Apollo" in server.stdout.readline()
        assert not (vault / ".simplemem").exists()
    Ran(vault, "list")
    with served(vault, "--read-only"):
        assert not Ran(vault, "list").by_itself


def test_a_socket_that_others_may_open_is_not_asked(vault: Path) -> None:
    with served(vault):
        assert socket_of(vault).stat().st_mode & 0o777 == 0o600
        assert not Ran(vault, "list").by_itself
        socket_of(vault).chmod(0o666)
        assert Ran(vault, "list").by_itself


def test_a_socket_in_a_folder_where_others_may_replace_it_is_neither_asked_nor_made(
    vault: Path,
) -> None:
    with served(vault):
        assert not Ran(vault, "list").by_itself
        socket_of(vault).parent.chmod(0o777)
        assert Ran(vault, "list").by_itself
    socket_of(vault).unlink()
    with serving(vault) as server:
        assert eventually((vault / ".simplemem" / "server.lock").exists)
        assert Ran(vault, "list").by_itself
        assert server.poll() is None and not socket_of(vault).exists()
        socket_of(vault).parent.chmod(0o755)
        assert eventually(socket_of(vault).exists)


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give a file away"
)
def test_a_socket_of_another_user_is_not_asked(vault: Path) -> None:
    with served(vault):
        os.chown(socket_of(vault), 65534, -1)
        ran = Ran(vault, "list")
        assert ran.by_itself and ran.printed[2] == b""


@contextmanager
def impostor(
    vault: Path, hello: dict[str, Any] | None, answer_with: dict[str, Any] | None = None
) -> Iterator[list[bytes]]:
    """A server at the vault's socket that says hello so, or nothing at all, and collects what it is sent."""
    sent: list[bytes] = []
    socket_of(vault).parent.mkdir(exist_ok=True)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(str(socket_of(vault)))
    socket_of(vault).chmod(0o600)
    listening.listen(4)
    open_ones: list[socket.socket] = []

    def answer() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            open_ones.append(connection)
            if hello is not None:
                local_protocol.send(connection, hello, 1000, time.monotonic() + 30)
                sent.append(connection.recv(65536))
            if answer_with is not None:
                local_protocol.send(connection, answer_with, 100_000, time.monotonic() + 30)

    threading.Thread(target=answer, daemon=True).start()
    try:
        yield sent
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        for each in (*open_ones, listening):
            each.close()


@pytest.mark.parametrize(
    "hello",
    [
        {"protocol": local_protocol.PROTOCOL, "version": "0.0.1"},
        {"protocol": local_protocol.PROTOCOL, "version": f"{__version__}+1"},
        {"protocol": 99, "version": local_protocol.code_version()},
        {"protocol": local_protocol.PROTOCOL},
        None,
    ],
)
def test_a_server_of_another_version_or_one_that_is_stuck_is_not_asked(
    vault: Path, hello: dict[str, Any]
) -> None:
    with impostor(vault, hello) as sent:
        ran = Ran(vault, "list")
        assert ran.by_itself and "people/Ada" in ran.out and ran.printed[2] == b""
        assert sent in ([], [b""])


def test_a_socket_that_a_dead_server_left_is_passed_over_in_silence(vault: Path) -> None:
    with served(vault) as server:
        server.kill()
        server.wait()
        assert socket_of(vault).exists()
        ran = Ran(vault, "list")
        assert ran.by_itself and ran.printed[2] == b""
    with served(vault) as server:  # the next one makes it again
        assert eventually(lambda: not Ran(vault, "list").by_itself)


def test_a_server_of_another_vault_declines(vault: Path) -> None:
    other = vault.parent / "other"
    shutil.copytree(vault, other)
    (other / "only here.md").write_text("Here.\n", encoding="utf-8")
    (other / ".simplemem").mkdir()
    with served(vault):
        socket_of(vault).rename(socket_of(other))
        ran = Ran(other, "list")
        assert ran.by_itself and "only here" in ran.out


@pytest.mark.parametrize("ends", ["input", "signal"])
def test_the_socket_is_gone_when_the_server_has_ended(vault: Path, ends: str) -> None:
    with served(vault) as server:
        if ends == "signal":
            server.send_signal(signal.SIGTERM)
        else:
            assert server.stdin is not None
            server.stdin.close()
        assert server.wait(30) == 0
        assert not socket_of(vault).exists()


def test_of_two_servers_one_answers_and_the_other_takes_over(vault: Path) -> None:
    with served(vault) as first, serving(vault):
        before = socket_of(vault).stat().st_ino
        assert not Ran(vault, "list").by_itself
        first.kill()
        first.wait()
        assert eventually(
            lambda: socket_of(vault).exists() and socket_of(vault).stat().st_ino != before
        )
        assert eventually(lambda: not Ran(vault, "list").by_itself)


def test_a_path_that_is_too_long_for_a_socket_is_served_without_one(tmp_path: Path) -> None:
    vault = tmp_path / ("a" * 60) / ("b" * 60)
    vault.mkdir(parents=True)
    (vault / "note.md").write_text("Words.\n", encoding="utf-8")
    with serving(vault) as server:
        assert eventually((vault / ".simplemem" / "index.db").exists)
        ran = Ran(vault, "list")
        assert ran.by_itself and "note" in ran.out
        assert server.poll() is None and not socket_of(vault).exists()


def test_a_file_in_the_place_of_the_socket_is_left_alone(vault: Path) -> None:
    socket_of(vault).parent.mkdir()
    socket_of(vault).write_text("mine", encoding="utf-8")
    with serving(vault) as server:
        assert eventually((vault / ".simplemem" / "server.lock").exists)
        assert Ran(vault, "list").by_itself
        assert server.poll() is None
    assert socket_of(vault).read_text(encoding="utf-8") == "mine"


def exchange(vault: Path, data: bytes) -> bytes:
    """Send bytes to a vault's socket behind its hello; what comes back."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(30)
        connection.connect(str(socket_of(vault)))
        local_protocol.receive(connection, 1000, time.monotonic() + 30)
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        received = b""
        with suppress(ConnectionResetError):  # how the server ends what is no request
            while piece := connection.recv(65536):
                received += piece
        return received


def message(value: Any) -> bytes:
    data = json.dumps(value).encode()
    return len(data).to_bytes(4, "big") + data


def request_for(vault: Path, **more: Any) -> dict[str, Any]:
    folder = vault.stat()
    env = {
        name: text
        for name, text in os.environ.items()
        if name.startswith(("SIMPLEMEM_", "HOME", "XDG", "TZ"))
    }
    return {"vault": [folder.st_dev, folder.st_ino], "environment": env, **more}


def test_nothing_but_the_reading_commands_goes_through_the_socket(vault: Path) -> None:
    before = {path: path.read_bytes() for path in vault.rglob("*.md")}
    with served(vault):
        reading = exchange(vault, message(request_for(vault, command=["list"])))
        assert b"people/Ada" in reading
        for words in (
            ["rm", "people/Ada"],
            ["new", "x", "--content", "y"],
            ["tag", "people/Ada", "todo"],
            ["index", "--rebuild"],
            ["init"],
            ["serve"],
            [],
            ["--version"],
            ["list", "--help"],
            ["list", "--vault", str(vault)],
            ["list", "--nonsense"],
            ["search", "--nonsense"],
        ):
            assert b"declined" in exchange(vault, message(request_for(vault, command=words)))
        assert b"declined" in exchange(vault, message(request_for(vault, complete="secrets")))
    assert {path: path.read_bytes() for path in vault.rglob("*.md")} == before


def test_the_module_of_a_command_that_does_not_only_read_is_not_imported() -> None:
    code = (
        "import sys\nfrom simplemem.cli.served import _run_command\n"
        "assert _run_command(None, ['import'], {}) is None\n"
        "print('simplemem.cli.importing' in sys.modules)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert ran.stdout == "False\n"


def test_bytes_that_are_no_request_leave_the_server_as_it_was(vault: Path) -> None:
    with served(vault) as server:
        for data in (
            b"",
            b"\x00",
            b"GET / HTTP/1.1\r\n\r\n",
            (1 << 31).to_bytes(4, "big"),
            b"\x00\x00\x00\x02no",
            message([1, 2]),
            message("text"),
            message({"vault": "x" * 70_000}),
        ):
            assert b"people/Ada" not in exchange(vault, data)
        for value in (
            {},
            {"command": "list"},
            request_for(vault, command=[["list"]]),
            request_for(vault, command=5),
        ):
            assert b"declined" in exchange(vault, message(value))
        assert server.poll() is None
        assert not Ran(vault, "list").by_itself


def test_completion_asks_the_server_for_names_and_tags(vault: Path, tmp_path: Path) -> None:
    def completed(line: str) -> tuple[list[str], bool]:
        env = {**os.environ, "_SIMPLEMEM_COMPLETE": "complete_bash", "SIMPLEMEM_VAULT": str(vault)}
        env |= {"COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
        code = code_for(str(tmp_path / "modules"))
        ran = subprocess.run(
            [sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60
        )
        loaded = (tmp_path / "modules").read_text(encoding="utf-8").split("\n")
        return ran.stdout.split("\n"), "simplemem.store" in loaded

    with served(vault):
        asked = [completed(line) for line in ("simplemem show proj", "simplemem list --tag sta")]
    alone = [completed(line) for line in ("simplemem show proj", "simplemem list --tag sta")]
    assert [names for names, _ in asked] == [names for names, _ in alone]
    assert "projects/apollo" in asked[0][0] and "status/active" in asked[1][0]
    assert [by_itself for _, by_itself in asked + alone] == [False, False, True, True]


def test_a_server_over_http_answers_commands_too(vault: Path) -> None:
    command = [*PROGRAM, "serve", "--vault", str(vault), "--http", "127.0.0.1:0"]
    server = Program(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        assert eventually(socket_of(vault).exists)
        assert not Ran(vault, "list").by_itself
        server.send_signal(signal.SIGTERM)
        assert server.wait(30) == 0 and not socket_of(vault).exists()
    finally:
        server.kill()
        server.wait()
