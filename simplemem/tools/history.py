"""The default tools for the history of the vault: list changes and undo them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Final, NotRequired, TypedDict

from pydantic import Field

from simplemem.errors import Hint, Invalid
from simplemem.models import HistoryEntry, UndoneMany, UndoneNote
from simplemem.tools import render
from simplemem.tools.arguments import Name, about, clamp
from simplemem.tools.change_replies import MAX_NAMES, UndoAnswer, UndoPurpose, change_reply
from simplemem.tools.reading import read_memory
from simplemem.tools.session import Session
from simplemem.tools.short import MAX_LIST_TOKENS, SHORT_HASH_LENGTH
from simplemem.tools.tool import Caller, Reply, Result, tool

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore

_MIN_DIFF_TOKENS: Final = 200
_MAX_LINE_LENGTH: Final = 4096


class VersionLine(Result):
    """A change in a history. A change of several notes is one line."""

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


Versions = TypedDict(
    "Versions",
    {
        "versions": Sequence[VersionLine],
        "hint": NotRequired[str],
        "warnings": NotRequired[Sequence[str]],
    },
)


@tool(
    "Show the history",
    routes=("GET /history", "GET /history/{name}"),
    phrases={
        "list_versions": "{call} lists the latest.",
        "choose_version": "Call {call} to list versions.",
        "show_change": "{call:name, diff=true} shows what a change did.",
    },
)
def memory_history(
    store: EnhancedStore,
    name: Annotated[Name | None, about("all memories if omitted")] = None,
    limit: Annotated[int, clamp(200), Field(ge=1)] = 20,
    diff: Annotated[bool, about("include diffs")] = False,
) -> Reply[Versions]:
    """List the versions of a memory, or the latest changes: when, who, what."""
    entries = store.history(name, limit=limit, diff=diff, steps=True)

    subject = f" of {render.name_of(name)}" if name else ""
    git_trouble = store.git_trouble if name else ""
    warnings = [render.line(git_trouble, 600)] if git_trouble else []
    answer = Versions(versions=[])
    if warnings:
        answer["warnings"] = warnings
    if not entries:
        return Reply(render.answer(f"No history{subject} yet.", "", *warnings), answer)

    diff_tokens = max(_MIN_DIFF_TOKENS, MAX_LIST_TOKENS // len(entries))
    lines = []
    versions = []
    for entry in entries:
        shortened_diff = render.brief_lines(entry.diff or "", diff_tokens)
        lines.append(_version_text(entry, shortened_diff))
        versions.append(_version_line(entry, shortened_diff, has_diff=diff))

    hint = Hint(undo_change.sentence("undo_listed"), read_memory.sentence("read_listed"))
    answer["versions"] = versions
    answer["hint"] = hint
    count = render.format_count(len(entries), "change", "changes")
    head = f"# {count}{subject}, newest first"
    return Reply(render.answer(head, "\n".join(lines), *warnings, hint), answer)


def _version_line(entry: HistoryEntry, shortened_diff: str, *, has_diff: bool) -> VersionLine:
    """Return a change as the fields of an answer.

    `shortened_diff` is one of them only with `has_diff`.
    """
    operation = entry.op
    if entry.new_name:
        operation = f"{entry.op} {entry.name} to {entry.new_name}"
    return VersionLine.of(
        entry,
        name=entry.new_name or entry.name,
        what=operation + _extent(entry),
        sha256=_short_hash(entry),
        diff=shortened_diff if has_diff else None,
        flags=tuple(render.flags_of(_describe_change(entry), shortened_diff)),
    )


def _version_text(entry: HistoryEntry, shortened_diff: str) -> str:
    """Return a change as an item of a list, with its diff below."""
    author = render.line(entry.who) or "unknown"
    change = render.line(_describe_change(entry), _MAX_LINE_LENGTH)
    row = f"- {entry.version} {render.line(entry.when)} {author}: {change}"

    short_hash = _short_hash(entry)
    if short_hash:
        row += f", sha256 {short_hash}"
    return f"{row}\n{shortened_diff}".rstrip()


def _describe_change(entry: HistoryEntry) -> str:
    """Return what a change did to which note, with which tool and why."""
    change = f"{entry.op} {entry.name}"
    if entry.new_name:
        change += f" to {entry.new_name}"
    change += _extent(entry)
    if entry.tool:
        change += f" ({entry.tool})"
    if entry.reason:
        change += f": {entry.reason}"
    return change


def _extent(entry: HistoryEntry) -> str:
    """Return how many notes a change of several notes has; "" for a change of one note."""
    if entry.notes <= 1:
        return ""
    return f', {entry.notes} memories (name="{entry.version}" lists them)'


def _short_hash(entry: HistoryEntry) -> str | None:
    """Return the first digits of the hash after a change; None if the note is gone since."""
    if entry.sha256 is None:
        return None
    return entry.sha256[:SHORT_HASH_LENGTH]


@tool(
    "Undo a change",
    writes=True,
    destructive=True,
    idempotent=False,
    routes=("POST /undo",),
    phrases={
        "undo": '{call:version="{version}"} restores it.',
        "redo": "Call {call:{arguments}} to redo it.",
        "restore": "Call {call:{arguments}} to restore it.",
        "undo_listed": "Call {call:version} to undo a change,",
        "undo_client": (
            'Pass a date or version as since, e.g. {call:by="{client}", since="yesterday"}.'
        ),
    },
)
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
    """Undo one change (version), the last change of a memory (name), or a client's changes
    (by and since)."""
    _check_undo(version, name, by, since)
    if by and since:
        is_preview = preview is not False
        result = store.undo_all(by, since, preview=is_preview, reason=reason, **caller)
        session.record_step(store, result.version)
        return _undone_many_reply(result, by, since, is_preview=is_preview)

    if preview:
        show_change = memory_history.sentence("show_change")
        hint = Hint(show_change, "Leave preview out to undo it.")
        raise Invalid("preview works only with by and since", hint=hint)

    # A note may be called 2026. That is no version.
    undone = store.undo(version or store.next_to_undo(name), reason=reason, **caller)
    session.record_step(store, undone.version)

    what = undone.what[:1].upper() + undone.what[1:]
    head = render.line(f"{what}.", _MAX_LINE_LENGTH)
    name_now = ""
    if undone.sha256:
        name_now = f"Its name is {render.name_of(undone.name)}."
    return change_reply(UndoAnswer, undone, head, name_now, undo_to="redo", notes=None, left=None)


def _check_undo(version: str | None, name: str | None, by: str | None, since: str | None) -> None:
    """Raise Invalid unless exactly one of `version`, `name` and `by` with `since` is passed."""
    if by and not since:
        client = render.line(by, 60)
        hint = Hint(undo_change.sentence("undo_client", client=client))
        raise Invalid("`by` needs `since`", hint=hint)

    passed = [value for value in (version, name, by) if value]
    if len(passed) != 1 or (since and not by):
        hint = Hint(memory_history.sentence("choose_version"))
        raise Invalid("undo_change needs one of version, name, or by with since", hint=hint)


def _undone_many_reply(
    result: UndoneMany, by: str, since: str, *, is_preview: bool
) -> Reply[UndoAnswer]:
    """Return what an undo of a client's changes did, or what it would do.

    `by` is the client, and `since` the date or version that the undo started from. At most 50 of
    the undone notes are listed, and at most 50 of those that were not.
    """
    undone = result.notes[:MAX_NAMES]
    left = result.left[:MAX_NAMES]
    summary = _summarize_undone(result, by, since, is_preview=is_preview)

    hint = ""
    undo_to: UndoPurpose | None = None
    if is_preview and undone:
        hint = "Pass preview=false to undo them."
    elif result.version:
        undo_to = "redo"

    lines = [f"This {summary}."]
    lines.extend(f"- {note.name}: {_describe_undone(note)}" for note in undone)
    lines.extend(f"- {note.name}: not undone, {note.why}" for note in left)
    names = [
        {"name": note.name, "becomes": note.becomes, "new_name": note.new_name} for note in undone
    ]
    return change_reply(
        UndoAnswer,
        result,
        *(render.line(text, _MAX_LINE_LENGTH) for text in lines),
        name="",
        sha256=None,
        what=summary,
        notes=names,
        left=left,
        undo_to=undo_to,
        hint=hint,
    )


def _summarize_undone(result: UndoneMany, by: str, since: str, *, is_preview: bool) -> str:
    """Return that the changes of a client were undone, or would be, and in how many notes.

    The text is a part of a sentence that begins with "This". Notes that are left as they are do not
    count; if no note is undone, there is no number. `by` is the client, and `since` the date or
    version that the undo started from.
    """
    action = "undid"
    if is_preview:
        action = "would undo"
    elif not result.version:
        action = "undid nothing of"

    summary = f"{action} what {by} changed since {since}"
    if not result.notes:
        return summary
    memories = render.format_count(len(result.notes), "memory", "memories")
    return f"{summary} in {memories}"


def _describe_undone(note: UndoneNote) -> str:
    """Return what the undo of many changes does to one note, as a part of a line."""
    if note.new_name is None:
        return note.becomes
    moved = f"{note.becomes} to {note.new_name}"
    if note.is_moved_with_earlier_text:
        return f"{moved}, with its earlier text"
    return moved
