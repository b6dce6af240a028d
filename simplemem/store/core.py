"""A vault and its index, kept in step: what every question and every change stands on.

It scans, embeds, and looks twice at notes that are about to be returned. The background (`keeping`) and the foreground use
the same few verbs. Beside it: an index that was replaced or damaged (`healing`), catching up at little cost (`lately`), and
who is told of what changed (`telling`).
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from simplemem.config import Settings, load_settings
from simplemem.errors import NotFound, ReadOnly, SimplememError, Unavailable
from simplemem.index.collector import collector_at_rest
from simplemem.index.database import Database
from simplemem.index.failures import Damaged
from simplemem.index.notes import stat_of
from simplemem.index.sidecar import Sidecar
from simplemem.index.sync import Progress, Sync, SyncReport
from simplemem.memory import IndexState
from simplemem.note.names import name_of
from simplemem.store.committing import Committing
from simplemem.store.embedding import Embedding
from simplemem.store.healing import Healing
from simplemem.store.index_path import index_path
from simplemem.store.keeping import Keeper
from simplemem.store.lately import CatchingUp
from simplemem.store.read_lately import TextsReadLately
from simplemem.store.telling import Listener, Telling
from simplemem.vault.access import Access
from simplemem.vault.obsidian import CONVENTION_FILES, read_conventions
from simplemem.vault.vault import Entry, Vault

T = TypeVar("T")
_COMMIT_SECONDS, _COMMIT_SECONDS_OF_A_SERVER = 5.0, 0.5  # that an end waits for a last commit
_LOG = logging.getLogger(__name__)


class Core:
    """One vault with its index. Safe to use from several threads, beside other processes on the same vault."""

    def __init__(self, root: Path, settings: Settings | None, *, read_only: bool) -> None:
        self.root = root.absolute()
        self.settings = settings or load_settings(vault=self.root)
        self.read_only = read_only or self.settings.read_only
        if not self.root.exists() and not self.read_only:
            self.root.mkdir(parents=True)
        if not self.root.is_dir():
            raise NotFound(f"there is no vault at {self.root}", hint="`simplemem init PATH` makes one.")
        if not os.access(self.root, os.W_OK):
            self.read_only = True  # a read-only disk: reading goes on, the index lies elsewhere
        self._settings_files = tuple(os.path.join(self.root, *name.split("/")) for name in CONVENTION_FILES)
        self._settings_seen = self._settings_stamps()
        self.conventions = read_conventions(self.root)
        self.vault = Vault(
            self.root,
            read_only=self.read_only,
            durable=self.settings.write.durability == "full",
            keep_days=self.settings.history.keep_days,
            keep_mb=self.settings.history.keep_mb,
            trash=self.conventions.trash,
            access=Access(self.settings.access.hidden, self.settings.access.read_only, self.settings.no_delete),
        )
        self.committing = Committing(self.vault, self.settings.git)
        self.vault.tell(self.committing.writing, self.committing.written)
        self.index = Sidecar(index_path(self.root, self.settings, self.vault), self._index_lock)
        self.rows = self.sync_of(self.index.database)
        self.embedding = Embedding(self.settings, self.vault, self.index)
        self._healing = Healing(self.index, self._begin_anew)
        self._keeper: Keeper | None = None
        self.long_lived = False  # will be asked again: what is slow to load may be made ready beside the answer
        self._guard = threading.RLock()
        self._scanned = self.index.database.meta("scanned") is not None
        self._doubted = 0
        self._doubted_since = 0.0
        self._owed: set[str] = set()  # paths written but not indexed, because the index failed at that moment
        self._lately = CatchingUp(self)
        self._telling = Telling()
        self.read_lately = TextsReadLately()

    def close(self) -> None:
        """End the background work and let go of every file."""
        self.rows.stop.set()
        if self._keeper is not None:
            self._keeper.stop()
            self._keeper = None
        self._lately.end()
        self.embedding.close()
        self.index.close()
        self.committing.close(_COMMIT_SECONDS_OF_A_SERVER if self.long_lived else _COMMIT_SECONDS)
        self.vault.close()

    def must_be_writable(self) -> None:
        if self.read_only or self.vault.read_only:
            raise ReadOnly(f"the vault {self.root} is open for reading only")
        self._follow_obsidian()

    def _follow_obsidian(self) -> None:
        """Read Obsidian's settings again when they have changed: not every server watches them."""
        stamps = self._settings_stamps()
        if stamps != self._settings_seen:
            self._settings_seen = stamps
            self.conventions = read_conventions(self.root)

    def _settings_stamps(self) -> tuple[tuple[int, int, int] | None, ...]:
        return tuple(map(_stamp, self._settings_files))

    # -- scanning

    def sync_of(self, database: Database) -> Sync:
        """What keeps a database in step with this vault."""
        return Sync(self.vault, database, self.hidden_reason, self.settings.max_note_bytes, self.settings.embed.private)

    def sync(self, progress: Progress | None, *, embed: bool, rebuild: bool, believe: bool, begin: bool) -> SyncReport:
        """Bring the index in step with the vault, text first and vectors after."""
        with collector_at_rest():
            seen = None if rebuild else self.vault.recover_and_scan()
        self._follow_obsidian()
        embed = embed and self.embedding.wanted()[0] is not None
        if not embed:
            self.rows.embed_nothing()
        if rebuild:
            self.vault.recover()
            self._rebuild(progress, embed=embed)
        report = self.healing(lambda: self._scan(progress, believe=believe, seen=seen))
        if embed:
            ready = self.rows.waiting
            report.embedded = self.healing(lambda: self.embedding.fill(progress, begin=begin, ready=ready))
            report.trouble = self.embedding.trouble()
        self.thin_history()
        return report

    def _scan(self, progress: Progress | None, *, believe: bool, seen: list[Entry] | None = None) -> SyncReport:
        self._follow_obsidian()
        owed, self._owed = self._owed, set()
        try:
            report = self.rows.scan(progress, believe=believe, seen=seen)
        except BaseException:
            self._owed |= owed
            raise
        self._doubt(report.doubted)
        if not self._scanned:
            self.index.database.set_meta("scanned", "yes")
            self._scanned = True
        self.tell({name_of(path) for path in report.changed()})
        return report

    def _rebuild(self, progress: Progress | None, *, embed: bool) -> None:
        fresh = self.index.build_beside()
        rows = self.sync_of(fresh)
        rows.scan(progress)
        if embed:
            self.embedding.fill(progress, begin=True, ready=rows.waiting, into=fresh)
        fresh.set_meta("scanned", "yes")
        fresh.close()
        self.index.database.replace_with(fresh.path)

    def hidden_reason(self, path: str) -> str | None:
        """Why a note is left out of recall, None for most."""
        return self.conventions.hidden_reason(path)

    def not_indexed(self) -> list[tuple[str, str]]:
        """Files of the vault that are not in the index, and why."""
        return sorted(
            {**{problem.path: problem.reason for problem in self.vault.problems}, **self.rows.skipped}.items()
        )

    def state(self) -> IndexState:
        """How far the index can be trusted just now."""
        notes, pending = self.index.note_count(), self.embedding.pending()
        if not self._scanned:
            return IndexState("indexing", notes, pending, "The vault is being read for the first time.")
        if self._doubted:
            reason = f"{self._doubted} notes seem to have vanished at once; they are kept until this is confirmed."
            return IndexState("partial", notes, pending, reason)
        if self._owed:
            reason = f"{len(self._owed)} changed notes could not be indexed yet: is the disk full?"
            return IndexState("partial", notes, pending, reason)
        if pending:
            return IndexState("partial", notes, pending, self.embedding.partial())
        private = self.embedding.kept_private()
        reason = f"{private} private notes are searched by words only: their text stays on this machine."
        return IndexState("ready", notes, 0, reason if private else "")

    # -- the background

    def start(self, *, embed: bool) -> None:
        """Keep in step from now on, in the background."""
        self.long_lived = True
        with self._guard:
            if self._keeper is None:
                index = self.settings.index
                self.index.keep_vectors_in_memory()
                self._keeper = Keeper(self, embed=embed, scan_seconds=index.scan_minutes * 60, watch=index.watch)
                self.embedding.answers_again = self._keeper.fill_soon
                self._keeper.start()
                self.committing.begin()

    def wait_until_settled(self, timeout: float) -> bool:
        return self._keeper is None or self._keeper.settled.wait(timeout)

    def catch_up(self) -> None:
        """Finish what a crash interrupted, and compare the whole vault with the index."""
        with collector_at_rest():
            seen = self.vault.recover_and_scan()
        waited = time.monotonic() - self._doubted_since
        believe = self._doubted > 0 and waited > 0.9 * 60 * self.settings.index.scan_minutes
        self.healing(lambda: self._scan(None, believe=believe, seen=seen))
        self.thin_history()

    def catch_up_lately(self) -> None:
        """Index what was saved up to this moment, at the cost of what has changed."""
        self._lately.catch_up()

    @property
    def is_in_doubt(self) -> bool:
        """Whether only a look through the whole vault can tell what the index lacks."""
        return not self._scanned or self._doubted > 0 or bool(self._owed)

    def _doubt(self, count: int) -> None:
        """So many notes vanished at once that it is not believed yet. A scan some minutes later believes it."""
        if count and not self._doubted:
            self._doubted_since = time.monotonic()
        self._doubted = count

    def thin_history(self) -> None:
        """Drop texts that the settings say need not be kept, when there may be some."""
        if self.read_only:
            return
        try:
            if self.vault.history.is_full():
                self.vault.thin_history()
        except (SimplememError, OSError) as error:
            _LOG.warning("the history could not be thinned: %s", error)

    def look_at(self, paths: set[str]) -> None:
        """Index paths that may have changed. A change of Obsidian's settings concerns every note."""
        self._follow_obsidian()
        if any(path.startswith(".obsidian/") for path in paths):
            self.catch_up()
        notes = {path for path in paths if not path.startswith(".obsidian")}
        if self._doubted:  # what vanished may be back: only a look at all of it can tell
            self.catch_up()
            return
        report = self.healing(lambda: self.rows.look_at(notes))
        self._doubt(report.doubted)
        self.tell({name_of(path) for path in report.changed()} | self._telling.news(notes, self._revs_of))

    def fill_vectors(self, stopped: Callable[[], bool]) -> float | None:
        """Embed what is missing, until `stopped`. Returns after how many seconds to try again, if it must be."""
        return self.healing(lambda: self.embedding.fill_in_background(self.rows.waiting, stopped))

    def fill_soon(self) -> None:
        """Have the background embed what was just written."""
        if self._keeper is not None:
            self._keeper.fill_soon()

    # -- telling what changed

    def on_change(self, listener: Listener) -> None:
        self._telling.on_change(listener)

    def tell(self, names: Iterable[str]) -> None:
        """Say which memories changed to all who listen."""
        self._telling.tell(names, self._revs_of)

    def tell_what_others_changed(self) -> None:
        """Tell what another process has indexed since this was last asked."""
        rev, changed = self.healing(lambda: self.index.changed_since(self._telling.heard_rev))
        if rev != self._telling.heard_rev:
            self._telling.tell_of_others(rev, changed, set(self.healing(self.index.all_paths)), self._revs_of)

    def _revs_of(self, paths: set[str]) -> dict[str, int]:
        try:
            return self.healing(lambda: self.index.revs_of(paths))
        except (SimplememError, Damaged):
            return {}  # a change that is safe has not failed because of this; it may be told of twice

    # -- looking twice

    def entry(self, path: str) -> Entry | None:
        """What lies at a path now; None for nothing, or nothing that may be read."""
        try:
            return self.vault.entry(path)
        except SimplememError:
            return None

    def recheck(self, paths: Iterable[str]) -> bool:
        """Look again at notes about to be returned; True when one of them had changed."""
        self._follow_obsidian()
        owed, self._owed = self._owed, set()
        changed = {path for path in paths if self._differs(path)} | owed
        if self._doubted:  # what seems to have vanished is not shown, but kept until that is certain
            changed = {path for path in changed if self.entry(path) is not None}
        if not changed:
            return False
        try:
            report = self.rows.look_at(changed)
        except Unavailable as error:
            # A full disk, a busy index: what is known is answered, and they are looked at again.
            _LOG.warning("changed notes could not be indexed: %s", error)
            self._owed |= changed
            return False
        except BaseException:
            self._owed |= owed
            raise
        self.tell({name_of(path) for path in report.changed()})
        return True

    def _differs(self, path: str) -> bool:
        known, entry = self.index.known(path), self.entry(path)
        return known is None or entry is None or stat_of(entry) != known.stat

    def indexed(self, path: str, put: Callable[[], None], *more: str) -> list[str]:
        """Index a file that was just written, or several. They are safe; an index that fails now is caught up with
        later."""
        try:
            self.healing(put)
            self.index.database.checkpoint()  # a program that only writes has no background that would see to it
        except (SimplememError, Damaged) as error:
            self._owed |= {path, *more}
            return [f"written, but not yet searchable: {error}"]
        return []

    # -- an index that was replaced, or is damaged

    def healing(self, ask: Callable[[], T]) -> T:
        """Answer, and if the index turns out to be gone or damaged, make it anew and answer then."""
        return self._healing.ask(ask)

    def check_index(self) -> None:
        """Once a day, look for damage that no question has met yet: what it hides would be missing from answers."""
        self._healing.check()

    @property
    def generation(self) -> int:
        """That of the index file as it was when it was last asked."""
        return self._healing.generation

    def generation_now(self) -> int:
        """That of the index file that lies there now."""
        return self._healing.generation_now()

    def _begin_anew(self) -> None:
        """Another file lies where our index was. If it is empty, read the vault again."""
        self._scanned = self.index.database.meta("scanned") is not None
        if not self._scanned and self._keeper is not None:
            self._keeper.scan_soon()
        elif not self._scanned:
            self._scan(None, believe=False)

    @contextmanager
    def _index_lock(self) -> Iterator[None]:
        """The lock under which the index file is made, swapped and checkpointed; a read-only disk has none."""
        if self.vault.read_only:
            yield
            return
        with self.vault.lock():
            yield


def _stamp(file: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns
