"""The commands `lessons stats`, `list`, `search`, `show`, `export` and `analyze`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from simplemem.cli.command import Answer, command, opened
from simplemem.cli.options import Group, Query, VaultOption, argument, limit_option, option
from simplemem.cli.output import OPTIONAL, SHRINKS, WHOLE, Lines, labelled, one_line, tags_shown
from simplemem.features.lessons import TYPES, VAULT_FOLDER, VAULT_VARIABLE
from simplemem.note.words import format_count

if TYPE_CHECKING:
    from simplemem.features.lessons.analysis import Analysis
    from simplemem.features.lessons.description import Fields, LessonRelation
    from simplemem.features.lessons.service import LessonService
    from simplemem.store import EnhancedStore

commands = typer.Typer()
_lessons = typer.Typer(cls=Group, no_args_is_help=True, rich_markup_mode="rich")
_HELP = (
    "Lessons from agents: errors, solutions, decisions and more.\n\n"
    "Each error, solution, decision, pattern and insight is a note in `knowledge/`."
)
commands.add_typer(_lessons, name="lessons", help=_HELP, rich_help_panel="Collections")

LessonType = StrEnum("LessonType", TYPES)  # type: ignore[misc]
Format = StrEnum("Format", "md html json dot")
ConfidenceOption = Annotated[
    float,
    option("--min-confidence", "0..1", "Only lessons with at least this confidence.", min=0, max=1),
]
LimitOption = Annotated[int, limit_option("The maximum number of lessons.")]

_COLUMNS = (WHOLE, WHOLE, OPTIONAL, SHRINKS, SHRINKS)
_MAX_HITS = 200
_MAX_CONTENT = 120  # characters of a row
_ID_LENGTH = 8  # of an id that is shown
_MAX_SHOWN_FINDINGS = 10  # of each kind; a program gets all
_MAX_SHOWN_NAMES = 5  # of notes per finding
_MAX_CLUSTERS = 10
_SHOWN_FIELDS = (
    "id",
    "type",
    "confidence",
    "verified",
    "timestamp",
    "accessCount",
    "tags",
    "supersededBy",
)


def choose_vault(vault: Path | None) -> Path | None:
    """Return the vault that the user names, else that of MEMORY_STORAGE_PATH, or `.claude-memory`.

    The latter only if the current folder has it; no other is checked. Returns None if there is
    none of these, or if SIMPLEMEM_VAULT is set and the user names none: the rules of all commands
    then decide.
    """
    if vault is not None or os.environ.get("SIMPLEMEM_VAULT"):
        return vault

    folder = os.environ.get(VAULT_VARIABLE)
    if folder:
        return Path(folder).expanduser()

    default_folder = Path(VAULT_FOLDER)
    return default_folder if default_folder.is_dir() else None


@contextmanager
def _open_lessons(
    vault: Path | None, *, embed: bool = False
) -> Iterator[tuple[EnhancedStore, LessonService]]:
    """Open the vault that `choose_vault` returns, and yield its store and its lessons.

    The index is updated first; with `embed`, its vectors too, by which lessons are compared.
    """
    from simplemem.features.lessons.service import lesson_service

    with opened(choose_vault(vault), embed=embed) as store:
        yield store, lesson_service(store)


def _lesson_rows(lessons: Iterable[Fields]) -> Lines:
    """Return lessons as the rows of a table with the columns `_COLUMNS`.

    `lessons` are the fields of each as JSON has them. Contents are cut to 120 characters, ids to 8.
    """
    rows = Lines()
    for lesson in lessons:
        confidence = "?"
        if lesson["confidence"] is not None:
            confidence = f"{lesson['confidence']:.2f}"
        content = one_line(lesson["content"])[:_MAX_CONTENT]
        if "status" in lesson:
            content += " (superseded)"

        rows.append(
            [
                (lesson["id"][:_ID_LENGTH], "cyan"),
                lesson["type"],
                (confidence, "dim"),
                content,
                (tags_shown(lesson["tags"]), "green"),
            ]
        )
    return rows


@command(_lessons)
def stats(vault: VaultOption = None) -> Answer:
    """Show the number of lessons of each type, their confidence, and which are read most.

    $ simplemem lessons stats --json"""
    from simplemem.features.lessons.analysis import analysis_of

    with _open_lessons(vault) as (store, _):
        facts = analysis_of(store).stats()
    return Answer(facts, labelled=labelled(facts))


@command(_lessons, name="list")
def list_lessons(
    kind: Annotated[LessonType | None, argument("TYPE", "Only lessons of this type.")] = None,
    min_confidence: ConfidenceOption = 0.0,
    limit: LimitOption = 50,
    vault: VaultOption = None,
) -> Answer:
    """List lessons, newest first.

    $ simplemem lessons list error --min-confidence 0.8"""
    with _open_lessons(vault) as (_, service):
        lessons = []
        for lesson in reversed(service.lessons()):
            has_type = kind in (None, lesson.type)
            if has_type and (lesson.confidence or 0.0) >= min_confidence:
                lessons.append(lesson)
        fields = service.describe(lessons[:limit])

    facts = {"entries": fields, "total": len(lessons)}
    head = f"{len(fields)} of {format_count(len(lessons), 'lesson')}"
    return Answer(facts, [[head]], _lesson_rows(fields), columns=_COLUMNS)


@command(_lessons)
def search(
    query: Query,
    kind: Annotated[
        LessonType | None, typer.Option("--type", help="Only lessons of this type.")
    ] = None,
    min_confidence: ConfidenceOption = 0.0,
    limit: LimitOption = 10,
    vault: VaultOption = None,
) -> Answer:
    """Find lessons by words and by meaning.

    $ simplemem lessons search timeouts --type solution --min-confidence 0.6"""
    query_text = " ".join(query)
    with _open_lessons(vault, embed=True) as (_, service):
        hits, method, degraded = service.search(
            query_text,
            lesson_type=kind or "",
            min_confidence=min_confidence,
            limit=min(limit, _MAX_HITS),
        )
        lessons = service.describe([lesson for lesson, _ in hits])

    results = []
    for fields, (_, hit) in zip(lessons, hits, strict=True):
        results.append(fields | {"score": hit.score})
    facts = {
        "query": query_text,
        "results": results,
        "method": method,
        "degraded": degraded,
    }
    head = f"found by {method}" if hits else "Nothing found."
    warnings = [degraded] if degraded else []
    return Answer(facts, [[head]], _lesson_rows(lessons), columns=_COLUMNS, warnings=warnings)


@command(_lessons)
def show(
    ref: Annotated[str, argument("ID", "An id, the beginning of an id, or the name of a note.")],
    vault: VaultOption = None,
) -> Answer:
    """Show a lesson, its context, and related lessons.

    $ simplemem lessons show 4e8f50cf"""
    with _open_lessons(vault) as (_, service):
        lesson = service.find(ref)
        service.record_reads([lesson.id])
        [fields] = service.describe([lesson])
        relations = service.relations_of([lesson])[lesson.path]

    lines: Lines = [[lesson.content]]
    if lesson.context:
        lines.append(["Context: ", lesson.context])
    lines += _relation_lines(relations)

    shown_fields = {key: fields[key] for key in _SHOWN_FIELDS if key in fields}
    fields["relations"] = [
        {
            "relationship": relation.type,
            "id": relation.target.id,
            "name": relation.target.name,
        }
        for relation in relations
    ]
    return Answer(fields, lines, labelled=labelled(shown_fields))


def _relation_lines(relations: Iterable[LessonRelation]) -> Lines:
    """Return one line per relation: its type, and the id and headline of its target."""
    lines = Lines()
    for relation in relations:
        target = relation.target
        short_id = target.id[:_ID_LENGTH]
        lines.append([(f"  {relation.type} ", "dim"), (short_id, "cyan"), f" {target.headline}"])
    return lines


@command(_lessons)
def export(
    form: Annotated[Format, argument("FORMAT", "The format: md, html, json or dot.")] = Format.md,
    out: Annotated[
        Path | None, option("--output -o", "FILE", "Write to this file instead of printing.")
    ] = None,
    vault: VaultOption = None,
) -> Answer:
    """Export all lessons.

    `md` is one Markdown text, grouped by type. `html` and `dot` are pictures, and `json` is data;
    these include the entities of the graph.

    $ simplemem lessons export > lessons.md
    $ simplemem lessons export html --output lessons.html"""
    from simplemem.features.lessons.export import export_text
    from simplemem.store import write_file

    with _open_lessons(vault) as (store, service):
        text = export_text(store, form.value)
        count = len(service.lessons())

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

    These are lessons with low confidence, unverified or unread lessons, contradictions, pairs that
    may contradict each other, and groups of similar lessons. No model is used, and nothing is
    written.

    $ simplemem lessons analyze
    $ simplemem lessons analyze --notes projects/"""
    from datetime import date

    from simplemem.features.lessons.analysis import analysis_of

    with _open_lessons(vault, embed=True) as (store, _):
        analysis = analysis_of(store, notes)
        patterns = analysis.patterns(date.today())  # noqa: DTZ011  (local, as notes are)
        findings = _collect_findings(analysis, patterns["recurring"])

    facts: dict[str, Any] = {
        "looked_at": {"what": analysis.description, "count": len(analysis.lessons)},
        **findings,
        "trend": patterns["trend"],
        "method": analysis.method,
    }
    head = f"{len(analysis.lessons)} {analysis.description}, compared by {analysis.method}"
    lines: Lines = [[head]]
    for kind, of_kind in findings.items():
        lines += _finding_lines(kind, of_kind)
    return Answer(facts, lines)


