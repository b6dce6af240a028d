"""The toolset `insight`: what all entries show together. Names and defaults are those of self-improving-memory
(capabilities.md SI-12 to SI-22). No model is asked: everything is counted or compared, and each answer says by what.

Where the entries are few, or a person's own notes are meant, `notes` looks at ordinary notes in the same way.
"""

# ruff: noqa: N815  (the names of arguments are the contract's)
from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from simplemem.faces import render
from simplemem.faces.arguments import Arguments, at_most
from simplemem.faces.insight_answers import (
    MOST_SHOWN,
    cluster,
    contradiction,
    contradiction_lines,
    finding,
    finding_lines,
    more,
    pair,
    suggestion,
    verdict_lines,
)
from simplemem.faces.knowing import BRIEF, FAILURE, answer, brief, knowledge_in, named, pretty, timed
from simplemem.faces.schema import COUNT, FLAG, MAP, NUMBER, TEXT, TEXTS, Schema, record, several
from simplemem.faces.tool import Call, Reply, Tool

if TYPE_CHECKING:
    from simplemem.kinds.learned.looking import Look

_MOST_SHOWN_OF_A_FILE = 20_000  # characters
_RULES = "rules (slot, polarity, near duplicates)"
_NO_MODEL = "no language model was asked"


class NoArguments(Arguments):
    pass


class OfNotes(Arguments):
    notes: str = Field(default="", description='ordinary notes instead of the entries: a folder, "type:NAME" or "*"')


def looked_at(call: Call, notes: str) -> Look:
    from simplemem.kinds.learned.looking import look

    return look(call.store, notes)


# -- numbers


def get_stats(call: Call, _asked: NoArguments) -> Reply:
    from simplemem.kinds.graph.graph import graph_of
    from simplemem.kinds.learned.statistics import stats

    knowledge = knowledge_in(call)
    graph = graph_of(call.store).read()
    data = stats(knowledge.entries(), knowledge.access.all())
    data |= {
        "entities": sum(not entity.is_note for entity in graph.entities),
        "relations": len(graph.relations),
        "notes": call.store.state().notes,
        "latency": knowledge.latencies.shown(),
        "method": "counted; latency is of this server since it started",
    }
    return Reply(pretty(data), data)


# -- contradictions


class ContradictionArguments(OfNotes):
    similarityThreshold: Annotated[float, Field(ge=0, le=1)] = 0.85
    minConfidenceDelta: Annotated[float, Field(ge=0, le=1)] = 0.1
    sameTypeOnly: bool = False


def detect_contradictions(call: Call, asked: ContradictionArguments) -> Reply:
    look = looked_at(call, asked.notes)
    found = look.contradictions(asked.similarityThreshold, asked.minConfidenceDelta, same_type_only=asked.sameTypeOnly)
    winners = {pair(verdict.contradiction): verdict for verdict in look.verdicts(found[:MOST_SHOWN])}
    lines = [line for each in found[:MOST_SHOWN] for line in contradiction_lines(each, winners.get(pair(each)))]
    head = f"{render.counted(len(found), 'contradiction', 'contradictions')} among {len(look.entries)} {look.what}."
    head += more(len(found))
    data = [contradiction(each, winners.get(pair(each))) for each in found]
    return answer(head, lines, f"{_RULES}; similarity by {look.method}; {_NO_MODEL}", {"contradictions": data})


class ResolveArguments(Arguments):
    similarityThreshold: Annotated[float, Field(ge=0, le=1)] = 0.85
    apply: bool = Field(default=False, description="false only shows what would be done")


