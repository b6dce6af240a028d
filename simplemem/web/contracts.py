"""The addresses of the servers whose place is taken: Remembrances' seven, Supermemento's webhook, and calls of tools
without MCP. Their paths, bodies and codes to the letter."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from weakref import WeakValueDictionary

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from simplemem.errors import Conflict, Invalid, NotFound
from simplemem.features.answers import Ingested
from simplemem.profiles.remembrances import tools as remembrances
from simplemem.profiles.supermemento.tools import Tag, Text, Title
from simplemem.tools.arguments import Object
from simplemem.tools.render import line
from simplemem.tools.tool import Caller, Data, Reply, Tool, tool
from simplemem.web.problems import Json, Refused
from simplemem.web.rest import (
    API,
    arguments_of,
    call,
    hash_expected,
    listed,
    notice_headers,
    tool_called,
)
from simplemem.web.site import Served, Site, View
from simplemem.web.tokens import Grant
from simplemem.web.ways import Handler, granted, routes_of

if TYPE_CHECKING:
    from simplemem.features.documents.ingest import Document, Documents
    from simplemem.features.facts.fact import Fact
    from simplemem.store import EnhancedStore

_MOST_WEBHOOK: Final = 5 * 1024 * 1024
_KEPT_SECONDS: Final = 24 * 3600
_MOST_KEYS: Final = 10_000
_WEBHOOK: Final = "POST /ingest/webhook"


@tool("Store a document", writes=True)
def take_document(
    documents: Documents,
    caller: Caller,
    content: Text,
    container_tag: Tag = "default",
    title: Title = "",
    metadata: Object = {},  # noqa: B006
) -> Reply[Ingested]:
    """Store a document that another program sends, and the facts in it as memories."""
    title = title or str(metadata.get("title", ""))
    return Reply("", documents.ingest_text(content, container_tag, title, metadata, **caller))


class Contract(NamedTuple):
    """One of those addresses: the tool whose arguments it takes, and what its answer has."""

    tool: Tool
    status: int
    words: str = ""  # of its `status`
    text: str = ""  # under which name it tells the tool's text
    data: tuple[str, ...] | None = None  # of the tool's; None: all

    def answer(self, reply: Reply[Any]) -> Data:
        said = {"status": self.words} if self.words else {}
        said |= {self.text: reply.text} if self.text else {}
        return said | {
            key: each
            for key, each in (reply.data() or {}).items()
            if self.data is None or key in self.data
        }


CONTRACTS: Final[Mapping[str, Contract]] = {
    f"POST {API}/memory": Contract(remembrances.add_memory, 202, "memory received for processing"),
    f"POST {API}/memory/search": Contract(remembrances.search_memory, 200, text="results"),
    f"PUT {API}/memory/{{id}}": Contract(
        remembrances.update_memory, 200, "memory updated", data=()
    ),
    f"DELETE {API}/memory/{{id}}": Contract(remembrances.delete_memory, 204),
    f"POST {API}/kb/query": Contract(remembrances.query_knowledge_base, 200),
    f"PUT {API}/kb/document": Contract(
        remembrances.update_knowledge_base, 202, "document update accepted"
    ),
    _WEBHOOK: Contract(take_document, 202, "queued", data=("id",)),
}


def routes(site: Site, served: Served) -> list[Route]:
    """The routes of one vault."""
    kept = {
        said: each
        for said, each in CONTRACTS.items()
        if not (each.tool.deletes and served.settings.no_delete)
    }
    called: dict[str, Handler] = {said: _called(each) for said, each in kept.items()}
    called[_WEBHOOK] = _Webhook(called[_WEBHOOK]).take
    called |= {"GET /mcp/tools": listed, "POST /mcp/tools/call": _call}
    return routes_of(site, served, called)


def _called(contract: Contract) -> Handler:
    tool = contract.tool

    async def handle(request: Request, view: View, grant: Grant) -> Response:
        if tool.writes:
            granted(request.scope, "write")
        if tool in remembrances.KNOWLEDGE_BASE and (
            not view.served.settings.documents.knowledge_base or view.only
        ):
            raise NotFound(
                "this server has no knowledge base", hint="Start it with --knowledge-base FOLDER."
            )
        said, expected = await arguments_of(request), hash_expected(request)
        missing = "" if tool is take_document else "-"
        if request.method == "POST" and not str(said.get("content", missing)).strip():
            raise Refused(
                422,
                "the content is empty",
                code="invalid",
                hint="Send a text of at least one word.",
            )
        if ident := request.path_params.get("id"):
            if not isinstance(scope := said.get("user_id") or grant.user, str):
                raise Invalid("'user_id' must be a string")
            memory = await view.door.run(lambda: _memory(view.door.store(), ident, scope))
            if not memory.sha256.startswith(expected):
                hint = "Check the current text. If the request still applies, repeat it with current_sha256 as If-Match."
                raise Conflict(
                    "this memory has changed since it was read",
                    current_sha256=memory.sha256,
                    hint=hint,
                )
            del said["id"]
            said |= {"memory_id": ident, "user_id": memory.scope}
        reply = await call(view, tool, said, grant)
        etag = (
            {"ETag": f'"{reply.value["sha256"]}"'}
            if tool is remembrances.update_memory and reply.value
            else {}
        )
        answer = contract.answer(reply)
        notices = list(reply.notices)
        if "notice" not in answer and reply.value and "notice" in reply.value:
            notices.append(reply.value["notice"])
        headers = etag | notice_headers(*notices)
        if contract.status == 204:
            return Response(status_code=204, headers=headers)
        return Json(answer, contract.status, headers)

    return handle


def _memory(store: EnhancedStore, ident: str, scope: str) -> Fact | Document:
    """Return the statement or document of an id, in the scope that is given or that the token is bound to, else in any."""
    from simplemem.features.documents.ingest import documents_of
    from simplemem.features.facts.service import fact_service

    documents = documents_of(store)
    if scope:
        return documents.find_memory(ident, scope)

    atoms = [atom for atom in fact_service(store).facts(None, expired=True) if atom.id == ident]
    named = [document for document in documents.documents(None) if document.is_named_by(ident)]
    notes: list[Fact | Document] = [*atoms, *named]
    if not notes:
        raise NotFound(f"there is no memory {ident[:80]!r}")
    # An id is frontmatter, which others may have copied: the note that the log knows longest is meant.
    oldest = min(notes, key=lambda note: store.extension.first_version(note.path))
    return documents.find_memory(ident, oldest.scope)


class _Webhook:
    """Takes documents from other programs. For a day, a repeated idempotency key gets the first answer again.

    Guards the answers by key, and which keys are being answered now: of several requests that arrive with
    one key at once, the first is carried out and the others wait for its answer.
    """

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._answers: OrderedDict[str, tuple[float, str, bytes]] = OrderedDict()
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def take(self, request: Request, view: View, grant: Grant) -> Response:
        body = await request.body()
        if len(body) > _MOST_WEBHOOK:
            raise Refused(413, "the document is larger than 5 MB")
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
        """Return the answer that this key got before. Refused if it came with another body."""
        self._forget_old_answers()
        if key not in self._answers:
            return None
        _, known_digest, body = self._answers[key]
        if known_digest != digest:
            hint = "Use a new key for each document."
            raise Refused(
                422, "this Idempotency-Key was used with another body", code="conflict", hint=hint
            )
        return Response(body, 202, media_type="application/json")

    def _keep_answer(self, key: str, digest: str, body: bytes) -> None:
        self._answers[key] = (time.monotonic(), digest, body)
        if len(self._answers) > _MOST_KEYS:
            self._answers.popitem(last=False)

    def _forget_old_answers(self) -> None:
        oldest_kept = time.monotonic() - _KEPT_SECONDS
        while self._answers and next(iter(self._answers.values()))[0] < oldest_kept:
            self._answers.popitem(last=False)


async def _call(request: Request, view: View, grant: Grant) -> Response:
    """A call of a tool, answered as over MCP."""
    said = await arguments_of(request)
    name, arguments = said.get("name"), said.get("arguments") or {}
    if not isinstance(name, str) or not isinstance(arguments, dict):
        raise Invalid(
            "a call needs a name and arguments", hint='Send {"name": "...", "arguments": {...}}.'
        )
    reply = await call(view, tool_called(view, name), arguments, grant)
    texts = [
        reply.text,
        *(line(notice, 600) for notice in reply.notices if notice not in reply.text),
    ]
    shown: Data = {"content": [{"type": "text", "text": text} for text in texts]}
    return Json(shown | ({"structuredContent": data} if (data := reply.data()) is not None else {}))
