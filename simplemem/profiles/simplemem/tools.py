"""The profile of the original simplemem: its eight tools, its replacing updates, its Markdown answers, five hits, its
settings file. What it got wrong is not copied: a name stays inside the vault, a failure is an answer."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from simplemem.errors import Conflict, Invalid, TooLong
from simplemem.models import NO_WORD_FOUND
from simplemem.note.names import path_of
from simplemem.note.note import map_entries
from simplemem.note.tag_requests import parse_tag_request, respelling_warnings, without_header
from simplemem.settings.files import read_toml
from simplemem.tools.arguments import (
    Name,
    Narrowing,
    Object,
    Tags,
    about,
    at_most,
)
from simplemem.tools.normalize import gather_metadata, gather_tag_changes
from simplemem.tools.render import brief, index_line, line, name_of, nothing_found, unheld
from simplemem.tools.session import Session, replaced_and_undo, without_offer
from simplemem.tools.targets import resolved, to_change
from simplemem.tools.tool import Caller, Reply, tool

if TYPE_CHECKING:
    from simplemem.models import Backlink, Hit, Memory
    from simplemem.store import EnhancedStore

_HITS = 5
_SET_BY_US = {"created", "modified"}
_DEMANDED: dict[str, Any] = {"title": str, "description": str, "tags": (dict, list, str)}
_SHOWN = _SET_BY_US | _DEMANDED.keys() | {"links"}
_UNREAD = re.compile(r"(?ms)^```.*?(?:^```|\Z)|<[^<>\n]*+>|\]\([^()\n]*+\)|^[#>*+ -]++|[*_`\[\]]++")

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
    content, metadata, said = without_header(content, metadata)
    kept = _checked(store, metadata, content)
    saved = store.create(name, content, kept, tags_as_map=True, **caller)
    session.record_whole_write(saved)
    said += [*saved.warnings, *respelling_warnings(metadata.get("tags"), saved.tag_map)]
    return Reply("\n".join([f"Memory '{name_of(saved.name)}' was created.", *map(line, said)]))


@tool("Update a memory", writes=True, destructive=True)
def update_memory(
    store: EnhancedStore,
    caller: Caller,
    session: Session,
    name: NewName,
    metadata: Meta,
    content: Content,
) -> Reply[None]:
    """Replace the content and all metadata of a memory. Read it first."""
    content, metadata, said = without_header(content, metadata)
    kept = _checked(store, metadata, content)
    memory = store.read(to_change(store, name))
    # What is not given again is taken away by the merge: keys and tags.
    keys, tags = ({each.casefold() for each in some} for some in (kept, kept["tags"]))
    gone = {key: None for key in memory.frontmatter if key.casefold() not in keys | _SET_BY_US}
    untagged = {tag: None for tag in memory.tag_map if tag.casefold() not in tags}
    whole = gone | kept | {"tags": untagged | kept["tags"]}
    known = session.known_hash(memory.path)
    try:
        saved = store.update(
            memory.name, content=content, metadata=whole, if_sha256=known, **caller
        )
    except Conflict as error:
        hint = "Read the memory again with read_memory, keep what changed, and repeat the update."
        raise without_offer(error, hint) from None
    said += saved.warnings
    if known is None and saved.changed and saved.previous_sha256 is not None:
        said.append(replaced_and_undo(store, saved.name, saved.previous_sha256, saved.version))
    session.record_whole_write(saved)
    return Reply(
        "\n".join(
            [f"Memory '{name_of(saved.name)}' was updated.", *(line(each, 600) for each in said)]
        )
    )


def _checked(store: EnhancedStore, metadata: dict[str, Any], content: str) -> dict[str, Any]:
    """The metadata that the original demands, without its dates; the text must not be too long."""
    given = {
        key.lower() if key.lower() in _DEMANDED else key: value for key, value in metadata.items()
    }
    if lacking := [
        key for key, kinds in _DEMANDED.items() if not isinstance(given.get(key), kinds)
    ]:
        hint = 'Pass e.g. {"title": "…", "description": "…", "tags": {"todo": true}}.'
        raise Invalid(f"metadata needs {', '.join(lacking)}", hint=hint)
    length, most = plain_length(content), _longest(store)
    if 0 < most < length:
        hint = "Split it into several memories that link to each other."
        raise TooLong(
            f"the memory has {length} characters of plain text; {most} are allowed", hint=hint
        )
    kept = {key: value for key, value in given.items() if key.lower() not in _SET_BY_US}
    return kept | {"tags": parse_tag_request(given["tags"] or {})}


def plain_length(text: str) -> int:
    """About how long a text is to its reader: without code blocks, HTML, where links lead, and marks."""
    return len(_UNREAD.sub("", text).strip())


def _longest(store: EnhancedStore) -> int:
    most = store.settings.max_memory_length
    return 2500 if most is None else most


@tool("Delete a memory", writes=True, destructive=True, idempotent=False, deletes=True)
def delete_memory(
    store: EnhancedStore, caller: Caller, session: Session, name: Name
) -> Reply[None]:
    """Delete a memory."""
    found = to_change(store, name)
    try:
        gone = store.delete(found, if_sha256=session.known_hash(path_of(found)), **caller)
    except Conflict as error:
        hint = "Read the memory again with read_memory, and delete it if it is no longer needed."
        raise without_offer(error, hint) from None
    session.record_step(store, gone.version)
    return Reply(f"Memory '{name_of(gone.name)}' was deleted.")


@tool("Change tags", writes=True, destructive=True, gather=gather_tag_changes)
def change_tag(
    store: EnhancedStore,
    caller: Caller,
    session: Session,
    name: Name,
    tags: Annotated[Tags, about("{status: 'done', old: null}; null removes")],
) -> Reply[None]:
    """Set or remove tags of a memory and change nothing else."""
    before = store.read(to_change(store, name))
    saved = store.change_tags(before.name, tags, **caller)
    session.record_change(saved)
    had, has = (
        {key.casefold(): tags[key] for key in tags} for tags in (before.tag_map, saved.tag_map)
    )
    lines = [f"Tags of memory '{line(saved.name)}':"]
    for key, value in parse_tag_request(tags).items():
        old, new = had.get(key.casefold()), has.get(key.casefold())
        became = (
            f"set to {_value(new)}"
            if old in (None, new)
            else f"changed from {_value(old)} to {_value(new)}"
        )
        if value is None:
            became = f"removed (was {_value(old)})" if old is not None else "already absent"
        if value is None and new is not None:
            became = "still there, in the text"
        lines.append(f"- {line(key)}: {became}")
    lines += [line(each, 400) for each in saved.warnings]
    return Reply("\n".join(lines) + "\n")


@tool("Read a memory")
def read_memory(store: EnhancedStore, session: Session, name: Name) -> Reply[None]:
    """Read a memory with its metadata and links."""
    memory = store.read(resolved(store, name))
    session.record_read(memory)
    lines = [memory.text.removesuffix("\n") + "\n", "---", "", *_facts(memory, 1000)]
    lines += ["", "**Links:**"] if memory.links else []
    for link in memory.links[:200]:
        text = f"{line(link.display)}: " if link.display else ""
        kind = "(markdown)" if link.kind == "markdown" else "(wiki)"
        lines.append(f"- {text}{line(link.target)} {kind}{'' if link.resolved else ', unresolved'}")
    return Reply("\n".join(lines) + "\n")


@tool("List memories")
def list_memories(
    store: EnhancedStore,
    cursor: str | None = None,
    limit: Annotated[int, at_most(100), Field(ge=1)] = 50,
) -> Reply[None]:
    """List memories with their metadata. The list is long; to find a memory, call search_memories."""
    page = store.list(sort="name", limit=limit, cursor=cursor)
    if not page.items:
        return Reply(f"{index_line(page.index) or 'There are no memories.'}\n")
    most, said = _longest(store), [f"# Memories ({page.total})\n"]
    for item in page.items:
        memory = store.read(item.name)
        length = plain_length(memory.content)
        over = f" (over the limit of {most})" if 0 < most < length else ""
        more = {
            key: value for key, value in memory.frontmatter.items() if key.lower() not in _SHOWN
        }
        said += [f"## {name_of(memory.name)}", *_facts(memory, 400, f"**Length:** {length}{over}")]
        said += [*(f"{line(key)}: {_value(value)}" for key, value in more.items()), ""]
    onward = f'\nMore: list_memories(cursor="{page.next_cursor}")\n' if page.next_cursor else ""
    return Reply("\n".join([*said, *filter(None, [index_line(page.index)])]) + onward)


def _facts(memory: Memory, most: int, *more: str) -> list[str]:
    """What stands in a memory's header, a line each; `more` after the title."""
    return [
        f"**Title:** {line(memory.title)}",
        *more,
        f"**Description:** {line(memory.description, most)}",
        f"**Tags:** {_tags(_own_tags(memory))}",
        f"**Created:** {(memory.created or '')[:19].replace('T', ' ')}",
        f"**Modified:** {memory.modified[:19].replace('T', ' ')}",
    ]


