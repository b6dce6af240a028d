"""Commands that read what was found: show, backlinks, context. They change no note."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from simplemem.cli.find import FIND_PANEL, filter_of, warn_unless_ready
from simplemem.cli.options import (
    DASHED_WORDS,
    AllOption,
    JsonOption,
    LinkedByOption,
    LinkToOption,
    Name,
    PrefixOption,
    Query,
    SinceOption,
    TagOption,
    TypeOption,
    UntilOption,
    VaultOption,
    command,
    limit_option,
    refuse_unknown_options,
)
from simplemem.errors import Invalid

if TYPE_CHECKING:
    from simplemem.memory import Backlink, Memory

commands = typer.Typer()


class Kind(StrEnum):
    LINK = "link"
    SEMANTIC = "semantic"


@command(
    commands,
    FIND_PANEL,
    examples=[
        "simplemem show Dipper",
        "simplemem show 'Launch day runbook' --section Filling",
        "simplemem show 'decisions/Hydrogen for lift' --links",
        "simplemem show Dipper --at '3 days ago'",
        "simplemem show Dipper --version 12 | diff - <(simplemem show Dipper)",
    ],
)
def show(
    name: Name,
    section: Annotated[
        str | None,
        typer.Option("--section", metavar="HEADING", help="Only this section, or block as `^id`."),
    ] = None,
    version: Annotated[
        str | None,
        typer.Option(
            "--version",
            metavar="VERSION",
            help="The note as of this version of `simplemem history`.",
        ),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(
            "--at",
            metavar="WHEN",
            help="The note as it was: `2026-01-24`, `yesterday`, `v12`, `before v12`. A day means its end.",
        ),
    ] = None,
    links: Annotated[bool, typer.Option("--links", help="Only what it links to, and what links to it.")] = False,
    vault: VaultOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print a note. Into a pipe it goes as it is, to the byte."""
    from simplemem.cli import output
    from simplemem.cli.opening import opened

    if at and version:
        raise Invalid("give --at or --version, not both")
    with opened(vault) as store:
        memory = store.read(name, section=section, version=version, at=at)
    if as_json:
        output.print_json(memory.as_dict())
    elif links:
        _print_links(memory)
    else:
        _print_text(memory.content if section else memory.text)
        if memory.problem:
            output.warn(memory.problem)


def _print_text(text: str) -> None:
    from simplemem.cli import output

    screen = output.console()
    if not screen.is_terminal:
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode("utf-8", "surrogatepass"))
        sys.stdout.buffer.flush()
        return
    header = text.startswith("---")
    for number, line in enumerate(text.removesuffix("\n").split("\n")):
        style = "dim" if header else "bold" if line.startswith("#") else ""
        header = header and not (number and line.rstrip() == "---")
        output.say((line.removesuffix("\r"), style), screen=screen)


def _print_links(memory: Memory) -> None:
    from simplemem.cli import output

    rows = [
        output.styled(
            ("links to     ", "dim"),
            (link.target, "cyan" if link.resolved else "yellow"),
            (f"  line {link.line}", "dim"),
            ("" if link.resolved else "  unresolved", "yellow"),
            ("  ambiguous" if link.ambiguous else "", "yellow"),
        )
        for link in memory.links
    ]
    rows += [output.styled(("linked from  ", "dim"), (name, "cyan")) for name in memory.backlinks]
    screen = output.console()
    for row in rows or [output.styled("No links.")]:
        screen.print(row, soft_wrap=True)


@command(
    commands,
    FIND_PANEL,
    examples=[
        "simplemem backlinks 'Ida Marsh'",
        "simplemem backlinks Dipper --kind link --limit 50",
        "simplemem backlinks 'Helium for lift' --query price --json",
    ],
)
def backlinks(
    name: Name,
    query: Annotated[
        str | None,
        typer.Option("--query", metavar="WORDS", help="Nearest to these words first."),
    ] = None,
    kind: Annotated[list[Kind] | None, typer.Option("--kind", help="Only links, or only notes alike.")] = None,
    limit: Annotated[int, limit_option("How many at most; links come first.")] = 10,
    vault: VaultOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what links to a note, and which notes are like it."""
    from simplemem.cli import output
    from simplemem.cli.opening import opened

    kinds = [each.value for each in kind or list(Kind)]
    with opened(vault, embed="semantic" in kinds) as store:
        resolved = store.resolve(name)
        items = store.backlinks(resolved, query=query, limit=limit, kinds=kinds)
    if as_json:
        output.print_json({"name": resolved, "items": [item.as_dict() for item in items]})
        return
    if not items:
        output.say("Nothing links here, and nothing is like it.")
    for item in items:
        _print_backlink(item)


def _print_backlink(item: Backlink) -> None:
    from simplemem.cli import output

    screen = output.console()
    place = f"{item.form}, line {item.line}" if item.kind == "link" else f"alike {item.score:.2f}"
    output.say((item.name, "bold cyan"), (f"  {place}", "dim"), screen=screen)
    if item.snippet:
        output.say_indented(output.styled(output.one_line(item.snippet)), 4, screen)


@command(
    commands,
    FIND_PANEL,
    context_settings=DASHED_WORDS,
    examples=[
        "simplemem context 'why did we give up helium'",
        "simplemem context launch checklist --budget 3000 --tag safety",
        "simplemem context 'what goes wrong in the cold' --json | jq .tokens",
    ],
)
def context(
    ctx: typer.Context,
    query: Query,
    budget: Annotated[int, typer.Option("--budget", min=50, metavar="TOKENS", help="How long it may be.")] = 1500,
    tag: TagOption = None,
    require_all: AllOption = False,
    kind: TypeOption = None,
    prefix: PrefixOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    link_to: LinkToOption = None,
    linked_by: LinkedByOption = None,
    vault: VaultOption = None,
    as_json: JsonOption = False,
) -> None:
    """Pack what bears on a question into one text, ready for a prompt."""
    from simplemem.cli import output
    from simplemem.cli.opening import opened

    refuse_unknown_options(ctx, query)
    with opened(vault, embed=True) as store:
        narrowed = filter_of(tag, require_all, kind, prefix, since, until, link_to, linked_by)
        pack = store.context(" ".join(query), budget_tokens=budget, filter=narrowed)
    if as_json:
        output.print_json(pack.as_dict())
        return
    if not pack.items:
        output.say(f"Nothing fits into {budget} tokens." if pack.left_out else "Nothing found.")
    else:
        _print_text(pack.text if pack.text.endswith("\n") else pack.text + "\n")
    left = [f"{pack.left_out} for the budget"] if pack.left_out else []
    left += [f"{pack.duplicates} that say the same"] if pack.duplicates else []
    if left and output.console(stderr=True).is_terminal:  # hardly news, and so no remark for a script to hear
        counted = f"about {pack.tokens} tokens" if pack.tokenizer == "estimate" else f"{pack.tokens} tokens"
        output.warn(f"{counted}; passages left out: {', '.join(left)}")
    if pack.degraded:
        output.warn(pack.degraded)
    warn_unless_ready(pack.index, pack.degraded)
