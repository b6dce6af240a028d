"""The profile of Supermemento: five tools of the graph as Memento has them, and six for statements and
documents. The text of an answer is the JSON of its data. Which entities were found is counted beside the notes."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NotRequired, TypedDict

from pydantic import Field

from simplemem.features.answers import (
    IngestResult,
    MemoryRow,
    RecallResult,
    RecallStep,
    ScopeProfile,
)
from simplemem.note.dates import now
from simplemem.profiles.memento import tools as memento
from simplemem.profiles.server_memory import tools as verbs
from simplemem.tools.arguments import Several, Share, about, also
from simplemem.tools.tool import Caller, Data, Reply, as_json, tool

if TYPE_CHECKING:
    from simplemem.features.documents.service import DocumentService
    from simplemem.features.facts.service import FactService
    from simplemem.features.graph.graph import KnowledgeGraph
    from simplemem.store import EnhancedStore, ExtensionAPI

_TAG: Final = also("container_tag", "user_id", "scope")
Tag = Annotated[str, about("the user it belongs to"), _TAG]
AnyTag = Annotated[str | None, about("only this user; default all"), _TAG]
Mode = Annotated[
    Literal["hybrid", "memory", "rag"], about("hybrid, memory (facts) or rag (passages)")
]
Kind = Literal["fact", "preference", "episode", "derived"]
Limit = Annotated[int, Field(ge=1, le=1000)]
Query = Annotated[str, about("a question in plain words")]
Text = Annotated[str, about("text or Markdown")]
Url = Annotated[str, about("address of a page, text, PDF or DOCX file")]
Title = Annotated[str, about("title of the document")]
Anew = Annotated[bool, about("build it again")]
Past = Annotated[bool, about("also what no longer holds")]
Again = Annotated[bool, about("rerank the best")]
Rewrite = Annotated[bool, about("let the model rephrase the query first")]
Cursor = Annotated[
    str | None, about("next_cursor of the previous page"), Field(pattern=r"^\d{1,9}$")
]
Budget = Annotated[int | None, Field(ge=1, le=100_000), about("at most this many tokens of text")]
Page = TypedDict("Page", {"memories": list[MemoryRow], "total": int, "next_cursor": "str | None"})
Found = TypedDict("Found", {
    "query": str, "search_mode": str, "results": list[RecallResult], "steps": list[RecallStep], "tokens": int, "left_out": int,
    "degraded": NotRequired[str],
})  # fmt: skip
Alike = TypedDict("Alike", {
    "entities": list[Data], "relations": list[Data], "total": int, "timeTaken": int, "scores": list[Data],
    "diagnostics": NotRequired[Data], "memories": NotRequired[list[MemoryRow]], "chunks": NotRequired[list[RecallResult]],
    "steps": NotRequired[list[RecallStep]],
})  # fmt: skip


def _counted(extension: ExtensionAPI, found: Reply[Any]) -> Data:
    """The data of an answer, when which entities it names was noted."""
    from simplemem.features.event_log import EventLog

    data: Data = json.loads(found.text)
    if names := [each["name"] for each in data["entities"]]:
        log = EventLog[None](extension, "state/found.jsonl", lambda: None, lambda *_: None)
        log.add({"at": now().isoformat(timespec="seconds"), "entities": names})
    return data


_RULES: Final = replace(memento.MEMENTO_RULES, has_owners=True)
_VERBS: Final = (
    verbs.create_entities,
    verbs.add_observations,
    verbs.create_relations,
    verbs.search_nodes,
    verbs.read_graph,
)
_GRAPH: Final = {each.name: each for each in verbs.graph_tools(_RULES, *_VERBS)}
"""The tools of the graph: Memento's, which also take the container tag whose entities are meant."""


@wraps(_GRAPH["search_nodes"].run)
def _search_nodes(graph: KnowledgeGraph, **more: Any) -> Reply[Any]:
    found = _GRAPH["search_nodes"].run(graph=graph, **more)
    _counted(graph.extension, found)
    return found