@tool("Search memories")
def search_memories(
    store: EnhancedStore,
    query: Annotated[str, about("what to look for; may be empty with tags")] = "",
    tags: Annotated[Tags, about("{todo: '', status: 'done'}; '' is any value")] = None,
    require_all: Annotated[bool, about("all tags, not any")] = False,
) -> Reply[None]:
    """Search memories by meaning and words, by tags, or both. Returns the five best."""
    if not query.strip() and not tags:
        raise Invalid("the search has no query and no tags", hint="Pass a query, tags, or both.")
    chosen = Narrowing(tags=tags, require_all=require_all).filter()
    found = store.search(query, filter=chosen, limit=_HITS)
    asked = [f'for "{line(found.query, 200)}"'] if found.query.strip() else []
    if chosen.tags:
        tagged = _tags({key: value or True for key, value in chosen.tags.items()})
        asked.append(f"with {'all of' if require_all else 'any of'} the tags {tagged}")
    state = f"{unheld(found.absent)} {index_line(found.index, found.degraded)}".strip()
    if not found.hits:
        about_it = f" {' '.join(asked)}"
        nothing = (
            f"No memories were found{about_it}."
            if found.index.is_ready
            else nothing_found(about_it, found.index)
        )
        return Reply(f"{nothing} {state}".strip() + "\n")
    head = "Memories found"
    if found.notice == NO_WORD_FOUND:
        head = found.notice.removesuffix(".")
    elif found.notice:
        head = "No memories were found; nearest memories"
    lines = [f"# {head} {' '.join(asked)}", ""]
    for number, hit in enumerate(found.hits, 1):
        where = (
            f"{line(hit.heading).replace(' > ', ' › ')} (line {hit.line})"
            if hit.heading
            else f"line {hit.line}"
        )
        facts = f"**Where:** {where}\n**Similarity:** {hit.score:.3f}"
        lines += _entry(number, hit, facts, hit.description, _tags(_own_tags(store.read(hit.name))))
    return Reply("\n".join(lines + ([state, ""] if state else [])))