def _collect_findings(analysis: Analysis, recurring: list[Fields]) -> dict[str, list[Fields]]:
    """Return all findings of an analysis by their kind, in the order in which they are shown.

    `recurring` are findings that the caller has collected. At most ten clusters are among them.
    """
    contradictions = analysis.contradictions()
    return {
        "low_confidence": analysis.low_confidence(),
        "unverified": analysis.unverified(),
        "never_read": analysis.never_read(),
        "superseded": analysis.superseded(),
        "contradictions": [contradiction.data for contradiction in contradictions],
        "offered": analysis.offers(contradictions),
        "recurring": recurring,
        "clusters": analysis.clusters()[:_MAX_CLUSTERS],
        "suggested_tags": analysis.suggested_tags(),
        "insights": analysis.insights(),
        "antipatterns": analysis.antipatterns(),
    }


def _finding_lines(kind: str, findings: Sequence[Fields]) -> Lines:
    """Return a heading and the first ten findings of a kind, one line each.

    A line has the names of at most five notes. Returns [] without findings.
    """
    if not findings:
        return []

    heading = kind.replace("_", " ").capitalize()
    lines: Lines = [[(f"\n{heading} ({len(findings)})", "bold")]]
    for finding in findings[:_MAX_SHOWN_FINDINGS]:
        names = [lesson["name"] for lesson in _lessons_of_finding(finding)]
        text = f"  {_title_of_finding(finding)}: {', '.join(names[:_MAX_SHOWN_NAMES])}"
        lines.append([one_line(text)])
    return lines


def _lessons_of_finding(finding: Fields) -> Sequence[Mapping[str, Any]]:
    """Return the lessons that a finding is about; the finding itself if it is one lesson.

    A group has them under `entries`, and a contradiction under `one` and `other`.
    """
    if finding.get("entries"):
        entries: Sequence[Mapping[str, Any]] = finding["entries"]
        return entries
    both = [finding[end] for end in ("one", "other") if end in finding]
    return both or [finding]


def _title_of_finding(finding: Fields) -> str:
    """Return what a finding says: its sentence, tag, reason or rule, else its words."""
    for key in ("says", "tag", "reason", "rule"):
        if finding.get(key):
            return str(finding[key])
    return ", ".join(finding["words"])
