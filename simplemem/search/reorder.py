"""A ranking ordered again by a reranker's scores. Pure and deterministic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from simplemem.search.rank import Ranked
from simplemem.services.rerank import from_0_to_1


@dataclass(frozen=True, slots=True, kw_only=True)
class Reranked(Ranked):
    """A note that a reranker scored: `score` is that score as a share of 1."""

    reranker: float  # as the provider gave it
    rank_before: int


def by_reranker(found: Ranked) -> dict[str, Any]:
    """What the reranker has to do with a note's rank; nothing where it had no say."""
    if not isinstance(found, Reranked):
        return {}
    return {"reranker": round(found.reranker, 4), "rank_before": found.rank_before}


def reordered(ranked: Sequence[Ranked], scores: Mapping[int, float]) -> list[Ranked]:
    """The notes that have a score in the order of their scores, equal ones as they stood. Every other note keeps its
    place, and shows no more than the note before it and no less than the scored note after it: the scores of a list fall.
    """
    before = {found.note: place for place, found in enumerate(ranked, 1)}
    shares = dict(zip(scores, from_0_to_1(list(scores.values())), strict=True))
    scored = sorted((f for f in ranked if f.note in scores), key=lambda f: (-scores[f.note], before[f.note]))
    best = iter([_scored(f, shares[f.note], scores[f.note], before[f.note]) for f in scored])
    mixed = [next(best) if found.note in scores else found for found in ranked]
    return _falling(mixed)


def _scored(found: Ranked, share: float, score: float, place: int) -> Reranked:
    known = {field.name: getattr(found, field.name) for field in fields(Ranked)}
    return Reranked(**(known | {"score": share}), reranker=score, rank_before=place)


def _falling(mixed: Sequence[Ranked]) -> list[Ranked]:
    floors: list[float] = []
    floor = 0.0
    for found in reversed(mixed):
        floor = found.score if isinstance(found, Reranked) else floor
        floors.append(floor)
    falling: list[Ranked] = []
    ceiling = 1.0
    for found, floor in zip(mixed, reversed(floors), strict=True):
        ceiling = min(ceiling, max(floor, found.score))
        falling.append(replace(found, score=ceiling))
    return falling
