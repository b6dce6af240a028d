"""What every request passes before any room is entered: whose host and origin it names, whose token it bears, how much it
may send and how often. Refused is told in a problem document; each request leaves one line in the log and its count."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import secrets
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from http.cookies import CookieError, SimpleCookie
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from simplemem.errors import SimplememError
from simplemem.note.words import format_count
from simplemem.web.connections import client_block
from simplemem.web.metrics import Metrics
from simplemem.web.problems import UNAUTHORIZED_HINT, Refused, problem
from simplemem.web.tokens import Grant

log = logging.getLogger("simplemem.web")

MOST_BODY: Final = 8 * 1024 * 1024  # bytes: what a message over stdio may have
_MOST_HEADERS: Final = 100
_BODY_SECONDS: Final = 30.0
_OPEN: Final = frozenset(
    {"/health", "/ready", "/api/v1/health"}
)  # without a token; they tell nothing else
_STATIC = re.compile(r"(?:/[\w-]+)?/static/page\.(?:css|js)")
_REQUEST_ID = re.compile(rb"[A-Za-z0-9_.-]{1,64}")
_MOST_KNOWN: Final = 4096  # callers whose quota is remembered
_MAX_IN_FLIGHT: Final = 128  # requests of a token
_MAX_IN_FLIGHT_OF_ADMIN: Final = 512
_MOST_FAILURES: Final = 20  # tokens that an address may guess at in a minute

Authenticate = Callable[[str], Awaitable[Grant | None]]


class Guard:
    """The outermost room of the application."""

    def __init__(
        self,
        app: ASGIApp,
        authenticate: Authenticate,
        holds: Callable[[Grant], bool],
        cookies: Callable[[str], Grant | None],
        hosts: Callable[[], Iterable[str]],
        metrics: Metrics,
        guesses: Guesses,
        *,
        cookie_name: str,
        challenge: str = "Bearer",
        secure: bool = False,
    ) -> None:
        self._app, self._authenticate, self._holds = app, authenticate, holds
        self._cookies, self._hosts = cookies, hosts
        self._metrics, self._challenge, self._secure = metrics, challenge, secure
        self._guesses = guesses
        self._cookie_name = cookie_name
        self._spent = _Buckets()
        self._in_flight = _InFlight()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        began, status, started = time.perf_counter(), 500, False
        head = _Head(scope["headers"])
        sent = head.one(b"x-request-id")
        ident = sent.decode() if _REQUEST_ID.fullmatch(sent) else secrets.token_hex(8)
        scope["request_id"] = ident
        scope["at_end"] = at_end = list[
            Callable[[], None]
        ]()  # what is called when the answer is out
        is_gone = asyncio.Event()

        async def answer(message: Message) -> None:
            nonlocal status, started
            if is_gone.is_set():
                return
            if (
                message.get("more_body")
                and (grant := scope.get("grant"))
                and not self._holds(grant)
            ):
                is_gone.set()  # a stream ends with its token
                message = {"type": "http.response.body"}
            if message["type"] == "http.response.start":
                status, started = message["status"], True
                message["headers"] = [
                    *message["headers"],
                    *self._headers(ident, message["headers"]),
                ]
            await send(message)

        try:
            await self._pass(scope, head, receive, answer, is_gone)
        except SimplememError as error:
            if not started:
                await problem(error)(scope, receive, answer)
        finally:
            for call in at_end:
                call()
            route, took = scope.get("route_path", "?"), time.perf_counter() - began
            self._metrics.count(scope["method"], route, status, took)
            grant = scope.get("grant")
            said = {"request": ident, "method": scope["method"], "route": route, "status": status}
            said["client"] = (scope.get("client") or ("",))[0]
            said |= {"ms": round(took * 1000, 1), "token": grant.name if grant else None}
            log.info("%s", json.dumps(said, ensure_ascii=False))

    async def _pass(
        self, scope: Scope, head: _Head, receive: Receive, send: Send, is_gone: asyncio.Event
    ) -> None:
        self._check_head(head)
        path = scope["path"]
        # A load balancer that asks whether the server lives knows only its address.
        is_probe = path in _OPEN and scope["method"] in ("GET", "HEAD") and not head.all(b"origin")
        origin = "" if is_probe and len(head.all(b"host")) <= 1 else self._check_names(head)
        is_open = path in _OPEN or path.startswith("/.well-known/") or bool(_STATIC.fullmatch(path))
        scope["grant"] = grant = None if is_open else await self._grant(scope, head, origin=origin)
        bounded = _bounded(receive, partial(self._spent.take_bytes, grant), is_gone)
        if grant is None:
            await self._app(scope, bounded, send)
            return

        with self._in_flight.of(grant):
            self._spent.take_call(grant)
            self._spent.take_bytes(
                grant, len(scope["query_string"])
            )  # an argument may be sent there too
            scope["connection"].begin_request(grant.identity)
            await self._app(scope, bounded, send)

    def _check_head(self, head: _Head) -> None:
        if len(head.pairs) > _MOST_HEADERS:
            raise Refused(
                431, f"the request has more than {_MOST_HEADERS} headers", code="too_long"
            )
        lengths = head.all(b"content-length")
        length = lengths[0] if lengths else b"0"
        has_two_lengths = len(lengths) > 1 or bool(lengths and head.one(b"transfer-encoding"))
        if not length.isdigit() or has_two_lengths:
            # Where it ends is anybody's guess: what follows on this connection must not be read as a request.
            hint = "Send one Content-Length header with a number of bytes, or use Transfer-Encoding alone."
            raise Refused(
                400,
                "the length of the request is ambiguous",
                hint=hint,
                headers={"Connection": "close"},
            )
        if int(length) > MOST_BODY:
            raise Refused(413, f"the request is larger than {MOST_BODY // 1024 // 1024} MB")
        if head.one(b"content-encoding") not in (b"", b"identity"):
            raise Refused(
                415,
                "compressed requests are not accepted",
                hint="Send the body without Content-Encoding.",
            )

    def _check_names(self, head: _Head) -> str:
        """Return the header `Origin`, or "". Raise Refused for an unknown `Host` or a foreign origin.

        No page but our own may send requests (DNS rebinding, CSRF).
        """
        hosts = {name.lower() for name in self._hosts()}
        host = head.one(b"host").decode("latin-1").lower()
        origin = head.one(b"origin").decode("latin-1").lower()
        if len(head.all(b"host")) != 1 or host not in hosts:
            hint = "To accept the name, start the server with --allow-host NAME."
            raise Refused(421, "this server does not accept requests for that host name", hint=hint)
        if origin not in ("", f"http://{host}", f"https://{host}") or len(head.all(b"origin")) > 1:
            hint = "A proxy on another port than 443 must pass on the port in Host: see --allow-host in docs/network.md."
            raise Refused(
                403,
                "requests from pages of another origin are not accepted",
                code="forbidden",
                hint=hint,
            )
        return origin

    async def _grant(self, scope: Scope, head: _Head, *, origin: str) -> Grant | None:
        """Whose request this is. The page's own routes show a way in when nobody is named; all others refuse."""
        client = scope.get("client") or ("", 0)
        said = head.one(b"authorization").decode("latin-1")
        if said:
            kind, _, token = said.partition(" ")
            is_bearer = kind.lower() == "bearer" and bool(token.strip())
            grant = await self._authenticate(token.strip()) if is_bearer else None
            if grant is not None:
                return grant
            self._guesses.count(client[0])
            message = 'the header must be "Authorization: Bearer TOKEN"'
            if is_bearer:
                message = "this token is unknown, revoked or expired"
            raise self._unauthorized(message, 'error="invalid_token"')
        if key := head.one(b"x-api-key").decode("latin-1"):
            if grant := await self._authenticate(key.strip()):
                return grant
            self._guesses.count(client[0])
            raise Refused(403, "unknown API key", code="forbidden")
        if (session := head.cookie(self._cookie_name)) and (grant := self._cookies(session)):
            if scope["method"] not in ("GET", "HEAD") and not origin:
                raise Refused(
                    403, "forms are accepted only from this server's own page", code="forbidden"
                )
            return grant
        is_sign_in = scope["path"].endswith("/login")
        if is_sign_in or head.one(b"accept").startswith(b"text/html"):
            return None
        raise self._unauthorized("a token is needed")

    def _unauthorized(self, message: str, why: str = "") -> Refused:
        said = ", ".join(filter(None, (why, self._challenge.removeprefix("Bearer").strip())))
        return Refused(
            401,
            message,
            hint=UNAUTHORIZED_HINT,
            headers={"WWW-Authenticate": f"Bearer {said}".strip()},
        )

    def _headers(
        self, ident: str, there: Iterable[tuple[bytes, bytes]]
    ) -> list[tuple[bytes, bytes]]:
        names = {name.lower() for name, _ in there}
        more = [(b"x-request-id", ident.encode()), (b"x-content-type-options", b"nosniff")]
        more += [
            (b"referrer-policy", b"same-origin"),
            (b"cross-origin-resource-policy", b"same-origin"),
        ]
        if self._secure:
            more.append((b"strict-transport-security", b"max-age=31536000"))
        more += [] if b"cache-control" in names else [(b"cache-control", b"no-store")]
        return [(name, value) for name, value in more if name not in names]


