"""An error says what to do next: in the words of tools to an agent, and of commands to a person."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from simplemem.errors import AlreadyExists, Invalid, NotFound, ReadOnly, SimplememError
from simplemem.store import EnhancedStore, open_store

Write = Callable[[str, str | bytes], Path]


def refused(do: Callable[[], object], kind: type[SimplememError]) -> SimplememError:
    with pytest.raises(kind) as caught:
        do()
    return caught.value


@pytest.mark.parametrize("old", ["status: open", "title: Tea\nstatus: open", "---\n\nOolong"])
def test_an_edit_of_frontmatter_points_to_metadata(
    plain_store: EnhancedStore, write: Write, old: str
) -> None:
    file = write("tea.md", "---\ntitle: Tea\nstatus: open\n---\n\nOolong.\n")
    before = file.read_text()
    edits = [{"old": old, "new": "status: done"}]
    error = refused(lambda: plain_store.update("tea", edits=edits), Invalid)
    assert "is in the frontmatter" in error.message
    assert "metadata=" in error.hint
    assert file.read_text() == before


def test_an_edit_of_text_that_stands_in_the_frontmatter_too_is_made_in_the_text(
    plain_store: EnhancedStore, write: Write
) -> None:
    file = write("tea.md", "---\ntitle: Tea\n---\nTea is green.\n")
    plain_store.update("tea", edits=[{"old": "Tea", "new": "Matcha"}])
    assert file.read_text() == "---\ntitle: Tea\n---\nMatcha is green.\n"


@pytest.mark.parametrize("version", ["999999", "v999999", " 999999 "])
def test_an_undo_of_a_version_that_never_was_names_the_newest_one(
    plain_store: EnhancedStore, version: str
) -> None:
    empty = refused(lambda: plain_store.undo(version), NotFound)
    assert "no version" in empty.message
    assert empty.hint == "The history is empty."

    made = plain_store.create("tea", "Oolong.")
    error = refused(lambda: plain_store.undo(version), NotFound)
    assert "no version" in error.message
    assert f"newest version is {made.version}" in error.hint


def test_a_memory_with_a_number_for_a_name_is_undone_by_it(plain_store: EnhancedStore) -> None:
    plain_store.create("999999", "Oolong.")
    assert plain_store.undo("999999").name == "999999"


def test_a_rename_to_a_name_that_is_taken_says_what_to_do(plain_store: EnhancedStore) -> None:
    plain_store.create("tea", "Oolong.")
    plain_store.create("coffee", "Black.")
    error = refused(lambda: plain_store.move("tea", "coffee"), AlreadyExists)
    assert error.message == "a note called coffee already exists"
    assert "Choose another name" in error.hint


def test_a_write_that_is_refused_as_read_only_says_what_to_do(
    plain_store: EnhancedStore, vault: Path
) -> None:
    plain_store.create("tea", "Oolong.")
    with open_store(vault, read_only=True) as store:
        for write in (
            lambda: store.update("tea", append="Green."),
            lambda: store.create("coffee", "Black."),
            lambda: store.move("tea", "coffee"),
            lambda: store.delete("tea"),
            lambda: store.undo("tea"),
        ):
            assert "--read-only" in refused(write, ReadOnly).hint


def test_a_template_that_is_not_there_names_those_that_are(
    plain_store: EnhancedStore, write: Write
) -> None:
    error = refused(lambda: plain_store.create_from("Nope", "new"), NotFound)
    assert error.message == "no template called 'Nope'"
    assert "No template folder is set" in error.hint

    write("Templates/Meeting.md", "# {{title}}\n")
    write("Templates/people/Person.md", "# {{title}}\n")
    write(".obsidian/templates.json", json.dumps({"folder": "Templates"}))
    error = refused(lambda: plain_store.create_from("Nope", "new"), NotFound)
    assert error.hint == "The templates are Meeting, people/Person."
    assert error.details["candidates"] == ["Meeting", "people/Person"]
    assert plain_store.create_from("people/Person", "Ida").name == "Ida"


def test_a_restore_of_a_note_that_is_there_asks_for_a_moment(plain_store: EnhancedStore) -> None:
    plain_store.create("tea", "Oolong.")
    error = refused(lambda: plain_store.restore("tea"), Invalid)
    assert error.message == "tea already exists"
    assert error.hint.startswith("Pass `at`:")


def test_an_undo_of_all_names_the_part_that_is_missing(plain_store: EnhancedStore) -> None:
    assert "`since`" in refused(lambda: plain_store.undo_all("claude", ""), Invalid).message
    assert "`by`" in refused(lambda: plain_store.undo_all("", "yesterday"), Invalid).message
