"""Commands that find and read notes: search, list, show, backlinks, context.

They change none.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from simplemem.cli.command import (
    Answer,
    can_ask,
    command,
    for_a_program,
    opened,
    with_next_step,
)
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
    Part,
    Screen,
    day,
    highlighted,
    in_words,
    labelled,
    one_line,
    searched_words,
    short_title,
    tags_shown,
)
from simplemem.errors import Invalid, NotFound
from simplemem.note.names import name_of
from simplemem.note.words import format_count

if TYPE_CHECKING:
    from simplemem.models import (
        Backlink,
        Filter,
        Found,
        Hit,
        IndexState,
        Listed,
        Memory,
        Pack,
        Page,
    )
    from simplemem.store import EnhancedStore

commands = typer.Typer()
_PANEL = "Find and read"
_EXCLUSIONS = {"hidden": "excluded from search"}  # by the key of the JSON answer
_PAGE = 500  # notes that are listed at once
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

    A query consists of words, or is a question. `"a phrase"`, `-word`, `tag:todo`, `path:people/`,
    `type:decision` and `author:human` narrow the search. Without words, the newest notes that match
    the filters are listed.

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
        results = store.search(
            text,
            filter=narrowed,
            limit=limit,
            mode=mode.value,
            explain=explain,
            why=explain_note,
            authors=authors,
            rerank=not no_rerank,
        )
    return _search_answer(replace(results, index=with_next_step(results.index)))


def _search_answer(results: Found) -> Answer:
    """Return the answer of a search: hits, or with `--explain-note` the reasons for one note."""
    lines = Lines()
    labels: dict[str, str] = {}
    warnings: list[str] = []
    shows_hits = results.why is None or results.explain is not None
    if shows_hits:
        lines += _result_lines(results)
        if results.explain is not None:
            labels = _explanation_of_query(results.explain)
            warnings += _exclusions(results.explain)
        # A search for words alone does not depend on the vectors that the index still lacks.
        index = None if results.mode == "text" else results.index
        warnings += _limitations(results.degraded, index)
    if results.why is not None:
        lines += _explanation_of_note(results.why)
    if labels:
        lines.append([])  # between the hits and the labels
    return Answer(results.as_dict(), lines, labelled=labels, warnings=warnings)


def _result_lines(results: Found) -> Lines:
    """Return the hits, and which words of the query no note contains.

    If the hits are only the nearest notes, these words come first: they are the reason.
    """
    hit_lines = Lines()
    if results.notice and results.hits:
        hit_lines.append([results.notice])
    for rank, hit in enumerate(results.hits, 1):
        hit_lines += _hit_lines(rank, hit, results.query, show_score=not results.only_nearest)
    if not results.hits:
        hit_lines.append([_nothing_found(results.index)])
    if results.by_date:
        names = "; ".join(note.as_text() for note in results.by_date)
        hit_lines.append([(one_line(f"In order of date: {names}."), "dim")])

    if not results.absent:
        return hit_lines

    text = _absent_words(results.absent, results.not_searched)
    if not results.hits:
        return [*hit_lines, [(text, "dim")]]
    if results.only_nearest:
        return [[(text, "dim")], *hit_lines]
    reason = f"The hits {_reason_of_hits(results)}."
    return [*hit_lines, [(f"{text} {reason}", "dim")]]


def _nothing_found(index: IndexState) -> str:
    """Return the sentence for no hits: "Nothing found.", or "No answer yet." while indexing."""
    return "Nothing found." if index.is_ready else "No answer yet."


def _reason_of_hits(results: Found) -> str:
    """Return why there are hits, although no note contains some words of the query."""
    if set(searched_words(results.query)) <= set(results.absent):
        return "are the nearest by meaning"
    return "were found by the rest of the query"


def _exclusions(explain: Mapping[str, Any]) -> list[str]:
    """Return a warning for each reason why notes were not searched.

    `explain` is the explanation of a search, as in the JSON answer.
    """
    warnings = []
    for key, notes in explain["not_searched"].items():
        if notes:
            reason = _EXCLUSIONS.get(key, key.replace("_", " "))
            warnings.append(f"not searched, {reason}: {in_words(notes)}")
    return warnings


def _explanation_of_note(why: Mapping[str, Any]) -> Lines:
    """Return the answer to `--explain-note`: whether the note is a hit, and why.

    `why` is the explanation of one note, as in the JSON answer.
    """
    style = "green" if why["verdict"] == "hit" else "yellow"
    lines: Lines = [[(why["name"], "bold cyan"), "  ", (why["because"], style)]]
    if why["hint"]:
        lines.append(["    ", why["hint"]])
    if why.get("matched") or why.get("missing"):
        lines.append(["    ", (_matched_words(why), "dim")])
    return lines


def _absent_words(words: Sequence[str], not_searched: int) -> str:
    """Return which words of a query no note contains, and how many notes were not looked at."""
    text = one_line(f"No note contains: {', '.join(words)}.")
    if not_searched:
        text += f" Not looked at: {format_count(not_searched, 'note')} excluded from search."
    return text


def _hit_lines(rank: int, hit: Hit, query: str, *, show_score: bool) -> Lines:
    """Return the lines of one hit: its rank, name, title and score, then what is known of it.

    The score is left out unless `show_score`. Without a hit that answers the query, it would only
    compare the hits with each other.
    """
    title = short_title(hit.title, hit.name)
    heading: list[Part] = [(f"{rank:>2}  ", "dim"), (hit.name, "bold cyan")]
    if title:
        heading.append(f"  {title}")
    if show_score:
        heading.append((f"  {hit.score:.2f}", "dim"))

    lines: Lines = [heading]
    place = _place(hit)
    if place:
        lines.append(["    ", (place, "dim")])
    if hit.snippet:
        lines.append(["    ", *highlighted(one_line(hit.snippet), query)])
    if hit.authors:
        authors = one_line(" and ".join(hit.authors))
        date = f", {day(hit.written)}" if hit.written else ""
        lines.append(["    ", (f"by {authors}{date}", "dim")])
    if hit.why:
        lines.append(["    ", (_score_parts(hit.why), "dim")])
    return lines


def _place(hit: Hit) -> str:
    """Return the headings above a hit, its line and its tags; "" if it has none of them."""
    parts = []
    if hit.heading:
        headings = [heading.strip() for heading in hit.heading.split(" > ")]
        parts.append(" › ".join(headings))
    if hit.line:
        parts.append(f"line {hit.line}")
    if hit.tags:
        parts.append(tags_shown(hit.tags))
    return one_line(" · ".join(parts))


def _score_parts(why: Mapping[str, Any]) -> str:
    """Return what each part of the formula contributed to a score, and the words of a hit.

    Parts that contributed nothing are left out.
    `why` is the explanation of one hit, as in the JSON answer.
    """
    numbers = []
    for part, number in why.items():
        if isinstance(number, float) and number:
            numbers.append(f"{part.replace('_', ' ')} {number:.2f}")
    return f"why  {', '.join(numbers)} · {_matched_words(why)}"


def _limitations(degraded: str, index: IndexState | None) -> list[str]:
    """Return warnings about what an answer lacks.

    `degraded` is the part of the search that failed, or "". `index` is the index if the answer
    depends on all of it: some notes may not be indexed yet.
    """
    warnings = _warnings_of(degraded)
    if index is None:
        return warnings

    # Any other reason for an incomplete index is notes that disappeared all at once, of which
    # `opened` warns.
    is_behind = index.state == "indexing" or index.pending > 0
    reason = index.reason or f"{index.pending} notes are not indexed yet"
    if is_behind and reason.rstrip(".") not in degraded:
        warnings.append(reason)
    return warnings


def _matched_words(why: Mapping[str, Any]) -> str:
    """Return which words of the query a note has: `contains launch, budget · lacks quetzal`."""
    text = "contains none of the words"
    if why["matched"]:
        text = f"contains {', '.join(why['matched'])}"
    if why["missing"]:
        text += f" · lacks {', '.join(why['missing'])}"
    return text


def _explanation_of_query(explain: Mapping[str, Any]) -> dict[str, str]:
    """Return how a query was parsed and answered, as texts by their labels.

    `explain` is the explanation of a search, of which the JSON answer contains more.
    """
    words = [f"{word} in {count}" for word, count in explain["notes_with"].items()]
    removed = [
        f"{step['filter']} {step['value']}: {step['removed']}" for step in explain["filters"]
    ]
    total = format_count(explain["notes"], "note")
    texts = {
        "formula": explain["formula"],
        "notes with": ", ".join(words),
        "searched": f"{explain['notes_after_filter']} of {total}",
        "removed": ", ".join(removed),
    }
    return {label: one_line(text) for label, text in texts.items() if text}


@command(commands, _PANEL, name="open")
def open_note(
    name: Annotated[
        list[str], argument("NAME", "A part of the title, file name or alias.", complete_name)
    ],
    only_list: Annotated[bool, flag("--list", "List the notes that match; open none.")] = False,
    limit: Annotated[int, limit_option("The maximum number of notes that are listed.")] = 10,
    vault: VaultOption = None,
) -> Answer:
    """Edit a note, found by a part of its name.

    The best match is opened in $EDITOR: `qck add` and `quikadd` open *QuickAdd*. Without a
    terminal, and with --list or --json, the matches are listed, the best first.

    $ simplemem open burst
    $ simplemem open presure sensor --list"""
    text = " ".join(name)
    with opened(vault) as store:
        matches = store.find_names(text, limit)
        if not matches:
            raise NotFound(f"no note has a name like {text!r}", hint="`simplemem search` finds it.")
        if can_ask() and not only_list:
            from simplemem.cli.editor import edit_note
            from simplemem.cli.write import saved_answer

            return saved_answer(edit_note(store, name_of(matches[0].path), merge=False))

    items = [
        {"name": name_of(match.path), "title": match.title, "match": match.name}
        for match in matches
    ]
    rows: list[list[Part]] = [[(item["name"], "cyan"), item["match"]] for item in items]
    return Answer({"items": items}, table=rows, columns=(WHOLE, SHRINKS))


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
    with opened(vault) as store:
        page = _listed(store, narrowed, sort, limit=None if all_notes else limit)

    facts = page.as_dict()
    if not page.items:
        return Answer(facts, [["No notes."]], warnings=_warnings_of(page.degraded))

    rows = [_row(item) for item in page.items]
    columns = (WHOLE, SHRINKS, SHRINKS, WHOLE, OPTIONAL)
    more = ""
    if len(rows) < page.total:
        more = f"Shown: {len(rows)} of {page.total} notes; --limit or --all-notes shows more"
    return Answer(facts, table=rows, columns=columns, more=more)


def _listed(store: EnhancedStore, narrowed: Filter, sort: Sort, *, limit: int | None) -> Page:
    """Return the first notes that match a filter, at most `limit`, as one page.

    None is no limit. The state of the index and the cursor are those of the last page that was
    read; the cursor is None if all notes are in the result.
    """
    items: list[Listed] = []
    cursor: str | None = None
    while True:
        page_size = _PAGE if limit is None else min(_PAGE, limit - len(items))
        page = store.list(filter=narrowed, sort=sort.value, limit=page_size, cursor=cursor)
        items += page.items
        cursor = page.next_cursor
        is_full = limit is not None and len(items) >= limit
        if cursor is None or is_full:
            return replace(page, items=tuple(items))


def _row(item: Listed) -> list[Part]:
    """Return a note as a row: name, title, tags, day of the last change, and a problem.

    The last cell is "unreadable" or "". The title is "" if it is the last part of the name.
    """
    return [
        (item.name, "cyan"),
        short_title(item.title, item.name),
        (tags_shown(item.tags), "green"),
        (day(item.modified), "dim"),
        ("unreadable" if item.problem else "", "yellow"),
    ]


@command(commands, _PANEL, filters=NOTES)
def tasks(narrowed: Filter, vault: VaultOption = None) -> Answer:
    """List open tasks.

    An open task is a line `- [ ] text`. Only the 500 newest notes with open tasks are read. With
    several --tag, only notes with all of these tags are read. `list --tag task=open` lists the
    notes.

    $ simplemem tasks --prefix projects/"""
    from simplemem.note.note import read_note

    narrowed = replace(narrowed, tags={**narrowed.tags, "task": "open"}, require_all=True)
    facts = []
    lines = Lines()
    with opened(vault) as store:
        for item in store.list(filter=narrowed, limit=_PAGE).items:
            note = store.read(item.name)
            for line, text in read_note(note.text.encode()).open_tasks:
                facts.append({"name": note.name, "line": line, "text": text})
                lines.append([(f"{note.name}:{line}  ", "cyan"), one_line(text)])
    if not lines:
        lines.append(["No open tasks."])
    return Answer({"tasks": facts}, lines)


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

    A terminal shows the rendered note, one screen at a time. A pipe gets the file byte for byte, or
    the Markdown of the section. `--at` and `--version` cannot be combined.

    $ simplemem show Dipper
    $ simplemem show './flights/Flight 2 Dipper.md'
    $ simplemem show 'Launch day runbook' --section Filling
    $ simplemem show 'decisions/Hydrogen for lift' --links
    $ simplemem show Dipper --at '3 days ago'
    $ simplemem show Dipper --version 12 | diff - <(simplemem show Dipper)"""
    if at and version:
        raise Invalid("--at and --version cannot be combined", hint="Leave one of them out.")
    is_rendered = Screen().is_terminal and not raw
    needs_parts = links or is_rendered or bool(section) or for_a_program()
    with opened(vault) as store:
        name, warnings = _without_accents(store, name)
        if not needs_parts:
            note = store.read_text(name, version=version, at=at)
            return Answer({}, text=note.text, warnings=[*warnings, *_warnings_of(note.problem)])
        memory = store.read(name, section=section, version=version, at=at)

    facts = memory.as_dict()
    if links:
        return Answer(facts, _link_lines(memory))

    warnings += _warnings_of(memory.problem)
    if is_rendered:
        labels = {} if section else labelled(memory.frontmatter)
        return Answer(facts, labelled=labels, markdown=memory.content, warnings=warnings)
    text = memory.content if section else memory.text
    return Answer(facts, text=text, warnings=warnings)


