"""The commands knowledge init, stats, list, search, show, export, analyze, validate and reset: what was learned, from the
terminal. They need no server (capabilities.md SI-34)."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from simplemem.cli.command import Answer, command, finish, for_a_program
from simplemem.cli.opening import WHO, make_folder, opened
from simplemem.cli.options import Query, VaultOption, argument, limit_option, option
from simplemem.cli.text import day, facts_table, one_line, tags_shown
from simplemem.errors import Invalid
from simplemem.note.words import counted

if TYPE_CHECKING:
    from simplemem.cli.text import Part
    from simplemem.kinds.learned.analysis import Analysis
    from simplemem.kinds.learned.entry import KnowledgeEntry
    from simplemem.kinds.learned.knowledge import Knowledge, Reads
    from simplemem.store import EnhancedStore

_knowledge = typer.Typer(
    help="What was learned: errors, solutions, decisions, patterns and insights, each a note in `knowledge/`.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)
commands = typer.Typer()
commands.add_typer(_knowledge, name="knowledge", rich_help_panel="Keep")
_WORD = "reset"  # what a person types to empty it
_UNSURE = 0.5
_MOST = 10  # entries of one finding that a person is shown
_TYPES = {"error": "red", "solution": "green", "decision": "magenta", "pattern": "blue", "insight": "yellow"}
_LEVELS = {"error": "bold red", "warning": "yellow", "note": "dim"}
_FINDINGS = {
    "low_confidence": "Confidence below 0.5",
    "unverified": "Not verified",
    "never_read": "Never read",
    "superseded": "Superseded",
    "contradictions": "Contradictions",
    "recurring": "Recurring",
    "clusters": "Belong together",
    "suggested_tags": "Tags to consider",
    "insights": "To look at",
    "antipatterns": "To avoid",
}
"""What `analyze` finds, as a person reads it."""


EntryType = StrEnum("EntryType", "decision error solution pattern insight")
Form = StrEnum("Form", "md html json dot")
TypeOption = Annotated[EntryType | None, typer.Option("--type", help="Only entries of this type.")]
ConfidenceOption = Annotated[float, option("--min-confidence", "0..1", "Only entries at least so sure.", min=0, max=1)]
LimitOption = Annotated[int, limit_option("How many at most.")]


def vault_of(named: Path | None) -> Path | None:
    """The vault that is meant: what is named, else where self-improving-memory was told to keep its own, else
    `./.claude-memory` when it is there; None leaves it to the rules of all commands."""
    if named is not None or os.environ.get("SIMPLEMEM_VAULT"):
        return named
    if path := os.environ.get("MEMORY_STORAGE_PATH"):
        return Path(path).expanduser()
    here = Path(".claude-memory")
    return here if here.is_dir() else None


@contextmanager
def _opened(vault: Path | None, *, embed: bool = False) -> Iterator[tuple[EnhancedStore, Knowledge]]:
    from simplemem.kinds.learned.knowledge import knowledge_of

    with opened(vault_of(vault), embed=embed) as store:
        yield store, knowledge_of(store)


def _entries(count: int) -> str:
    return counted(count, "entry", "entries")


# -- init and stats


@command(_knowledge)
def init(
    folder: Annotated[Path | None, argument("FOLDER", "Where to. Without it: `.claude-memory` here.")] = None,
    vault: VaultOption = None,
) -> Answer:
    """Make a vault for what is learned, or look at the one that is there. No note is changed.

    $ simplemem knowledge init
    $ simplemem knowledge init ~/project/.claude-memory
    """
    if folder is not None and vault is not None:
        raise typer.BadParameter("either FOLDER or --vault, not both")
    root = (folder or vault_of(vault) or Path(".claude-memory")).expanduser()
    is_new = make_folder(root)
    with _opened(root) as (store, knowledge):
        (store.root / ".simplemem").mkdir(exist_ok=True)
        root, count = store.root, len(knowledge.entries())
    lines: list[list[Part]] = [[("Ready" if is_new else "There already", "green"), f": {root}, {_entries(count)}"]]
    if is_new:
        lines.append(["Serve it: ", (f"simplemem serve --profile self-improving --vault {root}", "bold")])
    return Answer({"vault": str(root), "new": is_new, "entries": count}, lines)


@command(_knowledge)
def stats(vault: VaultOption = None) -> Answer:
    """Show how much there is of what, how sure it is, and what is read most.

    $ simplemem knowledge stats
    $ simplemem knowledge stats --json
    """
    from simplemem.kinds.learned.counts import stats as count

    with _opened(vault) as (_, knowledge):
        facts = count(knowledge.entries(), knowledge.reads())
    rest = {key: value for key, value in facts.items() if key != "most_accessed"}
    lines: list[list[Part]] = [
        [f"{each['count']:>4}  ", (each["id"][:8], "cyan"), f"  {each['says']}"] for each in facts["most_accessed"]
    ]
    return Answer(facts, [[("Most read", "bold")], *lines] if lines else [], facts_table(rest))


# -- list, search, show

Related = Mapping[str, Sequence[tuple[str, "KnowledgeEntry"]]]


def _as_json(entry: KnowledgeEntry, read: Mapping[str, Reads], related: Related) -> dict[str, Any]:
    """An entry with what it leads to, in which words."""
    from simplemem.faces.self_improving import entry_shown
    from simplemem.kinds.learned.knowledge import NEVER

    ties = related.get(entry.path, ())
    relations = [{"relationship": words, "id": other.id, "name": other.name} for words, other in ties]
    shown = entry_shown(entry, read.get(entry.id, NEVER), [other for _, other in ties])
    return shown | {"relations": relations}


def _row(entry: KnowledgeEntry) -> list[Part]:
    superseded = " (superseded)" if entry.is_superseded else ""
    return [
        (entry.id[:8], "cyan"),
        (entry.type, _TYPES.get(entry.type, "")),
        (_sure(entry), "dim"),
        (f"{entry.headline}{superseded}", "dim" if superseded else ""),
        (tags_shown(entry.tags), "green"),
    ]


def _sure(entry: KnowledgeEntry) -> str:
    return ("?" if entry.confidence is None else f"{entry.confidence:.2f}") + (" ✓" if entry.verified else "")


@command(_knowledge, name="list")
def list_entries(
    kind: Annotated[EntryType | None, argument("TYPE", "Only entries of this type.")] = None,
    type_: TypeOption = None,
    min_confidence: ConfidenceOption = 0.0,
    limit: LimitOption = 50,
    vault: VaultOption = None,
) -> Answer:
    """List entries, the newest first.

    $ simplemem knowledge list
    $ simplemem knowledge list error --min-confidence 0.8
    $ simplemem knowledge list --json
    """
    wanted = kind or type_
    with _opened(vault) as (_, knowledge):
        every = [
            entry
            for entry in reversed(knowledge.entries())
            if (wanted is None or entry.type == wanted) and (entry.confidence or 0.0) >= min_confidence
        ]
        entries = every[:limit]
        related, read = knowledge.leading_to(entries), knowledge.reads()
    more: list[Part] = [(f"  {len(every) - limit} more: --limit {len(every)}", "dim")]
    lines = [[("Nothing yet.", "yellow")]] if not every else [more] if len(every) > limit else []
    facts = {"entries": [_as_json(entry, read, related) for entry in entries], "total": len(every)}
    return Answer(facts, lines, [_row(entry) for entry in entries], gives_way=3)


@command(_knowledge)
def search(
    query: Query,
    kind: TypeOption = None,
    min_confidence: ConfidenceOption = 0.0,
    limit: LimitOption = 10,
    vault: VaultOption = None,
) -> Answer:
    """Find entries by meaning and words. Each one that is found counts as read.

    $ simplemem knowledge search connection pool exhausted
    $ simplemem knowledge search timeouts --type solution --min-confidence 0.6 --json
    """
    asked = " ".join(query)
    with _opened(vault, embed=True) as (_, knowledge):
        found = knowledge.search(asked, kind=kind or "", least_confidence=min_confidence, limit=min(limit, 200))
        related, read = knowledge.leading_to([hit.entry for hit in found.hits]), knowledge.reads()
    lines: list[list[Part]] = []
    for hit in found.hits:
        *head, _, tags = _row(hit.entry)
        lines.append([part for cell in (*head, f"{hit.score:.2f}", tags) for part in (cell, "  ")])
        lines.append([f"  {one_line(hit.snippet or hit.entry.headline)}"])
    lines += [] if found.hits else [[("Nothing found.", "yellow")]]
    results = [_as_json(hit.entry, read, related) | {"score": hit.score} for hit in found.hits]
    facts = {"query": asked, "results": results, "method": found.method, "degraded": found.degraded}
    warnings = [found.degraded] if found.degraded else []
    return Answer(facts, [*lines, [(f"  by {found.method}", "dim")]], warnings=warnings)


@command(_knowledge)
def show(
    ref: Annotated[str, argument("ID", "An id, the first letters of one, or a note's name.")],
    vault: VaultOption = None,
) -> Answer:
    """Show one entry: what it says, its context, what it is related to, and by whom it may have been superseded.

    $ simplemem knowledge show 4e8f50cf
    $ simplemem knowledge show raise-the-pool-to-50 --json
    """
    with _opened(vault) as (_, knowledge):
        entry = knowledge.find(ref)
        knowledge.count([entry.id])
        related, read = knowledge.leading_to(knowledge.entries()), knowledge.reads()
    times = counted(read[entry.id].count, "time")
    facts = f"confidence {_sure(entry)} · made {day(entry.created)} · read {times}"
    lines: list[list[Part]] = [
        [(entry.type, f"bold {_TYPES.get(entry.type, '')}".strip()), f"  {entry.id}"],
        [(facts, "dim"), (f"  {tags_shown(entry.tags)}", "green")],
    ]
    if entry.is_superseded:
        lines.append([(f"superseded by {entry.superseded_by} {entry.superseded_reason}".strip(), "yellow")])
    lines += [[], [entry.content]]
    lines += [[], [("Context: ", "bold"), entry.context]] if entry.context else []
    for path, ties in related.items():
        for words, other in ties:
            if path == entry.path:
                lines.append([(f"  {words} ", "dim"), (other.id[:8], "cyan"), f" {other.headline}"])
            elif other.path == entry.path:
                lines.append([("  from ", "dim"), (path.removesuffix(".md"), "cyan"), (f" ({words})", "dim")])
    return Answer(_as_json(entry, read, related), lines)


# -- export and analyze


@command(_knowledge)
def export(
    form: Annotated[Form, argument("FORMAT", "md, html, json or dot.")] = Form.md,
    out: Annotated[Path | None, option("--output -o", "FILE", "Where to. Without it: print it.")] = None,
    vault: VaultOption = None,
) -> Answer:
    """Export all entries: as one Markdown text by type, or with the graph's entities as a picture or data.

    $ simplemem knowledge export > knowledge.md
    $ simplemem knowledge export html --output knowledge.html
    $ simplemem knowledge export dot | dot -Tsvg > knowledge.svg
    """
    from simplemem.kinds.learned.export import export_text
    from simplemem.store import write_file

    if out is None and for_a_program():
        raise Invalid(
            "--json says what was written, so it needs --output FILE", hint="Or: simplemem knowledge export json"
        )
    with _opened(vault) as (store, knowledge):
        text, count = export_text(store, form.value), len(knowledge.entries())
    facts = {"file": str(out or ""), "format": form.value, "entries": count}
    if out is None:
        return Answer(facts, text=text)
    write_file(out.expanduser(), text.encode(errors="backslashreplace"))
    return Answer(facts, [[("Written", "green"), f": {out}, {_entries(count)}"]])


_WHICH = "Ordinary notes instead: a folder, `type:NAME`, or `*` for all."


@command(_knowledge)
def analyze(
    notes: Annotated[str, option("--notes", "WHICH", _WHICH)] = "",
    threshold: Annotated[
        float, option("--threshold", "0..1", "How alike entries are that belong together.", min=0, max=1)
    ] = 0.75,
    vault: VaultOption = None,
) -> Answer:
    """Show what to look at: what is unsure, unverified or never read, contradictions, what recurs and what belongs
    together. No model is asked; everything is counted or compared, and nothing is written.

    $ simplemem knowledge analyze
    $ simplemem knowledge analyze --notes projects/
    $ simplemem knowledge analyze --notes '*' --json
    """
    from simplemem.kinds.learned.analysis import analysis_of

    with _opened(vault, embed=True) as (store, _):
        return _analysis(analysis_of(store, notes), threshold)


def _analysis(look: Analysis, threshold: float) -> Answer:
    from simplemem.faces.insight import brief, cluster, contradiction, finding, suggestion
    from simplemem.kinds.learned.knowledge import NEVER

    standing = [entry for entry in look.entries if not entry.is_superseded]
    known = [entry for entry in standing if entry.is_own]
    unsure = [entry for entry in standing if entry.confidence is not None and entry.confidence < _UNSURE]
    unverified = [entry for entry in known if not entry.verified]
    never_read = [entry for entry in known if not look.reads.get(entry.id, NEVER).count]
    superseded = [entry for entry in look.entries if entry.is_superseded]
    patterns = look.patterns()
    facts: dict[str, Any] = {
        "looked_at": {"what": look.what, "count": len(look.entries)},
        "low_confidence": list(map(brief, unsure)),
        "unverified": list(map(brief, unverified)),
        "never_read": list(map(brief, never_read)),
        "superseded": [brief(entry) | {"by": entry.superseded_by} for entry in superseded],
        "contradictions": [contradiction(each, None) for each in look.contradictions()],
        "recurring": [{"says": some[0].headline, "count": len(some)} for some in patterns.recurring],
        "trend": patterns.trend,
        "clusters": list(map(cluster, look.clusters(threshold))),
        "suggested_tags": list(map(suggestion, look.suggestions(threshold))),
        "insights": list(map(finding, look.insights(threshold))),
        "antipatterns": list(map(finding, look.antipatterns())),
        "method": look.method,
    }
    lines: list[list[Part]] = [[(f"{len(look.entries)} {look.what}", "bold"), (f", compared by {look.method}", "dim")]]
    for key, title in _FINDINGS.items():
        some: list[Any] = facts[key]
        lines += [[(f"\n{title} ({len(some)})", "bold")]] if some else []
        lines += [_finding(each) for each in some[:_MOST]]
    return Answer(facts, lines)


def _finding(found: Mapping[str, Any]) -> list[Part]:
    """A finding on a line or three: what it is, and the entries it is about."""
    if "rule" in found:
        sides = "".join(f"\n    {side['name']}: {one_line(side['said'])}" for side in (found["one"], found["other"]))
        return [(f"  {found['rule']}", "yellow"), (f"  {found['about']}", "dim"), sides]
    head = f"#{found['tag']}" if "tag" in found else found.get("says") or ", ".join(found.get("words", ()))
    more = f"  {found['count']} times" if "count" in found else ""
    names = [found["name"]] if "name" in found else [entry["name"] for entry in found.get("entries", ())[:5]]
    return [f"  {one_line(head)}", (f"{more}  {', '.join(names)}", "dim")]


# -- validate and reset


@command(_knowledge)
def validate(vault: VaultOption = None) -> Answer:
    """Check every entry: its header, its id, its type, its confidence, and where its relations lead. Changes nothing; ends
    with 1 when there is something to mend.

    $ simplemem knowledge validate
    $ simplemem knowledge validate --json
    """
    from simplemem.kinds.learned.counts import validate as problems_of

    with _opened(vault) as (_, knowledge):
        entries = knowledge.entries()
        problems = problems_of(entries, knowledge.leading_nowhere(entries))
    to_mend = sum(problem.level != "note" for problem in problems)
    lines: list[list[Part]] = [
        [(f"{each.level}: ", _LEVELS[each.level]), (each.entry.name, "cyan"), f": {each.says}"] for each in problems
    ]
    lines.append([(f"{_entries(len(entries))}, {to_mend} to mend", "yellow" if to_mend else "green")])
    shown = [{"level": each.level, "name": each.entry.name, "says": each.says} for each in problems]
    return Answer({"entries": len(entries), "problems": shown}, lines, failed=to_mend > 0)


@command(_knowledge)
def reset(
    confirm: Annotated[str | None, option("--confirm", "reset", "The word, for where nobody can type it.")] = None,
    vault: VaultOption = None,
) -> Answer:
    """Put every entry into the trash, once you have typed the word `reset`. One step, which `undo` takes back. Entities and
    all other notes stay.

    $ simplemem knowledge reset
    $ simplemem knowledge reset --confirm reset
    """
    with _opened(vault) as (store, knowledge):
        if count := len(knowledge.entries()):
            if confirm is None and sys.stdin.isatty() and sys.stderr.isatty():
                typer.echo(f"{_entries(count)} of {store.root} will go to the trash.", err=True)
                confirm = typer.prompt(f"Type {_WORD} to do it", default="", show_default=False, err=True)
            if (confirm or "").strip() != _WORD:
                raise Invalid("nothing was deleted", hint=f"Type the word, or pass --confirm {_WORD}.")
        finish()
        deleted, version = knowledge.reset(who=WHO, tool="reset")
    back: list[Part] = [(f"  undo with: simplemem undo {version} --vault {store.root}", "dim")]
    done = f"{_entries(deleted)} in the trash" if deleted else "There was nothing."
    return Answer({"deleted": deleted, "version": version}, [[(done, "green")], *([back] if deleted else [])])
