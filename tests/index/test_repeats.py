"""Text that stands in many notes is counted, whatever was changed or removed since."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from index.terms.vault_of_words import open_index, put_notes, remove_notes, term_index

from simplemem.index.engine import Connection
from simplemem.index.places import BLOCK, SHIFT
from simplemem.index.sqlite.engine import SqliteEngine
from simplemem.index.terms.merging import merge_segments
from simplemem.index.terms.reader import TermIndex

FOOTER = "Back to the [overview](https://example.org) of all pages"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SqliteEngine]:
    with closing(open_index(tmp_path)) as opened:
        yield opened


def _put(db: Connection, *numbers: int, footer: str = FOOTER) -> list[int]:
    """Put notes of three blocks: a paragraph of their own, a line without words, and a footer."""
    texts = {
        f"n{number}": f"Paragraph {number} about plums.\n\n(…)\n\n{footer}.\n" for number in numbers
    }
    return list(put_notes(db, texts).values())


def _blocks(note_ids: list[int]) -> list[int]:
    return [(note_id << SHIFT) | BLOCK | number for note_id in note_ids for number in range(3)]


def _counts(index: TermIndex, blocks: list[int]) -> dict[int, int]:
    counts = index.notes_with_same_text(np.array(blocks, np.int64))
    return dict(zip(blocks, counts.tolist(), strict=True))


def _footers(note_ids: list[int]) -> list[int]:
    return [(note_id << SHIFT) | BLOCK | 2 for note_id in note_ids]


@pytest.mark.parametrize("is_merged", [False, True])
def test_each_note_with_a_text_counts_once(database: SqliteEngine, is_merged: bool) -> None:
    with database.writing() as db:
        ids = [id_ for number in range(20) for id_ in _put(db, number)]
    if is_merged:
        merge_segments(database, max_packed=0)
    with database.writing() as db:
        _put(db, 3, 4, footer="Something else")
        remove_notes(db, [ids[7]])
        others = _put(db, 30, footer=f"{FOOTER}.\n\n{FOOTER}")

    with database.reading() as db:
        index = term_index(db)
        left = [id_ for id_ in ids if id_ not in (ids[3], ids[4], ids[7])] + others
        counts = _counts(index, _blocks(left))
        assert {place: count for place, count in counts.items() if count > 1} == dict.fromkeys(
            _footers(left), 18
        )
        assert sorted(index.repeated_blocks(ids + others, 18)) == sorted(
            [*_footers(left), _footers(others)[0] + 1]
        )
        assert index.repeated_blocks(ids, 19) == []


def test_a_line_without_words_is_not_counted(database: SqliteEngine) -> None:
    with database.writing() as db:
        ids = _put(db, *range(8))
    with database.reading() as db:
        rules = [place + 1 for place in _blocks(ids)[::3]]
        assert _counts(term_index(db), rules) == dict.fromkeys(rules, 0)
