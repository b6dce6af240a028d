"""The default tools that change notes: create, update, tag, move and delete."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

from simplemem.errors import NotFound
from simplemem.models import Saved
from simplemem.note.header import find_value
from simplemem.note.names import check_name, compare_key, path_of
from simplemem.note.tag_requests import respelling_warnings, without_header
from simplemem.tools import render
from simplemem.tools.arguments import (
    EditIn,
    Name,
    Object,
    Several,
    Sha,
    Tags,
    about,
)
from simplemem.tools.change_replies import (
    MAX_NAMES,
    Created,
    Removed,
    Renamed,
    Tagged,
    UndoPurpose,
    Updated,
    change_reply,
)
from simplemem.tools.normalize import gather_edits, gather_metadata, gather_tag_changes
from simplemem.tools.session import Session, describe_replaced
from simplemem.tools.targets import to_change, whole_hash
from simplemem.tools.tool import Caller, Reply, tool

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore

_MIN_WORDS_REWRITTEN: Final = 50  # of a note, before the user is asked

Metadata = Annotated[
    Object | None, about("title, description, type, tags {key: value or true}, other keys")
]
IfSha = Annotated[Sha, about("sha256 you read; fails if changed")]


class _ReplacedText(NamedTuple):
    """What an answer says about a text that was replaced although the client had not read it."""

    warnings: Sequence[str] = ()
    version: str | None = None
    undo_to: UndoPurpose | None = None


@tool(
    "Create a memory",
    writes=True,
    destructive=True,
    idempotent=False,
    creates=True,
    routes=("POST /memories", "PUT /memories/{name}"),
    gather=gather_metadata,
)
def create_memory(
    store: EnhancedStore,
    caller: Caller,
    session: Session,
    name: Annotated[Name, about("a path, e.g. projects/apollo; daily is today's note")],
    content: Annotated[str, about("Markdown without frontmatter")],
    metadata: Metadata = None,
    overwrite: bool = False,
    reason: str = "",
) -> Reply[Created]:
    """Save one subject as a small Markdown note with [[links]]. Search first, and prefer to update
    an existing memory."""
    content, metadata, header_warnings = without_header(content, metadata)

    if _is_daily(name):
        # Obsidian's daily note exists already, or is made from its template.
        saved = store.append_to_daily(content, metadata, reason=reason, **caller)
        session.record_change(saved)
        replaced = _ReplacedText()
    else:
        known_hash = session.known_hash(path_of(check_name(name))) if overwrite else None
        saved = store.create(
            name,
            content,
            metadata,
            overwrite=overwrite,
            if_sha256=known_hash,
            reason=reason,
            **caller,
        )
        replaced = _describe_replaced_text(store, saved, is_known=known_hash is not None)
        session.record_whole_write(saved)

    head = f"Saved {render.name_of(saved.name)} as {render.name_of(saved.path)}."
    warnings = [*_change_warnings(saved, metadata, header_warnings), *replaced.warnings]
    return change_reply(
        Created, saved, head, warnings=warnings, version=replaced.version, undo_to=replaced.undo_to
    )


def _ask_before_rewrite(store: EnhancedStore, arguments: Mapping[str, Any]) -> str:
    """Return the question before most of a long note is replaced, "" for any other update."""
    content: str | None = arguments["content"]
    if content is None:
        return ""
    memory = store.read(to_change(store, arguments["name"]))
    removed = Counter(memory.content.split()) - Counter(content.split())
    removed_count = removed.total()
    word_count = len(memory.content.split())
    if removed_count < _MIN_WORDS_REWRITTEN or removed_count * 2 < word_count:
        return ""
    return f"Rewrite {memory.name}? {removed_count} of its {word_count} words would be removed."


def _ask_before_delete(store: EnhancedStore, arguments: Mapping[str, Any]) -> str:
    """Return the question before a note is deleted."""
    name = to_change(store, arguments["name"])
    return f"Delete {name}? It goes to the trash, and can be restored."


@tool(
    "Update a memory",
    writes=True,
    destructive=True,
    idempotent=False,
    routes=("PATCH /memories/{name}",),
    phrases={
        "update": "Use {call} to change it;",
        "update_instead": "Read the note, and change it with {call}.",
    },
    gather=gather_edits,
    question=_ask_before_rewrite,
)
def update_memory(
    store: EnhancedStore,
    caller: Caller,
    session: Session,
    name: Name,
    content: Annotated[str | None, about("replaces the whole text")] = None,
    append: Annotated[
        str | None,
        about("new block at the end; an item or row continues the last list or table"),
    ] = None,
    edits: Annotated[Several[EditIn] | None, about("old: exact text that occurs once")] = None,
    metadata: Annotated[Object | None, about("merged by key; null removes a key")] = None,
    if_sha256: IfSha = None,
    reason: Annotated[str, about("why; kept in the history")] = "",
) -> Reply[Updated]:
    """Change the text of a memory (pass one of content, append and edits) and merge its
    frontmatter."""
    content, metadata, header_warnings = without_header(content, metadata)
    expected_hash = None
    if append is not None and _is_daily(name) and _are_absent(content, edits, if_sha256):
        saved = store.append_to_daily(append, metadata, reason=reason, **caller)
    else:
        found = to_change(store, name)
        expected_hash = whole_hash(store, found, if_sha256)
        if content is not None and expected_hash is None:
            expected_hash = session.known_hash(path_of(found))

        saved = store.update(
            found,
            content=content,
            append=append,
            edits=None if edits is None else [edit.model_dump() for edit in edits],
            metadata=metadata,
            if_sha256=expected_hash,
            reason=reason,
            **caller,
        )

    replaced = _ReplacedText()
    if content is not None:
        replaced = _describe_replaced_text(store, saved, is_known=expected_hash is not None)
        session.record_whole_write(saved)
    else:
        session.record_change(saved, named_hash=expected_hash is not None)

    saved_name = render.name_of(saved.name)
    head = f"Changed {saved_name}." if saved.changed else f"{saved_name} is unchanged."
    warnings = [*_change_warnings(saved, metadata, header_warnings), *replaced.warnings]
    return change_reply(
        Updated, saved, head, warnings=warnings, version=replaced.version, undo_to=replaced.undo_to
    )


@tool(
    "Change tags",
    writes=True,
    destructive=True,
    routes=("PATCH /tags/{name}",),
    gather=gather_tag_changes,
)
def change_tag(
    store: EnhancedStore,
    caller: Caller,
    session: Session,
    name: Name,
    tags: Annotated[Tags, about("{status: 'done', todo: true, old: null}; null removes")],
    if_sha256: IfSha = None,
    reason: str = "",
) -> Reply[Tagged]:
    """Set or remove tags of a memory, e.g. to complete a todo."""
    found = to_change(store, name)
    expected_hash = whole_hash(store, found, if_sha256)
    saved = store.change_tags(found, tags, if_sha256=expected_hash, reason=reason, **caller)
    session.record_change(saved, named_hash=expected_hash is not None)

    saved_name = render.name_of(saved.name)
    if saved.changed:
        head = f"Changed the tags of {saved_name}."
    elif saved.warnings:
        head = f"No tag of {saved_name} was changed."
    else:
        head = f"The tags of {saved_name} are unchanged."
    tags_now = f"Tags now: {render.tags_line(saved.tags) or 'none'}"
    as_map = f"as a map: {json.dumps(saved.tag_map, ensure_ascii=False, default=str)}"
    warnings = _change_warnings(saved, {"tags": tags})
    return change_reply(Tagged, saved, head, tags_now, as_map, warnings=warnings)


@tool(
    "Move a memory", writes=True, destructive=True, idempotent=False, routes=("POST /move/{name}",)
)
def move_memory(
    store: EnhancedStore,
    caller: Caller,
    session: Session,
    name: Name,
    new_name: Name,
    reason: str = "",
) -> Reply[Renamed]:
    """Rename or move a memory and rewrite the links to it."""
    try:
        found = to_change(store, name)
    except NotFound:
        # A client repeats a move whose answer was lost.
        current_name = _current_name(store, name)
        if current_name is None or compare_key(current_name) != compare_key(new_name):
            raise
        return _already_moved(store, current_name)

    moved = store.move(found, new_name, reason=reason, **caller)
    session.record_step(store, moved.version)

    head = f"{render.name_of(moved.previous_name)} is now {render.name_of(moved.name)}."
    links = ""
    if moved.rewritten:
        links = f"Rewrote links in {render.listed(moved.rewritten, MAX_NAMES)}."

    warnings = list(moved.warnings)
    count = len(moved.rewritten)
    if count > MAX_NAMES:
        warnings.insert(0, f"Rewrote links in {count} memories; the first {MAX_NAMES} are listed.")
    return change_reply(
        Renamed, moved, head, links, rewritten=moved.rewritten[:MAX_NAMES], warnings=warnings
    )


def _current_name(store: EnhancedStore, former_name: str) -> str | None:
    """Return the name that a note has now, by one that it had; None if it is gone or unknown."""
    former = store.extension.find_former_note(former_name)
    return None if former is None else former.current_name


def _already_moved(store: EnhancedStore, name: str) -> Reply[Renamed]:
    """Return the reply to a repeated move. `name` is the new name, which the note has already."""
    memory = store.read(name)
    head = f"The memory is already called {render.name_of(memory.name)}."
    return change_reply(Renamed, memory, head, rewritten=[], warnings=[])


@tool(
    "Delete a memory",
    writes=True,
    destructive=True,
    idempotent=False,
    deletes=True,
    routes=("DELETE /memories/{name}",),
    phrases={"delete": "{call} deletes it;"},
    question=_ask_before_delete,
)
def delete_memory(
    store: EnhancedStore,
    caller: Caller,
    session: Session,
    name: Name,
    if_sha256: IfSha = None,
    reason: str = "",
) -> Reply[Removed]:
    """Delete a memory; undo_change restores it. Prefer a tag such as archived if it may matter
    later."""
    found = to_change(store, name)
    expected_hash = whole_hash(store, found, if_sha256)
    if expected_hash is None:
        expected_hash = session.known_hash(path_of(found))

    deleted = store.delete(found, if_sha256=expected_hash, reason=reason, **caller)
    session.record_step(store, deleted.version)

    head = f"Deleted {render.name_of(deleted.name)}."
    links = ""
    if deleted.links_left_unresolved:
        count = render.format_count(deleted.links_left_unresolved, "link is", "links are")
        links = f"{count} now unresolved."
    return change_reply(Removed, deleted, head, links, undo_to="restore")


def _are_absent(*arguments: object) -> bool:
    """Return whether none of these arguments was passed."""
    return all(argument is None for argument in arguments)


def _is_daily(name: str) -> bool:
    """Return whether a name is `daily`, in any case: today's daily note of Obsidian."""
    return compare_key(name) == "daily"


def _change_warnings(
    saved: Saved, metadata: Mapping[str, Any] | None, header_warnings: Sequence[str] = ()
) -> list[str]:
    """Return the warnings of a change, and which tags were saved in another spelling.

    `metadata` is what the client passed, and `header_warnings` come from a frontmatter in the text.
    """
    requested_tags = find_value(metadata or {}, "tags")
    return [
        *header_warnings,
        *saved.warnings,
        *respelling_warnings(requested_tags, saved.tag_map),
    ]


def _describe_replaced_text(store: EnhancedStore, saved: Saved, *, is_known: bool) -> _ReplacedText:
    """Return a warning if a whole text was replaced that the client had not read.

    `is_known` says whether the client had read it. Without a warning, the parts are empty.
    """
    if is_known or not saved.changed or saved.previous_sha256 is None:
        return _ReplacedText()
    warning = describe_replaced(store, saved.name, saved.previous_sha256)
    return _ReplacedText([warning], saved.version, "restore")
