"""The writing tools of the core: create_memory, update_memory, change_tag, move_memory, delete_memory.

Each is one store operation, attributed to whoever asked. What was not asked for stays as it was; what was,
can be undone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from pydantic import AliasChoices, Field

from simplemem.errors import Invalid, NotFound
from simplemem.faces import render
from simplemem.faces.arguments import Arguments, Edits, Name, NewName, Object, Sha, Tags
from simplemem.faces.meant import meant, what_became_of, whole_hash
from simplemem.faces.schema import COUNT, FLAG, MAP, MAYBE_TEXT, TEXT, TEXTS, record
from simplemem.faces.tool import Call, Reply, Tool
from simplemem.note.names import compare_key

_SHA = "sha256 you read: refused if it has changed since"
_MOST_TOLD = 200


def _told(warnings: Sequence[str]) -> list[str]:
    """Warnings of a number that can be read."""
    more = [f"(and {len(warnings) - 20} more)"] if len(warnings) > 20 else []
    return [render.line(each, 600) for each in warnings[:20]] + more


def _said(first: str, sha256: str | None, *more: str) -> str:
    return "\n".join([first, *([f"sha256 {sha256}"] if sha256 else []), *(each for each in more if each)])


# --- create_memory


class CreateArguments(Arguments):
    name: Name = Field(description='the path, e.g. "projects/apollo"')
    content: str = Field(description="Markdown, without frontmatter")
    metadata: Object | None = Field(
        default=None, description="title, description, type, tags {key: value or true}, anything else"
    )
    overwrite: bool = False
    reason: str = ""


def create_memory(call: Call, asked: CreateArguments) -> Reply:
    saved = call.store.create(
        asked.name,
        asked.content,
        asked.metadata,
        overwrite=asked.overwrite,
        who=call.who,
        tool=call.tool,
        reason=asked.reason,
    )
    warnings = _told(saved.warnings)
    data = {"name": saved.name, "path": saved.path, "sha256": saved.sha256, "warnings": warnings}
    return Reply(_said(f"Saved {render.name_of(saved.name)}.", saved.sha256, *warnings), data)


# --- update_memory


class UpdateArguments(Arguments):
    name: Name
    content: str | None = Field(default=None, description="replaces the whole text")
    append: str | None = None
    edits: Edits | None = Field(default=None, description="exact text that occurs once -> new text")
    metadata: Object | None = Field(default=None, description="merged key by key; null removes a key")
    if_sha256: Sha = Field(default=None, description=_SHA)
    reason: str = Field(default="", description="why, for the history")


def update_memory(call: Call, asked: UpdateArguments) -> Reply:
    ways = [name for name in ("content", "append", "edits") if getattr(asked, name) is not None]
    if len(ways) > 1:
        raise Invalid(f"Give one of content, append and edits, not {' and '.join(ways)}; nothing was changed.")
    if not ways and not asked.metadata:
        raise Invalid("There is nothing to change.", hint="Give content, append, edits or metadata.")
    name = meant(call, asked.name)
    saved = call.store.update(
        name,
        content=asked.content,
        append=asked.append,
        edits=[edit.model_dump() for edit in asked.edits] if asked.edits is not None else None,
        metadata=asked.metadata,
        if_sha256=whole_hash(call, name, asked.if_sha256),
        who=call.who,
        tool=call.tool,
        reason=asked.reason,
    )
    shown, warnings = render.name_of(saved.name), _told(saved.warnings)
    data = {
        "name": saved.name,
        "sha256": saved.sha256,
        "previous_sha256": saved.previous_sha256,
        "changed": saved.changed,
        "warnings": warnings,
    }
    first = f"Changed {shown}." if saved.changed else f"{shown} already says so."
    return Reply(_said(first, saved.sha256, *warnings), data)


# --- change_tag


class TagArguments(Arguments):
    name: Name
    tags: Tags = Field(description='{"status": "done", "todo": true, "old": null}; null removes')
    if_sha256: Sha = Field(default=None, description=_SHA)
    reason: str = ""

    shown_types: ClassVar[dict[str, str]] = {"tags": "object"}


def change_tag(call: Call, asked: TagArguments) -> Reply:
    if asked.tags in ("", {}, []):
        raise Invalid("There is no tag to change.", hint='E.g. tags={"status": "done", "todo": null}.')
    name = meant(call, asked.name)
    saved = call.store.change_tags(
        name,
        asked.tags,
        if_sha256=whole_hash(call, name, asked.if_sha256),
        who=call.who,
        tool=call.tool,
        reason=asked.reason,
    )
    now = f"Tags now: {render.tags_line(saved.tags) or 'none'}"
    data = {
        "name": saved.name,
        "sha256": saved.sha256,
        "tags": list(saved.tags),
        "tag_map": dict(saved.tag_map),
        "changed": saved.changed,
    }
    warnings = _told(saved.warnings)
    shown = render.name_of(saved.name)
    first = f"Changed the tags of {shown}." if saved.changed else f"The tags of {shown} were so already."
    return Reply(_said(first, saved.sha256, now, *warnings), data | ({"warnings": warnings} if warnings else {}))


# --- move_memory


class MoveArguments(Arguments):
    name: Name
    new_name: NewName = Field(validation_alias=AliasChoices("new_name", "new_path", "to"))
    reason: str = ""


def move_memory(call: Call, asked: MoveArguments) -> Reply:
    try:
        name = meant(call, asked.name)
    except NotFound:
        if (done := _already_moved(call, asked)) is None:
            raise
        return done
    moved = call.store.move(name, asked.new_name, who=call.who, tool=call.tool, reason=asked.reason)
    rewritten, warnings = list(moved.rewritten), _told(moved.warnings)
    if len(rewritten) > _MOST_TOLD:
        warnings.insert(0, f"Links were rewritten in {len(rewritten)} memories; {_MOST_TOLD} of them are named.")
    links = f"Links were rewritten in {render.listed(rewritten)}." if rewritten else ""
    data = {
        "name": moved.name,
        "path": moved.path,
        "rewritten": rewritten[:_MOST_TOLD],
        "sha256": moved.sha256,
        "warnings": warnings,
    }
    first = f"{render.name_of(moved.previous_name)} is now {render.name_of(moved.name)}."
    return Reply(_said(first, moved.sha256, links, *warnings), data)


def _already_moved(call: Call, asked: MoveArguments) -> Reply | None:
    """The answer to a move that is asked for again because its answer was lost."""
    gone = what_became_of(call, asked.name)
    if gone is None or gone.new_name is None or compare_key(gone.new_name) != compare_key(asked.new_name):
        return None
    there = call.store.read(gone.new_name)
    data = {"name": there.name, "path": there.path, "rewritten": [], "sha256": there.sha256, "warnings": []}
    return Reply(_said(f"It is {render.name_of(there.name)} already.", there.sha256), data)


# --- delete_memory


class DeleteArguments(Arguments):
    name: Name
    if_sha256: Sha = Field(default=None, description=_SHA)
    reason: str = ""


def delete_memory(call: Call, asked: DeleteArguments) -> Reply:
    name = meant(call, asked.name)
    gone = call.store.delete(
        name,
        if_sha256=whole_hash(call, name, asked.if_sha256),
        who=call.who,
        tool=call.tool,
        reason=asked.reason,
    )
    left = gone.links_left_unresolved
    links = f"{render.counted(left, 'link now leads', 'links now lead')} nowhere." if left else ""
    data = {"name": gone.name, "version": gone.version, "links_left_unresolved": left}
    back = f'undo_change(version="{gone.version}") brings it back.'
    return Reply(_said(f"Deleted {render.name_of(gone.name)}.", None, links, back), data)


# --- the tools

CREATE = Tool(
    "create_memory",
    "Create a memory",
    "Write down one thing worth remembering, as a new Markdown note: small, with [[links]] to other "
    "memories. Search first, and update what is there rather than make a second one.",
    CreateArguments,
    create_memory,
    record(name=TEXT, path=TEXT, sha256=TEXT, warnings=TEXTS),
    writes=True,
    destructive=True,  # with overwrite=true it replaces a text
    idempotent=False,
)

UPDATE = Tool(
    "update_memory",
    "Update a memory",
    "Change a memory: append to it, edit exact text in it, or replace all of it; and merge its properties. "
    "Give one of content, append and edits.",
    UpdateArguments,
    update_memory,
    record(name=TEXT, sha256=TEXT, previous_sha256=MAYBE_TEXT, changed=FLAG, warnings=TEXTS),
    writes=True,
    destructive=True,
    idempotent=False,
)

TAG = Tool(
    "change_tag",
    "Change tags",
    "Set or remove tags of a memory and leave all else as it is, e.g. to tick off a todo.",
    TagArguments,
    change_tag,
    record(("warnings",), name=TEXT, sha256=TEXT, tags=TEXTS, tag_map=MAP, changed=FLAG, warnings=TEXTS),
    writes=True,
    destructive=True,
    idempotent=True,
)

MOVE = Tool(
    "move_memory",
    "Move a memory",
    "Rename or move a memory; links to it are rewritten.",
    MoveArguments,
    move_memory,
    record(name=TEXT, path=TEXT, rewritten=TEXTS, sha256=TEXT, warnings=TEXTS),
    writes=True,
    destructive=True,
    idempotent=False,
)

DELETE = Tool(
    "delete_memory",
    "Delete a memory",
    "Delete a memory (it can be brought back). Prefer a tag such as archived when it may matter later.",
    DeleteArguments,
    delete_memory,
    record(name=TEXT, version=TEXT, links_left_unresolved=COUNT),
    deletes=True,
    writes=True,
    destructive=True,
    idempotent=False,
)
