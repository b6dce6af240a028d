"""A vault and its index, kept in step: what every question and every change of a store stands on."""

from __future__ import annotations

import difflib
import hashlib
import logging
import os
import re
import threading
import time
from collections.abc import Callable, Collection, Iterable
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from simplemem.config import Settings, load_settings
from simplemem.errors import Ambiguous, NotFound, ReadOnly, SimplememError, Unavailable
from simplemem.index.changes import ChangeTable
from simplemem.index.connection import Tables
from simplemem.index.database import open_database
from simplemem.index.door import Progress, Row, Standing, Stat, SyncReport
from simplemem.index.engine import Damaged
from simplemem.index.notes import is_note, stat_of
from simplemem.index.sidecar import Sidecar
from simplemem.index.sync import Sync, collector_at_rest
from simplemem.models import By, IndexState
from simplemem.note.clock import local
from simplemem.note.names import clean_reference, compare_key, name_of, path_of
from simplemem.note.similar import similar_names
from simplemem.note.words import counted, well_formed
from simplemem.providers.client import Key
from simplemem.store.background import Background, CatchUp, Listener, Listeners
from simplemem.store.committing import Committing
from simplemem.store.embedding import Embedding
from simplemem.store.former_names import MAX_VERSIONS, FormerNote, find_former_note
from simplemem.vault.obsidian import CONVENTION_FILES, read_conventions
from simplemem.vault.paths import Access
from simplemem.vault.vault import Change, Entry, File, Vault

if TYPE_CHECKING:
    from simplemem.store.reranking import Reranking

T = TypeVar("T")
_WORK_SECONDS = 1.0  # of CPU time that the first question may take for vectors
_FEW_TO_EMBED = 200  # notes that any question may embed
_MOST_READ, _MOST_READ_BYTES = 500, 8_000_000  # texts that were given out and are remembered
_MAX_NOTICES = 20  # of one call; in a program nobody takes them
_LOG = logging.getLogger(__name__)


class Notices(threading.local):
    """What the calls of this thread have to say, for an answer whose format has no place for warnings."""

    def __init__(self) -> None:
        self._messages: list[str] = []

    def add(self, messages: Iterable[str]) -> None:
        self._messages.extend(each for each in messages if each not in self._messages)
        del self._messages[:-_MAX_NOTICES]

    def take(self) -> list[str]:
        """The messages since this was last called."""
        messages = self._messages
        self._messages = []
        return messages


