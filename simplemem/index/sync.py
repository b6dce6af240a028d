"""Keep the index in step with the vault: after a change of ours, after a hint from the watcher, by a scan. Size and time
only tell whether to read a file; its hash decides. Indexing writes no note. Between two batches others write."""

from __future__ import annotations

import gc
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import MappingProxyType

from simplemem.errors import NotFound, SimplememError, Unavailable
from simplemem.index import changes, notes
from simplemem.index.door import Progress, Row, Stat, SyncReport
from simplemem.index.embedding_queue import EmbeddingQueue
from simplemem.index.engine import COMMIT, SET_META, Connection, Engine
from simplemem.index.notes import Rows, is_note, stat_of
from simplemem.index.parsed_note import ParsedNote, parse_note
from simplemem.index.text import put_text, remove_text
from simplemem.note.conflict_copies import are_similar, parse_conflict_name
from simplemem.note.note import Note, read_note
from simplemem.note.privacy import is_private_by_rule, private_reason
from simplemem.vault.source import NoteSource, Revisions
from simplemem.vault.values import Entry, File

BATCH = 1000  # notes a transaction while many are indexed at once...
_BATCH_BYTES = 8 << 20  # ...as long as they have no more text than this
_MUCH = 250  # notes that are read in one pass: the index is then written as for a first time
_FEW = 20  # so many notes may vanish at once without a doubt

_IDENTITY = (
    "id",
    "created",
)  # properties that a conflict copy has from its note, and that tell two notes apart

Looked = ParsedNote | Stat | SimplememError | OSError
"""What came of reading a file: its note, what the disk says of one that is as the index knows it, or what went wrong."""


class Stopped(Exception):
    """The work was ended before it was done, at a moment where nothing is half done."""


