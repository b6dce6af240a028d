"""Notes ranked by words and by meaning: retrieval.md §2, step for step. Pure but for the questions it asks the index.

Three lexical legs (whole note, best passage, best block) make one lexical score; the best passage and block by cosine make
one semantic score. Each is divided by its own maximum before they are added: equal-weight rank fusion would give a weak
leg the same say, and cost six points of MRR (retrieval.md §3).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from simplemem.index.text import Match
from simplemem.index.vectors import Nearness

Mode = Literal["hybrid", "text", "semantic"]
MODES: tuple[Mode, ...] = ("hybrid", "text", "semantic")

_LIMITS = {"note": 300, "passage": 900, "block": 1500}
_NEAREST = 200
_WEIGHTS = {"note": 1.0, "passage": 1.0, "block": 0.5}


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
    words: float  # the lexical score, divided by the best
    meaning: float  # the semantic score, divided by the best
    matches: Mapping[str, Match]
    nearness: Nearness | None

    @property
    def place(self) -> int:
        """The best block, else the best passage by words; 0 when no word was found."""
        best = self.matches.get("block") or self.matches.get("passage")
        return best.place if best is not None else 0

    def why(self) -> dict[str, Any]:
        """The numbers behind the score."""
        told: dict[str, Any] = {"words": round(self.words, 4), "meaning": round(self.meaning, 4)}
        if self.matches:
            told["bm25"] = {name: round(match.score, 4) for name, match in self.matches.items()}
        if self.nearness is not None:
            told["cosine"] = {
                "passage": round(self.nearness.passage, 4),
                "block": round(self.nearness.block, 4),
            }
        return told


def rank(
    legs: Legs,
    expression: str,
    vector: bytes | None,
    ids: Sequence[int] | None,
    mode: Mode = "hybrid",
    lexical_weight: float = 0.6,
) -> list[Ranked]:
    """The notes that words or the meaning of the question lead to, best first; equal scores in order of id."""
    matches: dict[int, dict[str, Match]] = {}
    lexical: dict[int, float] = {}
    if expression and mode != "semantic":
        among = ids
        for name, limit in _LIMITS.items():
            rows = legs.leg(name, expression, limit, among)
            if name == "note":
                among = [match.note for match in rows]  # the finer legs order the best notes; they find no others
            for match in rows:
                found = matches.setdefault(match.note, {})
                if name not in found:  # rows come best first
                    found[name] = match
                    lexical[match.note] = lexical.get(match.note, 0.0) + _WEIGHTS[name] * match.score
    near = legs.nearest(vector, ids, _NEAREST, lexical.keys()) if vector is not None and mode != "text" else {}
    weight = {"hybrid": lexical_weight if near else 1.0, "text": 1.0, "semantic": 0.0}[mode]
    top_lexical = max(lexical.values(), default=0.0) or 1.0
    top_near = max((nearness.score for nearness in near.values()), default=0.0) or 1.0
    ranked = []
    for note in lexical.keys() | near.keys():
        nearness = near.get(note)
        words = lexical.get(note, 0.0) / top_lexical
        meaning = nearness.score / top_near if nearness is not None else 0.0
        score = weight * words + (1 - weight) * meaning
        if score > 0:
            ranked.append(Ranked(note, score, words, meaning, matches.get(note, {}), nearness))
    ranked.sort(key=lambda row: (-round(row.score, 6), row.note))
    return ranked
