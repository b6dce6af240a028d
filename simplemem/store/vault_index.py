"""The notes of a vault as they are now, and the index that follows them.

Every question and every change of a store begins here: `NoteReader` reads the notes,
`ObsidianSettingsCache` follows the settings of the vault, `IndexKeeper` brings the index up to
date, `IndexMonitor` tells how far the index can be trusted, `NameResolver` finds the note that a
name means, and `NoteWriter` changes files and has the index follow.
"""

from __future__ import annotations

import difflib
import logging
import os
import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

from simplemem.errors import (
    Ambiguous,
    Hint,
    HintSentence,
    NotFound,
    ReadOnly,
    SimplememError,
    Unavailable,
)
from simplemem.index.api import IndexProgress, NoteRow, Progress, Stat, SyncReport
from simplemem.index.changes import ChangeTable
from simplemem.index.engine import Damaged, Engine
from simplemem.index.notes import is_note, stat_of
from simplemem.index.service import IndexService
from simplemem.index.updater import IndexUpdater, paused_collector
from simplemem.models import AuthorArgs, IndexState
from simplemem.note.dates import local_now
from simplemem.note.names import clean_reference, compare_key, name_of, path_of
from simplemem.note.similar import similar_names
from simplemem.note.words import format_count, well_formed
from simplemem.obsidian.settings import SETTINGS_FILES
from simplemem.settings.model import IndexSettings
from simplemem.store.embedding import Embedding
from simplemem.store.former_names import MAX_VERSIONS, FormerNote, find_former_note
from simplemem.store.listeners import Listeners
from simplemem.vault.obsidian import read_obsidian_settings
from simplemem.vault.source import NoteSource
from simplemem.vault.values import Author, Entry, File, FileChange, WriteResult

T = TypeVar("T")

_MAX_NOTICES = 20  # of one thread; some programs never take them
_MAX_REMEMBERED_TEXTS = 500
_MAX_REMEMBERED_BYTES = 8_000_000
_EMBEDDING_CPU_SECONDS = 1.0  # that one question may spend on missing vectors
_MAX_NOTES_TO_EMBED = 200  # for a question that is not the first
SCANNED = "scanned"  # the entry of the index that says that the whole vault was read once
_LOG = logging.getLogger(__name__)


class Notices(threading.local):
    """Messages for answers whose format has no place for warnings.

    Guards the messages of the calling thread, the latest ones only.
    """

    def __init__(self) -> None:
        self._messages: list[str] = []

    def add(self, messages: Iterable[str]) -> None:
        """Add messages that are not there yet."""
        for message in messages:
            if message not in self._messages:
                self._messages.append(message)
        del self._messages[:-_MAX_NOTICES]

    def pop_all(self) -> list[str]:
        """Return the messages of this thread since the last call, and forget them."""
        messages = self._messages
        self._messages = []
        return messages


