"""The analyses of self-improving-memory (capabilities.md SI-12 to SI-22): what all entries show together. No model is
asked: everything is counted or compared, and each answer says by what.

Where the entries are few, or a person's own notes are meant, `notes` looks at ordinary notes in the same way.
"""

# ruff: noqa: N803  (the names of arguments are the contract's)
from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

from pydantic import Field

from simplemem.faces import render
from simplemem.faces.arguments import Share, about, also, at_most
from simplemem.faces.face import Caller, Data, Reply, Tool, tool
from simplemem.faces.self_improving import MANNER, as_json
from simplemem.kinds.learned.analysis import Analysis, analysis_of

if TYPE_CHECKING:
    from simplemem.kinds.graph.graph import KnowledgeGraph
    from simplemem.kinds.learned.knowledge import Knowledge
    from simplemem.store import EnhancedStore

_MOST = 30
_MOST_CHARACTERS = 20_000  # of an export that is shown
_RULES = "rules (slot, polarity, near duplicates)"
Notes = Annotated[str, about('ordinary notes instead of the entries: a folder, "type:NAME" or "*"')]
Least = Annotated[int, Field(ge=2)]
Stats = TypedDict("Stats", {"total": int, "by_type": Data, "by_confidence": Data, "latency": Data, "method": str})
Contradictions = TypedDict("Contradictions", {"contradictions": list[Data], "method": str})
Resolution = TypedDict("Resolution", {"applied": bool, "version": str, "resolved": list[Data], "method": str})
SupersededEntries = TypedDict("SupersededEntries", {"superseded": list[Data], "method": str})
Patterns = TypedDict("Patterns", {"recurring": list[Data], "types": Data, "tags": Data, "lately": Data, "trend": str})
Insights = TypedDict("Insights", {"insights": list[Data], "method": str})
Antipatterns = TypedDict("Antipatterns", {"antipatterns": list[Data], "method": str})
Suggestions = TypedDict("Suggestions", {"suggestions": list[Data], "method": str})
Clusters = TypedDict("Clusters", {"clusters": list[Data], "method": str})
Export = TypedDict("Export", {"path": str, "format": str, "entries": int, "bytes": int})


def _answer(analysis: Analysis, key: str, found: Sequence[Data], how: str, head: str = "", **more: Any) -> Reply[Any]:
    """An answer that quotes notes between marks, and says how it was found."""
    head = head or f"{key.capitalize()}: {len(found)}, of {len(analysis.entries)} {analysis.what}."
    if len(found) > _MOST:
        head += f" The first {_MOST} are shown; the structured content has all."
    method = f"{how}; no language model was asked"
    shown = render.pretty({key: found[:_MOST], **more})
    return Reply(render.answer(head, shown, f"Method: {method}."), {key: found, **more, "method": method})


