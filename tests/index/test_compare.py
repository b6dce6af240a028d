"""Two indexes of one vault are held against each other row for row, however differently they came to be."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from simplemem.index.comparison import RowDifference, differences
from simplemem.index.engine import Connection
from simplemem.index.terms.tokens import NoteTokens, SegmentBuilder, TextTokens, tokenize
from simplemem.index.terms.writer import add_notes, remove_note
from simplemem.store import EnhancedStore

Write = Callable[[str, str | bytes], Path]


def compared(store: EnhancedStore) -> list[RowDifference]:
    """Where the store's index is not what one made anew is."""
    step = store._parts
    rebuilt = step.index.database.build_replacement()
    step.make_updater(rebuilt).scan()
    try:
        with step.index.database.reading() as ours, rebuilt.reading() as theirs:
            return list(differences(ours, theirs, vectors=False))
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


def put_words(db: Connection, note_id: int, title: str, body: str) -> None:
    """Put other words in the place of those of a note with one block."""
    remove_note(db, note_id)
    builder = SegmentBuilder()
    texts = [TextTokens(tokenize(text)) for text in (title, "", body)]
    builder.add(NoteTokens(note_id, texts[0], texts[1], texts[2:]))
    add_notes(db, builder)


def test_an_index_that_grew_equals_one_made_at_once(grown: EnhancedStore) -> None:
    ids = dict(grown._parts.index.database.rows("SELECT path, id FROM notes"))
    assert sorted(ids, key=lambda path: ids[path]) != sorted(ids) and compared(grown) == []


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("plum pear x plum quokka", {"a", "x"}),  # another word
        ("plum plum pear a quokka", {"plum", "pear"}),  # the same words elsewhere
        ("plum pear a plum", {"quokka"}),  # one is missing
    ],
)
def test_words_that_are_not_where_the_note_has_them_are_found(
    grown: EnhancedStore, body: str, words: set[str]
) -> None:
    with grown._parts.index.database.writing() as db:
        note_id = db.execute("SELECT id FROM notes WHERE path = 'a.md'").get
        put_words(db, note_id, "Note a\na", f"Note a\n{body}")
    found = {row[:2] for pair in compared(grown) for row in pair if row is not None}
    assert words <= {word for _, word in found} and {table for table, _ in found} == {"term"}


def test_two_notes_whose_words_were_changed_about_are_found(grown: EnhancedStore) -> None:
    with grown._parts.index.database.writing() as db:
        ids = dict(db.execute("SELECT path, id FROM notes"))
        for path, words in (("e.md", "aa bb"), ("f.md", "bb aa")):
            put_words(db, ids[path], "", words)
    (grown.root / "e.md").write_text("bb aa")
    (grown.root / "f.md").write_text("aa bb")
    found = {
        row[1] for pair in compared(grown) for row in pair if row is not None and row[0] == "term"
    }
    assert {"aa", "bb"} <= found


def test_words_and_rows_of_no_note_are_found(grown: EnhancedStore) -> None:
    with grown._parts.index.database.writing() as db:
        put_words(db, 999, "", "lost")
        db.execute("INSERT INTO tags VALUES (999, 0, 'lost', 'list')").fetchall()
    (tag, nothing), *texts, (word, neither) = compared(grown)
    assert {row[:2] for pair in texts for row in pair if row is not None} == {("term", "")}
    assert nothing is None and tag is not None and tag[:2] == ("tags", "?")
    assert neither is None and word is not None and word[:2] == ("term", "lost")


def test_a_row_of_a_table_is_told_beside_what_should_be_there(grown: EnhancedStore) -> None:
    with grown._parts.index.database.writing() as db:
        db.execute("UPDATE notes SET title = 'Wrong' WHERE path = 'a.md'").fetchall()
    ((ours, theirs),) = compared(grown)
    assert ours is not None and theirs is not None
    assert ours[:2] == theirs[:2] == ("note", "a.md")
    assert "Wrong" in ours and "Wrong" not in theirs
