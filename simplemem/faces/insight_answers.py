"""Findings about entries as the tools and commands show them: as lines for a model, as values for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from simplemem.faces import render
from simplemem.faces.knowing import brief, named

if TYPE_CHECKING:
    from simplemem.kinds.learned.clusters import Cluster, Suggestion
    from simplemem.kinds.learned.contradictions import Contradiction, Verdict
    from simplemem.kinds.learned.insights import Finding

MOST_SHOWN = 30


def pair(found: Contradiction) -> tuple[str, str]:
    return found.one.path, found.other.path


def contradiction_lines(found: Contradiction, verdict: Verdict | None) -> list[str]:
    lines = [f"- **{found.rule}**" + (f" about *{render.line(found.about, 80)}*" if found.about else "")]
    for entry, said in ((found.one, found.said), (found.other, found.instead)):
        lines.append(f"  - [[{render.name_of(entry.name)}]]: {render.line(said, 200)}")
    if verdict is not None:
        lines.append(f"  - would win: [[{render.name_of(verdict.winner.name)}]], because {verdict.why}")
    return lines


def contradiction(found: Contradiction, verdict: Verdict | None) -> dict[str, Any]:
    data = {
        "rule": found.rule,
        "one": brief(found.one) | {"said": found.said, "confidence": found.one.confidence},
        "other": brief(found.other) | {"said": found.instead, "confidence": found.other.confidence},
        "about": found.about,
        "similarity": found.similarity,
    }
    return data | {"winner": verdict.winner.id, "why": verdict.why} if verdict is not None else data


def verdict_lines(verdict: Verdict) -> list[str]:
    from simplemem.kinds.learned.keeping import less_sure

    loser = verdict.loser
    less = (
        f", confidence {loser.confidence:g} to {less_sure(loser.confidence):g}" if loser.confidence is not None else ""
    )
    return [
        f"- {verdict.contradiction.rule}: {named(verdict.winner)}",
        f"  - supersedes {named(loser)}{less}, because {verdict.why}",
    ]


def finding_lines(found: Sequence[Finding]) -> list[str]:
    lines = []
    for each in found[:MOST_SHOWN]:
        lines.append(f"- {each.priority}: {render.line(each.says, 240)}")
        lines += [f"  - {named(entry)}" for entry in each.entries[:5]]
        lines += [f"  - and {len(each.entries) - 5} more"] if len(each.entries) > 5 else []
    return lines


def finding(found: Finding) -> dict[str, Any]:
    return {
        "kind": found.kind,
        "priority": found.priority,
        "says": found.says,
        "entries": [brief(entry) for entry in found.entries],
        "words": list(found.words),
        "numbers": dict(found.numbers),
    }


def cluster(found: Cluster) -> dict[str, Any]:
    members = [brief(entry) for entry in found.members]
    return {"words": list(found.words), "size": len(members), "entries": members}


def more(count: int) -> str:
    return f" The first {MOST_SHOWN} are shown; the structured content has all." if count > MOST_SHOWN else ""


def suggestion(found: Suggestion) -> dict[str, Any]:
    return {
        "tag": found.tag,
        "known": found.is_known,
        "having": found.having,
        "of": found.of,
        "entries": [brief(entry) for entry in found.entries],
    }
