"""Compare some files with the rows of the index, and make the rows right."""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from simplemem.errors import NotFound, SimplememError, Unavailable
from simplemem.index import notes
from simplemem.index.api import Progress, Row, Stat, SyncReport
from simplemem.index.engine import Connection
from simplemem.index.notes import Rows, is_note
from simplemem.index.text import NoteIndexer, ParsedNote, ReadOutcome
from simplemem.vault.values import Entry

MAX_BATCH_NOTES = 1000  # in one transaction
_MAX_BATCH_BYTES = 8 << 20
_MIN_BULK_NOTES = 250  # to read in one pass; the index is then written as for the first time
_MAX_SURE_DELETIONS = 20  # notes that may vanish at once without suspicion
_MIN_COUNTED_NOTES = 20  # a shorter pass is over before anyone misses its notes


class Stopped(Exception):
    """A pass was ended before it was done. What it has written so far is complete."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The two sides of a comparison: files as they were listed, and what the index has of them."""

    entries: dict[str, Entry]  # by path
    known: dict[str, Row]  # the notes of the index, by path
    files: set[str]  # all files in the index, whether notes or attachments
    generation: int  # of the index when it was read


@dataclass(slots=True)
class SyncPass:
    """One comparison, from a snapshot to the report of what was changed.

    Guards the notes whose file is gone: a new file with the same bytes is one of them, moved.
    """

    indexer: NoteIndexer
    snapshot: Snapshot
    progress: Progress | None = None
    report: SyncReport = field(default_factory=SyncReport)

    _known: dict[str, Row] = field(init=False)
    _files: set[str] = field(init=False)
    _gone: dict[str, list[Row]] = field(default_factory=dict)  # by hash
    _is_bulk: bool = False
    _is_counted: bool = False

    def __post_init__(self) -> None:
        self._known = self.snapshot.known
        self._files = self.snapshot.files

    def carry_out(self, total: int | None) -> SyncReport:
        """Make the rows right, and return what was changed.

        `total` is the number of notes in the index. If it is given, a suspicious number of deleted
        notes is reported and not believed.
        """
        if total is not None:
            self._suspect_mass_delete(total)

        entries = self.snapshot.entries
        new_files = entries.keys() - self._files
        gone_files = {path for path in self._files - entries.keys() if self._is_gone(path)}
        self._forget_skipped()
        to_read = sorted(path for path, entry in entries.items() if self._is_to_read(entry))
        too_large = {
            path for path in self.indexer.skipped if path in self._known and path in entries
        }
        gone_notes = self._gone_notes(gone_files)
        if not (new_files or gone_files or to_read or gone_notes or too_large):
            return self.report

        self._is_bulk = len(to_read) > _MIN_BULK_NOTES
        self._is_counted = len(to_read) > _MIN_COUNTED_NOTES or self.indexer.unread is None
        self._count_unread(len(to_read))
        self._remember_gone(gone_notes)
        self._write_files_and_moves(to_read, new_files, gone_files)
        self._put_notes([entries[path] for path in to_read])
        self._remove_notes(too_large)
        return self.report

    def follow_moves(self) -> None:
        """Give the notes whose files were moved their new paths, and do nothing else."""
        entries = self.snapshot.entries
        gone = [
            row for path, row in self._known.items() if path not in entries and self._is_gone(path)
        ]
        self._remember_gone(gone)

        moved = self._find_moved(entries.keys() - self._known.keys())
        if moved:
            old_paths = [origin.path for origin in moved.values()]
            with self.indexer.database.writing(self.snapshot.generation) as db:
                notes.follow_files(db, moved, old_paths)
                self._move_rows(db, moved)

    # What to do

    def _suspect_mass_delete(self, total: int) -> None:
        """Keep the notes that vanished if there are too many of them at once.

        An unmounted folder is not a mass deletion. But if as many files have arrived, the folder was
        moved.
        """
        entries = self.snapshot.entries
        vanished = self._known.keys() - entries.keys()
        if len(vanished) <= max(_MAX_SURE_DELETIONS, total // 5):
            return
        arrived_count = sum(is_note(path) and path not in self._known for path in entries)
        if arrived_count < len(vanished) // 2:
            self.report.doubted = len(vanished)
            self._known = {path: row for path, row in self._known.items() if path not in vanished}
            self._files &= entries.keys()

    def _is_gone(self, path: str) -> bool:
        return self.indexer.vault.is_certainly_gone(path)

    def _forget_skipped(self) -> None:
        """Forget why files were not indexed, of those that are looked at now or are gone."""
        skipped = self.indexer.skipped.items()
        self.indexer.skipped = {
            path: reason
            for path, reason in skipped
            if path not in self.snapshot.entries and not self._is_gone(path)
        }

    def _is_to_read(self, entry: Entry) -> bool:
        """Return whether a file is a note whose rows may be wrong."""
        path, size, mtime_ns, ctime_ns, _ = entry
        if not is_note(path):
            return False
        if self.indexer.skip_if_large(path, size):
            self.report.skipped.append((path, self.indexer.skipped[path]))
            return False

        known = self._known.get(path)
        if known is None or known.may_have_changed(size, mtime_ns, ctime_ns):
            return True
        return self.indexer.is_judged_otherwise(known)

    def _gone_notes(self, gone_files: Collection[str]) -> list[Row]:
        """Return the notes of the index whose file is gone, or was never listed as a file."""
        return [
            row
            for path, row in self._known.items()
            if path not in self.snapshot.entries and (path in gone_files or path not in self._files)
        ]

    def _count_unread(self, count: int) -> None:
        """State how many notes are still to be read, if the pass is long enough to matter."""
        if self._is_counted:
            self.indexer.unread = count

    # Moves

    def _remember_gone(self, gone_notes: Collection[Row]) -> None:
        for row in gone_notes:
            self._gone.setdefault(row.sha256, []).append(row)

    def _write_files_and_moves(
        self, to_read: Sequence[str], new_files: Collection[str], gone_files: Collection[str]
    ) -> None:
        """Write which files there are, and the new paths of moved notes.

        This comes first: if the pass is interrupted, the next one does not see these files as new.
        """
        moved = self._find_moved(to_read)
        with self.indexer.database.writing(self.snapshot.generation) as db:
            notes.follow_files(db, new_files, gone_files)
            self._move_rows(db, moved)
            changed_files = {*new_files, *gone_files}
            self.report.modified += self.indexer.rejudge_copies(Rows(db), changed_files)
            if self._is_bulk:
                self.indexer.database.expect_much()

    def _find_moved(self, paths: Collection[str]) -> dict[str, Row]:
        """Return those files that have the bytes of a note whose file is gone, with its row."""
        moved: dict[str, Row] = {}
        origins = [origin for same_bytes in self._gone.values() for origin in same_bytes]
        if not origins:
            return moved

        sizes = {origin.size for origin in origins}
        # Of a note that was moved twice, the size is not known.
        is_any_size_possible = any(origin.is_at_new_path for origin in origins)
        with self.indexer.vault.reading() as read:
            for path in sorted(paths):
                is_new_note = is_note(path) and path not in self._known
                may_be_moved = is_any_size_possible or self.snapshot.entries[path].size in sizes
                if not (is_new_note and may_be_moved):
                    continue
                with suppress(SimplememError, OSError):
                    same_bytes = self._gone.get(read(path).sha256)
                    if same_bytes:
                        moved[path] = same_bytes.pop(0)
        return moved

    def _move_rows(self, db: Connection, moved: dict[str, Row]) -> None:
        """Give moved notes their new paths, so that they are found while they are read again."""
        for path, origin in moved.items():
            current = notes.known(db, origin.path)
            is_same_note = current is not None and current.id == origin.id
            if is_same_note and notes.known(db, path) is None:
                notes.follow_move(db, origin.id, path)
                self.indexer.moved_from[path] = origin.path
        self._known |= notes.known_at(db, moved)

    # Notes

    def _put_notes(self, entries: Sequence[Entry]) -> None:
        """Read files that may have changed, and write their rows, one batch per transaction.

        Between two transactions, other processes write.
        """
        # Moved notes can be found all the time.
        unread = sum(entry.path not in self.indexer.moved_from for entry in entries)
        self._count_unread(unread)
        done = 0
        for batch in self._read_batches(entries):
            self._write_batch(batch)
            done += len(batch)
            self._count_unread(max(0, unread - done))

            batch.clear()  # before the collector looks at what is in use
            if self._is_bulk:
                gc.collect(0)
            self.indexer.database.checkpoint(is_bulk=True)
            if self.progress is not None:
                self.progress("text", done, len(entries))
        self._count_unread(0)

    def _read_batches(self, entries: Sequence[Entry]) -> Iterator[list[tuple[str, ReadOutcome]]]:
        """Yield files that were read before the transaction, for which other writers wait.

        Raises Stopped if the pass is to end.
        """
        pending = deque(entries)
        while pending:
            batch: list[tuple[str, ReadOutcome]] = []
            size = 0
            with self.indexer.vault.reading() as read:
                while pending and len(batch) < MAX_BATCH_NOTES and size < _MAX_BATCH_BYTES:
                    if self.indexer.stop.is_set():
                        raise Stopped
                    entry = pending.popleft()
                    outcome = self.indexer.read(entry.path, self._known.get(entry.path), read)
                    batch.append((entry.path, outcome))
                    size += entry.size
            yield batch

    def _write_batch(self, batch: Sequence[tuple[str, ReadOutcome]]) -> None:
        with self.indexer.database.writing(self.snapshot.generation) as db:
            rows = Rows(db)
            paths = [path for path, _ in batch]
            current_rows = notes.known_at(db, paths)
            for path, outcome in batch:
                self._write_outcome(rows, path, outcome, current_rows.get(path))
            rows.write()
            self.report.modified += self.indexer.rejudge_copies(rows, paths)

    def _write_outcome(
        self, rows: Rows, path: str, outcome: ReadOutcome, current: Row | None
    ) -> None:
        """Write what came of reading a file. `current` is what the index has of it now.

        Raises Unavailable if the vault cannot be read at the moment.
        """
        known = self._known.get(path)
        if current != known:
            # Another process has written or removed the note since: what was read may be older.
            known = current
            outcome = self.indexer.read(path)

        if isinstance(outcome, NotFound):
            return  # it was deleted meanwhile; its own event or the next scan reports that
        if isinstance(outcome, Unavailable):
            raise outcome
        if isinstance(outcome, Exception):
            # The rows stay as they are: a file that cannot be read was not deleted (F10).
            self.report.skipped.append((path, str(outcome)))
            self.indexer.skipped[path] = str(outcome)
        elif isinstance(outcome, Stat):
            assert known is not None
            notes.refresh(rows.db, known.id, outcome)
        else:
            self._write_note(rows, outcome, known)

    def _write_note(self, rows: Rows, note: ParsedNote, known: Row | None) -> None:
        if known is not None and self._is_up_to_date(known, note):
            notes.refresh(rows.db, known.id, note.stat, note.metadata.modified)
            return

        path = note.path
        origin = self._take_origin(rows.db, note.note.sha256) if known is None else None
        if origin is not None:
            notes.rename(rows.db, origin.id, path)
            self.report.moved.append((origin.path, path))
        elif path in self.indexer.moved_from:
            old_path = self.indexer.moved_from.pop(path)
            self.report.moved.append((old_path, path))
        elif known is None:
            self.report.added.append(path)
        else:
            self.report.modified.append(path)
        self.indexer.put_note(rows, note, known or origin)

    def _is_up_to_date(self, known: Row, note: ParsedNote) -> bool:
        """Return whether only the stat of the file differs from what the index has."""
        has_same_bytes = known.sha256 == note.note.sha256
        return has_same_bytes and not self.indexer.is_judged_otherwise(known)

    def _take_origin(self, db: Connection, sha256: str) -> Row | None:
        """Return the note that a new file with these bytes was before it was moved.

        A note to which another process has given a new path since is not the one.
        """
        same_bytes = self._gone.get(sha256, [])
        while same_bytes:
            origin = same_bytes.pop(0)
            current = notes.known(db, origin.path)
            if current is not None and current.id == origin.id:
                return origin
        return None

    def _remove_notes(self, too_large: Collection[str]) -> None:
        """Remove the notes whose file is gone and was not moved, and those that are too large."""
        gone = [
            row.path
            for same_bytes in self._gone.values()
            for row in same_bytes
            if self._is_gone(row.path)
        ]
        database = self.indexer.database
        with database.writing(self.snapshot.generation) as db:
            for path in (*gone, *too_large):
                self.indexer.remove_at(db, path)
                self.report.removed.append(path)
            self.report.modified += self.indexer.rejudge_copies(Rows(db), too_large)
        database.fold(self.snapshot.generation)
        database.checkpoint()
