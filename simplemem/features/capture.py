"""Captures: short texts that somebody notes down on a phone, each added to a note once.

A phone may send a capture again, because the answer to the first request was lost. The history
records the id of each capture as the reason of the change, so it is added only once.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from simplemem.errors import Invalid
from simplemem.note.dates import local_now
from simplemem.note.names import name_of, path_of

if TYPE_CHECKING:
    from simplemem.models import AuthorArgs
    from simplemem.store import EnhancedStore

_ID: Final = re.compile(r"[0-9A-Za-z-]{8,64}")
_LIST_ITEM: Final = re.compile(r"(?:[-*+]|\d{1,9}[.)])[ \t]")
_MAX_CHARACTERS: Final = 100_000
_MAX_CHANGES_SEARCHED: Final = 10_000


class Capture(NamedTuple):
    """A text to add, the id that its sender gave it, and when it was written down, local time."""

    id: str
    text: str
    made: datetime


def read_made(text: str) -> datetime:
    """Return the local time at which a capture was made, such as `2026-11-29T09:41`.

    Returns the time now for any other text, and for a time in the future.
    """
    now = local_now()
    try:
        made = datetime.fromisoformat(text).replace(tzinfo=None)
    except ValueError:
        return now
    return min(made, now)


def add_capture(store: EnhancedStore, capture: Capture, author: AuthorArgs) -> str:
    """Add a capture to the note of the setting `write.capture`, and return the name of the note.

    Without the setting, the note is today's daily note. It is created if it does not exist. If the
    capture was added before, nothing is written. Call it where no other write runs. Raises Invalid
    for a wrong id or a text that is empty or too long, and what writing the note raises.
    """
    text = capture.text.strip()
    if not text:
        raise Invalid("the capture is empty", hint="Write something.")
    if len(text) > _MAX_CHARACTERS:
        raise Invalid("the capture is too long", hint="Write it into a note of its own.")
    if not _ID.fullmatch(capture.id):
        raise Invalid("the capture has no valid id", hint="Open the page again.")

    reason = f"capture {capture.id}"
    earlier = _note_with_reason(store, reason)
    if earlier:
        return earlier

    item = format_capture(text, capture.made, local_now())
    change: AuthorArgs = {**author, "reason": reason}
    name = store.settings.write.capture
    if not name:
        return store.append_to_daily(item, **change).name
    if not store.extension.exists(path_of(name)):
        return store.create(name, item, **change).name
    return store.update(name, append=item, **change).name


def _note_with_reason(store: EnhancedStore, reason: str) -> str:
    """Return the note that a change with this reason wrote; "" if there was none lately."""
    first = max(0, store.extension.last_version() - _MAX_CHANGES_SEARCHED)
    for version in store.extension.changes(after=first):
        if version.reason == reason:
            return name_of(version.path)
    return ""


def format_capture(text: str, made: datetime, now: datetime) -> str:
    """Return a capture as a list item that begins with its time, and its date if not today's.

    A text that is a list item already, such as a task, stays as it is.
    """
    lines = re.split(r"\r\n|\n|\r", text)
    if _LIST_ITEM.match(lines[0]):
        return "\n".join(lines)

    time = f"{made:%H:%M}"
    if made.date() != now.date():
        time = f"{made:%Y-%m-%d %H:%M}"
    first, *others = lines
    indented = [f"  {line}".rstrip() for line in others]
    return "\n".join([f"- {time} {first}", *indented])
