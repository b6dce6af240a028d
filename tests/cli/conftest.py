"""A real vault, and commands that run on it: in this process, or in a terminal of their own."""

from __future__ import annotations

import json
import os
import select
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from processes import Program
from typer.testing import CliRunner

from simplemem.cli.app import app

NOTES = {
    "projects/apollo.md": (
        "---\ntitle: Apollo\ndescription: The lunar project\ntags:\n  - project\n  - status/active\n"
        "created: 2026-01-05T09:00:00\nmodified: 2026-01-20T09:00:00\ntype: project\n---\n"
        "# Apollo\n\nThe launch is planned for spring.\n\n## Budget\n\nThe budget was approved by [[Ada]].\n"
    ),
    "people/Ada.md": (
        "---\naliases:\n  - Countess\ntags: [person]\n"
        "created: 2026-01-02T09:00:00\nmodified: 2026-01-10T09:00:00\n---\n"
        "Ada flies balloons. See [[projects/apollo|Apollo]] and [[nowhere]].\n"
    ),
    "log/2026-01-24.md": (
        "---\ntags:\n  status: done\n  todo: true\nmodified: 2026-01-24T09:00:00\n---\n"
        "The weather was calm, launch rehearsed.\n"
    ),
}


@dataclass(frozen=True)
class Ran:
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The output, which is JSON."""
        return json.loads(self.out)


Run = Callable[..., Ran]


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the settings of the user from the environment, and give each test a home folder."""
    own_variables = [name for name in os.environ if name.startswith("SIMPLEMEM_")]
    for name in own_variables:
        monkeypatch.delenv(name)
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "VISUAL", "EDITOR"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home" / ".config"))
    monkeypatch.chdir(tmp_path / "home")


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    """Return a vault with the notes in NOTES."""
    folder = tmp_path / "notes"
    first_of_january = 1_767_225_600  # of 2026; the `modified` of each note is later
    for path, text in NOTES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(text.encode())
        os.utime(folder / path, (first_of_january, first_of_january))
    return folder


@pytest.fixture
def run(vault: Path) -> Run:
    """Return a function that runs a command on the vault, as `run("tag", "Ada", "todo")`.

    It raises what the command raises, except SystemExit.
    """

    def run(*args: str, input: bytes | None = None, vault: Path | None = vault) -> Ran:  # noqa: A002
        vault_option = () if vault is None else ("--vault", str(vault))
        result = CliRunner().invoke(app, [*args, *vault_option], input=input, prog_name="simplemem")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Ran(result.exit_code, result.stdout, result.stderr)

    return run


@pytest.fixture
def words_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turn off vectors: they take time, and most commands need none."""
    monkeypatch.setenv("SIMPLEMEM_EMBED_PROVIDER", "none")


PROGRAM = [sys.executable, "-m", "simplemem"]


def in_a_terminal(
    *arguments: str,
    answer: bytes = b"",
    reply: Callable[[bytes], bytes] = lambda output: b"",
    env: dict[str, str] | None = None,
) -> tuple[int, bytes]:
    """Run the program in a terminal of 100 columns, and return its exit code and its output.

    `answer` is typed at once. After each piece of output, what `reply` returns for the whole output
    is typed.
    """
    controller, terminal = os.openpty()
    env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", **(env or {})}
    process = Program(
        [*PROGRAM, *arguments], stdin=terminal, stdout=terminal, stderr=terminal, env=env
    )
    os.close(terminal)
    output = b""
    try:
        os.write(controller, answer)
        while piece := read_terminal(controller):
            output += piece
            os.write(controller, reply(output))
        return process.wait(60), output
    finally:
        process.kill()
        os.close(controller)


def read_terminal(controller: int) -> bytes:
    """Return the next piece of output, or b"" when the program has closed its terminal.

    Fails the test if there is none for a minute.
    """
    readable, _, _ = select.select([controller], [], [], 60)
    assert readable, "the program printed nothing for a minute"
    try:
        return os.read(controller, 65536)
    except OSError:  # Linux raises this when the terminal is closed
        return b""


def notes_of(vault: Path) -> dict[str, bytes]:
    """Return the bytes of each note of a vault by its path."""
    files = {file.relative_to(vault).as_posix(): file.read_bytes() for file in vault.rglob("*.md")}
    return {path: data for path, data in files.items() if not path.startswith(".")}
