"""Taking back everything that somebody changed since a moment, as one step: first looked at, then done.

Path by path: what stood there before the first of these changes, if nobody else has changed it since. What somebody else
has changed since is left as it is and named, and with it the whole of every operation it was part of: an operation is
taken back as a whole or not at all, so that no move loses a note and no link its end. Nothing is merged.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from simplemem.errors import Conflict, Invalid, NotFound, SimplememError
from simplemem.memory import LeftAsIs, UndoneMany, UndoneNote
from simplemem.note.authors import is_called
from simplemem.note.diff import unified_diff
from simplemem.note.names import compare_key, name_of
from simplemem.store.core import Core
from simplemem.store.past import Which, changes, look_again
from simplemem.store.then import GONE, text_of
from simplemem.vault.log import Version
from simplemem.vault.vault import Change, Wish


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
class _Work:
    """A path that is to have its old text again, or its old absence. `text` is None when none is needed."""

    path: str
    now: str | None
    then: str | None
    first: str
    groups: frozenset[str]
    text: bytes | None = None
    trash: str | None = None


@dataclass(slots=True)
class _Plan:
    work: dict[str, _Work] = field(default_factory=dict)
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


def _plan(core: Core, by: str, since: str) -> _Plan:
    lines = list(changes(core, None, Which(since=since)))[::-1]
    theirs = [version for version in lines if is_called(version.who, by)]
    if not theirs:
        names = dict.fromkeys(version.who for version in reversed(lines) if version.who)
        raise NotFound(f"nothing was changed by {by} since {since}", candidates=list(names)[:10])
    plan = _Plan()
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


def _look_at(core: Core, by: str, path: str, chain: list[_Link], spelled: dict[str, str], plan: _Plan) -> None:
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
    plan.work[path] = _Work(path, now, then, tail[0].id, groups, text, trash)


def _why_left(
    by: str, tail: Sequence[_Link], path: str, now: str | None, text: bytes | None, spelled: dict[str, str], plan: _Plan
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


def _leave(plan: _Plan, path: str, why: str, groups: frozenset[str]) -> None:
    plan.left[path] = why
    for group in groups:
        plan.left_groups.setdefault(group, path)


def _leave_what_is_not_allowed(core: Core, plan: _Plan) -> None:
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


def _leave_whole_operations(plan: _Plan) -> None:
    """Whatever shares an operation with something that is left is left too, until nothing more follows."""
    while True:
        bound = [(work, group) for work in plan.work.values() for group in work.groups if group in plan.left_groups]
        if not bound:
            return
        for work, group in bound:
            if plan.work.pop(work.path, None) is not None:
                cause = name_of(plan.left_groups[group])
                _leave(plan, work.path, f"{group} changed it together with {cause}", work.groups)


def _wishes(plan: _Plan) -> list[Wish]:
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


def _paired(plan: _Plan) -> dict[str, str]:
    """Notes that can go back where they were as they stand: from where they are now to where they were."""
    return {
        new: old
        for new, old in plan.moves.items()
        if (here := plan.work.get(new)) and here.then is None and (there := plan.work.get(old)) and there.now is None
    }


def _said(core: Core, by: str, since: str, plan: _Plan, version: str, *, diff: bool) -> UndoneMany:
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


def _difference(core: Core, path: str, now: str | None, origin: _Work) -> str:
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
