"""Checks tokens that an authorization server issues (OAuth 2.1).

This server is a resource server: it checks who issued a token, for which audience, until when and
for what, and its metadata (RFC 9728) say where clients get one. It issues no tokens, and passes
none on.
"""

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

# No algorithm with a shared secret: whoever can check such a token can also issue one.
_ALGORITHMS: Final = "RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 EdDSA".split()
_REQUIRED_CLAIMS: Final = ("exp", "iss", "aud", "sub")
_NOT_OF_ACCESS_TOKENS: Final = ("nonce", "at_hash", "c_hash", "s_hash", "events")
_ACCESS_TOKEN_USES: Final = ("access", "bearer", "at+jwt")
_SCOPE_PREFIX: Final = "simplemem:"
_CLOCK_TOLERANCE: Final = 30  # seconds that two clocks may differ
_SECONDS_BETWEEN_REQUESTS: Final = 30.0
_REQUEST_SECONDS: Final = 5
_KEY_SECONDS: Final = 600  # for which keys are cached
_MAX_NAME: Final = 60
_MAX_TOKEN: Final = 16_384  # characters


class _PublicKeys(jwt.PyJWKClient):
    """The public keys of an authorization server.

    Guards the time of the last request for them. There is at most one in half a minute, even if it
    fails, because anybody can cause one with an invented token.
    """

    def __init__(self, url: str) -> None:
        super().__init__(url, timeout=_REQUEST_SECONDS, lifespan=_KEY_SECONDS)
        self._last_request = -_SECONDS_BETWEEN_REQUESTS

    def fetch_data(self) -> Any:
        """Request the keys, and return them as the JSON of the server.

        Raises PyJWKClientError if the request fails, or if the last one is less than 30 seconds
        old; PyJWKSetError or ValueError if the answer has no usable keys.
        """
        if time.monotonic() - self._last_request < _SECONDS_BETWEEN_REQUESTS:
            raise jwt.PyJWKClientError("the public keys were requested a moment ago")
        self._last_request = time.monotonic()
        return super().fetch_data()


class Issuer:
    """The authorization server that the settings name.

    `challenge` is the header `WWW-Authenticate` of an answer that asks for a token, and `routes`
    are those of the metadata. Guards the public keys of the server. The constructor raises Invalid
    if one of the settings that belong together is missing.
    """

    def __init__(self, settings: HttpSettings) -> None:
        _check_is_complete(settings)
        self._issuer = settings.oauth_issuer
        self._audience = settings.oauth_audience
        self._user_claim = settings.oauth_user_claim
        self._keys = _PublicKeys(settings.oauth_keys)
        self._lock = asyncio.Lock()  # at most one token is checked at a time

        resource = AnyHttpUrl(self._audience)
        self.challenge = f'Bearer resource_metadata="{build_resource_metadata_url(resource)}"'
        self.routes: list[Route] = create_protected_resource_routes(
            resource, [AnyHttpUrl(self._issuer)], list(SCOPES)
        )

    async def grant(self, token: str) -> Grant | None:
        """Return what a token of the server allows, or None if it is not valid.

        May request the public keys of the server. Raises nothing, and logs why a token is refused.
        """
        if token.count(".") != 2 or len(token) > _MAX_TOKEN:
            return None

        try:
            # In a thread, because it may request the keys. One at a time, so that strangers leave
            # threads to others.
            async with self._lock:
                return await asyncio.to_thread(self._check, token)
        except Exception as error:  # noqa: BLE001 - whatever a stranger's token raises in a parser
            log.info("a token was refused: %s", type(error).__name__)
            return None

    def _check(self, token: str) -> Grant:
        """Return what a token allows: of its scopes, those that this server has.

        Raises an error of any type unless it is a valid access token for this server. Call it in a
        thread.
        """
        key = self._keys.get_signing_key_from_jwt(token)
        decoded = jwt.decode_complete(
            token,
            key,
            algorithms=_ALGORITHMS,
            audience=self._audience,
            issuer=self._issuer,
            leeway=_CLOCK_TOLERANCE,
            options={"require": list(_REQUIRED_CLAIMS)},
        )
        claims: Mapping[str, Any] = decoded["payload"]
        _check_is_access_token(decoded["header"], claims)

        # Scopes of other services, such as mail:write, are ignored.
        own_names = {scope.removeprefix(_SCOPE_PREFIX) for scope in _scopes(claims)}
        subject = claims["sub"]
        return IssuedGrant(
            _display_name(subject),
            tuple(scope for scope in SCOPES if scope in own_names),
            user=self._user(claims),
            expires=int(claims["exp"]),
            issuer=self._issuer,
            subject=subject,
        )

    def _user(self, claims: Mapping[str, Any]) -> str:
        """Return the only user that a token may access; "" if the settings name no claim for it.

        Raises Invalid if the claim is missing or not a valid name of a user, or if it is an email
        address that is not verified.
        """
        if not self._user_claim:
            return ""

        user = claims.get(self._user_claim)
        if not isinstance(user, str):
            raise Invalid(f"the claim {self._user_claim} is not a text")
        if self._user_claim == "email" and claims.get("email_verified", True) is not True:
            raise Invalid("the email address is not verified")
        return check_scope(user)


