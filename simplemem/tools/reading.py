"""The default tools that read one note and list notes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Final, NotRequired, TypedDict, cast

from pydantic import Field

from simplemem.models import IndexState, LinkOut, Memory, Page
from simplemem.note.words import count_tokens
from simplemem.tools import render
from simplemem.tools.arguments import FilterArgs, Name, Sort, about, clamp
from simplemem.tools.pages import LongPage, asked_page, page_of, page_size
from simplemem.tools.session import Session
from simplemem.tools.short import MAX_LIST_TOKENS, ListedShort, shorten_listed, unique_names
from simplemem.tools.tool import Data, Reply, tool

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore

_MAX_NAMES: Final = 50
_MAX_RELATED: Final = 3
_MAX_PROPERTIES: Final = 40
_HEADING_TOKENS: Final = 60

# A version of our history or a commit of git. Anything else is a date.
_VERSION_ID: Final = re.compile(r"v?[0-9]+|[0-9a-f]{7,64}")

# Fields of every answer, and properties that it has beside the frontmatter.
_FIELDS: Final = ("name", "path", "title", "created", "modified", "sha256")
_OWN_PROPERTIES: Final = ("title", "description", "tags")


class MemoryPage(TypedDict):
    """A page of a note. The first page of the whole note has its properties and links too."""

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
    frontmatter: NotRequired[Mapping[str, Any]]  # properties that the other fields lack
    backlinks: NotRequired[Sequence[str]]
    related: NotRequired[Sequence[str]]
    outline: NotRequired[Sequence[str]]
    broken_links: NotRequired[Sequence[str]]
    version: NotRequired[str]
    warnings: NotRequired[Sequence[str]]


@tool(
    "Read a memory",
    routes=("GET /memories/{name}",),
    phrases={
        "read_version": '{call:name="{name}", version="{version}"} shows its text.',
        "read_listed": "{call} to read a version.",
    },
)
def read_memory(
    store: EnhancedStore,
    session: Session,
    name: Annotated[Name, about("name, title or alias")],
    section: Annotated[str | None, about("a heading; [2] is page 2 of a long memory")] = None,
    version: Annotated[str | None, about("a version from memory_history, or a date")] = None,
) -> Reply[MemoryPage]:
    """Read a memory: text, frontmatter, tags, links, backlinks and related memories. Keep its
    sha256 to change it."""
    heading, page_number = asked_page(section)
    memory = _read_version(store, session, name, heading, version)
    size = page_size(memory.content, memory.tokens)
    page = page_of(memory.content, heading, page_number, size)

    is_whole = not heading and page.number == 1
    related: Sequence[str] = ()
    if is_whole and not version:
        related = list(store.related(memory.name, limit=_MAX_RELATED))
    reading = _Reading(memory, page, is_whole, version, related)

    warnings = reading.warnings(store.state())
    text = render.answer(
        reading.head(), reading.text(), reading.paging(), " ".join(warnings), flagged=True
    )
    return Reply(text, reading.fields(warnings))


def _read_version(
    store: EnhancedStore, session: Session, name: str, heading: str | None, version: str | None
) -> Memory:
    """Return the current text of a note, or that of a version or a date.

    `heading` limits it to a section. Without a `version`, records in the session that the client
    has read the note. Raises NotFound if there is no such note, heading or version, Ambiguous if
    the name means several notes, and Invalid for a date that cannot be read.
    """
    if version is None:
        memory = store.read(name, section=heading)
        session.record_read(memory)
        return memory
    if _VERSION_ID.fullmatch(version.strip()):
        return store.read(name, section=heading, version=version)
    return store.read(name, section=heading, at=version)


@dataclass(frozen=True)
class _Reading:
    """A page of a note, and what an answer tells about it as text and as fields."""

    memory: Memory
    page: LongPage
    is_whole: bool  # the first page of a note, not of a section
    version: str | None
    related: Sequence[str]

    @cached_property
    def first_line(self) -> int:
        """The number of the line of the file where the page begins; the first line is 1."""
        return self.memory.content_line + self.memory.content.count("\n", 0, self.page.start)

    @cached_property
    def links(self) -> Sequence[LinkOut]:
        """The links of the page; of the first page, those of the frontmatter too."""
        if self.is_whole:
            return self.memory.links
        last_line = self.first_line + self.page.text.rstrip().count("\n")
        return [link for link in self.memory.links if self.first_line <= link.line <= last_line]

    @cached_property
    def resolved_links(self) -> list[str]:
        """The first notes that the page links to, each once."""
        targets = [link.target for link in self.links if link.resolved]
        return unique_names(targets, _MAX_NAMES)

    @cached_property
    def unresolved_links(self) -> list[str]:
        """The first targets of links that lead to no note, each once."""
        targets = [link.target for link in self.links if not link.resolved]
        return unique_names(targets, _MAX_NAMES)

    @cached_property
    def backlinks(self) -> list[str]:
        """The first notes that link to this one; none beside its first page."""
        if not self.is_whole:
            return []
        return unique_names(self.memory.backlinks, _MAX_NAMES)

    @cached_property
    def outline(self) -> list[str]:
        """The headings of a note that has several pages, on its first page."""
        if not self.is_whole or self.page.total == 1:
            return []
        headings = self.memory.headings[:_MAX_NAMES]
        return [render.brief(text, _HEADING_TOKENS) for _, text, _ in headings]

    @cached_property
    def properties(self) -> Data:
        """The frontmatter without what the answer has beside it, such as title, tags and dates."""
        dates = (self.memory.created, self.memory.modified)
        return {
            key: value
            for key, value in self.memory.frontmatter.items()
            if key.casefold() not in _OWN_PROPERTIES and value not in dates
        }

    def fields(self, warnings: Sequence[str]) -> MemoryPage:
        """Return the fields of the answer, with these warnings.

        Properties, backlinks and related notes are in the first page of a note only, even if empty.
        The type is there only if it is not "memory". An outline, broken links, the next section, a
        version and warnings are left out if there are none.
        """
        fields: Data = {name: getattr(self.memory, name) for name in _FIELDS}
        fields["content"] = self.page.text
        fields["links"] = self.resolved_links

        if self.is_whole:
            fields["description"] = self.memory.description
            fields["tags"] = self.memory.tags
            fields["tag_map"] = self.memory.tag_map
            fields["frontmatter"] = self.properties
            fields["backlinks"] = self.backlinks
            fields["related"] = self.related
            if self.memory.type != "memory":
                fields["type"] = self.memory.type

        optional: Data = {
            "outline": self.outline,
            "broken_links": self.unresolved_links,
            "next_section": self.page.following,
            "version": self.version,
            "warnings": warnings,
        }
        for name, value in optional.items():
            if value:
                fields[name] = value
        return cast("MemoryPage", fields)

    def head(self) -> str:
        """Return the lines above the text of the note."""
        lines = [f"# {render.name_of(self.memory.name)}", f"sha256 {self.memory.sha256}"]
        if self.version:
            version = render.line(self.version)
            lines.append(f"This is the earlier version {version}, not the current text.")
        return "\n".join(lines)

    def text(self) -> str:
        """Return the page, below the properties and links of the note.

        Headings and names are words of notes too. They stand between the marks with the text.
        """
        lines = [*self._property_lines(), *self._link_lines()]
        if not lines:
            return self.page.text
        return "\n".join(lines) + "\n\n" + self.page.text

    def _property_lines(self) -> list[str]:
        """Return the frontmatter of the note, one property per line.

        Returns [] for a later page or a section. Empty properties are left out.
        """
        if not self.is_whole:
            return []

        memory = self.memory
        lines = [f"title: {render.line(memory.title)}"]
        if memory.description:
            lines.append(f"description: {render.line(memory.description, 600)}")
        if memory.tags:
            lines.append(f"tags: {render.tags_line(memory.tags)}")
        if memory.created:
            lines.append(f"created: {memory.created}")
        if memory.modified:
            lines.append(f"modified: {memory.modified}")
        return lines + self._other_property_lines()

    def _other_property_lines(self) -> list[str]:
        """Return the first 40 properties without a field of their own, without empty ones.

        A last line counts those beyond the limit.
        """
        lines = []
        for key, value in islice(self.properties.items(), _MAX_PROPERTIES):
            if value not in (None, ""):
                lines.append(f"{render.line(key, 60)}: {render.line(value)}")

        more = len(self.properties) - _MAX_PROPERTIES
        if more > 0:
            lines.append(f"({more} more properties)")
        return lines

    def _link_lines(self) -> list[str]:
        """Return the headings and linked notes of the page, one line per kind that it has."""
        names_of_label = {
            "sections": self.outline,
            "links to": self.resolved_links,
            "unresolved links": self.unresolved_links,
            "linked from": self.backlinks,
            "related": self.related,
        }
        return [
            f"{label}: {render.listed(names, _MAX_NAMES)}"
            for label, names in names_of_label.items()
            if names
        ]

    def paging(self) -> str:
        """Return which page this is, and how to get the next one; "" for the only page."""
        parts = []
        if self.page.total > 1:
            parts.append(f"Page {self.page.number} of {self.page.total}.")
        if self.page.following:
            parts.append(f'Pass section="{self.page.following}" for the next page.')
        return " ".join(parts)

    def warnings(self, index: IndexState) -> list[str]:
        """Return what a reader of the text cannot see, and what the answer lacks.

        `index` is the state of the index: backlinks may be missing while it is built. Returns [] if
        there is nothing to warn of.
        """
        warnings = []
        if self.memory.problem:
            warnings.append(self.memory.problem)
        warnings.extend(render.warnings_of(self.page.text, self.first_line))

        hidden = render.flags_of("\n".join(self._property_lines()))
        if hidden:
            warnings.append(f"The frontmatter contains {' and '.join(hidden)}.")

        count = len(self.memory.backlinks)
        if self.is_whole and count > _MAX_NAMES:
            warnings.append(f"{count} memories link here. Call get_backlinks for the rest.")
        if index.state == "indexing":
            warnings.append(f"{render.index_line(index)} Some backlinks may be missing.")
        return warnings


class MemoryList(TypedDict):
    """A page of a list. `index` is there while the index is not ready."""

    items: Sequence[ListedShort]
    next_cursor: str | None
    total: int
    index: NotRequired[IndexState]
    degraded: NotRequired[str]


@tool(
    "List memories",
    routes=("GET /memories",),
    phrases={"list_newest": "Call {call} for the newest memories."},
)
def list_memories(
    store: EnhancedStore,
    where: FilterArgs,
    sort: Sort = "modified",
    limit: Annotated[int, clamp(200), Field(ge=1)] = 50,
    cursor: Annotated[str | None, about("next_cursor of the previous page")] = None,
) -> Reply[MemoryList]:
    """List memories by folder, type, tags or date, newest first. To find text, call
    search_memories."""
    page, items = _fitting_page(store, where, sort, limit, cursor)

    count = render.format_count(page.total, "memory", "memories")
    head = f"# {count}"
    if len(items) < page.total:
        head += f", the first {len(items)} shown"
    listing = "\n".join(_listed_text(item) for item in items)
    paging = ""
    if page.next_cursor:
        paging = f'Pass cursor="{page.next_cursor}" for the next page.'
    index_state = render.index_line(page.index, page.degraded)

    fields = MemoryList(items=items, next_cursor=page.next_cursor, total=page.total)
    if page.index.state != "ready":
        fields["index"] = page.index
    if page.degraded:
        fields["degraded"] = page.degraded
    return Reply(render.answer(head, listing, paging, index_state), fields)


def _fitting_page(
    store: EnhancedStore, where: FilterArgs, sort: Sort, limit: int, cursor: str | None
) -> tuple[Page, list[ListedShort]]:
    """Return a page of the list, and its notes shortened for an answer.

    The page has fewer notes than `limit` if they have more than 8,000 tokens, but at least one if
    there is any. Raises Invalid for a date or a cursor that cannot be read.
    """
    while True:
        page = store.list(filter=where.filter(), sort=sort, limit=limit, cursor=cursor)
        items = [shorten_listed(note) for note in page.items]
        fields = [item.as_dict() for item in items]
        tokens = count_tokens(json.dumps(fields, ensure_ascii=False))

        if tokens <= MAX_LIST_TOKENS or len(items) <= 1:
            return page, items
        limit = max(1, len(items) * MAX_LIST_TOKENS // (tokens + 1))


def _listed_text(item: ListedShort) -> str:
    """Return a note as a line of a list, without the values that are empty."""
    problem = ""
    if item.problem:
        problem = "its frontmatter cannot be read"
    note_type = ""
    if item.type != "memory":
        note_type = item.type

    facts = render.facts(
        ("", item.title),
        ("", item.description),
        ("", note_type),
        ("", render.tags_line(item.tags)),
        ("", item.modified),
        ("", problem),
        ("sha256", item.sha256),
    )
    return f"- **{render.name_of(item.name)}** {facts}"
