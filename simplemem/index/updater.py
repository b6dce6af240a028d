"""Keep the index up to date with the vault: after a write, after a hint from a watcher, by a scan.

An update has these steps:

1. List the files (`NoteSource`), and read what the index has of them (`FilesAndRows`).
2. Decide which notes to read: those whose size or time differs, and those that the settings now
   treat differently.
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
from simplemem.index.sync_pass import FilesAndRows, SyncPass
from simplemem.index.text import NoteIndexer, parse_note
from simplemem.note.names import parse_conflict_name
from simplemem.note.note import Note
from simplemem.vault.source import EVERYTHING, Revisions
from simplemem.vault.values import Entry

_MAX_CHANGED_PATHS = 1000  # between two revisions; if there are more, all notes are compared


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

        `written` has the path, the note and the file of each written note; `removed` are paths.
        `moved` has the new path of each moved note, by the old one. A moved note keeps its vectors,
        and must be among `written` at its new path. All is written in one transaction. If the notes
        have revisions, the vault is scanned instead.
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
                # A note that the index still has there was deleted by another program.
                self.remove_at(db, new_path)
                row = notes.row_at(db, old_path)
                if row is not None:
                    notes.rename(db, row.id, new_path)
            for path in removed_paths:
                self.remove_at(db, path)
            notes.record_files(db, written_paths, removed_paths)

            rows = PendingRows(db)
            for note in parsed:
                row = notes.row_at(db, note.path)
                # A background thread may have indexed the note already, before the log said that
                # simplemem wrote it.
                if moved or not self._is_indexed(note, row):
                    self.write_note(rows, note, row)
            self.update_conflict_copies(rows, {*written_paths, *removed_paths})

    def _is_indexed(self, note: ParsedNote, row: NoteRow | None) -> bool:
        """Return whether a row has the bytes and the stat of a note, and is not outdated."""
        if row is None:
            return False
        is_same_file = row.sha256 == note.note.sha256 and row.stat == note.stat
        return is_same_file and not self.has_outdated_rows(row)

    def look_at(self, paths: Collection[str], *, find_moved: bool = True) -> SyncReport:
        """Update the index for paths that may have changed: of files or folders, existing or not.

        `EVERYTHING` stands for the whole vault. With `find_moved`, the whole vault is scanned if
        the file of a note is missing, because the note may have been moved. Called with the hints
        of a watcher. Raises what `scan` raises.
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
        deleted notes is reported as `doubted`, and their rows stay, unless `accept_deletions` is
        set. If the notes have revisions, only the files that differ between two revisions are
        compared, and deletions are always accepted. Raises Stopped if `stop` is set, Replaced if
        another index took the place of this one, and Unavailable if the vault or the engine cannot
        be used.
        """
        revisions = self.vault.revisions
        if revisions is not None:
            return self._follow_revisions(revisions, progress)
        return self._compare_all(progress, accept_deletions=accept_deletions, entries=entries)

    def follow_moves(self) -> None:
        """Give the notes whose files another program has moved their new paths, and do no more.

        The next comparison updates the rest, such as a title that is the name of the file.
        """
        entries = self.vault.scan()
        SyncPass(self, self._with_all_rows(entries)).follow_moves()

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
            snapshot = self._with_all_rows(entries)
            total = None if accept_deletions else len(snapshot.rows)
            report = SyncPass(self, snapshot, progress).carry_out(total)
        self.unread = 0
        report.seconds = time.perf_counter() - began
        return report

    def _with_all_rows(self, entries: Sequence[Entry]) -> FilesAndRows:
        """Return these files, with all notes and files that the index has."""
        by_path = {entry.path: entry for entry in entries}
        with self.database.reading() as db:
            return FilesAndRows(
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

        With `find_moved`, the whole vault is scanned instead if the file of a note is missing. With
        `accept_deletions`, any number of deletions is accepted. Otherwise, if suspiciously many
        notes are missing at once, they stay in the index and are reported as `doubted`.
        """
        snapshot, total = self._files_and_rows_at(paths)
        # A note whose file is gone may have been moved to a path that is not among these.
        is_any_missing = any(path not in snapshot.entries for path in snapshot.rows)
        if find_moved and is_any_missing:
            return self.scan()

        self._read_log_for_copies(snapshot.entries)
        self._drop_unchanged(snapshot, paths)
        return SyncPass(self, snapshot).carry_out(None if accept_deletions else total)

    def _files_and_rows_at(self, paths: Collection[str]) -> tuple[FilesAndRows, int]:
        """Return the files and rows at some paths and below them, and the number of all notes.

        Files that cannot be listed are absent, as if they did not exist.
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

        snapshot = FilesAndRows(
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

    def _drop_unchanged(self, snapshot: FilesAndRows, paths: Collection[str]) -> None:
        """Drop from `snapshot` the notes among `paths` whose files are as the index has them.

        Most hints of a watcher are about files that simplemem has written itself. If none remains,
        the pass has nothing to do and starts no transaction.
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

        Raises Unavailable if there is no revision any longer. The index keeps its notes then, with
        their vectors.
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
            # Another server, with an older revision, may have written older texts meanwhile.
            self._compare_paths(changed, accept_deletions=True)
        return report

    def _set_revision(self, revisions: Revisions, revision: str, since: str | None) -> bool:
        """Record that the index has a revision, unless the one that it has by now must stay.

        That stays if it is in the repository and no ancestor (`_is_outdated`). Returns whether no
        other process has updated the index meanwhile: it still had the revision `since`.
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

        If the log cannot be read, nothing is raised: notes can be indexed without it.
        """
        with suppress(SimplememError, OSError):
            changes.catch_up(self.database, self.vault.history.log)


def _is_outdated(revisions: Revisions, indexed: str | None, revision: str) -> bool:
    """Return whether `revision` replaces `indexed`, the revision that the index has.

    It does if `indexed` is None, not in the repository, or an ancestor of `revision`.
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