@tool("Semantic Search", manner=memento.semantic_search.manner)
def semantic_search(
    store: EnhancedStore,
    graph: KnowledgeGraph,
    query: Query,
    container_tag: AnyTag = None,
    search_mode: Mode | None = None,
    rerank: Again = False,
    rewrite_query: Rewrite = False,
    limit: Annotated[float, Field(ge=1, le=1000), about("maximum number of results")] = 10,
    min_similarity: Annotated[Share, about("minimum similarity to the query")] = 0.6,
    memory_types: Annotated[Several[Kind], about("only facts of these types")] = [],  # noqa: B006
    include_expired: Past = False,
    entity_types: Annotated[Several[str] | None, about("only entities of these types")] = None,
    hybrid_search: Annotated[bool, about("match words as well as meaning")] = True,
    semantic_weight: Annotated[Share, about("weight of meaning against words")] = 0.6,
) -> Reply[Alike]:
    """Find entities by meaning, or by meaning and words. With a container_tag or search_mode, also find facts and
    passages of documents."""
    from simplemem.features.documents.memory_rows import memory_rows
    from simplemem.features.documents.recall import RecallRequest, recall
    from simplemem.note.scopes import check_scope

    owner = None if container_tag is None else check_scope(container_tag)
    weight = semantic_weight if hybrid_search else 1.0
    about_entities = (query, int(limit), min_similarity, entity_types, weight, owner)
    reply = memento.found_by_meaning(store, graph, *about_entities)
    data: Any = _counted(store.extension, reply)
    more: Any = {
        "rerank": rerank,
        "rewrite": rewrite_query,
        "memory_types": memory_types,
        "include_expired": include_expired,
    }
    if container_tag is None and search_mode is None and not any(more.values()):
        return Reply(reply.text, data)
    asked = RecallRequest(
        query,
        container_tag,
        search_mode or "hybrid",
        int(limit),
        min_similarity=min_similarity,
        **more,
    )
    found = recall(store, asked)
    rows = memory_rows(store, [hit.fact for hit in found.hits if hit.fact])
    chunks = [hit.result for hit in found.hits if hit.result["kind"] == "chunk"]
    return as_json(data | {"memories": rows, "chunks": chunks, "steps": found.steps})


@tool("Ingest a text", writes=True)
def ingest_text(
    documents: DocumentService, caller: Caller, content: Text, container_tag: Tag, title: Title = ""
) -> Reply[IngestResult]:
    """Store a text as a document, and the facts in it as memories."""
    return as_json(documents.ingest_text(content, container_tag, title, **caller))


@tool("Ingest a page", writes=True)
def ingest_url(
    documents: DocumentService, caller: Caller, url: Url, container_tag: Tag, title: Title = ""
) -> Reply[IngestResult]:
    """Fetch a page or file and store it as a document. Facts from it never replace what the user said."""
    return as_json(documents.ingest_url(url, container_tag, title, **caller))


@tool("Read a profile", writes=True)
def get_user_profile(
    memories: FactService, caller: Caller, container_tag: Tag, regenerate: Anew = False
) -> Reply[ScopeProfile]:
    """Read what is known about a user, in their own words: static for what lasts, dynamic for what is recent."""
    from simplemem.features.facts.profile import profile_of

    return as_json(profile_of(memories, container_tag, regenerate, **caller))


@tool("List memories")
def list_memories(
    store: EnhancedStore,
    memories: FactService,
    container_tag: Tag,
    memory_type: Kind | None = None,
    limit: Limit = 50,
    include_expired: Past = False,
    cursor: Cursor = None,
) -> Reply[Page]:
    """List the memories of a user, newest first, each with its current confidence."""
    from simplemem.features.documents.memory_rows import memory_rows
    from simplemem.note.scopes import check_scope

    every = memories.facts(check_scope(container_tag), expired=include_expired)
    some = [each for each in every if memory_type in (None, each.memory_type)]
    some.sort(
        key=lambda each: (each.valid_from is not None and each.valid_from.timestamp(), each.path),
        reverse=True,
    )
    start, stop = int(cursor or 0), int(cursor or 0) + limit
    rows, following = memory_rows(store, some[start:stop]), str(stop) if stop < len(some) else None
    return as_json({"memories": rows, "total": len(some), "next_cursor": following})


@tool("Search everything")
def superrag_search(
    store: EnhancedStore,
    query: Query,
    container_tag: AnyTag = None,
    search_mode: Mode = "hybrid",
    rerank: Again = True,
    limit: Limit = 10,
    budget_tokens: Budget = None,
) -> Reply[Found]:
    """Find facts, passages and entities that answer a question, best first, with the search steps taken."""
    from simplemem.features.documents.recall import RecallRequest, recall

    found = recall(
        store,
        RecallRequest(
            query, container_tag, search_mode, limit, rerank, rewrite=True, max_tokens=budget_tokens
        ),
    )
    data: Data = {
        "query": query,
        "search_mode": search_mode,
        "results": [hit.result for hit in found.hits],
    }
    data |= {"steps": found.steps, "tokens": found.tokens, "left_out": found.left_out}
    return as_json(data | ({"degraded": found.degraded} if found.degraded else {}))


TOOLS: Final = (
    *(_GRAPH[name] for name in ("create_entities", "add_observations", "create_relations")),
    *(replace(_GRAPH["search_nodes"], run=_search_nodes), semantic_search, _GRAPH["read_graph"]),
    *(ingest_url, ingest_text, get_user_profile, list_memories, superrag_search),
)
