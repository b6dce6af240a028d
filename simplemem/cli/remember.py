"""The commands `documents add` and `facts tidy`."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from simplemem.cli.command import WHO, Answer, command, opened
from simplemem.cli.options import DryRunOption, Group, VaultOption, argument, duration, option
from simplemem.cli.output import SHRINKS, WHOLE, Part
from simplemem.errors import SimplememError
from simplemem.note.words import format_count

commands = typer.Typer()
_facts = typer.Typer(cls=Group, no_args_is_help=True, rich_markup_mode="rich")
commands.add_typer(
    _facts, name="facts", help="Facts that agents remember.", rich_help_panel="Collections"
)
_documents = typer.Typer(cls=Group, no_args_is_help=True, rich_markup_mode="rich")
commands.add_typer(
    _documents,
    name="documents",
    help="Documents and web pages, stored as notes.",
    rich_help_panel="Collections",
)


@command(_documents)
def add(
    sources: Annotated[
        list[str], argument("FILE|URL|-", "Files, addresses, or `-` for standard input.")
    ],
    scope: Annotated[str, option("--scope", "NAME", "The user that the documents belong to.")],
    title: Annotated[
        str, option("--title", "TEXT", "The title, instead of the document's own.")
    ] = "",
    vault: VaultOption = None,
) -> Iterator[Answer]:
    """Store documents and web pages as notes, and the facts in them.

    The formats are text, Markdown, HTML, PDF and DOCX. A PDF or DOCX file is stored beside its note. A document that is
    already stored is not stored again.

    $ simplemem documents add handbook.pdf letters/*.docx --scope alex
    $ simplemem documents add https://example.org/rules --scope alex --title 'House rules'
    $ pbpaste | simplemem documents add - --scope alex
    """
    from simplemem.features.documents.service import document_service
    from simplemem.models import AuthorArgs

    with opened(vault, make=True) as store:
        documents, by = document_service(store), AuthorArgs(who=WHO, tool="ingest")
        for source in sources:
            try:
                if re.match(r"https?://", source, re.IGNORECASE):
                    made = documents.ingest_url(source, scope, title, **by)
                else:
                    file, is_piped = Path(source).expanduser(), source == "-"
                    data = sys.stdin.buffer.read() if is_piped else file.read_bytes()
                    made = documents.ingest_file(
                        data, ".txt" if is_piped else file.name, scope, title, **by
                    )
                kept = sum(event["event"] != "NOOP" for event in made["memories"])
                line: list[Part] = [
                    ("Already stored: " if made.get("duplicate") else "Stored ", "green")
                ]
                line += [(made["name"], "cyan"), f", {format_count(kept, 'fact')}" if kept else ""]
                yield Answer(made, [line], warnings=made["warnings"])
            except (SimplememError, OSError) as error:
                hint = getattr(error, "hint", "")
                why = {
                    "code": getattr(error, "code", "unavailable"),
                    "message": str(error),
                    "hint": hint,
                }
                yield Answer(
                    {"source": source, "error": why},
                    warnings=[f"{source}: {error}. {hint}"],
                    failed=True,
                )


@command(_facts)
def tidy(
    older_than: Annotated[
        str, option("--older-than", "TIME", "Facts that have been outdated for this long.")
    ] = "30d",
    dry_run: DryRunOption = False,
    vault: VaultOption = None,
) -> Answer:
    """Move outdated facts to the trash, in one step.

    A fact is outdated if it has expired, or if another fact has replaced it. simplemem never removes facts by itself.

    $ simplemem facts tidy --older-than 90d --dry-run
    """
    from simplemem.features.facts.service import fact_service

    age = duration(older_than, "--older-than")
    with opened(vault) as store:
        gone = fact_service(store).tidy(age, dry_run=dry_run, who=WHO, tool="tidy")
    done = f"{format_count(len(gone), 'fact')} {'would be moved' if dry_run else 'moved'} to the trash."
    facts = [
        {"id": each.id, "name": each.path[:-3], "memory": each.statement, "scope": each.scope}
        for each in gone
    ]
    rows = [[(each.scope, "dim"), (each.statement, "cyan")] for each in gone]
    return Answer({"tidied": facts, "dry_run": dry_run}, [[done]], rows, columns=(WHOLE, SHRINKS))
