"""The ranking of notes that one search yields, as a value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from simplemem.index.api import IndexFilter, IndexProgress, IndexQuery, Matches, NoteDetails, NoteId
from simplemem.search import rank
from simplemem.search.query import Query
from simplemem.search.rank import Mode, Ranked, Signal


@dataclass(frozen=True, slots=True)
class RerankedNote:
    """What a reranker made of one note: its score, and the note's rank before."""

    score: float
    rank_before: int


@dataclass(frozen=True, slots=True)
class Reranking:
    """The answer of a reranker for the best notes of a search."""

    name: str
    is_remote: bool
    max_candidates: int
    notes: Mapping[NoteId, RerankedNote]


@dataclass(frozen=True, slots=True)
class Ranking:
    """The best notes for a query, and everything that their order was computed from."""

    query: Query

    # The filter as the query and the caller ask for it. The one in `question` may be wider.
    filter: IndexFilter

    # The index at the time of the search.
    status: IndexProgress

    # "text" if there was no vector of the query, whatever was asked for.
    mode: Mode

    # What the index was asked, and what it found.
    question: IndexQuery
    matches: Matches

    signals: Sequence[Signal]

    # The best notes by their signals; `all_notes` has the others too.
    ranked: Sequence[Ranked]

    # The notes to show, best first. `details` has each of them, and may have others.
    hits: Sequence[Ranked]
    details: Mapping[NoteId, NoteDetails]

    # Sentences about what the search lacked, such as vectors; "" if nothing.
    degraded: str = ""

    # Whether the query asks in what order things happened.
    in_order: bool = False

    # If a reranker ordered the hits, what it answered.
    reranking: Reranking | None = None

    def all_notes(self) -> Sequence[Ranked]:
        """Return the whole ranking by signals. Few callers need it, so it is computed here."""
        if not self.signals:
            return self.ranked
        return rank.ordered(self.matches, self.signals)
