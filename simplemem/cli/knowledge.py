"""The commands `lessons stats`, `list`, `search`, `show`, `export` and `analyze`, which need no server."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from simplemem.cli.command import Answer, command, opened
from simplemem.cli.options import Group, Query, VaultOption, argument, limit_option, option
from simplemem.cli.output import OPTIONAL, SHRINKS, WHOLE, Lines, labelled, one_line, tags_shown
from simplemem.features.lessons import TYPES
from simplemem.note.words import format_count

if TYPE_CHECKING:
    from simplemem.features.lessons.knowledge import Knowledge
    from simplemem.store import EnhancedStore

commands = typer.Typer()
_lessons = typer.Typer(cls=Group, no_args_is_help=True, rich_markup_mode="rich")
_HELP = (
    "Lessons from agents: errors, solutions, decisions and more.\n\n"
    "Each error, solution, decision, pattern and insight is a note in `knowledge/`."
)
commands.add_typer(_lessons, name="lessons", help=_HELP, rich_help_panel="Collections")

EntryType = StrEnum("EntryType", TYPES)  # type: ignore[misc]
Form = StrEnum("Form", "md html json dot")
ConfidenceOption = Annotated[
    float,
    option("--min-confidence", "0..1", "Only lessons with at least this confidence.", min=0, max=1),
]
_COLUMNS = (WHOLE, WHOLE, OPTIONAL, SHRINKS, SHRINKS)
LimitOption = Annotated[int, limit_option("The maximum number of lessons.")]


def vault_of(named: Path | None) -> Path | None:
    """What is named, else the folder of self-improving-memory; None leaves it to the rules of all commands."""
    if named is not None or os.environ.get("SIMPLEMEM_VAULT"):
        return named
    if path := os.environ.get("MEMORY_STORAGE_PATH"):
        return Path(path).expanduser()
    here = Path(".claude-memory")
    return here if here.is_dir() else None


@contextmanager
def _opened(
    vault: Path | None, *, embed: bool = False
) -> Iterator[tuple[EnhancedStore, Knowledge]]:
    from simplemem.features.lessons.knowledge import knowledge_of

    with opened(vault_of(vault), embed=embed) as store:
        yield store, knowledge_of(store)


def _rows(entries: Iterable[Mapping[str, Any]]) -> Lines:
    """Entries as a table."""
    rows = Lines()
    for entry in entries:
        sure = "?" if entry["confidence"] is None else f"{entry['confidence']:.2f}"
        said = one_line(entry["content"])[:120] + (" (superseded)" if "status" in entry else "")
        tags = (tags_shown(entry["tags"]), "green")
        rows.append([(entry["id"][:8], "cyan"), entry["type"], (sure, "dim"), said, tags])
    return rows


@command(_lessons)
def stats(vault: VaultOption = None) -> Answer:
    """Show the number of lessons of each type, their confidence, and which are read most.

    $ simplemem lessons stats --json"""
    from simplemem.features.lessons.analysis import analysis_of

    with _opened(vault) as (store, _):
        facts = analysis_of(store).stats()
    return Answer(facts, labelled=labelled(facts))


@command(_lessons, name="list")
def list_entries(
    kind: Annotated[EntryType | None, argument("TYPE", "Only lessons of this type.")] = None,
    min_confidence: ConfidenceOption = 0.0,
    limit: LimitOption = 50,
    vault: VaultOption = None,
) -> Answer:
    """List lessons, newest first.

    $ simplemem lessons list error --min-confidence 0.8"""
    with _opened(vault) as (_, knowledge):
        entries = [e for e in reversed(knowledge.entries()) if kind in (None, e.type)]
        entries = [e for e in entries if (e.confidence or 0.0) >= min_confidence]
        shown = knowledge.describe(entries[:limit])
    lines = [[f"{len(shown)} of {format_count(len(entries), 'lesson')}"]]
    return Answer({"entries": shown, "total": len(entries)}, lines, _rows(shown), columns=_COLUMNS)


@command(_lessons)
def search(
    query: Query,
    kind: Annotated[
        EntryType | None, typer.Option("--type", help="Only lessons of this type.")
    ] = None,
    min_confidence: ConfidenceOption = 0.0,
    limit: LimitOption = 10,
    vault: VaultOption = None,
) -> Answer:
    """Find lessons by words and by meaning.

    $ simplemem lessons search timeouts --type solution --min-confidence 0.6"""
    asked = " ".join(query)
    with _opened(vault, embed=True) as (_, knowledge):
        narrowed: dict[str, Any] = {"kind": kind or "", "least_confidence": min_confidence}
        hits, method, degraded = knowledge.search(asked, limit=min(limit, 200), **narrowed)
        entries = knowledge.describe([entry for entry, _ in hits])
    results = [entry | {"score": hit.score} for entry, (_, hit) in zip(entries, hits, strict=True)]
    facts = {"query": asked, "results": results, "method": method, "degraded": degraded}
    lines: Lines = [[f"found by {method}" if hits else "Nothing found."]]
    return Answer(
        facts, lines, _rows(entries), columns=_COLUMNS, warnings=[degraded] if degraded else []
    )


@command(_lessons)
def show(
    ref: Annotated[str, argument("ID", "An id, the beginning of an id, or the name of a note.")],
    vault: VaultOption = None,
) -> Answer:
    """Show a lesson, its context, and related lessons.

    $ simplemem lessons show 4e8f50cf"""
    with _opened(vault) as (_, knowledge):
        entry = knowledge.find(ref)
        knowledge.count([entry.id])
        (shown,), ties = knowledge.describe([entry]), knowledge.relations_of([entry])[entry.path]
    lines: Lines = [[entry.content]]
    lines += [["Context: ", entry.context]] if entry.context else []
    lines += [
        [(f"  {words} ", "dim"), (other.id[:8], "cyan"), f" {other.headline}"]
        for words, other in ties
    ]
    relations = [
        {"relationship": words, "id": other.id, "name": other.name} for words, other in ties
    ]
    told = (
        "id",
        "type",
        "confidence",
        "verified",
        "timestamp",
        "accessCount",
        "tags",
        "supersededBy",
    )
    about = labelled({key: shown[key] for key in told if key in shown})
    return Answer(shown | {"relations": relations}, lines, labelled=about)


@command(_lessons)
def export(
    form: Annotated[Form, argument("FORMAT", "The format: md, html, json or dot.")] = Form.md,
    out: Annotated[
        Path | None, option("--output -o", "FILE", "Write to this file instead of printing.")
    ] = None,
    vault: VaultOption = None,
) -> Answer:
    """Export all lessons.

    `md` is one Markdown text, grouped by type. `html` and `dot` are pictures, and `json` is data; these include the
    entities of the graph.

    $ simplemem lessons export > lessons.md
    $ simplemem lessons export html --output lessons.html"""
    from simplemem.features.lessons.export import export_text
    from simplemem.store import write_file

    with _opened(vault) as (store, knowledge):
        text, count = export_text(store, form.value), len(knowledge.entries())
    facts = {"file": str(out or ""), "format": form.value, "entries": count}
    if out is None:
        return Answer(facts | {"text": text}, text=text)
    write_file(out.expanduser(), text.encode(errors="backslashreplace"))
    return Answer(facts, [[("Written", "green"), f": {out}, {format_count(count, 'lesson')}"]])


@command(_lessons)
def analyze(
    notes: Annotated[
        str,
        option("--notes", "WHICH", "Analyze other notes: a folder, `type:NAME`, or `*` for all."),
    ] = "",
    vault: VaultOption = None,
) -> Answer:
    """Show lessons that need attention.

    These are lessons with low confidence, unverified or unread lessons, contradictions, and groups of similar lessons.
    No model is used, and nothing is written.

    $ simplemem lessons analyze
    $ simplemem lessons analyze --notes projects/"""
    from datetime import date

    from simplemem.features.lessons.analysis import analysis_of, brief

    with _opened(vault, embed=True) as (store, _):
        analysis = analysis_of(store, notes)
        own, patterns = [e for e in analysis.standing if e.is_own], analysis.patterns(date.today())  # noqa: DTZ011
        sure = [e for e in analysis.standing if e.confidence is not None]
        findings = {
            "low_confidence": [brief(e) for e in sure if (e.confidence or 0.0) < 0.5],
            "unverified": [brief(e) for e in own if not e.verified],
            "never_read": [brief(e) for e in own if e.id not in analysis.reads],
            "superseded": analysis.superseded(),
            "contradictions": [each.data for each in analysis.contradictions()],
            "recurring": patterns["recurring"],
            "clusters": analysis.clusters()[:10],
            "suggested_tags": analysis.suggested_tags(),
            "insights": analysis.insights(),
            "antipatterns": analysis.antipatterns(),
        }
    lines: Lines = [[f"{len(analysis.entries)} {analysis.what}, compared by {analysis.method}"]]
    for key, some in findings.items():
        lines += (
            [[(f"\n{key.replace('_', ' ').capitalize()} ({len(some)})", "bold")]] if some else []
        )
        for each in some[:10]:  # for programs, all
            entries = (
                each.get("entries")
                or [each[end] for end in ("one", "other") if end in each]
                or [each]
            )
            head = (
                each.get("says") or each.get("tag") or each.get("rule") or ", ".join(each["words"])
            )
            lines.append(
                [one_line(f"  {head}: {', '.join(entry['name'] for entry in entries[:5])}")]
            )
    looked_at = {"what": analysis.what, "count": len(analysis.entries)}
    return Answer(
        {"looked_at": looked_at, **findings, "trend": patterns["trend"], "method": analysis.method},
        lines,
    )
