"""Routes of the servers that profiles replace, and calls of tools without MCP."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from weakref import WeakValueDictionary

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from simplemem.errors import Conflict, Invalid, NotFound
from simplemem.profiles.registry import compatibility_routes
from simplemem.profiles.route import CompatibilityRoute, FoundNote
from simplemem.tools.render import line
from simplemem.tools.tool import Data, Reply
from simplemem.web.problems import HTTPError, Json
from simplemem.web.rest import (
    call_tool,
    expected_hash,
    find_tool,
    list_tools,
    notice_headers,
    read_arguments,
)
from simplemem.web.routing import Handler, granted, routes_of
from simplemem.web.tokens import Grant
from simplemem.web.vault_registry import VaultRegistry
from simplemem.web.vault_view import MountedVault, VaultView

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore

FindNote: TypeAlias = "Callable[[EnhancedStore, str, str], FoundNote]"

_MAX_BODY: Final = 5 * 1024 * 1024
_KEPT_SECONDS: Final = 24 * 3600
_MAX_KEYS: Final = 10_000


def routes(registry: VaultRegistry, vault: MountedVault) -> list[Route]:
    """Return the routes of one vault: those of its profile and of the built-in profiles, and calls of tools."""
    handlers: dict[str, Handler] = {}
    for address, route in compatibility_routes(vault.profile).items():
        if route.tool.deletes and vault.settings.no_delete:
            continue
        handler = _handler_of(route)
        handlers[address] = _Idempotent(handler).answer if route.is_idempotent else handler

    handlers["GET /mcp/tools"] = list_tools
    handlers["POST /mcp/tools/call"] = _call
    return routes_of(registry, vault, handlers)


def _handler_of(route: CompatibilityRoute) -> Handler:
    """Return a function that answers requests to a route."""

    async def handle(request: Request, view: VaultView, grant: Grant) -> Response:
        if route.tool.writes:
            granted(request.scope, "write")
        if route.needs_knowledge_base:
            _check_knowledge_base(view)

        arguments = await read_arguments(request)
        expected_hash(request)  # refuses a malformed If-Match, also where no note is named
        if request.method == "POST":
            _check_content(route, arguments)
        if route.find_note is not None:
            arguments = await _with_note(route.find_note, request, view, grant, arguments)

        reply = await call_tool(view, route.tool, arguments, grant)
        return _response(route, reply)

    return handle


def _check_knowledge_base(view: VaultView) -> None:
    """Raise NotFound if the server has no knowledge base, or the token may not see all of the vault."""
    if not view.vault.settings.documents.knowledge_base or view.only:
        raise NotFound(
            "this server has no knowledge base", hint="Start it with --knowledge-base FOLDER."
        )


def _check_content(route: CompatibilityRoute, arguments: Data) -> None:
    """Refuse a request whose content is empty, or missing where the route needs it."""
    if "content" not in arguments and not route.needs_content:
        return
    if not str(arguments.get("content", "")).strip():
        raise HTTPError(
            422,
            "the content is empty",
            code="invalid",
            hint="Send a text of at least one word.",
        )


async def _with_note(
    find_note: FindNote, request: Request, view: VaultView, grant: Grant, arguments: Data
) -> Data:
    """Return the arguments of a tool for the note that the path names.

    Raises Invalid, NotFound, or Conflict if the note is not the one that `If-Match` expects.
    """
    ident = request.path_params["id"]
    user = arguments.get("user_id") or grant.user
    if not isinstance(user, str):
        raise Invalid("'user_id' must be a string")

    note = await view.executor.run(lambda: find_note(view.executor.store(), ident, user))
    if not note.sha256.startswith(expected_hash(request)):
        raise Conflict(
            "this memory has changed since it was read",
            current_sha256=note.sha256,
            hint=(
                "Check the current text. If the request still applies, repeat it with"
                " current_sha256 as If-Match."
            ),
        )

    others = {key: value for key, value in arguments.items() if key != "id"}
    return {**others, "memory_id": ident, "user_id": note.scope}


def _response(route: CompatibilityRoute, reply: Reply[Any]) -> Response:
    """Return what a tool replied in the form of a route. Notices that do not fit in are headers."""
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


class _Idempotent:
    """Answers a repeated idempotency key with the first answer again, for a day.

    Guards the answers by key, and which keys are being answered now: of several requests that arrive with
    one key at once, the first is carried out and the others wait for its answer.
    """

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._answers: OrderedDict[str, tuple[float, str, bytes]] = OrderedDict()
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def answer(self, request: Request, view: VaultView, grant: Grant) -> Response:
        body = await request.body()
        if len(body) > _MAX_BODY:
            raise HTTPError(413, "the document is larger than 5 MB")
        named = request.headers.get("idempotency-key")
        if not named:
            return await self._handler(request, view, grant)

        key = hashlib.sha256(f"{grant.identity}\0{named}".encode()).hexdigest()
        digest = hashlib.sha256(body).hexdigest()
        turn = self._turns.setdefault(key, asyncio.Lock())
        async with turn:
            known = self._known_answer(key, digest)
            if known is not None:
                return known
            answer = await self._handler(request, view, grant)
            self._keep_answer(key, digest, bytes(answer.body))
            return answer

    def _known_answer(self, key: str, digest: str) -> Response | None:
        """Return the answer that this key got before. HTTPError if it came with another body."""
        self._forget_old_answers()
        if key not in self._answers:
            return None
        _, known_digest, body = self._answers[key]
        if known_digest != digest:
            hint = "Use a new key for each document."
            raise HTTPError(
                422, "this Idempotency-Key was used with another body", code="conflict", hint=hint
            )
        return Response(body, 202, media_type="application/json")

    def _keep_answer(self, key: str, digest: str, body: bytes) -> None:
        self._answers[key] = (time.monotonic(), digest, body)
        if len(self._answers) > _MAX_KEYS:
            self._answers.popitem(last=False)

    def _forget_old_answers(self) -> None:
        oldest_kept = time.monotonic() - _KEPT_SECONDS
        while self._answers and next(iter(self._answers.values()))[0] < oldest_kept:
            self._answers.popitem(last=False)


async def _call(request: Request, view: VaultView, grant: Grant) -> Response:
    """A call of a tool, answered as over MCP."""
    said = await read_arguments(request)
    name, arguments = said.get("name"), said.get("arguments") or {}
    if not isinstance(name, str) or not isinstance(arguments, dict):
        raise Invalid(
            "a call needs a name and arguments", hint='Send {"name": "...", "arguments": {...}}.'
        )
    reply = await call_tool(view, find_tool(view, name), arguments, grant)
    texts = [
        reply.text,
        *(line(notice, 600) for notice in reply.notices if notice not in reply.text),
    ]
    shown: Data = {"content": [{"type": "text", "text": text} for text in texts]}
    return Json(shown | ({"structuredContent": data} if (data := reply.data()) is not None else {}))
