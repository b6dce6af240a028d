"""How often a question crosses the door to the index: each of its calls would be a round trip to an engine elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simplemem.index.service import IndexService
from simplemem.index.vectors import NearestNotes
from simplemem.store import EnhancedStore

Write = Callable[[str, str | bytes], Path]
_HELD = {"generation", "path", "with_retry", "snapshot", "close"}  # no questions


@pytest.fixture
def crossings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the calls, as they are made."""
    made: list[str] = []

    def counted(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def crossing(*args: Any, **kwargs: Any) -> Any:
            made.append(name)
            return call(*args, **kwargs)

        return crossing

    for name, call in vars(IndexService).items():
        if callable(call) and not name.startswith("_") and name not in _HELD:
            monkeypatch.setattr(IndexService, name, counted(name, call))
    return made


@pytest.fixture
def harbour(store: EnhancedStore, write: Write) -> EnhancedStore:
    for k in range(40):
        links = f"[[n{(k + 1) % 40}]] [[n{(k + 7) % 40}]]"
        write(
            f"n{k}.md",
            f"---\ntags: [t{k % 3}]\n---\n\n# Crane {k}\n\nThe crane of pier {k} was greased. {links}\n",
        )
    store.sync()
    return store


def test_a_search_crosses_the_door_three_times_however_many_hits(
    harbour: EnhancedStore, crossings: list[str]
) -> None:
    for mode in ("hybrid", "text", "semantic"):
        for question in (
            "crane of the pier",
            "When was the crane greased in 2026?",
            '"crane of pier" tag:t1',
        ):
            crossings.clear()
            assert len(harbour.search(question, mode=mode, limit=10).hits) == 10
            assert crossings == ["vocabulary", "ask", "details"], (mode, question)


def test_what_a_question_needs_of_long_notes_is_read_once(
    harbour: EnhancedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    vault = harbour._parts.vault
    of_file = vault.read
    monkeypatch.setattr(
        vault, "read", lambda path, *more: read.append(path) or of_file(path, *more)
    )
    first = harbour.search("When was the crane greased?", limit=3)
    assert len(set(read)) >= 10  # the notes that are compared
    read.clear()
    again = harbour.search("When was the crane greased?", limit=3)
    assert again.hits == first.hits and len(read) <= 3  # those that are shown
    harbour.update(again.hits[0].name, append="The crane was greased when it rained.")
    read.clear()
    assert harbour.search("When was the crane greased?", limit=3).hits
    assert len(set(read)) <= 5  # and the one that changed


def test_what_is_near_in_meaning_is_found_once_and_kept(
    harbour: EnhancedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[object] = []
    nearest = NearestNotes.find
    monkeypatch.setattr(
        NearestNotes,
        "find",
        lambda *args, **kwargs: compared.append(args) or nearest(*args, **kwargs),
    )
    near = harbour.related("n3")
    assert len(near) == 2 and harbour.related("n3") == near and len(compared) == 1
    harbour.delete(near[0])
    assert near[0] not in harbour.related("n3") and len(compared) == 2


def test_what_is_near_in_meaning_needs_no_note_read(
    harbour: EnhancedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(harbour._parts.vault, "read", lambda path: pytest.fail(f"{path} is read"))
    assert len(harbour.related("n3")) == 2


def test_a_context_pack_crosses_it_five_times(harbour: EnhancedStore, crossings: list[str]) -> None:
    assert harbour.context("Which crane was greased?").items
    assert crossings == ["vocabulary", "ask", "details", "notes_with_property", "details"]


def test_backlinks_cross_it_three_times(harbour: EnhancedStore, crossings: list[str]) -> None:
    found = harbour.backlinks("n3", limit=10)
    assert {item.kind for item in found} == {"link", "semantic"}
    asked = [name for name in crossings if name != "rows"]  # which memory the name means
    assert asked == ["links", "ask", "details"]
