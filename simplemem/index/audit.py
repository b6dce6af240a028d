"""What the index holds, counted and written out; and two indexes of a vault compared row for row, by paths of notes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from heapq import merge
from itertools import groupby, zip_longest
from typing import Any

from simplemem.index.engine import Connection, read_integer
from simplemem.index.notes import OF_NOTE, links

Row = tuple[Any, ...]
Difference = tuple[
    Row | None, Row | None
]  # of the first index and in its place in the second, None where one has none

_COUNTS = {
    "notes": "count(*) FROM notes",
    "files": "count(*) FROM files",
    "words": "coalesce(sum(words), 0) FROM notes",
    "passages": "count(*) FROM places WHERE id & 524288 = 0",
    "blocks": "count(*) FROM places WHERE id & 524288 <> 0",
    "tags": "count(DISTINCT lower(tag)) FROM tags",
    "links": "count(*) FROM links",
    "unresolved_links": "count(*) FROM links WHERE path IS NULL",
}
_OF_NOTE = {
    **OF_NOTE,
    "places": "id >> 20, id & 1048575, start, stop, line, headings, hash",
}  # the rows of notes, the note first
_TABLES = {
    "file": "SELECT path, name_key, copy_of FROM files ORDER BY path",
    "change": "SELECT '', * FROM changes ORDER BY seq",
    "lineage": "SELECT path, id, there, holds FROM lineages ORDER BY path, id",
    "note": """SELECT path, path_key, name_key, title_key, sha256, size, title, description, type, created, modified,
                      words, hidden, problem, private FROM notes ORDER BY path""",
}
_ORDER = {name: number for number, name in enumerate([*_TABLES, *_OF_NOTE, "term"])}


def counts(db: Connection) -> dict[str, Any]:
    """Numbers for `stats`; which notes are left out of recall, by reason, and which must not be rewritten."""
    hidden = "SELECT hidden, count(*) FROM notes WHERE hidden IS NOT NULL GROUP BY 1 ORDER BY 1"
    problems = db.execute("SELECT path, problem FROM notes WHERE problem IS NOT NULL ORDER BY path")
    return {
        **{name: read_integer(db.execute(f"SELECT {count}")) for name, count in _COUNTS.items()},
        "vectors": db.vectors.count(),
        "hidden": dict(db.execute(hidden)),
        "problems": [{"path": path, "problem": problem} for path, problem in problems],
    }


def tags(db: Connection) -> dict[str, int]:
    """Every tag of visible notes with how many notes have it, most used first."""
    sql = """SELECT min(t.tag), count(DISTINCT t.note_id) AS n FROM tags t JOIN notes x ON x.id = t.note_id
             WHERE x.hidden IS NULL GROUP BY lower(t.tag) ORDER BY n DESC, lower(t.tag)"""
    return dict(db.execute(sql))


def inspection(db: Connection) -> dict[str, dict[str, Any]]:
    """Everything that was read from every note, by path: what links lead where, tags, aliases."""
    notes: dict[str, dict[str, Any]] = {}
    for path, title, problem, hidden in db.execute(
        "SELECT path, title, problem, hidden FROM notes ORDER BY path"
    ):
        lists = (
            "links",
            "attachments",
            "unresolved",
            "backlinks",
            "tags",
            "legacy_tags",
            "aliases",
        )
        notes[path] = {"title": title, "problem": problem, "hidden": hidden, "self_links": 0}
        notes[path] |= {"link_counts": {}, "ambiguous": {}, **{name: [] for name in lists}}
    own = """SELECT n.path, CASE t.source WHEN 'legacy' THEN 'legacy_tags' ELSE 'tags' END, t.tag, t.seq
             FROM tags t JOIN notes n ON n.id = t.note_id
             UNION ALL SELECT n.path, 'aliases', a.alias, a.seq FROM aliases a JOIN notes n ON n.id = a.note_id
             ORDER BY 4"""
    for path, kind, said, _ in db.execute(own):
        notes[path][kind].append(said)
    for link in links(db):
        facts, path = notes[link.source], link.path
        if path is None:
            facts["unresolved"].append(link.target)
        elif path == link.source:
            facts["self_links"] += 1
        elif path in notes:
            facts["links"].append(path)
            facts["link_counts"][path] = facts["link_counts"].get(path, 0) + 1
            notes[path]["backlinks"].append(link.source)
        else:
            facts["attachments"].append(path)
        if link.ambiguous:
            facts["ambiguous"][link.target] = list(link.ambiguous)
    for facts in notes.values():
        for kind in ("links", "attachments", "unresolved", "backlinks"):
            facts[kind] = sorted(set(facts[kind]))
    return notes


def dump(db: Connection, *, vectors: bool = True) -> Iterator[Row]:
    """Every row that is a function of the vault and the settings, in order; of each word sums that tell its places."""
    from simplemem.index.terms.comparison import describe_terms  # numpy: not at the start

    for name, sql in _TABLES.items():
        yield from ((name, *row) for row in db.execute(sql))
    for name, columns in _OF_NOTE.items():
        if vectors or name != "vectors":
            note, _, rest = columns.partition(", ")
            sql = f"""SELECT coalesce(n.of, '?'), {rest} FROM (SELECT {note} AS note, * FROM {name}) t
                      LEFT JOIN (SELECT id AS note, path AS of FROM notes) n USING (note) ORDER BY 1, 2, 3"""
            yield from ((name, *row) for row in db.execute(sql))
    yield from (("term", *row) for row in describe_terms(db))


def differences(ours: Connection, theirs: Connection, *, vectors: bool) -> Iterator[Difference]:
    """The rows, both in order of their places, that only one index has, or that say another thing at the same place."""

    def place(of: tuple[bool, Row]) -> tuple[int, str, str]:
        table, note, number, *_ = (*of[1], "")
        return _ORDER[table], str(note), f"{number:09d}" if isinstance(number, int) else str(number)

    read = partial(dump, vectors=vectors)
    if all(row == other for row, other in zip_longest(read(ours), read(theirs))):
        return  # as nearly always, and told in half the time
    first = ((True, row) for row in read(ours))
    second = ((False, row) for row in read(theirs))
    for _, found in groupby(merge(first, second, key=place), key=place):
        rows = list(found)
        here, there = ([row for side, row in rows if side is wanted] for wanted in (True, False))
        yield from (pair for pair in zip_longest(here, there) if pair[0] != pair[1])
