"""The folder of notes: scan, read, create, replace, move, trash, undo. The only door to a note's bytes, and no word
about what they mean: a note is its vault path, its state the sha256 of its bytes."""

from __future__ import annotations

import copy
import os
import random
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

from simplemem.errors import Invalid, NotFound, ReadOnly, SimplememError, TooLong, Unavailable
from simplemem.note.paths import MAX_PATH_PARTS, Parts, check_path, is_path
from simplemem.vault.access import Access
from simplemem.vault.folder import disk
from simplemem.vault.folder.dir_handles import OWN_FOLDER, DirHandles
from simplemem.vault.folder.disk import Entry, entry_at, entry_of, sha256
from simplemem.vault.folder.history import History, Kind, Version
from simplemem.vault.folder.journal import Journal, is_trash
from simplemem.vault.folder.lock import FileLock, make_own_folder
from simplemem.vault.folder.watch import Watch, Watching
from simplemem.vault.folder.writer import Change, FileChange, Operation, WriteResult, no_such_file
from simplemem.vault.os_errors import explain, translating_os_errors

__all__ = ["Change", "Entry", "File", "FileChange", "Vault", "Version", "WriteResult"]


class File(NamedTuple):
    """A note or attachment as it was read."""

    path: str
    data: bytes
    sha256: str
    entry: Entry


