"""The earlier versions of notes: the log of all changes, the texts of the notes, and the trash.

The log is a file with one line per change. The order of the changes is the order of the lines,
never that of a clock (F12). The texts are in `objects/ab/<sha256>`. For a day, `displaced/` keeps
the files that writes replaced: an editor that still has one open may save into it, and that text
becomes a version too (F20). This module never changes a note. `pruning` removes the texts that are
no longer needed.
"""

from __future__ import annotations

import json
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from simplemem.note.names import Parts, is_path, parent
from simplemem.vault.folder import disk
from simplemem.vault.folder.dir_handles import (
    OVERWRITE,
    OWN_FOLDER,
    READ,
    DirHandles,
    translating_os_errors,
)
from simplemem.vault.folder.disk import entry_at
from simplemem.vault.values import (
    Kind,
    Version,
    format_line,
    format_version,
    no_version,
    number_of,
    sha256,
    versions_in,
)

# -- the log

LOG = f"{OWN_FOLDER}/history/log.jsonl"
_TAIL_BYTES = 1 << 13  # of the log are read first: most callers need only the last few changes
_MAX_SOURCES = 10  # of a change
_MAX_SOURCE_LENGTH = 1000  # no name is longer on any system


class Log:
    """The log of all changes. Reading needs no lock; whoever appends must hold the vault's.

    Each read raises Unreadable or Unavailable if the disk fails. `kind` says who makes the
    changes of this process whose author does not say it.
    """

    def __init__(self, root: str, *, kind: Kind = "agent") -> None:
        """Begin with the log of the vault in the folder `root`, which need not exist."""
        self.root = root
        self.kind = kind

    def whole_lines(self, start: int = 0) -> bytes:
        """Return the bytes of the log from the offset `start` to the end of the last whole line.

        A line that is still being written is left out. Returns b"" without a log.
        """
        with self._opened() as (fd, size):
            data = disk.read_at(fd, start, size - start)
        end = data.rfind(b"\n") + 1
        return data[:end]

    def backwards(self, mark: bytes = b"", root: DirHandles | None = None) -> Iterator[Version]:
        """Yield the changes whose lines contain the bytes `mark`, newest first.

        Without a mark, all are yielded. Damaged lines are skipped. `root` is the vault's root, if
        the caller has it open. The log is read when the first change is asked for.
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
        """Yield the changes that have a path as their old or new one, newest first.

        Moves are not followed: what happened to a note under a former path is not yielded.
        """
        mark = json.dumps(path).encode()
        for version in self.backwards(mark):
            if path in (version.path, version.new_path):
                yield version

    def find(self, version: str) -> Version:
        """Return the change with an id, which may be written as "v42", "42" or "v000042".

        Raises NotFound if the log has no such change, or if the text is no id.
        """
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
        """Return all changes of an operation, in order. `group` is the id of the first.

        Returns [] if there is none. Raises NotFound for a text that is no id.
        """
        first = number_of(group)
        versions = self.since(first)
        return [version for version in versions if version.group == group]

    def since(self, number: int) -> list[Version]:
        """Return the changes with a number or a greater one, oldest first."""
        versions = []
        for version in self.backwards():
            if version.number < number:
                break
            versions.append(version)
        versions.reverse()
        return versions

    def next_number(self, root: DirHandles | None = None) -> int:
        """Return the number that follows the last change in the log, 1 for an empty one.

        `root` is the vault's root, if the caller has it open.
        """
        newest = next(self.backwards(root=root), None)
        if newest is None:
            return 1
        return newest.number + 1

    @contextmanager
    def _opened(self, root: DirHandles | None = None) -> Iterator[tuple[int, int]]:
        """Yield the descriptor of the log and its size.

        Without a file, the descriptor is -1 and the size 0. The size of a pipe is 0 too: reading it
        would block.
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
        """Fetch changes from elsewhere, if the log has a remote; return whether there were any.

        This log has none, so it does nothing.
        """
        return False

    def new_versions(
        self,
        steps: Sequence[Mapping[str, str | None]],
        *,
        first: int,
        tool: str,
        who: str,
        reason: str,
        kind: Kind = "",
        session: str = "",
        sources: Sequence[str] = (),
    ) -> list[Version]:
        """Return the changes of one operation, numbered from `first`; they are not logged yet.

        Each step has the fields `path` and `op` of a `Version`, and may have `new_path`, `before`,
        `after` and `trash`, which are else None. The time is now. Without a `kind`, that of
        this log is recorded. Of `sources`, the first 10 are. Secrets in `who`, `reason` and
        `sources` are masked, and long texts are cut.
        """
        # Secrets are masked: the log is never pruned, and git may contain it too.
        author = _without_secrets(who)
        purpose = _without_secrets(reason)
        names = [_without_secrets(source) for source in sources[:_MAX_SOURCES]]
        common: dict[str, Any] = {
            "group": format_version(first),
            "when": format_time(datetime.now(UTC)),
            "kind": kind or self.kind,
            "tool": tool[:100],
            "who": author[:200],
            "reason": purpose[:1000],
            "new_path": None,
            "before": None,
            "after": None,
            "session": session[:100],
            "sources": tuple(name[:_MAX_SOURCE_LENGTH] for name in names),
        }

        versions = []
        for number, step in enumerate(steps, first):
            fields = {**common, **step, "id": format_version(number)}
            versions.append(Version(**fields))
        return versions

    def append(self, root: DirHandles, versions: Sequence[Version]) -> None:
        """Add changes to the log, all or none; create it if needed.

        The vault's lock must be held. A half line that a crash left is closed off first. Nothing is
        synced to the disk.
        """
        lines = b"".join(map(format_line, versions))
        root.make(parent(LOG))
        with root.opened(LOG, OVERWRITE | os.O_APPEND) as fd:
            disk.append_lines(fd, lines)


