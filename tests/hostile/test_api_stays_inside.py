"""No call of the Python interface leads out of the vault, and what it raises is one of ours (durability.md F38; I7).

The calls are made from the signatures of EnhancedStore: a method that nobody has said how to call fails the first test.
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

from simplemem.config import Settings
from simplemem.errors import SimplememError
from simplemem.memory import Filter, Mending
from simplemem.store import EnhancedStore
from simplemem.vault.disk import sha256

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the vault has links and a pipe")

PLAIN = Settings.model_validate({"embed": {"provider": "none"}, "write": {"durability": "fast"}})
NOTE = b"---\ntags: [todo]\n---\nA note about [[notes/other]] harbours.\n"
HARMLESS: dict[str, dict[str, Any]] = {
    "resolve": {"name": "n"},
    "names": {"prefix": "n"},
    "read": {"name": "n"},
    "search": {"query": "harbours"},
    "context": {"query": "harbours"},
    "backlinks": {"name": "n"},
    "related": {"name": "n"},
    "create": {"name": "new", "content": "text", "overwrite": True},
    "update": {"name": "n", "append": "text"},
    "write_text": {"name": "n", "text": "text", "if_sha256": sha256(NOTE)},
    "change_tags": {"name": "n", "tags": {"todo": None}},
    "move": {"name": "n", "new_name": "moved"},
    "delete": {"name": "n"},
    "history": {"name": "n"},
    "blame": {"name": "n"},
    "mend": {"mending": Mending((), (), ())},
    "undo": {"version_or_name": "n"},
    "undo_all": {"by": "ada", "since": "2026-01-01", "preview": True},
    "diff": {"what": "n"},
    "restore": {"name": "gone"},
    "conflict_merges": {},
    "list": {},
}
NO_TEXT = {
    "close", "embeds_remotely", "estimate", "on_change", "start", "state", "stats", "sync", "tags", "inspect", "doctor",
    "wait_until_settled", "conflict_copies", "plan_mending",
}  # fmt: skip
"""Methods that are given no text of anybody's."""
GIVEN_WHAT_WAS_SHOWN = {"mend", "merge_conflict"}
"""Methods that carry out what another has shown, and take nothing else but who does it and why."""


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


def methods() -> dict[str, inspect.Signature]:
    public = {name: value for name, value in vars(EnhancedStore).items() if not name.startswith("_")}
    return {name: inspect.signature(value) for name, value in public.items() if inspect.isfunction(value)}


def takes_text(signature: inspect.Signature) -> list[str]:
    return [name for name, param in signature.parameters.items() if str(param.annotation).split(" | ")[0] == "str"]


def put_back(room: Room) -> None:
    if not (room.vault / "n.md").is_file():
        (room.vault / "n.md").write_bytes(NOTE)


def test_every_method_is_known_here() -> None:
    unknown = methods().keys() - HARMLESS.keys() - NO_TEXT - GIVEN_WHAT_WAS_SHOWN
    assert not unknown, f"say in HARMLESS how to call {unknown}, so that their arguments can be attacked"
    assert not [name for name in NO_TEXT if name in methods() and takes_text(methods()[name])]


@pytest.mark.parametrize("method", [name for name in methods() if name in HARMLESS])
def test_a_method_never_leaves_the_vault(room: Room, store: EnhancedStore, method: str) -> None:
    names = hostile_names(room.folder)
    wanted = takes_text(methods()[method])
    getattr(store, method)(**HARMLESS[method])  # it does its work when it is asked properly
    for number, param in enumerate(wanted):
        for name in names if LONG else names[number % 4 :: 4]:
            put_back(room)
            try:
                said = getattr(store, method)(**HARMLESS[method] | {param: name})
            except SimplememError as error:
                said = (error.message, error.hint, error.details)
            assert not room.touched(), (param, name)
            assert SECRET not in repr(said), (param, name)


READS = [("resolve", "name"), ("read", "name"), ("search", "why"), ("backlinks", "name"), ("history", "name")]


def test_no_answer_tells_whether_something_is_there_outside(room: Room, store: EnhancedStore) -> None:
    """The same questions are asked when all that lies outside is gone."""

    def asked(method: str, param: str, name: str) -> str:
        try:
            return repr(getattr(store, method)(**HARMLESS[method] | {param: name}))
        except SimplememError as error:
            return repr((error.code, error.message, error.details))

    names = [*hostile_names(room.folder), f"{room.folder}/outside/.dotted", "link-out/.dotted"][:: 1 if LONG else 2]
    (room.folder / "outside" / ".dotted").write_text("x")
    (room.folder / ".dotted").write_text("x")
    store.sync()
    with_all = [asked(method, param, name) for method, param in READS for name in names]
    room.remove_what_is_outside()
    assert [asked(method, param, name) for method, param in READS for name in names] == with_all


@pytest.mark.parametrize("field", ["prefix", "type", "since", "until", "link_to", "linked_by", "tags"])
def test_a_filter_never_leaves_the_vault(room: Room, store: EnhancedStore, field: str) -> None:
    store.sync()
    for name in hostile_names(room.folder)[:: 1 if LONG else 6]:
        try:
            narrow = Filter.of(**{field: {name: name} if field == "tags" else name})
            said = [repr(store.search("harbours", filter=narrow)), repr(store.list(filter=narrow))]
        except SimplememError as error:
            said = [error.message]
        assert not room.touched(), name
        assert SECRET not in "".join(said), name


def test_scanning_a_vault_full_of_ways_out_takes_none_of_them(room: Room, store: EnhancedStore) -> None:
    """F36, F37: links, a pipe and a folder called like a note are passed over at once, and never read."""
    store.sync()
    store.doctor()
    assert [item.name for item in store.list().items if not item.name.startswith("link")] == ["n", "notes/other"]
    assert not room.touched()
    assert SECRET not in repr(store.inspect())
