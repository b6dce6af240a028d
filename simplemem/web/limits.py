"""Limits per token and per address: requests at once, calls, bytes and wrong tokens."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from starlette.types import Message, Receive

from simplemem.note.words import format_count
from simplemem.web.connections import client_block
from simplemem.web.problem_documents import HTTPError
from simplemem.web.tokens import Grant

MAX_BODY_BYTES: Final = 8 * 1024 * 1024  # as large as a message over stdio may be
_BODY_SECONDS: Final = 30.0
_MAX_BUCKETS: Final = 4096
_MAX_IN_FLIGHT: Final = 128  # requests of a token
_MAX_IN_FLIGHT_OF_ADMIN: Final = 512
_MAX_GUESSES: Final = 20  # wrong tokens that an address may send in a minute
_MINUTE: Final = 60.0  # seconds
_HOUR: Final = 3600.0


class LimitedBody:
    """The body of a request while it arrives: its size so far, and its deadline.

    `receive` is that of ASGI. `spend` is called with the size of each part in bytes, and raises
    HTTPError to refuse it. `is_revoked` is set when the token of the request ends.
    """

    def __init__(
        self, receive: Receive, spend: Callable[[int], None], is_revoked: asyncio.Event
    ) -> None:
        self._receive = receive
        self._spend = spend
        self._is_revoked = is_revoked
        self._size = 0
        self._deadline = time.monotonic() + _BODY_SECONDS
        self._is_complete = False

    async def receive(self) -> Message:
        """Return the next part of the body, as the `receive` of ASGI.

        After the last part, waits until the client disconnects or its token ends. Raises HTTPError
        if the body is larger than `MAX_BODY_BYTES` (413), has not arrived after 30 seconds (408),
        or exceeds the quota of its token (429).
        """
        if self._is_complete:
            return await self._wait_for_end()

        message = await self._receive_in_time()
        size = len(message.get("body", b""))
        self._size += size
        if self._size > MAX_BODY_BYTES:
            raise body_too_large()

        self._spend(size)
        self._is_complete = not message.get("more_body")
        return message

    async def _receive_in_time(self) -> Message:
        """Return the next part of the body. Raises HTTPError (408) after the deadline."""
        seconds_left = self._deadline - time.monotonic()
        try:
            async with asyncio.timeout(max(0.0, seconds_left)):
                return await self._receive()
        except TimeoutError:
            message = (
                f"the body of the request took longer than {_BODY_SECONDS:.0f} seconds to arrive"
            )
            raise HTTPError(408, message) from None

    async def _wait_for_end(self) -> Message:
        """Wait until the client disconnects or its token ends, and return ASGI's message for it.

        If the token ends, the message is also that of a disconnection.
        """
        next_message = asyncio.ensure_future(self._receive())
        revocation = asyncio.ensure_future(self._is_revoked.wait())
        try:
            await asyncio.wait((next_message, revocation), return_when=asyncio.FIRST_COMPLETED)
            if self._is_revoked.is_set():
                return {"type": "http.disconnect"}
            return await next_message
        finally:
            next_message.cancel()
            revocation.cancel()


def body_too_large() -> HTTPError:
    """Return the error for a body that is larger than `MAX_BODY_BYTES` (413)."""
    return HTTPError(413, f"the request is larger than {MAX_BODY_BYTES // 1024 // 1024} MB")


class RequestCounter:
    """The number of requests of each token that are in progress. An open stream is one."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    @contextmanager
    def count(self, grant: Grant) -> Iterator[None]:
        """Count a request until the context ends.

        Raises HTTPError (429) if its token already has 128 requests in progress; an administrator
        may have 512.
        """
        max_requests = _MAX_IN_FLIGHT
        if grant.may("admin"):
            max_requests = _MAX_IN_FLIGHT_OF_ADMIN

        holder = grant.identity
        if self._counts[holder] >= max_requests:
            raise HTTPError(
                429,
                f"this token already has {max_requests} requests in progress",
                hint="Close a stream, or wait for an answer.",
                headers={"Retry-After": "2"},
            )

        self._counts[holder] += 1
        try:
            yield
        finally:
            self._counts[holder] -= 1
            if not self._counts[holder]:
                del self._counts[holder]


