"""Context packs: the best passages for a question within a budget of tokens, cited. Notes linked with the best hits, or
of the day before and after, join when they hold a word of it, and weigh little."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from simplemem.index.door import NoteId, Position, Shown
from simplemem.memory import Filter, Pack
from simplemem.note.names import name_of
from simplemem.note.words import count_tokens
from simplemem.search.excerpt import passage_around
from simplemem.search.pack import Piece, pack
from simplemem.services.wordllama import WordLlama
from simplemem.store.core import Core
from simplemem.store.recall import Ranking, ask, ranked, text_of, within

_NOTES = 20
_PASSAGES = 3  # of one note
_STRONG = 5  # hits whose neighbours are looked at
LENT = 0.1  # of a hit's score, to its neighbour


class _Source(NamedTuple):
    """A note whose passages may go in; `via` says how it was found when it is no hit."""

    note: Shown
    score: float
    via: str


def context(core: Core, query: str, *, budget_tokens: int = 1500, filter: Filter | None = None) -> Pack:
    """The best passages for a question within a budget of tokens."""
    budget = within(budget_tokens, 50, 100_000, "budget_tokens")
    asked = ask(core, query, filter or Filter())

    def once() -> tuple[Ranking, list[_Source]]:
        ranking = ranked(core, asked, _NOTES, "hybrid")
        return ranking, _sources(core, ranking)

    ranking, sources = core.fresh(once, lambda found: [source.note.row for source in found[1] if source.via])
    embedder, _ = core.embedding.wanted()
    tokenizer, count = "estimate", count_tokens
    if isinstance(embedder, WordLlama):
        tokenizer, count = embedder.name, embedder.count_tokens
    packed = pack(_pieces(core, sources), budget, count)
    return Pack(
        query, packed.text, packed.tokens, packed.items, packed.left_out, core.state(ranking.asked.standing),
        ranking.degraded_by, packed.duplicates, packed.omitted, tokenizer,
    )  # fmt: skip


def _sources(core: Core, ranking: Ranking) -> list[_Source]:
    """The hits in their order, and between them the neighbours of the best, by their scores."""
    hits = {found.note: found for found in ranking.best}
    near = {found.note: found for found in ranking.every if found.has_word and found.note not in hits}
    strong = [found.note for found in ranking.best[:_STRONG]] if near else []
    question = ranking.question
    shown = core.index.shown(dict.fromkeys(hits, 0), question, blocks=True, beside=strong, among=frozenset(near))
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


def _pieces(core: Core, sources: Sequence[_Source]) -> list[Piece]:
    """The best passage of every note in order, then the next best ones."""
    pieces: list[tuple[int, Piece]] = []
    for note, score, via in sources:
        row, text = note.row, text_of(core, note.row.path)
        if text is None:
            continue
        for k, (place, at) in enumerate(list(_passages_of(note).items())[:_PASSAGES]):
            piece = Piece(
                name_of(row.path), row.title, " > ".join(place.headings), place.line, row.modified,
                text[place.start : place.stop], score / (k + 1), place.start, max(0, at - place.start), via,
            )  # fmt: skip
            pieces.append((k, piece))
    return [piece for _, piece in sorted(pieces, key=lambda each: each[0])]


def _passages_of(note: Shown) -> Mapping[Position, int]:
    """The passages of the best blocks, each with where its block begins; else the nearest, else the first."""
    around: dict[Position, int] = {}
    for place in note.blocks:
        if (passage := passage_around(note.passages, place)) is not None:
            around.setdefault(passage, place.start)
    if not around and (passage := passage_around(note.passages, note.best)) is not None:
        around[passage] = passage.start
    return around