def _check_is_complete(settings: HttpSettings) -> None:
    """Raise Invalid if the issuer, the audience or the address of the keys is not set."""
    needed = {
        "http.oauth_issuer": settings.oauth_issuer,
        "http.oauth_audience": settings.oauth_audience,
        "http.oauth_keys": settings.oauth_keys,
    }
    missing = [name for name, value in needed.items() if not value]
    if missing:
        hint = "See docs/network.md for an example."
        raise Invalid(f"{' and '.join(missing)} must be set too", hint=hint)


def _check_is_access_token(header: Mapping[str, Any], claims: Mapping[str, Any]) -> None:
    """Raise Invalid if a token is not an access token: an ID token, a logout token or the like.

    By RFC 9068 the header of an access token has the type `at+jwt`. If the type is missing or only
    `JWT`, a claim may say what the token is for (`typ` of Keycloak, `token_use` of Cognito). If no
    claim says so, a claim that only ID and logout tokens have excludes it (OpenID Connect Core, 2
    and 3.1.3.6; Back-Channel Logout, 2.4).
    """
    header_type = header.get("typ")
    if header_type is not None:
        media_type = str(header_type).lower().removeprefix("application/")
        if media_type == "at+jwt":
            return
        if media_type != "jwt":
            raise Invalid("the type of the token is not that of an access token")

    uses = [claims[name] for name in ("typ", "token_use") if name in claims]
    if uses:
        if any(str(use).lower() not in _ACCESS_TOKEN_USES for use in uses):
            raise Invalid("the token says that it is not an access token")
        return

    if any(name in claims for name in _NOT_OF_ACCESS_TOKENS):
        raise Invalid("the token has claims of an ID token")


def _scopes(claims: Mapping[str, Any]) -> list[str]:
    """Return the scopes of a token, of all services: those of `scope`, else those of `scp`.

    Raises Invalid if neither is a text or a list of texts. An ID token has neither.
    """
    scopes = claims.get("scope", claims.get("scp"))
    if isinstance(scopes, str):
        return scopes.split()
    if isinstance(scopes, list) and all(isinstance(scope, str) for scope in scopes):
        return scopes
    raise Invalid("the scope of the token is neither a text nor a list of texts")


def _display_name(subject: str) -> str:
    """Return the name under which the history shows a subject.

    It ends in ` (oauth)`, and no other subject and no token of this server has the same.
    """
    name = "".join(character for character in subject if character.isprintable())
    name = name.replace(AUTHOR_SEPARATOR, ":")  # otherwise it could begin like that of a token
    if len(name) > _MAX_NAME or name != subject:
        # The hash distinguishes subjects whose names are equal now.
        name = f"{name[: _MAX_NAME - 10]}… {digest(subject)[:8]}"
    return f"{name} (oauth)"
