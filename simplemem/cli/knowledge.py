"""The commands knowledge init, stats, list, search, show, export, analyze, validate and reset: what was learned, from the
terminal. They need no server (capabilities.md SI-34)."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from simplemem.cli.options import JsonOption, Query, VaultOption, command, limit_option
from simplemem.errors import Invalid

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore

_knowledge = typer.Typer(
    help="What was learned: errors, solutions, decisions, patterns and insights, each a note in `knowledge/`.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)
_PANEL = "Learn"
_WORD = "reset"  # what a person types to empty it


class Kind(StrEnum):
    DECISION = "decision"
    ERROR = "error"
    SOLUTION = "solution"
    PATTERN = "pattern"
    INSIGHT = "insight"


class Form(StrEnum):
    MD = "md"
    HTML = "html"
    JSON = "json"
    DOT = "dot"
    D3 = "d3"
    CYTOSCAPE = "cytoscape"


KindOption = Annotated[Kind | None, typer.Option("--type", help="Only entries of this type.")]
ConfidenceOption = Annotated[
    float, typer.Option("--min-confidence", min=0, max=1, metavar="0..1", help="Only entries at least so sure.")
]
NotesOption = Annotated[
    str,
    typer.Option("--notes", metavar="WHICH", help="Ordinary notes instead: a folder, `type:NAME`, or `*` for all."),
]
Ref = Annotated[str, typer.Argument(metavar="ID", help="An id, the first letters of one, or a note's name.")]


def vault_of(named: Path | None) -> Path | None:
    """The vault that is meant: what is named, else where self-improving-memory was told to keep its own, else
    `./.claude-memory` when it is there; None leaves it to the rules of all commands."""
    if named is not None or os.environ.get("SIMPLEMEM_VAULT"):
        return named
    if told := os.environ.get("MEMORY_STORAGE_PATH"):
        return Path(told).expanduser()
    here = Path(".claude-memory")
    return here if here.is_dir() else None


@contextmanager
def _opened(vault: Path | None, *, embed: bool = False) -> Iterator[EnhancedStore]:
    from simplemem.cli.opening import opened

    with opened(vault_of(vault), embed=embed) as store:
        yield store


@command(
    _knowledge,
    _PANEL,
    name="init",
    examples=["simplemem knowledge init", "simplemem knowledge init ~/project/.claude-memory"],
)
def init(
    folder: Annotated[
        Path | None, typer.Argument(metavar="FOLDER", help="Where to. Without it: `.claude-memory` here.")
    ] = None,
    vault: VaultOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a vault for what is learned, or look at the one that is there. No note is changed."""
    from simplemem.cli import output
    from simplemem.cli.opening import opened
    from simplemem.kinds.learned.keeping import knowledge_of

    if folder is not None and vault is not None:
        raise typer.BadParameter("either FOLDER or --vault, not both")
    root = (folder or vault_of(vault) or Path(".claude-memory")).expanduser()
    if root.exists() and not root.is_dir():
        raise Invalid(f"{root} is a file.", hint="A vault is a folder.")
    is_new = not (root / ".simplemem").exists()
    root.mkdir(parents=True, exist_ok=True)
    with opened(root) as store:
        store.vault.sidecar()
        count = len(knowledge_of(store).entries())
        if as_json:
            output.print_json({"vault": str(store.root), "new": is_new, "entries": count})
            return
        output.say(("Ready" if is_new else "There already", "green"), f": {store.root}, {_entries(count)}")
        if is_new:
            output.say("Serve it: ", (f"simplemem serve --profile self-improving --vault {store.root}", "bold"))


@command(_knowledge, _PANEL, name="stats", examples=["simplemem knowledge stats", "simplemem knowledge stats --json"])
def stats(vault: VaultOption = None, as_json: JsonOption = False) -> None:
    """Show how much there is of what, how sure it is, and what is read most."""
    from simplemem.cli import output
    from simplemem.kinds.learned.keeping import knowledge_of
    from simplemem.kinds.learned.statistics import stats as counted

    with _opened(vault) as store:
        knowledge = knowledge_of(store)
        facts = counted(knowledge.entries(), knowledge.access.all())
    if as_json:
        output.print_json(facts)
        return
    often = facts.pop("most_accessed")
    output.print_mapping(facts)
    if often:
        output.say(("Most read", "bold"))
        output.print_table(
            [output.styled(f"  {each['count']}"), output.styled((each["id"][:8], "cyan")), output.styled(each["says"])]
            for each in often
        )


