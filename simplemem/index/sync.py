"""Bring the index in step with the vault: after a change of ours, after a hint from the watcher, after a scan.

A vault that suddenly looks empty is not believed. Indexing writes no note.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress

import apsw

from simplemem.errors import SimplememError
from simplemem.index import changes, links, notes
from simplemem.index.collector import collector_at_rest
from simplemem.index.database import Database
from simplemem.index.notes import Known, stat_of, understood
from simplemem.index.putting import Putting
from simplemem.index.reconciling import Reconciling, Sides
from simplemem.index.report import Progress, Stopped, SyncReport
from simplemem.index.waiting import Waiting
from simplemem.note.note import Note
from simplemem.vault.vault import Entry, Vault

__all__ = ["Progress", "Stopped", "Sync", "SyncReport"]


class Sync:
    """Keeps one database in step with one vault. `hidden_reason` says which notes are left out of recall, and why;
    `private` are the rules by which notes are kept private."""

    def __init__(
        self,
        vault: Vault,
        database: Database,
        hidden_reason: Callable[[str], str | None],
        max_note_bytes: int,
        private: Sequence[str] = (),
    ) -> None:
        self.vault = vault
        self.database = database
        self.stop = threading.Event()  # set to end a scan after the notes it is at
        self.putting = Putting(vault, hidden_reason, max_note_bytes, private)

    @property
    def private(self) -> Sequence[str]:
        """The rules by which notes are kept private."""
        return self.putting.private

    @property
    def skipped(self) -> dict[str, str]:
        """Files that are not indexed, and why."""
        return self.putting.skipped

    @property
    def waiting(self) -> Waiting | None:
        """The texts that wait for their vectors."""
        return self.putting.waiting

    def embed_nothing(self) -> None:
        """Keep no texts for an embedder that will not come."""
        self.putting.waiting = None

    # -- a change of ours

    def put(
        self,
        written: Sequence[tuple[str, Note, Entry]],
        *,
        gone: Collection[str] = (),
        moved: tuple[str, str] | None = None,
    ) -> None:
        """Index notes that we have just written, deleted or renamed in one step, under the lock in which it was done. A note
        that moved keeps its id and its vectors."""
        read = [understood(path, note, stat_of(entry)) for path, note, entry in written]
        gone = {*gone, *(moved[:1] if moved else ())}
        with self.database.writing() as db:
            changes.grow(db, self.vault.history.log)
            if moved is not None:
                self.putting.remove_at(db, moved[1])  # if its file went, and nobody told us
                if (known := notes.known(db, moved[0])) is not None:
                    notes.rename(db, known.id, moved[1])
            for path in gone:
                self.putting.remove_at(db, path)
            came = [each.path for each in read if not links.is_file(db, each.path)]
            links.add_files(db, came)
            links.remove_files(db, gone)
            named = links.named_by(db)
            for each in read:
                self.putting.put_unless_large(db, each, named)
            if came or gone:
                links.resolve_again(db, {*came, *gone}, named)
            self.putting.judge_copies_of(db, {*(each.path for each in read), *gone}, named)

    # -- hints and scans

    def look_at(self, paths: Collection[str]) -> SyncReport:
        """Paths that may have changed: files or folders, there or gone. `""` is the vault itself."""
        if "" in paths:
            return self.scan()
        entries: dict[str, Entry] = {}
        known: dict[str, Known] = {}
        files: set[str] = set()
        with self.database.reading() as db:
            total, generation = notes.count(db), self.database.generation
            for path in sorted(set(paths)):
                for entry in self._entries_at(path):
                    entries[entry.path] = entry
                for found in [notes.known(db, path), *notes.known_below(db, path)]:
                    if found is not None:
                        known[found.path] = found
                files |= _files_at(db, path)
        return self._reconcile(Sides(entries, known, files, generation), total)

    def scan(
        self, progress: Progress | None = None, *, believe: bool = False, seen: list[Entry] | None = None
    ) -> SyncReport:
        """Compare the whole vault with the index. `believe` accepts that many notes are gone; `seen` is what has just
        been found there."""
        began = time.perf_counter()
        with suppress(SimplememError, OSError):  # a log that cannot be read keeps no note out of the index
            changes.follow(self.database, self.vault.history.log)
        with collector_at_rest():
            entries = {entry.path: entry for entry in (self.vault.scan() if seen is None else seen)}
            with self.database.reading() as db:
                sides = Sides(entries, notes.all_known(db), links.all_files(db), self.database.generation)
            report = self._reconcile(sides, None if believe else len(sides.known), progress)
        report.seconds = time.perf_counter() - began
        return report

    def _reconcile(self, sides: Sides, total: int | None, progress: Progress | None = None) -> SyncReport:
        """Make the rows right. Given how many notes there are in `total`, it is doubted that many of them vanished."""
        report = SyncReport()
        if total is not None and (doubted := sides.doubted(total)):
            report.doubted, sides = doubted, sides.without_what_vanished()
        Reconciling(self.database, self.putting, sides, report, self.stop, progress).carry_out()
        return report

    def _entries_at(self, path: str) -> list[Entry]:
        try:
            entry = self.vault.entry(path)
            return [entry] if entry is not None else self.vault.entries_below(path)
        except SimplememError:
            return []


def _files_at(db: apsw.Connection, path: str) -> set[str]:
    sql = "SELECT path FROM files WHERE path = ? OR (path >= ? || '/' AND path < ? || '0')"
    return {row[0] for row in db.execute(sql, (path, path, path))}
