"""What the commands of knowledge print: an entry, a hit, an analysis; for people in lines, for programs as values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from simplemem.cli import output
from simplemem.kinds.learned.access import NEVER, Read
from simplemem.kinds.learned.entries import Entry

if TYPE_CHECKING:
    from rich.text import Text

    from simplemem.kinds.learned.clusters import Cluster, Suggestion
    from simplemem.kinds.learned.contradictions import Contradiction
    from simplemem.kinds.learned.insights import Finding, Patterns
    from simplemem.kinds.learned.keeping import Hit
    from simplemem.kinds.learned.looking import Look

LEVEL_STYLES: Final = {"error": "bold red", "warning": "yellow", "note": "dim"}
_STYLES: Final = {"error": "red", "solution": "green", "decision": "magenta", "pattern": "blue", "insight": "yellow"}
_PRIORITIES: Final = {"critical": "bold red", "high": "yellow", "medium": "", "low": "dim"}
_UNSURE: Final = 0.5
_MOST: Final = 10

Related = Mapping[str, Sequence[tuple[str, Entry]]]


def as_value(entry: Entry, read: Mapping[str, Read], related: Related) -> dict[str, Any]:
    """An entry for a program: what the tools show of it."""
    from simplemem.faces.knowing import entry_shown

    ties = related.get(entry.path, ())
    relations = [{"relationship": words, "id": other.id, "name": other.name} for words, other in ties]
    return entry_shown(entry, read.get(entry.id, NEVER), [other for _, other in ties]) | {"relations": relations}


def entry_row(entry: Entry) -> list[Text]:
    said = f"{entry.headline}{' (superseded)' if entry.is_superseded else ''}"
    return [
        output.styled((entry.id[:8], "cyan")),
        output.styled((entry.type, _STYLES.get(entry.type, ""))),
        output.styled((_sure(entry), "dim")),
        output.styled((said, "dim" if entry.is_superseded else "")),
        output.styled((output.tags_shown(entry.tags), "green")),
    ]


def _sure(entry: Entry) -> str:
    return ("?" if entry.confidence is None else f"{entry.confidence:.2f}") + (" ✓" if entry.verified else "")


def print_hit(hit: Hit, asked: str) -> None:
    entry = hit.entry
    output.say(
        (entry.id[:8], "cyan"), "  ", (entry.type, _STYLES.get(entry.type, "")), (f"  {_sure(entry)}", "dim"),
        f"  {hit.score:.2f}", ("  superseded" if entry.is_superseded else "", "yellow"),
    )  # fmt: skip
    text = output.with_words_bold(hit.snippet or entry.headline, output.words_asked(asked))
    output.say_indented(text, 2, output.console())


def print_entry(entry: Entry, read: Mapping[str, Read], related: Related) -> None:
    count = read.get(entry.id, NEVER)
    output.say((entry.type, f"bold {_STYLES.get(entry.type, '')}".strip()), f"  {entry.id}")
    facts = [
        f"confidence {_sure(entry)}",
        f"made {output.day(entry.created)}",
        f"read {count.count} time{'' if count.count == 1 else 's'}",
    ]
    output.say((" · ".join(facts), "dim"), ("  " + output.tags_shown(entry.tags), "green"))
    if entry.is_superseded:
        output.say((f"superseded by {entry.superseded_by} {entry.superseded_reason}".strip(), "yellow"))
    output.say("")
    output.say(entry.content)
    if entry.context:
        output.say("")
        output.say(("Context: ", "bold"), entry.context)
    for words, other in related.get(entry.path, ()):
        output.say((f"  {words} ", "dim"), (other.id[:8], "cyan"), f" {other.headline}")
    for path, ties in related.items():
        for words, other in ties:
            if other.path == entry.path and path != entry.path:
                output.say(("  from ", "dim"), (path.removesuffix(".md"), "cyan"), (f" ({words})", "dim"))


# -- an analysis


@dataclass(frozen=True)
class Analysis:
    """Everything that `analyze` looks at."""

    look: Look
    unsure: list[Entry]
    unverified: list[Entry]
    never_read: list[Entry]
    superseded: list[Entry]
    contradictions: list[Contradiction]
    patterns: Patterns
    clusters: list[Cluster]
    suggestions: list[Suggestion]
    insights: list[Finding]
    antipatterns: list[Finding]

    def as_value(self) -> dict[str, Any]:
        from simplemem.faces.insight_answers import cluster, contradiction, finding, suggestion
        from simplemem.faces.knowing import brief

        return {
            "looked_at": {"what": self.look.what, "count": len(self.look.entries)},
            "low_confidence": list(map(brief, self.unsure)),
            "unverified": list(map(brief, self.unverified)),
            "never_read": list(map(brief, self.never_read)),
            "superseded": [brief(entry) | {"by": entry.superseded_by} for entry in self.superseded],
            "contradictions": [contradiction(each, None) for each in self.contradictions],
            "recurring": [{"says": each.says, "count": len(each.entries)} for each in self.patterns.recurring],
            "trend": self.patterns.trend,
            "clusters": list(map(cluster, self.clusters)),
            "suggested_tags": list(map(suggestion, self.suggestions)),
            "insights": list(map(finding, self.insights)),
            "antipatterns": list(map(finding, self.antipatterns)),
            "method": self.look.method,
        }


def analysis(look: Look, threshold: float) -> Analysis:
    """Look at everything."""
    standing = [entry for entry in look.entries if not entry.is_superseded]
    known = [entry for entry in standing if entry.is_knowledge]
    return Analysis(
        look=look,
        unsure=[entry for entry in standing if entry.confidence is not None and entry.confidence < _UNSURE],
        unverified=[entry for entry in known if not entry.verified],
        never_read=[entry for entry in known if not look.read.get(entry.id, NEVER).count],
        superseded=[entry for entry in look.entries if entry.is_superseded],
        contradictions=look.contradictions(),
        patterns=look.patterns(),
        clusters=look.clusters(threshold),
        suggestions=look.suggestions(threshold),
        insights=look.insights(threshold),
        antipatterns=look.antipatterns(),
    )


def print_analysis(found: Analysis) -> None:
    output.say((f"{len(found.look.entries)} {found.look.what}", "bold"), (f", compared by {found.look.method}", "dim"))
    for title, some in (
        ("Confidence below 0.5", found.unsure),
        ("Not verified", found.unverified),
        ("Never read", found.never_read),
    ):
        _print_entries(title, some)
    if found.superseded:
        output.say((f"\nSuperseded ({len(found.superseded)})", "bold"))
    for gone in found.superseded[:_MOST]:
        output.say(
            "  ", (gone.name, "cyan"), f" by {output.one_line(gone.superseded_by) or 'something it does not name'}"
        )
    if found.contradictions:
        output.say((f"\nContradictions ({len(found.contradictions)})", "bold"))
    for each in found.contradictions[:_MOST]:
        output.say((f"  {each.rule}", "yellow"), (f"  {each.about}" if each.about else "", "dim"))
        output.say("    ", (each.one.name, "cyan"), f": {output.one_line(each.said)}")
        output.say("    ", (each.other.name, "cyan"), f": {output.one_line(each.instead)}")
    if found.patterns.recurring:
        output.say((f"\nRecurring ({len(found.patterns.recurring)})", "bold"))
    for again in found.patterns.recurring[:_MOST]:
        output.say(f"  {len(again.entries)} x ", (again.type, "dim"), f" {again.says}")
    _print_clusters(found.clusters)
    if found.suggestions:
        output.say((f"\nTags to consider ({len(found.suggestions)})", "bold"))
    for each_tag in found.suggestions[:_MOST]:
        names = ", ".join(entry.name for entry in each_tag.entries[:3])
        output.say("  ", (f"#{each_tag.tag}", "green"), (f"  for {names}", "dim"))
    findings = [each for each in found.insights if each.kind not in ("group", "theme")] + found.antipatterns
    if findings:
        output.say((f"\nTo look at ({len(findings)})", "bold"))
    for each_finding in findings:
        output.say((f"  {each_finding.priority}: ", _PRIORITIES[each_finding.priority]), each_finding.says)


def _print_entries(title: str, some: Sequence[Entry]) -> None:
    if not some:
        return
    output.say((f"\n{title} ({len(some)})", "bold"))
    output.print_table((entry_row(entry) for entry in some[:_MOST]), gives_way=3)


def _print_clusters(found: Sequence[Cluster]) -> None:
    if found:
        output.say((f"\nBelong together ({len(found)})", "bold"))
    for each in found[:_MOST]:
        output.say(f"  {len(each.members)}: ", (", ".join(each.words), "bold"))
        output.say(("    " + ", ".join(entry.name for entry in each.members[:5]), "dim"))
