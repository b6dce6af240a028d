"""Context packs: the best passages for a question within a budget of tokens, cited."""

from __future__ import annotations

from collections.abc import Sequence

from simplemem.index.notes import Row
from simplemem.index.text import Place
from simplemem.memory import Filter, Pack
from simplemem.note.names import name_of
from simplemem.search.excerpt import passage_around
from simplemem.search.pack import Piece, pack
from simplemem.search.query import Query, read_query
from simplemem.search.rank import Ranked
from simplemem.store.in_step import InStep
from simplemem.store.recall import NO_WORD, Recall, within

_PACK_NOTES = 20
_PACK_PASSAGES = 3  # of one note
_PACK_BLOCKS = 300


class Packs:
    """Context packs of one vault."""

    def __init__(self, step: InStep, recall: Recall) -> None:
        self._step = step
        self._index = step.index
        self._recall = recall

    def build(self, text: str, budget: int, filter_: Filter) -> Pack:
        """The best passages for a question within a budget of tokens, cited."""
        budget = within(budget, 50, 100_000, "budget_tokens")
        query = read_query(text)
        if query.asks_nothing():
            return Pack(text, "", 0, (), 0, self._step.state(), NO_WORD)
        narrow = self._recall.relaxed(self._recall.narrow(filter_, query))
        ranked, rows, vector, degraded, _ = self._recall.best(query, narrow, _PACK_NOTES, "hybrid")
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
            text = self._recall.text(row.path)
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
        around = around or [passage_around(passages, self._recall.nearest_place(note_id, vector))]
        return [place for place in dict.fromkeys(around) if place is not None][:_PACK_PASSAGES]
