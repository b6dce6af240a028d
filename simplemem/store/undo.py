"""Taking back and bringing back: one change, all that somebody changed since a moment, or an earlier text in its place.

Everything somebody changed is taken back path by path: what stood there before the first of these changes, if nobody else
has changed it since. What somebody else has changed since is left as it is and named, and with it the whole of every
operation it was part of: an operation is taken back as a whole or not at all, so that no move loses a note and no link its
end. Nothing is merged. Each of these is itself a change, which can be taken back.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from simplemem.errors import AlreadyExists, Conflict, Invalid, NotFound, SimplememError
from simplemem.memory import LeftAsIs, Restored, Undone, UndoneMany, UndoneNote
from simplemem.note.authors import is_called
from simplemem.note.diff import unified_diff
from simplemem.note.names import check_name, clean_reference, compare_key, name_of, path_of
from simplemem.note.note import read_note
from simplemem.store.core import Core
from simplemem.store.history import (
    GONE,
    Moment,
    NoteThen,
    changes_in,
    last_change,
    means_commit,
    moment_of,
    note_at_commit,
    note_then,
    nothing_there,
    path_with_a_past,
    text_of,
)
from simplemem.store.write import judge
from simplemem.vault.log import Version
from simplemem.vault.vault import Change, Wish

_GONE_OUTSIDE = "it was deleted outside simplemem, perhaps after other changes there"


# -- one change


def undo(core: Core, version_or_name: str, change: Change) -> Undone:
    """Take back a change by its version, or the last change of a memory by its name."""
    core.must_be_writable()
    version = _version_meant(core, version_or_name)
    with core.vault.lock():
        steps = core.changes.step(version.group)
        try:
            written = core.vault.undo(version.id, change)
        except Conflict as error:
            again = f"Undo what came since first, or restore the note as it was before {version.id}."
            error.hint = f"Nothing was taken back. {again}"
            raise
        paths = {path for one in steps for path in (one.path, one.new_path) if path is not None}
        look_again(core, paths | {one.path for one in written})
    # Of one operation the first change is what was asked for; links written again because of it came after.
    asked = steps[0]
    main = next((w for w in written if w.path in (asked.path, asked.new_path)), written[0])
    what = f"undid the {asked.op} of {name_of(asked.path)}"
    if asked.new_path:
        what += f" to {name_of(asked.new_path)}"
    if asked.op == "undo" and len(steps) > 1:
        what += f" and of {len(steps) - 1} more"
    elif not asked.new_path and len(steps) > 1:
        more = len(steps) - 1
        what += f" and {more} more {'change' if more == 1 else 'changes'} of the same step"
    return Undone(name_of(main.path), main.sha256, main.version, what)


def _version_meant(core: Core, wanted: str) -> Version:
    try:
        return core.changes.find(wanted)
    except SimplememError:
        if means_commit(core, wanted) and core.entry(path_of(clean_reference(wanted))) is None:
            held = changes_in(core, wanted)
            if len(held) == 1:
                return core.changes.find(held[0])
            hint = "Restore a note as it was at a commit, or revert the commit in git."
            if held:
                hint = f"It holds several changes, each of which can be undone: {', '.join(held)}."
            raise Invalid(f"{wanted} is a commit of git, and no one change to take back", hint=hint) from None
        return last_change(core, path_with_a_past(core, wanted))


# -- an earlier text in its place


def restore(core: Core, name: str, at: str | None, new_name: str | None, change: Change) -> Restored:
    """Bring a memory's text of a moment back, byte for byte: a deleted one under its name, one that is there in place.

    Without a moment, a deleted memory comes back as it was. What the memory says now stays in the history.
    """
    core.must_be_writable()
    path = path_with_a_past(core, name, gone_first=True)
    with core.vault.lock():
        then, since = _wanted(core, path, at)
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
        if (known := note_at_commit(core, path, at)) is not None:
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


def _taken_since(core: Core, path: str, at: str, now: str) -> Version | None:
    """The change since a moment with which this name went to another memory, or got free for a file of another program."""
    if means_commit(core, at):
        return None  # git tells of names, and follows them by itself
    moment, changes = moment_of(core, at), core.changes.of(path)
    told = _told_of(moment, path) is not None
    since = [version for version in changes if version.number > moment.number and not moment.is_beside(version)]
    for there, before, after in changes[0].effects if changes and changes[0].number > moment.number else ():
        if there == path and after is None and before != now:
            return changes[0]
    if told and not any(moment.is_beside(version) for version in changes):
        return (since or changes)[-1]  # the moment was of an earlier note of this name
    return next((version for version in since if version.op == "create"), None)


# -- everything somebody changed


@dataclass(frozen=True, slots=True)
class _Link:
    """One change of one path. Without a version it was made outside simplemem."""

    version: Version | None
    before: str | None
    after: str | None

    @property
    def id(self) -> str:
        return self.version.id if self.version is not None else ""

    def is_by(self, by: str) -> bool:
        return self.version is not None and is_called(self.version.who, by)


@dataclass(frozen=True, slots=True)
class _Reversal:
    """A path that is to have its old text again, or its old absence. `text` is None when none is needed."""

    path: str
    now: str | None
    then: str | None
    first: str
    groups: frozenset[str]
    text: bytes | None = None
    trash: str | None = None


@dataclass(slots=True)
class _Rollback:
    work: dict[str, _Reversal] = field(default_factory=dict)
    left: dict[str, str] = field(default_factory=dict)  # path -> why
    left_groups: dict[str, str] = field(default_factory=dict)  # operation -> the path because of which it is left
    moves: dict[str, str] = field(default_factory=dict)  # where a note is now -> where it was


def undo_all(
    core: Core, by: str, since: str, change: Change, *, preview: bool, expected: str | None, diff: bool
) -> UndoneMany:
    """Take back all that `by` changed since a date or version. A preview changes nothing; its `plan` may be `expected`."""
    if not by.strip() or not since.strip():
        raise Invalid("who, and since when?", hint="history shows who changed what.")
    if preview:
        plan = _plan(core, by, since)
        return _said(core, by, since, plan, "", diff=diff)
    core.must_be_writable()
    with core.vault.lock():
        plan = _plan(core, by, since)
        shown = _said(core, by, since, plan, "", diff=diff)
        if expected is not None and shown.plan != expected:
            hint = "Look at the preview again."
            raise Conflict("the vault has changed since this was looked at", current_sha256=None, hint=hint)
        wishes = _wishes(plan)
        if not wishes:
            return shown
        reason = change.reason or f"everything by {by} since {since}"
        written = core.vault.carry_out(wishes, replace(change, reason=reason))
        look_again(core, {path for wish in wishes for path in (wish.path, wish.target)})
    return replace(shown, version=written[0].version)


def _plan(core: Core, by: str, since: str) -> _Rollback:
    lines = core.changes.recent(after=moment_of(core, since, start=True).number)[::-1]
    theirs = [version for version in lines if is_called(version.who, by)]
    if not theirs:
        names = dict.fromkeys(version.who for version in reversed(lines) if version.who)
        raise NotFound(f"nothing was changed by {by} since {since}", candidates=list(names)[:10])
    plan = _Rollback()
    for version in theirs:
        if version.new_path is not None:
            plan.moves[version.new_path] = plan.moves.pop(version.path, version.path)
    chains = _chains(lines, {path for version in theirs for path, _, _ in version.effects})
    spelled = {compare_key(entry.path): entry.path for entry in core.vault.scan()}
    for path, chain in sorted(chains.items()):
        _look_at(core, by, path, chain, spelled, plan)
    _leave_what_is_not_allowed(core, plan)
    _leave_whole_operations(plan)
    return plan


def _chains(lines: Iterable[Version], paths: set[str]) -> dict[str, list[_Link]]:
    """The changes of each path in their order, with what must have happened outside in between."""
    chains: dict[str, list[_Link]] = {path: [] for path in paths}
    for version in lines:
        for path, before, after in version.effects:
            if path in paths:
                chain = chains[path]
                if chain and chain[-1].after != before:
                    chain.append(_Link(None, chain[-1].after, before))
                chain.append(_Link(version, before, after))
    return chains


def _look_at(core: Core, by: str, path: str, chain: list[_Link], spelled: dict[str, str], plan: _Rollback) -> None:
    """What is to be done at one path, or why it is left."""
    now = _hash_now(core, path)
    if chain[-1].after != now:
        chain.append(_Link(None, chain[-1].after, now))
    remaining = _what_remains(chain, by)
    first = next((number for number, link in enumerate(remaining) if link.is_by(by)), None)
    if first is None:
        return  # it was taken back already, or is as it was
    tail = remaining[first:]
    groups = frozenset(link.version.group for link in tail if link.version is not None and link.is_by(by))
    then = tail[0].before
    text = text_of(core, then) if then is not None else None
    if why := _why_left(by, tail, path, now, text, spelled, plan):
        _leave(plan, path, why, groups)
        return
    last = tail[-1].version
    trash = last.trash if last is not None and last.after is None and last.before == then else None
    plan.work[path] = _Reversal(path, now, then, tail[0].id, groups, text, trash)


def _why_left(
    by: str,
    tail: Sequence[_Link],
    path: str,
    now: str | None,
    text: bytes | None,
    spelled: dict[str, str],
    plan: _Rollback,
) -> str:
    """Why a path cannot have back what it had before the first of these changes; "" when it can."""
    for link in tail:
        if link.version is None:
            return "changed since outside simplemem"
        if not link.is_by(by):
            return f"changed since by {link.version.who or 'somebody'} ({link.id})"
    if tail[0].before is not None and text is None:
        return GONE
    twin = spelled.get(compare_key(path))
    if now is None and text is not None and twin is not None and plan.moves.get(twin) != path:
        return f"there is another memory called {name_of(twin)}"
    return ""


def _what_remains(chain: Sequence[_Link], by: str) -> list[_Link]:
    """The changes that made what is there now, oldest first.

    What only led back to a text that had been there is passed over: somebody took a change of theirs back, or did it
    again, or they did so themselves. That they took back what somebody else did is a change of theirs.
    """
    states = [chain[0].before, *(link.after for link in chain)]
    places: dict[str | None, list[int]] = {}
    begun = [0]  # for each state: since which one every change was theirs
    for number, state in enumerate(states):
        places.setdefault(state, []).append(number)
        if number:
            begun.append(begun[-1] if chain[number - 1].is_by(by) else number)
    kept: list[_Link] = []
    at = len(chain)
    while at:
        since = begun[at] if chain[at - 1].is_by(by) else 0
        earlier = places[states[at]]
        first = earlier[bisect_left(earlier, since)]
        if first < at:
            at = first
        else:
            kept.append(chain[at - 1])
            at -= 1
    return kept[::-1]


def _leave(plan: _Rollback, path: str, why: str, groups: frozenset[str]) -> None:
    plan.left[path] = why
    for group in groups:
        plan.left_groups.setdefault(group, path)


def _leave_what_is_not_allowed(core: Core, plan: _Rollback) -> None:
    """What the rules of access keep from being changed or deleted here, as any single write would be refused."""
    rules = core.vault.access
    paired = _paired(plan)
    closed = core.changes.touches_hidden({group for work in plan.work.values() for group in work.groups})
    for path, work in list(plan.work.items()):
        why = ""
        if work.groups & closed:
            why = "it was changed together with what may not be changed here"
        elif not rules.may_change(path):
            why = "it may be read here, not changed"
        elif rules.no_delete and work.then is None and path not in paired:
            why = "nothing may be deleted here"
        if why:
            del plan.work[path]
            _leave(plan, path, why, work.groups)


def _leave_whole_operations(plan: _Rollback) -> None:
    """Whatever shares an operation with something that is left is left too, until nothing more follows."""
    while True:
        bound = [(work, group) for work in plan.work.values() for group in work.groups if group in plan.left_groups]
        if not bound:
            return
        for work, group in bound:
            if plan.work.pop(work.path, None) is not None:
                cause = name_of(plan.left_groups[group])
                _leave(plan, work.path, f"{group} changed it together with {cause}", work.groups)


def _wishes(plan: _Rollback) -> list[Wish]:
    paired = _paired(plan)
    wishes = []
    for path, work in sorted(plan.work.items()):
        if path in paired.values():
            continue
        if (old := paired.get(path)) is not None:
            origin = plan.work[old]
            text = None if origin.then == work.now else origin.text
            wishes.append(Wish("undo", path, before=work.now, new_path=old, data=text))
        elif work.then is None:
            wishes.append(Wish("undo", path, before=work.now, gone=True))
        else:
            wishes.append(Wish("undo", path, before=work.now, data=work.text, trash=work.trash))
    return wishes


def _paired(plan: _Rollback) -> dict[str, str]:
    """Notes that can go back where they were as they stand: from where they are now to where they were."""
    return {
        new: old
        for new, old in plan.moves.items()
        if (here := plan.work.get(new)) and here.then is None and (there := plan.work.get(old)) and there.now is None
    }


def _said(core: Core, by: str, since: str, plan: _Rollback, version: str, *, diff: bool) -> UndoneMany:
    paired = _paired(plan)
    notes = []
    for path, work in sorted(plan.work.items()):
        if path in paired.values():
            continue
        old = paired.get(path)
        origin = plan.work[old] if old is not None else work
        shown = _difference(core, path, work.now, origin) if diff else None
        becomes = (
            "moved back" if old else "deleted" if work.then is None else "changed back" if work.now else "brought back"
        )
        new_name = name_of(old) if old else None
        notes.append(UndoneNote(name_of(path), new_name, becomes, work.first, work.now, origin.then, shown))
    left = tuple(LeftAsIs(name_of(path), why) for path, why in sorted(plan.left.items()))
    spelled = repr(sorted((work.path, work.now, work.then) for work in plan.work.values()))
    digest = hashlib.sha256(spelled.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return UndoneMany(by, since, version, tuple(notes), left, digest)


def _difference(core: Core, path: str, now: str | None, origin: _Reversal) -> str:
    here = text_of(core, now, path) or b"" if now is not None else b""
    then = b"" if origin.then is None else here if origin.then == now else origin.text or b""
    return unified_diff(here, then, ("now", f"before {origin.first}"))


def _hash_now(core: Core, path: str) -> str | None:
    if core.entry(path) is None:
        return None
    try:
        return core.vault.read(path).sha256
    except SimplememError:
        return ""


def look_again(core: Core, paths: set[str]) -> None:
    """Index what was just written by hash, still under the lock."""
    for path in paths:
        core.indexed({path}, partial(core.look_at, {path}))
    core.fill_soon()
