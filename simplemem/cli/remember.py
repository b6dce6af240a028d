"""The commands `documents add` and `facts tidy`."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from simplemem.cli.command import WHO, Answer, command, opened
from simplemem.cli.options import DryRunOption, Group, VaultOption, argument, duration, option
from simplemem.cli.output import SHRINKS, WHOLE, Part
from simplemem.errors import SimplememError
from simplemem.note.words import format_count

if TYPE_CHECKING:
    from simplemem.features.answers import IngestResult
    from simplemem.store import EnhancedStore

_WEB_ADDRESS: Final = re.compile(r"https?://", re.IGNORECASE)

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

    The formats are text, Markdown, HTML, PDF and DOCX. A PDF or DOCX file is stored beside its
    note. A document that is already stored is not stored again.

    $ simplemem documents add handbook.pdf letters/*.docx --scope alex
    $ simplemem documents add https://example.org/rules --scope alex --title 'House rules'
    $ pbpaste | simplemem documents add - --scope alex
    """
    with opened(vault, make=True) as store:
        for source in sources:
            try:
                result = _ingest(store, source, scope, title)
            except (SimplememError, OSError) as error:
                yield _error_answer(source, error)
            else:
                yield _ingest_answer(result)


def _ingest(store: EnhancedStore, source: str, scope: str, title: str) -> IngestResult:
    """Store a web page, a file or, for "-", the standard input as a document.

    `scope` is the user that it belongs to; `title` replaces its own unless it is "".

    Raises Invalid for a scope, an address or a format that is not allowed, NotFound if the page is
    gone, TooLong, Unreadable if it has no text, Unavailable, and OSError if the file cannot be
    read.
    """
    from simplemem.features.documents.service import document_service
    from simplemem.models import AuthorArgs

    documents = document_service(store)
    by = AuthorArgs(who=WHO, tool="ingest")
    if _WEB_ADDRESS.match(source):
        return documents.ingest_url(source, scope, title, **by)
    if source == "-":
        data = sys.stdin.buffer.read()
        return documents.ingest_file(data, ".txt", scope, title, **by)

    file = Path(source).expanduser()
    return documents.ingest_file(file.read_bytes(), file.name, scope, title, **by)


def _ingest_answer(result: IngestResult) -> Answer:
    """Return the answer for a document that is stored now or was stored already."""
    verb = "Already stored: " if result.get("duplicate") else "Stored "
    line: list[Part] = [(verb, "green"), (result["name"], "cyan")]
    new_facts = [event for event in result["memories"] if event["event"] != "NOOP"]
    if new_facts:
        line.append(f", {format_count(len(new_facts), 'fact')}")
    return Answer(result, [line], warnings=result["warnings"])


def _error_answer(source: str, error: SimplememError | OSError) -> Answer:
    """Return the failed answer for a source that could not be stored.

    An error of the system has the code of Unavailable, and no hint.
    """
    code = "unavailable"
    hint = ""
    if isinstance(error, SimplememError):
        code = error.code
        hint = error.hint
    facts = {"source": source, "error": {"code": code, "message": str(error), "hint": hint}}
    return Answer(facts, warnings=[f"{source}: {error}. {hint}"], failed=True)


@command(_facts)
def tidy(
    older_than: Annotated[
        str, option("--older-than", "TIME", "Facts that have been outdated for this long.")
    ] = "30d",
    dry_run: DryRunOption = False,
    vault: VaultOption = None,
) -> Answer:
    """Move outdated facts to the trash, in one step.

    A fact is outdated if it has expired, or if another fact has replaced it. simplemem never
    removes facts by itself.

    $ simplemem facts tidy --older-than 90d --dry-run
    """
    from simplemem.features.facts.service import fact_service
    from simplemem.note.names import name_of

    age = duration(older_than, "--older-than")
    with opened(vault) as store:
        facts = fact_service(store).tidy(age, dry_run=dry_run, who=WHO, tool="tidy")

    verb = "would be moved" if dry_run else "moved"
    message = f"{format_count(len(facts), 'fact')} {verb} to the trash."
    tidied: list[dict[str, str]] = []
    rows: list[list[Part]] = []
    for fact in facts:
        rows.append([(fact.scope, "dim"), (fact.statement, "cyan")])
        tidied.append(
            {
                "id": fact.id,
                "name": name_of(fact.path),
                "memory": fact.statement,
                "scope": fact.scope,
            }
        )
    return Answer(
        {"tidied": tidied, "dry_run": dry_run},
        [[message]],
        rows,
        columns=(WHOLE, SHRINKS),
    )
