"""Several notes changed as one step: all of it or nothing, one entry of the history, one undo.

What stands above the store and keeps several notes in tune writes through here. It says whole texts and names what it
had read; a note that is another by now refuses the step, and the caller looks again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from simplemem.note.names import check_name, name_of
from simplemem.store.core import Core
from simplemem.store.editing import stamp_modified
from simplemem.store.secrecy import judge, judge_name
from simplemem.vault.disk import sha256
from simplemem.vault.vault import Change, Wish, Written


@dataclass(frozen=True, slots=True)
class Draft:
    """What a note shall be: its whole text, or None to have it in the trash. `before` is the text that it is made of,
    None for a note that is new."""

    path: str
    text: str | None
    before: str | None = None


class Carried(NamedTuple):
    """A step that is on the disk: what became of each note, with its text, and what is to be said of it."""

    written: tuple[Written, ...]
    texts: dict[str, str]
    warnings: tuple[str, ...]


def write_together(core: Core, drafts: Sequence[Draft], change: Change, now: str) -> Carried:
    """Carry out drafts as one step. Conflict, and nothing written, when a note is not what its draft was made of."""
    core.must_be_writable()
    wishes: list[Wish] = []
    told: list[str] = []
    for draft in drafts:
        name = check_name(name_of(draft.path)) if draft.before is None else name_of(draft.path)
        if draft.text is None:
            wishes.append(Wish("delete", draft.path, before=_hash(draft.before or ""), gone=True))
            continue
        told += judge(core.settings, name, draft.before or "", draft.text)
        if draft.before is None:
            told += judge_name(core.settings, name)
            wishes.append(Wish("create", draft.path, data=draft.text.encode()))
        else:
            text = stamp_modified(draft.text, now) if draft.text != draft.before else draft.text
            wishes.append(Wish("update", draft.path, before=_hash(draft.before), data=text.encode()))
    if not wishes:
        return Carried((), {}, ())
    with core.vault.lock():
        written = core.vault.carry_out(wishes, change)
        texts = {wish.path: wish.data for wish in wishes if wish.data is not None}
        there = {
            each.path: (texts[each.path], each.entry)
            for each in written
            if each.path in texts and each.entry is not None
        }
        gone = [wish.path for wish in wishes if wish.gone]
        told += core.indexed(wishes[0].path, lambda: core.rows.put_together(there, gone), *there, *gone)
        core.tell({name_of(wish.path) for wish in wishes})
        core.fill_soon()
    return Carried(tuple(written), {path: data.decode() for path, data in texts.items()}, tuple(told))


def _hash(text: str) -> str:
    return sha256(text.encode())
