"""The REST API: the default tools by the routes that they declare, whatever tools the profile has.

The path, the query and the body of a request are the arguments of a tool. The response is the
tool's data, and the hash of a note is its ETag.
"""

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

from simplemem.errors import (
    AlreadyExists,
    Conflict,
    Hint,
    HintSentence,
    Invalid,
    NotFound,
    SimplememError,
)
from simplemem.server.calls import ToolCall, run_tool
from simplemem.tools.core import TOOLS
from simplemem.tools.reading import read_memory
from simplemem.tools.render import line
from simplemem.tools.tool import Data, Reply, Tool
from simplemem.tools.writing import create_memory, update_memory
from simplemem.web.problem_documents import HTTPError, Json
from simplemem.web.routing import (
    API,
    MARKDOWN,
    Handler,
    is_browser_session,
    require_writer,
    routes_of,
)
from simplemem.web.tokens import Grant
from simplemem.web.vault_registry import VaultRegistry
from simplemem.web.vault_view import MountedVault, VaultView

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore

NOTICE_HEADER: Final = "X-Simplemem-Notice"
_MAX_NOTICE: Final = 600  # characters
_PING_SECONDS: Final = 15
# The statistics that every token may read. The others say where the vault is.
_PUBLIC_STATS: Final = frozenset({"notes", "links", "tags", "words", "state", "read_only"})
_SHA256: Final = re.compile("[0-9a-f]{12,64}")


# --- routes


def routes(registry: VaultRegistry, vault: MountedVault) -> list[Route]:
    """Return the routes of the REST API of one vault.

    The route that deletes notes is left out if the settings forbid deleting.
    """
    handlers: dict[str, Handler] = {}
    for tool in TOOLS:
        if tool.deletes and vault.settings.no_delete:
            continue
        for address in tool.routes:
            handlers[address] = _tool_handler(tool)

    handlers |= {
        "GET /memories/{name}": _read_memory,
        "PUT /memories/{name}": _put_memory,
        "GET /tags": _list_tags,
        "GET /stats": _show_stats,
        "GET /changes": _stream_changes,
        "GET /tools": list_tools,
        "GET /openapi.json": _describe_api,
    }
    # A client that calls a tool by its name gets hints that name tools.
    below_api: dict[str, Handler] = {f"POST {API}/tools/{{tool}}": _call_any_tool}
    for address, handler in handlers.items():
        method, _, path = address.partition(" ")
        below_api[f"{method} {API}{path}"] = _with_routes_in_hints(handler)
    return routes_of(registry, vault, below_api)


def _with_routes_in_hints(handler: Handler) -> Handler:
    """Return a handler whose errors have hints that name routes, where they named tools."""

    async def handle(request: Request, view: VaultView, grant: Grant) -> Response:
        try:
            return await handler(request, view, grant)
        except SimplememError as error:
            error.hint = hint_for_routes(error.hint, view.vault.prefix)
            raise

    return handle


def hint_for_routes(hint: str, prefix: str = "") -> str:
    """Return the hint of an error with routes where it names tools.

    `undo_change(version="v3")` becomes `POST /api/v1/undo with version="v3"`. `prefix` is that of
    the vault. A hint that is a plain string names no tools, and is returned as it is.
    """
    if not isinstance(hint, Hint):
        return hint

    def call_by_route(tool: Tool, arguments: str) -> str:
        method, _, path = tool.routes[0].partition(" ")
        route = f"{method} {prefix}{API}{path}"
        if arguments:
            return f"{route} with {arguments}"
        return route

    def words(sentence: HintSentence) -> str:
        for tool in TOOLS:
            if sentence.key in tool.phrases:
                return tool.say(sentence.key, sentence.values, call_by_route)
        return sentence.text

    return hint.worded(words)


# --- calls of tools


