"""The routes of the page of one vault: who may see a page, and how its errors are shown."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from simplemem.errors import SimplememError
from simplemem.web.pages.responses import error_page, sign_in_page
from simplemem.web.routing import Handler, require_grant, route, view_for
from simplemem.web.tokens import Scope as Right
from simplemem.web.vault_registry import VaultRegistry
from simplemem.web.vault_view import MountedVault


@dataclass(frozen=True)
class PageRoutes:
    """Makes the routes of one vault's page. Each calls a handler for somebody who is signed in."""

    registry: VaultRegistry
    vault: MountedVault

    def get(self, path: str, handler: Handler, *, right: Right = "read") -> Route:
        """Return the route at which a handler shows a page to those who have a right."""
        return self._route(path, handler, "GET", right)

    def post(self, path: str, handler: Handler, *, right: Right) -> Route:
        """Return the route at which a handler takes a form from those who have a right."""
        return self._route(path, handler, "POST", right)

    def _route(self, path: str, handler: Handler, method: str, right: Right) -> Route:
        """Return a route of the vault for one method."""
        endpoint = partial(_answer_signed_in, self.registry, self.vault, handler, right)
        return route(self.vault.prefix + path, endpoint, [method])


def destination_of(request: Request) -> str:
    """Return the path of a request with its query, to come back to after signing in."""
    if request.method == "GET" and request.url.query:
        return f"{request.url.path}?{request.url.query}"
    return request.url.path


async def _answer_signed_in(
    registry: VaultRegistry, vault: MountedVault, handler: Handler, right: Right, request: Request
) -> Response:
    """Return the answer of a handler to a request of somebody who is signed in and has a right.

    Without a token, returns the sign-in page, which leads back to this page. An error of the
    handler, or a missing right, becomes the error page.
    """
    if request.scope.get("grant") is None:
        return sign_in_page(vault.prefix, destination_of(request))

    try:
        grant = require_grant(request.scope, right)
        view = await view_for(request, registry, vault, grant)
        return await handler(request, view, grant)
    except SimplememError as error:
        return error_page(vault, request.scope.get("grant"), error)
