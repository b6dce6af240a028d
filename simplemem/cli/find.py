"""Commands that find notes: search and list. They change none."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from simplemem.cli.options import (
    DASHED_WORDS,
    AllOption,
    AuthorOption,
    JsonOption,
    LinkedByOption,
    LinkToOption,
    PrefixOption,
    Query,
    SinceOption,
    TagOption,
    TypeOption,
    UntilOption,
    VaultOption,
    command,
    complete_name,
    limit_option,
    refuse_unknown_options,
)

if TYPE_CHECKING:
    from rich.console import Console

    from simplemem.memory import Filter, Found, Hit, IndexState

commands = typer.Typer()
FIND_PANEL = "Find and read"


class Mode(StrEnum):
    HYBRID = "hybrid"
    TEXT = "text"
    SEMANTIC = "semantic"


class Sort(StrEnum):
    MODIFIED = "modified"
    CREATED = "created"
    NAME = "name"
    TITLE = "title"


@command(
    commands,
    FIND_PANEL,
    context_settings=DASHED_WORDS,
    examples=[
        "simplemem search pressure sensor in deep cold",
        "simplemem search 'how high did Dipper really go' --limit 3",
        "simplemem search gas --tag status=active --prefix decisions/",
        "simplemem search '\"burst altitude\" -cake tag:flight' --explain",
        "simplemem search gas prices --why 'Helium for lift'",
        "simplemem search gas author:human --since 'last month'",
        "simplemem search wind --since 'last month' --link-to 'Launch day runbook' --json",
    ],
)
def search(
    ctx: typer.Context,
    query: Query,
    tag: TagOption = None,
    require_all: AllOption = False,
    kind: TypeOption = None,
    prefix: PrefixOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    link_to: LinkToOption = None,
    linked_by: LinkedByOption = None,
    author: AuthorOption = None,
    mode: Annotated[Mode, typer.Option(help="By words, by meaning, or both.")] = Mode.HYBRID,
    limit: Annotated[
        int | None,
        typer.Option("--limit", min=1, metavar="N", help="How many notes at most (`search.limit`: 5)."),
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show the numbers behind each rank.")] = False,
    authors: Annotated[bool, typer.Option("--authors", help="Say who changed each note last, and when.")] = False,
    no_rerank: Annotated[
        bool, typer.Option("--no-rerank", help="Leave out the reranker that the settings name.")
    ] = False,
    why: Annotated[
        str | None,
        typer.Option(
            "--why",
            metavar="NAME",
            autocompletion=complete_name,
            help="Say where this note is in the ranking, or why it is not there.",
        ),
    ] = None,
    vault: VaultOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find notes by words, by meaning and by links.

    A query is words or a question. `"a phrase"`, `-word`, `tag:todo`, `path:people/`, `type:decision`
    and `author:human` narrow it; anything else is only words.
    """
    from simplemem.cli import output
    from simplemem.cli.opening import opened

    refuse_unknown_options(ctx, query)
    asked = " ".join(query)
    with opened(vault, embed=mode is not Mode.TEXT) as store:
        narrowed = filter_of(tag, require_all, kind, prefix, since, until, link_to, linked_by, author)
        found = store.search(
            asked,
            filter=narrowed,
            limit=limit or store.settings.search.limit,
            mode=mode.value,
            explain=explain,
            rerank=not no_rerank,
            why=why or "",
            authors=authors,
        )
    if as_json:
        output.print_json(found.as_dict())
        return
    if found.why is None or explain:
        _print_found(found)
    if found.why is not None:
        from simplemem.cli.explained import print_why

        print_why(found)


def filter_of(
    tags: Sequence[str] | None,
    require_all: bool,
    kind: str | None,
    prefix: str | None,
    since: str | None,
    until: str | None,
    link_to: str | None = None,
    linked_by: str | None = None,
    author: str | None = None,
) -> Filter:
    """What the filter options mean."""
    from simplemem.memory import Filter

    wanted: dict[str, str] = {}
    for tag in tags or ():
        key, _, value = tag.removeprefix("#").partition("=")
        # Two values of one key (`status=open`, `status=done`) are asked for as two nested tags.
        if key in wanted and value:
            key, value = f"{key}/{value}", ""
        wanted[key] = value
    return Filter.of(
        tags=wanted,
        require_all=require_all,
        type=kind,
        prefix=prefix,
        since=since,
        until=until,
        link_to=link_to,
        linked_by=linked_by,
        author=author,
    )