class _Head:
    """The headers of a request."""

    def __init__(self, pairs: Iterable[tuple[bytes, bytes]]) -> None:
        self.pairs = list(pairs)

    def all(self, name: bytes) -> list[bytes]:
        return [value for key, value in self.pairs if key == name]

    def one(self, name: bytes) -> bytes:
        return next((value for key, value in self.pairs if key == name), b"")

    def cookie(self, name: str) -> str:
        try:
            found = SimpleCookie(self.one(b"cookie").decode("latin-1")).get(name)
        except CookieError:
            return ""
        return found.value if found else ""


def _bounded(receive: Receive, spend: Callable[[int], None], is_gone: asyncio.Event) -> Receive:
    """The body, which ends in an error beyond its bound or its token's, or when it is too long on its way."""
    size, deadline, is_over = 0, time.monotonic() + _BODY_SECONDS, False

    async def bounded() -> Message:
        nonlocal size, is_over
        if is_over:  # from here on whoever listens waits for the client to go, or its token
            hears, ends = asyncio.ensure_future(receive()), asyncio.ensure_future(is_gone.wait())
            try:
                await asyncio.wait((hears, ends), return_when=asyncio.FIRST_COMPLETED)
                return {"type": "http.disconnect"} if is_gone.is_set() else await hears
            finally:
                hears.cancel()
                ends.cancel()
        try:
            async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
                message = await receive()
        except TimeoutError:
            raise Refused(
                408,
                f"the body of the request took longer than {_BODY_SECONDS:.0f} seconds to arrive",
            ) from None
        size += len(message.get("body", b""))
        if size > MOST_BODY:
            raise Refused(413, f"the request is larger than {MOST_BODY // 1024 // 1024} MB")
        spend(len(message.get("body", b"")))
        is_over = not message.get("more_body")
        return message

    return bounded


