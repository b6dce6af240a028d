"""Notes ranked by words and by meaning. Pure but for the questions it asks the index.

The whole note and its best block by BM25 make the score of words; the words of the question that also stand side by side
in the note make the score of phrases; the best passage and block by cosine make the score of meaning. Each is divided by
its own maximum before they are added: equal-weight rank fusion would give a weak leg the same say, and cost six points of
MRR. What was measured, and what was left out for it, stands in docs/search.md.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

from simplemem.index.legs import Match
from simplemem.index.vectors import Nearness
from simplemem.search.query import Query

Mode = Literal["hybrid", "text", "semantic"]
Part = Literal["covered", "dated"]  # of a score, beside words and meaning
FURTHER: tuple[Part, ...] = ("covered", "dated")
MODES: tuple[Mode, ...] = ("hybrid", "text", "semantic")

_NOTES, _BLOCKS, _NEAREST = 300, 1500, 200  # so many rows of a leg are looked at
_FINER = 100  # so many of the best notes are looked at more closely; fifty give the same figures on LoCoMo
_BLOCK_WEIGHT = 0.5  # beside 1 of the whole note
_PHRASES = 0.1  # of a score, when there are words; a plateau from 0.07 to 0.14

PARTS = {  # what a score is made of, for `explain`
    "words": f"BM25 of the whole note, and {_BLOCK_WEIGHT} of its best block",
    "phrases": "BM25 of neighbouring words of the question",
    "meaning": "the mean cosine of the best passage and the best block",
    "covered": "how much of the question the best passage covers, word by word by the nearest",
    "dated": "whether it is of the days the question names",
}


class Legs(Protocol):
    """What ranking asks of the index."""

    def leg(self, name: str, expression: str, limit: int, ids: Sequence[int] | None) -> list[Match]: ...

    def nearest(
        self, query: bytes, ids: Sequence[int] | None, limit: int, also: Collection[int]
    ) -> dict[int, Nearness]: ...


@dataclass(frozen=True, slots=True)
class Ranked:
    """A note's place in the ranking, and what put it there."""

    note: int
    score: float
    words: float  # each divided by the best
    phrases: float
    meaning: float
    matches: Mapping[str, Match]
    nearness: Nearness | None
    covered: float = 0.0  # of a question's words, by its best passage
    dated: float = 0.0  # on a day the question names

    @property
    def place(self) -> int:
        """The best block by words; 0 when no word was found."""
        best = self.matches.get("block")
        return best.place if best is not None else 0


def rank(
    legs: Legs,
    query: Query,
    vector: bytes | None,
    ids: Sequence[int] | None,
    mode: Mode = "hybrid",
    lexical_weight: float = 0.6,
) -> list[Ranked]:
    """The notes that words or the meaning of the question lead to, best first; equal scores in order of id."""
    matches: dict[int, dict[str, Match]] = {}
    words: dict[int, float] = {}
    phrases: dict[int, float] = {}
    if query.words and mode != "semantic":
        matches = _matches(legs, query, ids)
        words = {note: _score(found) for note, found in matches.items()}
        phrases = {note: found["phrase"].score for note, found in matches.items() if "phrase" in found}
    near = legs.nearest(vector, ids, _NEAREST, words.keys()) if vector is not None and mode != "text" else {}
    meaning = {note: nearness.score for note, nearness in near.items()}
    weigh = weights(mode, lexical_weight, meaning=bool(near), phrases=bool(phrases))
    best_words, best_phrases = max(words.values(), default=0.0) or 1.0, max(phrases.values(), default=0.0) or 1.0
    best_near = max(meaning.values(), default=0.0) or 1.0
    ranked = []
    for note in words.keys() | near.keys():
        by_words, by_phrases = words.get(note, 0.0) / best_words, phrases.get(note, 0.0) / best_phrases
        by_meaning = meaning.get(note, 0.0) / best_near
        score = weigh["words"] * by_words + weigh["phrases"] * by_phrases + weigh["meaning"] * by_meaning
        if score > 0:
            ranked.append((-round(score, 6), note, score, by_words, by_phrases, by_meaning))
    ranked.sort()
    return [
        Ranked(note, score, by_words, by_phrases, by_meaning, matches.get(note, _NO_MATCH), near.get(note))
        for _, note, score, by_words, by_phrases, by_meaning in ranked
    ]


_NO_MATCH: Mapping[str, Match] = {}


def with_part(ranked: Sequence[Ranked], part: Part, values: Sequence[float], weight: float) -> list[Ranked]:
    """The same notes with another score: what the first ones have of a further part is added, divided by its own maximum
    as every leg is. Those behind them were not looked at, and stay behind."""
    best = max(values, default=0.0)
    if not best:
        return list(ranked)
    added = [*(value / best for value in values), *[0.0] * (len(ranked) - len(values))]
    changed: list[dict[str, Any]] = [
        {"score": (row.score + weight * value) / (1 + weight), part: value}
        for row, value in zip(ranked, added, strict=True)
    ]
    return [replace(row, **change) for row, change in zip(ranked, changed, strict=True)]


def weights(
    mode: Mode, lexical_weight: float, *, meaning: bool, phrases: bool, further: Mapping[Part, float] | None = None
) -> dict[str, float]:
    """What each part counts in a score: of meaning and of phrases, whether any note had them; of `further` parts, their
    weights, in the order in which they were added."""
    share = {"hybrid": lexical_weight if meaning else 1.0, "text": 1.0, "semantic": 0.0}[mode]
    of_phrases = _PHRASES if phrases else 0.0
    parts = {"words": (1 - of_phrases) * share, "phrases": of_phrases, "meaning": (1 - of_phrases) * (1 - share)}
    for added, beside in (further or {}).items():
        parts = {part: weight / (1 + beside) for part, weight in [*parts.items(), (added, beside)]}
    return parts


def _matches(legs: Legs, query: Query, ids: Sequence[int] | None) -> dict[int, dict[str, Match]]:
    """The best row of every leg for the notes that have a word of the question. The finer legs order those notes; they
    find no others."""
    matches = {match.note: {"note": match} for match in legs.leg("note", query.expression(), _NOTES, ids)}
    among = _first_with_equals(list(matches.values()))
    for match in legs.leg("block", query.expression(), _BLOCKS, among):
        matches[match.note].setdefault("block", match)  # rows come best first
    if query.pairs:
        for match in legs.leg("note", query.side_by_side(), _NOTES, among):
            matches[match.note]["phrase"] = match
    return matches


def _first_with_equals(found: Sequence[Mapping[str, Match]]) -> list[int]:
    """The first notes, and those that score as the last of them: the order in which notes were indexed says nothing."""
    count = _FINER
    while count < len(found) and _equal(found[count], found[_FINER - 1]):
        count += 1
    return [each["note"].note for each in found[:count]]


def _equal(one: Mapping[str, Match], other: Mapping[str, Match]) -> bool:
    return round(one["note"].score, 9) == round(other["note"].score, 9)


def _score(found: Mapping[str, Match]) -> float:
    return found["note"].score + (_BLOCK_WEIGHT * found["block"].score if "block" in found else 0.0)