class ObsidianSettingsCache:
    """The settings in `.obsidian/` of a vault.

    Guards the settings that were read last (`current`), and the sizes and times of their files at
    that moment. Not every server watches these files, so a caller that depends on the settings
    calls `follow` first.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._file_states = self._current_file_states()
        self.current = read_obsidian_settings(root)

    def follow(self) -> None:
        """Read the settings again if one of their files has changed."""
        file_states = self._current_file_states()
        if file_states != self._file_states:
            self._file_states = file_states
            self.current = read_obsidian_settings(self._root)

    def hidden_reason(self, path: str) -> str | None:
        """Return why the settings exclude a note from search; None if they do not."""
        return self.current.hidden_reason(path)

    def _current_file_states(self) -> list[tuple[str, int, int, int]]:
        """Return the sizes and times of the files that exist."""
        states = []
        for name in SETTINGS_FILES:
            with suppress(OSError):
                stat = os.stat(os.path.join(self._root, *name.split("/")))
                states.append((name, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns))
        return states


class NoteReader:
    """Reads single files of a vault.

    Guards the texts that callers were given last, so that the error for a later conflict can show
    what has changed since.
    """

    def __init__(self, vault: NoteSource) -> None:
        self._vault = vault
        self._guard = threading.Lock()
        self._texts: dict[str, bytes] = {}  # by hash, the latest last

    def entry(self, path: str) -> Entry | None:
        """Return what is at a path; None if nothing is there, or nothing that may be seen.

        None also if the path is malformed, or if the vault cannot be read at the moment.
        """
        with suppress(SimplememError):
            return self._vault.entry(path)
        return None

    def exists(self, path: str) -> bool:
        """Return whether `entry` finds a file at a path."""
        return self.entry(path) is not None

    def file(self, path: str) -> File | None:
        """Read the file at a path; return None if `entry` finds none.

        Raises Unreadable, TooLong or Unavailable if the file cannot be read.
        """
        if self.entry(path) is None:
            return None
        return self._vault.read(path)

    def bytes_of(self, path: str) -> bytes | None:
        """Read the content of a file; like `file` otherwise."""
        file = self.file(path)
        return None if file is None else file.data

    def text_of(self, path: str) -> str | None:
        """Read the text of a note; return None if it is not there, or cannot or must not be read.

        Bytes that are not UTF-8 are replaced. Raises Unavailable if the vault cannot be read at the
        moment, because that does not mean that there is no note.
        """
        try:
            file = self._vault.read(path)
        except Unavailable:
            raise
        except SimplememError:
            return None
        return file.data.decode("utf-8", "replace")

    def remember(self, file: File) -> None:
        """Keep a text that a caller is given; forget the oldest ones if there are too many."""
        with self._guard:
            texts = self._texts
            texts.pop(file.sha256, None)
            texts[file.sha256] = file.data
            while len(texts) > _MAX_REMEMBERED_TEXTS or _total_size(texts) > _MAX_REMEMBERED_BYTES:
                oldest = next(iter(texts))
                del texts[oldest]

    def remembered(self, sha256: str) -> bytes | None:
        """Return one of the texts that are still kept, by its hash; None if it is not kept."""
        return self._texts.get(sha256)


def _total_size(texts: dict[str, bytes]) -> int:
    """Return the bytes of all texts together."""
    return sum(map(len, texts.values()))


class QuestionVectors:
    """Makes missing vectors before a question, in a program that has no background thread.

    Guards whether notes may lack vectors, and whether an earlier question made some.
    """

    def __init__(self, index: IndexService, updater: IndexUpdater, embedding: Embedding) -> None:
        self._index = index
        self._updater = updater
        self._embedding = embedding
        self._may_be_missing = True
        self._has_embedded = False

    def expect_missing(self) -> None:
        """Record that something was indexed, so the next `make_few` looks for missing vectors."""
        self._may_be_missing = True

    def expect_complete(self) -> None:
        """Record that no vector is missing, so `make_few` has nothing to do.

        This holds until `expect_missing` is called.
        """
        self._may_be_missing = False

    def make_few(self) -> None:
        """Make missing vectors for at most a second of CPU time, before a question.

        A remote service is not asked. If more than 200 notes lack vectors, only the first call
        makes some. Does nothing if no note was indexed since the last call. Raises a SimplememError
        or Damaged if the index cannot be used.
        """
        # The updater collects the texts that wait for a vector, unless no vectors are to be made.
        are_unwanted = self._updater.waiting is None
        if are_unwanted or not self._may_be_missing:
            return

        self._may_be_missing = False
        pending = self._embedding.count_pending()
        if not pending or self._embedding.is_remote():
            return
        if self._has_embedded and pending > _MAX_NOTES_TO_EMBED:
            return

        self._has_embedded = True
        fill = partial(
            self._embedding.fill,
            None,
            begin=False,
            ready=self._updater.waiting,
            work_seconds=_EMBEDDING_CPU_SECONDS,
        )
        self._index.with_retry(fill)


class BackgroundWork(Protocol):
    """What the class `IndexKeeper` below needs of the background thread of a server.

    `background.Background` is the thread. This module does not import it: it imports this one.
    """

    @property
    def is_settled(self) -> bool:
        """Whether the comparison of the vault with the index that was asked for last is done."""

    def wake(self, *, scan: bool = False, fill: bool = False) -> None:
        """Wake the thread, to `scan` the whole vault or to `fill` in vectors. Returns at once."""

    def wait_until_ready(self, *, vectors: bool) -> None:
        """Wait for the scan, and with `vectors` for missing vectors, 8 seconds at most."""

    def wait_until_settled(self, timeout: float) -> bool:
        """Wait up to `timeout` seconds for the scan; return whether it is done."""


class IndexKeeper:
    """Brings the index of a vault up to date: by scans of all, and path by path.

    Guards what the index is known to lack: whether the vault was ever scanned, the paths that were
    written but could not be indexed, and how many notes vanished at once. If many notes vanish at
    once, perhaps only their disk is not mounted: they stay in the index until a scan after the
    usual interval still misses them.
    """

    def __init__(
        self,
        vault: NoteSource,
        index: IndexService,
        database: Engine,
        updater: IndexUpdater,
        *,
        reader: NoteReader,
        obsidian: ObsidianSettingsCache,
        listeners: Listeners,
        vectors: QuestionVectors,
        settings: IndexSettings,
        read_only: bool,
    ) -> None:
        self._vault = vault
        self._index = index
        self._database = database
        self._updater = updater
        self._reader = reader
        self._obsidian = obsidian
        self._listeners = listeners
        self._vectors = vectors
        self._scan_seconds = 60 * settings.scan_minutes
        self._read_only = read_only
        self._background: BackgroundWork | None = None

        self._was_scanned = False
        self.compared_at = 0.0  # monotonic, when this process last compared all notes; 0.0 if never
        self._vanished_count = 0  # notes that are gone, but stay in the index for now
        self._vanished_since = 0.0  # monotonic, when a scan first missed them
        # Old paths of moved notes whose new paths were looked for and not found.
        self._lost_paths: set[str] = set()
        # Paths that were written but not indexed, because the index failed at that moment.
        self._unindexed_paths: set[str] = set()

    def open(self) -> None:
        """Read from the index whether the vault was ever scanned. Ignores an unavailable index."""
        with suppress(Unavailable):
            self._was_scanned = self._index.with_retry(self._is_marked_scanned)

    def attach(self, background: BackgroundWork) -> None:
        """Leave scans and vectors to a background thread from now on."""
        self._background = background

    @property
    def has_background(self) -> bool:
        """Whether a background thread keeps the index up to date."""
        return self._background is not None

    @property
    def is_comparing(self) -> bool:
        """Whether a background thread still has to compare the vault with the index."""
        return self._background is not None and not self._background.is_settled

    @property
    def is_incomplete(self) -> bool:
        """Whether only a scan of the whole vault can tell what the index lacks."""
        return not self._was_scanned or self._vanished_count > 0 or bool(self._unindexed_paths)

    @property
    def was_scanned(self) -> bool:
        """Whether the whole vault was ever read, as far as this process knows."""
        return self._was_scanned

    def look_for_first_scan(self) -> bool:
        """Return whether the whole vault was ever read, perhaps by another process meanwhile."""
        self._was_scanned = self._was_scanned or self._is_marked_scanned()
        return self._was_scanned

    @property
    def vanished_count(self) -> int:
        """How many notes vanished at once and stay in the index for now; 0 if none do."""
        return self._vanished_count

    @property
    def unindexed_count(self) -> int:
        """How many paths were written but could not be indexed."""
        return len(self._unindexed_paths)

    def wait_until_settled(self, timeout: float = 60.0) -> bool:
        """Wait up to `timeout` seconds for the scan of the background thread.

        Returns whether it is done; True at once if there is no such thread.
        """
        return self._background is None or self._background.wait_until_settled(timeout)

    def prepare(self, *, vectors: bool = True) -> None:
        """Bring the index up to date for a question, with at most about a second of work.

        With a background thread, waits for it, for seconds at most. Without one, a vault that was
        never scanned is read completely, however long that takes; with `vectors`, some missing
        vectors are made too. Raises nothing: the question that follows raises what is wrong.
        """
        if self._background is not None:
            self._background.wait_until_ready(vectors=vectors)
            return

        with suppress(SimplememError, Damaged):
            if not self._was_scanned and not self._index.with_retry(self._is_marked_scanned):
                self.compare_all()
            if vectors:
                self._vectors.make_few()

    def compare_all(
        self, progress: Progress | None = None, *, accept_deletions: bool = False
    ) -> SyncReport:
        """Finish interrupted writes, and compare the whole vault with the index.

        If many notes are gone at once, they stay in the index until a later scan, after nearly the
        usual interval, finds the same; with `accept_deletions` they are removed now. Also prunes
        the history if that is due, and notifies the listeners. `progress` is called as notes are
        read. Raises Unavailable if the vault cannot be read.
        """
        with paused_collector():
            _, entries = self._vault.recover()

        vanished_seconds = time.monotonic() - self._vanished_since
        if self._vanished_count > 0 and vanished_seconds > 0.9 * self._scan_seconds:
            accept_deletions = True
        scan = partial(self._scan, progress, accept_deletions=accept_deletions, entries=entries)
        report = self._index.with_retry(scan)

        self.prune_history()
        return report

    def scan_again(self) -> None:
        """Compare the vault as it is with the index, without recovering interrupted writes."""
        self._index.with_retry(self._scan)

    def _scan(
        self,
        progress: Progress | None = None,
        *,
        accept_deletions: bool = False,
        entries: list[Entry] | None = None,
    ) -> SyncReport:
        """Compare the vault with the index, once, and record what that says about the index.

        `entries` are the files of the vault; if None, the folder is listed.
        """
        self._obsidian.follow()
        unindexed_before = set(self._unindexed_paths)
        report = self._updater.scan(progress, accept_deletions=accept_deletions, entries=entries)

        # Paths that another thread added during the scan stay: the scan may have missed them.
        self._unindexed_paths -= unindexed_before
        self.compared_at = time.monotonic()
        self._vectors.expect_missing()
        self._record_vanished(report.doubted)
        if not self._was_scanned:
            self._database.set_meta(SCANNED, "yes")
            self._was_scanned = True
        self._listeners.notify(report.changed())
        return report

    def begin_again(self) -> None:
        """Continue with an index that replaced ours.

        If no scan of the vault filled it, scans now, or has the background thread scan.
        """
        self._was_scanned = self._is_marked_scanned()
        if self._was_scanned:
            return
        if self._background is not None:
            self._background.wake(scan=True)
        else:
            self._scan()

    def _is_marked_scanned(self) -> bool:
        """Return whether the index says that the vault was scanned."""
        return self._database.meta(SCANNED) is not None

    def _record_vanished(self, count: int) -> None:
        """Record how many notes seem to have vanished at once; 0 if all are there or removed."""
        if count and not self._vanished_count:
            self._vanished_since = time.monotonic()
        self._vanished_count = count

    def prune_history(self) -> None:
        """Delete earlier texts that the settings no longer keep. Raises nothing."""
        try:
            if not self._read_only and self._vault.history.is_pruning_due():
                self._vault.prune_history()
        except (SimplememError, OSError) as error:
            _LOG.warning("old versions could not be pruned from the history: %s", error)

    def look_at(self, changed_paths: Iterable[str]) -> None:
        """Index paths that may have changed, and notify the listeners.

        The whole vault is compared first if one of Obsidian's settings is among them, because the
        settings decide which notes are searched, or if notes seem to have vanished. If they still
        seem so afterwards, the paths are left to a later scan.
        """
        all_paths = set(changed_paths)
        self._obsidian.follow()
        has_settings = any(path.startswith(".obsidian/") for path in all_paths)
        if self._vanished_count or has_settings:
            self.compare_all()

        paths = {path for path in all_paths if not path.startswith(".obsidian")}
        if self._vanished_count or not paths:
            return

        report = self._index.with_retry(lambda: self._updater.look_at(paths))
        self._vectors.expect_missing()
        self._record_vanished(report.doubted)
        # If another process has indexed a note already, the report does not list it. The listeners
        # of this process want to know of it all the same.
        self._listeners.notify({*report.changed(), *filter(is_note, paths)})

    def revalidated(self, ask: Callable[[], T], rows: Callable[[T], Iterable[NoteRow]]) -> T:
        """Return the answer of `ask`; if a note in it has changed on the disk, ask again.

        `ask` queries the index, and `rows` returns the rows of the notes that its answer shows.
        Notes that changed are indexed before `ask` is called again, and so are the files that could
        not be indexed when they were written; the listeners are notified. If they cannot be indexed
        now, the last answer is returned, and a warning is logged. `ask` is called up to 3 times, so
        it must have no effects. Raises what it raises.
        """
        answer = ask()
        unindexed_before = set(self._unindexed_paths)
        self._obsidian.follow()

        # Moved notes first: if a file is missing, `look_at` below would scan the whole vault.
        were_moves_followed = self._follow_moves_of(rows(answer))
        if were_moves_followed:
            answer = ask()

        changed = self._changed_paths(rows(answer)) | unindexed_before
        if self._vanished_count:
            # Notes that seem to have vanished stay in the index until a scan is certain of it.
            changed = {path for path in changed if self._reader.exists(path)}
        if not changed:
            return answer

        look = partial(self._updater.look_at, changed, find_moved=not were_moves_followed)
        try:
            report = self._index.with_retry(look)
        except Unavailable as error:
            # A full disk or a busy index: the known answer is better than none.
            _LOG.warning("changed notes could not be indexed: %s", error)
            self._unindexed_paths |= changed
            return answer

        self._vectors.expect_missing()
        if not report.doubted:
            self._unindexed_paths -= unindexed_before
        self._listeners.notify(report.changed())
        return ask()

    def _changed_paths(self, rows: Iterable[NoteRow]) -> set[str]:
        """Return the paths of notes whose files are not as the index has them."""
        changed = set()
        for row in rows:
            entry = self._reader.entry(row.path)
            if entry is None or stat_of(entry) != Stat(row.size, row.mtime_ns, row.ctime_ns):
                changed.add(row.path)
        return changed

    def _follow_moves_of(self, rows: Iterable[NoteRow]) -> bool:
        """Give notes whose files have moved their new paths in the index; say whether it was done.

        Only a server does this, so that a question finds a moved note before the background thread
        has compared the whole vault. Returns False, with a warning in the log, if the index cannot
        be written. The same missing paths are not looked for twice.
        """
        if self._vanished_count or self._background is None or self._vault.revisions is not None:
            return False
        missing_paths = {row.path for row in rows if not self._reader.exists(row.path)}
        if not missing_paths or missing_paths <= self._lost_paths:
            return False

        try:
            self._index.with_retry(self._updater.follow_moves)
        except Unavailable as error:
            _LOG.warning("the index could not follow moved notes: %s", error)
            return False
        self._lost_paths = missing_paths - set(self._updater.moved_from.values())
        return True

    def indexed(self, paths: Collection[str], put: Callable[[], None]) -> list[str]:
        """Call `put`, which indexes files that were just written, and notify the listeners.

        `paths` are those of the files. Returns [], or one warning if the index fails: the files are
        written all the same, and are indexed later.
        """
        warnings = []
        try:
            self._index.with_retry(put)
            self._vectors.expect_missing()
            # A program that only writes has no background thread that would do this.
            self._database.checkpoint()
        except (SimplememError, Damaged) as error:
            self._unindexed_paths |= set(paths)
            warnings.append(f"written, but not yet searchable: {error}")

        if self._listeners.subscribers:
            self._listeners.notify(paths)
        if self._background is not None:
            self._background.wake(fill=True)
        return warnings

    def index_written(self, paths: Collection[str]) -> list[str]:
        """Index files that were just written or deleted; otherwise as `indexed`."""
        return self.indexed(paths, lambda: self.look_at(paths))

    def reach(self, commit: str) -> None:
        """Make sure that later answers contain this commit of the branch that is served.

        Fetches the commit and scans if the index does not contain it. Does nothing if the vault is
        a folder, which has no revisions. Raises Unavailable if the commit has not arrived.
        """
        revisions = self._vault.revisions
        if revisions is None:
            return
        indexed_commit = self._index.progress().commit
        if commit == indexed_commit or revisions.is_ancestor(commit, indexed_commit):
            return
        if not revisions.fetch(commit):
            raise Unavailable(
                f"the commit {commit[:40]} has not arrived yet",
                hint="Check that the commit is pushed to this branch. "
                "Try again in a moment, or leave the commit out.",
            )
        self.scan_again()


class IndexMonitor:
    """Tells how far the index of a vault can be trusted. Guards no state of its own."""

    def __init__(
        self,
        vault: NoteSource,
        index: IndexService,
        updater: IndexUpdater,
        *,
        keeper: IndexKeeper,
        embedding: Embedding,
        notices: Notices,
    ) -> None:
        self._vault = vault
        self._index = index
        self._updater = updater
        self._keeper = keeper
        self._embedding = embedding
        self._notices = notices

    @property
    def is_behind(self) -> bool:
        """Whether notes may be missing from the index."""
        keeper = self._keeper
        return not keeper.was_scanned or keeper.is_comparing or bool(self._updater.unread)

    @property
    def is_in_doubt(self) -> bool:
        """Whether only a scan of the whole vault can tell what the index lacks."""
        return self._keeper.is_incomplete

    def not_indexed(self) -> list[tuple[str, str]]:
        """Return the files of the vault that are not in the index, and why, by path."""
        reasons = {**self._vault.problems, **self._updater.skipped}
        return sorted(reasons.items())

    def state_if_behind(self) -> IndexState | None:
        """Return the state of the index if notes may be missing from it; else None.

        A search calls this before it asks the index, and passes the result to `state_of_answer`
        afterwards, because a scan may end in between.
        """
        return self.state() if self.is_behind else None

    def state_of_answer(
        self, state_behind: IndexState | None, status: IndexProgress | None = None
    ) -> IndexState:
        """Return the state that the index was in when an answer was made from it.

        `state_behind` is what `state_if_behind` returned before the question, `status` the progress
        of the index that the answer came with. If something is missing, the reason also becomes a
        notice, for formats that have no place for a state.
        """
        state = state_behind or self.state(status)
        if not state.is_ready:
            self._notices.add([state.reason])
        return state

    def state_of_list(self, state_behind: IndexState | None) -> IndexState:
        """Return the state for a list of notes: as `state_of_answer`, but no list needs vectors."""
        state = state_behind or self.state()
        has_all_notes = state_behind is None and not state.missing_notes and not self.is_in_doubt
        if state.state == "partial" and has_all_notes:  # only vectors are missing
            return IndexState(
                state="ready",
                notes=state.notes,
                pending=state.pending,
                reason="",
                commit=state.commit,
                missing_notes=0,
                missing_vectors=state.missing_vectors,
            )
        return self.state_of_answer(state)

    def state(self, status: IndexProgress | None = None) -> IndexState:
        """Return how complete the index is now, or was when this `status` was read."""
        status = status or self._index.progress()
        pending = self._embedding.count_pending(status)
        if not self._keeper.look_for_first_scan():
            return self._state_of_first_scan(status.notes, pending)

        unread = self._updater.unread or 0
        reason = self._reason_to_wait(unread, pending)
        if not reason:
            reason = self._reason_for_words_only()
            return IndexState("ready", status.notes, 0, reason, status.commit)
        return IndexState(
            state="partial",
            notes=status.notes,
            pending=pending + unread,
            reason=reason,
            commit=status.commit,
            missing_notes=unread,
            missing_vectors=pending,
        )

    def _reason_to_wait(self, unread: int, pending: int) -> str:
        """Return a sentence on why answers may be incomplete; "" if they are complete.

        `unread` notes are not indexed, `pending` notes have no vector.
        """
        keeper = self._keeper
        if unread:
            verb = "is" if unread == 1 else "are"
            return f"{format_count(unread, 'new or changed note')} {verb} not indexed yet."
        if keeper.is_comparing:
            return "The vault is being compared with its index: recent changes may be missing."
        if keeper.vanished_count:
            return (
                f"{keeper.vanished_count} notes disappeared at once. "
                "If you deleted them, run `simplemem index --rebuild`."
            )
        if keeper.unindexed_count:
            notes = format_count(keeper.unindexed_count, "changed note")
            return f"{notes} could not be indexed yet. Check that the disk is not full."
        if pending:
            verb = "is" if pending == 1 else "are"
            notes = f"{format_count(pending, 'note')} {verb}"
            trouble = self._embedding.trouble()
            return f"{notes} searchable by words, not yet by meaning. {trouble}".strip()
        return ""

    def _reason_for_words_only(self) -> str:
        """Return why some notes are never searched by meaning; "" if there are none."""
        private = self._embedding.count_private()
        if not private:
            return ""
        verb = "is" if private == 1 else "are"
        notes = f"{format_count(private, 'private note')} {verb} searched by words only"
        return f"{notes}: private text is not sent to remote services."

    def _state_of_first_scan(self, notes: int, pending: int) -> IndexState:
        """Return how far the first scan is: `notes` are indexed, `pending` of them lack vectors."""
        unread = self._updater.unread
        if unread is None:  # the scan has not counted them yet
            total = sum(1 for entry in self._vault.scan() if is_note(entry.path))
            unread = max(0, total - notes)
        # Notes that are not read yet have no vectors either.
        without_vectors = unread + pending if self._embedding.is_available() else 0

        reason = "The vault is being indexed for the first time: "
        reason += f"{unread} of {notes + unread} notes are not indexed yet"
        if without_vectors:
            reason += f", and {without_vectors} have no vector yet"
        return IndexState(
            state="indexing",
            notes=notes,
            pending=unread + pending,
            reason=f"{reason}.",
            commit="",
            missing_notes=unread,
            missing_vectors=without_vectors,
        )


class NameResolver:
    """Finds the note that a name, title, alias or wikilink means. Guards no state of its own."""

    def __init__(
        self,
        index: IndexService,
        changes: ChangeTable,
        *,
        reader: NoteReader,
        obsidian: ObsidianSettingsCache,
        keeper: IndexKeeper,
        monitor: IndexMonitor,
    ) -> None:
        self._index = index
        self._changes = changes
        self._reader = reader
        self._obsidian = obsidian
        self._keeper = keeper
        self._monitor = monitor

    def path_of(self, name: str) -> str:
        """Return the path of the note that a name, title, alias or wikilink means.

        A path that exists is taken first; "daily" means today's daily note. Otherwise the index is
        brought up to date. Raises NotFound, which says what became of the note or which names are
        similar, Ambiguous if several notes are meant, and Invalid for an illegal name.
        """
        return self._index.with_retry(lambda: self._path_of(name))

    def _path_of(self, name: str) -> str:
        """Return the path that `path_of` returns, and raise what it raises, without a retry.

        A path that exists is found first, then "daily", then a unique name, title or alias.
        """
        # The name as it was given comes first: a file may be called "[[a]]", or "a#b".
        reference = clean_reference(name)
        for path in dict.fromkeys((path_of(well_formed(name).strip()), path_of(reference))):
            if self._reader.exists(path):
                self._index_if_unknown(path)
                return path
        if compare_key(reference) == "daily":
            return self._path_of_daily_note()

        self._keeper.prepare(vectors=False)
        kinds = ("path", "name", "title", "alias")
        matches_by_kind = self._index.find_by_name(compare_key(reference))
        for kind, matches in zip(kinds, matches_by_kind, strict=True):
            paths = self._existing_paths(matches)
            if len(paths) == 1:
                return paths[0]
            if paths:
                raise Ambiguous(
                    f"{name!r} is the {kind} of {len(paths)} notes",
                    candidates=[name_of(path) for path in paths],
                    hint="Use one of the candidates.",
                )
        raise self._not_found(name, reference)

    def _index_if_unknown(self, path: str) -> None:
        """Index a note that exists, if the index does not have it yet."""
        if self._index.rows([path]).get(path) is None:
            self._keeper.look_at({path})

    def _path_of_daily_note(self) -> str:
        """Return the path of today's daily note. Raises NotFound if there is none."""
        daily_note = self._obsidian.current.daily_note(local_now())
        path = path_of(daily_note)
        if not self._reader.exists(path):
            hint = HintSentence("create_daily", "Append to `daily` to create it.")
            raise NotFound(f"no daily note {daily_note} yet", hint=Hint(hint))
        return path

    def _existing_paths(self, matches: Iterable[str]) -> list[str]:
        """Return those of the paths that exist, without conflict copies if there are other notes.

        A conflict copy has the title and the aliases of its note, which would make them ambiguous.
        """
        paths = [path for path in matches if self._reader.exists(path)]
        if len(paths) < 2:
            return paths
        rows = self._index.rows(paths)
        originals = [path for path in paths if path not in rows or not rows[path].is_copy]
        return originals or paths

    def _not_found(self, name: str, reference: str) -> NotFound:
        """Return the error for a name that no note has."""
        former = self.find_former_note(reference)
        if former is not None:
            return former.error()

        all_names = [name_of(path) for path in self._index.rows()]
        similar = similar_names(reference, all_names)
        hint: str = Hint(HintSentence("find_note", "Search for it, or list the notes."))
        if similar:
            hint = f"Did you mean {similar[0]}?"
        state = self._monitor.state_if_behind()
        if state is not None and not state.is_ready:
            hint = "Not all notes are indexed yet. Pass the name with its folder, or try again "
            hint += f"later. {state.reason}"
        return NotFound(f"no note called {name!r}", candidates=similar, hint=hint)

    def find_former_note(self, name: str) -> FormerNote | None:
        """Return the note that last had a name; None if the latest 200 changes do not name one.

        `name` is a whole name or its last part; titles and aliases are not in the log. Raises
        Invalid if it is not a valid reference.
        """
        versions = self._changes.recent(MAX_VERSIONS)
        return find_former_note(versions, name, self._reader.exists)


