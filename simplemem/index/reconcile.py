"""One pass over files that may have changed and what the index has of them: rows are put, a batch a transaction, notes that
moved keep theirs, and what went is removed, unless too much went at once."""

from __future__ import annotations

import gc
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from simplemem.errors import NotFound, SimplememError, Unavailable
from simplemem.index import notes
from simplemem.index.connection import Connection
from simplemem.index.database import WAL_LIMIT_AMID_MUCH
from simplemem.index.door import Row, Stat
from simplemem.index.notes import Rows, is_note
from simplemem.index.text import Understood
from simplemem.vault.obsidian import Named
from simplemem.vault.vault import Entry

if TYPE_CHECKING:
    from simplemem.index.sync import Sync

BATCH = 1000  # notes a transaction while many are indexed at once...
_BATCH_BYTES = 8 << 20  # ...as long as they have no more text than this
_MUCH = 250  # notes that are read in one pass: the index is then written as for a first time
_FEW = 20  # so many notes may vanish at once without a doubt

Progress = Callable[[str, int, int], None]
"""Told what is being done, how many are done, and of how many."""
Looked = Understood | Stat | SimplememError | OSError
"""What came of reading a file: its note, what the disk says of one that is as the index knows it, or what went wrong."""


class Stopped(Exception):
    """The work was ended before it was done, at a moment where nothing is half done."""


@dataclass(slots=True)
class SyncReport:
    """What a pass found: the paths of the notes it touched, and what it could not read."""

    added: list[str] = field(default_factory=list)
    modified: list[str] = field(default_factory=list)
    moved: list[tuple[str, str]] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    doubted: int = 0  # notes that seem to have vanished all at once, and were kept
    embedded: int = 0
    trouble: str = ""  # why vectors are missing that could not be made
    seconds: float = 0.0

    def changed(self) -> set[str]:
        """The paths of all notes whose rows are new."""
        return {*self.added, *self.modified, *self.removed, *(path for pair in self.moved for path in pair)}

    def as_dict(self) -> dict[str, Any]:
        counts = {name: len(getattr(self, name)) for name in ("added", "modified", "moved", "removed")}
        skipped = [{"path": path, "why": why} for path, why in self.skipped]
        rest = {"doubted": self.doubted, "trouble": self.trouble, "seconds": round(self.seconds, 3)}
        return {**counts, "embedded": self.embedded, "skipped": skipped, **rest}


