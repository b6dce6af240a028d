"""The tools of the original simplemem.

They keep its replacing updates, its Markdown answers and its five hits. Its mistakes are not
copied: a name stays inside the vault, and a failure is an error. A tool that takes the name of a
memory raises NotFound for an unknown name. One that replaces or deletes a memory raises Conflict if
the memory has changed since this session read it; a deleted memory is in the trash.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from simplemem.errors import Conflict, Invalid, TooLong
from simplemem.note.names import path_of
from simplemem.note.tag_requests import parse_tag_request, respelling_warnings, without_header
from simplemem.profiles.simplemem import texts
from simplemem.tools.arguments import (
    FilterArgs,
    Name,
    Object,
    Tags,
    about,
    clamp,
)
from simplemem.tools.normalize import gather_metadata, gather_tag_changes
from simplemem.tools.render import index_line, line, name_of
from simplemem.tools.session import Session, replaced_and_undo, without_offer
from simplemem.tools.targets import resolved, to_change
from simplemem.tools.tool import Caller, Reply, tool

if TYPE_CHECKING:
    from simplemem.models import Memory
    from simplemem.store import EnhancedStore

_MAX_HITS = 5
_DEFAULT_MAX_LENGTH = 2500  # characters of plain text
_DATES = {"created", "modified"}  # the server sets them
_REQUIRED: dict[str, Any] = {"title": str, "description": str, "tags": (dict, list, str)}

NewName = Annotated[Name, about("unique name, e.g. meeting-notes")]
Meta = Annotated[Object, about("title, description, tags {key: value or true}, other keys")]
Content = Annotated[str, about("Markdown with [[name]] links; by default at most 2,500 characters")]


@tool("Create a memory", writes=True, idempotent=False, gather=gather_metadata)
def create_memory(
    store: EnhancedStore,
    caller: Caller,
    session: Session,
    name: NewName,
    metadata: Meta,
    content: Content,
) -> Reply[None]:
    """Create a memory: a small Markdown note about one subject, with metadata and [[links]]."""
    content, metadata, warnings = without_header(content, metadata)
    properties = _check_memory(store, metadata, content)
    saved = store.create(name, content, properties, tags_as_map=True, **caller)
    session.record_whole_write(saved)

    warnings += saved.warnings
    warnings += respelling_warnings(metadata.get("tags"), saved.tag_map)
    return Reply(texts.describe_written(saved.name, "created", warnings, 200))


@tool(
    "Update a memory",
    writes=True,
    destructive=True,
    phrases={
        "update": "Use {call} to change it;",
        "update_instead": "Read the note, and change it with {call}.",
    },
)
def update_memory(
    store: EnhancedStore,
    caller: Caller,
    session: Session,
    name: NewName,
    metadata: Meta,
    content: Content,
) -> Reply[None]:
    """Replace the content and all metadata of a memory. Read it first."""
    content, metadata, warnings = without_header(content, metadata)
    properties = _check_memory(store, metadata, content)
    memory = store.read(to_change(store, name))
    known_hash = session.known_hash(memory.path)
    try:
        saved = store.update(
            memory.name,
            content=content,
            metadata=_replacing_metadata(memory, properties),
            if_sha256=known_hash,
            **caller,
        )
    except Conflict as error:
        hint = "Read the memory again with read_memory, keep what changed, and repeat the update."
        raise without_offer(error, hint) from None

    warnings += saved.warnings
    is_read = known_hash is not None
    if saved.changed and not is_read and saved.previous_sha256 is not None:
        replaced = replaced_and_undo(store, saved.name, saved.previous_sha256, saved.version)
        warnings.append(replaced)
    session.record_whole_write(saved)
    return Reply(texts.describe_written(saved.name, "updated", warnings, 600))


def _replacing_metadata(memory: Memory, properties: dict[str, Any]) -> dict[str, Any]:
    """Return the change after which a memory has only these properties and its dates.

    The change is metadata for the store, which merges metadata: None removes a property or a tag.
    `properties` are those of `_check_memory`.
    """
    change: dict[str, Any] = {}
    kept_keys = {key.casefold() for key in properties} | _DATES
    for key in memory.frontmatter:
        if key.casefold() not in kept_keys:
            change[key] = None
    change |= properties

    tag_changes: dict[str, Any] = {}
    kept_tags = {tag.casefold() for tag in properties["tags"]}
    for tag in memory.tag_map:
        if tag.casefold() not in kept_tags:
            tag_changes[tag] = None
    change["tags"] = tag_changes | properties["tags"]
    return change


def _check_memory(store: EnhancedStore, metadata: dict[str, Any], content: str) -> dict[str, Any]:
    """Return the metadata of a memory without its dates, and with tags as a map.

    Raises Invalid if metadata lacks a title, a description or tags, and TooLong if the content has
    more characters of plain text than the setting `max_memory_length` allows, 2,500 by default.
    """
    values = {}
    for key, value in metadata.items():
        lower_key = key.lower()
        if lower_key in _REQUIRED:
            values[lower_key] = value
        else:
            values[key] = value
    missing = [key for key, types in _REQUIRED.items() if not isinstance(values.get(key), types)]
    if missing:
        raise Invalid(
            f"metadata needs {', '.join(missing)}",
            hint='Pass e.g. {"title": "…", "description": "…", "tags": {"todo": true}}.',
        )

    length = texts.plain_length(content)
    max_length = _max_length(store)
    if 0 < max_length < length:
        raise TooLong(
            f"the memory has {length} characters of plain text; {max_length} are allowed",
            hint="Split it into several memories that link to each other.",
        )

    properties = {key: value for key, value in values.items() if key.lower() not in _DATES}
    properties["tags"] = parse_tag_request(values["tags"] or {})
    return properties


def _max_length(store: EnhancedStore) -> int:
    """Return how many characters of plain text a memory may have; 0 for no limit."""
    max_length = store.settings.max_memory_length
    if max_length is None:
        return _DEFAULT_MAX_LENGTH
    return max_length


@tool(
    "Delete a memory",
    writes=True,
    destructive=True,
    idempotent=False,
    deletes=True,
    phrases={"delete": "{call} deletes it;"},
)
def delete_memory(
    store: EnhancedStore, caller: Caller, session: Session, name: Name
) -> Reply[None]:
    """Delete a memory."""
    full_name = to_change(store, name)
    known_hash = session.known_hash(path_of(full_name))
    try:
        deleted = store.delete(full_name, if_sha256=known_hash, **caller)
    except Conflict as error:
        hint = "Read the memory again with read_memory, and delete it if it is no longer needed."
        raise without_offer(error, hint) from None
    session.record_step(store, deleted.version)
    return Reply(f"Memory '{name_of(deleted.name)}' was deleted.")


@tool("Change tags", writes=True, destructive=True, gather=gather_tag_changes)
def change_tag(
    store: EnhancedStore,
    caller: Caller,
    session: Session,
    name: Name,
    tags: Annotated[Tags, about("{status: 'done', old: null}; null removes")],
) -> Reply[None]:
    """Set or remove tags of a memory and change nothing else."""
    memory = store.read(to_change(store, name))
    saved = store.change_tags(memory.name, tags, **caller)
    session.record_change(saved)

    old_tags = {tag.casefold(): value for tag, value in memory.tag_map.items()}
    new_tags = {tag.casefold(): value for tag, value in saved.tag_map.items()}
    lines = [f"Tags of memory '{line(saved.name)}':"]
    for tag, value in parse_tag_request(tags).items():
        key = tag.casefold()
        old_value = old_tags.get(key)
        new_value = new_tags.get(key)
        lines.append(texts.describe_tag_change(tag, value, old_value, new_value))
    lines += [line(warning, 400) for warning in saved.warnings]
    return Reply("\n".join(lines) + "\n")


@tool("Read a memory")
def read_memory(store: EnhancedStore, session: Session, name: Name) -> Reply[None]:
    """Read a memory with its metadata and links."""
    memory = store.read(resolved(store, name))
    session.record_read(memory)
    return Reply(texts.render_memory(memory))


@tool("List memories")
def list_memories(
    store: EnhancedStore,
    cursor: str | None = None,
    limit: Annotated[int, clamp(100), Field(ge=1)] = 50,
) -> Reply[None]:
    """List memories with their metadata.

    The list is long; to find a memory, call search_memories.
    """
    page = store.list(sort="name", limit=limit, cursor=cursor)
    if not page.items:
        state = index_line(page.index) or "There are no memories."
        return Reply(f"{state}\n")
    memories = [store.read(listed.name) for listed in page.items]
    return Reply(texts.render_page(page, memories, _max_length(store)))


@tool("Search memories")
def search_memories(
    store: EnhancedStore,
    session: Session,
    query: Annotated[str, about("what to look for; may be empty with tags")] = "",
    tags: Annotated[Tags, about("{todo: '', status: 'done'}; '' is any value")] = None,
    require_all: Annotated[bool, about("all tags, not any")] = False,
) -> Reply[None]:
    """Search memories by meaning and words, by tags, or both. Returns the five best."""
    if not query.strip() and not tags:
        raise Invalid("the search has no query and no tags", hint="Pass a query, tags, or both.")

    conditions = FilterArgs(tags=tags, require_all=require_all).filter()
    found = store.search(query, filter=conditions, limit=_MAX_HITS)
    searched = texts.describe_search(found.query, conditions.tags, require_all=require_all)
    memories = {hit.name: store.read(hit.name) for hit in found.hits}
    session.record_hits(found.hits)
    return Reply(texts.render_hits(found, searched, memories))


@tool("Related memories")
def get_backlinks(
    store: EnhancedStore,
    name: Name,
    query: Annotated[str | None, about("rank by similarity to this")] = None,
) -> Reply[None]:
    """List the memories that link to a memory or share its subject."""
    name = resolved(store, name)
    backlinks = store.backlinks(name, query=query, limit=_MAX_HITS)
    rerank_trouble = store.rerank_trouble if query else ""
    state = index_line(store.state(), rerank_trouble)
    descriptions = {backlink.name: store.read(backlink.name).description for backlink in backlinks}
    subject = texts.describe_subject(name, query)
    return Reply(texts.render_related(backlinks, subject, descriptions, state))


TOOLS = (
    create_memory,
    read_memory,
    update_memory,
    delete_memory,
    list_memories,
    search_memories,
    get_backlinks,
    change_tag,
)
