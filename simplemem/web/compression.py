"""Compresses the responses of pages, of the REST API, and of static files."""

from __future__ import annotations

import re
from typing import Final

from starlette.datastructures import Headers
from starlette.middleware.gzip import GZipResponder, IdentityResponder
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_MIN_BYTES: Final = 500  # a shorter body would hardly get shorter
_GZIP_LEVEL: Final = 6  # a higher one takes more time than the smaller response saves
_ZERO_WEIGHT: Final = re.compile(r"\s*q\s*=\s*0(?:\.0*)?\s*")
# Not compressed: MCP, because compression would delay its streams, and requests to sign in.
_UNCOMPRESSED_PATH: Final = re.compile(r"(?:/[\w-]+)?/(?:mcp|sse|messages|login)")


class Compression:
    """The ASGI application around the routes: it compresses responses if the client accepts gzip.

    Streams of events are passed on unchanged, and so are responses with status 401 or with
    `Cache-Control: no-transform`. A page that shows a secret must have that header, because the
    length of a compressed response tells something about its content (BREACH). The ETag of a
    response stays, because it names the text of a note and not the bytes that are sent.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or _UNCOMPRESSED_PATH.fullmatch(scope["path"]):
            await self._app(scope, receive, send)
            return

        responder: ASGIApp = IdentityResponder(self._app, _MIN_BYTES)
        if _accepts_gzip(Headers(scope=scope)):
            responder = _Responder(self._app, _MIN_BYTES, _GZIP_LEVEL)
        await responder(scope, receive, send)


class _Responder(GZipResponder):
    """Compresses one response, unless `_must_not_compress`. Guards this choice for its body."""

    _is_passed_on = False  # until the response starts

    async def send_with_compression(self, message: Message) -> None:
        """Send a message of the response, compressed if allowed. The first decides for the rest."""
        if message["type"] == "http.response.start":
            self._is_passed_on = _must_not_compress(message)
        if self._is_passed_on:
            await self.send(message)
            return
        await super().send_with_compression(message)


def _accepts_gzip(headers: Headers) -> bool:
    """Return whether a client accepts gzip. A weight of 0 refuses it."""
    for coding in headers.get("accept-encoding", "").lower().split(","):
        name, _, weight = coding.partition(";")
        if name.strip() == "gzip":
            return not _ZERO_WEIGHT.fullmatch(weight)
    return False


def _must_not_compress(start: Message) -> bool:
    """Return whether a response must not be compressed: 401 (sign-in), or `no-transform`."""
    headers = Headers(raw=start["headers"])
    return start["status"] == 401 or "no-transform" in headers.get("cache-control", "")
