"""Reading what is there: read_memory, list_memories, memory_history. They change nothing."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AliasChoices, Field, model_validator

from simplemem.errors import NotFound
from simplemem.faces import pages, render
from simplemem.faces.arguments import Arguments, Name, OtherName, Sort, at_most
from simplemem.faces.meant import resolved
from simplemem.faces.narrowing import Narrowing
from simplemem.faces.schema import COUNT, INDEX, MAP, MAYBE_TEXT, NUMBER, TEXT, TEXTS, record, several
from simplemem.faces.tool import Call, Reply, Tool
from simplemem.note.words import count_tokens

if TYPE_CHECKING:
    from simplemem.memory import HistoryEntry, Listed, Memory, Page

_MOST_LINKS = 100
_LISTED_TOKENS = 8000
_HISTORY_TOKENS = 8000
_AN_ID = re.compile(r"v?[0-9]+|[0-9a-f]{7,64}")  # of a version, or of a commit; anything else is a date
_TO_A_SECTION = re.compile(r"\s*\[\[([^\[\]|#]{1,500})#([^\[\]|]{1,500})(?:\|[^\[\]]{0,500})?\]\]\s*")


# --- read_memory


class ReadArguments(Arguments):
    name: Name = Field(description="name, title or alias")
    section: str | None = Field(default=None, description='a heading; "[2]" is page 2 of a long memory')
    version: str | None = Field(default=None, description="of memory_history, or a date: as it was then")

    @model_validator(mode="before")
    @classmethod
    def _section_in_a_link(cls, given: Any) -> Any:
        """A wikilink to a heading, `[[Apollo#Budget]]`, asks for that section."""
        name = given.get("name") if isinstance(given, dict) and not given.get("section") else None
        link = _TO_A_SECTION.fullmatch(name) if isinstance(name, str) else None
        return given if link is None else given | {"name": link[1], "section": link[2]}


def read_memory(call: Call, asked: ReadArguments) -> Reply:
    memory, page = _read_page(call, asked)
    related = () if asked.version else call.store.related(memory.name, limit=3)
    first_line = memory.content_line + memory.content.count("\n", 0, page.start)
    warnings = ([memory.problem] if memory.problem else []) + render.warnings_of(page.text, first_line)
    if above := render.flags_of(_above(memory)):
        warnings.append(f"Its properties hold {' and '.join(above)}.")
    index = call.store.state()
    if index.state == "indexing":
        warnings.append(render.index_line(index) + " Not all that links here may be known yet.")
    data = memory.as_dict()
    shown = {key: data[key] for key in _SHOWN} | {
        "content": page.text,
        "links": data["links"][:_MOST_LINKS],
        "backlinks": data["backlinks"][:_MOST_LINKS],
        "related": [{"name": each.name, "title": each.title, "score": each.score} for each in related],
        "next_section": page.following,
        "warnings": warnings,
    }
    return Reply(_read_text(memory, page, asked.version, [each.name for each in related], warnings), shown)


_SHOWN = (
    "name", "path", "title", "description", "type", "tags", "tag_map", "aliases", "created", "modified",
    "frontmatter", "sha256", "tokens",
)  # fmt: skip


def _read_page(call: Call, asked: ReadArguments) -> tuple[Memory, pages.Page]:
    section, number = pages.asked_page(asked.section)
    name = asked.name if asked.version else resolved(call, asked.name)
    try:
        memory = _read(call, name, section, asked.version)
    except NotFound as error:
        # A heading may itself end in a number in brackets.
        if section == asked.section:
            raise _with_a_way_out(error) from None
        memory = _read(call, name, asked.section, asked.version)
        section, number = asked.section, 1
    return memory, pages.page_of(memory.content, section, number, pages.page_size(memory.content, memory.tokens))


def _read(call: Call, name: str, section: str | None, version: str | None) -> Memory:
    if version and not _AN_ID.fullmatch(version.strip()):
        return call.store.read(name, section=section, at=version)
    return call.store.read(name, section=section, version=version)


def _with_a_way_out(error: NotFound) -> NotFound:
    if error.hint or error.details.get("candidates"):
        return error
    return NotFound(error.message, hint="It has no headings. Read it without a section.", **error.details)


def _read_text(memory: Memory, page: pages.Page, version: str | None, related: list[str], warnings: list[str]) -> str:
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


def _onward(page: pages.Page) -> str:
    """How to read the rest of a long memory."""
    if page.count == 1:
        return ""
    following = f'Go on with section="{render.line(page.following)}".' if page.following else ""
    return f"Page {page.number} of {page.count}. {following}".strip()


def _sections(memory: Memory, page: pages.Page) -> list[str]:
    """The headings of a long memory: its own words, so they stand with them."""
    headings = render.listed((render.brief(text, 60) for _, text, _ in memory.headings), 30)
    return [f"sections: {headings}"] if headings and page.count > 1 else []


READ = Tool(
    "read_memory",
    "Read a memory",
    "Read one memory: text, properties, tags, links, what links to it and what is about the same. "
    "Keep its sha256 for a change.",
    ReadArguments,
    read_memory,
    record(
        name=TEXT,
        path=TEXT,
        title=TEXT,
        description=TEXT,
        type=TEXT,
        tags=TEXTS,
        tag_map=MAP,
        aliases=TEXTS,
        created=MAYBE_TEXT,
        modified=MAYBE_TEXT,
        frontmatter=MAP,
        content=TEXT,
        sha256=TEXT,
        links=several(MAP),
        backlinks=TEXTS,
        related=several(record(name=TEXT, title=TEXT, score=NUMBER)),
        tokens=COUNT,
        next_section=MAYBE_TEXT,
        warnings=TEXTS,
    ),
)


# --- list_memories


class ListArguments(Narrowing):
    sort: Sort = "modified"
    limit: Annotated[int, at_most(200)] = Field(default=50, ge=1)
    cursor: str | None = Field(default=None, description="next_cursor of the page before")


def list_memories(call: Call, asked: ListArguments) -> Reply:
    page, items = _page_that_fits(call, asked)
    head = f"# {render.counted(page.total, 'memory', 'memories')}"
    if len(page.items) < page.total:
        head += f", {len(page.items)} of them here"
    onward = f'There are more: cursor="{page.next_cursor}".' if page.next_cursor else ""
    lines = "\n".join(_listed_line(item) for item in page.items)
    data = {"items": items, "next_cursor": page.next_cursor, "total": page.total, "index": page.index.as_dict()}
    return Reply(render.answer(head, lines, onward, render.index_line(page.index)), data)


def _page_that_fits(call: Call, asked: ListArguments) -> tuple[Page, list[dict[str, Any]]]:
    """A page of at most `limit` memories that a model can take; its cursor goes on from there."""
    limit = asked.limit
    while True:
        page = call.store.list(filter=asked.filter(), sort=asked.sort, limit=limit, cursor=asked.cursor)
        page = replace(page, items=tuple(_briefly(item) for item in page.items))
        items = [_with_flags(item) for item in page.items]
        tokens = count_tokens(json.dumps(items, ensure_ascii=False))
        if tokens <= _LISTED_TOKENS or len(items) <= 1:
            return page, items
        limit = max(1, min(limit, len(items)) * _LISTED_TOKENS // (tokens + 1))


def _with_flags(item: Listed) -> dict[str, Any]:
    flags = render.flags_of(item.name, item.title, item.description, *item.tags)
    return item.as_dict() | ({"flags": flags} if flags else {})


def _briefly(item: Listed) -> Listed:
    return replace(
        item,
        title=render.brief(item.title, 20),
        description=render.brief(item.description, 36),
        type=render.brief(item.type, 10),
        tags=render.first_tags(item.tags, 30),
    )


def _listed_line(item: Listed) -> str:
    about = render.facts(
        ("", item.title if item.title != item.name.rsplit("/", 1)[-1] else ""),
        ("", item.description),
        ("", item.type if item.type != "memory" else ""),
        ("", render.tags_line(item.tags)),
        ("", render.day(item.modified)),
        ("", "its header cannot be read" if item.problem else ""),
    )
    return f"- **{render.name_of(item.name)}** {about}"


LIST = Tool(
    "list_memories",
    "List memories",
    "List memories by folder, type, tags or date, newest first. To find something by what it says, search.",
    ListArguments,
    list_memories,
    record(
        items=several(
            record(
                ("flags",),
                flags=TEXTS,
                name=TEXT,
                path=TEXT,
                title=TEXT,
                description=TEXT,
                type=TEXT,
                tags=TEXTS,
                created=MAYBE_TEXT,
                modified=MAYBE_TEXT,
                size=COUNT,
                sha256=TEXT,
                problem=MAYBE_TEXT,
            )
        ),
        next_cursor=MAYBE_TEXT,
        total=COUNT,
        index=INDEX,
    ),
)


# --- memory_history


class HistoryArguments(Arguments):
    name: OtherName = Field(
        default=None,
        description="without it, the changes of all memories",
        validation_alias=AliasChoices("name", "path", "id", "memory_id"),
    )
    limit: Annotated[int, at_most(200)] = Field(default=20, ge=1)
    diff: bool = Field(default=False, description="show what each changed")


def memory_history(call: Call, asked: HistoryArguments) -> Reply:
    entries = call.store.history(asked.name, limit=asked.limit, diff=asked.diff)
    of = f" of {render.name_of(asked.name)}" if asked.name else ""
    if not entries:
        return Reply(f"There is no history{of} yet.", {"versions": []})
    room = max(200, _HISTORY_TOKENS // len(entries))
    entries = tuple(replace(entry, diff=render.brief_lines(entry.diff or "", room)) for entry in entries)
    head = f"# {render.counted(len(entries), 'change', 'changes')}{of}, newest first"
    text = "\n".join(_entry_text(entry) for entry in entries)
    versions = [_version(entry, with_diff=asked.diff) for entry in entries]
    return Reply(
        render.answer(head, text, "undo_change takes one back; read_memory shows one."),
        {"versions": versions},
    )


def _version(entry: HistoryEntry, *, with_diff: bool) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "version": entry.version,
        "name": entry.new_name or entry.name,
        "when": entry.when,
        "who": entry.who,
        "what": _what(entry),
        "tool": entry.tool,
        "reason": entry.reason,
        "previous_sha256": entry.before,
        "sha256": entry.sha256,
    }
    if flags := render.flags_of(_what(entry), entry.diff or ""):
        shown["flags"] = flags
    return shown | {"diff": entry.diff or ""} if with_diff else shown


def _entry_text(entry: HistoryEntry) -> str:
    who = render.line(entry.who) or "somebody"
    first = f"- {entry.version} {render.line(entry.when)} {who}: {render.line(_what(entry), 4096)}"
    first += f", sha256 {render.short(entry.sha256)}" if entry.sha256 else ""
    return first + (f"\n{entry.diff}" if entry.diff else "")


def _what(entry: HistoryEntry) -> str:
    """`update projects/apollo (change_tag)`: what was done, in a few words."""
    what = f"{entry.op} {entry.name}" + (f" to {entry.new_name}" if entry.new_name else "")
    return what + (f" ({entry.tool})" if entry.tool else "") + (f": {entry.reason}" if entry.reason else "")


HISTORY = Tool(
    "memory_history",
    "History of memories",
    "Earlier versions of a memory, or the latest changes of all: when, who, what.",
    HistoryArguments,
    memory_history,
    record(
        versions=several(
            record(
                ("diff", "flags"),
                flags=TEXTS,
                version=TEXT,
                name=TEXT,
                when=TEXT,
                who=TEXT,
                what=TEXT,
                tool=TEXT,
                reason=TEXT,
                previous_sha256=MAYBE_TEXT,
                sha256=MAYBE_TEXT,
                diff=TEXT,
            )
        )
    ),
)
