"""How like a question some notes are, by meaning and by words, as plain numbers: for rooms above the store that rank by
rules of their own. And the vector of a note, for those who want to see it."""

from __future__ import annotations

from array import array
from collections.abc import Collection
from dataclasses import dataclass

from simplemem.index.door import Narrow, Question
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
    query = read_query(question)
    vector, missing = core.embedding.question(query.text) if query.words else (None, "The question has no word.")
    if not paths or not query.words:
        return Likeness({}, {}, missing)
    narrow, count = Narrow(only=tuple(paths), hidden=True), len(paths)
    asked = Question(query.terms(), (), vector, narrow=narrow, notes=count, nearest=count, closer=0)
    answer = core.index.ask(asked)
    best = max((match.score for match in answer.notes), default=0.0) or 1.0
    meaning = {answer.paths[note]: near.block for note, near in (answer.near or {}).items()}
    words = {answer.paths[match.note]: match.score / best for match in answer.notes}
    return Likeness(meaning, words, "" if meaning else missing or "There are no vectors yet.")


def vector_of(core: Core, path: str) -> tuple[list[float], str] | None:
    """The vector of a note, the mean of its passages' at length one, and the name of the embedder that made them."""
    known, in_use = core.index.known(path), core.index.standing().generations
    rows = [array("b", vector) for vector in core.index.vectors_of(known.id)] if known is not None else []
    if not rows or not in_use:
        return None
    units = [[value / _length(row) for value in row] for row in rows]
    sums = [sum(column) for column in zip(*units, strict=True)]
    length = _length(sums)
    return [round(value / length, 6) for value in sums], in_use[0].embedder


def _length(row: Collection[float]) -> float:
    return sum(value * value for value in row) ** 0.5 or 1.0