async def call_tool(
    view: VaultView,
    tool: Tool,
    arguments: Mapping[str, Any],
    grant: Grant,
    prepare: Callable[[EnhancedStore], None] | None = None,
    *,
    is_by_person: bool = False,
) -> Reply[Any]:
    """Call a tool with these arguments in a thread, and return its reply.

    `prepare`, if there is one, is called with the store before the tool, in the same thread. If the
    tool writes, this process writes nothing between the two. The history says that a person made
    the change if `is_by_person`. Raises ReadOnly if the grant may not
    write, Invalid for a wrong argument, and the errors of the tool, such as NotFound and Conflict.
    """

    def work() -> Reply[Any]:
        if prepare is not None:
            prepare(view.executor.store())
        call = ToolCall(arguments, client="", grant=grant, is_by_person=is_by_person)
        return run_tool(tool, view.executor, call)

    return await view.executor.run(work, writes=tool.writes)


async def _call_for_data(
    request: Request,
    view: VaultView,
    grant: Grant,
    tool: Tool,
    arguments: dict[str, Any],
    failed_condition: tuple[type[SimplememError], ...] = (Conflict,),
    prepare: Callable[[EnhancedStore], None] | None = None,
) -> Data:
    """Return the data that a tool answers with, its hint in terms of routes.

    The hash that `If-Match` names becomes the argument `if_sha256`, in `arguments` too. If the
    request has a condition, errors of the types `failed_condition` become HTTPError with the status
    412. `prepare` is passed to `call_tool`. Returns {} if the tool has no data. Raises HTTPError if
    the token lacks a right or `If-Match` is malformed, and the errors of `call_tool`.
    """
    if tool.writes:
        require_writer(request.scope)

    sha256 = expected_hash(request)
    if sha256 and "if_sha256" in tool.arguments:
        arguments["if_sha256"] = sha256

    try:
        is_by_person = is_browser_session(request)
        reply = await call_tool(view, tool, arguments, grant, prepare, is_by_person=is_by_person)
        data: Data = reply.data() or {}
    except failed_condition as error:
        if not _has_condition(request):
            raise
        raise _precondition_failed(error) from None

    hint = data.get("hint")
    if hint:
        return {**data, "hint": hint_for_routes(hint, view.vault.prefix)}
    return data


def _has_condition(request: Request) -> bool:
    """Return whether a request has `If-Match` or `If-None-Match`."""
    return "if-match" in request.headers or "if-none-match" in request.headers


def _precondition_failed(error: SimplememError) -> HTTPError:
    """Return an error with the status 412 for a request whose condition is not met.

    It has the message, the code, the hint and the details of `error`.
    """
    failed = HTTPError(412, error.message, code=error.code, hint=error.hint)
    failed.details = error.details
    return failed


def _tool_handler(tool: Tool) -> Handler:
    """Return a handler that calls a default tool with the arguments of the request.

    It answers 201 for a tool that creates a note, else 200, and raises the errors of
    `read_arguments` and `_call_for_data`.
    """

    async def handle(request: Request, view: VaultView, grant: Grant) -> Response:
        arguments = await read_arguments(request)
        data = await _call_for_data(request, view, grant, tool, arguments)
        if tool.creates:
            return _created(view, data, 201)
        return Json(data, headers=_etag_header(data))

    return handle


async def _call_any_tool(request: Request, view: VaultView, grant: Grant) -> Response:
    """Call a tool of the vault's profile by its name, and return its data or else its text.

    Notices become a header. Raises NotFound if there is no such tool, and the errors of
    `read_arguments` and `call_tool`.
    """
    tool = find_tool(view, request.path_params["tool"])
    arguments = await read_arguments(request)
    is_by_person = is_browser_session(request)
    reply = await call_tool(view, tool, arguments, grant, is_by_person=is_by_person)
    data = reply.data() or {"text": reply.text}
    return Json(data, headers=notice_headers(*reply.notices))


def find_tool(view: VaultView, name: str) -> Tool:
    """Return a tool of the vault's profile. Raises NotFound if it has none of this name."""
    for tool in view.vault.tools:
        if tool.name == name:
            return tool
    raise NotFound(f"no tool called {name[:60]!r}", hint=f"GET {API}/tools lists the tools.")