def auto_resolve_contradictions(call: Call, asked: ResolveArguments) -> Reply:
    look = looked_at(call, "")
    verdicts = look.verdicts(look.contradictions(asked.similarityThreshold))
    version = ""
    if verdicts and asked.apply:
        version = knowledge_in(call).supersede(verdicts, who=call.who, tool=call.tool)
    count = render.counted(len(verdicts), "contradiction", "contradictions")
    if asked.apply:
        head = f"Resolved {count}." + (f" One step: undo {version} takes all of it back." if version else "")
    else:
        head = f"{count} would be resolved. Nothing was written: apply=true does it, as one step that can be undone."
    lines = [line for verdict in verdicts[:MOST_SHOWN] for line in verdict_lines(verdict)]
    data = {
        "applied": asked.apply and bool(verdicts),
        "version": version,
        "resolved": [contradiction(each.contradiction, each) | {"loser": each.loser.id} for each in verdicts],
    }
    order = "the winner is edited by a person, else verified, else newer, else surer"
    return answer(head + more(len(verdicts)), lines, f"{_RULES}; {order}; {_NO_MODEL}", data)


def get_superseded_history(call: Call, asked: OfNotes) -> Reply:
    look = looked_at(call, asked.notes)
    gone = sorted((e for e in look.entries if e.is_superseded), key=lambda e: (e.superseded_at, e.name), reverse=True)
    by_name = {key: entry for entry in look.entries for key in (entry.name.rsplit("/", 1)[-1], entry.name)}
    data, lines = [], []
    for entry in gone:
        winner = by_name.get(entry.superseded_by)
        data.append(
            brief(entry)
            | {"confidence": entry.confidence, "at": entry.superseded_at, "reason": entry.superseded_reason}
            | {"winner": brief(winner) if winner is not None else None, "by": entry.superseded_by}
        )
        when = f" on {render.day(entry.superseded_at)}" if entry.superseded_at else ""
        why = f" ({render.line(entry.superseded_reason, 120)})" if entry.superseded_reason else ""
        by = named(winner) if winner is not None else render.line(entry.superseded_by, 120)
        lines += [f"- {named(entry)}", f"  - superseded{when} by {by}{why}"]
    head = f"{len(gone)} of {len(look.entries)} {look.what} are superseded.{more(len(gone))}"
    return answer(head, lines[: 2 * MOST_SHOWN], "read from the notes' headers", {"superseded": data})


# -- what they show together


def analyze_patterns(call: Call, asked: OfNotes) -> Reply:
    look = looked_at(call, asked.notes)
    found = look.patterns()
    lines = [f"- {len(each.entries)} x {each.type}: {render.line(each.says, 140)}" for each in found.recurring]
    for title, counts in (("Types", found.types), ("Tags", found.tags)):
        shown = ", ".join(f"{render.line(name, 60)} {count}" for name, count in list(counts.items())[:15])
        lines += [f"- {title}: {shown}"] if shown else []
    if found.confidence:
        lines.append("- Average confidence: " + ", ".join(f"{k} {v:.2f}" for k, v in found.confidence.items()))
    made = ", ".join(f"{count} in {days} days" for days, count in found.lately.items())
    head = f"{len(look.entries)} {look.what}: made {made}; {found.before} in the 30 days before the last 30: {found.trend}."
    data = {
        "recurring": [
            {
                "type": each.type,
                "says": each.says,
                "count": len(each.entries),
                "entries": [brief(e) for e in each.entries],
            }
            for each in found.recurring
        ],
        "types": dict(found.types),
        "tags": dict(found.tags),
        "lately": {str(days): count for days, count in found.lately.items()},
        "before": found.before,
        "trend": found.trend,
        "confidence": dict(found.confidence),
    }
    return answer(
        head,
        lines[:MOST_SHOWN],
        f"counted; recurring are those whose first 50 characters are the same; {_NO_MODEL}",
        data,
    )


class InsightArguments(OfNotes):
    similarityThreshold: Annotated[float, Field(ge=0, le=1)] = 0.75
    minClusterSize: Annotated[int, Field(ge=2)] = 2


