"""What the store finds: searches and lists. Reads the index and the notes, writes nothing."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from simplemem.errors import Invalid, SimplememError, Unavailable
from simplemem.index.door import SORTS, Narrow, NoteId, QueryVector, Question, Row, Shown, Standing
from simplemem.index.notes import Stat
from simplemem.memory import Filter, Found, Hit, Listed, Page
from simplemem.note.authors import local
from simplemem.note.names import name_of
from simplemem.note.words import well_formed
from simplemem.search import dates
from simplemem.search.excerpt import snippet, squeezed, where_words_stand
from simplemem.search.query import Query, read_query, with_forms
from simplemem.search.rank import (
    COVERED_NOTES,
    COVERED_PASSAGES,
    COVERED_WEIGHT,
    MODES,
    Mode,
    Part,
    Ranked,
    WordVectors,
    beside,
    coverage,
    is_question,
    parts_of,
    rank,
)
from simplemem.store.core import Core

if TYPE_CHECKING:
    from simplemem.store.reranking import Reranking

MAX_LIMIT = 200
ANYONE = "any"  # an author that everybody is: asked for to have them named
NO_WORD = "The question has no word that could be looked for."


@dataclass(frozen=True, slots=True)
class Asked:
    """A question as it is asked of the index, how far that is, and the filter."""

    query: Query
    standing: Standing
    narrow: Narrow


@dataclass(frozen=True, slots=True)
class Ranking:
    """The best notes with what is shown of them, and the whole ranking they are the best of. `mode` is what it came to:
    without a vector there are only words. `reranked` has what a reranker said of some: its score, and the place before."""

    asked: Asked
    mode: Mode
    best: Sequence[Ranked]
    shown: Mapping[NoteId, Shown]
    every: Sequence[Ranked]
    parts: Sequence[Part]
    question: Question
    degraded: str
    reranked: Mapping[NoteId, Mapping[str, Any]] = field(default_factory=dict)
    reranker: Mapping[str, Any] = field(default_factory=dict)  # its name, and whether it is remote

    @property
    def narrow(self) -> Narrow:
        """The filter it was made with: without quoted phrases that no memory holds."""
        return self.question.narrow

    @property
    def degraded_by(self) -> str:
        """What lessened it, in sentences."""
        phrases = ""
        if self.asked.narrow.phrases and not self.narrow.phrases:
            said = " and ".join(f'"{phrase}"' for phrase in self.asked.narrow.phrases)
            phrases = f"No memory holds {said} word for word{'; these are found by its words' if self.best else ''}."
        return " ".join(filter(None, (self.asked.query.instead, phrases, self.degraded)))


class Recall:
    """Questions to one vault and its index."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._index = core.index
        self._settings = core.settings
        self._made_reranking: Reranking | None = None

    def close(self) -> None:
        if self._made_reranking is not None:
            self._made_reranking.close()

    def reranker(self) -> tuple[str, str]:
        """The reranker's name, and what is wrong with it if anything is."""
        reranking = self._reranking()
        return reranking.name() if reranking is not None else ("none", "")

    def _reranking(self) -> Reranking | None:
        """The reranker, where the settings name one."""
        if self._made_reranking is None and self._settings.rerank.provider != "none":
            from simplemem.store.reranking import Reranking

            self._made_reranking = Reranking(self._core)
        return self._made_reranking

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
        limit, chosen = within(limit, 1, MAX_LIMIT, "limit"), _mode(mode)
        asked = self.ask(text, filter_)
        ranking = self.ranking(asked, limit, chosen, rerank=rerank)
        hits = self._hits(ranking)
        degraded = ranking.degraded_by
        if authors or asked.narrow.author or ANYONE in (asked.query.author, filter_.author):
            hits = [self._with_author(hit) for hit in hits]
        told = of_note = None
        if explain or why:
            from simplemem.store.why import Explained

            explained = Explained(self._core, ranking, limit, self.ranking)
            if explain:
                told, hits = explained.search(), explained.hits(hits)
            of_note = explained.note(why, hits) if why else None
        state = self._core.state(ranking.asked.standing)
        return Found(text, chosen, tuple(hits), state, told, degraded, of_note)

    def ask(self, text: str, filter_: Filter) -> Asked:
        """A question taken apart, its words in the forms in which this vault may hold them."""
        query, standing = with_forms(read_query(text), self._index)
        return Asked(query, standing, self.narrow(filter_, query))

    def ranking(self, asked: Asked, limit: int, mode: Mode, *, rerank: bool = True) -> Ranking:
        """The ranking as it is answered from: of notes as they are now, by the reranker where there is one."""
        reranking = self._reranking() if rerank else None
        reach = limit if reranking is None else reranking.reach(limit)
        for _ in range(2):
            ranking = self._ranked(asked, reach, mode)
            if not self.recheck(ranking.shown[found.note].row for found in ranking.best):
                break
            asked = replace(asked, standing=self._index.vocabulary(())[1])
        return ranking if reranking is None else reranking.reordered(ranking, limit)

    def recheck(self, rows: Iterable[Row]) -> bool:
        """Look again at notes about to be returned; True when one of them had changed."""
        return self._core.recheck_known({row.path: Stat(row.size, row.mtime_ns, row.ctime_ns) for row in rows})

    def _ranked(self, asked: Asked, limit: int, mode: Mode) -> Ranking:
        query = asked.query
        if query.asks_nothing():
            return Ranking(asked, "text", (), {}, (), (), Question(narrow=asked.narrow), NO_WORD)
        if not query.words:
            return self._newest(asked, limit)
        vector, degraded = self.vector(query, mode, asked.standing)
        if vector is None and mode == "semantic":
            degraded = degraded or self._no_meaning()
        mode = "text" if vector is None else mode
        question = Question(vector=vector, narrow=asked.narrow)
        if mode != "semantic":
            question = replace(question, terms=query.terms(), pairs=query.side_by_side())
        answer = self._index.ask(question)
        if vector is not None and answer.near is None:  # another generation came into use in this moment
            return self._ranked(replace(asked, standing=self._index.vocabulary(())[1]), limit, mode)
        if asked.narrow.phrases and not answer.passed:
            # Quotation marks around a name in a question are not meant to hide every answer.
            question = replace(question, narrow=replace(asked.narrow, phrases=()))
            answer = self._index.ask(question)
        parts = parts_of(answer, mode, self._settings.search.lexical_weight)
        first = rank(answer, parts)
        spans = dates.spans_in(query.text, datetime.now())  # noqa: DTZ005  (local, as notes are)
        covers = mode == "hybrid" and vector is not None and is_question(query.text)
        reach = max(limit, COVERED_NOTES if covers else 0, dates.DATED_NOTES if spans else 0)
        shown = self._index.shown({found.note: found.place for found in first[:reach]}, question)
        there = [found for found in first[:reach] if found.note in shown]
        every = first
        if covers and vector is not None:
            parts = beside(parts, "covered", COVERED_WEIGHT, self._covered(query, vector, there, shown))
        if spans:
            dated = [found.note for found in there[: dates.DATED_NOTES] if dates.is_of(shown[found.note].row, spans)]
            parts = beside(parts, "dated", dates.DATED_WEIGHT, dict.fromkeys(dated, 1.0))
        if len(parts) > 3:
            every = rank(answer, parts)
            there = [found for found in every if found.note in shown]
        return Ranking(asked, mode, there[:limit], shown, every, parts, question, degraded)

    def _newest(self, asked: Asked, limit: int) -> Ranking:
        question = Question(narrow=asked.narrow)
        listing = self._index.page(question.narrow, "modified", limit, 0)
        if question.narrow.phrases and not listing.total:
            question = Question(narrow=replace(asked.narrow, phrases=()))
            listing = self._index.page(question.narrow, "modified", limit, 0)
        shown = self._index.shown({row.id: 0 for row in listing.rows}, question)
        found = [Ranked(row.id, row.path, 1.0) for row in listing.rows if row.id in shown]
        return Ranking(asked, "text", found, shown, found, (), question, "")

    def _covered(
        self, query: Query, vector: QueryVector, found: Sequence[Ranked], shown: Mapping[NoteId, Shown]
    ) -> dict[NoteId, float]:
        """How much of a question one passage of each note covers; nothing where the embedder knows no single words."""
        embedder = self._core.embedding.called(vector.embedder)
        if not isinstance(embedder, WordVectors):
            return {}
        notes = [each.note for each in found[:COVERED_NOTES]]
        texts = [self._passage_texts(shown[note]) for note in notes]
        return dict(zip(notes, coverage(query.words, texts, embedder), strict=True))

    def _passage_texts(self, note: Shown) -> list[str]:
        """The passages of a note; of a long one those around its best block."""
        first, passages = 0, note.passages
        if len(passages) > COVERED_PASSAGES and note.best is not None:
            before = sum(passage.start <= note.best.start for passage in passages)
            first = max(0, before - COVERED_PASSAGES // 2)
        text = self.text(note.row.path) or ""
        return [text[passage.start : passage.stop] for passage in passages[first : first + COVERED_PASSAGES]]

    def vector(self, query: Query, mode: Mode, standing: Standing) -> tuple[QueryVector | None, str]:
        """The question as a vector, and what lessens the search for its meaning."""
        return (None, "") if mode == "text" else self._core.embedding.question(query.text, standing)

    def _no_meaning(self) -> str:
        is_off = self._settings.embed.provider == "none"
        return f"Searched by words only: {'the setting embed.provider is none' if is_off else 'there are no vectors'}."

    def _hits(self, ranking: Ranking) -> list[Hit]:
        hits = []
        limit, words = self._settings.search.snippet_characters, ranking.asked.query.words
        for found in ranking.best:
            note = ranking.shown[found.note]
            row, text = note.row, self.text(note.row.path)
            if text is None:
                continue
            around, place = where_words_stand(text, note.passages, note.best, words, limit)
            shown = snippet(text, around, place, limit) if around is not None else ""
            stands = place or around
            hits.append(
                Hit(
                    name=name_of(row.path),
                    title=row.title,
                    description=row.description,
                    type=row.type or "memory",
                    score=round(found.score, 4),
                    snippet=shown or squeezed(row.description),
                    heading=" > ".join(stands.headings) if stands is not None else "",
                    line=stands.line if stands is not None else 1,
                    tags=note.tags,
                    created=row.created or None,
                    modified=row.modified,
                    sha256=row.sha256,
                )
            )
        return hits

    def _with_author(self, hit: Hit) -> Hit:
        author = self._core.changes.last_author(hit.sha256)
        return replace(hit, authors=(author.shown,), written=local(author.when))

    def text(self, path: str) -> str | None:
        """The note's text as it is now; None when it went in this moment."""
        try:
            return self._core.vault.read(path).data.decode("utf-8", "replace")
        except Unavailable:
            raise  # nothing can be read just now, which is not the same as nothing found
        except SimplememError:
            return None

    # -- filters

    def narrow(self, given: Filter, query: Query | None = None) -> Narrow:
        now = datetime.now()  # noqa: DTZ005  (local, as notes are)
        author = (query.author if query else "") or well_formed(given.author).strip()
        if author:
            self._core.changes.newest()  # the filter stands on what the log has
        return Narrow(
            tags={well_formed(key): well_formed(value) for key, value in given.tags.items()},
            require_all=given.require_all,
            all_tags=dict(query.tags) if query else {},
            properties={well_formed(key): well_formed(value) for key, value in given.properties.items()},
            type=(query.type if query else "") or well_formed(given.type),
            prefix=((query.prefix if query else "") or well_formed(given.prefix)).strip().lstrip("/"),
            since=dates.read_when(given.since, now) if given.since else "",
            until=dates.read_when(given.until, now, end=True) if given.until else "",
            link_to=self._core.path_meant(given.link_to) if given.link_to else "",
            linked_by=self._core.path_meant(given.linked_by) if given.linked_by else "",
            phrases=query.phrases if query else (),
            without=query.without if query else (),
            without_forms=query.without_forms if query else (),
            author="" if author.casefold() == ANYONE else author,
        )

    # -- lists

    def page(self, filter_: Filter, sort: str, limit: int, cursor: str | None) -> Page:
        """Memories that pass a filter, a page at a time."""
        limit = within(limit, 1, 1000, "limit")
        if sort not in SORTS:
            raise Invalid(f"cannot sort by {sort!r}", hint=f"Sort by one of: {', '.join(SORTS)}.")
        after, narrow = _offset(cursor, sort), self.narrow(filter_)
        listing = self._index.page(narrow, sort, limit, after)
        if self.recheck(listing.rows):
            listing = self._index.page(self.narrow(filter_), sort, limit, after)
        items = tuple(_listed(row, listing.tags.get(row.id, ())) for row in listing.rows)
        after += len(items)
        more = _cursor(after, sort) if after < listing.total else None
        return Page(items, more, listing.total, self._core.state())


def _listed(row: Row, tags: tuple[str, ...]) -> Listed:
    return Listed(
        name_of(row.path), row.path, row.title, row.description, row.type or "memory", tags, row.created or None,
        row.modified, row.size, row.sha256, row.problem,
    )  # fmt: skip


def _mode(mode: str) -> Mode:
    for known in MODES:
        if mode == known:
            return known
    raise Invalid(f"there is no search mode {mode!r}", hint=f"Modes are: {', '.join(MODES)}.")


def within(value: int, least: int, most: int, what: str) -> int:
    if value < least:
        raise Invalid(f"{what} must be at least {least}, not {value}")
    return min(value, most)


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
