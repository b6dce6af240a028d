"""Context packs: the best passages for a query, with their places, within a budget of tokens.

Passages of the neighbours of the best notes join them with low scores. The neighbours of a note are
the notes that it is linked with. If its name has a date, they are also the dated notes before and
after it in its folder.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from simplemem.index.api import NoteDetails, NoteId, NoteRow, TextSpan
from simplemem.index.service import IndexService
from simplemem.models import Filter, Pack
from simplemem.note.names import name_of
from simplemem.note.words import count_tokens
from simplemem.providers.word_vectors import Multilingual
from simplemem.search.judgement import notice_of
from simplemem.search.needs import Embeddings, IndexKeeper, IndexMonitor, NoteReader
from simplemem.search.packing import CountTokens, Piece, pack
from simplemem.search.pipeline import NoteRanker, checked_limit, degradation_of
from simplemem.search.quality import HitQuality, Quotable, quoted_heading
from simplemem.search.rank import Ranked, passage_around
from simplemem.search.ranking import Ranking

_MIN_BUDGET = 50
_MAX_BUDGET = 100_000

_MAX_HITS = 20
_MAX_PASSAGES = 3  # of one note

# How many of the best hits their neighbours may join, and the share of the hit's score that is
# added to that of a neighbour.
_MAX_HITS_WITH_NEIGHBOURS = 5
_NEIGHBOUR_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class _Source:
    """A note whose passages may go into a pack.

    `via` says how a neighbour was found, such as "linked from" and a name; "" for a hit.
    """

    details: NoteDetails
    score: float
    via: str = ""


class _Quoted(NamedTuple):
    """A passage of a note, and the text of it that may be quoted."""

    span: TextSpan
    text: str


class ContextBuilder:
    """Builds context packs from the notes of one vault. Guards no state."""

    def __init__(
        self,
        index: IndexService,
        ranker: NoteRanker,
        *,
        quality: HitQuality,
        keeper: IndexKeeper,
        monitor: IndexMonitor,
        notes: NoteReader,
        embeddings: Embeddings,
    ) -> None:
        self._index = index
        self._ranker = ranker
        self._quality = quality
        self._keeper = keeper
        self._monitor = monitor
        self._notes = notes
        self._embeddings = embeddings

    def build(self, query: str, budget_tokens: int, filter: Filter | None) -> Pack:
        """Return the best passages for a query within a budget of tokens.

        They are of the best 20 notes and of the neighbours of the best 5. A budget above 100,000 is
        read as 100,000. Raises Invalid for a budget below 50, and the errors of `NoteRanker.rank`.
        """
        budget = checked_limit(budget_tokens, _MAX_BUDGET, "budget_tokens", minimum=_MIN_BUDGET)
        self._keeper.prepare()
        earlier_state = self._monitor.state_if_behind()

        def find() -> tuple[Ranking, list[_Source]]:
            ranking = self._ranker.rank(query, filter, _MAX_HITS)
            return ranking, self._sources_of(ranking)

        def rows_of_neighbours(found: tuple[Ranking, list[_Source]]) -> list[NoteRow]:
            _, sources = found
            return [source.details.row for source in sources if source.via]

        # The ranker has revalidated the hits; their neighbours may have changed.
        ranking, sources = self._keeper.revalidated(find, rows_of_neighbours)
        tokenizer, count = self._tokenizer()
        pieces = self._pieces_of_sources(sources, ranking.query.words)
        packed = pack(pieces, budget, count)

        state = self._monitor.state_of_answer(earlier_state, ranking.status)
        absent = () if state.missing_notes else ranking.query.absent
        is_only_nearest = state.is_ready and self._quality.is_only_nearest(ranking)
        return Pack(
            query=query,
            text=packed.text,
            tokens=packed.tokens,
            items=packed.items,
            left_out=packed.left_out,
            index=state,
            degraded=degradation_of(ranking),
            duplicates=packed.duplicates,
            omitted=packed.omitted,
            tokenizer=tokenizer,
            absent=absent,
            only_nearest=is_only_nearest,
            notice=notice_of(is_only_nearest, ranking.query.words, absent),
            not_searched=ranking.matches.excluded if absent else 0,
        )

    def pieces_of(self, ranking: Ranking) -> list[Piece]:
        """Return the passages of the hits of a ranking and of their neighbours, best first.

        The best passage of each note comes before the next best one of any.
        """
        return self._pieces_of_sources(self._sources_of(ranking), ranking.query.words)

    def _tokenizer(self) -> tuple[str, CountTokens]:
        """Return the name of the tokenizer, and a function that counts the tokens of a text.

        It is the tokenizer of the embedder, with its name, if that is the bundled one; with any
        other or none, it is an estimate with the name "estimate". Loads the embedder.
        """
        embedder, _ = self._embeddings.load()
        if isinstance(embedder, Multilingual):
            return embedder.words.name, embedder.words.count_tokens
        return "estimate", count_tokens

    def _sources_of(self, ranking: Ranking) -> list[_Source]:
        """Return the hits and the neighbours of the best ones, by falling score.

        A neighbour joins only if it contains a word of the query and is no hit itself.
        """
        hit_ids = [hit.note for hit in ranking.hits]
        # 0 for no place: with `blocks`, all matched blocks are read in any case.
        no_places = dict.fromkeys(hit_ids, 0)
        candidates = {
            note.note: note
            for note in ranking.all_notes()
            if note.has_word and note.note not in no_places
        }
        best_hits = ranking.hits[:_MAX_HITS_WITH_NEIGHBOURS] if candidates else ()
        details = self._index.details(
            no_places,
            ranking.question,
            blocks=True,
            neighbours_of=[hit.note for hit in best_hits],
            among=frozenset(candidates),
        )

        sources = [
            _Source(details[hit.note], hit.score) for hit in ranking.hits if hit.note in details
        ]
        sources += _neighbours_of(best_hits, candidates, details, ranking)
        return sorted(sources, key=lambda source: -round(source.score, 6))

    def _pieces_of_sources(self, sources: Sequence[_Source], words: Sequence[str]) -> list[Piece]:
        """Return passages of some notes as they are quoted: the best of each, then the next best.

        `words` are those of the query. Reads the files now. Leaves out notes that were deleted, and
        passages of which nothing may be quoted.
        """
        by_rank: list[list[Piece]] = [[] for _ in range(_MAX_PASSAGES)]
        for source in sources:
            text = self._notes.text_of(source.details.row.path)
            if text is None:
                continue
            for rank, piece in enumerate(_pieces_of_note(source, text, words)):
                if piece.text.strip():
                    by_rank[rank].append(piece)
        return [piece for pieces in by_rank for piece in pieces]


def _neighbours_of(
    hits: Sequence[Ranked],
    candidates: Mapping[NoteId, Ranked],
    details: Mapping[NoteId, NoteDetails],
    ranking: Ranking,
) -> list[_Source]:
    """Return the candidates that are neighbours of one of the hits, sorted by path.

    A neighbour of several hits counts as that of the best one. Hits and candidates without
    `details` are left out.
    """
    neighbours: dict[NoteId, _Source] = {}
    for hit in hits:
        if hit.note not in details:
            continue
        for note, via in details[hit.note].neighbours:
            if note in neighbours or note not in candidates or note not in details:
                continue
            score = _score_of_neighbour(candidates[note], hit, ranking)
            neighbours[note] = _Source(details[note], score, f"{via} {name_of(hit.path)}")
    return sorted(neighbours.values(), key=lambda source: source.details.row.path)


def _score_of_neighbour(neighbour: Ranked, hit: Ranked, ranking: Ranking) -> float:
    """Return the score of a neighbour of a hit: its own and a tenth of the hit's.

    After a reranking it is at most that of the last hit.
    """
    score = neighbour.score + _NEIGHBOUR_SHARE * hit.score
    if ranking.reranking is not None:
        # The scores of hits are on the scale of the reranker, which has not seen this note.
        score = min(score, ranking.hits[-1].score)
    return score


def _pieces_of_note(source: _Source, text: str, words: Sequence[str]) -> list[Piece]:
    """Return the best 3 passages of a note, best first. Their text may be blank.

    The first one has the score of the note, the next ones a half and a third of it.
    """
    details = source.details
    row = details.row
    starts = _starts_by_passage(details)
    pieces = []
    for rank, (span, quoted) in enumerate(_quoted_passages(details, starts, text, words)):
        word_start = starts.get(span, span.start)
        pieces.append(
            Piece(
                name=name_of(row.path),
                title=row.title,
                heading=quoted_heading(span.headings),
                line=span.line,
                modified=row.modified,
                text=quoted,
                score=source.score / (rank + 1),
                start=span.start,
                at=max(0, word_start - span.start),
                via=source.via,
                has_gaps=quoted != text[span.start : span.stop],
            )
        )
    return pieces


def _starts_by_passage(details: NoteDetails) -> dict[TextSpan, int]:
    """Return the passages of the best blocks, best first, each with the start of its block.

    If no block matched the query, it is the passage that is most similar, with its own start.
    """
    starts: dict[TextSpan, int] = {}
    for block in details.blocks:
        passage = passage_around(details.passages, block)
        if passage is not None:
            starts.setdefault(passage, block.start)

    if not starts:
        passage = passage_around(details.passages, details.best)
        if passage is not None:
            starts[passage] = passage.start
    return starts


def _quoted_passages(
    details: NoteDetails,
    best: Iterable[TextSpan],
    text: str,
    words: Sequence[str],
) -> list[_Quoted]:
    """Return the best 3 passages as they are quoted.

    If nothing of them may be quoted, returns the first passage of the note of which something may
    be; none if there is no such passage.
    """
    quotable = Quotable.of(text)
    quoted = [_Quoted(span, quotable.passage(span, words)) for span in islice(best, _MAX_PASSAGES)]
    if any(passage.text.strip() for passage in quoted):
        return quoted

    # The note was found by text that is not quoted.
    for span in details.passages:
        passage_text = quotable.passage(span, words)
        if passage_text.strip():
            return [_Quoted(span, passage_text)]
    return []
