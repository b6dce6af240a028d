"""Earlier versions: the log of every change we made, and the texts before and after it.

Beside the log, `.simplemem/history/` has `objects/ab/<sha256>`, texts nobody else has a name for, and `displaced/`, which
holds for a day the very files a write took the place of: an editor that still has one open may yet save into it, and then
its text becomes a version too (durability.md F20). Nothing here touches a note.
"""

from __future__ import annotations

import errno
import os
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from simplemem.errors import NotFound
from simplemem.vault import disk, kernel
from simplemem.vault.disk import sha256
from simplemem.vault.log import Kind, Log, Version, last_before, versions_in
from simplemem.vault.paths import READ, SIDECAR, Beneath, parent

__all__ = ["DISPLACED", "History", "Version"]

DISPLACED = f"{SIDECAR}/history/displaced"
THINNED = f"{SIDECAR}/history/thinned"
OBJECTS = f"{SIDECAR}/history/objects"
TRASH = f"{SIDECAR}/trash"
_NEWEST = 1 << 60
_A_DAY = 86_400.0
_A_WHILE_NS = 2_000_000_000  # the coarsest clock of a file system
_GROWN = 16_384  # bytes of the log: some fifty changes


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
        self.may_tell: Callable[[str], bool] = lambda _sha: (
            True
        )  # where notes are hidden: whether a text is not only theirs
        self._given = set[str]()  # texts that no change has written, kept for whoever is asking here
        self._root = root
        self._lock = lock
        self._keep_days = keep_days
        self._keep_bytes = keep_mb * 1_000_000
        self._kept = 0  # bytes, since it was thinned last

    def content(self, sha: str) -> bytes | None:
        """The text with this hash, or None when it is not kept (any more), or was a hidden note's alone."""
        return self.kept(sha) if sha in self._given or self.may_tell(sha) else None

    def kept(self, sha: str) -> bytes | None:
        """The text with this hash, a hidden note's too: for what is shown to nobody. What is damaged is not given out."""
        if len(sha) != 64 or not sha.isascii() or not sha.isalnum():
            return None
        with self._beneath() as here:
            for place in self._places(here, sha):
                try:
                    data, _ = disk.read_file(here, place)
                except OSError as error:
                    if error.errno not in (errno.ENOENT, errno.ENOTDIR):
                        raise
                else:
                    if sha256(data) == sha:
                        return data
        return None

    def content_like(self, beginning: str) -> bytes | None:
        """The text whose hash begins so, at least twelve digits of it; None when none does, or more than one."""
        if len(beginning) >= 64:
            return self.content(beginning)
        if len(beginning) < 12 or not beginning.isascii() or not beginning.isalnum():
            return None
        with self._beneath() as here:
            drawer = parent(_place_of(beginning))
            names = [name for name in _names_in(here, "/".join(drawer)) if name.startswith(beginning)]
        return self.content(names[0]) if len(names) == 1 else None

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

    def keep_for_asker(self, here: Beneath, data: bytes) -> None:
        """Keep a text that no change has written, so that whoever opened this can read it by its hash."""
        sha = sha256(data)
        self.keep(here, data, sha)
        self._given.add(sha)

    def set_aside(self, here: Beneath, temp: str, version: str, sha: str) -> None:
        """Take a file that may be open in some editor out of the vault, watched for a day for a late save."""
        here.make(tuple(DISPLACED.split("/")))
        target = f"{DISPLACED}/{version}-{secrets.token_hex(3)}-{sha}"
        try:
            disk.carry(here, temp, target)
        except FileNotFoundError:
            return  # it is set aside already: a recovery was interrupted after this step

    def rescue(self, here: Beneath, temp: str, path: str, reason: str) -> Version | None:
        """Keep whatever a stray file of ours holds. A text found nowhere else becomes a version; then it is set aside."""
        data, found = disk.read_file(here, temp)
        sha, version = sha256(data), None
        if data and found.st_nlink == 1 and self.kept(sha) is None:
            self.keep(here, data, sha)
            version = self._found(here, path, sha, reason)
        if data and found.st_nlink == 1:
            self.set_aside(here, temp, version.id if version else "stray", sha)
        else:
            disk.remove(here, temp)
        return version

    def sweep(self, here: Beneath, strays: Sequence[str]) -> list[str]:
        """Clear away staged files whose writer is gone. A text that exists nowhere else is kept as a version."""
        said = []
        for path in strays:
            with suppress(FileNotFoundError):
                if _in_use(here, path):
                    continue
                kept = self.rescue(here, path, path, "found in a file that an interrupted write left")
                what = f"kept what it held as version {kept.id}" if kept else "it held nothing new"
                said.append(f"Cleared away {path!r}, left by an interrupted write: {what}.")
            here.rest()
        return said

    def settle(self, seconds: float = _A_DAY) -> list[Version]:
        """Look at the displaced files: a late save becomes a version; what has rested for `seconds` is dropped."""
        with self._lock(), self._beneath() as here:
            return self._settle(here, seconds, thorough=False)

    def thin(self) -> list[str]:
        """Drop texts beyond the days and megabytes that are kept, oldest first; the hashes that went.

        Age is counted back from the newest change, not from the clock, and in the order of the log: a vault that rested for
        a year loses nothing, and a clock that was wrong for a day does not either. It may be stopped at any point and begun
        again. The log itself stays: what was done remains known.
        """
        with self._lock(), self._beneath() as here:
            self._settle(here, _A_DAY, thorough=True)
            dropped = _thin(here, self.log, keep_days=self._keep_days, keep_bytes=self._keep_bytes)
            here.make(parent(THINNED))
            disk.put(here, THINNED, str(self.log.size()).encode(), sync=False)
            self._kept = 0
            return dropped

    def is_full(self) -> bool:
        """Whether there may be something to thin: the log has grown, or much was kept since it was done last."""
        if self._kept * 20 > self._keep_bytes:
            return True
        with self._beneath() as here:
            size = self.log.size()
            try:
                data, found = disk.read_file(here, THINNED)
                grown = size - int(data)
            except (FileNotFoundError, ValueError):
                return size > 0
        rested = abs(time.time() - found.st_mtime) > _A_DAY / 4
        return grown < 0 or grown > _GROWN or (rested and grown > 0)

    def _settle(self, here: Beneath, seconds: float, *, thorough: bool) -> list[Version]:
        saved: list[Version] = []
        for name in _names_in(here, DISPLACED):
            path = f"{DISPLACED}/{name}"
            if not thorough and self._rests(here, path, seconds):
                continue
            version, _, sha = name.partition("-")[0], "", name.rpartition("-")[2]
            try:
                data, found = disk.read_file(here, path)
            except FileNotFoundError:
                continue
            if found.st_nlink > 1:  # a hard link elsewhere holds it: nothing can be lost, and it is not ours to watch
                disk.remove(here, path)
            elif sha256(data) != sha:
                saved += self._late_save(here, path, version, data)
            elif abs(time.time() - found.st_ctime) > seconds:
                self.keep(here, data, sha)  # a power cut may have cost the text that was kept then: this is the same
                disk.remove(here, path)
        return saved

    def _rests(self, here: Beneath, path: str, seconds: float) -> bool:
        """Whether a displaced file shows no sign of a late save, by its times: it was put here after it was last written.
        What set its time back is found when the history is thinned, which reads them all."""
        try:
            found = disk.look(here, path)
        except FileNotFoundError:
            return True
        if found is None or found.st_nlink > 1 or abs(time.time() - found.st_ctime) > seconds:
            return False
        return found.st_ctime_ns - found.st_mtime_ns > _A_WHILE_NS

    def _late_save(self, here: Beneath, path: str, version: str, data: bytes) -> list[Version]:
        sha = sha256(data)
        kept: list[Version] = []
        if data and self.kept(sha) is None:
            self.keep(here, data, sha)
            note = ""
            with suppress(NotFound):
                known = self.log.find(version)
                note = known.new_path or known.path
            reason = "saved by another program into the version that a write had just replaced"
            kept = [self._found(here, note or path, sha, reason)]
        disk.rename_over(here, path, f"{DISPLACED}/{version}-{secrets.token_hex(3)}-{sha}")
        return kept

    def _found(self, here: Beneath, path: str, sha: str, reason: str) -> Version:
        step = {"path": path, "op": "recovered", "after": sha}
        kept = self.log.stamp([step], first=self.log.next_number(), tool="recover", who="", reason=reason)
        self.log.append(here, kept)
        return kept[0]

    def _places(self, here: Beneath, sha: str) -> Iterator[str]:
        """Where a text may lie. The displaced files are listed only when it is not where it should be."""
        yield _place_of(sha)
        yield from (f"{DISPLACED}/{name}" for name in _names_in(here, DISPLACED) if name.endswith(sha))

    def _beneath(self) -> Beneath:
        return Beneath(self._root)


