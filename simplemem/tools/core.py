"""The default toolset, in the order a model should meet it. The tools that write, and the history, stand here."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, NotRequired, TypedDict

from pydantic import Field

from simplemem.errors import Invalid, NotFound
from simplemem.models import LeftAsIs, Saved, UndoneNote, Value
from simplemem.note.header import find_value
from simplemem.note.names import check_name, compare_key, path_of
from simplemem.note.tag_requests import respelling_warnings, without_header
from simplemem.tools import arguments, render
from simplemem.tools import core_read as read
from simplemem.tools.arguments import EditIn, Name, Object, Several, Sha, Tags, about, at_most
from simplemem.tools.session import Session, describe_replaced
from simplemem.tools.tool import Caller, Data, Reply, Result, tool

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore

_MOST = 50  # names in an answer
_MOST_WARNINGS = 20
_AGAIN = "Call undo_change(version) to redo it."
_RESTORE = "Call undo_change(version) to restore it."
Meta = Annotated[
    Object | None, about("title, description, type, tags {key: value or true}, other keys")
]
IfSha = Annotated[Sha, about("sha256 you read; fails if changed")]
Texts = Sequence[str]


class VersionLine(Result):
    version: str
    name: str
    when: str
    who: str
    what: str
    sha256: str | None
    tool: str = ""
    reason: str = ""
    flags: Sequence[str] = ()
    diff: str | None = None


Created = TypedDict(
    "Created",
    {
        "name": str,
        "path": str,
        "sha256": str,
        "warnings": Texts,
        "version": NotRequired[str],
        "hint": NotRequired[str],
    },
)
Updated = TypedDict(
    "Updated",
    {
        "name": str,
        "sha256": str,
        "previous_sha256": str | None,
        "changed": bool,
        "warnings": NotRequired[Texts],
        "version": NotRequired[str],
        "hint": NotRequired[str],
    },
)
Tagged = TypedDict(
    "Tagged",
    {
        "name": str,
        "sha256": str,
        "tags": Texts,
        "tag_map": Data,
        "changed": bool,
        "warnings": NotRequired[Texts],
    },
)
Renamed = TypedDict(
    "Renamed",
    {"name": str, "path": str, "rewritten": Texts, "sha256": str, "warnings": NotRequired[Texts]},
)
Removed = TypedDict(
    "Removed", {"name": str, "version": str, "links_left_unresolved": int, "hint": str}
)
UndoneName = TypedDict("UndoneName", {"name": str, "becomes": str, "new_name": str | None})
UndoAnswer = TypedDict(
    "UndoAnswer",
    {
        "name": str,
        "sha256": str | None,
        "version": str,
        "what": str,
        "notes": NotRequired[list[UndoneName]],
        "left": NotRequired[Sequence[LeftAsIs]],
        "hint": NotRequired[str],
    },
)
Versions = TypedDict(
    "Versions",
    {"versions": Sequence[VersionLine], "hint": NotRequired[str], "warnings": NotRequired[Texts]},
)


def _reply(
    kind: Any, value: Value, first: str, *more: str, hint: str = "", **other: Any
) -> Reply[Any]:
    """What was done, in words and as the fields of `value`. In the text a `hint` names the version it speaks of."""
    names = [name for name in kind.__annotations__ if name != "hint"]
    fields: Data = {name: other[name] if name in other else getattr(value, name) for name in names}
    if warnings := fields.get("warnings"):
        beyond = (
            [f"(and {len(warnings) - _MOST_WARNINGS} more)"]
            if len(warnings) > _MOST_WARNINGS
            else []
        )
        fields["warnings"] = [render.line(each, 600) for each in warnings[:_MOST_WARNINGS]] + beyond
    needed, nothing = kind.__required_keys__, (None, (), list[str]())
    data = {name: field for name, field in fields.items() if name in needed or field not in nothing}
    sha256 = f"sha256 {data['sha256']}" if data.get("sha256") else ""
    if before := data.get("previous_sha256"):
        data["previous_sha256"] = before[:12]
        sha256 += f", before {before[:12]}"
    said = hint.replace("(version)", f'(version="{data["version"]}")') if hint else ""
    data |= {"hint": hint} if hint else {}
    return Reply(
        "\n".join(filter(None, [first, sha256, *more, said, *data.get("warnings", ())])), data
    )


def _said(saved: Saved, metadata: Mapping[str, Any] | None, more: Texts = ()) -> Texts:
    """The warnings of a change, and what became of the tags that were asked for."""
    return (
        *more,
        *saved.warnings,
        *respelling_warnings(find_value(metadata or {}, "tags"), saved.tag_map),
    )


class Replaced(NamedTuple):
    """What an answer says of a text that was replaced although the client had not read it; nothing by default."""

    warnings: Texts = ()
    version: str | None = None
    hint: str = ""


def _replaced(store: EnhancedStore, saved: Saved, *, is_known: bool) -> Replaced:
    if is_known or not saved.changed or saved.previous_sha256 is None:
        return Replaced()
    warning = describe_replaced(store, saved.name, saved.previous_sha256)
    return Replaced((warning,), saved.version, _RESTORE)


@tool(
    "Create a memory",
    writes=True,
    destructive=True,
    idempotent=False,
    routes=("POST /memories", "PUT /memories/{name}"),
)
def create_memory(
    store: EnhancedStore,
    caller: Caller,
    session: Session,
    name: Annotated[Name, about("a path, e.g. projects/apollo; daily is today's note")],
    content: Annotated[str, about("Markdown without frontmatter")],
    metadata: Meta = None,
    overwrite: bool = False,
    reason: str = "",
) -> Reply[Created]:
    """Save one subject as a small Markdown note with [[links]]. Search first, and prefer to update an existing memory."""
    content, metadata, said = without_header(content, metadata)
    if compare_key(name) == "daily":  # Obsidian's daily note, made of its template
        saved = store.update(
            store.daily(**caller).name, append=content, metadata=metadata, reason=reason, **caller
        )
        session.record_change(saved)
        replaced = Replaced()
    else:
        known = session.known_hash(path_of(check_name(name))) if overwrite else None
        saved = store.create(
            name, content, metadata, overwrite=overwrite, if_sha256=known, reason=reason, **caller
        )
        replaced = _replaced(store, saved, is_known=known is not None)
        session.record_whole_write(saved)
    first = f"Saved {render.name_of(saved.name)} as {render.name_of(saved.path)}."
    warnings = (*_said(saved, metadata, said), *replaced.warnings)
    return _reply(
        Created, saved, first, warnings=warnings, version=replaced.version, hint=replaced.hint
    )


@tool(
    "Update a memory",
    writes=True,
    destructive=True,
    idempotent=False,
    routes=("PATCH /memories/{name}",),
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
    """Change the text of a memory (pass one of content, append and edits) and merge its frontmatter."""
    plain = [edit.model_dump() for edit in edits] if edits is not None else None
    content, metadata, said = without_header(content, metadata)
    given: Data = {"content": content, "append": append, "edits": plain}
    if compare_key(name) == "daily" and append is not None and content is None:
        name = store.daily(**caller).name
    found = arguments.to_change(store, name)
    sha256 = arguments.whole_hash(store, found, if_sha256)
    if content is not None and sha256 is None:
        sha256 = session.known_hash(path_of(found))
    saved = store.update(
        found, **given, metadata=metadata, if_sha256=sha256, reason=reason, **caller
    )

    replaced = Replaced()
    if content is not None:
        replaced = _replaced(store, saved, is_known=sha256 is not None)
        session.record_whole_write(saved)
    else:
        session.record_change(saved, named_hash=sha256 is not None)

    shown = render.name_of(saved.name)
    first = f"Changed {shown}." if saved.changed else f"{shown} is unchanged."
    warnings = (*_said(saved, metadata, said), *replaced.warnings)
    return _reply(
        Updated, saved, first, warnings=warnings, version=replaced.version, hint=replaced.hint
    )


@tool("Change tags", writes=True, destructive=True, routes=("PATCH /tags/{name}",))
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
    found = arguments.to_change(store, name)
    sha256 = arguments.whole_hash(store, found, if_sha256)
    saved = store.change_tags(found, tags, if_sha256=sha256, reason=reason, **caller)
    session.record_change(saved, named_hash=sha256 is not None)
    shown = render.name_of(saved.name)
    as_map = f"as a map: {json.dumps(saved.tag_map, ensure_ascii=False, default=str)}"
    first = (
        f"Changed the tags of {shown}." if saved.changed else f"The tags of {shown} are unchanged."
    )
    if saved.warnings and not saved.changed:
        first = f"No tag of {shown} was changed."
    now = f"Tags now: {render.tags_line(saved.tags) or 'none'}"
    return _reply(Tagged, saved, first, now, as_map, warnings=_said(saved, {"tags": tags}))


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
        found = arguments.to_change(store, name)
    except NotFound:  # the same move may be asked for again because its answer was lost
        former = store.extension.find_former_note(name)
        current_name = former.current_name if former is not None else None
        if current_name is None or compare_key(current_name) != compare_key(new_name):
            raise
        there = store.read(current_name)
        first = f"The memory is already called {render.name_of(there.name)}."
        return _reply(Renamed, there, first, rewritten=[], warnings=[])
    moved = store.move(found, new_name, reason=reason, **caller)
    session.record_step(store, moved.version)
    rewritten, warnings = moved.rewritten, list(moved.warnings)
    if len(rewritten) > _MOST:
        warnings.insert(
            0, f"Rewrote links in {len(rewritten)} memories; the first {_MOST} are listed."
        )
    first = f"{render.name_of(moved.previous_name)} is now {render.name_of(moved.name)}."
    links = f"Rewrote links in {render.listed(rewritten, _MOST)}." if rewritten else ""
    return _reply(Renamed, moved, first, links, rewritten=rewritten[:_MOST], warnings=warnings)


@tool(
    "Delete a memory",
    writes=True,
    destructive=True,
    idempotent=False,
    deletes=True,
    routes=("DELETE /memories/{name}",),
)
def delete_memory(
    store: EnhancedStore,
    caller: Caller,
    session: Session,
    name: Name,
    if_sha256: IfSha = None,
    reason: str = "",
) -> Reply[Removed]:
    """Delete a memory; undo_change restores it. Prefer a tag such as archived if it may matter later."""
    found = arguments.to_change(store, name)
    sha256 = arguments.whole_hash(store, found, if_sha256)
    if sha256 is None:
        sha256 = session.known_hash(path_of(found))
    gone = store.delete(found, if_sha256=sha256, reason=reason, **caller)
    session.record_step(store, gone.version)
    left = gone.links_left_unresolved
    links = f"{render.format_count(left, 'link is', 'links are')} now unresolved." if left else ""
    return _reply(Removed, gone, f"Deleted {render.name_of(gone.name)}.", links, hint=_RESTORE)


@tool("Show the history", routes=("GET /history", "GET /history/{name}"))
def memory_history(
    store: EnhancedStore,
    name: Annotated[Name | None, about("all memories if omitted")] = None,
    limit: Annotated[int, at_most(200), Field(ge=1)] = 20,
    diff: Annotated[bool, about("include diffs")] = False,
) -> Reply[Versions]:
    """List the versions of a memory, or the latest changes: when, who, what."""
    entries = store.history(name, limit=limit, diff=diff, steps=True)
    of = f" of {render.name_of(name)}" if name else ""
    warned = [render.line(trouble, 600)] if name and (trouble := store.git_trouble) else []
    more = Versions(versions=[], warnings=warned) if warned else Versions(versions=[])
    if not entries:
        return Reply(render.answer(f"No history{of} yet.", "", *warned), more)
    room = max(200, read.MOST_TOKENS // len(entries))
    lines, versions = [], []
    for entry in entries:
        changed = render.brief_lines(entry.diff or "", room)
        op = f"{entry.op} {entry.name} to {entry.new_name}" if entry.new_name else entry.op
        op += (
            f', {entry.notes} memories (name="{entry.version}" lists them)'
            if entry.notes > 1
            else ""
        )
        what = op if entry.new_name else op.replace(entry.op, f"{entry.op} {entry.name}", 1)
        what += (f" ({entry.tool})" if entry.tool else "") + (
            f": {entry.reason}" if entry.reason else ""
        )
        digits = entry.sha256 and entry.sha256[:12]
        who = f"{render.line(entry.when)} {render.line(entry.who) or 'unknown'}"
        known = f", sha256 {digits}" if digits else ""
        lines.append(
            f"- {entry.version} {who}: {render.line(what, 4096)}{known}\n{changed}".rstrip()
        )
        own = {
            "name": entry.new_name or entry.name,
            "what": op,
            "sha256": digits,
            "diff": changed if diff else None,
        }
        versions.append(VersionLine.of(entry, **own, flags=tuple(render.flags_of(what, changed))))
    head = f"# {render.format_count(len(entries), 'change', 'changes')}{of}, newest first"
    hint = "Call undo_change(version) to undo a change, read_memory to read a version."
    return Reply(
        render.answer(head, "\n".join(lines), *warned, hint),
        {**more, "versions": versions, "hint": hint},
    )


@tool("Undo a change", writes=True, destructive=True, idempotent=False, routes=("POST /undo",))
def undo_change(
    store: EnhancedStore,
    caller: Caller,
    session: Session,
    version: Annotated[str | None, about("from memory_history")] = None,
    name: Annotated[Name | None, about("memory whose last change to undo")] = None,
    by: Annotated[str | None, about("client whose changes to undo")] = None,
    since: Annotated[str | None, about("date or version to start from")] = None,
    preview: Annotated[
        bool | None, about("with by; true (default) only lists what would change")
    ] = None,
    reason: str = "",
) -> Reply[UndoAnswer]:
    """Undo one change (version), the last change of a memory (name), or a client's changes (by and since)."""
    if by and not since:
        hint = f'Pass a date or version as since, e.g. undo_change(by="{render.line(by, 60)}", since="yesterday").'
        raise Invalid("`by` needs `since`", hint=hint)
    if sum(map(bool, (version, name, by))) != 1 or bool(by) != bool(since):
        hint = "Call memory_history to list versions."
        raise Invalid("undo_change needs one of version, name, or by with since", hint=hint)
    if by and since:
        return _undo_all(
            store, session, by, since, preview is not False, {"reason": reason, **caller}
        )
    if preview:
        hint = (
            "memory_history(name, diff=true) shows what a change did. Leave preview out to undo it."
        )
        raise Invalid("preview works only with by and since", hint=hint)
    # A memory may be called 2026, and that is no version.
    undone = store.undo(version or store.next_to_undo(name), reason=reason, **caller)
    session.record_step(store, undone.version)
    first = render.line(undone.what[:1].upper() + undone.what[1:] + ".", 4096)
    there = f"Its name is {render.name_of(undone.name)}." if undone.sha256 else ""
    return _reply(UndoAnswer, undone, first, there, hint=_AGAIN, notes=None, left=None)


