"""How like a question some notes are, by meaning and by words, as plain numbers: for rooms above the store that rank by
rules of their own. And the vector of a note, for those who want to see it."""

from __future__ import annotations

from array import array
from collections.abc import Collection
from dataclasses import dataclass

from simplemem.search.query import read_query
from simplemem.store.core import Core


@dataclass(frozen=True, slots=True)
class Likeness:
    """By path: the cosine of a note's best passage or block, and its score by words divided by the best one's.
    `missing` says why there is no meaning in it, and is empty when there is."""

    meaning: dict[str, float]
    words: dict[str, float]
    missing: str


def likeness(core: Core, question: str, paths: Collection[str]) -> Likeness:
    """How like a question each of these notes is. Those without vectors, or without a word of it, are absent."""
    return core.healing(lambda: _likeness(core, question, paths))


def _likeness(core: Core, question: str, paths: Collection[str]) -> Likeness:
    query, index = read_query(question), core.index
    vector, missing = core.embedding.question(query.text) if query.words else (None, "The question has no word.")
    with index.snapshot():
        known = index.all_known()
        ids = {known[path].id: path for path in paths if path in known}
        among = sorted(ids)
        near = index.nearest(vector, among, len(among)) if vector is not None and among else {}
        found = index.leg("note", query.expression(), max(len(among), 1), among) if query.words and among else []
    best = max((match.score for match in found), default=0.0) or 1.0
    meaning = {ids[note]: nearness.block for note, nearness in near.items()}
    words = {ids[match.note]: match.score / best for match in found}
    return Likeness(meaning, words, "" if meaning else missing or "There are no vectors yet.")


def vector_of(core: Core, path: str) -> tuple[list[float], str] | None:
    """The vector of a note, the mean of its passages' at length one, and the name of the embedder that made them."""
    return core.healing(lambda: _vector_of(core, path))


def _vector_of(core: Core, path: str) -> tuple[list[float], str] | None:
    with core.index.snapshot():
        known = core.index.known(path)
        made = core.index.vectors_of(known.id) if known is not None else []
        in_use = core.index.generations()
    if not made or not in_use:
        return None
    sums = [0.0] * len(made[0])
    for vector in made:
        values = array("b", vector)
        length = sum(value * value for value in values) ** 0.5 or 1.0
        sums = [total + value / length for total, value in zip(sums, values, strict=True)]
    length = sum(value * value for value in sums) ** 0.5 or 1.0
    return [round(value / length, 6) for value in sums], in_use[0].embedder
