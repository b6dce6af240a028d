"""The profile of self-improving-memory. What is too long is refused and never cut, angle
brackets stay, no model is asked, and each answer says how it was found."""

# ruff: noqa: N803, N815  (the names of arguments are the contract's)
from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NotRequired, TypedDict

from pydantic import BeforeValidator, Field

from simplemem.features.graph.page import ENTITY
from simplemem.features.lessons import TYPES
from simplemem.features.lessons.analysis import Analysis, analysis_of
from simplemem.features.lessons.entry import KnowledgeEntry
from simplemem.features.lessons.export import export_text
from simplemem.features.lessons.knowledge import (
    DEFAULT_CONFIDENCE,
    SUPERSEDING,
    EntryChange,
    Knowledge,
    knowledge_of,
)
from simplemem.features.lessons.note_search import search_notes, with_falling_scores
from simplemem.profiles.server_memory import tools as verbs
from simplemem.profiles.server_memory.tools import RelationOut, Rules, graph_tools
from simplemem.tools import render
from simplemem.tools.arguments import Several, Share, Words, about, also, at_most, one_of
from simplemem.tools.tool import Caller, Data, Manner, Reply, Tool, as_json, tool

if TYPE_CHECKING:
    from simplemem.features.graph.graph import KnowledgeGraph
    from simplemem.store import EnhancedStore

ENTITY_TYPES: Final = (
    *("project", "component", "dependency", "error", "solution", "pattern", "insight", "decision"),
    *(
        "user-intent",
        "user-preference",
        "requirement",
        "style-rule",
        "architectural-pattern",
        "tool-preference",
    ),
    *("session-snapshot", "continuation-point", "work-in-progress"),
)


class _Learning(Manner):
    failure = "Error: "

    def record_duration(self, tool: Tool, store: EnhancedStore, seconds: float) -> None:
        knowledge_of(store).took[tool.name].append(1000 * seconds)


MANNER: Final = _Learning()


_Trimmed = BeforeValidator(lambda value: value.strip() if isinstance(value, str) else value)
_Name = Annotated[str, _Trimmed, Field(min_length=1, max_length=200)]
_Facts = Annotated[
    Several[Annotated[str, _Trimmed, Field(min_length=1, max_length=10_000)]], Field(min_length=1)
]


class TypedEntityIn(verbs.EntityIn):
    name: _Name
    entityType: Annotated[Literal[ENTITY_TYPES], one_of(*ENTITY_TYPES)]  # type: ignore[valid-type]
    observations: _Facts


class ShortRelationIn(verbs.RelationIn):
    source: Annotated[_Name, also("from")]
    target: Annotated[_Name, also("to")]
    relationType: Annotated[str, _Trimmed, Field(min_length=1, max_length=100)]


class FactsIn(verbs.Addition):
    entityName: _Name
    contents: _Facts


