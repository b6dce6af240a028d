"""What a server counts, in the text format of Prometheus. Routes are told by their patterns, never by a note's name."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

_BUCKETS: Final = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)


class Metrics:
    """Requests by method, route and status, and how long they took."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._within: Counter[tuple[str, float]] = Counter()
        self._seconds: Counter[str] = Counter()
        self._answered: Counter[str] = Counter()

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        method = (
            method
            if method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
            else "OTHER"
        )
        with self._guard:
            self._requests[method, route, status] += 1
            self._answered[route] += 1
            self._seconds[route] += seconds  # type: ignore[assignment]  # a float counts as well
            self._within.update((route, most) for most in _BUCKETS if seconds <= most)

    def text(self, gauges: Mapping[str, Iterable[tuple[str, str, float]]]) -> str:
        """All of it: name -> (help, labels, value), beside what was counted."""
        with self._guard:
            requests, answered = sorted(self._requests.items()), sorted(self._answered.items())
            within, seconds = dict(self._within), dict(self._seconds)
        lines = [
            "# HELP simplemem_requests_total Requests answered.",
            "# TYPE simplemem_requests_total counter",
        ]
        for (method, route, status), count in requests:
            lines.append(
                f'simplemem_requests_total{{method="{method}",route="{route}",status="{status}"}} {count}'
            )
        name = "simplemem_request_seconds"
        lines += [f"# HELP {name} Response time in seconds.", f"# TYPE {name} histogram"]
        for route, count in answered:
            for most in _BUCKETS:
                lines.append(
                    f'{name}_bucket{{route="{route}",le="{most}"}} {within.get((route, most), 0)}'
                )
            lines.append(f'{name}_bucket{{route="{route}",le="+Inf"}} {count}')
            lines += [
                f'{name}_sum{{route="{route}"}} {seconds[route]:.6f}',
                f'{name}_count{{route="{route}"}} {count}',
            ]
        for gauge, rows in gauges.items():
            lines.append(f"# TYPE {gauge} gauge")
            lines += [f"{gauge}{{{labels}}} {value:g}" for _, labels, value in rows]
        return "\n".join(lines) + "\n"