@tool("Statistics", manner=MANNER)
def get_stats(store: EnhancedStore, knowledge: Knowledge, graph: KnowledgeGraph) -> Reply[Stats]:
    """Totals by type and confidence, what is verified, what is read most, and how long answers took."""
    whole, latency = graph.read(), {}
    for name, took in sorted(knowledge.took.items()):
        times = [round(each, 2) for each in sorted(took)]
        middle, late = times[len(times) // 2], times[len(times) * 95 // 100]
        latency[name] = {"count": len(times), "median_ms": middle, "p95_ms": late, "max_ms": times[-1]}
    more = {
        "entities": sum(not entity.is_note for entity in whole.entities),
        "relations": len(whole.relations),
        "notes": store.state().notes,
        "latency": latency,
        "method": "counted; latency is of the last 1,000 answers of each tool since this server started",
    }
    return as_json(analysis_of(store).stats() | more)


# --- contradictions


@tool("Detect contradictions", manner=MANNER)
def detect_contradictions(
    store: EnhancedStore,
    similarityThreshold: Share = 0.85,
    minConfidenceDelta: Share = 0.1,
    sameTypeOnly: bool = False,
    notes: Notes = "",
) -> Reply[Contradictions]:
    """Entries that cannot all be right: two values for one thing, a claim and its denial, unlike duplicates."""
    analysis = analysis_of(store, notes)
    found = analysis.contradictions(similarityThreshold, minConfidenceDelta, same_type_only=sameTypeOnly)
    how = f"{_RULES}; similarity by {analysis.method}"
    return _answer(analysis, "contradictions", [each.data for each in found], how)


@tool("Resolve contradictions", writes=True, destructive=True, manner=MANNER)
def auto_resolve_contradictions(
    store: EnhancedStore,
    knowledge: Knowledge,
    caller: Caller,
    similarityThreshold: Share = 0.85,
    apply: Annotated[bool, about("false only shows what would be done")] = False,
) -> Reply[Resolution]:
    """Show which entry of each contradiction would supersede the other; apply=true writes it as one step."""
    analysis = analysis_of(store)
    decided = [each for each in analysis.contradictions(similarityThreshold) if each.verdict]
    version = knowledge.supersede(decided, **caller) if decided and apply else ""
    pairs = [each.data | {"loser": each.verdict[1].id} for each in decided if each.verdict]
    head = f"{len(pairs)} would be resolved. Nothing was written: apply=true does it, as one step that can be undone."
    if apply:
        head = f"Resolved {len(pairs)}." + (f" One step: undo {version} takes all of it back." if version else "")
    how = f"{_RULES}; the winner is edited by a person, else verified, else newer, else surer"
    return _answer(analysis, "resolved", pairs, how, head, applied=apply and bool(decided), version=version)


@tool("What was superseded", manner=MANNER)
def get_superseded_history(store: EnhancedStore, notes: Notes = "") -> Reply[SupersededEntries]:
    """Entries that no longer hold, with what took their place, when and why."""
    analysis = analysis_of(store, notes)
    return _answer(analysis, "superseded", analysis.superseded(), "read from the notes' headers")


# --- what they show together


@tool("Analyze patterns", manner=MANNER)
def analyze_patterns(store: EnhancedStore, notes: Notes = "") -> Reply[Patterns]:
    """What recurs, counts by type and tag, the last 7, 30 and 90 days, and confidence by type."""
    analysis = analysis_of(store, notes)
    found = analysis.patterns(date.today())  # noqa: DTZ011  (local, as notes are)
    how = "counted; recurring are those whose first 50 characters are the same"
    return _answer(analysis, "recurring", found.pop("recurring"), how, **found)


@tool("Generate insights", manner=MANNER)
def generate_insights(
    store: EnhancedStore, similarityThreshold: Share = 0.75, minClusterSize: Least = 2, notes: Notes = ""
) -> Reply[Insights]:
    """Themes, errors that come again, weak spots: counted, with the entries behind each."""
    analysis = analysis_of(store, notes)
    found = analysis.insights(similarityThreshold, minClusterSize)
    return _answer(analysis, "insights", found, f"counts, and clusters by {analysis.method}")


@tool("Detect antipatterns", manner=MANNER)
def detect_antipatterns(store: EnhancedStore, notes: Notes = "") -> Reply[Antipatterns]:
    """Duplicates, low confidence, missing tags, errors without a solution."""
    analysis = analysis_of(store, notes)
    return _answer(analysis, "antipatterns", analysis.antipatterns(), "counted")


@tool("Suggest tags", manner=MANNER)
def suggest_tags(store: EnhancedStore, similarityThreshold: Share = 0.75, notes: Notes = "") -> Reply[Suggestions]:
    """Tags for what belongs together. Writes nothing."""
    analysis = analysis_of(store, notes)
    how = f"words and tags of clusters of three and more, by {analysis.method}"
    return _answer(analysis, "suggestions", analysis.suggested_tags(similarityThreshold), how)


@tool("Cluster knowledge", manner=MANNER)
def cluster_knowledge(
    store: EnhancedStore,
    similarityThreshold: Share = 0.75,
    minClusterSize: Least = 2,
    maxClusters: Annotated[int, at_most(100), Field(ge=1)] = 10,
    notes: Notes = "",
) -> Reply[Clusters]:
    """Groups of entries about one thing, around the most read ones."""
    analysis = analysis_of(store, notes)
    found = analysis.clusters(similarityThreshold, minClusterSize)[:maxClusters]
    return _answer(analysis, "clusters", found, f"grown around the most read entries, by {analysis.method}")


# --- exports


@tool("Export as Markdown", manner=MANNER)
def export_markdown(store: EnhancedStore, knowledge: Knowledge) -> Reply[Export]:
    """Write all entries to one Markdown file, grouped by type."""
    return _exported(store, knowledge, "md")


@tool("Export the graph", manner=MANNER)
def export_graph(
    store: EnhancedStore,
    knowledge: Knowledge,
    form: Annotated[Literal["html", "json", "dot", "d3", "cytoscape"], also("format")] = "html",
) -> Reply[Export]:
    """Write entries and entities with their relations to a file: a page to look at, or data."""
    return _exported(store, knowledge, form)


def _exported(store: EnhancedStore, knowledge: Knowledge, form: str) -> Reply[Any]:
    """An export as a file in `.simplemem/exports/`, where neither a search nor Obsidian takes it for a note, and in the
    answer too where it is data of a size that a model can take."""
    from simplemem.kinds.learned.export import export_text

    store.bench.must_be_writable()
    text, count = export_text(store, form), len(knowledge.entries())
    data = text.encode("utf-8", "backslashreplace")
    name = f"knowledge-{form}.json" if form in ("d3", "cytoscape") else f"knowledge.{form}"
    path = store.bench.side(f"exports/{name}").replace(data)
    shown = text if form != "html" and len(text) <= _MOST_CHARACTERS else ""
    facts = {"path": str(path), "format": form, "entries": count, "bytes": len(data)}
    return Reply(render.answer(f"Exported {count} entries to {path}", shown), facts)


TOOLS: tuple[Tool, ...] = (
    *(get_stats, export_markdown, export_graph),
    *(detect_contradictions, auto_resolve_contradictions, get_superseded_history),
    *(analyze_patterns, generate_insights, detect_antipatterns, suggest_tags, cluster_knowledge),
)
