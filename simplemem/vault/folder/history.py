"""Keep earlier versions of notes: a log of all changes, and the texts of the notes.

The log has a line for each change. The order of the changes is the order of the lines, never that
of a clock (F12). The texts are in `objects/ab/<sha256>`. For a day, `displaced/` keeps the files
that writes replaced: an editor that still has one open may save into it, and that text becomes a
version too (F20). This module never changes a note.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Literal, NamedTuple, get_args

from simplemem.errors import NotFound
from simplemem.note.paths import Parts, parent
from simplemem.vault.folder import disk
from simplemem.vault.folder.dir_handles import OVERWRITE, OWN_FOLDER, READ, DirHandles
from simplemem.vault.folder.disk import entry_at, sha256
from simplemem.vault.os_errors import translating_os_errors

Op = Literal["create", "update", "move", "delete", "undo", "restore", "recovered"]
Kind = Literal["human", "agent", ""]
"""Who made a change: a person, or a program such as an agent's client; "" if that is not known."""

LOG = f"{OWN_FOLDER}/history/log.jsonl"
DISPLACED = f"{OWN_FOLDER}/history/displaced"
DISPLACED_FOLDER: Parts = tuple(DISPLACED.split("/"))
OBJECTS = f"{OWN_FOLDER}/history/objects"
LAST_PRUNED = f"{OWN_FOLDER}/history/thinned"
OWN_TRASH = f"{OWN_FOLDER}/trash"
A_DAY = 86_400.0
COMMAND_LINE = "command line"
"""The author in the history for a person who uses the commands."""

_COARSEST_CLOCK_NS = 2_000_000_000  # the times of a file on FAT are two seconds apart
_TAIL_BYTES = 1 << 13  # of the log are read first: most callers need only the last few changes
_SHA256_DIGITS = 64
_MIN_PREFIX_DIGITS = 12
_FUTURE_USE = 1 << 60  # greater than the number of any change

_REQUIRED = ("id", "group", "path", "when", "op")
_MAY_LACK = ("who", "tool", "reason", "kind")
_TEXT_TYPES = frozenset((str, type(None)))
_OPS = frozenset(get_args(Op))
_ID = re.compile(r"v?[0-9]{1,15}")
_MAX_ID_DIGITS = 15


class Version(NamedTuple):
    """A change of one note. All changes of an operation have one `group`, the id of the first."""

    id: str
    group: str
    path: str
    new_path: str | None  # the path after a move
    when: str  # in UTC, for people; the order of changes is that of the ids
    op: Op
    who: str
    tool: str
    reason: str
    before: str | None  # the sha256 of the text; None if the note did not exist
    after: str | None  # the sha256 of the text; None if the note was deleted
    trash: str | None = None  # the path of a deleted file in the trash
    kind: Kind = ""

    @property
    def number(self) -> int:
        """The position in the order of all changes."""
        return number_of(self.id)

    @property
    def effects(self) -> tuple[tuple[str, str | None, str | None], ...]:
        """The paths that the change names, with the hashes of the files there before and after."""
        if self.op == "recovered":
            return ()  # the text was never at a path
        if self.new_path is None:
            return ((self.path, self.before, self.after),)
        departure = (self.path, self.before, None)
        arrival = (self.new_path, None, self.after)
        return (departure, arrival)

    @property
    def is_by_person(self) -> bool:
        """Whether a person made the change.

        Old lines of the log do not say. In them, the tools of agents have an underscore in their
        names, and the commands have none.
        """
        if self.kind:
            return self.kind == "human"
        return self.who == COMMAND_LINE and "_" not in self.tool


def format_version(number: int) -> str:
    """Return the id of a version by its number."""
    return f"v{number:06d}"


def number_of(version: str) -> int:
    """Return the number of a version as people write it: "v42", "42" and "v000042" are the same.

    Raises NotFound for anything else.
    """
    digits = version.strip().removeprefix("v")
    if digits.isascii() and digits.isdigit() and len(digits) <= _MAX_ID_DIGITS:
        return int(digits)
    raise no_version(version)