@command(
    _knowledge,
    _PANEL,
    name="list",
    examples=[
        "simplemem knowledge list",
        "simplemem knowledge list error --min-confidence 0.8",
        "simplemem knowledge list --json",
    ],
)
def list_entries(
    kind: Annotated[Kind | None, typer.Argument(metavar="TYPE", help="Only entries of this type.")] = None,
    type_: KindOption = None,
    min_confidence: ConfidenceOption = 0.0,
    limit: Annotated[int, limit_option("How many at most.")] = 50,
    vault: VaultOption = None,
    as_json: JsonOption = False,
) -> None:
    """List entries, the newest first."""
    from simplemem.cli import output
    from simplemem.cli.knowledge_output import as_value, entry_row
    from simplemem.kinds.learned.keeping import knowledge_of

    wanted = kind or type_
    with _opened(vault) as store:
        knowledge = knowledge_of(store)
        found = [
            entry
            for entry in reversed(knowledge.entries())
            if (wanted is None or entry.type == wanted) and (entry.confidence or 0.0) >= min_confidence
        ]
        related = knowledge.leading_to(found[:limit])
        read = knowledge.access.all()
    if as_json:
        output.print_json({"entries": [as_value(entry, read, related) for entry in found[:limit]], "total": len(found)})
        return
    if not found:
        output.say(("Nothing yet.", "yellow"))
    output.print_table((entry_row(entry) for entry in found[:limit]), gives_way=3)
    if len(found) > limit:
        output.say((f"  {len(found) - limit} more: --limit {len(found)}", "dim"))