class Vault:
    """One folder of notes. Its methods may be called from any thread; writes exclude each other across processes."""

    is_branch = False  # whether the notes are those of a commit, not of a folder
    place = ""  # of a branch, as it may be shown

    def __init__(
        self,
        root: Path,
        *,
        read_only: bool = False,
        durable: bool = True,
        keep_days: int = 30,
        keep_mb: int = 100,
        trash: Literal["own", "obsidian"] = "own",
        access: Access | None = None,
        kind: Kind = "agent",
    ) -> None:
        self.root = Path(os.path.abspath(root))
        self.access, self.durable, self.trash_kind = access or Access(), durable, trash
        self.problems: dict[
            str, str
        ] = {}  # files and folders that the last scan could not see, and why
        self.on_written: Callable[[str], None] | None = (
            None  # told an operation once it is made, before it is answered
        )
        self._lock = FileLock(str(self.root), f"{OWN_FOLDER}/lock")
        self._threads = threading.RLock()
        self.history = History(str(self.root), keep_days=keep_days, keep_mb=keep_mb, kind=kind)
        self.journal = Journal(self.history, durable=durable)
        with self._beneath() as here:
            here.folder(())
        # F9: a vault on a disk that cannot be written is opened all the same, and read.
        self.read_only = read_only or not (
            os.access(self.root, os.W_OK) or os.access(self.root / OWN_FOLDER, os.W_OK)
        )

    def without_rules(self) -> Self:
        """Return the same vault as whoever may see all of it has it, for what must hold in the whole vault.

        What is found there must be told to nobody who sees less.
        """
        whole = copy.copy(self)
        whole.access = Access()
        return whole

    def scan(self) -> list[Entry]:
        """Every regular file that is not under a dot-folder, sorted by path. What it could not see: `problems`."""
        with self._beneath() as here:
            return self._seen(walk(here))

    def paths(self) -> list[str]:
        """The paths of the files that `scan` finds, sorted. It takes a tenth of the time, as it looks at no file."""
        with self._beneath() as here:
            paths = walk_paths(here)
        return (
            [path for path in paths if not self.access.hides(path)]
            if self.access.is_partial
            else paths
        )

    def entries_below(self, folder: str) -> list[Entry]:
        """The files in one folder and its folders; none when it is not there."""
        with self._beneath() as here:
            entries = walk(here, check_path(folder) if folder else ()).entries
        return [entry for entry in entries if not self.access.hides(entry.path)]

    def entry(self, path: str) -> Entry | None:
        """One file as the disk shows it now, None when there is no regular file."""
        check_path(path)
        if self.access.hides(path):
            return None
        with self._beneath() as here, translating_os_errors("access", path):
            return entry_at(here, path)

    def read(self, path: str) -> File:
        """A file's bytes and their hash, from one moment: it is read again while somebody writes into it."""
        with self.reading() as read:
            return read(path)

    @contextmanager
    def reading(self) -> Iterator[Callable[[str], File]]:
        """What reads many files as `read` does one, for a short while: a folder moved away meanwhile is still read."""
        with self._beneath() as here:
            yield lambda path: self._read(here, path)

    def _read(self, here: DirHandles, path: str) -> File:
        check_path(path)
        if self.access.hides(path):
            raise no_such_file(path)
        with translating_os_errors("read", path):
            try:
                data, found = disk.read_file(here, path)
            except (FileNotFoundError, NotADirectoryError) as error:
                raise no_such_file(path) from error
        return File(path, data, sha256(data), entry_of(path, found))

    @contextmanager
    def lock(self, timeout: float = 10.0) -> Iterator[None]:
        """Hold the vault: no other thread or process writes meanwhile. After `timeout` Unavailable names its holder."""
        if self.read_only:
            hint = "Open the vault without --read-only, and make its folder writable."
            raise ReadOnly(f"the vault {str(self.root)!r} is read-only", hint=hint)
        deadline = time.monotonic() + timeout
        if not self._threads.acquire(timeout=max(timeout, 0)):
            raise _busy(f"another thread of this process ({os.getpid()})", timeout)
        is_outermost = self._lock.fd < 0  # else this thread has it already
        try:
            while is_outermost and not self._lock.take():
                left = deadline - time.monotonic()
                if left <= 0:
                    raise _busy(
                        f"process {self._lock.holder}" if self._lock.holder else "another process",
                        timeout,
                    )
                # Uneven pauses, so that those who wait do not all come back at the same moment.
                time.sleep(min(random.uniform(0.0005, 0.005), left))  # noqa: S311
            yield
        finally:
            if is_outermost:
                self._lock.release()
            self._threads.release()

    def own_folder(self) -> Path:
        """The folder for what is ours, `<vault>/.simplemem`, made with its `.gitignore` when it is missing."""
        with self._beneath() as here, translating_os_errors("make", OWN_FOLDER, writing=True):
            make_own_folder(here)
        return self.root / OWN_FOLDER

    def create(
        self, path: str, data: bytes, change: Change, *, rewrites: Sequence[FileChange] = ()
    ) -> WriteResult:
        """Make a new file. AlreadyExists when one is there, or one that differs only in case or accents."""
        return self.carry_out([FileChange("create", path, data=data), *rewrites], change)[0]

    def replace(self, path: str, data: bytes, expected_sha256: str, change: Change) -> WriteResult:
        """Give a file new bytes. Conflict when it is not what was expected; done already is success."""
        return self.carry_out([FileChange.update(path, expected_sha256, data)], change)[0]

    def trash(self, path: str, expected_sha256: str | None, change: Change) -> WriteResult:
        """Put a file into the trash. `undo` with the version brings it back, even when the trash was emptied."""
        with self.lock():
            wish = FileChange("delete", path, expected_sha256 or self.read(path).sha256, gone=True)
            return self.carry_out([wish], change)[0]

    def carry_out(self, wishes: Sequence[FileChange], change: Change) -> list[WriteResult]:
        """Change several files as one operation, all of it or nothing. Every write comes by here and is checked here."""
        seen = set[str]()
        with self.lock():
            for number, wish in enumerate(wishes):
                for path in {wish.path, wish.target}:
                    self.access.check(path, asked=number == 0 and wish.op != "undo")
                    check_path(path)
                    if path in seen:
                        raise Invalid(f"{path!r} is changed twice in one operation")
                    seen.add(path)
                if wish.gone:
                    self.access.check_gone(wish.path)
                if wish.data is not None and len(wish.data) > disk.MAX_FILE_BYTES:
                    most = f"the limit is {disk.MAX_FILE_BYTES:,}"
                    raise TooLong(f"{wish.path!r} would have {len(wish.data):,} bytes; {most}")
            with translating_os_errors(wishes[0].op, wishes[0].path, writing=True):
                written = self._carried_out(wishes, change)
        if self.on_written is not None and written[0].changed:
            self.on_written(written[0].version)
        return written

    def _carried_out(self, wishes: Sequence[FileChange], change: Change) -> list[WriteResult]:
        with self._beneath() as here:
            self.journal.resume(here)
            return Operation(self, here, wishes).carry_out(change)

    def undo(self, version: str, change: Change) -> list[WriteResult]:
        """Reverse all of an operation. Conflict when one of its notes has changed since; an undo can be undone."""
        with self.lock():
            first = self.history.log.find(version)
            if first.op == "recovered":
                hint = "Read it by its sha256, and write it to the note that it belongs to."
                raise Invalid(
                    f"{first.id} is a recovered text, not a change that can be undone", hint=hint
                )
            return self.carry_out(
                [*map(self._reversed, reversed(self.history.log.group(first.group)))], change
            )

    def store_text(self, data: bytes) -> None:
        """Keep a text that no change has written, so that it can be read by its hash. Where it cannot be, it is not."""
        with suppress(SimplememError, OSError), self.lock(), self._beneath() as here:
            self.history.keep(here, data, sha256(data))
            self.history.given.add(sha256(data))

    def recover(self) -> tuple[int, list[Entry]]:
        """What a start does first: finish what a crash interrupted, clear our strays; how much there was, and a scan."""
        if self.read_only:
            return 0, self.scan()
        with self._at_work("recover") as here:
            resumed, scan = self.journal.resume(here), walk(here)
            for path in scan.strays:
                with suppress(FileNotFoundError):  # nobody's: whoever writes holds the lock
                    self.history.rescue(here, path, path, "left by an interrupted write")
                here.close_all()
            return resumed + len(scan.strays) + len(self.history.settle(here)), self._seen(scan)

    def finish_interrupted(self) -> None:
        """Finish or drop the change that a crash interrupted, as every write does before its own."""
        if not self.read_only:
            with self._at_work("recover") as here:
                self.journal.resume(here)

    def prune_history(self) -> list[str]:
        """Drop what of the past need not be kept any longer; the hashes that went."""
        with self._at_work("thin") as here:
            self.journal.resume(
                here
            )  # what a crash interrupted is to be in the log first: its texts are needed
            return self.history.prune(here)

    def watch(
        self, *, poll: bool, poll_seconds: float = 2.0, warn: Callable[[str], None]
    ) -> Watching:
        """What may have changed from now on."""
        return Watch(self.root, poll=poll, poll_seconds=poll_seconds, warn=warn)

    def repository(self) -> Any:
        """Of a branch its repository, as git's functions take it; None of a folder."""

    def newest(self) -> str:
        """The newest commit of a branch."""
        return ""

    def changed(self, since: str, until: str) -> set[str] | None:
        """The files that differ between two commits; None where the branch did not go on from the first."""

    def is_before(self, commit: str, other: str) -> bool:
        """Whether a commit is the other, or one that the other stands on."""
        return commit == other

    def reach(self, commit: str) -> bool:
        """Whether a commit is in what is read here."""
        return not commit

    @contextmanager
    def _at_work(self, doing: str) -> Iterator[DirHandles]:
        with (
            self.lock(),
            self._beneath() as here,
            translating_os_errors(doing, OWN_FOLDER, writing=True),
        ):
            yield here

    def _seen(self, scan: Scan) -> list[Entry]:
        self.problems = {
            path: why for path, why in scan.problems.items() if not self.access.hides(path)
        }
        return [entry for entry in scan.entries if not self.access.hides(entry.path)]

    def _reversed(self, step: Version) -> FileChange:
        path = step.path
        if step.before is None:
            return FileChange("undo", path, step.after, gone=True)
        data = None
        if step.before != step.after:
            data = self.history.read_text(step.before)
            if data is None and step.trash and is_trash(step.trash):
                with (
                    self._beneath() as here,
                    translating_os_errors("read", step.trash),
                    suppress(FileNotFoundError),
                ):
                    data, _ = disk.read_file(here, step.trash)
            if data is None or sha256(data) != step.before:
                hint = "The settings history.keep_days and history.keep_mb limit how long texts are kept."
                raise NotFound(f"the text before {step.id} is no longer kept", hint=hint)
        if step.after is None:
            return FileChange("undo", path, data=data, trash=step.trash)
        return FileChange(
            "undo", step.new_path or path, step.after, path if step.new_path else None, data
        )

    def _beneath(self) -> DirHandles:
        return DirHandles(str(self.root))


