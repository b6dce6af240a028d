"""The best of some notes for a question, and their passages: what rooms above the store rank by."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simplemem.index.service import IndexService
from simplemem.store import EnhancedStore

Write = Callable[[str, str | bytes], Path]


@pytest.fixture
def kitchen(store: EnhancedStore, write: Write) -> EnhancedStore:
    write("a/window.md", "I like window seats on long flights.\n")
    write("a/garlic.md", "Garlic does not agree with me.\n")
    write("b/window.md", "Window seats are what Robin asks for on flights.\n")
    write("a/long.md", "# Guide\n\n" + "".join(f"## Part {k}\n\n{'Filling words. ' * 60}\n\n" for k in range(5))
          + "## Boarding\n\nThe window seat is at gate nine.\n")  # fmt: skip
    store.sync()
    return store


def test_only_the_notes_that_are_given_are_ranked(kitchen: EnhancedStore) -> None:
    given = ["a/window.md", "a/garlic.md"]
    found = kitchen.extension.answers("which window seat on flights?", given, 10)
    assert next(iter(found.notes)) == "a/window.md" and found.notes.keys() <= set(given)
    assert list(found.notes.values()) == sorted(found.notes.values(), reverse=True)
    assert (
        found.notes["a/window.md"] == 1.0
        and not found.passages
        and not found.reranker
        and not found.only_nearest
    )


def test_passages_come_best_first_with_where_they_stand(kitchen: EnhancedStore) -> None:
    found = kitchen.extension.answers(
        "At which gate is the window seat?", ["a/long.md", "a/window.md"], 5, passages=3
    )
    best = next(piece for piece in found.passages if piece.name == "a/long")
    assert "gate nine" in best.text and best.heading.endswith("Boarding") and best.line > 1
    assert 0 < len(found.passages) <= 3 and all(0 <= piece.score <= 1 for piece in found.passages)


def test_of_no_notes_nothing_is_asked(
    kitchen: EnhancedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(IndexService, "ask", lambda *given: pytest.fail("the index is asked"))
    assert kitchen.extension.answers("window", [], 5, passages=3).notes == {}


@pytest.mark.parametrize(
    "question",
    [
        '"window seats"',
        "type:entity window",
        "-window seats",
        "window*",
        "path:b/ window",
        "author:x window",
    ],
)
def test_a_question_is_words_only(kitchen: EnhancedStore, question: str) -> None:
    given = ["a/window.md", "a/garlic.md"]
    assert next(iter(kitchen.extension.answers(question, given, 5).notes)) == "a/window.md"
    assert kitchen.extension.likeness(question, given).words.keys() == {"a/window.md"}


def test_the_index_is_asked_once(kitchen: EnhancedStore, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    ask = IndexService.ask
    monkeypatch.setattr(IndexService, "ask", lambda *given: asked.append(given) or ask(*given))
    kitchen.extension.answers("which window seat?", ["a/window.md", "a/long.md"], 5, passages=3)
    assert len(asked) == 1


def test_the_most_alike_are_the_best_of_all_that_are(kitchen: EnhancedStore) -> None:
    given = ["a/window.md", "a/garlic.md", "a/long.md"]
    every, few = (
        kitchen.extension.likeness("window seats on flights", given, most) for most in (0, 1)
    )
    assert (
        len(every.meaning) == 3 and max(every.meaning, key=every.meaning.__getitem__) in few.meaning
    )
    assert all(every.meaning[path] == value for path, value in few.meaning.items())


def test_what_ends_with_the_store_ends_before_its_index(store: EnhancedStore, write: Write) -> None:
    write("tea.md", "Oolong.\n")
    left: list[int] = []
    store.extension.on_close(lambda: left.append(len(store.extension.list_all())))
    store.sync()
    store.close()
    assert left == [1]