# --- notes


async def _read_memory(request: Request, view: VaultView, grant: Grant) -> Response:
    """Return a note as JSON, or its file if the client accepts Markdown and gives no parameters.

    The answer has an ETag. The status is 304 without a body if the client has the current version.
    Raises NotFound or Ambiguous if the name is not that of one note, and Invalid for a parameter
    that the tool `read_memory` refuses.
    """
    wants_markdown = MARKDOWN in request.headers.get("accept", "")
    if wants_markdown and not request.query_params:
        name = request.path_params["name"]
        note = await view.executor.run(lambda: view.executor.store().read(name))
        headers = _etag_header({"sha256": note.sha256})
        text = note.text.encode("utf-8", "surrogatepass")
        response = Response(text, media_type=f"{MARKDOWN}; charset=utf-8")
    else:
        arguments = await read_arguments(request)
        data = await _call_for_data(request, view, grant, read_memory, arguments)
        headers = _etag_header(data)
        response = Json(data)

    if _has_current_version(request, headers["ETag"]):
        response = Response(status_code=304)
    response.headers.update(headers)
    response.headers["Vary"] = "Accept"
    return response


def _has_current_version(request: Request, etag: str) -> bool:
    """Return whether `If-None-Match` names this ETag, or any. False if it is missing."""
    condition = request.headers.get("if-none-match", "")
    etags = [item.strip().removeprefix("W/") for item in condition.split(",")]
    return etag in etags or "*" in etags


async def _put_memory(request: Request, view: VaultView, grant: Grant) -> Response:
    """Create or replace a note. With `If-Match`, update it: properties that are not named stay.

    With `If-None-Match: *`, only create it. The status is 201 if the note is new, else 200.
    HTTPError with the status 412 is raised if the condition is not met, Invalid for another
    `If-None-Match`.
    """
    arguments = await read_arguments(request)
    if "if-match" in request.headers:
        failed_condition = (Conflict, NotFound)
        data = await _call_for_data(
            request, view, grant, update_memory, arguments, failed_condition
        )
        return Json(data, headers=_etag_header(data))

    condition = request.headers.get("if-none-match")
    if condition not in (None, "*"):
        hint = "To update a note that has a given hash, send If-Match."
        raise Invalid("If-None-Match must be `*` on a PUT", hint=hint)

    existed = False

    def look_for_note(store: EnhancedStore) -> None:
        nonlocal existed
        existed = store.has(arguments["name"])

    arguments["overwrite"] = condition is None
    data = await _call_for_data(
        request, view, grant, create_memory, arguments, (AlreadyExists,), look_for_note
    )
    status = 201
    if existed:
        status = 200
    return _created(view, data, status)


def _created(view: VaultView, data: Data, status: int) -> Response:
    """Return the response for a note that was created or replaced, with its route in `Location`."""
    location = f"{view.vault.prefix}{API}/memories/{quote(data['name'])}"
    return Json(data, status, _etag_header(data) | {"Location": location})


def _etag_header(data: Data) -> dict[str, str]:
    """Return the header `ETag` with the hash of a note, its `sha256`; {} if the data have none."""
    sha256 = data.get("sha256")
    if not sha256:
        return {}
    return {"ETag": f'"{sha256}"'}


# --- requests


def expected_hash(request: Request) -> str:
    """Return the hash that `If-Match` names, or "" if it is missing or names any.

    The hash may be shortened to 12 digits or more. Raises HTTPError (412) if it is no hash.
    """
    condition = request.headers.get("if-match", "*").strip()
    if condition == "*":
        return ""

    sha256 = condition.removeprefix("W/").strip('"')
    if sha256 and not _SHA256.fullmatch(sha256):
        raise HTTPError(
            412,
            "If-Match is not the SHA-256 hash of a note",
            code="invalid",
            hint="Send the ETag that came with the note, which is its sha256 in quotation marks.",
        )
    return sha256


