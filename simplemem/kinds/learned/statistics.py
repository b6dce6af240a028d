"""What there is, in numbers: totals, by type and by confidence, what is read most, and how long answers took. Pure but for
the clock that measures them."""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from simplemem.kinds.learned.access import NEVER, Read
from simplemem.kinds.learned.entries import Entry

_HIGH, _MEDIUM = 0.8, 0.5
_MOST_READ: Final = 5
_KEPT: Final = 1000  # of the last answers of each kind


def stats(entries: Sequence[Entry], read: Mapping[str, Read]) -> dict[str, Any]:
    """The numbers about some entries; confidence is high from 0.8 on, medium from 0.5 on."""
    by_confidence = {"high": 0, "medium": 0, "low": 0}
    for entry in entries:
        if entry.confidence is not None:
            by_confidence[level(entry.confidence)] += 1
    often = sorted(entries, key=lambda entry: (-read.get(entry.id, NEVER).count, entry.name))
    return {
        "total": len(entries),
        "by_type": dict(sorted(Counter(entry.type for entry in entries).items())),
        "by_confidence": by_confidence,
        "verified": sum(entry.verified for entry in entries),
        "superseded": sum(entry.is_superseded for entry in entries),
        "never_read": sum(not read.get(entry.id, NEVER).count for entry in entries),
        "most_accessed": [
            {"id": entry.id, "says": entry.headline, "count": read[entry.id].count, "last": read[entry.id].last}
            for entry in often[:_MOST_READ]
            if entry.id in read
        ],
    }


def level(confidence: float) -> str:
    return "high" if confidence >= _HIGH else "medium" if confidence >= _MEDIUM else "low"


class Latencies:
    """How long the answers of this process took, by kind. The last thousand of each are looked at."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._lately: dict[str, deque[float]] = defaultdict(lambda: deque(maxlen=_KEPT))

    @contextmanager
    def measured(self, kind: str) -> Iterator[None]:
        """Measure what is done inside, also when it fails."""
        began = time.perf_counter()
        try:
            yield
        finally:
            took = time.perf_counter() - began
            with self._guard:
                self._counts[kind] += 1
                self._lately[kind].append(took)

    def shown(self) -> dict[str, dict[str, float]]:
        """For each kind: how many, and in milliseconds the middle one, the one that one in twenty exceeds, the longest."""
        with self._guard:
            counts, lately = dict(self._counts), {kind: sorted(times) for kind, times in self._lately.items()}
        return {
            kind: {
                "count": counts[kind],
                "median_ms": _ms(times[len(times) // 2]),
                "p95_ms": _ms(times[min(len(times) - 1, len(times) * 95 // 100)]),
                "max_ms": _ms(times[-1]),
            }
            for kind, times in sorted(lately.items())
        }


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 2)
