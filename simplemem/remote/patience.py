"""How long a service is asked, how often, and when it is left alone.

A call is made of attempts. Each runs in a thread of its own, so that whoever asked can go on without it: a name that is
not resolved, or an answer that comes a byte a minute, costs a search no more than the search has time for.
"""

from __future__ import annotations

import logging
import queue
import random
import threading
import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from simplemem.errors import SimplememError, Unavailable
from simplemem.remote.breaker import Breaker
from simplemem.remote.failures import Passing, Refused

T = TypeVar("T")
_LOG = logging.getLogger(__name__)
_LOOK_SECONDS = 0.1  # how soon a wish to stop is heard
_IDLE_SECONDS = 30.0
_LONGEST_WAIT = 60.0  # between two attempts; a service that wants more is asked again by a later call


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
        self._workers = _Workers()
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

    def close(self) -> None:
        """Let go of threads that wait for work. A later call has new ones."""
        self._workers.close()

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
                made = _Attempt(attempt, min(self.timeout, left))
                self._workers.make(made)
                return made.answer(stopped)
            except Passing as failure:
                wait = self._wait(count, failure)
                if count == attempts or wait > _LONGEST_WAIT or wait >= _seconds_left(deadline):
                    raise self._failure(failure) from failure
                _LOG.info("%s: %s; trying again in %.1f s", self.name, failure.said, wait)
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
        return Unavailable(f"{self.name} does not answer: {failure.said}", hint=failure.hint, **details)


class _Stopped(Exception):
    """Who asked does not want the answer any more."""


class _Attempt(Generic[T]):
    """One attempt, made by a worker that can be left behind. It ends by itself when its own time is over."""

    def __init__(self, ask: Callable[[float], T], seconds: float) -> None:
        self._ask = ask
        self._seconds = seconds
        self._done = threading.Event()
        self._answer: list[T] = []
        self._error: BaseException | None = None

    def answer(self, stopped: Callable[[], bool]) -> T:
        """The answer, waited for until its time is over or it is not wanted any more."""
        ends = time.monotonic() + self._seconds
        while not self._done.wait(min(_LOOK_SECONDS, max(0.001, ends - time.monotonic()))):
            if stopped():
                raise _Stopped
            if time.monotonic() >= ends:
                raise Passing(f"no answer within {self._seconds:.3g} s")
        if self._error is not None:
            raise self._error
        return self._answer[0]

    def run(self) -> None:
        try:
            self._answer.append(self._ask(self._seconds))
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that asked
            self._error = error

    def done(self) -> None:
        self._done.set()


class _Workers:
    """Threads that make attempts, one after the other: clients keep their connections by thread. An idle one ends soon."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[queue.SimpleQueue[_Attempt[Any] | None]] = []

    def make(self, attempt: _Attempt[Any]) -> None:
        with self._lock:
            jobs = self._idle.pop() if self._idle else None
        if jobs is None:
            jobs = queue.SimpleQueue()
            threading.Thread(target=self._work, args=(jobs,), name="simplemem-remote", daemon=True).start()
        jobs.put(attempt)

    def close(self) -> None:
        """End those that are idle; the others end soon after their attempt."""
        with self._lock:
            idle, self._idle = self._idle, []
        for jobs in idle:
            jobs.put(None)

    def _work(self, jobs: queue.SimpleQueue[_Attempt[Any] | None]) -> None:
        while True:
            try:
                attempt = jobs.get(timeout=_IDLE_SECONDS)
            except queue.Empty:
                with self._lock:
                    if jobs in self._idle:
                        self._idle.remove(jobs)
                        return
                continue  # taken at this moment: the attempt is on its way
            if attempt is None:
                return
            attempt.run()
            with self._lock:
                self._idle.append(jobs)
            attempt.done()
            del attempt  # an idle thread holds on to no request


def _seconds_left(deadline: float | None) -> float:
    return float("inf") if deadline is None else deadline - time.monotonic()
