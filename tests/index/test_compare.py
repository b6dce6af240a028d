"""Two indexes of one vault are held against each other row for row, however differently they came to be."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from simplemem.index.audit import Difference, differences
from simplemem.store import EnhancedStore

Write = Callable[[str, str | bytes], Path]


def compared(store: EnhancedStore) -> list[Difference]:
    """Where the store's index is not what one made anew is."""
    step = store._core
    rebuilt = step.index.build_beside()
    step.sync_of(rebuilt).scan()
    try:
        with step.index.database.reading() as ours, rebuilt.reading() as theirs:
            return list(differences(ours, theirs, vectors=False, tell=lambda done, of: None))
    finally:
        rebuilt.close()


@pytest.fixture
def grown(plain_store: EnhancedStore, write: Write) -> EnhancedStore:
    """A store whose notes came, went and changed, so that their ids are not those of an index made at once."""
    for name in "fedcba":
        write(f"{name}.md", f"# Note {name}\n\nplum pear {name} plum\n\nquokka [[a]]\n")
        plain_store.sync()
    (plain_store.root / "d.md").unlink()
    write("b.md", "# Other\n\npear plum\n")
    plain_store.sync()
    return plain_store


def test_an_index_that_grew_equals_one_made_at_once(grown: EnhancedStore) -> None:
    ids = dict(grown._core.index.database.rows("SELECT path, id FROM notes"))
    assert sorted(ids, key=lambda path: ids[path]) != sorted(ids)
    assert compared(grown) == []


@pytest.mark.parametrize("path", ["a.md", "e.md"])
@pytest.mark.parametrize(
    ("body", "word"),
    [
        ("plum pear X plum quokka", "X"),  # another word
        ("plum plum pear X quokka", None),  # the same words elsewhere
        ("plum pear X plum", "quokka"),  # one is missing
    ],
)
def test_words_that_are_not_where_the_note_has_them_are_found(
    grown: EnhancedStore, path: str, body: str, word: str | None
) -> None:
    database = grown._core.index.database
    with database.writing() as db:
        (note_id,) = db.execute("SELECT id FROM notes WHERE path = ?", (path,)).fetchone() or (0,)
        db.execute("DELETE FROM note_text WHERE rowid = ?", (note_id,)).fetchall()
        text = body.replace("X", path[0])
        db.execute("INSERT INTO note_text (rowid, title, body) VALUES (?, ?, ?)", (note_id, "Note", text)).fetchall()
    found = compared(grown)
    assert {row[:2] for pair in found for row in pair if row is not None} == {("note_text", path)}
    if word == "quokka":
        assert any(row is not None and row[-1] == word for pair in found for row in pair)


def test_two_notes_whose_words_were_changed_about_are_found(grown: EnhancedStore) -> None:
    database = grown._core.index.database
    with database.writing() as db:
        ids = dict(db.execute("SELECT path, id FROM notes"))
        for path, words in (("e.md", "aa bb"), ("f.md", "bb aa")):
            db.execute("DELETE FROM note_text WHERE rowid = ?", (ids[path],)).fetchall()
            db.execute("INSERT INTO note_text (rowid, title, body) VALUES (?, ?, ?)", (ids[path], "", words)).fetchall()
    (grown.root / "e.md").write_text("bb aa")
    (grown.root / "f.md").write_text("aa bb")
    paths = {row[1] for pair in compared(grown) for row in pair if row is not None and row[0] == "note_text"}
    assert paths == {"e.md", "f.md"}


def test_words_of_no_note_are_found(grown: EnhancedStore) -> None:
    with grown._core.index.database.writing() as db:
        db.execute("INSERT INTO block_text (rowid, title, body) VALUES (?, '', 'plum')", ((999 << 20) + 7,)).fetchall()
    ((ours, theirs),) = compared(grown)
    assert theirs is None and ours is not None and ours[:2] == ("block_text", "?")


def test_a_row_of_a_table_is_told_beside_what_should_be_there(grown: EnhancedStore) -> None:
    with grown._core.index.database.writing() as db:
        db.execute("UPDATE notes SET title = 'Wrong' WHERE path = 'a.md'").fetchall()
    ((ours, theirs),) = compared(grown)
    assert ours is not None and theirs is not None
    assert ours[:2] == theirs[:2] == ("note", "a.md")
    assert "Wrong" in ours and "Wrong" not in theirs
