"""The front door: `make demo`, the README, and the page of the tools say and do what they promise."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from simplemem.clients.client import clients, server_command

REPOSITORY = Path(__file__).resolve().parent.parent
README = REPOSITORY / "README.md"
PATIENCE = 120


@dataclass(frozen=True)
class Shown:
    """A demo that was run: how it ended, what it said, and the places it ran in."""

    code: int
    out: str
    err: str
    home: Path
    room: Path


def run_demo(folder: Path) -> Shown:
    """Run it as somebody would who has settings of simplemem of their own."""
    home, room = folder / "home", folder / "room"
    home.mkdir()
    room.mkdir()
    env = {
        **os.environ,
        "HOME": str(home),
        "TMPDIR": str(room),
        "SIMPLEMEM_PROFILE": "simplemem",
        "SIMPLEMEM_READ_ONLY": "true",
        "SIMPLEMEM_EMBED_PROVIDER": "none",
    }
    done = subprocess.run(
        [sys.executable, str(REPOSITORY / "docs" / "demo.py")],
        cwd=folder,
        env={
            name: value
            for name, value in env.items()
            if name not in ("SIMPLEMEM_VAULT", "XDG_CONFIG_HOME")
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
        check=False,
    )
    return Shown(done.returncode, done.stdout, done.stderr, home, room)


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    before = files_of(REPOSITORY / "vault-example")
    shown = run_demo(tmp_path_factory.mktemp("demo"))
    assert files_of(REPOSITORY / "vault-example") == before
    return shown


def in_order(wanted: list[str], text: str) -> str | None:
    """The first of some lines that does not stand in a text after the one before it."""
    lines = iter(text.split("\n"))
    return next((line for line in wanted if line not in lines), None)


def test_the_demo_shows_a_conversation_from_the_list_of_tools_to_the_undo(demo: Shown) -> None:
    assert (demo.code, demo.err) == (0, "")
    key_lines = [
        "  $ simplemem index",
        "  │ 88 added, 83 embedded",
        "  │ search_memories  Search memories",
        "  │ undo_change      Undo a change",
        "  search_memories",
        "    query: what is the corrected height of the record flight",
        "  │ 1. **flights/Flight 2 Dipper** Flight 2, Dipper",
        "  read_memory",
        "  │ # flights/Flight 2 Dipper",
        "  create_memory",
        "  │ Saved flights/Flight 5 Fulmar as flights/Flight 5 Fulmar.md.",
        "  get_backlinks",
        "  │ - **Sandhaven balloons** (links here, line 25, score 1.00)",
        "  update_memory",
        "  │ conflict: flights/Flight 5 Fulmar has changed since it was read",
        "  │ -Planned for 18 April, on hydrogen, if the [[Wind limit for launches|wind]] allows it.",
        "  │ +Planned for 25 April, on hydrogen, if the [[Wind limit for launches|wind]] allows it.",
        "  │ Changed flights/Flight 5 Fulmar.",
        "  delete_memory",
        "  │ Deleted flights/Flight 5 Fulmar.",
        "  undo_change",
        "    version: v000003",
        "  memory_history",
        "7. Connect your own client",
    ]
    timed = re.sub(r" +in [\d.]+ m?s$", "", demo.out, flags=re.MULTILINE)
    assert in_order(key_lines, timed) is None and "\x1b" not in demo.out


def test_the_demo_ends_with_every_client_an_entry_with_the_paths_of_this_installation_and_two_commands(
    demo: Shown,
) -> None:
    shown = json.loads(demo.out[demo.out.index("\n    {\n") :].split("\n\n")[0])
    program, *arguments = server_command(demo.home / "notes")
    assert shown == {"mcpServers": {"simplemem": {"command": program, "args": arguments}}}
    for client in clients().values():
        assert not client.files or f"{client.title} ({client.name})" in demo.out
    *_, connect, search = [line for line in demo.out.splitlines() if line.strip()]
    assert connect.startswith("  $ ") and connect.endswith(
        " connect claude-desktop --vault ~/notes"
    )
    assert search.startswith("  $ ") and search.endswith(" --vault ~/notes")
    assert (
        list(demo.room.iterdir()) == list(demo.home.iterdir()) == []
    )  # and nothing is left behind


def block(page: Path, kind: str, after: str = "") -> str:
    """What stands between the first fences of a kind that follow some words."""
    text = page.read_text(encoding="utf-8")
    found = re.search(
        rf"^```{kind}\n(.*?)^```$", text[text.index(after) :], re.MULTILINE | re.DOTALL
    )
    assert found is not None
    return found[1]


@pytest.mark.slow
def test_the_picture_in_the_readme_shows_what_the_program_prints() -> None:
    assert "](docs/images/terminal.svg)" in README.read_text(encoding="utf-8")
    script = [sys.executable, str(REPOSITORY / "docs" / "pictures.py"), "--check"]
    checked = subprocess.run(
        script, capture_output=True, encoding="utf-8", timeout=PATIENCE, check=False
    )
    assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="the commands are those of a POSIX shell")
def test_the_commands_and_the_program_in_the_readme_do_what_it_says(tmp_path: Path) -> None:
    shutil.copytree(REPOSITORY / "vault-example", tmp_path / "vault-example")
    tour = block(README, "sh", after="## On the command line")
    script = 'set -e\nsimplemem() { "$PYTHON" -m simplemem "$@"; }\n' + tour
    env = {
        **os.environ,
        "HOME": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path / "settings"),
        "PYTHON": sys.executable,
    }

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=tmp_path,
            env=env,
            capture_output=True,
            encoding="utf-8",
            timeout=PATIENCE,
            check=False,
        )

    ran = run("sh", "-c", script)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "28.9 km" in ran.stdout and "Undid the move of people/Ida Marsh" in ran.stdout

    program = block(README, "python")
    written = run(sys.executable, "-c", program)
    said = re.findall(r"print\(.*\)  # (.*)", program)
    assert (written.stdout.split("\n"), written.stderr) == ([*said, ""], "") and len(said) == 2


def test_the_readme_is_short_and_begins_with_what_it_is_and_how_to_see_it() -> None:
    text = README.read_text(encoding="utf-8")
    assert len(text.split("\n")) <= 150
    lines = [line for line in text.split("\n") if line and not line.startswith("<!--")]
    assert lines[0] == "# simplemem" and len(lines[1]) <= 120
    order = [
        "docs/images/terminal.svg",
        "pip install .",
        "make demo",
        "make test",
        "## Five reasons",
        "## Compared",
    ]
    places = [text.index(each) for each in order]
    assert places == sorted(places)


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
@pytest.mark.parametrize(
    "target", ["demo", "test", "slow", "lint", "bench", "soak", "docs", "site", "pictures"]
)
def test_what_make_would_run_is_there(target: str) -> None:
    would = subprocess.run(
        ["make", "--dry-run", target],
        cwd=REPOSITORY,
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    scripts = re.findall(r"\b(?:docs|bench)/\w+\.py\b", would.stdout)
    assert [script for script in scripts if not (REPOSITORY / script).is_file()] == []
    assert scripts or target in ("test", "slow", "lint", "site")


def test_the_page_of_the_tools_is_what_they_say() -> None:
    script = REPOSITORY / "docs" / "generate_tools.py"
    spec = importlib.util.spec_from_file_location("docs_generate_tools", script)
    assert spec is not None and spec.loader is not None
    generator = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generator)
    assert (REPOSITORY / "docs" / "tools.md").read_text(encoding="utf-8") == generator.page()
