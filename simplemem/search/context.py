"""Context packs: the best passages for a query, with their places, within a budget of tokens.

Of each note, the passages that cover most of the query go in, most of them from the best notes. A
short note goes in whole, as does a section that the query names. Pinned notes come first
(`pinned.py`).

Passages of the neighbours of the best notes join them with low scores. The neighbours of a note are
the notes that it is linked with. If its name has a date, they are also the dated notes before and
after it in its folder. docs/internals/ranking.md says how the numbers were chosen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from simplemem.index.api import NoteDetails, NoteId, NoteRow
from simplemem.index.service import IndexService
from simplemem.models import Filter, Pack
from simplemem.note.names import name_of
from simplemem.note.words import count_tokens
from simplemem.providers.word_vectors import Multilingual
from simplemem.search.changed import changes_in
from simplemem.search.dates import moment_of
from simplemem.search.judgement import ANSWERED
from simplemem.search.needs import Embeddings, IndexKeeper, IndexMonitor, NoteReader
from simplemem.search.packing import CountTokens, Piece, pack
from simplemem.search.passages import QuotedNote, Room
from simplemem.search.pinned import PinnedNotes, profile_path
from simplemem.search.pipeline import NoteRanker, checked_limit, degradation_of
from simplemem.search.quality import HitQuality, quoted_heading
from simplemem.search.rank import Ranked
from simplemem.search.ranking import Ranking

_MIN_BUDGET = 50
_MAX_BUDGET = 100_000

_MAX_HITS = 20
_MAX_PASSAGES_BY_RANK = 3  # of one note, for `pieces_of`

# A part of a hit that counts less than this share of the best part does not go into a pack. This
# does not hold for parts of neighbours.
_MIN_WEIGHT = 0.3

# After a reranking, each note counts this share of the one before it.
_WEIGHT_OF_NEXT = 0.9

# A note goes in whole if it takes at most this share of the budget. So does a section that the
# query names, of the best note only. Neither may have more tokens than the maximum.
_WHOLE_NOTE_SHARE = 0.25
_SECTION_SHARE = 0.5
_MAX_WHOLE_TOKENS = 800
_ONLY_PASSAGES = Room(note=0, section=0)

# How many of the best hits bring in their neighbours, and the share of the hit's score that is
# added to the score of a neighbour.
_MAX_HITS_WITH_NEIGHBOURS = 5
_NEIGHBOUR_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class _Source:
    """A note whose passages may go into a pack: a hit, or a neighbour of one.

    `via` says how a neighbour was found, such as "linked from Garden"; it is "" for a hit.
    """

    details: NoteDetails
    score: float
    via: str = ""


class _Found(NamedTuple):
    """What a pack is made of: a ranking, its hits with their neighbours, and pinned notes."""

    ranking: Ranking
    sources: list[_Source]
    pinned: list[NoteRow]

    def rows_besides_hits(self) -> list[NoteRow]:
        """Return the rows of the neighbours and of the pinned notes."""
        neighbours = [source.details.row for source in self.sources if source.via]
        return [*neighbours, *self.pinned]


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
        self._pinned = PinnedNotes(index, notes)

    def build(self, query: str, budget_tokens: int, filter: Filter | None) -> Pack:
        """Return the best passages for a query within a budget of tokens; an empty pack if none.

        Pinned notes and the constraints of the user come first, if they pass the filter. The other
        passages are of the best 20 notes and of the neighbours of the best 5. A budget above
        100,000 is read as 100,000. If the query asks for an order, the text is in order of date.

        Synchronizes the index first, as a search does, and reads the notes that may be quoted.

        Raises Invalid for a budget below 50, and the errors of `NoteRanker.rank`.
        """
        budget = checked_limit(budget_tokens, _MAX_BUDGET, "budget_tokens", minimum=_MIN_BUDGET)
        self._keeper.prepare()
        earlier_state = self._monitor.state_if_behind()

        def find() -> _Found:
            ranking = self._ranker.rank(query, filter, _MAX_HITS)
            pinned_rows = self._pinned.rows(ranking.filter)
            return _Found(ranking, self._sources_of(ranking), pinned_rows)

        # The ranker has revalidated the hits. If another note has changed, `find` is called again.
        found = self._keeper.revalidated(find, _Found.rows_besides_hits)
        ranking = found.ranking
        tokenizer, count = self._tokenizer()
        pieces = self._pieces_of_sources(ranking, found.sources, budget)
        packed = pack(
            pieces,
            budget,
            count,
            pinned=self._pinned.pieces(found.pinned),
            in_order=ranking.in_order,
        )

        state = self._monitor.state_of_answer(earlier_state, ranking.status)
        absent = () if state.missing_notes else ranking.query.absent
        verdict = self._quality.judge(ranking) if state.is_ready else ANSWERED
        return Pack(
            query=query,
            text=packed.text,
            tokens=packed.tokens,
            items=packed.items,
            pinned=packed.pinned,
            left_out=packed.left_out,
            index=state,
            degraded=degradation_of(ranking),
            duplicates=packed.duplicates,
            omitted=packed.omitted,
            tokenizer=tokenizer,
            absent=absent,
            only_nearest=verdict.only_nearest,
            notice=verdict.notice,
            missing=verdict.missing,
            not_searched=ranking.matches.excluded if absent else 0,
            chronological=ranking.in_order and bool(packed.text),
        )

    def always_relevant(self, scope: str | None) -> list[Piece]:
        """Return the constraints and the pinned notes of one user; of all users for None.

        The constraints come first, with `CONSTRAINT` as their `via`. Synchronizes the index first,
        as a search does, and reads the notes.
        """
        self._keeper.prepare()

        def find() -> list[NoteRow]:
            return self._pinned.rows_of_scope(scope)

        rows = self._keeper.revalidated(find, lambda found: found)
        return self._pinned.pieces(rows, profile_path(scope))

    def pieces_of(self, ranking: Ranking) -> list[Piece]:
        """Return passages of the hits of a ranking and of the neighbours of the best 5.

        Returns at most 3 per note: first the best passage of each note, by falling score of the
        notes, then the second best ones, then the third. Reads the files now; notes that were
        deleted have none.
        """
        by_rank: list[list[Piece]] = [[] for _ in range(_MAX_PASSAGES_BY_RANK)]
        for source in self._sources_of(ranking):
            pieces = self._pieces_of_note(ranking, source, source.score, _ONLY_PASSAGES)
            for rank, piece in enumerate(pieces[:_MAX_PASSAGES_BY_RANK]):
                by_rank[rank].append(replace(piece, score=source.score / (rank + 1)))
        return [piece for pieces in by_rank for piece in pieces]

    def _tokenizer(self) -> tuple[str, CountTokens]:
        """Return the name of a tokenizer, and a function that counts the tokens of a text.

        If the embedder is the bundled one, they are those of its tokenizer. Otherwise the name is
        "estimate", and the function estimates. Loads the embedder.
        """
        embedder, _ = self._embeddings.load()
        if isinstance(embedder, Multilingual):
            return embedder.wordllama.name, embedder.wordllama.count_tokens
        return "estimate", count_tokens

    def _sources_of(self, ranking: Ranking) -> list[_Source]:
        """Return the hits and the neighbours of the best 5, by falling score.

        A neighbour is among them only if it contains a word of the query and is no hit itself.
        Notes that are no longer in the index are left out.
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
            repeated=True,
            neighbours_of=[hit.note for hit in best_hits],
            among=frozenset(candidates),
        )

        sources = [
            _Source(details[hit.note], hit.score) for hit in ranking.hits if hit.note in details
        ]
        sources += _neighbours_of(best_hits, candidates, details, ranking)
        return sorted(sources, key=lambda source: -round(source.score, 6))

    def _pieces_of_sources(
        self,
        ranking: Ranking,
        sources: Sequence[_Source],
        budget: int,
    ) -> list[Piece]:
        """Return what a pack may quote of some notes; the parts that count most come first.

        `sources` are sorted by falling score; the first one is the best note. Reads the files now.
        Leaves out notes that were deleted, and parts of hits that count less than `_MIN_WEIGHT`.
        """
        weights = _weights_of(ranking, sources)
        pieces: list[Piece] = []
        for place, (source, weight) in enumerate(zip(sources, weights, strict=True)):
            if weight < _MIN_WEIGHT and not source.via:
                continue
            room = _room_for(budget, is_best=place == 0)
            pieces += self._pieces_of_note(ranking, source, weight, room)
        pieces.sort(key=lambda piece: -round(piece.weight, 6))
        return [piece for piece in pieces if piece.weight >= _MIN_WEIGHT or piece.via]

    def _pieces_of_note(
        self,
        ranking: Ranking,
        source: _Source,
        weight: float,
        room: Room,
    ) -> list[Piece]:
        """Return the parts of a note that may be quoted, those that count most first.

        `weight` is how much the note counts; `room` says whether it may be quoted whole. The
        earlier values of a fact are at its first part only. Returns an empty list if the note was
        deleted. Reads the file of the note.
        """
        details = source.details
        row = details.row
        text = self._notes.text_of(row.path)
        if text is None:
            return []

        changed = changes_in(row, text)
        note = QuotedNote(details, text, ranking.query.words, changed.history)
        shares = self._quality.shares_of_passages(ranking, details, text)
        parts = note.parts(shares, ranking.query.text, room)
        return [
            Piece(
                name=name_of(row.path),
                title=row.title,
                heading=quoted_heading(part.span.headings),
                line=part.span.line,
                modified=row.modified,
                text=part.text,
                score=source.score * part.share,
                weight=weight * part.share,
                start=part.span.start,
                at=part.at,
                via=source.via,
                has_gaps=part.text != text[part.span.start : part.span.stop],
                remark=changed.remark,
                earlier=changed.earlier if number == 0 else (),
                moment=moment_of(row) if ranking.in_order else "",
            )
            for number, part in enumerate(parts)
        ]


