"""The face of Supermemento (remember.md §8): five tools of the graph as Memento has them, and six for statements and
documents. The text of an answer is the JSON of its data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypedDict

from pydantic import Field

from simplemem.errors import Invalid
from simplemem.faces import memento
from simplemem.faces.arguments import Several, Share, about, also
from simplemem.faces.face import Caller, Data, Reply, tool
from simplemem.faces.render import pretty
from simplemem.kinds.atoms.atom import check_scope
from simplemem.kinds.atoms.keeping import Memories
from simplemem.kinds.atoms.profile import Profile, profile_of
from simplemem.kinds.documents import ingest
from simplemem.kinds.documents.ingest import Ingested
from simplemem.kinds.documents.recall import Result, Row, Step, like, recall, rows_of
from simplemem.kinds.graph.graph import graph_of
from simplemem.kinds.kind import StateLog
from simplemem.note.clock import now

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore

Tag = Annotated[str, about("whose it is"), also("container_tag", "user_id", "scope")]
AnyTag = Annotated[
    str | None, about("only what is of this tag; all when left out"), also("container_tag", "user_id", "scope")
]
Mode = Literal["hybrid", "memory", "rag"]
Kind = Literal["fact", "preference", "episode", "derived"]
Limit = Annotated[int, Field(ge=1, le=1000)]
Page = TypedDict("Page", {"memories": list[Row], "total": int, "next_cursor": "str | None"})
Found = TypedDict("Found", {
    "query": str, "search_mode": str, "results": list[Result], "steps": list[Step], "tokens": int, "left_out": int,
})  # fmt: skip


def _as_json(data: Any) -> Reply[Any]:
    return Reply(pretty(data), data)


@tool("Semantic Search", manner=memento.semantic_search.manner)
def semantic_search(
    store: EnhancedStore,
    query: Annotated[str, about("What to look for, in words or as a question")],
    container_tag: AnyTag = None,
    search_mode: Annotated[Mode | None, about("hybrid, memory (statements) or rag (passages)")] = None,
    rerank: bool | None = None,
    rewrite_query: Annotated[bool | None, about("Ask the model for other words first")] = None,
    limit: Annotated[float, Field(ge=1, le=1000), about("The most to answer with, 10 unless said")] = 10,
    min_similarity: Annotated[Share, about("How like the question it must be, 0.6 unless said")] = 0.6,
    memory_types: Annotated[Several[Kind] | None, about("Only statements of these types")] = None,
    include_expired: Annotated[bool | None, about("What no longer holds too")] = None,
    entity_types: Annotated[Several[str] | None, about("Only entities of these types")] = None,
    hybrid_search: Annotated[bool, about("Whether words count beside meaning, true unless said")] = True,
    semantic_weight: Annotated[Share, about("What meaning counts beside words, 0.6 unless said")] = 0.6,
) -> Reply[Any]:
    """Find entities by meaning, or by meaning and words together; with a container_tag or a search_mode also statements
    and passages of documents."""
    graph, of_graph = graph_of(store), (query, limit, min_similarity, entity_types, hybrid_search, semantic_weight)
    found = memento.semantic_search.run(store, graph, *of_graph)
    _count(store, found.text)
    own = (container_tag, search_mode, rerank, rewrite_query, memory_types, include_expired)
    if all(each is None for each in own):
        return found
    alike = like(
        store, query, container_tag, mode=search_mode or "hybrid", limit=int(limit), least=min_similarity,
        types=memory_types or (), expired=bool(include_expired), rewrite=bool(rewrite_query),
    )  # fmt: skip
    return _as_json(_loads(found.text) | alike)


@tool("Ingest a text", writes=True)
def ingest_text(
    store: EnhancedStore,
    caller: Caller,
    content: Annotated[str, about("text or Markdown")],
    container_tag: Tag,
    title: Annotated[str | None, about("what to call it")] = None,
) -> Reply[Ingested]:
    """Keep a text as a document, and the statements in it as memories."""
    return _as_json(ingest.ingest_text(store, content, container_tag, title or "", **caller))


@tool("Ingest a page", writes=True)
def ingest_url(
    store: EnhancedStore,
    caller: Caller,
    url: Annotated[str, about("of a page, a text, a PDF or a DOCX file")],
    container_tag: Tag,
    title: Annotated[str | None, about("what to call it")] = None,
) -> Reply[Ingested]:
    """Fetch an address, and keep what it gives as a document. What a page states replaces nothing that the user said."""
    return _as_json(ingest.ingest_url(store, url, container_tag, title or "", **caller))


@tool("Read a profile", writes=True)
def get_user_profile(
    memories: Memories, caller: Caller, container_tag: Tag, regenerate: Annotated[bool, about("make it anew")] = False
) -> Reply[Profile]:
    """What is known of somebody, as it was said: static, what lasts, and dynamic, what is of late."""
    return _as_json(profile_of(memories, container_tag, regenerate, **caller))


@tool("List memories")
def list_memories(
    store: EnhancedStore,
    memories: Memories,
    container_tag: Tag,
    memory_type: Kind | None = None,
    limit: Limit = 50,
    include_expired: Annotated[bool, about("what no longer holds too")] = False,
    cursor: Annotated[str | None, about("next_cursor of the page before")] = None,
) -> Reply[Page]:
    """The memories of a tag, newest first, with how sure each is now."""
    scope, start = check_scope(container_tag), cursor or "0"
    if not (start.isdecimal() and len(start) < 10):
        raise Invalid("this cursor does not belong to this list", hint="Begin again without a cursor.")
    every = memories.atoms(scope, expired=include_expired)
    every = [each for each in every if memory_type in (None, each.memory_type)]
    every.sort(key=lambda each: (each.valid_from is not None and each.valid_from.timestamp(), each.path), reverse=True)
    stop = int(start) + limit
    more = str(stop) if stop < len(every) else None
    rows = rows_of(store, every[int(start) : stop])
    return _as_json({"memories": rows, "total": len(every), "next_cursor": more})


@tool("Search everything")
def superrag_search(
    store: EnhancedStore,
    query: Annotated[str, about("a question, in plain words")],
    container_tag: AnyTag = None,
    search_mode: Annotated[Mode, about("hybrid, memory (statements) or rag (passages)")] = "hybrid",
    rerank: Annotated[bool, about("order the best again")] = True,
    limit: Limit = 10,
    budget_tokens: Annotated[int | None, Field(ge=1, le=100_000), about("no more text than this")] = None,
) -> Reply[Found]:
    """Find statements, passages and entities that answer a question, best first, with the steps that were taken."""
    found = recall(
        store, query, container_tag, mode=search_mode, limit=limit, rerank=rerank, rewrite=True, budget=budget_tokens
    )
    data = {"query": query, "search_mode": search_mode, "results": found.results, "steps": found.steps}
    return _as_json(data | {"tokens": found.tokens, "left_out": found.left_out})


def _loads(text: str) -> Data:
    import json

    return dict(json.loads(text))


def _count(store: EnhancedStore, text: str) -> None:
    """Note beside the notes which entities were found, and when."""
    if names := [each["name"] for each in _loads(text)["entities"]]:
        log = StateLog[None](store.bench, "state/graph-access.jsonl", lambda: None, lambda *_: None)
        log.add({"at": now().isoformat(timespec="seconds"), "entities": names})


_GRAPH: Final = {each.name: each for each in memento.TOOLS}


TOOLS: Final = (
    *(_GRAPH[name] for name in ("create_entities", "add_observations", "create_relations")),
    *(_GRAPH["search_nodes"], semantic_search, _GRAPH["read_graph"]),
    *(ingest_url, ingest_text, get_user_profile, list_memories, superrag_search),
)
