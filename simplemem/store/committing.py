"""Commits of what our tools changed, made behind the answers: a write never waits for one, and never fails by one.

Off unless the person's own settings say otherwise. What waits is a small file in `.simplemem/git/queue` for each change,
put there just before it is made and taken away once its commit is in the branch: so whoever dies leaves it to the next.
A thread is begun by the first change that is to be committed; it commits what every process on the vault left waiting.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from simplemem.config import GitSettings
from simplemem.errors import NotFound, SimplememError, Unavailable
from simplemem.note.names import name_of
from simplemem.vault import disk
from simplemem.vault.lock import Leadership
from simplemem.vault.log import number_of
from simplemem.vault.paths import SIDECAR, Beneath
from simplemem.vault.vault import Vault, Version

if TYPE_CHECKING:
    from simplemem.git import Patch

_LOG = logging.getLogger(__name__)
_QUEUE = f"{SIDECAR}/git/queue"
_LOCK_SECONDS = 20.0
_TRIES, _MOMENT = 40, 0.05  # another git at work is over in a moment
_AGAIN = 5.0  # seconds until what had to wait is tried again, doubled each time up to...
_AGAIN_MOST = 300.0
_A_MINUTE = 60.0
_LONGEST_QUIET = 10  # a vault that is never quiet is committed after so many times the quiet that was asked for
_MOST_LISTED, _LONGEST_LINE = 30, 300


def is_in_git(root: Path) -> bool:
    """Whether a repository may be there: cheap enough for every write, and libgit2 is not loaded for it."""
    real = Path(os.path.realpath(root))
    return any(os.path.lexists(folder / ".git") for folder in (real, *real.parents))


class Committing:
    """The commits of one vault. Nothing is imported, started or looked at while it is off."""

    def __init__(self, vault: Vault, settings: GitSettings) -> None:
        self._vault = vault
        self._settings = settings
        self._guard = threading.Condition()
        self._thread: threading.Thread | None = None
        self._due: float | None = None  # when to commit; None: nothing waits
        self._first = 0.0  # when the oldest change that waits was made
        self._again = _AGAIN
        self._ending = False
        self._told: set[str] = set()
        self.said: list[str] = []  # what a person should know: why changes wait, and which are left to them

    @property
    def is_on(self) -> bool:
        return self._settings.commit != "off" and not self._vault.read_only and is_in_git(self._vault.root)

    def writing(self, version: Version) -> None:
        """A write begins: whatever becomes of this process, its commit is wanted once the log has it. What is written down
        tells it from another change that may get its number if it fails."""
        if not self.is_on:
            return
        try:
            with self._beneath() as here:
                here.make(tuple(_QUEUE.split("/")))
                disk.put(here, f"{_QUEUE}/{version.group}", _told_apart(version), sync=False)
        except (OSError, SimplememError) as error:
            self._say(f"a change will not be committed to git: {error}")

    def written(self) -> None:
        """A write is done, and about to be answered."""
        if self.is_on:
            self._want(0.0 if self._settings.commit == "each" else self._settings.quiet_seconds)

    def begin(self) -> None:
        """A server starts: what others left waiting is committed, once it is quiet."""
        if self.is_on and self.waiting():
            self._want(self._settings.quiet_seconds)

    def waiting(self) -> int:
        """How many changes wait for their commit."""
        try:
            return len(self._queue())
        except (OSError, SimplememError):
            return 0

    def state(self) -> dict[str, object]:
        """Whether changes are committed, and how many wait for it."""
        on = self._settings.commit != "off" and not self._vault.read_only
        return {"commit": self._settings.commit, "waiting": self.waiting() if on else 0}

    def close(self, seconds: float) -> None:
        """Commit what waits, taking no longer than so: what is left, the next process takes up."""
        with self._guard:
            self._ending = True
            thread = self._thread
            self._guard.notify_all()
        if thread is not None:
            thread.join(seconds)

    # -- the thread

    def _want(self, seconds: float) -> None:
        now = time.monotonic()
        with self._guard:
            if self._due is None:
                self._first = now
            latest = self._first + _LONGEST_QUIET * self._settings.quiet_seconds
            self._due = min(now + seconds, max(latest, now))
            self._again = _AGAIN
            if self._thread is None and not self._ending:
                self._thread = threading.Thread(target=self._run, name="simplemem-commits", daemon=True)
                self._thread.start()
            self._guard.notify_all()

    def _run(self) -> None:
        self._carefully(self._settle)
        while True:
            with self._guard:
                while not self._ending and (self._due is None or time.monotonic() < self._due):
                    self._guard.wait(None if self._due is None else max(self._due - time.monotonic(), 0.0))
                ending, wanted, self._due = self._ending, self._due is not None, None
            if wanted:
                self._carefully(self._commit_all)
            if ending:
                return

    def _carefully(self, work: Callable[[], None]) -> None:
        try:
            work()
        except (SimplememError, OSError) as error:
            self._wait_on(str(error))
        except Exception:  # noqa: BLE001  (the thread must outlive whatever it meets)
            _LOG.exception("committing failed unexpectedly")

    def _settle(self) -> None:
        """End what a process died over while its commit took its place, at once: its lock holds up the person's git."""
        from simplemem import git

        place = git.find(self._vault.root)
        if place is not None:
            with suppress(SimplememError), _turn(place.git_dir) as held:
                if held:  # else whoever has the turn has seen to it
                    git.settle(self._vault.root)

    def _commit_all(self) -> None:
        from simplemem import git

        place = git.find(self._vault.root)
        if place is None:
            self._done(self._known())
            return
        with _turn(place.git_dir) as held:
            why = self._commit_waiting() if held else ""
        if not held:  # whoever commits just now may have looked before our change was there
            self._try_again()
        elif why:
            self._wait_on(why)
        else:
            self._told.clear()

    def _wait_on(self, why: str) -> None:
        count = self.waiting()
        if count:
            changes = "1 change waits" if count == 1 else f"{count} changes wait"
            self._say(f"{changes} to be committed to git: {why}", about=why)
            self._try_again()

    def _try_again(self) -> None:
        with self._guard:
            if self._due is None:
                self._due, self._first = time.monotonic() + self._again, time.monotonic()
                self._again = min(self._again * 2, _AGAIN_MOST)

    def _say(self, sentence: str, about: str = "") -> None:
        """Say something to the person, once: on the standard error of a command, in the log of a server."""
        if (about or sentence) not in self._told:
            self._told.add(about or sentence)
            self.said.append(sentence)
            _LOG.warning("%s", sentence)

    # -- one round

    def _commit_waiting(self) -> str:
        """Commit what waits; why some of it has to wait on, if it has."""
        from simplemem import git

        groups = self._known()
        gone = self._taken_back(groups)
        why = ""
        for portion in _portions(groups, each=self._settings.commit == "each"):
            versions = [version for group in portion for version in groups[group] if version.id not in gone]
            patches, left = self._patches(versions)
            done = git.Done()
            for tries_left in range(_TRIES, -1, -1) if patches else ():
                try:
                    done = git.commit(self._vault.root, patches, message(versions), _seconds(versions[-1].when))
                    break
                except git.Busy:
                    if not tries_left:
                        raise
                    time.sleep(_MOMENT)
            self._done(group for group in portion if group not in done.held)
            why = why or done.why
            for sentence in (*left, *done.left):
                self._say(f"not committed to git, but left to you: {sentence}")
        return why

    def _patches(self, versions: Sequence[Version]) -> tuple[list[Patch], list[str]]:
        """Changes as patches, in their order. Changes of a note that follow each other without a gap are one."""
        from simplemem.git import Patch

        patches: list[Patch] = []
        latest: dict[str, int] = {}
        ends: list[str | None] = []  # the hash of what each patch left
        left = []
        for version in versions:
            if version.op == "recovered":
                continue
            path, target = version.path, version.new_path or version.path
            try:
                before, after = (self._text_of(version, sha) for sha in (version.before, version.after))
            except NotFound as error:
                left.append(error.message)
                continue
            at = latest.get(path)
            known = patches[at] if at is not None else None
            if at is not None and known and path == target == known.target and ends[at] == version.before:
                patches[at] = replace(known, afters=(*known.afters, after), groups=known.groups | {version.group})
                ends[at] = version.after
                continue
            latest[path] = latest[target] = len(patches)
            patches.append(Patch(path, target, before, (after,), frozenset([version.group])))
            ends.append(version.after)
        return patches, left

    def _text_of(self, version: Version, sha256: str | None) -> bytes | None:
        data = None if sha256 is None else self._vault.history.kept(sha256)
        if data is None and sha256 is not None:
            raise NotFound(f"{version.path!r}: the text of {version.id} is no longer kept.")
        return data

    def _taken_back(self, groups: Mapping[str, list[Version]]) -> set[str]:
        """Those of the changes that wait whose note is again what it was before: by no change of ours, so that whoever
        did it does not want them. Looked at again under the lock, since a change may just be on its way to the log."""
        first = min(map(number_of, groups), default=0)

        def look() -> set[str]:
            return taken_back(self._vault.history.log.since(first), groups.keys(), self._hash_of)

        if not groups or not look():
            return set()
        with self._vault.lock():
            return look()

    def _hash_of(self, path: str) -> str | None:
        """The hash of what lies at a path, None when nothing does, "" when that cannot be told here."""
        if self._vault.access.hides(path):
            return ""
        try:
            return self._vault.read(path).sha256
        except NotFound:
            return None
        except SimplememError:
            return ""

    # -- what waits

    def _known(self) -> dict[str, list[Version]]:
        """The changes that wait, in their order. What was never done, or is not in the log any more, is forgotten."""
        names = self._queue()
        groups: dict[str, list[Version]] = {name: [] for name in names}
        newest = 0
        for version in self._vault.history.log.since(number_of(names[0])) if names else ():
            newest = version.number
            if version.group in groups:
                groups[version.group].append(version)
        known: dict[str, list[Version]] = {}
        gone = []
        for name in names:
            with suppress(FileNotFoundError), self._beneath() as here:
                told, found = disk.read_file(here, f"{_QUEUE}/{name}")
                if groups[name] and told == _told_apart(groups[name][0]):
                    known[name] = groups[name]
                elif number_of(name) <= newest or time.time() - found.st_mtime > _A_MINUTE:
                    gone.append(name)
        self._done(gone)
        return known

    def _queue(self) -> list[str]:
        with self._beneath() as here:
            try:
                names = here.folder(tuple(_QUEUE.split("/"))).names()
            except (FileNotFoundError, NotADirectoryError):
                return []
        return sorted((name for name in names if name[:1] == "v" and name[1:].isdecimal()), key=number_of)

    def _done(self, groups: Iterable[str]) -> None:
        with self._beneath() as here, suppress(FileNotFoundError):
            for group in groups:
                disk.remove(here, f"{_QUEUE}/{group}")

    def _beneath(self) -> Beneath:
        return Beneath(str(self._vault.root))