class _InFlight:
    """How many requests of each token are in progress. A stream that stays open is one."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    @contextmanager
    def of(self, grant: Grant) -> Iterator[None]:
        """Count a request as long as it takes. Refused if its token has too many."""
        max_requests = _MAX_IN_FLIGHT_OF_ADMIN if grant.may("admin") else _MAX_IN_FLIGHT
        holder = grant.identity
        if self._counts[holder] >= max_requests:
            message = f"this token already has {max_requests} requests in progress"
            raise Refused(
                429,
                message,
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


class _Buckets:
    """What each token has left of its calls and bytes, and how often an address guessed. Refilled as time goes by."""

    def __init__(self) -> None:
        self._left: OrderedDict[tuple[str, str], tuple[float, float]] = OrderedDict()

    def take_call(self, grant: Grant) -> None:
        if grant.calls and (wait := self._take(("calls", grant.identity), 1, grant.calls, 60)):
            raise _later(f"this token is limited to {grant.calls} calls per minute", wait)

    def take_bytes(self, grant: Grant | None, size: int) -> None:
        if (
            grant
            and size
            and grant.kilobytes
            and (wait := self._take(("bytes", grant.identity), size, grant.kilobytes * 1024, 3600))
        ):
            raise _later(f"this token is limited to sending {grant.kilobytes} kB per hour", wait)

    def take_guess(self, address: str) -> None:
        if wait := self._take(("guess", client_block(address)), 1, _MOST_FAILURES, 60):
            raise _later("too many wrong tokens came from this address", wait)

    def _take(self, key: tuple[str, str], amount: float, most: float, seconds: float) -> float:
        """Take so much out of a bucket; how many seconds are missing, or nothing."""
        at = time.monotonic()
        left, last = self._left.pop(key, (most, at))
        left = min(most, left + (at - last) * most / seconds)
        enough = left >= amount and left >= 1
        self._left[key] = (left - amount if enough else left, at)
        if len(self._left) > _MOST_KNOWN:
            self._left.popitem(last=False)
        return 0.0 if enough else max(1.0, (min(amount, most) - left) * seconds / most)


class Guesses:
    """Counts the wrong tokens that each address sends, in requests and on the sign-in page.

    Right ones are not counted, and are accepted whatever others of the same address have sent: behind a proxy that is
    not trusted, all clients share its address.
    """

    def __init__(self) -> None:
        self._buckets = _Buckets()

    def count(self, address: str) -> None:
        """Count a wrong token. Refused if the address has sent too many."""
        self._buckets.take_guess(address)


def _later(message: str, wait: float) -> Refused:
    seconds = int(wait) + 1
    hint = f"Try again in {format_count(seconds, 'second')}."
    return Refused(429, message, hint=hint, headers={"Retry-After": str(seconds)})