def _warnings_of(trouble: str | None) -> list[str]:
    """Return the trouble as a list of warnings: [] if it is None or ""."""
    return [trouble] if trouble else []


def _link_lines(memory: Memory) -> Lines:
    """Return the links of a note, then the notes that link to it, or a line "No links."."""
    lines = Lines()
    for link in memory.links:
        problems = ""
        if not link.resolved:
            problems += "  unresolved"
        if link.ambiguous:
            problems += "  ambiguous"
        target = (link.target, "cyan" if link.resolved else "yellow")
        place = (f"  line {link.line}", "dim")
        lines.append([("links to     ", "dim"), target, place, (problems, "yellow")])
    for source in memory.backlinks:
        lines.append([("linked from  ", "dim"), (source, "cyan")])
    if not lines:
        lines.append(["No links."])
    return lines


def _without_accents(store: EnhancedStore, name: str) -> tuple[str, list[str]]:
    """Return the name of the note to show, and a warning if it differs from `name` by accents.

    A note is shown for a name without its accents if there is only one such note. If there is none
    or several, `name` is returned: reading the note then raises NotFound. Raises Ambiguous if
    `name` means several notes, and Invalid if it is not a legal name.
    """
    try:
        store.resolve(name)
    except NotFound as error:
        candidates = error.details.get("candidates", ())
        similar = [candidate for candidate in candidates if _differs_by_accents(name, candidate)]
        if len(similar) == 1:
            return similar[0], [f"this is {similar[0]}"]
    return name, []