class NoteWriter:
    """Changes files of a vault, and has the index follow. Guards no state of its own."""

    def __init__(
        self,
        vault: NoteSource,
        keeper: IndexKeeper,
        obsidian: ObsidianSettingsCache,
        *,
        read_only: bool,
    ) -> None:
        self._vault = vault
        self._keeper = keeper
        self._obsidian = obsidian
        self._read_only = read_only or vault.read_only

    def check_writable(self) -> None:
        """Raise ReadOnly if the vault may not be changed. Every change begins with this."""
        if self._read_only:
            raise ReadOnly(
                f"the vault {self._vault.root} is read-only",
                hint="To allow changes, serve the vault without --read-only, "
                "and make its folder writable.",
            )
        self._obsidian.follow()

    def lock(self) -> AbstractContextManager[None]:
        """Exclude other writers of the vault, in this process and in others."""
        return self._vault.lock()

    def apply_changes(
        self, changes: Sequence[FileChange], author: Author
    ) -> tuple[list[WriteResult], list[str]]:
        """Change files as one operation under the vault's lock, and index them.

        The caller holds the lock; `changes` must not be empty. Returns the results in their order,
        and warnings if the index could not be updated. Raises Conflict, NotFound or AlreadyExists,
        with nothing written, if a file is not as its change expects, ReadOnly if the access rules
        forbid a change, and what else `NoteSource.carry_out` raises.
        """
        written = self._vault.carry_out(changes, author)
        paths = {path for change in changes for path in (change.path, change.target)}
        return written, self._keeper.index_written(paths)


def author_of_call(by: AuthorArgs, tool: str) -> Author:
    """Return the author that the arguments `by` of a call name; `tool` if they name no tool.

    Raises TypeError for an unknown argument, as `**by` also takes in a misspelt `if_sha256`, which
    must not be ignored.
    """
    unknown_names = sorted(by.keys() - AuthorArgs.__annotations__.keys())
    if unknown_names:
        names = [*AuthorArgs.__annotations__, "if_sha256", "metadata", "overwrite"]
        similar = difflib.get_close_matches(unknown_names[0], names, 1)
        suggestion = f". Did you mean {similar[0]!r}?" if similar else ""
        raise TypeError(
            f"{tool}() got an unexpected keyword argument {unknown_names[0]!r}{suggestion}"
        )
    return Author(
        tool=by.get("tool", tool),
        who=by.get("who", ""),
        reason=by.get("reason", ""),
        kind=by.get("kind", ""),
        session=by.get("session", ""),
        sources=tuple(by.get("sources", ())),
    )