def generate_insights(call: Call, asked: InsightArguments) -> Reply:
    look = looked_at(call, asked.notes)
    found = look.insights(asked.similarityThreshold, asked.minClusterSize)
    head = (
        f"{render.counted(len(found), 'finding', 'findings')} about {len(look.entries)} {look.what}.{more(len(found))}"
    )
    how = f"counts, and clusters by {look.method}; {_NO_MODEL}, and no conclusion is drawn beyond the counts"
    return answer(head, finding_lines(found), how, {"insights": list(map(finding, found))})


def detect_antipatterns(call: Call, asked: OfNotes) -> Reply:
    look = looked_at(call, asked.notes)
    found = look.antipatterns()
    head = f"{render.counted(len(found), 'habit', 'habits')} to look at among {len(look.entries)} {look.what}."
    return answer(head, finding_lines(found), f"counted; {_NO_MODEL}", {"antipatterns": list(map(finding, found))})


class TagArguments(OfNotes):
    similarityThreshold: Annotated[float, Field(ge=0, le=1)] = 0.75


def suggest_tags(call: Call, asked: TagArguments) -> Reply:
    look = looked_at(call, asked.notes)
    found = look.suggestions(asked.similarityThreshold)
    lines = []
    for each in found[:MOST_SHOWN]:
        known = "a tag already" if each.is_known else "a new tag"
        lines.append(f"- #{render.line(each.tag, 60)} ({known}; {each.having} of {each.of} alike have it)")
        lines += [f"  - {named(entry)}" for entry in each.entries[:5]]
    head = (
        f"{render.counted(len(found), 'tag', 'tags')} suggested for {look.what}.{more(len(found))} Nothing was written."
    )
    data = list(map(suggestion, found))
    how = f"words and tags of clusters of three and more, by {look.method}; {_NO_MODEL}"
    return answer(head, lines, how, {"suggestions": data})


class ClusterArguments(OfNotes):
    similarityThreshold: Annotated[float, Field(ge=0, le=1)] = 0.75
    minClusterSize: Annotated[int, Field(ge=2)] = 2
    maxClusters: Annotated[int, Field(ge=1), at_most(100)] = 10


def cluster_knowledge(call: Call, asked: ClusterArguments) -> Reply:
    look = looked_at(call, asked.notes)
    found = look.clusters(asked.similarityThreshold, asked.minClusterSize, asked.maxClusters)
    lines = []
    for each in found:
        lines.append(f"- {len(each.members)}: {render.line(', '.join(each.words), 100) or 'no common words'}")
        lines += [f"  - {named(entry)}" for entry in each.members[:8]]
        lines += [f"  - and {len(each.members) - 8} more"] if len(each.members) > 8 else []
    head = f"{render.counted(len(found), 'cluster', 'clusters')} among {len(look.entries)} {look.what}."
    how = f"grown around the most read entries, by {look.method}; {_NO_MODEL}"
    return answer(head, lines, how, {"clusters": list(map(cluster, found))})


_CONTRADICTION: Schema = record(
    ("winner", "why", "loser"),
    rule=TEXT,
    one=MAP,
    other=MAP,
    about=TEXT,
    similarity=NUMBER,
    winner=TEXT,
    why=TEXT,
    loser=TEXT,
)
_FINDING: Schema = record((), kind=TEXT, priority=TEXT, says=TEXT, entries=several(BRIEF), words=TEXTS, numbers=MAP)


def _reading(
    name: str, title: str, description: str, arguments: type[Arguments], run: Any, **properties: Schema
) -> Tool[Any]:
    return Tool(name, title, description, arguments, timed(run), record((), **properties, method=TEXT), failure=FAILURE)


class ExportArguments(Arguments):
    format: Literal["html", "json", "dot", "d3", "cytoscape"] = "html"


def export_markdown(call: Call, _asked: NoArguments) -> Reply:
    return _exported(call, "md")


def export_graph(call: Call, asked: ExportArguments) -> Reply:
    return _exported(call, asked.format)


