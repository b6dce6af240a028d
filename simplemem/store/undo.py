"""Taking back and bringing back: one change, all that somebody changed since a moment, or an earlier text in its place.

Everything somebody changed is taken back path by path: what stood there before the first of these changes, if nobody
else has changed it since. What somebody else has changed since is left as it is and named, and with it the whole of
every operation it was part of, so that no move loses a note and no link its end. Nothing is merged."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple, Unpack

from simplemem.errors import AlreadyExists, Conflict, Invalid, NotFound
from simplemem.index.changes import is_called
from simplemem.memory import By, LeftAsIs, Restored, Undone, UndoneMany, UndoneNote
from simplemem.note.names import check_name, clean_reference, name_of, path_of
from simplemem.note.note import read_note
from simplemem.note.words import counted
from simplemem.store.core import Core, change_by
from simplemem.store.history import (
    GONE,
    file_now,
    last_change,
    means_commit,
    moment_of,
    note_at,
    nothing_there,
    path_with_a_past,
    text_of,
)
from simplemem.store.write import judge
from simplemem.vault.history import Version
from simplemem.vault.vault import Change, Wish, Written


def carry_out(core: Core, wishes: Sequence[Wish], change: Change) -> tuple[list[Written], list[str]]:
    """Change some notes as one, and index what is there then: what was written, and what went wrong with the index. The
    vault is locked already."""
    written = core.vault.carry_out(wishes, change)
    return written, _look_again(core, (path for wish in wishes for path in (wish.path, wish.target)))


def _look_again(core: Core, paths: Iterable[str]) -> list[str]:
    changed = set(paths)
    warnings = core.indexed(changed, lambda: core.look_at(changed))
    core.fill_soon()
    return warnings


def undo(core: Core, version_or_name: str, **by: Unpack[By]) -> Undone:
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
            written = core.vault.undo(version.id, change_by(by, "undo"))
        except Conflict as error:
            error.hint = f"Undo what came since first, or restore the note as it was before {version.id}."
            raise
        _look_again(core, (*(path for step in steps for path, _, _ in step.effects), *(each.path for each in written)))
    # Of one operation the first change is what was asked for; links written again because of it came after.
    asked, more = steps[0], len(steps) - 1
    main = next((w for w in written if w.path in (asked.path, asked.new_path)), written[0])
    to = f" to {name_of(asked.new_path)}" if asked.new_path else ""
    also = f" and {counted(more, 'more change')} of the same step" if more and (asked.op == "undo" or not to) else ""
    what = f"undid the {asked.op} of {name_of(asked.path)}{to}{also}"
    return Undone(name_of(main.path), main.sha256, main.version, what)


def restore(core: Core, name: str, *, at: str | None = None, new_name: str | None = None, **by: Unpack[By]) -> Restored:
    """Bring a memory's text of a version or date back, also of one that was deleted, which needs no `at`. With
    `new_name` it is brought back beside what has its name now."""
    core.must_be_writable()
    path = path_with_a_past(core, name)
    with core.vault.lock():
        doubt, since = "", at
        if since is None:
            if core.entry(path) is not None:
                hint = "Say which: a version of its history, or a date."
                raise Invalid(f"{name_of(path)} is there, and was not told what to become", hint=hint)
            last = last_change(core, path)
            since = f"before {last.id}" if last.after is None else last.id
            doubt = "" if last.after is None else "it was deleted outside simplemem, perhaps after other changes there"
        then = note_at(core, path, since, name=name)
        if then.data is None or then.sha256 is None:
            raise nothing_there(name_of(path), since, then)
        target = path if new_name is None else path_of(check_name(new_name))
        now = core.vault.read(target) if core.entry(target) is not None else None
        other = _taken_since(core, path, since, now.sha256) if now is not None and target == path else None
        if now is not None and (target != path or other is not None):
            hint = f"It has the name since {other.id}. Restore the old one under another name." if other else ""
            message = f"there is another memory called {name_of(target)}"
            raise AlreadyExists(message, hint=hint or "Choose another name.", name=name_of(target))
        wish = Wish("restore", target, before=now.sha256 if now else None, data=then.data)
        written = carry_out(core, [wish], change_by(by, "restore"))[0][0]
    said = [f"not certain: {doubt or then.doubt}"] if doubt or then.doubt else []
    if written.changed:
        before = read_note(now.data).text if now is not None else ""
        said += judge(core.settings, name_of(target), before, read_note(then.data).text, anew=False)
    return Restored(
        name_of(target), then.sha256, written.previous_sha256, written.version, since, written.changed, tuple(said)
    )


def _taken_since(core: Core, path: str, at: str, now: str) -> Version | None:
    """The change since a moment with which this name went to another memory, or got free for another program's file."""
    lineage = core.changes.lineage(path)
    if not lineage or means_commit(core, at):
        return None  # git tells of names, and follows them by itself
    last, first = lineage[0], lineage[-1]
    if (last.new_path or last.path) != path or (last.after is None and last.before != now):
        return last
    return first if first.op == "create" and moment_of(core, at).number < first.number else None


