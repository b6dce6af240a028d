"""The tools that analyze lessons, resolve their contradictions, and export them.

No model is used, and each answer says how it was found.
"""

# ruff: noqa: N803  (the names of arguments are the contract's)
from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NotRequired, TypedDict

from pydantic import Field

from simplemem.features.lessons.analysis import Analysis, analysis_of
from simplemem.features.lessons.export import MARKDOWN, export_text
from simplemem.features.lessons.verdicts import supersede_losers
from simplemem.features.services import KnowledgeGraph, LessonService
from simplemem.profiles.self_improving.adapter import ADAPTER, Limit
from simplemem.tools import render
from simplemem.tools.arguments import Share, about, aliases
from simplemem.tools.tool import Caller, Data, Reply, Tool, as_json, tool

if TYPE_CHECKING:
    from simplemem.features.lessons.contradictions import Contradiction
    from simplemem.store import EnhancedStore

_MAX_FINDINGS: Final = 30
_MAX_CHARACTERS: Final = 20_000  # of an answer, and of an export that an answer contains
_ENTRY_LIMITS: Final = (_MAX_FINDINGS, 10, 3)  # of entries per finding, until the answer fits
_MAX_OFFERS: Final = 20  # pairs of an answer
_BY_RULES: Final = "rules (slot, polarity, near duplicates)"
_EXPORT_ENDINGS: Final = {"d3": "-d3.json", "cytoscape": "-cytoscape.json"}

Notes = Annotated[str, about("analyze ordinary notes, not entries: a folder, type:NAME or *")]
Threshold = Annotated[Share | None, about("default: clearly above what is usual among the entries")]
MinSize = Annotated[int, Field(ge=2)]
GraphFormat = Annotated[Literal["html", "json", "dot", "d3", "cytoscape"], aliases("format")]
Apply = Annotated[bool, about("false only previews")]


class Stats(TypedDict):
    """Totals of the lessons, and the response times of the tools."""

    total: int
    by_type: Data
    by_confidence: Data
    latency: Data
    method: str


class Contradictions(TypedDict):
    """Pairs of lessons that disagree, and near pairs that may, each with the reason."""

    contradictions: list[Data]
    offered: list[Data]
    method: str


class Resolution(TypedDict):
    """The contradictions that have a verdict, and whether and as which version it was written."""

    applied: bool
    version: str
    resolved: list[Data]
    method: str


class SupersededLessons(TypedDict):
    """Lessons that no longer hold."""

    superseded: list[Data]
    method: str


Patterns = TypedDict(
    "Patterns",
    {
        "recurring": list[Data],
        "types": Data,
        "tags": Data,
        "lately": Data,
        "trend": str,
    },
)
"""Recurring lessons and counts; `lately` counts the lessons of the last 7, 30 and 90 days."""


class Insights(TypedDict):
    """Themes, recurring errors and weak spots."""

    insights: list[Data]
    method: str


class Antipatterns(TypedDict):
    """Habits that make lessons less useful."""

    antipatterns: list[Data]
    method: str


class Suggestions(TypedDict):
    """Tags, each with the lessons that it suits."""

    suggestions: list[Data]
    method: str


class Clusters(TypedDict):
    """Groups of similar lessons."""

    clusters: list[Data]
    method: str


class Export(TypedDict):
    """A written file; `content` is its text if that is short."""

    path: str
    format: str
    entries: int
    bytes: int
    content: NotRequired[str]


def _answer(
    analysis: Analysis,
    key: str,
    findings: Sequence[Data],
    method: str,
    head: str = "",
    more: Data | None = None,
) -> Reply[Any]:
    """Return findings as a reply that marks quotations of notes and says how they were made.

    The value has the findings under `key`, then the fields of `more`, then the `method`. `head` is
    the first line of the text; if it is "", the number of findings in the `analysis` is. The first
    30 findings are contained. If the text is still too long, each names 10 lessons, or else 3.
    """
    if not head:
        count = f"{len(findings)}, in {len(analysis.lessons)} {analysis.description}"
        head = f"{key.capitalize()}: {count}."
    if len(findings) > _MAX_FINDINGS:
        head += f" The first {_MAX_FINDINGS} are shown."

    fields: Data = {}
    text = ""
    for max_entries in _ENTRY_LIMITS:
        shortened = [
            _with_fewer_entries(finding, max_entries) for finding in findings[:_MAX_FINDINGS]
        ]
        fields = {key: shortened} | (more or {})
        text = render.pretty(fields)
        if len(text) <= _MAX_CHARACTERS:
            break

    whole_method = f"{method}; no language model was used"
    fields["method"] = whole_method
    return Reply(render.answer(head, text, f"Method: {whole_method}."), fields)


