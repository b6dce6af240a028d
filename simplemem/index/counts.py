"""What the index holds, counted and written out: for `stats`, `inspect`, and to compare two indexes row for row."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import apsw


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