def _undo_all(
    store: EnhancedStore, session: Session, by: str, since: str, preview: bool, change: Any
) -> Reply[UndoAnswer]:
    done = store.undo_all(by, since, preview=preview, **change)
    session.record_step(store, done.version)
    doing = "would undo" if preview else "undid" if done.version else "undid nothing of"
    what = f"{doing} what {by} changed since {since}"
    what += (
        f" in {render.format_count(len(done.notes), 'memory', 'memories')}" if done.notes else ""
    )
    notes = [
        {"name": each.name, "becomes": each.becomes, "new_name": each.new_name}
        for each in done.notes[:_MOST]
    ]
    lines = [f"- {note.name}: {_what_becomes_of(note)}" for note in done.notes[:_MOST]]
    lines += [f"- {each.name}: not undone, {each.why}" for each in done.left[:_MOST]]
    onward = (
        "Pass preview=false to undo them." if preview and notes else _AGAIN if done.version else ""
    )
    more = [render.line(each, 4096) for each in lines]
    first = render.line(f"This {what}.", 4096)
    own: Data = {
        "name": "",
        "sha256": None,
        "what": what,
        "notes": notes,
        "left": done.left[:_MOST],
        "hint": onward,
    }
    return _reply(UndoAnswer, done, first, *more, **own)


def _what_becomes_of(note: UndoneNote) -> str:
    """Return what the undo of many changes does to one note, as a part of a line."""
    if note.new_name is None:
        return note.becomes
    moved = f"{note.becomes} to {note.new_name}"
    if note.is_moved_with_earlier_text:
        return f"{moved}, with its earlier text"
    return moved


TOOLS = (
    *(
        read.search_memories,
        read.read_memory,
        create_memory,
        update_memory,
        change_tag,
        read.list_memories,
    ),
    *(
        read.get_backlinks,
        read.build_context,
        move_memory,
        delete_memory,
        memory_history,
        undo_change,
    ),
)