def no_version(version: str) -> NotFound:
    """Return the error for a version that does not exist."""
    hint = "The history of a note lists its versions."
    return NotFound(f"no version {version[:40]!r}", hint=hint)


class Log:
    """The log of all changes. Reading needs no lock; whoever appends must hold the vault's.

    `kind` says who makes the changes of this process.
    """

    def __init__(self, root: str, *, kind: Kind = "agent") -> None:
        self.root = root
        self.kind = kind

    def whole_lines(self, start: int = 0) -> bytes:
        """Return the bytes from `start` to the end of the last complete line."""
        with self._opened() as (fd, size):
            data = disk.read_at(fd, start, size - start)
        end = data.rfind(b"\n") + 1
        return data[:end]

    def backwards(self, mark: bytes = b"", root: DirHandles | None = None) -> Iterator[Version]:
        """Yield the changes whose lines contain `mark`, newest first.

        `root` is the vault's root, if the caller has it open.
        """
        with self._opened(root) as (fd, size):
            start = max(size - _TAIL_BYTES, 0)
            tail = disk.read_at(fd, start, size - start)
            cut_line, *lines = tail.split(b"\n")
            yield from _newest_first(lines, mark)

            # The first line of the tail may have begun before it.
            head = disk.read_at(fd, 0, start)
            lines = (head + cut_line).split(b"\n")
            yield from _newest_first(lines, mark)

    def of(self, path: str) -> Iterator[Version]:
        """Yield the changes that name a path, newest first."""
        mark = json.dumps(path).encode()
        for version in self.backwards(mark):
            if path in (version.path, version.new_path):
                yield version

    def find(self, version: str) -> Version:
        """Return the change with an id, written in any way. Raises NotFound."""
        match = self.with_id(format_version(number_of(version)))
        if match is None:
            raise no_version(version)
        return match

    def with_id(self, version_id: str) -> Version | None:
        """Return the change with exactly this id, None if the log has none."""
        for version in self.backwards(version_id.encode()):
            if version.id == version_id:
                return version
        return None

    def group(self, group: str) -> list[Version]:
        """Return all changes of an operation, in order. `group` is the id of the first."""
        first = number_of(group)
        versions = self.since(first)
        return [version for version in versions if version.group == group]

    def since(self, number: int) -> list[Version]:
        """Return the changes from a number on, oldest first."""
        versions = []
        for version in self.backwards():
            if version.number < number:
                break
            versions.append(version)
        versions.reverse()
        return versions

    def next_number(self, root: DirHandles | None = None) -> int:
        """Return the number that follows the last change in the log."""
        newest = next(self.backwards(root=root), None)
        if newest is None:
            return 1
        return newest.number + 1

    @contextmanager
    def _opened(self, root: DirHandles | None = None) -> Iterator[tuple[int, int]]:
        """Yield the descriptor of the log and its size, which is 0 if there is no regular file.

        The size of a pipe is 0 too: reading it would block.
        """
        with ExitStack() as stack, translating_os_errors("read", LOG):
            fd = -1
            size = 0
            with suppress(FileNotFoundError):
                if root is None:
                    root = stack.enter_context(DirHandles(self.root))
                fd = stack.enter_context(root.opened(LOG, READ))
                file_stat = os.fstat(fd)
                if stat.S_ISREG(file_stat.st_mode):
                    size = file_stat.st_size
            yield fd, size

    def refresh(self) -> bool:
        """Fetch changes from elsewhere, if the log has a remote; return whether there were any."""
        return False

    def new_versions(
        self,
        steps: Sequence[Mapping[str, str | None]],
        *,
        first: int,
        tool: str,
        who: str,
        reason: str,
    ) -> list[Version]:
        """Return the changes of one operation, numbered from `first`; they are not logged yet.

        Each step has the fields `path` and `op`, and what it has of `new_path`, `before`, `after`
        and `trash`.
        """
        # Secrets are hidden: the log is never pruned, and git may contain it too.
        author = _without_secrets(who)
        purpose = _without_secrets(reason)
        common: dict[str, Any] = {
            "group": format_version(first),
            "when": _format_time(datetime.now(UTC)),
            "kind": self.kind,
            "tool": tool[:100],
            "who": author[:200],
            "reason": purpose[:1000],
            "new_path": None,
            "before": None,
            "after": None,
        }

        versions = []
        for number, step in enumerate(steps, first):
            fields = {**common, **step, "id": format_version(number)}
            versions.append(Version(**fields))
        return versions

    def append(self, root: DirHandles, versions: Sequence[Version]) -> None:
        """Add lines to the log, all or none. A half line that a crash left is closed off first."""
        lines = b"".join(map(_format_line, versions))
        root.make(parent(LOG))
        with root.opened(LOG, OVERWRITE | os.O_APPEND) as fd:
            disk.append_lines(fd, lines)