class Core:
    """One vault with its index. Safe to use from several threads, beside other processes on the same vault."""

    def __init__(
        self, root: Path, settings: Settings | None, *, read_only: bool, person: bool = False
    ) -> None:
        self.root = root.absolute()
        self.settings = settings or load_settings(vault=self.root)
        self.read_only = read_only or self.settings.read_only
        if not self.root.exists() and not self.read_only:
            self.root.mkdir(parents=True)
        if not self.root.is_dir():
            raise NotFound(f"no vault at {self.root}", hint="`simplemem init PATH` creates one.")
        if not os.access(self.root, os.W_OK):
            self.read_only = True  # a read-only disk: reading goes on, the index lies elsewhere
        self._settings_seen: object = None
        self.follow_obsidian()
        trash, kind = self.conventions.trash, "human" if person else "agent"
        self.vault = _vault_of(
            self.root, self.settings, read_only=self.read_only, trash=trash, kind=kind
        )
        self.git_trouble = ""  # why the history that was asked for last lacks what git knows
        self.committing = Committing(self.vault, self.settings.git)
        path = _index_path(self.root, self.settings, self.vault)
        self.index = Sidecar(
            _tables_of(path, self.settings, self.root, self.vault), self._begin_anew
        )
        self.rows = self.sync_of(self.index.database)
        self.embedding = Embedding(self.settings, self.vault, self.index)
        self.changes = ChangeTable(self.index.database, self.vault, self.index.consistently)
        if self.vault.access.is_partial:
            self.vault.history.may_tell = self.changes.may_tell
        self._reranking: Reranking | None = None
        self.listeners = Listeners(self.index, self.vault.access)
        self.tell = self.listeners.tell
        self._background: Background | None = None
        self._guard = threading.Lock()
        self._read_lately: dict[
            str, bytes
        ] = {}  # by hash, so that a conflict can show what changed since
        self.remembered = self._read_lately.get
        self.long_lived = (
            False  # will be asked again: what is slow to load may be made ready beside the answer
        )
        self.closing: list[Callable[[], None]] = []  # what rooms above the store end with it
        self.notices = Notices()
        self.may_lack_vectors = (
            True  # whether something was indexed since a program without a background made vectors
        )
        self._has_embedded = False  # whether one of its questions has made vectors
        self._catching_up = CatchUp(self)
        self.catch_up = self._catching_up.catch_up
        self._doubted, self._doubted_since = (
            0,
            0.0,
        )  # notes that vanished at once: the next scan but one believes it
        self._not_found: set[str] = (
            set()
        )  # paths of notes whose files are gone, and were looked for
        self._owed: set[str] = (
            set()
        )  # paths written but not indexed, because the index failed at that moment
        self._scanned, self.compared_at = (
            False,
            0.0,
        )  # whether ever, and when this process last did (monotonic)
        with suppress(Unavailable):  # an index that is away for now: the next question says so
            self._scanned = (
                self.index.consistently(lambda: self.index.database.meta("scanned")) is not None
            )

    def close(self) -> None:
        """End the background work and let go of every file."""
        for end in self.closing:
            end()
        self.rows.stop.set()
        if self._background is not None:
            self._background.stop()
        self._catching_up.end()
        self.embedding.close()
        if self._reranking is not None:
            self._reranking.close()
        self.index.close()
        self.committing.close(0.5 if self.long_lived else 5.0)  # seconds for a last commit

    def start(self, *, embed: bool = True) -> None:
        """Keep in step from now on, in the background: scan, watch, embed. Returns at once."""
        self.long_lived = True
        if self._background is None:
            self._background = Background(self, embed=embed)
            if self.settings.sync.every and not self.read_only:
                from simplemem.store.syncing import Syncing

                self.closing.append(Syncing(self).end)

    def prepare(self, *, vectors: bool = True) -> None:
        """Bring the index up to date before it is asked, as far as a second of work goes.

        A server's background does the work and is waited for. A program without one reads a vault that was never read
        here, all of its text, as nobody else would; `vectors` are made for as long.
        """
        if self._background is not None:
            self._background.wait_until_ready(vectors=vectors)
            return
        with suppress(
            SimplememError, Damaged
        ):  # the question itself meets what is wrong, and says so
            if (
                not self._scanned
                and self.index.consistently(lambda: self.index.database.meta("scanned")) is None
            ):
                self.compare_all()
            if vectors:
                self._embed_a_few()

    def _embed_a_few(self) -> None:
        """Make missing vectors for a second at most. What is more waits for whoever asks for it (`sync`)."""
        are_unwanted = self.rows.waiting is None
        if are_unwanted or not self.may_lack_vectors:
            return
        self.may_lack_vectors = False
        waiting = self.embedding.pending()
        if (
            not waiting
            or self.embedding.is_remote()
            or (self._has_embedded and waiting > _FEW_TO_EMBED)
        ):
            return
        self._has_embedded = True
        fill = partial(
            self.embedding.fill,
            None,
            begin=False,
            ready=self.rows.waiting,
            work_seconds=_WORK_SECONDS,
        )
        self.index.consistently(fill)

    def wait_until_settled(self, timeout: float = 60.0) -> bool:
        """Whether the first scan of the background is done, waiting for it."""
        return self._background is None or self._background.settled.wait(timeout)

    def on_change(self, listener: Listener) -> None:
        """Be told the names of memories that changed, whoever changed them, once they are indexed."""
        self.listeners.heard_by.append(listener)

    def reranking(self) -> Reranking | None:
        """The reranker, where the settings name one."""
        if self._reranking is None and self.settings.rerank.provider != "none":
            from simplemem.store.reranking import Reranking

            self._reranking = Reranking(self)
        return self._reranking

    def must_be_writable(self) -> None:
        if self.read_only or self.vault.read_only:
            hint = "To allow changes, serve the vault without --read-only, and make its folder writable."
            raise ReadOnly(f"the vault {self.root} is read-only", hint=hint)
        self.follow_obsidian()

    def entry(self, path: str) -> Entry | None:
        """What lies at a path now; None for nothing, or nothing that may be read."""
        with suppress(SimplememError):
            return self.vault.entry(path)
        return None

    def file(self, path: str) -> File | None:
        """What lies at a path now, read; None for nothing, or nothing that may be read."""
        return None if self.entry(path) is None else self.vault.read(path)

    def bytes_of(self, path: str) -> bytes | None:
        return file.data if (file := self.file(path)) is not None else None

    def remember(self, file: File) -> None:
        """Keep a text that is given out. As many as fit."""
        with self._guard:
            self._read_lately.pop(file.sha256, None)
            self._read_lately[file.sha256] = file.data
            texts = self._read_lately
            while len(texts) > _MOST_READ or sum(map(len, texts.values())) > _MOST_READ_BYTES:
                del texts[next(iter(texts))]

    def follow_obsidian(self) -> None:
        """Read Obsidian's settings again when they have changed: not every server watches them."""
        seen = []
        for name in CONVENTION_FILES:
            with suppress(OSError):
                found = os.stat(os.path.join(self.root, *name.split("/")))
                seen.append((name, found.st_size, found.st_mtime_ns, found.st_ctime_ns))
        if seen != self._settings_seen:
            self._settings_seen = seen
            self.conventions = read_conventions(self.root)

    def path_meant(self, name: str) -> str:
        """The path of the memory that a name, title, alias or wikilink means."""
        return self.index.consistently(lambda: self._path_meant(name))

    def _path_meant(self, name: str) -> str:
        wanted = clean_reference(name)
        for path in dict.fromkeys(
            (path_of(well_formed(name).strip()), path_of(wanted))
        ):  # as it is written, first
            if self.entry(path) is not None:
                if self.index.known([path]).get(path) is None:
                    self.look_at({path})
                return path
        if compare_key(wanted) == "daily":
            wanted = self.conventions.daily_note(local())
            if self.entry(path_of(wanted)) is None:
                raise NotFound(
                    f"no daily note {wanted} yet", hint="Append to `daily` to create it."
                )
            return path_of(wanted)
        self.prepare(vectors=False)
        for kind, found in zip(
            ("path", "name", "title", "alias"), self.index.called(compare_key(wanted)), strict=True
        ):
            there = [path for path in found if self.entry(path) is not None]
            if (
                len(there) > 1
            ):  # a conflict copy has the title and the aliases of its note, and is never meant by them
                known = self.index.known(there)
                there = [
                    path for path in there if path not in known or not known[path].is_copy
                ] or there
            if len(there) == 1:
                return there[0]
            if there:
                names, many = (
                    [name_of(path) for path in there],
                    f"{name!r} is the {kind} of {len(there)} notes",
                )
                raise Ambiguous(many, candidates=names, hint="Use one of the candidates.")
        former = self.find_former_note(wanted)
        if former is not None:
            raise former.error()
        near = similar_names(wanted, [name_of(path) for path in self.index.known()])
        hint = f"Did you mean {near[0]}?" if near else "Search for it, or list the notes."
        if (behind := self.state_if_behind()) is not None and not behind.is_ready:
            hint = f"Not all notes are indexed yet. Pass the name with its folder, or try again later. {behind.reason}"
        raise NotFound(f"no note called {name!r}", candidates=near, hint=hint)

    def find_former_note(self, name: str) -> FormerNote | None:
        """Return the note that last had a name, as far as the change log knows; None if no change names it."""
        versions = self.changes.recent(MAX_VERSIONS)
        return find_former_note(versions, name, lambda path: self.entry(path) is not None)

    def sync_of(self, database: Tables) -> Sync:
        """What keeps a database in step with this vault."""
        more = self.settings.max_note_bytes, self.settings.embed.private, self.follow_obsidian
        return Sync(self.vault, database, lambda path: self.conventions.hidden_reason(path), *more)

    def compare_all(self, progress: Progress | None = None, *, believe: bool = False) -> SyncReport:
        """Finish what a crash interrupted, and compare the whole vault with the index. An old doubt is believed."""
        with collector_at_rest():
            seen = self.vault.recover()[1]
        waited = time.monotonic() - self._doubted_since
        believe = believe or (
            self._doubted > 0 and waited > 0.9 * 60 * self.settings.index.scan_minutes
        )
        report = self.index.consistently(lambda: self._scan(progress, believe=believe, seen=seen))
        self.thin_history()
        return report

    def _scan(
        self,
        progress: Progress | None = None,
        *,
        believe: bool = False,
        seen: list[Entry] | None = None,
    ) -> SyncReport:
        self.follow_obsidian()
        owed = set(self._owed)
        report = self.rows.scan(progress, believe=believe, seen=seen)
        self._owed -= owed
        self.compared_at = time.monotonic()
        self.may_lack_vectors = True
        self._doubt(report.doubted)
        if not self._scanned:
            self.index.database.set_meta("scanned", "yes")
            self._scanned = True
        self.tell(report.changed())
        return report

    def _begin_anew(self) -> None:
        """Another file lies where our index was. If it is empty, read the vault again."""
        self._scanned = self.index.database.meta("scanned") is not None
        if not self._scanned and self._background is not None:
            self._background.ring(scan=True)
        elif not self._scanned:
            self._scan()

    def _doubt(self, count: int) -> None:
        if count and not self._doubted:
            self._doubted_since = time.monotonic()
        self._doubted = count

    def thin_history(self) -> None:
        """Drop texts that the settings say need not be kept, when there may be some."""
        try:
            if not self.read_only and self.vault.history.is_full():
                self.vault.thin_history()
        except (SimplememError, OSError) as error:
            _LOG.warning("old versions could not be pruned from the history: %s", error)

    @property
    def is_in_doubt(self) -> bool:
        """Whether only a look through the whole vault can tell what the index lacks."""
        return not self._scanned or self._doubted > 0 or bool(self._owed)

    @property
    def is_behind(self) -> bool:
        """Whether notes may be missing from the index."""
        is_comparing = self._background is not None and not self._background.settled.is_reached
        return not self._scanned or is_comparing or bool(self.rows.unread)

    def state_if_behind(self) -> IndexState | None:
        """The state of the index if notes may be missing from it, for an answer that is made of it now."""
        return self.state() if self.is_behind else None

    def state_of_answer(
        self, behind: IndexState | None, standing: Standing | None = None
    ) -> IndexState:
        """The state of the index that an answer was made of: `behind` if notes were missing when it was asked.

        What is missing is also a notice, for the formats of answers that have no place for a state.
        """
        state = behind or self.state(standing)
        if not state.is_ready:
            self.notices.add([state.reason])
        return state

    def state_of_list(self, behind: IndexState | None) -> IndexState:
        """The same for a list, which is whole without vectors."""
        state = behind or self.state()
        lacks_only_vectors = behind is None and not state.missing_notes and not self.is_in_doubt
        if state.state == "partial" and lacks_only_vectors:
            return IndexState(
                "ready", state.notes, state.pending, "", state.commit, 0, state.missing_vectors
            )
        return self.state_of_answer(state)

    def state(self, standing: Standing | None = None) -> IndexState:
        """How far the index can be trusted, just now or when it said how far it is."""
        standing = standing or self.index.standing()
        notes, pending = standing.notes, self.embedding.pending(standing)
        self._scanned = self._scanned or self.index.database.meta("scanned") is not None
        if not self._scanned:
            return self._state_of_first_pass(notes, pending)
        unread = self.rows.unread or 0
        if unread:
            reason = f"{counted(unread, 'new or changed note')} {'is' if unread == 1 else 'are'} not indexed yet."
        elif self._background is not None and not self._background.settled.is_reached:
            reason = "The vault is being compared with its index: recent changes may be missing."
        elif self._doubted:
            reason = f"{self._doubted} notes disappeared at once. If you deleted them, run `simplemem index --rebuild`."
        elif self._owed:
            owed = counted(len(self._owed), "changed note")
            reason = f"{owed} could not be indexed yet. Check that the disk is not full."
        elif pending:
            waiting = f"{counted(pending, 'note')} {'is' if pending == 1 else 'are'}"
            reason = f"{waiting} searchable by words, not yet by meaning. {self.embedding.trouble()}".strip()
        else:
            private = self.embedding.kept_private()
            searched = f"{counted(private, 'private note')} {'is' if private == 1 else 'are'} searched by words only"
            reason = f"{searched}: private text is not sent to remote services."
            return IndexState("ready", notes, 0, reason if private else "", standing.commit)
        return IndexState(
            "partial", notes, pending + unread, reason, standing.commit, unread, pending
        )

    def _state_of_first_pass(self, notes: int, waiting: int) -> IndexState:
        """How far the first pass over the vault is: so many `notes` are read, of which some wait for vectors."""
        unread = self.rows.unread
        if unread is None:  # the pass has not counted them yet
            unread = max(0, sum(1 for entry in self.vault.scan() if is_note(entry.path)) - notes)
        without_vectors = unread + waiting if self.embedding.is_wanted() else 0
        reason = f"The vault is being indexed for the first time: {unread} of {notes + unread} notes are not indexed yet"
        reason += f", and {without_vectors} have no vector yet." if without_vectors else "."
        return IndexState("indexing", notes, unread + waiting, reason, "", unread, without_vectors)

    def reach(self, commit: str) -> None:
        """Answer from now on from no commit of the vault's branch before this one. Unavailable where it is not there."""
        index = self.index.standing().commit
        if self.vault.is_branch and not (commit == index or self.vault.is_before(commit, index)):
            if not self.vault.reach(commit):
                hint = "Check that the commit is pushed to this branch. Try again in a moment, or leave the commit out."
                raise Unavailable(f"the commit {commit[:40]} has not arrived yet", hint=hint)
            self.index.consistently(self._scan)

    def not_indexed(self) -> list[tuple[str, str]]:
        """Files of the vault that are not in the index, and why."""
        return sorted({**self.vault.problems, **self.rows.skipped}.items())

    def look_at(self, some: Iterable[str]) -> None:
        """Index paths that may have changed; all for a change of Obsidian's settings, or where notes seem gone."""
        paths = set(some)
        self.follow_obsidian()
        if self._doubted or any(path.startswith(".obsidian/") for path in paths):
            self.compare_all()
        notes = {path for path in paths if not path.startswith(".obsidian")}
        if not self._doubted and notes:
            report = self.index.consistently(lambda: self.rows.look_at(notes))
            self.may_lack_vectors = True
            self._doubt(report.doubted)
            self.tell(
                {*report.changed(), *filter(is_note, notes)}
            )  # what another process has put is told of too

    def fresh(self, ask: Callable[[], T], rows: Callable[[T], Iterable[Row]]) -> T:
        """An answer of the index, asked once more when one of the notes that it shows has changed on the disk."""
        found, owed = ask(), set(self._owed)
        self.follow_obsidian()
        were_followed = self._follow_moves_of(rows(found))
        if were_followed:
            found = ask()
        seen = {
            row.path: (self.entry(row.path), Stat(row.size, row.mtime_ns, row.ctime_ns))
            for row in rows(found)
        }
        changed = {
            path for path, (entry, stat) in seen.items() if entry is None or stat_of(entry) != stat
        } | owed
        if (
            self._doubted
        ):  # what seems to have vanished is not shown, but kept until that is certain
            changed = {path for path in changed if self.entry(path) is not None}
        if not changed:
            return found
        try:
            report = self.index.consistently(
                lambda: self.rows.look_at(changed, find_moved=not were_followed)
            )
            self.may_lack_vectors = True
        except Unavailable as error:  # a full disk, a busy index: what is known is answered, they are looked at again
            _LOG.warning("changed notes could not be indexed: %s", error)
            self._owed |= changed
            return found
        if not report.doubted:  # else what went is looked at again
            self._owed -= owed
        self.tell(report.changed())
        return ask()

    def _follow_moves_of(self, shown: Iterable[Row]) -> bool:
        """Look for the files of notes that are shown and gone; whether they were looked for.

        A server does that at once: a question need not wait until its background has compared the whole vault and has
        put all notes again that another program has moved.
        """
        if self._doubted or self._background is None or self.vault.is_branch:
            return False
        gone = {row.path for row in shown if self.entry(row.path) is None}
        if not gone or gone <= self._not_found:
            return False
        try:
            self.index.consistently(self.rows.follow_moves)
        except Unavailable as error:
            _LOG.warning("the index could not follow moved notes: %s", error)
            return False
        self._not_found = gone - set(self.rows.moved_from.values())
        return True

    def indexed(self, paths: Collection[str], put: Callable[[], None]) -> list[str]:
        """Index files that were just written, and tell of them; they are safe if the index fails now."""
        failures = []
        try:
            self.index.consistently(put)
            self.may_lack_vectors = True
            self.index.database.checkpoint()  # a program that only writes has no background that would see to it
        except (SimplememError, Damaged) as error:
            self._owed |= set(paths)
            failures.append(f"written, but not yet searchable: {error}")
        if self.listeners.heard_by:
            self.tell(paths)
        if self._background is not None:
            self._background.ring(fill=True)
        return failures


