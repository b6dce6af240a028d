"""Commands that find and read notes: search, list, show, backlinks, context. They change none."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from simplemem.cli.command import Answer, command, for_a_program, opened, with_next_step
from simplemem.cli.options import (
    LINKS,
    NOTES,
    Name,
    Query,
    VaultOption,
    argument,
    complete_name,
    flag,
    limit_option,
    option,
)
from simplemem.cli.output import (
    OPTIONAL,
    SHRINKS,
    WHOLE,
    Lines,
    Screen,
    day,
    highlighted,
    in_words,
    labelled,
    one_line,
    short_title,
    tags_shown,
    words_asked,
)
from simplemem.errors import Invalid, NotFound
from simplemem.note.words import format_count

if TYPE_CHECKING:
    from simplemem.models import Filter, Hit, IndexState
    from simplemem.store import EnhancedStore

commands = typer.Typer()
_PANEL = "Find and read"
_LEFT_OUT = {"hidden": "excluded from search"}  # how the JSON answer names what was left out
_PAGE = 500  # notes of a list that are asked for at once
Mode = StrEnum("Mode", "hybrid text semantic")
Sort = StrEnum("Sort", "modified created name title")
LinkKind = StrEnum("LinkKind", "link semantic")
OptionalQuery = Annotated[list[str] | None, argument("QUERY", "Words, or a question.")]
_EXPLAIN_NOTE = "Show the rank of this note, or why it was not found."
At = Annotated[
    str | None,
    option(
        "--at", "WHEN", "As of this time: `2026-01-24` (the end of the day), `v12`, `before v12`."
    ),
]


@command(
    commands,
    _PANEL,
    filters=(*NOTES, *LINKS, "author"),
    dashed_words=True,
    old_options={"--why": "explain_note"},
)
def search(
    narrowed: Filter,
    query: OptionalQuery = None,
    mode: Annotated[Mode, typer.Option(help="Compare words, meaning, or both.")] = Mode.hybrid,
    limit: Annotated[
        int | None,
        limit_option("The maximum number of notes. The default is the setting `search.limit`."),
    ] = None,
    explain: Annotated[bool, flag("--explain", "Show how each rank was computed.")] = False,
    authors: Annotated[
        bool, flag("--authors", "Show who changed each note last, and when.")
    ] = False,
    no_rerank: Annotated[
        bool, flag("--no-rerank", "Do not use the reranker that the settings name.")
    ] = False,
    explain_note: Annotated[
        str, option("--explain-note", "NAME", _EXPLAIN_NOTE, complete_name)
    ] = "",
    vault: VaultOption = None,
) -> Answer:
    """Find notes by words, by meaning and by links.

    A query consists of words, or is a question. `"a phrase"`, `-word`, `tag:todo`, `path:people/`, `type:decision`
    and `author:human` narrow the search. Without words, the newest notes that match the filters are listed.

    $ simplemem search pressure sensor in deep cold
    $ simplemem search 'how high did Dipper really go' --limit 3
    $ simplemem search gas --tag status=active --prefix decisions/
    $ simplemem search --tag todo
    $ simplemem search '"burst altitude" -cake tag:flight' --explain
    $ simplemem search gas prices --explain-note 'Helium for lift'
    $ simplemem search gas author:human --since 'last month'
    $ simplemem search wind --link-to 'Launch day runbook' --json"""
    from simplemem.models import Filter

    text = " ".join(query or ())
    if not text.strip() and replace(narrowed, require_all=False) == Filter():
        raise typer.BadParameter("give words to search for, or a filter such as --tag")
    with opened(vault, embed=mode is not Mode.text) as store:
        how: Any = {
            "mode": mode.value,
            "explain": explain,
            "authors": authors,
            "rerank": not no_rerank,
        }
        found = store.search(text, filter=narrowed, limit=limit, why=explain_note, **how)
    found = replace(found, index=with_next_step(found.index))
    lines, labels, warnings = Lines(), dict[str, str](), list[str]()
    if (why_it := found.why) is None or found.explain is not None:
        is_absence_first = bool(found.absent and found.hits and found.only_nearest)
        if is_absence_first:
            lines.append([(_absent_words(found.absent, found.not_searched), "dim")])
        if not found.hits:
            lines.append(["Nothing found." if found.index.is_ready else "No answer yet."])
        elif found.notice:
            lines.append([found.notice])
        for rank, hit in enumerate(found.hits, 1):
            lines += _hit(rank, hit, found.query, show_score=not found.only_nearest)
        if found.absent and not is_absence_first:
            absent = _absent_words(found.absent, found.not_searched)
            if found.hits:
                is_whole_query = set(words_asked(found.query)) <= set(found.absent)
                reason = (
                    "are the nearest by meaning"
                    if is_whole_query
                    else "were found by the rest of the query"
                )
                absent += f" The hits {reason}."
            lines.append([(absent, "dim")])
        if found.explain is not None:
            labels = _explained(found.explain)
            left_out = found.explain["not_searched"].items()
            warnings += [
                f"not searched, {_LEFT_OUT.get(of, of.replace('_', ' '))}: {in_words(left)}"
                for of, left in left_out
                if left
            ]
        warnings += _doubts(found.degraded, found.index if found.mode != "text" else None)
    if why_it is not None:
        verdict = (why_it["because"], "green" if why_it["verdict"] == "hit" else "yellow")
        lines.append([(why_it["name"], "bold cyan"), "  ", verdict])
        lines += [["    ", why_it["hint"]]] if why_it["hint"] else []
        lines += (
            [["    ", (_held(why_it), "dim")]]
            if why_it.get("matched") or why_it.get("missing")
            else []
        )
    return Answer(
        found.as_dict(), [*lines, []] if labels else lines, labelled=labels, warnings=warnings
    )


def _absent_words(words: Sequence[str], not_searched: int) -> str:
    """Say which words of a query no note contains, and how many notes were not looked at."""
    text = one_line(f"No note contains: {', '.join(words)}.")
    if not_searched:
        text += f" Not looked at: {format_count(not_searched, 'note')} excluded from search."
    return text


def _hit(rank: int, hit: Hit, query: str, *, show_score: bool) -> Lines:
    """Return the lines of one hit.

    Leave the score out if no hit answers the query: it only compares the hits with each other.
    """
    title = short_title(hit.title, hit.name)
    title = f"  {title}" if title else ""
    score = f"  {hit.score:.2f}" if show_score else ""
    lines: Lines = [[(f"{rank:>2}  ", "dim"), (hit.name, "bold cyan"), title, (score, "dim")]]
    place = " › ".join(part.strip() for part in hit.heading.split(" > ")) if hit.heading else ""
    where = " · ".join(
        filter(None, (place, f"line {hit.line}" if hit.line else "", tags_shown(hit.tags)))
    )
    lines += [["    ", (one_line(where), "dim")]] if where else []
    lines += [["    ", *highlighted(one_line(hit.snippet), query)]] if hit.snippet else []
    if hit.authors:
        written = f", {day(hit.written)}" if hit.written else ""
        lines.append(["    ", (f"by {one_line(' and '.join(hit.authors))}{written}", "dim")])
    if hit.why:
        shares = {
            part.replace("_", " "): number
            for part, number in hit.why.items()
            if isinstance(number, float)
        }
        numbers = (f"{part} {number:.2f}" for part, number in shares.items() if number)
        lines.append(["    ", (f"why  {', '.join(numbers)} · {_held(hit.why)}", "dim")])
    return lines


def _doubts(degraded: str, index: IndexState | None) -> list[str]:
    """What lessens an answer, also that not all is indexed yet, if that is not said with it."""
    doubts = [degraded] if degraded else []
    # Notes that vanished all at once are told of where the vault is opened.
    if index and (index.state == "indexing" or index.pending):
        late = index.reason or f"{index.pending} notes are not indexed yet"
        doubts += [] if late.rstrip(".") in degraded else [late]
    return doubts


def _held(why: Mapping[str, Any]) -> str:
    """`contains launch, budget · lacks quetzal`."""
    held, lacking = ", ".join(why["matched"]), ", ".join(why["missing"])
    return (f"contains {held}" if held else "contains none of the words") + (
        f" · lacks {lacking}" if lacking else ""
    )


def _explained(explain: Mapping[str, Any]) -> dict[str, str]:
    """How the question was read and carried out. `--json` has all of it."""
    words = ", ".join(f"{word} in {count}" for word, count in explain["notes_with"].items())
    searched = f"{explain['notes_after_filter']} of {format_count(explain['notes'], 'note')}"
    removed = ", ".join(
        f"{each['filter']} {each['value']}: {each['removed']}" for each in explain["filters"]
    )
    facts = {
        "formula": explain["formula"],
        "notes with": words,
        "searched": searched,
        "removed": removed,
    }
    return {key: one_line(value) for key, value in facts.items() if value}


@command(commands, _PANEL, name="list", filters=NOTES)
def list_notes(
    narrowed: Filter,
    sort: Annotated[
        Sort, typer.Option(help="The order; dates are sorted newest first.")
    ] = Sort.modified,
    limit: Annotated[int, limit_option("The maximum number of notes.")] = 50,
    all_notes: Annotated[bool, flag("--all-notes", "List every note.")] = False,
    vault: VaultOption = None,
) -> Answer:
    """List notes, newest first.

    $ simplemem list
    $ simplemem list --tag status=active --sort name
    $ simplemem list --prefix meetings/ --since 2025-11 --limit 100
    $ simplemem list --all-notes --json | jq -r '.items[].name'"""
    items: list[Any] = []
    cursor: str | None = None
    with opened(vault) as store:
        while True:
            wanted = _PAGE if all_notes else min(_PAGE, limit - len(items))
            page = store.list(filter=narrowed, sort=sort.value, limit=wanted, cursor=cursor)
            items += page.items
            cursor = page.next_cursor
            if cursor is None or not (all_notes or len(items) < limit):
                break
    facts = replace(page, items=tuple(items)).as_dict()
    if not items:
        return Answer(facts, [["No notes."]], warnings=[page.degraded] if page.degraded else [])
    rows = Lines()
    for item in items:
        title, tags = short_title(item.title, item.name), (tags_shown(item.tags), "green")
        problem = ("unreadable" if item.problem else "", "yellow")
        rows.append([(item.name, "cyan"), title, tags, (day(item.modified), "dim"), problem])
    more = f"Shown: {len(rows)} of {page.total} notes; --limit or --all-notes shows more"
    columns = (WHOLE, SHRINKS, SHRINKS, WHOLE, OPTIONAL)
    return Answer(facts, table=rows, columns=columns, more=more if len(rows) < page.total else "")


@command(commands, _PANEL, filters=NOTES)
def tasks(narrowed: Filter, vault: VaultOption = None) -> Answer:
    """List open tasks.

    An open task is a line `- [ ] text`. Only the 500 newest notes with open tasks are read. With several --tag, only
    notes with all of these tags are read. `list --tag task=open` lists the notes.

    $ simplemem tasks --prefix projects/"""
    from simplemem.note.note import read_note

    narrowed = replace(narrowed, tags={**narrowed.tags, "task": "open"}, require_all=True)
    with opened(vault) as store:
        notes = [store.read(each.name) for each in store.list(filter=narrowed, limit=_PAGE).items]
    every = [
        (note.name, line, said)
        for note in notes
        for line, said in read_note(note.text.encode()).open_tasks
    ]
    lines: Lines = [[(f"{name}:{line}  ", "cyan"), one_line(said)] for name, line, said in every]
    facts = {"tasks": [dict(zip(("name", "line", "text"), task, strict=True)) for task in every]}
    return Answer(facts, lines or [["No open tasks."]])


@command(commands, _PANEL)
def show(
    name: Name,
    section: Annotated[
        str | None, option("--section", "HEADING", "Only this section, or the block `^id`.")
    ] = None,
    version: Annotated[
        str | None, option("--version", "VERSION", "As of this version in `history`.")
    ] = None,
    at: At = None,
    links: Annotated[
        bool, flag("--links", "Show only the links of the note and the links to it.")
    ] = False,
    raw: Annotated[bool, flag("--raw", "Print the Markdown source, even in a terminal.")] = False,
    vault: VaultOption = None,
) -> Answer:
    """Print a note.

    A terminal shows the rendered note, one screen at a time. A pipe gets the file byte for byte.

    $ simplemem show Dipper
    $ simplemem show './flights/Flight 2 Dipper.md'
    $ simplemem show 'Launch day runbook' --section Filling
    $ simplemem show 'decisions/Hydrogen for lift' --links
    $ simplemem show Dipper --at '3 days ago'
    $ simplemem show Dipper --version 12 | diff - <(simplemem show Dipper)"""
    if at and version:
        raise Invalid("--at and --version cannot be combined", hint="Leave one of them out.")
    is_rendered = Screen().is_terminal and not raw
    with opened(vault) as store:
        name, warnings = _without_accents(store, name)
        if not (links or section or is_rendered or for_a_program()):
            note = store.read_text(name, version=version, at=at)
            warnings += [note.problem] if note.problem else []
            return Answer({}, text=note.text, warnings=warnings)
        memory = store.read(name, section=section, version=version, at=at)
    if links:
        lines = Lines()
        for link in memory.links:
            target = (link.target, "cyan" if link.resolved else "yellow")
            state = f"{'' if link.resolved else '  unresolved'}{'  ambiguous' if link.ambiguous else ''}"
            lines.append(
                [
                    ("links to     ", "dim"),
                    target,
                    (f"  line {link.line}", "dim"),
                    (state, "yellow"),
                ]
            )
        lines += [[("linked from  ", "dim"), (name, "cyan")] for name in memory.backlinks]
        return Answer(memory.as_dict(), lines=lines or [["No links."]])
    warnings += [memory.problem] if memory.problem else []
    if is_rendered:
        about = {} if section else labelled(memory.frontmatter)
        return Answer(memory.as_dict(), labelled=about, markdown=memory.content, warnings=warnings)
    return Answer(
        memory.as_dict(), text=memory.content if section else memory.text, warnings=warnings
    )


def _without_accents(store: EnhancedStore, name: str) -> tuple[str, list[str]]:
    """The name of the note to show, and a warning if it differs from the given one by accents.

    A note is shown for a name without accents only if it is the only one.
    """
    try:
        store.resolve(name)
    except NotFound as error:
        typed = _plain_letters(name)
        similar = [
            each
            for each in error.details.get("candidates", ())
            if typed in (_plain_letters(each), _plain_letters(each.rsplit("/", 1)[-1]))
        ]
        if len(similar) == 1:
            return similar[0], [f"this is {similar[0]}"]
    return name, []


def _plain_letters(text: str) -> str:
    """A text in lower case without accents."""
    letters = unicodedata.normalize("NFD", text.casefold())
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


@command(commands, _PANEL)
def backlinks(
    name: Name,
    query: Annotated[
        str | None, option("--query", "WORDS", "Sort by similarity to these words.")
    ] = None,
    kind: Annotated[
        list[LinkKind] | None,
        typer.Option(
            "--kind", metavar="link|semantic", help="Only notes that link, or only similar notes."
        ),
    ] = None,
    limit: Annotated[int, limit_option("The maximum number of notes; links come first.")] = 10,
    vault: VaultOption = None,
) -> Answer:
    """List the notes that link to a note, and similar notes.

    $ simplemem backlinks 'Ida Marsh'
    $ simplemem backlinks Dipper --kind link --limit 50
    $ simplemem backlinks 'Helium for lift' --query price --json"""
    kinds = [each.value for each in kind or list(LinkKind)]
    with opened(vault, embed="semantic" in kinds) as store:
        resolved = store.resolve(name)
        items = store.backlinks(resolved, query=query, limit=limit, kinds=kinds)
        trouble = store.rerank_trouble if query else ""
    lines = Lines()
    for item in items:
        numbers = ", ".join(map(str, [item.line, *(at.line for at in item.also)]))
        place = f"{item.form}, line{'s' * bool(item.also)} {numbers}"
        place = place if item.kind == "link" else f"similarity {item.score:.2f}"
        lines.append([(item.name, "bold cyan"), (f"  {place}", "dim")])
        lines += [["    ", one_line(item.snippet)]] if item.snippet else []
    lines = lines or [["No note links to this note, and no note is similar to it."]]
    facts = {"name": resolved, "items": [item.as_dict() for item in items]}
    return Answer(facts, lines, warnings=[trouble] if trouble else [])


@command(commands, _PANEL, filters=(*NOTES, *LINKS), dashed_words=True)
def context(
    query: Query,
    narrowed: Filter,
    budget: Annotated[
        int, option("--budget", "TOKENS", "The maximum length of the text, in tokens.", min=50)
    ] = 1500,
    vault: VaultOption = None,
) -> Answer:
    """Collect the passages that answer a question, for a prompt.

    $ simplemem context 'why did we give up helium'
    $ simplemem context launch checklist --budget 3000 --tag safety
    $ simplemem context 'what goes wrong in the cold' --json | jq .tokens"""
    with opened(vault, embed=True) as store:
        pack = store.context(" ".join(query), budget_tokens=budget, filter=narrowed)
    pack = replace(pack, index=with_next_step(pack.index))
    warnings = [_absent_words(pack.absent, pack.not_searched)] if pack.absent else []
    left = [f"{pack.left_out} over the budget"] if pack.left_out else []
    left += [f"{pack.duplicates} repeated"] if pack.duplicates else []
    if left and Screen().is_terminal:  # hardly news, and so no remark for a script to hear
        about = "about " if pack.tokenizer == "estimate" else ""
        warnings.append(
            f"{about}{format_count(pack.tokens, 'token')}; passages left out: {', '.join(left)}"
        )
    warnings += _doubts(pack.degraded, pack.index)
    if pack.items:
        # The output is fed to models: that nothing answers is said in it, where a warning would not reach them.
        text = f"{pack.notice}\n\n{pack.text}" if pack.notice else pack.text
        return Answer(pack.as_dict(), text=text.removesuffix("\n") + "\n", warnings=warnings)
    nothing = "Nothing found." if pack.index.is_ready else "No answer yet."
    if pack.left_out:
        nothing = "No passage fits into the budget. Pass a larger --budget."
    return Answer(pack.as_dict(), [[nothing]], warnings=warnings)
