"""The analyses of self-improving-memory (capabilities.md SI-12 to SI-22): what all entries show together. No model is
asked: everything is counted or compared, and each answer says by what.

Where the entries are few, or a person's own notes are meant, `notes` looks at ordinary notes in the same way.
"""

# ruff: noqa: N803  (the names of arguments are the contract's)
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, NotRequired, TypedDict

from pydantic import Field

from simplemem.faces import render
from simplemem.faces.arguments import Share, about, also, at_most
from simplemem.faces.face import Caller, Reply, Tool, tool
from simplemem.faces.self_improving import MANNER, as_json

if TYPE_CHECKING:
    from simplemem.kinds.graph.graph import KnowledgeGraph
    from simplemem.kinds.learned.analysis import Analysis, Contradiction, TagSuggestion, Theme, Verdict
    from simplemem.kinds.learned.counts import EntryFinding
    from simplemem.kinds.learned.entry import KnowledgeEntry
    from simplemem.kinds.learned.knowledge import Knowledge
    from simplemem.store import EnhancedStore

_MOST = 30
_MOST_OF_A_FILE = 20_000  # characters
_RULES = "rules (slot, polarity, near duplicates)"
_NO_MODEL = "no language model was asked"

Notes = Annotated[str, about('ordinary notes instead of the entries: a folder, "type:NAME" or "*"')]
Form = Literal["html", "json", "dot", "d3", "cytoscape"]
Least = Annotated[int, Field(ge=2)]


Brief = TypedDict("Brief", {"id": str, "name": str, "type": str, "says": str})


class Pair(TypedDict):
    rule: str
    one: dict[str, Any]
    other: dict[str, Any]
    about: str
    similarity: float
    winner: NotRequired[str]
    why: NotRequired[str]
    loser: NotRequired[str]


class FindingOut(TypedDict):
    kind: str
    priority: str
    says: str
    entries: list[Brief]
    words: list[str]
    numbers: dict[str, float]


def _look(store: EnhancedStore, notes: str) -> Analysis:
    from simplemem.kinds.learned.analysis import analysis_of

    return analysis_of(store, notes)


# --- numbers


class Stats(TypedDict):
    total: int
    by_type: dict[str, int]
    by_confidence: dict[str, int]
    verified: int
    superseded: int
    never_read: int
    most_accessed: list[dict[str, Any]]
    entities: int
    relations: int
    notes: int
    latency: dict[str, Any]
    method: str


@tool("Statistics", manner=MANNER)
def get_stats(store: EnhancedStore, knowledge: Knowledge, graph: KnowledgeGraph) -> Reply[Stats]:
    """Totals by type and confidence, what is verified, what is read most, and how long answers took."""
    from simplemem.kinds.learned.counts import stats

    whole = graph.read()
    return as_json(
        stats(knowledge.entries(), knowledge.reads())
        | {
            "entities": sum(not entity.is_note for entity in whole.entities),
            "relations": len(whole.relations),
            "notes": store.state().notes,
            "latency": knowledge.latencies.shown(),
            "method": "counted; latency is of this server since it started",
        }
    )


# --- contradictions


Contradictions = TypedDict("Contradictions", {"contradictions": list[Pair], "method": str})


@tool("Detect contradictions", manner=MANNER)
def detect_contradictions(
    store: EnhancedStore,
    similarityThreshold: Share = 0.85,
    minConfidenceDelta: Share = 0.1,
    sameTypeOnly: bool = False,
    notes: Notes = "",
) -> Reply[Contradictions]:
    """Entries that cannot all be right: two values for one thing, a claim and its denial, unlike duplicates."""
    look = _look(store, notes)
    found = look.contradictions(similarityThreshold, minConfidenceDelta, same_type_only=sameTypeOnly)
    winners = {_ends(verdict.contradiction): verdict for verdict in look.verdicts(found[:_MOST])}
    pairs = [contradiction(each, winners.get(_ends(each))) for each in found]
    head = f"{render.counted(len(found), 'contradiction', 'contradictions')} among {len(look.entries)} {look.what}."
    return _answer(head, "contradictions", pairs, f"{_RULES}; similarity by {look.method}; {_NO_MODEL}")


Resolution = TypedDict("Resolution", {"applied": bool, "version": str, "resolved": list[Pair], "method": str})