def change_by(by: By, tool: str) -> Change:
    """Return who changes something, with `tool` if no tool is named.

    Raises TypeError for an argument that no method has: a misspelt `if_sha256` must not be ignored.
    """
    unknown = sorted(by.keys() - By.__annotations__.keys())
    if unknown:
        near = difflib.get_close_matches(
            unknown[0], [*By.__annotations__, "if_sha256", "metadata", "overwrite"], 1
        )
        suggestion = f". Did you mean {near[0]!r}?" if near else ""
        raise TypeError(f"{tool}() got an unexpected keyword argument {unknown[0]!r}{suggestion}")
    return Change(by.get("tool", tool), by.get("who", ""), by.get("reason", ""))


def _vault_of(root: Path, settings: Settings, **opened: Any) -> Vault:
    """The vault of a folder, or the branch that is named in its place."""
    rules, kept, branch = settings.access, settings.history, settings.branch
    opened |= {
        "keep_days": kept.keep_days,
        "keep_mb": kept.keep_mb,
        "durable": settings.write.durability == "full",
    }
    opened["access"] = Access(rules.hidden, rules.read_only, settings.no_delete, rules.only)
    if not branch.repository:
        return Vault(root, **opened)
    from simplemem.branch.vault import BranchVault

    return BranchVault(root, repository=branch.repository, name=branch.name, **opened)