@contextmanager
def _turn(git_dir: Path) -> Iterator[bool]:
    """Hold a lock of ours in the git directory for a block, so that one process at a time makes commits, of whichever vault
    in the repository; False if somebody else has it for long."""
    if not os.access(git_dir, os.W_OK):
        raise Unavailable(f"The repository cannot be written: {git_dir}.")
    lock = Leadership(git_dir / "simplemem.lock")
    deadline = time.monotonic() + _LOCK_SECONDS
    while not (held := lock.held()) and time.monotonic() < deadline:
        time.sleep(0.02)
    try:
        yield held
    finally:
        lock.resign()


def _told_apart(version: Version) -> bytes:
    return f"{version.when}\n{version.path}\n".encode()


def _seconds(when: str) -> int:
    try:
        return int(datetime.fromisoformat(when).timestamp())
    except (ValueError, OverflowError):
        return int(time.time())


def _portions(groups: Mapping[str, list[Version]], *, each: bool) -> list[list[str]]:
    """Which changes make a commit together: each its own, or all of one actor's, so that each line has one author.

    Where two actors changed the same note their changes stay in order, a commit whenever it is the other's turn.
    """
    if each:
        return [[group] for group in groups]
    owners: dict[str, set[str]] = {}
    for versions in groups.values():
        for version in versions:
            for path in (version.path, version.new_path or version.path):
                owners.setdefault(path, set()).add(version.who)
    mixed = any(len(whose) > 1 for whose in owners.values())
    portions: dict[tuple[str, int], list[str]] = {}
    turn, last = 0, ""
    for group, versions in groups.items():
        who = versions[0].who if versions else ""
        turn += who != last if mixed else 0
        last = who
        portions.setdefault((who, turn), []).append(group)
    return list(portions.values())


