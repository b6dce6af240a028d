"""REST: the default tools by the routes they carry, whatever tools a model is shown. A path, a query and a body are the
arguments of a tool, its data is the answer, a note's hash its ETag."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from sse_starlette import EventSourceResponse
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from simplemem.errors import AlreadyExists, Conflict, Invalid, NotFound, SimplememError
from simplemem.server.calls import ToolCall, run_tool
from simplemem.tools.core import TOOLS
from simplemem.tools.reading import read_memory
from simplemem.tools.render import line
from simplemem.tools.tool import Data, Reply, Tool
from simplemem.tools.wording import in_tool_terms
from simplemem.tools.writing import create_memory, update_memory
from simplemem.web.problems import Json, Refused
from simplemem.web.site import Served, Site, View
from simplemem.web.tokens import Grant
from simplemem.web.ways import Handler, granted, routes_of

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore

API: Final = "/api/v1"
MARKDOWN: Final = "text/markdown"
NOTICE_HEADER: Final = "X-Simplemem-Notice"
_MOST_NOTICE: Final = 600
_TOLD: Final = (
    "notes",
    "links",
    "tags",
    "words",
    "state",
    "read_only",
)  # of the numbers of a vault, to all who read


_ROUTES: Final = {tool.name: tool.routes[0] for tool in TOOLS}
_TOOL_CALL = re.compile(rf"""\b({"|".join(_ROUTES)})\b(?:\(((?:"[^"]*"|[^"()])*)\))?""")


def routes(site: Site, served: Served) -> list[Route]:
    """The routes of one vault."""
    tools = [each for each in TOOLS if not (served.settings.no_delete and each.deletes)]
    own: dict[str, Handler] = {
        "GET /memories/{name}": _read,
        "PUT /memories/{name}": _put,
        "GET /tags": _tags,
    }
    own |= {
        "GET /stats": _stats,
        "GET /changes": _changes,
        "GET /tools": listed,
        "POST /tools/{tool}": _any_tool,
    }
    own |= {"GET /openapi.json": _described}
    called = {said: _called(tool) for tool in tools for said in tool.routes}
    handlers = {
        said.replace(" ", f" {API}"): handler if handler is _any_tool else _names_routes(handler)
        for said, handler in (called | own).items()
    }
    return routes_of(site, served, handlers)


async def call(
    view: View,
    tool: Tool,
    arguments: Mapping[str, Any],
    grant: Grant,
    before: Callable[[EnhancedStore], object] = id,
) -> Reply[Any]:
    """What a tool answers, with notices. `before` has a look at the store, with no write of this process between."""

    def work() -> Reply[Any]:
        before(view.door.store())
        return run_tool(tool, view.door, ToolCall(arguments, client="", grant=grant))

    return await view.door.run(work, writes=tool.writes)


def _names_routes(handler: Handler) -> Handler:
    """Return a handler whose errors name routes where those of its tool name other tools."""

    async def handle(request: Request, view: View, grant: Grant) -> Response:
        try:
            return await handler(request, view, grant)
        except SimplememError as error:
            error.hint = with_routes(in_tool_terms(error.hint), view.served.prefix)
            raise

    return handle


def with_routes(hint: str, prefix: str = "") -> str:
    """Return a hint with the routes of the tools that it names.

    `undo_change(version="v3")` becomes `POST /api/v1/undo with version="v3"`.
    """

    def route(match: re.Match[str]) -> str:
        tool, arguments = match.groups()
        method, _, path = _ROUTES[tool].partition(" ")
        taken = f" with {arguments}" if arguments else ""
        return f"{method} {prefix}{API}{path}{taken}"

    return _TOOL_CALL.sub(route, hint)


def notice_headers(*notices: str) -> dict[str, str]:
    """The header that says what an answer of a fixed shape has no place for, such as notes that are not indexed yet."""
    text = line(" ".join(dict.fromkeys(notices)), _MOST_NOTICE)
    return {NOTICE_HEADER: text.encode("ascii", "replace").decode()} if text else {}


def _called(tool: Tool) -> Handler:
    """A handler that calls a tool. What it makes has an address, what it changed a hash."""

    async def handle(request: Request, view: View, grant: Grant) -> Response:
        data = await _done(request, view, grant, tool, await arguments_of(request))
        return _made(view, data, 201) if tool.creates else Json(data, headers=_etag(data))

    return handle


async def _done(
    request: Request,
    view: View,
    grant: Grant,
    tool: Tool,
    arguments: dict[str, Any],
    unmet: tuple[type[SimplememError], ...] = (Conflict,),
    before: Callable[[EnhancedStore], object] = id,
) -> Data:
    """The data of a tool. A condition of the request that does not hold is told as that."""
    if tool.writes:
        granted(request.scope, "write")
    if (expected := hash_expected(request)) and "if_sha256" in tool.arguments:
        arguments["if_sha256"] = expected
    try:
        data: Data = (await call(view, tool, arguments, grant, before)).data() or {}
        if data.get("hint"):
            data = {**data, "hint": with_routes(data["hint"], view.served.prefix)}
        return data
    except unmet as error:
        if not {"if-match", "if-none-match"} & {*request.headers}:
            raise
        refused = Refused(412, error.message, code=error.code, hint=error.hint)
        refused.details = error.details
        raise refused from None


async def _read(request: Request, view: View, grant: Grant) -> Response:
    """A memory as data; or as it is, byte for byte."""
    if MARKDOWN in request.headers.get("accept", "") and not request.query_params:
        name = request.path_params["name"]
        read = await view.door.run(lambda: view.door.store().read(name))
        data = {"sha256": read.sha256}
        body = Response(
            read.text.encode("utf-8", "surrogatepass"), media_type=f"{MARKDOWN}; charset=utf-8"
        )
    else:
        data = await _done(request, view, grant, read_memory, await arguments_of(request))
        body = Json(data)
    known = [
        each.strip().removeprefix("W/")
        for each in request.headers.get("if-none-match", "").split(",")
    ]
    is_known = (etag := _etag(data))["ETag"] in known or "*" in known
    answer = Response(status_code=304) if is_known else body
    answer.headers.update(etag | {"Vary": "Accept"})
    return answer


async def _put(request: Request, view: View, grant: Grant) -> Response:
    """A memory with these words, new or in the place of the one there is. With `If-Match` it is an update: properties
    that are not named stay."""
    arguments, headers = await arguments_of(request), request.headers
    if "if-match" in headers:
        data = await _done(request, view, grant, update_memory, arguments, (Conflict, NotFound))
        return Json(data, headers=_etag(data))
    if (only := headers.get("if-none-match")) not in (None, "*"):
        hint = "To update a note that has a given hash, send If-Match."
        raise Invalid("If-None-Match must be `*` on a PUT", hint=hint)
    there = []

    def look(store: EnhancedStore) -> None:
        there.append(store.has(arguments["name"]))

    arguments["overwrite"] = only is None
    data = await _done(request, view, grant, create_memory, arguments, (AlreadyExists,), look)
    return _made(view, data, 200 if any(there) else 201)


def _made(view: View, data: Data, status: int) -> Response:
    place = f"{view.served.prefix}{API}/memories/{quote(data['name'])}"
    return Json(data, status, _etag(data) | {"Location": place})


def _etag(data: Data) -> dict[str, str]:
    return {"ETag": f'"{data["sha256"]}"'} if data.get("sha256") else {}


def hash_expected(request: Request) -> str:
    """The hash that `If-Match` names; "" for any, and for no such condition."""
    said = request.headers.get("if-match", "*").strip()
    expected = "" if said == "*" else said.removeprefix("W/").strip('"')
    if expected and not re.fullmatch("[0-9a-f]{12,64}", expected):
        raise Refused(
            412,
            "If-Match is not the SHA-256 hash of a note",
            code="invalid",
            hint="Send the ETag that came with the note, which is its sha256 in quotation marks.",
        )
    return expected


async def arguments_of(request: Request) -> dict[str, Any]:
    """The arguments of a request: of its path, its query, and its body, which is a JSON object or Markdown."""
    query = request.query_params
    said: dict[str, Any] = {
        key: many if len(many := query.getlist(key)) > 1 else many[0] for key in query
    }
    if request.method not in ("GET", "HEAD"):
        body = await request.body()
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == MARKDOWN:
            said["content"] = _decoded(body)
        elif body.strip():
            said |= _object_in(body, kind)
    return said | {key: value for key, value in request.path_params.items() if key != "tool"}


def _object_in(body: bytes, kind: str) -> dict[str, Any]:
    if kind not in ("application/json", ""):
        raise Refused(
            415, "the body must be JSON", hint="Send it with `Content-Type: application/json`."
        )
    try:
        found = json.loads(_decoded(body))
    except (ValueError, RecursionError):
        raise Invalid("the body is not JSON") from None
    if not isinstance(found, dict):
        raise Invalid(
            "the body is not a JSON object", hint='Send an object, such as {"content": "..."}.'
        )
    return found


def _decoded(body: bytes) -> str:
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Invalid("the body is not UTF-8") from None


async def _tags(_request: Request, view: View, _grant: Grant) -> Response:
    return Json({"tags": await view.door.run(lambda: view.door.store().tags())})


async def _stats(_request: Request, view: View, grant: Grant) -> Response:
    """Numbers of the vault as this grant sees it; where it lies is told to its keeper alone."""
    stats = await view.door.run(lambda: view.door.store().stats())
    is_keeper = grant.may("admin") and not grant.is_bound
    return Json({key: each for key, each in stats.items() if is_keeper or key in _TOLD})


async def _changes(request: Request, view: View, _grant: Grant) -> Response:
    """Word of each change as an event; `Last-Event-ID` asks for those since."""
    if request.method == "HEAD":
        return Response(media_type="text/event-stream")
    view.feed.listen()
    await view.door.run(view.feed.hear)
    events = view.feed.events(request.headers.get("last-event-id", ""))
    return EventSourceResponse(events, ping=15, headers={"Cache-Control": "no-store"})


async def listed(_request: Request, view: View, _grant: Grant) -> Response:
    return Json({"tools": [each.listing() for each in view.served.tools]})


async def _any_tool(request: Request, view: View, grant: Grant) -> Response:
    """Any tool of the vault's profile, by its name."""
    tool = tool_called(view, request.path_params["tool"])
    reply = await call(view, tool, await arguments_of(request), grant)
    return Json(reply.data() or {"text": reply.text}, headers=notice_headers(*reply.notices))


def tool_called(view: View, name: str) -> Tool:
    """A tool of the vault's profile."""
    if (tool := next((each for each in view.served.tools if each.name == name), None)) is None:
        raise NotFound(f"no tool called {name[:60]!r}", hint=f"GET {API}/tools lists the tools.")
    return tool


async def _described(_request: Request, view: View, _grant: Grant) -> Response:
    from simplemem.web.openapi import document

    return Json(document(view.served.prefix, view.served.profile))
