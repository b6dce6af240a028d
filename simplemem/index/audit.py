"""What the index holds, counted and written out; and two indexes of one vault held against each other, row for row.

Rebuilt beside itself an index is equal to one that grew. Ids differ between the two, so rows are told apart by their
note's path. Of the words a sum for each is compared, made by SQLite as it reads; only a word whose sums differ is looked
at place by place, so that neither index is held in memory.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import apsw

Row = tuple[Any, ...]
Difference = tuple[Row | None, Row | None]
"""A row of the first index and the one in its place in the second, None where one has none."""

_LEGS = (("note_text", 0), ("block_text", 20))
# Sums that no two lists of places share by chance: how many, where, and where in which note.
_SUMS = """count(*), sum(m % 1000000007), sum("offset"), sum(m * ("offset" + 1) % 1000003 * (col + 1)),
           sum(m % 65537 * (("offset" * "offset" + 7) % 65521) + col * 31)"""


def counts(db: apsw.Connection) -> dict[str, Any]:
    """Numbers for `stats`."""

    def count(sql: str) -> int:
        return int(db.execute(sql).get)

    return {
        "notes": count("SELECT count(*) FROM notes"),
        "files": count("SELECT count(*) FROM files"),
        "words": count("SELECT coalesce(sum(words), 0) FROM notes"),
        "passages": count("SELECT count(*) FROM passages"),
        "blocks": count("SELECT count(*) FROM blocks"),
        "vectors": count("SELECT count(*) FROM vectors"),
        "tags": count("SELECT count(DISTINCT lower(tag)) FROM tags"),
        "links": count("SELECT count(*) FROM links"),
        "unresolved_links": count("SELECT count(*) FROM links WHERE path IS NULL"),
        "hidden": hidden_notes(db),
        "problems": [
            {"path": path, "problem": problem}
            for path, problem in db.execute("SELECT path, problem FROM notes WHERE problem IS NOT NULL ORDER BY path")
        ],
    }


def hidden_notes(db: apsw.Connection) -> dict[str, int]:
    """How many notes are left out of recall, by reason."""
    return dict(db.execute("SELECT hidden, count(*) FROM notes WHERE hidden IS NOT NULL GROUP BY 1 ORDER BY 1"))


def tags(db: apsw.Connection) -> dict[str, int]:
    """Every tag of visible notes with how many notes have it, most used first."""
    sql = """SELECT min(t.tag), count(DISTINCT t.note_id) AS n FROM tags t JOIN notes x ON x.id = t.note_id
             WHERE x.hidden IS NULL GROUP BY lower(t.tag) ORDER BY n DESC, lower(t.tag)"""
    return dict(db.execute(sql))


def inspection(db: apsw.Connection) -> dict[str, dict[str, Any]]:
    """Everything read from every note, by path: what links lead where, tags, aliases."""
    notes: dict[str, dict[str, Any]] = {}
    for note_id, path, title, problem, hidden in db.execute(
        "SELECT id, path, title, problem, hidden FROM notes ORDER BY path"
    ):
        notes[path] = {
            "title": title,
            "links": [],
            "link_counts": {},
            "self_links": 0,
            "attachments": [],
            "unresolved": [],
            "ambiguous": {},
            "backlinks": [],
            "tags": _column(db, "SELECT tag FROM tags WHERE note_id = ? AND source != 'legacy' ORDER BY seq", note_id),
            "legacy_tags": _column(
                db, "SELECT tag FROM tags WHERE note_id = ? AND source = 'legacy' ORDER BY seq", note_id
            ),
            "aliases": _column(db, "SELECT alias FROM aliases WHERE note_id = ? ORDER BY seq", note_id),
            "problem": problem,
            "hidden": hidden,
        }
    for source, target, path, ambiguous in db.execute(
        "SELECT n.path, l.target, l.path, l.ambiguous FROM links l JOIN notes n ON n.id = l.source_id ORDER BY n.path, l.seq"
    ):
        facts = notes[source]
        if path is None:
            _once(facts["unresolved"], target)
        elif path == source:
            facts["self_links"] += 1
        elif path in notes:
            _once(facts["links"], path)
            facts["link_counts"][path] = facts["link_counts"].get(path, 0) + 1
            _once(notes[path]["backlinks"], source)
        else:
            _once(facts["attachments"], path)
        if ambiguous != "[]":
            facts["ambiguous"][target] = json.loads(ambiguous)
    for facts in notes.values():
        for kind in ("links", "attachments", "unresolved", "backlinks"):
            facts[kind].sort()
    return notes


def _column(db: apsw.Connection, sql: str, note_id: int) -> list[str]:
    return [row[0] for row in db.execute(sql, (note_id,))]


def _once(into: list[str], item: str) -> None:
    if item not in into:
        into.append(item)


DUMPED = (
    "file", "change", "lineage", "note", "aliases", "tags", "tag_pairs", "properties", "link", "passages", "blocks",
    "vectors", "orphans", "note_text", "block_text",
)  # fmt: skip


def dump(db: apsw.Connection, *, words: bool = True, vectors: bool = True) -> Iterator[tuple[Any, ...]]:
    """Every row that is a function of the vault and the settings, without ids: a table of `DUMPED` after the other, each
    in order of its rows.

    Two indexes of one vault are equal exactly when their dumps are. Times of reading and revision numbers are left out.
    With `words`, the words of the lexical legs are part of it.
    """
    yield from (("file", *row) for row in db.execute("SELECT path, name_key, copy_of FROM files ORDER BY path"))
    yield from (("change", "", *row) for row in db.execute("SELECT * FROM changes ORDER BY seq"))
    yield from (
        ("lineage", *row) for row in db.execute("SELECT path, id, there, holds FROM lineages ORDER BY path, id")
    )
    notes = """SELECT path, path_key, name_key, title_key, sha256, size, title, description, type, created, modified,
                      words, hidden, problem, private FROM notes ORDER BY path"""
    yield from (("note", *row) for row in db.execute(notes))
    for table, columns in (
        ("aliases", "seq, alias, x.key"),
        ("tags", "seq, tag, source"),
        ("tag_pairs", "x.key, value"),
        ("properties", "seq, x.key, value"),
    ):
        sql = f"SELECT n.path, {columns} FROM {table} x JOIN notes n ON n.id = x.note_id ORDER BY 1, 2, 3"
        yield from ((table, *row) for row in db.execute(sql))
    sql = """SELECT n.path, l.seq, l.form, l.target, l.subpath, l.display, l.line, l.key, l.path, l.via, l.ambiguous
             FROM links l JOIN notes n ON n.id = l.source_id ORDER BY 1, 2"""
    yield from (("link", *row) for row in db.execute(sql))
    place = "(x.id & 1048575)"
    for table, columns in (
        ("passages", "start, stop, line, headings, hash"),
        ("blocks", "start, stop, line, kind, headings, hash"),
        ("vectors", "hash, vector"),
    )[: 3 if vectors else 2]:
        sql = f"""SELECT n.path, {place}, {columns} FROM {table} x JOIN notes n ON n.id = x.id >> 20
                  ORDER BY 1, 2"""
        yield from ((table, *row) for row in db.execute(sql))
    orphans = Counter({
        table: int(db.execute(f"SELECT count(*) FROM {table} x WHERE NOT EXISTS "
                              f"(SELECT 1 FROM notes n WHERE n.id = x.{owner})").get)
        for table, owner in (("aliases", "note_id"), ("tags", "note_id"), ("tag_pairs", "note_id"),
                             ("properties", "note_id"), ("links", "source_id"))
    })  # fmt: skip
    yield ("orphans", *sorted(orphans.items()))
    if words:
        yield from _words(db)


def _words(db: apsw.Connection) -> Iterator[tuple[Any, ...]]:
    """The postings of every leg, with the notes' paths in the place of ids."""
    paths = {
        note_id: str(path) for note_id, path in db.execute("SELECT id, path FROM notes")
    }  # damaged, it may be a number
    for table, shift in (("note_text", 0), ("block_text", 20)):
        db.execute(
            f"CREATE VIRTUAL TABLE IF NOT EXISTS temp.{table}_terms USING fts5vocab(main, {table}, instance)"
        ).fetchall()
        sql = f'SELECT term, doc, col, "offset" FROM temp.{table}_terms'
        rows = sorted(
            (paths.get(doc >> shift, "?"), doc & ((1 << shift) - 1), col, offset, term)
            for term, doc, col, offset in db.execute(sql)
        )
        yield from ((table, *row) for row in rows)
        db.execute(f"DROP TABLE temp.{table}_terms").fetchall()


# -- held against each other


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
