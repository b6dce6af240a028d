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

from simplemem.errors import Invalid
from simplemem.models import AUTHOR_SEPARATOR
from simplemem.note.scopes import check_scope
from simplemem.settings.model import HttpSettings
from simplemem.web.tokens import SCOPES, Grant, IssuedGrant, digest

log = logging.getLogger("simplemem.web")

_ALGORITHMS: Final = (
    "RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 EdDSA".split()
)  # no shared secret
_NEEDED: Final = ("exp", "iss", "aud", "sub")
_LEEWAY: Final = 30  # seconds that two clocks may differ
_PAUSE: Final = 30.0  # seconds
_NOT_OF_ACCESS_TOKENS: Final = ("nonce", "at_hash", "c_hash", "s_hash", "events")
_ACCESS_TOKEN_USES: Final = ("access", "bearer", "at+jwt")
_MAX_NAME: Final = 60
_MOST: Final = 16_384  # characters of a token


class _Keys(jwt.PyJWKClient):
    """Its public keys. It is asked once in half a minute at most, even when it does not answer: strangers cause it."""

    _asked = -_PAUSE

    def fetch_data(self) -> Any:
        if time.monotonic() - self._asked < _PAUSE:
            raise jwt.PyJWKClientError("the public keys were requested a moment ago")
        self._asked = time.monotonic()
        return super().fetch_data()


class Issuer:
    """The authorization server that the settings name."""

    def __init__(self, settings: HttpSettings) -> None:
        said = {key: getattr(settings, f"oauth_{key}") for key in ("issuer", "audience", "keys")}
        if missing := [f"http.oauth_{key}" for key, value in said.items() if not value]:
            raise Invalid(
                f"{' and '.join(missing)} must be set too",
                hint="See docs/network.md for an example.",
            )
        self._issuer, self._audience, self._claim = (
            said["issuer"],
            said["audience"],
            settings.oauth_user_claim,
        )
        self._keys, self._turn = _Keys(said["keys"], timeout=5, lifespan=600), asyncio.Lock()
        resource = AnyHttpUrl(self._audience)
        self.challenge = f'Bearer resource_metadata="{build_resource_metadata_url(resource)}"'
        self.routes: list[Route] = create_protected_resource_routes(
            resource, [AnyHttpUrl(self._issuer)], list(SCOPES)
        )

    async def grant(self, token: str) -> Grant | None:
        """What a token of that server allows; None for any that is not sound."""
        if token.count(".") != 2 or len(token) > _MOST:
            return None
        try:
            async with self._turn:  # the threads are others' too
                return await asyncio.to_thread(self._checked, token)
        except Exception as error:  # noqa: BLE001 - whatever a stranger's token makes of its parsers, it is not sound
            log.info("a token was refused: %s", type(error).__name__)
            return None

    def _checked(self, token: str) -> Grant:
        """Return what a token allows. An error of any kind if it is not a sound access token for this server."""
        key = self._keys.get_signing_key_from_jwt(token)
        checked = jwt.decode_complete(
            token,
            key,
            algorithms=_ALGORITHMS,
            audience=self._audience,
            issuer=self._issuer,
            leeway=_LEEWAY,
            options={"require": list(_NEEDED)},
        )
        claims: Mapping[str, Any] = checked["payload"]
        _check_is_access_token(checked["header"], claims)

        granted = {
            scope.removeprefix("simplemem:") for scope in _scopes(claims)
        }  # never another's, such as mail:write
        subject = claims["sub"]
        return IssuedGrant(
            _shown_name(subject),
            tuple(scope for scope in SCOPES if scope in granted),
            user=self._user(claims),
            expires=int(claims["exp"]),
            issuer=self._issuer,
            subject=subject,
        )

    def _user(self, claims: Mapping[str, Any]) -> str:
        """Return the one user that a token speaks for, "" where the settings bind no users."""
        if not self._claim:
            return ""

        user = claims.get(self._claim)
        if not isinstance(user, str):
            raise Invalid(f"the claim {self._claim} is not a text")
        if self._claim == "email" and claims.get("email_verified", True) is not True:
            raise Invalid("the email address is not verified")
        return check_scope(user)


def _check_is_access_token(header: Mapping[str, Any], claims: Mapping[str, Any]) -> None:
    """Invalid for an ID token, or any other that an authorization server signs for another purpose.

    RFC 9068 gives access tokens a type of their own. Where a server does not set it, they are told from others by the
    claims that only those have (OpenID Connect Core, 2 and 3.1.3.6; Back-Channel Logout, 2.4), unless the server says
    in a claim that it is an access token, as Keycloak (`typ`) and Cognito (`token_use`) do.
    """
    kind = header.get("typ")
    if kind is not None:
        kind = str(kind).lower().removeprefix("application/")
        if kind == "at+jwt":
            return
        if kind != "jwt":
            raise Invalid("the type of the token is not that of an access token")

    uses = [claims[name] for name in ("typ", "token_use") if name in claims]
    if uses:
        if any(str(use).lower() not in _ACCESS_TOKEN_USES for use in uses):
            raise Invalid("the token says that it is not an access token")
        return

    if any(name in claims for name in _NOT_OF_ACCESS_TOKENS):
        raise Invalid("the token has claims of an ID token")


def _scopes(claims: Mapping[str, Any]) -> list[str]:
    """Return the scopes of a token. Invalid if it has none, as an ID token, or something else in their place."""
    scopes = claims.get("scope", claims.get("scp"))
    if isinstance(scopes, str):
        return scopes.split()
    if isinstance(scopes, list) and all(isinstance(scope, str) for scope in scopes):
        return scopes
    raise Invalid("the scope of the token is neither a text nor a list of texts")


def _shown_name(subject: str) -> str:
    """Return the name under which the history shows a subject. No token of ours is called so."""
    printable = "".join(character for character in subject if character.isprintable())
    printable = printable.replace(AUTHOR_SEPARATOR, ":")  # else it could begin like a token's
    if len(printable) > _MAX_NAME or printable != subject:
        printable = (
            f"{printable[: _MAX_NAME - 10]}… {digest(subject)[:8]}"  # else two could look alike
        )
    return f"{printable} (oauth)"
