"""Notes ranked by what speaks for them: their words, words that stand side by side, their meaning, and whatever else is
put beside these. Pure.

Every part is divided by its own maximum before it is added: equal-weight rank fusion would give a weak leg the same say,
and cost six points of MRR. What was measured, and what was left out for it, stands in docs/search.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from simplemem.index.door import Answer, Match, Nearness, NoteId, PlaceId

Mode = Literal["hybrid", "text", "semantic"]
MODES: tuple[Mode, ...] = ("hybrid", "text", "semantic")

_BLOCK_WEIGHT = 0.5  # beside 1 of the whole note
_PHRASES = 0.1  # of a score, when there are words; a plateau from 0.07 to 0.14

PARTS = {  # what a score is made of, for `explain`
    "words": f"BM25 of the whole note, and {_BLOCK_WEIGHT} of its best block",
    "phrases": "BM25 of neighbouring words of the question",
    "meaning": "the mean cosine of the best passage and the best block",
    "covered": "how much of the question the best passage covers, word by word by the nearest",
    "dated": "whether it is of the days the question names",
}


@dataclass(frozen=True, slots=True)
class Part:
    """Something that speaks for notes: how much of it each has, and what it counts beside the others."""

    name: str
    weight: float
    values: Mapping[NoteId, float]


@dataclass(frozen=True, slots=True)
class Ranked:
    """A note's place in the ranking, and what put it there."""

    note: NoteId
    path: str
    score: float
    parts: Mapping[str, float]  # each divided by the best of its kind
    matches: Mapping[str, Match]
    nearness: Nearness | None

    @property
    def place(self) -> PlaceId:
        """The best block by words; 0 when no word was found."""
        best = self.matches.get("block")
        return best.place if best is not None else 0


def parts_of(answer: Answer, mode: Mode = "hybrid", lexical_weight: float = 0.6) -> list[Part]:
    """What an answer of the index says for notes: their words, neighbouring words and meaning."""
    words = {match.note: match.score for match in answer.notes}
    for match in _best_blocks(answer).values():
        words[match.note] += _BLOCK_WEIGHT * match.score
    phrases = {match.note: match.score for match in answer.pairs}
    meaning = {note: nearness.score for note, nearness in (answer.near or {}).items()}
    share = {"hybrid": lexical_weight if meaning else 1.0, "text": 1.0, "semantic": 0.0}[mode]
    left = 1 - _PHRASES if phrases else 1.0
    return [
        Part("words", left * share, words),
        Part("phrases", 1 - left, phrases),
        Part("meaning", left * (1 - share), meaning),
    ]


def beside(parts: Sequence[Part], name: str, weight: float, values: Mapping[NoteId, float]) -> list[Part]:
    """The parts with a further one, whose weight is said beside 1 of all others. One that nobody has is left out."""
    if not any(values.values()):
        return list(parts)
    return [replace(part, weight=part.weight / (1 + weight)) for part in [*parts, Part(name, weight, values)]]


def rank(answer: Answer, parts: Sequence[Part]) -> list[Ranked]:
    """The notes for which anything speaks, best first; equal scores in order of their names."""
    best = {part.name: max(part.values.values(), default=0.0) or 1.0 for part in parts}
    matches: dict[NoteId, dict[str, Match]] = {}
    for leg, found in (("note", answer.notes), ("block", _best_blocks(answer).values()), ("phrase", answer.pairs)):
        for match in found:
            matches.setdefault(match.note, {})[leg] = match
    near = answer.near or {}
    ranked = []
    for note in matches.keys() | near.keys():
        shares = {part.name: part.values.get(note, 0.0) / best[part.name] for part in parts}
        score = sum(part.weight * shares[part.name] for part in parts)
        if score > 0:
            ranked.append(Ranked(note, answer.paths[note], score, shares, matches.get(note, {}), near.get(note)))
    return sorted(ranked, key=lambda each: (-round(each.score, 6), each.path))


def _best_blocks(answer: Answer) -> dict[NoteId, Match]:
    best: dict[NoteId, Match] = {}
    for match in answer.blocks:  # best first
        best.setdefault(match.note, match)
    return best
