"""The tools of the profile that emulates self-improving-memory.

A text that is too long is refused and never cut, angle brackets stay, no model is asked, and each answer says how it
was found.
"""

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


class _LessonAdapter(Manner):
    """Words failures like self-improving-memory, and records how long each tool takes."""

    failure = "Error: "

    def record_duration(self, tool: Tool, store: EnhancedStore, seconds: float) -> None:
        knowledge_of(store).took[tool.name].append(1000 * seconds)


MANNER: Final = _LessonAdapter()


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
_MAX_FINDINGS = 30
_MAX_CHARACTERS = 20_000  # of an answer, and of an export that an answer contains
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
_EXPORT_ENDINGS = {"d3": "-d3.json", "cytoscape": "-cytoscape.json"}
_NO_CACHE = "There is no cache: the index stores one vector per text."


@tool("Search nodes", manner=MANNER)
def search_nodes(
    store: EnhancedStore, graph: KnowledgeGraph, query: Query, limit: Limit = 10
) -> Reply[Near]:
    """Find entities by meaning and words, with their relations."""
    entities = {entity.path: entity for entity in graph.read().entities if not entity.is_note}
    found = search_notes(store, ENTITY, entities, query, limit)
    hits = with_falling_scores(found.hits)
    relations = graph.open([entity.name for entity, _ in hits]).relations
    data: Data = {
        "entities": [entity.as_dict() | {"score": hit.score} for entity, hit in hits],
        "relations": [relation.as_dict() for relation in relations],
        "method": found.method,
    }
    if found.degraded:
        data["degraded"] = found.degraded
    return as_json(data)


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
    twin_ids = [twin.id for twin in twins]
    data: Saved = {"id": entry.id, "name": entry.name, "same_as": twin_ids, "warnings": warnings}
    lines = [f"Knowledge saved with ID: {entry.id}"]

    before = next((twin for twin in twins if twin.id == entry.id), None)
    if before is not None:
        changed = _changed_fields(before, entry)
        data["changed"] = changed
        lines.append(f"The entry existed already; changed: {', '.join(changed) or 'nothing'}")
    elif twin_ids:
        lines.append(f"Entries with the same content: {', '.join(twin_ids[:5])}")
    return Reply("\n".join([*lines, *warnings]), data)


def _changed_fields(before: KnowledgeEntry, after: KnowledgeEntry) -> list[str]:
    """Return the names of the fields of an entry that differ."""
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
    entries = [entry for entry, _ in hits]
    knowledge.count([entry.id for entry in entries])  # the answer contains them whole

    results: Any = []
    for fields, (_, hit) in zip(knowledge.describe(entries), hits, strict=True):
        results.append(fields | {"score": hit.score, "snippet": hit.snippet, "method": method})
    data: Hits = {"results": results, "method": method, "degraded": degraded}
    return Reply(render.pretty(results), data)


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
    text = f"Knowledge linked: {one.id} {kind} {other.id}"
    if not is_new:
        text += " (unchanged)"
    data: Linked = {
        "sourceId": one.id,
        "targetId": other.id,
        "relationship": kind,
        "changed": is_new,
    }

    current = [knowledge.find(one.id), knowledge.find(other.id)]
    superseded = [entry.id for entry in current if entry.is_superseded]
    if kind.casefold().replace(" ", "_") in SUPERSEDING and superseded:
        data["superseded"] = superseded
        text += f"\nNo longer holds: {', '.join(superseded)}"
    return Reply(text, data)


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
    changed = _changed_fields(before, entry)
    text = f"Knowledge updated: {entry.id} ({', '.join(changed) or 'no change'})"
    data: Updated = {"id": entry.id, "name": entry.name, "changed": changed, "warnings": warnings}
    return Reply("\n".join([text, *warnings]), data)


@tool("Delete knowledge", writes=True, destructive=True, deletes=True, manner=MANNER)
def delete_knowledge(knowledge: Knowledge, caller: Caller, id: EntryId) -> Reply[Deleted]:  # noqa: A002
    """Delete an entry that was never right; it moves to the trash. To keep an entry as history, supersede it."""
    entry, related, version = knowledge.delete(id, **caller)
    related_ids = [other.id for other in related]
    text = f"Knowledge deleted: {entry.id}"
    if related_ids:
        text += f"\nRelated entries: {', '.join(related_ids)}"
    data: Deleted = {
        "id": entry.id,
        "name": entry.name,
        "version": version,
        "related": related_ids,
    }
    return Reply(text, data)


