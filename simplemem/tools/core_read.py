"""The default tools that read and find. They change nothing, and an answer that is less than whole says why."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Annotated, Any, NotRequired, TypedDict, TypeVar

from pydantic import Field, WithJsonSchema

from simplemem.errors import Invalid
from simplemem.models import NO_WORD_FOUND, Backlink, Hit, IndexState, Listed, Pack
from simplemem.note.words import count_tokens
from simplemem.tools import render
from simplemem.tools.arguments import (
    LinkNarrowing,
    Mode,
    Name,
    Narrowing,
    Sort,
    Words,
    about,
    also,
    at_most,
)
from simplemem.tools.session import Session
from simplemem.tools.tool import Data, Reply, Result, tool

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore

_KINDS = ["link", "semantic"]
_MOST_LINKS = 50
MOST_TOKENS = 8000  # of a list, or of a history
_MOST_WORDS = 12  # of a question, when it is explained
# Tokens of a hit, so that five of them stay below 1,500 however long titles and descriptions are.
_TITLE, _TAGS = 20, 30
_SIZES = {"title": _TITLE, "description": 36, "type": 10}
_MOST_PLACES = 4  # of a memory that links often, beside the first
_AN_ID = re.compile(
    r"v?[0-9]+|[0-9a-f]{7,64}"
)  # of a version, or of a commit; anything else is a date
_UNSAID = {
    "words",
    "formula",
    "matched_nowhere",
    "ranked",
    "filter",
    "mode",
    "degraded",
}  # of an explanation

_Most = Annotated[
    int | None,
    at_most(50),
    WithJsonSchema({"type": "integer", "minimum": 1, "default": 5}),
    Field(ge=1),
]
Short = TypeVar("Short", bound=Result)


def _short(kind: type[Short], item: Hit | Listed | Backlink, **most: int) -> Short:
    """A hit, or one of a list, each text in so many tokens; `flags` say what of it is not seen."""
    texts = {name: render.brief(getattr(item, name), tokens) for name, tokens in most.items()}
    if kind is ListedShort and item.title == item.name.rsplit("/", 1)[-1]:
        texts["title"] = ""
    more: Data = {}
    said = [item.name, *texts.values()]
    if isinstance(item, Backlink):
        places = item.also[:_MOST_PLACES]
        more["also"] = tuple(
            {"line": at.line, "snippet": render.brief(at.snippet, 30)} for at in places
        )
        more["more_places"] = len(item.also) - len(places)
        said += [place["snippet"] for place in more["also"]]
    else:
        sizes = accumulate(count_tokens(tag) + 2 for tag in item.tags)
        fit = max(1, sum(size <= _TAGS for size in sizes))
        more["tags"] = tuple(render.brief(tag, 20) for tag in item.tags[:fit])
        said += more["tags"]
        more |= {"more_tags": max(0, len(item.tags) - fit)} if isinstance(item, Hit) else {}
        more["sha256"] = item.sha256[:12]
    return kind.of(item, flags=tuple(render.flags_of(*said)), **texts, **more)


class ShortHit(Result, Hit):
    more_tags: int = 0
    flags: Sequence[str] = ()


class SearchAnswer(Result):
    query: str
    mode: str
    hits: Sequence[ShortHit]
    index: IndexState
    explain: Mapping[str, Any] | None = None
    degraded: str = ""
    absent: Sequence[str] = ()
    only_nearest: bool = False
    notice: str = ""


@tool("Search memories", routes=("GET /search", "POST /search"))
def search_memories(
    store: EnhancedStore,
    where: LinkNarrowing,
    query: Annotated[
        str,
        about(
            "question or words; add author:human|agent|any, or archive: for past sessions; may be empty with filters"
        ),
    ],
    limit: _Most = None,
    mode: Mode = "hybrid",
    explain: Annotated[bool, about("show how hits were ranked")] = False,
) -> Reply[SearchAnswer]:
    """Search memories by words and meaning. Call this before answering from memory or writing a memory. Hits quote
    text to cite; read_memory returns the rest."""
    if not query.strip() and not any(vars(where).values()):
        hint = "Pass a query or a filter. Call list_memories for the newest memories."
        raise Invalid("the search has no query and no filter", hint=hint)
    found = store.search(query, filter=where.filter(), limit=limit, mode=mode, explain=explain)
    sizes = _SIZES | {
        "heading": _TITLE,
        "snippet": store.settings.search.snippet_characters // 4 + 10,
    }
    hits = [_short(ShortHit, hit, **sizes) for hit in found.hits]
    told = {
        key: value for key, value in (found.explain or {}).items() if value and key not in _UNSAID
    }
    data = SearchAnswer.of(
        found, query=render.line(found.query, 1000), hits=hits, explain=told or None
    )
    asked = f' for "{render.line(found.query, 80)}"' if found.query.strip() else ""
    state = f"{render.unheld(found.absent, found.not_searched)} {render.index_line(found.index, found.degraded)}".strip()
    nothing = render.nothing_found(asked, found.index)
    if not hits:
        return Reply(f"{nothing} {state}".strip(), data)
    head = f"# {render.format_count(len(hits), 'memory', 'memories')}{asked}"
    if found.notice == NO_WORD_FOUND:
        head = f"# {found.notice.removesuffix('.')}{asked}. {state}"
        state = ""
    elif found.notice:
        head = f"# {nothing} {state} Nearest:"
        state = ""
    lines = "\n\n".join(_hit_text(number, hit) for number, hit in enumerate(hits, 1))
    explained = f"Explained: {json.dumps(told, ensure_ascii=False)}" if told else ""
    return Reply(render.answer(head, lines, explained, state, flagged=True), data)


def _hit_text(number: int, hit: ShortHit) -> str:
    title = f" {hit.title}" if hit.title not in ("", hit.name) else ""
    about_it = render.facts(
        ("", f"{hit.heading}, line {hit.line}" if hit.heading else f"line {hit.line}"),
        ("type", hit.type if hit.type != "memory" else ""),
        ("", render.tags_line(hit.tags, hit.more_tags)),
        ("created", (hit.created or "")[:10]),
        ("modified", hit.modified[:10]),
        ("by", f"{render.line(' and '.join(hit.authors), 60)} {(hit.written or '')[:10]}".strip()),
        ("score", f"{hit.score:.2f}"),
        ("sha256", hit.sha256),
        ("contains", ", ".join(hit.flags)),
    )
    why, parts = hit.why or {}, ("words", "phrases", "meaning", "covered", "dated")
    numbers = ", ".join(f"{part} {why[part]:.2f}" for part in parts if why.get(part))
    ranked = render.facts(
        ("why:", numbers), ("missing", ", ".join(why.get("missing", ())[:_MOST_WORDS]))
    )
    snippet = f"> {hit.snippet}" if hit.snippet else ""
    rows = [
        f"{number}. **{render.name_of(hit.name)}**{title}",
        hit.description,
        snippet,
        about_it,
        ranked,
    ]
    return "\n   ".join(filter(None, rows))


class MemoryPage(TypedDict):
    """A memory, its text a page at a time; of a section, or a page but the first, nothing of the rest."""

    name: str
    path: str
    title: str
    created: str | None
    modified: str
    content: str
    sha256: str
    links: Sequence[str]
    next_section: NotRequired[str]
    description: NotRequired[str]
    type: NotRequired[str]
    tags: NotRequired[Sequence[str]]
    tag_map: NotRequired[Mapping[str, Any]]
    frontmatter: NotRequired[Mapping[str, Any]]  # what the fields beside it do not say
    backlinks: NotRequired[Sequence[str]]
    related: NotRequired[Sequence[str]]
    outline: NotRequired[Sequence[str]]
    broken_links: NotRequired[Sequence[str]]
    version: NotRequired[str]
    warnings: NotRequired[Sequence[str]]


@tool("Read a memory", routes=("GET /memories/{name}",))
def read_memory(
    store: EnhancedStore,
    session: Session,
    name: Annotated[Name, about("name, title or alias")],
    section: Annotated[str | None, about("a heading; [2] is page 2 of a long memory")] = None,
    version: Annotated[str | None, about("a version from memory_history, or a date")] = None,
) -> Reply[MemoryPage]:
    """Read a memory: text, frontmatter, tags, links, backlinks and related memories. Keep its sha256 to change it."""
    asked, number = render.asked_page(section)
    if version is None:
        memory = store.read(name, section=asked)
        session.record_read(memory)
    else:
        when = {"version": version} if _AN_ID.fullmatch(version.strip()) else {"at": version}
        memory = store.read(name, section=asked, **when)
    page = render.page_of(
        memory.content, asked, number, render.page_size(memory.content, memory.tokens)
    )
    first = memory.content_line + memory.content.count("\n", 0, page.start)
    last = first + page.text.rstrip().count("\n")
    is_whole = not asked and page.number == 1
    links = [link for link in memory.links if is_whole or first <= link.line <= last]
    shown: Any = {
        key: getattr(memory, key)
        for key in ("name", "path", "title", "created", "modified", "sha256")
    }
    shown |= {"content": page.text, "links": _names(link.target for link in links if link.resolved)}
    said = [f"title: {render.line(memory.title)}"] if is_whole else []
    own, days = ("title", "description", "tags"), (memory.created, memory.modified)
    rest = [
        item
        for item in memory.frontmatter.items()
        if item[0].casefold() not in own and item[1] not in days
    ]
    related = list(store.related(memory.name, limit=3)) if is_whole and not version else []
    if is_whole:
        shown |= {key: getattr(memory, key) for key in ("description", "tags", "tag_map")}
        shown |= {
            "frontmatter": dict(rest),
            "backlinks": _names(memory.backlinks),
            "related": related,
        }
        shown |= {"type": memory.type} if memory.type != "memory" else {}
        said += (
            [f"description: {render.line(memory.description, 600)}"] if memory.description else []
        )
        said += [f"tags: {render.tags_line(memory.tags)}"] if memory.tags else []
        said += [
            f"{key}: {day}" for key, day in zip(("created", "modified"), days, strict=True) if day
        ]
        said += [
            f"{render.line(key, 60)}: {render.line(value)}"
            for key, value in rest[:40]
            if value not in (None, "")
        ]
        said += [f"({len(rest) - 40} more properties)"] if len(rest) > 40 else []
    warnings = [memory.problem] if memory.problem else []
    warnings += render.warnings_of(page.text, first)
    if hidden := render.flags_of("\n".join(said)):
        warnings.append(f"The frontmatter contains {' and '.join(hidden)}.")
    if is_whole and len(memory.backlinks) > _MOST_LINKS:
        warnings.append(
            f"{len(memory.backlinks)} memories link here. Call get_backlinks for the rest."
        )
    if (index := store.state()).state == "indexing":
        warnings.append(render.index_line(index) + " Some backlinks may be missing.")
    headings = memory.headings[:_MOST_LINKS] if is_whole and page.total > 1 else ()
    more: Data = {
        "outline": [render.brief(text, 60) for _, text, _ in headings],
        "broken_links": _names(link.target for link in links if not link.resolved),
        "next_section": page.following,
        "version": version,
        "warnings": warnings,
    }
    shown |= {key: value for key, value in more.items() if value}
    head = f"# {render.name_of(memory.name)}\nsha256 {memory.sha256}"
    head += (
        f"\nThis is the earlier version {render.line(version)}, not the current text."
        if version
        else ""
    )
    # Its headings and where it leads are its own words too: they stand between the marks with them.
    leads = {
        "sections": more["outline"],
        "links to": shown["links"],
        "unresolved links": more["broken_links"],
    }
    leads |= {"linked from": shown.get("backlinks"), "related": related}
    said += [
        f"{label}: {render.listed(names, _MOST_LINKS)}" for label, names in leads.items() if names
    ]
    onward = f"Page {page.number} of {page.total}. " if page.total > 1 else ""
    onward += f'Pass section="{page.following}" for the next page.' if page.following else ""
    whole = "\n".join(said) + "\n\n" * bool(said) + page.text
    return Reply(
        render.answer(head, whole, onward.strip(), " ".join(warnings), flagged=True), shown
    )


def _names(every: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(every))[:_MOST_LINKS]


class ListedShort(Result):
    """A memory in a list: a title that its name does not say, and what else there is."""

    name: str
    modified: str
    sha256: str
    title: str = ""
    description: str = ""
    type: str = "memory"
    tags: Sequence[str] = ()
    problem: str | None = None
    flags: Sequence[str] = ()


class MemoryList(TypedDict):
    """Part of a list; the index where it is not ready, and what of the filter no note has."""

    items: Sequence[ListedShort]
    next_cursor: str | None
    total: int
    index: NotRequired[IndexState]
    degraded: NotRequired[str]


@tool("List memories", routes=("GET /memories",))
def list_memories(
    store: EnhancedStore,
    where: Narrowing,
    sort: Sort = "modified",
    limit: Annotated[int, at_most(200), Field(ge=1)] = 50,
    cursor: Annotated[str | None, about("next_cursor of the previous page")] = None,
) -> Reply[MemoryList]:
    """List memories by folder, type, tags or date, newest first. To find text, call search_memories."""
    while True:
        page = store.list(filter=where.filter(), sort=sort, limit=limit, cursor=cursor)
        items = [_short(ListedShort, item, **_SIZES) for item in page.items]
        tokens = count_tokens(json.dumps([item.as_dict() for item in items], ensure_ascii=False))
        if tokens <= MOST_TOKENS or len(items) <= 1:
            break
        limit = max(
            1, len(items) * MOST_TOKENS // (tokens + 1)
        )  # a shorter page; its cursor goes on from there
    head = f"# {render.format_count(page.total, 'memory', 'memories')}"
    head += f", the first {len(items)} shown" if len(items) < page.total else ""
    onward = f'Pass cursor="{page.next_cursor}" for the next page.' if page.next_cursor else ""
    lines = []
    for item in items:
        kind = item.type if item.type != "memory" else ""
        broken = "its frontmatter cannot be read" if item.problem else ""
        said = (
            item.title,
            item.description,
            kind,
            render.tags_line(item.tags),
            item.modified,
            broken,
        )
        known = render.facts(*(("", each) for each in said), ("sha256", item.sha256))
        lines.append(f"- **{render.name_of(item.name)}** {known}")
    text = render.answer(
        head, "\n".join(lines), onward, render.index_line(page.index, page.degraded)
    )
    data = MemoryList(items=items, next_cursor=page.next_cursor, total=page.total)
    return Reply(text, _unless_whole(data, page.index, page.degraded))


def _unless_whole(data: Any, index: IndexState, degraded: str) -> Any:
    """An answer, with the state of the index where it is not ready, and what lessened it."""
    data |= {"index": index} if index.state != "ready" else {}
    return data | {"degraded": degraded} if degraded else data


class ShortBacklink(Result):
    """A memory that leads here: where its first link stands, the next ones, and how many places are not shown."""

    name: str
    title: str
    kind: str
    snippet: str
    line: int
    score: float
    also: Sequence[Mapping[str, Any]] = ()
    more_places: int = 0
    flags: Sequence[str] = ()


BacklinkList = TypedDict(
    "BacklinkList",
    {
        "items": Sequence[ShortBacklink],
        "index": NotRequired[IndexState],
        "degraded": NotRequired[str],
    },
)


@tool("List backlinks", routes=("GET /backlinks/{name}",))
def get_backlinks(
    store: EnhancedStore,
    name: Name,
    query: Annotated[str | None, about("rank by similarity to this")] = None,
    limit: Annotated[int, at_most(50), Field(ge=1)] = 5,
    kinds: Annotated[Words, about("link: links to it; semantic: same subject")] = _KINDS,
) -> Reply[BacklinkList]:
    """List the memories that link to a memory or share its subject."""
    found = store.backlinks(name, query=query, limit=limit, kinds=[kind.lower() for kind in kinds])
    items, lines = [_short(ShortBacklink, item, title=_TITLE, snippet=75) for item in found], []
    for item in items:
        kind = "links here" if item.kind == "link" else "same subject"
        title = f" {item.title}" if item.title not in ("", item.name) else ""
        said = [
            f"- **{render.name_of(item.name)}**{title} ({kind}, line {item.line}, score {item.score:.2f})"
        ]
        said += [f"> {item.snippet}"] if item.snippet else []
        said += [f"> line {at['line']}: {at['snippet']}" for at in item.also]
        said += (
            [f"and {render.format_count(item.more_places, 'more place', 'more places')}"]
            if item.more_places
            else []
        )
        lines.append("\n  ".join(said))
    index, degraded = store.state(), store.rerank_trouble if query else ""
    head = f"# {render.format_count(len(items), 'memory', 'memories')} related to {render.name_of(name)}"
    data = _unless_whole(BacklinkList(items=items), index, degraded)
    return Reply(render.answer(head, "\n".join(lines), render.index_line(index, degraded)), data)


class ContextPack(Result):
    query: str
    text: str
    tokens: int
    items: Sequence[Mapping[str, Any]]  # the places whose words stand in the text
    left_out: int
    index: IndexState
    tokenizer: str = "estimate"
    absent: Sequence[str] = ()
    only_nearest: bool = False
    notice: str = ""
    duplicates: int = 0
    degraded: str = ""
    flags: Sequence[str] = ()


@tool("Build context", routes=("GET /context", "POST /context"))
def build_context(
    store: EnhancedStore,
    where: LinkNarrowing,
    query: str,
    budget_tokens: Annotated[
        int, at_most(20_000), Field(ge=50), also("budget_tokens", "budget")
    ] = 1500,
) -> Reply[ContextPack]:
    """Collect the best passages about a question, with sources, within a token budget. Replaces a search and many
    reads."""
    pack = store.context(query, budget_tokens=budget_tokens, filter=where.filter())
    subject, left = render.line(query, 80), pack.left_out
    head = _context_head(pack, subject, budget_tokens)
    is_estimate = pack.tokenizer == "estimate"
    said = [
        f"About {pack.tokens} tokens"
        if is_estimate
        else f"{pack.tokens} tokens by {pack.tokenizer}"
    ]
    said += (
        [f"{render.format_count(left, 'more passage', 'more passages')} did not fit"]
        if left
        else []
    )
    said += (
        [f"{render.format_count(pack.duplicates, 'duplicate', 'duplicates')} left out"]
        if pack.duplicates
        else []
    )
    state = render.index_line(pack.index, pack.degraded)
    unheld = render.unheld(pack.absent, pack.not_searched)
    text = render.answer(head, pack.text, ", ".join(said) + ".", unheld, state)
    items = [{key: each[key] for key in ("name", "line", "score", "tokens")} for each in pack.items]
    return Reply(text, ContextPack.of(pack, items=items, flags=tuple(render.flags_of(pack.text))))


def _context_head(pack: Pack, subject: str, budget_tokens: int) -> str:
    """Say above a pack what it is: what the memories say, or only what is nearest to a question that none answers."""
    if not pack.text and pack.left_out:
        return f"Nothing about {subject} fits into {budget_tokens} tokens."
    if not pack.text and not pack.index.is_ready:
        return f"No answer about {subject} yet."
    if not pack.text:
        return f"Nothing found about {subject}."
    if pack.notice == NO_WORD_FOUND:
        return f"# {pack.notice.removesuffix('.')} to {subject}"
    if pack.notice:
        return f"# Nothing found about {subject}. Nearest:"
    if (
        pack.absent
    ):  # no memory mentions a part of the subject, so none says anything about the whole of it
        return f"# Passages found for {subject}"
    return f"# What the memories say about {subject}"
