"""What the index holds, counted and written out; and two indexes of one vault held against each other, row for row.

Rebuilt beside itself an index is equal to one that grew. Ids differ between the two, so rows are told apart by their
note's path. Of the words a sum for each is compared, made by SQLite as it reads; only a word whose sums differ is looked
at place by place, so that neither index is held in memory.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import apsw

Row = tuple[Any, ...]
Difference = tuple[Row | None, Row | None]
"""A row of the first index and the one in its place in the second, None where one has none."""


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
    for path, title, problem, hidden in db.execute("SELECT path, title, problem, hidden FROM notes ORDER BY path"):
        notes[path] = {
            "title": title,
            "links": [],
            "link_counts": {},
            "self_links": 0,
            "attachments": [],
            "unresolved": [],
            "ambiguous": {},
            "backlinks": [],
            "tags": [],
            "legacy_tags": [],
            "aliases": [],
            "problem": problem,
            "hidden": hidden,
        }
    tagged = "SELECT n.path, t.tag, t.source FROM tags t JOIN notes n ON n.id = t.note_id ORDER BY n.path, t.seq"
    for path, tag, source in db.execute(tagged):
        notes[path]["legacy_tags" if source == "legacy" else "tags"].append(tag)
    called = "SELECT n.path, a.alias FROM aliases a JOIN notes n ON n.id = a.note_id ORDER BY n.path, a.seq"
    for path, alias in db.execute(called):
        notes[path]["aliases"].append(alias)
    linked = """SELECT n.path, l.target, l.path, l.ambiguous FROM links l JOIN notes n ON n.id = l.source_id
                ORDER BY n.path, l.seq"""
    for source, target, path, ambiguous in db.execute(linked):
        facts = notes[source]
        if path is None:
            facts["unresolved"].append(target)
        elif path == source:
            facts["self_links"] += 1
        elif path in notes:
            facts["links"].append(path)
            facts["link_counts"][path] = facts["link_counts"].get(path, 0) + 1
            notes[path]["backlinks"].append(source)
        else:
            facts["attachments"].append(path)
        if ambiguous != "[]":
            facts["ambiguous"][target] = json.loads(ambiguous)
    for facts in notes.values():
        for kind in ("links", "attachments", "unresolved", "backlinks"):
            facts[kind] = sorted(set(facts[kind]))
    return notes


# -- every row, without ids

_TABLES = {
    "file": "SELECT path, name_key, copy_of FROM files ORDER BY path",
    "change": "SELECT '', * FROM changes ORDER BY seq",
    "lineage": "SELECT path, id, there, holds FROM lineages ORDER BY path, id",
    "note": """SELECT path, path_key, name_key, title_key, sha256, size, title, description, type, created, modified,
                      words, hidden, problem, private FROM notes ORDER BY path""",
    "aliases": "SELECT n.path, seq, alias, x.key FROM aliases x JOIN notes n ON n.id = x.note_id ORDER BY 1, 2",
    "tags": "SELECT n.path, seq, tag, source FROM tags x JOIN notes n ON n.id = x.note_id ORDER BY 1, 2",
    "tag_pairs": "SELECT n.path, x.key, value FROM tag_pairs x JOIN notes n ON n.id = x.note_id ORDER BY 1, 2, 3",
    "properties": "SELECT n.path, seq, x.key, value FROM properties x JOIN notes n ON n.id = x.note_id ORDER BY 1, 2",
    "link": """SELECT n.path, l.seq, l.form, l.target, l.subpath, l.display, l.line, l.key, l.path, l.via, l.ambiguous
               FROM links l JOIN notes n ON n.id = l.source_id ORDER BY 1, 2""",
    "passages": """SELECT n.path, x.id & 1048575, start, stop, line, headings, hash
                   FROM passages x JOIN notes n ON n.id = x.id >> 20 ORDER BY 1, 2""",
    "blocks": """SELECT n.path, x.id & 1048575, start, stop, line, kind, headings, hash
                 FROM blocks x JOIN notes n ON n.id = x.id >> 20 ORDER BY 1, 2""",
    "vectors": """SELECT n.path, x.id & 1048575, hash, vector
                  FROM vectors x JOIN notes n ON n.id = x.id >> 20 ORDER BY 1, 2""",
    "orphans": " UNION ALL ".join(
        f"""SELECT '{table}', count(*) FROM {table} x WHERE NOT EXISTS (SELECT 1 FROM notes n WHERE n.id = x.{owner})"""
        for table, owner in (
            ("aliases", "note_id"),
            ("links", "source_id"),
            ("properties", "note_id"),
            ("tag_pairs", "note_id"),
            ("tags", "note_id"),
        )
    ),
}
_LEGS = {"note_text": 0, "block_text": 20}  # and how far a note's number is shifted in the ids of its places
_ORDER = {name: number for number, name in enumerate((*_TABLES, *_LEGS))}


def dump(db: apsw.Connection, *, words: bool = True, vectors: bool = True) -> Iterator[Row]:
    """Every row that is a function of the vault and the settings, table after table, each in order of its rows.

    Two indexes of one vault are equal exactly when their dumps are. Times of reading and revision numbers are left out.
    With `words`, the words of the lexical legs are part of it.
    """
    for name, sql in _TABLES.items():
        if vectors or name != "vectors":
            yield from ((name, *row) for row in db.execute(sql))
    for leg in _LEGS if words else ():
        with _vocabulary(db, leg):
            yield from _postings(db, leg)


@contextmanager
def _vocabulary(db: apsw.Connection, leg: str) -> Iterator[None]:
    """Where each word of a leg stands, as `places`; and the notes numbered in order of their paths, as `numbers`."""
    try:
        db.execute(f"CREATE VIRTUAL TABLE temp.places USING fts5vocab(main, {leg}, instance)").fetchall()
        db.execute("CREATE TEMP TABLE numbers (id INTEGER PRIMARY KEY, number INTEGER, path TEXT)").fetchall()
        sql = "INSERT INTO numbers SELECT id, row_number() OVER (ORDER BY path), path FROM notes"
        db.execute(sql).fetchall()
        yield
    finally:
        db.execute("DROP TABLE IF EXISTS temp.places").fetchall()
        db.execute("DROP TABLE IF EXISTS temp.numbers").fetchall()


def _postings(db: apsw.Connection, leg: str, word: str | None = None) -> Iterator[Row]:
    """Where words stand, or one of them."""
    shift = _LEGS[leg]
    sql = f"""SELECT coalesce(n.path, '?'), p.doc & {(1 << shift) - 1:d}, p.col, p."offset", p.term
              FROM temp.places p LEFT JOIN temp.numbers n ON n.id = p.doc >> {shift:d}"""
    if word is not None:
        sql += " WHERE p.term = ?"
    rows = db.execute(sql, () if word is None else (word,))
    # Damaged, a path may be a number.
    yield from sorted((leg, str(path), *row) for path, *row in rows)


def _sums(db: apsw.Connection, leg: str) -> Iterator[Row]:
    """For every word, in order, sums that no two lists of places share by chance: how many, where, and where in which
    note."""
    shift = _LEGS[leg]
    sql = f"""SELECT term, count(*), sum(m % 1000000007), sum("offset"), sum(m * ("offset" + 1) % 1000003 * (col + 1)),
                     sum(m % 65537 * (("offset" * "offset" + 7) % 65521) + col * 31)
              FROM (SELECT p.term AS term, p.col AS col, p."offset" AS "offset",
                           coalesce(n.number, -1) << {shift:d} | (p.doc & {(1 << shift) - 1:d}) AS m
                    FROM temp.places p LEFT JOIN temp.numbers n ON n.id = p.doc >> {shift:d})
              GROUP BY term"""
    return db.execute(sql)


# -- held against each other


def differences(
    ours: apsw.Connection, theirs: apsw.Connection, *, vectors: bool, tell: Callable[[int, int], None]
) -> Iterator[Difference]:
    """Where two indexes differ. `tell` hears how far it is."""
    yield from _merged(dump(ours, words=False, vectors=vectors), dump(theirs, words=False, vectors=vectors), _place)
    tell(1, 1 + len(_LEGS))
    for done, leg in enumerate(_LEGS, 2):
        with _vocabulary(ours, leg), _vocabulary(theirs, leg):
            pairs = _merged(_sums(ours, leg), _sums(theirs, leg), lambda row: row[0])
            for word in [(here or there or ("",))[0] for here, there in pairs]:
                yield from _merged(_postings(ours, leg, word), _postings(theirs, leg, word), _place)
        tell(done, 1 + len(_LEGS))


def _merged(ours: Iterator[Row], theirs: Iterator[Row], place: Callable[[Row], Any]) -> Iterator[Difference]:
    """Rows, both in order of their places, that only one of them has, or that say another thing at the same place."""
    here, there = next(ours, None), next(theirs, None)
    while here is not None or there is not None:
        if here == there:
            here, there = next(ours, None), next(theirs, None)
        elif there is None or (here is not None and place(here) < place(there)):
            yield here, None
            here = next(ours, None)
        elif here is None or place(there) < place(here):
            yield None, there
            there = next(theirs, None)
        else:
            yield here, there
            here, there = next(ours, None), next(theirs, None)


def _place(row: Row) -> tuple[int, str, str]:
    """Where a row stands in a dump: its table, its note, its number there."""
    number = row[2] if len(row) > 2 else ""
    return _ORDER[row[0]], str(row[1]), f"{number:09d}" if isinstance(number, int) else str(number)
