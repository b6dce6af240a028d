"""Tokens that an authorization server gives (OAuth 2.1): a resource server checks who issued one, for whom, until when and
for what, and says in its metadata (RFC 9728) whom to ask for one. It issues none, and passes none on."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from typing import Any, Final

import jwt
from mcp.server.auth.routes import build_resource_metadata_url, create_protected_resource_routes
from pydantic import AnyHttpUrl
from starlette.routing import Route

from simplemem.config import HttpSettings
from simplemem.errors import Invalid, SimplememError
from simplemem.network.tokens import SCOPES, Grant
from simplemem.note.scopes import check_scope

log = logging.getLogger("simplemem.network")

_ALGORITHMS: Final = "RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 EdDSA".split()  # no shared secret
_NEEDED: Final = ("exp", "iss", "aud", "sub")
_LEEWAY: Final = 30  # seconds that two clocks may differ
_PAUSE: Final = 30.0  # seconds
_MOST: Final = 16_384  # characters of a token


class _Keys(jwt.PyJWKClient):
    """Its public keys. It is asked once in half a minute at most, even when it does not answer: strangers cause it."""

    _asked = -_PAUSE

    def fetch_data(self) -> Any:
        if time.monotonic() - self._asked < _PAUSE:
            raise jwt.PyJWKClientError("asked a moment ago")
        self._asked = time.monotonic()
        return super().fetch_data()


class Issuer:
    """The authorization server that the settings name."""

    def __init__(self, settings: HttpSettings) -> None:
        said = {key: getattr(settings, f"oauth_{key}") for key in ("issuer", "audience", "keys")}
        if missing := [f"http.oauth_{key}" for key, value in said.items() if not value]:
            raise Invalid(f"{' and '.join(missing)} must be set too", hint="docs/network.md has an example.")
        self._issuer, self._audience, self._claim = said["issuer"], said["audience"], settings.oauth_user_claim
        self._keys, self._turn = _Keys(said["keys"], timeout=5, lifespan=600), asyncio.Lock()
        resource = AnyHttpUrl(self._audience)
        self.challenge = f'Bearer resource_metadata="{build_resource_metadata_url(resource)}"'
        self.routes: list[Route] = create_protected_resource_routes(resource, [AnyHttpUrl(self._issuer)], list(SCOPES))

    async def grant(self, token: str) -> Grant | None:
        """What a token of that server allows; None for any that is not sound."""
        if token.count(".") != 2 or len(token) > _MOST:
            return None
        try:
            async with self._turn:  # the threads are others' too
                return await asyncio.to_thread(self._checked, token)
        except (jwt.PyJWTError, SimplememError, ValueError) as error:
            log.info("a token was refused: %s", type(error).__name__)
            return None

    def _checked(self, token: str) -> Grant:
        key = self._keys.get_signing_key_from_jwt(token)
        claims: Mapping[str, Any] = jwt.decode(
            token, key, algorithms=_ALGORITHMS, audience=self._audience, issuer=self._issuer,
            leeway=_LEEWAY, options={"require": list(_NEEDED)},
        )  # fmt: skip
        said = claims.get("scope", claims.get("scp", ""))
        scopes = said.split() if isinstance(said, str) else map(str, said)
        named = {each.removeprefix("simplemem:") for each in scopes}  # never another service's, such as mail:write
        user = check_scope(str(claims.get(self._claim) or "")) if self._claim else ""
        name = (
            "".join(each for each in str(claims["sub"]) if each.isprintable())[:60] + " (oauth)"
        )  # no token is called so
        return Grant(name, tuple(each for each in SCOPES if each in named), user=user, expires=int(claims["exp"]))
