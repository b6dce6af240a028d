"""What the handlers of all routes have in common: who asks, with which right, of which vault."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from simplemem.web.problems import UNAUTHORIZED_HINT, Refused
from simplemem.web.site import Served, Site, View
from simplemem.web.tokens import Grant
from simplemem.web.tokens import Scope as Right

COMMIT = "Simplemem-Commit"  # of the vault's branch: what an answer is of, and must know of
Handler = Callable[[Request, View, Grant], Awaitable[Response]]


def granted(scope: Scope, right: Right) -> Grant:
    """Who asks, if they have that right."""
    grant: Grant | None = scope.get("grant")
    if grant is None:
        headers = {"WWW-Authenticate": "Bearer"}
        raise Refused(401, "a token is needed", hint=UNAUTHORIZED_HINT, headers=headers)
    if not grant.may(right):
        headers = {"WWW-Authenticate": f'Bearer error="insufficient_scope", scope="{right}"'}
        option = "" if right == "read" else f" --{right}"
        hint = f"Use a token with the scope {right} (`simplemem token new NAME{option}`)."
        raise Refused(
            403, f"this token lacks the scope {right}", code="forbidden", hint=hint, headers=headers
        )
    return grant


async def view_for(request: Request, site: Site, served: Served, grant: Grant) -> View:
    """Return a vault as a grant sees it, in use until the request has been answered."""
    view = await site.view(served.name, grant)
    view.begin_request()
    request.scope["at_end"].append(view.end_request)
    return view


def handled(
    site: Site, served: Served, handler: Handler, right: Right = "read"
) -> Callable[[Request], Awaitable[Response]]:
    """A handler of one vault, for whoever has that right."""

    async def handle(request: Request) -> Response:
        grant = granted(request.scope, right)
        view = await view_for(request, site, served, grant)
        if not served.settings.branch.repository:
            return await handler(request, view, grant)
        if after := request.headers.get(COMMIT):
            await view.door.run(lambda: view.door.store().reach(after))
        store, writes = view.door.store, request.method not in ("GET", "HEAD")
        known = await view.door.run(lambda: store().commit())  # no later than what is answered
        response = await handler(request, view, grant)
        if commit := await view.door.run(lambda: store().commit(written=True)) if writes else known:
            response.headers[COMMIT] = commit
        return response

    return handle


def route(
    path: str, endpoint: Callable[[Request], Awaitable[Response]], methods: Sequence[str]
) -> Route:
    """A route that tells the log and the metrics its pattern."""

    async def handle(request: Request) -> Response:
        request.scope["route_path"] = path
        return await endpoint(request)

    return Route(path, handle, methods=[*methods])


def routes_of(site: Site, served: Served, handlers: Mapping[str, Handler]) -> list[Route]:
    """The routes of a vault, of what stands at "GET /path": one each path, which knows all its methods."""
    by_path: dict[str, dict[str, Handler]] = {}
    for said, handler in handlers.items():
        method, _, path = said.partition(" ")
        by_path.setdefault(path.replace("{name}", "{name:path}"), {})[method] = handler

    def called(methods: dict[str, Handler]) -> Handler:
        return lambda request, view, grant: methods[
            "GET" if request.method == "HEAD" else request.method
        ](request, view, grant)

    return [
        route(served.prefix + path, handled(site, served, called(each)), [*each])
        for path, each in by_path.items()
    ]


class Passed(Response):
    """An answer that another application gives."""

    def __init__(self, app: ASGIApp) -> None:
        super().__init__()
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)