KNOWLEDGE: tuple[Tool, ...] = (
    save_knowledge,
    search_knowledge,
    link_knowledge,
    update_knowledge,
    delete_knowledge,
)


def _answer(
    analysis: Analysis,
    key: str,
    findings: Sequence[Data],
    method: str,
    head: str = "",
    **more: Any,
) -> Reply[Any]:
    """Return findings as a reply that marks quotations of notes and says how it was made.

    At most 30 findings are contained. If the text is still too long, each finding names fewer entries.
    """
    if not head:
        counted = f"{len(findings)}, in {len(analysis.entries)} {analysis.what}"
        head = f"{key.capitalize()}: {counted}."
    if len(findings) > _MAX_FINDINGS:
        head += f" The first {_MAX_FINDINGS} are shown."
    method = f"{method}; no language model was used"

    for max_entries in (_MAX_FINDINGS, 10, 3):
        shortened = [
            _with_fewer_entries(finding, max_entries) for finding in findings[:_MAX_FINDINGS]
        ]
        text = render.pretty({key: shortened, **more})
        if len(text) <= _MAX_CHARACTERS:
            break
    data = {key: shortened, **more, "method": method}
    return Reply(render.answer(head, text, f"Method: {method}."), data)


def _with_fewer_entries(finding: Data, max_entries: int) -> Data:
    """Return a finding with its first entries only."""
    if "entries" not in finding:
        return finding
    return finding | {"entries": finding["entries"][:max_entries]}


@tool("Statistics", manner=MANNER)
def get_stats(store: EnhancedStore, knowledge: Knowledge, graph: KnowledgeGraph) -> Reply[Stats]:
    """Show totals by type and confidence, verified and most read entries, and response times."""
    whole_graph = graph.read()
    more: Data = {
        "entities": sum(not entity.is_note for entity in whole_graph.entities),
        "relations": len(whole_graph.relations),
        "notes": store.state().notes,
        "latency": _latency(knowledge),
        "method": (
            "counted; latency covers the last 1,000 answers of each tool since the server started"
        ),
    }
    return as_json(analysis_of(store).stats() | more)