def _in_use(here: Beneath, path: str) -> bool:
    folder, name = here.spot(path)
    if os.name == "nt":
        match = disk.TEMP.fullmatch(name)
        return match is not None and kernel.is_alive(int(match[1]))
    fd = folder.open(name, READ)
    try:
        return not kernel.try_lock(fd)
    finally:
        os.close(fd)


# -- thinning


@dataclass(slots=True)
class _Uses:
    """What the log says of texts: which change each was last part of, and which deletes put a file into a trash."""

    times: list[tuple[int, str]] = field(default_factory=list)  # number and time of each change, oldest first
    last: dict[str, int] = field(default_factory=dict)
    newest: list[Version] = field(default_factory=list)  # the last operation
    deleted: list[Version] = field(default_factory=list)


def _thin(here: Beneath, log: Log, *, keep_days: int, keep_bytes: int) -> list[str]:
    """Drop what need not be kept; the hashes of it, newest first."""
    uses = _uses(versions_in(log.whole_lines()))
    edge = _edge(uses.times, keep_days)
    cut = last_before(reversed(uses.times), edge) if edge is not None else 0
    needed = {version.before for version in uses.newest}
    dropped, total = list[str](), 0
    for used, sha, size in sorted(_texts(here, uses.last), reverse=True):
        total += size
        if used <= cut or (total > keep_bytes and sha not in needed):
            dropped.append(sha)
    # The trash goes first: should this stop here, the text still tells the next time that there is something to do.
    gone = set(dropped)
    for version in uses.deleted:
        if version.before in gone or version.number <= cut:
            _empty(here, version)
    for sha in dropped:
        disk.remove(here, _place_of(sha))
    return dropped


