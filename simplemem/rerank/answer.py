"""What a reranker answered: checked, and brought to one scale. Pure. An answer that is not whole is no answer."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from simplemem.errors import Unavailable


def scores_in(name: str, answer: Any, count: int) -> list[float]:
    """The score of each text in a service's JSON: `{"results": [{"index", "relevance_score"}, …]}` as Cohere, Jina and
    vLLM say it, or `[{"index", "score"}, …]` as text-embeddings-inference does; some call the list `data`."""
    rows = answer
    if isinstance(answer, dict):
        rows = answer.get("results", answer.get("data"))
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise Unavailable(f"{name} gave an answer without scores")
    return in_order(name, ((row.get("index"), row.get("relevance_score", row.get("score"))) for row in rows), count)


def in_order(name: str, rows: Iterable[tuple[Any, Any]], count: int) -> list[float]:
    """Scores by the texts' own order, from (index, score) in any order. Each text has exactly one."""
    found: dict[int, float] = {}
    for index, score in rows:
        if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < count:
            raise Unavailable(f"{name} scored a text it was not given")
        if index in found:
            raise Unavailable(f"{name} scored the same text twice")
        found[index] = _number(name, score)
    if len(found) < count:
        raise Unavailable(f"{name} gave {len(found)} scores for {count} texts")
    return [found[index] for index in range(count)]


def _number(name: str, score: Any) -> float:
    try:
        number = float(score) if isinstance(score, (int, float)) and not isinstance(score, bool) else math.nan
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise Unavailable(f"{name} gave a score that is no number")
    return number


def from_0_to_1(scores: Sequence[float]) -> list[float]:
    """Scores as they are shown. Most services give a share of 1; some (llama.cpp, a bare cross-encoder) give logits, whose
    share is their sigmoid. The order stays."""
    if all(0 <= score <= 1 for score in scores):
        return list(scores)
    return [_sigmoid(score) for score in scores]


def _sigmoid(score: float) -> float:
    small = math.exp(-abs(score))
    return 1 / (1 + small) if score >= 0 else small / (1 + small)
