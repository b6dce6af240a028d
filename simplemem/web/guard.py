"""What every request passes first: the checks of its headers, host, origin, token and quotas.

A request that fails a check is answered with a problem document. Each request leaves one line in
the log, and is counted in the metrics.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import partial
from http.cookies import CookieError, SimpleCookie
from typing import Any, Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from simplemem.errors import SimplememError
from simplemem.web.limits import (
    MAX_BODY_BYTES,
    GuessLimiter,
    LimitedBody,
    RateLimiter,
    RequestCounter,
    body_too_large,
)
from simplemem.web.metrics import Metrics
from simplemem.web.problem_documents import UNAUTHORIZED_HINT, HTTPError, problem
from simplemem.web.static_files import is_static_path
from simplemem.web.tokens import Grant

log = logging.getLogger("simplemem.web")

_MAX_HEADERS: Final = 100
# These paths need no token, and say only whether the server runs.
_PROBES: Final = frozenset({"/health", "/ready", "/api/v1/health"})
_REQUEST_ID: Final = re.compile(rb"[A-Za-z0-9_.-]{1,64}")
_READING_METHODS: Final = ("GET", "HEAD")


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """How the server finds out who sends a request, and which host names it answers to.

    Attributes:
        authenticate: Returns the grant of a token, or None if the token is not valid.
        is_valid: Returns whether a grant still applies.
        find_session: Returns the grant of a browser's session by its number, or None.
        cookie_name: The name of the cookie with the number of the session.
        host_names: Returns the values of the header `Host` that are accepted.
        guesses: Counts the wrong tokens of each address.
        challenge: The header `WWW-Authenticate` of an answer that asks for a token.
        has_tls: Whether this server speaks TLS itself.
        on_use: Called with the grant of each request that has one.
    """

    authenticate: Callable[[str], Awaitable[Grant | None]]
    is_valid: Callable[[Grant], bool]
    find_session: Callable[[str], Grant | None]
    cookie_name: str
    host_names: Callable[[], Iterable[str]]
    guesses: GuessLimiter
    challenge: str = "Bearer"
    has_tls: bool = False
    on_use: Callable[[Grant], None] = lambda _grant: None


class AuthMiddleware:
    """The ASGI application around all others: it passes on what passes its checks.

    Guards the quotas of all tokens, and the number of their requests in progress.
    """

    def __init__(self, app: ASGIApp, access: Access, metrics: Metrics) -> None:
        self._app = app
        self._access = access
        self._metrics = metrics
        self._limiter = RateLimiter()
        self._requests = RequestCounter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        exchange = _Exchange(scope, send, self._access)
        at_end: list[Callable[[], None]] = []  # called after the response
        scope["request_id"] = exchange.request_id
        scope["at_end"] = at_end
        try:
            await self._check_and_pass(scope, receive, exchange)
        except SimplememError as error:
            if not exchange.has_started:
                await problem(error)(scope, receive, exchange.send)
        finally:
            for call in at_end:
                call()
            self._record(scope, exchange)

    async def _check_and_pass(self, scope: Scope, receive: Receive, exchange: _Exchange) -> None:
        """Pass a request to the application, with its grant in `scope["grant"]`; None without one.

        Raises HTTPError if it fails a check or exceeds a quota, and Unavailable if the file of
        tokens cannot be read.
        """
        headers = exchange.headers
        _check_headers(headers)

        path = scope["path"]
        origin = ""
        if not _is_probe(scope, headers):
            origin = self._check_host_and_origin(headers)

        grant = None
        if not _is_open(path):
            grant = await self._identify(scope, headers, origin)
        scope["grant"] = grant
        if grant is not None:
            self._access.on_use(grant)

        spend = partial(self._limiter.count_bytes, grant)
        body = LimitedBody(receive, spend, exchange.is_revoked)
        if grant is None:
            await self._app(scope, body.receive, exchange.send)
            return

        with self._requests.count(grant):
            self._limiter.count_call(grant)
            # A client may send an argument in the query, too.
            self._limiter.count_bytes(grant, len(scope["query_string"]))
            scope["connection"].begin_request(grant.identity)
            await self._app(scope, body.receive, exchange.send)

    def _check_host_and_origin(self, headers: _Headers) -> str:
        """Return the header `Origin`, or "" if there is none.

        Raises HTTPError for an unknown `Host` or a foreign origin: no page but our own may send
        requests (DNS rebinding, CSRF).
        """
        host_names = {name.lower() for name in self._access.host_names()}
        host = headers.first(b"host").decode("latin-1").lower()
        if len(headers.all(b"host")) != 1 or host not in host_names:
            hint = "To accept the name, start the server with --allow-host NAME."
            raise HTTPError(
                421, "this server does not accept requests for that host name", hint=hint
            )

        origin = headers.first(b"origin").decode("latin-1").lower()
        is_own = origin in ("", f"http://{host}", f"https://{host}")
        if not is_own or len(headers.all(b"origin")) > 1:
            raise HTTPError(
                403,
                "requests from pages of another origin are not accepted",
                code="forbidden",
                hint=(
                    "A proxy on another port than 443 must pass on the port in Host:"
                    " see --allow-host in docs/network.md."
                ),
            )
        return origin

    async def _identify(self, scope: Scope, headers: _Headers, origin: str) -> Grant | None:
        """Return the grant of a request, by its token, its API key or its cookie.

        Returns None if a browser asks for a page, or signs in, without a valid session: the routes
        of the page then show the sign-in page. For a valid session, `scope["is_browser_session"]`
        becomes True: a person, not an agent, makes the request. Raises HTTPError if a token is
        wrong, if it is missing for any other request, or if a form of another origin uses the
        session.
        """
        address = _client_address(scope)
        authorization = headers.first(b"authorization").decode("latin-1")
        if authorization:
            return await self._authenticate_bearer(authorization, address)

        api_key = headers.first(b"x-api-key").decode("latin-1")
        if api_key:
            return await self._authenticate_api_key(api_key, address)

        session = headers.cookie(self._access.cookie_name)
        if session:
            grant = self._access.find_session(session)
            if grant is not None:
                _check_form_origin(scope, origin)
                scope["is_browser_session"] = True
                return grant

        is_sign_in = scope["path"].endswith("/login")
        if is_sign_in or headers.first(b"accept").startswith(b"text/html"):
            return None
        raise self._unauthorized("a token is needed")

    async def _authenticate_bearer(self, authorization: str, address: str) -> Grant:
        """Return the grant of the header `Authorization`.

        Raises HTTPError if it is not valid (401), which counts as a guess of the address, or if the
        address has made too many guesses (429).
        """
        scheme, _, rest = authorization.partition(" ")
        token = rest.strip()
        if scheme.lower() != "bearer" or not token:
            self._access.guesses.count(address)
            message = 'the header must be "Authorization: Bearer TOKEN"'
            raise self._unauthorized(message, 'error="invalid_token"')

        grant = await self._access.authenticate(token)
        if grant is None:
            self._access.guesses.count(address)
            message = "this token is unknown, revoked or expired"
            raise self._unauthorized(message, 'error="invalid_token"')
        return grant

    async def _authenticate_api_key(self, api_key: str, address: str) -> Grant:
        """Return the grant of the header `X-API-Key`.

        Raises HTTPError if it is not valid (403), which counts as a guess of the address, or if the
        address has made too many guesses (429).
        """
        grant = await self._access.authenticate(api_key.strip())
        if grant is None:
            self._access.guesses.count(address)
            raise HTTPError(403, "unknown API key", code="forbidden")
        return grant

    def _unauthorized(self, message: str, reason: str = "") -> HTTPError:
        """Return the error of a request without a valid token (401).

        `reason` is a parameter of the header `WWW-Authenticate`, such as `error="invalid_token"`.
        """
        parameters = [reason, self._access.challenge.removeprefix("Bearer").strip()]
        challenge = ", ".join(filter(None, parameters))
        headers = {"WWW-Authenticate": f"Bearer {challenge}".strip()}
        return HTTPError(401, message, hint=UNAUTHORIZED_HINT, headers=headers)

    def _record(self, scope: Scope, exchange: _Exchange) -> None:
        """Count a request in the metrics, and log it as JSON with its route, not its path."""
        route = scope.get("route_path", "?")
        seconds = exchange.seconds()
        self._metrics.count(scope["method"], route, exchange.status, seconds)

        grant = scope.get("grant")
        token_name = None
        if grant is not None:
            token_name = grant.name
        entry = {
            "request": exchange.request_id,
            "method": scope["method"],
            "route": route,
            "status": exchange.status,
            "client": _client_address(scope),
            "ms": round(seconds * 1000, 1),
            "token": token_name,
        }
        log.info("%s", json.dumps(entry, ensure_ascii=False))


class _Exchange:
    """A request and its response: when it began, and how far the response is.

    `status` is 500 until the response has started. `is_revoked` is set when a part of a stream is
    to be sent and the token of the request is not valid any more.
    """

    def __init__(self, scope: Scope, send: Send, access: Access) -> None:
        self.headers = _Headers(scope["headers"])
        self.request_id = _request_id(self.headers)
        self.status = 500
        self.has_started = False
        self.is_revoked = asyncio.Event()
        self._scope = scope
        self._send = send
        self._access = access
        self._began = time.perf_counter()

    def seconds(self) -> float:
        """Return for how many seconds the request has lasted so far."""
        return time.perf_counter() - self._began

    async def send(self, message: Message) -> None:
        """Send a part of the response, with the headers that every response needs.

        A stream ends when its token does, and nothing is sent afterwards.
        """
        if self.is_revoked.is_set():
            return

        grant = self._scope.get("grant")
        if message.get("more_body") and grant and not self._access.is_valid(grant):
            self.is_revoked.set()
            message = {"type": "http.response.body"}

        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.has_started = True
            headers = message["headers"]
            message["headers"] = [*headers, *self._missing_headers(headers)]
        await self._send(message)

    def _missing_headers(self, present: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        """Return the headers that every response needs and this one does not have."""
        needed = [
            (b"x-request-id", self.request_id.encode()),
            (b"x-content-type-options", b"nosniff"),
            (b"referrer-policy", b"same-origin"),
            (b"cross-origin-resource-policy", b"same-origin"),
        ]
        if self._access.has_tls:
            needed.append((b"strict-transport-security", b"max-age=31536000"))
        needed.append((b"cache-control", b"no-store"))

        names = {name.lower() for name, _ in present}
        return [(name, value) for name, value in needed if name not in names]


class _Headers:
    """The headers of a request, in their order."""

    def __init__(self, pairs: Iterable[tuple[bytes, bytes]]) -> None:
        self._pairs = list(pairs)

    def __len__(self) -> int:
        return len(self._pairs)

    def all(self, name: bytes) -> list[bytes]:
        """Return all values of a header, in order. Its name must be in lower case."""
        return [value for key, value in self._pairs if key == name]

    def first(self, name: bytes) -> bytes:
        """Return the first value of a header, or b"". Its name must be in lower case."""
        return next((value for key, value in self._pairs if key == name), b"")

    def cookie(self, name: str) -> str:
        """Return the value of a cookie, or "" if it is missing or the header is malformed."""
        try:
            cookies = SimpleCookie(self.first(b"cookie").decode("latin-1"))
        except CookieError:
            return ""

        cookie = cookies.get(name)
        if cookie is None:
            return ""
        return cookie.value


def _request_id(headers: _Headers) -> str:
    """Return the id that the client gave a request, or a new one if it gave none or a bad one."""
    sent = headers.first(b"x-request-id")
    if _REQUEST_ID.fullmatch(sent):
        return sent.decode()
    return secrets.token_hex(8)


def _client_address(scope: Scope) -> str:
    """Return the address of the client, or "" if the system reported none."""
    client: Any = scope.get("client") or ("", 0)
    address: str = client[0]
    return address


def _check_headers(headers: _Headers) -> None:
    """Raise HTTPError for more than 100 headers, or a body that is too large or compressed.

    Also raises it if the length of the body is ambiguous: announced twice, or no number.
    """
    if len(headers) > _MAX_HEADERS:
        message = f"the request has more than {_MAX_HEADERS} headers"
        raise HTTPError(431, message, code="too_long")

    lengths = headers.all(b"content-length")
    length = b"0"
    if lengths:
        length = lengths[0]
    has_two_lengths = len(lengths) > 1 or bool(lengths and headers.first(b"transfer-encoding"))
    if not length.isdigit() or has_two_lengths:
        # The end of the body is unclear. What follows it on this connection must not be read as a
        # request.
        hint = (
            "Send one Content-Length header with a number of bytes, or use Transfer-Encoding alone."
        )
        raise HTTPError(
            400,
            "the length of the request is ambiguous",
            hint=hint,
            headers={"Connection": "close"},
        )
    if int(length) > MAX_BODY_BYTES:
        raise body_too_large()

    if headers.first(b"content-encoding") not in (b"", b"identity"):
        raise HTTPError(
            415,
            "compressed requests are not accepted",
            hint="Send the body without Content-Encoding.",
        )


def _is_probe(scope: Scope, headers: _Headers) -> bool:
    """Return whether a request is one of a load balancer, whose header `Host` is not checked.

    It reads the health or readiness, and is not sent by a page.
    """
    is_reading = scope["path"] in _PROBES and scope["method"] in _READING_METHODS
    return is_reading and not headers.all(b"origin") and len(headers.all(b"host")) <= 1


def _is_open(path: str) -> bool:
    """Return whether a path needs no token: health, readiness, metadata, and static files."""
    return path in _PROBES or path.startswith("/.well-known/") or is_static_path(path)


def _check_form_origin(scope: Scope, origin: str) -> None:
    """Raise HTTPError if a request that changes something has no origin.

    Browsers send the header `Origin` with the forms of our page.
    """
    if scope["method"] not in _READING_METHODS and not origin:
        message = "forms are accepted only from this server's own page"
        raise HTTPError(403, message, code="forbidden")
