"""The addresses of the servers whose place is taken: Remembrances' seven, Supermemento's webhook, and calls of tools
without MCP. Their paths, bodies and codes to the letter (remember.md §8)."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from simplemem.errors import Invalid, NotFound
from simplemem.faces import remembrances, supermemento
from simplemem.faces.face import Tool
from simplemem.network.problems import Refused
from simplemem.network.rest import API, arguments_of, call, call_named, hash_in
from simplemem.network.site import Served, Site, View
from simplemem.network.tokens import Grant
from simplemem.network.ways import Handler, granted, handled, route

_MOST_WEBHOOK: Final = 5 * 1024 * 1024
_MOST_KEYS: Final = 10_000  # of repeated posts, whose answers are kept as long as the process
_TOOLS: Final = {each.name: each for each in (*remembrances.TOOLS, *remembrances.KNOWLEDGE_BASE, *supermemento.TOOLS)}


def routes(site: Site, served: Served) -> list[Route]:
    """The routes of one vault."""

    def at(method: str, path: str, handler: Handler) -> Route:
        return route(served.prefix + path, handled(site, served, handler), [method])

    return [
        at("POST", f"{API}/memory", _add),
        at("POST", f"{API}/memory/search", _search),
        at("PUT", f"{API}/memory/{{id}}", _update),
        at("DELETE", f"{API}/memory/{{id}}", _delete),
        at("POST", f"{API}/kb/query", _query),
        at("PUT", f"{API}/kb/document", _document),
        at("POST", "/ingest/webhook", _Webhook().take),
        at("GET", "/mcp/tools", _tools),
        at("POST", "/mcp/tools/call", _call),
    ]


async def _done(request: Request, view: View, grant: Grant, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    found: Tool = _TOOLS[tool]
    if found.writes:
        granted(request.scope, "write")
    if found.deletes and view.served.settings.no_delete:
        raise Refused(403, "nothing may be deleted here", code="read_only")
    return await call(view, found, arguments, grant)


async def _add(request: Request, view: View, grant: Grant) -> Response:
    said = await arguments_of(request)
    if isinstance(said.get("content"), str) and not said["content"].strip():
        raise Refused(422, "there is no content", code="invalid")
    done = await _done(request, view, grant, "add_memory", said)
    return JSONResponse({"status": "memory received for processing", **done}, 202)


async def _search(request: Request, view: View, grant: Grant) -> Response:
    said = await arguments_of(request)
    found, text = await _told(request, view, grant, "search_memory", said)
    return JSONResponse({"results": text, **found})


async def _told(
    request: Request, view: View, grant: Grant, tool: str, said: Mapping[str, Any]
) -> tuple[dict[str, Any], str]:
    """The data of a tool, and its text."""
    from simplemem.server.calls import carry_out

    granted(request.scope, "read")
    reply = await view.door.run(lambda: carry_out(_TOOLS[tool], view.door, said, "", grant))
    return reply.data() or {}, reply.text


async def _update(request: Request, view: View, grant: Grant) -> Response:
    said = await _named(request, view, grant)
    if expected := hash_in(request.headers.get("if-match")):
        held = await view.door.run(lambda: _atom(view, said["memory_id"], said["user_id"]).sha256)
        if not held.startswith(expected):
            raise Refused(412, "this memory has changed since it was read", code="conflict", hint="Read it again.")
    done = await _done(request, view, grant, "update_memory", said)
    return JSONResponse({"status": "memory updated"}, headers={"ETag": f'"{done["sha256"]}"'})


async def _delete(request: Request, view: View, grant: Grant) -> Response:
    await _done(request, view, grant, "delete_memory", await _named(request, view, grant))
    return Response(status_code=204)


async def _named(request: Request, view: View, grant: Grant) -> dict[str, Any]:
    """The arguments with whose memory it is: what is said, what the token is bound to, else the memory's own."""
    said = await arguments_of(request)
    said["memory_id"] = ident = said.pop("id")
    if not (said.get("user_id") or grant.user):
        said["user_id"] = await view.door.run(lambda: _atom(view, ident, "").scope)
    elif grant.user:
        said["user_id"] = said.get("user_id") or grant.user
    return said


def _atom(view: View, ident: str, scope: str) -> Any:
    from simplemem.kinds.atoms.keeping import memories_of

    memories = memories_of(view.door.store())
    if scope:
        return memories.find(ident, scope)
    found = [each for each in memories.atoms(None, expired=True) if each.id == ident]
    if len(found) != 1:
        raise NotFound(f"there is no memory {ident[:80]!r}")
    return found[0]


async def _query(request: Request, view: View, grant: Grant) -> Response:
    _must_have_base(view)
    return JSONResponse(await _done(request, view, grant, "query_knowledge_base", await arguments_of(request)))


async def _document(request: Request, view: View, grant: Grant) -> Response:
    _must_have_base(view)
    done = await _done(request, view, grant, "update_knowledge_base", await arguments_of(request))
    return JSONResponse({"status": "document update accepted", **done}, 202)


def _must_have_base(view: View) -> None:
    if not view.served.settings.documents.knowledge_base or view.only:
        raise NotFound("there is no knowledge base here", hint="--knowledge-base names its folder.")


async def _tools(_request: Request, view: View, _grant: Grant) -> Response:
    return JSONResponse({"tools": [each.listing() for each in view.served.tools]})


async def _call(request: Request, view: View, grant: Grant) -> Response:
    said = await arguments_of(request)
    if not isinstance(name := said.get("name"), str) or not isinstance(said.get("arguments", {}), dict):
        raise Invalid("a call has a name and arguments", hint='{"name": "...", "arguments": {...}}')
    return JSONResponse(await call_named(name, said.get("arguments", {}), view, grant))


class _Webhook:
    """What other programs hand over to be kept. The same key again gets the same answer."""

    def __init__(self) -> None:
        self._answers: OrderedDict[tuple[str, str], tuple[str, dict[str, Any]]] = OrderedDict()

    async def take(self, request: Request, view: View, grant: Grant) -> Response:
        body = await request.body()
        if len(body) > _MOST_WEBHOOK:
            raise Refused(413, "a document of a webhook has at most 5 MB")
        said = await arguments_of(request)
        if not isinstance(content := said.get("content"), str) or not content.strip():
            raise Refused(422, "there is no content", code="invalid", hint='{"content": "...", "metadata": {...}}')
        key, print_ = request.headers.get("idempotency-key", ""), hashlib.sha256(body).hexdigest()
        known = self._answers.get((grant.name, key)) if key else None
        if known is not None and known[0] != print_:
            raise Refused(422, "this key came with another body before", code="conflict")
        if known is None:
            metadata = said.get("metadata") if isinstance(said.get("metadata"), dict) else {}
            scope = said.get("container_tag") or grant.user or "default"
            title = said.get("title") or (metadata or {}).get("title") or ""
            arguments = {"content": content, "container_tag": scope, **({"title": title} if title else {})}
            done = await _done(request, view, grant, "ingest_text", arguments)
            known = print_, {"id": done["id"], "status": "queued"}
            if key:
                self._answers[grant.name, key] = known
                if len(self._answers) > _MOST_KEYS:
                    self._answers.popitem(last=False)
        return JSONResponse(known[1], 202)
