"""What the handlers of all routes have in common: who asks, with which right, of which vault."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from simplemem.network.problems import Refused
from simplemem.network.site import Served, Site, View
from simplemem.network.tokens import Grant
from simplemem.network.tokens import Scope as Right

Handler = Callable[[Request, View, Grant], Awaitable[Response]]


def granted(scope: Scope, right: Right) -> Grant:
    """Who asks, if they have that right."""
    grant: Grant | None = scope.get("grant")
    if grant is None:
        raise Refused(401, "a token is needed", headers={"WWW-Authenticate": "Bearer"})
    if not grant.may(right):
        headers = {"WWW-Authenticate": f'Bearer error="insufficient_scope", scope="{right}"'}
        raise Refused(403, f"this token has no right to {right}", code="forbidden", headers=headers)
    return grant


def handled(
    site: Site, served: Served, handler: Handler, right: Right = "read"
) -> Callable[[Request], Awaitable[Response]]:
    """A handler of one vault, for whoever has that right."""

    async def handle(request: Request) -> Response:
        grant = granted(request.scope, right)
        return await handler(request, await site.view(served.name, grant), grant)

    return handle


def route(path: str, endpoint: Callable[[Request], Awaitable[Response]], methods: Sequence[str]) -> Route:
    """A route that tells the log and the metrics its pattern."""

    async def handle(request: Request) -> Response:
        request.scope["route_path"] = path
        return await endpoint(request)

    return Route(path, handle, methods=[*methods])


class Passed(Response):
    """An answer that another application gives."""

    def __init__(self, app: ASGIApp) -> None:
        super().__init__()
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)
