"""Which notes a question is about: a filter as SQL with bound values, applied before anything is ranked."""

from __future__ import annotations

import json
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import apsw

from simplemem.index.changes import written_by
from simplemem.index.database import state_of
from simplemem.index.notes import _ROW, Row
from simplemem.note.names import compare_key
from simplemem.note.words import stretches


@dataclass(frozen=True, slots=True)
class Narrow:
    """A filter whose names and dates are already resolved. Empty fields do not narrow."""

    tags: Mapping[str, str] = field(default_factory=dict)  # key -> value, "" asks only that the tag is there
    require_all: bool = False
    all_tags: Mapping[str, str] = field(default_factory=dict)  # from `tag:` in a question: always all of them
    type: str = ""
    prefix: str = ""
    since: str = ""
    until: str = ""
    link_to: str = ""  # a vault path
    linked_by: str = ""
    phrases: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    without_forms: tuple[str, ...] = ()  # further forms of those
    only: tuple[str, ...] = ()  # vault paths
    author: str = ""
    hidden: bool = False  # whether notes left out of recall take part

    def is_open(self) -> bool:
        """Whether it lets every visible note pass."""
        return replace(self, hidden=False, require_all=False) == Narrow()

    def condition(self) -> tuple[str, dict[str, Any]]:
        """The WHERE of it, for `notes n`, and its values."""
        parts = [] if self.hidden else ["n.hidden IS NULL"]
        values: dict[str, Any] = {}
        for name, wanted, require_all in (
            ("t", self.tags, self.require_all),
            ("q", self.all_tags, True),
        ):
            tags = []
            for k, (key, value) in enumerate(wanted.items()):
                values[f"{name}k{k}"], values[f"{name}v{k}"] = compare_key(key), compare_key(value)
                tags.append(f"n.id IN (SELECT note_id FROM tag_pairs WHERE key = :{name}k{k} AND value = :{name}v{k})")
            if tags:
                parts.append("(" + (" AND " if require_all else " OR ").join(tags) + ")")
        if self.type:
            parts.append("n.type_key = :type")
            values["type"] = compare_key(self.type)
        if self.prefix:
            values["prefix"] = prefix = compare_key(self.prefix)
            values["folder"], values["beyond"] = prefix.removesuffix("/"), _beyond(prefix)
            parts.append("(n.path_key >= :prefix AND n.path_key < :beyond OR n.path_key = :folder)")
        if self.since:
            parts.append("n.modified >= :since")
            values["since"] = self.since
        if self.until:
            parts.append("n.modified < :until")
            values["until"] = self.until
        if self.link_to:
            parts.append("n.id IN (SELECT source_id FROM links WHERE path = :link_to)")
            values["link_to"] = self.link_to
        if self.linked_by:
            parts.append(
                "n.path IN (SELECT l.path FROM links l JOIN notes s ON s.id = l.source_id WHERE s.path = :linked_by)"
            )
            values["linked_by"] = self.linked_by
        if self.only:
            parts.append("n.path IN (SELECT value FROM json_each(:only))")
            values["only"] = json.dumps(list(self.only))
        if self.author:
            condition, more = written_by(self.author)
            parts.append(condition)
            values |= more
        for k, phrase in enumerate(self.phrases):
            parts.append(f"n.id IN (SELECT rowid FROM note_text WHERE note_text MATCH :phrase{k})")
            values[f"phrase{k}"] = exactly(phrase)
        for k, word in enumerate((*self.without, *self.without_forms)):
            parts.append(f"n.id NOT IN (SELECT rowid FROM note_text WHERE note_text MATCH :without{k})")
            values[f"without{k}"] = exactly(word)
        return " AND ".join(parts) or "1", values


def _beyond(prefix: str) -> str:
    """The first text that comes after all that begin with the prefix, so that the index of paths is asked."""
    following = ord(prefix[-1]) + 1
    if following > 0x10FFFF:
        return prefix + prefix[-1]
    return prefix[:-1] + chr(0xE000 if 0xD800 <= following <= 0xDFFF else following)


def quoted(*words: str) -> str:
    """Words side by side as one FTS5 string: never syntax, whatever is in them."""
    return '"' + " ".join(words).replace('"', '""').replace("\0", " ") + '"'


def exactly(phrase: str) -> str:
    """A phrase for FTS5, word for word."""
    return " AND ".join(quoted(*stretch) for stretch in stretches(phrase)) or quoted("")


def ids(db: apsw.Connection, narrow: Narrow) -> array[int]:
    """The notes that pass."""
    where, values = narrow.condition()
    return array("q", [row[0] for row in db.execute(f"SELECT n.id FROM notes n WHERE {where} ORDER BY n.id", values)])


class Narrowed:
    """What passed the last filters of a connection, kept for as long as nobody writes: in a very large vault to find the
    notes that pass is half of a search, and whoever asks through a filter asks again."""

    def __init__(self) -> None:
        self._state = (0, 0)
        self._found: list[tuple[Narrow, array[int]]] = []

    def ids(self, db: apsw.Connection, narrow: Narrow) -> array[int]:
        """As the function `ids`. `db` is always the same."""
        state = state_of(db)
        if state != self._state:
            self._state, self._found = state, []
        for asked, found in self._found:
            if asked == narrow:
                return found
        found = ids(db, narrow)
        self._found = [*self._found[-_KEPT + 1 :], (narrow, found)]
        return found


_KEPT = 2  # filters whose notes are kept

_ORDER = {
    "modified": "n.modified DESC, n.path",
    "created": "n.created DESC, n.path",
    "name": "n.path_key, n.path",
    "title": "n.title_key, n.path",
}
SORTS = tuple(_ORDER)


def page(db: apsw.Connection, narrow: Narrow, sort: str, limit: int, offset: int) -> tuple[list[Row], int]:
    """A page of the notes that pass, and how many there are in all."""
    where, values = narrow.condition()
    total = int(db.execute(f"SELECT count(*) FROM notes n WHERE {where}", values).get)
    sql = f"SELECT {_ROW} FROM notes n WHERE {where} ORDER BY {_ORDER[sort]} LIMIT :limit OFFSET :offset"
    rows = db.execute(sql, {**values, "limit": limit, "offset": offset})
    return [Row(*row) for row in rows], total