def _with_fewer_entries(finding: Data, max_entries: int) -> Data:
    """Return a finding with the first `max_entries` of its `entries`, if it has this field."""
    if "entries" not in finding:
        return finding
    return finding | {"entries": finding["entries"][:max_entries]}


@tool("Statistics", adapter=ADAPTER)
def get_stats(store: EnhancedStore, lessons: LessonService, graph: KnowledgeGraph) -> Reply[Stats]:
    """Show totals by type and confidence, verified and most read entries, and response times."""
    whole_graph = graph.read()
    stats = analysis_of(store).stats()
    stats["entities"] = sum(not entity.is_note for entity in whole_graph.entities)
    stats["relations"] = len(whole_graph.relations)
    stats["notes"] = store.state().notes
    stats["latency"] = _latency(lessons)
    stats["method"] = (
        "counted; latency covers the last 1,000 answers of each tool since the server started"
    )
    return as_json(stats)


def _latency(lessons: LessonService) -> dict[str, Data]:
    """Return the `count` of calls and their response times in milliseconds, by the tool's name.

    The times are `median_ms`, `p95_ms` (95 % were not slower) and `max_ms`. Tools that were not
    called are absent.
    """
    latency: dict[str, Data] = {}
    for name, durations in sorted(lessons.durations.items()):
        times = [round(milliseconds, 2) for milliseconds in sorted(durations)]
        count = len(times)
        latency[name] = {
            "count": count,
            "median_ms": times[count // 2],
            "p95_ms": times[count * 95 // 100],
            "max_ms": times[-1],
        }
    return latency


@tool("Detect contradictions", adapter=ADAPTER)
def detect_contradictions(
    store: EnhancedStore,
    similarityThreshold: Share = 0.85,
    minConfidenceDelta: Share = 0.1,
    sameTypeOnly: bool = False,
    notes: Notes = "",
) -> Reply[Contradictions]:
    """Find entries that contradict each other: two values for one thing, a claim and its denial,
    near duplicates; `offered` are near pairs that may, with the reason.

    Judge the offered pairs, and pass your verdicts to review_contradictions."""
    analysis = analysis_of(store, notes)
    contradictions = analysis.contradictions(
        similarityThreshold,
        minConfidenceDelta,
        same_type_only=sameTypeOnly,
    )
    findings = [contradiction.data for contradiction in contradictions]
    offers = analysis.offers(contradictions, same_type_only=sameTypeOnly)
    method = f"{_BY_RULES}; similarity by {analysis.method}; offered pairs by rules"
    head = (
        f"Contradictions: {len(findings)}, in {len(analysis.lessons)} {analysis.description}."
        f" {len(offers)} more may contradict each other."
    )
    outcome: Data = {"offered": offers[:_MAX_OFFERS]}
    return _answer(analysis, "contradictions", findings, method, head, outcome)


@tool("Resolve contradictions", writes=True, destructive=True, adapter=ADAPTER)
def auto_resolve_contradictions(
    store: EnhancedStore,
    lessons: LessonService,
    caller: Caller,
    similarityThreshold: Share = 0.85,
    apply: Apply = False,
) -> Reply[Resolution]:
    """Show which entry of each contradiction would supersede the other; apply=true writes this as
    one change."""
    analysis = analysis_of(store)
    decided: list[Contradiction] = []
    findings: list[Data] = []
    for contradiction in analysis.contradictions(similarityThreshold):
        if contradiction.verdict is not None:
            decided.append(contradiction)
            findings.append(contradiction.data | {"loser": contradiction.verdict.loser.id})

    is_applied = apply and bool(decided)
    version = supersede_losers(lessons, decided, **caller) if is_applied else ""
    head = _resolution_head(len(decided), version, is_applied=apply)
    method = (
        f"{_BY_RULES}; an entry edited by a person wins, else a verified, newer or more confident"
        " one, in this order"
    )
    outcome: Data = {"applied": is_applied, "version": version}
    return _answer(analysis, "resolved", findings, method, head, outcome)


def _resolution_head(count: int, version: str, *, is_applied: bool) -> str:
    """Return the sentence that says how many contradictions are resolved, and how to go on.

    `is_applied` says whether the client asked to write that. `version` is that of the change, "" if
    nothing was written.
    """
    if not count:
        return "No contradiction can be resolved by rules."
    contradictions = render.format_count(count, "contradiction", "contradictions")
    if not is_applied:
        return (
            f"{contradictions} would be resolved. Nothing was written."
            " Pass apply=true to write this as one change."
        )
    if not version:
        return f"Resolved {contradictions}."
    return f"Resolved {contradictions}. To revert this, run `simplemem undo {version}`."


@tool("Superseded entries", adapter=ADAPTER)
def get_superseded_history(store: EnhancedStore, notes: Notes = "") -> Reply[SupersededLessons]:
    """List entries that no longer hold, with what replaced them, when and why."""
    analysis = analysis_of(store, notes)
    superseded = analysis.superseded()
    return _answer(analysis, "superseded", superseded, "read from the notes' frontmatter")


@tool("Analyze patterns", adapter=ADAPTER)
def analyze_patterns(store: EnhancedStore, notes: Notes = "") -> Reply[Patterns]:
    """Show recurring entries, counts by type, tag and the last 7, 30 and 90 days, and confidence
    by type."""
    analysis = analysis_of(store, notes)
    patterns = analysis.patterns(date.today())  # noqa: DTZ011  (local, as notes are)
    recurring = patterns.pop("recurring")
    method = "counted; entries are recurring if their first 50 characters are the same"
    return _answer(analysis, "recurring", recurring, method, more=patterns)


@tool("Generate insights", adapter=ADAPTER)
def generate_insights(
    store: EnhancedStore,
    similarityThreshold: Threshold = None,
    minClusterSize: MinSize = 2,
    notes: Notes = "",
) -> Reply[Insights]:
    """Report themes, recurring errors and weak spots, with counts and the entries behind each."""
    analysis = analysis_of(store, notes)
    findings = analysis.insights(similarityThreshold, minClusterSize)
    return _answer(analysis, "insights", findings, f"counts, and clusters by {analysis.method}")


@tool("Detect antipatterns", adapter=ADAPTER)
def detect_antipatterns(store: EnhancedStore, notes: Notes = "") -> Reply[Antipatterns]:
    """List duplicates, entries with low confidence or no tags, and errors without a solution."""
    analysis = analysis_of(store, notes)
    return _answer(analysis, "antipatterns", analysis.antipatterns(), "counted")


@tool("Suggest tags", adapter=ADAPTER)
def suggest_tags(
    store: EnhancedStore, similarityThreshold: Threshold = None, notes: Notes = ""
) -> Reply[Suggestions]:
    """Suggest tags for entries that belong together. Writes nothing."""
    analysis = analysis_of(store, notes)
    suggestions = analysis.suggested_tags(similarityThreshold)
    method = f"words and tags of clusters of three or more entries, by {analysis.method}"
    return _answer(analysis, "suggestions", suggestions, method)


@tool("Cluster knowledge", adapter=ADAPTER)
def cluster_knowledge(
    store: EnhancedStore,
    similarityThreshold: Threshold = None,
    minClusterSize: MinSize = 2,
    maxClusters: Limit = 10,
    notes: Notes = "",
) -> Reply[Clusters]:
    """Group entries by subject, around the most read ones."""
    analysis = analysis_of(store, notes)
    clusters = analysis.clusters(similarityThreshold, minClusterSize)[:maxClusters]
    method = f"clusters around the most read entries, by {analysis.method}"
    return _answer(analysis, "clusters", clusters, method)


@tool("Export as Markdown", adapter=ADAPTER)
def export_markdown(store: EnhancedStore, lessons: LessonService) -> Reply[Export]:
    """Write all entries to one Markdown file, grouped by type."""
    return _export(store, lessons, MARKDOWN)


@tool("Export the graph", adapter=ADAPTER)
def export_graph(
    store: EnhancedStore, lessons: LessonService, form: GraphFormat = "html"
) -> Reply[Export]:
    """Write entries, entities and their relations to a file: an HTML page, or data."""
    return _export(store, lessons, form)


def _export(store: EnhancedStore, lessons: LessonService, file_format: str) -> Reply[Any]:
    """Write all lessons in a format to a file in `.simplemem/exports/`, which contains no notes.

    The answer has the path and the size, and the text if it is short and no HTML page. Raises
    ReadOnly, and KeyError for an unknown format.
    """
    store.extension.must_be_writable()
    text = export_text(store, file_format)
    count = len(lessons.lessons())

    data = text.encode("utf-8", "backslashreplace")
    ending = _EXPORT_ENDINGS.get(file_format, f".{file_format}")
    path = store.extension.side_file(f"exports/knowledge{ending}").replace(data)

    fields: Data = {
        "path": str(path),
        "format": file_format,
        "entries": count,
        "bytes": len(data),
    }
    content = ""
    if file_format != "html" and len(text) <= _MAX_CHARACTERS:
        content = text
    if content:
        fields["content"] = content
    head = f"Exported {count} entries to {path} ({file_format}, {len(data)} bytes)"
    return Reply(render.answer(head, content), fields)


INSIGHT: tuple[Tool, ...] = (
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
