"""The face of self-improving-memory (capabilities.md SI-1 to SI-23), without its analyses, which are in `insight`: eight
tools of the graph with its seventeen types and limits, keeping and finding what was learned, and the cache of vectors.

What is too long is refused and never cut, and angle brackets stay: taking them out destroys code (SI-35). Failures begin
with "Error: ", as clients of that server expect, and how long answers take is measured for `get_stats`.
"""

# ruff: noqa: N803, N815  (the names of arguments are the contract's)
from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NotRequired, TypedDict

from pydantic import BaseModel, BeforeValidator, Field

from simplemem.errors import TooLong
from simplemem.faces import graph_tools as verbs
from simplemem.faces.arguments import Arguments, Several, Share, Words, about, also, at_most, one_of
from simplemem.faces.face import HIDDEN, Call, Caller, Manner, Reply, Tool, tool
from simplemem.faces.graph_tools import Added, EntityOut, GraphOut, Outcome, RelationOut, Rules, graph_tools
from simplemem.faces.render import pretty
from simplemem.kinds.graph.jsonl import entity_shown, relation_shown
from simplemem.kinds.graph.page import ENTITY
from simplemem.memory import Filter
from simplemem.note.names import path_of

if TYPE_CHECKING:
    from simplemem.kinds.graph.graph import KnowledgeGraph
    from simplemem.kinds.learned.entry import KnowledgeEntry
    from simplemem.kinds.learned.knowledge import Knowledge, Reads
    from simplemem.store import EnhancedStore


ENTITY_TYPES: Final = (
    *("project", "component", "dependency"),
    *("error", "solution", "pattern", "insight", "decision"),
    *("user-intent", "user-preference", "requirement"),
    *("style-rule", "architectural-pattern", "tool-preference"),
    *("session-snapshot", "continuation-point", "work-in-progress"),
)
LONGEST_NAME: Final = 200
LONGEST_OBSERVATION: Final = 10_000
LONGEST_RELATION: Final = 100
LONGEST_QUERY: Final = 500
MOST_HITS: Final = 100
MOST_NAMES: Final = 50


class _Learning(Manner):
    def perform(self, tool: Tool, call: Call, arguments: BaseModel) -> Reply[Any]:
        with call.knowledge.latencies.measured(call.tool):
            return super().perform(tool, call, arguments)


MANNER: Final = _Learning("Error: ")


def as_json(data: Any) -> Reply[Any]:
    return Reply(pretty(data), data)


# --- the graph, with its types and limits

_Trimmed = BeforeValidator(lambda value: value.strip() if isinstance(value, str) else value)
_Name = Annotated[str, _Trimmed, Field(min_length=1, max_length=LONGEST_NAME)]
_Observation = Annotated[str, _Trimmed, Field(min_length=1, max_length=LONGEST_OBSERVATION)]


class EntityIn(Arguments):
    name: _Name
    entityType: Annotated[Literal[ENTITY_TYPES], one_of(*ENTITY_TYPES)]  # type: ignore[valid-type]
    observations: Annotated[Several[_Observation], Field(min_length=1)]


class RelationIn(verbs.RelationIn):
    source: Annotated[_Name, also("from")]
    target: Annotated[_Name, also("to")]
    relationType: Annotated[str, _Trimmed, Field(min_length=1, max_length=LONGEST_RELATION)]


class Addition(Arguments):
    entityName: _Name
    contents: Annotated[Several[_Observation], Field(min_length=1)]


class Removal(Arguments):
    entityName: _Name
    observations: Several[str]


Made = TypedDict("Made", {"entities": list[EntityOut], "existing": list[str]})
Related = TypedDict("Related", {"relations": list[RelationOut], "notFound": list[str]})
Learnt = TypedDict("Learnt", {"results": list[Added], "notFound": list[str]})
Deleted = TypedDict("Deleted", {"deleted": list[str], "notFound": list[str]})
Removed = TypedDict("Removed", {"deleted": int, "notFound": list[str]})


def _outcome(done: Outcome) -> Reply[Any]:
    """Answers as that server gives them: all that is to be said as JSON."""
    match done.verb:
        case "create_entities":
            return as_json({"entities": [entity_shown(each) for each in done.entities], "existing": done.there})
        case "create_relations":
            return as_json({"relations": [relation_shown(each) for each in done.relations], "notFound": done.absent})
        case "add_observations":
            return as_json({"results": verbs.added(done), "notFound": done.absent})
        case "delete_entities":
            return as_json({"deleted": done.deleted, "notFound": done.absent})
        case "delete_observations":
            return as_json({"deleted": done.count, "notFound": done.absent})
    return as_json(verbs.shown(done.graph))


class ScoredEntity(EntityOut):
    score: NotRequired[float]


Near = TypedDict("Near", {"entities": list[ScoredEntity], "relations": list[RelationOut], "method": str})


