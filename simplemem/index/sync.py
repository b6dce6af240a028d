"""Bring the index in step with the vault: after a change of ours, after a hint from the watcher, after a scan.

A file's size and time only tell whether to read it; its hash decides. What a scan does not find is checked again before
it is forgotten, and a vault that suddenly looks empty is not believed. Indexing writes no note.
"""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import apsw

from simplemem.errors import NotFound, SimplememError, Unavailable
from simplemem.index import copies, links, notes, text, vectors
from simplemem.index.database import Database, state_of
from simplemem.index.facts import Facts, facts_of
from simplemem.index.generations import NEXT, NOW
from simplemem.index.notes import Known, Stat
from simplemem.index.rows import Rows
from simplemem.index.waiting import Waiting
from simplemem.note.conflict_copy import is_copy_reason
from simplemem.note.note import Note, read_note
from simplemem.note.private import private_by_rule, private_reason
from simplemem.vault.links import Named
from simplemem.vault.vault import Entry, File, Vault

Progress = Callable[[str, int, int], None]
_BATCH = 1000  # notes a transaction while many are indexed at once...
_BATCH_BYTES = 8 << 20  # ...as long as they have no more text than this
_MUCH = 250  # notes that are read in one pass: the index is then written as for a first time
_FEW = 20  # so many notes may vanish at once without a doubt


@dataclass(slots=True)
class SyncReport:
    """What a pass found: the names of the memories it touched, and what it could not read."""

    added: list[str] = field(default_factory=list)
    modified: list[str] = field(default_factory=list)
    moved: list[tuple[str, str]] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    doubted: int = 0  # notes that seem to have vanished all at once, and were kept
    embedded: int = 0
    trouble: str = ""  # why vectors are missing that could not be made
    seconds: float = 0.0

    def after(self, earlier: SyncReport) -> SyncReport:
        """Two passes, told as one."""
        return SyncReport(
            earlier.added + self.added,
            earlier.modified + self.modified,
            earlier.moved + self.moved,
            earlier.removed + self.removed,
            self.skipped,
            self.doubted,
            earlier.embedded + self.embedded,
            self.trouble,
            earlier.seconds + self.seconds,
        )

    def changed(self) -> set[str]:
        """The paths of all notes whose rows are new."""
        return {*self.added, *self.modified, *self.removed, *(path for pair in self.moved for path in pair)}

    def as_dict(self) -> dict[str, Any]:
        return {
            "added": len(self.added),
            "modified": len(self.modified),
            "moved": len(self.moved),
            "removed": len(self.removed),
            "embedded": self.embedded,
            "skipped": [{"path": path, "why": why} for path, why in self.skipped],
            "doubted": self.doubted,
            "trouble": self.trouble,
            "seconds": round(self.seconds, 3),
        }


class Stopped(Exception):
    """The work was ended before it was done, at a moment where nothing is half done."""


class _Same(NamedTuple):
    """A note file that was written too short a time before it was read last to be believed, and is what it was then:
    so is everything that is known of it."""

    stat: Stat


