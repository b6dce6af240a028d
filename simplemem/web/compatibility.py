"""Routes of the servers that profiles replace, and calls of tools without MCP.

A profile declares its routes (`simplemem.profiles.route`). This module answers requests to them.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import OrderedDict
from typing import Any, Final, NamedTuple
from weakref import WeakValueDictionary

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from simplemem.errors import Conflict, Invalid, NotFound
from simplemem.profiles.registry import compatibility_routes
from simplemem.profiles.route import CompatibilityRoute, FoundNote
from simplemem.tools.render import line
from simplemem.tools.tool import Data, Reply
from simplemem.web.problem_documents import HTTPError, Json
from simplemem.web.rest import (
    call_tool,
    expected_hash,
    find_tool,
    list_tools,
    notice_headers,
    read_arguments,
)
from simplemem.web.routing import Handler, is_browser_session, require_grant, routes_of
from simplemem.web.tokens import Grant
from simplemem.web.vault_registry import VaultRegistry
from simplemem.web.vault_view import MountedVault, VaultView

_MAX_BODY_BYTES: Final = 5 * 1024 * 1024
_MAX_ANSWERS: Final = 10_000
_ANSWER_SECONDS: Final = 24 * 3600  # for which an answer is kept
_MAX_NOTICE: Final = 600  # characters


def routes(registry: VaultRegistry, vault: MountedVault) -> list[Route]:
    """Return the routes of one vault that its profile, or a built-in profile, declares.

    Also returns the two routes that list and call the tools of the profile. A route that deletes is
    left out if the settings forbid deleting.
    """
    handlers: dict[str, Handler] = {}
    for address, route in compatibility_routes(vault.profile).items():
        if route.tool.deletes and vault.settings.no_delete:
            continue
        handler = _route_handler(route)
        if route.is_idempotent:
            handler = _IdempotentHandler(handler, route.status).handle
        handlers[address] = handler

    handlers["GET /mcp/tools"] = list_tools
    handlers["POST /mcp/tools/call"] = _call_as_over_mcp
    return routes_of(registry, vault, handlers)


def _route_handler(route: CompatibilityRoute) -> Handler:
    """Return a handler that calls the tool of a route and answers in the form of the route.

    It raises HTTPError if the token lacks a right, the content is empty or `If-Match` is malformed,
    NotFound if a note or the knowledge base is missing, Conflict if the note is another version,
    and the errors of the tool.
    """

    async def handle(request: Request, view: VaultView, grant: Grant) -> Response:
        if route.tool.writes:
            require_grant(request.scope, "write")
        if route.needs_knowledge_base:
            _check_knowledge_base(view)

        arguments = await read_arguments(request)
        expected_hash(request)  # refuses a malformed If-Match, also where no note is named
        if request.method == "POST":
            _check_content(route, arguments)

        if route.find_note is not None:
            note = await _find_note(route, request, view, grant, arguments)
            _check_version(request, note)
            arguments.pop("id")
            arguments[route.id_argument] = request.path_params["id"]
            arguments[route.user_argument] = note.scope

        is_by_person = is_browser_session(request)
        reply = await call_tool(view, route.tool, arguments, grant, is_by_person=is_by_person)
        return _response(route, reply)

    return handle


def _check_knowledge_base(view: VaultView) -> None:
    """Raise NotFound if the vault has no knowledge base, or the view shows only a part of it."""
    if not view.vault.settings.documents.knowledge_base or view.only:
        hint = "Start it with --knowledge-base FOLDER."
        raise NotFound("this server has no knowledge base", hint=hint)


def _check_content(route: CompatibilityRoute, arguments: Data) -> None:
    """Raise HTTPError (422) if the content is empty, or missing where the route needs it."""
    if "content" not in arguments and not route.needs_content:
        return

    content = str(arguments.get("content", ""))
    if not content.strip():
        hint = "Send a text of at least one word."
        raise HTTPError(422, "the content is empty", code="invalid", hint=hint)


async def _find_note(
    route: CompatibilityRoute, request: Request, view: VaultView, grant: Grant, arguments: Data
) -> FoundNote:
    """Return the note that the path of a request names.

    It belongs to the user that the arguments name, else to that of the token, else to any. Raises
    NotFound if there is none, Invalid if the argument is not a text.
    """
    find_note = route.find_note
    assert find_note is not None
    note_id = request.path_params["id"]
    user = arguments.get(route.user_argument) or grant.user
    if not isinstance(user, str):
        raise Invalid(f"{route.user_argument!r} must be a string")

    return await view.executor.run(lambda: find_note(view.executor.store(), note_id, user))


def _check_version(request: Request, note: FoundNote) -> None:
    """Raise Conflict if a note is not the version that `If-Match` names, if it names one."""
    if note.sha256.startswith(expected_hash(request)):
        return
    raise Conflict(
        "this memory has changed since it was read",
        current_sha256=note.sha256,
        hint=(
            "Check the current text. If the request still applies, repeat it with"
            " current_sha256 as If-Match."
        ),
    )


def _response(route: CompatibilityRoute, reply: Reply[Any]) -> Response:
    """Return the reply of a tool in the form of a route.

    Notices for which the body has no field become a header. A route with the status 204 has no
    body.
    """
    body = route.answer(reply)
    notices = list(reply.notices)
    if "notice" not in body and reply.value and "notice" in reply.value:
        notices.append(reply.value["notice"])

    headers = notice_headers(*notices)
    if route.sends_etag and reply.value:
        headers = {"ETag": f'"{reply.value["sha256"]}"', **headers}
    if route.status == 204:
        return Response(status_code=204, headers=headers)
    return Json(body, route.status, headers)


class _StoredAnswer(NamedTuple):
    """An answer of a route, the hash of the request that it answers, and its time.

    The time is on the monotonic clock.
    """

    time: float
    request_sha256: str
    body: bytes


class _IdempotentHandler:
    """A handler that answers a repeated `Idempotency-Key` with the first answer, for a day.

    Guards the answers by key, at most 10,000, and a lock per key that is in use: of several
    requests that arrive with one key at once, the first is carried out and the others wait for its
    answer. Each bearer of a token has keys of its own. An error is not kept: the next request with
    the key is carried out.
    """

    def __init__(self, handler: Handler, status: int) -> None:
        self._handler = handler
        self._status = status
        self._answers: OrderedDict[str, _StoredAnswer] = OrderedDict()  # the oldest first
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def handle(self, request: Request, view: VaultView, grant: Grant) -> Response:
        """Answer a request, with the stored answer if it repeats a key.

        Without a key, the request is always carried out. Raises HTTPError for a body over 5 MB and
        for a key that came with another body, and the errors of the handler.
        """
        body = await request.body()
        if len(body) > _MAX_BODY_BYTES:
            raise HTTPError(413, "the document is larger than 5 MB")

        client_key = request.headers.get("idempotency-key")
        if not client_key:
            return await self._handler(request, view, grant)

        key = hashlib.sha256(f"{grant.identity}\0{client_key}".encode()).hexdigest()
        request_sha256 = hashlib.sha256(body).hexdigest()
        lock = self._locks.setdefault(key, asyncio.Lock())
        async with lock:
            stored = self._find_answer(key, request_sha256)
            if stored is not None:
                return Response(stored.body, self._status, media_type="application/json")

            response = await self._handler(request, view, grant)
            self._store(key, request_sha256, bytes(response.body))
            return response

    def _find_answer(self, key: str, request_sha256: str) -> _StoredAnswer | None:
        """Return the stored answer for a key, or None. Drops the answers that are a day old.

        Raises HTTPError if the key came with another body.
        """
        self._drop_expired()
        stored = self._answers.get(key)
        if stored is not None and stored.request_sha256 != request_sha256:
            message = "this Idempotency-Key was used with another body"
            hint = "Use a new key for each document."
            raise HTTPError(422, message, code="conflict", hint=hint)
        return stored

    def _store(self, key: str, request_sha256: str, body: bytes) -> None:
        """Store the answer for a key. Drops the oldest one if there are more than 10,000."""
        self._answers[key] = _StoredAnswer(time.monotonic(), request_sha256, body)
        if len(self._answers) > _MAX_ANSWERS:
            self._answers.popitem(last=False)

    def _drop_expired(self) -> None:
        """Drop the answers that are older than a day."""
        expiry = time.monotonic() - _ANSWER_SECONDS
        while self._answers:
            oldest = next(iter(self._answers.values()))
            if oldest.time >= expiry:
                return
            self._answers.popitem(last=False)


async def _call_as_over_mcp(request: Request, view: VaultView, grant: Grant) -> Response:
    """Call a tool of the vault's profile by its name, and answer as over MCP.

    Notices that the tool's text does not contain follow as texts of their own. Raises Invalid if
    the name is missing or the arguments are not an object, NotFound if the profile has no such
    tool, and the errors of the tool, such as Conflict.
    """
    call = await read_arguments(request)
    name = call.get("name")
    arguments = call.get("arguments") or {}
    if not isinstance(name, str) or not isinstance(arguments, dict):
        hint = 'Send {"name": "...", "arguments": {...}}.'
        raise Invalid("a call needs a name and arguments", hint=hint)

    tool = find_tool(view, name)
    is_by_person = is_browser_session(request)
    reply = await call_tool(view, tool, arguments, grant, is_by_person=is_by_person)
    notices = [notice for notice in reply.notices if notice not in reply.text]
    texts = [reply.text, *(line(notice, _MAX_NOTICE) for notice in notices)]

    answer: Data = {"content": [{"type": "text", "text": text} for text in texts]}
    data = reply.data()
    if data is not None:
        answer["structuredContent"] = data
    return Json(answer)
