"""Reading what is there: read_memory, list_memories, memory_history. They change nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from pydantic import Field

from simplemem.faces import pages, render
from simplemem.faces.arguments import BareName, Narrowing, Sort, about, also, at_most, name_in
from simplemem.faces.face import Answer, Reply, tool
from simplemem.faces.reference import resolved
from simplemem.memory import IndexState, LinkOut, Listed
from simplemem.note.words import count_tokens

if TYPE_CHECKING:
    from simplemem.memory import HistoryEntry, Memory
    from simplemem.store import EnhancedStore

_MOST_LINKS = 100
_LISTED_TOKENS = 8000
_HISTORY_TOKENS = 8000
_AN_ID = re.compile(r"v?[0-9]+|[0-9a-f]{7,64}")  # of a version, or of a commit; anything else is a date
_TO_A_SECTION = re.compile(r"\s*\[\[([^\[\]|#]{1,500})#([^\[\]|]{1,500})(?:\|[^\[\]]{0,500})?\]\]\s*")


# --- read_memory


RelatedName = TypedDict("RelatedName", {"name": str, "title": str, "score": float})


@dataclass(frozen=True, slots=True)
class MemoryPage(Answer):
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
    name: Annotated[str, also("name", "path", "id", "memory_id"), about("name, title or alias")],
    section: Annotated[str | None, about('a heading; "[2]" is page 2 of a long memory')] = None,
    version: Annotated[str | None, about("of memory_history, or a date: as it was then")] = None,
) -> Reply[MemoryPage]:
    """Read one memory: text, properties, tags, links, what links to it and what is about the same. Keep its sha256 for a
    change."""
    if not section and (link := _TO_A_SECTION.fullmatch(name)):  # `[[Apollo#Budget]]` asks for that section
        name, section = link[1], link[2]
    memory, page = _read_page(store, name_in(name), section, version)
    related = () if version else store.related(memory.name, limit=3)
    first_line = memory.content_line + memory.content.count("\n", 0, page.start)
    warnings = ([memory.problem] if memory.problem else []) + render.warnings_of(page.text, first_line)
    if above := render.flags_of(_above(memory)):
        warnings.append(f"Its properties hold {' and '.join(above)}.")
    index = store.state()
    if index.state == "indexing":
        warnings.append(render.index_line(index) + " Not all that links here may be known yet.")
    data = memory.as_dict()
    own = {field: data[field] for field in MemoryPage.__slots__ if field in data}
    own |= {"links": data["links"][:_MOST_LINKS], "backlinks": data["backlinks"][:_MOST_LINKS], "content": page.text}
    shown = MemoryPage(
        **own,
        related=[RelatedName(name=each.name, title=each.title, score=each.score) for each in related],
        next_section=page.following,
        warnings=warnings,
    )
    return Reply(_read_text(memory, page, version, [each.name for each in related], warnings), shown)


def _read_page(
    store: EnhancedStore, name: str, asked: str | None, version: str | None
) -> tuple[Memory, pages.LongPage]:
    section, number = pages.asked_page(asked)
    if version is None:
        memory = store.read(resolved(store, name), section=section)
    elif _AN_ID.fullmatch(version.strip()):
        memory = store.read(name, section=section, version=version)
    else:
        memory = store.read(name, section=section, at=version)
    return memory, pages.page_of(memory.content, section, number, pages.page_size(memory.content, memory.tokens))


def _read_text(
    memory: Memory, page: pages.LongPage, version: str | None, related: list[str], warnings: list[str]
) -> str:
    head = [f"# {render.name_of(memory.name)}", f"sha256 {memory.sha256}"]
    if version:
        head.append(f"This is the earlier version {render.line(version)}, not what the note says now.")
    leads = [
        ("links to: ", dict.fromkeys(link.target for link in memory.links)),
        ("linked from: ", memory.backlinks),
        ("about the same: ", related),
    ]
    # Where it leads is its own words too: a link may be written to anything.
    around = [label + render.listed(names) for label, names in leads if names]
    whole = "\n".join([_above(memory), *_sections(memory, page), *around]) + "\n\n" + page.text
    return render.answer("\n".join(head), whole, _onward(page), " ".join(warnings), flagged=True)


def _above(memory: Memory) -> str:
    """What stands above a memory's text: its properties, one a line."""
    body = [f"title: {render.line(memory.title)}"]
    body += [f"description: {render.line(memory.description, 600)}"] if memory.description else []
    body += [f"tags: {render.tags_line(memory.tags)}"] if memory.tags else []
    return "\n".join(body + render.properties_of(memory.frontmatter, ("title", "description", "tags")))


def _onward(page: pages.LongPage) -> str:
    """How to read the rest of a long memory."""
    if page.count == 1:
        return ""
    following = f'Go on with section="{render.line(page.following)}".' if page.following else ""
    return f"Page {page.number} of {page.count}. {following}".strip()


def _sections(memory: Memory, page: pages.LongPage) -> list[str]:
    """The headings of a long memory: its own words, so they stand with them."""
    headings = render.listed((render.brief(text, 60) for _, text, _ in memory.headings), 30)
    return [f"sections: {headings}"] if headings and page.count > 1 else []


# --- list_memories


