"""A circuit breaker: a service that failed several times in a row is left alone for a while, then tried once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

_LONGEST = 600.0  # seconds of rest, whatever was asked for


class Breaker:
    """Counts failed calls. `allows` answers for one call, which must be reported by `succeeded` or `failed`."""

    def __init__(
        self, *, after: int = 3, rest_seconds: float = 30.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._after = after
        self._rest = rest_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._failures = 0
        self._rests_until = 0.0
        self._trying = False

    def allows(self) -> bool:
        """Whether a call may be made now. After a rest the first one only, until it is known how that went."""
        with self._lock:
            if self._failures < self._after:
                return True
            if self._clock() < self._rests_until or self._trying:
                return False
            self._trying = True
            return True

    def rests_for(self) -> float:
        """Seconds until the service is tried again; 0 when it may be asked."""
        with self._lock:
            return max(0.0, self._rests_until - self._clock()) if self._failures >= self._after else 0.0

    def succeeded(self) -> None:
        with self._lock:
            self._failures, self._trying = 0, False

    def failed(self, rest_seconds: float | None = None) -> None:
        """`rest_seconds` is what the service itself asked for: then it is left alone at once."""
        with self._lock:
            self._trying = False
            self._failures = max(self._failures + 1, self._after if rest_seconds else 0)
            if self._failures >= self._after:
                doubled = self._rest * 2 ** min(self._failures - self._after, 10)
                self._rests_until = self._clock() + min(_LONGEST, rest_seconds or doubled)

    def gave_up(self) -> None:
        """The call was ended by who asked; it says nothing about the service."""
        with self._lock:
            self._trying = False
