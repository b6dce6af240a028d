"""The face of self-improving-memory (capabilities.md SI-1 to SI-23), without its analyses, which are in `insight`:
eight tools of the graph with its seventeen types and limits, keeping and finding what was learned, and the cache of
vectors.

What is too long is refused and never cut, and angle brackets stay: taking them out destroys code (SI-35). Failures
begin with "Error: ", as clients of that server expect, and how long answers take is measured for `get_stats`."""

# ruff: noqa: N803, N815  (the names of arguments are the contract's)
from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypedDict

from pydantic import BaseModel, BeforeValidator, Field

from simplemem.faces import graph_tools as verbs
from simplemem.faces.arguments import Several, Share, Words, about, also, at_most, one_of
from simplemem.faces.face import Call, Caller, Data, Manner, Reply, Tool, tool
from simplemem.faces.graph_tools import RelationOut, Rules, graph_tools
from simplemem.faces.render import pretty
from simplemem.kinds.graph.page import ENTITY
from simplemem.kinds.learned.entry import TYPES
from simplemem.kinds.learned.knowledge import Knowledge, hits_of_kind

if TYPE_CHECKING:
    from simplemem.kinds.graph.graph import KnowledgeGraph
    from simplemem.store import EnhancedStore

ENTITY_TYPES: Final = (
    *("project", "component", "dependency"),
    *("error", "solution", "pattern", "insight", "decision"),
    *("user-intent", "user-preference", "requirement"),
    *("style-rule", "architectural-pattern", "tool-preference"),
    *("session-snapshot", "continuation-point", "work-in-progress"),
)


class _Learning(Manner):
    failure = "Error: "

    def perform(self, tool: Tool, call: Call, arguments: BaseModel) -> Reply[Any]:
        began = time.perf_counter()
        try:
            return super().perform(tool, call, arguments)
        finally:
            call.knowledge.took[call.tool].append(1000 * (time.perf_counter() - began))


MANNER: Final = _Learning()


def as_json(data: Any) -> Reply[Any]:
    return Reply(pretty(data), data)


# --- the graph, with its types and limits

_Trimmed = BeforeValidator(lambda value: value.strip() if isinstance(value, str) else value)
_Name = Annotated[str, _Trimmed, Field(min_length=1, max_length=200)]
_RelationType = Annotated[str, _Trimmed, Field(min_length=1, max_length=100)]
_Facts = Annotated[Several[Annotated[str, _Trimmed, Field(min_length=1, max_length=10_000)]], Field(min_length=1)]


class TypedEntityIn(verbs.EntityIn):
    name: _Name
    entityType: Annotated[Literal[ENTITY_TYPES], one_of(*ENTITY_TYPES)]  # type: ignore[valid-type]
    observations: _Facts


class ShortRelationIn(verbs.RelationIn):
    source: Annotated[_Name, also("from")]
    target: Annotated[_Name, also("to")]
    relationType: _RelationType


class FactsIn(verbs.Addition):
    entityName: _Name
    contents: _Facts


Near = TypedDict("Near", {"entities": list[Data], "relations": list[RelationOut], "method": str})
Query = Annotated[str, about("up to 500 characters"), Field(max_length=500)]


@tool("Search nodes", manner=MANNER)
def search_nodes(
    store: EnhancedStore,
    graph: KnowledgeGraph,
    query: Query,
    limit: Annotated[int, at_most(100), Field(ge=1)] = 10,
) -> Reply[Near]:
    """Find entities by meaning and words, with their relations."""
    entities = {entity.path: entity for entity in graph.read().entities if not entity.is_note}
    hits, method, _ = hits_of_kind(store, ENTITY, entities, query, limit)
    relations = graph.open([entity.name for entity, _ in hits]).relations
    shown = [entity.as_dict() | {"score": hit.score} for entity, hit in hits]
    return as_json({"entities": shown, "relations": [each.as_dict() for each in relations], "method": method})


_EXAMPLES: Final = "uses, depends on, fixes, implements, supersedes, …"
_RULES: Final = Rules(
    lambda _verb, data: as_json(data),
    MANNER,
    hints={
        "create_entities": {"entities": Several[TypedEntityIn]},
        "create_relations": {"relations": Annotated[Several[ShortRelationIn], about(_EXAMPLES)]},
        "add_observations": {"observations": Several[FactsIn]},
        "open_nodes": {"names": Annotated[Several[str], Field(max_length=50)]},
    },
)
GRAPH: tuple[Tool, ...] = (
    *graph_tools(_RULES, verbs.create_entities, verbs.create_relations, verbs.add_observations),
    search_nodes,
    *graph_tools(_RULES, verbs.open_nodes, verbs.read_graph, verbs.delete_entities, verbs.delete_observations),
)


# --- what was learned

