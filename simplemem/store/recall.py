"""What the store finds: searches and lists. Reads the index and the notes, writes nothing."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from simplemem.errors import Invalid, SimplememError, Unavailable
from simplemem.index.filters import SORTS, Narrow
from simplemem.index.notes import Row
from simplemem.index.vectors import QueryVector
from simplemem.memory import Filter, Found, Hit, Listed, Page
from simplemem.note.authors import local
from simplemem.note.names import name_of
from simplemem.note.words import well_formed
from simplemem.search import coverage, priors
from simplemem.search.coverage import WordVectors, is_question
from simplemem.search.dates import read_when
from simplemem.search.excerpt import snippet, squeezed, where_words_stand
from simplemem.search.meant import meant
from simplemem.search.query import Query, read_query
from simplemem.search.rank import MODES, Mode, Ranked, rank, with_part
from simplemem.search.reorder import by_reranker
from simplemem.store.core import Core
from simplemem.store.explaining import Asked, Explaining
from simplemem.store.names import path_meant
from simplemem.store.priors import with_priors
from simplemem.store.reranking import Reranking
from simplemem.store.showing import nearest_place
from simplemem.store.why import why_note

MAX_LIMIT = 200
ANYONE = "any"  # an author that everybody is: asked for to have them named
NO_WORD = "The question has no word that could be looked for."


@dataclass(frozen=True, slots=True)
class Ranking:
    """The best notes with their rows, the question's vector, what was missing, and the whole ranking."""

    best: list[Ranked]
    rows: dict[int, Row]
    vector: QueryVector | None
    degraded: str
    every: list[Ranked]