@command(
    _knowledge,
    _PANEL,
    name="search",
    examples=[
        "simplemem knowledge search connection pool exhausted",
        "simplemem knowledge search timeouts --type solution --min-confidence 0.6 --json",
    ],
)
def search(
    query: Query,
    kind: KindOption = None,
    min_confidence: ConfidenceOption = 0.0,
    limit: Annotated[int, limit_option("How many at most.")] = 10,
    vault: VaultOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find entries by meaning and words. Each one that is found counts as read."""
    from simplemem.cli import output
    from simplemem.cli.knowledge_output import as_value, print_hit
    from simplemem.kinds.learned.keeping import knowledge_of

    asked = " ".join(query)
    with _opened(vault, embed=True) as store:
        knowledge = knowledge_of(store)
        found = knowledge.search(asked, kind=kind or "", least_confidence=min_confidence, limit=min(limit, 200))
        related = knowledge.leading_to([hit.entry for hit in found.hits])
        read = knowledge.access.all()
    if as_json:
        results = [as_value(hit.entry, read, related) | {"score": hit.score} for hit in found.hits]
        output.print_json({"query": asked, "results": results, "method": found.method, "degraded": found.degraded})
        return
    for hit in found.hits:
        print_hit(hit, asked)
    if not found.hits:
        output.say(("Nothing found.", "yellow"))
    output.say((f"  by {found.method}", "dim"))
    if found.degraded:
        output.warn(found.degraded)


@command(
    _knowledge,
    _PANEL,
    name="show",
    examples=["simplemem knowledge show 4e8f50cf", "simplemem knowledge show raise-the-pool-to-50 --json"],
)
def show(ref: Ref, vault: VaultOption = None, as_json: JsonOption = False) -> None:
    """Show one entry: what it says, its context, what it is related to, and by whom it may have been superseded."""
    from simplemem.cli import output
    from simplemem.cli.knowledge_output import as_value, print_entry
    from simplemem.kinds.learned.keeping import knowledge_of

    with _opened(vault) as store:
        knowledge = knowledge_of(store)
        entry = knowledge.find(ref)
        knowledge.access.count([entry.id])
        related = knowledge.leading_to(knowledge.entries())
        read = knowledge.access.all()
    if as_json:
        output.print_json(as_value(entry, read, related))
    else:
        print_entry(entry, read, related)


@command(
    _knowledge,
    _PANEL,
    name="export",
    examples=[
        "simplemem knowledge export > knowledge.md",
        "simplemem knowledge export html --output knowledge.html",
        "simplemem knowledge export dot | dot -Tsvg > knowledge.svg",
    ],
)
def export(
    form: Annotated[Form, typer.Argument(metavar="FORMAT", help="md, html, json, dot, d3 or cytoscape.")] = Form.MD,
    out: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Where to. Without it: print it.")
    ] = None,
    vault: VaultOption = None,
    as_json: JsonOption = False,
) -> None:
    """Export all entries: as one Markdown text by type, or with the graph's entities as a picture or data."""
    from simplemem.cli import output
    from simplemem.kinds.learned.exporting import export_text
    from simplemem.kinds.learned.keeping import knowledge_of

    with _opened(vault) as store:
        text = export_text(store, form.value)
        count = len(knowledge_of(store).entries())
    if out is None:
        sys.stdout.write(text)
        return
    out.expanduser().write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")
    if as_json:
        output.print_json({"file": str(out), "format": form.value, "entries": count})
    else:
        output.say(("Written", "green"), f": {out}, {_entries(count)}")


@command(
    _knowledge,
    _PANEL,
    name="analyze",
    examples=[
        "simplemem knowledge analyze",
        "simplemem knowledge analyze --notes projects/",
        "simplemem knowledge analyze --notes '*' --json",
    ],
)
def analyze(
    notes: NotesOption = "",
    threshold: Annotated[
        float,
        typer.Option("--threshold", min=0, max=1, metavar="0..1", help="How alike entries are that belong together."),
    ] = 0.75,
    vault: VaultOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what to look at: what is unsure, unverified or never read, contradictions, what recurs and what belongs
    together. No model is asked; everything is counted or compared, and nothing is written."""
    from simplemem.cli import output
    from simplemem.cli.knowledge_output import analysis, print_analysis
    from simplemem.kinds.learned.looking import look

    with _opened(vault, embed=True) as store:
        found = analysis(look(store, notes), threshold)
    if as_json:
        output.print_json(found.as_value())
    else:
        print_analysis(found)


@command(
    _knowledge,
    _PANEL,
    name="validate",
    examples=["simplemem knowledge validate", "simplemem knowledge validate --json"],
)
def validate(vault: VaultOption = None, as_json: JsonOption = False) -> None:
    """Check every entry: its header, its id, its type, its confidence, and where its relations lead. Changes nothing; ends
    with 1 when there is something to mend."""
    from simplemem.cli import output
    from simplemem.cli.knowledge_output import LEVEL_STYLES
    from simplemem.kinds.learned.keeping import knowledge_of
    from simplemem.kinds.learned.validating import validate as problems_of

    with _opened(vault) as store:
        knowledge = knowledge_of(store)
        entries = knowledge.entries()
        found = problems_of(entries, knowledge.leading_nowhere(entries))
    to_mend = [problem for problem in found if problem.level != "note"]
    if as_json:
        shown = [{"level": each.level, "name": each.entry.name, "says": each.says} for each in found]
        output.print_json({"entries": len(entries), "problems": shown})
    else:
        for each in found:
            output.say((f"{each.level}: ", LEVEL_STYLES[each.level]), (each.entry.name, "cyan"), f": {each.says}")
        output.say((f"{_entries(len(entries))}, {len(to_mend)} to mend", "yellow" if to_mend else "green"))
    if to_mend:
        raise typer.Exit(1)


@command(
    _knowledge,
    _PANEL,
    name="reset",
    examples=["simplemem knowledge reset", "simplemem knowledge reset --confirm reset"],
)
def reset(
    confirm: Annotated[
        str | None, typer.Option("--confirm", metavar="reset", help="The word, for where nobody can type it.")
    ] = None,
    vault: VaultOption = None,
    as_json: JsonOption = False,
) -> None:
    """Put every entry into the trash, once you have typed the word `reset`. One step, which `undo` takes back. Entities and
    all other notes stay."""
    from simplemem.cli import output
    from simplemem.cli.opening import WHO, finishing
    from simplemem.kinds.learned.keeping import knowledge_of

    with _opened(vault) as store:
        knowledge = knowledge_of(store)
        count = len(knowledge.entries())
        if count:
            _must_be_meant(confirm, f"{_entries(count)} of {store.root} will go to the trash.")
        with finishing():
            gone, version = knowledge.reset(who=WHO, tool="reset")
        root = store.root
    if as_json:
        output.print_json({"deleted": gone, "version": version})
    elif not gone:
        output.say(("There was nothing.", "green"))
    else:
        output.say(
            (f"{_entries(gone)} in the trash", "green"),
            ", back with: ",
            (f"simplemem undo {version} --vault {root}", "bold"),
        )


def _must_be_meant(confirm: str | None, what: str) -> None:
    if confirm is None and sys.stdin.isatty() and sys.stderr.isatty():
        typer.echo(what, err=True)
        confirm = typer.prompt(f"Type {_WORD} to do it", default="", show_default=False, err=True)
    if (confirm or "").strip() != _WORD:
        raise Invalid("nothing was deleted", hint=f"Type the word, or pass --confirm {_WORD}.")


def _entries(count: int) -> str:
    return f"{count} entr{'y' if count == 1 else 'ies'}"


commands = typer.Typer()
commands.add_typer(_knowledge, name="knowledge", rich_help_panel="Keep")