@tool("Related memories")
def get_backlinks(
    store: EnhancedStore,
    name: Name,
    query: Annotated[str | None, about("rank by similarity to this")] = None,
) -> Reply[None]:
    """List the memories that link to a memory or share its subject."""
    name = resolved(store, name)
    items = store.backlinks(name, query=query, limit=_HITS)
    state = index_line(store.state(), store.rerank_trouble if query else "")
    asked = f'"{line(name)}"' + (f' and "{line(query, 200)}"' if query else "")
    lines = (
        [f"# Related memories for {asked}", ""]
        if items
        else [f"No memories are related to {asked}.", ""]
    )
    for number, item in enumerate(items, 1):
        kind = "explicit" if item.kind == "link" else "semantic"
        facts = f"**Link Type:** {kind} | **Relevance:** {item.score:.3f}"
        also = line(", ".join(str(at.line) for at in item.also))
        facts += f"\n**Also in lines:** {also}" if also else ""
        lines += _entry(number, item, facts, store.read(item.name).description)
    return Reply("\n".join(lines) + state)


def _entry(
    number: int, item: Hit | Backlink, facts: str, description: str, tags: str = ""
) -> list[str]:
    """One of several memories: a hit, or one that is related."""
    title = item.title if item.title != item.name else ""
    rows = [f"## {number}. {name_of(item.name)}", f"**Title:** {brief(title, 30)}" if title else ""]
    rows += [f"**Snippet:** {line(item.snippet, 300)}" if item.snippet else "", facts]
    rows += [
        f"**Description:** {brief(description, 60)}" if description else "",
        f"**Tags:** {tags}" if tags else "",
    ]
    return [*filter(None, rows), "---", ""]


def _value(value: Any) -> str:
    """A value as YAML writes it on a line, which is as JSON does."""
    return line(
        value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str), 400
    )


def _tags(tags: Mapping[str, Any]) -> str:
    """`todo, status: done`: a tag that is only there stands alone."""
    return ", ".join(
        line(key) if value is True else f"{line(key)}: {_value(value)}"
        for key, value in tags.items()
    )


def _own_tags(memory: Memory) -> dict[str, Any]:
    """The tags as the note has them: the entries of its map, and the names of others."""
    entries = tags if isinstance(tags := memory.frontmatter.get("tags"), Mapping) else {}
    named = {name for _, name, _ in map_entries(entries)}
    return {**entries, **dict.fromkeys((tag for tag in memory.tags if tag not in named), True)}


TOOLS = (
    *(create_memory, read_memory, update_memory, delete_memory),
    *(list_memories, search_memories, get_backlinks, change_tag),
)


def original_settings(
    folder: Path, env: Mapping[str, str], named: Path | None = None
) -> dict[str, Any]:
    """What the original's `config.toml` says, where it looked first or at the one `named`, by dotted names."""
    own = env.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    bases = [folder / ".config", own, *env.get("XDG_CONFIG_DIRS", "/etc/xdg").split(":")]
    places = [
        folder / "config.toml",
        *(Path(base) / "simplemem" / "config.toml" for base in bases if base),
    ]
    path = folder / named if named else next(filter(Path.is_file, places), None)
    if path is None:
        return {}
    try:
        table = read_toml(path)
    except OSError as error:
        raise Invalid(f"the settings {path} cannot be read: {error}") from error
    voyage = table["voyage_ai"] if isinstance(table.get("voyage_ai"), dict) else {}
    said = {f"voyage_ai.{key}": voyage.get(key) for key in ("api_key", "model", "rerank_model")}
    said["max_memory_length"] = table.get("max_memory_length")
    by_env = {key for key in said if env.get(f"SIMPLEMEM_{key}".replace(".", "_").upper())}
    return {key: value for key, value in said.items() if value is not None and key not in by_env}