class Recall:
    """Questions to one vault and its index."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._vault = core.vault
        self._index = core.index
        self._settings = core.settings
        self._reranking = Reranking(core)

    def close(self) -> None:
        self._reranking.close()

    def reranker(self) -> tuple[str, str]:
        """The reranker's name, and what is wrong with it if anything is."""
        return self._reranking.name()

    # -- search

    def search(
        self,
        text: str,
        filter_: Filter,
        limit: int,
        mode: str,
        explain: bool,
        why: str = "",
        *,
        rerank: bool = True,
        authors: bool = False,
    ) -> Found:
        """Ranked hits. Without words, the newest of what the filter leaves. `why` names a note to account for."""
        limit = within(limit, 1, MAX_LIMIT, "limit")
        chosen = _mode(mode)
        query = self.read(text)
        narrow = self.narrow(filter_, query)
        if query.asks_nothing():
            nothing = Explaining(self._core, Asked(query, narrow, chosen, limit, None, (), NO_WORD))
            told = nothing.search() if explain else None
            of_note = why_note(self._core, nothing, why, ()) if why else None
            return Found(text, chosen, (), self._core.state(), told, NO_WORD, of_note)
        relaxed = self.relaxed(narrow)
        ranking = self.best(query, relaxed, limit, chosen, rerank=rerank)
        degraded = ranking.degraded
        explained = Explaining(
            self._core, Asked(query, relaxed, chosen, limit, ranking.vector, ranking.every, degraded)
        )
        whys = explained.hits(ranking.best) if explain else {}
        with self._index.snapshot():
            hits, state = self._hits(ranking, query.words, whys), self._core.state()
        if authors or query.author or filter_.author:
            hits = tuple(map(self._with_author, hits))
        told = explained.search() if explain else None
        if told is not None and rerank:
            told |= self._reranking.told(ranking.best)
        of_note = None
        if why:
            of_note = why_note(
                self._core, explained, why, hits, lambda: self.ranked(query, Narrow(), limit, chosen).every
            )
        degraded = " ".join(filter(None, (query.instead, told_of_phrases(narrow, relaxed, found=bool(hits)), degraded)))
        return Found(text, chosen, hits, state, told, degraded, of_note)

    def read(self, text: str) -> Query:
        """A question taken apart, its words in the forms in which this vault may hold them."""
        return meant(read_query(text), self._index)

    def relaxed(self, narrow: Narrow) -> Narrow:
        """The filter without its quoted phrases when no memory holds them: quotation marks around a name in a question
        are not meant to hide every answer."""
        if narrow.phrases and not self._index.ids(narrow):
            return replace(narrow, phrases=())
        return narrow

    def best(self, query: Query, narrow: Narrow, limit: int, mode: Mode, *, rerank: bool = True) -> Ranking:
        """The ranking as it is answered from: of notes as they are now, by the reranker where there is one."""
        reach = self._reranking.reach(limit) if rerank else limit
        for _ in range(2):
            found = self.ranked(query, narrow, reach, mode)
            if not self._core.recheck(found.rows[r.note].path for r in found.best if r.note in found.rows):
                break
        if not rerank:
            return found
        order, why_not = self._reranking.reorder(query, found.best, found.rows, found.vector)
        return replace(found, best=order[:limit], degraded=f"{found.degraded} {why_not}".strip())

    def ranked(self, query: Query, narrow: Narrow, limit: int, mode: Mode) -> Ranking:
        vector, degraded = self.vector(query, mode) if query.words else (None, "")
        if mode == "semantic" and vector is None:
            mode = "text"
            degraded = degraded or self._no_meaning()
        with self._index.snapshot():
            if vector is not None and not self._index.holds_vectors_of(vector.embedder):
                return self.ranked(query, narrow, limit, mode)  # another generation came into use in this moment
            if not query.words:
                newest, _ = self._index.page(narrow, "modified", limit, 0)
                found = [Ranked(row.id, 1.0, 0.0, 0.0, 0.0, {}, None) for row in newest]
                return Ranking(found, {row.id: row for row in newest}, None, "", found)
            ids = None if narrow.is_open() else self._index.ids(narrow)
            ranked = rank(self._index, query, vector, ids, mode, self._settings.search.lexical_weight)
            near_the_cut = _with_equals(ranked, max(limit * 2 + 20, priors.NOTES))
            rows = self._index.rows(r.note for r in near_the_cut)
        kept = [r for r in near_the_cut if r.note in rows]

        def place(r: Ranked) -> tuple[float, str]:
            return -round(r.score, 6), rows[r.note].path

        kept.sort(key=place)
        every = [*kept, *ranked[len(near_the_cut) :]]
        if mode == "hybrid" and vector is not None and is_question(query.text):
            covering = self._covering(query, vector, kept[: coverage.NOTES], rows)
            every = with_part(every, "covered", covering, coverage.WEIGHT)
            kept = sorted(every[: len(kept)], key=place)
            every = [*kept, *every[len(kept) :]]
        every = with_priors(query.text, every, kept[: priors.NOTES], rows)
        kept = sorted(every[: len(kept)], key=place)
        every = [*kept, *every[len(kept) :]]
        return Ranking(kept[:limit], rows, vector, degraded, every)

    def _covering(
        self, query: Query, vector: QueryVector, ranked: Sequence[Ranked], rows: dict[int, Row]
    ) -> list[float]:
        """How much of a question one passage of each note covers; nothing where the embedder knows no single words."""
        embedder = self._core.embedding.called(vector.embedder)
        if not isinstance(embedder, WordVectors):
            return []
        texts = [self._passage_texts(r, rows[r.note].path) for r in ranked]
        return coverage.coverage(query.words, texts, embedder)

    def _passage_texts(self, found: Ranked, path: str) -> list[str]:
        """The passages of a note; of a long one those around its best block."""
        places = self._index.passages(found.note)
        first = 0
        if len(places) > coverage.PASSAGES and found.place:
            best = self._index.places([found.place]).get(found.place)
            before = sum(place.start <= best.start for place in places) if best is not None else 0
            first = max(0, before - coverage.PASSAGES // 2)
        text = self.text(path) or ""
        return [text[place.start : place.stop] for place in places[first : first + coverage.PASSAGES]]

    def vector(self, query: Query, mode: Mode) -> tuple[QueryVector | None, str]:
        """The question as a vector, and what lessens the search for its meaning."""
        return (None, "") if mode == "text" else self._core.embedding.question(query.text)

    def _no_meaning(self) -> str:
        why = (
            "the setting embed.provider is none" if self._settings.embed.provider == "none" else "there are no vectors"
        )
        return f"Searched by words only: {why}."

    def _hits(self, ranking: Ranking, words: Sequence[str], whys: Mapping[int, dict[str, Any]]) -> tuple[Hit, ...]:
        hits = []
        places = self._index.places({r.place for r in ranking.best if r.place})
        for found in ranking.best:
            row = ranking.rows[found.note]
            text = self.text(row.path)
            if text is None:
                continue
            place = places.get(found.place) or nearest_place(self._index, found.note, ranking.vector)
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
                    why=whys[found.note] | by_reranker(found) if found.note in whys else None,
                )
            )
        return tuple(hits)

    def _with_author(self, hit: Hit) -> Hit:
        author = self._core.changes.last_author(hit.sha256)
        return replace(hit, authors=(author.shown,), written=local(author.when))

    def text(self, path: str) -> str | None:
        """The note's text as it is now; None when it went in this moment."""
        try:
            return self._vault.read(path).data.decode("utf-8", "replace")
        except Unavailable:
            raise  # nothing can be read just now, which is not the same as nothing found
        except SimplememError:
            return None

    # -- filters

    def narrow(self, given: Filter, query: Query | None = None) -> Narrow:
        now = datetime.now()  # noqa: DTZ005  (local, as notes are)
        author = (query.author if query else "") or well_formed(given.author).strip()
        asked = Narrow(
            tags={well_formed(key): well_formed(value) for key, value in given.tags.items()},
            require_all=given.require_all,
            all_tags=dict(query.tags) if query else {},
            type=(query.type if query else "") or well_formed(given.type),
            prefix=_prefix((query.prefix if query else "") or well_formed(given.prefix)),
            since=read_when(given.since, now) if given.since else "",
            until=read_when(given.until, now, end=True) if given.until else "",
            link_to=path_meant(self._core, given.link_to) if given.link_to else "",
            linked_by=path_meant(self._core, given.linked_by) if given.linked_by else "",
            phrases=query.phrases if query else (),
            without=query.without if query else (),
            without_forms=query.without_forms if query else (),
            only=given.among,
            author="" if author.casefold() == ANYONE else author,
        )
        if asked.author:
            self._core.changes.newest()  # the filter stands on what the log has
        return asked

    # -- lists

    def page(self, filter_: Filter, sort: str, limit: int, cursor: str | None) -> Page:
        """Memories that pass a filter, a page at a time."""
        limit = within(limit, 1, 1000, "limit")
        if sort not in SORTS:
            raise Invalid(f"cannot sort by {sort!r}", hint=f"Sort by one of: {', '.join(SORTS)}.")
        offset = _offset(cursor, sort)
        narrow = self.narrow(filter_)
        if self._core.recheck(row.path for row in self._index.page(narrow, sort, limit, offset)[0]):
            narrow = self.narrow(filter_)
        with self._index.snapshot():
            rows, total = self._index.page(narrow, sort, limit, offset)
            items = tuple(
                Listed(name_of(row.path), row.path, row.title, row.description, row.type or "memory",
                       self._index.tags_of(row.id), row.created or None, row.modified, row.size, row.sha256, row.problem)
                for row in rows
            )  # fmt: skip
        after = offset + len(items)
        return Page(items, _cursor(after, sort) if after < total else None, total, self._core.state())


def _with_equals(ranked: Sequence[Ranked], count: int) -> list[Ranked]:
    """The first of a ranking and what scores as the last of them: which of equals come first is for their names to say,
    not for the order in which they were indexed."""
    last = count
    while last < len(ranked) and round(ranked[last].score, 6) == round(ranked[count - 1].score, 6):
        last += 1
    return list(ranked[:last])


def told_of_phrases(narrow: Narrow, relaxed: Narrow, *, found: bool) -> str:
    """What is said when the quoted phrases of a question were let go, and whether anything was found without."""
    if relaxed is narrow:
        return ""
    said = " and ".join(f'"{phrase}"' for phrase in narrow.phrases)
    return f"No memory holds {said} word for word{'; these are found by its words' if found else ''}."


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
