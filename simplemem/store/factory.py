"""The composition root: makes the objects of a store, and gives each what it needs."""

from __future__ import annotations

import hashlib
import os
import re
from contextlib import closing, nullcontext
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from simplemem.errors import NotFound, Unavailable, install_hint
from simplemem.index.changes import ChangeTable
from simplemem.index.engine import Engine
from simplemem.index.service import IndexService
from simplemem.index.sqlite.engine import open_engine
from simplemem.index.updater import IndexUpdater
from simplemem.providers.keys import Key
from simplemem.settings.loading import load_settings
from simplemem.settings.model import Settings
from simplemem.store.background import Background
from simplemem.store.batch import BatchWriter
from simplemem.store.catch_up import CatchUp
from simplemem.store.committing import Committing
from simplemem.store.conflicts import ConflictCopies, LostRaces
from simplemem.store.earlier_texts import EarlierTexts
from simplemem.store.embedding import Embedding
from simplemem.store.git_history import GitHistory
from simplemem.store.history import NoteHistory
from simplemem.store.indexing import Indexing
from simplemem.store.lifetime import Lifetime
from simplemem.store.link_rewrites import LinkRewriter
from simplemem.store.listeners import Listeners
from simplemem.store.move import NoteMover
from simplemem.store.name_finding import NameFinder
from simplemem.store.proposing import Proposing
from simplemem.store.read import MemoryReader
from simplemem.store.search_parts import make_search_parts
from simplemem.store.similarity import NoteSimilarity
from simplemem.store.statistics import Statistics
from simplemem.store.templates import TemplateNotes
from simplemem.store.undo import Undo
from simplemem.store.undo_by_author import UndoByAuthor
from simplemem.store.vault_index import (
    IndexKeeper,
    IndexMonitor,
    NameResolver,
    NoteReader,
    NoteWriter,
    Notices,
    ObsidianSettingsCache,
    QuestionVectors,
)
from simplemem.store.write import NewNoteRemarks, NoteEditor, WriteIndexer
from simplemem.vault.base import VaultOptions
from simplemem.vault.folder.vault import FolderVault
from simplemem.vault.source import NoteSource
from simplemem.vault.values import Access

if TYPE_CHECKING:
    from simplemem.store.broken_links import BrokenLinkFinder
    from simplemem.store.doctor import Doctor
    from simplemem.store.link_fixes import LinkFixer
    from simplemem.store.syncing import RemoteSync


# How long a last commit may take when a server ends, and when another program does.
_HURRIED_COMMIT_SECONDS = 0.5
_LAST_COMMIT_SECONDS = 5.0