@dataclass(slots=True)
class Reconciling:
    """One pass over the files there are and what the index has of them, in the `generation` of its file."""

    sync: Sync
    entries: dict[str, Entry]
    known: dict[str, Row]
    files: set[str]
    generation: int
    progress: Progress | None = None
    report: SyncReport = field(default_factory=SyncReport)
    _much: bool = False
    _gone: dict[str, list[Row]] = field(default_factory=dict)  # whose file went, by hash: a new file may be one of them

    def carry_out(self, total: int | None) -> SyncReport:
        """Make the rows of both sides right. With the `total` of notes, too many that vanish are doubted."""
        if total is not None:
            self._doubt(total)
        sync, entries, known, files = self.sync, self.entries, self.known, self.files
        came, went = entries.keys() - files, {path for path in files - entries.keys() if self._is_gone(path)}
        skipped = sync.skipped.items()
        sync.skipped = {path: why for path, why in skipped if path not in entries and not self._is_gone(path)}
        to_read = sorted(path for path, entry in entries.items() if self._is_to_read(entry))
        too_large = {path for path in sync.skipped if path in known and path in entries}
        gone = [found for path, found in known.items() if path not in entries and (path in went or path not in files)]
        if came or went or to_read or gone or too_large:
            self._much = len(to_read) > _MUCH
            for found in gone:
                self._gone.setdefault(found.sha256, []).append(found)
            with sync.database.writing(self.generation) as db:
                notes.follow_files(db, came, went)  # first: after a pass that is cut short nobody would know of them
                self.report.modified += sync.judge_copies_of(db, came | went, notes.named_by(db))
                if self._much:
                    sync.database.expect_much()
            self._put_notes([entries[path] for path in to_read])
            self._forget(too_large)
        return self.report

    def _doubt(self, total: int) -> None:
        """Keep what vanished if it is too much at once: an unmounted folder is no mass delete, but a move is one."""
        vanished = self.known.keys() - self.entries.keys()
        if len(vanished) <= max(_FEW, total // 5):
            return
        arrived = sum(1 for path in self.entries if is_note(path) and path not in self.known)
        if arrived < len(vanished) // 2:
            self.report.doubted = len(vanished)
            self.known = {path: found for path, found in self.known.items() if path not in vanished}
            self.files &= self.entries.keys()

    def _is_to_read(self, entry: Entry) -> bool:
        """Whether a file is a note whose rows may be wrong."""
        path, size, mtime_ns, ctime_ns, _ = entry
        if not is_note(path):
            return False
        if self.sync.skip_if_large(path, size):
            self.report.skipped.append((path, self.sync.skipped[path]))
            return False
        known = self.known.get(path)
        return known is None or known.may_have_changed(size, mtime_ns, ctime_ns) or self.sync.is_judged_otherwise(known)

    def _is_gone(self, path: str) -> bool:
        """The second proof that a deletion asks for."""
        try:
            return self.sync.vault.entry(path) is None and self.sync.vault.root.is_dir()
        except SimplememError:
            return False

    def _put_notes(self, entries: Sequence[Entry]) -> None:
        """Put the notes of files that may have changed, a batch a transaction."""
        done = 0
        for batch in self._batches(entries):
            with self.sync.database.writing(self.generation) as db:
                rows, named = Rows(), notes.named_by(db)
                paths = [path for path, _ in batch]
                there = notes.known_at(db, paths)
                for path, read in batch:
                    self._put(db, path, read, there.get(path), named, rows)
                rows.write(db)
                self.report.modified += self.sync.judge_copies_of(db, paths, named)
            done += len(batch)
            batch.clear()  # before the collector looks at what lives
            if self._much:
                gc.collect(0)
            self.sync.database.checkpoint(WAL_LIMIT_AMID_MUCH)
            if self.progress is not None:
                self.progress("text", done, len(entries))

    def _batches(self, entries: Sequence[Entry]) -> Iterator[list[tuple[str, Looked]]]:
        """Files read and understood before the transaction that puts them, which others wait for."""
        first = 0
        while first < len(entries):
            batch: list[tuple[str, Looked]] = []
            size = 0
            with self.sync.vault.reading() as reading:
                while first < len(entries) and len(batch) < BATCH and size < _BATCH_BYTES:
                    if self.sync.stop.is_set():
                        raise Stopped
                    entry = entries[first]
                    batch.append((entry.path, self.sync.look(entry.path, self.known.get(entry.path), reading)))
                    first, size = first + 1, size + entry.size
            yield batch

    def _put(self, db: Connection, path: str, read: Looked, now: Row | None, named: Named, rows: Rows) -> None:
        """Put a file that was read. `now` is what the index knows of it, which may be more than when the pass began."""
        known = self.known.get(path)
        if now != known:  # somebody put or removed it since: what was read may be older than that
            known, read = now, self.sync.look(path)
        if isinstance(read, NotFound):
            return  # it went while we looked; its own event or the next scan tells
        if isinstance(read, Unavailable):
            raise read
        if isinstance(read, Exception):  # what was known of it stays: unreadable is not deleted (F10)
            self.report.skipped.append((path, str(read)))
            self.sync.skipped[path] = str(read)
        elif isinstance(read, Stat):
            assert known is not None
            notes.refresh(db, known.id, read)
        elif known is not None and known.sha256 == read.note.sha256 and not self.sync.is_judged_otherwise(known):
            notes.refresh(db, known.id, read.stat, read.head.modified)
        else:
            origin = self._origin(db, read.note.sha256) if known is None else None
            if origin is not None:
                notes.rename(db, origin.id, path)
                self.report.moved.append((origin.path, path))
            else:
                (self.report.added if known is None else self.report.modified).append(path)
            self.sync.put_note(db, read, named, known or origin, rows)

    def _origin(self, db: Connection, sha256: str) -> Row | None:
        """The note that a new file of these bytes was before, unless another process has given it a new name since."""
        gone = self._gone.get(sha256, [])
        while gone:
            origin = gone.pop(0)
            if (now := notes.known(db, origin.path)) is not None and now.id == origin.id:
                return origin
        return None

    def _forget(self, too_large: Collection[str]) -> None:
        """Remove the notes whose file went, but for those that are now another's origin, and those grown too large."""
        gone = [found.path for same in self._gone.values() for found in same if self._is_gone(found.path)]
        with self.sync.database.writing(self.generation) as db:
            for path in (*gone, *too_large):
                self.sync.remove_at(db, path)
                self.report.removed.append(path)
            if too_large:
                self.report.modified += self.sync.judge_copies_of(db, too_large, notes.named_by(db))
        self.sync.database.fold(self.generation)
        self.sync.database.checkpoint()
