"""What the store finds: searches, lists, and what leads to a memory. Reads the index and the notes, writes nothing."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from simplemem.errors import Invalid, SimplememError, Unavailable
from simplemem.index.changes import local
from simplemem.index.door import SORTS, Narrow, NoteId, QueryVector, Question, Shown, Standing
from simplemem.memory import Backlink, Filter, Found, Hit, Listed, Page
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
    Ranked,
    Signal,
    WordVectors,
    beside,
    coverage,
    is_question,
    rank,
    signals_of,
)  # fmt: skip
from simplemem.store.core import Core

if TYPE_CHECKING:
    from simplemem.index.door import StoredLink
    from simplemem.store.reranking import Reranking

MAX_LIMIT = 200
ANYONE = "any"  # an author that everybody is: asked for to have them named
_SEMANTIC_FLOOR = 0.35  # of cosine; below it neighbours are chance
_DATED = re.compile(  # what any date has: most questions need no closer look
    r"\d|day|week|month|year|january|february|march|april|may|june|july|august|(?:septem|octo|novem|decem)ber",
    re.IGNORECASE,
)


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
    signals: Sequence[Signal]
    question: Question
    degraded: str
    reranked: Mapping[NoteId, Mapping[str, Any]] = field(default_factory=dict)
    reranker: Mapping[str, Any] = field(default_factory=dict)  # its name, and whether it is remote

    @property
    def degraded_by(self) -> str:
        """What lessened it, in sentences."""
        phrases = ""
        if self.asked.narrow.phrases and not self.question.narrow.phrases:
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

    def reranking(self) -> Reranking | None:
        """The reranker, where the settings name one."""
        if self._made_reranking is None and self._settings.rerank.provider != "none":
            from simplemem.store.reranking import Reranking

            self._made_reranking = Reranking(self._core)
        return self._made_reranking

    # -- search

    def search(
        self, text: str, filter_: Filter, limit: int, mode: str, *, explain: bool, why: str, rerank: bool, authors: bool
    ) -> Found:
        """Ranked hits. Without words, the newest of what the filter leaves. `why` names a note to account for."""
        limit = within(limit, 1, MAX_LIMIT, "limit")
        chosen = next((known for known in MODES if known == mode), None)
        if chosen is None:
            raise Invalid(f"there is no search mode {mode!r}", hint=f"Modes are: {', '.join(MODES)}.")
        asked = self.ask(text, filter_)
        ranking = self.ranking(asked, limit, chosen, rerank=rerank)
        hits = [
            hit for found in ranking.best if (hit := self._hit(ranking.shown[found.note], found, asked.query.words))
        ]
        if authors or asked.narrow.author or ANYONE in (asked.query.author, filter_.author):
            hits = [self._with_author(hit) for hit in hits]
        told = of_note = None
        if explain or why:
            from simplemem.store.explain import Explained

            explained = Explained(self._core, ranking, limit)
            if explain:
                told, hits = explained.search(), explained.hits(hits)
            of_note = explained.note(why, hits) if why else None
        state = self._core.state(ranking.asked.standing)
        return Found(text, chosen, tuple(hits), state, told, ranking.degraded_by, of_note)

    def ask(self, text: str, filter_: Filter) -> Asked:
        """A question taken apart, its words in the forms in which this vault may hold them."""
        query, standing = with_forms(read_query(text), self._index)
        return Asked(query, standing, self.narrow(filter_, query))

    def ranking(self, asked: Asked, limit: int, mode: Mode, *, rerank: bool = True) -> Ranking:
        """The ranking as it is answered from: of notes as they are now, by the reranker where there is one."""
        reranking = self.reranking() if rerank else None
        reach = limit if reranking is None else reranking.reach(limit)
        standings = [asked.standing]

        def ranked() -> Ranking:
            now = standings.pop() if standings else self._index.standing()
            return self._ranked(replace(asked, standing=now), reach, mode)

        ranking = self._core.fresh(ranked, lambda found: [found.shown[each.note].row for each in found.best])
        return ranking if reranking is None else reranking.reordered(ranking, limit)

    def _ranked(self, asked: Asked, limit: int, mode: Mode) -> Ranking:
        query, now = asked.query, datetime.now()  # noqa: DTZ005  (local, as notes are)
        if query.asks_nothing():
            said = "The question has no word that could be looked for."
            return Ranking(asked, "text", (), {}, (), (), Question(narrow=asked.narrow), said)
        if not query.words:
            return self._newest(asked, limit)
        vector, degraded = self.vector(query, mode, asked.standing)
        if vector is None and mode == "semantic" and not degraded:
            is_off = self._settings.embed.provider == "none"
            why = "the setting embed.provider is none" if is_off else "there are no vectors"
            degraded = f"Searched by words only: {why}."
        mode = "text" if vector is None else mode
        question = Question(vector=vector, narrow=asked.narrow)
        if mode != "semantic":
            question = replace(question, terms=query.terms(), pairs=query.side_by_side())
        answer = self._index.ask(question)
        if vector is not None and answer.near is None:  # another generation came into use in this moment
            return self._ranked(replace(asked, standing=self._index.standing()), limit, mode)
        if asked.narrow.phrases and not answer.passed:
            # Quotation marks around a name in a question are not meant to hide every answer.
            question = replace(question, narrow=replace(asked.narrow, phrases=()))
            answer = self._index.ask(question)
        signals = signals_of(answer, mode, self._settings.search.lexical_weight)
        every = rank(answer, signals)
        spans = dates.spans_in(query.text, now) if _DATED.search(query.text) else []
        covers = mode == "hybrid" and is_question(query.text)
        reach = max(limit, COVERED_NOTES if covers else 0, dates.DATED_NOTES if spans else 0)
        shown = self._index.shown({found.note: found.place for found in every[:reach]}, question)
        there = [found for found in every[:reach] if found.note in shown]
        if covers and vector is not None:
            signals = beside(signals, "covered", COVERED_WEIGHT, self._covered(query, vector, there, shown))
        if spans:
            dated = [found.note for found in there[: dates.DATED_NOTES] if dates.is_of(shown[found.note].row, spans)]
            signals = beside(signals, "dated", dates.DATED_WEIGHT, dict.fromkeys(dated, 1.0))
        if len(signals) > 3:
            every = rank(answer, signals)
            there = [found for found in every if found.note in shown]
        return Ranking(asked, mode, there[:limit], shown, every, signals, question, degraded)

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

    def _hit(self, note: Shown, found: Ranked, words: Sequence[str]) -> Hit | None:
        row, text, limit = note.row, self.text(note.row.path), self._settings.search.snippet_characters
        if text is None:
            return None
        around, place = where_words_stand(text, note.passages, note.best, words, limit)
        stands = place or around
        return Hit(
            name=name_of(row.path),
            title=row.title,
            description=row.description,
            type=row.type or "memory",
            score=round(found.score, 4),
            snippet=(snippet(text, around, place, limit) if around is not None else "") or squeezed(row.description),
            heading=" > ".join(stands.headings) if stands is not None else "",
            line=stands.line if stands is not None else 1,
            tags=note.tags,
            created=row.created or None,
            modified=row.modified,
            sha256=row.sha256,
        )

    def _with_author(self, hit: Hit) -> Hit:
        author = self._core.changes.last_author(hit.sha256)
        return replace(hit, authors=(author.name or author.kind,), written=local(author.when))

    def text(self, path: str) -> str | None:
        """The note's text as it is now; None when it went in this moment."""
        try:
            return self._core.vault.read(path).data.decode("utf-8", "replace")
        except Unavailable:
            raise  # nothing can be read just now, which is not the same as nothing found
        except SimplememError:
            return None

    def narrow(self, given: Filter, query: Query | None = None) -> Narrow:
        """A filter with its names and dates resolved, and what a question narrows by."""
        now, meant = datetime.now(), self._core.path_meant  # noqa: DTZ005  (local, as notes are)
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
            link_to=meant(given.link_to) if given.link_to else "",
            linked_by=meant(given.linked_by) if given.linked_by else "",
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
        after = _offset(cursor, sort)
        listing = self._core.fresh(
            lambda: self._index.page(self.narrow(filter_), sort, limit, after), lambda found: found.rows
        )
        items = tuple(
            Listed(
                name_of(row.path), row.path, row.title, row.description, row.type or "memory",
                listing.tags.get(row.id, ()), row.created or None, row.modified, row.size, row.sha256, row.problem,
            )
            for row in listing.rows
        )  # fmt: skip
        after += len(items)
        more = _cursor(after, sort) if after < listing.total else None
        return Page(items, more, listing.total, self._core.state())

    # -- what leads to a memory

    def backlinks(self, path: str, query: str | None, limit: int, kinds: Sequence[str]) -> tuple[Backlink, ...]:
        """Memories that lead to this one: links first, then those nearest in meaning; by a query when one is given."""
        limit = within(limit, 1, MAX_LIMIT, "limit")
        unknown = [kind for kind in kinds if kind not in ("link", "semantic")]
        if unknown:
            raise Invalid(f"unknown kind of backlink: {unknown[0]!r}", hint="Kinds are: link, semantic.")

        def ask() -> tuple[list[StoredLink], dict[NoteId, float], Mapping[NoteId, Shown]]:
            links = self._index.links(path)
            wants_more = "semantic" in kinds and (bool(query) or "link" not in kinds or len(links) < limit)
            near = self._near(path, links, 3 * limit) if wants_more else {}
            links = links if "link" in kinds else []
            wanted = dict.fromkeys((*(link.source_id for link in links), *near), 0)
            return links, near, self._index.shown(wanted, Question(like=path)) if wanted else {}

        links, near, shown = self._core.fresh(ask, lambda found: [each.row for each in found[2].values()])
        items = self._linking(links, shown)
        items += self._alike(near, shown, 3 * limit if query else limit - len(items))
        return tuple((self._by_query(items, query) if query else items)[:limit])

    def _linking(self, links: Sequence[StoredLink], shown: Mapping[NoteId, Shown]) -> list[Backlink]:
        found: list[Backlink] = []
        texts: dict[str, list[str]] = {}
        for link in links:
            if link.source not in texts:
                texts[link.source] = (self.text(link.source) or "").replace("\r\n", "\n").split("\n")
            lines, source, name = texts[link.source], shown.get(link.source_id), name_of(link.source)
            line = squeezed(lines[link.line - 1])[:300] if 0 < link.line <= len(lines) else ""
            title = source.row.title if source is not None else name
            found.append(Backlink(name, title, "link", link.form, line, link.line, 1.0))
        return found

    def _near(self, path: str, links: Sequence[StoredLink], limit: int) -> dict[NoteId, float]:
        """The notes nearest to the middle of a note's passages, without those that link to it."""
        answer = self._index.ask(Question(like=path, nearest=4 * limit))
        near = {note: max(each.passage, each.score) for note, each in (answer.near or {}).items()}
        others = [note for note in near if near[note] >= _SEMANTIC_FLOOR and answer.paths[note] != path]
        best = sorted(others, key=lambda note: (-round(near[note], 6), answer.paths[note]))[:limit]
        linking = {link.source for link in links}
        return {note: near[note] for note in best if answer.paths[note] not in linking}

    def _alike(self, near: Mapping[NoteId, float], shown: Mapping[NoteId, Shown], limit: int) -> list[Backlink]:
        found: list[Backlink] = []
        for note, score in near.items():
            text = self.text(shown[note].row.path) if note in shown and len(found) < limit else None
            if text is not None:
                row, place = shown[note].row, shown[note].best
                said = snippet(text, place, None, 200) if place is not None else row.description
                line = place.line if place is not None else 1
                found.append(Backlink(name_of(row.path), row.title, "semantic", "", said, line, round(score, 4)))
        return found

    def _by_query(self, items: Sequence[Backlink], text: str) -> list[Backlink]:
        """Candidates in the order in which a search for the query would give them."""
        asked = self.ask(text, Filter())
        query, scores = asked.query, dict[str, float]()
        if query.words and items:
            vector, _ = self.vector(query, "hybrid", asked.standing)
            narrow = Narrow(only=tuple(f"{item.name}.md" for item in items), hidden=True)
            answer = self._index.ask(Question(query.terms(), query.side_by_side(), vector, narrow=narrow))
            scores = {name_of(found.path): found.score for found in rank(answer, signals_of(answer))}
        scored = [replace(item, score=round(scores.get(item.name, 0.0), 4)) for item in items]
        return sorted(scored, key=lambda item: -scores.get(item.name, 0.0))


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
