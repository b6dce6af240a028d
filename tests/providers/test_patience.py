"""How often a service is asked, how long it is waited for, and when it is left alone."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from simplemem.errors import Unavailable
from simplemem.providers import retry as module
from simplemem.providers.api import RequestRefused
from simplemem.providers.retry import RetryPolicy, TransientError


class Fails:
    """An attempt that fails so many times, then answers."""

    def __init__(
        self, times: int, failure: Callable[[], Exception] = lambda: TransientError("busy")
    ) -> None:
        self.times = times
        self.calls = 0
        self._failure = failure

    def __call__(self, seconds: float) -> str:
        self.calls += 1
        if self.calls <= self.times:
            raise self._failure()
        return f"answer {self.calls}"


def patience(attempts: int = 4) -> RetryPolicy:
    return RetryPolicy("the service", first_wait=0.001, attempts=attempts)


@pytest.fixture
def short_rests(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(module, "_PAUSE_SECONDS", 0.2)
    monkeypatch.setattr(module, "_MAX_PAUSE_SECONDS", 0.4)
    yield


def test_what_passes_is_tried_again_and_what_does_not_is_not() -> None:
    assert patience().call(Fails(3)) == "answer 4"
    stubborn = Fails(9)
    with pytest.raises(Unavailable, match="the service does not answer: busy"):
        patience().call(stubborn)
    assert stubborn.calls == 4
    for failure in (
        lambda: Unavailable("wrong key"),
        lambda: RequestRefused("too long"),
        lambda: RuntimeError("a bug"),
    ):
        for_good = Fails(9, failure)
        with pytest.raises((Unavailable, RuntimeError)):
            patience().call(for_good)
        assert for_good.calls == 1


def test_a_service_that_wants_to_be_left_alone_for_long_is_given_up_at_once_with_what_it_said() -> (
    None
):
    attempt, waiting = Fails(1, lambda: TransientError("429", retry_after=3600)), patience()
    with pytest.raises(Unavailable) as caught:
        waiting.call(attempt)
    assert (attempt.calls, caught.value.details["retry_after"]) == (1, 3600)
    with pytest.raises(Unavailable, match=r"429.*next attempt in 600 s"):
        waiting.call(attempt)
    assert attempt.calls == 1


def test_somebody_who_waits_waits_until_the_deadline_and_for_two_attempts_at_most() -> None:
    released = threading.Event()
    with pytest.raises(Unavailable, match=r"no answer within 0\.2 s"):
        patience().call(lambda _: released.wait(30), deadline=time.monotonic() + 0.2)
    released.set()
    attempt = Fails(9)
    with pytest.raises(Unavailable):
        patience(attempts=6).call(attempt, deadline=time.monotonic() + 5)
    assert attempt.calls == 2


def test_a_wish_to_stop_is_heard_during_an_attempt_and_between_two() -> None:
    released = threading.Event()
    with pytest.raises(Unavailable, match="was cancelled"):
        patience().call(lambda _: released.wait(30), stopped=lambda: True)
    released.set()
    attempt = Fails(9, lambda: TransientError("429", retry_after=30))
    with pytest.raises(Unavailable, match="was cancelled"):
        patience().call(attempt, stopped=lambda: attempt.calls > 0)
    assert attempt.calls == 1


def test_after_some_failed_calls_it_is_left_alone_then_tried_and_used_again(
    short_rests: None,
) -> None:
    waiting, attempt = patience(attempts=1), Fails(4)
    for _ in range(10):
        with pytest.raises(Unavailable, match="busy"):
            waiting.call(attempt)
    assert attempt.calls == 3
    time.sleep(0.25)
    for _ in range(3):  # one try, which fails: it rests again, and longer
        with pytest.raises(Unavailable, match="busy"):
            waiting.call(attempt)
    assert attempt.calls == 4
    time.sleep(0.45)
    assert [waiting.call(attempt) for _ in range(3)] == ["answer 5", "answer 6", "answer 7"]


def test_refusals_and_stops_say_nothing_about_the_service() -> None:
    waiting = patience(attempts=1)
    for _ in range(5):
        with pytest.raises(RequestRefused):
            waiting.call(Fails(1, lambda: RequestRefused("too long")))
        with pytest.raises(Unavailable, match="was cancelled"):
            waiting.call(lambda _: time.sleep(0.3), stopped=lambda: True)
    assert waiting.call(Fails(0)) == "answer 1"


def test_a_service_too_slow_for_a_question_still_serves_the_background_but_not_the_other_way_round() -> (
    None
):
    released = threading.Event()
    slow = patience(attempts=1)
    for _ in range(5):
        with pytest.raises(Unavailable):
            slow.call(lambda _: released.wait(30), deadline=time.monotonic() + 0.05)
    assert slow.call(Fails(0)) == "answer 1"
    released.set()

    down, attempt = patience(attempts=1), Fails(99)
    for _ in range(3):
        with pytest.raises(Unavailable):
            down.call(attempt)
    with pytest.raises(Unavailable):
        down.call(attempt, deadline=time.monotonic() + 5)
    assert attempt.calls == 3
