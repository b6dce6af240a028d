"""REST: the default tools by the routes they carry, whatever tools a model is shown. A path, a query and a body are the
arguments of a tool, its data is the answer, a note's hash its ETag."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from sse_starlette import EventSourceResponse
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from simplemem.errors import AlreadyExists, Conflict, Invalid, SimplememError
from simplemem.faces.core import TOOLS
from simplemem.faces.face import Tool
from simplemem.network.problems import Refused
from simplemem.network.site import Served, Site, View
from simplemem.network.tokens import Grant
from simplemem.network.ways import granted, handled, route
from simplemem.server.calls import carry_out

API: Final = "/api/v1"
BY_NAME: Final = {tool.name: tool for tool in TOOLS}
_MARKDOWN: Final = "text/markdown"
_TOLD: Final = ("notes", "links", "tags", "words", "state", "read_only")  # of the numbers of a vault


def routes(site: Site, served: Served) -> list[Route]:
    """The routes of one vault."""
    found = []
    for each in (each for each in TOOLS if not (served.settings.no_delete and each.deletes)):
        for said in each.routes:
            method, _, path = said.partition(" ")
            found.append(_route(site, served, method, path, _called(each, method)))
    found.append(_route(site, served, "GET", "/tags", _tags))
    found.append(_route(site, served, "GET", "/stats", _stats))
    found.append(_route(site, served, "GET", "/changes", _changes))
    found.append(_route(site, served, "GET", "/tools", _listed))
    found.append(_route(site, served, "GET", "/openapi.json", _described))
    return [*found, _route(site, served, "POST", "/tools/{tool}", _any_tool)]


def _route(site: Site, served: Served, method: str, path: str, handler: Any) -> Route:
    return route(
        f"{served.prefix}{API}{path.replace('{name}', '{name:path}')}", handled(site, served, handler), [method]
    )


def _called(tool: Tool, method: str) -> Any:
    """A handler that calls a tool."""

    async def handle(request: Request, view: View, grant: Grant) -> Response:
        if tool.writes:
            granted(request.scope, "write")
        called, arguments = tool, await arguments_of(request)
        named, expected = "name" in request.path_params, hash_in(request.headers.get("if-match"))
        if method == "PUT":
            arguments["overwrite"] = request.headers.get("if-none-match", "").strip() != "*"
            if expected:  # what is there is known: an update, which says what else it finds
                del arguments["overwrite"]
                called = BY_NAME["update_memory"]
        if expected and "if_sha256" in called.arguments:
            arguments["if_sha256"] = expected
        if method == "GET" and tool.name == "read_memory" and _wants_markdown(request):
            return await _as_markdown(request, view)
        data = await call(view, called, arguments, grant, conditional=bool(expected) or method == "PUT")
        etag = f'"{data["sha256"]}"' if named and data.get("sha256") else ""
        if etag and method == "GET" and _is_known(request, etag):
            return Response(status_code=304, headers={"ETag": etag})
        is_new = called.name == "create_memory" and not data.get("replaced")
        return JSONResponse(data, 201 if is_new else 200, {"ETag": etag} if etag else None)

    return handle


async def call(
    view: View, tool: Tool, arguments: Mapping[str, Any], grant: Grant, *, conditional: bool = False
) -> dict[str, Any]:
    """What a tool answers, as data. A condition of the request that does not hold is told as that."""
    try:
        reply = await view.door.run(lambda: carry_out(tool, view.door, arguments, "", grant), writes=tool.writes)
    except (Conflict, AlreadyExists) as error:
        if not conditional:
            raise
        raise _Unmet(error) from None
    return reply.data() or {"text": reply.text}


class _Unmet(Refused):
    """`If-Match` or `If-None-Match` does not hold."""

    def __init__(self, error: SimplememError) -> None:
        super().__init__(412, error.message, code=error.code, hint=error.hint)
        self.details = error.details


async def arguments_of(request: Request) -> dict[str, Any]:
    """The arguments of a request: of its path, its query, and its body, which is a JSON object or Markdown."""
    said: dict[str, Any] = {}
    for key in request.query_params:
        values = request.query_params.getlist(key)
        said[key] = values if len(values) > 1 else values[0]
    if request.method != "GET":
        body = await request.body()
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() == _MARKDOWN:
            said["content"] = _decoded(body)
        elif body.strip():
            said |= object_in(body, request.headers.get("content-type", ""))
    path = {key: value for key, value in request.path_params.items() if key != "tool"}
    return said | path


def object_in(body: bytes, kind: str = "application/json") -> dict[str, Any]:
    """A body as the JSON object that it should be."""
    if kind.partition(";")[0].strip().lower() not in ("application/json", ""):
        raise Refused(415, "the body is JSON", hint="Send it with `Content-Type: application/json`.")
    try:
        found = json.loads(_decoded(body))
    except (ValueError, RecursionError):
        raise Invalid("the body is not JSON") from None
    if not isinstance(found, dict):
        raise Invalid("the body is no JSON object", hint='For example {"content": "..."}.')
    return found


def _decoded(body: bytes) -> str:
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Invalid("the body is not UTF-8") from None


def hash_in(header: str | None) -> str:
    """The hash that a condition names; "" for none, and for any."""
    said = (header or "").strip()
    return "" if said in ("", "*") else said.removeprefix("W/").strip('"')


def _is_known(request: Request, etag: str) -> bool:
    known = [each.strip().removeprefix("W/") for each in request.headers.get("if-none-match", "").split(",")]
    return etag in known or "*" in known


def _wants_markdown(request: Request) -> bool:
    return request.headers.get("accept", "").startswith(_MARKDOWN) and not request.query_params


async def _as_markdown(request: Request, view: View) -> Response:
    """The note as it is, byte for byte."""
    name = request.path_params["name"]
    read = await view.door.run(lambda: view.door.store().read(name))
    etag = f'"{read.sha256}"'
    if _is_known(request, etag):
        return Response(status_code=304, headers={"ETag": etag})
    data = read.text.encode("utf-8", "surrogatepass")
    return Response(data, media_type=f"{_MARKDOWN}; charset=utf-8", headers={"ETag": etag})


async def _tags(_request: Request, view: View, _grant: Grant) -> Response:
    return JSONResponse({"tags": await view.door.run(lambda: view.door.store().tags())})


async def _stats(_request: Request, view: View, grant: Grant) -> Response:
    """Numbers of the vault as this grant sees it; where it lies is told to its keeper alone."""
    stats = await view.door.run(lambda: view.door.store().stats())
    if not grant.may("admin"):
        stats = {
            key: each for key, each in stats.items() if key in ("notes", "links", "tags", "words", "state", "read_only")
        }
    return JSONResponse(stats)


async def _changes(request: Request, view: View, _grant: Grant) -> Response:
    """Word of each change as an event; `Last-Event-ID` asks for those since."""
    view.feed.listen()
    await view.door.run(view.feed.hear)
    events = view.feed.events(request.headers.get("last-event-id", ""))
    return EventSourceResponse(events, ping=15, headers={"Cache-Control": "no-store"})


async def _listed(_request: Request, view: View, _grant: Grant) -> Response:
    return JSONResponse({"tools": [each.listing() for each in view.served.tools]})


async def _described(_request: Request, view: View, _grant: Grant) -> Response:
    from simplemem.network.openapi import document

    return JSONResponse(document() | {"servers": [{"url": view.served.prefix + API}]})


async def _any_tool(request: Request, view: View, grant: Grant) -> Response:
    """Any tool of the vault's face, by its name."""
    return JSONResponse(await call_named(request.path_params["tool"], await arguments_of(request), view, grant))


async def call_named(name: str, arguments: Mapping[str, Any], view: View, grant: Grant) -> dict[str, Any]:
    """What a tool of the face answers."""
    if (tool := next((each for each in view.served.tools if each.name == name), None)) is None:
        raise Refused(404, f"there is no tool {name[:60]!r}", hint="GET /api/v1/tools lists them.")
    return await call(view, tool, arguments, grant)
