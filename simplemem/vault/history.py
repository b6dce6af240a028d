"""Earlier versions: the log of every change we made, and the texts before and after it.

Beside the log, `.simplemem/history/` has `objects/ab/<sha256>`, texts nobody else has a name for, and `displaced/`, which
holds for a day the very files a write took the place of: an editor that still has one open may yet save into it, and then
its text becomes a version too (durability.md F20). Nothing here touches a note.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime, timedelta

from simplemem.errors import NotFound
from simplemem.vault import disk
from simplemem.vault.disk import entry_at, sha256
from simplemem.vault.log import Kind, Log, Version, last_before, versions_in
from simplemem.vault.paths import READ, SIDECAR, Beneath, parent

DISPLACED = f"{SIDECAR}/history/displaced"
OBJECTS = f"{SIDECAR}/history/objects"
OWN_TRASH = f"{SIDECAR}/trash"
_THINNED = f"{SIDECAR}/history/thinned"
_A_DAY = 86_400.0
_A_WHILE_NS = 2_000_000_000  # the coarsest clock of a file system


class History:
    """The log and its texts. Reading needs no lock; whoever appends holds the vault's."""

    def __init__(
        self,
        root: str,
        lock: Callable[[], AbstractContextManager[None]],
        *,
        keep_days: int,
        keep_mb: int,
        kind: Kind = "agent",
    ) -> None:
        self.log = Log(root, kind=kind)
        # Where notes are hidden: whether a text is not only theirs.
        self.may_tell: Callable[[str], bool] = lambda _sha: True
        self.given = set[str]()  # texts that no change has written, kept for whoever is asking here
        self._root = root
        self._lock = lock
        self._keep_days = keep_days
        self._keep_bytes = keep_mb * 1_000_000
        self._kept = 0  # bytes, since it was thinned last

    def content(self, sha: str) -> bytes | None:
        """The text with this hash, or None when it is not kept (any more), or was a hidden note's alone."""
        return self.kept(sha) if sha in self.given or self.may_tell(sha) else None

    def kept(self, sha: str) -> bytes | None:
        """The text with this hash, a hidden note's too: for what is shown to nobody. What is damaged is not given out."""
        if len(sha) != 64 or not sha.isascii() or not sha.isalnum():
            return None
        with Beneath(self._root) as here:
            for place in self._places(here, sha):
                with suppress(FileNotFoundError, NotADirectoryError):
                    data, _ = disk.read_file(here, place)
                    if sha256(data) == sha:
                        return data
        return None

    def content_like(self, beginning: str) -> bytes | None:
        """The text whose hash begins so, at least twelve digits of it; None when none does, or more than one."""
        if len(beginning) >= 64:
            return self.content(beginning)
        if len(beginning) < 12 or not beginning.isascii() or not beginning.isalnum():
            return None
        with Beneath(self._root) as here:
            names = [name for name in here.names(f"{OBJECTS}/{beginning[:2]}") if name.startswith(beginning)]
        return self.content(names[0]) if len(names) == 1 else None

    def _places(self, here: Beneath, sha: str) -> Iterator[str]:
        """Where a text may lie. The displaced files are listed only when it is not where it should be."""
        yield _place_of(sha)
        yield from (f"{DISPLACED}/{name}" for name in here.names(DISPLACED) if name.endswith(sha))

    # Writing, under the vault's lock

    def keep(self, here: Beneath, data: bytes, sha: str) -> None:
        """Keep a text under its hash, in a file of its own. One that is there already and whole is left alone."""
        path = _place_of(sha)
        with suppress(FileNotFoundError):
            if disk.hash_of(here, path) == sha:
                return
        here.make(parent(path))
        # No sync of its own: until the kernel has written it, the displaced file or the trash holds the same text.
        disk.put(here, path, data, sync=False)
        self._kept += len(data)

    def set_aside(self, here: Beneath, temp: str, version: str, sha: str) -> None:
        """Take a file that may be open in some editor out of the vault, watched for a day for a late save."""
        here.make(tuple(DISPLACED.split("/")))
        with suppress(FileNotFoundError):  # it is set aside already: a recovery was interrupted after this step
            disk.carry(here, temp, _displaced(version, sha))

    def rescue(self, here: Beneath, temp: str, path: str, reason: str) -> None:
        """Keep whatever a stray file of ours holds. A text found nowhere else becomes a version; then it is set aside."""
        data, found = disk.read_file(here, temp)
        if not data or found.st_nlink > 1:
            return disk.remove(here, temp)
        sha = sha256(data)
        version = self._recovered(here, path, data, sha, reason)
        return self.set_aside(here, temp, version.id if version else "stray", sha)

    def _recovered(self, here: Beneath, path: str, data: bytes, sha: str, reason: str) -> Version | None:
        """Make a text that was found a version, unless it is kept."""
        if self.kept(sha) is not None:
            return None
        self.keep(here, data, sha)
        step = {"path": path, "op": "recovered", "after": sha}
        versions = self.log.stamp([step], first=self.log.next_number(), tool="recover", who="", reason=reason)
        self.log.append(here, versions)
        return versions[0]

    def sweep(self, here: Beneath, strays: Sequence[str]) -> int:
        """Clear away staged files whose writer is gone: how many. A text that exists nowhere else becomes a version."""
        cleared = 0
        for path in strays:
            with suppress(FileNotFoundError):
                if not is_in_use(here, path):
                    self.rescue(here, path, path, "found in a file that an interrupted write left")
                    cleared += 1
            here.rest()
        return cleared

    def settle(self, seconds: float = _A_DAY, *, thorough: bool = False) -> list[Version]:
        """Look at the displaced files: a late save becomes a version; what has rested for `seconds` is dropped."""
        saved: list[Version] = []
        with self._lock(), Beneath(self._root) as here:
            for name in here.names(DISPLACED):
                path, sha = f"{DISPLACED}/{name}", name.rpartition("-")[2]
                with suppress(FileNotFoundError):
                    found = here.stat(path)
                    is_old = abs(time.time() - found.st_ctime) > seconds
                    # It was put here after it was last written: no late save. One that set the time back is found when
                    # the history is thinned, which reads them all.
                    rests = found.st_nlink == 1 and found.st_ctime_ns - found.st_mtime_ns > _A_WHILE_NS
                    if rests and not is_old and not thorough:
                        continue
                    data, _ = disk.read_file(here, path)
                    if found.st_nlink > 1:  # another name elsewhere holds it: nothing can be lost
                        disk.remove(here, path)
                    elif sha256(data) != sha:
                        saved += filter(None, [self._late_save(here, path, name.partition("-")[0], data)])
                    elif is_old:
                        self.keep(here, data, sha)  # a power cut may have cost the text that was kept then
                        disk.remove(here, path)
        return saved

    def _late_save(self, here: Beneath, path: str, version: str, data: bytes) -> Version | None:
        note, sha = path, sha256(data)
        with suppress(NotFound):
            known = self.log.find(version)
            note = known.new_path or known.path
        reason = "saved by another program into the version that a write had just replaced"
        kept = self._recovered(here, note, data, sha, reason) if data else None
        disk.rename_over(here, path, _displaced(version, sha))
        return kept

    # Thinning

    def is_full(self) -> bool:
        """Whether it is time to thin: that was hours ago or never, or much was kept since."""
        with Beneath(self._root) as here:
            last = entry_at(here, _THINNED)
        if last is None:
            return self.log.size() > 0
        return self._kept * 20 > self._keep_bytes or abs(time.time() - last.mtime_ns / 1e9) > _A_DAY / 4

    def thin(self) -> list[str]:
        """Drop texts beyond the days and megabytes that are kept, oldest first; the hashes that went, newest first.

        Age is counted back from the newest change, not from the clock, and in the order of the log: a vault that rested for
        a year loses nothing, and a clock that was wrong for a day does not either. It may be stopped at any point and begun
        again. The log itself stays: what was done remains known.
        """
        with self._lock(), Beneath(self._root) as here:
            self.settle(thorough=True)
            times: list[tuple[int, str]] = []  # number and time of each change, oldest first
            last_use: dict[str, int] = {}  # of each text, the last change it was part of
            newest: list[Version] = []  # the last operation
            deleted: list[Version] = []
            for version in versions_in(self.log.whole_lines()):
                times.append((version.number, version.when))
                if newest and newest[0].group != version.group:
                    newest = []
                newest.append(version)
                last_use |= {sha: version.number for sha in (version.before, version.after) if sha}
                deleted += [version] if version.trash else []
            edge = _edge(times, self._keep_days)
            cut = last_before(reversed(times), edge) if edge is not None else 0
            needed = {version.before for version in newest}
            dropped, total = list[str](), 0
            for used, sha, size in sorted(_texts(here, last_use), reverse=True):
                total += size
                if used <= cut or (total > self._keep_bytes and sha not in needed):
                    dropped.append(sha)
            # The trash goes first: should this stop here, the text still tells the next time that there is something to do.
            gone = set(dropped)
            for version in deleted:
                if version.before in gone or version.number <= cut:
                    _empty(here, version)
            for sha in dropped:
                disk.remove(here, _place_of(sha))
            here.make(parent(_THINNED))
            disk.put(here, _THINNED, str(self.log.size()).encode(), sync=False)
            self._kept = 0
            return dropped