class StoreParts:
    """The objects of one store, each of which was given what it needs.

    Only the store itself, and what extends it, has all of them. Guards the background thread.
    """

    def __init__(
        self,
        root: Path,
        settings: Settings | None,
        *,
        read_only: bool,
        person: bool = False,
    ) -> None:
        """Open a vault and its index, and make the objects. No thread for indexing is started yet.

        Creates the folder if it does not exist and `read_only` is not set. `settings` are loaded
        from files and the environment if they are None. With `person`, the log records changes as
        those of a human, else of an agent. Starts the thread that commits to git if the settings
        ask for it. Raises NotFound if there is no folder and none can be created, Invalid for wrong
        settings, and Unavailable if the index cannot be opened.
        """
        self.root = root.absolute()
        self.settings = settings = settings or load_settings(vault=self.root)
        read_only = read_only or settings.read_only
        _check_or_create_folder(self.root, read_only=read_only)
        # A folder that cannot be written is read all the same; the index is elsewhere then.
        self.read_only = read_only or not os.access(self.root, os.W_OK)
        self.lifetime = Lifetime()
        self.notices = Notices()
        self._background: Background | None = None

        self.obsidian = ObsidianSettingsCache(self.root)
        self.vault = _open_vault(
            self.root, settings, self.obsidian, read_only=self.read_only, person=person
        )
        self.committing = Committing(self.vault, settings.git)
        self.reader = NoteReader(self.vault)

        index_path = _index_path(self.root, settings, self.vault)
        self.database = _open_database(index_path, settings, self.vault)
        self.index = IndexService(self.database, self._begin_index_again)
        self.updater = self.make_updater(self.database)
        self.changes = ChangeTable(self.database, self.vault, self.index.with_retry)
        if self.vault.access.is_partial:
            self.vault.history.may_show = self.changes.may_show
        self.embedding = Embedding(settings, self.vault, self.index)
        self.vectors = QuestionVectors(self.index, self.updater, self.embedding)
        self.listeners = Listeners(self.index, self.vault.access)
        self.keeper = IndexKeeper(
            self.vault,
            self.index,
            self.database,
            self.updater,
            reader=self.reader,
            obsidian=self.obsidian,
            listeners=self.listeners,
            vectors=self.vectors,
            settings=settings.index,
            read_only=self.read_only,
        )
        self.keeper.open()
        if settings.write.review:
            proposing = Proposing(self.vault, self.keeper, settings.write.review)
            self.vault.before_write = proposing.check
        self.monitor = IndexMonitor(
            self.vault,
            self.index,
            self.updater,
            keeper=self.keeper,
            embedding=self.embedding,
            notices=self.notices,
        )
        self.catching_up = CatchUp(self.vault, self.index, self.keeper, settings.index)
        self.indexing = Indexing(
            self.index,
            self.database,
            self.updater,
            self.make_updater,
            keeper=self.keeper,
            obsidian=self.obsidian,
            embedding=self.embedding,
            vectors=self.vectors,
            catching_up=self.catching_up,
        )
        self.statistics = Statistics(
            self.root,
            self.vault,
            self.index,
            self.database,
            obsidian=self.obsidian,
            keeper=self.keeper,
            monitor=self.monitor,
            embedding=self.embedding,
            committing=self.committing,
            read_only=self.read_only,
        )

        self.resolver = NameResolver(
            self.index,
            self.changes,
            reader=self.reader,
            obsidian=self.obsidian,
            keeper=self.keeper,
            monitor=self.monitor,
        )
        self.name_finder = NameFinder(self.index, self.keeper)
        self.commits = GitHistory(self.vault, self.changes, settings.git)
        self.texts = EarlierTexts(
            self.changes, self.vault.history, reader=self.reader, commits=self.commits
        )
        self.history = NoteHistory(
            self.vault,
            self.changes,
            reader=self.reader,
            resolver=self.resolver,
            texts=self.texts,
            commits=self.commits,
        )
        self.memories = MemoryReader(
            self.vault,
            self.index,
            self.changes,
            reader=self.reader,
            resolver=self.resolver,
            keeper=self.keeper,
            texts=self.texts,
            commits=self.commits,
            history=self.history,
        )
        self.searching = make_search_parts(
            settings,
            self.index,
            keeper=self.keeper,
            monitor=self.monitor,
            names=self.resolver,
            notes=self.reader,
            embeddings=self.embedding,
            changes=self.changes,
        )
        self.similarity = NoteSimilarity(
            self.index,
            self.database,
            keeper=self.keeper,
            monitor=self.monitor,
            embedding=self.embedding,
            ranker=self.searching.ranker,
            quality=self.searching.quality,
            context=self.searching.context,
        )

        self.writer = NoteWriter(self.vault, self.keeper, self.obsidian, read_only=self.read_only)
        self.links = LinkRewriter(self.vault, self.index, self.obsidian)
        self.indexer = WriteIndexer(
            self.index,
            self.updater,
            reader=self.reader,
            keeper=self.keeper,
            notices=self.notices,
        )
        self.editor = NoteEditor(
            self.vault,
            reader=self.reader,
            resolver=self.resolver,
            writer=self.writer,
            links=self.links,
            races=LostRaces(self.vault, self.changes, self.reader, settings),
            indexer=self.indexer,
            remarks=NewNoteRemarks(
                self.vault,
                self.index,
                embedding=self.embedding,
                keeper=self.keeper,
                lifetime=self.lifetime,
            ),
            settings=settings,
        )
        self.mover = NoteMover(
            self.vault,
            self.index,
            self.changes,
            reader=self.reader,
            resolver=self.resolver,
            keeper=self.keeper,
            writer=self.writer,
            links=self.links,
            indexer=self.indexer,
            catch_up=self.catching_up.catch_up,
            settings=settings,
        )
        self.batches = BatchWriter(
            self.vault,
            keeper=self.keeper,
            writer=self.writer,
            indexer=self.indexer,
            settings=settings,
        )
        self.templates = TemplateNotes(
            self.vault,
            reader=self.reader,
            resolver=self.resolver,
            obsidian=self.obsidian,
            writer=self.writer,
            editor=self.editor,
        )
        self.undo = Undo(
            self.vault,
            self.changes,
            reader=self.reader,
            texts=self.texts,
            commits=self.commits,
            history=self.history,
            keeper=self.keeper,
            writer=self.writer,
            settings=settings,
        )
        self.undo_by_author = UndoByAuthor(
            self.vault, self.changes, texts=self.texts, writer=self.writer
        )
        self.conflicts = ConflictCopies(
            self.vault,
            self.index,
            self.changes,
            commits=self.commits,
            writer=self.writer,
            settings=settings,
        )

    def start(self, *, embed: bool) -> None:
        """Start the background thread, and the exchange with a remote if the settings want it.

        With `embed`, the thread makes missing vectors too. From now on, what is slow to load, such
        as the word vectors, may be loaded and is kept. If the thread runs already, nothing is
        started and `embed` is ignored.
        """
        self.lifetime.expect_more()
        if self._background is not None:
            return

        self._background = Background(
            self.vault,
            self.index,
            self.database,
            self.updater,
            keeper=self.keeper,
            embedding=self.embedding,
            listeners=self.listeners,
            settings=self.settings.index,
            embed=embed,
        )
        self.keeper.attach(self._background)
        if self.settings.sync.every and not self.read_only:
            from simplemem.store.syncing import BackgroundSync

            sync = BackgroundSync(self.root, self.settings.sync.every, self._sync_for_user)
            self.lifetime.on_close(sync.end)

    def _sync_for_user(self) -> None:
        """Exchange all notes with the remote, also those that this store may not see.

        Opens the vault a second time, without access rules, and closes it again. Raises what
        `RemoteSync.sync` raises.
        """
        settings = self.settings.for_a_person()
        with closing(StoreParts(self.root, settings, read_only=False, person=True)) as parts:
            parts.remote_sync.sync(who="simplemem", tool="sync")

    def close(self) -> None:
        """End background work, close all files, and wait for the pending git commits.

        Waits for 5 seconds at most; for 0.5 in a process that serves many questions, where `start`
        or `lifetime.expect_more` was called. Commits that take longer go on until the process ends;
        the rest is never committed. That raises nothing.
        """
        self.lifetime.end()
        self.updater.stop.set()
        if self._background is not None:
            self._background.stop()
        self.catching_up.end()
        self.embedding.close()
        if self.searching.reranker is not None:
            self.searching.reranker.close()
        self.index.close()

        is_hurried = self.lifetime.is_long
        self.committing.close(_HURRIED_COMMIT_SECONDS if is_hurried else _LAST_COMMIT_SECONDS)

    def make_updater(self, database: Engine) -> IndexUpdater:
        """Return an object that brings a database up to date with the vault when it is asked to."""
        return IndexUpdater(
            self.vault,
            database,
            self.obsidian.hidden_reason,
            self.settings.max_note_bytes,
            self.settings.embed.private,
            follow_settings=self.obsidian.follow,
        )

    def _begin_index_again(self) -> None:
        """Continue with an index that replaced ours; `IndexService` calls this when it notices it.

        A method of its own, because the keeper is made after the `IndexService` that it needs.
        """
        self.keeper.begin_again()

    @cached_property
    def remote_sync(self) -> RemoteSync:
        """The object that exchanges the vault with its remote. It is made on first use."""
        from simplemem.store.syncing import RemoteSync

        return RemoteSync(
            self.vault,
            self.index,
            reader=self.reader,
            obsidian=self.obsidian,
            writer=self.writer,
            links=self.links,
            catch_up=self.catching_up.catch_up,
            trusted_folders=self.settings.git.folders,
        )

    @cached_property
    def broken_links(self) -> BrokenLinkFinder:
        """The object that finds broken links. It is made on first use, as few stores need it."""
        from simplemem.store.broken_links import BrokenLinkFinder

        return BrokenLinkFinder(self.vault, self.index, self.changes)

    @cached_property
    def doctor(self) -> Doctor:
        """The object that checks the vault and its index. It is made on first use."""
        from simplemem.store.doctor import (
            Doctor,
            IndexChecks,
            LinkChecks,
            NoteChecks,
            PlaceChecks,
        )

        return Doctor(
            notes=NoteChecks(
                self.vault,
                self.index,
                self.monitor,
                obsidian=self.obsidian,
                max_note_bytes=self.settings.max_note_bytes,
            ),
            links=LinkChecks(self.index, self.broken_links),
            place=PlaceChecks(
                self.vault,
                self.index,
                self.database,
                self.keeper,
                is_index_local=not self.settings.index.engine,
            ),
            index=IndexChecks(
                self.vault, self.database, self.changes, self.keeper, self.make_updater
            ),
            conflicts=self.conflicts,
            committing=self.committing,
        )

    @cached_property
    def link_fixer(self) -> LinkFixer:
        """The object that fixes broken links. It is made on first use."""
        from simplemem.store.link_fixes import LinkFixer

        return LinkFixer(
            self.vault,
            self.index,
            self.doctor,
            self.broken_links,
            obsidian=self.obsidian,
            writer=self.writer,
        )


