"""The toolset `insight`: what all entries show together. Names and defaults are those of self-improving-memory
(capabilities.md SI-12 to SI-22). No model is asked: everything is counted or compared, and each answer says by what.

Where the entries are few, or a person's own notes are meant, `notes` looks at ordinary notes in the same way.
"""

# ruff: noqa: N815  (the names of arguments are the contract's)
from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from simplemem.tools import render
from simplemem.tools.arguments import Arguments, at_most
from simplemem.tools.knowing import BRIEF, FAILURE, answer, brief, knowledge_in, named, pretty, timed
from simplemem.tools.schema import COUNT, FLAG, MAP, NUMBER, TEXT, TEXTS, Schema, record, several
from simplemem.tools.tool import Call, Reply, Tool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simplemem.knowledge.clusters import Cluster
    from simplemem.knowledge.contradictions import Contradiction, Verdict
    from simplemem.knowledge.entries import Entry
    from simplemem.knowledge.insights import Finding
    from simplemem.knowledge.looking import Look

_MOST_SHOWN = 30
_RULES = "rules (slot, polarity, near duplicates)"
_NO_MODEL = "no language model was asked"


class NoArguments(Arguments):
    pass


class OfNotes(Arguments):
    notes: str = Field(default="", description='ordinary notes instead of the entries: a folder, "type:NAME" or "*"')


def looked_at(call: Call, notes: str) -> Look:
    from simplemem.knowledge.looking import look

    return look(call.store, notes)


# -- numbers


def get_stats(call: Call, _asked: NoArguments) -> Reply:
    from simplemem.graph.graph import graph_of
    from simplemem.knowledge.statistics import stats

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
    winners = {_pair(verdict.contradiction): verdict for verdict in look.verdicts(found[:_MOST_SHOWN])}
    lines = [line for each in found[:_MOST_SHOWN] for line in _contradiction_lines(each, winners.get(_pair(each)))]
    head = f"{render.counted(len(found), 'contradiction', 'contradictions')} among {len(look.entries)} {look.what}."
    head += _more(len(found))
    data = [_contradiction(each, winners.get(_pair(each))) for each in found]
    return answer(head, lines, f"{_RULES}; similarity by {look.method}; {_NO_MODEL}", {"contradictions": data})


def _pair(found: Contradiction) -> tuple[str, str]:
    return found.one.path, found.other.path


def _contradiction_lines(found: Contradiction, verdict: Verdict | None) -> list[str]:
    lines = [f"- **{found.rule}**" + (f" about *{render.line(found.about, 80)}*" if found.about else "")]
    for entry, said in ((found.one, found.said), (found.other, found.instead)):
        lines.append(f"  - [[{render.name_of(entry.name)}]]: {render.line(said, 200)}")
    if verdict is not None:
        lines.append(f"  - would win: [[{render.name_of(verdict.winner.name)}]], because {verdict.why}")
    return lines


def _contradiction(found: Contradiction, verdict: Verdict | None) -> dict[str, Any]:
    data = {
        "rule": found.rule,
        "one": brief(found.one) | {"said": found.said, "confidence": found.one.confidence},
        "other": brief(found.other) | {"said": found.instead, "confidence": found.other.confidence},
        "about": found.about,
        "similarity": found.similarity,
    }
    return data | {"winner": verdict.winner.id, "why": verdict.why} if verdict is not None else data


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
    lines = [line for verdict in verdicts[:_MOST_SHOWN] for line in _verdict_lines(verdict)]
    data = {
        "applied": asked.apply and bool(verdicts),
        "version": version,
        "resolved": [_contradiction(each.contradiction, each) | {"loser": each.loser.id} for each in verdicts],
    }
    order = "the winner is edited by a person, else verified, else newer, else surer"
    return answer(head + _more(len(verdicts)), lines, f"{_RULES}; {order}; {_NO_MODEL}", data)


