"""Earlier versions: the log, a line for every change, in the order of its lines, never the clock's (durability.md F12),
and the texts, in `objects/ab/<sha256>`. For a day `displaced/` has the very files a write took the place of: an editor
that still has one open may yet save into it, which makes that text a version too (F20). No note is touched here."""

from __future__ import annotations

import json
import os
import re
import secrets
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import takewhile
from typing import Any, Literal, NamedTuple, get_args

from simplemem.errors import NotFound
from simplemem.vault import disk
from simplemem.vault.disk import entry_at, sha256
from simplemem.vault.paths import OVERWRITE, READ, SIDECAR, Beneath, parent, telling

Op = Literal["create", "update", "move", "delete", "undo", "restore", "recovered"]
Kind = Literal["human", "agent", ""]
"""Who made a change: a person, or a program such as an agent's client; "" where the log does not say."""

LOG = f"{SIDECAR}/history/log.jsonl"
DISPLACED = f"{SIDECAR}/history/displaced"
OBJECTS = f"{SIDECAR}/history/objects"
THINNED = f"{SIDECAR}/history/thinned"
OWN_TRASH = f"{SIDECAR}/trash"
A_DAY = 86_400.0
_A_WHILE_NS = 2_000_000_000  # the coarsest clock of a file system
COMMAND_LINE = "command line"
"""How the history names a person who uses the commands."""

_END = 1 << 13  # bytes: the last few changes are what is mostly asked for
_REQUIRED = ("id", "group", "path", "when", "op")
_MAY_LACK = ("who", "tool", "reason", "kind")
_TEXT = frozenset((str, type(None)))
_OPS = frozenset(get_args(Op))
_ID = re.compile(r"v?[0-9]{1,15}")


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
        """Whether a person made it. Old lines do not say: there, tools of agents have an underscore in their names."""
        return (
            self.kind == "human" if self.kind else self.who == COMMAND_LINE and "_" not in self.tool
        )


def spell(number: int) -> str:
    """The id of a version by its number."""
    return f"v{number:06d}"


def number_of(version: str) -> int:
    """The number of a version as people write it: 'v42', '42' and 'v000042' are one. NotFound for anything else."""
    digits = version.strip().removeprefix("v")
    if digits.isascii() and digits.isdigit() and len(digits) < 16:
        return int(digits)
    raise no_version(version)


def no_version(version: str) -> NotFound:
    """The error for a version that is not there."""
    return NotFound(
        f"no version {version[:40]!r}", hint="The history of a note lists its versions."
    )