def _print_found(found: Found) -> None:
    from simplemem.cli import output

    if not found.hits:
        output.say("Nothing found.")
    screen = output.console()
    asked = output.words_asked(found.query)
    for rank, hit in enumerate(found.hits, 1):
        _print_hit(rank, hit, asked, screen)
    if found.explain is not None:
        from simplemem.cli.explained import print_explained

        print_explained(found)
    if found.degraded:
        output.warn(found.degraded)
    if found.mode != "text":
        warn_unless_ready(found.index, found.degraded)


def _print_hit(rank: int, hit: Hit, asked: frozenset[str], screen: Console) -> None:
    from simplemem.cli import output

    title = hit.title if hit.title != hit.name.rsplit("/", 1)[-1] else ""
    place = " › ".join(part.strip() for part in hit.heading.split(" > ")) if hit.heading else ""
    where = " · ".join(filter(None, (place, f"line {hit.line}" if hit.line else "", output.tags_shown(hit.tags))))
    output.say(
        (f"{rank:>2}  ", "dim"),
        (hit.name, "bold cyan"),
        (f"  {output.one_line(title)}" if title else "", ""),
        (f"  {hit.score:.2f}", "dim"),
        screen=screen,
    )
    if where:
        output.say("    ", (output.one_line(where), "dim"), screen=screen)
    if hit.snippet:
        output.say_indented(output.with_words_bold(hit.snippet, asked), 4, screen)
    if hit.authors:
        written = f", {output.day(hit.written)}" if hit.written else ""
        output.say("    ", (f"by {output.one_line(' and '.join(hit.authors))}{written}", "dim"), screen=screen)
    if hit.why:
        from simplemem.cli.explained import held_and_missing

        output.say("    ", (f"why  {held_and_missing(hit.why)}", "dim"), screen=screen)


def warn_unless_ready(index: IndexState, said: str = "") -> None:
    """Say so when an answer may lack what is not indexed yet (DESIGN §1.6), unless what was `said` tells of it."""
    from simplemem.cli import output

    # Notes that vanished all at once are told of where the vault is opened.
    if (index.state == "indexing" or index.pending) and not (index.reason and index.reason.rstrip(".") in said):
        output.warn(index.reason or f"{index.pending} notes are still to be indexed")


@command(
    commands,
    FIND_PANEL,
    name="list",
    examples=[
        "simplemem list",
        "simplemem list --tag status=active --sort name",
        "simplemem list --prefix meetings/ --since 2025-11 --limit 100",
        "simplemem list --all-notes --json | jq -r '.items[].name'",
    ],
)
def list_notes(
    tag: TagOption = None,
    require_all: AllOption = False,
    kind: TypeOption = None,
    prefix: PrefixOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    sort: Annotated[Sort, typer.Option(help="Dates: newest first.")] = Sort.MODIFIED,
    limit: Annotated[int, limit_option("How many notes at most.")] = 50,
    all_notes: Annotated[bool, typer.Option("--all-notes", help="Every note, however many.")] = False,
    vault: VaultOption = None,
    as_json: JsonOption = False,
) -> None:
    """List notes, newest first."""
    from simplemem.cli import output
    from simplemem.cli.opening import opened

    items: list[Any] = []
    cursor: str | None = None
    with opened(vault) as store:
        narrowed = filter_of(tag, require_all, kind, prefix, since, until)
        while True:
            wanted = 500 if all_notes else min(500, limit - len(items))
            page = store.list(filter=narrowed, sort=sort.value, limit=wanted, cursor=cursor)
            items += page.items
            cursor = page.next_cursor
            if cursor is None or not (all_notes or len(items) < limit):
                break
    if as_json:
        shown = page.as_dict()
        output.print_json(shown | {"items": [item.as_dict() for item in items], "next_cursor": cursor})
        return
    output.print_table(
        (
            [
                output.styled((item.name, "cyan")),
                output.styled(output.one_line(item.title) if item.title != item.name.rsplit("/", 1)[-1] else ""),
                output.styled((output.tags_shown(item.tags), "green")),
                output.styled((output.day(item.modified), "dim")),
                output.styled(("unreadable" if item.problem else "", "yellow")),
            ]
            for item in items
        ),
        gives_way=2,
    )
    if not items:
        output.say("No notes.")
    elif len(items) < page.total:
        output.warn(f"{len(items)} of {page.total} notes; --limit or --all-notes shows more")
