"""Several notes changed as one step: all of it or nothing, one entry of the history, one undo.

What stands above the store and keeps several notes consistent writes through here. It gives whole texts and what it had
read; a note that has changed since rejects the step, and the caller reads again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from simplemem.errors import Conflict
from simplemem.note.names import check_name, name_of
from simplemem.store.core import Core
from simplemem.store.edit import encoded, judge, judge_name, stamp_modified
from simplemem.store.write import indexed, now
from simplemem.vault.disk import sha256
from simplemem.vault.vault import Change, Wish, Written

_TRIES = 50


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


def write_step(core: Core, drafts: Sequence[Draft], change: Change) -> Carried:
    """Carry out drafts as one step. Conflict, and nothing written, when a note is not what its draft was made of."""
    core.must_be_writable()
    wishes: list[Wish] = []
    warnings: list[str] = []
    for draft in drafts:
        name = check_name(name_of(draft.path)) if draft.before is None else name_of(draft.path)
        before = None if draft.before is None else sha256(encoded(draft.before))
        if draft.text is None:
            wishes.append(Wish("delete", draft.path, before=before, gone=True))
            continue
        warnings += judge(core.settings, name, draft.before or "", draft.text)
        if draft.before is None:
            warnings += judge_name(core.settings, name)
            wishes.append(Wish("create", draft.path, data=encoded(draft.text)))
        else:
            text = stamp_modified(draft.text, now()) if draft.text != draft.before else draft.text
            wishes.append(Wish("update", draft.path, before=before, data=encoded(text)))
    if not wishes:
        return Carried((), {}, ())
    with core.vault.lock():
        written = core.vault.carry_out(wishes, change)
        texts = {wish.path: wish.data for wish in wishes if wish.data is not None}
        warnings += indexed(core, texts, written, gone=[wish.path for wish in wishes if wish.gone])
    return Carried(tuple(written), {path: data.decode() for path, data in texts.items()}, tuple(warnings))


def change_step(core: Core, draft: Callable[[], Sequence[Draft]], change: Change) -> Carried:
    """Draft on what is there and write it as one step, holding the vault; again when somebody saved one of the notes
    meanwhile, or the drafting itself says so by a Conflict."""
    with core.vault.lock():
        for tries_left in range(_TRIES, -1, -1):
            drafts: Sequence[Draft] = ()
            try:
                drafts = draft()
                return write_step(core, drafts, change)
            except Conflict:
                if not tries_left:
                    raise
                core.look_at({each.path for each in drafts})
    raise AssertionError("unreachable")