def is_in_use(here: Beneath, path: str) -> bool:
    """Whether the writer of a staged file is still at it."""
    if os.name == "nt":
        match = disk.TEMP.fullmatch(path.rpartition("/")[2])
        return match is not None and disk.is_alive(int(match[1]))
    try:
        with here.opened(path, READ) as fd:
            return not disk.try_lock(fd)
    except OSError:
        return False


def _edge(times: Sequence[tuple[int, str]], keep_days: int) -> str | None:
    """The moment before which texts are too old. Of the last three days with changes the one in the middle is believed,
    so that one day under a wrong clock moves nothing."""
    days = list(dict.fromkeys(when[:10] for _, when in reversed(times)))[:3]
    try:
        newest = datetime.fromisoformat(sorted(days)[(len(days) - 1) // 2]).replace(tzinfo=UTC)
        edge = min(newest + timedelta(days=1), datetime.now(UTC)) - timedelta(days=keep_days)
    except (IndexError, ValueError, OverflowError):
        return None
    return edge.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _texts(here: Beneath, last_use: dict[str, int]) -> Iterator[tuple[int, str, int]]:
    """The texts that are kept: number of their last use, hash, size. One that no change names may be needed by whoever put
    it there a moment ago; after a day it is as old as can be."""
    for drawer in here.names(OBJECTS):
        for name in here.names(f"{OBJECTS}/{drawer}"):
            path = f"{OBJECTS}/{drawer}/{name}"
            if disk.TEMP.fullmatch(name):
                disk.remove(here, path)
            elif len(name) == 64:
                found = here.stat(path)
                is_new = abs(time.time() - found.st_mtime) <= _A_DAY
                yield last_use.get(name, 1 << 60 if is_new else -1), name, found.st_size


def _empty(here: Beneath, version: Version) -> None:
    """Take a deleted file out of our trash, if it is still what was deleted. Obsidian's own trash is not ours to empty."""
    trash = version.trash or ""
    if trash.startswith(f"{OWN_TRASH}/"):
        with suppress(FileNotFoundError):
            if disk.hash_of(here, trash) == version.before:
                disk.remove(here, trash)
                here.prune(parent(trash), keep=2)


def _place_of(sha: str) -> str:
    return f"{OBJECTS}/{sha[:2]}/{sha}"


def _displaced(version: str, sha: str) -> str:
    return f"{DISPLACED}/{version}-{secrets.token_hex(3)}-{sha}"