def _uses(versions: Iterable[Version]) -> _Uses:
    uses = _Uses()
    for version in versions:
        uses.times.append((version.number, version.when))
        if uses.newest and uses.newest[0].group != version.group:
            uses.newest = []
        uses.newest.append(version)
        for sha in filter(None, (version.before, version.after)):
            uses.last[sha] = version.number
        if version.trash:
            uses.deleted.append(version)
    return uses


def _edge(times: Sequence[tuple[int, str]], keep_days: int) -> str | None:
    """The moment before which texts are too old. Of the last three days with changes the one in the middle is believed,
    so that one day under a wrong clock moves nothing."""
    days: list[str] = []
    for _, when in reversed(times):
        if when[:10] not in days:
            days.append(when[:10])
        if len(days) == 3:
            break
    if not days:
        return None
    try:
        newest = datetime.fromisoformat(sorted(days)[(len(days) - 1) // 2]).replace(tzinfo=UTC)
        edge = min(newest + timedelta(days=1), datetime.now(UTC)) - timedelta(days=keep_days)
    except (ValueError, OverflowError):
        return None
    return edge.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _texts(here: Beneath, last: dict[str, int]) -> list[tuple[int, str, int]]:
    """The texts that are kept: number of their last use, hash, size. One that no change names may be needed by whoever put
    it there a moment ago; after a day it is as old as can be."""
    found = []
    for drawer in _names_in(here, OBJECTS):
        folder = here.folder((*OBJECTS.split("/"), drawer))
        for name in folder.names():
            seen = os.stat(folder.name(name), dir_fd=folder.fd, follow_symlinks=False)
            if disk.TEMP.fullmatch(name):
                disk.remove(here, f"{OBJECTS}/{drawer}/{name}")
            elif len(name) == 64:
                is_new = abs(time.time() - seen.st_mtime) <= _A_DAY
                found.append((last.get(name, _NEWEST if is_new else -1), name, seen.st_size))
    return found


def _empty(here: Beneath, version: Version) -> None:
    """Take a deleted file out of our trash, if it is still what was deleted. Obsidian's own trash is not ours to empty."""
    trash = version.trash or ""
    if trash.startswith(f"{TRASH}/"):
        with suppress(FileNotFoundError):
            if disk.hash_of(here, trash) == version.before:
                disk.remove(here, trash)
                here.prune(parent(trash), keep=2)


def _place_of(sha: str) -> str:
    """Where a text is kept, by its hash."""
    return f"{OBJECTS}/{sha[:2]}/{sha}"


def _names_in(here: Beneath, folder: str) -> list[str]:
    """The names in a folder of ours, none when it is not there."""
    try:
        return sorted(here.folder(tuple(folder.split("/"))).names())
    except FileNotFoundError:
        return []