class Log:
    """Reading needs no lock; whoever appends holds the vault's. `kind` says who makes the changes of this process."""

    def __init__(self, root: str, *, kind: Kind = "agent") -> None:
        self.root, self.kind = root, kind

    def whole_lines(self, start: int = 0) -> bytes:
        """Its bytes from `start` on, up to the end of the last line that is complete."""
        with self._opened() as (fd, size):
            data = disk.read_at(fd, start, size - start)
        return data[: data.rfind(b"\n") + 1]

    def backwards(self, mark: bytes = b"", here: Beneath | None = None) -> Iterator[Version]:
        """The changes whose lines hold some bytes, newest first. `here` has folders open already."""
        with self._opened(here) as (fd, size):
            start = max(size - _END, 0)
            rest, *lines = disk.read_at(fd, start, size - start).split(b"\n")
            yield from versions_in(line for line in reversed(lines) if mark in line)
            lines = (disk.read_at(fd, 0, start) + rest).split(b"\n")
            yield from versions_in(line for line in reversed(lines) if mark in line)

    def of(self, path: str) -> Iterator[Version]:
        """The changes that name a path, newest first."""
        return (
            each
            for each in self.backwards(json.dumps(path).encode())
            if path in (each.path, each.new_path)
        )

    def find(self, version: str) -> Version:
        """The change of this id."""
        wanted = spell(number_of(version))
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
    def _opened(self, here: Beneath | None = None) -> Iterator[tuple[int, int]]:
        """It open for reading, and its size; 0 where there is none, or no regular file."""
        with ExitStack() as held, telling("read", LOG):
            fd, size = -1, 0
            with suppress(FileNotFoundError):
                fd = held.enter_context(
                    (here or held.enter_context(Beneath(self.root))).opened(LOG, READ)
                )
                found = os.fstat(fd)
                size = (
                    found.st_size if stat.S_ISREG(found.st_mode) else 0
                )  # a pipe would keep us waiting
            yield fd, size

    def refresh(self) -> bool:
        """Whether there is more of it elsewhere, which is here now."""
        return False

    def stamp(
        self, steps: Sequence[dict[str, Any]], *, first: int, tool: str, who: str, reason: str
    ) -> list[Version]:
        """Number the changes of one operation from `first`: a Version for each dict of path, op, before, after."""
        who, reason = (
            _without_secrets(who),
            _without_secrets(reason),
        )  # the log is never thinned, and git has it too
        common: dict[str, Any] = {
            "group": spell(first),
            "when": _spelled(datetime.now(UTC)),
            "kind": self.kind,
        }
        common |= {"tool": tool[:100], "who": who[:200], "reason": reason[:1000]}
        common |= {"new_path": None, "before": None, "after": None}
        return [
            Version(**(common | step | {"id": spell(first + k)})) for k, step in enumerate(steps)
        ]

    def append(self, here: Beneath, versions: Sequence[Version]) -> None:
        """Add lines to the log, all or none. A half line that a crash left is closed off first."""
        lines = b"".join(
            json.dumps(v._asdict(), separators=(",", ":")).encode() + b"\n" for v in versions
        )
        here.make(parent(LOG))
        with here.opened(LOG, OVERWRITE | os.O_APPEND) as fd:
            disk.append_lines(fd, lines)


@lru_cache(64)
def _without_secrets(text: str) -> str:
    if text:
        from simplemem.note.hidden import find_secrets  # its patterns take a moment

        for secret in reversed(find_secrets(text)):
            text = text[: secret.start] + secret.shown + text[secret.end :]
    return text