class Scan(NamedTuple):
    """What a walk found: files by path, what it left out and why, and files that an interrupted write of ours left."""

    entries: list[Entry]
    problems: dict[str, str]
    strays: list[str]


def walk(here: DirHandles, start: Parts = ()) -> Scan:
    """All regular files below a folder but dot-files and what links lead to (F36)."""
    scan = Scan([], {}, [])
    waiting = [start]
    while waiting:
        parts = waiting.pop()
        prefix = "/".join((*parts, ""))
        try:
            folder = here.folder(parts)
            with os.scandir(folder.path if folder.fd is None else folder.fd) as found:
                for item in found:
                    if item.name[0] != ".":
                        if _take_in(item, prefix, scan):
                            waiting.append((*parts, item.name))
                    elif disk.TEMP.fullmatch(item.name) and item.is_file(follow_symlinks=False):
                        scan.strays.append(prefix + item.name)
        except FileNotFoundError:
            continue  # it went while we walked
        except OSError as error:
            scan.problems[prefix[:-1]] = explain(error, "list", prefix[:-1], writing=False).message
        here.close_all()
    scan.entries.sort(key=attrgetter("path"))
    return scan


def walk_paths(here: DirHandles) -> list[str]:
    """The sorted paths of the files that `walk` would find. A folder that cannot be listed is left out."""
    paths, waiting = list[str](), list[Parts]([()])
    while waiting:
        parts = waiting.pop()
        prefix = "/".join((*parts, ""))
        with suppress(OSError):
            folder = here.folder(parts)
            with os.scandir(folder.path if folder.fd is None else folder.fd) as found:
                for item in found:
                    if item.name[0] == "." or not _can_be_spelled(prefix, item.name):
                        continue
                    if item.is_dir(follow_symlinks=False):
                        waiting.append((*parts, item.name))
                    elif item.is_file(follow_symlinks=False):
                        paths.append(prefix + item.name)
        here.close_all()
    return sorted(paths)


