"""Context packs: the best passages for a question within a budget of tokens, cited.

Notes that stand beside the best hits, linked with them or of the day before and after, join a pack when they hold a word
of the question themselves, and weigh little.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from simplemem.index.door import NoteId, Place, Shown
from simplemem.memory import Filter, Pack
from simplemem.note.names import name_of
from simplemem.note.words import count_tokens
from simplemem.search.excerpt import passage_around
from simplemem.search.pack import Count, Piece, pack
from simplemem.store.core import Core
from simplemem.store.recall import Ranking, Recall, within

_NOTES = 20
_PASSAGES = 3  # of one note
_STRONG = 5  # hits whose neighbours are looked at
LENT = 0.1  # of a hit's score, to its neighbour


@runtime_checkable
class _Counts(Protocol):
    """An embedder that has a tokenizer at hand."""

    name: str

    def count_tokens(self, text: str) -> int: ...


class _Source(NamedTuple):
    """A note whose passages may go in; `via` says how it was found when it is no hit."""

    note: Shown
    score: float
    via: str


class Packs:
    """Context packs of one vault."""

    def __init__(self, core: Core, recall: Recall) -> None:
        self._core = core
        self._recall = recall

    def build(self, text: str, budget: int, filter_: Filter) -> Pack:
        """The best passages for a question within a budget of tokens, cited."""
        budget = within(budget, 50, 100_000, "budget_tokens")
        asked = self._recall.ask(text, filter_)
        for _ in range(2):
            ranking = self._recall.ranking(asked, _NOTES, "hybrid")
            sources = self._sources(ranking)
            if not self._recall.recheck(source.note.row for source in sources if source.via):
                break
        tokenizer, count = self._tokenizer()
        packed = pack(self._pieces(sources), budget, count)
        return Pack(
            text, packed.text, packed.tokens, packed.items, packed.left_out, self._core.state(ranking.asked.standing),
            ranking.degraded_by, packed.duplicates, packed.omitted, tokenizer,
        )  # fmt: skip

    def _tokenizer(self) -> tuple[str, Count]:
        embedder, _ = self._core.embedding.wanted()
        if isinstance(embedder, _Counts):
            return embedder.name, embedder.count_tokens
        return "estimate", count_tokens

    def _sources(self, ranking: Ranking) -> list[_Source]:
        """The hits in their order, and between them the neighbours of the best, by their scores."""
        hits = {found.note: found for found in ranking.best}
        near = {found.note: found for found in ranking.every if found.matches and found.note not in hits}
        strong = [found.note for found in ranking.best[:_STRONG]] if near else []
        shown = self._core.index.shown(
            dict.fromkeys(hits, 0), ranking.question, blocks=True, beside=strong, among=frozenset(near)
        )
        sources = [_Source(shown[note], found.score, "") for note, found in hits.items() if note in shown]
        neighbours: dict[NoteId, _Source] = {}
        for hit in (hits[note] for note in strong if note in shown):
            for note, via in shown[hit.note].beside:
                if note in near and note in shown and note not in neighbours:
                    score = near[note].score + LENT * hit.score
                    if ranking.reranker:  # what it scored is of another scale, on which no reranker has seen this one
                        score = min(score, ranking.best[-1].score)
                    neighbours[note] = _Source(shown[note], score, f"{via} {name_of(hit.path)}")
        sources += sorted(neighbours.values(), key=lambda source: source.note.row.path)
        return sorted(sources, key=lambda source: -round(source.score, 6))

    def _pieces(self, sources: Sequence[_Source]) -> list[Piece]:
        """The best passage of every note in order, then the next best ones."""
        rounds: list[list[Piece]] = [[] for _ in range(_PASSAGES)]
        for source in sources:
            row, text = source.note.row, self._recall.text(source.note.row.path)
            if text is None:
                continue
            for k, (place, at) in enumerate(list(_passages_of(source.note).items())[:_PASSAGES]):
                heading, score = " > ".join(place.headings), source.score / (k + 1)
                body, from_here = text[place.start : place.stop], max(0, at - place.start)
                piece = Piece(
                    name_of(row.path), row.title, heading, place.line, row.modified, body, score, place.start,
                    from_here, source.via,
                )  # fmt: skip
                rounds[k].append(piece)
        return [piece for one in rounds for piece in one]


def _passages_of(note: Shown) -> Mapping[Place, int]:
    """The passages that the best blocks stand in, each with where its best block begins; else the one nearest in meaning;
    else the first."""
    around: dict[Place, int] = {}
    for place in note.blocks:
        if (passage := passage_around(note.passages, place)) is not None:
            around.setdefault(passage, place.start)
    if not around and (passage := passage_around(note.passages, note.best)) is not None:
        around[passage] = passage.start
    return around
