"""Moving and deleting notes. Links follow a move; those to a deleted note are counted."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
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
    change_by,
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

        Links to the note are rewritten in the same step. Raises Invalid or TooLong for a bad name,
        and AlreadyExists if it belongs to another note.
        """
        self._writer.check_writable()
        new_path = path_of(check_name(new_name))
        try:
            old_path = self._resolver.path_of(name)
        except NotFound:
            last = self._last_change(name, "move")
            if last is None or last.new_path != new_path:
                raise
            return Moved(
                name=name_of(new_path),
                path=new_path,
                previous_name=name_of(last.path),
                sha256=last.after or "",
                rewritten=(),
                version=last.id,
                warnings=(),
            )
        return self.move_files({old_path: new_path}, **by)[0]

    def move_files(
        self, new_paths: Mapping[str, str], **by: Unpack[AuthorArgs]
    ) -> tuple[Moved, ...]:
        """Give files other paths as one change, all or none. Links keep their targets and forms.

        Raises AlreadyExists if a new path is taken, Invalid if it is the old one or no
        legal name, and ReadOnly if a rule forbids one of the changes, or a link would break
        that this view cannot follow.
        """
        self._writer.check_writable()
        for old, new in new_paths.items():
            check_name(name_of(new))
            if old == new:
                raise Invalid(f"{name_of(old)} already has this name")
            # This comes before any file is looked at, so that the answer does not tell what is in a
            # place that the rules close.
            self._access.check(old, is_named_by_caller=True)
            self._access.check(new, is_named_by_caller=True)

        self._catch_up()  # a link saved a moment ago is to follow as well
        with self._writer.lock():
            return self._move_in_lock(Moves(new_paths), change_by(by, "move"))

    def _move_in_lock(self, moves: Moves, change: Author) -> tuple[Moved, ...]:
        """Move files while the vault is locked."""
        files, warnings = self._files_to_move(moves)
        rewrites, rewrite_warnings = self._links.rewrites_for(moves)
        new_texts = {}  # of the files that move, by their old paths
        other_notes = []
        for rewrite in rewrites:
            if rewrite.path not in files:
                other_notes.append(rewrite)
            elif rewrite.data is not None:
                new_texts[rewrite.path] = rewrite.data
        check_unseen_links(self._vault, moves, new_texts)

        wishes = []
        texts = {}  # of all notes that change, by their new paths
        for path, file in files.items():
            new_path = moves.after(path)
            new_text = new_texts.get(path)
            wishes.append(FileChange("move", path, file.sha256, new_path, new_text))
            texts[new_path] = file.data if new_text is None else new_text
        for rewrite in other_notes:
            texts[rewrite.path] = rewrite.data or b""

        results = self._vault.carry_out([*wishes, *other_notes], change)
        written = results[: len(wishes)]
        warnings += rewrite_warnings
        warnings += self._index_moved(texts, written, moves)

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
        """Raise Invalid if a move would bring a note into a scope that this view does not see."""
        if self._access.is_partial:
            properties = read_header(data.decode("utf-8", "replace")).properties
            check_move_keeps_scope(old, new, properties, self._access.hides)

    def _index_moved(
        self,
        texts: Mapping[str, bytes],
        written: Sequence[WriteResult],
        moves: Moves,
    ) -> list[str]:
        """Index what moved, and notes with changed links, by their new paths. Return warnings."""
        warnings = list[str]()
        attachments = set[str]()
        moved_notes = {}
        for old_path, new_path in moves.new_paths.items():
            if is_note(old_path) and is_note(new_path):
                moved_notes[old_path] = new_path
            else:
                attachments.update((old_path, new_path))
        if attachments:  # first: notes link to them
            warnings += self._keeper.index_written(attachments)

        notes = {path: data for path, data in texts.items() if path not in attachments}
        warnings += self._indexer.index(notes, written, moved=moved_notes)
        return warnings

    def delete(
        self, name: str, *, if_sha256: str | None = None, **by: Unpack[AuthorArgs]
    ) -> Deleted:
        """Move a note to the trash. Links to it stay as they are, unresolved; `undo` restores it.

        A repeated call with `if_sha256` whose answer was lost gives the same answer. Raises
        NotFound or Ambiguous for the name, Conflict if the note has another hash than
        `if_sha256`, and ReadOnly.
        """
        self._writer.check_writable()
        try:
            path = self._resolver.path_of(name)
        except NotFound:
            last = self._last_change(name, "delete") if if_sha256 else None
            if last is None or last.before != if_sha256:
                raise
            return Deleted(name_of(last.path), last.id, 0)

        with self._writer.lock():
            links = self._index.links(path)
            unresolved = self._unresolved_links(links, {path})
            written = self._vault.trash(path, if_sha256, change_by(by, "delete"))
            self._indexer.index({}, [], deleted=[path])
        return Deleted(name_of(path), written.version, unresolved)

    def delete_all(self, names: Iterable[str], **by: Unpack[AuthorArgs]) -> tuple[Deleted, ...]:
        """Move notes to the trash as one change, which one undo takes back.

        All names are looked up first: raises NotFound or Ambiguous, with nothing deleted, if one of
        them means no note. Links among the notes are not counted as unresolved.
        """
        self._writer.check_writable()
        resolved_paths = [self._resolver.path_of(name) for name in names]
        paths = list(dict.fromkeys(resolved_paths))
        if not paths:
            return ()

        with self._writer.lock():
            unresolved = self._links_left_unresolved(set(paths))
            wishes = []
            for path in paths:
                digest = self._vault.read(path).sha256
                wishes.append(FileChange("delete", path, digest, is_deletion=True))
            written = self._vault.carry_out(wishes, change_by(by, "delete"))
            self._indexer.index({}, [], deleted=paths)

        deleted = []
        for path, result in zip(paths, written, strict=True):
            deleted.append(Deleted(name_of(path), result.version, unresolved[path]))
        return tuple(deleted)

    def _links_left_unresolved(self, deleted: set[str]) -> dict[str, int]:
        """Return how many links of other notes to each deleted note will lead nowhere."""
        counts = {}
        for path in deleted:
            links = self._index.links(path)
            links_of_others = [link for link in links if link.source not in deleted]
            counts[path] = self._unresolved_links(links_of_others, deleted)
        return counts

    def _unresolved_links(self, links: Iterable[StoredLink], deleted: Collection[str]) -> int:
        """Return how many of these links lead nowhere once the `deleted` paths are gone."""

        def remaining(key: str) -> list[str]:
            paths = self._index.files_named(key)
            return [path for path in paths if path not in deleted]

        count = 0
        for link in links:
            resolution = resolve_link(link.target, link.source, remaining)
            if resolution.path is None:
                count += 1
        return count

    def _last_change(self, name: str, op: str) -> Version | None:
        """Return the last change of a note that is gone, if it was of this kind; else None.

        It is what a call did whose answer was lost, if the call is repeated.
        """
        path = path_of(clean_reference(name))
        versions = self._changes.of(path, 1)
        if versions and versions[0].op == op:
            return versions[0]
        return None
