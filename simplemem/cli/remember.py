"""The commands `ingest` and `atoms tidy`: documents come in, statements that no longer hold go."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from simplemem.cli.command import WHO, Answer, command, opened
from simplemem.cli.options import Group, VaultOption, argument, flag, option
from simplemem.cli.output import Part
from simplemem.errors import SimplememError
from simplemem.note.words import counted

commands = typer.Typer()
_atoms = typer.Typer(cls=Group, no_args_is_help=True, rich_markup_mode="rich")
commands.add_typer(_atoms, name="atoms", help="Look after the statements that agents keep.", rich_help_panel="Keep")


@command(commands, "Write")
def ingest(
    sources: Annotated[list[str], argument("FILE|URL|-", "Files, addresses, or `-` for a text from standard input.")],
    scope: Annotated[str, option("--scope", "NAME", "Whose it is, as agents name them.")],
    title: Annotated[str, option("--title", "TEXT", "What it is called, in place of its own title.")] = "",
    vault: VaultOption = None,
) -> Iterator[Answer]:
    """Keep documents: text, Markdown, HTML, PDF and DOCX become notes, and what they state becomes statements.

    A PDF or DOCX lies beside its note. The same again is the same document.

    $ simplemem ingest handbook.pdf letters/*.docx --scope alex
    $ simplemem ingest https://example.org/rules --scope alex --title 'House rules'
    $ pbpaste | simplemem ingest - --scope alex
    """
    from simplemem.kinds.documents.ingest import documents_of
    from simplemem.memory import By

    with opened(vault, make=True) as store:
        documents, by = documents_of(store), By(who=WHO, tool="ingest")
        for source in sources:
            try:
                if re.match(r"https?://", source, re.IGNORECASE):
                    made = documents.ingest_url(source, scope, title, **by)
                else:
                    file, is_piped = Path(source).expanduser(), source == "-"
                    data = sys.stdin.buffer.read() if is_piped else file.read_bytes()
                    made = documents.ingest_file(data, ".txt" if is_piped else file.name, scope, title, **by)
                kept = sum(event["event"] != "NOOP" for event in made["memories"])
                said: list[Part] = [("Known already: " if made.get("duplicate") else "Kept ", "green")]
                said += [(made["name"], "cyan"), f", {counted(kept, 'statement')}" if kept else ""]
                yield Answer(made, [said], warnings=made["warnings"])
            except (SimplememError, OSError) as error:
                hint = getattr(error, "hint", "")
                why = {"code": getattr(error, "code", "unavailable"), "message": str(error), "hint": hint}
                yield Answer({"source": source, "error": why}, warnings=[f"{source}: {error}. {hint}"], failed=True)


@command(_atoms)
def tidy(
    older_than: Annotated[str, option("--older-than", "DAYS", "What has not held for so many days.")] = "30d",
    dry_run: Annotated[bool, flag("--dry-run", "Only show what would go.")] = False,
    vault: VaultOption = None,
) -> Answer:
    """Put statements that no longer hold into the trash, as one change. Nothing else ever clears any away.

    $ simplemem atoms tidy --older-than 90d --dry-run
    """
    from simplemem.kinds.atoms.keeping import memories_of

    if (days := re.fullmatch(r"(\d{1,5})d?", older_than)) is None:
        raise typer.BadParameter(f"{older_than!r} is no number of days: write 30d", param_hint="--older-than")
    with opened(vault) as store:
        gone = memories_of(store).tidy(timedelta(int(days[1])), dry_run=dry_run, who=WHO, tool="tidy")
    said = f"{counted(len(gone), 'statement')} {'would go' if dry_run else 'put'} into the trash."
    facts = [{"id": each.id, "name": each.path[:-3], "memory": each.statement, "scope": each.scope} for each in gone]
    rows = [[(each.scope, "dim"), (each.statement, "cyan")] for each in gone]
    return Answer({"tidied": facts, "dry_run": dry_run}, [[said]], rows, gives_way=1)
