"""Bringing back what was: a memory read as it was at a moment, and an earlier text put in its place again."""

from __future__ import annotations

from dataclasses import replace

from simplemem.errors import AlreadyExists, Invalid, NotFound
from simplemem.memory import Memory, Restored
from simplemem.note.names import check_name, name_of, path_of
from simplemem.note.note import read_note
from simplemem.store import from_git
from simplemem.store.core import Core
from simplemem.store.edit import judge
from simplemem.store.past import last_change, look_again, path_with_a_past
from simplemem.store.reading import memory_of
from simplemem.store.then import GONE, Moment, NoteThen, moment_of, note_then, text_of
from simplemem.vault.history import Version
from simplemem.vault.vault import Change, Wish

_GONE_OUTSIDE = "it was deleted outside simplemem, perhaps after other changes there"


def read_at(core: Core, name: str, section: str | None, at: str) -> Memory:
    """A memory as it was at a version or date, under the name it had then."""
    path = path_with_a_past(core, name)
    then = from_git.note_at(core, path, at) or note_then(core, path, moment_of(core, at))
    if then.data is None:
        raise _nothing_there(name_of(path), at, then)
    memory = memory_of(core, then.path, then.data, section, at)
    said = filter(None, (memory.problem, f"not certain: {then.doubt}" if then.doubt else ""))
    return replace(memory, problem="; ".join(said) or None)


def restore(core: Core, name: str, at: str | None, new_name: str | None, change: Change) -> Restored:
    """Bring a memory's text of a moment back, byte for byte: a deleted one under its name, one that is there in place.

    Without a moment, a deleted memory comes back as it was. What the memory says now stays in the history.
    """
    core.must_be_writable()
    path = path_with_a_past(core, name, gone_first=True)
    with core.vault.lock():
        then, since = _wanted(core, path, at)
        if then.data is None or then.sha256 is None:
            raise _nothing_there(name_of(path), at or since, then)
        target = path if new_name is None else path_of(check_name(new_name))
        now = core.vault.read(target) if core.entry(target) is not None else None
        if now is not None and target != path:
            raise _taken(target, "Choose another name.")
        if now is not None and (other := _another_since(core, path, since)) is not None:
            raise _taken(target, f"It has the name since {other.id}. Restore the old one under another name.")
        if now is not None and (gone := _gone_since(core, path, since, now.sha256)) is not None:
            raise _taken(target, f"It was made after {gone.id}. Restore the old one under another name.")
        wish = Wish("restore", target, before=now.sha256 if now else None, data=then.data)
        written = core.vault.carry_out([wish], change)[0]
        look_again(core, {target})
    said = [f"not certain: {then.doubt}"] if then.doubt else []
    if written.changed:
        before = read_note(now.data).text if now is not None else ""
        said += judge(core.settings, name_of(target), before, read_note(then.data).text, anew=False)
    return Restored(
        name_of(target), then.sha256, written.previous_sha256, written.version, since, written.changed, tuple(said)
    )


def _wanted(core: Core, path: str, at: str | None) -> tuple[NoteThen, str]:
    """The text to bring back, and the version or date it is of."""
    if at is not None:
        if (known := from_git.note_at(core, path, at)) is not None:
            return known, at
        moment = moment_of(core, at)
        if (sha := _told_of(moment, path)) is not None:  # perhaps of an earlier note of this name
            data = text_of(core, sha, path)
            return NoteThen(path, sha, data, "" if data is not None else GONE), at
        return note_then(core, path, moment), at
    if core.entry(path) is not None:
        hint = "Say which: a version of its history, or a date."
        raise Invalid(f"{name_of(path)} is there, and was not told what to become", hint=hint)
    last = last_change(core, path)
    before, after = next((before, after) for at, before, after in last.effects if at == path)
    sha, since = (before, f"before {last.id}") if after is None else (after, last.id)
    data = text_of(core, sha, path) if sha else None
    doubt = GONE if data is None else "" if after is None else _GONE_OUTSIDE
    return NoteThen(path, sha, data, doubt), since


def _nothing_there(name: str, at: str, then: NoteThen) -> NotFound:
    if then.sha256 is None:
        return NotFound(f"there was no {name} at {at}", hint="history lists its versions, also of what was deleted.")
    hint = "Texts are kept for as many days and megabytes as the settings say."
    return NotFound(f"the text of {name} at {at} is no longer kept", hint=hint)


def _taken(target: str, hint: str) -> AlreadyExists:
    name = name_of(target)
    return AlreadyExists(f"there is another memory called {name}", hint=hint, name=name)


def _told_of(moment: Moment, path: str) -> str | None:
    """The hash that the version a moment was given by left at a path, or found there. Of what it took away it is always
    the latter: nothing else can be meant."""
    for at, before, after in moment.version.effects if moment.version is not None else ():
        if at == path:
            return before if moment.before else after or before
    return None


def _gone_since(core: Core, path: str, at: str, now: str) -> Version | None:
    """The change after a moment that took away what lay at a path, if what lies there now was made by another program."""
    last = next(iter(core.changes.of(path, 1)), None)
    if last is None or from_git.means_commit(core, at) or last.number <= moment_of(core, at).number:
        return None
    left = next(((before, after) for there, before, after in last.effects if there == path), None)
    return last if left is not None and left[1] is None and left[0] != now else None


def _another_since(core: Core, path: str, at: str) -> Version | None:
    """The change with which another memory got this name, if the one there is not the one there was at a moment."""
    if from_git.means_commit(core, at):
        return None  # git tells of names, and follows them by itself
    moment, last = moment_of(core, at), None
    of_this_name = _told_of(moment, path) is not None
    for version in core.changes.of(path):
        last = version
        if moment.is_beside(version):
            return None
        if version.number <= moment.number:
            return last if of_this_name else None
        if version.op == "create":
            return version
    return last if of_this_name else None
