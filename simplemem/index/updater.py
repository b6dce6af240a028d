"""Keep the index up to date with the vault: after a write, after a hint from a watcher, by a scan.

An update has these steps:

1. List the files (`NoteSource`), and read what the index has of them, as one `Snapshot`.
2. Decide which notes to read: those whose size or time differs, and those whose settings do.
3. Find notes that were moved: a new file with the bytes of a note whose file is gone.
4. Read and parse notes in batches, and write each batch in one transaction (`SyncPass`). The hash
   of the bytes decides whether a note has changed.
5. Remove the notes whose file is gone.

If the notes have revisions, step 1 lists what differs between the revision that the index has and
the current one. No step writes to a note.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import MappingProxyType

from simplemem.errors import SimplememError, Unavailable
from simplemem.index import changes, notes
from simplemem.index.api import NoteRow, ParsedNote, Progress, SyncReport
from simplemem.index.engine import COMMIT, SET_META
from simplemem.index.notes import PendingRows, stat_of
from simplemem.index.sync_pass import Snapshot, SyncPass
from simplemem.index.text import NoteIndexer, parse_note
from simplemem.note.names import parse_conflict_name
from simplemem.note.note import Note
from simplemem.vault.source import EVERYTHING, Revisions
from simplemem.vault.values import Entry

_MAX_CHANGED_PATHS = 1000  # between two revisions; for more, all notes are compared


@dataclass(slots=True)
class IndexUpdater(NoteIndexer):
    """Keeps the index of one vault up to date. Any thread may call it. Never writes to a note."""

    follow_settings: Callable[[], None] = lambda: None
    """Reads Obsidian's settings again, which may have changed with a revision."""

    def put(
        self,
        written: Sequence[tuple[str, Note, Entry]],
        *,
        removed: Collection[str] = (),
        moved: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Index notes that were just written, deleted or moved by one operation of simplemem.

        `written` has the path, the parsed note and the file of each; `removed` are paths. `moved`
        has the new path of each moved note, by the old one; a moved note keeps its vectors, and
        must be among `written`. All is one transaction. If the notes have revisions, the whole
        vault is scanned instead.
        """
        if self.vault.revisions is not None:
            self.scan()
            return

        parsed = [parse_note(path, note, stat_of(entry)) for path, note, entry in written]
        written_paths = [note.path for note in parsed]
        removed_paths = {*removed, *moved}
        self._read_log_for_copies(written_paths)
        with self.database.writing() as db:
            for old_path, new_path in moved.items():
                self.remove_at(db, new_path)  # its file may be gone without our notice
                row = notes.row_at(db, old_path)
                if row is not None:
                    notes.rename(db, row.id, new_path)
            for path in removed_paths:
                self.remove_at(db, path)
            notes.record_files(db, written_paths, removed_paths)

            rows = PendingRows(db)
            for note in parsed:
                row = notes.row_at(db, note.path)
                # The background may have indexed the file already, but before the log said who
                # wrote it.
                if moved or not self._is_indexed(note, row):
                    self.write_note(rows, note, row)
            self.update_conflict_copies(rows, {*written_paths, *removed_paths})

    def _is_indexed(self, note: ParsedNote, row: NoteRow | None) -> bool:
        """Return whether a row (None: there is none) is of just this text and this stat."""
        if row is None:
            return False
        is_same_file = row.sha256 == note.note.sha256 and row.stat == note.stat
        return is_same_file and not self.has_outdated_rows(row)

    def look_at(self, paths: Collection[str], *, find_moved: bool = True) -> SyncReport:
        """Update the index for paths that may have changed: of files or folders, existing or not.

        `EVERYTHING` stands for the whole vault. If a note's file is missing, the whole vault is
        scanned, since the note may have been moved; with `find_moved=False`, it is not. Called with
        the hints of a watcher. Raises as `scan` does.
        """
        if EVERYTHING in paths or self.vault.revisions is not None:
            return self.scan()
        return self._compare_paths(paths, find_moved=find_moved)

    def scan(
        self,
        progress: Progress | None = None,
        *,
        accept_deletions: bool = False,
        entries: list[Entry] | None = None,
    ) -> SyncReport:
        """Compare the whole vault with the index, update the index, and report what changed.

        `entries` are the files, if the caller has listed them just now. A suspicious number of
        deleted notes is reported as `doubted` and not believed, unless `accept_deletions` is set.
        If the notes have revisions, only what differs between two of them is compared, and
        deletions are always believed. Raises Stopped if `stop` is set, Replaced if another index
        took the place of this one, and Unavailable if the vault or the engine cannot be used.
        """
        revisions = self.vault.revisions
        if revisions is not None:
            return self._follow_revisions(revisions, progress)
        return self._compare_all(progress, accept_deletions=accept_deletions, entries=entries)

    def follow_moves(self) -> None:
        """Give the notes whose files another program has moved their new paths, and do no more.

        The rest of a note follows when it is next compared with its file, such as a title that is
        the name of the file.
        """
        entries = self.vault.scan()
        SyncPass(self, self._snapshot(entries)).follow_moves()

    # Compare

    def _compare_all(
        self,
        progress: Progress | None,
        *,
        accept_deletions: bool,
        entries: list[Entry] | None,
    ) -> SyncReport:
        """Compare all files with the index, and bring the index up to date.

        The arguments are those of `scan`.
        """
        began = time.perf_counter()
        self._read_log()
        with paused_collector():
            if entries is None:
                entries = self.vault.scan()
            snapshot = self._snapshot(entries)
            total = None if accept_deletions else len(snapshot.rows)
            report = SyncPass(self, snapshot, progress).carry_out(total)
        self.unread = 0
        report.seconds = time.perf_counter() - began
        return report

    def _snapshot(self, entries: Sequence[Entry]) -> Snapshot:
        """Return these files, and all notes and files that the index has."""
        by_path = {entry.path: entry for entry in entries}
        with self.database.reading() as db:
            return Snapshot(
                entries=by_path,
                rows=notes.rows_at(db),
                files=notes.all_files(db),
                generation=self.database.generation,
            )

    def _compare_paths(
        self,
        paths: Collection[str],
        *,
        find_moved: bool = False,
        accept_deletions: bool = False,
    ) -> SyncReport:
        """Compare the files at some paths, and below them, with the index, and update it.

        With `find_moved`, the whole vault is scanned if a note's file is missing. With
        `accept_deletions`, any number of deletions is believed.
        """
        snapshot, total = self._snapshot_of(paths)
        # A note whose file is gone may have been moved to a path that is not among these.
        is_any_missing = any(path not in snapshot.entries for path in snapshot.rows)
        if find_moved and is_any_missing:
            return self.scan()

        self._read_log_for_copies(snapshot.entries)
        self._drop_unchanged(snapshot, paths)
        return SyncPass(self, snapshot).carry_out(None if accept_deletions else total)

    def _snapshot_of(self, paths: Collection[str]) -> tuple[Snapshot, int]:
        """Return the files and rows at some paths and below them, and the number of all notes.

        What cannot be listed is taken as missing.
        """
        entries: dict[str, Entry] = {}
        rows: dict[str, NoteRow] = {}
        files: set[str] = set()
        with self.database.reading() as db:
            total = notes.count(db)
            generation = self.database.generation
            for path in sorted(set(paths)):
                with suppress(SimplememError):
                    for entry in self._entries_at(path):
                        entries[entry.path] = entry
                notes_below, files_below = notes.below(db, path)
                rows |= notes_below
                files |= files_below

        snapshot = Snapshot(
            entries=entries,
            rows=rows,
            files=files,
            generation=generation,
        )
        return snapshot, total

    def _entries_at(self, path: str) -> list[Entry]:
        """Return the file at a path, or all files in and below the folder there, or nothing."""
        entry = self.vault.entry(path)
        if entry is not None:
            return [entry]
        return self.vault.entries_below(path)

    def _drop_unchanged(self, snapshot: Snapshot, paths: Collection[str]) -> None:
        """Drop from a snapshot the notes among `paths` whose files are as the index has them.

        A pass would read these files twice. Most hints are about files that simplemem has written
        itself.
        """
        hinted_files = snapshot.files.intersection(paths)
        candidates = snapshot.rows.keys() & snapshot.entries.keys() & hinted_files
        for path in candidates - self.skipped.keys():
            row = snapshot.rows[path]
            stat = stat_of(snapshot.entries[path])
            if row.stat != stat:
                continue
            outcome = self.read(path, row)
            if outcome == stat:
                del snapshot.entries[path]
                del snapshot.rows[path]
                snapshot.files.discard(path)

    # Revisions

    def _follow_revisions(self, revisions: Revisions, progress: Progress | None) -> SyncReport:
        """Bring the index to the current revision, and return what was changed.

        Raises Unavailable if there is no revision any longer: otherwise all notes would be removed
        from the index, with their vectors.
        """
        began = time.perf_counter()
        current = revisions.current()
        self.follow_settings()
        indexed = self.database.meta(COMMIT)
        if indexed and not current:
            raise Unavailable(
                "the branch is no longer in its repository",
                hint="Restore the branch with `git push`, or start with an empty index by "
                "rebuilding it.",
            )

        changed = revisions.changed_paths(indexed, current) if indexed else None
        if changed is None or len(changed) > _MAX_CHANGED_PATHS:
            report = self._compare_all(progress, accept_deletions=True, entries=None)
            self._set_revision(revisions, current, None)
            report.seconds = time.perf_counter() - began
            return report

        report = self._compare_paths(changed, accept_deletions=True) if changed else SyncReport()
        is_alone = self._set_revision(revisions, current, indexed)
        if not is_alone:
            # A server that had fetched less may have written older texts meanwhile.
            self._compare_paths(changed, accept_deletions=True)
        return report

    def _set_revision(self, revisions: Revisions, revision: str, since: str | None) -> bool:
        """Record that the index has a revision, unless it has a later one by now.

        Returns whether the index still had the revision `since` before, so no other process has
        updated it.
        """
        indexed: str | None = self.database.meta(COMMIT)
        if indexed == revision:
            return indexed == since

        # This may take a while on the network, so it comes before the transaction.
        revisions.fetch(indexed or "")
        with self.database.writing() as db:
            indexed = db.execute("SELECT value FROM meta WHERE key = $1", (COMMIT,)).get
            if _is_outdated(revisions, indexed, revision):
                db.execute(SET_META, (COMMIT, revision)).fetchall()
        return indexed == since

    # The log

    def _read_log_for_copies(self, paths: Collection[str]) -> None:
        """Bring the table of changes up to date if one of these files may be a conflict copy.

        The log decides whether such a file is one.
        """
        if any(parse_conflict_name(path) is not None for path in paths):
            self._read_log()

    def _read_log(self) -> None:
        """Bring the table of changes up to date with the log.

        Never raises for a log that cannot be read, which must keep no note out of the index.
        """
        with suppress(SimplememError, OSError):
            changes.catch_up(self.database, self.vault.history.log)


def _is_outdated(revisions: Revisions, indexed: str | None, revision: str) -> bool:
    """Return whether `revision` replaces `indexed`, the one that the index has.

    It does if that is None, not in the repository, or an ancestor of `revision`.
    """
    if indexed is None or revisions.changed_paths(indexed, revision) is None:
        return True
    return revisions.is_ancestor(indexed, revision)


@contextmanager
def paused_collector() -> Iterator[None]:
    """Pause Python's search for reference cycles for a `with` block whose values stay in use.

    This saves a sixth of a first index, and a fifth of a scan. Enables it again only if it was
    enabled.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
