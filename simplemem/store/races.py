"""A lost race: a change was made of a text that is not there any more, and the failure offers a merge where there is one.

The same call accepts it, with `if_sha256` naming both texts as `BASE+CURRENT`: what is written is the merge that was
shown, or nothing, as after a third change CURRENT is not what is there."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from simplemem.errors import Conflict, Invalid, SimplememError
from simplemem.note.diff import WHAT_YOU_HAD, unified_diff
from simplemem.note.merge import Merged, merge
from simplemem.note.names import name_of
from simplemem.note.note import read_note
from simplemem.store.core import Core
from simplemem.store.edit import encoded, judge, stamp_modified
from simplemem.store.write import Making
from simplemem.vault.disk import sha256
from simplemem.vault.vault import File

_SIDES = ("your change", "the note as it is now")
_MOST_SHOWN = 4_000  # characters of a text in a failure
_DIGITS = 12  # of each hash in an offer
_READ_AGAIN = "Read it again, make the change on what is there now, and pass its sha256."
_RECENT = 20  # changes of a note among which a repeated one is looked for


def settled(core: Core, file: File, making: Making, if_sha256: str) -> str | None:
    """The text that a change which names another text than the one that is there comes to. None when it was made
    already, by this very call whose answer was lost (durability.md F66); Conflict when it lost a race."""
    base_sha256, accepting, current = if_sha256.partition("+")
    base = _text_of(core, base_sha256)
    if accepting and base is None:
        message = f"the version your change of {name_of(file.path)} was made of is no longer in the history"
        raise Conflict(message, current_sha256=file.sha256, hint=_READ_AGAIN)
    both = _merged(base, making, file.data)
    if accepting and file.sha256.startswith(current):
        if not making.whole:
            read_note(file.data).must_be_editable(name_of(file.path))
        if both is not None and both[1].clean:
            return both[1].text
    else:
        if making.whole and encoded(making.make(read_note(file.data))) == file.data:
            return None
        seen = _text_of(core, current) if accepting else base
        made = _merged(base, making, seen) if seen is not None else None
        if seen is not None and made is not None and made[1].clean:
            if _is_but_for_its_time(made[1].text, file.data):
                return None
            _refuse_repeated(core, file, seen, made[1].text)
    raise _lost(core, file, base, both)


def _refuse_repeated(core: Core, file: File, seen: bytes, text: str) -> None:
    """Conflict, and nothing offered, when this very change was made already of what was `seen`, and others followed."""
    for version in core.changes.of(file.path, _RECENT):
        if version.op not in ("update", "move"):
            break  # taken back, or another note since
        if version.before == sha256(seen) and version.before != version.after:
            made = core.vault.history.content(version.after or "")
            if made is not None and _is_but_for_its_time(text, made):
                what = f"this very change of {name_of(file.path)}"
                message = f"{what} was made already, as {version.id}, and others since"
                diff, hint = unified_diff(made, file.data, WHAT_YOU_HAD), "Read it: there may be nothing left to do."
                raise Conflict(message, current_sha256=file.sha256, diff=diff, hint=hint)


def _text_of(core: Core, digits: str) -> bytes | None:
    """A text that somebody had, by its hash or the beginning of it."""
    return core.vault.history.content(digits) or core.remembered(digits)


def _merged(base: bytes | None, making: Making, now: bytes) -> tuple[str, Merged] | None:
    """What the change makes of its base, and that merged with what is there now; None for no UTF-8, or an edit that
    does not fit."""
    if base is None:
        return None
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


def _lost(core: Core, file: File, base: bytes | None, both: tuple[str, Merged] | None) -> Conflict:
    """The failure that says what is there now and what the change would make of it. The texts it names are kept."""
    message = f"{name_of(file.path)} has changed since it was read"
    details: dict[str, Any] = {"current_sha256": file.sha256, "diff": unified_diff(base, file.data, WHAT_YOU_HAD)}
    if base is None or both is None:
        return Conflict(message, **details, hint=_READ_AGAIN)
    ours, merged = both
    judge(core.settings, name_of(file.path), base.decode("utf-8"), ours)
    ours_data, data = (text.encode("utf-8", "surrogatepass") for text in (ours, merged.text))
    for text in (base, file.data, ours_data):
        core.vault.keep_text(text)
    shown: dict[str, Any] = {"clean": merged.clean, "conflicts": merged.conflicts, "sha256": sha256(data)}
    shown["diff"] = unified_diff(file.data, data, ("what is there now", "both together"))
    shown |= {"text": merged.text} if len(merged.text) <= _MOST_SHOWN else {}
    details |= {"base_sha256": sha256(base), "ours_sha256": sha256(ours_data), "merged": shown}
    hint = "You and they changed the same lines: make your change on what is there now, and pass its sha256."
    if merged.clean:
        offer = details["accept"] = f"{sha256(base)[:_DIGITS]}+{file.sha256[:_DIGITS]}"
        hint = f'Your change and theirs fit together: repeat the call with if_sha256="{offer}" to write the merge.'
    return Conflict(message, **details, hint=hint)


def _is_but_for_its_time(text: str, now: bytes) -> bool:
    """Whether a note is this text, but for the time that our write stamped on it."""
    modified = read_note(now).string("modified")
    with suppress(Invalid):
        return encoded(stamp_modified(text, modified) if modified else text) == now
    return False
