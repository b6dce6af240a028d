"""A lost race: a change was made of a text that is not there any more. What was, what is, and how both come together.

The failure offers a merge where there is one, and the same call accepts it: with `if_sha256` naming the text that the
change was made of and the one that is there now, `BASE+CURRENT`. So what is written is the merge that was shown, or
nothing: after a third change CURRENT is not what is there, and the answer is a new offer.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from simplemem.errors import Conflict, SimplememError
from simplemem.note.diff import WHAT_YOU_HAD, unified_diff
from simplemem.note.merge import Merged, merge
from simplemem.note.names import name_of
from simplemem.note.note import Note, read_note
from simplemem.vault.disk import sha256
from simplemem.vault.vault import File


@dataclass(frozen=True, slots=True)
class Making:
    """What a change makes of a note's text. `again` says that it can be made of any text as well: an append, or an edit
    whose place is still there."""

    make: Callable[[Note], str]
    again: bool = False


_SIDES = ("your change", "the note as it is now")
_MOST_SHOWN = 4_000  # characters of a text in a failure
_DIGITS = 12  # of each hash in an offer


@dataclass(frozen=True, slots=True)
class Offer:
    """An offered merge that is accepted: the beginnings of two hashes."""

    base: str
    current: str


def offer_in(if_sha256: str | None) -> Offer | None:
    """The offer that a caller accepts; None for a plain hash."""
    base, plus, current = (if_sha256 or "").partition("+")
    return Offer(base, current) if plus else None


def brought_together(base: bytes, making: Making, now: bytes) -> tuple[str, Merged] | None:
    """What the change makes of the text it was made for, and that merged with what is there now. None where it cannot be
    told: a text that is not UTF-8, an edit that does not fit."""
    try:
        base.decode("utf-8"), now.decode("utf-8")
        ours = making.make(read_note(base))
    except (UnicodeDecodeError, SimplememError):
        return None
    merged = merge(read_note(base).text, ours, read_note(now).text, _SIDES)
    if making.again and not merged.clean:
        with suppress(SimplememError):
            merged = Merged(making.make(read_note(now)), 0)
    return ours, merged


def lost_race(
    file: File,
    base: bytes | None,
    making: Making,
    *,
    judged: Callable[[str, str], object],
    keep: Callable[[bytes], None],
) -> Conflict:
    """The failure that says what is there now and what the change would make of it. `keep` puts a text where it can be
    read by its hash; `judged` refuses what may not be written, which is then not kept either."""
    message = f"{name_of(file.path)} has changed since it was read"
    diff = unified_diff(base, file.data, WHAT_YOU_HAD)
    together = None if base is None else brought_together(base, making, file.data)
    if base is None or together is None:
        hint = "Read it again, make the change on what is there now, and pass its sha256."
        return Conflict(message, current_sha256=file.sha256, diff=diff, hint=hint)
    ours, merged = together
    judged(base.decode("utf-8"), ours)
    for text in (base, file.data, ours.encode("utf-8", "surrogatepass")):
        keep(text)
    details: dict[str, Any] = {
        "base_sha256": sha256(base),
        "ours_sha256": sha256(ours.encode("utf-8", "surrogatepass")),
        "merged": _shown(merged, file.data),
    }
    if merged.clean:
        offer = f"{sha256(base)[:_DIGITS]}+{file.sha256[:_DIGITS]}"
        hint = f'Your change and theirs fit together: repeat the call with if_sha256="{offer}" to write the merge.'
        details["accept"] = offer
    else:
        hint = "You and they changed the same lines: make your change on what is there now, and pass its sha256."
    return Conflict(message, current_sha256=file.sha256, diff=diff, hint=hint, **details)


def _shown(merged: Merged, now: bytes) -> dict[str, Any]:
    data = merged.text.encode("utf-8", "surrogatepass")
    shown: dict[str, Any] = {"clean": merged.clean, "conflicts": merged.conflicts, "sha256": sha256(data)}
    shown["diff"] = unified_diff(now, data, ("what is there now", "both together"))
    if len(merged.text) <= _MOST_SHOWN:
        shown["text"] = merged.text
    return shown
