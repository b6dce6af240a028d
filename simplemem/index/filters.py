"""Turn a filter into SQL: the FROM and WHERE of a query for the notes that pass."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from simplemem.index.api import IndexFilter
from simplemem.index.changes import written_by
from simplemem.index.engine import LAST, Dialect, IntegerList, TextList, Value
from simplemem.note.names import compare_key
from simplemem.note.note import hyphenate
from simplemem.note.words import phrase_segments

GetHolders = Callable[[Sequence[Sequence[str]]], Sequence[int]]
"""Returns the ids of the notes whose text has all of these sequences of words."""


def condition(
    narrow: IndexFilter, dialect: Dialect, get_holders: GetHolders
) -> tuple[str, list[Value]]:
    """Return the SQL after FROM, `notes n WHERE …`, for the notes that pass, and its values.

    Hidden notes pass only if the filter says so. `get_holders` is called for each phrase of the
    filter; the ids that it returns are bound as a list. If it returns none, as for a phrase without
    words, no note passes `phrases`, and all pass `without`.
    """
    conditions = _Conditions(dialect)
    if narrow.only:
        mark = conditions.bind(TextList(narrow.only))
        conditions.add(dialect.in_texts("n.path", mark))
    if not narrow.hidden:
        conditions.add("n.hidden IS NULL")
    conditions.add_tags(narrow.tags, require_all=narrow.require_all)
    conditions.add_tags(narrow.all_tags, require_all=True)
    for key, value in narrow.properties.items():
        conditions.add_property(key, value)
    if narrow.archive:
        conditions.add_archive(narrow.archive, is_inside=narrow.archived)
    if narrow.prefix:
        conditions.add_folder(narrow.prefix)
    _add_simple_fields(conditions, narrow)
    if narrow.author:
        conditions.add(written_by(narrow.author, conditions.bind))

    for phrase in narrow.phrases:
        note_ids = get_holders(phrase_segments(phrase))
        conditions.add_notes(note_ids, are_inside=True)
    for phrase in (*narrow.without, *narrow.without_forms):
        note_ids = get_holders(phrase_segments(phrase))
        conditions.add_notes(note_ids, are_inside=False)
    return f"notes n WHERE {conditions.as_sql()}", conditions.values


def _add_simple_fields(conditions: _Conditions, narrow: IndexFilter) -> None:
    """Add the conditions on type, dates and links.

    `since` is inclusive and `until` exclusive; both compare with the date of the last change.
    """
    if narrow.type:
        mark = conditions.bind(compare_key(narrow.type))
        conditions.add(f"n.type_key = {mark}")
    if narrow.since:
        mark = conditions.bind(narrow.since)
        conditions.add(f"n.modified >= {mark}")
    if narrow.until:
        mark = conditions.bind(narrow.until)
        conditions.add(f"n.modified < {mark}")
    if narrow.link_to:
        mark = conditions.bind(narrow.link_to)
        conditions.add(f"n.id IN (SELECT note_id FROM links WHERE path = {mark})")
    if narrow.linked_by:
        mark = conditions.bind(narrow.linked_by)
        conditions.add(
            f"""n.path IN (
                SELECT l.path FROM links l JOIN notes s ON s.id = l.note_id WHERE s.path = {mark}
            )"""
        )


class _Conditions:
    """Conditions that a note has to meet, all of them, and the values that they bind.

    Text of a filter is always bound; the SQL consists of text of this module and of marks. Each
    condition is added before values for the next one are bound, because marks must first occur in
    the SQL in the order of their values (see engine.py).
    """

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._parts: list[str] = []
        self.values: list[Value] = []

    def as_sql(self) -> str:
        """Return all conditions joined by AND, for a WHERE; "TRUE" if there is none."""
        return " AND ".join(self._parts) or "TRUE"

    def bind(self, value: Value) -> str:
        """Add a value to those of the statement, and return its mark, such as `$3`."""
        self.values.append(value)
        return f"${len(self.values)}"

    def add(self, part: str) -> None:
        """Add a piece of SQL as a condition. It must not contain text of the filter."""
        self._parts.append(part)

    def add_tags(self, tags: Mapping[str, str], *, require_all: bool) -> None:
        """Add the condition that a note has one of some tags, or all of them if `require_all`.

        A tag is a key and a value; the value "" matches any. Adds nothing if there are no tags.
        """
        alternatives = []
        for key, value in tags.items():
            tag_key = compare_key(hyphenate(key))
            key_mark = self.bind(tag_key)
            value_mark = self.bind(compare_key(value))
            # The value of a nested tag, such as `status/in-progress`, has hyphens for spaces.
            nested_value = compare_key(hyphenate(value))
            nested_mark = self.bind(nested_value)
            alternatives.append(
                f"""n.id IN (
                    SELECT note_id FROM tag_pairs
                    WHERE key = {key_mark} AND value IN ({value_mark}, {nested_mark})
                )"""
            )
        if alternatives:
            operator = " AND " if require_all else " OR "
            self.add(f"({operator.join(alternatives)})")

    def add_property(self, key: str, value: str) -> None:
        """Add the condition that a note has a property with this value. ASCII case does not matter.

        In the frontmatter, the value may be a text, or a number or boolean that is written so.
        """
        lower = value.encode().lower().decode()  # only ASCII letters, as `lower` in SQL
        key_mark = self.bind(key)
        text_mark = self.bind(json.dumps(lower, ensure_ascii=False))
        number_mark = self.bind(lower)
        self.add(
            f"""EXISTS (
                SELECT 1 FROM properties p
                WHERE p.note_id = n.id AND p.key = {key_mark}
                  AND lower(p.value) IN ({text_mark}, {number_mark})
            )"""
        )

    def add_archive(self, folders: tuple[str, ...], *, is_inside: bool) -> None:
        """Add the condition that a note is in one of the folders; in none, if not `is_inside`.

        There must be at least one, and each ends in "/".
        """
        alternatives = []
        for folder in folders:
            mark = self.bind(compare_key(folder))
            alternatives.append(f"n.path_key >= {mark} AND n.path_key < {mark} || '{LAST}'")
        is_in_one = f"({' OR '.join(alternatives)})"
        self.add(is_in_one if is_inside else f"NOT {is_in_one}")

    def add_folder(self, prefix: str) -> None:
        """Add the condition that a path begins with `prefix`, or is `prefix` without its slash.

        Paths are compared without case and `.md`, so "a/" lets the note `a.md` pass too.
        """
        mark = self.bind(compare_key(prefix))
        is_below = f"n.path_key >= {mark} AND n.path_key < {mark} || '{LAST}'"
        self.add(f"({is_below} OR n.path_key = rtrim({mark}, '/'))")

    def add_notes(self, note_ids: Sequence[int], *, are_inside: bool) -> None:
        """Add the condition that a note is one of `note_ids`; or none, if not `are_inside`."""
        mark = self.bind(IntegerList(note_ids))
        is_one = self._dialect.in_integers("n.id", mark)
        self.add(is_one if are_inside else f"NOT ({is_one})")
