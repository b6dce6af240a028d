"""Notes of the days a question names come before others that are as good."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from simplemem.store import EnhancedStore

Write = Callable[..., Path]


def names(store: EnhancedStore, question: str, **asked: object) -> list[str]:
    return [hit.name for hit in store.search(question, **asked).hits]  # type: ignore[arg-type]


def test_a_day_that_the_question_names_comes_first(store: EnhancedStore, write: Write) -> None:
    for day in ("2024-02-10", "2024-03-12", "2024-04-02", "2025-03-05"):
        write(f"daily/{day}.md", "We met the harbour master about the crane.\n")
    store.sync()
    assert names(store, "what did the harbour master say")[0] == "daily/2024-02-10"
    assert names(store, "what did the harbour master say in March 2024")[0] == "daily/2024-03-12"
    assert names(store, "what did the harbour master say since 2025")[0] == "daily/2025-03-05"
    assert set(names(store, "what did the harbour master say in March")[:2]) == {"daily/2024-03-12", "daily/2025-03-05"}
    assert len(names(store, "what did the harbour master say in March 2024")) == 4  # a hint is no filter
    found = store.search("what did the harbour master say in March 2024", explain=True)
    assert [hit.why is not None and hit.why.get("dated") for hit in found.hits] == [1.0, None, None, None]


def test_a_note_without_a_day_in_its_name_is_of_the_day_it_was_made(store: EnhancedStore, write: Write) -> None:
    write("a.md", "---\ncreated: 2023-01-05\nmodified: 2023-01-05\n---\n\nThe crane was painted.\n")
    write("b.md", "---\ncreated: 2024-03-05\nmodified: 2024-05-05\n---\n\nThe crane was painted.\n")
    store.sync()
    assert names(store, "crane painted") == ["a", "b"]
    assert names(store, "crane painted in March 2024") == ["b", "a"]
