"""What the store finds: searches, lists, backlinks, context packs. Reads the index and the notes, writes nothing."""

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
from simplemem.memory import Backlink, Filter, Found, Hit, Listed, Pack, Page
from simplemem.note.names import name_of
from simplemem.note.words import well_formed, without_stop_words
from simplemem.search.dates import read_when
from simplemem.search.excerpt import passage_around, snippet, squeezed
from simplemem.search.pack import Piece, pack
from simplemem.search.query import Query, read_query
from simplemem.search.rank import MODES, Mode, Ranked, rank
from simplemem.store.in_step import InStep
from simplemem.store.names import path_meant

MAX_LIMIT = 200
_SEMANTIC_FLOOR = 0.35  # of cosine; below it neighbours are chance
_PACK_NOTES = 20
_NO_WORD = "The question has no word that could be looked for."
_PACK_PASSAGES = 3  # of one note
_PACK_BLOCKS = 300


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
        limit = _within(limit, 1, MAX_LIMIT, "limit")
        chosen = _mode(mode)
        query = read_query(text)
        narrow = self._narrow(filter_, query)
        if query.asks_nothing():
            return Found(text, chosen, (), self._step.state(), None, _NO_WORD)
        relaxed = self._relaxed(narrow)
        for _ in range(2):
            ranked, rows, vector, degraded, ids = self._ranked(query, relaxed, limit, chosen)
            if not self._step.recheck(rows[r.note].path for r in ranked if r.note in rows):
                break
        hits = self._hits(ranked, rows, vector, explain)
        told = self._explanation(query, relaxed, ids, chosen, degraded) if explain else None
        if relaxed is not narrow:
            said = " and ".join(f'"{phrase}"' for phrase in narrow.phrases)
            degraded = f"No memory holds {said} word for word; these are found by its words. {degraded}".strip()
        return Found(text, chosen, hits, self._step.state(), told, degraded)

    def _relaxed(self, narrow: Narrow) -> Narrow:
        """The filter without its quoted phrases when no memory holds them: quotation marks around a name in a question
        are not meant to hide every answer."""
        if narrow.phrases and not self._index.ids(narrow):
            return replace(narrow, phrases=())
        return narrow

    def _ranked(
        self, query: Query, narrow: Narrow, limit: int, mode: Mode
    ) -> tuple[list[Ranked], dict[int, Row], bytes | None, str, list[int] | None]:
        vector, degraded = self._vector(query, mode) if query.words else (None, "")
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

    def _vector(self, query: Query, mode: Mode) -> tuple[bytes | None, str]:
        if mode == "text":
            return None, ""
        embedder, why_not = self._step.embedder()
        if embedder is None:
            return None, why_not
        if not self._index.holds_vectors_of(embedder):
            return None, "Searched by words only: no vectors have been made yet."
        return embedder.query(without_stop_words(query.text)), ""

    def _hits(
        self, ranked: Sequence[Ranked], rows: dict[int, Row], vector: bytes | None, explain: bool
    ) -> tuple[Hit, ...]:
        hits = []
        places = self._index.places({r.place for r in ranked if r.place})
        for found in ranked:
            row = rows[found.note]
            text = self._text(row.path)
            if text is None:
                continue
            place = places.get(found.place) or self._nearest_place(found.note, vector)
            around = passage_around(self._index.passages(found.note), place)
            shown, line, heading = "", 1, ""
            if around is not None:
                shown = snippet(text, around, place, self._settings.search.snippet_characters)
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

    def _nearest_place(self, note_id: int, vector: bytes | None) -> Place | None:
        if vector is None:
            return None
        place = self._index.nearest_place(note_id, vector)
        return None if place is None else self._index.places([place]).get(place)

    def _text(self, path: str) -> str | None:
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

    def _narrow(self, given: Filter, query: Query | None = None) -> Narrow:
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
        )

    # -- lists

    def page(self, filter_: Filter, sort: str, limit: int, cursor: str | None) -> Page:
        """Memories that pass a filter, a page at a time."""
        limit = _within(limit, 1, 1000, "limit")
        if sort not in SORTS:
            raise Invalid(f"cannot sort by {sort!r}", hint=f"Sort by one of: {', '.join(SORTS)}.")
        offset = _offset(cursor, sort)
        narrow = self._narrow(filter_)
        if self._step.recheck(row.path for row in self._index.page(narrow, sort, limit, offset)[0]):
            narrow = self._narrow(filter_)
        with self._index.snapshot():
            rows, total = self._index.page(narrow, sort, limit, offset)
            items = tuple(
                Listed(name_of(row.path), row.path, row.title, row.description, row.type or "memory",
                       self._index.tags_of(row.id), row.created or None, row.modified, row.size, row.sha256, row.problem)
                for row in rows
            )  # fmt: skip
        after = offset + len(items)
        return Page(items, _cursor(after, sort) if after < total else None, total, self._step.state())

    # -- backlinks

    def backlinks(self, path: str, query: str | None, limit: int, kinds: Sequence[str]) -> tuple[Backlink, ...]:
        """Memories that lead to this one: links first, then those nearest in meaning; by a query when one is given."""
        limit = _within(limit, 1, MAX_LIMIT, "limit")
        unknown = [kind for kind in kinds if kind not in ("link", "semantic")]
        if unknown:
            raise Invalid(f"unknown kind of backlink: {unknown[0]!r}", hint="Kinds are: link, semantic.")
        self._step.recheck({path, *(link.source for link in self._index.links_to(path))})
        found = self._explicit(path) if "link" in kinds else []
        if "semantic" in kinds and (query or len(found) < limit):
            linking = {item.name for item in self._explicit(path)}
            found += [item for item in self._semantic(path, 3 * limit) if item.name not in linking]
        if query:
            found = self._by_query(found, query)
        return tuple(found[:limit])

    def _explicit(self, path: str) -> list[Backlink]:
        found: list[Backlink] = []
        texts: dict[str, list[str]] = {}
        for link in self._index.links_to(path):
            if link.source not in texts:
                texts[link.source] = (self._text(link.source) or "").replace("\r\n", "\n").split("\n")
            lines = texts[link.source]
            shown = squeezed(lines[link.line - 1])[:300] if 0 < link.line <= len(lines) else ""
            row = self._index.row(link.source)
            title = row.title if row else name_of(link.source)
            found.append(Backlink(name_of(link.source), title, "link", link.form, shown, link.line, 1.0))
        return found

    def _semantic(self, path: str, limit: int) -> list[Backlink]:
        row = self._index.row(path)
        if row is None:
            return []
        vector = _mean(self._index.vectors_of(row.id))
        if vector is None:
            return []
        near = self._index.nearest(vector, None, limit * 4)
        scored = ((max(n.passage, n.score), note) for note, n in near.items() if note != row.id)
        best = sorted((pair for pair in scored if pair[0] >= _SEMANTIC_FLOOR), key=lambda p: (-round(p[0], 6), p[1]))
        rows = self._index.rows(note for _, note in best[: limit * 2])
        found = []
        for score, note_id in best[: limit * 2]:
            other = rows.get(note_id)
            text = self._text(other.path) if other is not None else None
            if other is None or text is None:
                continue
            place = self._nearest_place(note_id, vector)
            shown = snippet(text, place, None, 200) if place is not None else other.description
            line = place.line if place is not None else 1
            found.append(Backlink(name_of(other.path), other.title, "semantic", "", shown, line, round(score, 4)))
        return found[:limit]

    def _by_query(self, items: list[Backlink], text: str) -> list[Backlink]:
        """Candidates in the order in which a search for the query would give them."""
        query = read_query(text)
        paths = [f"{item.name}.md" for item in items]
        vector, _ = self._vector(query, "hybrid")
        with self._index.snapshot():
            ids = self._index.ids(Narrow(only=tuple(paths), hidden=True))
            ranked = rank(self._index, query, vector, ids) if query.words else []
            rows = self._index.rows(r.note for r in ranked)
        scores = {name_of(rows[r.note].path): r.score for r in ranked if r.note in rows}
        ordered = sorted(enumerate(items), key=lambda pair: (-scores.get(pair[1].name, 0.0), pair[0]))
        return [
            Backlink(i.name, i.title, i.kind, i.form, i.snippet, i.line, round(scores.get(i.name, 0.0), 4))
            for _, i in ordered
        ]

    # -- context

    def context(self, text: str, budget: int, filter_: Filter) -> Pack:
        """The best passages for a question within a budget of tokens, cited."""
        budget = _within(budget, 50, 100_000, "budget_tokens")
        query = read_query(text)
        if query.asks_nothing():
            return Pack(text, "", 0, (), 0, self._step.state(), _NO_WORD)
        narrow = self._relaxed(self._narrow(filter_, query))
        for _ in range(2):
            ranked, rows, vector, degraded, _ = self._ranked(query, narrow, _PACK_NOTES, "hybrid")
            if not self._step.recheck(rows[r.note].path for r in ranked if r.note in rows):
                break
        packed = pack(self._pieces(ranked, rows, query, vector), budget)
        return Pack(text, packed.text, packed.tokens, packed.items, packed.left_out, self._step.state(), degraded)

    def _pieces(
        self, ranked: Sequence[Ranked], rows: dict[int, Row], query: Query, vector: bytes | None
    ) -> list[Piece]:
        """The best passage of every note in order, then the next best ones."""
        found_blocks: dict[int, list[int]] = {}
        if query.words and ranked:
            for match in self._index.leg("block", query.expression(), _PACK_BLOCKS, [r.note for r in ranked]):
                found_blocks.setdefault(match.note, []).append(match.place)
        rounds: list[list[Piece]] = [[] for _ in range(_PACK_PASSAGES)]
        for found in ranked:
            row = rows[found.note]
            text = self._text(row.path)
            if text is None:
                continue
            blocks = found_blocks.get(found.note, [])
            for k, place in enumerate(self._passages_of(found.note, blocks, vector)):
                heading = " > ".join(place.headings)
                body = text[place.start : place.stop].replace("\r\n", "\n")
                score = found.score / (k + 1)
                rounds[k].append(Piece(name_of(row.path), row.title, heading, place.line, row.modified, body, score))
        return [piece for one in rounds for piece in one]

    def _passages_of(self, note_id: int, blocks: Sequence[int], vector: bytes | None) -> list[Place]:
        """The passages that the best blocks stand in; else the one nearest in meaning; else the first."""
        passages = self._index.passages(note_id)
        places = self._index.places(blocks)
        around = [passage_around(passages, places[block]) for block in blocks if block in places]
        around = around or [passage_around(passages, self._nearest_place(note_id, vector))]
        return [place for place in dict.fromkeys(around) if place is not None][:_PACK_PASSAGES]


def _mode(mode: str) -> Mode:
    for known in MODES:
        if mode == known:
            return known
    raise Invalid(f"there is no search mode {mode!r}", hint=f"Modes are: {', '.join(MODES)}.")


def _within(value: int, least: int, most: int, what: str) -> int:
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


def _mean(vectors: Sequence[bytes]) -> bytes | None:
    """The middle of a note's passages, as a vector of the same kind."""
    rows = [memoryview(vector).cast("b") for vector in vectors[:64]]
    if not rows:
        return None
    sums = [sum(column) for column in zip(*rows, strict=True)]
    largest = max(map(abs, sums)) or 1
    return bytes((round(value * 127 / largest)) & 0xFF for value in sums)