def _check_or_create_folder(root: Path, *, read_only: bool) -> None:
    """Create the folder of a vault if it is missing, unless `read_only` is set.

    Raises NotFound if there is no folder and none can be created, or if `root` is a file.
    """
    if not root.exists() and not read_only:
        try:
            root.mkdir(parents=True)
        except OSError as error:
            raise NotFound(
                f"no vault at {root}, and the folder cannot be created: {error.strerror}",
                hint="Name a folder that exists, or one that you may create.",
            ) from error
    if root.is_file():
        raise NotFound(
            f"no vault at {root}: it is a file",
            hint="A vault is a folder. Name the folder that contains the file.",
        )
    if not root.is_dir():
        raise NotFound(f"no vault at {root}", hint="`simplemem init PATH` creates one.")


def _open_vault(
    root: Path,
    settings: Settings,
    obsidian: ObsidianSettingsCache,
    *,
    read_only: bool,
    person: bool,
) -> NoteSource:
    """Open the vault of a folder, or the branch of a repository if the settings name one.

    With `person`, changes are recorded as those of a human, else of an agent.
    """
    access = Access(
        settings.access.hidden,
        settings.access.read_only,
        settings.no_delete,
        settings.access.only,
    )
    options = VaultOptions(
        read_only=read_only,
        durable=settings.write.durability == "full",
        keep_days=settings.history.keep_days,
        keep_mb=settings.history.keep_mb,
        trash=obsidian.current.trash,
        access=access,
        author_kind="human" if person else "agent",
    )
    branch = settings.branch
    if not branch.repository:
        return FolderVault(root, options)

    from simplemem.vault.branch.vault import BranchVault

    return BranchVault(root, options, repository=branch.repository, name=branch.name)


