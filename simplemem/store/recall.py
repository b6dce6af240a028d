"""What the store finds: searches and lists. Reads the index and the notes, writes nothing."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from simplemem.errors import Invalid, SimplememError
from simplemem.index.filters import SORTS, Narrow
from simplemem.index.notes import Row
from simplemem.index.text import Place
from simplemem.memory import Filter, Found, Hit, Listed, Page
from simplemem.note.names import name_of
from simplemem.note.words import well_formed, without_stop_words
from simplemem.search.dates import read_when
from simplemem.search.excerpt import snippet, squeezed, where_words_stand
from simplemem.search.meant import meant
from simplemem.search.query import Query, read_query
from simplemem.search.rank import MODES, Mode, Ranked, rank
from simplemem.store.in_step import InStep
from simplemem.store.names import path_meant

MAX_LIMIT = 200
NO_WORD = "The question has no word that could be looked for."


class Recall:
    """Questions to one vault and its index."""

    def __init__(self, step: InStep) -> None:
        self._step = step
        self._vault = step.vault
        self._index = step.index
        self._settings = step.settings

    # -- search

    def search(self, text: str, filter_: Filter, limit: int, mode: str, explain: bool) -> Found:
        """Ranked hits. Without words, the newest of what the filter leaves."""
        limit = within(limit, 1, MAX_LIMIT, "limit")
        chosen = _mode(mode)
        query = self.read(text)
        narrow = self.narrow(filter_, query)
        if query.asks_nothing():
            return Found(text, chosen, (), self._step.state(), None, NO_WORD)
        relaxed = self.relaxed(narrow)
        for _ in range(2):
            ranked, rows, vector, degraded, ids = self.ranked(query, relaxed, limit, chosen)
            if not self._step.recheck(rows[r.note].path for r in ranked if r.note in rows):
                break
        hits = self._hits(ranked, rows, vector, explain, query.words)
        told = self._explanation(query, relaxed, ids, chosen, degraded) if explain else None
        if relaxed is not narrow:
            said = " and ".join(f'"{phrase}"' for phrase in narrow.phrases)
            degraded = f"No memory holds {said} word for word; these are found by its words. {degraded}".strip()
        return Found(text, chosen, hits, self._step.state(), told, f"{query.instead} {degraded}".strip())

    def read(self, text: str) -> Query:
        """A question taken apart, its words in the forms in which this vault may hold them."""
        return meant(read_query(text), self._index)

    def relaxed(self, narrow: Narrow) -> Narrow:
        """The filter without its quoted phrases when no memory holds them: quotation marks around a name in a question
        are not meant to hide every answer."""
        if narrow.phrases and not self._index.ids(narrow):
            return replace(narrow, phrases=())
        return narrow

    def ranked(
        self, query: Query, narrow: Narrow, limit: int, mode: Mode
    ) -> tuple[list[Ranked], dict[int, Row], bytes | None, str, list[int] | None]:
        vector, degraded = self.vector(query, mode) if query.words else (None, "")
        if mode == "semantic" and vector is None:
            mode = "text"
            degraded = degraded or "Searched by words only: the setting embed.provider is none."
        with self._index.snapshot():
            ids = None if narrow.is_open() else self._index.ids(narrow)
            if not query.words:
                newest, _ = self._index.page(narrow, "modified", limit, 0)
                found = [Ranked(row.id, 1.0, 0.0, 0.0, 0.0, {}, None) for row in newest]
                return found, {row.id: row for row in newest}, None, "", ids
            ranked = rank(self._index, query, vector, ids, mode, self._settings.search.lexical_weight)
            near_the_cut = ranked[: limit * 2 + 20]
            rows = self._index.rows(r.note for r in near_the_cut)
        kept = [r for r in near_the_cut if r.note in rows]
        kept.sort(key=lambda r: (-round(r.score, 6), rows[r.note].path))
        return kept[:limit], rows, vector, degraded, ids

    def vector(self, query: Query, mode: Mode) -> tuple[bytes | None, str]:
        if mode == "text":
            return None, ""
        embedder, why_not = self._step.embedder()
        if embedder is None:
            return None, why_not
        if not self._index.holds_vectors_of(embedder):
            return None, "Searched by words only: no vectors have been made yet."
        return embedder.query(without_stop_words(query.text)), ""

    def _hits(
        self, ranked: Sequence[Ranked], rows: dict[int, Row], vector: bytes | None, explain: bool, words: Sequence[str]
    ) -> tuple[Hit, ...]:
        hits = []
        places = self._index.places({r.place for r in ranked if r.place})
        for found in ranked:
            row = rows[found.note]
            text = self.text(row.path)
            if text is None:
                continue
            place = places.get(found.place) or self.nearest_place(found.note, vector)
            limit = self._settings.search.snippet_characters
            around, place = where_words_stand(text, self._index.passages(found.note), place, words, limit)
            shown, line, heading = "", 1, ""
            if around is not None:
                shown = snippet(text, around, place, limit)
                line = (place or around).line
                heading = " > ".join((place or around).headings)
            hits.append(
                Hit(
                    name=name_of(row.path),
                    title=row.title,
                    description=row.description,
                    type=row.type or "memory",
                    score=round(found.score, 4),
                    snippet=shown or squeezed(row.description),
                    heading=heading,
                    line=line,
                    tags=self._index.tags_of(found.note),
                    created=row.created or None,
                    modified=row.modified,
                    sha256=row.sha256,
                    why=found.why() if explain else None,
                )
            )
        return tuple(hits)

    def nearest_place(self, note_id: int, vector: bytes | None) -> Place | None:
        if vector is None:
            return None
        place = self._index.nearest_place(note_id, vector)
        return None if place is None else self._index.places([place]).get(place)

    def text(self, path: str) -> str | None:
        """The note's text as it is now; None when it went in this moment."""
        try:
            return self._vault.read(path).data.decode("utf-8", "replace")
        except SimplememError:
            return None

    def _explanation(
        self, query: Query, narrow: Narrow, ids: list[int] | None, mode: Mode, degraded: str
    ) -> dict[str, Any]:
        return {
            "words": list(query.words),
            "phrases": list(query.phrases),
            "without": list(query.without),
            "filter": {
                key: value
                for key, value in {
                    "tags": dict(narrow.tags) | dict(narrow.all_tags), "type": narrow.type, "prefix": narrow.prefix,
                    "since": narrow.since, "until": narrow.until, "link_to": narrow.link_to,
                    "linked_by": narrow.linked_by,
                }.items() if value
            },
            "notes_after_filter": self._index.note_count() if ids is None else len(ids),
            "mode": mode,
            "weights": {"words": self._settings.search.lexical_weight,
                        "meaning": round(1 - self._settings.search.lexical_weight, 4)},
            "embedder": self._settings.embed.provider if not degraded else "none",
        }  # fmt: skip

    # -- filters

    def narrow(self, given: Filter, query: Query | None = None) -> Narrow:
        now = datetime.now()  # noqa: DTZ005  (local, as notes are)
        return Narrow(
            tags={well_formed(key): well_formed(value) for key, value in given.tags.items()},
            require_all=given.require_all,
            all_tags=dict(query.tags) if query else {},
            type=(query.type if query else "") or well_formed(given.type),
            prefix=_prefix((query.prefix if query else "") or well_formed(given.prefix)),
            since=read_when(given.since, now) if given.since else "",
            until=read_when(given.until, now, end=True) if given.until else "",
            link_to=path_meant(self._step, given.link_to) if given.link_to else "",
            linked_by=path_meant(self._step, given.linked_by) if given.linked_by else "",
            phrases=query.phrases if query else (),
            without=query.without if query else (),
            without_forms=query.without_forms if query else (),
        )

    # -- lists

    def page(self, filter_: Filter, sort: str, limit: int, cursor: str | None) -> Page:
        """Memories that pass a filter, a page at a time."""
        limit = within(limit, 1, 1000, "limit")
        if sort not in SORTS:
            raise Invalid(f"cannot sort by {sort!r}", hint=f"Sort by one of: {', '.join(SORTS)}.")
        offset = _offset(cursor, sort)
        narrow = self.narrow(filter_)
        if self._step.recheck(row.path for row in self._index.page(narrow, sort, limit, offset)[0]):
            narrow = self.narrow(filter_)
        with self._index.snapshot():
            rows, total = self._index.page(narrow, sort, limit, offset)
            items = tuple(
                Listed(name_of(row.path), row.path, row.title, row.description, row.type or "memory",
                       self._index.tags_of(row.id), row.created or None, row.modified, row.size, row.sha256, row.problem)
                for row in rows
            )  # fmt: skip
        after = offset + len(items)
        return Page(items, _cursor(after, sort) if after < total else None, total, self._step.state())


def _mode(mode: str) -> Mode:
    for known in MODES:
        if mode == known:
            return known
    raise Invalid(f"there is no search mode {mode!r}", hint=f"Modes are: {', '.join(MODES)}.")


def within(value: int, least: int, most: int, what: str) -> int:
    if value < least:
        raise Invalid(f"{what} must be at least {least}, not {value}")
    return min(value, most)


def _prefix(prefix: str) -> str:
    return prefix.strip().lstrip("/")


def _cursor(offset: int, sort: str) -> str:
    return base64.urlsafe_b64encode(json.dumps([offset, sort]).encode()).decode().rstrip("=")


def _offset(cursor: str | None, sort: str) -> int:
    if not cursor:
        return 0
    try:
        offset, made_for = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        if made_for == sort and isinstance(offset, int) and offset >= 0:
            return offset
    except (ValueError, TypeError):
        pass
    raise Invalid("this cursor does not belong to this list", hint="Begin again without a cursor.")