@dataclass(slots=True)
class Sync:
    """Keeps one database in step with one vault. `hidden_reason` says why a note is left out of recall."""

    vault: NoteSource
    database: Engine
    hidden_reason: Callable[[str], str | None]
    max_note_bytes: int
    private: Sequence[str] = ()
    follow_settings: Callable[[], None] = lambda: (
        None
    )  # of Obsidian, which a branch has in its commits
    stop: threading.Event = field(
        default_factory=threading.Event
    )  # set to end a scan after the notes it is at
    # None if no vectors are computed.
    waiting: EmbeddingQueue | None = field(default_factory=EmbeddingQueue)
    skipped: dict[str, str] = field(default_factory=dict)  # files that are not indexed, and why
    unread: int | None = (
        None  # notes that a long pass still has to read, None before the first scan
    )
    moved_from: dict[str, str] = field(
        default_factory=dict
    )  # of notes at a new path, until they are put again there

    def put(
        self,
        written: Sequence[tuple[str, Note, Entry]],
        *,
        gone: Collection[str] = (),
        moved: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Index notes that we have just written, deleted or moved in one step. One that moved keeps its vectors.

        `moved` has the new path of each that moved, by its old one.
        """
        if self.vault.revisions is not None:
            self.scan()
            return
        read = [parse_note(path, note, stat_of(entry)) for path, note, entry in written]
        gone = {*gone, *moved}
        self._follow_log_about([each.path for each in read])
        with self.database.writing() as db:
            for old, new in moved.items():
                self.remove_at(db, new)  # if its file went, and nobody told us
                known = notes.known(db, old)
                if known is not None:
                    notes.rename(db, known.id, new)
            for path in gone:
                self.remove_at(db, path)
            notes.follow_files(db, [each.path for each in read], gone)
            rows = Rows(db)
            for each in read:
                known = notes.known(db, each.path)
                is_put = known is not None and known[2:6] == (each.note.sha256, *each.stat)
                # Else the background was faster. It may have read the file before the log said who made it.
                if moved or not is_put or (known is not None and self.is_judged_otherwise(known)):
                    self._put_unless_large(rows, each, known)
            self.judge_copies_of(rows, {*(each.path for each in read), *gone})

    def look_at(self, paths: Collection[str], *, find_moved: bool = True) -> SyncReport:
        """Paths that may have changed: files or folders, there or gone. `""` is the vault itself.

        Where a file is gone, the whole vault is looked through, as it may have been moved; but for `find_moved`.
        """
        if "" in paths or self.vault.revisions is not None:
            return self.scan()
        return self._compared(paths, find_moved=find_moved)

    def _follow_log_about(self, paths: Collection[str]) -> None:
        """Take in the log if it is needed to judge whether one of these files is a conflict copy."""
        if any(parse_conflict_name(path) is not None for path in paths):
            self._follow_log()

    def _follow_log(self) -> None:
        """Take in the log. One that cannot be read keeps no note out of the index."""
        with suppress(SimplememError, OSError):
            changes.follow(self.database, self.vault.history.log)

    def _compared(self, paths: Collection[str], *, find_moved: bool = False) -> SyncReport:
        entries: dict[str, Entry] = {}
        known: dict[str, Row] = {}
        files: set[str] = set()
        with self.database.reading() as db:
            total, generation = notes.count(db), self.database.generation
            for path in sorted(set(paths)):
                with suppress(SimplememError):
                    entry = self.vault.entry(path)
                    here = [entry] if entry is not None else self.vault.entries_below(path)
                    entries.update((each.path, each) for each in here)
                notes_below, files_below = notes.below(db, path)
                known |= notes_below
                files |= files_below
        if find_moved and any(path not in entries for path in known):
            return (
                self.scan()
            )  # a file that is gone may have been moved to a place that nobody has told of yet
        self._follow_log_about(entries)
        for path in (
            known.keys() & entries.keys() & files & {*paths}
        ):  # mostly we wrote it, and the watcher heard of it
            if path not in self.skipped and known[path].stat == stat_of(entries[path]) == self.look(
                path, known[path]
            ):
                del entries[path], known[path]
                files.discard(path)
        return Reconciling(self, entries, known, files, generation).carry_out(
            None if self.vault.revisions is not None else total
        )

    def scan(
        self,
        progress: Progress | None = None,
        *,
        believe: bool = False,
        seen: list[Entry] | None = None,
    ) -> SyncReport:
        """Compare the whole vault, as it was `seen`, with the index; of a branch, what changed since the commit that the
        index is of. `believe` accepts that many notes are gone."""
        began = time.perf_counter()
        revisions = self.vault.revisions
        if revisions is not None:
            seen, believe, newest = None, True, revisions.current()
            self.follow_settings()
            if (
                commit := self.database.meta(COMMIT)
            ) and not newest:  # else all would be gone, and their vectors
                hint = "Restore the branch with `git push`, or start with an empty index by rebuilding it."
                raise Unavailable("the branch is no longer in its repository", hint=hint)
            changed = revisions.changed_paths(commit, newest) if commit else None
            if changed is not None and len(changed) <= BATCH:
                report = self._compared(changed) if changed else SyncReport()
                if not self._reached(revisions, newest, commit):
                    self._compared(
                        changed
                    )  # a server that had not fetched so much may have put older texts meanwhile
                return report
        self._follow_log()
        with collector_at_rest():
            entries = {entry.path: entry for entry in (self.vault.scan() if seen is None else seen)}
            with self.database.reading() as db:
                known, files, generation = (
                    notes.known_at(db),
                    notes.all_files(db),
                    self.database.generation,
                )
            found = Reconciling(self, entries, known, files, generation, progress)
            report = found.carry_out(None if believe else len(known))
        self.unread = 0
        if revisions is not None:
            self._reached(revisions, newest, None)
        report.seconds = time.perf_counter() - began
        return report

    def follow_moves(self) -> None:
        """Give the notes whose files another program has moved their new paths.

        The rest of a note, such as a title that is its file's name, follows when it is next compared with its file.
        """
        entries = {entry.path: entry for entry in self.vault.scan()}
        with self.database.reading() as db:
            known, files, generation = (
                notes.known_at(db),
                notes.all_files(db),
                self.database.generation,
            )
        Reconciling(self, entries, known, files, generation).follow_moves()

    def _reached(self, revisions: Revisions, commit: str, since: str | None) -> bool:
        """The index is of this commit, if not of a later one by now. Whether nobody else has brought it on `since`."""
        if (known := self.database.meta(COMMIT)) != commit:
            revisions.fetch(known or "")  # over the network, if at all, before others wait for us
            with self.database.writing() as db:
                known = db.execute("SELECT value FROM meta WHERE key = $1", (COMMIT,)).get
                if (
                    known is None
                    or revisions.changed_paths(known, commit) is None
                    or revisions.is_ancestor(known, commit)
                ):
                    db.execute(SET_META, (COMMIT, commit)).fetchall()
        return known == since

    def look(
        self, path: str, known: Row | None = None, reading: Callable[[str], File] | None = None
    ) -> Looked:
        """Read a file and understand it, unless its bytes and its date are those that the index knows."""
        try:
            file = (reading or self.vault.read)(path)
        except (SimplememError, OSError) as error:
            return error
        seen = file.sha256, file.entry.mtime_ns
        if (
            known is not None
            and (known.sha256, known.mtime_ns) == seen
            and not self.is_judged_otherwise(known)
        ):
            return stat_of(file.entry)
        return parse_note(path, read_note(file.data, file.sha256), stat_of(file.entry))

    def is_judged_otherwise(self, known: Row) -> bool:
        """Whether the settings, the log or a new path now say something else of a note whose file is the same."""
        if known.is_at_new_path:
            return True
        if known.is_copy and self._is_named_by_us(known.path):
            return True
        by_rule = bool(self.private) and is_private_by_rule(
            known.path, self.private
        )  # asked of every note of every scan
        by_settings = None if known.hidden is None or known.is_copy else known.hidden
        return by_settings != self.hidden_reason(known.path) or (known.private == "rule") != by_rule

    def _is_named_by_us(self, path: str) -> bool:
        with self.database.reading() as db:
            return changes.is_named_by_us(db, path)

    def skip_if_large(self, path: str, size: int) -> bool:
        """Whether a file is too large to be indexed, which is then remembered of it."""
        if size <= self.max_note_bytes:
            return False
        self.skipped[path] = f"{size} bytes; notes over {self.max_note_bytes} are not indexed"
        return True

    def _put_unless_large(self, rows: Rows, read: ParsedNote, known: Row | None) -> None:
        """Write all rows of a note in place of those it has. One that is too large has none."""
        if self.skip_if_large(read.path, read.stat.size):
            self.remove_at(rows.db, read.path)
        else:
            self.skipped.pop(read.path, None)
            self.put_note(rows, read, known)
            rows.write()

    def put_note(self, rows: Rows, read: ParsedNote, known: Row | None) -> None:
        """Keep all rows of a note in `rows`, which are written later; `known` is what the index has of it."""
        hidden = self._hidden(rows.db, read)
        private = private_reason(read.path, read.note, self.private)
        note_id = notes.put(rows, None if known is None else known.id, read, hidden, private)
        if hidden is None:
            missing = put_text(rows, note_id, read, new=known is None, private=private is not None)
            if self.waiting is not None:
                self.waiting.keep(note_id, missing)
        else:
            remove_text(rows.db, note_id)

    def judge_copies_of(self, rows: Rows, originals: Collection[str]) -> list[str]:
        """Put the conflict copies of these notes again where they are judged otherwise now. Returns their paths."""
        db, changed = rows.db, []
        for path in notes.copies_of(db, originals):
            known = notes.known(db, path)
            if known is None or (self.hidden_reason(path) is not None and not known.is_copy):
                continue
            read = self.look(path)
            if isinstance(read, ParsedNote) and self._hidden(db, read) != known.hidden:
                self._put_unless_large(
                    rows, read, known
                )  # of one that cannot be read, what was known stays
                changed.append(path)
        return changed

    def remove_at(self, db: Connection, path: str) -> None:
        """Remove what a path names now: the note it named before may have another name since, by another process."""
        if (known := notes.known(db, path)) is not None:
            remove_text(db, known.id)
            notes.remove(db, known.id)

    def _hidden(self, db: Connection, read: ParsedNote) -> str | None:
        """Why a note is left out of recall: by the settings, or as a conflict copy."""
        if (reason := self.hidden_reason(read.path)) is not None or (
            copy := notes.copy_at(db, read.path)
        ) is None:
            return reason
        name, original = copy
        if not name.certain:
            try:
                theirs = read_note(self.vault.read(original).data)
            except (SimplememError, OSError):
                return None
            if _are_told_apart(read.note, theirs) or not are_similar(read.note.text, theirs.text):
                return None
        return name.reason


def _are_told_apart(one: Note, other: Note) -> bool:
    """Whether two notes say of themselves that they are two: a conflict copy has the identity of its note."""
    for key in _IDENTITY:
        ours, theirs = one.text_property(key), other.text_property(key)
        if ours and theirs and ours != theirs:
            return True
    return False


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
    _is_counted: bool = False
    _gone: dict[str, list[Row]] = field(
        default_factory=dict
    )  # whose file went, by hash: a new file may be one of them

    def carry_out(self, total: int | None) -> SyncReport:
        """Make the rows of both sides right. With the `total` of notes, too many that vanish are doubted."""
        if total is not None:
            self._doubt(total)
        sync, entries, known, files = self.sync, self.entries, self.known, self.files
        came, went = (
            entries.keys() - files,
            {path for path in files - entries.keys() if self._is_gone(path)},
        )
        skipped = sync.skipped.items()
        sync.skipped = {
            path: why for path, why in skipped if path not in entries and not self._is_gone(path)
        }
        to_read = sorted(path for path, entry in entries.items() if self._is_to_read(entry))
        too_large = {path for path in sync.skipped if path in known and path in entries}
        gone = [
            found
            for path, found in known.items()
            if path not in entries and (path in went or path not in files)
        ]
        if came or went or to_read or gone or too_large:
            self._much = len(to_read) > _MUCH
            for found in gone:
                self._gone.setdefault(found.sha256, []).append(found)
            self._is_counted = len(to_read) > _FEW or sync.unread is None
            self._count_unread(len(to_read))
            moved = self._find_moved(to_read)
            with sync.database.writing(self.generation) as db:
                notes.follow_files(
                    db, came, went
                )  # first: after a pass that is cut short nobody would know of them
                self._take_moved(db, moved)
                self.report.modified += sync.judge_copies_of(Rows(db), came | went)
                if self._much:
                    sync.database.expect_much()
            self._put_notes([entries[path] for path in to_read])
            self._forget(too_large)
        return self.report

    def follow_moves(self) -> None:
        """Give the notes whose files were moved their new paths, and do nothing else."""
        for path, found in self.known.items():
            if path not in self.entries and self._is_gone(path):
                self._gone.setdefault(found.sha256, []).append(found)
        moved = self._find_moved(self.entries.keys() - self.known.keys())
        if moved:
            with self.sync.database.writing(self.generation) as db:
                notes.follow_files(db, moved, [origin.path for origin in moved.values()])
                self._take_moved(db, moved)

    def _find_moved(self, paths: Collection[str]) -> dict[str, Row]:
        """Which of these files have the bytes of a note whose file went: the new path of each such note, and its row."""
        moved: dict[str, Row] = {}
        origins = [origin for same in self._gone.values() for origin in same]
        if not origins:
            return moved
        sizes = {origin.size for origin in origins}
        is_any_size_possible = any(
            origin.is_at_new_path for origin in origins
        )  # moved twice: its size is not known
        with self.sync.vault.reading() as reading:
            for path in sorted(paths):
                is_new_note = is_note(path) and path not in self.known
                may_be_moved = is_any_size_possible or self.entries[path].size in sizes
                if not (is_new_note and may_be_moved):
                    continue
                with suppress(SimplememError, OSError):
                    same = self._gone.get(reading(path).sha256)
                    if same:
                        moved[path] = same.pop(0)
        return moved

    def _take_moved(self, db: Connection, moved: dict[str, Row]) -> None:
        """Move the rows of notes whose files were moved, so that they are found while the notes are put again."""
        for path, origin in moved.items():
            now = notes.known(db, origin.path)
            if now is not None and now.id == origin.id and notes.known(db, path) is None:
                notes.follow_move(db, origin.id, path)
                self.sync.moved_from[path] = origin.path
        self.known |= notes.known_at(db, moved)

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
        return (
            known is None
            or known.may_have_changed(size, mtime_ns, ctime_ns)
            or self.sync.is_judged_otherwise(known)
        )

    def _is_gone(self, path: str) -> bool:
        """The second proof that a deletion asks for."""
        with suppress(SimplememError):
            return self.sync.vault.entry(path) is None and self.sync.vault.root.is_dir()
        return False

    def _put_notes(self, entries: Sequence[Entry]) -> None:
        """Put the notes of files that may have changed, a batch a transaction."""
        done = 0
        # Notes that were moved are searchable all the while.
        unread = sum(entry.path not in self.sync.moved_from for entry in entries)
        self._count_unread(unread)
        for batch in self._batches(entries):
            with self.sync.database.writing(self.generation) as db:
                rows, paths = Rows(db), [path for path, _ in batch]
                there = notes.known_at(db, paths)
                for path, read in batch:
                    self._put(rows, path, read, there.get(path))
                rows.write()
                self.report.modified += self.sync.judge_copies_of(rows, paths)
            done += len(batch)
            self._count_unread(max(0, unread - done))
            batch.clear()  # before the collector looks at what lives
            if self._much:
                gc.collect(0)
            self.sync.database.checkpoint(is_bulk=True)
            if self.progress is not None:
                self.progress("text", done, len(entries))
        self._count_unread(0)

    def _count_unread(self, count: int) -> None:
        """Say how many notes are still to be read, in a pass that is long enough for answers to lack them."""
        if self._is_counted:
            self.sync.unread = count

    def _batches(self, entries: Sequence[Entry]) -> Iterator[list[tuple[str, Looked]]]:
        """Files read and understood before the transaction that puts them, which others wait for."""
        left = deque(entries)
        while left:
            batch, size = list[tuple[str, Looked]](), 0
            with self.sync.vault.reading() as reading:
                while left and len(batch) < BATCH and size < _BATCH_BYTES:
                    if self.sync.stop.is_set():
                        raise Stopped
                    entry = left.popleft()
                    batch.append(
                        (
                            entry.path,
                            self.sync.look(entry.path, self.known.get(entry.path), reading),
                        )
                    )
                    size += entry.size
            yield batch

    def _put(self, rows: Rows, path: str, read: Looked, now: Row | None) -> None:
        """Put a file that was read. `now` is what the index knows of it, which may be more than when the pass began."""
        db, known = rows.db, self.known.get(path)
        if now != known:  # somebody put or removed it since: what was read may be older than that
            known, read = now, self.sync.look(path)
        if isinstance(read, NotFound):
            return  # it went while we looked; its own event or the next scan tells
        if isinstance(read, Unavailable):
            raise read
        if isinstance(
            read, Exception
        ):  # what was known of it stays: unreadable is not deleted (F10)
            self.report.skipped.append((path, str(read)))
            self.sync.skipped[path] = str(read)
        elif isinstance(read, Stat):
            assert known is not None
            notes.refresh(db, known.id, read)
        elif (
            known is not None
            and known.sha256 == read.note.sha256
            and not self.sync.is_judged_otherwise(known)
        ):
            notes.refresh(db, known.id, read.stat, read.metadata.modified)
        else:
            origin = self._origin(db, read.note.sha256) if known is None else None
            if origin is not None:
                notes.rename(db, origin.id, path)
                self.report.moved.append((origin.path, path))
            elif path in self.sync.moved_from:
                self.report.moved.append((self.sync.moved_from.pop(path), path))
            else:
                (self.report.added if known is None else self.report.modified).append(path)
            self.sync.put_note(rows, read, known or origin)

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
        gone = [
            found.path
            for same in self._gone.values()
            for found in same
            if self._is_gone(found.path)
        ]
        with self.sync.database.writing(self.generation) as db:
            for path in (*gone, *too_large):
                self.sync.remove_at(db, path)
                self.report.removed.append(path)
            self.report.modified += self.sync.judge_copies_of(Rows(db), too_large)
        self.sync.database.fold(self.generation)
        self.sync.database.checkpoint()


@contextmanager
def collector_at_rest() -> Iterator[None]:
    """Without Python looking for circles among values that all live: a sixth of a first index, a fifth of a scan."""
    was_at_work = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_at_work:
            gc.enable()
