"""Taking back and bringing back: one change, all that somebody changed since a moment, or an earlier text in its place.

Everything somebody changed is taken back path by path: what stood there before the first of these changes, if nobody else
has changed it since. What somebody else has changed since is left as it is and named, and with it the whole of every
operation it was part of: an operation is taken back as a whole or not at all, so that no move loses a note and no link its
end. Nothing is merged. Each of these is itself a change, which can be taken back.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from simplemem.errors import AlreadyExists, Conflict, Invalid, NotFound
from simplemem.index.changes import is_called
from simplemem.memory import LeftAsIs, Restored, Undone, UndoneMany, UndoneNote
from simplemem.note.names import check_name, clean_reference, compare_key, name_of, path_of
from simplemem.note.note import read_note
from simplemem.store.core import Core
from simplemem.store.history import (
    GONE,
    NoteThen,
    hash_now,
    last_change,
    moment_of,
    note_at,
    nothing_there,
    path_with_a_past,
    text_of,
)
from simplemem.store.repository import means_commit
from simplemem.store.write import judge
from simplemem.vault.history import Version
from simplemem.vault.vault import Change, Wish

_GONE_OUTSIDE = "it was deleted outside simplemem, perhaps after other changes there"


def undo(core: Core, version_or_name: str, change: Change) -> Undone:
    """Take back a change by its version, or the last change of a memory by its name."""
    core.must_be_writable()
    try:
        version = core.changes.find(version_or_name)
    except NotFound:
        if means_commit(core, version_or_name) and core.entry(path_of(clean_reference(version_or_name))) is None:
            hint = "Restore a note as it was at a commit, or revert the commit in git."
            raise Invalid(f"{version_or_name} is a commit of git, and no change to take back", hint=hint) from None
        version = last_change(core, path_with_a_past(core, version_or_name))
    with core.vault.lock():
        steps = core.changes.step(version.group)
        try:
            written = core.vault.undo(version.id, change)
        except Conflict as error:
            again = f"Undo what came since first, or restore the note as it was before {version.id}."
            error.hint = f"Nothing was taken back. {again}"
            raise
        paths = {path for one in steps for path in (one.path, one.new_path) if path is not None}
        _look_again(core, paths | {one.path for one in written})
    # Of one operation the first change is what was asked for; links written again because of it came after.
    asked, more = steps[0], len(steps) - 1
    main = next((w for w in written if w.path in (asked.path, asked.new_path)), written[0])
    what = f"undid the {asked.op} of {name_of(asked.path)}"
    if asked.new_path:
        what += f" to {name_of(asked.new_path)}"
    if more and (asked.op == "undo" or not asked.new_path):
        what += f" and {more} more {'change' if more == 1 else 'changes'} of the same step"
    return Undone(name_of(main.path), main.sha256, main.version, what)


def _look_again(core: Core, paths: set[str]) -> None:
    """Index what was just written by hash, still under the lock."""
    core.indexed(paths, lambda: core.look_at(paths))
    core.fill_soon()


# -- an earlier text in its place


def restore(core: Core, name: str, at: str | None, new_name: str | None, change: Change) -> Restored:
    """Bring a memory's text of a moment back, byte for byte: a deleted one under its name, one that is there in place.

    Without a moment, a deleted memory comes back as it was. What the memory says now stays in the history.
    """
    core.must_be_writable()
    path = path_with_a_past(core, name)
    with core.vault.lock():
        then, since = _wanted(core, path, at, name)
        if then.data is None or then.sha256 is None:
            raise nothing_there(name_of(path), at or since, then)
        target = path if new_name is None else path_of(check_name(new_name))
        now = core.vault.read(target) if core.entry(target) is not None else None
        if now is not None and target != path:
            raise _taken(target, "Choose another name.")
        if now is not None and (other := _taken_since(core, path, since, now.sha256)) is not None:
            raise _taken(target, f"It has the name since {other.id}. Restore the old one under another name.")
        wish = Wish("restore", target, before=now.sha256 if now else None, data=then.data)
        written = core.vault.carry_out([wish], change)[0]
        _look_again(core, {target})
    said = [f"not certain: {then.doubt}"] if then.doubt else []
    if written.changed:
        before = read_note(now.data).text if now is not None else ""
        said += judge(core.settings, name_of(target), before, read_note(then.data).text, anew=False)
    return Restored(
        name_of(target), then.sha256, written.previous_sha256, written.version, since, written.changed, tuple(said)
    )


def _wanted(core: Core, path: str, at: str | None, name: str) -> tuple[NoteThen, str]:
    """The text to bring back, and the version or date it is of."""
    if at is not None:
        return note_at(core, path, at, name=name), at
    if core.entry(path) is not None:
        hint = "Say which: a version of its history, or a date."
        raise Invalid(f"{name_of(path)} is there, and was not told what to become", hint=hint)
    last = last_change(core, path)
    before, after = next((before, after) for at, before, after in last.effects if at == path)
    sha, since = (before, f"before {last.id}") if after is None else (after, last.id)
    data = text_of(core, sha, path) if sha else None
    return NoteThen(path, sha, data, GONE if data is None else "" if after is None else _GONE_OUTSIDE), since


def _taken(target: str, hint: str) -> AlreadyExists:
    name = name_of(target)
    return AlreadyExists(f"there is another memory called {name}", hint=hint, name=name)


def _taken_since(core: Core, path: str, at: str, now: str) -> Version | None:
    """The change since a moment with which this name went to another memory, or got free for a file of another program."""
    lineage = [version for version in core.changes.lineage(path) if version.op != "recovered"]
    if not lineage or means_commit(core, at):
        return None  # git tells of names, and follows them by itself
    last, first = lineage[0], lineage[-1]
    if (last.new_path or last.path) != path or (last.after is None and last.before != now):
        return last
    return first if first.op == "create" and moment_of(core, at).number < first.number else None


# -- everything somebody changed


@dataclass(slots=True)
class _Reversal:
    """A path that is to have its old text again, or its old absence; or why it is left as it is."""

    now: str | None
    then: str | None
    first: str  # the first version of theirs
    groups: frozenset[str]
    text: bytes | None
    why: str = ""


def undo_all(core: Core, by: str, since: str, change: Change, *, preview: bool, expected: str | None) -> UndoneMany:
    """Take back all that `by` changed since a date or version. A preview changes nothing; its `plan` may be `expected`."""
    if not by.strip() or not since.strip():
        raise Invalid("who, and since when?", hint="history shows who changed what.")
    if preview:
        return _plan(core, by, since)[0]
    core.must_be_writable()
    with core.vault.lock():
        shown, wishes = _plan(core, by, since)
        if expected is not None and shown.plan != expected:
            hint = "Look at the preview again."
            raise Conflict("the vault has changed since this was looked at", current_sha256=None, hint=hint)
        if not wishes:
            return shown
        reason = change.reason or f"everything by {by} since {since}"
        written = core.vault.carry_out(wishes, replace(change, reason=reason))
        _look_again(core, {path for wish in wishes for path in (wish.path, wish.target)})
    return replace(shown, version=written[0].version)


def _plan(core: Core, by: str, since: str) -> tuple[UndoneMany, list[Wish]]:
    """What would become of each note, and the wishes that do it."""
    lines = core.changes.recent(after=moment_of(core, since, start=True).number)[::-1]
    theirs = [version for version in lines if is_called(version.who, by)]
    if not theirs:
        names = dict.fromkeys(version.who for version in reversed(lines) if version.who)
        raise NotFound(f"nothing was changed by {by} since {since}", candidates=list(names)[:10])
    moves: dict[str, str] = {}  # where a note is now -> where it was
    for version in theirs:
        if version.new_path is not None:
            moves[version.new_path] = moves.pop(version.path, version.path)
    paths = sorted({path for version in theirs for path, _, _ in version.effects})
    found = {path: _reversal(core, by, path, lines) for path in paths}
    work = {path: each for path, each in found.items() if each is not None}
    # Notes that can go back where they were as they stand.
    back = {
        new: old
        for new, old in moves.items()
        if new in work and work[new].then is None and old in work and work[old].now is None
    }
    _leave_what_may_not_be(core, work, back)
    notes, wishes = [], []
    for path, each in work.items():
        if each.why or path in back.values():
            continue
        old = back.get(path)
        then = work[old] if old is not None else each
        becomes = (
            "moved back" if old else "deleted" if then.then is None else "changed back" if each.now else "brought back"
        )
        new_name = name_of(old) if old else None
        notes.append(UndoneNote(name_of(path), new_name, becomes, each.first, each.now, then.then))
        text = None if then.then == each.now else then.text
        wishes.append(Wish("undo", path, before=each.now, new_path=old, data=text, gone=then.then is None))
    left = tuple(LeftAsIs(name_of(path), each.why) for path, each in work.items() if each.why)
    digest = hashlib.sha256(repr(notes).encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return UndoneMany(by, since, "", tuple(notes), left, digest), wishes


def _reversal(core: Core, by: str, path: str, lines: Sequence[Version]) -> _Reversal | None:
    """What is to be done at one path, or why it is left: somebody else has changed it since. None when it is as it was."""
    chain = [(version, before, after) for version in lines for at, before, after in version.effects if at == path]
    while not is_called(chain[0][0].who, by):
        del chain[0]
    then, now = chain[0][1], hash_now(core, core.entry(path))
    if then == now:
        return None
    groups = frozenset(version.group for version, _, _ in chain if is_called(version.who, by))
    text = text_of(core, then) if then is not None else None
    work = _Reversal(now, then, chain[0][0].id, groups, text)
    at = then
    for version, before, after in chain:
        if before != at:
            work.why = work.why or "changed since outside simplemem"
        elif not is_called(version.who, by):
            work.why = work.why or f"changed since by {version.who or 'somebody'} ({version.id})"
        at = after
    work.why = work.why or ("changed since outside simplemem" if at != now else "")
    work.why = work.why or (GONE if then is not None and text is None else "")
    return work


def _leave_what_may_not_be(core: Core, work: dict[str, _Reversal], back: dict[str, str]) -> None:
    """Leave what the rules keep from being changed here, and what would take a name; and whatever shares an operation with
    something that is left."""
    rules = core.vault.access
    spelled = {compare_key(entry.path): entry.path for entry in core.vault.scan()}
    for path, each in work.items():
        twin = spelled.get(compare_key(path)) if each.now is None else None
        if each.why:
            continue
        if core.changes.touches_hidden(each.groups):
            each.why = "it was changed together with what may not be changed here"
        elif not rules.may_change(path):
            each.why = "it may be read here, not changed"
        elif rules.no_delete and each.then is None and path not in back:
            each.why = "nothing may be deleted here"
        elif twin is not None and back.get(twin) != path:
            each.why = f"there is another memory called {name_of(twin)}"
    blocked = {group: path for path, each in work.items() if each.why for group in each.groups}
    while bound := [
        (path, group) for path, each in work.items() if not each.why for group in each.groups & blocked.keys()
    ]:
        path, group = bound[0]
        work[path].why = f"{group} changed it together with {name_of(blocked[group])}"
        blocked |= dict.fromkeys(work[path].groups - blocked.keys(), path)