@lru_cache(64)
def _without_secrets(text: str) -> str:
    """Return a text in which secrets, such as API keys, are masked."""
    if not text:
        return text
    from simplemem.note.secrets import find_secrets  # imported late: its patterns take a moment

    for secret in reversed(find_secrets(text)):
        text = text[: secret.start] + secret.shown + text[secret.end :]
    return text


def format_time(moment: datetime) -> str:
    """Return a moment as the log writes it, such as `2026-01-24T09:00:00.000Z`.

    `moment` must be in UTC.
    """
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _newest_first(lines: Sequence[bytes], mark: bytes) -> Iterator[Version]:
    """Yield the changes in those lines that contain `mark`, from the last line to the first."""
    marked_lines = (line for line in reversed(lines) if mark in line)
    return versions_in(marked_lines)


# -- the trash

OWN_TRASH = f"{OWN_FOLDER}/trash"
OBSIDIAN_TRASH = ".trash"


def is_trash(path: str) -> bool:
    """Return whether a path is that of a file in one of the two trash folders.

    They are simplemem's own and Obsidian's. A malformed or hidden path in them does not count.
    """
    for trash in (OWN_TRASH, OBSIDIAN_TRASH):
        prefix = f"{trash}/"
        if path.startswith(prefix) and is_path(path.removeprefix(prefix)):
            return True
    return False


# -- earlier texts

DISPLACED = f"{OWN_FOLDER}/history/displaced"
"""The folder of displaced files: `<id of the version>-<random digits>-<sha256 when displaced>`."""

DISPLACED_FOLDER: Parts = tuple(DISPLACED.split("/"))
OBJECTS = f"{OWN_FOLDER}/history/objects"
LAST_PRUNED = f"{OWN_FOLDER}/history/thinned"
"""An empty file whose time says when the history was last pruned."""

A_DAY = 86_400.0
SHA256_DIGITS = 64

_COARSEST_CLOCK_NS = 2_000_000_000  # the times of a file on FAT are two seconds apart
_MIN_PREFIX_DIGITS = 12


