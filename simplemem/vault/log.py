"""The log of a vault's history: a line for every change we made, only ever added to.

Order is the order of the lines, never the clock (durability.md F12). What stands here is not derived from anything and is
never rebuilt; the texts that it speaks of are `history.py`'s.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Literal, get_args

from simplemem.errors import NotFound
from simplemem.vault import disk
from simplemem.vault.paths import OVERWRITE, READ, SIDECAR, Beneath, parent
from simplemem.vault.trouble import telling

Op = Literal["create", "update", "move", "delete", "undo", "restore", "recovered"]

LOG = f"{SIDECAR}/history/log.jsonl"
_APPEND = OVERWRITE | os.O_APPEND
_BLOCK = 1 << 16
_LAST_BLOCK = 1 << 12  # the last few changes are what is mostly asked for
_LONGEST = 1 << 20  # bytes of a line
_TIME = re.compile(
    rb'\{"id":"v(\d{1,15})","group":"v\d+","path":"(?:[^"\\]|\\.)*","new_path":(?:null|"(?:[^"\\]|\\.)*"),'
    rb'"when":"([0-9T:.Z-]{20,30})"'
)
_HASH = re.compile(rb'"([0-9a-f]{64})"')
_TRASHED = f'"trash":"{SIDECAR}/'.encode()


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

    @property
    def number(self) -> int:
        """Its place in the order of all changes."""
        return number_of(self.id)

    @property
    def effects(self) -> tuple[tuple[str, str | None, str | None], ...]:
        """What it did to each path it names: the path, the hash there before, the hash there after."""
        if self.op == "recovered":
            return ()  # a text that was found: it stood nowhere
        if self.new_path is None:
            return ((self.path, self.before, self.after),)
        return ((self.path, self.before, None), (self.new_path, None, self.after))

    def as_dict(self) -> dict[str, str | None]:
        """It as the log and the journal spell it, its fields in their order."""
        return {name: getattr(self, name) for name in _FIELDS}


_FIELDS = tuple(field.name for field in fields(Version))
_REQUIRED = ("id", "group", "path", "when", "op")


def number_of(version: str) -> int:
    """The number in the id of a version."""
    return int(version.removeprefix("v"))


def no_version(version: str) -> NotFound:
    """The error for a version that is not there."""
    return NotFound(f"There is no version {version[:40]!r}.", hint="The history of a note lists its versions.")


class Log:
    """Reading needs no lock; whoever appends holds the vault's."""

    def __init__(self, root: str, *, by_path: bool) -> None:
        self.root = root
        self.by_path = by_path

    def versions(self, path: str | None = None, limit: int = 20) -> list[Version]:
        """The latest changes, newest first: of the whole vault, or of one note, followed back through its moves."""
        return list(islice(self.backwards(path), max(limit, 0)))

    def find(self, version: str) -> Version:
        """The change of this id; 'v42', '42' and 'v000042' are one."""
        digits = version.strip().removeprefix("v")
        if digits.isascii() and digits.isdigit() and len(digits) < 16:
            wanted = _spell(int(digits))
            for line in self._lines():
                if wanted.encode() in line and (known := _read(line)) and known.id == wanted:
                    return known
        raise no_version(version)

    def group(self, group: str) -> list[Version]:
        """All changes of one operation, in the order they were made."""
        found: list[Version] = []
        mark = b'"' + group.encode() + b'"'
        for line in self._lines():
            if mark not in line or (known := _read(line)) is None:
                continue
            if known.group == group:
                found.append(known)
                if known.id == group:
                    break  # the first of them bears the group's name
        return found[::-1]

    def uses_until(self, number: int) -> tuple[set[str], list[Version]]:
        """The hashes that changes up to this one speak of, and those of them that put a file into our trash."""
        hashes: set[str] = set()
        deleted: list[Version] = []
        for line in self._lines():
            found = _TIME.match(line)
            if found is not None and int(found[1]) > number:
                continue
            hashes.update(sha.decode() for sha in _HASH.findall(line))
            if _TRASHED in line and (version := _read(line)) is not None and version.number <= number:
                deleted.append(version)
        return hashes, deleted

    def size(self, here: Beneath) -> int:
        """Its bytes, 0 when there is none."""
        try:
            folder, name = here.spot(LOG)
            return os.stat(folder.name(name), dir_fd=folder.fd, follow_symlinks=False).st_size
        except (FileNotFoundError, NotADirectoryError):
            return 0

    def backwards(self, path: str | None = None, *, upto: int | None = None, by: str = "") -> Iterator[Version]:
        """All changes from the newest on, or from the one of number `upto`, of the whole vault or of one note. With `by`
        changes of people whose name does not begin so, in any case, may be passed over unread."""
        name = path
        mark = b"" if name is None else json.dumps(name).encode()
        said = f'"who":{json.dumps(by)[:-1]}'.encode().lower() if name is None and by and by.isascii() else b""
        for line in self._lines():
            if mark and mark not in line:
                continue
            if said and said not in line.lower():
                continue
            if name is None and upto is not None and (at := _TIME.match(line)) and int(at[1]) > upto:
                continue  # of one note all must be read: a later move tells the name it had before
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

    def _lines(self, here: Beneath | None = None) -> Iterator[bytes]:
        """The lines of the log, last first. `here` has folders open already."""
        fd = self._opened(here) if here is not None else self._opened_alone()
        if fd is None:
            return
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                return  # a pipe put in the log's place would keep us waiting
            end, rest, block_size = os.lseek(fd, 0, os.SEEK_END), b"", _LAST_BLOCK
            while end > 0:
                start, block_size = max(end - block_size, 0), _BLOCK
                os.lseek(fd, start, os.SEEK_SET)
                block = _read_exactly(fd, end - start) + rest
                rest, *lines = block.split(b"\n")
                yield from (line for line in reversed(lines) if line)
                rest = rest if len(rest) < _LONGEST else b""  # whoever wrote that, it was not us
                end = start
            if rest:
                yield rest
        finally:
            os.close(fd)

    def _opened_alone(self) -> int | None:
        with Beneath(self.root, by_path=self.by_path) as here, telling("read", LOG):
            return self._opened(here)

    @staticmethod
    def _opened(here: Beneath) -> int | None:
        try:
            folder, name = here.spot(LOG)
            return folder.open(name, READ)
        except FileNotFoundError:
            return None

    def last_before(self, when: str) -> int:
        """The number of the last change before a moment (UTC, spelled as in the log); 0 when none is.

        The order is the log's, and a clock may have been wrong for a while. So the log is cut where the fewest changes
        stand on the wrong side by their time; where that is undecided, as late as it can be.
        """
        cut, score, best = 0, 0, 0
        for number, (version, at) in enumerate(self.times()):
            if not number:
                cut = version
            score += 1 if at < when else -1
            if score < best:
                best, cut = score, version - 1
        return cut

    def times(self) -> Iterator[tuple[int, str]]:
        """Number and time of each change, newest first."""
        for line in self._lines():
            found = _TIME.match(line)
            if found is not None:  # as we write them: no need to read the rest
                yield int(found[1]), found[2].decode()
            elif (version := _read(line)) is not None:
                yield version.number, version.when

    def stamp(self, steps: Sequence[dict[str, Any]], *, first: int, tool: str, who: str, reason: str) -> list[Version]:
        """Number the changes of one operation from `first`: a Version for each dict of path, op, before, after."""
        when = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        common = {"when": when, "tool": tool[:100], "who": who[:200], "reason": _kept_of(reason)}
        empty = {"new_path": None, "before": None, "after": None}
        return [
            Version(**(empty | common | step | {"id": _spell(first + k), "group": _spell(first)}))
            for k, step in enumerate(steps)
        ]

    def next_number(self, here: Beneath | None = None) -> int:
        """One more than the last version in the log."""
        lines = map(_read, self._lines(here))
        return next((known.number for known in lines if known is not None), 0) + 1

    def knows(self, versions: Sequence[Version]) -> set[str]:
        """Which of these ids the log has already."""
        wanted, found, oldest = {v.id for v in versions}, set(), min(v.number for v in versions)
        for known in self.backwards():
            found.add(known.id)
            if known.number < oldest:
                break
        return wanted & found

    def append(self, here: Beneath, versions: Sequence[Version]) -> None:
        """Add lines to the log, all or none. A half line that a crash left is closed off first."""
        lines = b"".join(json.dumps(v.as_dict(), separators=(",", ":")).encode() + b"\n" for v in versions)
        here.make(parent(LOG))
        folder, name = here.spot(LOG)
        fd = folder.open(name, _APPEND)
        try:
            size = os.lseek(fd, 0, os.SEEK_END)
            if size:
                os.lseek(fd, size - 1, os.SEEK_SET)
                if os.read(fd, 1) != b"\n":
                    lines = b"\n" + lines
            try:
                disk.write_all(fd, lines)
            except OSError:
                os.ftruncate(fd, size)
                raise
        finally:
            os.close(fd)


def _kept_of(reason: str) -> str:
    """A reason without what looks secret in it: the log is never thinned, and a commit of ours says it to whoever reads."""
    if not reason:
        return ""
    from simplemem.note.secrets import find_secrets  # its patterns take a moment that only such a write should pay

    for secret in reversed(find_secrets(reason)):
        reason = reason[: secret.start] + secret.shown + reason[secret.end :]
    return reason[:1000]


def _spell(number: int) -> str:
    return f"v{number:06d}"


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
