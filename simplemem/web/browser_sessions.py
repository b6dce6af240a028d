"""The sessions of browsers. A random number in a cookie stands for a token."""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from typing import Final, NamedTuple

from starlette.responses import Response

from simplemem.web.tokens import Grant, Tokens, digest

_SESSION_SECONDS: Final = 12 * 3600
_MAX_SESSIONS: Final = 1000
_MAX_SESSIONS_OF_TOKEN: Final = 20


class _Session(NamedTuple):
    """A session: the SHA-256 of its token, and the time of its end on the monotonic clock."""

    token_sha256: str
    ends_at: float


class BrowserSessions:
    """Guards the sessions of browsers that are signed in, by their numbers, the oldest first.

    A browser sends the cookies of a machine to all of its ports. So each port has a cookie name of
    its own, or else two servers would sign each other's users out. Over TLS the prefix `__Host-`
    also keeps other hosts and plain HTTP from setting the cookie.
    """

    def __init__(self, tokens: Tokens, port: int, *, is_secure: bool) -> None:
        self._tokens = tokens
        self._is_secure = is_secure
        self._sessions: OrderedDict[str, _Session] = OrderedDict()
        self.cookie_name = f"simplemem-{port}"
        if is_secure:
            self.cookie_name = f"__Host-simplemem-{port}"

    def sign_in(self, token: str) -> str | None:
        """Begin a session and return its number, or return None if the token is not valid.

        Ends the oldest session of a token that has 20, and the oldest of all if there are 1000.
        Raises Unavailable if the file of tokens cannot be read, except for the owner's token.
        """
        if self._tokens.grant(token) is None:
            return None

        token_sha256 = digest(token)
        self._end_oldest_of(token_sha256)

        number = secrets.token_urlsafe(32)
        self._sessions[number] = _Session(token_sha256, time.monotonic() + _SESSION_SECONDS)
        if len(self._sessions) > _MAX_SESSIONS:
            self._sessions.popitem(last=False)
        return number

    def sign_out(self, number: str) -> None:
        """End a session. Does nothing if it is unknown."""
        self._sessions.pop(number, None)

    def grant(self, number: str) -> Grant | None:
        """Return what a session may do, or None if it has ended or its token is no longer valid.

        Raises Unavailable if the file of tokens cannot be read, except for the owner's token.
        """
        session = self._sessions.get(number)
        if session is None or session.ends_at <= time.monotonic():
            return None
        return self._tokens.by_digest(session.token_sha256)

    def set_cookie(self, response: Response, number: str) -> None:
        """Add a cookie to a response, by which the browser keeps a session for 12 hours.

        No script can read the cookie. `number` is that of the session.
        """
        response.set_cookie(
            self.cookie_name,
            number,
            _SESSION_SECONDS,
            httponly=True,
            samesite="strict",
            secure=self._is_secure,
        )

    def delete_cookie(self, response: Response) -> None:
        """Add to a response that the browser is to delete its cookie. The session itself stays.

        A browser ignores this for a cookie with the prefix `__Host-`, unless `Secure` is set again.
        """
        response.delete_cookie(
            self.cookie_name, httponly=True, samesite="strict", secure=self._is_secure
        )

    def _end_oldest_of(self, token_sha256: str) -> None:
        """End the oldest sessions of a token until it has fewer than 20.

        So a token that signs in often does not end the sessions of other tokens.
        """
        own = [
            number
            for number, session in self._sessions.items()
            if session.token_sha256 == token_sha256
        ]
        excess = len(own) + 1 - _MAX_SESSIONS_OF_TOKEN
        for number in own[: max(0, excess)]:
            del self._sessions[number]
