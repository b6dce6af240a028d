"""Earlier versions: every change we made, in an append-only log, and the texts before and after it.

`.simplemem/history/log.jsonl` has a line a change; `objects/ab/<sha256>` are texts nobody else has a name for;
`displaced/` holds, for a day, the very files a write took the place of: an editor that still has one open may yet save
into it, and then its text becomes a version too (durability.md F20). Order is the order of the log, never the clock (F12).
What is here is not derived from anything and is never rebuilt. Nothing here touches a note.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, Literal, get_args

from simplemem.errors import NotFound
from simplemem.vault import atomic
from simplemem.vault.atomic import Backing, sha256
from simplemem.vault.paths import SIDECAR, Beneath, parent

Op = Literal["create", "update", "move", "delete", "undo", "recovered"]

HISTORY = f"{SIDECAR}/history"
OBJECTS = f"{HISTORY}/objects"
DISPLACED = f"{HISTORY}/displaced"
LOG = f"{HISTORY}/log.jsonl"
_APPEND = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
_BINARY = getattr(os, "O_BINARY", 0)
_BLOCK = 1 << 16
_A_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class Version:
    """One change of one note. All changes of one operation share a `group`, the id of its first."""

    id: str
    group: str
    path: str
    new_path: str | None  # where a move took it
    when: str  # UTC, for people; the order is the ids'
    op: Op
    who: str
    tool: str
    reason: str
    before: str | None  # sha256; None: there was no such note
    after: str | None  # sha256; None: it was deleted
    trash: str | None = None  # where a delete put the file


_FIELDS = {field.name for field in fields(Version)}
_REQUIRED = ("id", "group", "path", "when", "op")


class History:
    """The log and its texts. Reading needs no lock; whoever appends holds the vault's."""

    def __init__(
        self,
        root: str,
        lock: Callable[[], AbstractContextManager[None]],
        *,
        backing: Backing,
        keep_days: int,
        keep_mb: int,
    ) -> None:
        self._root = root
        self._lock = lock
        self._backing = backing
        self._keep_days = keep_days
        self._keep_bytes = keep_mb * 1_000_000

    # Reading

    def versions(self, path: str | None = None, limit: int = 20) -> list[Version]:
        """The latest changes, newest first: of the whole vault, or of one note, followed back through its moves."""
        return list(islice(self._backwards(path), max(limit, 0)))

    def find(self, version: str) -> Version:
        """The change of this id; 'v42', '42' and 'v000042' are one."""
        digits = version.strip().removeprefix("v")
        if digits.isascii() and digits.isdigit() and len(digits) < 16:
            wanted = _spell(int(digits))
            for line in self._lines():
                if wanted.encode() in line and (known := _read(line)) and known.id == wanted:
                    return known
        hint = "The history of a note lists its versions."
        raise NotFound(f"There is no version {version[:40]!r}.", hint=hint)

    def group(self, group: str) -> list[Version]:
        """All changes of one operation, in the order they were made."""
        found: list[Version] = []
        for line in self._lines():
            known = _read(line)
            if known and known.group == group:
                found.append(known)
            elif known and found and known.id < group:
                break
        return found[::-1]

    def content(self, sha: str) -> bytes | None:
        """The text with this hash, or None when it is not kept (any more). What is damaged is not given out."""
        if len(sha) != 64 or not sha.isascii() or not sha.isalnum():
            return None
        with self._beneath() as here:
            for place in (_object(sha), *self._displaced(here, sha)):
                try:
                    data, _ = atomic.read_file(here, place)
                except OSError as error:
                    if error.errno not in (errno.ENOENT, errno.ENOTDIR):
                        raise
                else:
                    if sha256(data) == sha:
                        return data
        return None

    # Writing, under the vault's lock

    def stamp(self, steps: Sequence[dict[str, Any]], *, first: int, tool: str, who: str, reason: str) -> list[Version]:
        """Number the changes of one operation from `first`: a Version for each dict of path, op, before, after."""
        when = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        common = {"when": when, "tool": tool[:100], "who": who[:200], "reason": reason[:1000]}
        empty = {"new_path": None, "before": None, "after": None}
        return [
            Version(**(empty | common | step | {"id": _spell(first + k), "group": _spell(first)}))
            for k, step in enumerate(steps)
        ]

    def next_number(self) -> int:
        """One more than the last version in the log."""
        for line in self._lines():
            if known := _read(line):
                return int(known.id.removeprefix("v")) + 1
        return 1

    def knows(self, versions: Sequence[Version]) -> set[str]:
        """Which of these ids the log has already."""
        wanted, found, oldest = {v.id for v in versions}, set(), min(v.id for v in versions)
        for line in self._lines():
            if known := _read(line):
                found.add(known.id)
                if known.id < oldest:
                    break
        return wanted & found

    def append(self, here: Beneath, versions: Sequence[Version]) -> None:
        """Add lines to the log, all or none. A half line that a crash left is closed off first."""
        lines = b"".join(json.dumps(asdict(v), separators=(",", ":")).encode() + b"\n" for v in versions)
        here.make((SIDECAR, "history"))
        folder, name = here.spot(LOG)
        fd = os.open(folder.name(name), _APPEND | _BINARY, 0o666, dir_fd=folder.fd)
        try:
            size = os.lseek(fd, 0, os.SEEK_END)
            if size:
                os.lseek(fd, size - 1, os.SEEK_SET)
                if os.read(fd, 1) != b"\n":
                    lines = b"\n" + lines
            try:
                atomic.write_all(fd, lines)
            except OSError:
                os.ftruncate(fd, size)
                raise
        finally:
            os.close(fd)

    def keep(self, here: Beneath, data: bytes, sha: str) -> None:
        """Keep a text under its hash, in a file of its own. One that is there already and whole is left alone."""
        path = _object(sha)
        with suppress(FileNotFoundError):
            if atomic.hash_of(here, path) == sha:
                return
        folder = (*OBJECTS.split("/"), sha[:2])
        here.make(folder)
        # No sync of its own: until the kernel has written it, the displaced file or the trash holds the same text.
        temp, _ = atomic.stage(here, folder, data, like=None, backing=self._backing, sync=False, hold=False)
        try:
            atomic.rename_over(here, temp, path)
        except BaseException:
            atomic.remove(here, temp)
            raise

    def set_aside(self, here: Beneath, temp: str, version: str, sha: str) -> None:
        """Take a file that may be open in some editor out of the vault, watched for a day for a late save."""
        here.make(tuple(DISPLACED.split("/")))
        target = f"{DISPLACED}/{version}-{secrets.token_hex(3)}-{sha}"
        try:
            atomic.carry(here, self._backing, temp, target)
        except FileNotFoundError:
            return  # it is set aside already: a recovery was interrupted after this step

    def rescue(self, here: Beneath, temp: str, path: str, reason: str) -> Version | None:
        """Keep whatever a stray file of ours holds. A text found nowhere else becomes a version; then it is set aside."""
        data, found = atomic.read_file(here, temp)
        sha, version = sha256(data), None
        if data and found.st_nlink == 1 and self.content(sha) is None:
            self.keep(here, data, sha)
            version = self._found(here, path, sha, reason)
        if data and found.st_nlink == 1:
            self.set_aside(here, temp, version.id if version else "stray", sha)
        else:
            atomic.remove(here, temp)
        return version

    def settle(self, seconds: float = _A_DAY) -> list[Version]:
        """Look at the displaced files: a late save becomes a version; what has rested for `seconds` is dropped."""
        with self._lock(), self._beneath() as here:
            return self._settle(here, seconds)

    def thin(self) -> list[str]:
        """Drop texts beyond the days and megabytes that are kept, oldest first; the hashes that went.

        Age is counted back from the newest change, not from the clock: a vault that rested for a year, or a clock
        that jumped, loses nothing. The log itself stays: what was done remains known.
        """
        with self._lock(), self._beneath() as here:
            self._settle(here, _A_DAY)
            newest_use, edge = self._uses()
            objects = self._object_files(here)
            objects.sort(key=lambda item: newest_use.get(item[0], ""), reverse=True)
            total, dropped = 0, []
            for sha, size in objects:
                total += size
                used = newest_use.get(sha, "")
                if total > self._keep_bytes or (used or edge) < edge:
                    atomic.remove(here, _object(sha))
                    dropped.append(sha)
            self._thin_trash(here, set(dropped))
            return dropped

    def _settle(self, here: Beneath, seconds: float) -> list[Version]:
        saved: list[Version] = []
        for name in _names(here, DISPLACED):
            path = f"{DISPLACED}/{name}"
            version, _, sha = name.partition("-")[0], "", name.rpartition("-")[2]
            try:
                data, found = atomic.read_file(here, path)
            except FileNotFoundError:
                continue
            if found.st_nlink > 1:  # a hard link elsewhere holds it: nothing can be lost, and it is not ours to watch
                atomic.remove(here, path)
            elif sha256(data) != sha:
                saved += self._late_save(here, path, version, data)
            elif abs(time.time() - found.st_ctime) > seconds:
                atomic.remove(here, path)
        return saved

    def _late_save(self, here: Beneath, path: str, version: str, data: bytes) -> list[Version]:
        sha = sha256(data)
        kept: list[Version] = []
        if data and self.content(sha) is None:
            self.keep(here, data, sha)
            note = ""
            with suppress(NotFound):
                known = self.find(version)
                note = known.new_path or known.path
            reason = "saved by another program into the version that a write had just replaced"
            kept = [self._found(here, note or path, sha, reason)]
        atomic.rename_over(here, path, f"{DISPLACED}/{version}-{secrets.token_hex(3)}-{sha}")
        return kept

    def _found(self, here: Beneath, path: str, sha: str, reason: str) -> Version:
        step = {"path": path, "op": "recovered", "after": sha}
        kept = self.stamp([step], first=self.next_number(), tool="recover", who="", reason=reason)
        self.append(here, kept)
        return kept[0]

    def _uses(self) -> tuple[dict[str, str], str]:
        """When each text was last part of a change, and the moment before which texts are dropped."""
        newest_use: dict[str, str] = {}
        newest = ""
        for line in self._lines():
            if known := _read(line):
                newest = newest or known.when
                for sha in (known.before, known.after):
                    if sha:
                        newest_use.setdefault(sha, known.when)
        try:
            edge = datetime.fromisoformat(newest) - timedelta(days=self._keep_days)
        except (ValueError, OverflowError):
            return newest_use, ""
        return newest_use, edge.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def _thin_trash(self, here: Beneath, dropped: set[str]) -> None:
        for line in self._lines():
            known = _read(line)
            if known and known.before in dropped and known.trash and known.trash.startswith(f"{SIDECAR}/trash/"):
                with suppress(FileNotFoundError):
                    if atomic.hash_of(here, known.trash) == known.before:
                        atomic.remove(here, known.trash)
                        here.prune(parent(known.trash), keep=2)

    def _object_files(self, here: Beneath) -> list[tuple[str, int]]:
        found = []
        for drawer in _names(here, OBJECTS):
            folder = here.folder((*OBJECTS.split("/"), drawer))
            for name in folder.names():
                size = os.stat(folder.name(name), dir_fd=folder.fd, follow_symlinks=False).st_size
                if atomic.TEMP.fullmatch(name):
                    atomic.remove(here, f"{OBJECTS}/{drawer}/{name}")
                elif len(name) == 64:
                    found.append((name, size))
        return found

    def _displaced(self, here: Beneath, sha: str) -> list[str]:
        return [f"{DISPLACED}/{name}" for name in _names(here, DISPLACED) if name.endswith(sha)]

    def _backwards(self, path: str | None) -> Iterator[Version]:
        name = path
        mark = b"" if name is None else json.dumps(name).encode()
        for line in self._lines():
            if mark and mark not in line:
                continue
            version = _read(line)
            if version is None:
                continue
            if name is None:
                yield version
            elif name in (version.path, version.new_path):
                yield version
                if version.new_path == name:
                    name = version.path
                    mark = json.dumps(name).encode()

    def _lines(self) -> Iterator[bytes]:
        """The lines of the log, last first."""
        try:
            with self._beneath() as here:
                folder, name = here.spot(LOG)
                fd = os.open(folder.name(name), os.O_RDONLY | _BINARY, dir_fd=folder.fd)
        except FileNotFoundError:
            return
        try:
            end, rest = os.lseek(fd, 0, os.SEEK_END), b""
            while end > 0:
                start = max(end - _BLOCK, 0)
                os.lseek(fd, start, os.SEEK_SET)
                block = _read_exactly(fd, end - start) + rest
                rest, *lines = block.split(b"\n")
                yield from (line for line in reversed(lines) if line)
                end = start
            if rest:
                yield rest
        finally:
            os.close(fd)

    def _beneath(self) -> Beneath:
        return Beneath(self._root, by_path=self._backing.by_path)


def _spell(number: int) -> str:
    return f"v{number:06d}"


def _object(sha: str) -> str:
    return f"{OBJECTS}/{sha[:2]}/{sha}"


def _names(here: Beneath, folder: str) -> list[str]:
    try:
        return sorted(here.folder(tuple(folder.split("/"))).names())
    except FileNotFoundError:
        return []


def _read_exactly(fd: int, size: int) -> bytes:
    pieces = []
    while size > 0 and (piece := os.read(fd, size)):
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def read_version(known: object) -> Version | None:
    """A Version from what JSON holds, or None when it is none."""
    if not isinstance(known, dict) or not all(isinstance(known.get(key), str) for key in _REQUIRED):
        return None
    texts: dict[str, Any] = {key: known.get(key) for key in _FIELDS}
    if not all(value is None or isinstance(value, str) for value in texts.values()):
        return None
    if texts["op"] not in get_args(Op) or not texts["id"].removeprefix("v").isdecimal():
        return None
    return Version(**(texts | {key: texts[key] or "" for key in ("who", "tool", "reason")}))


def _read(line: bytes) -> Version | None:
    # A line cut short by a crash is no change: the journal has it, or it never happened.
    try:
        return read_version(json.loads(line))
    except (ValueError, RecursionError):
        return None