def _open_database(path: Path, settings: Settings, vault: NoteSource) -> Engine:
    """Open the index where the settings want it: SQLite at `path`, or PostgreSQL.

    In PostgreSQL, a store whose access rules hide notes has a schema of its own. Its name ends in
    the hash that the file name of `path` has then. Raises Unavailable if PostgreSQL's driver is not
    installed, the variable or file that the settings name has no address, or the index cannot be
    opened.
    """
    address = Key(settings.index.engine, setting="index.engine").value()
    if not address:
        # In a folder that cannot be written, no lock file can be made.
        lock = nullcontext if vault.read_only else vault.lock
        return open_engine(path, lock)

    try:
        from simplemem.index.postgres.database import PostgresEngine
    except ImportError as error:
        raise Unavailable(
            f"an index in PostgreSQL needs {error.name}", hint=install_hint("postgres")
        ) from error
    schema = settings.index.schema_name or _schema_name(vault.location)
    suffix = path.stem.removeprefix("index").replace("-", "_")  # "" if all notes are visible
    replica = Key(settings.index.replica, setting="index.replica").value() or ""
    return PostgresEngine(address, f"{schema}{suffix}", path, replica)


def _schema_name(location: str) -> str:
    """Return the PostgreSQL schema for the notes at `location`.

    It is the last part of `location` in at most 20 letters, digits and underscores, and a hash.
    """
    plain_name = re.sub(r"[^a-z0-9]+", "_", Path(location).name.lower()).strip("_")[:20]
    digest = hashlib.sha256(location.encode()).hexdigest()[:8]
    return f"{plain_name}_{digest}"


def _index_path(root: Path, settings: Settings, vault: NoteSource) -> Path:
    """Return the path of the SQLite index. Creates nothing.

    It is the path in the settings; without one, a file in `.simplemem` beside the notes; or one in
    the user's cache, for a read-only vault whose `.simplemem` has no index or cannot be written. A
    store whose access rules hide notes has a file of its own, with a hash of the rules in its name.
    """
    hidden_folders = sorted(settings.access.hidden)
    only_folders = [f"+{folder}" for folder in sorted(settings.access.only)]
    view = "\n".join([*hidden_folders, *only_folders])
    name = "index.db"
    if view:
        digest = hashlib.sha256(view.encode()).hexdigest()[:8]
        name = f"index-{digest}.db"

    if settings.db is not None:
        # The setting may be a symbolic link to the file.
        path = Path(os.path.realpath(Path(settings.db).expanduser()))
        return path.with_name(f"{path.stem}-{name}") if view else path

    beside_notes = root / ".simplemem" / name
    is_usable = beside_notes.exists() and os.access(beside_notes.parent, os.W_OK)
    if not vault.read_only or is_usable:
        return beside_notes
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    vault_digest = hashlib.sha256(str(root).encode()).hexdigest()[:16]
    return cache / "simplemem" / vault_digest / name