@tool("Resolve contradictions", writes=True, destructive=True, manner=MANNER)
def auto_resolve_contradictions(
    store: EnhancedStore,
    knowledge: Knowledge,
    caller: Caller,
    similarityThreshold: Share = 0.85,
    apply: Annotated[bool, about("false only shows what would be done")] = False,
) -> Reply[Resolution]:
    """Show which entry of each contradiction would supersede the other; apply=true writes it as one step."""
    look = _look(store, "")
    verdicts = look.verdicts(look.contradictions(similarityThreshold))
    version = knowledge.supersede(verdicts, **caller) if verdicts and apply else ""
    count = render.counted(len(verdicts), "contradiction", "contradictions")
    head = f"{count} would be resolved. Nothing was written: apply=true does it, as one step that can be undone."
    if apply:
        head = f"Resolved {count}." + (f" One step: undo {version} takes all of it back." if version else "")
    pairs = [contradiction(each.contradiction, each) | {"loser": each.loser.id} for each in verdicts]
    order = "the winner is edited by a person, else verified, else newer, else surer"
    more = {"applied": apply and bool(verdicts), "version": version}
    return _answer(head, "resolved", pairs, f"{_RULES}; {order}; {_NO_MODEL}", more)


SupersededEntries = TypedDict("SupersededEntries", {"superseded": list[dict[str, Any]], "method": str})


@tool("What was superseded", manner=MANNER)
def get_superseded_history(store: EnhancedStore, notes: Notes = "") -> Reply[SupersededEntries]:
    """Entries that no longer hold, with what took their place, when and why."""
    look = _look(store, notes)
    gone = sorted((e for e in look.entries if e.is_superseded), key=lambda e: (e.superseded_at, e.name), reverse=True)
    by_name = {key: entry for entry in look.entries for key in (entry.name.rsplit("/", 1)[-1], entry.name)}
    shown = []
    for entry in gone:
        winner = by_name.get(entry.superseded_by)
        facts = {"confidence": entry.confidence, "at": entry.superseded_at, "reason": entry.superseded_reason}
        shown.append(brief(entry) | facts | {"winner": brief(winner) if winner else None, "by": entry.superseded_by})
    head = f"{len(gone)} of {len(look.entries)} {look.what} are superseded."
    return _answer(head, "superseded", shown, "read from the notes' headers")


# --- what they show together


class PatternsOut(TypedDict):
    recurring: list[dict[str, Any]]
    types: dict[str, int]
    tags: dict[str, int]
    lately: dict[str, int]
    before: int
    trend: str
    confidence: dict[str, float]
    method: str


@tool("Analyze patterns", manner=MANNER)
def analyze_patterns(store: EnhancedStore, notes: Notes = "") -> Reply[PatternsOut]:
    """What recurs, counts by type and tag, the last 7, 30 and 90 days, and confidence by type."""
    look = _look(store, notes)
    found = look.patterns()
    recurring = [
        {"type": some[0].type, "says": some[0].headline, "count": len(some), "entries": list(map(brief, some))}
        for some in found.recurring
    ]
    counts = {
        "types": dict(found.types),
        "tags": dict(found.tags),
        "lately": {str(days): count for days, count in found.lately.items()},
        "before": found.before,
        "trend": found.trend,
        "confidence": dict(found.confidence),
    }
    made = ", ".join(f"{count} in {days} days" for days, count in found.lately.items())
    head = f"{len(look.entries)} {look.what}: made {made}; {found.before} in the 30 days before the last 30: {found.trend}."
    how = f"counted; recurring are those whose first 50 characters are the same; {_NO_MODEL}"
    return _answer(head, "recurring", recurring, how, counts)


InsightsOut = TypedDict("InsightsOut", {"insights": list[FindingOut], "method": str})


@tool("Generate insights", manner=MANNER)
def generate_insights(
    store: EnhancedStore, similarityThreshold: Share = 0.75, minClusterSize: Least = 2, notes: Notes = ""
) -> Reply[InsightsOut]:
    """Themes, errors that come again, weak spots: counted, with the entries behind each."""
    look = _look(store, notes)
    found = look.insights(similarityThreshold, minClusterSize)
    head = f"{render.counted(len(found), 'finding', 'findings')} about {len(look.entries)} {look.what}."
    how = f"counts, and clusters by {look.method}; {_NO_MODEL}, and no conclusion is drawn beyond the counts"
    return _answer(head, "insights", list(map(finding, found)), how)


Antipatterns = TypedDict("Antipatterns", {"antipatterns": list[FindingOut], "method": str})


@tool("Detect antipatterns", manner=MANNER)
def detect_antipatterns(store: EnhancedStore, notes: Notes = "") -> Reply[Antipatterns]:
    """Duplicates, low confidence, missing tags, errors without a solution."""
    look = _look(store, notes)
    found = look.antipatterns()
    head = f"{render.counted(len(found), 'habit', 'habits')} to look at among {len(look.entries)} {look.what}."
    return _answer(head, "antipatterns", list(map(finding, found)), f"counted; {_NO_MODEL}")


Suggestions = TypedDict("Suggestions", {"suggestions": list[dict[str, Any]], "method": str})


@tool("Suggest tags", manner=MANNER)
def suggest_tags(store: EnhancedStore, similarityThreshold: Share = 0.75, notes: Notes = "") -> Reply[Suggestions]:
    """Tags for what belongs together. Writes nothing."""
    look = _look(store, notes)
    found = look.suggestions(similarityThreshold)
    head = f"{render.counted(len(found), 'tag', 'tags')} suggested for {look.what}. Nothing was written."
    how = f"words and tags of clusters of three and more, by {look.method}; {_NO_MODEL}"
    return _answer(head, "suggestions", list(map(suggestion, found)), how)


