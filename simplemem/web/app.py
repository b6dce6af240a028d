"""All routes of a server as one application: MCP, REST, the page, and what its keeper asks."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.sse import SseServerTransport
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from simplemem.errors import SimplememError
from simplemem.profiles.registry import built_in_profiles
from simplemem.web import compatibility, rest
from simplemem.web.guard import AuthMiddleware
from simplemem.web.limits import MAX_BODY_BYTES
from simplemem.web.metrics import Metrics
from simplemem.web.problems import HTTPError, failed, refused, unknown
from simplemem.web.routing import ASGIResponse, Handler, granted, handled, route
from simplemem.web.tokens import Grant
from simplemem.web.vault_registry import VaultRegistry
from simplemem.web.vault_view import MountedVault, VaultView

log = logging.getLogger("simplemem.web")


def application(
    registry: VaultRegistry,
    guard: Callable[[ASGIApp, Metrics], AuthMiddleware],
    *,
    sse: bool,
    more: Sequence[Route] = (),
) -> AuthMiddleware:
    """The routes of every vault behind the guard."""
    metrics = Metrics()

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        async with registry.running():
            yield

    routes = [
        *(route(path, _health(registry), ["GET"]) for path in ("/health", f"{rest.API}/health")),
        route("/ready", _ready(registry), ["GET"]),
        route("/metrics", _metrics(registry, metrics), ["GET"]),
    ]
    for vault in registry.vaults.values():
        routes += _of_vault(registry, vault, sse=sse)
    routes += more
    handlers: dict[Any, Any] = {
        SimplememError: refused,
        HTTPException: partial(unknown, hint=_hint_of_routes(registry)),
        Exception: failed,
    }
    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers=handlers)
    app.router.redirect_slashes = False
    return guard(app, metrics)


def _hint_of_routes(registry: VaultRegistry) -> str:
    """Say where the routes are described. Names no vault, as a token may be limited to another."""
    if len(registry.vaults) == 1:
        [vault] = registry.vaults.values()
        return f"`GET {vault.prefix}{rest.API}/openapi.json` describes the routes. MCP is at {vault.prefix}/mcp."
    return (
        "This server has several vaults. Each path begins with the name of one:"
        f" `GET /NAME{rest.API}/openapi.json` describes the routes. MCP is at /NAME/mcp."
    )


def _of_vault(registry: VaultRegistry, vault: MountedVault, *, sse: bool) -> list[Route]:
    def at(path: str, handler: Handler, *methods: str) -> Route:
        return route(vault.prefix + path, handled(registry, vault, handler), methods)

    routes = [
        at("/mcp", _mcp, "GET", "POST", "DELETE"),
        *rest.routes(registry, vault),
        *compatibility.routes(registry, vault),
    ]
    if sse:
        old = _Sse(f"{vault.prefix}/messages")
        routes += [at("/sse", old.listen, "GET"), at("/messages", old.post, "POST")]
    return routes


async def _mcp(request: Request, view: VaultView, grant: Grant) -> Response:
    """MCP over Streamable HTTP, of both generations."""
    request.scope["user"] = _owner_of_session(grant)
    return ASGIResponse(view.manager.handle_request)


def _owner_of_session(grant: Grant) -> AuthenticatedUser:
    """As the SDK knows whose session it is: another token cannot go on with it."""
    return AuthenticatedUser(
        AccessToken(token="", client_id=grant.identity, scopes=list(grant.scopes))
    )


class _Sse:
    """MCP as clients of 2024 speak it: a stream of events, and posts beside it."""

    def __init__(self, posts: str) -> None:
        self._transport = SseServerTransport(posts, max_request_body_size=MAX_BODY_BYTES)

    async def listen(self, request: Request, view: VaultView, grant: Grant) -> Response:
        async def stream(scope: Scope, receive: Receive, send: Send) -> None:
            async with self._transport.connect_sse(scope, receive, send) as (messages, answers):
                await view.server.run(
                    messages, answers, view.server.create_initialization_options()
                )

        request.scope["user"] = _owner_of_session(grant)
        return ASGIResponse(stream)

    async def post(self, request: Request, _view: VaultView, grant: Grant) -> Response:
        request.scope["user"] = _owner_of_session(grant)
        return ASGIResponse(self._transport.handle_post_message)


def _health(registry: VaultRegistry) -> Callable[[Request], Awaitable[Response]]:
    of_profiles: dict[str, str] = {}
    for profile in built_in_profiles().values():
        of_profiles |= profile.health

    async def health(_request: Request) -> Response:
        """Whether every vault and its index could be opened, with what clients of other servers expect."""
        whole = [view for view in registry.views() if not view.only]
        is_open = all([await view.executor.is_open() for view in whole])
        facts = {
            "status": "ok" if is_open else "degraded",
            **of_profiles,
            "database": "connected" if is_open else "not connected",
        }
        return JSONResponse(facts, 200 if is_open else 503)

    return health


def _ready(registry: VaultRegistry) -> Callable[[Request], Awaitable[Response]]:
    async def ready(_request: Request) -> Response:
        """Say whether every vault can be searched; nothing more, since anybody may ask."""
        states = [await _state_of(view) for view in registry.views() if not view.only]
        for state in ("unavailable", "indexing"):
            if state in states:
                return JSONResponse({"status": state}, 503)
        return JSONResponse({"status": "ready"})

    return ready


async def _state_of(view: VaultView) -> str:
    """Return `ready`, `indexing`, or `unavailable` for a vault that cannot be opened."""
    try:
        state = await view.executor.run(lambda: view.executor.store().state())
    except SimplememError as error:
        log.error(
            "the vault %s is not ready: %s", view.vault.name or view.vault.root, error.message
        )
        return "unavailable"
    return "ready" if state.state == "ready" else "indexing"


def _metrics(registry: VaultRegistry, metrics: Metrics) -> Callable[[Request], Awaitable[Response]]:
    async def shown(request: Request) -> Response:
        if granted(request.scope, "admin").is_limited:
            hint = "Use a token that is not limited to vaults, folders or a user."
            raise HTTPError(
                403,
                "metrics cover the whole server, and this token is limited to a part of it",
                hint=hint,
            )
        rows = []
        for view in (each for each in registry.views() if not each.only):
            state = await view.executor.run(lambda view=view: view.executor.store().state())  # type: ignore[misc]
            rows.append(("", f'vault="{view.vault.name}"', float(state.notes)))
        return PlainTextResponse(
            metrics.text({"simplemem_notes": rows}), media_type="text/plain; version=0.0.4"
        )

    return shown