class History:
    """The log and the texts. Reading needs no lock; whoever writes must hold the vault's."""

    can_be_rebuilt = False  # True if the log and the texts are derived from a git repository

    def __init__(self, root: str, log: Log, *, keep_days: int, keep_mb: int) -> None:
        """Begin with the texts of the vault in the folder `root`. Reads nothing.

        `keep_days` and `keep_mb` are the limits that `pruning.prune` applies.
        """
        self.log = log
        self.keep_days = keep_days
        self.keep_bytes = keep_mb * 1_000_000
        self._root_path = root

        # Whether a text may be shown: some hashes are those of hidden notes alone.
        self.may_show: Callable[[str], bool] = lambda _sha: True
        # The hashes of texts that no change has written, kept for a caller of this process.
        self.unwritten_texts = set[str]()

    def content(self, sha: str) -> bytes | None:
        """Return the text with a hash, if it may be shown; None if it is not kept.

        The first twelve digits or more are enough if only one hash begins with them. None also if
        the text belongs to hidden notes alone.
        """
        is_prefix = _MIN_PREFIX_DIGITS <= len(sha) < SHA256_DIGITS
        if is_prefix and sha.isascii() and sha.isalnum():
            sha = self._complete_hash(sha)
        if sha in self.unwritten_texts or self.may_show(sha):
            return self.read_text(sha)
        return None

    def _complete_hash(self, prefix: str) -> str:
        """Return the hash of the only text in `objects/` whose hash begins with a prefix.

        Returns "" if there is none, or more than one.
        """
        with DirHandles(self._root_path) as root:
            names = root.names(f"{OBJECTS}/{prefix[:2]}")
        matches = [name for name in names if name.startswith(prefix)]
        if len(matches) != 1:
            return ""
        return matches[0]

    def read_text(self, sha: str) -> bytes | None:
        """Return the text with a hash of 64 digits, None if it is not kept or is damaged.

        The text may be that of a hidden note. To show a text, use `content`, which checks that.
        Raises Invalid for a link in place of the text, and Unreadable or Unavailable if the disk
        fails.
        """
        is_hash = len(sha) == SHA256_DIGITS and sha.isascii() and sha.isalnum()
        if not is_hash:
            return None

        with (
            DirHandles(self._root_path) as root,
            translating_os_errors("read", object_path(sha)),
        ):
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

    def text_before(self, change: Version) -> bytes | None:
        """Return the text of a note before a change, None if it is not kept or there was no note.

        If the change moved the note to the trash, the text may be there.
        """
        if change.before is None:
            return None
        data = self.read_text(change.before)
        if data is None and change.trash and is_trash(change.trash):
            with (
                DirHandles(self._root_path) as root,
                translating_os_errors("read", change.trash),
                suppress(FileNotFoundError),
            ):
                data, _ = disk.read_file(root, change.trash)
        if data is None or sha256(data) != change.before:
            return None
        return data

    def keep(self, root: DirHandles, data: bytes, sha: str) -> None:
        """Keep a text in a file named by its hash `sha`.

        A file that is there and undamaged stays. The vault's lock must be held. The file is not
        synced: until it is on the disk, the file that the write displaced or the trash has the text
        too. It is staged in a folder that each start checks. Raises OSError.
        """
        path = object_path(sha)
        if disk.hash_of(root, path) == sha:
            return

        root.make(parent(path))
        root.make(DISPLACED_FOLDER)
        with disk.staged(root, f"{DISPLACED}/{sha}", data, sync=False) as temp:
            disk.rename_over(root, temp, path)

    def set_aside(self, root: DirHandles, temp: str, version: str, sha: str) -> None:
        """Move a file that an editor may have open into the folder of displaced files.

        `temp` is its path, `version` the id of the change that displaced it, `sha` the hash of its
        text. `check_displaced` looks for a late save into it for a day. A file that is gone is no
        error: a recovery that was interrupted has moved it already.
        """
        root.make(DISPLACED_FOLDER)
        unique = secrets.token_hex(3)
        target = f"{DISPLACED}/{version}-{unique}-{sha}"
        with suppress(FileNotFoundError):
            disk.move_file(root, temp, target)

    def rescue(
        self,
        root: DirHandles,
        file: str,
        path: str,
        reason: str,
        version: str = "stray",
    ) -> list[Version]:
        """Set a staged or displaced file aside; a text that is kept nowhere becomes a version.

        `file` is its path, `version` the id of the change that displaced it. Returns the new
        version of the note `path`, with this reason, or nothing if the text is kept already. A file
        that is empty or has a second name (a hard link) is only removed. Raises FileNotFoundError
        if the file does not exist, and Unreadable or TooLong if it cannot be read.
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
        self,
        root: DirHandles,
        path: str,
        data: bytes,
        digest: str,
        reason: str,
    ) -> list[Version]:
        """Keep a text that another program saved, and log it as a version of the note `path`.

        The note is not changed. Returns that version, as the only item.
        """
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

    def check_displaced(
        self,
        root: DirHandles,
        seconds: float = A_DAY,
        *,
        thorough: bool = False,
    ) -> list[Version]:
        """Check the displaced files for late saves; return the versions that these became.

        Files that were displaced over `seconds` ago are removed. With `thorough`, files are read
        even if their times show no late save: a program may have set the time back. The vault's
        lock must be held.
        """
        saved = list[Version]()
        for name in root.names(DISPLACED):
            if disk.TEMP.fullmatch(name):
                disk.remove(root, f"{DISPLACED}/{name}")  # `keep` was interrupted
                continue
            with suppress(FileNotFoundError):
                saved += self._check_displaced_file(root, name, seconds, thorough=thorough)
        return saved

    def _check_displaced_file(
        self,
        root: DirHandles,
        name: str,
        seconds: float,
        *,
        thorough: bool,
    ) -> list[Version]:
        """Check one displaced file; return the version that a late save became, if there was one.

        Removes a file that is no longer needed. Raises FileNotFoundError if it is gone.
        """
        file = f"{DISPLACED}/{name}"
        file_stat = root.stat(file)
        # The clock may have been set back since.
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
        """Make the text of a displaced file a version of the note that the file belonged to.

        `name` is the name of the file in the folder of displaced files. Returns the version, or
        nothing if the text is kept already.
        """
        file = f"{DISPLACED}/{name}"
        version_id = name.partition("-")[0]
        version = self.log.with_id(version_id)
        if version is None:
            note = file  # as for a file that `rescue` has set aside
        else:
            note = version.new_path or version.path
        reason = "saved by another program into the file that simplemem had just replaced"
        return self.rescue(root, file, note, reason, version_id)

    # Pruning

    def is_pruning_due(self) -> bool:
        """Return whether the history was last pruned over six hours ago, or never.

        False for a vault without any changes.
        """
        with DirHandles(self._root_path) as root:
            last_pruned = entry_at(root, LAST_PRUNED)
            log = entry_at(root, LOG)
        if last_pruned is None:
            return log is not None
        age = abs(time.time() - last_pruned.mtime_ns / 1e9)
        return age > A_DAY / 4


def _is_untouched(file_stat: os.stat_result) -> bool:
    """Return whether the times of a displaced file show that it was not saved since.

    To displace a file sets its ctime, and to save it sets both times. So the last save was before
    if the ctime is later, by more than the steps of the file system's clock. False if that is not
    certain, or if the file has another name.
    """
    delay_ns = file_stat.st_ctime_ns - file_stat.st_mtime_ns
    return file_stat.st_nlink == 1 and delay_ns > _COARSEST_CLOCK_NS


def object_path(sha: str) -> str:
    """Return the path of the file in which the text with a hash is kept."""
    return f"{OBJECTS}/{sha[:2]}/{sha}"
