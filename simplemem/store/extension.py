"""What a package above the store needs to keep notes of its own type: `EnhancedStore.extension`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Unpack

from simplemem.errors import SimplememError
from simplemem.index.api import Changes, LinkGraph, Mark
from simplemem.index.notes import named_in_memory
from simplemem.models import AuthorArgs, Filter, Listed, Moved
from simplemem.note.note import decode_text, read_note
from simplemem.note.scopes import private_reason
from simplemem.note.words import well_formed
from simplemem.obsidian.settings import name_key, resolve_link
from simplemem.search.listing import MAX_PAGE
from simplemem.store.batch import BatchResult, Draft
from simplemem.store.earlier_texts import EarlierNote, Moment
from simplemem.store.edits import check_text
from simplemem.store.factory import StoreParts
from simplemem.store.former_names import FormerNote
from simplemem.store.similarity import Answers, Likeness, Pinned
from simplemem.store.undo import find_undone
from simplemem.store.vault_index import author_of_call
from simplemem.vault.folder.lock import FileLock, SideFile
from simplemem.vault.values import Entry, Version

# So many links are resolved with a dictionary of all names; fewer are looked up one by one.
_MAX_LINKS_LOOKED_UP = 300
_FIRST_PAGE = "0-name"  # the cursor of a list by name


class Read(NamedTuple):
    """A note that was read; `problem` says why it must not be changed, "" if it may be."""

    path: str
    text: str
    sha256: str
    problem: str


class ExtensionAPI:
    """One store as the packages above it use it, beside the methods of `EnhancedStore`.

    `services` is for these packages: each may keep one object per store there, under a key that it
    chooses.
    """

    def __init__(self, parts: StoreParts) -> None:
        self._parts = parts
        self.services: dict[Any, Any] = {}
        self.max_note_bytes = parts.settings.max_note_bytes  # a larger note is not indexed
        self.read_only = parts.read_only or parts.vault.read_only
        self.is_partial = parts.vault.access.is_partial  # whether some notes are hidden

    # The life of the store

    def on_close(self, end: Callable[[], None]) -> None:
        """Have a function called when the store closes, after those that were given before it."""
        self._parts.lifetime.on_close(end)

    def expect_more(self) -> None:
        """Record that more questions will come, so that what is slow to load is loaded and kept."""
        self._parts.lifetime.expect_more()

    def recover(self) -> None:
        """Finish writes that a crash interrupted, and save texts that they left.

        Does not change a read-only vault. Raises Unavailable if another process keeps the vault
        locked.
        """
        self._parts.vault.recover()

    def prepare(self, *, vectors: bool = True) -> None:
        """Bring the index up to date for a question; see `IndexKeeper.prepare`. Never raises.

        With `vectors`, some missing vectors are made too.
        """
        self._parts.keeper.prepare(vectors=vectors)

    def catch_up(self) -> None:
        """Index what people and other programs wrote up to this moment.

        Do not call it while holding the vault's lock. Finishes interrupted writes first. Reads the
        files that the operating system reports as changed; if the reports are not complete,
        compares the whole vault.
        """
        self._parts.catching_up.catch_up()

    def look_at(self, paths: Iterable[str]) -> None:
        """Index files that may have changed; `paths` are those in the vault.

        The whole vault is compared if one of Obsidian's settings is among them.
        """
        self._parts.keeper.look_at(paths)

    def take_notices(self) -> list[str]:
        """Return the warnings of this thread's calls since the last call, and forget them."""
        return self._parts.notices.pop_all()

    def embedding(self) -> dict[str, Any]:
        """Return who makes vectors, how many notes have them, and why others do not.

        It is what `stats` has as "embedding". Loads the embedder if that is not loaded yet.
        """
        return self._parts.embedding.report()

    # Files of simplemem itself

    def folder(self) -> Path:
        """Return the folder `.simplemem` of the vault, which is created if it does not exist.

        Raises ReadOnly or Unavailable if it cannot be created.
        """
        return self._parts.vault.own_folder()

    def side_file(self, name: str) -> SideFile:
        """Return a file in `.simplemem` that several processes append lines to.

        `name` is its name. It is neither opened nor created yet.
        """
        return SideFile(str(self._parts.root), name)

    def lock_file(self, path: str) -> FileLock:
        """Return a lock that one process at a time can take. It is not taken yet.

        `path` is that of the lock's file in the vault.
        """
        return FileLock(str(self._parts.root), path)

    # Notes and files

    def files(self) -> set[str]:
        """Return the paths of all notes and attachments in the index. The disk is not read."""
        return self._parts.index.files()

    def indexed(self) -> frozenset[str]:
        """Return the paths of all notes in the index."""
        return frozenset(self._parts.index.rows())

    def list_all(self, conditions: Filter | None = None) -> list[Listed]:
        """Return all notes that pass a filter, sorted by name; all notes without a filter.

        Raises Invalid, NotFound or Ambiguous for a filter that cannot be resolved.
        """
        notes = list[Listed]()
        cursor = _FIRST_PAGE
        while cursor:
            page = self._parts.searching.lister.list(conditions, "name", MAX_PAGE, cursor)
            notes += page.items
            cursor = page.next_cursor or ""
        return notes

    def with_property(self, key: str) -> dict[str, str]:
        """Return the paths of notes that have a property, by its value as a text.

        If several notes have the same value, the first path counts.
        """
        return self._parts.index.paths_by_property(key)

    def entries_below(self, folder: str) -> list[Entry]:
        """Return the files in a folder and its subfolders; none if it does not exist."""
        return self._parts.vault.entries_below(folder)

    def exists(self, path: str) -> bool:
        """Return whether there is a file at a path that this store may see. Reads the disk."""
        return self._parts.reader.exists(path)

    def bytes_of(self, path: str) -> bytes | None:
        """Return the bytes of a file, a note or not; None if this store sees no file at the path.

        Raises Unreadable or Unavailable if the file cannot be read.
        """
        return self._parts.reader.bytes_of(path)

    def read(self, paths: Iterable[str]) -> Iterator[Read]:
        """Yield notes as they are on the disk, in the order of `paths`.

        Those that do not exist, cannot be read or may not be seen are left out.
        """
        with self._parts.vault.reading() as read_file:
            for path in paths:
                try:
                    file = read_file(path)
                except (SimplememError, OSError):
                    continue
                text, problem = decode_text(file.data)
                yield Read(path, text, file.sha256, problem or "")

    def private_among(self, paths: Iterable[str]) -> set[str]:
        """Return the paths of those notes that must not be sent to a service. Reads the files.

        The setting `embed.private` says which notes are private. Notes that cannot be read count as
        private.
        """
        rules = self._parts.settings.embed.private
        private = set(paths)
        for note in self.read(list(private)):
            if private_reason(note.path, read_note(note.text.encode()), rules) is None:
                private.remove(note.path)
        return private

    # Names and links

    def resolve_links(
        self, links: Sequence[tuple[str, str]], among: Iterable[str] | None = None
    ) -> list[str | None]:
        """Return the path that each link leads to, None for an unresolved one.

        The paths are in the order of `links`. A link is its target and the path of its note. With
        `among`, links are resolved as if only these files existed, else by the files of the index.
        """
        index = self._parts.index
        if among is None and len(links) > _MAX_LINKS_LOOKED_UP:
            among = index.files()
        files_named = index.files_named if among is None else named_in_memory(among)
        return [resolve_link(target, source, files_named).path for target, source in links]

    def files_called(self, name: str) -> Sequence[str]:
        """Return the paths of all files with a name, compared as links compare names.

        Returns an empty sequence if no file has it.
        """
        if well_formed(name) != name:  # half a character is in no file's name
            return ()
        return self._parts.index.files_named(name_key(name))

    def find_former_note(self, name: str) -> FormerNote | None:
        """Return the note that last had a name; None if the latest 200 changes do not name one.

        `name` is a whole name or its last part. Raises Invalid if it is not a valid reference.
        """
        return self._parts.resolver.find_former_note(name)

    # Changes

    def since(self, mark: Mark | None) -> Changes:
        """Return the notes that any process indexed since a mark, and the new mark.

        All notes are returned if the mark is None or of an index that was replaced. Removed notes
        are not listed.
        """
        return self._parts.index.since(mark)

    def link_graph_since(self, mark: Mark | None, *, kind_property: str) -> LinkGraph | None:
        """Return the notes that searches find and the links between them, for a drawing.

        `kind_property` is the property that becomes the `kind` of a note. Returns None if the index
        has not changed since `mark`. The index is brought up to date first.
        """
        self._parts.keeper.prepare(vectors=False)
        return self._parts.index.link_graph_since(mark, kind_property=kind_property)

    @property
    def archive_folders(self) -> tuple[str, ...]:
        """The folders of past sessions, which lists leave out unless they are asked for."""
        return self._parts.searching.filters.archive

    def changes(
        self,
        *,
        after: int = 0,
        upto: int | None = None,
        since: str = "",
        limit: int | None = None,
    ) -> list[Version]:
        """Return the changes in the log whose number is greater than `after`, newest first.

        Changes of hidden notes are left out. With `upto`, later changes are left out; with `since`,
        a date or a version, earlier ones. At most those of the latest `limit` operations are
        returned; None means all. Raises NotFound for an unknown version and Invalid for what is no
        date.
        """
        if since:
            moment = self._parts.texts.moment_of(since, start=True)
            after = max(after, moment.number)
        if upto is None:
            return self._parts.changes.recent(limit, after=after)
        return self._parts.changes.recent(limit, after=after, upto=upto)

    def operation(self, version: str) -> list[Version]:
        """Return all changes of the operation that a version belongs to, oldest first.

        Changes of hidden notes are left out. Raises NotFound if there is no such version.
        """
        change = self._parts.changes.find(version)
        return self._parts.changes.step(change.group)

    def find_undone(self, versions: Iterable[Version]) -> dict[str, str]:
        """Return which of these operations are undone, each with the operation to undo for a redo.

        `versions` are changes, newest first, and operations are named by their groups. An operation
        that was undone together with everything by its author has "".
        """
        return find_undone(versions)

    def changes_of(self, path: str, limit: int | None = None) -> list[Version]:
        """Return the changes of the note at a path, newest first: at most `limit`, or all."""
        return self._parts.changes.of(path, limit)

    def text_of_version(self, sha256: str, *paths: str) -> bytes | None:
        """Return the text that has a hash, from the history or one of the paths.

        `sha256` is that of a visible change. The paths are read as they are now. Returns None if
        the text is lost.
        """
        return self._parts.texts.text_of(sha256, *paths)

    def last_version(self) -> int:
        """Return the number of the last change, hidden ones included; 0 if there is none."""
        return self._parts.changes.newest()

    def notes_at(self, when: Moment | datetime) -> Iterator[tuple[EarlierNote, bool]]:
        """Yield every note in the log as it was at a moment, and whether it differs now.

        They are sorted by path. A datetime stands for the moment after the last change that was
        logged until then.
        """
        return self._parts.texts.notes_at(when)

    def first_version(self, path: str) -> int:
        """Return the number of the change that created the note at a path; 0 if none did.

        The note is followed back through its moves. A note that a person created without simplemem
        has no such change.
        """
        versions = self._parts.changes.of(path)
        if versions and versions[-1].before is None:
            return versions[-1].number
        return 0

    def is_by_hand(self, path: str, sha256: str) -> bool:
        """Return whether a person gave a note this text, with a command or outside simplemem.

        `sha256` is the hash of the text. A text other than that of the last logged change, and a
        note that the log does not know, count as a person's.
        """
        versions = self._parts.changes.of(path, 1)
        if not versions:
            return True
        last = versions[0]
        return last.after != sha256 or last.is_by_person

    # Writing

    def must_be_writable(self) -> None:
        """Raise ReadOnly if the vault may not be changed.

        If it may, Obsidian's settings are read again if they have changed.
        """
        self._parts.writer.check_writable()

    def check_text(self, name: str, old_text: str, new_text: str) -> list[str]:
        """Return warnings about secrets that a change adds to the text of a note. Writes nothing.

        `name` is that of the note. Raises TooLong if the new text is over the limit and longer than
        the old one, and Invalid if the settings refuse secrets.
        """
        return check_text(self._parts.settings, name, old_text, new_text)

    def change(
        self, make_drafts: Callable[[], Sequence[Draft]], **by: Unpack[AuthorArgs]
    ) -> BatchResult:
        """Make drafts and write them as one change, all or none, which one undo takes back.

        `make_drafts` is called while the vault is locked, and again if one of the files changed
        meanwhile. `by` says who asks. Raises what `BatchWriter.write` raises, such as Conflict if
        the files keep changing, and ReadOnly if one may not be changed; nothing is written then.
        """
        return self._parts.batches.write(make_drafts, author_of_call(by, ""))

    def move(
        self,
        new_paths: Mapping[str, str],
        *,
        deleted: Mapping[str, str] = MappingProxyType({}),
        **by: Unpack[AuthorArgs],
    ) -> tuple[Moved, ...]:
        """Give files other paths as one change, all or none. Links keep their targets.

        `new_paths` has the new path of each file by its old one. Returns one result per file, in
        this order. `deleted` has other notes that are deleted with it, with their hashes by path.
        Indexes what was saved a moment ago first. Raises NotFound if an old path has no
        file, AlreadyExists if a new one is taken, Invalid if it is the old one or not legal, and
        ReadOnly if a change is not allowed, or would break a link of a hidden note.
        """
        return self._parts.mover.move_files(new_paths, deleted=deleted, **by)

    # Search

    def likeness(self, question: str, paths: Collection[str], most: int = 0) -> Likeness:
        """Return how similar the notes at `paths` are to a question.

        `most` is the number of notes to return, the most similar ones; 0 stands for all. A note is
        absent from the similarities by meaning if it has no vector, and from those by words if it
        has no word of the question. Brings the index up to date first, and may ask an embedding
        service for the question's vector.
        """
        return self._parts.similarity.likeness(question, paths, most)

    def answers(
        self,
        question: str,
        paths: Collection[str],
        limit: int,
        *,
        passages: int = 0,
        rerank: bool = True,
    ) -> Answers:
        """Return the best `limit` of some notes for a question, and their best passages.

        `paths` are those of the notes, and `passages` is how many passages are returned at most.
        The question is read as words only: it has no search operators. With `rerank`, a reranker
        may order the notes, if the settings name one. Brings the index up to date first.
        """
        return self._parts.similarity.answers(
            question, paths, limit, passages=passages, rerank=rerank
        )

    def always_relevant(self, scope: str | None) -> list[Pinned]:
        """Return what is relevant to every question of a user: constraints, then pinned notes.

        With None, it is that of all users. At most 4,000 characters are returned. Brings the index
        up to date first.
        """
        return self._parts.similarity.always_relevant(scope)

    @property
    def embedder(self) -> str:
        """The name of the embedder whose vectors are in use, "" if there are none."""
        return self._parts.similarity.embedder

    def vector_of(self, path: str) -> tuple[list[float], str] | None:
        """Return the vector of a note and the name of its embedder; None if it has none.

        The vector is that of `vectors_of`. `path` is that of the note.
        """
        return self._parts.similarity.vector_of(path)

    def vectors_of(self, paths: Sequence[str]) -> dict[str, list[float]]:
        """Return the vectors of notes by path: the mean of their passages' vectors, of length one.

        Notes without a vector are absent.
        """
        return self._parts.similarity.vectors_of(paths)

    def take_vectors(self, other: ExtensionAPI) -> None:
        """Copy an embedding service's vectors from another store's index, where texts are the same.

        The vectors of the bundled model are not copied; they are made again when they are needed.
        Asks the service for one vector, to learn its length.
        """
        self._parts.similarity.take_vectors(other._parts.similarity)
