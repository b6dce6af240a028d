"""The relational half of questions: which notes pass a filter, what stands beside a note, and where its places are."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any

from simplemem.index import notes
from simplemem.index.changes import written_by
from simplemem.index.connection import LAST, Connection
from simplemem.index.door import Beside, Narrow, NotePage, Position, Row
from simplemem.note.names import base_name, compare_key, date_in
from simplemem.note.note import joined
from simplemem.note.words import stretches

_ORDER = {"modified": "n.modified DESC", "created": "n.created DESC", "name": "n.path_key", "title": "n.title_key"}
IDS = "carray(:ids)"


def condition(db: Connection, narrow: Narrow) -> tuple[str, dict[str, Any]]:
    """The FROM and WHERE of a filter, for `notes n`, and its values."""
    parts = [] if narrow.hidden else ["n.hidden IS NULL"]
    values: dict[str, Any] = {}
    for name, wanted, require_all in (("t", narrow.tags, narrow.require_all), ("q", narrow.all_tags, True)):
        tags = []
        for k, (key, value) in enumerate(wanted.items()):
            values |= {f"{name}k{k}": compare_key(joined(key)), f"{name}v{k}": compare_key(value)}
            values[f"{name}w{k}"] = compare_key(joined(value))  # as it stands in the name of a tag
            tags.append(f"""n.id IN (SELECT note_id FROM tag_pairs
                                     WHERE key = :{name}k{k} AND value IN (:{name}v{k}, :{name}w{k}))""")
        if tags:
            parts.append("(" + (" AND " if require_all else " OR ").join(tags) + ")")
    for k, (key, value) in enumerate(narrow.properties.items()):
        parts.append(f"""EXISTS (SELECT 1 FROM properties p WHERE p.note_id = n.id AND p.key = :p{k}
                                 AND lower(p.value) IN (:pt{k}, :pv{k}))""")
        low = value.encode().lower().decode()  # of ASCII alone, as engines do
        values |= {f"p{k}": key, f"pt{k}": json.dumps(low, ensure_ascii=False), f"pv{k}": low}  # a text or a number
    if narrow.archive:
        inside = [f"n.path_key >= :a{k} AND n.path_key < :a{k} || '{LAST}'" for k in range(len(narrow.archive))]
        parts.append(f"{'' if narrow.archived else 'NOT '}({' OR '.join(inside)})")
        values |= {f"a{k}": compare_key(folder) for k, folder in enumerate(narrow.archive)}
    linked = "SELECT l.path FROM links l JOIN notes s ON s.id = l.note_id WHERE s.path = :linked_by"
    below = f"n.path_key >= :prefix AND n.path_key < :prefix || '{LAST}'"
    for name, value, part in (
        ("prefix", compare_key(narrow.prefix), f"({below} OR n.path_key = rtrim(:prefix, '/'))"),
        ("type", compare_key(narrow.type), "n.type_key = :type"),
        ("since", narrow.since, "n.modified >= :since"),
        ("until", narrow.until, "n.modified < :until"),
        ("link_to", narrow.link_to, "n.id IN (SELECT note_id FROM links WHERE path = :link_to)"),
        ("linked_by", narrow.linked_by, f"n.path IN ({linked})"),
    ):
        if value:
            parts.append(part)
            values[name] = value
    if narrow.author:
        by, more = written_by(narrow.author)
        parts.append(by)
        values |= more
    without = (*narrow.without, *narrow.without_forms)
    for name, phrases, part in (("phrase", narrow.phrases, "IN"), ("without", without, "NOT IN")):
        for k, phrase in enumerate(phrases):
            holders, values[f"{name}{k}"] = db.holders(stretches(phrase), f"{name}{k}")  # word for word
            parts.append(f"n.id {part} ({holders})")
    where = " AND ".join(parts) or "TRUE"
    source = "carray(:only) o CROSS JOIN notes n ON n.path = o.value" if narrow.only else "notes n"
    values |= {"only": db.many(narrow.only)} if narrow.only else {}
    return f"{source} WHERE {where}", values


def passing(db: Connection, narrow: Narrow) -> array[int]:
    """The notes that pass."""
    source, values = condition(db, narrow)
    return array("q", [row[0] for row in db.execute(f"SELECT n.id FROM {source} ORDER BY n.id", values)])


def page(db: Connection, narrow: Narrow, sort: str, limit: int, after: int = 0) -> NotePage:
    """A page of the notes that pass, behind so many others."""
    source, values = condition(db, narrow)
    total = int(db.execute(f"SELECT count(*) FROM {source}", values).get)
    sql = f"SELECT n.id FROM {source} ORDER BY {_ORDER[sort]}, n.path LIMIT :limit OFFSET :after"
    ids = [row[0] for row in db.execute(sql, {**values, "limit": limit, "after": after})] if limit else []
    rows = notes.rows_of(db, ids)
    return NotePage([rows[note] for note in ids], tags_of(db, ids), total)


def neighbours_of(db: Connection, row: Row) -> Iterator[Beside]:
    """The notes that a note is linked with, and in its folder the dated ones before and after a dated one."""
    path, folder = row.path, row.path.rpartition("/")[0]
    ways = [(link.path, "linked from") for link in notes.stored_links(db, source=path) if link.path not in (path, None)]
    ways += [(link.source, "links to") for link in notes.stored_links(db, to=path)]
    if date_in(base_name(path)):
        first, after = (f"{folder}/", f"{folder}0") if folder else ("", "\U0010ffff")
        sql = """SELECT path FROM notes WHERE hidden IS NULL AND path >= :first AND path < :after
                 AND instr(substr(path, length(:first) + 1), '/') = 0 ORDER BY path"""
        there = [str(each) for (each,) in db.execute(sql, {"first": first, "after": after})]
        days = [each for day, each in sorted((date_in(base_name(each)), each) for each in there) if day]
        at = days.index(path) if path in days else len(days)
        around = ((at - 1, "the one before"), (at + 1, "the one after"))
        ways += [(days[k], via) for k, via in around if 0 <= k < len(days)]
    known = notes.known_at(db, [each for each, _ in ways if each is not None])
    for each, via in ways:
        if each in known:
            yield Beside(known[each].id, via)


def positions(db: Connection, where: str, ids: Iterable[int]) -> dict[int, Position]:
    """Where the places stand of which this is so, each note's in order."""
    sql = (
        f"SELECT p.id, p.start, p.stop, p.line, p.headings FROM {IDS} n CROSS JOIN places p WHERE {where} ORDER BY p.id"
    )
    parsed = cache(lambda headings: tuple(json.loads(headings)))  # passages of a section share theirs
    rows: Any = db.execute(sql, {"ids": db.many(ids)})
    return {place: Position(start, stop, line, parsed(said)) for place, start, stop, line, said in rows}


def tags_of(db: Connection, some: Sequence[int]) -> dict[int, tuple[str, ...]]:
    """The tags of some notes as they are shown; nothing of those without."""
    sql = f"SELECT t.note_id, t.tag FROM {IDS} n JOIN tags t ON t.note_id = n.value ORDER BY t.note_id, t.seq"
    found: dict[int, tuple[str, ...]] = {}
    for note, tag in db.execute(sql, {"ids": db.many(some)}):
        found[note] = (*found.get(note, ()), tag)
    return found