Kind = Literal[TYPES]  # type: ignore[valid-type]
Saved = TypedDict("Saved", {"id": str, "name": str, "same_as": list[str], "warnings": list[str]})
Hits = TypedDict("Hits", {"results": list[Data], "method": str, "degraded": str})
Linked = TypedDict("Linked", {"sourceId": str, "targetId": str, "relationship": str, "changed": bool})


@tool("Save knowledge", writes=True, idempotent=False, manner=MANNER)
def save_knowledge(
    knowledge: Knowledge,
    caller: Caller,
    kind: Annotated[Kind, also("type")],
    content: Annotated[str, about("what was learned, up to 10,000 characters of Markdown"), Field(min_length=1)],
    confidence: Annotated[Share, about("0 to 1")],
    tags: Annotated[Words, about("may be empty")],
    context: Annotated[str, about("where, when, why")] = "",
    verified: bool = False,
) -> Reply[Saved]:
    """Keep one thing you learned: a decision, an error, a solution, a pattern or an insight."""
    entry, twins, warnings = knowledge.save(
        kind, content, context=context, confidence=confidence, verified=verified, tags=tags, **caller
    )
    same = [each.id for each in twins]
    known = [f"The very same was known already: {', '.join(same[:5])}"] if same else []
    text = "\n".join([f"Knowledge saved with ID: {entry.id}", *known, *warnings])
    return Reply(text, {"id": entry.id, "name": entry.name, "same_as": same, "warnings": list(warnings)})


@tool("Search knowledge", manner=MANNER)
def search_knowledge(
    knowledge: Knowledge,
    query: Query,
    kind: Annotated[Kind | None, also("type")] = None,
    minConfidence: Share = 0.0,
) -> Reply[Hits]:
    """Find what was learned, by meaning and words: ten entries at most, the newest for an empty query. Search before
    you solve something again."""
    hits, method, degraded = knowledge.search(query, kind=kind or "", least_confidence=minConfidence)
    entries = knowledge.shown([entry for entry, _ in hits])
    results: Any = [
        entry | {"score": hit.score, "snippet": hit.snippet, "method": method}
        for entry, (_, hit) in zip(entries, hits, strict=True)
    ]
    return Reply(pretty(results), {"results": results, "method": method, "degraded": degraded})


@tool("Link knowledge", writes=True, manner=MANNER)
def link_knowledge(
    knowledge: Knowledge,
    caller: Caller,
    sourceId: str,
    targetId: str,
    relationship: Annotated[str, Field(max_length=100), about("fixes, causes, supersedes, …")] = "relates_to",
) -> Reply[Linked]:
    """Relate one entry to another, e.g. a solution that fixes an error."""
    one, other, is_new = knowledge.link(sourceId, targetId, relationship, **caller)
    kind = " ".join(relationship.split()) or "relates_to"
    said = f"Knowledge linked: {one.id} {kind} {other.id}" + ("" if is_new else " (it was already)")
    return Reply(said, {"sourceId": one.id, "targetId": other.id, "relationship": kind, "changed": is_new})


KNOWLEDGE: tuple[Tool, ...] = (save_knowledge, search_knowledge, link_knowledge)


# --- its cache of vectors: there is none, the vectors lie in the index


_NO_CACHE = "There is no cache: vectors lie in the index and are made once for each text."


CacheStats = TypedDict("CacheStats", {"in_use": bool, "size": int, "bytes": int, "max_bytes": int, "index": Data})
Cleared = TypedDict("Cleared", {"cleared": int, "says": str})
Persisted = TypedDict("Persisted", {"persisted": int, "says": str})


@tool("Cache statistics", manner=MANNER)
def get_cache_stats(store: EnhancedStore) -> Reply[CacheStats]:
    """What is remembered of vectors that were made, and how large that is."""
    facts, embedding = store.stats(), store.bench.embedding()
    size = facts["vectors"]
    return as_json(
        {
            "in_use": size > 0,
            "says": _NO_CACHE,
            "size": size,
            "by_embedder": {embedding["in_use"]: size} if size else {},
            "bytes": facts["index_bytes"],
            "max_bytes": 0,
            "index": {"embedder": embedding["in_use"], "waiting": embedding["waiting"]},
        }
    )


@tool("Clear the cache", writes=True, destructive=True, manner=MANNER)
def clear_cache(store: EnhancedStore) -> Reply[Cleared]:
    """Forget vectors that were made before. Notes and the index stay as they are."""
    store.bench.must_be_writable()
    said = f"Nothing to clear. {_NO_CACHE}"
    return Reply(said, {"cleared": 0, "says": said})


@tool("Persist the cache", manner=MANNER)
def persist_cache(store: EnhancedStore) -> Reply[Persisted]:
    """Make sure that remembered vectors are on the disk. They always are."""
    size = store.stats()["vectors"]
    said = f"Nothing to do: each of the {size} vectors is on the disk once it is made."
    return Reply(said, {"persisted": size, "says": said})


CACHE: tuple[Tool, ...] = (get_cache_stats, clear_cache, persist_cache)