@tool("Search nodes", manner=MANNER)
def search_nodes(
    store: EnhancedStore,
    graph: KnowledgeGraph,
    knowledge: Knowledge,
    query: Annotated[str, about("up to 500 characters")],
    limit: Annotated[int, at_most(MOST_HITS), Field(ge=1)] = 10,
) -> Reply[Near]:
    """Find entities by meaning and words, with their relations."""
    _refuse_long(query)
    at = {entity.path: entity for entity in graph.read().entities if not entity.is_note}
    if not at:
        return as_json({"entities": [], "relations": [], "method": "there are no entities"})
    filters = [Filter(prefix=f"{ENTITY.folder}/")]
    if not all(path.startswith(filters[0].prefix) for path in at):
        filters.append(Filter(type=ENTITY.type))
    found = [store.search(query, filter=each, limit=limit) for each in filters]
    hits = sorted((hit for each in found for hit in each.hits), key=lambda hit: -hit.score)
    scores = {at[path].name: hit.score for hit in hits if (path := path_of(hit.name)) in at}
    scores = dict(list(scores.items())[:limit])
    near = graph.open(scores)
    there = {entity.name: entity for entity in near.entities}
    entities = [entity_shown(there[name]) | {"score": score} for name, score in scores.items() if name in there]
    embedder = knowledge.bench.embedder
    method = "words" if found[0].mode == "text" or not embedder else f"words and meaning ({embedder})"
    relations = [relation_shown(each) for each in near.relations]
    return as_json({"entities": entities, "relations": relations, "method": method})


def _refuse_long(query: str) -> None:
    if len(query) > LONGEST_QUERY:
        raise TooLong(f"The query has {len(query)} characters; {LONGEST_QUERY} are allowed.")


_WHOLE: Final = {"budget_tokens": HIDDEN, "cursor": HIDDEN, "return": Reply[GraphOut]}
_RULES: Final = Rules(
    _outcome,
    MANNER,
    hints={
        "create_entities": {"entities": Several[EntityIn], "reason": HIDDEN, "return": Reply[Made]},
        "create_relations": {
            "relations": Annotated[Several[RelationIn], about("uses, depends on, fixes, implements, supersedes, …")],
            "create_missing": HIDDEN,
            "reason": HIDDEN,
            "return": Reply[Related],
        },
        "add_observations": {"observations": Several[Addition], "reason": HIDDEN, "return": Reply[Learnt]},
        "open_nodes": _WHOLE | {"names": Annotated[Several[str], Field(max_length=MOST_NAMES)]},
        "read_graph": _WHOLE,
        "delete_entities": {
            "names": Annotated[Several[str], also("entityNames")],
            "reason": HIDDEN,
            "return": Reply[Deleted],
        },
        "delete_observations": {"deletions": Several[Removal], "reason": HIDDEN, "return": Reply[Removed]},
    },
)
GRAPH: tuple[Tool, ...] = (
    *graph_tools(_RULES, verbs.create_entities, verbs.create_relations, verbs.add_observations),
    search_nodes,
    *graph_tools(_RULES, verbs.open_nodes, verbs.read_graph, verbs.delete_entities, verbs.delete_observations),
)


# --- what was learned

Kind = Literal["decision", "error", "solution", "pattern", "insight"]


Saved = TypedDict("Saved", {"id": str, "name": str, "same_as": list[str], "warnings": list[str]})


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
    kept = knowledge.save(kind, content, context=context, confidence=confidence, verified=verified, tags=tags, **caller)
    lines = [f"Knowledge saved with ID: {kept.entry.id}"]
    if kept.twins:
        lines.append(f"The very same was known already: {', '.join(entry.id for entry in kept.twins[:5])}")
    data: Any = {"id": kept.entry.id, "name": kept.entry.name, "same_as": [entry.id for entry in kept.twins]}
    return Reply("\n".join([*lines, *kept.warnings]), data | {"warnings": list(kept.warnings)})


class EntryOut(TypedDict):
    id: str
    type: str
    content: str
    context: NotRequired[str]
    confidence: float | None
    verified: bool
    tags: list[str]
    timestamp: str
    accessCount: int
    lastAccessed: str | None
    relatedIds: list[str]
    name: str
    score: NotRequired[float]
    method: NotRequired[str]
    snippet: NotRequired[str]
    status: NotRequired[str]
    supersededBy: NotRequired[str]


Hits = TypedDict("Hits", {"results": list[EntryOut], "method": str, "degraded": str})