_Relations = Annotated[
    Several[ShortRelationIn], about("uses, depends on, fixes, implements, supersedes, …")
]
Near = TypedDict("Near", {
    "entities": list[Data], "relations": list[RelationOut], "method": str, "degraded": NotRequired[str],
})  # fmt: skip
Query = Annotated[str, about("up to 500 characters"), Field(max_length=500)]
Limit = Annotated[int, at_most(100), Field(ge=1)]
Kind = Literal[TYPES]  # type: ignore[valid-type]
Relationship = Annotated[str, Field(max_length=100), about("fixes, causes, supersedes, …")]
EntryId = Annotated[
    str,
    also("id", "entryId", "knowledgeId"),
    about("its id, the first characters of the id, or its note's name"),
]
Saved = TypedDict("Saved", {
    "id": str, "name": str, "same_as": list[str], "warnings": list[str], "changed": NotRequired[list[str]],
})  # fmt: skip
Updated = TypedDict(
    "Updated", {"id": str, "name": str, "changed": list[str], "warnings": list[str]}
)
Deleted = TypedDict("Deleted", {"id": str, "name": str, "version": str, "related": list[str]})
Hits = TypedDict("Hits", {"results": list[Data], "method": str, "degraded": str})
Linked = TypedDict("Linked", {
    "sourceId": str, "targetId": str, "relationship": str, "changed": bool, "superseded": NotRequired[list[str]],
})  # fmt: skip
_MOST = 30
_MOST_CHARACTERS = 20_000  # of an export that is shown
_BY_RULES = "rules (slot, polarity, near duplicates)"
Notes = Annotated[str, about("analyze ordinary notes, not entries: a folder, type:NAME or *")]
Least = Annotated[int, Field(ge=2)]
Form = Annotated[Literal["html", "json", "dot", "d3", "cytoscape"], also("format")]
Apply = Annotated[bool, about("false only previews")]
Stats = TypedDict(
    "Stats", {"total": int, "by_type": Data, "by_confidence": Data, "latency": Data, "method": str}
)
Contradictions = TypedDict("Contradictions", {"contradictions": list[Data], "method": str})
Resolution = TypedDict(
    "Resolution", {"applied": bool, "version": str, "resolved": list[Data], "method": str}
)
SupersededEntries = TypedDict("SupersededEntries", {"superseded": list[Data], "method": str})
Patterns = TypedDict(
    "Patterns", {"recurring": list[Data], "types": Data, "tags": Data, "lately": Data, "trend": str}
)
Insights = TypedDict("Insights", {"insights": list[Data], "method": str})
Antipatterns = TypedDict("Antipatterns", {"antipatterns": list[Data], "method": str})
Suggestions = TypedDict("Suggestions", {"suggestions": list[Data], "method": str})
Clusters = TypedDict("Clusters", {"clusters": list[Data], "method": str})
Export = TypedDict(
    "Export",
    {"path": str, "format": str, "entries": int, "bytes": int, "content": NotRequired[str]},
)
CacheStats = TypedDict(
    "CacheStats", {"in_use": bool, "size": int, "bytes": int, "max_bytes": int, "index": Data}
)
Cleared = TypedDict("Cleared", {"cleared": int, "says": str})
Persisted = TypedDict("Persisted", {"persisted": int, "says": str})
_NO_CACHE = "There is no cache: the index stores one vector per text."


@tool("Search nodes", manner=MANNER)
def search_nodes(
    store: EnhancedStore, graph: KnowledgeGraph, query: Query, limit: Limit = 10
) -> Reply[Near]:
    """Find entities by meaning and words, with their relations."""
    entities = {entity.path: entity for entity in graph.read().entities if not entity.is_note}
    found, method, degraded = search_notes(store, ENTITY, entities, query, limit)
    hits = with_falling_scores(found)
    relations = graph.open([entity.name for entity, _ in hits]).relations
    shown = [entity.as_dict() | {"score": hit.score} for entity, hit in hits]
    answer: Data = {
        "entities": shown,
        "relations": [each.as_dict() for each in relations],
        "method": method,
    }
    return as_json(answer | ({"degraded": degraded} if degraded else {}))


_RULES: Final = Rules(
    lambda _verb, data: as_json(data),
    MANNER,
    hints={
        "create_entities": {"entities": Several[TypedEntityIn]},
        "create_relations": {"relations": _Relations},
        "add_observations": {"observations": Several[FactsIn]},
        "open_nodes": {"names": Annotated[Several[str], Field(max_length=50)]},
    },
)
GRAPH: tuple[Tool, ...] = (
    *graph_tools(_RULES, verbs.create_entities, verbs.create_relations, verbs.add_observations),
    search_nodes,
    *graph_tools(
        _RULES, verbs.open_nodes, verbs.read_graph, verbs.delete_entities, verbs.delete_observations
    ),
)


