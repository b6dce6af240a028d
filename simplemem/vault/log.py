"""The log of a vault's history: a line for every change we made, only ever added to.

Order is the order of the lines, never the clock (durability.md F12). The file is the truth; the index keeps a table of it
(`index/changes.py`), which is what questions about the past go to. What a write itself must know is read from its end.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from itertools import takewhile
from typing import Any, Literal, NamedTuple, get_args

from simplemem.errors import NotFound
from simplemem.vault import disk
from simplemem.vault.paths import OVERWRITE, READ, SIDECAR, Beneath, parent, telling

Op = Literal["create", "update", "move", "delete", "undo", "restore", "recovered"]
Kind = Literal["human", "agent", ""]
"""Who made a change: a person, or a program such as an agent's client; "" where the log does not say."""

LOG = f"{SIDECAR}/history/log.jsonl"
COMMAND_LINE = "command line"
"""How the history names a person who uses the commands."""

_END = 1 << 13  # bytes: the last few changes are what is mostly asked for


class Version(NamedTuple):
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
    kind: Kind = ""

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

    @property
    def is_by_person(self) -> bool:
        """Whether a person made it. Old lines do not say: then a tool of agents has an underscore in its name, and a command
        has none."""
        return self.kind == "human" if self.kind else self.who == COMMAND_LINE and "_" not in self.tool


_FIELDS = Version._fields
_REQUIRED = ("id", "group", "path", "when", "op")
_MAY_LACK = ("who", "tool", "reason", "kind")
_TEXT = frozenset((str, type(None)))
_OPS = frozenset(get_args(Op))
_ID = re.compile(r"v?[0-9]{1,15}")


def number_of(version: str) -> int:
    """The number in the id of a version."""
    return int(version.removeprefix("v"))


def spell(number: int) -> str:
    """The id of a version by its number."""
    return f"v{number:06d}"


def number_meant(version: str) -> int:
    """The number of a version as people write it: 'v42', '42' and 'v000042' are one. NotFound for anything else."""
    digits = version.strip().removeprefix("v")
    if digits.isascii() and digits.isdigit() and len(digits) < 16:
        return int(digits)
    raise no_version(version)


def no_version(version: str) -> NotFound:
    """The error for a version that is not there."""
    return NotFound(f"There is no version {version[:40]!r}.", hint="The history of a note lists its versions.")


class Log:
    """Reading needs no lock; whoever appends holds the vault's. `kind` says who makes the changes of this process."""

    def __init__(self, root: str, *, kind: Kind = "agent") -> None:
        self.root = root
        self.kind: Kind = kind
        self.appended = (-1, b"")  # where we added to it last, and what

    # Reading

    def whole_lines(self, start: int = 0) -> bytes:
        """Its bytes from `start` on, up to the end of the last line that is complete."""
        with self._opened() as fd:
            data = _read_at(fd, start, max(_size(fd) - start, 0))
        return data[: data.rfind(b"\n") + 1]

    def size(self) -> int:
        """Its bytes, 0 when there is none."""
        with self._opened() as fd:
            return _size(fd)

    def backwards(self, mark: bytes = b"", here: Beneath | None = None) -> Iterator[Version]:
        """The changes whose lines hold some bytes, newest first. `here` has folders open already."""
        with self._opened(here) as fd:
            start = max(_size(fd) - _END, 0)
            rest, *lines = _read_at(fd, start, _END).split(b"\n")
            yield from _with(mark, lines)
            yield from _with(mark, (_read_at(fd, 0, start) + rest).split(b"\n"))

    def of(self, path: str) -> Iterator[Version]:
        """The changes that name a path, newest first."""
        return (each for each in self.backwards(json.dumps(path).encode()) if path in (each.path, each.new_path))

    def find(self, version: str) -> Version:
        """The change of this id."""
        wanted = spell(number_meant(version))
        for known in self.backwards(wanted.encode()):
            if known.id == wanted:
                return known
        raise no_version(version)

    def group(self, group: str) -> list[Version]:
        """All changes of one operation, in the order they were made. The first of them bears the group's name."""
        return [known for known in self.since(number_of(group)) if known.group == group]

    def since(self, number: int) -> list[Version]:
        """The changes from this number on, oldest first."""
        return list(takewhile(lambda known: known.number >= number, self.backwards()))[::-1]

    def next_number(self, here: Beneath | None = None) -> int:
        """One more than the last version in the log."""
        return next((known.number for known in self.backwards(here=here)), 0) + 1

    @contextmanager
    def _opened(self, here: Beneath | None = None) -> Iterator[int]:
        """It open for reading; -1 where there is none, or where something else lies in its place: a pipe would keep us
        waiting."""
        with Beneath(self.root) as ours, ExitStack() as held, telling("read", LOG):
            fd = -1
            with suppress(FileNotFoundError):
                fd = held.enter_context((here or ours).opened(LOG, READ))
            yield fd if fd >= 0 and stat.S_ISREG(os.fstat(fd).st_mode) else -1

    # Writing

    def stamp(self, steps: Sequence[dict[str, Any]], *, first: int, tool: str, who: str, reason: str) -> list[Version]:
        """Number the changes of one operation from `first`: a Version for each dict of path, op, before, after."""
        when = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        common = {"when": when, "tool": tool[:100], "who": who[:200], "reason": _without_secrets(reason)}
        empty = {"new_path": None, "before": None, "after": None, "kind": self.kind}
        return [
            Version(**(empty | common | step | {"id": spell(first + k), "group": spell(first)}))
            for k, step in enumerate(steps)
        ]

    def append(self, here: Beneath, versions: Sequence[Version]) -> None:
        """Add lines to the log, all or none. A half line that a crash left is closed off first."""
        lines = b"".join(json.dumps(v._asdict(), separators=(",", ":")).encode() + b"\n" for v in versions)
        here.make(parent(LOG))
        with here.opened(LOG, OVERWRITE | os.O_APPEND) as fd:
            self.appended = disk.append_lines(fd, lines)