def _differs_by_accents(typed: str, name: str) -> bool:
    """Return whether a text is a name, or its last part, but for accents and upper case."""
    last_part = name.rsplit("/", 1)[-1]
    return _plain_letters(typed) in (_plain_letters(name), _plain_letters(last_part))


def _plain_letters(text: str) -> str:
    """Return a text in lower case without accents."""
    characters = unicodedata.normalize("NFD", text.casefold())
    return "".join(char for char in characters if not unicodedata.combining(char))


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
    kinds = [link_kind.value for link_kind in kind or LinkKind]
    with opened(vault, embed="semantic" in kinds) as store:
        full_name = store.resolve(name)
        items = store.backlinks(full_name, query=query, limit=limit, kinds=kinds)
        trouble = store.rerank_trouble if query else ""

    lines = Lines()
    for item in items:
        lines.append([(item.name, "bold cyan"), (f"  {_place_of_link(item)}", "dim")])
        if item.snippet:
            lines.append(["    ", one_line(item.snippet)])
    if not items:
        lines.append(["No note links to this note, and no note is similar to it."])
    facts = {"name": full_name, "items": [item.as_dict() for item in items]}
    return Answer(facts, lines, warnings=_warnings_of(trouble))


def _place_of_link(item: Backlink) -> str:
    """Return the form and the lines of a link, or the similarity of a note that has no link."""
    if item.kind != "link":
        return f"similarity {item.score:.2f}"

    numbers = [str(item.line)]
    numbers += [str(link.line) for link in item.also]
    noun = "lines" if item.also else "line"
    return f"{item.form}, {noun} {', '.join(numbers)}"


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

    warnings = []
    if pack.absent:
        warnings.append(_absent_words(pack.absent, pack.not_searched))
    omitted = _omitted(pack)
    if omitted and Screen().is_terminal:  # a script need not know this
        warnings.append(omitted)
    warnings += _limitations(pack.degraded, pack.index)

    if pack.items:
        # The output is passed to models, which no warning would reach.
        notice = pack.notice
        if not pack.has_found:
            notice = f"{_nothing_found(pack.index)} These notes are pinned."
        text = f"{notice}\n\n{pack.text}" if notice else pack.text
        return Answer(pack.as_dict(), text=text.removesuffix("\n") + "\n", warnings=warnings)

    verdict = _nothing_found(pack.index)
    if pack.left_out:
        verdict = "No passage fits into the budget. Pass a larger --budget."
    return Answer(pack.as_dict(), [[verdict]], warnings=warnings)


def _omitted(pack: Pack) -> str:
    """Return the length of a context, and how many passages it leaves out as too long or repeated.

    "" if it leaves out none.
    """
    reasons = []
    if pack.left_out:
        reasons.append(f"{pack.left_out} over the budget")
    if pack.duplicates:
        reasons.append(f"{pack.duplicates} repeated")
    if not reasons:
        return ""

    about = "about " if pack.tokenizer == "estimate" else ""
    tokens = format_count(pack.tokens, "token")
    return f"{about}{tokens}; passages left out: {', '.join(reasons)}"
