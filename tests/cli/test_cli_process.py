"""The program as a shell meets it: exit codes, pipes, signals, terminals, completion, and what it imports."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from processes import run_program
from waiting import PLAIN, eventually

from simplemem.cli.command import finishing
from simplemem.store import EnhancedStore
from tests.cli.conftest import PROGRAM, in_a_terminal

pytestmark = pytest.mark.usefixtures("words_only")


def simplemem(
    *args: str, vault: Path | None = None, **options: object
) -> subprocess.CompletedProcess[bytes]:
    where = [] if vault is None else ["--vault", str(vault)]
    return run_program(*args, *where, text=False, **options)


def test_exit_codes_tell_done_from_failed_from_wrong_usage(vault: Path) -> None:
    assert simplemem("list", vault=vault).returncode == 0
    failed = simplemem("show", "nobody", "--json", vault=vault)
    assert failed.returncode == 1 and failed.stderr == b""
    assert json.loads(failed.stdout)["error"]["code"] == "not_found"
    assert simplemem("list", "--nonsense", vault=vault).returncode == 2
    assert simplemem("nonsense").returncode == 2
    version = subprocess.run([*PROGRAM, "--version"], capture_output=True, check=True, timeout=60)
    assert version.stdout.startswith(b"simplemem ")


def test_a_note_goes_through_a_pipe_to_the_byte(vault: Path) -> None:
    data = "\ufeff---\r\ntitle: Odd\r\n---\r\n\r\nb\x1b[31mell\u2028\x85\r\rno newline at the end".encode()
    (vault / "odd.md").write_bytes(data)
    assert simplemem("show", "odd", vault=vault).stdout == data


def test_pipes_are_utf8_whatever_the_locale(vault: Path) -> None:
    (vault / "気球.md").write_text("Ballon d’été\n", encoding="utf-8")
    env = {**os.environ, "LC_ALL": "C", "PYTHONIOENCODING": "latin-1"}
    assert "気球" in simplemem("list", vault=vault, env=env).stdout.decode("utf-8")


def test_a_reader_that_goes_away_is_no_matter(vault: Path) -> None:
    for number in range(400):
        (vault / f"note {number} {'x' * 100}.md").write_text("x\n")
    command = [*PROGRAM, "list", "--all-notes", "--vault", str(vault)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as listing:
        assert listing.stdout is not None and listing.stderr is not None
        listing.stdout.read(10)
        listing.stdout.close()
        assert listing.stderr.read() == b""
    assert listing.returncode in (0, 1)


def test_colour_is_for_terminals_and_no_control_sequence_of_a_note_reaches_one(vault: Path) -> None:
    assert b"\x1b" not in simplemem("search", "launch", vault=vault).stdout
    assert b"\x1b[36m" in in_a_terminal("list", "--vault", str(vault))[1]
    bare = in_a_terminal("list", "--vault", str(vault), env={"NO_COLOR": "1"})[1]
    assert b"\x1b[3" not in bare and b"projects/apollo" in bare
    (vault / "evil.md").write_text(
        '---\ntitle: "e\\e]0;pwned\\a"\n---\nxylograph \x1b]0;pwned\x07 \x9b2J\n'
    )
    for command in (["show", "evil"], ["search", "xylograph"], ["list"]):
        shown = in_a_terminal(*command, "--vault", str(vault))[1]
        assert b"pwned" in shown
        assert b"\x1b]" not in shown and b"\x07" not in shown and "\x9b".encode() not in shown


def test_watching_indexes_what_an_editor_saves_and_ctrl_c_ends_it(vault: Path) -> None:
    command = [*PROGRAM, "index", "--watch", "--json", "--vault", str(vault)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        out = watching.stdout
        try:
            assert json.loads(out.readline())["added"] == 3
            told: list[str] = []

            def saved_and_told() -> bool:
                # Written again and again: the watch may begin a moment after the first report.
                (vault / "by hand.md").write_text(f"A xylograph, {time.monotonic()}.\n")
                if select.select([out], [], [], 0.3)[0]:
                    told.append(out.readline())
                return any("by hand" in line for line in told)

            assert eventually(saved_and_told) and "by hand" in json.loads(told[-1])["changed"]
            watching.send_signal(signal.SIGINT)
            assert watching.wait(30) == 130
        finally:
            watching.kill()


def test_completion_knows_names_and_tags_and_makes_nothing(vault: Path, tmp_path: Path) -> None:
    (vault / "people/Grace H.md").write_text("x\n")
    with EnhancedStore(vault, PLAIN) as store:
        store.sync()

    def completed(line: str, vault: Path = vault) -> list[str]:
        env = {**os.environ, "_SIMPLEMEM_COMPLETE": "complete_bash", "SIMPLEMEM_VAULT": str(vault)}
        env |= {"COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
        ran = run_program(env=env)
        assert ran.stderr == ""
        return ran.stdout.split("\n")

    assert "projects/apollo" in completed("simplemem show proj")
    assert "status/active" in completed("simplemem list --tag sta")
    assert "people/Grace\\ H" in completed("simplemem show people/G")
    assert (
        not any(completed("simplemem show a", tmp_path / "none"))
        and not (tmp_path / "none").exists()
    )


@pytest.mark.parametrize(
    ("args", "unwanted"),
    [
        (["--version"], {"simplemem.store", "pydantic", "apsw", "numpy", "mcp", "rich.console"}),
        (["--help"], {"simplemem.store", "pydantic", "apsw", "numpy", "mcp"}),
        (
            ["search", "launch"],
            {"mcp", "markdown_it", "starlette", "httpx", "jinja2", "simplemem.features.collection"},
        ),
        (
            ["tag", "people/Ada"],
            {"mcp", "markdown_it", "numpy", "jinja2", "simplemem.features.collection"},
        ),
        (["export", "graph", "--format", "dot"], {"mcp", "starlette", "jinja2"}),
    ],
)
def test_a_command_pays_only_for_what_it_uses(
    vault: Path, args: list[str], unwanted: set[str]
) -> None:
    code = (
        "import sys\nsys.argv[0] = 'simplemem'\nfrom simplemem.__main__ import main\n"
        "main()\nprint('\\n'.join(sys.modules), file=sys.stderr)"
    )
    env = {**os.environ, "SIMPLEMEM_VAULT": str(vault)}
    ran = subprocess.run(
        [sys.executable, "-c", code, *args], env=env, capture_output=True, text=True
    )
    loaded = set(ran.stderr.split("\n"))
    assert "simplemem.cli.app" in loaded and loaded & unwanted == set()


@pytest.mark.parametrize("options", [[], ["--http", "127.0.0.1:0"]])
def test_a_server_imports_what_makes_pages_for_the_first_page_only(
    vault: Path, options: list[str]
) -> None:
    command = [
        sys.executable,
        "-X",
        "importtime",
        "-m",
        "simplemem",
        "serve",
        "--vault",
        str(vault),
    ]
    with subprocess.Popen(
        [*command, *options], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin is not None and server.stderr is not None
        if not options:
            server.stdin.close()
        imported = []
        for line in server.stderr:
            imported.append(line.rpartition("|")[2].strip())
            if line.startswith("simplemem serves"):
                server.terminate()
    assert "simplemem.server.calls" in imported and "jinja2" not in imported


def test_ctrl_c_waits_until_a_write_is_done_and_a_second_one_does_not() -> None:
    done: list[str] = []
    for presses in (1, 2):
        with pytest.raises(KeyboardInterrupt), finishing():
            for _ in range(presses):
                os.kill(os.getpid(), signal.SIGINT)
            done.append("written")
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert done == ["written"]


def test_ctrl_c_while_indexing_leaves_an_index_that_can_be_finished(vault: Path) -> None:
    for number in range(600):
        (vault / f"n{number:04}.md").write_text(f"# Note {number}\n\n" + "Words to index. " * 200)
    with subprocess.Popen(
        [*PROGRAM, "index", "--vault", str(vault)], stderr=subprocess.PIPE
    ) as indexing:
        assert eventually(lambda: (vault / ".simplemem" / "index.db").exists())
        indexing.send_signal(signal.SIGINT)
        assert indexing.wait(60) in (0, 130)
        assert indexing.stderr is not None and b"Traceback" not in indexing.stderr.read()
    assert simplemem("doctor", vault=vault).returncode == 0
    assert json.loads(simplemem("list", "--json", vault=vault).stdout)["total"] == 603


def test_a_note_is_shown_in_a_terminal_as_it_reads_and_by_a_pager_when_it_is_long(
    vault: Path,
) -> None:
    env = {"PAGER": "cat", "NO_COLOR": "1", "COLUMNS": "80"}
    shown = in_a_terminal("show", "apollo", "--vault", str(vault), env=env)[1].decode()
    assert (
        "---" not in shown
        and "## Budget" not in shown
        and "Budget" in shown
        and "description  " in shown
    )
    assert (
        "## Budget"
        in in_a_terminal("show", "apollo", "--raw", "--vault", str(vault), env=env)[1].decode()
    )
    (vault / "long.md").write_text("\n\n".join(f"Line {number}." for number in range(100)))
    env["PAGER"] = f"{sys.executable} -c \"import sys; print('paged', len(sys.stdin.readlines()))\""
    assert b"paged 199" in in_a_terminal("show", "long", "--vault", str(vault), env=env)[1]
    assert b"paged" not in in_a_terminal("show", "apollo", "--vault", str(vault), env=env)[1]


def test_serve_says_in_a_terminal_what_it_waits_for(vault: Path) -> None:
    code, shown = in_a_terminal("serve", "--vault", str(vault), answer=b"\x04")
    assert code == 0 and f"serves {vault} and waits for an MCP client" in shown.decode()
    assert b"waits" not in simplemem("serve", vault=vault, stdin=subprocess.DEVNULL).stderr


@pytest.mark.parametrize(
    ("answer", "is_made"), [(b"n\n", False), (b"\n", False), (b"y\n\x04", True)]
)
def test_serve_in_a_terminal_asks_before_it_makes_a_vault(
    tmp_path: Path, answer: bytes, is_made: bool
) -> None:
    new = tmp_path / "new"
    code, shown = in_a_terminal("serve", "--vault", str(new), answer=answer)
    assert b"Create it?" in shown and new.is_dir() == is_made
    assert (code == 0) if is_made else (code == 1 and b"create this one with `--yes`" in shown)


def test_serve_with_yes_asks_nothing(tmp_path: Path) -> None:
    code, shown = in_a_terminal("serve", "--vault", str(tmp_path / "new"), "--yes", answer=b"\x04")
    assert code == 0 and b"Create it?" not in shown and b"waits for an MCP client" in shown


def test_serve_for_a_client_makes_the_vault_without_a_question_and_says_so(tmp_path: Path) -> None:
    new = tmp_path / "new"
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {
            "jsonrpc": "2.0",
            "id": 2,
            "method": "tools/call",
            "params": {"name": "list_memories", "arguments": {}},
        },
    ]
    served = simplemem(
        "serve",
        vault=new,
        stdin_data="".join(f"{json.dumps(each)}\n" for each in messages).encode(),
    )
    assert (
        served.returncode == 0
        and new.is_dir()
        and f"creating the vault {new}".encode() in served.stderr
    )
    assert b"Create it?" not in served.stderr
