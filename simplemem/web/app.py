"""All routes of a server as one application: MCP, REST, the page, and the operator's routes."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, TypeAlias

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
from simplemem.web.compression import Compression
from simplemem.web.guard import AuthMiddleware
from simplemem.web.limits import MAX_BODY_BYTES
from simplemem.web.metrics import GaugeRow, Metrics
from simplemem.web.problem_documents import (
    HTTPError,
    answer_error,
    answer_http_exception,
    answer_unexpected_error,
)
from simplemem.web.routing import API, ASGIResponse, Handler, require_grant, route, vault_endpoint
from simplemem.web.tokens import Grant
from simplemem.web.vault_registry import VaultRegistry
from simplemem.web.vault_view import MountedVault, VaultView

log = logging.getLogger("simplemem.web")

Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]
ShowUnknownPath: TypeAlias = Callable[[VaultRegistry, Request], Response | None]
_METRICS_TYPE: Final = "text/plain; version=0.0.4"


def application(
    registry: VaultRegistry,
    protect: Callable[[ASGIApp, Metrics], AuthMiddleware],
    *,
    sse: bool,
    more: Sequence[Route] = (),
    show_unknown_path: ShowUnknownPath = lambda _registry, _request: None,
) -> AuthMiddleware:
    """Return the application that serves the vaults of a registry.

    `protect` puts the checks of every request before the routes. With `sse`, MCP is also served in
    its transport of 2024. `more` are routes of other modules, such as those of the web page.
    `show_unknown_path` returns the page for a path at which nothing is served; if it returns None,
    the client gets a problem document. The registry runs as long as the application does.
    """
    metrics = Metrics()
    routes = _operator_routes(registry, metrics)
    for vault in registry.vaults.values():
        routes += _vault_routes(registry, vault, sse=sse)
    routes += more

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        async with registry.running():
            yield

    hint = _hint_about_routes(registry)

    async def answer_unknown_path(request: Request, error: HTTPException) -> Response:
        page = None
        if error.status_code == 404:
            page = show_unknown_path(registry, request)
        return page or await answer_http_exception(request, error, hint=hint)

    handlers: dict[Any, Any] = {
        SimplememError: answer_error,
        HTTPException: answer_unknown_path,
        Exception: answer_unexpected_error,
    }
    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers=handlers)
    app.router.redirect_slashes = False
    return protect(Compression(app), metrics)


def _hint_about_routes(registry: VaultRegistry) -> str:
    """Return the hint that says where the routes are described.

    If there are several vaults, it names none of them: the token of the request may be limited to
    other vaults.
    """
    if len(registry.vaults) == 1:
        [vault] = registry.vaults.values()
        description = f"`GET {vault.prefix}{API}/openapi.json` describes the routes."
        return f"{description} MCP is at {vault.prefix}/mcp."
    return (
        "This server has several vaults. Each path begins with the name of one:"
        f" `GET /NAME{API}/openapi.json` describes the routes. MCP is at /NAME/mcp."
    )


# --- one vault


def _vault_routes(registry: VaultRegistry, vault: MountedVault, *, sse: bool) -> list[Route]:
    """Return the routes of one vault, except those of its page."""

    def at(path: str, handler: Handler, *methods: str) -> Route:
        return route(vault.prefix + path, vault_endpoint(registry, vault, handler), methods)

    routes = [at("/mcp", _handle_mcp, "GET", "POST", "DELETE")]
    routes += rest.routes(registry, vault)
    routes += compatibility.routes(registry, vault)
    if sse:
        transport = _SseTransport(f"{vault.prefix}/messages")
        routes.append(at("/sse", transport.handle_stream, "GET"))
        routes.append(at("/messages", transport.handle_post, "POST"))
    return routes


async def _handle_mcp(request: Request, view: VaultView, grant: Grant) -> Response:
    """Return a response that serves MCP over Streamable HTTP, in both generations of it."""
    request.scope["user"] = _session_owner(grant)
    return ASGIResponse(view.manager.handle_request)


def _session_owner(grant: Grant) -> AuthenticatedUser:
    """Return the owner of a session, by which the SDK refuses the session to other tokens."""
    token = AccessToken(token="", client_id=grant.identity, scopes=list(grant.scopes))
    return AuthenticatedUser(token)


class _SseTransport:
    """MCP over HTTP as clients of 2024 speak it: a stream of events, and a POST per message.

    `post_path` is the path to which clients send messages. Guards the sessions that are open.
    """

    def __init__(self, post_path: str) -> None:
        self._transport = SseServerTransport(post_path, max_request_body_size=MAX_BODY_BYTES)

    async def handle_stream(self, request: Request, view: VaultView, grant: Grant) -> Response:
        """Return a response that begins a session, and is open until the client disconnects."""

        async def stream(scope: Scope, receive: Receive, send: Send) -> None:
            options = view.server.create_initialization_options()
            async with self._transport.connect_sse(scope, receive, send) as (messages, answers):
                await view.server.run(messages, answers, options)

        request.scope["user"] = _session_owner(grant)
        return ASGIResponse(stream)

    async def handle_post(self, request: Request, _view: VaultView, grant: Grant) -> Response:
        """Return a response that passes a message of the client to its session."""
        request.scope["user"] = _session_owner(grant)
        return ASGIResponse(self._transport.handle_post_message)


# --- the operator's routes, which cover all vaults


def _operator_routes(registry: VaultRegistry, metrics: Metrics) -> list[Route]:
    """Return the routes by which an operator watches the server: health, readiness and metrics."""
    health = _health_endpoint(registry)
    return [
        route("/health", health, ["GET"]),
        route(f"{API}/health", health, ["GET"]),
        route("/ready", _ready_endpoint(registry), ["GET"]),
        route("/metrics", _metrics_endpoint(registry, metrics), ["GET"]),
    ]


def _health_endpoint(registry: VaultRegistry) -> Endpoint:
    """Return the endpoint that says whether every vault and its index can be opened.

    It answers 200 if they can, else 503. It opens the stores that are closed.
    """

    async def show_health(_request: Request) -> Response:
        states = [await view.executor.is_open() for view in registry.whole_views()]
        status = "ok"
        database = "connected"
        status_code = 200
        if not all(states):
            status = "degraded"
            database = "not connected"
            status_code = 503
        body = {"status": status, **_health_of_profiles(), "database": database}
        return JSONResponse(body, status_code)

    return show_health


def _health_of_profiles() -> Mapping[str, str]:
    """Return the fields that clients of replaced servers expect of an answer about health.

    They are those of all built-in profiles, by name.
    """
    fields: dict[str, str] = {}
    for profile in built_in_profiles().values():
        fields |= profile.health
    return fields


def _ready_endpoint(registry: VaultRegistry) -> Endpoint:
    """Return the endpoint that says whether every vault can be searched: 200 if so, else 503.

    It says nothing else, because it needs no token.
    """

    async def show_readiness(_request: Request) -> Response:
        states = [await _state_of(view) for view in registry.whole_views()]
        for state in ("unavailable", "indexing"):
            if state in states:
                return JSONResponse({"status": state}, 503)
        return JSONResponse({"status": "ready"})

    return show_readiness


async def _state_of(view: VaultView) -> str:
    """Return `ready`, `indexing`, or `unavailable` for a vault that cannot be opened.

    Logs why a vault cannot be opened, and raises nothing for it.
    """
    try:
        index = await view.executor.run(lambda: view.executor.store().state())
    except SimplememError as error:
        name = view.vault.name or view.vault.root
        log.error("the vault %s is not ready: %s", name, error.message)
        return "unavailable"

    if index.state == "ready":
        return "ready"
    return "indexing"


def _metrics_endpoint(registry: VaultRegistry, metrics: Metrics) -> Endpoint:
    """Return the endpoint that shows the metrics to an administrator of the whole server.

    It raises HTTPError for any other token, and Unavailable if a vault cannot be opened.
    """

    async def show_metrics(request: Request) -> Response:
        if require_grant(request.scope, "admin").is_limited:
            message = "metrics cover the whole server, and this token is limited to a part of it"
            hint = "Use a token that is not limited to vaults, folders or a user."
            raise HTTPError(403, message, hint=hint)

        rows = [await _count_notes(view) for view in registry.whole_views()]
        text = metrics.text({"simplemem_notes": rows})
        return PlainTextResponse(text, media_type=_METRICS_TYPE)

    return show_metrics


async def _count_notes(view: VaultView) -> GaugeRow:
    """Return the row of a view in the gauge of notes: its vault, and how many notes it has.

    Raises Unavailable if the vault cannot be opened.
    """
    index = await view.executor.run(lambda: view.executor.store().state())
    return GaugeRow(f'vault="{view.vault.name}"', float(index.notes))
