"""Means, and how sure they are: 95 % intervals by resampling the questions. Pure, and the same for the same seed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Numbers = np.ndarray[Any, np.dtype[np.float64]]

from simplemem.evaluate.asking import Measured, Outcome
from simplemem.evaluate.pairs import in_order

_TIMES = 2_000
_AT_ONCE = 2_000_000  # numbers


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure, and where it lies in 95 of 100 resamplings."""

    value: float
    low: float
    high: float

    def as_dict(self) -> dict[str, float]:
        return {"value": round(self.value, 4), "low": round(self.low, 4), "high": round(self.high, 4)}


_SEED = 1
QUALITY = ("recall5", "recall10", "mrr")


def interval(values: Sequence[float], statistic: str = "mean", seed: int = _SEED) -> Figure:
    """The mean, median or 95th percentile (`p95`) of these values, with its interval."""
    import numpy as np

    chance = np.random.default_rng(seed)
    every = np.asarray(values, dtype=np.float64)
    of = _statistic(statistic)
    share = max(1, _AT_ONCE // len(every))
    drawn = [
        of(every[chance.integers(0, len(every), (min(share, _TIMES - done), len(every)))], 1)
        for done in range(0, _TIMES, share)
    ]
    low, high = np.percentile(np.concatenate(drawn), [2.5, 97.5])
    return Figure(float(of(every, 0)), float(low), float(high))


def _statistic(name: str) -> Callable[[Numbers, int], Any]:
    import numpy as np

    def mean(values: Numbers, axis: int) -> Any:
        return np.mean(values, axis=axis)

    def median(values: Numbers, axis: int) -> Any:
        return np.median(values, axis=axis)

    def p95(values: Numbers, axis: int) -> Any:
        return np.percentile(values, 95, axis=axis)

    return {"mean": mean, "median": median, "p95": p95}[name]


def figures_of(outcomes: Sequence[Outcome]) -> dict[str, Figure]:
    """Every figure of a row or of one kind in it."""
    found = {name: interval([getattr(outcome, name) for outcome in outcomes]) for name in QUALITY}
    found["tokens"] = interval([outcome.tokens for outcome in outcomes])
    times = [outcome.ms for outcome in outcomes if outcome.ms is not None]
    if times:
        found |= {"ms_median": interval(times, "median"), "ms_p95": interval(times, "p95")}
    return found


def difference(of: Iterable[Outcome], to: Iterable[Outcome]) -> dict[str, Figure]:
    """By how much one row is better than another, question by question: what both find hard says nothing."""
    pairs = list(zip(of, to, strict=True))
    return {name: interval([getattr(a, name) - getattr(b, name) for a, b in pairs]) for name in QUALITY}


def report(measured: Measured, base: str) -> dict[str, Any]:
    """All figures as plain values: rows, rows by kind, and how the others differ from `base`."""
    rows = []
    for label, outcomes in measured.rows.items():
        kinds = in_order({outcome.kind for outcome in outcomes})
        by_kind = {kind: [outcome for outcome in outcomes if outcome.kind == kind] for kind in kinds}
        row: dict[str, Any] = {"name": label, "questions": len(outcomes), **_plain(figures_of(outcomes))}
        row["kinds"] = [
            {"kind": kind, "questions": len(some), **_plain(figures_of(some))} for kind, some in by_kind.items()
        ]
        if label != base:
            row["difference"] = _plain(difference(outcomes, measured.rows[base]))
        if told := measured.degraded.get(label):
            row["degraded"] = [{"questions": count, "why": why} for why, count in told.most_common(5)]
        rows.append(row)
    return {"rows": rows, "skipped": measured.skipped, "private": measured.private}


def _plain(figures: dict[str, Figure]) -> dict[str, dict[str, float]]:
    return {name: figure.as_dict() for name, figure in figures.items()}
