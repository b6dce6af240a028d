"""Turn a filter into SQL: the FROM and WHERE of a query for the notes that pass."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from simplemem.index.changes import written_by
from simplemem.index.connection import LAST, Connection
from simplemem.index.door import Narrow
from simplemem.note.names import compare_key
from simplemem.note.tags import hyphenate
from simplemem.note.words import phrase_segments


def condition(db: Connection, narrow: Narrow) -> tuple[str, dict[str, Any]]:
    """Return the FROM and WHERE of a filter, for `notes n`, and the values to bind."""
    conditions = _Conditions(db)
    if not narrow.hidden:
        conditions.add("n.hidden IS NULL")
    conditions.add_tags("t", narrow.tags, require_all=narrow.require_all)
    conditions.add_tags("q", narrow.all_tags, require_all=True)
    for key, value in narrow.properties.items():
        conditions.add_property(key, value)
    if narrow.archive:
        conditions.add_archive(narrow.archive, is_inside=narrow.archived)
    if narrow.prefix:
        conditions.add_folder(narrow.prefix)
    _add_simple_fields(conditions, narrow)
    if narrow.author:
        condition_of_author, values = written_by(narrow.author)
        conditions.add(condition_of_author, **values)

    for phrase in narrow.phrases:
        conditions.add_phrase(phrase, is_contained=True)
    for phrase in (*narrow.without, *narrow.without_forms):
        conditions.add_phrase(phrase, is_contained=False)

    source = "notes n"
    if narrow.only:
        source = "carray(:only) o CROSS JOIN notes n ON n.path = o.value"
        conditions.values["only"] = db.many(narrow.only)
    where = conditions.as_sql()
    return f"{source} WHERE {where}", conditions.values


def _add_simple_fields(conditions: _Conditions, narrow: Narrow) -> None:
    """Add the conditions that compare one column with one value."""
    if narrow.type:
        conditions.add("n.type_key = :type", type=compare_key(narrow.type))
    if narrow.since:
        conditions.add("n.modified >= :since", since=narrow.since)
    if narrow.until:
        conditions.add("n.modified < :until", until=narrow.until)
    if narrow.link_to:
        sources = "SELECT note_id FROM links WHERE path = :link_to"
        conditions.add(f"n.id IN ({sources})", link_to=narrow.link_to)
    if narrow.linked_by:
        targets = (
            "SELECT l.path FROM links l JOIN notes s ON s.id = l.note_id WHERE s.path = :linked_by"
        )
        conditions.add(f"n.path IN ({targets})", linked_by=narrow.linked_by)


class _Conditions:
    """Conditions that a note has to meet, all of them, and the values that they bind.

    Text of a filter is always bound. The SQL is made of text of this module and of numbers.
    """

    def __init__(self, db: Connection) -> None:
        self._db = db
        self._parts: list[str] = []
        self.values: dict[str, Any] = {}

    def as_sql(self) -> str:
        return " AND ".join(self._parts) or "TRUE"

    def add(self, part: str, **values: object) -> None:
        """Add a condition with the values that it names."""
        self._parts.append(part)
        self.values |= values

    def add_tags(self, name: str, tags: Mapping[str, str], *, require_all: bool) -> None:
        """Add that a note has one of some tags, or all of them. An empty value asks for the key only."""
        alternatives = []
        for number, (key, value) in enumerate(tags.items()):
            self.values[f"{name}k{number}"] = compare_key(hyphenate(key))
            self.values[f"{name}v{number}"] = compare_key(value)
            # As the value stands in the name of a nested tag.
            self.values[f"{name}w{number}"] = compare_key(hyphenate(value))
            alternatives.append(
                f"""n.id IN (
                    SELECT note_id FROM tag_pairs
                    WHERE key = :{name}k{number} AND value IN (:{name}v{number}, :{name}w{number})
                )"""
            )
        if alternatives:
            operator = " AND " if require_all else " OR "
            self._parts.append(f"({operator.join(alternatives)})")

    def add_property(self, key: str, value: str) -> None:
        """Add that a note has a property with a value, which is a text or a number in the header."""
        number = len(self.values)
        lower = value.encode().lower().decode()  # only ASCII, as the engines do
        self.values[f"p{number}"] = key
        self.values[f"pt{number}"] = json.dumps(lower, ensure_ascii=False)
        self.values[f"pv{number}"] = lower
        self._parts.append(
            f"""EXISTS (
                SELECT 1 FROM properties p
                WHERE p.note_id = n.id AND p.key = :p{number}
                  AND lower(p.value) IN (:pt{number}, :pv{number})
            )"""
        )

    def add_archive(self, folders: tuple[str, ...], *, is_inside: bool) -> None:
        """Add that a note is in one of some folders, or in none of them."""
        alternatives = []
        for number, folder in enumerate(folders):
            self.values[f"a{number}"] = compare_key(folder)
            alternatives.append(f"n.path_key >= :a{number} AND n.path_key < :a{number} || '{LAST}'")
        is_in_one = f"({' OR '.join(alternatives)})"
        self._parts.append(is_in_one if is_inside else f"NOT {is_in_one}")

    def add_folder(self, prefix: str) -> None:
        """Add that a note's path begins with a folder, or is it."""
        below = f"n.path_key >= :prefix AND n.path_key < :prefix || '{LAST}'"
        self.add(f"({below} OR n.path_key = rtrim(:prefix, '/'))", prefix=compare_key(prefix))

    def add_phrase(self, phrase: str, *, is_contained: bool) -> None:
        """Add that a note contains a phrase, word for word, or does not."""
        number = len(self.values)
        holders = self._db.term_index().notes_with_all(self._db, phrase_segments(phrase))
        self.values[f"phrase{number}"] = self._db.many(holders)
        operator = "IN" if is_contained else "NOT IN"
        self._parts.append(f"n.id {operator} (SELECT value FROM carray(:phrase{number}))")