def _exported(call: Call, form: str) -> Reply:
    """An export as a file, and where it is data of a size a model can take, in the answer too."""
    from simplemem.kinds.learned.exporting import export_text, file_name, write_export

    text = export_text(call.store, form)
    path = write_export(call.store, file_name(form), text)
    count = len(knowledge_in(call).entries())
    head = f"Exported {count} entries to {path}"
    shown = text if form != "html" and len(text) <= _MOST_SHOWN_OF_A_FILE else ""
    data = {"path": str(path), "format": form, "entries": count, "bytes": len(text.encode("utf-8", "replace"))}
    return Reply(render.answer(head, shown), data)


TOOLS: tuple[Tool[Any], ...] = (
    _reading(
        "get_stats",
        "Statistics",
        "Totals by type and confidence, what is verified, what is read most, and how long answers took.",
        NoArguments,
        get_stats,
        total=COUNT,
        by_type=MAP,
        by_confidence=MAP,
        verified=COUNT,
        superseded=COUNT,
        never_read=COUNT,
        most_accessed=several(MAP),
        entities=COUNT,
        relations=COUNT,
        notes=COUNT,
        latency=MAP,
    ),
    Tool(
        "export_markdown",
        "Export as Markdown",
        "Write all entries to one Markdown file, grouped by type.",
        NoArguments,
        timed(export_markdown),
        record((), path=TEXT, format=TEXT, entries=COUNT, bytes=COUNT),
        failure=FAILURE,
    ),
    Tool(
        "export_graph",
        "Export the graph",
        "Write entries and entities with their relations to a file: a page to look at, or data.",
        ExportArguments,
        timed(export_graph),
        record((), path=TEXT, format=TEXT, entries=COUNT, bytes=COUNT),
        failure=FAILURE,
    ),
    _reading(
        "detect_contradictions",
        "Detect contradictions",
        "Entries that cannot all be right: two values for one thing, a claim and its denial, unlike duplicates.",
        ContradictionArguments,
        detect_contradictions,
        contradictions=several(_CONTRADICTION),
    ),
    Tool(
        "auto_resolve_contradictions",
        "Resolve contradictions",
        "Show which entry of each contradiction would supersede the other; apply=true writes it as one step.",
        ResolveArguments,
        timed(auto_resolve_contradictions),
        record((), applied=FLAG, version=TEXT, resolved=several(_CONTRADICTION), method=TEXT),
        writes=True,
        destructive=True,
        failure=FAILURE,
    ),
    _reading(
        "get_superseded_history",
        "What was superseded",
        "Entries that no longer hold, with what took their place, when and why.",
        OfNotes,
        get_superseded_history,
        superseded=several(MAP),
    ),
    _reading(
        "analyze_patterns",
        "Analyze patterns",
        "What recurs, counts by type and tag, the last 7, 30 and 90 days, and confidence by type.",
        OfNotes,
        analyze_patterns,
        recurring=several(MAP),
        types=MAP,
        tags=MAP,
        lately=MAP,
        before=COUNT,
        trend=TEXT,
        confidence=MAP,
    ),
    _reading(
        "generate_insights",
        "Generate insights",
        "Themes, errors that come again, weak spots: counted, with the entries behind each.",
        InsightArguments,
        generate_insights,
        insights=several(_FINDING),
    ),
    _reading(
        "detect_antipatterns",
        "Detect antipatterns",
        "Duplicates, low confidence, missing tags, errors without a solution.",
        OfNotes,
        detect_antipatterns,
        antipatterns=several(_FINDING),
    ),
    _reading(
        "suggest_tags",
        "Suggest tags",
        "Tags for what belongs together. Writes nothing.",
        TagArguments,
        suggest_tags,
        suggestions=several(MAP),
    ),
    _reading(
        "cluster_knowledge",
        "Cluster knowledge",
        "Groups of entries about one thing, around the most read ones.",
        ClusterArguments,
        cluster_knowledge,
        clusters=several(record((), words=TEXTS, size=COUNT, entries=several(BRIEF))),
    ),
)