def _room_for(budget: int, *, is_best: bool) -> Room:
    """Return how many tokens a whole note may take, and a whole section, 0 but in the best note."""
    whole_note = min(_MAX_WHOLE_TOKENS, int(budget * _WHOLE_NOTE_SHARE))
    section = 0
    if is_best:
        section = min(_MAX_WHOLE_TOKENS, int(budget * _SECTION_SHARE))
    return Room(whole_note, section)


def _weights_of(ranking: Ranking, sources: Sequence[_Source]) -> list[float]:
    """Return how much each of the `sources` counts, as a share of the best one.

    `sources` are sorted by falling score. The scores of a reranker have no known scale, so after a
    reranking only the place of a note decides, and none counts less than `_MIN_WEIGHT`. If no score
    is above 0, all count 1.
    """
    if ranking.reranking is not None:
        places = range(len(sources))
        return [max(_MIN_WEIGHT, _WEIGHT_OF_NEXT**place) for place in places]
    best_score = max((source.score for source in sources), default=0.0)
    if best_score <= 0:
        return [1.0] * len(sources)
    return [source.score / best_score for source in sources]


def _neighbours_of(
    hits: Sequence[Ranked],
    candidates: Mapping[NoteId, Ranked],
    details: Mapping[NoteId, NoteDetails],
    ranking: Ranking,
) -> list[_Source]:
    """Return the candidates that are neighbours of one of the hits, sorted by path.

    `hits` are the best first, and `candidates` are notes by their ids. A neighbour of several hits
    counts as that of the best one. Hits and candidates without `details` are left out.
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

    After a reranking, it is at most the score of the last hit.
    """
    score = neighbour.score + _NEIGHBOUR_SHARE * hit.score
    if ranking.reranking is not None:
        # The scores of hits are on the scale of the reranker, which has not seen this note.
        score = min(score, ranking.hits[-1].score)
    return score
