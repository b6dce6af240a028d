"""Text that stands in several notes: footers, badges, headings and lines of templates. Told by `places.text_key`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from simplemem.index.connection import Connection
from simplemem.index.door import BLOCKS_COUNTED, Match, NoteId, PlaceId
from simplemem.index.text import BLOCK, SHIFT

MANY = 5  # notes with the same text: it is not shown while the note has other text that was found
_MAX_COUNT = 100  # more make no difference
# So many notes may have a text before it counts less: a tenth of them, within these bounds. With 3 in a vault of 173 notes,
# what stands in a few related ones counted too little (MRR of first sentences 0.514 for 0.538; with 10 it is 0.533).
_LEAST_FEW, _MOST_FEW = 3, 10


def ask_counts(db: Connection, blocks: Sequence[Match]) -> Iterable[tuple[PlaceId, int]]:
    """Ask in how many notes the text of each block stands, of the best blocks of each note. `blocks` are in order, best
    first. The answer is read when it is wanted."""
    taken: defaultdict[NoteId, int] = defaultdict(int)
    places: list[PlaceId] = []
    for match in blocks:
        taken[match.note] += 1
        if taken[match.note] <= BLOCKS_COUNTED:
            places.append(match.place)
    if not places:
        return ()

    sql = f"""
        WITH asked AS (
            SELECT p.id AS place, p.text_key AS text FROM carray(:ids) c JOIN places p ON p.id = c.value
            WHERE p.text_key IS NOT NULL
        ), counted AS (
            SELECT t.text, (SELECT count(*) FROM (SELECT DISTINCT s.id >> {SHIFT} AS note FROM places s
                                                  WHERE s.text_key = t.text LIMIT {_MAX_COUNT}) n) AS notes
            FROM (SELECT DISTINCT text FROM asked) t
        )
        SELECT a.place, c.notes FROM asked a JOIN counted c ON c.text = a.text"""
    return db.execute(sql, {"ids": db.many(places)})


def weights_of(counts: Iterable[tuple[PlaceId, int]], notes: int) -> dict[PlaceId, float]:
    """What blocks count whose text stands in many of the `notes`: below 1."""
    few = max(_LEAST_FEW, min(notes // 10, _MOST_FEW))
    return {place: few / count for place, count in counts if count > few}


def ask_spans(db: Connection, notes: Iterable[NoteId]) -> Iterable[tuple[NoteId, tuple[int, int]]]:
    """Ask where the blocks of some notes begin and end whose text many notes have. The answer is read when it is wanted."""
    sql = f"""
        SELECT p.id >> {SHIFT}, p.start, p.stop
        FROM carray(:ids) n
        JOIN places p ON p.id >= (n.value << {SHIFT} | {BLOCK}) AND p.id < (n.value + 1) << {SHIFT}
        WHERE p.text_key IS NOT NULL
          AND (SELECT count(*) FROM (SELECT DISTINCT s.id >> {SHIFT} AS note FROM places s
                                     WHERE s.text_key = p.text_key LIMIT {MANY}) m) = {MANY}"""
    rows: Any = db.execute(sql, {"ids": db.many(notes)})
    return ((note, (start, stop)) for note, start, stop in rows)
