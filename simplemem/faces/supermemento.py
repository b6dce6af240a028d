"""The face of Supermemento (remember.md §8): five tools of the graph as Memento has them, and six for statements and
documents. The text of an answer is the JSON of its data. Which entities were found is counted beside the notes (SU-26)."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NotRequired, TypedDict

from pydantic import Field

from simplemem.faces import memento
from simplemem.faces.arguments import Several, Share, about, also
from simplemem.faces.face import Caller, Data, Reply, tool
from simplemem.faces.render import pretty
from simplemem.kinds.answers import Ingested, Profile, Result, Row, Step
from simplemem.note.clock import now

if TYPE_CHECKING:
    from simplemem.kinds.atoms.keeping import Memories
    from simplemem.kinds.graph.graph import KnowledgeGraph
    from simplemem.store import Bench, EnhancedStore

_TAG: Final = also("container_tag", "user_id", "scope")
Tag = Annotated[str, about("whose it is"), _TAG]
AnyTag = Annotated[str | None, about("only what is of this tag; all when left out"), _TAG]
Mode = Literal["hybrid", "memory", "rag"]
Kind = Literal["fact", "preference", "episode", "derived"]
Limit = Annotated[int, Field(ge=1, le=1000)]
Title = Annotated[str, about("what to call it")]
_MODES: Final = about("hybrid, memory (statements) or rag (passages)")
Page = TypedDict("Page", {"memories": list[Row], "total": int, "next_cursor": "str | None"})
Found = TypedDict("Found", {
    "query": str, "search_mode": str, "results": list[Result], "steps": list[Step], "tokens": int, "left_out": int,
})  # fmt: skip
Alike = TypedDict("Alike", {
    "entities": list[Data], "relations": list[Data], "total": int, "timeTaken": int, "scores": list[Data],
    "diagnostics": NotRequired[Data], "memories": NotRequired[list[Row]], "chunks": NotRequired[list[Result]],
    "steps": NotRequired[list[Step]],
})  # fmt: skip


def _as_json(data: Any) -> Reply[Any]:
    return Reply(pretty(data), data)


def _counted(bench: Bench, found: Reply[Any]) -> Data:
    """The data of an answer, when which entities it names was noted."""
    from simplemem.kinds.kind import StateLog

    data: Data = json.loads(found.text)
    if names := [each["name"] for each in data["entities"]]:
        log = StateLog[None](bench, "state/found.jsonl", lambda: None, lambda *_: None)
        log.add({"at": now().isoformat(timespec="seconds"), "entities": names})
    return data


_GRAPH: Final = {each.name: each for each in memento.TOOLS}


@wraps(_GRAPH["search_nodes"].run)
def _search_nodes(graph: KnowledgeGraph, **more: Any) -> Reply[Any]:
    found = _GRAPH["search_nodes"].run(graph=graph, **more)
    _counted(graph.bench, found)
    return found


@tool("Semantic Search", manner=memento.semantic_search.manner)
def semantic_search(
    store: EnhancedStore,
    graph: KnowledgeGraph,
    query: Annotated[str, about("What to look for, in words or as a question")],
    container_tag: AnyTag = None,
    search_mode: Annotated[Mode | None, _MODES] = None,
    rerank: Annotated[bool | None, about("Order the best again")] = None,
    rewrite_query: Annotated[bool | None, about("Ask the model for other words first")] = None,
    limit: Annotated[float, Field(ge=1, le=1000), about("The most to answer with, 10 unless said")] = 10,
    min_similarity: Annotated[Share, about("How like the question it must be, 0.6 unless said")] = 0.6,
    memory_types: Annotated[Several[Kind] | None, about("Only statements of these types")] = None,
    include_expired: Annotated[bool | None, about("What no longer holds too")] = None,
    entity_types: Annotated[Several[str] | None, about("Only entities of these types")] = None,
    hybrid_search: Annotated[bool, about("Whether words count beside meaning, true unless said")] = True,
    semantic_weight: Annotated[Share, about("What meaning counts beside words, 0.6 unless said")] = 0.6,
) -> Reply[Alike]:
    """Find entities by meaning, or by meaning and words together; with a container_tag or a search_mode also statements
    and passages of documents."""
    from simplemem.kinds.documents.recall import Asked, recall, rows_of

    own = (container_tag, search_mode, rerank, rewrite_query, memory_types, include_expired)
    asked = Asked(
        query, container_tag, search_mode or "hybrid", int(limit), bool(rerank), bool(rewrite_query),
        types=memory_types or (), expired=bool(include_expired), least=min_similarity,
    )  # fmt: skip
    found = None if all(each is None for each in own) else recall(store, asked)
    of_graph = (query, limit, min_similarity, entity_types, hybrid_search, semantic_weight)
    reply = memento.semantic_search.run(store, graph, *of_graph)
    data: Any = _counted(store.bench, reply)
    if found is None:
        return Reply(reply.text, data)
    rows = rows_of(store, [hit.atom for hit in found.hits if hit.atom])
    chunks = [hit.result for hit in found.hits if hit.result["kind"] == "chunk"]
    return _as_json(data | {"memories": rows, "chunks": chunks, "steps": found.steps})


@tool("Ingest a text", writes=True)
def ingest_text(
    store: EnhancedStore,
    caller: Caller,
    content: Annotated[str, about("text or Markdown")],
    container_tag: Tag,
    title: Title = "",
) -> Reply[Ingested]:
    """Keep a text as a document, and the statements in it as memories."""
    from simplemem.kinds.documents import ingest

    return _as_json(ingest.ingest_text(store, content, container_tag, title, **caller))


@tool("Ingest a page", writes=True)
def ingest_url(
    store: EnhancedStore,
    caller: Caller,
    url: Annotated[str, about("of a page, a text, a PDF or a DOCX file")],
    container_tag: Tag,
    title: Title = "",
) -> Reply[Ingested]:
    """Fetch an address, and keep what it gives as a document. What a page states replaces nothing that the user said."""
    from simplemem.kinds.documents import ingest

    return _as_json(ingest.ingest_url(store, url, container_tag, title, **caller))


@tool("Read a profile", writes=True)
def get_user_profile(
    memories: Memories, caller: Caller, container_tag: Tag, regenerate: Annotated[bool, about("make it anew")] = False
) -> Reply[Profile]:
    """What is known of somebody, as it was said: static, what lasts, and dynamic, what is of late."""
    from simplemem.kinds.atoms.profile import profile_of

    return _as_json(profile_of(memories, container_tag, regenerate, **caller))


@tool("List memories")
def list_memories(
    store: EnhancedStore,
    memories: Memories,
    container_tag: Tag,
    memory_type: Kind | None = None,
    limit: Limit = 50,
    include_expired: Annotated[bool, about("what no longer holds too")] = False,
    cursor: Annotated[str | None, about("next_cursor of the page before"), Field(pattern=r"^\d{1,9}$")] = None,
) -> Reply[Page]:
    """The memories of a tag, newest first, with how sure each is now."""
    from simplemem.kinds.atoms.atom import check_scope
    from simplemem.kinds.documents.recall import rows_of

    every = memories.atoms(check_scope(container_tag), expired=include_expired)
    some = [each for each in every if memory_type in (None, each.memory_type)]
    some.sort(key=lambda each: (each.valid_from is not None and each.valid_from.timestamp(), each.path), reverse=True)
    start = int(cursor or 0)
    following = str(start + limit) if start + limit < len(some) else None
    rows = rows_of(store, some[start : start + limit])
    return _as_json({"memories": rows, "total": len(some), "next_cursor": following})


@tool("Search everything")
def superrag_search(
    store: EnhancedStore,
    query: Annotated[str, about("a question, in plain words")],
    container_tag: AnyTag = None,
    search_mode: Annotated[Mode, _MODES] = "hybrid",
    rerank: Annotated[bool, about("order the best again")] = True,
    limit: Limit = 10,
    budget_tokens: Annotated[int | None, Field(ge=1, le=100_000), about("no more text than this")] = None,
) -> Reply[Found]:
    """Find statements, passages and entities that answer a question, best first, with the steps that were taken."""
    from simplemem.kinds.documents.recall import Asked, recall

    found = recall(store, Asked(query, container_tag, search_mode, limit, rerank, rewrite=True, budget=budget_tokens))
    data = {"query": query, "search_mode": search_mode, "results": [hit.result for hit in found.hits]}
    return _as_json(data | {"steps": found.steps, "tokens": found.tokens, "left_out": found.left_out})


TOOLS: Final = (
    *(_GRAPH[name] for name in ("create_entities", "add_observations", "create_relations")),
    *(replace(_GRAPH["search_nodes"], run=_search_nodes), semantic_search, _GRAPH["read_graph"]),
    *(ingest_url, ingest_text, get_user_profile, list_memories, superrag_search),
)