@dataclass(frozen=True, slots=True)
class ListedShort(Answer, Listed):
    """A memory in a list that a model can take; `flags` say what of it is not seen."""

    flags: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class MemoryList(Answer):
    items: Sequence[ListedShort]
    next_cursor: str | None
    total: int
    index: IndexState


@tool("List memories")
def list_memories(
    store: EnhancedStore,
    where: Narrowing,
    sort: Sort = "modified",
    limit: Annotated[int, at_most(200), Field(ge=1)] = 50,
    cursor: Annotated[str | None, about("next_cursor of the page before")] = None,
) -> Reply[MemoryList]:
    """List memories by folder, type, tags or date, newest first. To find something by what it says, search."""
    page, items = _list_that_fits(store, where, sort, limit, cursor)
    head = f"# {render.counted(page.total, 'memory', 'memories')}"
    if len(page.items) < page.total:
        head += f", {len(page.items)} of them here"
    onward = f'There are more: cursor="{page.next_cursor}".' if page.next_cursor else ""
    lines = "\n".join(_listed_line(item) for item in items)
    return Reply(render.answer(head, lines, onward, render.index_line(page.index)), page)


def _list_that_fits(
    store: EnhancedStore, where: Narrowing, sort: str, limit: int, cursor: str | None
) -> tuple[MemoryList, list[ListedShort]]:
    """A page of at most `limit` memories that a model can take; its cursor goes on from there."""
    while True:
        page = store.list(filter=where.filter(), sort=sort, limit=limit, cursor=cursor)
        items = [_short(item) for item in page.items]
        shown: Any = [item.as_dict() for item in items]
        tokens = count_tokens(json.dumps(shown, ensure_ascii=False))
        if tokens <= _LISTED_TOKENS or len(items) <= 1:
            return MemoryList(shown, page.next_cursor, page.total, page.index), items
        limit = max(1, min(limit, len(items)) * _LISTED_TOKENS // (tokens + 1))


def _short(item: Listed) -> ListedShort:
    title, description = render.brief(item.title, 20), render.brief(item.description, 36)
    tags = render.first_tags(item.tags, 30)
    flags = tuple(render.flags_of(item.name, title, description, *tags))
    kept = {name: getattr(item, name) for name in Listed.__slots__}
    kept |= {"title": title, "description": description, "type": render.brief(item.type, 10), "tags": tags}
    return ListedShort(**kept, flags=flags)


def _listed_line(item: Listed) -> str:
    facts = render.facts(
        ("", item.title if item.title != item.name.rsplit("/", 1)[-1] else ""),
        ("", item.description),
        ("", item.type if item.type != "memory" else ""),
        ("", render.tags_line(item.tags)),
        ("", render.day(item.modified)),
        ("", "its header cannot be read" if item.problem else ""),
    )
    return f"- **{render.name_of(item.name)}** {facts}"


# --- memory_history


@dataclass(frozen=True, slots=True)
class VersionLine(Answer):
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


@dataclass(frozen=True, slots=True)
class Versions(Answer):
    versions: Sequence[VersionLine]


@tool("History of memories")
def memory_history(
    store: EnhancedStore,
    name: Annotated[
        BareName | None, also("name", "path", "id", "memory_id"), about("without it, the changes of all memories")
    ] = None,
    limit: Annotated[int, at_most(200), Field(ge=1)] = 20,
    diff: Annotated[bool, about("show what each changed")] = False,
) -> Reply[Versions]:
    """Earlier versions of a memory, or the latest changes of all: when, who, what."""
    entries = store.history(name, limit=limit, diff=diff)
    of = f" of {render.name_of(name)}" if name else ""
    if not entries:
        return Reply(f"There is no history{of} yet.", Versions([]))
    room = max(200, _HISTORY_TOKENS // len(entries))
    entries = tuple(replace(entry, diff=render.brief_lines(entry.diff or "", room)) for entry in entries)
    head = f"# {render.counted(len(entries), 'change', 'changes')}{of}, newest first"
    text = "\n".join(_entry_text(entry) for entry in entries)
    versions = [_version(entry, with_diff=diff) for entry in entries]
    return Reply(render.answer(head, text, "undo_change takes one back; read_memory shows one."), Versions(versions))


def _version(entry: HistoryEntry, *, with_diff: bool) -> VersionLine:
    name, what = entry.new_name or entry.name, _what(entry)
    facts = (entry.tool, entry.reason, entry.before, entry.sha256)
    flags = tuple(render.flags_of(what, entry.diff or ""))
    shown = entry.diff or "" if with_diff else None
    return VersionLine(entry.version, name, entry.when, entry.who, what, *facts, flags, shown)


def _entry_text(entry: HistoryEntry) -> str:
    who = render.line(entry.who) or "somebody"
    first = f"- {entry.version} {render.line(entry.when)} {who}: {render.line(_what(entry), 4096)}"
    first += f", sha256 {render.short(entry.sha256)}" if entry.sha256 else ""
    return first + (f"\n{entry.diff}" if entry.diff else "")


def _what(entry: HistoryEntry) -> str:
    """`update projects/apollo (change_tag)`: what was done, in a few words."""
    what = f"{entry.op} {entry.name}" + (f" to {entry.new_name}" if entry.new_name else "")
    return what + (f" ({entry.tool})" if entry.tool else "") + (f": {entry.reason}" if entry.reason else "")