def _tables_of(path: Path, settings: Settings, root: Path, vault: Vault) -> Tables:
    """The index where the settings want it. Who sees less of the vault has a schema of its own, as it has a file."""
    if not (address := Key(settings.index.engine, setting="index.engine").value()):
        return open_database(
            path, nullcontext if vault.read_only else vault.lock
        )  # a read-only disk has none
    try:
        from simplemem.index.postgres.database import PostgresDatabase
    except ImportError as error:
        hint = "Install it with `pip install 'simplemem-vault[postgres]'`."
        raise Unavailable(f"an index in PostgreSQL needs {error.name}", hint=hint) from error
    place = vault.place if vault.is_branch else str(root)
    plain = re.sub(r"[^a-z0-9]+", "_", Path(place).name.lower()).strip("_")[:20]
    schema = (
        settings.index.schema_name or f"{plain}_{hashlib.sha256(place.encode()).hexdigest()[:8]}"
    )
    replica = Key(settings.index.replica, setting="index.replica").value() or ""
    return PostgresDatabase(
        address, f"{schema}{path.stem.removeprefix('index').replace('-', '_')}", path, replica
    )


def _index_path(root: Path, settings: Settings, vault: Vault) -> Path:
    """Where the index lies: beside the notes, where it can be. Who sees less of the vault has an index of its own."""
    hidden = "\n".join(
        (*sorted(settings.access.hidden), *(f"+{each}" for each in sorted(settings.access.only)))
    )
    name = f"index-{hashlib.sha256(hidden.encode()).hexdigest()[:8]}.db" if hidden else "index.db"
    if settings.db is not None:
        named = Path(
            os.path.realpath(Path(settings.db).expanduser())
        )  # a person may say it by a link
        return named.with_name(f"{named.stem}-{name}") if hidden else named
    here = root / ".simplemem" / name
    if not vault.read_only or (here.exists() and os.access(here.parent, os.W_OK)):
        return here
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "simplemem" / hashlib.sha256(str(root).encode()).hexdigest()[:16] / name
