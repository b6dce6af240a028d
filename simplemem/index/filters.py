"""A filter as SQL."""

from __future__ import annotations

import json
from typing import Any

from simplemem.index.changes import written_by
from simplemem.index.connection import LAST, Connection
from simplemem.index.door import Narrow
from simplemem.note.names import compare_key
from simplemem.note.note import joined
from simplemem.note.words import stretches


def condition(db: Connection, narrow: Narrow) -> tuple[str, dict[str, Any]]:
    """The FROM and WHERE of a filter, for `notes n`, and its values."""
    parts = [] if narrow.hidden else ["n.hidden IS NULL"]
    values: dict[str, Any] = {}
    for name, wanted, require_all in (
        ("t", narrow.tags, narrow.require_all),
        ("q", narrow.all_tags, True),
    ):
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
        values |= {
            f"p{k}": key,
            f"pt{k}": json.dumps(low, ensure_ascii=False),
            f"pv{k}": low,
        }  # a text or a number
    if narrow.archive:
        inside = [
            f"n.path_key >= :a{k} AND n.path_key < :a{k} || '{LAST}'"
            for k in range(len(narrow.archive))
        ]
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
            values[f"{name}{k}"] = db.many(db.term_index().notes_with_all(db, stretches(phrase)))
            parts.append(f"n.id {part} (SELECT value FROM carray(:{name}{k}))")
    where = " AND ".join(parts) or "TRUE"
    source = "carray(:only) o CROSS JOIN notes n ON n.path = o.value" if narrow.only else "notes n"
    values |= {"only": db.many(narrow.only)} if narrow.only else {}
    return f"{source} WHERE {where}", values