def _can_be_spelled(prefix: str, name: str) -> bool:
    """Whether a name in a folder makes a path of the vault."""
    is_plain = (
        name.isascii()
        and "\\" not in name
        and sys.platform != "win32"
        and prefix.count("/") < MAX_PATH_PARTS
    )
    return is_plain or is_path(prefix + name)


def _take_in(item: os.DirEntry[str], prefix: str, scan: Scan) -> bool:
    """Take a file in; say whether it is a folder to walk into."""
    path, name = prefix + item.name, item.name
    try:
        is_folder = item.is_dir(follow_symlinks=False)
        found = None if is_folder else item.stat(follow_symlinks=False)
    except FileNotFoundError:
        return False
    except OSError as error:
        scan.problems[path] = explain(error, "access", path, writing=False).message
        return False
    if found is not None and not stat.S_ISREG(found.st_mode):
        return False
    if not _can_be_spelled(prefix, name):
        shown = path if len(path) <= 200 else f"{path[:100]}...{path[-97:]}"
        why = "its name is not valid in a path, or it has too many nested folders"
        scan.problems[shown.encode("utf-8", "backslashreplace").decode()] = why
        return False
    if found is not None:
        times = found.st_mtime_ns, found.st_ctime_ns
        scan.entries.append(Entry(path, found.st_size, *times, found.st_ino or item.inode()))
    return is_folder


def _busy(holder: str, timeout: float) -> Unavailable:
    hint = "Try again, or end that process if it hangs."
    return Unavailable(f"the vault is still locked by {holder} after {timeout:g} s", hint=hint)
