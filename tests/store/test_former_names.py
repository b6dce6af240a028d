"""What is said of a note that is not there under the name it is asked for by: where it is now, or how it went."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from simplemem.errors import NotFound
from simplemem.store import EnhancedStore

Write = Callable[[str, str | bytes], Path]


def told(store: EnhancedStore, name: str) -> NotFound:
    with pytest.raises(NotFound) as refused:
        store.read(name)
    return refused.value


def test_a_note_that_was_moved_and_moved_back_and_deleted_is_said_to_be_deleted(
    plain_store: EnhancedStore,
) -> None:
    plain_store.create("d/A", "Text.")
    moved = plain_store.move("d/A", "d/B")
    plain_store.undo(moved.version)
    deleted = plain_store.delete("d/A")
    assert told(plain_store, "d/A").message == f"d/A was deleted (version {deleted.version})"
    assert (
        told(plain_store, "d/B").message
        == f"d/B became d/A, which was deleted (version {deleted.version})"
    )
    for name in ("d/A", "d/B", "A", "B"):
        error = told(plain_store, name)
        assert deleted.version in error.hint
        assert "candidates" not in error.details
    plain_store.undo(deleted.version)
    assert plain_store.read("d/A").content == "Text.\n"


def test_no_two_names_of_a_note_send_the_reader_to_each_other(
    plain_store: EnhancedStore, vault: Path
) -> None:
    plain_store.create("d/A", "Text.")
    undone = plain_store.undo(plain_store.move("d/A", "d/B").version)
    (vault / "d" / "A.md").unlink()  # by another program, of which the log knows nothing
    plain_store.sync(accept_deletions=True)
    removed = f"was deleted or renamed outside simplemem (last change: version {undone.version})"
    assert told(plain_store, "d/A").message == f"d/A {removed}"
    assert told(plain_store, "d/B").message == f"d/B became d/A, which {removed}"
    assert plain_store.read("d/A", version=undone.version).content == "Text.\n"


def test_a_note_that_was_moved_twice_is_found_by_its_first_name(plain_store: EnhancedStore) -> None:
    plain_store.create("A", "Text.")
    plain_store.move("A", "B")
    moved = plain_store.move("B", "C")
    for name in ("A", "B"):
        error = told(plain_store, name)
        assert error.message == f"{name} is now C (version {moved.version})"
        assert error.details["candidates"] == ["C"]


def test_a_new_note_in_the_place_of_a_deleted_one_is_not_taken_for_it(
    plain_store: EnhancedStore,
) -> None:
    plain_store.create("A", "Text.")
    plain_store.move("A", "B")
    deleted = plain_store.delete("B")
    plain_store.create("B", "Another note.")
    plain_store.move("B", "C")
    assert (
        told(plain_store, "A").message
        == f"A became B, which was deleted (version {deleted.version})"
    )
    assert "B is now C" in told(plain_store, "B").message


def test_a_deletion_that_was_undone_is_none(plain_store: EnhancedStore) -> None:
    plain_store.create("A", "Text.")
    plain_store.undo(plain_store.delete("A").version)
    moved = plain_store.move("A", "B")
    assert told(plain_store, "A").message == f"A is now B (version {moved.version})"


def test_an_unrelated_new_note_between_a_deletion_and_its_undoing_does_not_hide_the_note(
    plain_store: EnhancedStore,
) -> None:
    plain_store.create("A", "Text.")
    plain_store.move("A", "C")
    deleted = plain_store.delete("C")
    plain_store.create("D", "Another note.")
    restored = plain_store.undo(deleted.version)
    assert told(plain_store, "A").message == f"A is now C (version {restored.version})"


def test_another_note_that_was_moved_to_the_name_of_a_deleted_one_is_not_taken_for_it(
    plain_store: EnhancedStore,
) -> None:
    plain_store.create("B", "Another note.")
    plain_store.create("A", "Text.")
    plain_store.move("A", "C")
    deleted = plain_store.delete("C")
    plain_store.move("B", "C")
    plain_store.update("C", append="More.")
    assert (
        told(plain_store, "A").message
        == f"A became C, which was deleted (version {deleted.version})"
    )
