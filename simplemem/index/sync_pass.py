"""Compare some files with the rows of the index, and make the rows right."""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Collection, Iterator, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain

from simplemem.errors import NotFound, SimplememError, Unavailable
from simplemem.index import notes
from simplemem.index.api import NoteRow, ParsedNote, Progress, Stat, SyncReport
from simplemem.index.engine import Connection
from simplemem.index.notes import PendingRows, is_note
from simplemem.index.text import NoteIndexer, ReadOutcome
from simplemem.vault.values import Entry

MAX_BATCH_NOTES = 1000  # in one transaction
_MAX_BATCH_BYTES = 8 << 20
_MIN_BULK_NOTES = 250  # to read in one pass; the index is then written as for the first time
_MAX_SURE_DELETIONS = 20  # notes that may vanish at once without suspicion
_MIN_COUNTED_NOTES = 20  # a shorter pass is over before anyone misses its notes


class Stopped(Exception):
    """A pass was ended before it was done (`NoteIndexer.stop`).

    What it has written so far is complete.
    """


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The two sides of a comparison: files as they were listed, and what the index has of them."""

    entries: dict[str, Entry]  # by path
    rows: dict[str, NoteRow]  # the notes of the index, by path
    files: set[str]  # all files in the index, whether notes or attachments
    generation: int  # of the index when it was read


@dataclass(frozen=True, slots=True)
class _Plan:
    """The differences between the files of a snapshot and its rows."""

    new_files: Set[str]
    deleted_files: Set[str]
    to_read: Sequence[str]  # notes whose rows may be wrong, in order
    missing_notes: Sequence[NoteRow]  # notes whose file was deleted or moved
    too_large: Set[str]  # notes of the index whose file has become too large

    @property
    def is_empty(self) -> bool:
        """Whether the files and the rows agree, so that there is nothing to do."""
        has_changed_files = bool(self.new_files or self.deleted_files)
        has_changed_notes = bool(self.to_read or self.missing_notes or self.too_large)
        return not has_changed_files and not has_changed_notes


@dataclass(slots=True)
class SyncPass:
    """One comparison of files with the index, from a snapshot to the report; for one use.

    Guards the notes whose file is missing: a new file with the same bytes is one of them, moved.
    """

    indexer: NoteIndexer
    snapshot: Snapshot
    progress: Progress | None = None
    report: SyncReport = field(default_factory=SyncReport)

    _rows: dict[str, NoteRow] = field(init=False)
    _files: set[str] = field(init=False)
    _missing: dict[str, list[NoteRow]] = field(
        default_factory=dict
    )  # notes without a file, by hash
    _is_bulk: bool = False
    _is_counted: bool = False

    def __post_init__(self) -> None:
        self._rows = self.snapshot.rows
        self._files = self.snapshot.files

    def carry_out(self, total: int | None) -> SyncReport:
        """Bring the rows in line with the files, and return what was changed. For one call.

        `total` is the number of notes in the index. If it is given, a suspicious number of deleted
        notes is reported as `doubted`, and their rows stay; None believes every deletion. Raises
        Stopped if `indexer.stop` is set, Replaced if another index took the place of this one, and
        Unavailable if the vault cannot be read.
        """
        if total is not None:
            self._suspect_mass_delete(total)

        plan = self._make_plan()
        if plan.is_empty:
            return self.report

        note_count = len(plan.to_read)
        self._is_bulk = note_count > _MIN_BULK_NOTES
        self._is_counted = note_count > _MIN_COUNTED_NOTES or self.indexer.unread is None
        self._count_unread(note_count)

        self._add_missing(plan.missing_notes)
        self._write_files_and_moves(plan)
        self._put_notes([self.snapshot.entries[path] for path in plan.to_read])
        self._remove_notes(plan.too_large)
        return self.report

    def follow_moves(self) -> None:
        """Give the notes whose files were moved their new paths, and do nothing else.

        A new file with the bytes of a missing note is that note. Moved notes are read again at the
        next pass.
        """
        entries = self.snapshot.entries
        missing_notes = []
        for path, row in self._rows.items():
            if path not in entries and self._is_deleted(path):
                missing_notes.append(row)
        self._add_missing(missing_notes)

        moved = self._find_moved(entries.keys() - self._rows.keys())
        if moved:
            old_paths = [origin.path for origin in moved.values()]
            with self.indexer.database.writing(self.snapshot.generation) as db:
                notes.record_files(db, moved, old_paths)
                self._move_rows(db, moved)

    # What to do

    def _suspect_mass_delete(self, total: int) -> None:
        """Leave notes that vanished out of this pass, as doubted, if there are too many of them.

        An unmounted folder is not a mass deletion. But if at least half as many notes have arrived,
        the folder was moved. `total` is the number of notes in the index.
        """
        entries = self.snapshot.entries
        vanished = self._rows.keys() - entries.keys()
        if len(vanished) <= max(_MAX_SURE_DELETIONS, total // 5):
            return

        arrived = [path for path in entries if is_note(path) and path not in self._rows]
        if len(arrived) >= len(vanished) // 2:
            return

        self.report.doubted = len(vanished)
        self._rows = {path: row for path, row in self._rows.items() if path not in vanished}
        self._files &= entries.keys()

    def _make_plan(self) -> _Plan:
        """Return the differences between the files and the index. Writes nothing to the index.

        Files that are too large are reported as skipped.
        """
        entries = self.snapshot.entries
        new_files = entries.keys() - self._files
        unlisted_files = self._files - entries.keys()
        deleted_files = {path for path in unlisted_files if self._is_deleted(path)}

        self._forget_skipped()
        to_read = [path for path, entry in entries.items() if self._is_to_read(entry)]
        too_large = self.indexer.skipped.keys() & self._rows.keys() & entries.keys()
        return _Plan(
            new_files=new_files,
            deleted_files=deleted_files,
            to_read=sorted(to_read),
            missing_notes=self._find_missing_notes(deleted_files),
            too_large=too_large,
        )

    def _is_deleted(self, path: str) -> bool:
        """Return whether the vault says that a file is gone, and not only out of reach."""
        return self.indexer.vault.is_certainly_gone(path)

    def _forget_skipped(self) -> None:
        """Forget why earlier passes skipped a file, if it is compared now or was deleted."""
        self.indexer.skipped = {
            path: reason
            for path, reason in self.indexer.skipped.items()
            if path not in self.snapshot.entries and not self._is_deleted(path)
        }

    def _is_to_read(self, entry: Entry) -> bool:
        """Return whether a file is a note whose rows may be wrong.

        A note that is too large is not; it is recorded as skipped.
        """
        path, size, mtime_ns, ctime_ns, _ = entry
        if not is_note(path):
            return False
        if self.indexer.skip_if_large(path, size):
            self.report.skipped.append((path, self.indexer.skipped[path]))
            return False

        row = self._rows.get(path)
        if row is None or row.may_have_changed(size, mtime_ns, ctime_ns):
            return True
        return self.indexer.has_outdated_rows(row)

    def _find_missing_notes(self, deleted_files: Collection[str]) -> list[NoteRow]:
        """Return the notes of the index whose file was deleted, or was never listed as a file.

        Such a file may be found again at another path.
        """
        missing_notes = []
        for path, row in self._rows.items():
            has_no_file = path in deleted_files or path not in self._files
            if has_no_file and path not in self.snapshot.entries:
                missing_notes.append(row)
        return missing_notes

    def _count_unread(self, count: int) -> None:
        """Publish in `indexer.unread` how many notes are still to be read, if the pass is long."""
        if self._is_counted:
            self.indexer.unread = count

    # Moves

    def _add_missing(self, missing_notes: Collection[NoteRow]) -> None:
        """Remember notes whose file is missing, by the hash of their bytes."""
        for row in missing_notes:
            same_bytes = self._missing.setdefault(row.sha256, [])
            same_bytes.append(row)

    def _write_files_and_moves(self, plan: _Plan) -> None:
        """Write the list of files and the new paths of moved notes, in one transaction.

        Conflict copies that this hides or shows are written again. This comes first: if the pass is
        interrupted, the next one does not see these files as new.
        """
        moved = self._find_moved(plan.to_read)
        changed_files = {*plan.new_files, *plan.deleted_files}
        with self.indexer.database.writing(self.snapshot.generation) as db:
            notes.record_files(db, plan.new_files, plan.deleted_files)
            self._move_rows(db, moved)
            rewritten_copies = self.indexer.update_conflict_copies(PendingRows(db), changed_files)
            self.report.modified += rewritten_copies
            if self._is_bulk:
                self.indexer.database.begin_bulk_load()

    def _find_moved(self, paths: Collection[str]) -> dict[str, NoteRow]:
        """Return the new files that have the bytes of a missing note, each with that note's row.

        Reads files of the right size. A missing note is returned once, and is then no longer
        missing.
        """
        if not self._missing:
            return {}

        moved: dict[str, NoteRow] = {}
        with self.indexer.vault.reading() as read:
            for path in self._paths_of_moved_size(paths):
                with suppress(SimplememError, OSError):
                    digest = read(path).sha256
                    same_bytes = self._missing.get(digest)
                    if same_bytes:
                        moved[path] = same_bytes.pop(0)
        return moved

    def _paths_of_moved_size(self, paths: Collection[str]) -> list[str]:
        """Return those of some paths that are new notes with the size of a missing one, in order."""
        origins = list(chain.from_iterable(self._missing.values()))
        sizes = {origin.size for origin in origins}
        # The index does not have the size of a note that was moved twice.
        is_any_size_possible = any(origin.is_at_new_path for origin in origins)

        candidates = []
        for path in sorted(paths):
            is_new_note = is_note(path) and path not in self._rows
            if not is_new_note:
                continue
            if is_any_size_possible or self.snapshot.entries[path].size in sizes:
                candidates.append(path)
        return candidates

    def _move_rows(self, db: Connection, moved: dict[str, NoteRow]) -> None:
        """Give moved notes their new paths, so that searches find them until they are read again.

        `moved` has the old row by the new path; each move is recorded in `indexer.moved_from`. A
        note that another process has moved or removed meanwhile stays as it is, and a path with a
        note is not overwritten.
        """
        for path, origin in moved.items():
            is_path_free = notes.row_at(db, path) is None
            if is_path_free and _is_unmoved(db, origin):
                notes.record_move(db, origin.id, path)
                self.indexer.moved_from[path] = origin.path
        self._rows |= notes.rows_at(db, moved)

    # Notes

    def _put_notes(self, entries: Sequence[Entry]) -> None:
        """Read files that may have changed, and write their rows, one batch per transaction.

        Between two transactions, other processes write. Reports progress after each batch. Raises
        Stopped.
        """
        # Moved notes can be found all the time.
        moved_from = self.indexer.moved_from
        unread = sum(entry.path not in moved_from for entry in entries)
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
        """Yield batches of files that were read, as (path, outcome).

        Each is read outside a transaction. Otherwise other writers would wait. Raises Stopped if
        the pass is to end.
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
                    row = self._rows.get(entry.path)
                    outcome = self.indexer.read(entry.path, row, read)
                    batch.append((entry.path, outcome))
                    size += entry.size
            yield batch

    def _write_batch(self, batch: Sequence[tuple[str, ReadOutcome]]) -> None:
        """Write a batch of files that were read, in one transaction, then their conflict copies."""
        with self.indexer.database.writing(self.snapshot.generation) as db:
            rows = PendingRows(db)
            paths = [path for path, _ in batch]
            current_rows = notes.rows_at(db, paths)
            for path, outcome in batch:
                current = current_rows.get(path)
                self._write_outcome(rows, path, outcome, current)
            rows.write()

            rewritten_copies = self.indexer.update_conflict_copies(rows, paths)
            self.report.modified += rewritten_copies

    def _write_outcome(
        self,
        rows: PendingRows,
        path: str,
        outcome: ReadOutcome,
        current: NoteRow | None,
    ) -> None:
        """Write what came of reading a file, and report it.

        `current` is the row that the index has now. A file that cannot be read keeps its rows and
        is reported as skipped; one that is gone is ignored. Raises Unavailable if the vault cannot
        be read at the moment.
        """
        if current != self._rows.get(path):
            # Another process has written or removed the note since: what was read may be older.
            outcome = self.indexer.read(path)

        if isinstance(outcome, NotFound):
            return  # it was deleted meanwhile; its own event or the next scan reports that
        if isinstance(outcome, Unavailable):
            raise outcome
        if isinstance(outcome, Exception):
            # The rows stay as they are: a file that cannot be read was not deleted (F10).
            reason = str(outcome)
            self.report.skipped.append((path, reason))
            self.indexer.skipped[path] = reason
        elif isinstance(outcome, Stat):
            assert current is not None
            notes.record_stat(rows.db, current.id, outcome)
        else:
            self._write_note(rows, outcome, current)

    def _write_note(self, rows: PendingRows, note: ParsedNote, current: NoteRow | None) -> None:
        """Add the rows of a note to `rows`, and report it as added, modified or moved.

        Only the stat and date are written if nothing else differs from `current`, the row now.
        """
        if current is not None and self._is_up_to_date(current, note):
            notes.record_stat(rows.db, current.id, note.stat, note.metadata.modified)
            return

        path = note.path
        origin = None
        if current is None:
            origin = self._pop_origin(rows.db, note.note.sha256)

        moved_from = self.indexer.moved_from
        if origin is not None:
            notes.rename(rows.db, origin.id, path)
            self.report.moved.append((origin.path, path))
        elif path in moved_from:
            old_path = moved_from.pop(path)
            self.report.moved.append((old_path, path))
        elif current is None:
            self.report.added.append(path)
        else:
            self.report.modified.append(path)
        self.indexer.put_note(rows, note, current or origin)

    def _is_up_to_date(self, row: NoteRow, note: ParsedNote) -> bool:
        """Return whether the row has the bytes of the note, and the settings have changed nothing."""
        has_same_bytes = row.sha256 == note.note.sha256
        return has_same_bytes and not self.indexer.has_outdated_rows(row)

    def _pop_origin(self, db: Connection, sha256: str) -> NoteRow | None:
        """Return the missing note that has these bytes, so that a new file is this note, moved.

        It is then no longer missing. None if there is none. A note to which another process has
        given a new path since is not the one.
        """
        same_bytes = self._missing.get(sha256, [])
        while same_bytes:
            origin = same_bytes.pop(0)
            if _is_unmoved(db, origin):
                return origin
        return None

    def _remove_notes(self, too_large: Collection[str]) -> None:
        """Remove the notes whose file was deleted and not moved, and those that are too large.

        Reports them as removed, and updates the conflict copies of those that are too large. Then
        merges segments of the term index, and tidies up the index.
        """
        missing_notes = chain.from_iterable(self._missing.values())
        deleted = [row.path for row in missing_notes if self._is_deleted(row.path)]

        database = self.indexer.database
        with database.writing(self.snapshot.generation) as db:
            for path in (*deleted, *too_large):
                self.indexer.remove_at(db, path)
                self.report.removed.append(path)

            rewritten_copies = self.indexer.update_conflict_copies(PendingRows(db), too_large)
            self.report.modified += rewritten_copies
        database.merge_segments_at_rest(self.snapshot.generation)
        database.checkpoint()


def _is_unmoved(db: Connection, row: NoteRow) -> bool:
    """Return whether a note still has its path: no other process has moved or removed it since."""
    current = notes.row_at(db, row.path)
    return current is not None and current.id == row.id