def taken_back(changes: Iterable[Version], waiting: Iterable[str], now: Callable[[str], str | None]) -> set[str]:
    """The ids of these changes, the oldest first, whose note then was again what an earlier change of them had found:
    by another program, a person's `git checkout` say. `now` says the hash of what lies at a path.

    What was moved is left out: where a note went, and where from, are two places, and a person may mean either.
    """
    lines: dict[str, list[Version]] = {}
    found: set[str] = set()
    groups = set(waiting)
    for change in changes:
        if change.op == "recovered":
            continue
        line = lines.setdefault(change.path, [])
        _cut(line, change.before, found)
        if change.new_path is not None:
            line.clear()
            lines.pop(change.new_path, None)
        elif change.group in groups:
            line.append(change)
        else:
            line.clear()  # in git already, or not ours to commit
    for path, line in lines.items():
        if line:
            _cut(line, now(path), found)
    return found


def _cut(line: list[Version], there: str | None, found: set[str]) -> None:
    """Take from the end of a line of changes what is not there any more, once `there` is what the note is next."""
    if not line or line[-1].after == there:
        return
    at = next((k for k in reversed(range(len(line))) if line[k].before == there), None)
    if at is not None:
        found.update(change.id for change in line[at:])
        del line[at:]
    else:
        line.clear()  # somebody wrote on: theirs and ours are told apart by the commit