def last_before(times: Iterable[tuple[int, str]], when: str) -> int:
    """The number of the last change before a moment (UTC, spelled as in the log), given number and time of each change,
    newest first; 0 when there is none.

    The order is the log's, and a clock may have been wrong for a while. So the log is cut where the fewest changes
    stand on the wrong side by their time; where that is undecided, as late as it can be.
    """
    cut, score, best = 0, 0, 0
    for place, (number, at) in enumerate(times):
        if not place:
            cut = number
        score += 1 if at < when else -1
        if score < best:
            best, cut = score, number - 1
    return cut


def versions_in(lines: bytes) -> Iterator[Version]:
    """The changes that some lines of the log tell, in their order."""
    return filter(None, map(_read, lines.split(b"\n")))


def read_version(known: object) -> Version | None:
    """A Version from what JSON holds, or None when it is none."""
    if not isinstance(known, dict):
        return None
    texts: dict[str, Any] = dict(zip(_FIELDS, map(known.get, _FIELDS), strict=True))
    if not _TEXT.issuperset(map(type, texts.values())) or None in map(known.get, _REQUIRED):
        return None
    if texts["op"] not in _OPS or not _ID.fullmatch(texts["id"]) or not _ID.fullmatch(texts["group"]):
        return None
    for key in _MAY_LACK:
        texts[key] = texts[key] or ""
    return Version(**texts)


def _with(mark: bytes, lines: Sequence[bytes]) -> Iterator[Version]:
    return filter(None, (_read(line) for line in reversed(lines) if mark in line))


def _read(line: bytes) -> Version | None:
    # A line cut short by a crash is no change: the journal has it, or it never happened.
    try:
        return read_version(json.loads(line)) if line else None
    except (ValueError, RecursionError):
        return None


def _size(fd: int) -> int:
    return os.fstat(fd).st_size if fd >= 0 else 0


def _read_at(fd: int, start: int, size: int) -> bytes:
    if fd < 0:
        return b""
    os.lseek(fd, start, os.SEEK_SET)
    return disk.read_all(fd, size)


def _without_secrets(reason: str) -> str:
    """A reason without what looks secret in it: the log is never thinned, and a commit of ours says it to whoever reads."""
    if not reason:
        return ""
    from simplemem.note.secrets import find_secrets  # its patterns take a moment that only such a write should pay

    for secret in reversed(find_secrets(reason)):
        reason = reason[: secret.start] + secret.shown + reason[secret.end :]
    return reason[:1000]
