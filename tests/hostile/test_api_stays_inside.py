"""No call of the Python interface leads out of the vault, and it raises only errors of simplemem.

The calls are made from the signatures of EnhancedStore: a method that wants more than texts has to be named here.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from canary import SECRET, Room
from effort import LONG
from hostile_names import hostile_names

from simplemem.errors import SimplememError
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore
from simplemem.vault.values import sha256

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the vault has links and a pipe")

PLAIN = Settings.model_validate({"embed": {"provider": "none"}, "write": {"durability": "fast"}})
NOTE = b"---\ntags: [todo]\n---\nA note about [[notes/other]] harbours.\n"
HARMLESS: dict[str, dict[str, Any]] = {
    "create": {"name": "new", "content": "text", "overwrite": True}, "update": {"append": "text"},
    "write_text": {"text": "text", "if_sha256": sha256(NOTE)}, "change_tags": {"tags": {"todo": None}},
    "move": {"new_name": "moved"}, "undo_all": {"by": "ada", "since": "2026-01-01", "preview": True},
    "restore": {"name": "gone"},
}  # fmt: skip
"""How a method is called that is not content with `n` for each text it needs."""
WITHOUT_NAMES = {"fix", "merge_conflict", "merge_conflicts", "move_index"}
"""Methods that carry out what another has shown; and one that takes a setting, which may name a file anywhere."""


@pytest.fixture
def room(tmp_path: Path) -> Room:
    return Room(tmp_path)


@pytest.fixture
def store(room: Room) -> Iterator[EnhancedStore]:
    with EnhancedStore(room.vault, PLAIN) as store:
        store.update("n", append="A change, so that there is a past.", who="ada")
        (room.vault / "n.md").write_bytes(NOTE)
        store.create("gone", "This was deleted.")
        store.delete("gone")
        yield store


def methods() -> dict[str, list[str]]:
    """The public methods, with the names of the texts that each takes."""
    found = {}
    for name, method in vars(EnhancedStore).items():
        if inspect.isfunction(method) and not name.startswith("_") and name not in WITHOUT_NAMES:
            params = inspect.signature(method).parameters.values()
            if texts := [
                each.name for each in params if str(each.annotation).split(" | ")[0] == "str"
            ]:
                found[name] = texts
    return found


def harmless(method: str) -> dict[str, Any]:
    params = inspect.signature(getattr(EnhancedStore, method)).parameters.values()
    needed = {
        each.name: "n"
        for each in params
        if each.default is each.empty and each.kind is not each.VAR_KEYWORD
    }
    return {
        key: value for key, value in needed.items() if key not in ("self", "core")
    } | HARMLESS.get(method, {})


def put_back(room: Room) -> None:
    if not (room.vault / "n.md").is_file():
        (room.vault / "n.md").write_bytes(NOTE)


@pytest.mark.parametrize("method", methods())
def test_a_method_never_leaves_the_vault(room: Room, store: EnhancedStore, method: str) -> None:
    names = hostile_names(room.folder)
    getattr(store, method)(**harmless(method))  # it does its work when it is asked properly
    for number, param in enumerate(methods()[method]):
        for name in names if LONG else names[number % 4 :: 4]:
            put_back(room)
            try:
                said = getattr(store, method)(**harmless(method) | {param: name})
            except SimplememError as error:
                said = (error.message, error.hint, error.details)
            assert not room.touched(), (param, name)
            assert SECRET not in repr(said), (param, name)


READS = [
    ("resolve", "name"),
    ("read", "name"),
    ("search", "why"),
    ("backlinks", "name"),
    ("history", "name"),
]


def test_no_answer_tells_whether_something_is_there_outside(
    room: Room, store: EnhancedStore
) -> None:
    """The same questions are asked when all that lies outside is gone."""

    def asked(method: str, param: str, name: str) -> str:
        try:
            return repr(getattr(store, method)(**harmless(method) | {param: name}))
        except SimplememError as error:
            return repr((error.code, error.message, error.details))

    names = [*hostile_names(room.folder), f"{room.folder}/outside/.dotted", "link-out/.dotted"][
        :: 1 if LONG else 2
    ]
    (room.folder / "outside" / ".dotted").write_text("x")
    (room.folder / ".dotted").write_text("x")
    store.sync()
    with_all = [asked(method, param, name) for method, param in READS for name in names]
    room.remove_what_is_outside()
    assert [asked(method, param, name) for method, param in READS for name in names] == with_all


def test_scanning_a_vault_full_of_ways_out_takes_none_of_them(
    room: Room, store: EnhancedStore
) -> None:
    """Links, a pipe and a folder named like a note are skipped at once, and never read."""
    store.sync()
    store.doctor()
    assert [item.name for item in store.list().items if not item.name.startswith("link")] == [
        "n",
        "notes/other",
    ]
    assert not room.touched() and SECRET not in repr(store.inspect())