def _format_line(version: Version) -> bytes:
    line = json.dumps(version._asdict(), separators=(",", ":"))
    return line.encode() + b"\n"


@lru_cache(64)
def _without_secrets(text: str) -> str:
    """Return a text in which secrets, such as API keys, are masked."""
    if not text:
        return text
    from simplemem.note.secrets import find_secrets  # imported late: its patterns take a moment

    for secret in reversed(find_secrets(text)):
        text = text[: secret.start] + secret.shown + text[secret.end :]
    return text


def _format_time(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def last_before(times: Iterable[tuple[int, str]], when: str) -> int:
    """Return the number of the last change before a moment in UTC, 0 if there is none.

    `times` has the number and the time of each change, newest first. A clock may have been wrong
    for a while, so the log is cut where the fewest changes are on the wrong side.
    """
    cut: int | None = None
    score = 0  # changes after the moment, less changes before it, of those above the cut
    best_score = 0
    for number, change_time in times:
        if cut is None:
            cut = number
        score += 1 if change_time < when else -1
        if score < best_score:
            best_score = score
            cut = number - 1
    return cut or 0


def versions_in(lines: Iterable[bytes]) -> Iterator[Version]:
    """Yield the changes in some lines of the log, in their order. Damaged lines are skipped."""
    return filter(None, map(_parse_line, lines))


def _newest_first(lines: Sequence[bytes], mark: bytes) -> Iterator[Version]:
    """Yield the changes in those lines that contain `mark`, from the last line to the first."""
    marked_lines = (line for line in reversed(lines) if mark in line)
    return versions_in(marked_lines)


def read_version(fields: object) -> Version | None:
    """Return the version that an object from JSON describes, None if it describes none."""
    if not isinstance(fields, dict):
        return None

    texts: dict[str, Any] = {name: fields.get(name) for name in Version._fields}
    if not _TEXT_TYPES.issuperset(map(type, texts.values())):
        return None
    if None in map(texts.get, _REQUIRED):
        return None
    if texts["op"] not in _OPS:
        return None
    if not _ID.fullmatch(texts["id"]) or not _ID.fullmatch(texts["group"]):
        return None

    for name in _MAY_LACK:
        texts[name] = texts[name] or ""
    return Version(**texts)


def _parse_line(line: bytes) -> Version | None:
    # A line that a crash cut off is no change: the journal has it, or it never happened.
    if not line:
        return None
    try:
        return read_version(json.loads(line))
    except (ValueError, RecursionError):
        return None


class _StoredText(NamedTuple):
    """A text in `objects/`. Texts are sorted by the number of the last change that used them."""

    last_use: int
    sha256: str
    size: int


@dataclass
class _LogSummary:
    """What pruning needs of the log."""

    times: list[tuple[int, str]] = field(default_factory=list)  # of each change, oldest first
    last_uses: dict[str, int] = field(default_factory=dict)  # by the hash of a text
    last_group: str = ""
    deletions: list[Version] = field(default_factory=list)  # whose file is in our own trash


class History:
    """The log and the texts. Reading needs no lock; whoever writes must hold the vault's."""

    def __init__(self, root: str, *, keep_days: int, keep_mb: int, kind: Kind = "agent") -> None:
        self.log = Log(root, kind=kind)
        self.keep_days = keep_days
        self.keep_bytes = keep_mb * 1_000_000
        self._root_path = root

        # Whether a text may be shown: some hashes are those of hidden notes alone.
        self.may_tell: Callable[[str], bool] = lambda _sha: True
        # Texts that no change has written, kept for a caller of this process.
        self.given = set[str]()

    def content(self, sha: str) -> bytes | None:
        """Return the text with a hash; twelve digits or more are enough if only one hash has them.

        Returns None if the text is not kept, or belongs to hidden notes alone.
        """
        is_prefix = _MIN_PREFIX_DIGITS <= len(sha) < _SHA256_DIGITS
        if is_prefix and sha.isascii() and sha.isalnum():
            sha = self._complete_hash(sha)
        if sha in self.given or self.may_tell(sha):
            return self.read_text(sha)
        return None

    def _complete_hash(self, prefix: str) -> str:
        """Return the hash of the only text that begins with a prefix, else ""."""
        with DirHandles(self._root_path) as root:
            names = root.names(f"{OBJECTS}/{prefix[:2]}")
        matches = [name for name in names if name.startswith(prefix)]
        if len(matches) != 1:
            return ""
        return matches[0]

    def read_text(self, sha: str) -> bytes | None:
        """Return the text with a hash, None if it is not kept or is damaged.

        The text may be that of a hidden note, so it must not be shown to anyone.
        """
        is_hash = len(sha) == _SHA256_DIGITS and sha.isascii() and sha.isalnum()
        if not is_hash:
            return None

        with DirHandles(self._root_path) as root:
            for path in self._possible_paths(root, sha):
                with suppress(FileNotFoundError, NotADirectoryError):
                    data, _ = disk.read_file(root, path)
                    if sha256(data) == sha:
                        return data
        return None

    def _possible_paths(self, root: DirHandles, sha: str) -> Iterator[str]:
        """Yield where a text may be. Displaced files are listed only if the first path fails."""
        yield object_path(sha)
        for name in root.names(DISPLACED):
            if name.endswith(sha):
                yield f"{DISPLACED}/{name}"

    def keep(self, root: DirHandles, data: bytes, sha: str) -> None:
        """Keep a text in a file named by its hash. A file that is there and undamaged stays.

        The file is not synced: until it is on the disk, the displaced file or the trash has the
        text. It is staged in a folder that each start checks.
        """
        path = object_path(sha)
        if disk.hash_of(root, path) == sha:
            return

        root.make(parent(path))
        root.make(DISPLACED_FOLDER)
        with disk.staged(root, f"{DISPLACED}/{sha}", data, sync=False) as temp:
            disk.rename_over(root, temp, path)

    def set_aside(self, root: DirHandles, temp: str, version: str, sha: str) -> None:
        """Move a file that an editor may have open out of the notes' folders.

        For a day, it is watched for a late save. If the file is gone, a recovery that was
        interrupted has moved it already.
        """
        root.make(DISPLACED_FOLDER)
        unique = secrets.token_hex(3)
        target = f"{DISPLACED}/{version}-{unique}-{sha}"
        with suppress(FileNotFoundError):
            disk.move_file(root, temp, target)

    def rescue(
        self, root: DirHandles, file: str, path: str, reason: str, version: str = "stray"
    ) -> list[Version]:
        """Set a staged or displaced file aside; a text that is kept nowhere becomes a version.

        Returns that version of the note `path`, if there is one. An empty file, and one that has
        another name, is removed.
        """
        data, file_stat = disk.read_file(root, file)
        if not data or file_stat.st_nlink > 1:
            disk.remove(root, file)
            return []

        digest = sha256(data)
        saved = []
        if self.read_text(digest) is None:
            saved = self._log_recovered(root, path, data, digest, reason)
            version = saved[0].id
        self.set_aside(root, file, version, digest)
        return saved

    def _log_recovered(
        self, root: DirHandles, path: str, data: bytes, digest: str, reason: str
    ) -> list[Version]:
        """Keep a text that another program saved, and log it as a version of the note `path`."""
        self.keep(root, data, digest)
        step = {"path": path, "op": "recovered", "after": digest}
        number = self.log.next_number()
        versions = self.log.new_versions(
            [step],
            first=number,
            tool="recover",
            who="",
            reason=reason,
        )
        self.log.append(root, versions)
        return versions

    # Displaced files

    def settle(
        self, root: DirHandles, seconds: float = A_DAY, *, thorough: bool = False
    ) -> list[Version]:
        """Check the displaced files; return the versions that late saves became.

        Files that have not changed for `seconds` are removed. With `thorough`, files are read even
        if their times show no late save: a program may have set the time back.
        """
        saved = list[Version]()
        for name in root.names(DISPLACED):
            if disk.TEMP.fullmatch(name):
                disk.remove(root, f"{DISPLACED}/{name}")  # `keep` was interrupted
                continue
            with suppress(FileNotFoundError):
                saved += self._settle_file(root, name, seconds, thorough=thorough)
        return saved

    def _settle_file(
        self, root: DirHandles, name: str, seconds: float, *, thorough: bool
    ) -> list[Version]:
        file = f"{DISPLACED}/{name}"
        file_stat = root.stat(file)
        is_old = abs(time.time() - file_stat.st_ctime) > seconds
        if not is_old and not thorough and _is_untouched(file_stat):
            return []

        data, _ = disk.read_file(root, file)
        digest = name.rpartition("-")[2]
        if file_stat.st_nlink > 1:  # the file has another name, so it is not lost
            disk.remove(root, file)
        elif sha256(data) == digest:
            if is_old:
                # A power cut may have lost the text that was kept at the time, without a sync.
                self.keep(root, data, digest)
                disk.remove(root, file)
        elif data:
            return self._rescue_late_save(root, name)
        elif is_old:  # the file was emptied, and nothing was written
            disk.remove(root, file)
        return []

    def _rescue_late_save(self, root: DirHandles, name: str) -> list[Version]:
        """Make the text of a displaced file a version of the note that the file belonged to."""
        file = f"{DISPLACED}/{name}"
        version_id = name.partition("-")[0]
        version = self.log.with_id(version_id)
        if version is None:
            note = file
        else:
            note = version.new_path or version.path
        reason = "saved by another program into the file that simplemem had just replaced"
        return self.rescue(root, file, note, reason, version_id)

    # Pruning

    def is_full(self) -> bool:
        """Return whether pruning is due: the last time was hours ago, or there was none."""
        with DirHandles(self._root_path) as root:
            last_time = entry_at(root, LAST_PRUNED)
            log = entry_at(root, LOG)
        if last_time is None:
            return log is not None
        age = abs(time.time() - last_time.mtime_ns / 1e9)
        return age > A_DAY / 4

    def prune(self, root: DirHandles) -> list[str]:
        """Remove the texts beyond the configured days and megabytes; return their hashes.

        The oldest are removed first. Days are counted back from the newest changes, so a vault that
        does not change loses nothing. The texts before the last operation stay, so that it can be
        undone. It is safe to interrupt this at any point.
        """
        self.settle(root, thorough=True)
        log = self._summarize_log()
        needed = set[str | None]()
        if log.times:
            needed = {version.before for version in self.log.group(log.last_group)}

        last_expired = self._last_expired(log.times)
        texts = sorted(self._texts(root, log.last_uses), reverse=True)
        expired = self._expired_texts(texts, last_expired, needed)

        # The trash goes first: if this stops here, the texts show the next time what is left to do.
        self._empty_trash(root, log.deletions, set(expired), last_expired)
        for digest in expired:
            disk.remove(root, object_path(digest))
        root.make(parent(LAST_PRUNED))
        disk.write_own_file(root, LAST_PRUNED, b"", sync=False)
        return expired

    def _summarize_log(self) -> _LogSummary:
        summary = _LogSummary()
        lines = self.log.whole_lines().split(b"\n")
        for version in versions_in(lines):
            number = version.number
            summary.times.append((number, version.when))
            summary.last_group = version.group
            for digest in (version.before, version.after):
                if digest:
                    summary.last_uses[digest] = number
            # Obsidian's trash belongs to the user.
            if version.trash and version.trash.startswith(f"{OWN_TRASH}/"):
                summary.deletions.append(version)
        return summary

    def _last_expired(self, times: Sequence[tuple[int, str]]) -> int:
        """Return the number of the last change before the days to keep, 0 if there is none.

        The days are counted back from the end of the newest day with changes, but not from the
        future.
        """
        with suppress(ValueError, IndexError, OverflowError):
            newest_day = _trusted_newest_day(times)
            midnight = datetime.fromisoformat(newest_day)
            end_of_day = midnight.replace(tzinfo=UTC) + timedelta(days=1)
            now = datetime.now(UTC)
            newest = min(end_of_day, now)
            edge = newest - timedelta(days=self.keep_days)
            edge_text = _format_time(edge)
            return last_before(reversed(times), edge_text)
        return 0

    def _texts(self, root: DirHandles, last_uses: Mapping[str, int]) -> Iterator[_StoredText]:
        """Yield the texts that are kept. After a day, one that no change uses is the oldest."""
        for folder_name in root.names(OBJECTS):
            folder = f"{OBJECTS}/{folder_name}"
            for name in root.names(folder):
                if len(name) != _SHA256_DIGITS:
                    continue

                file_stat = root.stat(f"{folder}/{name}")
                age = abs(time.time() - file_stat.st_mtime)
                last_use = last_uses.get(name)
                if last_use is None:
                    last_use = _FUTURE_USE if age <= A_DAY else -1
                yield _StoredText(last_use, name, file_stat.st_size)

    def _expired_texts(
        self, texts: Iterable[_StoredText], last_expired: int, needed: set[str | None]
    ) -> list[str]:
        """Return the hashes of the texts to remove. `texts` are sorted, last used first."""
        expired = list[str]()
        total = 0
        for text in texts:
            total += text.size
            is_too_old = text.last_use <= last_expired
            is_too_much = total > self.keep_bytes and text.sha256 not in needed
            if is_too_old or is_too_much:
                expired.append(text.sha256)
        return list(dict.fromkeys(expired))

    def _empty_trash(
        self,
        root: DirHandles,
        deletions: Iterable[Version],
        expired: set[str],
        last_expired: int,
    ) -> None:
        """Remove deleted files that expired from the trash, unless somebody changed them."""
        for version in deletions:
            is_expired = version.before in expired or version.number <= last_expired
            if not is_expired:
                continue

            path = version.trash or ""
            with suppress(FileNotFoundError):
                if disk.hash_of(root, path) == version.before:
                    disk.remove(root, path)
                    root.prune(parent(path), keep=2)


def _trusted_newest_day(times: Sequence[tuple[int, str]]) -> str:
    """Return the middle one of the last three days with changes. Raises IndexError without one.

    In this way, a day under a wrong clock loses nothing. `times` has the oldest change first.
    """
    newest_first = dict.fromkeys(when[:10] for _, when in reversed(times))
    newest_days = list(newest_first)[:3]
    newest_days.sort()
    middle = (len(newest_days) - 1) // 2
    return newest_days[middle]


def _is_untouched(file_stat: os.stat_result) -> bool:
    """Return whether the times of a displaced file show that it was not saved since.

    The file was displaced after its last save, by more than the clock of a file system can hide.
    """
    delay = file_stat.st_ctime_ns - file_stat.st_mtime_ns
    return file_stat.st_nlink == 1 and delay > _COARSEST_CLOCK_NS


def object_path(sha: str) -> str:
    """Return the path of the file in which the text with a hash is kept."""
    return f"{OBJECTS}/{sha[:2]}/{sha}"