def _verdict_lines(verdict: Verdict) -> list[str]:
    from simplemem.knowledge.keeping import less_sure

    loser = verdict.loser
    less = (
        f", confidence {loser.confidence:g} to {less_sure(loser.confidence):g}" if loser.confidence is not None else ""
    )
    return [
        f"- {verdict.contradiction.rule}: {named(verdict.winner)}",
        f"  - supersedes {named(loser)}{less}, because {verdict.why}",
    ]


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
    head = f"{len(gone)} of {len(look.entries)} {look.what} are superseded.{_more(len(gone))}"
    return answer(head, lines[: 2 * _MOST_SHOWN], "read from the notes' headers", {"superseded": data})


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
        lines[:_MOST_SHOWN],
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
        f"{render.counted(len(found), 'finding', 'findings')} about {len(look.entries)} {look.what}.{_more(len(found))}"
    )
    how = f"counts, and clusters by {look.method}; {_NO_MODEL}, and no conclusion is drawn beyond the counts"
    return answer(head, _finding_lines(found), how, {"insights": list(map(_finding, found))})


def detect_antipatterns(call: Call, asked: OfNotes) -> Reply:
    look = looked_at(call, asked.notes)
    found = look.antipatterns()
    head = f"{render.counted(len(found), 'habit', 'habits')} to look at among {len(look.entries)} {look.what}."
    return answer(head, _finding_lines(found), f"counted; {_NO_MODEL}", {"antipatterns": list(map(_finding, found))})


def _finding_lines(found: Sequence[Finding]) -> list[str]:
    lines = []
    for each in found[:_MOST_SHOWN]:
        lines.append(f"- {each.priority}: {render.line(each.says, 240)}")
        lines += [f"  - {named(entry)}" for entry in each.entries[:5]]
        lines += [f"  - and {len(each.entries) - 5} more"] if len(each.entries) > 5 else []
    return lines


def _finding(found: Finding) -> dict[str, Any]:
    return {
        "kind": found.kind,
        "priority": found.priority,
        "says": found.says,
        "entries": [brief(entry) for entry in found.entries],
        "words": list(found.words),
        "numbers": dict(found.numbers),
    }


class TagArguments(OfNotes):
    similarityThreshold: Annotated[float, Field(ge=0, le=1)] = 0.75


def suggest_tags(call: Call, asked: TagArguments) -> Reply:
    look = looked_at(call, asked.notes)
    found = look.suggestions(asked.similarityThreshold)
    lines = []
    for each in found[:_MOST_SHOWN]:
        known = "a tag already" if each.is_known else "a new tag"
        lines.append(f"- #{render.line(each.tag, 60)} ({known}; {each.having} of {each.of} alike have it)")
        lines += [f"  - {named(entry)}" for entry in each.entries[:5]]
    head = f"{render.counted(len(found), 'tag', 'tags')} suggested for {look.what}.{_more(len(found))} Nothing was written."
    data = [
        {
            "tag": each.tag,
            "known": each.is_known,
            "having": each.having,
            "of": each.of,
            "entries": [brief(entry) for entry in each.entries],
        }
        for each in found
    ]
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
    for cluster in found:
        lines.append(f"- {len(cluster.members)}: {render.line(', '.join(cluster.words), 100) or 'no common words'}")
        lines += [f"  - {named(entry)}" for entry in cluster.members[:8]]
        lines += [f"  - and {len(cluster.members) - 8} more"] if len(cluster.members) > 8 else []
    head = f"{render.counted(len(found), 'cluster', 'clusters')} among {len(look.entries)} {look.what}."
    how = f"grown around the most read entries, by {look.method}; {_NO_MODEL}"
    return answer(head, lines, how, {"clusters": list(map(_cluster, found))})


def _cluster(found: Cluster) -> dict[str, Any]:
    members: list[Entry] = list(found.members)
    return {"words": list(found.words), "size": len(members), "entries": [brief(entry) for entry in members]}


def _more(count: int) -> str:
    return f" The first {_MOST_SHOWN} are shown; the structured content has all." if count > _MOST_SHOWN else ""


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
