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
_MIN_BULK_NOTES = 250  # a pass that reads more notes uses the bulk load of the engine
_MAX_SURE_DELETIONS = 20  # notes that may vanish at once without suspicion
_MIN_COUNTED_NOTES = 20  # a pass that reads fewer notes is too short to publish its progress


class Stopped(Exception):
    """A pass ended before it was done, because `NoteIndexer.stop` was set.

    The notes that it has written are complete.
    """


@dataclass(frozen=True, slots=True)
class FilesAndRows:
    """The two sides of a comparison: files as they were listed, and what the index has of them."""

    entries: dict[str, Entry]  # by path
    rows: dict[str, NoteRow]  # the notes of the index, by path
    files: set[str]  # all files in the index, whether notes or attachments
    generation: int  # of the index when it was read


@dataclass(frozen=True, slots=True)
class _Plan:
    """The differences between files and the rows of the index."""

    new_files: Set[str]
    deleted_files: Set[str]
    to_read: Sequence[str]  # paths of notes whose rows may be wrong, sorted
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
    """One comparison of files with the index, which ends with a report. For one use.

    Guards the notes whose file is missing: a new file with the same bytes is one of them, moved.
    """

    indexer: NoteIndexer
    snapshot: FilesAndRows
    progress: Progress | None = None
    report: SyncReport = field(default_factory=SyncReport)

    _rows: dict[str, NoteRow] = field(init=False)
    _files: set[str] = field(init=False)
    # Notes whose file is missing, by the hash of their bytes.
    _missing: dict[str, list[NoteRow]] = field(default_factory=dict)
    _is_bulk: bool = False
    _is_counted: bool = False

    def __post_init__(self) -> None:
        self._rows = self.snapshot.rows
        self._files = self.snapshot.files

    def carry_out(self, total: int | None) -> SyncReport:
        """Bring the rows in line with the files, and return what was changed. For one call.

        `total` is the number of notes in the index. By it, a suspicious number of deleted notes is
        recognised: they are reported as `doubted`, and their rows stay. With None, every deletion
        is accepted. Raises Stopped if `indexer.stop` is set, Replaced if another index took the
        place of this one, and Unavailable if the vault cannot be read.
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
        self._tidy_up()
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
        """If too many notes vanished, report them as doubted, and leave them out of this pass.

        Too many are more than 20 and more than a fifth of `total`, the number of notes in the
        index: the folder may only be unmounted. But if at least half as many new notes have
        arrived, the folder was moved, and nothing is doubted.
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

        Notes that are too large are recorded as skipped, and reported.
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
        """Return whether a file was deleted. False if the vault cannot reach it at the moment."""
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

        False for a note that is too large, which is recorded as skipped and reported.
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
        """Return the notes of the index whose file is missing. They may be found at other paths.

        The file is not among those that were listed now. Besides, it is in `deleted_files`, or the
        index does not list it.
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
        """Return the new notes among `paths` that have the bytes of a missing note, with its row.

        Reads the files that have the size of a missing note; one that cannot be read is passed
        over. A missing note that was found is then no longer missing.
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
        """Return those of `paths` that are new notes with the size of a missing one, sorted."""
        origins = list(chain.from_iterable(self._missing.values()))
        sizes = {origin.size for origin in origins}
        # A note that was moved and not read again has no size in the index.
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

        `moved` has the old row by the new path. A note is left as it is if another process has
        moved or removed it meanwhile, or if the new path has a note. Each move that is written is
        recorded in `indexer.moved_from`.
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

        Other processes can write between two transactions. Reports progress after each batch.
        Raises Stopped.
        """
        # Searches already find moved notes, by their old rows.
        moved_from = self.indexer.moved_from
        unread = sum(entry.path not in moved_from for entry in entries)
        self._count_unread(unread)

        done = 0
        for batch in self._read_batches(entries):
            self._write_batch(batch)
            done += len(batch)
            self._count_unread(max(0, unread - done))

            batch.clear()  # so that the collector can free its notes
            if self._is_bulk:
                gc.collect(0)
            self.indexer.database.checkpoint(is_bulk=True)
            if self.progress is not None:
                self.progress("text", done, len(entries))
        self._count_unread(0)

    def _read_batches(self, entries: Sequence[Entry]) -> Iterator[list[tuple[str, ReadOutcome]]]:
        """Read files, and yield them in batches of (path, outcome).

        A batch is limited in notes and in bytes. It is read outside a transaction, so that other
        writers need not wait. Raises Stopped if `indexer.stop` is set.
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
        """Write the rows of a batch and of its conflict copies, in one transaction."""
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
        """Write the result of reading a file, and report it.

        `current` is the row that the index has now. A file that cannot be read keeps its rows and
        is reported as skipped; a file that is gone is ignored. Raises Unavailable if the vault
        cannot be read at the moment.
        """
        if current != self._rows.get(path):
            # Another process has written or removed the note since, perhaps from a newer text.
            outcome = self.indexer.read(path)

        if isinstance(outcome, NotFound):
            return  # it was deleted meanwhile; its own event or the next scan reports that
        if isinstance(outcome, Unavailable):
            raise outcome
        if isinstance(outcome, Exception):
            # The rows stay: a file that cannot be read was not deleted (F10).
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

        `current` is the row that the index has now. If the bytes are the same and no row is
        outdated, only the stat and the date are written, and nothing is reported.
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
        """Return whether a row has the bytes of the note, and `has_outdated_rows` is false."""
        has_same_bytes = row.sha256 == note.note.sha256
        return has_same_bytes and not self.indexer.has_outdated_rows(row)

    def _pop_origin(self, db: Connection, sha256: str) -> NoteRow | None:
        """Return a missing note with these bytes, which is then no longer missing.

        Returns None if there is none. Skips notes that another process has moved or removed since.
        """
        same_bytes = self._missing.get(sha256, [])
        while same_bytes:
            origin = same_bytes.pop(0)
            if _is_unmoved(db, origin):
                return origin
        return None

    def _remove_notes(self, too_large: Collection[str]) -> None:
        """Remove the notes whose file was deleted and not moved, and those that are too large.

        Reports them as removed. Updates the conflict copies of notes that are too large; those of
        deleted notes were updated when the files were written.
        """
        missing_notes = chain.from_iterable(self._missing.values())
        deleted = [row.path for row in missing_notes if self._is_deleted(row.path)]

        with self.indexer.database.writing(self.snapshot.generation) as db:
            for path in (*deleted, *too_large):
                self.indexer.remove_at(db, path)
                self.report.removed.append(path)

            rewritten_copies = self.indexer.update_conflict_copies(PendingRows(db), too_large)
            self.report.modified += rewritten_copies

    def _tidy_up(self) -> None:
        """Merge segments of the term index, and let the engine do its other work after a pass."""
        database = self.indexer.database
        database.merge_segments_at_rest(self.snapshot.generation)
        database.checkpoint()


def _is_unmoved(db: Connection, row: NoteRow) -> bool:
    """Return whether a note still has its path: no other process has moved or removed it since."""
    current = notes.row_at(db, row.path)
    return current is not None and current.id == row.id
