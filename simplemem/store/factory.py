"""The composition root: makes the objects of a store, and gives each what it needs."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from simplemem.errors import NotFound, Unavailable
from simplemem.index.changes import ChangeTable
from simplemem.index.engine import Engine
from simplemem.index.sidecar import Sidecar
from simplemem.index.sqlite.database import open_engine
from simplemem.index.sync import Sync
from simplemem.providers.keys import Key
from simplemem.settings.loading import load_settings
from simplemem.settings.model import Settings
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
from simplemem.store.read import MemoryReader
from simplemem.store.search_parts import SearchParts, make_search_parts
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
    ObsidianSettings,
    QuestionVectors,
)
from simplemem.store.write import NewNoteRemarks, NoteEditor, WriteIndexer
from simplemem.vault.access import Access
from simplemem.vault.base import VaultOptions
from simplemem.vault.folder.vault import FolderVault
from simplemem.vault.source import NoteSource


@dataclass
class Parts:
    """The objects of one store. Only the store itself has them all."""

    root: Path
    settings: Settings
    read_only: bool
    vault: NoteSource
    database: Engine
    index: Sidecar
    rows: Sync
    sync_of: Callable[[Engine], Sync]
    changes: ChangeTable
    embedding: Embedding
    committing: Committing
    listeners: Listeners
    notices: Notices
    obsidian: ObsidianSettings
    reader: NoteReader
    vectors: QuestionVectors
    keeper: IndexKeeper
    monitor: IndexMonitor
    resolver: NameResolver
    writer: NoteWriter
    lifetime: Lifetime
    catching_up: CatchUp
    commits: GitHistory
    texts: EarlierTexts
    history: NoteHistory
    memories: MemoryReader
    links: LinkRewriter
    indexer: WriteIndexer
    editor: NoteEditor
    mover: NoteMover
    templates: TemplateNotes
    undo: Undo
    undo_by_author: UndoByAuthor
    conflicts: ConflictCopies
    indexing: Indexing
    statistics: Statistics
    searching: SearchParts


def make_parts(
    root: Path, settings: Settings | None, *, read_only: bool, person: bool = False
) -> Parts:
    """Open a vault and its index, and make the objects of a store on them.

    Creates the folder if it does not exist and may be written. Raises NotFound if there is none,
    and Unavailable if the index cannot be opened.
    """
    root = root.absolute()
    settings = settings or load_settings(vault=root)
    read_only = read_only or settings.read_only
    if not root.exists() and not read_only:
        root.mkdir(parents=True)
    if not root.is_dir():
        raise NotFound(f"no vault at {root}", hint="`simplemem init PATH` creates one.")
    if not os.access(root, os.W_OK):
        read_only = True  # reading goes on; the index is elsewhere

    obsidian = ObsidianSettings(root)
    vault = _open_vault(root, settings, obsidian, read_only=read_only, person=person)
    committing = Committing(vault, settings.git)

    def sync_of(database: Engine) -> Sync:
        """Return what keeps a database up to date with the vault."""
        return Sync(
            vault,
            database,
            obsidian.hidden_reason,
            settings.max_note_bytes,
            settings.embed.private,
            obsidian.follow,
        )

    database = _open_database(_index_path(root, settings, vault), settings, vault)
    # The keeper needs the index; the index calls the keeper, but not before it is asked.
    index = Sidecar(database, lambda: keeper.begin_again())
    rows = sync_of(database)
    embedding = Embedding(settings, vault, index)
    changes = ChangeTable(database, vault, index.consistently)
    if vault.access.is_partial:
        vault.history.may_tell = changes.may_tell

    listeners = Listeners(index, vault.access)
    notices = Notices()
    reader = NoteReader(vault)
    vectors = QuestionVectors(index, rows, embedding)
    keeper = IndexKeeper(
        vault,
        index,
        database,
        rows,
        reader=reader,
        obsidian=obsidian,
        listeners=listeners,
        vectors=vectors,
        settings=settings.index,
        read_only=read_only,
    )
    keeper.open()
    monitor = IndexMonitor(vault, index, rows, keeper=keeper, embedding=embedding, notices=notices)
    resolver = NameResolver(
        index, changes, reader=reader, obsidian=obsidian, keeper=keeper, monitor=monitor
    )
    writer = NoteWriter(vault, keeper, obsidian, read_only=read_only)
    lifetime = Lifetime()
    catching_up = CatchUp(vault, index, keeper, settings.index)

    commits = GitHistory(vault, changes, settings.git)
    texts = EarlierTexts(changes, vault.history, reader=reader, commits=commits)
    history = NoteHistory(
        vault, changes, reader=reader, resolver=resolver, texts=texts, commits=commits
    )
    memories = MemoryReader(
        vault,
        index,
        changes,
        reader=reader,
        resolver=resolver,
        keeper=keeper,
        texts=texts,
        commits=commits,
        history=history,
    )

    links = LinkRewriter(vault, index, obsidian)
    indexer = WriteIndexer(index, rows, reader=reader, keeper=keeper, notices=notices)
    editor = NoteEditor(
        vault,
        reader=reader,
        resolver=resolver,
        writer=writer,
        links=links,
        races=LostRaces(vault, changes, reader, settings),
        indexer=indexer,
        remarks=NewNoteRemarks(vault, index, embedding=embedding, keeper=keeper, lifetime=lifetime),
        settings=settings,
    )
    mover = NoteMover(
        vault,
        index,
        changes,
        reader=reader,
        resolver=resolver,
        keeper=keeper,
        writer=writer,
        links=links,
        indexer=indexer,
        catch_up=catching_up.catch_up,
        settings=settings,
    )
    templates = TemplateNotes(
        vault, reader=reader, resolver=resolver, obsidian=obsidian, writer=writer, editor=editor
    )
    undo = Undo(
        vault,
        changes,
        reader=reader,
        texts=texts,
        commits=commits,
        history=history,
        keeper=keeper,
        writer=writer,
        settings=settings,
    )
    undo_by_author = UndoByAuthor(vault, changes, texts=texts, writer=writer)
    conflicts = ConflictCopies(
        vault, index, changes, commits=commits, writer=writer, settings=settings
    )
    indexing = Indexing(
        index,
        database,
        rows,
        sync_of,
        keeper=keeper,
        obsidian=obsidian,
        embedding=embedding,
        vectors=vectors,
        catching_up=catching_up,
    )
    statistics = Statistics(
        root,
        vault,
        index,
        database,
        obsidian=obsidian,
        keeper=keeper,
        monitor=monitor,
        embedding=embedding,
        committing=committing,
        read_only=read_only,
    )
    searching = make_search_parts(
        settings,
        index,
        keeper=keeper,
        monitor=monitor,
        names=resolver,
        notes=reader,
        embeddings=embedding,
        changes=changes,
    )
    return Parts(
        root=root,
        settings=settings,
        read_only=read_only,
        vault=vault,
        database=database,
        index=index,
        rows=rows,
        sync_of=sync_of,
        changes=changes,
        embedding=embedding,
        committing=committing,
        listeners=listeners,
        notices=notices,
        obsidian=obsidian,
        reader=reader,
        vectors=vectors,
        keeper=keeper,
        monitor=monitor,
        resolver=resolver,
        writer=writer,
        lifetime=lifetime,
        catching_up=catching_up,
        commits=commits,
        texts=texts,
        history=history,
        memories=memories,
        links=links,
        indexer=indexer,
        editor=editor,
        mover=mover,
        templates=templates,
        undo=undo,
        undo_by_author=undo_by_author,
        conflicts=conflicts,
        indexing=indexing,
        statistics=statistics,
        searching=searching,
    )


def _open_vault(
    root: Path, settings: Settings, obsidian: ObsidianSettings, *, read_only: bool, person: bool
) -> NoteSource:
    """Open the vault of a folder, or the branch that the settings name in its place."""
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
    """Open the index where the settings want it.

    Who sees less of the vault has a schema of their own in PostgreSQL, or a file of their own.
    """
    address = Key(settings.index.engine, setting="index.engine").value()
    if not address:
        # A disk that cannot be written has no lock.
        lock = nullcontext if vault.read_only else vault.lock
        return open_engine(path, lock)

    try:
        from simplemem.index.postgres.database import PostgresEngine
    except ImportError as error:
        hint = "Install it with `pip install 'simplemem-vault[postgres]'`."
        raise Unavailable(f"an index in PostgreSQL needs {error.name}", hint=hint) from error
    schema = settings.index.schema_name or _schema_name(vault.location)
    view = path.stem.removeprefix("index").replace("-", "_")
    replica = Key(settings.index.replica, setting="index.replica").value() or ""
    return PostgresEngine(address, f"{schema}{view}", path, replica)


def _schema_name(location: str) -> str:
    """Return the schema for a location of notes: its name for people, and a hash."""
    plain_name = re.sub(r"[^a-z0-9]+", "_", Path(location).name.lower()).strip("_")[:20]
    digest = hashlib.sha256(location.encode()).hexdigest()[:8]
    return f"{plain_name}_{digest}"


def _index_path(root: Path, settings: Settings, vault: NoteSource) -> Path:
    """Return where the index is: beside the notes, if it can be.

    Who sees less of the vault has an index of their own.
    """
    hidden_folders = sorted(settings.access.hidden)
    only_folders = [f"+{folder}" for folder in sorted(settings.access.only)]
    view = "\n".join([*hidden_folders, *only_folders])
    name = "index.db"
    if view:
        digest = hashlib.sha256(view.encode()).hexdigest()[:8]
        name = f"index-{digest}.db"

    if settings.db is not None:
        # A person may name it by a link.
        path = Path(os.path.realpath(Path(settings.db).expanduser()))
        return path.with_name(f"{path.stem}-{name}") if view else path

    beside_notes = root / ".simplemem" / name
    is_usable = beside_notes.exists() and os.access(beside_notes.parent, os.W_OK)
    if not vault.read_only or is_usable:
        return beside_notes
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    vault_digest = hashlib.sha256(str(root).encode()).hexdigest()[:16]
    return cache / "simplemem" / vault_digest / name
