"""Compare two indexes of a vault row for row, by the paths of notes.

An index is a function of the vault and the settings, so a rebuilt index equals the old one. The ids
of notes differ between indexes, so rows are written with paths in place of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import merge
from itertools import groupby, zip_longest
from typing import Any, Final, NamedTuple

from simplemem.index.engine import Connection
from simplemem.index.notes import OF_NOTE
from simplemem.index.places import SHIFT

DumpedRow = tuple[Any, ...]

RowDifference = tuple[DumpedRow | None, DumpedRow | None]
"""A row of the first index, and the row of the second that corresponds to it; None for no row."""

# Statements that select the rows of tables, by the name that is put before each row.
_TABLES: Final = {
    "file": "SELECT path, name_key, copy_of FROM files ORDER BY path",
    "change": "SELECT '', * FROM changes ORDER BY seq",
    "lineage": "SELECT path, id, there, holds FROM lineages ORDER BY path, id",
    "note": """
        SELECT path, path_key, name_key, title_key, sha256, size, title, description, type,
               created, modified, words, hidden, problem, private
        FROM notes ORDER BY path
    """,
}
# Tables whose rows belong to notes, with their columns; the first is the id of the note. In the id
# of a place, the lowest 20 bits (`places.SHIFT`) are the number of the place in its note.
_COLUMNS: Final = {
    **OF_NOTE,
    "places": "id >> 20, id & 1048575, start, stop, line, headings, hash",
}
_TABLE_NAMES: Final = (*_TABLES, *_COLUMNS, "vectors", "term")
_ORDER: Final = {name: number for number, name in enumerate(_TABLE_NAMES)}


def dump(db: Connection, *, vectors: bool = True) -> Iterator[DumpedRow]:
    """Yield every row that is a function of the vault and the settings, in a fixed order.

    The first column is the name of the table. The second is the path of a note or file, "" for a
    change, and the term for a term. A term is described by its number of occurrences and a digest
    of their places. Without `vectors`, vectors are left out: other machines may compute slightly
    different numbers.
    """
    # Imported late, because it needs numpy.
    from simplemem.index.terms.comparison import describe_terms

    for name, sql in _TABLES.items():
        for row in db.execute(sql):
            yield (name, *row)
    for name, columns in _COLUMNS.items():
        for row in _rows_of_notes(db, name, columns):
            yield (name, *row)
    if vectors:
        for row in _vectors(db):
            yield ("vectors", *row)
    for term in describe_terms(db):
        yield ("term", *term)


def _rows_of_notes(db: Connection, table: str, columns: str) -> Iterator[DumpedRow]:
    """Query the rows of a table, with the path of their note in place of its id.

    `columns` are those of the table, the id of the note first. The path is "?" for a note that does
    not exist.
    """
    note_id, _, other_columns = columns.partition(", ")
    sql = f"""
        SELECT coalesce(n.of, '?'), {other_columns}
        FROM (SELECT {note_id} AS note, * FROM {table}) t
        LEFT JOIN (SELECT id AS note, path AS of FROM notes) n USING (note)
        ORDER BY 1, 2, 3
    """
    return iter(db.execute(sql))


def _vectors(db: Connection) -> Iterator[DumpedRow]:
    """Yield rows of (path of the note, number of the place in the note, vector)."""
    sql = """
        SELECT n.path, p.id
        FROM places p JOIN notes n ON n.id = p.id >> 20
        ORDER BY n.path, p.id
    """
    places = list(db.execute(sql))
    vectors = db.vectors.read([place for _, place in places])
    number_mask = (1 << SHIFT) - 1
    for path, place in places:
        if place in vectors:
            yield path, place & number_mask, vectors[place]


def differences(first: Connection, second: Connection, *, vectors: bool) -> Iterator[RowDifference]:
    """Yield the rows that only one of two indexes has, and those that differ.

    `vectors` says whether vectors are compared too.
    """
    if _are_equal(first, second, vectors=vectors):
        return  # nearly always; this takes half the time of what follows

    first_rows = (_MarkedRow(True, row) for row in dump(first, vectors=vectors))
    second_rows = (_MarkedRow(False, row) for row in dump(second, vectors=vectors))
    rows = merge(first_rows, second_rows, key=_key_of)
    for _, rows_of_key in groupby(rows, key=_key_of):
        yield from _differences_of(rows_of_key)


def _are_equal(first: Connection, second: Connection, *, vectors: bool) -> bool:
    """Return whether two indexes have the same rows, with `vectors` also the same vectors.

    Stops at the first difference.
    """
    first_rows = dump(first, vectors=vectors)
    second_rows = dump(second, vectors=vectors)
    pairs = zip_longest(first_rows, second_rows)
    return all(first_row == second_row for first_row, second_row in pairs)


class _MarkedRow(NamedTuple):
    """A row, and which of the two indexes it is from."""

    is_first: bool
    row: DumpedRow


def _differences_of(rows: Iterable[_MarkedRow]) -> Iterator[RowDifference]:
    """Yield pairs of rows that differ between two indexes. `rows` have the same key."""
    in_first: list[DumpedRow] = []
    in_second: list[DumpedRow] = []
    for is_first, row in rows:
        if is_first:
            in_first.append(row)
        else:
            in_second.append(row)

    for first_row, second_row in zip_longest(in_first, in_second):
        if first_row != second_row:
            yield first_row, second_row


def _key_of(marked_row: _MarkedRow) -> tuple[int, str, str]:
    """Return what corresponding rows of two indexes have in common: table, note and third column.

    `dump` yields rows in the order of these keys, so numbers are padded with zeros.
    """
    table, note, third, *_ = marked_row.row
    order = _ORDER[table]
    if isinstance(third, int):
        return order, str(note), f"{third:09d}"
    return order, str(note), str(third)
