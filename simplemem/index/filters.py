"""Which notes a question is about: a filter as SQL with bound values, applied before anything is ranked."""

from __future__ import annotations

import json
from array import array
from typing import Any

import apsw

from simplemem.index.changes import written_by
from simplemem.index.door import Listing, Narrow, Row
from simplemem.index.legs import quoted
from simplemem.index.notes import _ROW
from simplemem.index.shown import tags_of
from simplemem.note.names import compare_key
from simplemem.note.words import stretches


def condition(narrow: Narrow) -> tuple[str, dict[str, Any]]:
    """The WHERE of a filter, for `notes n`, and its values."""
    parts = [] if narrow.hidden else ["n.hidden IS NULL"]
    values: dict[str, Any] = {}
    for name, wanted, require_all in (("t", narrow.tags, narrow.require_all), ("q", narrow.all_tags, True)):
        tags = []
        for k, (key, value) in enumerate(wanted.items()):
            values[f"{name}k{k}"], values[f"{name}v{k}"] = compare_key(key), compare_key(value)
            tags.append(f"n.id IN (SELECT note_id FROM tag_pairs WHERE key = :{name}k{k} AND value = :{name}v{k})")
        if tags:
            parts.append("(" + (" AND " if require_all else " OR ").join(tags) + ")")
    for k, (key, value) in enumerate(narrow.properties.items()):
        parts.append(f"""EXISTS (SELECT 1 FROM properties p WHERE p.note_id = n.id AND p.key = :p{k}
                                 AND p.value COLLATE NOCASE IN (:pt{k}, :pv{k}))""")
        values |= {f"p{k}": key, f"pt{k}": json.dumps(value, ensure_ascii=False), f"pv{k}": value}  # a text or a number
    if narrow.type:
        parts.append("n.type_key = :type")
        values["type"] = compare_key(narrow.type)
    if narrow.prefix:
        values["prefix"] = prefix = compare_key(narrow.prefix)
        values["folder"], values["beyond"] = prefix.removesuffix("/"), _beyond(prefix)
        parts.append("(n.path_key >= :prefix AND n.path_key < :beyond OR n.path_key = :folder)")
    if narrow.since:
        parts.append("n.modified >= :since")
        values["since"] = narrow.since
    if narrow.until:
        parts.append("n.modified < :until")
        values["until"] = narrow.until
    if narrow.link_to:
        parts.append("n.id IN (SELECT source_id FROM links WHERE path = :link_to)")
        values["link_to"] = narrow.link_to
    if narrow.linked_by:
        parts.append(
            "n.path IN (SELECT l.path FROM links l JOIN notes s ON s.id = l.source_id WHERE s.path = :linked_by)"
        )
        values["linked_by"] = narrow.linked_by
    if narrow.only:
        parts.append("n.path IN (SELECT value FROM json_each(:only))")
        values["only"] = json.dumps(list(narrow.only))
    if narrow.author:
        by, more = written_by(narrow.author)
        parts.append(by)
        values |= more
    for k, phrase in enumerate(narrow.phrases):
        parts.append(f"n.id IN (SELECT rowid FROM note_text WHERE note_text MATCH :phrase{k})")
        values[f"phrase{k}"] = exactly(phrase)
    for k, word in enumerate((*narrow.without, *narrow.without_forms)):
        parts.append(f"n.id NOT IN (SELECT rowid FROM note_text WHERE note_text MATCH :without{k})")
        values[f"without{k}"] = exactly(word)
    return " AND ".join(parts) or "1", values


def _beyond(prefix: str) -> str:
    """The first text that comes after all that begin with the prefix, so that the index of paths is asked."""
    following = ord(prefix[-1]) + 1
    if following > 0x10FFFF:
        return prefix + prefix[-1]
    return prefix[:-1] + chr(0xE000 if 0xD800 <= following <= 0xDFFF else following)


def exactly(phrase: str) -> str:
    """A phrase for FTS5, word for word."""
    return " AND ".join(quoted(stretch) for stretch in stretches(phrase)) or quoted(())


def ids(db: apsw.Connection, narrow: Narrow) -> array[int]:
    """The notes that pass."""
    where, values = condition(narrow)
    return array("q", [row[0] for row in db.execute(f"SELECT n.id FROM notes n WHERE {where} ORDER BY n.id", values)])


_ORDER = {
    "modified": "n.modified DESC, n.path",
    "created": "n.created DESC, n.path",
    "name": "n.path_key, n.path",
    "title": "n.title_key, n.path",
}


def page(db: apsw.Connection, narrow: Narrow, sort: str, limit: int, after: int) -> Listing:
    """A page of the notes that pass, behind so many others."""
    where, values = condition(narrow)
    total = int(db.execute(f"SELECT count(*) FROM notes n WHERE {where}", values).get)
    sql = f"SELECT {_ROW} FROM notes n WHERE {where} ORDER BY {_ORDER[sort]} LIMIT :limit OFFSET :after"
    rows = [Row(*row) for row in db.execute(sql, {**values, "limit": limit, "after": after})]
    return Listing(rows, tags_of(db, [row.id for row in rows]), total)


def count(db: apsw.Connection, narrow: Narrow) -> int:
    """How many notes pass."""
    where, values = condition(narrow)
    return int(db.execute(f"SELECT count(*) FROM notes n WHERE {where}", values).get)