@tool("Save knowledge", writes=True, idempotent=False, manner=MANNER)
def save_knowledge(
    knowledge: Knowledge,
    caller: Caller,
    kind: Annotated[Kind, also("type")],
    content: Annotated[
        str, about("what was learned; Markdown, at most 10,000 characters"), Field(min_length=1)
    ],
    confidence: Annotated[Share | None, about(f"0 to 1; default {DEFAULT_CONFIDENCE}")] = None,
    tags: Words = [],  # noqa: B006
    context: Annotated[str, about("where, when, why")] = "",
    verified: bool | None = None,
) -> Reply[Saved]:
    """Save one lesson as an entry: a decision, error, solution, pattern or insight. Saving the same content again
    updates its entry."""
    entry, twins, warnings = knowledge.save(
        kind,
        content,
        context=context,
        confidence=confidence,
        verified=verified,
        tags=tags,
        **caller,
    )
    before = next((twin for twin in twins if twin.id == entry.id), None)
    changed = [] if before is None else _changed(before, entry)
    same = [each.id for each in twins]
    lines = [f"Knowledge saved with ID: {entry.id}"]
    if before is not None:
        lines.append(f"The entry existed already; changed: {', '.join(changed) or 'nothing'}")
    elif same:
        lines.append(f"Entries with the same content: {', '.join(same[:5])}")
    data: Saved = {"id": entry.id, "name": entry.name, "same_as": same, "warnings": warnings}
    if before is not None:
        data["changed"] = changed
    return Reply("\n".join([*lines, *warnings]), data)


def _changed(before: KnowledgeEntry, after: KnowledgeEntry) -> list[str]:
    """The fields of an entry that differ."""
    fields = ("content", "context", "confidence", "verified", "tags")
    return [field for field in fields if getattr(before, field) != getattr(after, field)]


@tool("Search knowledge", manner=MANNER)
def search_knowledge(
    knowledge: Knowledge,
    query: Query,
    kind: Annotated[Kind | None, also("type")] = None,
    minConfidence: Share = 0.0,
    limit: Limit = 10,
) -> Reply[Hits]:
    """Find entries by meaning and words, with their relations; an empty query lists the newest. Call this before you
    solve a problem again."""
    hits, method, degraded = knowledge.search(
        query, kind=kind or "", least_confidence=minConfidence, limit=limit
    )
    knowledge.count([entry.id for entry, _ in hits])  # whole entries are shown: they are read
    pairs = zip(knowledge.describe([entry for entry, _ in hits]), hits, strict=True)
    results: Any = [
        entry | {"score": hit.score, "snippet": hit.snippet, "method": method}
        for entry, (_, hit) in pairs
    ]
    return Reply(
        render.pretty(results), {"results": results, "method": method, "degraded": degraded}
    )


@tool("Link knowledge", writes=True, manner=MANNER)
def link_knowledge(
    knowledge: Knowledge,
    caller: Caller,
    sourceId: str,
    targetId: str,
    relationship: Relationship = "relates_to",
) -> Reply[Linked]:
    """Relate one entry to another, e.g. a solution that fixes an error. After "supersedes" the target no longer holds."""
    one, other, is_new = knowledge.link(sourceId, targetId, relationship, **caller)
    kind = " ".join(relationship.split()) or "relates_to"
    said = f"Knowledge linked: {one.id} {kind} {other.id}" + ("" if is_new else " (unchanged)")
    data: Linked = {
        "sourceId": one.id,
        "targetId": other.id,
        "relationship": kind,
        "changed": is_new,
    }
    superseded = [
        entry.id for entry in map(knowledge.find, (one.id, other.id)) if entry.is_superseded
    ]
    if kind.casefold().replace(" ", "_") in SUPERSEDING and superseded:
        data["superseded"] = superseded
        said += f"\nNo longer holds: {', '.join(superseded)}"
    return Reply(said, data)


