"""How a write goes: wishes are checked, staged, carried out together, and answered (durability.md §3).

A wish says what one note shall become. Everything that changes a note is a list of them, all carried out or none, under
the vault's lock. Nothing here knows where a wish comes from, or what a note means.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, Literal, NamedTuple

from simplemem.errors import AlreadyExists, Conflict, Invalid, NotFound, ReadOnly, TooLong
from simplemem.note.diff import WHAT_YOU_HAD, WHAT_YOU_WANT, unified_diff
from simplemem.note.names import compare_key
from simplemem.vault import disk
from simplemem.vault.disk import Backing, Intruded, sha256
from simplemem.vault.history import History
from simplemem.vault.journal import OBSIDIAN_TRASH, OWN_TRASH, Journal, Step
from simplemem.vault.log import Op, Version
from simplemem.vault.paths import Beneath, check_path, is_path, parent
from simplemem.vault.scan import Entry, entry_at
from simplemem.vault.trouble import telling


@dataclass(frozen=True, slots=True)
class Change:
    """Who asks for a write, and why: kept in the history."""

    tool: str
    who: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Written:
    """What a write did to one note. `changed` is False when it had been done already."""

    path: str
    sha256: str | None
    previous_sha256: str | None
    version: str
    entry: Entry | None
    changed: bool


@dataclass(frozen=True, slots=True)
class Wish:
    """What one note shall become. Without `before` it must not exist; without `data` it keeps its text."""

    op: Op
    path: str
    before: str | None = None
    new_path: str | None = None
    data: bytes | None = None
    gone: bool = False
    trash: str | None = None  # the file in the trash that comes back
    after: str | None = field(init=False)  # the hash of its bytes afterwards

    def __post_init__(self) -> None:
        after = None if self.gone else sha256(self.data) if self.data is not None else self.before
        object.__setattr__(self, "after", after)

    @property
    def target(self) -> str:
        """Where the note is afterwards."""
        return self.path if self.new_path is None else self.new_path


class _There(NamedTuple):
    """What lies at the path of a wish."""

    data: bytes
    sha256: str
    writable: bool


class Writer:
    """Carries out wishes in one vault."""

    def __init__(
        self,
        root: str,
        lock: Callable[[], AbstractContextManager[None]],
        history: History,
        journal: Journal,
        *,
        backing: Backing,
        durable: bool,
        max_bytes: int,
        trash: Literal["own", "obsidian"],
    ) -> None:
        self._root = root
        self._lock = lock
        self._history = history
        self._journal = journal
        self._backing = backing
        self._durable = durable
        self._max_bytes = max_bytes
        self._trash = trash
        self.on_writing: Callable[[Version], None] | None = None  # told what is about to be logged, under the lock

    def carry_out(self, wishes: Sequence[Wish], change: Change) -> list[Written]:
        """All of it or nothing; the answers in the order of the wishes."""
        self._check(wishes)
        doing, path = wishes[0].op, wishes[0].path
        with (
            Beneath(self._root, by_path=self._backing.by_path) as here,
            telling(doing, path, writing=True),
        ):
            if len(wishes) > 1:
                with self._lock():
                    return self._under_lock(here, wishes, change, {})
            # One note: its text is written and synced before the lock is asked for, so that others need not wait.
            there = self._there(here, wishes[0])
            if self._is_done(here, wishes[0], there):
                return self._repeated(here, wishes)
            self._current(here, wishes[0], there)
            with self._staged(here, wishes[0]) as staged, self._lock():
                return self._under_lock(here, wishes, change, staged)

    def _under_lock(
        self, here: Beneath, wishes: Sequence[Wish], change: Change, staged: dict[str, str]
    ) -> list[Written]:
        self._journal.resume(here)
        first = self._there(here, wishes[0])
        if self._is_done(here, wishes[0], first) and all(
            self._is_done(here, wish, self._there(here, wish)) for wish in wishes[1:]
        ):
            return self._repeated(here, wishes)
        for number, wish in enumerate(wishes):
            there = self._current(here, wish, first if number == 0 else self._there(here, wish))
            if there is not None:  # of a move too: where it goes, another program may change it unseen
                self._history.keep(here, there.data, there.sha256)
        listed: Listed = {}
        for wish in wishes:
            self._check_free(here, wish, listed)
            if wish.data is not None:
                self._history.keep(here, wish.data, wish.after or "")
        versions = self._versions(here, wishes, change)
        self._stage_all(here, wishes, staged)
        if self.on_writing is not None:
            self.on_writing(versions[0])
        # From here on the journal answers for what is staged.
        steps = [
            Step(version, staged.pop(wish.path, wish.trash)) for wish, version in zip(wishes, versions, strict=True)
        ]
        try:
            self._journal.perform(here, steps)
        except Intruded as event:
            wish = next(wish for wish in wishes if event.path in (wish.path, wish.new_path))
            raise self._conflict(here, wish) from event
        except FileExistsError as error:
            raise _exists(wishes[0].target) from error
        return [
            Written(wish.target, wish.after, wish.before, step.version.id, entry_at(here, wish.target), True)
            for wish, step in zip(wishes, steps, strict=True)
        ]

    # Checks

    def _check(self, wishes: Sequence[Wish]) -> None:
        seen: set[str] = set()
        for wish in wishes:
            for path in {wish.path, wish.target}:
                check_path(path)
                if path in seen:
                    raise Invalid(f"{path!r} is changed twice in one operation.")
                seen.add(path)
            if wish.data is not None and len(wish.data) > self._max_bytes:
                much = f"{len(wish.data):,} bytes for {wish.path!r}"
                raise TooLong(f"{much}; at most {self._max_bytes:,} are written.")

    def _there(self, here: Beneath, wish: Wish) -> _There | None:
        try:
            data, found = disk.read_file(here, wish.path, self._max_bytes)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return _There(data, sha256(data), bool(found.st_mode & 0o222))

    def _is_done(self, here: Beneath, wish: Wish, there: _There | None) -> bool:
        """A repeated write that has happened is success: the answer to the first may have been lost (F66)."""
        if wish.new_path is None and not wish.gone:
            return there is not None and there.sha256 == wish.after
        if there is not None or _hash(here, wish.target) != wish.after:
            return False
        asked = (wish.path, wish.new_path, wish.before, wish.after)
        last = next(self._history.log.of(wish.path), None)
        return last is not None and (last.path, last.new_path, last.before, last.after) == asked

    def _current(self, here: Beneath, wish: Wish, there: _There | None) -> _There | None:
        """What lies there, if it is what the wish expects."""
        if there is None and wish.before is None:
            return None
        if there is None:
            with suppress(FileNotFoundError):
                disk.look(here, wish.path)  # a link or a file where a folder should be is told as such
            raise self._conflict(here, wish) if wish.op == "undo" else no_such(wish.path)
        if wish.before is None:
            raise self._conflict(here, wish) if wish.op == "undo" else _exists(wish.path)
        if there.sha256 != wish.before:
            raise self._conflict(here, wish)
        if wish.data is not None and not there.writable:
            raise ReadOnly(f"{wish.path!r} is write-protected.", hint="Allow writing to the file first.")
        return there

    def _check_free(self, here: Beneath, wish: Wish, listed: Listed) -> None:
        """obsidian.md §5: unique without regard to case and to how accents are spelled."""
        if wish.before is not None and wish.new_path is None:
            return
        for twin in _spellings(here, wish.target, listed):
            respelled = twin == wish.path and wish.new_path is not None
            if not respelled and not self._were_both_there(wish, twin):
                raise _exists(twin)

    def _were_both_there(self, wish: Wish, twin: str) -> bool:
        """Whether a move is undone that parted two such names: what was there before us may be there again."""
        if wish.op != "undo" or wish.new_path is None or twin == wish.new_path:
            return False
        log = self._history.log
        parted = next((version.number for version in log.of(wish.path)), 0)
        since = takewhile(lambda version: version.number > parted, log.of(twin))
        return not any(version.before is None or version.new_path == twin for version in since)

    def _conflict(self, here: Beneath, wish: Wish) -> Conflict:
        path = wish.path
        try:
            data, _ = disk.read_file(here, path)
        except FileNotFoundError:
            hint = "Look for it under another name, or create it anew."
            return Conflict(f"{path!r} was deleted or moved meanwhile.", current_sha256=None, hint=hint, path=path)
        had = self._history.content(wish.before) if wish.before else None
        diff = unified_diff(wish.data, data, WHAT_YOU_WANT) if had is None else unified_diff(had, data, WHAT_YOU_HAD)
        hint = "Read what is there now, and apply your change to that."
        message = f"{path!r} has changed since." if wish.before else f"{path!r} is there again."
        return Conflict(message, current_sha256=sha256(data), diff=diff, hint=hint, path=path)

    # Staging

    @contextmanager
    def _staged(self, here: Beneath, wish: Wish) -> Iterator[dict[str, str]]:
        """The staged file of a single wish. What is left in the dict afterwards was never in place and is dropped."""
        staged: dict[str, str] = {}
        fd = -1
        if wish.data is not None and wish.trash is None:
            staged[wish.path], fd = self._stage(here, wish, wish.data, hold=True)
        try:
            yield staged
        finally:
            if fd >= 0:
                os.close(fd)
            for temp in staged.values():
                disk.remove(here, temp)

    def _stage_all(self, here: Beneath, wishes: Sequence[Wish], staged: dict[str, str]) -> None:
        try:
            for wish in wishes:
                if wish.data is not None and wish.path not in staged and not _comes_back(here, wish):
                    # Under the lock nobody sweeps, so nothing is held open: there may be thousands.
                    staged[wish.path], _ = self._stage(here, wish, wish.data, hold=False)
            if self._durable and len(wishes) > 1:
                disk.sync_paths(here, list(staged.values()))
        except BaseException:
            while staged:
                disk.remove(here, staged.popitem()[1])
            raise

    def _stage(self, here: Beneath, wish: Wish, data: bytes, *, hold: bool) -> tuple[str, int]:
        folder = parent(wish.target)
        # Folders are made when the change is carried out, not before: it may yet fail.
        folder = folder[: len(folder) - len(here.missing(folder))]
        return disk.stage(
            here,
            folder,
            data,
            like=wish.path if wish.before is not None else None,
            sync=self._durable and hold,
            hold=hold,
        )

    # What is said about it

    def _versions(self, here: Beneath, wishes: Sequence[Wish], change: Change) -> list[Version]:
        number = self._history.log.next_number(here)
        steps: list[dict[str, Any]] = []
        for wish in wishes:
            step = {"path": wish.path, "new_path": wish.new_path, "op": wish.op}
            step |= {"before": wish.before, "after": wish.after}
            if wish.gone:
                step["trash"] = self._trash_place(here, wish.path, f"v{number:06d}")
            steps.append(step)
        return self._history.log.stamp(steps, first=number, tool=change.tool, who=change.who, reason=change.reason)

    def _trash_place(self, here: Beneath, path: str, version: str) -> str:
        """Where a deleted file goes: ours keeps versions apart, Obsidian's numbers what clashes (obsidian.md §5)."""
        if self._trash == "own":
            stem, end, first = f"{OWN_TRASH}/{version}-", f"/{path}", f"{OWN_TRASH}/{version}/{path}"
        else:
            first = f"{OBSIDIAN_TRASH}/{path}"
            cut = first.rindex(".") if "." in path.rpartition("/")[2] else len(first)
            stem, end = first[:cut] + " ", first[cut:]
        place, number = first, 1
        while entry_at(here, place) is not None:
            number += 1
            place = f"{stem}{number}{end}"
        return place

    def _repeated(self, here: Beneath, wishes: Sequence[Wish]) -> list[Written]:
        answers = []
        for wish in wishes:
            last = next(self._history.log.of(wish.target), None)
            version = last.id if last is not None and last.after == wish.after else ""
            entry = entry_at(here, wish.target)
            answers.append(Written(wish.target, wish.after, wish.after, version, entry, changed=False))
        return answers


