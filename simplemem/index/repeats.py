"""Count text that several notes have in common: footers, badges, headings and lines of templates.

Two blocks have the same text if their rows in the table `places` have the same `text_key`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from simplemem.index.connection import Connection
from simplemem.index.door import BLOCKS_COUNTED, Match, NoteId, PlaceId
from simplemem.index.places import BLOCK, SHIFT

MIN_NOTES_OF_REPEATED_TEXT = (
    5  # an excerpt leaves text of so many notes out if it can show other text
)
_MAX_COUNTED_NOTES = 100  # a weight does not get smaller with more notes

# A text of up to a tenth of all notes, within these bounds, keeps its full weight. With 3 in a vault of
# 173 notes, texts that a few related notes share weighed too little (MRR of first sentences 0.514 for
# 0.538; with 10 it is 0.533).
_MIN_UNWEIGHTED_NOTES = 3
_MAX_UNWEIGHTED_NOTES = 10

# Most texts are of one block. To count the different notes of a text takes a temporary table, so only texts of so many
# blocks are counted.
_MIN_COUNTED_BLOCKS = _MIN_UNWEIGHTED_NOTES + 1


def ask_counts(db: Connection, blocks: Sequence[Match]) -> Iterable[tuple[PlaceId, int]]:
    """Query in how many notes the text of a block stands, for the `BLOCKS_COUNTED` best blocks of each note.

    `blocks` are the best first. Returns a lazy iterable of rows of a block's id and its number of notes,
    at most `_MAX_COUNTED_NOTES`, so that other queries can be sent before the rows are read. Blocks
    without a `text_key`, and those whose text no more than `_MIN_UNWEIGHTED_NOTES` blocks have, have no row.
    """
    blocks_of_note = Counter[NoteId]()
    block_ids = list[PlaceId]()
    for match in blocks:
        blocks_of_note[match.note] += 1
        if blocks_of_note[match.note] <= BLOCKS_COUNTED:
            block_ids.append(match.place)
    if not block_ids:
        return ()

    sql = f"""
        WITH asked AS MATERIALIZED (
            SELECT p.id AS place, p.text_key AS text
            FROM carray(:ids) c CROSS JOIN places p ON p.id = c.value
            WHERE p.text_key IS NOT NULL
        ), counted AS MATERIALIZED (
            SELECT t.text, (
                SELECT count(*) FROM (
                    SELECT DISTINCT s.id >> {SHIFT} AS note
                    FROM places s
                    WHERE s.text_key = t.text
                    LIMIT {_MAX_COUNTED_NOTES}
                ) n
            ) AS notes
            FROM (SELECT DISTINCT text FROM asked) t
            WHERE (
                SELECT count(*) FROM (SELECT 1 FROM places r WHERE r.text_key = t.text LIMIT {_MIN_COUNTED_BLOCKS}) k
            ) = {_MIN_COUNTED_BLOCKS}
        )
        SELECT a.place, c.notes FROM asked a JOIN counted c ON c.text = a.text"""
    return db.execute(sql, {"ids": db.many(block_ids)})


def weights_of(counts: Iterable[tuple[PlaceId, int]], note_count: int) -> dict[PlaceId, float]:
    """Return a weight between 0 and 1 for each block whose text stands in many notes; other blocks have none.

    `counts` are the rows of `ask_counts`, and `note_count` is the number of notes in the index.
    """
    unweighted_notes = max(_MIN_UNWEIGHTED_NOTES, min(note_count // 10, _MAX_UNWEIGHTED_NOTES))
    return {block: unweighted_notes / count for block, count in counts if count > unweighted_notes}


def ask_spans(db: Connection, notes: Iterable[NoteId]) -> Iterable[tuple[NoteId, tuple[int, int]]]:
    """Query where in some notes the blocks lie whose text `MIN_NOTES_OF_REPEATED_TEXT` or more notes have.

    Returns a lazy iterable of a note and the start and end of such a block in its text. The join is a CROSS JOIN,
    because SQLite would otherwise go through all blocks of the vault and look for each among the notes.
    """
    sql = f"""
        SELECT p.id >> {SHIFT}, p.start, p.stop
        FROM carray(:ids) n CROSS JOIN places p
        WHERE p.id >= (n.value << {SHIFT} | {BLOCK}) AND p.id < (n.value + 1) << {SHIFT}
          AND p.text_key IS NOT NULL
          AND (
              SELECT count(*) FROM (
                  SELECT 1 FROM places r WHERE r.text_key = p.text_key LIMIT {MIN_NOTES_OF_REPEATED_TEXT}
              ) k
          ) = {MIN_NOTES_OF_REPEATED_TEXT}
          AND (
              SELECT count(*) FROM (
                  SELECT DISTINCT s.id >> {SHIFT} AS note
                  FROM places s
                  WHERE s.text_key = p.text_key
                  LIMIT {MIN_NOTES_OF_REPEATED_TEXT}
              ) m
          ) = {MIN_NOTES_OF_REPEATED_TEXT}"""
    rows: Any = db.execute(sql, {"ids": db.many(notes)})
    return ((note, (start, stop)) for note, start, stop in rows)