@tool("Update knowledge", writes=True, destructive=True, manner=MANNER)
def update_knowledge(
    knowledge: Knowledge,
    caller: Caller,
    id: EntryId,  # noqa: A002
    content: Annotated[str | None, about("the corrected content")] = None,
    context: Annotated[str | None, about('where, when, why; "" removes it')] = None,
    confidence: Annotated[Share | None, about("0 to 1")] = None,
    verified: bool | None = None,
    tags: Annotated[Words | None, about("replaces all its tags")] = None,
) -> Reply[Updated]:
    """Correct an entry. Omitted fields, its id and its relations stay."""
    before = knowledge.find(id)
    change = EntryChange(
        content, context, confidence, verified, None if tags is None else tuple(tags)
    )
    entry, warnings = knowledge.update(id, change, **caller)
    changed = _changed(before, entry)
    text = f"Knowledge updated: {entry.id} ({', '.join(changed) or 'no change'})"
    data: Updated = {"id": entry.id, "name": entry.name, "changed": changed, "warnings": warnings}
    return Reply("\n".join([text, *warnings]), data)


@tool("Delete knowledge", writes=True, destructive=True, deletes=True, manner=MANNER)
def delete_knowledge(knowledge: Knowledge, caller: Caller, id: EntryId) -> Reply[Deleted]:  # noqa: A002
    """Delete an entry that was never right; it moves to the trash. To keep an entry as history, supersede it."""
    entry, related, version = knowledge.delete(id, **caller)
    lines = [f"Knowledge deleted: {entry.id}"]
    if related:
        lines.append(f"Related entries: {', '.join(each.id for each in related)}")
    related_ids = [each.id for each in related]
    return Reply(
        "\n".join(lines),
        {"id": entry.id, "name": entry.name, "version": version, "related": related_ids},
    )


KNOWLEDGE: tuple[Tool, ...] = (
    save_knowledge,
    search_knowledge,
    link_knowledge,
    update_knowledge,
    delete_knowledge,
)


def _answer(
    analysis: Analysis, key: str, found: Sequence[Data], how: str, head: str = "", **more: Any
) -> Reply[Any]:
    """An answer that quotes notes between marks, and says how it was found."""
    head = head or f"{key.capitalize()}: {len(found)}, in {len(analysis.entries)} {analysis.what}."
    if len(found) > _MOST:
        head += f" The first {_MOST} are shown."
    method = f"{how}; no language model was used"
    for most in (_MOST, 10, 3):
        cut = [
            each | {"entries": each["entries"][:most]} if "entries" in each else each
            for each in found[:_MOST]
        ]
        shown = render.pretty({key: cut, **more})
        if len(shown) <= _MOST_CHARACTERS:
            break
    return Reply(
        render.answer(head, shown, f"Method: {method}."), {key: cut, **more, "method": method}
    )


