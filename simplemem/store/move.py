"""Moving and deleting notes. Links follow a move; those to a deleted note are counted."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Unpack

from simplemem.errors import AlreadyExists, Invalid, NotFound
from simplemem.index.api import StoredLink
from simplemem.index.changes import ChangeTable
from simplemem.index.notes import is_note
from simplemem.index.service import IndexService
from simplemem.models import AuthorArgs, Deleted, Moved
from simplemem.note.header import read_header
from simplemem.note.names import check_name, clean_reference, compare_key, name_of, path_of
from simplemem.note.scopes import check_move_keeps_scope
from simplemem.obsidian.link_edits import Moves
from simplemem.obsidian.settings import resolve_link
from simplemem.settings.model import Settings
from simplemem.store.edits import check_text
from simplemem.store.link_rewrites import LinkRewriter
from simplemem.store.unseen import check_unseen_links
from simplemem.store.vault_index import (
    IndexKeeper,
    NameResolver,
    NoteReader,
    NoteWriter,
    author_of_call,
)
from simplemem.store.write import WriteIndexer
from simplemem.vault.source import NoteSource
from simplemem.vault.values import Author, File, FileChange, Version, WriteResult


class NoteMover:
    """Moves and deletes notes of a vault. Guards no state of its own."""

    def __init__(
        self,
        vault: NoteSource,
        index: IndexService,
        changes: ChangeTable,
        *,
        reader: NoteReader,
        resolver: NameResolver,
        keeper: IndexKeeper,
        writer: NoteWriter,
        links: LinkRewriter,
        indexer: WriteIndexer,
        catch_up: Callable[[], None],
        settings: Settings,
    ) -> None:
        self._vault = vault
        self._access = vault.access
        self._index = index
        self._changes = changes
        self._reader = reader
        self._resolver = resolver
        self._keeper = keeper
        self._writer = writer
        self._links = links
        self._indexer = indexer
        self._catch_up = catch_up
        self._settings = settings

    def move(self, name: str, new_name: str, **by: Unpack[AuthorArgs]) -> Moved:
        """Give a note another name, which includes its folder: "B" moves "A/B" to the top folder.

        Links to the note are rewritten in the same operation. If `name` is gone because its last
        change was this very move, nothing is changed and the version of that move is returned
        again, with no `rewritten` notes and no warnings. Raises NotFound or Ambiguous for `name`,
        Invalid or TooLong if the new name is not legal, AlreadyExists if another note has it, and
        ReadOnly.
        """
        self._writer.check_writable()
        new_path = path_of(check_name(new_name))

        try:
            old_path = self._resolver.path_of(name)
        except NotFound:
            # Perhaps this is a repeated call, and the note has moved already.
            last_change = self._last_change(name, "move")
            if last_change is None or last_change.new_path != new_path:
                raise
            return Moved(
                name=name_of(new_path),
                path=new_path,
                previous_name=name_of(last_change.path),
                sha256=last_change.after or "",
                rewritten=(),
                version=last_change.id,
                warnings=(),
            )
        return self.move_files({old_path: new_path}, **by)[0]

    def move_files(
        self,
        new_paths: Mapping[str, str],
        *,
        deleted: Mapping[str, str] = MappingProxyType({}),
        **by: Unpack[AuthorArgs],
    ) -> tuple[Moved, ...]:
        """Give files other paths as one change, all or none. Links keep their targets and forms.

        `new_paths` has the new path of each file by its old one. Returns one result per file, in
        this order. `deleted` has other notes that are deleted with it, with their hashes by path.
        Raises AlreadyExists if a new path is taken, NotFound if an old one has no file, Invalid if
        a new path is the old one or no legal name, Conflict if a deleted note has another hash, and
        ReadOnly if the access rules forbid one of the changes, or if it would break a link of a
        note that they hide.
        """
        self._writer.check_writable()
        for old, new in new_paths.items():
            check_name(name_of(new))
            if old == new:
                raise Invalid(f"{name_of(old)} already has this name")
            # Checked before any file is looked at, so that the error does not reveal whether there
            # is a file in a folder that the rules hide.
            self._access.check(old, is_named_by_caller=True)
            self._access.check(new, is_named_by_caller=True)

        self._catch_up()  # a link saved a moment ago is to follow as well
        with self._writer.lock():
            author = author_of_call(by, "move")
            deletions = [
                FileChange("delete", path, digest, is_deletion=True)
                for path, digest in deleted.items()
            ]
            return self._move_in_lock(Moves(new_paths), author, deletions)

    def _move_in_lock(
        self, moves: Moves, author: Author, deletions: Sequence[FileChange]
    ) -> tuple[Moved, ...]:
        """Move files and index them. The caller holds the lock.

        Raises what `move_files` raises.
        """
        files, warnings = self._files_to_move(moves)

        # The links that need rewriting are in files that move themselves, or in other notes.
        rewrites, rewrite_warnings = self._links.rewrites_for(moves)
        new_texts = {}  # of the files that move, by their old paths
        other_notes = []
        for rewrite in rewrites:
            if rewrite.path not in files:
                other_notes.append(rewrite)
            elif rewrite.data is not None:
                new_texts[rewrite.path] = rewrite.data
        check_unseen_links(self._vault, moves, new_texts)

        changes = []
        texts = {}  # of all notes that change, by their new paths
        for path, file in files.items():
            new_path = moves.after(path)
            new_text = new_texts.get(path)
            change = FileChange(
                "move",
                path,
                old_sha256=file.sha256,
                new_path=new_path,
                data=new_text,
            )
            changes.append(change)
            texts[new_path] = file.data if new_text is None else new_text
        for rewrite in other_notes:
            # A rewrite always has data; its type allows None for other changes.
            texts[rewrite.path] = rewrite.data or b""

        results = self._vault.carry_out([*changes, *other_notes, *deletions], author)
        written = results[: len(changes)]  # of the files that moved
        warnings += rewrite_warnings
        deleted = [change.path for change in deletions]
        warnings += self._index_moved(texts, written, moves, deleted)

        rewritten = [name_of(rewrite.path) for rewrite in other_notes]
        for path in new_texts:
            new_path = moves.after(path)
            rewritten.append(name_of(new_path))

        moved = []
        for (path, file), result in zip(files.items(), written, strict=True):
            moved.append(
                Moved(
                    name=name_of(result.path),
                    path=result.path,
                    previous_name=name_of(path),
                    sha256=result.sha256 or file.sha256,
                    rewritten=tuple(rewritten),
                    version=result.version,
                    warnings=tuple(warnings),
                )
            )
        return tuple(moved)

    def _files_to_move(self, moves: Moves) -> tuple[dict[str, File], list[str]]:
        """Return the files by their paths before the moves, and warnings about their new names.

        Raises AlreadyExists, Invalid or NotFound if one of them cannot be moved.
        """
        files = dict[str, File]()
        warnings = list[str]()
        for old_path, new_path in moves.new_paths.items():
            self._check_free(old_path, new_path)
            file = self._vault.read(old_path)
            self._check_scope(old_path, new_path, file.data)

            old_name = name_of(old_path)
            new_name = name_of(new_path)
            warnings += check_text(self._settings, "", old_name, new_name)
            files[old_path] = file
        return files, warnings

    def _check_free(self, old: str, new: str) -> None:
        """Raise AlreadyExists if another note has the new name. A change of case is allowed."""
        is_change_of_case = compare_key(old) == compare_key(new)
        if not is_change_of_case and self._reader.entry(new) is not None:
            name = name_of(new)
            raise AlreadyExists(
                f"a note called {name} already exists",
                hint="Choose another name, or move or delete that note first.",
                name=name,
            )

    def _check_scope(self, old: str, new: str, data: bytes) -> None:
        """Raise Invalid if a move would bring a note into a scope that the access rules hide."""
        if self._access.is_partial:
            properties = read_header(data.decode("utf-8", "replace")).properties
            check_move_keeps_scope(old, new, properties, self._access.hides)

    def _index_moved(
        self,
        texts: Mapping[str, bytes],
        written: Sequence[WriteResult],
        moves: Moves,
        deleted: Sequence[str],
    ) -> list[str]:
        """Index what moved, notes with changed links, and deleted ones. Return warnings.

        `texts` are by the new paths.
        """
        warnings = list[str]()
        attachments = set[str]()
        moved_notes = {}
        for old_path, new_path in moves.new_paths.items():
            if is_note(old_path) and is_note(new_path):
                moved_notes[old_path] = new_path
            else:
                attachments.update((old_path, new_path))
        if attachments:  # before the notes, so that links to them are resolved
            warnings += self._keeper.index_written(attachments)

        notes = {path: data for path, data in texts.items() if path not in attachments}
        warnings += self._indexer.index(notes, written, deleted=deleted, moved=moved_notes)
        return warnings

    def delete(
        self, name: str, *, if_sha256: str | None = None, **by: Unpack[AuthorArgs]
    ) -> Deleted:
        """Move a note to the trash. Links to it stay as they are, unresolved; `undo` restores it.

        `links_left_unresolved` of the result counts these links. If the note is gone because its
        last change was this very deletion, a repeated call with the same `if_sha256` deletes
        nothing and returns that version again, with a count of 0. An index that cannot follow is no
        error: searches say that they may be out of date. Raises NotFound or Ambiguous for the name,
        Conflict if the note has another hash than `if_sha256`, and ReadOnly.
        """
        self._writer.check_writable()

        try:
            path = self._resolver.path_of(name)
        except NotFound:
            # Perhaps this is a repeated call, and the note is deleted already.
            last_change = self._last_change(name, "delete")
            if if_sha256 is None or last_change is None or last_change.before != if_sha256:
                raise
            return Deleted(name_of(last_change.path), last_change.id, 0)

        with self._writer.lock():
            links_to_note = self._index.links(path)
            unresolved = self._unresolved_links(links_to_note, {path})
            written = self._vault.trash(path, if_sha256, author_of_call(by, "delete"))
            self._indexer.index({}, [], deleted=[path])
        return Deleted(name_of(path), written.version, unresolved)

    def delete_all(self, names: Iterable[str], **by: Unpack[AuthorArgs]) -> tuple[Deleted, ...]:
        """Move notes to the trash as one change, which one undo takes back.

        A note that is named twice is deleted once. All names are looked up first: raises NotFound
        or Ambiguous, with nothing deleted, if one of them means no note or several; Conflict if a
        note changes meanwhile, and ReadOnly. Links among the notes are not counted as unresolved.
        Returns one result per note, in the order of the names; () for no names.
        """
        self._writer.check_writable()
        resolved_paths = [self._resolver.path_of(name) for name in names]
        paths = list(dict.fromkeys(resolved_paths))
        if not paths:
            return ()

        with self._writer.lock():
            unresolved = self._links_left_unresolved(set(paths))
            changes = []
            for path in paths:
                digest = self._vault.read(path).sha256
                changes.append(FileChange("delete", path, digest, is_deletion=True))
            written = self._vault.carry_out(changes, author_of_call(by, "delete"))
            self._indexer.index({}, [], deleted=paths)

        deleted = []
        for path, result in zip(paths, written, strict=True):
            deleted.append(Deleted(name_of(path), result.version, unresolved[path]))
        return tuple(deleted)

    def _links_left_unresolved(self, deleted: set[str]) -> dict[str, int]:
        """Return how many links of other notes to each deleted note will be unresolved, by path."""
        counts = {}
        for path in deleted:
            links_to_note = self._index.links(path)
            links_of_others = [link for link in links_to_note if link.source not in deleted]
            counts[path] = self._unresolved_links(links_of_others, deleted)
        return counts

    def _unresolved_links(self, links: Iterable[StoredLink], deleted: Collection[str]) -> int:
        """Return how many of these links lead nowhere once the `deleted` paths are gone."""

        def remaining(key: str) -> list[str]:
            """Return the paths with a name, without the deleted ones."""
            paths = self._index.files_named(key)
            return [path for path in paths if path not in deleted]

        count = 0
        for link in links:
            resolution = resolve_link(link.target, link.source, remaining)
            if resolution.path is None:
                count += 1
        return count

    def _last_change(self, name: str, op: str) -> Version | None:
        """Return the last change at the path of a name, if its operation was `op`; else None.

        A repeated call, whose first answer was lost, finds there what it did.
        """
        path = path_of(clean_reference(name))
        versions = self._changes.of(path, 1)
        if versions and versions[0].op == op:
            return versions[0]
        return None
