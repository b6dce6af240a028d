"""How long a service is asked, how often, and when it is left alone. An attempt runs in a thread of its own, so that a
slow answer costs a search no more than the search has time for."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from simplemem.errors import SimplememError, Unavailable

T = TypeVar("T")
Stopped = Callable[[], bool]
_LOG = logging.getLogger(__name__)
_LOOK_SECONDS = 0.1  # how soon a wish to stop is heard
_LONGEST_WAIT = 60.0  # between two attempts; a service that wants more is asked again by a later call
_FAILURES = 3  # in a row; then the service is left alone
_REST, _LONGEST_REST = 30.0, 600.0


class Refused(Unavailable):
    """The service is well, and will not take this one request: a text that is too long, a value it does not know."""


class Passing(Unavailable):
    """An attempt failed in a way that may pass. `retry_after`: seconds for which the service asked to be left alone."""


class _NotWanted(Unavailable):
    """Who asked does not want the answer any more, which says nothing about the service."""


@dataclass
class Breaker:
    """A service that failed several times in a row is left alone for a while, each time twice as long."""

    failures: int = 0
    rests_until: float = 0.0

    def failed(self, asked_for: float | None) -> None:
        """`asked_for` is how long the service wants to be left alone: then it is, at once."""
        self.failures = max(self.failures + 1, _FAILURES if asked_for else 0)
        if self.failures >= _FAILURES:
            doubled = _REST * 2 ** min(self.failures - _FAILURES, 10)
            self.rests_until = time.monotonic() + min(_LONGEST_REST, asked_for or doubled)


class Patience:
    """Attempts with exponential backoff and full jitter. One for each service; any thread may call. Calls with a
    deadline (somebody waits) have a breaker of their own: a service too slow for them may be quick enough for the
    background. When the background finds it down, nobody is kept waiting either."""

    def __init__(self, name: str, *, timeout: float = 30.0, attempts: int = 4, first_wait: float = 0.5) -> None:
        self.name = name
        self._timeout, self._attempts, self._first_wait = timeout, attempts, first_wait
        self._calm, self._hurried = Breaker(), Breaker()
        self._last = ""

    def call(self, attempt: Callable[[float], T], deadline: float | None = None, stopped: Stopped = lambda: False) -> T:
        """What `attempt` gives, which is told how many seconds it may take and raises `Passing` for a failure that may
        pass. `deadline` is a `time.monotonic()`."""
        breaker = self._calm if deadline is None else self._hurried
        rests = max(breaker.rests_until, self._calm.rests_until) - time.monotonic()
        if rests > 0:
            raise Unavailable(
                f"{self._last} (it is tried again in {max(1, round(rests))} s)",
                hint="Nothing needs to be done if it comes back by itself.",
                retry_after=round(rests, 1),
            )
        attempts, ends = (self._attempts, float("inf")) if deadline is None else (min(2, self._attempts), deadline)
        failures, wait = 0, 0.0
        while True:
            try:
                self._wait(threading.Event(), wait, stopped)
                answer = self._attempted(attempt, min(self._timeout, ends - time.monotonic()), stopped)
                breaker.failures = 0
                return answer
            except (Refused, _NotWanted):
                raise
            except SimplememError as failure:
                # Full jitter: many who failed together do not return together.
                jittered = random.uniform(0, min(_LONGEST_WAIT, self._first_wait * 2**failures))  # noqa: S311
                failures, wait = failures + 1, max(jittered, failure.details.get("retry_after") or 0.0)
                may_pass = isinstance(failure, Passing)
                if may_pass and failures < attempts and wait <= _LONGEST_WAIT and time.monotonic() + wait < ends:
                    _LOG.info("%s: %s; trying again in %.1f s", self.name, failure.message, wait)
                    continue
                self._last = f"{self.name} does not answer: {failure.message}" if may_pass else failure.message
                breaker.failed(failure.details.get("retry_after"))
                raise Unavailable(self._last, hint=failure.hint, **failure.details) from failure

    def _attempted(self, attempt: Callable[[float], T], seconds: float, stopped: Stopped) -> T:
        """One attempt in a thread that can be left behind, waited for until its time is over."""
        done = threading.Event()
        answer: list[T] = []
        errors: list[BaseException] = []

        def run() -> None:
            try:
                answer.append(attempt(seconds))
            except BaseException as error:  # noqa: BLE001 - raised again in the thread that asked
                errors.append(error)
            done.set()

        if seconds > 0:
            threading.Thread(target=run, name="simplemem-service", daemon=True).start()
        if not self._wait(done, seconds, stopped):
            raise Passing(f"no answer within {max(0.0, seconds):.3g} s")
        if errors:
            raise errors[0]
        return answer[0]

    def _wait(self, done: threading.Event, seconds: float, stopped: Stopped) -> bool:
        """Whether it is done before so many seconds are over. Who asked may stop waiting."""
        ends = time.monotonic() + seconds
        while (left := ends - time.monotonic()) > 0 and not done.wait(min(_LOOK_SECONDS, left)):
            if stopped():
                raise _NotWanted(f"{self.name} was not waited for: the work was stopped")
        return done.is_set()
