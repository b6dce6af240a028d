"""The folder of notes: scan, read, create, replace, move, trash, undo. The only door to a note's bytes.

A note is named by its vault path, and its state by the sha256 of its bytes. What a note means, what a good name is and
how links are rewritten is decided above: here are bytes and paths. How a write goes is told in `writer.py`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Literal, NamedTuple

from simplemem.errors import Invalid, NotFound, ReadOnly, SimplememError
from simplemem.vault import disk
from simplemem.vault.disk import MOST_BYTES, Entry, entry_at, entry_of, sha256
from simplemem.vault.history import History, Kind, Version, is_in_use
from simplemem.vault.journal import Journal, is_trash
from simplemem.vault.lock import VaultLock, make_sidecar
from simplemem.vault.paths import SIDECAR, WHOLE_ACCESS, Access, Beneath, check_path, telling
from simplemem.vault.scan import Scan, ScanProblem, walk
from simplemem.vault.thinning import thin
from simplemem.vault.writer import Change, Wish, Writer, Written, no_such

__all__ = ["Change", "Entry", "File", "Vault", "Version", "Wish", "Written"]


class File(NamedTuple):
    """A note or attachment as it was read."""

    path: str
    data: bytes
    sha256: str
    entry: Entry


class Vault:
    """One folder of notes. Its methods may be called from any thread; writes exclude each other across processes."""

    def __init__(
        self,
        root: Path,
        *,
        read_only: bool = False,
        durable: bool = True,
        keep_days: int = 30,
        keep_mb: int = 100,
        trash: Literal["own", "obsidian"] = "own",
        max_bytes: int = MOST_BYTES,
        access: Access = WHOLE_ACCESS,
        kind: Kind = "agent",
    ) -> None:
        self.access = access
        self.root = Path(os.path.abspath(root))
        self.problems: list[ScanProblem] = []
        self.on_written: Callable[[str], None] | None = None  # told an operation once it is made, before it is answered
        self._max_bytes = min(max_bytes, MOST_BYTES)
        name = str(self.root)
        self._lock = VaultLock(name)
        self.history = History(name, self.lock, keep_days=keep_days, keep_mb=keep_mb, kind=kind)
        self._journal = Journal(self.history, durable=durable)
        self._writer = Writer(name, self.lock, self.history, self._journal, durable, self._max_bytes, trash)
        with self._beneath() as here:
            here.folder(())
        sidecar = self.root / SIDECAR
        # F9: a vault on a disk that cannot be written is opened all the same, and read.
        self.read_only = read_only or not (os.access(self.root, os.W_OK) or os.access(sidecar, os.W_OK))

    # Looking

    def scan(self) -> list[Entry]:
        """Every regular file that is not under a dot-folder, sorted by path. What it could not see: `problems`."""
        with self._beneath() as here:
            scan = self._seen(walk(here))
        self.problems = scan.problems
        return scan.entries

    def entries_below(self, folder: str) -> list[Entry]:
        """The files in one folder and its folders; none when it is not there."""
        parts = check_path(folder) if folder else ()
        with self._beneath() as here, telling("list", folder):
            try:
                here.folder(parts)
            except (FileNotFoundError, NotADirectoryError):
                return []
            return self._seen(walk(here, parts)).entries

    def strays(self) -> list[str]:
        """Staged files that lie about, of writes that were cut short."""
        with self._beneath() as here:
            return [path for path in walk(here).strays if not (self.access.hides(path) or is_in_use(here, path))]

    def entry(self, path: str) -> Entry | None:
        """One file as the disk shows it now, None when there is no regular file."""
        check_path(path)
        if self.access.hides(path):
            return None
        with self._beneath() as here, telling("look at", path):
            return entry_at(here, path)

    def is_taken(self, path: str) -> bool:
        """Whether anything lies at a path, in a dot-folder too. No link on the way is followed, and no way out."""
        if self.access.hides(path):
            return False
        with suppress(OSError, ValueError, SimplememError), self._beneath() as here:
            here.stat(path)
            return True
        return False

    def read(self, path: str) -> File:
        """A file's bytes and their hash, from one moment: it is read again while somebody writes into it."""
        with self.reading() as read:
            return read(path)

    @contextmanager
    def reading(self) -> Iterator[Callable[[str], File]]:
        """What reads many files as `read` does one: folders stay open from one file to the next. For a short while only,
        since a folder that is moved away meanwhile is still read."""
        with self._beneath() as here:
            yield lambda path: self._read(here, path)

    def _read(self, here: Beneath, path: str) -> File:
        check_path(path)
        if self.access.hides(path):
            raise no_such(path)
        with telling("read", path):
            try:
                data, found = disk.read_file(here, path, self._max_bytes)
            except (FileNotFoundError, NotADirectoryError) as error:
                raise no_such(path) from error
        return File(path, data, sha256(data), entry_of(path, found))

    # Writing

    def lock(self, timeout: float = 10.0) -> AbstractContextManager[None]:
        """Hold the vault: no other thread or process writes meanwhile. A thread may take it again and again."""
        return self._lock.held(timeout)

    def sidecar(self) -> Path:
        """The folder for what is ours, `<vault>/.simplemem`, made with its `.gitignore` when it is missing."""
        with self._beneath() as here, telling("make", SIDECAR, writing=True):
            make_sidecar(here)
        return self.root / SIDECAR

    def create(self, path: str, data: bytes, change: Change, *, rewrites: Sequence[Wish] = ()) -> Written:
        """Make a new file. AlreadyExists when one is there, or one that differs only in case or accents."""
        return self.carry_out([Wish("create", path, data=data), *rewrites], change)[0]

    def replace(self, path: str, data: bytes, expected_sha256: str, change: Change) -> Written:
        """Give a file new bytes. Conflict when it is not what was expected; done already is success."""
        return self.carry_out([Wish.update(path, expected_sha256, data)], change)[0]

    def move(
        self,
        path: str,
        new_path: str,
        change: Change,
        *,
        rewrites: Sequence[Wish] = (),
        data: bytes | None = None,
        expected_sha256: str | None = None,
    ) -> Written:
        """Give a file another path, with new bytes if `data` is given, and others theirs: all of it or nothing."""
        check_path(new_path)
        if path == new_path:
            raise Invalid(f"{path!r} is its path already.", hint="Give another path.")
        with self._changing(path):
            expected = expected_sha256 or self.read(path).sha256
            wish = Wish("move", path, before=expected, new_path=new_path, data=data)
            return self.carry_out([wish, *rewrites], change)[0]

    def trash(self, path: str, expected_sha256: str | None, change: Change) -> Written:
        """Put a file into the trash. `undo` with the version brings it back, even when the trash was emptied."""
        with self._changing(path):
            expected = expected_sha256 or self.read(path).sha256
            return self.carry_out([Wish("delete", path, before=expected, gone=True)], change)[0]

    def carry_out(self, wishes: Sequence[Wish], change: Change) -> list[Written]:
        """Change several files as one operation, all of it or nothing; it can be undone as one. Every write comes by here:
        what may not be changed is not, whatever asks for it and however it is reached."""
        self._check_writable()
        for number, wish in enumerate(wishes):
            for path in (wish.path, wish.target):
                self.access.check(path, asked=number == 0 and wish.op != "undo")
            if wish.gone:
                self.access.check_gone(wish.path)
        written = self._writer.carry_out(wishes, change)
        if self.on_written is not None and written[0].changed:
            self.on_written(written[0].version)
        return written

    def undo(self, version: str, change: Change) -> list[Written]:
        """Reverse all of an operation. Conflict when one of its notes has changed since; an undo can be undone."""
        self._check_writable()
        with self.lock():
            first = self.history.log.find(version)
            if first.op == "recovered":
                hint = "Read it by its sha256 and write it where it belongs."
                raise Invalid(f"{first.id} is a text that was found, not a change to undo.", hint=hint)
            steps = self.history.log.group(first.group)
            return self.carry_out([self._reversed(step) for step in reversed(steps)], change)

    def keep_text(self, data: bytes) -> None:
        """Keep a text that no change has written, so that it can be read by its hash. Where it cannot be, it is not."""
        with suppress(SimplememError, OSError):
            self._check_writable()
            with self.lock(), self._beneath() as here:
                self.history.keep(here, data, sha256(data))
                self.history.given.add(sha256(data))

    def recover(self) -> int:
        """What a start does first: finish or drop what a crash interrupted, clear our strays; how much there was."""
        return 0 if self.read_only else self._recover()[0]

    def recover_and_scan(self) -> list[Entry]:
        """Both in one walk, as every start does them."""
        if self.read_only:
            return self.scan()
        scan = self._seen(self._recover()[1])
        self.problems = scan.problems
        return scan.entries

    def finish_interrupted(self) -> None:
        """Finish or drop the change that a crash interrupted, as every write does before its own."""
        if not self.read_only:
            with self.lock(), self._beneath() as here, telling("recover", ".", writing=True):
                self._journal.resume(here)

    def _recover(self) -> tuple[int, Scan]:
        with self.lock(), self._beneath() as here, telling("recover", ".", writing=True):
            resumed, scan = self._journal.resume(here), walk(here)
            return resumed + self.history.sweep(here, scan.strays) + len(self.history.settle()), scan

    def thin_history(self) -> list[str]:
        """Drop what of the past need not be kept any longer; the hashes that went."""
        with self.lock(), self._beneath() as here, telling("thin", SIDECAR, writing=True):
            self._journal.resume(here)  # what a crash interrupted is to be in the log first: its texts are needed
            return thin(self.history, here)

    @contextmanager
    def _changing(self, path: str) -> Iterator[None]:
        """The vault held, for a change of what is read first."""
        self._check_writable()
        check_path(path)
        with self.lock():
            yield

    def _seen(self, scan: Scan) -> Scan:
        if not self.access.hidden:
            return scan
        entries = [entry for entry in scan.entries if not self.access.hides(entry.path)]
        return Scan(entries, [each for each in scan.problems if not self.access.hides(each.path)], scan.strays)

    def _check_writable(self) -> None:
        if self.read_only:
            hint = "It was opened so, or its folder does not allow writing."
            raise ReadOnly(f"The vault {str(self.root)!r} is for reading only.", hint=hint)

    def _reversed(self, step: Version) -> Wish:
        path, target = step.path, step.new_path or step.path
        if step.before is None:
            return Wish("undo", path, before=step.after, gone=True)
        text = self._text_before(step) if step.before != step.after else None
        if step.after is None:
            return Wish("undo", path, data=text, trash=step.trash)
        return Wish("undo", target, before=step.after, new_path=path if step.new_path else None, data=text)

    def _text_before(self, step: Version) -> bytes:
        data = self.history.kept(step.before or "")
        if data is None and step.trash and is_trash(step.trash):
            with self._beneath() as here, telling("read", step.trash), suppress(FileNotFoundError):
                data, _ = disk.read_file(here, step.trash)
        if data is None or sha256(data) != step.before:
            hint = "Texts are kept for as many days and megabytes as the settings say."
            raise NotFound(f"The text before {step.id} is no longer kept.", hint=hint)
        return data

    def _beneath(self) -> Beneath:
        return Beneath(str(self.root))