def _latency(knowledge: Knowledge) -> dict[str, Data]:
    """Return the response times of each tool in milliseconds."""
    latency: dict[str, Data] = {}
    for name, took in sorted(knowledge.took.items()):
        times = [round(milliseconds, 2) for milliseconds in sorted(took)]
        latency[name] = {
            "count": len(times),
            "median_ms": times[len(times) // 2],
            "p95_ms": times[len(times) * 95 // 100],
            "max_ms": times[-1],
        }
    return latency


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
    contradictions = analysis.contradictions(
        similarityThreshold, minConfidenceDelta, same_type_only=sameTypeOnly
    )
    findings = [contradiction.data for contradiction in contradictions]
    method = f"{_BY_RULES}; similarity by {analysis.method}"
    return _answer(analysis, "contradictions", findings, method)


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
    decided = []
    findings: list[Data] = []
    for contradiction in analysis.contradictions(similarityThreshold):
        if contradiction.verdict:
            _, loser, _ = contradiction.verdict
            decided.append(contradiction)
            findings.append(contradiction.data | {"loser": loser.id})

    version = ""
    if decided and apply:
        version = knowledge.supersede(decided, **caller)
    head = _resolution_head(len(findings), version, applied=apply)
    method = (
        f"{_BY_RULES}; an entry edited by a person wins, else a verified, newer or more confident one,"
        " in this order"
    )
    is_applied = apply and bool(decided)
    return _answer(
        analysis, "resolved", findings, method, head, applied=is_applied, version=version
    )


def _resolution_head(count: int, version: str, *, applied: bool) -> str:
    """Return the sentence that says how many contradictions are resolved, and how to go on."""
    if not count:
        return "No contradiction can be resolved by rules."
    counted = render.format_count(count, "contradiction", "contradictions")
    if not applied:
        return (
            f"{counted} would be resolved. Nothing was written."
            " Pass apply=true to write this as one change."
        )
    if not version:
        return f"Resolved {counted}."
    return f"Resolved {counted}. To revert this, run `simplemem undo {version}`."


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
    patterns = analysis.patterns(date.today())  # noqa: DTZ011  (local, as notes are)
    recurring = patterns.pop("recurring")
    method = "counted; entries are recurring if their first 50 characters are the same"
    return _answer(analysis, "recurring", recurring, method, **patterns)


@tool("Generate insights", manner=MANNER)
def generate_insights(
    store: EnhancedStore,
    similarityThreshold: Share = 0.75,
    minClusterSize: Least = 2,
    notes: Notes = "",
) -> Reply[Insights]:
    """Report themes, recurring errors and weak spots, with counts and the entries behind each."""
    analysis = analysis_of(store, notes)
    findings = analysis.insights(similarityThreshold, minClusterSize)
    return _answer(analysis, "insights", findings, f"counts, and clusters by {analysis.method}")


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
    tags = analysis.suggested_tags(similarityThreshold)
    method = f"words and tags of clusters of three or more entries, by {analysis.method}"
    return _answer(analysis, "suggestions", tags, method)


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
    clusters = analysis.clusters(similarityThreshold, minClusterSize)[:maxClusters]
    method = f"clusters around the most read entries, by {analysis.method}"
    return _answer(analysis, "clusters", clusters, method)


@tool("Export as Markdown", manner=MANNER)
def export_markdown(store: EnhancedStore, knowledge: Knowledge) -> Reply[Export]:
    """Write all entries to one Markdown file, grouped by type."""
    return _export(store, knowledge, "md")


@tool("Export the graph", manner=MANNER)
def export_graph(store: EnhancedStore, knowledge: Knowledge, form: Form = "html") -> Reply[Export]:
    """Write entries, entities and their relations to a file: an HTML page, or data."""
    return _export(store, knowledge, form)


def _export(store: EnhancedStore, knowledge: Knowledge, form: str) -> Reply[Any]:
    """Write a file to `.simplemem/exports/`, which contains no notes. The answer also contains small data."""
    store.extension.must_be_writable()
    text = export_text(store, form)
    count = len(knowledge.entries())

    data = text.encode("utf-8", "backslashreplace")
    ending = _EXPORT_ENDINGS.get(form, f".{form}")
    path = store.extension.side_file(f"exports/knowledge{ending}").replace(data)

    facts = {"path": str(path), "format": form, "entries": count, "bytes": len(data)}
    content = ""
    if form != "html" and len(text) <= _MAX_CHARACTERS:
        content = text
    if content:
        facts["content"] = content
    head = f"Exported {count} entries to {path} ({form}, {len(data)} bytes)"
    return Reply(render.answer(head, content), facts)


INSIGHT: tuple[Tool, ...] = (
    *(get_stats, export_markdown, export_graph),
    *(detect_contradictions, auto_resolve_contradictions, get_superseded_history),
    *(analyze_patterns, generate_insights, detect_antipatterns, suggest_tags, cluster_knowledge),
)


@tool("Cache statistics", manner=MANNER)
def get_cache_stats(store: EnhancedStore) -> Reply[CacheStats]:
    """Show how many vectors are stored, and their size."""
    stats = store.stats()
    embedding = store.extension.embedding()
    vectors = stats["vectors"]
    embedder = embedding["in_use"]
    return as_json(
        {
            "in_use": vectors > 0,
            "says": _NO_CACHE,
            "size": vectors,
            "by_embedder": {embedder: vectors} if vectors else {},
            "bytes": stats["index_bytes"],
            "max_bytes": 0,
            "index": {"embedder": embedder, "waiting": embedding["waiting"]},
        }
    )


@tool("Clear the cache", writes=True, destructive=True, manner=MANNER)
def clear_cache(store: EnhancedStore) -> Reply[Cleared]:
    """Does nothing: there is no cache."""
    store.extension.must_be_writable()
    text = f"Nothing to clear. {_NO_CACHE}"
    return Reply(text, {"cleared": 0, "says": text})


@tool("Persist the cache", manner=MANNER)
def persist_cache(store: EnhancedStore) -> Reply[Persisted]:
    """Does nothing: stored vectors are always on disk already."""
    size = store.stats()["vectors"]
    text = f"Nothing to do: all {size} vectors are on disk."
    return Reply(text, {"persisted": size, "says": text})


CACHE: tuple[Tool, ...] = (get_cache_stats, clear_cache, persist_cache)
