"""The metrics of a server, in the text format of Prometheus.

A route appears as its pattern, so that no metric contains the name of a note.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

_BUCKETS: Final = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # seconds
_METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_REQUESTS: Final = "simplemem_requests_total"
_SECONDS: Final = "simplemem_request_seconds"


class GaugeRow(NamedTuple):
    """A value of a gauge, and what it is about."""

    labels: str  # in the format of Prometheus, such as `vault="work"`
    value: float


Gauges = Mapping[str, Iterable[GaugeRow]]
"""The rows of each gauge, by the name of the gauge."""


class Metrics:
    """The numbers of requests by method, route and status, and how long each route took.

    All methods may be called from any thread.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # By method, route and status.
        self._requests: Counter[tuple[str, str, int]] = Counter()
        # By route and the seconds that they took at most.
        self._requests_by_bucket: Counter[tuple[str, float]] = Counter()
        self._requests_by_route: Counter[str] = Counter()
        self._seconds_by_route: dict[str, float] = {}

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request that was answered with a status after some seconds.

        `route` is the pattern of its path. A method outside `_METHODS` counts as OTHER, because a
        client may send any.
        """
        if method not in _METHODS:
            method = "OTHER"

        with self._lock:
            self._requests[method, route, status] += 1
            self._requests_by_route[route] += 1
            total_seconds = self._seconds_by_route.get(route, 0.0) + seconds
            self._seconds_by_route[route] = total_seconds
            for limit in _BUCKETS:
                if seconds <= limit:
                    self._requests_by_bucket[route, limit] += 1

    def text(self, gauges: Gauges) -> str:
        """Return all metrics, followed by the gauges."""
        with self._lock:
            lines = [*self._request_lines(), *self._second_lines()]

        for name, rows in gauges.items():
            lines.append(f"# TYPE {name} gauge")
            lines += [_sample(name, row.labels, f"{row.value:g}") for row in rows]
        return "\n".join(lines) + "\n"

    def _request_lines(self) -> list[str]:
        """Return the lines of the counter of requests. The caller holds the lock."""
        lines = [
            f"# HELP {_REQUESTS} Requests answered.",
            f"# TYPE {_REQUESTS} counter",
        ]
        for (method, route, status), count in sorted(self._requests.items()):
            labels = f'method="{method}",route="{route}",status="{status}"'
            lines.append(_sample(_REQUESTS, labels, count))
        return lines

    def _second_lines(self) -> list[str]:
        """Return the lines of the histogram of response times. The caller holds the lock."""
        lines = [
            f"# HELP {_SECONDS} Response time in seconds.",
            f"# TYPE {_SECONDS} histogram",
        ]
        for route, count in sorted(self._requests_by_route.items()):
            label = f'route="{route}"'
            for limit in _BUCKETS:
                bucket_count = self._requests_by_bucket[route, limit]
                labels = f'{label},le="{limit}"'
                lines.append(_sample(f"{_SECONDS}_bucket", labels, bucket_count))

            labels_of_all = f'{label},le="+Inf"'
            lines.append(_sample(f"{_SECONDS}_bucket", labels_of_all, count))

            seconds = self._seconds_by_route[route]
            lines.append(_sample(f"{_SECONDS}_sum", label, f"{seconds:.6f}"))
            lines.append(_sample(f"{_SECONDS}_count", label, count))
        return lines


def _sample(name: str, labels: str, value: int | str) -> str:
    """Return the line of one value: the name of its metric, its labels in braces, the value."""
    return f"{name}{{{labels}}} {value}"
