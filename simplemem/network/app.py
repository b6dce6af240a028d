"""All routes of a server as one application: MCP, REST, the page, and what its keeper asks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
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
from simplemem.network.guard import MOST_BODY, Guard
from simplemem.network.metrics import Metrics
from simplemem.network.problems import Refused, failed, refused, unknown
from simplemem.network.site import Served, Site, View
from simplemem.network.tokens import Grant
from simplemem.network.tokens import Scope as Right

Handler = Callable[[Request, View, Grant], Awaitable[Response]]


def application(site: Site, guard: Callable[[ASGIApp, Metrics], Guard], *, sse: bool) -> Guard:
    """The routes of every vault behind the guard."""
    metrics = Metrics()

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        async with site.running():
            yield

    routes = [
        _route("/health", _health, ["GET"]),
        _route("/ready", _ready(site), ["GET"]),
        _route("/metrics", _metrics(site, metrics), ["GET"]),
    ]
    for served in site.vaults.values():
        routes += _of_vault(site, served, sse=sse)
    handlers: dict[Any, Any] = {SimplememError: refused, HTTPException: unknown, Exception: failed}
    return guard(Starlette(routes=routes, lifespan=lifespan, exception_handlers=handlers), metrics)


def _of_vault(site: Site, served: Served, *, sse: bool) -> list[Route]:
    routes = [_route(f"{served.prefix}/mcp", _Mcp(site, served), None)]
    if sse:
        old = _Sse(site, served)
        routes += [_route(f"{served.prefix}/sse", old.listen, ["GET"])]
        routes += [_route(f"{served.prefix}/messages", old.post, ["POST"])]
    return routes


def _route(path: str, endpoint: Any, methods: Sequence[str] | None) -> Route:
    """A route that tells the log and the metrics its pattern."""
    if isinstance(endpoint, (_Mcp, _App)):

        async def named(scope: Scope, receive: Receive, send: Send) -> None:
            scope["route_path"] = path
            await endpoint(scope, receive, send)

        return Route(path, _App(named), methods=list(methods) if methods else None)

    async def handle(request: Request) -> Response:
        request.scope["route_path"] = path
        answer: Response = await endpoint(request)
        return answer

    return Route(path, handle, methods=list(methods or ()))


class _App:
    """An ASGI application as Starlette's routes know one from a function."""

    def __init__(self, app: Callable[[Scope, Receive, Send], Awaitable[None]]) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)


def handled(
    site: Site, served: Served, handler: Handler, right: Right = "read"
) -> Callable[[Request], Awaitable[Response]]:
    """A handler of one vault, for whoever has that right."""

    async def handle(request: Request) -> Response:
        grant = granted(request.scope, right)
        return await handler(request, await site.view(served.name, grant), grant)

    return handle


def granted(scope: Scope, right: Right) -> Grant:
    """Who asks, if they have that right."""
    grant: Grant | None = scope.get("grant")
    if grant is None:
        raise Refused(401, "a token is needed", headers={"WWW-Authenticate": "Bearer"})
    if not grant.may(right):
        headers = {"WWW-Authenticate": f'Bearer error="insufficient_scope", scope="{right}"'}
        raise Refused(403, f"this token has no right to {right}", code="forbidden", headers=headers)
    return grant


class _Mcp:
    """MCP over Streamable HTTP, of both generations."""

    def __init__(self, site: Site, served: Served) -> None:
        self._site, self._served = site, served

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        grant = granted(scope, "read")
        view = await self._site.view(self._served.name, grant)
        scope["user"] = _owner_of_session(grant)
        await view.manager.handle_request(scope, receive, send)


def _owner_of_session(grant: Grant) -> AuthenticatedUser:
    """As the SDK knows whose session it is: another token cannot go on with it."""
    return AuthenticatedUser(AccessToken(token="", client_id=f"{grant.name} {grant.sha256}", scopes=list(grant.scopes)))


class _Sse:
    """MCP as clients of 2024 speak it: a stream of events, and posts beside it."""

    def __init__(self, site: Site, served: Served) -> None:
        self._site, self._served = site, served
        self._transport = SseServerTransport(f"{served.prefix}/messages", max_request_body_size=MOST_BODY)

    async def listen(self, request: Request) -> Response:
        grant = granted(request.scope, "read")
        view = await self._site.view(self._served.name, grant)
        request.scope["user"] = _owner_of_session(grant)
        async with self._transport.connect_sse(request.scope, request.receive, request._send) as (messages, answers):  # noqa: SLF001
            await view.server.run(messages, answers, view.server.create_initialization_options())
        return Response()

    async def post(self, request: Request) -> Response:
        request.scope["user"] = _owner_of_session(granted(request.scope, "read"))
        return _Passed(self._transport.handle_post_message)


class _Passed(Response):
    """An answer that another application gives."""

    def __init__(self, app: ASGIApp) -> None:
        super().__init__()
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)


async def _health(_request: Request) -> Response:
    return JSONResponse({"status": "ok", "neo4j": "connected", "database": "connected"})


def _ready(site: Site) -> Callable[[Request], Awaitable[Response]]:
    async def ready(_request: Request) -> Response:
        """Whether every vault can be searched."""
        whole = [view for view in site.views() if not view.only]
        states = [await view.door.run(lambda view=view: view.door.store().state().state) for view in whole]  # type: ignore[misc]
        is_ready = all(state == "ready" for state in states)
        return JSONResponse({"status": "ready" if is_ready else "indexing"}, 200 if is_ready else 503)

    return ready


def _metrics(site: Site, metrics: Metrics) -> Callable[[Request], Awaitable[Response]]:
    async def shown(request: Request) -> Response:
        granted(request.scope, "admin")
        rows = []
        for view in (each for each in site.views() if not each.only):
            state = await view.door.run(lambda view=view: view.door.store().state())  # type: ignore[misc]
            rows.append(("", f'vault="{view.served.name}"', float(state.notes)))
        return PlainTextResponse(metrics.text({"simplemem_notes": rows}), media_type="text/plain; version=0.0.4")

    return shown
