"""Search: from a query to ranked notes, and from these to hits.

The steps of `NoteRanker`, in order: read the query, resolve the filter, ask the index, rank by the
signals, compare the best notes with the question, and let a reranker order them. `Search` then
quotes the best notes. docs/search.md describes the ranking for users, docs/internals/ranking.md its
numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime

from simplemem.errors import Invalid
from simplemem.index.api import (
    IndexFilter,
    IndexProgress,
    IndexQuery,
    Matches,
    NoteDetails,
    NoteId,
    NoteRow,
    PlaceId,
)
from simplemem.index.service import IndexService
from simplemem.index.vectors import QueryVector
from simplemem.models import DatedName, Filter, Found, Hit
from simplemem.note.dates import local_now, sortable_time
from simplemem.note.names import name_of
from simplemem.note.plain_text import plain_text
from simplemem.note.words import is_english_question
from simplemem.search import judgement, rank
from simplemem.search.conditions import ConditionChecker
from simplemem.search.dates import (
    DATED_NOTES,
    DATED_WEIGHT,
    MIN_EVENT_SHARE,
    Period,
    TimeAsked,
    as_day,
    date_order,
    day_of_note,
    languages_of_time,
    plain_words,
    shown_day,
    value_of_note,
)
from simplemem.search.filters import ANY_AUTHOR, FilterResolver
from simplemem.search.judgement import Coverage
from simplemem.search.needs import Authors, Embeddings, IndexKeeper, IndexMonitor, NoteReader
from simplemem.search.quality import HitQuality, choose_excerpt, passages_of, quoted_heading
from simplemem.search.query import Query, read_query, with_forms
from simplemem.search.rank import Mode, Ranked, Signal
from simplemem.search.ranking import Ranking
from simplemem.search.rerank import NoteReranker

# The greatest number of hits of one search, and of backlinks of one note.
MAX_LIMIT = 200

_NO_MATCHES = Matches({}, None, {}, None, {})

# Marks around a query that is a title in quotation marks.
_TITLE_EDGES = " \"'“”„«»"


@dataclass(frozen=True, slots=True)
class _Request:
    """What to rank: the notes that pass a filter, for a query; the best `limit` become hits.

    `now` is the local time that "yesterday" in the query refers to; None for the current time.
    """

    query: Query
    filter: IndexFilter
    mode: Mode
    limit: int
    now: datetime | None = None


@dataclass(frozen=True, slots=True)
class _Candidates:
    """What the index found for a query, and how it was asked.

    `mode` is the one that was possible, `status` is of the index when it was asked, and `degraded`
    says what limited the search; "" for nothing.
    """

    question: IndexQuery
    matches: Matches
    mode: Mode
    status: IndexProgress
    degraded: str


@dataclass(frozen=True, slots=True)
class _Order:
    """An order of notes, the details of those that may be shown, and the signals it is based on.

    `time` is the time that the query speaks of, if it does.
    """

    ranked: Sequence[Ranked] = ()
    details: Mapping[NoteId, NoteDetails] = field(default_factory=dict)
    signals: Sequence[Signal] = ()
    time: TimeAsked | None = None


class NoteRanker:
    """Ranks the notes of one vault for a query. Guards no state; any thread may use it."""

    def __init__(
        self,
        index: IndexService,
        *,
        keeper: IndexKeeper,
        notes: NoteReader,
        embeddings: Embeddings,
        filters: FilterResolver,
        conditions: ConditionChecker,
        reranker: NoteReranker | None,
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
        now: datetime | None = None,
    ) -> Ranking:
        """Rank the notes that pass a filter, as they are now; without words, the newest first.

        Filters in `text` are added to `filter`. At most `limit` notes become hits. A reranker, if
        there is one, orders them unless `rerank` is False. `now` is the time that words such as
        "yesterday" refer to; None for the current time. Without hits, `degraded` also says which
        conditions no note meets. Raises Invalid, NotFound or Ambiguous for a filter that cannot be
        resolved.
        """
        plain_query = read_query(text)
        query, status = with_forms(plain_query, self._index.vocabulary)
        if filter is None and not query.has_filters():
            resolved = self._filters.default
        else:
            resolved = self._filters.resolve(filter or Filter(), query)

        query = self._corrected(query, plain_query, resolved)
        request = _Request(query, resolved, mode, limit, now)
        ranking = self._rank(request, plain_query, status, rerank=rerank)
        if not ranking.hits:
            unmet = self._conditions.unmet(resolved)
            ranking = replace(ranking, degraded=f"{ranking.degraded} {unmet}".strip())
        return ranking

    def rank_among(
        self,
        text: str,
        paths: Sequence[str],
        limit: int,
        *,
        rerank: bool = True,
    ) -> Ranking:
        """Rank the notes at some paths by words and meaning, also those excluded from search.

        Filters in the text are ignored. Notes that match neither by words nor by meaning are no
        hits. The state of the index is that of the moment; the caller prepares it.
        """
        plain_query = read_query(text)
        query, status = with_forms(plain_query, self._index.vocabulary)
        filter = IndexFilter(only=tuple(paths), hidden=True)
        query = self._corrected(query, plain_query, filter)
        request = _Request(query, filter, "hybrid", limit)
        return self._rank(request, plain_query, status, rerank=rerank)

    def _rank(
        self,
        request: _Request,
        plain_query: Query,
        status: IndexProgress,
        *,
        rerank: bool,
    ) -> Ranking:
        """Rank notes as they are now, and let the reranker order the best ones if `rerank`.

        `plain_query` is the query of the request without the forms of its words. `status` is that
        of the index when the forms were looked up.
        """
        reranker = self._reranker if rerank else None
        limit = request.limit
        if reranker is not None:
            # The reranker may move a note up that is not among the best `request.limit` notes.
            limit = max(limit, reranker.max_candidates)
        wide_request = replace(request, limit=limit)
        unused_forms = [(request.query, status)]

        def rank_once() -> Ranking:
            if unused_forms:
                query, query_status = unused_forms.pop()
            else:
                # Notes have changed since the first call, and may contain words that no note
                # contained before.
                query, query_status = with_forms(plain_query, self._index.vocabulary)
                query = self._corrected(query, plain_query, request.filter)
            return self._rank_once(replace(wide_request, query=query), query_status)

        ranking = self._keeper.revalidated(rank_once, _rows_of_hits)
        if reranker is None:
            return ranking
        return reranker.rerank(ranking, request.limit)

    def _corrected(self, query: Query, plain_query: Query, filter: IndexFilter) -> Query:
        """Return the query with words of the notes in place of its misspelt words.

        `plain_query` is the query without the forms of its words. Only notes that pass the filter
        are looked at. A question in another language than English is returned unchanged: most of
        its words that no note contains are spelt well, and near to others by chance.
        """
        if not query.absent or _is_foreign_question(query):
            return query
        from simplemem.search.spelling import SpellingCorrector  # for a word that no note contains

        return SpellingCorrector(self._index, self._notes, filter).correct(query, plain_query)

    def _rank_once(self, request: _Request, status: IndexProgress) -> Ranking:
        """Rank notes as the index has them, without the reranker."""
        candidates = self._find_candidates(request, status)
        order = self._order(request, candidates)
        listed = [note for note in order.ranked if note.note in order.details]
        return Ranking(
            query=request.query,
            filter=request.filter,
            status=candidates.status,
            mode=candidates.mode,
            question=candidates.question,
            matches=candidates.matches,
            signals=order.signals,
            ranked=order.ranked,
            hits=listed[: request.limit],
            details=order.details,
            degraded=candidates.degraded,
            in_order=order.time is not None and order.time.in_order,
        )

    def _find_candidates(self, request: _Request, status: IndexProgress) -> _Candidates:
        """Return what the index finds for a query; no matches for a query without words."""
        if request.query.words:
            return self._ask(request, status)
        degraded = ""
        if request.query.has_nothing_searchable():
            degraded = "The query contains no words to search for."
        return _Candidates(IndexQuery(narrow=request.filter), _NO_MATCHES, "text", status, degraded)

    def _order(self, request: _Request, candidates: _Candidates) -> _Order:
        """Order the notes to show: by their signals, or the newest first without words.

        The order is empty if the text has neither words nor filters but is not blank.
        """
        if request.query.words:
            return self._order_by_signals(request, candidates)
        if request.query.has_nothing_searchable():
            return _Order()
        return self._newest_first(candidates.question, request.limit)

    def _ask(self, request: _Request, status: IndexProgress) -> _Candidates:
        """Ask the index for the notes that the words and the vector of a query lead to.

        Asks again with a new vector if another embedder replaced the vectors meanwhile. Asks again
        without the phrases of the filter if no note contains them: the filter of the `question` in
        the result then differs from that of the request.
        """
        while True:
            vector, degraded = self._vector_of(request, status)
            mode: Mode = "text" if vector is None else request.mode
            question = _question_of(request, vector, mode, status)
            matches = self._index.ask(question)
            has_lost_vectors = vector is not None and matches.similarities is None
            if not has_lost_vectors:
                break
            # Another embedder has replaced the vectors since `status`.
            status = self._index.progress()

        if request.filter.phrases and not matches.passed:
            # Quotation marks must not hide every answer.
            question = replace(question, narrow=replace(request.filter, phrases=()))
            matches = self._index.ask(question)
        return _Candidates(question, matches, mode, status, degraded)

    def _vector_of(
        self,
        request: _Request,
        status: IndexProgress,
    ) -> tuple[QueryVector | None, str]:
        """Return the vector of a query, and a sentence on what limits the search; "" if nothing.

        The vector is None in the mode "text", or if it cannot be compared with those of the index.
        """
        if request.mode == "text":
            return None, ""
        vector, degraded = self._embeddings.embed_query(request.query.text, status)
        if vector is None and request.mode == "semantic" and not degraded:
            degraded = "Searched by words only: the setting embed.provider is none, so there are "
            degraded += "no vectors."
        return vector, degraded

    def _order_by_signals(self, request: _Request, candidates: _Candidates) -> _Order:
        """Order notes by the signals of the index, then again with further signals of the best.

        For a question, the files of the best 12 notes are read and compared with it. If the query
        speaks of a time, those of the best 40 that fit it gain. The result has the details of the
        notes that were best by the signals of the index.
        """
        query = request.query
        matches = candidates.matches
        coverage = self._coverage_for(query, candidates.mode)
        is_foreign = coverage is not None and _is_foreign_question(query)
        if is_foreign:
            coverage = None  # single words of other languages are not compared
        time = _time_of(request)
        periods = self._periods_of(time, request, candidates.status)
        depth = _depth_of(request, has_coverage=coverage is not None, has_periods=bool(periods))
        # The confidence in the best hit needs the score at `LEAD_RANK`.
        max_notes = max(depth, rank.LEAD_RANK)

        signals = self._signals_of_index(query, candidates, is_foreign=is_foreign)
        ranked = rank.ordered(matches, signals, max_notes)
        place_of_note = {note.note: note.place for note in ranked[:depth]}
        matched_places: Sequence[PlaceId] = ()
        if coverage is not None:
            matched_places = rank.best_places(matches, place_of_note)
        details = self._index.details(
            place_of_note,
            candidates.question,
            repeated=True,
            matched=matched_places,
        )
        if coverage is None and not periods:
            return _Order(ranked, details, signals, time)

        # Notes without details were removed from the index meanwhile.
        best = [note for note in place_of_note if note in details]
        if coverage is not None:
            signals = self._with_coverage(signals, query, coverage, best, details)
        if periods:
            signals = _with_periods(signals, periods, best, details)
        ranked = rank.ordered(matches, signals, max_notes)
        return _Order(ranked, details, signals, time)

    def _signals_of_index(
        self, query: Query, candidates: _Candidates, *, is_foreign: bool
    ) -> list[Signal]:
        """Return the signals words, phrases and meaning, and "named" if a name is in the query.

        `is_foreign` is whether the query is a question in another language than English.
        """
        matches = candidates.matches
        lexical_weight = self._lexical_weight
        if is_foreign:
            # A word that no note contains weighs as if one did: in a vault of a few notes, it would
            # weigh more than all others.
            counts = [max(count, 1) for count in query.note_counts]
            weights = rank.weights_of(query.words, counts, matches.note_count)
            lexical_weight *= rank.trust_in_words(weights, matches.notes)
        signals = rank.signals_of(matches, candidates.mode, lexical_weight)
        if not matches.named:
            return signals
        # A signal is divided by its best value, so that value becomes part of the weight.
        weight = rank.NAMED_WEIGHT * max(matches.named.values())
        return rank.add_signal(signals, "named", weight, matches.named)

    def _coverage_for(self, query: Query, mode: Mode) -> Coverage | None:
        """Return what compares passages with a question.

        Returns None if the query is no question, if the mode is not "hybrid", or if the vault has
        no word vectors.
        """
        if mode != "hybrid" or not rank.is_question(query.text):
            return None
        return self._embeddings.coverage()

    def _with_coverage(
        self,
        signals: Sequence[Signal],
        query: Query,
        coverage: Coverage,
        best: Sequence[NoteId],
        details: Mapping[NoteId, NoteDetails],
    ) -> list[Signal]:
        """Return the signals, with one for how well passages of the best notes cover the question.

        Reads the files of the first 12 of the `best` notes; the others get no value. The weights of
        the result add up to 1. If no passage covers anything, the signals are returned as they are.
        """
        covered_notes = best[: rank.COVERED_NOTES]
        passages = [passages_of(self._notes, details[note]) for note in covered_notes]
        names = rank.names_in(query.text).intersection(query.words)
        shares = coverage.of(query.words, passages, names)
        values = dict(zip(covered_notes, shares, strict=True))
        return rank.add_signal(signals, "covered", rank.COVERED_WEIGHT, values)

    def _periods_of(
        self, time: TimeAsked | None, request: _Request, status: IndexProgress
    ) -> Sequence[Period]:
        """Return the periods that a query speaks of, such as those before an event of a note.

        Returns none if the query speaks of no time, or of an event that no note has.
        """
        if time is None or not time.event:
            return time.periods if time else ()
        day = self._day_of_event(time.event, request, status)
        if day is None:
            return ()

        from simplemem.search.times import beside_event

        return (beside_event(day, time.relation, _now_of(request)),)

    def _day_of_event(self, event: str, request: _Request, status: IndexProgress) -> date | None:
        """Return the day of the best note about an event, in words of a query.

        Returns None if no passage of that note contains most of the words, or if it has no day.
        """
        query, status = with_forms(read_query(event), self._index.vocabulary)
        candidates = self._find_candidates(replace(request, query=query, limit=1), status)
        signals = self._signals_of_index(query, candidates, is_foreign=False)
        ranked = rank.ordered(candidates.matches, signals, 1)
        if not ranked or not ranked[0].has_word:
            return None

        best = ranked[0]
        details = self._index.details({best.note: best.place}, candidates.question).get(best.note)
        text = self._notes.text_of(best.path)
        if details is None or text is None:
            return None
        weights = rank.weights_of(query.words, query.note_counts, candidates.matches.note_count)
        texts = [text[span.start : span.stop] for span in details.passages]
        share = rank.share_by_beginnings(weights, details.row.title, texts)
        if share < MIN_EVENT_SHARE:
            return None
        return as_day(day_of_note(details.row))

    def _newest_first(self, question: IndexQuery, limit: int) -> _Order:
        """Return up to `limit` notes that pass the filter, the last changed first, with score 1."""
        rows = self._index.page(question.narrow, "modified", limit).rows
        # No place in these notes was found by words: 0.
        no_places = {row.id: 0 for row in rows}
        details = self._index.details(no_places, question, repeated=True)
        ranked = [Ranked(row.id, row.path, 1.0) for row in rows if row.id in details]
        return _Order(ranked, details)


def _rows_of_hits(ranking: Ranking) -> list[NoteRow]:
    """Return the index rows of the hits of a ranking, in their order."""
    return [ranking.details[hit.note].row for hit in ranking.hits]


def _is_foreign_question(query: Query) -> bool:
    """Return whether a query is a question that is not English."""
    return rank.is_question(query.text) and not is_english_question(query.text)


def _now_of(request: _Request) -> datetime:
    """Return the local time that a query refers to, without an offset."""
    now = request.now
    if now is None:
        return local_now()
    if now.tzinfo is not None:
        return now.astimezone().replace(tzinfo=None)
    return now


def _time_of(request: _Request) -> TimeAsked | None:
    """Return the time that a query speaks of; None for most queries, which speak of none."""
    text = request.query.text
    languages = languages_of_time(plain_words(text))
    if not languages:
        return None

    from simplemem.search.times import read_time

    return read_time(text, languages, _now_of(request))


def _depth_of(request: _Request, *, has_coverage: bool, has_periods: bool) -> int:
    """Return of how many of the best notes the details are read: those to show or to compare."""
    depth = request.limit
    if has_coverage:
        depth = max(depth, rank.COVERED_NOTES)
    if has_periods:
        depth = max(depth, DATED_NOTES)
    return depth


def _question_of(
    request: _Request,
    vector: QueryVector | None,
    mode: Mode,
    status: IndexProgress,
) -> IndexQuery:
    """Return what to ask the index. In the mode "semantic" it has no words, but possible names."""
    query = request.query
    weights = rank.weights_of(query.words, query.note_counts, status.notes)
    question = IndexQuery(
        vector=vector,
        narrow=request.filter,
        title=query.text.strip(_TITLE_EDGES),
        names=query.names(),
        inner_names=rank.names_within(query.all_words, weights),
        counts_excluded=bool(query.absent),
    )
    if mode == "semantic":
        return question
    return replace(question, terms=query.terms(), pairs=query.neighbour_terms())


def _with_periods(
    signals: Sequence[Signal],
    periods: Sequence[Period],
    best: Sequence[NoteId],
    details: Mapping[NoteId, NoteDetails],
) -> list[Signal]:
    """Return the signals, with one for how well the best notes fit one of some periods.

    See `value_of_note`. The weights of the others are reduced to make room; if no note fits, the
    signals are returned unchanged. Only the first 40 of the `best` notes are compared.
    """
    values: dict[NoteId, float] = {}
    for note in best[:DATED_NOTES]:
        value = value_of_note(details[note].row, periods)
        if value:
            values[note] = value
    # A signal is divided by its best value, so that value becomes part of the weight.
    weight = DATED_WEIGHT * max(values.values(), default=0.0)
    return rank.add_signal(signals, "dated", weight, values)


def degradation_of(ranking: Ranking) -> str:
    """Return sentences on what limited a search or was searched for instead; "" if nothing."""
    sentences = [ranking.query.correction_notice(), ranking.query.notice]
    was_searched_without_phrases = ranking.filter.phrases and not ranking.question.narrow.phrases
    if was_searched_without_phrases:
        phrases = " and ".join(f'"{phrase}"' for phrase in ranking.filter.phrases)
        consequence = "; the hits match its words" if ranking.hits else ""
        sentences.append(f"No note contains {phrases} word for word{consequence}.")
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

    # What "yesterday" in the query refers to; None for the current time.
    now: datetime | None = None

    # Whether hits name who changed them last. They always do if the filter or query names an
    # author.
    authors: bool = False

    # Whether each hit keeps its own score, even if that is higher than the score of a hit above it.
    own_scores: bool = False


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """The answer to a search, with the ranking behind it and the limit that was applied."""

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
        """Return what `search` returns, with the ranking that an explanation needs.

        Raises what `search` raises.
        """
        limit = self._default_limit if request.limit is None else request.limit
        limit = checked_limit(limit, MAX_LIMIT, "limit")
        mode = _checked_mode(request.mode)
        self._keeper.prepare(vectors=mode != "text")
        earlier_state = self._monitor.state_if_behind()
        ranking = self._ranker.rank(
            request.query,
            request.filter,
            limit,
            mode=mode,
            rerank=request.rerank,
            now=request.now,
        )

        # Both the first hit and the decision whether it answers need the text of the best note.
        best_text = None
        if ranking.hits:
            best_path = ranking.details[ranking.hits[0].note].row.path
            best_text = self._notes.text_of(best_path)
        hits = self._hits(ranking, best_text)
        if _shows_authors(request, ranking):
            hits = [self._with_author(hit) for hit in hits]

        verdict = self._quality.judge(ranking, best_text)
        if not request.own_scores:
            hits = _with_falling_scores(hits)

        # A note that is not indexed yet may contain what was not found.
        state = self._monitor.state_of_answer(earlier_state, ranking.status)
        if not state.is_ready:
            verdict = judgement.ANSWERED
        absent = () if state.missing_notes else ranking.query.absent
        found = Found(
            query=request.query,
            mode=request.mode,
            hits=tuple(hits),
            index=state,
            degraded=degradation_of(ranking),
            absent=absent,
            only_nearest=verdict.only_nearest,
            notice=verdict.notice,
            missing=verdict.missing,
            not_searched=ranking.matches.excluded if absent else 0,
            by_date=_by_date(ranking, hits),
        )
        return SearchAnswer(found, ranking, limit)

    def _hits(self, ranking: Ranking, best_text: str | None) -> list[Hit]:
        """Return the hits of a ranking, without notes that were deleted meanwhile.

        `best_text` is the text of the first one; None to read it now. The others are read now.
        """
        hits = []
        for number, ranked in enumerate(ranking.hits):
            text = best_text if number == 0 else None
            hit = self._hit(ranking, ranked, text)
            if hit is not None:
                hits.append(hit)
        return hits

    def _hit(self, ranking: Ranking, ranked: Ranked, text: str | None) -> Hit | None:
        """Return a note as a hit, with the passage that fits the query; None if it was deleted.

        `text` is the text of the note if the caller has read it; None to read it now.
        """
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
        """Return a hit with who wrote its text first, and when, from the change log."""
        author = self._authors.first_author(hit.sha256)
        return replace(
            hit,
            authors=(author.name or author.kind,),
            written=sortable_time(author.when),
        )


def _by_date(ranking: Ranking, hits: Sequence[Hit]) -> tuple[DatedName, ...]:
    """Return the hits in order of their days, if the query asks for an order; else none."""
    if not ranking.in_order:
        return ()
    shown = {hit.name for hit in hits}
    rows = [ranking.details[ranked.note].row for ranked in ranking.hits]
    dated = [
        DatedName(name=name_of(row.path), day=shown_day(row))
        for row in sorted(rows, key=date_order)
        if name_of(row.path) in shown
    ]
    return tuple(dated)


def _checked_mode(mode: str) -> Mode:
    """Return the mode of that name. Raises Invalid if there is none."""
    for known_mode in rank.MODES:
        if known_mode == mode:
            return known_mode
    raise Invalid(f"no search mode called {mode!r}", hint=f"The modes are {', '.join(rank.MODES)}.")


def checked_limit(value: int, maximum: int, name: str, *, minimum: int = 1) -> int:
    """Return a number, or `maximum` if it is greater. Raises Invalid if it is below `minimum`.

    `name` is what the error calls the number.
    """
    if value < minimum:
        raise Invalid(f"{name} must be at least {minimum}, not {value}")
    return min(value, maximum)


def _shows_authors(request: SearchRequest, ranking: Ranking) -> bool:
    """Return whether each hit names who changed it last.

    It does if the request says so, or if the query or the filter names an author or "any".
    """
    if request.authors or ranking.filter.author:
        return True
    # The resolved filter has no author for "any", in any case.
    author_of_filter = request.filter.author if request.filter else ""
    named_authors = (ranking.query.author, author_of_filter.strip())
    return any(author.casefold() == ANY_AUTHOR for author in named_authors)


def _with_falling_scores(hits: Sequence[Hit]) -> list[Hit]:
    """Return the hits with scores of which none is higher than that of the hit above."""
    scores = judgement.falling_scores(hit.score for hit in hits)
    return [
        hit if hit.score == score else replace(hit, score=score)
        for hit, score in zip(hits, scores, strict=True)
    ]
