"""Two indexes of one vault held against each other, row for row, without holding either in memory.

Ids differ between an index that grew and one that was made at once, so rows are told apart by their note's path. Of the
lexical legs a sum for each word is compared, made by SQLite as it reads; only a word whose sums differ is looked at place
by place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import apsw

from simplemem.index.counts import DUMPED, dump

Row = tuple[Any, ...]
Difference = tuple[Row | None, Row | None]
"""A row of the first index and the one in its place in the second, None where one has none."""

_LEGS = (("note_text", 0), ("block_text", 20))
# Sums that no two lists of places share by chance: how many, where, and where in which note.
_SUMS = """count(*), sum(m % 1000000007), sum("offset"), sum(m * ("offset" + 1) % 1000003 * (col + 1)),
           sum(m % 65537 * (("offset" * "offset" + 7) % 65521) + col * 31)"""


def differences(
    ours: apsw.Connection, theirs: apsw.Connection, *, vectors: bool, tell: Callable[[int, int], None]
) -> Iterator[Difference]:
    """Where two indexes differ. `tell` hears how far it is."""
    yield from _merged(dump(ours, words=False, vectors=vectors), dump(theirs, words=False, vectors=vectors))
    tell(1, 1 + len(_LEGS))
    number = _numbers_of(ours, theirs)
    for done, (leg, shift) in enumerate(_LEGS, 2):
        yield from _in_leg(ours, theirs, leg, shift, number)
        tell(done, 1 + len(_LEGS))


def _merged(ours: Iterator[Row], theirs: Iterator[Row]) -> Iterator[Difference]:
    """Rows of two dumps that only one of them has, or that say another thing at the same place."""
    here, there = next(ours, None), next(theirs, None)
    while here is not None or there is not None:
        if here == there:
            here, there = next(ours, None), next(theirs, None)
        elif there is None or (here is not None and _place(here) < _place(there)):
            yield here, None
            here = next(ours, None)
        elif here is None or _place(there) < _place(here):
            yield None, there
            there = next(theirs, None)
        else:
            yield here, there
            here, there = next(ours, None), next(theirs, None)


def _place(row: Row) -> tuple[int, str, str]:
    """Where a row stands in a dump: its table, its note, its number there."""
    number = row[2] if len(row) > 2 else ""
    return DUMPED.index(row[0]), str(row[1]), f"{number:09d}" if isinstance(number, int) else str(number)


def _numbers_of(ours: apsw.Connection, theirs: apsw.Connection) -> dict[int, int] | None:
    """From our notes' ids to theirs; None where they are the same, as they are in an index that was made at once."""
    mine = dict(ours.execute("SELECT path, id FROM notes"))
    others = dict(theirs.execute("SELECT path, id FROM notes"))
    if mine == others:
        return None
    return {id_: others.get(path, -id_) for path, id_ in mine.items()}


def _in_leg(
    ours: apsw.Connection, theirs: apsw.Connection, leg: str, shift: int, number: dict[int, int] | None
) -> Iterator[Difference]:
    try:
        for db in (ours, theirs):
            db.execute(f"CREATE VIRTUAL TABLE temp.places USING fts5vocab(main, {leg}, instance)").fetchall()
        if number is not None:
            ours.execute("CREATE TEMP TABLE numbers (id INTEGER PRIMARY KEY, other INTEGER)").fetchall()
            ours.executemany("INSERT INTO temp.numbers VALUES (?, ?)", number.items())
        suspects = list(_suspects(_sums(ours, shift, mapped=number is not None), _sums(theirs, shift)))
        for word in suspects:
            yield from _merged(_places(ours, leg, shift, word), _places(theirs, leg, shift, word))
    finally:
        for db in (ours, theirs):
            db.execute("DROP TABLE IF EXISTS temp.places").fetchall()
        ours.execute("DROP TABLE IF EXISTS temp.numbers").fetchall()


def _sums(db: apsw.Connection, shift: int, *, mapped: bool = False) -> Iterator[Row]:
    """For every word its sums, in the order of words, in which the vocabulary is read."""
    rows = 'SELECT term, doc AS m, col, "offset" FROM temp.places'
    if mapped:
        doc = f"coalesce(n.other, -1) << {shift:d} | (p.doc & {(1 << shift) - 1:d})"
        rows = f"""SELECT p.term AS term, {doc} AS m, p.col AS col, p."offset" AS "offset"
                   FROM temp.places p LEFT JOIN temp.numbers n ON n.id = p.doc >> {shift:d}"""
    return db.execute(f"SELECT term, {_SUMS} FROM ({rows}) GROUP BY term")


def _suspects(ours: Iterator[Row], theirs: Iterator[Row]) -> Iterator[str]:
    """The words whose sums are not equal."""
    here, there = next(ours, None), next(theirs, None)
    while here is not None or there is not None:
        if here == there:
            here, there = next(ours, None), next(theirs, None)
        elif there is None or (here is not None and here[0] < there[0]):
            yield here[0]  # type: ignore[index]
            here = next(ours, None)
        elif here is None or there[0] < here[0]:
            yield there[0]
            there = next(theirs, None)
        else:
            yield here[0]
            here, there = next(ours, None), next(theirs, None)


def _places(db: apsw.Connection, leg: str, shift: int, word: str) -> Iterator[Row]:
    """Where a word stands, with the notes' paths in the place of ids, as `dump` shows it."""
    rows: list[Row] = db.execute('SELECT doc, col, "offset" FROM temp.places WHERE term = ?', (word,)).fetchall()
    paths = dict(db.execute("SELECT id, path FROM notes")) if rows else {}
    found = sorted((paths.get(doc >> shift, "?"), doc & ((1 << shift) - 1), col, at) for doc, col, at in rows)
    yield from ((leg, path, place, col, at, word) for path, place, col, at in found)
