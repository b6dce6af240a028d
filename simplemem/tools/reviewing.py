"""The tool group `review`, and the tools of the app that shows a change in a client.

The app is `simplemem.server.apps`. Its tools are hidden from the model: an agent must not keep its
own changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Final, TypedDict

from pydantic import Field

from simplemem.errors import NotFound
from simplemem.features.services import ReviewService
from simplemem.models import AUTHOR_SEPARATOR, OWNER
from simplemem.tools import render
from simplemem.tools.arguments import Name, about, clamp
from simplemem.tools.history import undo_change
from simplemem.tools.tool import Caller, Reply, tool

if TYPE_CHECKING:
    from simplemem.features.review.inbox import ChangedLine, InboxGroup, ReviewItem
    from simplemem.store import EnhancedStore

_MAX_LINE: Final = 300
_MARKS: Final = {"added": "+", "removed": "-", "same": ""}


class LinePart(TypedDict):
    """A part of a line, and whether the change added it, removed it or left it the same."""

    kind: str
    text: str


class ReviewedChange(TypedDict):
    """A change to review. `versions` are for keep_change and undo_change, the oldest first."""

    versions: Sequence[str]
    op: str
    name: str
    new_name: str | None
    notes: int
    when: str
    who: str
    tool: str
    reason: str
    status: str
    words_added: int
    words_removed: int
    lines: Sequence[Sequence[LinePart]]
    has_more_lines: bool
    warnings: Sequence[str]
    sources: Sequence[str]


class ReviewAnswer(TypedDict):
    """Changes to review, and how many are left."""

    changes: Sequence[ReviewedChange]
    left: int


class KeptAnswer(TypedDict):
    """The versions that were recorded as reviewed."""

    kept: Sequence[str]


@tool("Review changes", shows_changes=True)
def review_changes(
    review: ReviewService,
    caller: Caller,
    agent: Annotated[str, about("only changes by this client or token")] = "",
    folder: Annotated[str, about("only changes in this folder")] = "",
    since: Annotated[str, about("date or version to start from")] = "",
    limit: Annotated[int, clamp(100), Field(ge=1)] = 20,
) -> Reply[ReviewAnswer]:
    """List what agents changed and the user has not reviewed yet, by agent and session.

    Show it to the user, who decides what to keep; undo_change undoes a version."""
    from simplemem.features.review.inbox import InboxFilter

    conditions = InboxFilter(
        person=_person(caller), agent=agent, folder=folder, since=since, limit=limit
    )
    inbox = review.inbox(conditions)
    items = [item for group in inbox.groups for item in group.items]
    answer = ReviewAnswer(changes=[_describe(item) for item in items], left=inbox.left)
    if not items:
        return Reply("There is nothing to review.", answer)

    count = render.format_count(inbox.left, "change", "changes")
    lines = "\n".join(_lines_of_groups(inbox.groups))
    return Reply(render.answer(f"# {count} to review, newest first", lines), answer)


def _person(caller: Caller) -> str:
    """Return whose review it is: the name of the token, or the owner of the machine without one."""
    token_name, separator, _ = caller["who"].partition(AUTHOR_SEPARATOR)
    is_over_mcp = "session" in caller
    if is_over_mcp and not separator:
        return OWNER
    return token_name


def _describe(item: ReviewItem) -> ReviewedChange:
    """Return an item of the inbox as the fields of an answer."""
    note = item.notes[0]
    return ReviewedChange(
        versions=item.versions,
        op=item.op,
        name=note.name,
        new_name=note.new_name,
        notes=len(item.notes),
        when=item.when,
        who=item.who,
        tool=item.tool,
        reason=item.reason,
        status=_status_of(item),
        words_added=item.text.words_added,
        words_removed=item.text.words_removed,
        lines=[_parts_of(line) for line in item.text.lines],
        has_more_lines=item.text.has_more,
        warnings=item.text.warnings,
        sources=item.sources,
    )


def _status_of(item: ReviewItem) -> str:
    """Return "undone", "kept" or "open", as the person has decided about an item."""
    if item.is_undone:
        return "undone"
    return "kept" if item.is_kept else "open"


def _parts_of(line: ChangedLine) -> list[LinePart]:
    """Return the parts of a changed line as the fields of an answer."""
    return [LinePart(kind=part.kind, text=part.text) for part in line.parts]


def _lines_of_groups(groups: Iterable[InboxGroup]) -> Iterable[str]:
    """Yield the lines of the inbox: a heading per session, an item per change."""
    for group in groups:
        yield f"## {render.line(group.who) or 'unknown'}, {render.line(group.started)}"
        for item in group.items:
            yield from _lines_of_item(item)


def _lines_of_item(item: ReviewItem) -> Iterable[str]:
    """Yield the lines of a change: what it did, its warnings, and the first lines of its text."""
    note = item.notes[0]
    place = render.name_of(note.name)
    if note.new_name:
        place += f" to {render.name_of(note.new_name)}"
    words = f"+{item.text.words_added} -{item.text.words_removed} words"
    reason = f": {render.line(item.reason)}" if item.reason else ""
    yield f"- {' '.join(item.versions)} {item.op} {place} ({words}){reason}"
    for warning in item.text.warnings:
        yield f"  Warning: {render.line(warning)}"
    for line in item.text.lines:
        text = "".join(_mark(part.kind, part.text) for part in line.parts)
        yield f"  {render.line(text, _MAX_LINE)}"


def _mark(kind: str, text: str) -> str:
    """Return a part of a line, with {+added+} or {-removed-} around what changed."""
    mark = _MARKS[kind]
    return f"{{{mark}{text}{mark}}}" if mark else text


# --- the tools of the app


@tool("Show a change", shows_changes=True)
def show_change(
    store: EnhancedStore,
    review: ReviewService,
    caller: Caller,
    version: Annotated[str | None, about("of the change")] = None,
    name: Annotated[Name | None, about("memory whose last change to show")] = None,
) -> Reply[ReviewAnswer]:
    """Show one change (version), or the last change of a memory (name)."""
    if version is None:
        entries = store.history(name, limit=1)
        if not entries:
            raise NotFound("there is no change to show")
        version = entries[0].version
    person = _person(caller)
    item = review.item(version, person)
    text = render.answer("# 1 change", "\n".join(_lines_of_item(item)))
    return Reply(text, ReviewAnswer(changes=[_describe(item)], left=int(item.is_open)))


@tool("Keep changes", writes=True, idempotent=True)
def keep_change(
    review: ReviewService,
    caller: Caller,
    versions: Annotated[list[str], about("of the changes")],
) -> Reply[KeptAnswer]:
    """Record that the user has reviewed changes and keeps them."""
    results = review.keep(versions, _person(caller))
    kept = [result.version for result in results if result.is_done]
    failures = [result for result in results if not result.is_done]
    if failures and not kept:
        raise NotFound(failures[0].error, hint=failures[0].hint)
    return Reply(f"Kept: {', '.join(kept)}.", KeptAnswer(kept=kept))


TOOLS = (review_changes,)

APP_TOOLS = (show_change, keep_change, undo_change)
"""The tools that the app in a client calls for the user. A model does not see the first two."""
