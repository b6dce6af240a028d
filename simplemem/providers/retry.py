"""Try a failed request to a service again, and leave a failing service alone for a while."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from concurrent import futures
from dataclasses import dataclass
from typing import TypeVar

from simplemem.errors import SimplememError, Unavailable
from simplemem.providers.api import IsCancelled, RequestRefused, never_cancelled

_POLL_SECONDS = 0.1  # between two calls of `stopped`
# If a service asks for a longer wait, the call fails, and a later call makes the next attempt.
_MAX_WAIT_SECONDS = 60.0
_MAX_FAILURES = 3  # failed calls in a row; then the service is left alone
_PAUSE_SECONDS = 30.0  # the first pause; each further one is twice as long
_MAX_PAUSE_SECONDS = 600.0
_MAX_DOUBLINGS = 10
_MAX_HURRIED_ATTEMPTS = 2  # of a call with a deadline

_T = TypeVar("_T")
_LOG = logging.getLogger(__name__)


class TransientError(Unavailable):
    """An attempt failed for a reason that may pass.

    If the service says for how many seconds it wants to be left alone, `details["retry_after"]` has
    them.
    """


class _Cancelled(Unavailable):
    """The caller no longer wants the answer. This says nothing about the service."""


@dataclass
class CircuitBreaker:
    """Counts failed calls in a row. After three, the service is left alone for 30 s.

    Each failure after that doubles the time, up to 10 minutes. The breaker itself stops no call.
    """

    failures: int = 0
    paused_until: float = 0.0  # by `time.monotonic()`

    def record_success(self) -> None:
        """Count failed calls from 0 again. This does not end a pause."""
        self.failures = 0

    def record_failure(self, retry_after: float | None) -> None:
        """Count a failed call, and set `paused_until` if it is at least the third in a row.

        If the service asks to be left alone for `retry_after` seconds, the pause begins at the
        first failed call, and lasts that long, but 10 minutes at most.
        """
        self.failures += 1
        if retry_after:
            self.failures = max(self.failures, _MAX_FAILURES)
        if self.failures < _MAX_FAILURES:
            return

        doublings = min(self.failures - _MAX_FAILURES, _MAX_DOUBLINGS)
        pause = retry_after or _PAUSE_SECONDS * 2**doublings
        self.paused_until = time.monotonic() + min(_MAX_PAUSE_SECONDS, pause)


class RetryPolicy:
    """Calls a service from any thread, with exponential backoff and jitter.

    Guards a circuit breaker for calls without a deadline, and one for calls with a deadline: a
    service that is too slow for a search may be fast enough for indexing.
    """

    def __init__(
        self,
        name: str,
        *,
        timeout: float = 30.0,
        attempts: int = 4,
        first_wait: float = 0.5,
    ) -> None:
        """Create a policy for a service.

        `timeout` limits each attempt, in seconds. `attempts` is the greatest number of attempts per
        call. `first_wait` is the longest wait before the second attempt, in seconds; it doubles for
        each later one.
        """
        self.name = name
        self._timeout = timeout
        self._max_attempts = attempts
        self._first_wait = first_wait
        self._background_breaker = CircuitBreaker()
        self._deadline_breaker = CircuitBreaker()
        self._last_failure = ""

    def call(
        self,
        attempt: Callable[[float], _T],
        deadline: float | None = None,
        stopped: IsCancelled = never_cancelled,
    ) -> _T:
        """Call `attempt` until it succeeds, and return its result.

        `attempt` gets the seconds that it may take, and runs in another thread. It is called again
        only after a TransientError; with a deadline, it is called at most twice. A
        RequestRefused of `attempt` is raised as it is. Raises Unavailable if the last attempt
        fails, if none succeeds by the deadline (a `time.monotonic()`), if the service asks for a
        wait of over a minute, if `stopped` returns True, and, without any attempt, while the
        service is left alone.
        """
        self._check_not_paused(deadline)
        max_attempts = self._max_attempts
        end = float("inf")
        breaker = self._background_breaker
        if deadline is not None:
            max_attempts = min(_MAX_HURRIED_ATTEMPTS, max_attempts)
            end = deadline
            breaker = self._deadline_breaker

        failures = 0
        wait = 0.0
        while True:
            try:
                self._sleep(wait, stopped)
                seconds = min(self._timeout, end - time.monotonic())
                answer = self._run_attempt(attempt, seconds, stopped)
            except (RequestRefused, _Cancelled):
                raise
            except SimplememError as error:
                wait = self._wait_before_retry(failures, error)
                failures += 1
                is_in_time = wait <= _MAX_WAIT_SECONDS and time.monotonic() + wait < end
                is_transient = isinstance(error, TransientError)
                if is_transient and is_in_time and failures < max_attempts:
                    _LOG.info("%s: %s; trying again in %.1f s", self.name, error.message, wait)
                    continue
                raise self._give_up(error, breaker) from error

            breaker.record_success()
            return answer

    def _check_not_paused(self, deadline: float | None) -> None:
        """Raise Unavailable, with the last failure, while the service is left alone.

        A call with a deadline heeds all pauses. A call without a deadline heeds only those that
        such calls caused.
        """
        paused_until = self._background_breaker.paused_until
        if deadline is not None:
            paused_until = max(paused_until, self._deadline_breaker.paused_until)
        remaining = paused_until - time.monotonic()
        if remaining <= 0:
            return
        raise Unavailable(
            f"{self._last_failure} (next attempt in {max(1, round(remaining))} s)",
            hint="simplemem tries again by itself.",
            retry_after=round(remaining, 1),
        )

    def _wait_before_retry(self, failures: int, error: SimplememError) -> float:
        """Return the seconds to wait after an error.

        `failures` attempts of this call failed before. The wait is random, up to a limit that
        doubles with each failure (60 s at most). If the service asks for a longer wait, that is
        returned.
        """
        longest = min(_MAX_WAIT_SECONDS, self._first_wait * 2**failures)
        # With full jitter, callers that failed together do not return together.
        wait = random.uniform(0, longest)  # noqa: S311
        retry_after: float = error.details.get("retry_after") or 0.0
        return max(wait, retry_after)

    def _give_up(self, error: SimplememError, breaker: CircuitBreaker) -> Unavailable:
        """Count a failed call in a breaker, and return (not raise) the error for the caller."""
        self._last_failure = error.message
        if isinstance(error, TransientError):
            self._last_failure = f"{self.name} does not answer: {error.message}"
        breaker.record_failure(error.details.get("retry_after"))
        return Unavailable(self._last_failure, hint=error.hint, **error.details)

    def _run_attempt(
        self,
        attempt: Callable[[float], _T],
        seconds: float,
        stopped: IsCancelled,
    ) -> _T:
        """Make one attempt in a thread of its own, and return or raise what it returns or raises.

        Raises TransientError after `seconds`, and _Cancelled if `stopped` returns True; the thread
        is not stopped then. If `seconds` is not positive, no attempt is made, and TransientError is
        raised.
        """
        answer = futures.Future[_T]()

        def run() -> None:
            try:
                answer.set_result(attempt(seconds))
            except BaseException as error:  # noqa: BLE001 - raised again in the calling thread
                answer.set_exception(error)

        if seconds > 0:
            threading.Thread(target=run, name="simplemem-service", daemon=True).start()
        if not self._await(answer, seconds, stopped):
            raise TransientError(f"no answer within {max(0.0, seconds):.3g} s")
        return answer.result()

    def _sleep(self, seconds: float, stopped: IsCancelled) -> None:
        """Wait for some seconds. Raises _Cancelled if `stopped` returns True meanwhile."""
        nothing = futures.Future[None]()
        self._await(nothing, seconds, stopped)

    def _await(self, future: futures.Future[_T], seconds: float, stopped: IsCancelled) -> bool:
        """Wait for a future at most some seconds, and return whether it is done.

        Calls `stopped` ten times per second, and raises _Cancelled if it returns True.
        """
        end = time.monotonic() + seconds
        while True:
            remaining = end - time.monotonic()
            if remaining <= 0:
                return future.done()
            futures.wait([future], min(_POLL_SECONDS, remaining))
            if future.done():
                return True
            if stopped():
                raise _Cancelled(f"the request to {self.name} was cancelled")
