"""How long a service is asked, how often, and when it is left alone.

A call is made of attempts. Each runs in a thread of its own, so that whoever asked can go on without it: a name that is
not resolved, or an answer that comes a byte a minute, costs a search no more than the search has time for.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from simplemem.errors import SimplememError, Unavailable
from simplemem.services.failures import Passing, Refused

T = TypeVar("T")
_LOG = logging.getLogger(__name__)
_LOOK_SECONDS = 0.1  # how soon a wish to stop is heard
_LONGEST_WAIT = 60.0  # between two attempts; a service that wants more is asked again by a later call
_LONGEST_REST = 600.0  # of a breaker, whatever was asked for


class Breaker:
    """A service that failed several times in a row is left alone for a while, then tried once. `allows` answers for one
    call, which must be reported by `succeeded`, `failed` or `gave_up`."""

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
        """Whether a call may be made now. After a rest the first one only, until its outcome is known."""
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
                self._rests_until = self._clock() + min(_LONGEST_REST, rest_seconds or doubled)

    def gave_up(self) -> None:
        """The call was ended by who asked; it says nothing about the service."""
        with self._lock:
            self._trying = False


class Patience:
    """Attempts with exponential backoff and full jitter, and a breaker. One for each service; any thread may call.

    A call with a deadline is somebody waiting for an answer, one without is work in the background. Each kind has a
    breaker: a service too slow for the one may be quick enough for the other. When the background finds it down,
    nobody is kept waiting either.
    """

    def __init__(
        self,
        name: str,
        *,
        timeout: float = 30.0,
        attempts: int = 4,
        first_wait: float = 0.5,
        calm: Breaker | None = None,
        hurried: Breaker | None = None,
    ) -> None:
        self.name = name
        self.timeout = timeout
        self._attempts = max(1, attempts)
        self._first_wait = first_wait
        self._calm = calm or Breaker()
        self._hurried = hurried or Breaker()
        self._last = ""

    def call(
        self,
        attempt: Callable[[float], T],
        *,
        deadline: float | None = None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> T:
        """What `attempt` gives, which is told how many seconds it may take. `deadline` is a `time.monotonic()`.

        It raises `Passing` for a failure that may pass, and anything else for one that will not.
        """
        breaker = self._admitted(hurried=deadline is not None)
        try:
            answer = self._persistently(attempt, deadline, stopped)
        except Refused:
            breaker.succeeded()
            raise
        except _Stopped:
            breaker.gave_up()
            raise Unavailable(f"{self.name} was not waited for: the work was stopped") from None
        except SimplememError as error:
            self._last = error.message
            breaker.failed(error.details.get("retry_after"))
            raise
        except BaseException:
            breaker.gave_up()
            raise
        breaker.succeeded()
        return answer

    def _admitted(self, *, hurried: bool) -> Breaker:
        breaker = self._hurried if hurried else self._calm
        rests = max(breaker.rests_for(), self._calm.rests_for() if hurried else 0.0)
        if rests > 0 or not breaker.allows():
            raise Unavailable(
                f"{self._last or self.name + ' failed several times'} (it is tried again in {max(1, round(rests))} s)",
                hint="Nothing needs to be done if it comes back by itself.",
                retry_after=round(rests, 1),
            )
        return breaker

    def _persistently(self, attempt: Callable[[float], T], deadline: float | None, stopped: Callable[[], bool]) -> T:
        attempts = self._attempts if deadline is None else min(2, self._attempts)
        for count in range(1, attempts + 1):
            left = _seconds_left(deadline)
            if left <= 0:
                raise self._failure(Passing("no answer within the time there was for it"))
            try:
                return _beside(attempt, min(self.timeout, left), stopped)
            except Passing as failure:
                wait = self._wait(count, failure)
                if count == attempts or wait > _LONGEST_WAIT or wait >= _seconds_left(deadline):
                    raise self._failure(failure) from failure
                _LOG.info("%s: %s; trying again in %.1f s", self.name, failure.sentence, wait)
            ends = time.monotonic() + wait
            while (left := ends - time.monotonic()) > 0:
                if stopped():
                    raise _Stopped
                time.sleep(min(_LOOK_SECONDS, left))
        raise AssertionError("the last attempt either answers or raises")

    def _wait(self, count: int, failure: Passing) -> float:
        """Full jitter: anything up to the doubled wait, so that many who failed together do not return together."""
        jittered = random.uniform(0, min(_LONGEST_WAIT, self._first_wait * 2 ** (count - 1)))  # noqa: S311
        return max(jittered, failure.retry_after or 0.0)

    def _failure(self, failure: Passing) -> Unavailable:
        details: dict[str, Any] = dict(failure.details)
        if failure.retry_after is not None:
            details["retry_after"] = round(failure.retry_after, 1)
        return Unavailable(f"{self.name} does not answer: {failure.sentence}", hint=failure.hint, **details)


class _Stopped(Exception):
    """Who asked does not want the answer any more."""


def _beside(attempt: Callable[[float], T], seconds: float, stopped: Callable[[], bool]) -> T:
    """One attempt in a thread that can be left behind, waited for until its time is over or nobody wants the answer."""
    done = threading.Event()
    answer: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            answer.append(attempt(seconds))
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that asked
            errors.append(error)
        done.set()

    threading.Thread(target=run, name="simplemem-service", daemon=True).start()
    ends = time.monotonic() + seconds
    while not done.wait(min(_LOOK_SECONDS, max(0.001, ends - time.monotonic()))):
        if stopped():
            raise _Stopped
        if time.monotonic() >= ends:
            raise Passing(f"no answer within {seconds:.3g} s")
    if errors:
        raise errors[0]
    return answer[0]


def _seconds_left(deadline: float | None) -> float:
    return float("inf") if deadline is None else deadline - time.monotonic()