# -- what a commit says


def message(versions: Sequence[Version]) -> str:
    """What was done, and as trailers who asked, by which tool, and why. It comes from agents and from names of notes: it is
    cut, and nothing in it can pass for a line of its own."""
    did = list(dict.fromkeys(map(_did, versions)))
    notes = {version.new_path or version.path for version in versions}
    paragraphs = [f"simplemem: {_line(did[0], 100) if len(did) == 1 else f'{len(notes)} notes changed'}"]
    if len(did) > 1:
        more = [f"- and {len(did) - _MOST_LISTED} more"] if len(did) > _MOST_LISTED else []
        paragraphs.append("\n".join([*(f"- {_line(each)}" for each in did[:_MOST_LISTED]), *more]))
    trailers: list[str] = []
    for key, values in (
        ("Actor", [version.who for version in versions]),
        ("Tool", [version.tool for version in versions]),
        ("Reason", [version.reason for version in versions]),
        ("Version", [version.group for version in versions]),
    ):
        shown = [line for line in dict.fromkeys(map(_line, values)) if line]
        trailers += [f"Simplemem-{key}: {line}" for line in shown[:_MOST_LISTED]]
    return "\n\n".join([*paragraphs, "\n".join(trailers)]) + "\n"


def _did(version: Version) -> str:
    to = f" to {name_of(version.new_path)}" if version.new_path and version.new_path != version.path else ""
    return f"{version.op} {name_of(version.path)}{to}"


def _line(text: str, most: int = _LONGEST_LINE) -> str:
    """One line of printable text: what could hold two lines could hold a trailer of somebody else's."""
    words = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return words if len(words) <= most else words[: most - 1] + "…"