@tool("Search knowledge", manner=MANNER)
def search_knowledge(
    knowledge: Knowledge,
    query: Annotated[str, about("up to 500 characters; empty lists the newest")],
    kind: Annotated[Kind | None, also("type")] = None,
    minConfidence: Share = 0.0,
) -> Reply[Hits]:
    """Find what was learned, by meaning and words: ten entries at most. Search before you solve something again."""
    from simplemem.kinds.learned.knowledge import NEVER

    _refuse_long(query)
    found = knowledge.search(query, kind=kind or "", least_confidence=minConfidence)
    read = knowledge.reads()
    related = knowledge.leading_to([hit.entry for hit in found.hits])
    results: Any = [
        entry_shown(hit.entry, read.get(hit.entry.id, NEVER), [other for _, other in related[hit.entry.path]])
        | {"score": hit.score, "snippet": hit.snippet, "method": found.method}
        for hit in found.hits
    ]
    return Reply(pretty(results), {"results": results, "method": found.method, "degraded": found.degraded})


def entry_shown(entry: KnowledgeEntry, read: Reads, related: Iterable[KnowledgeEntry]) -> dict[str, Any]:
    """An entry with the fields that clients know, and its note's name."""
    shown: dict[str, Any] = {
        "id": entry.id,
        "type": entry.type,
        "content": entry.content,
        "context": entry.context,
        "confidence": entry.confidence,
        "verified": entry.verified,
        "tags": list(entry.tags),
        "timestamp": entry.created,
        "accessCount": read.count,
        "lastAccessed": read.last or None,
        "relatedIds": list(dict.fromkeys(each.id for each in related)),
        "name": entry.name,
    }
    return shown | ({"status": "superseded", "supersededBy": entry.superseded_by} if entry.is_superseded else {})


Linked = TypedDict("Linked", {"sourceId": str, "targetId": str, "relationship": str, "changed": bool})


@tool("Link knowledge", writes=True, manner=MANNER)
def link_knowledge(
    knowledge: Knowledge,
    caller: Caller,
    sourceId: str,
    targetId: str,
    relationship: Annotated[
        str, Field(max_length=LONGEST_RELATION), about("fixes, causes, supersedes, …")
    ] = "relates_to",
) -> Reply[Linked]:
    """Relate one entry to another, e.g. a solution that fixes an error."""
    one, other, is_new = knowledge.link(sourceId, targetId, relationship, **caller)
    kind = " ".join(relationship.split()) or "relates_to"
    said = f"Knowledge linked: {one.id} {kind} {other.id}" + ("" if is_new else " (it was already)")
    return Reply(said, {"sourceId": one.id, "targetId": other.id, "relationship": kind, "changed": is_new})


KNOWLEDGE: tuple[Tool, ...] = (save_knowledge, search_knowledge, link_knowledge)


# --- its cache of vectors, over what there really is: vectors stand in the index, and those that a service made are
# remembered in a file beside it


class CacheStats(TypedDict):
    in_use: bool
    says: str
    size: int
    by_embedder: dict[str, int]
    bytes: int
    max_bytes: int
    index: dict[str, Any]


@tool("Cache statistics", manner=MANNER)
def get_cache_stats(store: EnhancedStore) -> Reply[CacheStats]:
    """What is remembered of vectors that were made, and how large that is."""
    cache, embedding, embed = store.bench.vector_cache(), store.bench.embedding(), store.settings.embed
    counts = cache.count()
    used = embed.provider not in ("wordllama", "none") and embed.cache_mb > 0
    quick = "This embedder's vectors are made more quickly than they are looked up: none are remembered."
    return as_json(
        {
            "in_use": used,
            "says": "Vectors that this embedder made are remembered." if used else quick,
            "size": sum(counts.values()),
            "by_embedder": counts,
            "bytes": cache.path.stat().st_size if cache.path.exists() else 0,
            "max_bytes": embed.cache_mb * 1024 * 1024,
            "index": {"embedder": embedding["in_use"], "waiting": embedding["waiting"]},
        }
    )


Cleared = TypedDict("Cleared", {"cleared": int, "says": str})


@tool("Clear the cache", writes=True, destructive=True, manner=MANNER)
def clear_cache(store: EnhancedStore) -> Reply[Cleared]:
    """Forget vectors that were made before. Notes and the index stay as they are."""
    store.bench.must_be_writable()
    gone = store.bench.vector_cache().clear()
    said = f"Cache cleared: {gone} remembered vectors. Those in the index are in use and stay."
    said += " What is embedded anew will be asked of the embedder again." if gone else ""
    return Reply(said, {"cleared": gone, "says": said})


Persisted = TypedDict("Persisted", {"persisted": int, "says": str})


@tool("Persist the cache", manner=MANNER)
def persist_cache(store: EnhancedStore) -> Reply[Persisted]:
    """Make sure that remembered vectors are on the disk. They always are."""
    size = sum(store.bench.vector_cache().count().values())
    said = f"Nothing to do: each vector is on the disk once it is made. {size} are remembered."
    return Reply(said, {"persisted": size, "says": said})


CACHE: tuple[Tool, ...] = (get_cache_stats, clear_cache, persist_cache)