@tool("Statistics", manner=MANNER)
def get_stats(store: EnhancedStore, knowledge: Knowledge, graph: KnowledgeGraph) -> Reply[Stats]:
    """Show totals by type and confidence, verified and most read entries, and response times."""
    whole, latency = graph.read(), dict[str, Data]()
    for name, took in sorted(knowledge.took.items()):
        times = [round(each, 2) for each in sorted(took)]
        latency[name] = {"count": len(times), "median_ms": times[len(times) // 2]}
        latency[name] |= {"p95_ms": times[len(times) * 95 // 100], "max_ms": times[-1]}
    more: Data = {
        "entities": sum(not each.is_note for each in whole.entities),
        "relations": len(whole.relations),
    }
    more |= {"notes": store.state().notes, "latency": latency}
    more["method"] = (
        "counted; latency covers the last 1,000 answers of each tool since the server started"
    )
    return as_json(analysis_of(store).stats() | more)


@tool("Detect contradictions", manner=MANNER)
def detect_contradictions(
    store: EnhancedStore,
    similarityThreshold: Share = 0.85,
    minConfidenceDelta: Share = 0.1,
    sameTypeOnly: bool = False,
    notes: Notes = "",
) -> Reply[Contradictions]:
    """Find entries that contradict each other: two values for one thing, a claim and its denial, near duplicates."""
    analysis = analysis_of(store, notes)
    found = analysis.contradictions(
        similarityThreshold, minConfidenceDelta, same_type_only=sameTypeOnly
    )
    how = f"{_BY_RULES}; similarity by {analysis.method}"
    return _answer(analysis, "contradictions", [each.data for each in found], how)


@tool("Resolve contradictions", writes=True, destructive=True, manner=MANNER)
def auto_resolve_contradictions(
    store: EnhancedStore,
    knowledge: Knowledge,
    caller: Caller,
    similarityThreshold: Share = 0.85,
    apply: Apply = False,
) -> Reply[Resolution]:
    """Show which entry of each contradiction would supersede the other; apply=true writes this as one change."""
    analysis = analysis_of(store)
    decided = [each for each in analysis.contradictions(similarityThreshold) if each.verdict]
    version = knowledge.supersede(decided, **caller) if decided and apply else ""
    pairs = [each.data | {"loser": each.verdict[1].id} for each in decided if each.verdict]
    count = render.format_count(len(pairs), "contradiction", "contradictions")
    head = f"{count} would be resolved. Nothing was written. Pass apply=true to write this as one change."
    if not pairs:
        head = "No contradiction can be resolved by rules."
    elif apply:
        head = f"Resolved {count}." + (
            f" To revert this, run `simplemem undo {version}`." if version else ""
        )
    how = f"{_BY_RULES}; an entry edited by a person wins, else a verified, newer or more confident one, in this order"
    return _answer(
        analysis, "resolved", pairs, how, head, applied=apply and bool(decided), version=version
    )


@tool("Superseded entries", manner=MANNER)
def get_superseded_history(store: EnhancedStore, notes: Notes = "") -> Reply[SupersededEntries]:
    """List entries that no longer hold, with what replaced them, when and why."""
    analysis = analysis_of(store, notes)
    return _answer(
        analysis, "superseded", analysis.superseded(), "read from the notes' frontmatter"
    )


@tool("Analyze patterns", manner=MANNER)
def analyze_patterns(store: EnhancedStore, notes: Notes = "") -> Reply[Patterns]:
    """Show recurring entries, counts by type, tag and the last 7, 30 and 90 days, and confidence by type."""
    analysis = analysis_of(store, notes)
    found = analysis.patterns(date.today())  # noqa: DTZ011  (local, as notes are)
    how = "counted; entries are recurring if their first 50 characters are the same"
    return _answer(analysis, "recurring", found.pop("recurring"), how, **found)


@tool("Generate insights", manner=MANNER)
def generate_insights(
    store: EnhancedStore,
    similarityThreshold: Share = 0.75,
    minClusterSize: Least = 2,
    notes: Notes = "",
) -> Reply[Insights]:
    """Report themes, recurring errors and weak spots, with counts and the entries behind each."""
    analysis = analysis_of(store, notes)
    found = analysis.insights(similarityThreshold, minClusterSize)
    return _answer(analysis, "insights", found, f"counts, and clusters by {analysis.method}")


@tool("Detect antipatterns", manner=MANNER)
def detect_antipatterns(store: EnhancedStore, notes: Notes = "") -> Reply[Antipatterns]:
    """List duplicates, entries with low confidence or no tags, and errors without a solution."""
    analysis = analysis_of(store, notes)
    return _answer(analysis, "antipatterns", analysis.antipatterns(), "counted")


@tool("Suggest tags", manner=MANNER)
def suggest_tags(
    store: EnhancedStore, similarityThreshold: Share = 0.75, notes: Notes = ""
) -> Reply[Suggestions]:
    """Suggest tags for entries that belong together. Writes nothing."""
    analysis = analysis_of(store, notes)
    how = f"words and tags of clusters of three or more entries, by {analysis.method}"
    return _answer(analysis, "suggestions", analysis.suggested_tags(similarityThreshold), how)


@tool("Cluster knowledge", manner=MANNER)
def cluster_knowledge(
    store: EnhancedStore,
    similarityThreshold: Share = 0.75,
    minClusterSize: Least = 2,
    maxClusters: Limit = 10,
    notes: Notes = "",
) -> Reply[Clusters]:
    """Group entries by subject, around the most read ones."""
    analysis = analysis_of(store, notes)
    found = analysis.clusters(similarityThreshold, minClusterSize)[:maxClusters]
    return _answer(
        analysis, "clusters", found, f"clusters around the most read entries, by {analysis.method}"
    )


@tool("Export as Markdown", manner=MANNER)
def export_markdown(store: EnhancedStore, knowledge: Knowledge) -> Reply[Export]:
    """Write all entries to one Markdown file, grouped by type."""
    return _exported(store, knowledge, "md")


@tool("Export the graph", manner=MANNER)
def export_graph(store: EnhancedStore, knowledge: Knowledge, form: Form = "html") -> Reply[Export]:
    """Write entries, entities and their relations to a file: an HTML page, or data."""
    return _exported(store, knowledge, form)


def _exported(store: EnhancedStore, knowledge: Knowledge, form: str) -> Reply[Any]:
    """A file in `.simplemem/exports/`, where nothing takes it for a note; small data stands in the answer too."""
    store.extension.must_be_writable()
    text, count = export_text(store, form), len(knowledge.entries())
    data, ending = (
        text.encode("utf-8", "backslashreplace"),
        {"d3": "-d3.json", "cytoscape": "-cytoscape.json"},
    )
    path = store.extension.side_file(f"exports/knowledge{ending.get(form, f'.{form}')}").replace(
        data
    )
    shown = text if form != "html" and len(text) <= _MOST_CHARACTERS else ""
    facts = {"path": str(path), "format": form, "entries": count, "bytes": len(data)}
    facts |= {"content": shown} if shown else {}
    return Reply(
        render.answer(f"Exported {count} entries to {path} ({form}, {len(data)} bytes)", shown),
        facts,
    )


INSIGHT: tuple[Tool, ...] = (
    *(get_stats, export_markdown, export_graph),
    *(detect_contradictions, auto_resolve_contradictions, get_superseded_history),
    *(analyze_patterns, generate_insights, detect_antipatterns, suggest_tags, cluster_knowledge),
)


@tool("Cache statistics", manner=MANNER)
def get_cache_stats(store: EnhancedStore) -> Reply[CacheStats]:
    """Show how many vectors are stored, and their size."""
    facts, embedding = store.stats(), store.extension.embedding()
    size, embedder = facts["vectors"], embedding["in_use"]
    shown = {
        "in_use": size > 0,
        "says": _NO_CACHE,
        "size": size,
        "by_embedder": {embedder: size} if size else {},
    }
    shown |= {"bytes": facts["index_bytes"], "max_bytes": 0}
    return as_json(shown | {"index": {"embedder": embedder, "waiting": embedding["waiting"]}})


@tool("Clear the cache", writes=True, destructive=True, manner=MANNER)
def clear_cache(store: EnhancedStore) -> Reply[Cleared]:
    """Does nothing: there is no cache."""
    store.extension.must_be_writable()
    said = f"Nothing to clear. {_NO_CACHE}"
    return Reply(said, {"cleared": 0, "says": said})


@tool("Persist the cache", manner=MANNER)
def persist_cache(store: EnhancedStore) -> Reply[Persisted]:
    """Does nothing: stored vectors are always on disk already."""
    size = store.stats()["vectors"]
    said = f"Nothing to do: all {size} vectors are on disk."
    return Reply(said, {"persisted": size, "says": said})


CACHE: tuple[Tool, ...] = (get_cache_stats, clear_cache, persist_cache)
