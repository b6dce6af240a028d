"""The default tools that read and find. They change nothing, and an answer that is less than whole says why."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Annotated, Any, NotRequired, TypedDict, TypeVar

from pydantic import Field, WithJsonSchema

from simplemem.errors import Invalid
from simplemem.faces import arguments, render
from simplemem.faces.arguments import LinkNarrowing, Mode, Name, Narrowing, Sort, Words, about, also, at_most
from simplemem.faces.face import Data, Reply, Result, tool
from simplemem.memory import Backlink, Hit, IndexState, LinkOut, Listed
from simplemem.note.words import count_tokens

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore

_KINDS = ["link", "semantic"]
_MOST_LINKS = 100
_MOST_TOKENS = 8000  # of a list, or of a history
_MOST_WORDS = 12  # of a question, when it is explained
# Tokens of a hit, so that five of them stay below 1,500 however long titles and descriptions are.
_TITLE, _TAGS = 20, 30
_SIZES = {"title": _TITLE, "description": 36, "type": 10}
_AN_ID = re.compile(r"v?[0-9]+|[0-9a-f]{7,64}")  # of a version, or of a commit; anything else is a date
_UNSAID = {"words", "formula", "matched_nowhere", "ranked", "filter", "mode", "degraded"}  # of an explanation

_Most = Annotated[int | None, at_most(50), WithJsonSchema({"type": "integer", "minimum": 1, "default": 5}), Field(ge=1)]
Short = TypeVar("Short", bound=Result)


def _short(kind: type[Short], item: Hit | Listed | Backlink, **most: int) -> Short:
    """A hit, or one of a list, each text in so many tokens; `flags` say what of it is not seen."""
    texts = {name: render.brief(getattr(item, name), tokens) for name, tokens in most.items()}
    more: Data = {}
    if not isinstance(item, Backlink):
        sizes = accumulate(count_tokens(tag) + 2 for tag in item.tags)
        fit = max(1, sum(size <= _TAGS for size in sizes))
        more["tags"] = tuple(render.brief(tag, 20) for tag in item.tags[:fit])
        more |= {"more_tags": max(0, len(item.tags) - fit)} if isinstance(item, Hit) else {}
    flags = tuple(render.flags_of(item.name, *texts.values(), *more.get("tags", ())))
    return kind.of(item, flags=flags, **texts, **more)


@dataclass(frozen=True, slots=True)
class ShortHit(Result, Hit):
    more_tags: int = 0
    flags: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class SearchAnswer(Result):
    query: str
    mode: str
    hits: Sequence[ShortHit]
    index: IndexState
    explain: Mapping[str, Any] | None = None
    degraded: str = ""


@tool("Search memories")
def search_memories(
    store: EnhancedStore,
    where: LinkNarrowing,
    query: Annotated[str, about("a question or words; author:human|agent|any; empty, with a filter: the newest")],
    limit: _Most = None,
    mode: Mode = "hybrid",
    explain: Annotated[bool, about("the numbers behind each rank")] = False,
) -> Reply[SearchAnswer]:
    """Search the memories by words and by meaning. Do this before answering from memory and before writing a new
    memory. Hits carry what is needed to answer and to cite; read_memory has the rest."""
    if not query.strip() and not any(vars(where).values()):
        raise Invalid(
            "There is nothing to search for.", hint="Give a query, or a filter. list_memories has the newest."
        )
    found = store.search(query, filter=where.filter(), limit=limit, mode=mode, explain=explain)
    sizes = _SIZES | {"heading": _TITLE, "snippet": store.settings.search.snippet_characters // 4 + 10}
    hits = [_short(ShortHit, hit, **sizes) for hit in found.hits]
    told = {key: value for key, value in (found.explain or {}).items() if value and key not in _UNSAID}
    data = SearchAnswer.of(found, query=render.line(found.query, 1000), hits=hits, explain=told or None)
    asked = f' for "{render.line(found.query, 80)}"' if found.query.strip() else ""
    state = render.index_line(found.index, found.degraded)
    if not hits:
        nothing = f"Nothing found{asked}, in {render.counted(found.index.notes, 'memory', 'memories')}."
        return Reply(f"{nothing} {state}".strip(), data)
    head = f"# {render.counted(len(hits), 'memory', 'memories')}{asked}"
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
        ("sha256", hit.sha256[:12]),
        ("holds", ", ".join(hit.flags)),
    )
    why, parts = hit.why or {}, ("words", "phrases", "meaning", "covered", "dated")
    numbers = ", ".join(f"{part} {why[part]:.2f}" for part in parts if why.get(part))
    ranked = render.facts(("why:", numbers), ("lacks", ", ".join(why.get("missing", ())[:_MOST_WORDS])))
    snippet = f"> {hit.snippet}" if hit.snippet else ""
    rows = [f"{number}. **{render.name_of(hit.name)}**{title}", hit.description, snippet, about_it, ranked]
    return "\n   ".join(filter(None, rows))


RelatedName = TypedDict("RelatedName", {"name": str, "title": str, "score": float})


@dataclass(frozen=True, slots=True)
class MemoryPage(Result):
    """A memory, its text a page at a time."""

    name: str
    path: str
    title: str
    description: str
    type: str
    tags: Sequence[str]
    tag_map: Mapping[str, Any]
    aliases: Sequence[str]
    created: str | None
    modified: str | None
    frontmatter: Mapping[str, Any]
    content: str
    sha256: str
    links: Sequence[LinkOut]
    backlinks: Sequence[str]
    related: Sequence[RelatedName]
    tokens: int
    next_section: str | None
    warnings: Sequence[str]


@tool("Read a memory")
def read_memory(
    store: EnhancedStore,
    name: Annotated[Name, about("name, title or alias")],
    section: Annotated[str | None, about('a heading; "[2]" is page 2 of a long memory')] = None,
    version: Annotated[str | None, about("of memory_history, or a date: as it was then")] = None,
) -> Reply[MemoryPage]:
    """Read one memory: text, properties, tags, links, what links to it and what is about the same. Keep its sha256 for
    a change."""
    asked, number = render.asked_page(section)
    if version is None:
        memory = store.read(arguments.resolved(store, name), section=asked)
    else:
        when = {"version": version} if _AN_ID.fullmatch(version.strip()) else {"at": version}
        memory = store.read(name, section=asked, **when)
    page = render.page_of(memory.content, asked, number, render.page_size(memory.content, memory.tokens))
    said = [f"title: {render.line(memory.title)}"]
    said += [f"description: {render.line(memory.description, 600)}"] if memory.description else []
    said += [f"tags: {render.tags_line(memory.tags)}"] if memory.tags else []
    rest = [item for item in memory.frontmatter.items() if item[0].casefold() not in ("title", "description", "tags")]
    said += [f"{render.line(key, 60)}: {render.line(value)}" for key, value in rest[:40] if value not in (None, "")]
    said += [f"({len(rest) - 40} more properties)"] if len(rest) > 40 else []
    warnings = [memory.problem] if memory.problem else []
    warnings += render.warnings_of(page.text, memory.content_line + memory.content.count("\n", 0, page.start))
    if hidden := render.flags_of("\n".join(said)):
        warnings.append(f"Its properties hold {' and '.join(hidden)}.")
    if (index := store.state()).state == "indexing":
        warnings.append(render.index_line(index) + " Not all that links here may be known yet.")
    related = () if version else store.related(memory.name, limit=3)
    shown = MemoryPage.of(
        memory,
        content=page.text,
        links=memory.links[:_MOST_LINKS],
        backlinks=memory.backlinks[:_MOST_LINKS],
        related=[RelatedName(name=each.name, title=each.title, score=each.score) for each in related],
        next_section=page.following,
        warnings=warnings,
    )
    head = f"# {render.name_of(memory.name)}\nsha256 {memory.sha256}"
    head += f"\nThis is the earlier version {render.line(version)}, not what the note says now." if version else ""
    # Its headings and where it leads are its own words too: they stand between the marks with them.
    leads = [
        ("sections: ", [render.brief(text, 60) for _, text, _ in memory.headings] if page.total > 1 else (), 30),
        ("links to: ", dict.fromkeys(link.target for link in memory.links), 12),
        ("linked from: ", memory.backlinks, 12),
        ("about the same: ", [each.name for each in related], 12),
    ]
    said += [label + render.listed(names, most) for label, names, most in leads if names]
    onward = f"Page {page.number} of {page.total}. " if page.total > 1 else ""
    onward += f'Go on with section="{page.following}".' if page.following else ""
    whole = "\n".join(said) + "\n\n" + page.text
    return Reply(render.answer(head, whole, onward.strip(), " ".join(warnings), flagged=True), shown)


@dataclass(frozen=True, slots=True)
class ListedShort(Result, Listed):
    flags: Sequence[str] = ()


MemoryList = TypedDict(
    "MemoryList", {"items": Sequence[ListedShort], "next_cursor": str | None, "total": int, "index": IndexState}
)


@tool("List memories")
def list_memories(
    store: EnhancedStore,
    where: Narrowing,
    sort: Sort = "modified",
    limit: Annotated[int, at_most(200), Field(ge=1)] = 50,
    cursor: Annotated[str | None, about("next_cursor of the page before")] = None,
) -> Reply[MemoryList]:
    """List memories by folder, type, tags or date, newest first. To find something by what it says, search."""
    while True:
        page = store.list(filter=where.filter(), sort=sort, limit=limit, cursor=cursor)
        items = [_short(ListedShort, item, **_SIZES) for item in page.items]
        tokens = count_tokens(json.dumps([item.as_dict() for item in items], ensure_ascii=False))
        if tokens <= _MOST_TOKENS or len(items) <= 1:
            break
        limit = max(1, len(items) * _MOST_TOKENS // (tokens + 1))  # a shorter page; its cursor goes on from there
    head = f"# {render.counted(page.total, 'memory', 'memories')}"
    head += f", {len(items)} of them here" if len(items) < page.total else ""
    onward = f'There are more: cursor="{page.next_cursor}".' if page.next_cursor else ""
    lines = []
    for item in items:
        title = item.title if item.title != item.name.rsplit("/", 1)[-1] else ""
        kind, broken = item.type if item.type != "memory" else "", "its header cannot be read" if item.problem else ""
        said = (title, item.description, kind, render.tags_line(item.tags), item.modified[:10], broken)
        lines.append(f"- **{render.name_of(item.name)}** {render.facts(*(('', each) for each in said))}")
    text = render.answer(head, "\n".join(lines), onward, render.index_line(page.index))
    return Reply(text, MemoryList(items=items, next_cursor=page.next_cursor, total=page.total, index=page.index))


@dataclass(frozen=True, slots=True)
class ShortBacklink(Result, Backlink):
    flags: Sequence[str] = ()


BacklinkList = TypedDict("BacklinkList", {"items": Sequence[ShortBacklink], "index": IndexState})


@tool("Backlinks of a memory")
def get_backlinks(
    store: EnhancedStore,
    name: Name,
    query: Annotated[str | None, about("rank by nearness to this")] = None,
    limit: Annotated[int, at_most(50), Field(ge=1)] = 5,
    kinds: Annotated[Words, about('"link": it links here; "semantic": it is about the same')] = _KINDS,
) -> Reply[BacklinkList]:
    """What leads to a memory: memories that link to it, and memories about the same thing."""
    kinds = [kind.lower() for kind in kinds]
    if strange := [kind for kind in kinds if kind not in _KINDS]:
        hint = 'There are "link" and "semantic".'
        raise Invalid(f"There is no kind of backlink called {strange[0][:40]!r}.", hint=hint)
    found = store.backlinks(name, query=query, limit=limit, kinds=kinds)
    items, lines = [_short(ShortBacklink, item, title=_TITLE, snippet=75) for item in found], []
    for item in items:
        kind = "links here" if item.kind == "link" else "about the same"
        title = f" {item.title}" if item.title not in ("", item.name) else ""
        snippet = f"\n  > {item.snippet}" if item.snippet else ""
        lines.append(f"- **{render.name_of(item.name)}**{title} ({kind}, line {item.line}, {item.score:.2f}){snippet}")
    index = store.state()
    count = render.counted(len({item.name for item in items}), "memory leads", "memories lead")
    head = f"# {count} to {render.name_of(name)}"
    return Reply(
        render.answer(head, "\n".join(lines), render.index_line(index)), BacklinkList(items=items, index=index)
    )


@dataclass(frozen=True, slots=True)
class ContextPack(Result):
    query: str
    text: str
    tokens: int
    tokenizer: str
    items: Sequence[Mapping[str, Any]]
    left_out: int
    duplicates: int
    index: IndexState
    degraded: str | None = None
    flags: Sequence[str] = ()


@tool("Build a context pack")
def build_context(
    store: EnhancedStore,
    where: LinkNarrowing,
    query: str,
    budget_tokens: Annotated[int, at_most(20_000), Field(ge=50), also("budget_tokens", "budget")] = 1500,
) -> Reply[ContextPack]:
    """The best passages about a question, with their sources, packed into a budget of tokens: one call in place of a
    search and many reads."""
    pack = store.context(query, budget_tokens=budget_tokens, filter=where.filter())
    subject, left = render.line(query, 80), pack.left_out
    head = f"# What the memories say about {subject}" if pack.text else f"Nothing found about {subject}."
    if left and not pack.text:
        head = f"Nothing about {subject} fits into {budget_tokens} tokens."
    said = [
        f"About {pack.tokens} tokens" if pack.tokenizer == "estimate" else f"{pack.tokens} tokens by {pack.tokenizer}"
    ]
    said += [f"{render.counted(left, 'more passage', 'more passages')} left out for room"] if left else []
    said += [f"{pack.duplicates} for saying the same"] if pack.duplicates else []
    text = render.answer(head, pack.text, ", ".join(said) + ".", render.index_line(pack.index, pack.degraded))
    return Reply(text, ContextPack.of(pack, flags=tuple(render.flags_of(pack.text))))


@dataclass(frozen=True, slots=True)
class VersionLine(Result):
    version: str
    name: str
    when: str
    who: str
    what: str
    tool: str
    reason: str
    previous_sha256: str | None
    sha256: str | None
    flags: Sequence[str] = ()
    diff: str | None = None


class Versions(TypedDict):
    """A history; a warning says what it lacks."""

    versions: Sequence[VersionLine]
    warnings: NotRequired[Sequence[str]]


@tool("History of memories")
def memory_history(
    store: EnhancedStore,
    name: Annotated[Name | None, about("without it, the changes of all memories")] = None,
    limit: Annotated[int, at_most(200), Field(ge=1)] = 20,
    diff: Annotated[bool, about("show what each changed")] = False,
) -> Reply[Versions]:
    """Earlier versions of a memory, or the latest changes of all: when, who, what."""
    entries = store.history(name, limit=limit, diff=diff, steps=True)
    of = f" of {render.name_of(name)}" if name else ""
    warned = [render.line(trouble, 600)] if name and (trouble := store.git_trouble) else []
    more = Versions(versions=[], warnings=warned) if warned else Versions(versions=[])
    if not entries:
        return Reply(render.answer(f"There is no history{of} yet.", *warned), more)
    room = max(200, _MOST_TOKENS // len(entries))
    lines, versions = [], []
    for entry in entries:
        changed = render.brief_lines(entry.diff or "", room)
        what = f"{entry.op} {entry.name}" + (f" to {entry.new_name}" if entry.new_name else "")
        what += f', {entry.notes} memories (name="{entry.version}" lists them)' if entry.notes > 1 else ""
        what += (f" ({entry.tool})" if entry.tool else "") + (f": {entry.reason}" if entry.reason else "")
        sha256 = f", sha256 {entry.sha256[:12]}" if entry.sha256 else ""
        who = f"{render.line(entry.when)} {render.line(entry.who) or 'somebody'}"
        lines.append(f"- {entry.version} {who}: {render.line(what, 4096)}{sha256}\n{changed}".rstrip())
        own = {"name": entry.new_name or entry.name, "what": what, "previous_sha256": entry.before}
        flags = tuple(render.flags_of(what, changed))
        versions.append(VersionLine.of(entry, **own, flags=flags, diff=changed if diff else None))
    head = f"# {render.counted(len(entries), 'change', 'changes')}{of}, newest first"
    text = render.answer(head, "\n".join(lines), *warned, "undo_change takes one back; read_memory shows one.")
    return Reply(text, {**more, "versions": versions})