class _Read(NamedTuple):
    """A note file that was read and understood, ready to be put."""

    path: str
    note: Note
    stat: Stat
    facts: Facts


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
        self.hidden_reason = hidden_reason
        self.max_note_bytes = max_note_bytes
        self.private = tuple(private)
        self.waiting: Waiting | None = Waiting()  # None when nothing will be embedded
        self.skipped: dict[str, str] = {}  # files that are not indexed, and why
        self.stop = threading.Event()  # set to end a scan after the notes it is at

    # -- a change of one file

    def put_written(self, path: str, note: Note, entry: Entry) -> None:
        """Index a note we have just written, under the lock in which it was written."""
        with self.database.writing() as db:
            came = not links.is_file(db, path)
            if came:
                links.add_files(db, [path])
            named = links.named_by(db)
            self._put_unless_large(db, _understood(path, note, entry), named)
            if came:
                links.resolve_again(db, [path], named)
            self._judge_copies_of(db, [path], named)

    def put_together(self, there: Mapping[str, tuple[bytes, Entry]], gone: Collection[str] = ()) -> None:
        """Notes that we have just written or deleted in one step, under the lock in which it was done."""
        read = [_understood(path, read_note(data), entry) for path, (data, entry) in there.items()]
        with self.database.writing() as db:
            for path in gone:
                self._remove_at(db, path)
            came = [path for path in there if not links.is_file(db, path)]
            links.add_files(db, there)
            links.remove_files(db, gone)
            named = links.named_by(db)
            for each in read:
                self._put_unless_large(db, each, named)
            links.resolve_again(db, {*came, *gone}, named)
            self._judge_copies_of(db, {*there, *gone}, named)

    def forget(self, path: str) -> None:
        """A note we have just moved away or deleted."""
        with self.database.writing() as db:
            found = notes.known(db, path)
            if found is not None:
                self._remove(db, found)
            links.remove_files(db, [path])
            named = links.named_by(db)
            links.resolve_again(db, [path], named)
            self._judge_copies_of(db, [path], named)

    def move(self, old: str, new: str, note: Note, entry: Entry) -> None:
        """A note we have just renamed: same id, same vectors."""
        with self.database.writing() as db:
            found, in_the_way = notes.known(db, old), notes.known(db, new)
            if in_the_way is not None:  # its file went, and nobody told us
                self._remove(db, in_the_way)
            links.remove_files(db, [old])
            links.add_files(db, [new])
            if found is not None:
                notes.rename(db, found.id, new)
            named = links.named_by(db)
            self._put_unless_large(db, _understood(new, note, entry), named)
            links.resolve_again(db, [old, new], named)
            self._judge_copies_of(db, [old, new], named)

    # -- hints and scans

    def look_at(self, paths: Collection[str]) -> SyncReport:
        """Paths that may have changed: files or folders, there or gone. `""` is the vault itself."""
        if "" in paths:
            return self.scan()
        entries: dict[str, Entry] = {}
        known: dict[str, Known] = {}
        files: set[str] = set()
        report = SyncReport()
        with self.database.reading() as db:
            total, generation = notes.count(db), self.database.generation
            for path in sorted(set(paths)):
                for entry in self._entries_at(path):
                    entries[entry.path] = entry
                for found in [notes.known(db, path), *notes.known_below(db, path)]:
                    if found is not None:
                        known[found.path] = found
                files |= _files_at(db, path)
        known, files = self._doubting(entries, known, files, total, report)
        return self._reconcile(entries, known, files, report, generation)

    def _entries_at(self, path: str) -> list[Entry]:
        try:
            entry = self.vault.entry(path)
            return [entry] if entry is not None else self.vault.entries_below(path)
        except SimplememError:
            return []

    def scan(
        self, progress: Progress | None = None, *, believe: bool = False, seen: list[Entry] | None = None
    ) -> SyncReport:
        """Compare the whole vault with the index. `believe` accepts that many notes are gone; `seen` is what has just
        been found there."""
        with collector_at_rest():
            return self._scan(progress, believe, seen)

    def _scan(self, progress: Progress | None, believe: bool, seen: list[Entry] | None) -> SyncReport:
        began = time.perf_counter()
        report = SyncReport()
        entries = {entry.path: entry for entry in (self.vault.scan() if seen is None else seen)}
        with self.database.reading() as db:
            known, files = notes.all_known(db), links.all_files(db)
            generation = self.database.generation
        if not believe:
            known, files = self._doubting(entries, known, files, len(known), report)
        self._reconcile(entries, known, files, report, generation, progress)
        report.seconds = time.perf_counter() - began
        return report

    @staticmethod
    def _doubting(
        entries: dict[str, Entry], known: dict[str, Known], files: set[str], total: int, report: SyncReport
    ) -> tuple[dict[str, Known], set[str]]:
        """What is known without the notes that vanished, if they are too many at once to be believed: a folder that was
        unmounted is not a mass delete. Notes that came in their place make it a move."""
        vanished = [path for path in known if path not in entries]
        if len(vanished) <= max(_FEW, total // 5):
            return known, files
        arrived = sum(1 for path in entries if _is_note(path) and path not in known)
        if arrived >= len(vanished) // 2:
            return known, files
        report.doubted = len(vanished)
        return {path: found for path, found in known.items() if path in entries}, files & set(entries)

    def _reconcile(
        self,
        entries: dict[str, Entry],
        known: dict[str, Known],
        files: set[str],
        report: SyncReport,
        generation: int,
        progress: Progress | None = None,
    ) -> SyncReport:
        """Make the rows of the files in `entries` and `known` right."""
        came, went = entries.keys() - files, files - entries.keys()
        went = {path for path in went if self._is_gone(path)}
        self.skipped = {
            path: why for path, why in self.skipped.items() if path not in entries and not self._is_gone(path)
        }
        to_read = sorted(path for path, entry in entries.items() if self._is_to_read(entry, known.get(path), report))
        too_large = {path for path in self.skipped if path in known and path in entries}
        gone = {path: k for path, k in known.items() if path not in entries and (path in went or path not in files)}
        if not (came or went or to_read or gone or too_large):
            return report
        much = len(to_read) > _MUCH
        with self.database.writing_on(generation) as db:
            links.add_files(db, came)
            links.remove_files(db, went)
            named = links.named_in_memory(links.all_files(db)) if much else links.named_by(db)
            links.resolve_again(db, came | went, named)  # now: after a scan that is cut short nobody would know of them
            report.modified += self._judge_copies_of(db, came | went, named)
            if much:
                text.expect_much(db)
            seen = state_of(db)
        gone_by_hash: dict[str, list[Known]] = {}
        for found in gone.values():
            gone_by_hash.setdefault(found.sha256, []).append(found)
        done = 0
        with collector_at_rest() if much else nullcontext():
            for batch in self._batches([entries[path] for path in to_read], known):
                with self.database.writing_on(generation) as db:
                    rows = Rows()
                    if not much:
                        named = links.named_by(db)
                    elif state_of(db) != seen:  # others wrote meanwhile, perhaps files
                        named = links.named_in_memory(links.all_files(db))
                    paths = [path for path, _ in batch]
                    there = notes.known_at(db, paths)
                    for path, read in batch:
                        self._look_at_file(
                            db, path, read, known.get(path), there.get(path), gone_by_hash, named, report, rows
                        )
                    rows.write(db)
                    report.modified += self._judge_copies_of(db, paths, named)
                    seen = state_of(db)
                seen = seen[0], db.total_changes()  # FTS5 wrote more of ours as the transaction ended
                done += len(batch)
                batch.clear()  # before the collector looks at what lives
                if much:
                    gc.collect(0)
                self.database.checkpoint(amid_much=True)
                if progress is not None:
                    progress("text", done, len(to_read))
        left = [found for same in gone_by_hash.values() for found in same]
        with self.database.writing_on(generation) as db:
            for found in left:
                if self._is_gone(found.path):
                    self._remove_at(db, found.path)
                    report.removed.append(found.path)
            for path in too_large:
                self._remove_at(db, path)
                report.removed.append(path)
            if too_large:
                report.modified += self._judge_copies_of(db, too_large, links.named_by(db))
            unfolded = text.unfolded(db)
        text.fold(unfolded, lambda: self.database.writing_on(generation))
        self.database.checkpoint()
        return report

    def _is_to_read(self, entry: Entry, known: Known | None, report: SyncReport) -> bool:
        """Whether a file is a note whose rows may be wrong."""
        path, size, mtime_ns, ctime_ns, _ = entry
        if not _is_note(path):
            return False
        if size > self.max_note_bytes:
            report.skipped.append((path, self._too_large(size)))
            self.skipped[path] = self._too_large(size)
            return False
        return known is None or known.may_have_changed(size, mtime_ns, ctime_ns) or self._is_judged_otherwise(known)

    def _batches(
        self, entries: Sequence[Entry], known: Mapping[str, Known]
    ) -> Iterator[list[tuple[str, _Read | _Same | SimplememError | OSError]]]:
        """Files read and understood before the transaction that puts them, which others wait for."""
        first = 0
        while first < len(entries):
            batch: list[tuple[str, _Read | _Same | SimplememError | OSError]] = []
            size = 0
            with self.vault.reading() as reading:
                while first < len(entries) and len(batch) < _BATCH and size < _BATCH_BYTES:
                    if self.stop.is_set():
                        raise Stopped
                    entry = entries[first]
                    batch.append((entry.path, self._read_again(entry.path, reading, known.get(entry.path))))
                    first, size = first + 1, size + entry.size
            yield batch

    def _look_at_file(
        self,
        db: apsw.Connection,
        path: str,
        read: _Read | _Same | SimplememError | OSError,
        known: Known | None,
        now: Known | None,
        gone_by_hash: dict[str, list[Known]],
        named: Named,
        report: SyncReport,
        rows: Rows,
    ) -> None:
        """Put a file that was read. `known` is what the index knew of it before, `now` what it knows."""
        if now != known:  # somebody put or removed it since: what was read may be older than that
            known = now
            with self.vault.reading() as reading:
                read = self._read(path, reading)
        if isinstance(read, NotFound):
            return  # it went while we looked; its own event or the next scan tells
        if isinstance(read, Unavailable):
            raise read
        if isinstance(read, Exception):  # what was known of it stays: unreadable is not deleted (F10)
            report.skipped.append((path, str(read)))
            self.skipped[path] = str(read)
            return
        if isinstance(read, _Same):
            assert known is not None
            notes.check_off(db, known.id, read.stat)
            return
        if known is not None and known.sha256 == read.note.sha256 and not self._is_judged_otherwise(known):
            notes.refresh_stat(db, known.id, read.stat, read.facts.modified)
            return
        origin = self._origin(db, gone_by_hash.get(read.note.sha256, [])) if known is None else None
        if origin is not None:
            notes.rename(db, origin.id, path)
            report.moved.append((origin.path, path))
        else:
            (report.added if known is None else report.modified).append(path)
        self._put(db, read, named, known or origin, rows)

    @staticmethod
    def _origin(db: apsw.Connection, gone: list[Known]) -> Known | None:
        """The note of these that a new file of the same bytes was before. What another process has given a new name
        since is somebody else's origin."""
        while gone:
            origin = gone.pop(0)
            now = notes.known(db, origin.path)
            if now is not None and now.id == origin.id:
                return origin
        return None

    def _is_judged_otherwise(self, known: Known) -> bool:
        """Whether the settings now say something else of a note whose file is the same."""
        by_rule = private_by_rule(known.path, self.private)
        by_settings = None if is_copy_reason(known.hidden) else known.hidden
        return by_settings != self.hidden_reason(known.path) or (known.private == "rule") != by_rule

    @staticmethod
    def _read(path: str, reading: Callable[[str], File]) -> _Read | SimplememError | OSError:
        file = _file_at(path, reading)
        return _understood_file(path, file) if isinstance(file, File) else file

    def _read_again(
        self, path: str, reading: Callable[[str], File], known: Known | None
    ) -> _Read | _Same | SimplememError | OSError:
        file = _file_at(path, reading)
        if not isinstance(file, File):
            return file
        is_same = known is not None and (known.sha256, known.mtime_ns) == (file.sha256, file.entry.mtime_ns)
        if is_same and known is not None and not self._is_judged_otherwise(known):
            return _Same(_stat(file.entry))
        return _understood_file(path, file)

    def _too_large(self, size: int) -> str:
        return f"{size} bytes; notes over {self.max_note_bytes} are not indexed"

    def _is_gone(self, path: str) -> bool:
        """The second proof that a deletion asks for."""
        try:
            return self.vault.entry(path) is None and self.vault.root.is_dir()
        except SimplememError:
            return False

    # -- rows

    def _put_unless_large(self, db: apsw.Connection, read: _Read, named: Named) -> None:
        found = notes.known(db, read.path)
        if read.stat.size <= self.max_note_bytes:
            self.skipped.pop(read.path, None)
            self._put(db, read, named, found)
            return
        self.skipped[read.path] = self._too_large(read.stat.size)
        if found is not None:
            self._remove(db, found)

    def _judge_copies_of(self, db: apsw.Connection, originals: Collection[str], named: Named) -> list[str]:
        """Put the conflict copies of these notes again where they are judged otherwise now: a copy is one while its note
        is there, and some only while their texts are akin. Returns the paths of those."""
        changed = []
        for path in copies.copies_of(db, originals):
            found = notes.known(db, path)
            if found is None or (self.hidden_reason(path) is not None and not is_copy_reason(found.hidden)):
                continue
            with self.vault.reading() as reading:
                read = self._read(path, reading)
            if isinstance(read, Exception):
                continue  # what was known of it stays
            if self._hidden(db, read) != found.hidden:
                self._put_unless_large(db, read, named)
                changed.append(path)
        return changed

    def _hidden(self, db: apsw.Connection, read: _Read) -> str | None:
        """Why a note is left out of recall: by the settings, or as a conflict copy."""
        reason = self.hidden_reason(read.path)
        return reason if reason is not None else copies.copy_reason(db, read.path, read.note.text, self._text_at)

    def _text_at(self, path: str) -> str | None:
        try:
            return self.vault.read(path).data.decode("utf-8", "replace")
        except (SimplememError, OSError):
            return None

    def _put(
        self, db: apsw.Connection, read: _Read, named: Named, found: Known | None, into: Rows | None = None
    ) -> None:
        """Write all rows of a note; `found` is what the index has of it."""
        hidden = self._hidden(db, read)
        facts = read.facts
        private = private_reason(read.path, read.note, self.private)
        new, note_id = found is None, None if found is None else found.id
        note_id = notes.put_as(db, note_id, read.path, read.note, facts, read.stat, hidden, private, into)
        if hidden is None:
            missing = text.put(db, note_id, read.path, facts, new=new, private=private is not None, into=into)
            if self.waiting is not None:
                self.waiting.keep(note_id, read.note.sha256, missing)
        else:
            text.remove(db, note_id)
            for shelf in (NOW, NEXT):
                vectors.settle(db, note_id, shelf)
        links.put(db, note_id, read.path, read.note, named, new=new, into=into)

    def _remove_at(self, db: apsw.Connection, path: str) -> None:
        """Remove what a path names now: the note it named before may have another name since, by another process."""
        if (found := notes.known(db, path)) is not None:
            self._remove(db, found)

    def _remove(self, db: apsw.Connection, found: Known) -> None:
        text.remove(db, found.id)
        links.remove(db, found.id)
        notes.remove(db, found.id)


@contextmanager
def collector_at_rest() -> Iterator[None]:
    """Without Python looking for circles among values that all live until their batch is written, or the vault compared:
    that was a sixth of a first index, and a fifth of a scan that finds nothing. Who reads much looks itself after every
    batch, at what is young."""
    was_at_work = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_at_work:
            gc.enable()


def _is_note(path: str) -> bool:
    return path[-3:].lower() == ".md"


def _file_at(path: str, reading: Callable[[str], File]) -> File | SimplememError | OSError:
    try:
        return reading(path)
    except (SimplememError, OSError) as error:
        return error


def _understood_file(path: str, file: File) -> _Read:
    return _understood(path, read_note(file.data, file.sha256), file.entry)


def _understood(path: str, note: Note, entry: Entry) -> _Read:
    return _Read(path, note, _stat(entry), facts_of(path, note, entry.mtime_ns))


def _stat(entry: Entry) -> Stat:
    return Stat(entry.size, entry.mtime_ns, entry.ctime_ns)


def _files_at(db: apsw.Connection, path: str) -> set[str]:
    sql = "SELECT path FROM files WHERE path = ? OR (path >= ? || '/' AND path < ? || '0')"
    return {row[0] for row in db.execute(sql, (path, path, path))}
