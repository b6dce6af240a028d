"""No command leads out of the vault, whatever its arguments are.

The arguments are a sample, since commands call the store, and test_api_stays_inside.py attacks each of its methods.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from canary import SECRET, Room
from effort import LONG
from hostile_names import hostile_names
from tool_calls import put_back
from typer.testing import CliRunner

from simplemem.cli.app import app

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the vault has links and a pipe")

SAMPLE = ["show -- {}", "new --content=x -- {}", "edit -- {}", "tag -- {} todo", "move -- n {}", "rm -- {}", "history -- {}",
          "restore -- {}", "search --prefix={} -- harbours", "list --link-to={} --", "undo -- {}",
          "knowledge show -- {}"]  # fmt: skip
SOME = 12
"""Of the names, one in so many goes to each command; `make soak` gives all to every command."""


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Room:
    monkeypatch.setenv("SIMPLEMEM_EMBED_PROVIDER", "none")
    monkeypatch.setenv("SIMPLEMEM_WRITE_DURABILITY", "fast")
    monkeypatch.setenv("EDITOR", "true")
    monkeypatch.delenv("VISUAL", raising=False)
    room = Room(tmp_path)
    monkeypatch.chdir(room.folder)
    return room


@pytest.mark.parametrize("command", SAMPLE)
def test_a_command_never_leaves_the_vault(room: Room, command: str) -> None:
    names = [
        each for each in hostile_names(room.folder) if "\0" not in each
    ]  # no system passes a NUL to a program
    for name in names if LONG else ["n", *names[SAMPLE.index(command) :: SOME]]:
        put_back(room.vault)
        words = [word.format(name) for word in command.split()]
        words.insert(command.split().index("--"), f"--vault={room.vault}")
        ran = CliRunner().invoke(app, words, prog_name="simplemem", input=b"")
        assert not room.touched(), words
        assert SECRET not in ran.output, words
        assert ran.exception is None or isinstance(ran.exception, SystemExit), (
            words,
            ran.exception,
        )
        assert ran.exit_code in (0, 1, 2), (words, ran.output)
