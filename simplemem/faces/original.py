"""The eight tools of the original simplemem: its parameters, its replacing updates, its Markdown answers,
five hits.

An agent that was set up for the original finds what it knows; the vault below is the same, with everything
it promises. What the original got wrong is not copied: a name stays inside the vault, one long memory
gives one hit, a failure is an answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from simplemem.errors import AlreadyExists, Conflict, Invalid, TooLong, Unreadable
from simplemem.faces import render
from simplemem.faces import render_original as shown
from simplemem.faces.arguments import Arguments, Name, Object, Tags, at_most
from simplemem.faces.meant import meant, resolved
from simplemem.faces.narrowing import Narrowing
from simplemem.faces.plain_text import plain_length
from simplemem.faces.tool import Call, Reply, Tool
from simplemem.note.tags import parse_tag_request

if TYPE_CHECKING:
    from simplemem.memory import Memory, Saved

HITS = 5
DEFAULT_LENGTH = 2500
_TRIES = 20
_SET_BY_US = frozenset({"created", "modified"})


class NoteArguments(Arguments):
    """A whole memory, as create and update take it."""

    name: Name = Field(description="unique, e.g. meeting-notes")
    metadata: Object = Field(description="title, description, tags {key: value or true}; any further keys")
    content: str = Field(description="Markdown, without frontmatter; link with [[name]]")


def _metadata(given: dict[str, Any]) -> dict[str, Any]:
    """The metadata with what the original demands of it; its dates are ours to set."""
    said = {str(key).lower(): key for key in given}
    missing = [key for key in ("title", "description", "tags") if key not in said or given[said[key]] is None]
    if missing:
        raise Invalid(
            f"metadata lacks {', '.join(missing)}.",
            hint='E.g. {"title": "…", "description": "…", "tags": {"todo": true}}.',
        )
    for key in ("title", "description"):
        if not isinstance(given[said[key]], str):
            raise Invalid(f"metadata.{key} is text.")
    kept = {key: value for key, value in given.items() if str(key).lower() not in _SET_BY_US}
    tags = given[said["tags"]]
    kept[said["tags"]] = {} if tags in ("", [], {}) else parse_tag_request(tags)
    return kept


def _refuse_long(call: Call, content: str) -> None:
    """SM-16: what counts is what a reader reads, without marks, code and HTML."""
    most = call.store.settings.max_memory_length
    most = DEFAULT_LENGTH if most is None else most
    if most > 0 and len(content) > most and (length := plain_length(content)) > most:
        raise TooLong(
            f"The memory has {length} characters of plain text; {most} are allowed.",
            hint="Split it into several memories that link to each other.",
        )


def create_memory(call: Call, asked: NoteArguments) -> Reply:
    metadata = _metadata(asked.metadata)
    _refuse_long(call, asked.content)
    try:
        saved = call.store.create(asked.name, asked.content, metadata, tags_as_map=True, who=call.who, tool=call.tool)
    except AlreadyExists as error:
        raise AlreadyExists(error.message, hint="update_memory replaces it.", **error.details) from None
    return _written(saved, "created")


def _written(saved: Saved, what: str) -> Reply:
    return Reply("\n".join([f"Memory '{render.name_of(saved.name)}' was {what}.", *map(render.line, saved.warnings)]))


def update_memory(call: Call, asked: NoteArguments) -> Reply:
    """Replaces the text and all metadata; only `created` stays. A note keeps its own notation of tags."""
    metadata = _metadata(asked.metadata)
    _refuse_long(call, asked.content)
    name = meant(call, asked.name)
    for tries_left in range(_TRIES, -1, -1):
        memory = call.store.read(name)
        if memory.problem:
            raise Unreadable(
                f"The header of {memory.name} cannot be read: {memory.problem}.", hint="Mend it in an editor."
            )
        try:
            saved = call.store.update(
                memory.name,
                content=asked.content,
                metadata=_replacing(memory, metadata),
                if_sha256=memory.sha256,
                who=call.who,
                tool=call.tool,
            )
        except Conflict:
            # The caller named no hash: what somebody else wrote meanwhile is replaced too, and kept in the
            # history.
            if not tries_left:
                raise
            continue
        return _written(saved, "updated")
    raise AssertionError("unreachable")


def _replacing(memory: Memory, metadata: dict[str, Any]) -> dict[str, Any]:
    """A merge that amounts to a replacement: keys and tags that are not given again are taken away."""
    given = {str(key).casefold() for key in metadata}
    gone = {key: None for key in memory.frontmatter if str(key).casefold() not in given | _SET_BY_US}
    key = next(key for key in metadata if str(key).casefold() == "tags")
    named = {str(tag).casefold() for tag in metadata[key]}
    old = {tag: None for tag in memory.tag_map if tag.casefold() not in named}
    return gone | metadata | {key: old | metadata[key]}


class NameArguments(Arguments):
    name: Name


def read_memory(call: Call, asked: NameArguments) -> Reply:
    return Reply(shown.memory(call.store.read(resolved(call, asked.name))))


def delete_memory(call: Call, asked: NameArguments) -> Reply:
    gone = call.store.delete(meant(call, asked.name), who=call.who, tool=call.tool)
    return Reply(f"Memory '{render.name_of(gone.name)}' was deleted.")


class ListArguments(Arguments):
    cursor: str | None = None
    limit: Annotated[int, at_most(100)] = Field(default=50, ge=1)


def list_memories(call: Call, asked: ListArguments) -> Reply:
    page = call.store.list(sort="name", limit=asked.limit, cursor=asked.cursor)
    most = call.store.settings.max_memory_length
    memories = [call.store.read(item.name) for item in page.items]
    text = shown.memories(memories, page.total, DEFAULT_LENGTH if most is None else most)
    return Reply(text + (f'\nMore: list_memories(cursor="{page.next_cursor}")\n' if page.next_cursor else ""))


class SearchArguments(Arguments):
    query: str = Field(default="", description="what to look for; may be empty when tags are given")
    tags: Tags = Field(default=None, description='{"todo": "", "status": "done"}; "" asks only that the tag is there')
    require_all: bool = Field(default=False, description="all tags, not any")

    shown_types: ClassVar[dict[str, str]] = {"tags": "object"}


def search_memories(call: Call, asked: SearchArguments) -> Reply:
    if not asked.query.strip() and not asked.tags:
        raise Invalid("Give a query, or tags, or both.")
    narrowing = Narrowing(tags=asked.tags, require_all=asked.require_all)
    chosen = narrowing.filter()
    found = call.store.search(asked.query, filter=chosen, limit=HITS)
    return Reply(shown.found(found, dict(chosen.tags), asked.require_all))


class BacklinkArguments(Arguments):
    name: Name
    query: str | None = Field(default=None, description="rank by nearness to this")


def get_backlinks(call: Call, asked: BacklinkArguments) -> Reply:
    name = resolved(call, asked.name)
    items = call.store.backlinks(name, query=asked.query, limit=HITS)
    about = {item.name: call.store.read(item.name).description for item in items}
    return Reply(shown.backlinks(name, asked.query, items, about) + render.index_line(call.store.state()))


class TagArguments(Arguments):
    name: Name
    tags: Tags = Field(description='{"status": "done", "old": null}; null removes')

    shown_types: ClassVar[dict[str, str]] = {"tags": "object"}


def change_tag(call: Call, asked: TagArguments) -> Reply:
    if not asked.tags:
        raise Invalid("No tags were given.", hint='E.g. {"status": "done", "todo": null}.')
    before = call.store.read(meant(call, asked.name))
    saved = call.store.change_tags(before.name, asked.tags, who=call.who, tool=call.tool)
    return Reply(shown.tag_changes(saved.name, parse_tag_request(asked.tags), before.tag_map, saved.tag_map))


TOOLS: tuple[Tool[Any], ...] = (
    Tool(
        "create_memory",
        "Create a memory",
        "Create a memory: a small Markdown note about one thing, with metadata and [[links]].",
        NoteArguments,
        create_memory,
        writes=True,
        idempotent=False,
    ),
    Tool(
        "read_memory",
        "Read a memory",
        "Read a memory with its metadata and links.",
        NameArguments,
        read_memory,
    ),
    Tool(
        "update_memory",
        "Update a memory",
        "Replace a memory: its content and all of its metadata. Read it first.",
        NoteArguments,
        update_memory,
        writes=True,
        destructive=True,
    ),
    Tool(
        "delete_memory",
        "Delete a memory",
        "Delete a memory.",
        NameArguments,
        delete_memory,
        deletes=True,
        writes=True,
        destructive=True,
        idempotent=False,
    ),
    Tool(
        "list_memories",
        "List memories",
        "List the memories with their metadata. Long: search_memories is the better way to find one.",
        ListArguments,
        list_memories,
    ),
    Tool(
        "search_memories",
        "Search memories",
        "Search the memories by meaning and words, by tags, or both. Answers with the five best.",
        SearchArguments,
        search_memories,
    ),
    Tool(
        "get_backlinks",
        "Related memories",
        "The memories that link to one, and those about the same thing.",
        BacklinkArguments,
        get_backlinks,
    ),
    Tool(
        "change_tag",
        "Change tags",
        "Set or remove tags of a memory and leave all else as it is.",
        TagArguments,
        change_tag,
        writes=True,
        destructive=True,
    ),
)
