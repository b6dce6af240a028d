"""The metrics of a server, in the text format of Prometheus.

A route appears as its pattern, so that no metric contains the name of a note.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

_BUCKETS: Final = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # seconds
_METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_REQUESTS: Final = "simplemem_requests_total"
_SECONDS: Final = "simplemem_request_seconds"
_HEAD_OF_REQUESTS: Final = (
    "# HELP simplemem_requests_total Requests answered.",
    "# TYPE simplemem_requests_total counter",
)
_HEAD_OF_SECONDS: Final = (
    "# HELP simplemem_request_seconds Response time in seconds.",
    "# TYPE simplemem_request_seconds histogram",
)


class GaugeRow(NamedTuple):
    """A value of a gauge, and what it is about."""

    labels: str  # in the format of Prometheus, such as `vault="work"`
    value: float


Gauges = Mapping[str, Iterable[GaugeRow]]
"""The rows of each gauge, by the name of the gauge."""


@dataclass
class _ResponseTimes:
    """How long the requests to one route took.

    `counts` has the number of requests that took at most a limit, by the limit in seconds.
    """

    count: int = 0
    total_seconds: float = 0.0
    counts: Counter[float] = field(default_factory=Counter)

    def add(self, seconds: float) -> None:
        """Add a request that took some seconds."""
        self.count += 1
        self.total_seconds += seconds
        for limit in _BUCKETS:
            if seconds <= limit:
                self.counts[limit] += 1

    def lines(self, route: str) -> list[str]:
        """Return the lines of the histogram for `route`, whose times these are."""
        label = f'route="{route}"'
        lines = []
        for limit in _BUCKETS:
            labels = f'{label},le="{limit}"'
            lines.append(_sample(f"{_SECONDS}_bucket", labels, self.counts[limit]))

        labels_of_all = f'{label},le="+Inf"'
        lines.append(_sample(f"{_SECONDS}_bucket", labels_of_all, self.count))
        lines.append(_sample(f"{_SECONDS}_sum", label, f"{self.total_seconds:.6f}"))
        lines.append(_sample(f"{_SECONDS}_count", label, self.count))
        return lines


class Metrics:
    """The numbers of requests by method, route and status, and how long each route took.

    All methods may be called from any thread.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # By method, route and status.
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._times_by_route: dict[str, _ResponseTimes] = {}

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request that was answered with a status after some seconds.

        `route` is the pattern of its path. A method outside `_METHODS` counts as OTHER, because a
        client may send any.
        """
        if method not in _METHODS:
            method = "OTHER"

        with self._lock:
            self._requests[method, route, status] += 1
            times = self._times_by_route.setdefault(route, _ResponseTimes())
            times.add(seconds)

    def text(self, gauges: Gauges) -> str:
        """Return all metrics, followed by the gauges, as lines of the text format."""
        with self._lock:
            lines = self._request_lines()
            lines += self._second_lines()

        for name, rows in gauges.items():
            lines.append(f"# TYPE {name} gauge")
            lines += [_sample(name, row.labels, f"{row.value:g}") for row in rows]
        return "\n".join(lines) + "\n"

    def _request_lines(self) -> list[str]:
        """Return the lines of the counter of requests. The caller holds the lock."""
        lines = [*_HEAD_OF_REQUESTS]
        for (method, route, status), count in sorted(self._requests.items()):
            labels = f'method="{method}",route="{route}",status="{status}"'
            lines.append(_sample(_REQUESTS, labels, count))
        return lines

    def _second_lines(self) -> list[str]:
        """Return the lines of the histogram of response times. The caller holds the lock."""
        lines = [*_HEAD_OF_SECONDS]
        for route in sorted(self._times_by_route):
            times = self._times_by_route[route]
            lines += times.lines(route)
        return lines


def _sample(name: str, labels: str, value: int | str) -> str:
    """Return the line of one value: the name of its metric, its labels in braces, the value."""
    return f"{name}{{{labels}}} {value}"
