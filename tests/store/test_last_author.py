"""A search can be of the notes that one author changed last, and says who did when it is asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simplemem.memory import Filter
from simplemem.store import EnhancedStore

Write = Callable[[str, str | bytes], Path]
ADA: dict[str, Any] = {"who": "ada-code 1.0"}
BOB: dict[str, Any] = {"who": "bob 2.0"}


def names(store: EnhancedStore, question: str, **more: Any) -> set[str]:
    return {hit.name for hit in store.search(question, mode="text", limit=50, **more).hits}


@pytest.fixture
def harbour(plain_store: EnhancedStore, write: Write) -> EnhancedStore:
    """A note by a person, and one by an agent."""
    write("hand.md", "# Hand\n\nThe crane at the north pier needs grease.\n")
    plain_store.sync()
    plain_store.create("machine", "The crane was inspected in May.", tool="create_memory", **ADA)
    return plain_store


def test_a_filter_by_author_leaves_the_notes_that_they_changed_last(harbour: EnhancedStore) -> None:
    assert names(harbour, "crane author:human") == {"hand"}
    assert names(harbour, "crane author:agent") == names(harbour, "crane author:ada") == {"machine"}
    assert names(harbour, "crane", filter=Filter(author="bob")) == set()
    assert names(harbour, "author:agent") == {"machine"}
    assert "grease" in harbour.context("crane author:human").text
    assert "inspected" not in harbour.context("crane author:human").text


def test_a_hit_says_who_changed_its_note_last_and_when_if_that_is_asked(harbour: EnhancedStore) -> None:
    found = {hit.name: hit for hit in harbour.search("crane", authors=True).hits}
    assert {name: hit.authors for name, hit in found.items()} == {"hand": ("human",), "machine": ("ada-code 1.0",)}
    made = harbour.history("machine")[0].when
    assert found["machine"].written is not None and made[14:16] == found["machine"].written[14:16]
    assert found["hand"].written is None  # nobody knows
    assert {hit.authors for hit in harbour.search("crane").hits} == {()}
    assert () not in {hit.authors for hit in harbour.search("crane author:any").hits}
    assert names(harbour, "crane author:any") == names(harbour, "crane")


def test_a_note_keeps_its_author_under_another_name(harbour: EnhancedStore, vault: Path) -> None:
    harbour.move("machine", "log/May", tool="move_memory", **BOB)
    assert names(harbour, "crane author:ada") == {"log/May"}
    (vault / "log" / "May.md").rename(vault / "June.md")  # by another program
    harbour.sync()
    assert names(harbour, "crane author:ada") == {"June"}
    harbour.delete("June", tool="delete_memory", **BOB)
    harbour.undo("June", who="command line")
    assert names(harbour, "crane author:ada") == {"June"}