def no_such(path: str) -> NotFound:
    """The error for a path where nothing is."""
    return NotFound(f"There is no {path!r} in the vault.")


def _exists(path: str) -> AlreadyExists:
    hint = "Choose another name, or change the one there is."
    return AlreadyExists(f"{path!r} is there already.", hint=hint, path=path)


def _hash(here: Beneath, path: str) -> str | None:
    try:
        return disk.hash_of(here, path)
    except NotADirectoryError:
        return None


def _comes_back(here: Beneath, wish: Wish) -> bool:
    """Whether the file itself can come back from the trash, with its dates and attributes."""
    return wish.trash is not None and _hash(here, wish.trash) == wish.after


class _Names:
    """What lies in a folder, asked for by what names are compared by. The first time all are looked at, since a folder may
    have many thousand and most steps ask once; then each lies under its key: a step may make a thousand notes in one."""

    def __init__(self, names: list[str]) -> None:
        self._names = names
        self._asked = False
        self._by_key: dict[str, list[str]] = {}

    def like(self, key: str) -> Sequence[str]:
        if not self._asked:
            self._asked = True
            together = f"/{'/'.join(self._names)}/"
            if together.isascii() and f"/{key}/" not in together.lower():
                return ()
            return [name for name in self._names if compare_key(name) == key]
        if not self._by_key:
            for name in self._names:
                self._by_key.setdefault(compare_key(name), []).append(name)
        return self._by_key.get(key, ())


Listed = dict[str, _Names]
"""Folders that were looked into."""


def _spellings(here: Beneath, path: str, listed: Listed) -> list[str]:
    """The paths there are that differ from this one in nothing but case and composition, or in nothing."""
    found = [""]
    parts = check_path(path)
    for depth, part in enumerate(parts):
        key, deeper = compare_key(part), []
        ending = "/" if depth < len(parts) - 1 else ""
        for prefix in found:
            there = listed.get(prefix)
            if there is None:
                names: list[str] = []
                with suppress(FileNotFoundError, NotADirectoryError):
                    names = here.folder(tuple(prefix.split("/")[:-1])).names()
                there = listed[prefix] = _Names(names)
            deeper += [f"{prefix}{name}{ending}" for name in there.like(key) if is_path(name)]
        found = deeper
    return found
