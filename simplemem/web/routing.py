"""What the handlers of all routes share: rights, the vault of a request, and its route."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from simplemem.web.problem_documents import UNAUTHORIZED_HINT, HTTPError
from simplemem.web.tokens import Grant
from simplemem.web.tokens import Scope as Right
from simplemem.web.vault_registry import VaultRegistry
from simplemem.web.vault_view import MountedVault, VaultView

API: Final = "/api/v1"
"""What the paths of the REST API begin with, after the name of the vault."""

MARKDOWN: Final = "text/markdown"
"""The media type of a note."""

# The commit of a vault on a branch. In a request: the one that the response must include. In a
# response: the one that it is based on.
COMMIT: Final = "Simplemem-Commit"

Handler = Callable[[Request, VaultView, Grant], Awaitable[Response]]
"""A function that answers a request about a vault, for the bearer of a grant."""


def is_browser_session(request: Request) -> bool:
    """Return whether a browser that is signed in makes a request: a person, and not an agent."""
    return bool(request.scope.get("is_browser_session"))


def require_grant(scope: Scope, right: Right) -> Grant:
    """Return the grant of a request.

    Raises HTTPError if there is none (401), or it lacks the right (403).
    """
    grant: Grant | None = scope.get("grant")
    if grant is None:
        headers = {"WWW-Authenticate": "Bearer"}
        raise HTTPError(401, "a token is needed", hint=UNAUTHORIZED_HINT, headers=headers)

    if not grant.may(right):
        option = ""
        if right != "read":
            option = f" --{right}"
        raise HTTPError(
            403,
            f"this token lacks the scope {right}",
            code="forbidden",
            hint=f"Use a token with the scope {right} (`simplemem token new NAME{option}`).",
            headers={"WWW-Authenticate": f'Bearer error="insufficient_scope", scope="{right}"'},
        )
    return grant


def require_writer(scope: Scope) -> Grant:
    """Return the grant of a request that changes notes with a tool, or proposes changes.

    Raises HTTPError if there is none (401), or it lacks both rights (403).
    """
    grant: Grant | None = scope.get("grant")
    if grant is not None and grant.may("propose"):
        return grant
    return require_grant(scope, "write")


async def view_for(
    request: Request, registry: VaultRegistry, vault: MountedVault, grant: Grant
) -> VaultView:
    """Return a vault as a grant sees it, and count the request as one of this view.

    The request is counted until it ends. Raises NotFound if the grant is limited to other vaults.
    """
    view = await registry.view(vault.name, grant)
    view.begin_request()
    request.scope["at_end"].append(view.end_request)
    return view


def vault_endpoint(
    registry: VaultRegistry, vault: MountedVault, handler: Handler, right: Right = "read"
) -> Callable[[Request], Awaitable[Response]]:
    """Return an endpoint that calls a handler with the view of a vault that a request may see.

    It raises HTTPError if the token lacks the right, NotFound if it is limited to other vaults, and
    the errors of the handler. For a vault on a branch, the response names a commit.
    """

    async def handle(request: Request) -> Response:
        grant = require_grant(request.scope, right)
        view = await view_for(request, registry, vault, grant)
        if vault.settings.branch.repository:
            return await _handle_at_commit(handler, request, view, grant)
        return await handler(request, view, grant)

    return handle


async def _handle_at_commit(
    handler: Handler, request: Request, view: VaultView, grant: Grant
) -> Response:
    """Answer a request about a vault on a branch, with the header `COMMIT` in the response.

    The header names a commit that the response includes; after a request that may write, the newest
    commit. It is left out if no commit can be read. Waits first for the commit that the request
    names, if it names one, and raises Unavailable if that commit does not arrive.
    """
    required = request.headers.get(COMMIT)
    if required:
        await view.executor.run(lambda: view.executor.store().reach(required))

    # Asked first, because the response must not be older than the commit that it names.
    commit = await view.executor.run(lambda: view.executor.store().commit())
    response = await handler(request, view, grant)
    if request.method not in ("GET", "HEAD"):
        commit = await view.executor.run(lambda: view.executor.store().commit(written=True))

    if commit:
        response.headers[COMMIT] = commit
    return response


def route(
    path: str, endpoint: Callable[[Request], Awaitable[Response]], methods: Sequence[str]
) -> Route:
    """Return a route that calls an endpoint, and tells the log and the metrics its path.

    `path` is a pattern, such as `/note/{name}`. It becomes `scope["route_path"]` of each request,
    so that the log and the metrics do not show the names of notes.
    """

    async def handle(request: Request) -> Response:
        request.scope["route_path"] = path
        return await endpoint(request)

    return Route(path, handle, methods=[*methods])


def routes_of(
    registry: VaultRegistry, vault: MountedVault, handlers: Mapping[str, Handler]
) -> list[Route]:
    """Return the routes of a vault, one per path, from handlers by "METHOD /path".

    The prefix of the vault is put before each path, and `{name}` may contain slashes. Each route
    needs the right `read`; a handler checks for more. Raises ValueError if something follows
    `{name}` in a path: it would never be reached.
    """
    by_path: dict[str, dict[str, Handler]] = {}
    for address, handler in handlers.items():
        method, _, path = address.partition(" ")
        if "{name}" in path and not path.endswith("{name}"):
            raise ValueError(f"the name must be the end of the path: {address}")
        pattern = path.replace("{name}", "{name:path}")
        by_path.setdefault(pattern, {})[method] = handler

    routes = []
    for path, by_method in by_path.items():
        endpoint = vault_endpoint(registry, vault, _choose_by_method(by_method))
        routes.append(route(vault.prefix + path, endpoint, [*by_method]))
    return routes


def _choose_by_method(handlers: Mapping[str, Handler]) -> Handler:
    """Return a handler that calls the one for the method of a request.

    `handlers` are by method. HEAD is handled as GET.
    """

    async def handle(request: Request, view: VaultView, grant: Grant) -> Response:
        method = request.method
        if method == "HEAD":
            method = "GET"
        return await handlers[method](request, view, grant)

    return handle


class ASGIResponse(Response):
    """A response that another ASGI application sends."""

    def __init__(self, app: ASGIApp) -> None:
        super().__init__()
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)
