"""No command leads out of the vault, whatever it is given (durability.md F34, F36, F37, F38; I7).

The calls are made from the program's own commands: a new one, or a new option, is taken in by itself, and a command that
nobody has said how to call fails the first test here. The vault, and files that a person names as files, are theirs to
choose: such options are left as they are.
"""

from __future__ import annotations

import os
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from canary import SECRET, Room
from effort import LONG
from hostile_names import hostile_names
from tool_calls import put_back as put_back_notes
from typer.testing import CliRunner

from simplemem.cli.app import app

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the vault has links and a pipe")

# How each command is called so that it does its work: what it must be given, by the names of its parameters.
HARMLESS: dict[str, dict[str, Any]] = {
    "search": {"query": ["harbours"]},
    "list": {},
    "show": {"name": "n"},
    "backlinks": {"name": "n"},
    "context": {"query": ["harbours"]},
    "new": {"name": "new", "content": "text"},
    "edit": {"name": "n"},
    "tag": {"name": "n", "changes": ["todo"]},
    "move": {"old": "n", "new_name": "moved"},
    "rm": {"names": ["n"]},
    "history": {},
    "undo": {"what": "n"},
    "diff": {"what": "n"},
    "restore": {"name": "gone"},
    "conflicts": {},
    "init": {},
    "index": {},
    "stats": {},
    "doctor": {},
    "inspect": {},
    "eval init": {},
    "eval run": {},
    "eval gate": {},
    "config": {},
    "export graph": {},
    "import graph": {"file": "vault/memory.jsonl"},
    "knowledge init": {},
    "knowledge stats": {},
    "knowledge list": {},
    "knowledge search": {"query": ["pool"]},
    "knowledge show": {"ref": "id-one"},
    "knowledge export": {},
    "knowledge analyze": {},
    "knowledge validate": {},
    "knowledge reset": {"confirm": "reset"},
}
A_GRAPH = '{"type":"entity","name":"Vega","entityType":"star","observations":["Bright"]}\n'
BEFORE = {
    "undo": [["tag", "n", "fresh"]],
    "diff": [["tag", "n", "fresh"]],
    "restore": [["new", "--content", "x", "gone"], ["rm", "gone"]],
}
"""What has to have happened for a command to have something to do."""
NOT_HERE = {"serve": "a process that stays, tested as such in test_server_stays_inside.py"}


def commands(group: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{before}{name} ")
        else:
            yield before + name, command


COMMANDS = [
    pytest.param(name, command, id=name)
    for name, command in commands(typer.main.get_command(app))
    if name not in NOT_HERE
]


def takes_text(command: Any) -> dict[str, bool]:
    """The parameters that take any text, and whether they take several. Those of type Path are a person's own files."""
    found = {}
    for name, hint in typing.get_type_hints(command.callback).items():
        if name in ("ctx", "return"):
            continue
        several = typing.get_origin(hint) is list or any(typing.get_origin(a) is list for a in typing.get_args(hint))
        kinds = {hint, *typing.get_args(hint)} | {a for b in typing.get_args(hint) for a in typing.get_args(b)}
        if str in kinds:
            found[name] = several
    return found


def arguments_of(name: str, command: Any, given: dict[str, Any], vault: Path) -> list[str]:
    """The words of a command line: options first, then what has no name."""
    options, rest = ["--vault", str(vault)], []
    for param in command.params:
        if param.name not in given:
            continue
        values = given[param.name] if isinstance(given[param.name], list) else [given[param.name]]
        if param.param_type_name == "argument":
            rest += values
        else:
            options += [f"{param.opts[0]}={value}" for value in values]
    return [*name.split(), *options, "--", *rest]


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Room:
    return Room(tmp_path_factory.mktemp("room"))


@pytest.fixture(autouse=True)
def words_only(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMPLEMEM_EMBED_PROVIDER", "none")
    monkeypatch.setenv("SIMPLEMEM_WRITE_DURABILITY", "fast")
    monkeypatch.setenv("EDITOR", "true")
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.chdir(room.folder)


def put_back(room: Room) -> None:
    """The notes that the commands are about, if the last one took them away; and nothing in the way of a new one."""
    (room.vault / "new.md").unlink(missing_ok=True)
    (room.vault / "moved.md").unlink(missing_ok=True)
    (room.vault / "memory.jsonl").write_text(A_GRAPH)
    put_back_notes(room.vault)


@pytest.mark.parametrize(("name", "command"), COMMANDS)
def test_every_command_is_known_here_and_does_its_work(room: Room, name: str, command: Any) -> None:
    assert name in HARMLESS, f"say in HARMLESS how {name!r} is called, so that its arguments can be attacked"
    put_back(room)
    for command_before, *words in BEFORE.get(name, []):
        CliRunner().invoke(app, [command_before, "--vault", str(room.vault), *words])
    ran = CliRunner().invoke(app, arguments_of(name, command, HARMLESS[name], room.vault), prog_name="simplemem")
    # There is too little in this vault to find fault with it, or to measure a search by.
    assert ran.exit_code == 0 or name in ("doctor", "eval init", "eval run", "eval gate"), ran.output


@pytest.mark.parametrize(("name", "command"), COMMANDS)
def test_a_command_never_leaves_the_vault(room: Room, name: str, command: Any) -> None:
    names = [each for each in hostile_names(room.folder) if "\0" not in each]  # no system passes a NUL to a program
    assert len(names) >= 300
    places = [(one, param) for one, each in (place.values for place in COMMANDS) for param in takes_text(each)]
    for param, several in takes_text(command).items():
        # The places share the names, so that each is met somewhere; `make soak` gives all to every place.
        share = names if LONG else names[places.index((name, param)) :: len(places)]
        for each in share:
            put_back(room)
            given = HARMLESS[name] | {param: [each] if several else each}
            words = arguments_of(name, command, given, room.vault)
            ran = CliRunner().invoke(app, words, prog_name="simplemem", input=b"")
            assert not room.touched(), words
            assert SECRET not in ran.output, words
            assert ran.exception is None or isinstance(ran.exception, SystemExit), (words, ran.exception)
            assert ran.exit_code in (0, 1, 2), words