class _Bucket(NamedTuple):
    """What is left of a quota, and the time of that level on the monotonic clock."""

    level: float
    time: float


class RateLimiter:
    """Counts against the quotas: calls and bytes per token, wrong tokens per address.

    Guards a bucket per quota and token or address. A bucket refills steadily. Those that were not
    used for the longest time are forgotten, which makes them full.
    """

    def __init__(self) -> None:
        self._buckets: OrderedDict[tuple[str, str], _Bucket] = OrderedDict()

    def count_call(self, grant: Grant) -> None:
        """Count a call of a token. Raises HTTPError (429) if it exceeds `grant.calls` a minute.

        Does nothing for a token without such a limit.
        """
        if not grant.calls:
            return

        wait = self._take(("calls", grant.identity), 1, grant.calls, _MINUTE)
        if wait:
            raise _too_many(f"this token is limited to {grant.calls} calls per minute", wait)

    def count_bytes(self, grant: Grant | None, size: int) -> None:
        """Count bytes that a token sends.

        Raises HTTPError (429) if they exceed `grant.kilobytes` an hour. Does nothing without a
        token, or for a token without such a limit.
        """
        if grant is None or not grant.kilobytes or not size:
            return

        wait = self._take(("bytes", grant.identity), size, grant.kilobytes * 1024, _HOUR)
        if wait:
            message = f"this token is limited to sending {grant.kilobytes} kB per hour"
            raise _too_many(message, wait)

    def count_guess(self, address: str) -> None:
        """Count a wrong token of an address.

        Raises HTTPError (429) if its block of addresses has sent more than 20 in a minute.
        """
        wait = self._take(("guess", client_block(address)), 1, _MAX_GUESSES, _MINUTE)
        if wait:
            raise _too_many("too many wrong tokens came from this address", wait)

    def _take(self, key: tuple[str, str], amount: float, capacity: float, seconds: float) -> float:
        """Take an amount from a bucket of a capacity that refills within some seconds.

        `key` is the name of the quota, and the token or address. Returns 0; if the bucket has too
        little, takes nothing and returns how many seconds to wait, at least 1. A new bucket is
        full. Drops the bucket that was not used for longest if there are more than 4096.
        """
        now = time.monotonic()
        bucket = self._buckets.pop(key, _Bucket(capacity, now))
        refilled = (now - bucket.time) * capacity / seconds
        level = min(capacity, bucket.level + refilled)

        is_enough = level >= amount and level >= 1
        rest = level
        if is_enough:
            rest = level - amount
        self._buckets[key] = _Bucket(rest, now)
        if len(self._buckets) > _MAX_BUCKETS:
            self._buckets.popitem(last=False)

        if is_enough:
            return 0.0
        missing = min(amount, capacity) - level
        return max(1.0, missing * seconds / capacity)


class GuessLimiter:
    """Counts the wrong tokens that each address sends, in requests and on the sign-in page.

    Right ones are not counted, and are accepted whatever others of the same address have sent:
    behind a proxy that is not trusted, all clients share its address.
    """

    def __init__(self) -> None:
        self._limiter = RateLimiter()

    def count(self, address: str) -> None:
        """Count a wrong token of an address.

        Raises HTTPError (429) if its block of addresses has sent more than 20 in a minute.
        """
        self._limiter.count_guess(address)


def _too_many(message: str, wait: float) -> HTTPError:
    """Return the error for an exceeded quota (429). `wait` is how many seconds to wait."""
    seconds = int(wait) + 1
    hint = f"Try again in {format_count(seconds, 'second')}."
    return HTTPError(429, message, hint=hint, headers={"Retry-After": str(seconds)})
