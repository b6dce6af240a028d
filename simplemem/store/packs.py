"""Context packs: the best passages for a question within a budget of tokens, cited."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol, runtime_checkable

from simplemem.index.notes import Row
from simplemem.index.text import Place
from simplemem.memory import Filter, Pack
from simplemem.note.names import name_of
from simplemem.note.words import count_tokens
from simplemem.search.excerpt import passage_around
from simplemem.search.pack import Count, pack
from simplemem.search.query import Query
from simplemem.search.voices import Piece
from simplemem.store.core import Core
from simplemem.store.nearby import Reached, reached
from simplemem.store.recall import NO_WORD, Ranking, Recall, told_of_phrases, within
from simplemem.store.showing import nearest_place

_NOTES = 20
_PASSAGES = 3  # of one note
_BLOCKS = 5_000


@runtime_checkable
class _Counts(Protocol):
    """An embedder that has a tokenizer at hand."""

    name: str

    def count_tokens(self, text: str) -> int: ...


class Packs:
    """Context packs of one vault."""

    def __init__(self, core: Core, recall: Recall) -> None:
        self._core = core
        self._index = core.index
        self._recall = recall

    def build(self, text: str, budget: int, filter_: Filter) -> Pack:
        """The best passages for a question within a budget of tokens, cited."""
        budget = within(budget, 50, 100_000, "budget_tokens")
        query = self._recall.read(text)
        if query.asks_nothing():
            return Pack(text, "", 0, (), 0, self._core.state(), NO_WORD)
        asked = self._recall.narrow(filter_, query)
        narrow = self._recall.relaxed(asked)
        for _ in range(2):
            found = self._recall.best(query, narrow, _NOTES, "hybrid")
            near = reached(self._index, found.best, found.rows, found.every)
            rows = found.rows | self._index.rows(each.note for each in near)
            if not self._core.recheck(rows[each.note].path for each in near if each.note in rows):
                break
        tokenizer, count = self._tokenizer()
        packed = pack(self._pieces(found, near, rows, query), budget, count)
        let_go = told_of_phrases(asked, narrow, found=bool(packed.items))
        return Pack(
            text, packed.text, packed.tokens, packed.items, packed.left_out, self._core.state(),
            " ".join(filter(None, (query.instead, let_go, found.degraded))),
            packed.duplicates, packed.omitted, tokenizer,
        )  # fmt: skip

    def _tokenizer(self) -> tuple[str, Count]:
        embedder, _ = self._core.embedding.wanted()
        if isinstance(embedder, _Counts):
            return embedder.name, embedder.count_tokens
        return "estimate", count_tokens

    def _pieces(
        self,
        ranking: Ranking,
        near: Sequence[Reached],
        rows: dict[int, Row],
        query: Query,
    ) -> list[Piece]:
        """The best passage of every note in order, then the next best ones. Notes that were come by through a hit take
        their turn among the hits by their score; the hits stay in the order they have."""
        notes = [(found.note, found.score, "") for found in ranking.best if found.note in rows]
        neighbours = [(each.note, each.score, each.via) for each in near if each.note in rows]
        notes += sorted(neighbours, key=lambda note: rows[note[0]].path)
        notes.sort(key=lambda note: -round(note[1], 6))
        blocks = self._blocks_of([note for note, _, _ in notes], query)
        rounds: list[list[Piece]] = [[] for _ in range(_PASSAGES)]
        for note, score, via in notes:
            row = rows[note]
            text = self._recall.text(row.path)
            if text is None:
                continue
            for k, (place, at) in enumerate(self._passages_of(note, blocks.get(note, ()), ranking)):
                body = text[place.start : place.stop]
                heading = " > ".join(place.headings)
                piece = Piece(name_of(row.path), row.title, heading, place.line, row.modified, body, score / (k + 1))
                rounds[k].append(replace(piece, start=place.start, at=max(0, at - place.start), via=via))
        return [piece for one in rounds for piece in one]

    def _blocks_of(self, notes: Sequence[int], query: Query) -> dict[int, list[int]]:
        """The blocks of some notes that have a word of the question, best first and then as they stand."""
        if not query.words or not notes:
            return {}
        found: dict[int, list[int]] = {}
        matches = self._index.leg("block", query.expression(), _BLOCKS, notes)
        for match in sorted(matches, key=lambda match: (-round(match.score, 6), match.place)):
            found.setdefault(match.note, []).append(match.place)
        return found

    def _passages_of(self, note: int, blocks: Sequence[int], ranking: Ranking) -> list[tuple[Place, int]]:
        """The passages that the best blocks stand in, each with where its best block begins; else the one nearest in
        meaning; else the first."""
        among = self._index.passages(note)
        places = self._index.places(blocks)
        around: dict[Place, int] = {}
        for block in blocks:
            place = places.get(block)
            passage = passage_around(among, place) if place is not None else None
            if place is not None and passage is not None:
                around.setdefault(passage, place.start)
        if not around:
            passage = passage_around(among, nearest_place(self._index, note, ranking.vector))
            if passage is not None:
                around[passage] = passage.start
        return list(around.items())[:_PASSAGES]
