"""Search: from a query to ranked notes, and from these to hits.

The steps of `NoteRanker`, in order: read the query, resolve the filter, ask the index, rank by the
signals, compare the best notes with the question, and let a reranker order them. `Search` then
quotes the best notes. docs/search.md describes the ranking for users.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from simplemem.errors import Invalid
from simplemem.index.door import (
    Matches,
    Narrow,
    NoteId,
    QueryVector,
    Question,
    Row,
    Shown,
    Standing,
)
from simplemem.index.sidecar import Sidecar
from simplemem.models import Filter, Found, Hit
from simplemem.note.date_phrases import days_in
from simplemem.note.dates import local_now, sortable_time
from simplemem.note.names import name_of
from simplemem.note.plain_text import plain_text
from simplemem.search import judgement, rank
from simplemem.search.conditions import ConditionChecker
from simplemem.search.dates import DATED_NOTES, DATED_WEIGHT, belongs_to_day
from simplemem.search.excerpt import choose_excerpt, quoted_heading
from simplemem.search.filters import ANY_AUTHOR, FilterResolver
from simplemem.search.forms import with_forms
from simplemem.search.needs import Authors, Embeddings, IndexKeeper, IndexMonitor, NoteReader
from simplemem.search.quality import HitQuality, passages_of
from simplemem.search.query import Query, read_query
from simplemem.search.rank import Coverage, Mode, Ranked, Signal
from simplemem.search.ranking import Ranking

# Hits of one search, and backlinks of one note.
MAX_LIMIT = 200

_NO_MATCHES = Matches((), None, (), None, {})

# Marks around a query that is a title in quotation marks.
_TITLE_EDGES = " \"'“”„«»"


class Reranker(Protocol):
    """Orders the best notes of a ranking again."""

    @property
    def max_candidates(self) -> int:
        """How many of the best notes it reads."""

    def rerank(self, ranking: Ranking, limit: int) -> Ranking:
        """Return a ranking with at most `limit` hits, in the order of the reranker.

        If it fails, the order stays and `degraded` says why. Never raises.
        """


@dataclass(frozen=True, slots=True)
class _Candidates:
    """What the index found for a query, and how it was asked."""

    question: Question
    matches: Matches
    mode: Mode
    standing: Standing
    degraded: str


@dataclass(frozen=True, slots=True)
class _Order:
    """An order of notes: with details of those that may be shown, and the signals it is based on."""

    ranked: Sequence[Ranked] = ()
    details: Mapping[NoteId, Shown] = field(default_factory=dict)
    signals: Sequence[Signal] = ()


class NoteRanker:
    """Ranks the notes of one vault for a query. Guards no state; any thread may use it."""

    def __init__(
        self,
        index: Sidecar,
        *,
        keeper: IndexKeeper,
        notes: NoteReader,
        embeddings: Embeddings,
        filters: FilterResolver,
        conditions: ConditionChecker,
        reranker: Reranker | None,
        lexical_weight: float,
    ) -> None:
        self._index = index
        self._keeper = keeper
        self._notes = notes
        self._embeddings = embeddings
        self._filters = filters
        self._conditions = conditions
        self._reranker = reranker
        self._lexical_weight = lexical_weight

    def rank(
        self,
        text: str,
        filter: Filter | None,
        limit: int,
        *,
        mode: Mode = "hybrid",
        rerank: bool = True,
    ) -> Ranking:
        """Rank the notes that pass a filter, as they are now; without words, the newest first.

        Raises Invalid, NotFound or Ambiguous for a filter that cannot be resolved.
        """
        query, standing = with_forms(read_query(text), self._index.vocabulary)
        if filter is None and not query.has_filters():
            resolved = self._filters.default
        else:
            resolved = self._filters.resolve(filter or Filter(), query)

        ranking = self._rank(query, resolved, standing, limit, mode, rerank=rerank)
        if not ranking.hits:
            unmet = self._conditions.unmet(resolved)
            ranking = replace(ranking, degraded=f"{ranking.degraded} {unmet}".strip())
        return ranking

    def rank_among(
        self, text: str, paths: Sequence[str], limit: int, *, rerank: bool = True
    ) -> Ranking:
        """Rank some notes, those that are hidden from search too. Filters in the text count not."""
        query, standing = with_forms(read_query(text), self._index.vocabulary)
        filter = Narrow(only=tuple(paths), hidden=True)
        return self._rank(query, filter, standing, limit, "hybrid", rerank=rerank)

    def _rank(
        self,
        query: Query,
        filter: Narrow,
        standing: Standing,
        limit: int,
        mode: Mode,
        *,
        rerank: bool,
    ) -> Ranking:
        """Rank notes as they are now, and let the reranker order the best ones."""
        reranker = self._reranker if rerank else None
        max_hits = limit
        if reranker is not None:
            max_hits = max(limit, reranker.max_candidates)
        standings = [standing]

        def rank_once() -> Ranking:
            # The second time, notes have changed since the index said how far it is.
            current = standings.pop() if standings else self._index.standing()
            return self._rank_once(query, filter, current, max_hits, mode)

        ranking = self._keeper.fresh(rank_once, _rows_of_hits)
        if reranker is None:
            return ranking
        return reranker.rerank(ranking, limit)

    def _rank_once(
        self, query: Query, filter: Narrow, standing: Standing, limit: int, mode: Mode
    ) -> Ranking:
        """Rank notes as the index has them."""
        if query.words:
            candidates = self._ask(query, filter, standing, mode)
            order = self._order(query, candidates, limit)
        elif query.asks_nothing():
            candidates = _no_candidates(filter, standing)
            candidates = replace(candidates, degraded="The query contains no words to search for.")
            order = _Order()
        else:
            candidates = _no_candidates(filter, standing)
            order = self._newest_first(candidates.question, limit)

        shown = [note for note in order.ranked if note.note in order.details]
        return Ranking(
            query=query,
            filter=filter,
            standing=candidates.standing,
            mode=candidates.mode,
            question=candidates.question,
            matches=candidates.matches,
            signals=order.signals,
            ranked=order.ranked,
            hits=shown[:limit],
            details=order.details,
            degraded=candidates.degraded,
        )

    def _newest_first(self, question: Question, limit: int) -> _Order:
        """Order the notes that pass the filter by their last change."""
        rows = self._index.page(question.narrow, "modified", limit).rows
        details = self._index.shown({row.id: 0 for row in rows}, question, repeated=True)
        ranked = [Ranked(row.id, row.path, 1.0) for row in rows if row.id in details]
        return _Order(ranked, details)

    def _ask(self, query: Query, filter: Narrow, standing: Standing, mode: Mode) -> _Candidates:
        """Ask the index for the notes that the words and the vector of a query lead to."""
        while True:
            vector, degraded = self._vector_of(query, standing, mode)
            used_mode: Mode = "text" if vector is None else mode
            question = _question_of(query, filter, vector, standing, used_mode)
            matches = self._index.ask(question)
            has_lost_vectors = vector is not None and matches.near is None
            if not has_lost_vectors:
                break
            # Another embedder has begun at this moment.
            standing = self._index.standing()

        if filter.phrases and not matches.passed:
            # Quotation marks must not hide every answer.
            question = replace(question, narrow=replace(filter, phrases=()))
            matches = self._index.ask(question)
        return _Candidates(question, matches, used_mode, standing, degraded)

    def _vector_of(
        self, query: Query, standing: Standing, mode: Mode
    ) -> tuple[QueryVector | None, str]:
        """Return the vector of a query if it can be compared, and a sentence if it lacks one."""
        if mode == "text":
            return None, ""
        vector, degraded = self._embeddings.embed_query(query.text, standing)
        if vector is None and mode == "semantic" and not degraded:
            degraded = "Searched by words only: the setting embed.provider is none, so there are "
            degraded += "no vectors."
        return vector, degraded

    def _order(self, query: Query, candidates: _Candidates, limit: int) -> _Order:
        """Order notes by their signals. Those that only the best notes have are added last."""
        matches = candidates.matches
        signals = rank.signals_of(matches, candidates.mode, self._lexical_weight)
        if matches.named:
            best_share = max(matches.named.values())
            signals = rank.beside(signals, "named", rank.NAMED_WEIGHT * best_share, matches.named)

        coverage = self._coverage_for(query, candidates.mode)
        days = days_in(query.text, local_now())
        depth = limit
        if coverage is not None:
            depth = max(depth, rank.COVERED_NOTES)
        if days:
            depth = max(depth, DATED_NOTES)
        ranked = rank.ordered(matches, signals, max(depth, rank.COMPARED))
        best_places = {note.note: note.place for note in ranked[:depth]}
        details = self._index.shown(best_places, candidates.question, repeated=True)

        best = [note.note for note in ranked[:depth] if note.note in details]
        if coverage is not None:
            signals = self._with_coverage(signals, query, coverage, best, details)
        if days:
            signals = _with_days(signals, days, best, details)
        if coverage is not None or days:
            ranked = rank.ordered(matches, signals, max(depth, rank.COMPARED))
        return _Order(ranked, details, signals)

    def _coverage_for(self, query: Query, mode: Mode) -> Coverage | None:
        """Return what compares notes with a question; None if the query is no question."""
        if mode != "hybrid" or not rank.is_question(query.text):
            return None
        return self._embeddings.coverage()

    def _with_coverage(
        self,
        signals: Sequence[Signal],
        query: Query,
        coverage: Coverage,
        best: Sequence[NoteId],
        details: Mapping[NoteId, Shown],
    ) -> list[Signal]:
        """Return the signals with how well the best passages of notes cover the question."""
        covered_notes = best[: rank.COVERED_NOTES]
        passages = dict(passages_of(self._notes, details[note]) for note in covered_notes)
        names = rank.names_in(query.text).intersection(query.words)
        shares = coverage.of(query.words, passages, names)
        values = dict(zip(covered_notes, shares, strict=True))
        return rank.beside(signals, "covered", rank.COVERED_WEIGHT, values)


def _rows_of_hits(ranking: Ranking) -> list[Row]:
    return [ranking.details[hit.note].row for hit in ranking.hits]


def _no_candidates(filter: Narrow, standing: Standing) -> _Candidates:
    """Return the candidates of a query without words."""
    return _Candidates(Question(narrow=filter), _NO_MATCHES, "text", standing, "")


def _question_of(
    query: Query, filter: Narrow, vector: QueryVector | None, standing: Standing, mode: Mode
) -> Question:
    """Return what to ask the index. A search by meaning alone asks for no words."""
    weights = rank.weights_of(query.words, query.note_counts, standing.notes)
    question = Question(
        vector=vector,
        narrow=filter,
        title=query.text.strip(_TITLE_EDGES),
        names=query.names(),
        inner_names=rank.names_within(query.spoken, weights),
    )
    if mode == "semantic":
        return question
    return replace(question, terms=query.terms(), pairs=query.side_by_side())


def _with_days(
    signals: Sequence[Signal],
    days: tuple[str, ...],
    best: Sequence[NoteId],
    details: Mapping[NoteId, Shown],
) -> list[Signal]:
    """Return the signals with whether notes belong to a day that the query names."""
    dated_notes = [note for note in best[:DATED_NOTES] if belongs_to_day(details[note].row, days)]
    return rank.beside(signals, "dated", DATED_WEIGHT, dict.fromkeys(dated_notes, 1.0))


def degradation_of(ranking: Ranking) -> str:
    """Return sentences about what a search lacked, or did in place of what was asked; or ""."""
    sentences = [ranking.query.instead]
    are_phrases_missing = ranking.filter.phrases and not ranking.question.narrow.phrases
    if are_phrases_missing:
        phrases = " and ".join(f'"{phrase}"' for phrase in ranking.filter.phrases)
        end = "; the hits match its words" if ranking.hits else ""
        sentences.append(f"No note contains {phrases} word for word{end}.")
    sentences.append(ranking.degraded)
    return " ".join(filter(None, sentences))


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """What to search for, and how."""

    query: str
    filter: Filter | None = None

    # None for the number in the settings.
    limit: int | None = None

    mode: str = "hybrid"

    # Whether a reranker may order the hits.
    rerank: bool = True

    # Whether hits name who changed them last. They always do if the filter or query names an author.
    authors: bool = False

    # Whether each hit has its own score, even if it is higher than that of a hit above.
    own_scores: bool = False


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """The answer to a search, with the ranking behind it."""

    found: Found
    ranking: Ranking
    limit: int


class Search:
    """Answers searches with hits. Guards no state; any thread may use it."""

    def __init__(
        self,
        ranker: NoteRanker,
        *,
        quality: HitQuality,
        keeper: IndexKeeper,
        monitor: IndexMonitor,
        notes: NoteReader,
        authors: Authors,
        default_limit: int,
        snippet_characters: int,
    ) -> None:
        self._ranker = ranker
        self._quality = quality
        self._keeper = keeper
        self._monitor = monitor
        self._notes = notes
        self._authors = authors
        self._default_limit = default_limit
        self._snippet_characters = snippet_characters

    def search(self, request: SearchRequest) -> Found:
        """Return the notes that answer a query, best first; without words, the newest.

        Raises Invalid for an unknown mode or a limit below 1, and the errors of `NoteRanker.rank`.
        """
        return self.answer(request).found

    def answer(self, request: SearchRequest) -> SearchAnswer:
        """Return what `search` does, with the ranking for an explanation."""
        wanted = self._default_limit if request.limit is None else request.limit
        limit = checked_limit(wanted, MAX_LIMIT, "limit")
        mode = _checked_mode(request.mode)
        self._keeper.prepare(vectors=mode != "text")
        behind = self._monitor.state_if_behind()
        ranking = self._ranker.rank(
            request.query, request.filter, limit, mode=mode, rerank=request.rerank
        )

        # The text of the best note serves its hit and the decision whether it answers.
        best_text = None
        if ranking.hits:
            best_path = ranking.details[ranking.hits[0].note].row.path
            best_text = self._notes.text_of(best_path)
        hits = self._hits(ranking, best_text)
        if _names_author(request, ranking):
            hits = [self._with_author(hit) for hit in hits]

        share = hits[0].score if hits else None
        is_only_nearest = self._quality.is_only_nearest(ranking, share, best_text)
        if not request.own_scores:
            hits = _with_falling_scores(hits)

        state = self._monitor.state_of_answer(behind, ranking.standing)
        # A note that is not indexed yet may contain what was not found.
        is_only_nearest = is_only_nearest and state.is_ready
        absent = () if state.missing_notes else ranking.query.absent
        found = Found(
            query=request.query,
            mode=request.mode,
            hits=tuple(hits),
            index=state,
            degraded=degradation_of(ranking),
            absent=absent,
            only_nearest=is_only_nearest,
            notice=judgement.notice_of(is_only_nearest, ranking.query.words, absent),
        )
        return SearchAnswer(found, ranking, limit)

    def _hits(self, ranking: Ranking, best_text: str | None) -> list[Hit]:
        """Return the hits of a ranking, without notes that were deleted meanwhile."""
        hits = []
        for number, ranked in enumerate(ranking.hits):
            text = best_text if number == 0 else None
            hit = self._hit(ranking, ranked, text)
            if hit is not None:
                hits.append(hit)
        return hits

    def _hit(self, ranking: Ranking, ranked: Ranked, text: str | None) -> Hit | None:
        """Return a note as a hit, with the passage that fits the query; None if it was deleted."""
        details = ranking.details[ranked.note]
        row = details.row
        if text is None:
            text = self._notes.text_of(row.path)
        if text is None:
            return None

        excerpt = choose_excerpt(
            text,
            details.passages,
            details.best,
            details.repeated,
            ranking.query.words,
            self._snippet_characters,
        )
        return Hit(
            name=name_of(row.path),
            title=row.title,
            description=row.description,
            type=row.type or "memory",
            score=round(self._quality.score(ranking, ranked, text), 4),
            snippet=excerpt.text or plain_text(row.description),
            heading=quoted_heading(excerpt.headings),
            line=excerpt.line,
            tags=details.tags,
            created=row.created or None,
            modified=row.modified,
            sha256=row.sha256,
        )

    def _with_author(self, hit: Hit) -> Hit:
        author = self._authors.last_author(hit.sha256)
        return replace(
            hit, authors=(author.name or author.kind,), written=sortable_time(author.when)
        )


def _checked_mode(mode: str) -> Mode:
    """Return the mode of that name. Raises Invalid if there is none."""
    for known_mode in rank.MODES:
        if known_mode == mode:
            return known_mode
    raise Invalid(f"no search mode called {mode!r}", hint=f"The modes are {', '.join(rank.MODES)}.")


def checked_limit(value: int, maximum: int, name: str, *, minimum: int = 1) -> int:
    """Return a number, or `maximum` if it is greater. Raises Invalid if it is below `minimum`."""
    if value < minimum:
        raise Invalid(f"{name} must be at least {minimum}, not {value}")
    return min(value, maximum)


def _names_author(request: SearchRequest, ranking: Ranking) -> bool:
    """Return whether hits name who changed them last."""
    named_in_filter = request.filter.author if request.filter else ""
    return (
        request.authors
        or bool(ranking.filter.author)
        or ANY_AUTHOR in (ranking.query.author, named_in_filter)
    )


def _with_falling_scores(hits: Sequence[Hit]) -> list[Hit]:
    """Return the hits with scores of which none is higher than the one above."""
    scores = judgement.falling_scores(hit.score for hit in hits)
    return [replace(hit, score=score) for hit, score in zip(hits, scores, strict=True)]