# -- everything somebody changed


def undo_all(
    core: Core, by: str, since: str, *, preview: bool = False, expected: str | None = None, **change: Unpack[By]
) -> UndoneMany:
    """Take back everything that somebody changed since a date or version, as one change that can itself be undone. A
    `preview` changes nothing; given its `plan` as `expected`, it is done only if it is still what was shown."""
    if not by.strip() or not since.strip():
        raise Invalid("who, and since when?", hint="history shows who changed what.")
    if preview:
        return _plan(core, by, since)[0]
    core.must_be_writable()
    with core.vault.lock():
        shown, wishes = _plan(core, by, since)
        if expected is not None and shown.plan != expected:
            message, hint = "the vault has changed since this was looked at", "Look at the preview again."
            raise Conflict(message, current_sha256=None, hint=hint)
        if not wishes:
            return shown
        reason = change.get("reason") or f"everything by {by} since {since}"
        written, _ = carry_out(core, wishes, change_by({**change, "reason": reason}, "undo"))
    return replace(shown, version=written[0].version)


class _Reversal(NamedTuple):
    """A path that is to have its old text again, or its old absence: what it has now and what it had then."""

    now: str | None
    then: str | None
    chain: list[tuple[Version, str | None, str | None]]  # the changes since, with what each found and left
    groups: set[str]  # of theirs among them


def _plan(core: Core, by: str, since: str) -> tuple[UndoneMany, list[Wish]]:
    """What would become of each note, and the wishes that do it."""
    lines = core.changes.recent(after=moment_of(core, since, start=True).number)
    chains: dict[str, list[tuple[Version, str | None, str | None]]] = {}
    moves: dict[str, str] = {}  # where a note is now -> where it was
    for version in reversed(lines):
        is_theirs = is_called(version.who, by)
        for path, before, after in version.effects:
            if is_theirs or path in chains:
                chains.setdefault(path, []).append((version, before, after))
        if is_theirs and version.new_path is not None:
            moves[version.new_path] = moves.pop(version.path, version.path)
    if not chains:
        names = dict.fromkeys(version.who for version in lines if version.who)
        raise NotFound(f"nothing was changed by {by} since {since}", candidates=list(names)[:10])
    work: dict[str, _Reversal] = {}
    for path, chain in sorted(chains.items()):
        file = file_now(core, path)
        now = None if file is None else file.sha256
        if now != chain[0][1]:
            groups = {version.group for version, _, _ in chain if is_called(version.who, by)}
            work[path] = _Reversal(now, chain[0][1], chain, groups)
    back = {  # notes that can go back where they were as they stand
        new: old
        for new, old in moves.items()
        if new in work and work[new].then is None and old in work and work[old].now is None
    }
    whys = {path: why for path, each in work.items() if (why := _why_left(core, by, path, each, path in back))}
    todo = list(whys)
    while todo:  # what shares an operation with something that is left is left too
        other = todo.pop()
        for path, each in work.items():
            if path not in whys and (shared := each.groups & work[other].groups):
                whys[path] = f"{min(shared)} changed it together with {name_of(other)}"
                todo.append(path)
    notes, wishes = [], []
    for path, each in work.items():
        if path in whys or path in back.values():
            continue
        old = back.get(path)
        then = (each if old is None else work[old]).then
        done = "moved back" if old else "deleted" if then is None else "changed back" if each.now else "brought back"
        notes.append(UndoneNote(name_of(path), old and name_of(old), done, each.chain[0][0].id, each.now, then))
        text = None if then is None or then == each.now else text_of(core, then)
        wishes.append(Wish("undo", path, before=each.now, new_path=old, data=text, gone=then is None))
    left = tuple(LeftAsIs(name_of(path), whys[path]) for path in work if path in whys)
    digest = hashlib.sha256(repr(notes).encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return UndoneMany(by, since, "", tuple(notes), left, digest), wishes


def _why_left(core: Core, by: str, path: str, work: _Reversal, moves: bool) -> str:
    """Why a path is left as it is: somebody else has changed it since, or the rules keep it from being changed here."""
    rules, log = core.vault.access, core.vault.history.log
    other = next((version for version, _, _ in work.chain if not is_called(version.who, by)), None)
    if other is not None:
        return f"changed since by {other.who or 'somebody'} ({other.id})"
    if [after for _, _, after in work.chain] != [*(before for _, before, _ in work.chain[1:]), work.now]:
        return "changed since outside simplemem"
    if work.then is not None and text_of(core, work.then) is None:
        return GONE
    if rules.hidden and any(len(core.changes.step(group)) < len(log.group(group)) for group in work.groups):
        return "it was changed together with what may not be changed here"
    if not rules.may_change(path):
        return "it may be read here, not changed"
    return "nothing may be deleted here" if rules.no_delete and work.then is None and not moves else ""