ClusterOut = TypedDict("ClusterOut", {"words": list[str], "size": int, "entries": list[Brief]})
Clusters = TypedDict("Clusters", {"clusters": list[ClusterOut], "method": str})


@tool("Cluster knowledge", manner=MANNER)
def cluster_knowledge(
    store: EnhancedStore,
    similarityThreshold: Share = 0.75,
    minClusterSize: Least = 2,
    maxClusters: Annotated[int, at_most(100), Field(ge=1)] = 10,
    notes: Notes = "",
) -> Reply[Clusters]:
    """Groups of entries about one thing, around the most read ones."""
    look = _look(store, notes)
    found = look.clusters(similarityThreshold, minClusterSize, maxClusters)
    head = f"{render.counted(len(found), 'cluster', 'clusters')} among {len(look.entries)} {look.what}."
    how = f"grown around the most read entries, by {look.method}; {_NO_MODEL}"
    return _answer(head, "clusters", list(map(cluster, found)), how)


# --- exports


Export = TypedDict("Export", {"path": str, "format": str, "entries": int, "bytes": int})


@tool("Export as Markdown", manner=MANNER)
def export_markdown(store: EnhancedStore, knowledge: Knowledge) -> Reply[Export]:
    """Write all entries to one Markdown file, grouped by type."""
    return _exported(store, knowledge, "md")


@tool("Export the graph", manner=MANNER)
def export_graph(
    store: EnhancedStore, knowledge: Knowledge, form: Annotated[Form, also("format")] = "html"
) -> Reply[Export]:
    """Write entries and entities with their relations to a file: a page to look at, or data."""
    return _exported(store, knowledge, form)


def _exported(store: EnhancedStore, knowledge: Knowledge, form: str) -> Reply[Export]:
    """An export as a file, and where it is data of a size a model can take, in the answer too."""
    from simplemem.kinds.learned.export import export_text, write_export

    text = export_text(store, form)
    path = write_export(store, form, text)
    count = len(knowledge.entries())
    shown = text if form != "html" and len(text) <= _MOST_OF_A_FILE else ""
    data: Any = {"path": str(path), "format": form, "entries": count, "bytes": len(text.encode("utf-8", "replace"))}
    return Reply(render.answer(f"Exported {count} entries to {path}", shown), data)


# --- findings as values, and as lines


def brief(entry: KnowledgeEntry) -> dict[str, Any]:
    """An entry as it is named in a finding."""
    return {"id": entry.id, "name": entry.name, "type": entry.type, "says": entry.headline}


def contradiction(found: Contradiction, verdict: Verdict | None) -> dict[str, Any]:
    data = {
        "rule": found.rule,
        "one": brief(found.one) | {"said": found.said, "confidence": found.one.confidence},
        "other": brief(found.other) | {"said": found.instead, "confidence": found.other.confidence},
        "about": found.about,
        "similarity": found.similarity,
    }
    return data | ({"winner": verdict.winner.id, "why": verdict.why} if verdict is not None else {})


def finding(found: EntryFinding) -> dict[str, Any]:
    return {
        "kind": found.kind,
        "priority": found.priority,
        "says": found.says,
        "entries": [brief(entry) for entry in found.entries],
        "words": list(found.words),
        "numbers": dict(found.numbers),
    }


def cluster(found: Theme) -> dict[str, Any]:
    members = [brief(entry) for entry in found.members]
    return {"words": list(found.words), "size": len(members), "entries": members}


def suggestion(found: TagSuggestion) -> dict[str, Any]:
    entries = [brief(entry) for entry in found.entries]
    return {"tag": found.tag, "known": found.is_known, "having": found.having, "of": found.of, "entries": entries}


def _ends(found: Contradiction) -> tuple[str, str]:
    return found.one.path, found.other.path


def _answer(
    head: str, key: str, found: Sequence[Mapping[str, Any]], how: str, more: Mapping[str, Any] | None = None
) -> Reply[Any]:
    """An answer that quotes notes between marks, and says how it was found."""
    if len(found) > _MOST:
        head += f" The first {_MOST} are shown; the structured content has all."
    data = {key: found, **(more or {})}
    shown = render.pretty(data | {key: found[:_MOST]})
    return Reply(render.answer(head, shown, f"Method: {how}."), data | {"method": how})


TOOLS: tuple[Tool, ...] = (
    get_stats,
    export_markdown,
    export_graph,
    detect_contradictions,
    auto_resolve_contradictions,
    get_superseded_history,
    analyze_patterns,
    generate_insights,
    detect_antipatterns,
    suggest_tags,
    cluster_knowledge,
)