async def read_arguments(request: Request) -> dict[str, Any]:
    """Return the arguments of a request: of its query, its body and its path, which counts most.

    A parameter that occurs several times in the query becomes a list. The body is a JSON object, or
    Markdown, which becomes the argument `content`. Raises Invalid or HTTPError if it is neither.
    """
    arguments: dict[str, Any] = {}
    for name in request.query_params:
        values = request.query_params.getlist(name)
        arguments[name] = values
        if len(values) == 1:
            arguments[name] = values[0]

    if request.method not in ("GET", "HEAD"):
        arguments |= await _read_body(request)

    for name, value in request.path_params.items():
        if name != "tool":
            arguments[name] = value
    return arguments


async def _read_body(request: Request) -> dict[str, Any]:
    """Return the arguments in the body of a request: a JSON object, or Markdown as `content`.

    {} for an empty body. Raises Invalid or HTTPError if it is neither.
    """
    body = await request.body()
    content_type = request.headers.get("content-type", "")
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type == MARKDOWN:
        return {"content": _decode(body)}
    if not body.strip():
        return {}
    return _parse_object(body, media_type)


def _parse_object(body: bytes, media_type: str) -> dict[str, Any]:
    """Return the JSON object in a body.

    Raises HTTPError for another media type, and Invalid if the body is not a JSON object.
    """
    if media_type not in ("application/json", ""):
        hint = "Send it with `Content-Type: application/json`."
        raise HTTPError(415, "the body must be JSON", hint=hint)

    try:
        value = json.loads(_decode(body))
    except (ValueError, RecursionError):
        raise Invalid("the body is not JSON") from None

    if not isinstance(value, dict):
        hint = 'Send an object, such as {"content": "..."}.'
        raise Invalid("the body is not a JSON object", hint=hint)
    return value


def _decode(body: bytes) -> str:
    """Return the text of a body, without a byte order mark. Raises Invalid if it is not UTF-8."""
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Invalid("the body is not UTF-8") from None


# --- the vault


async def _list_tags(_request: Request, view: VaultView, _grant: Grant) -> Response:
    """Return all tags with the number of their notes."""
    return Json({"tags": await view.executor.run(lambda: view.executor.store().tags())})


async def _show_stats(_request: Request, view: VaultView, grant: Grant) -> Response:
    """Return the statistics of the vault as the grant sees it.

    Only an administrator without limits sees all of them.
    """
    stats = await view.executor.run(lambda: view.executor.store().stats())
    is_administrator = grant.may("admin") and not grant.is_limited
    if is_administrator:
        return Json(stats)
    return Json({key: value for key, value in stats.items() if key in _PUBLIC_STATS})


async def _stream_changes(request: Request, view: VaultView, _grant: Grant) -> Response:
    """Stream an event per change, and first those since the event that `Last-Event-ID` names.

    The stream ends when the view or the token does. Raises Unavailable if the store cannot be
    opened.
    """
    if request.method == "HEAD":
        return Response(media_type="text/event-stream")

    view.feed.use_running_loop()
    await view.executor.run(view.feed.subscribe)
    events = view.feed.events(request.headers.get("last-event-id", ""))
    return EventSourceResponse(events, ping=_PING_SECONDS, headers={"Cache-Control": "no-store"})


async def list_tools(_request: Request, view: VaultView, _grant: Grant) -> Response:
    """Return the tools of the vault's profile."""
    return Json({"tools": [tool.listing() for tool in view.vault.tools]})


async def _describe_api(_request: Request, view: VaultView, _grant: Grant) -> Response:
    """Return the OpenAPI document of the vault."""
    from simplemem.web.openapi import document

    return Json(document(view.vault.prefix, view.vault.profile))


def notice_headers(*notices: str) -> dict[str, str]:
    """Return the header with notices for which a response has no field; {} if there are none.

    Each notice is named once. The text is one line of ASCII, cut to 600 characters.
    """
    text = line(" ".join(dict.fromkeys(notices)), _MAX_NOTICE)
    if not text:
        return {}
    return {NOTICE_HEADER: text.encode("ascii", "replace").decode()}