def _spelled(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def last_before(times: Iterable[tuple[int, str]], when: str) -> int:
    """The number of the last change before a moment (UTC), given number and time of each, newest first; 0 for none. As
    a clock may have been wrong for a while, the log is cut where the fewest changes are on the wrong side."""
    cut, score, best = 0, 0, 0
    for place, (number, at) in enumerate(times):
        if not place:
            cut = number
        score += 1 if at < when else -1
        if score < best:
            best, cut = score, number - 1
    return cut


def versions_in(lines: Iterable[bytes]) -> Iterator[Version]:
    """The changes that some lines of the log tell, in their order."""
    return filter(None, map(_read, lines))


def read_version(known: object) -> Version | None:
    """A Version from what JSON holds, or None when it is none."""
    if not isinstance(known, dict):
        return None
    texts: dict[str, Any] = {field: known.get(field) for field in Version._fields}
    if not _TEXT.issuperset(map(type, texts.values())) or None in map(texts.get, _REQUIRED):
        return None
    if (
        texts["op"] not in _OPS
        or not _ID.fullmatch(texts["id"])
        or not _ID.fullmatch(texts["group"])
    ):
        return None
    return Version(**texts | {key: texts[key] or "" for key in _MAY_LACK})


def _read(line: bytes) -> Version | None:
    # A line cut short by a crash is no change: the journal has it, or it never happened.
    try:
        return read_version(json.loads(line)) if line else None
    except (ValueError, RecursionError):
        return None


class History:
    """The log and its texts. Reading needs no lock; whoever appends holds the vault's."""

    def __init__(self, root: str, *, keep_days: int, keep_mb: int, kind: Kind = "agent") -> None:
        self.log = Log(root, kind=kind)
        self.may_tell: Callable[[str], bool] = lambda _sha: (
            True
        )  # whether a text is not only a hidden note's
        self.given = set[str]()  # texts that no change has written, kept for whoever is asking here
        self._root, self.keep_days, self.keep_bytes = root, keep_days, keep_mb * 1_000_000

    def content(self, sha: str) -> bytes | None:
        """The text whose hash is this, or alone begins so (twelve digits); None: not kept, or a hidden note's alone."""
        if 12 <= len(sha) < 64 and sha.isascii() and sha.isalnum():
            with Beneath(self._root) as here:
                names = [
                    name for name in here.names(f"{OBJECTS}/{sha[:2]}") if name.startswith(sha)
                ]
            sha = names[0] if len(names) == 1 else ""
        return self.kept(sha) if sha in self.given or self.may_tell(sha) else None

    def kept(self, sha: str) -> bytes | None:
        """The text with this hash, a hidden note's too: for what is shown to nobody. Not when it is damaged."""
        if len(sha) != 64 or not sha.isascii() or not sha.isalnum():
            return None
        with Beneath(self._root) as here:
            for place in self._places(here, sha):
                with suppress(FileNotFoundError, NotADirectoryError):
                    data, _ = disk.read_file(here, place)
                    if sha256(data) == sha:
                        return data
        return None

    def _places(self, here: Beneath, sha: str) -> Iterator[str]:
        """Where a text may lie. The displaced files are listed only when it is not where it should be."""
        yield place_of(sha)
        yield from (f"{DISPLACED}/{name}" for name in here.names(DISPLACED) if name.endswith(sha))

    def keep(self, here: Beneath, data: bytes, sha: str) -> None:
        """Keep a text under its hash, in a file of its own. One that is there already and whole is left alone."""
        path = place_of(sha)
        with suppress(FileNotFoundError):
            if disk.hash_of(here, path) == sha:
                return
        for folder in (path, f"{DISPLACED}/"):
            here.make(parent(folder))
        # Staged where every start looks. No sync: until it is on the disk, the displaced file or the trash has the text.
        with disk.staged(here, f"{DISPLACED}/{sha}", data, sync=False) as temp:
            disk.rename_over(here, temp, path)

    def set_aside(self, here: Beneath, temp: str, version: str, sha: str) -> None:
        """Take a file that may be open in some editor out of the vault, watched for a day for a late save."""
        here.make(tuple(DISPLACED.split("/")))
        with suppress(
            FileNotFoundError
        ):  # it is set aside already: a recovery was interrupted after this step
            disk.carry(here, temp, f"{DISPLACED}/{version}-{secrets.token_hex(3)}-{sha}")

    def rescue(
        self, here: Beneath, file: str, path: str, reason: str, version: str = "stray"
    ) -> list[Version]:
        """Set a file of ours aside, but first make a text that is found nowhere else a version of `path`."""
        data, found = disk.read_file(here, file)
        sha, saved = sha256(data), list[Version]()
        if not data or found.st_nlink > 1:
            disk.remove(here, file)
            return saved
        if self.kept(sha) is None:
            self.keep(here, data, sha)
            step = {"path": path, "op": "recovered", "after": sha}
            saved = self.log.stamp(
                [step], first=self.log.next_number(), tool="recover", who="", reason=reason
            )
            self.log.append(here, saved)
        self.set_aside(here, file, saved[0].id if saved else version, sha)
        return saved

    def settle(
        self, here: Beneath, seconds: float = A_DAY, *, thorough: bool = False
    ) -> list[Version]:
        """Look at the displaced files: a late save becomes a version; what has rested for `seconds` is dropped."""
        saved: list[Version] = []
        for name in here.names(DISPLACED):
            file, version, sha = (
                f"{DISPLACED}/{name}",
                name.partition("-")[0],
                name.rpartition("-")[2],
            )
            if disk.TEMP.fullmatch(name):
                disk.remove(here, file)  # `keep` was killed
            with suppress(FileNotFoundError):
                found = here.stat(file)
                is_old = abs(time.time() - found.st_ctime) > seconds
                # Put here after it was last written: no late save. One that set the time back is found when thinning.
                rests = found.st_nlink == 1 and found.st_ctime_ns - found.st_mtime_ns > _A_WHILE_NS
                if rests and not is_old and not thorough:
                    continue
                data, _ = disk.read_file(here, file)
                if found.st_nlink > 1:  # another name holds it
                    disk.remove(here, file)
                elif sha256(data) == sha:
                    if is_old:
                        self.keep(
                            here, data, sha
                        )  # a power cut may have cost the text that was kept then
                        disk.remove(here, file)
                elif data:
                    known = next(
                        (
                            each
                            for each in self.log.backwards(version.encode())
                            if each.id == version
                        ),
                        None,
                    )
                    note = (known.new_path or known.path) if known is not None else file
                    reason = (
                        "saved by another program into the file that simplemem had just replaced"
                    )
                    saved += self.rescue(here, file, note, reason, version)
                elif is_old:  # it is cut off
                    disk.remove(here, file)
        return saved

    def is_full(self) -> bool:
        """Whether it is time to thin: that was hours ago, or never."""
        with Beneath(self._root) as here:
            last, log = entry_at(here, THINNED), entry_at(here, LOG)
        return (
            log is not None if last is None else abs(time.time() - last.mtime_ns / 1e9) > A_DAY / 4
        )

    def thin(self, here: Beneath) -> list[str]:
        """Drop the texts beyond the days and megabytes of the settings, oldest first; the hashes that went. Days are
        counted back from the newest change, so a vault that rests loses nothing. It may stop at any point."""
        self.settle(here, thorough=True)
        times: list[tuple[int, str]] = []  # number and time of each change, oldest first
        last_use: dict[str, int] = {}  # of each text, the last change it was part of
        last_group, trashed = "", list[Version]()
        for version in versions_in(self.log.whole_lines().split(b"\n")):
            times.append((version.number, version.when))
            last_use |= {sha: version.number for sha in (version.before, version.after) if sha}
            last_group = version.group
            if version.trash and version.trash.startswith(
                f"{OWN_TRASH}/"
            ):  # Obsidian's is not ours to empty
                trashed.append(version)
        cut, needed = 0, {each.before for each in self.log.group(last_group)} if times else set()
        # Of the last three days with changes the one in the middle counts: a day under a wrong clock costs nothing.
        days = sorted(list(dict.fromkeys(when[:10] for _, when in reversed(times)))[:3])
        with suppress(ValueError, IndexError, OverflowError):
            newest = datetime.fromisoformat(days[(len(days) - 1) // 2]).replace(
                tzinfo=UTC
            ) + timedelta(days=1)
            edge = min(newest, datetime.now(UTC)) - timedelta(days=self.keep_days)
            cut = last_before(reversed(times), _spelled(edge))
        dropped, total = dict[str, None](), 0
        for used, sha, size in sorted(self._texts(here, last_use), reverse=True):
            total += size
            if used <= cut or (total > self.keep_bytes and sha not in needed):
                dropped[sha] = None
        # The trash goes first: should this stop here, the text still tells the next time that there is something to do.
        for gone in trashed:
            place = gone.trash or ""
            with suppress(FileNotFoundError):
                if (gone.before in dropped or gone.number <= cut) and disk.hash_of(
                    here, place
                ) == gone.before:
                    disk.remove(here, place)
                    here.prune(parent(place), keep=2)
        for sha in dropped:
            disk.remove(here, place_of(sha))
        here.make(parent(THINNED))
        disk.put(here, THINNED, b"", sync=False)
        return list(dropped)

    def _texts(self, here: Beneath, last_use: dict[str, int]) -> Iterator[tuple[int, str, int]]:
        """The texts kept: number of last use, hash, size. One that no change names is the oldest, after a day."""
        for drawer in here.names(OBJECTS):
            for name in here.names(f"{OBJECTS}/{drawer}"):
                if len(name) == 64:
                    found = here.stat(f"{OBJECTS}/{drawer}/{name}")
                    unnamed = 1 << 60 if abs(time.time() - found.st_mtime) <= A_DAY else -1
                    yield last_use.get(name, unnamed), name, found.st_size


def place_of(sha: str) -> str:
    return f"{OBJECTS}/{sha[:2]}/{sha}"
