"""The notes of one type in a vault, kept up to date, and changes of several of them as one step.

A feature subclasses `NoteCollection` if it derives more from its notes than their values.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Generic, TypeVar

from simplemem.errors import Conflict, TooLong, Unavailable, Unreadable
from simplemem.features.note_type import NoteType, NoteValue
from simplemem.models import AuthorArgs
from simplemem.note.header import read_header
from simplemem.note.names import name_of, parse_conflict_name
from simplemem.note.properties import remove_property, set_property
from simplemem.store import (
    BatchResult,
    Changes,
    Draft,
    ExtensionAPI,
    Mark,
    NoteRow,
    Read,
)

R = TypeVar("R")
T = TypeVar("T", bound=NoteValue)


class ChangeSet:
    """Guards the texts of notes before and after one change of a collection.

    A draft function, which `NoteCollection.change` calls, makes its changes with `text`, `put`,
    `set` and `drop`. The collection then writes what `drafts` returns.
    """

    def __init__(self, collection: NoteCollection[Any]) -> None:
        """Begin without a change. The caller holds the lock of the collection."""
        self.extension = collection.extension
        self._collection = collection
        self._before: dict[str, str | bytes] = {}
        self._after: dict[str, str | bytes | None] = {}

    def text(self, path: str) -> str:
        """Return the text of a note as this change has made it so far.

        The text of a note of the collection that was not changed yet, or was dropped, is read from
        the disk; a dropped note is then no longer dropped. Raise KeyError for a note that is not in
        the collection and was not put, Conflict if the file differs from the collection, and
        Unreadable if the note cannot be changed.
        """
        changed_text = self._after.get(path)
        if isinstance(changed_text, str):
            return changed_text

        read = self._read_unchanged(path)
        problem = read.problem
        header_problem = read_header(read.text).problem
        if not problem and header_problem is not None:
            problem = header_problem.message
        if problem:
            raise Unreadable(
                f"{name_of(path)} cannot be changed: {problem}",
                hint="Fix it in an editor, then try again.",
            )

        self._before[path] = read.text
        self._after[path] = read.text
        return read.text

    def _read_unchanged(self, path: str) -> Read:
        """Read a note, and check that its text is still the one that the collection has.

        Raises KeyError if the note is not in the collection, and Conflict if the file has another
        text or is gone; the collection is then up to date.
        """
        read = next(iter(self.extension.read([path])), None)
        item = self._collection.items[path]
        if read is not None and read.sha256 == item.sha256:
            return read

        self.extension.look_at([path])
        current_sha256 = None
        if read is None:
            self._collection.apply([], deleted=[path])
        else:
            self._collection.apply([read])
            current_sha256 = read.sha256
        raise Conflict(
            f"{name_of(path)} has changed since it was read",
            current_sha256=current_sha256,
        )

    def put(self, path: str, text: str | bytes) -> None:
        """Set the text of a note, or the bytes of an attachment, which may exist already.

        A note whose text was not read with `text` is a new one. Raise TooLong if the text exceeds
        the limit of a note, and Unreadable or Unavailable if an existing attachment cannot be read.
        """
        if isinstance(text, bytes):
            current = self.extension.bytes_of(path)
            if current is not None:
                self._before[path] = current
        else:
            self._check_size(path, text)
        self._after[path] = text

    def _check_size(self, path: str, text: str) -> None:
        """Raise TooLong if a text exceeds the limit of a note."""
        max_bytes = self.extension.max_note_bytes
        if len(text.encode("utf-8", "replace")) > max_bytes:
            raise TooLong(
                f"{name_of(path)} would have more than {max_bytes:,} bytes",
                hint="Split it, then try again.",
            )

    def set(self, path: str, **properties: Any) -> None:
        """Set properties of a note by their keys; None and "" remove a property.

        Raise KeyError, Conflict or Unreadable as `text` does, and TooLong as `put` does.
        """
        text = self.text(path)
        for key, value in properties.items():
            if value in (None, ""):
                text = remove_property(text, key)
            else:
                text = set_property(text, key, value)
        self.put(path, text)

    def has(self, path: str) -> bool:
        """Return whether this change has read, put or dropped the file at a path."""
        return path in self._after

    def texts(self) -> dict[str, str]:
        """Return the texts so far, by path, of the notes that this change has read or put.

        Notes that it has dropped are left out.
        """
        return {path: text for path, text in self._after.items() if isinstance(text, str)}

    def drop(self, path: str) -> None:
        """Move a note of the collection to the trash.

        Raise KeyError, Conflict or Unreadable as `text` does.
        """
        self.text(path)
        self._after[path] = None

    def drop_file(self, path: str) -> None:
        """Move a file outside the collection to the trash: an attachment or a note of another type.

        Do nothing if there is no such file. Raise Unreadable or Unavailable if it cannot be read.
        """
        data = self.extension.bytes_of(path)
        if data is None:
            return
        self._before[path] = data
        self._after[path] = None

    def drafts(self) -> list[Draft]:
        """Return the drafts of all files that this change makes different, in order of first use.

        The list is empty if nothing changes.
        """
        drafts: list[Draft] = []
        for path, text in self._after.items():
            old_text = self._before.get(path)
            if text != old_text:
                drafts.append(Draft(path, text, old_text))
        return drafts


S = TypeVar("S", bound=ChangeSet)


class NoteCollection(Generic[T]):
    """Guards the values of all notes of one type, read again when the index reports a change.

    Callers look at `items`, the values by path, inside `reading` or in a draft function of
    `change`. It is thread-safe: both hold its lock.
    """

    def __init__(self, extension: ExtensionAPI, note_type: NoteType[T]) -> None:
        """Make an empty collection. `reading` and `change` read the notes."""
        self.extension = extension
        self.note_type = note_type
        self.lock = threading.RLock()
        self.items: dict[str, T] = {}
        self.external_changes = 0  # grows when the user or another process changes an item
        self.mark: Mark | None = None  # the state of the index that `items` agrees with
        self._order: list[T] | None = None  # what `in_order` returns; None after a change
        self._all_paths: set[str] = set()  # of all notes of the vault, whatever their type
        # Arguments for `update_derived`. They stay here if it fails, for its next call.
        self._pending_items: set[str] = set()
        self._pending_files: set[str] = set()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Hold the lock on the collection during a block. Nothing is yielded.

        The collection has been brought up to date with all notes that were saved so far.
        """
        self.extension.catch_up()
        with self.lock:
            self.refresh()
            yield

    def in_order(self) -> list[T]:
        """Return all items, sorted by the key of their type. The caller holds the lock.

        The list is the collection's own: the caller must not change it.
        """
        if self._order is None:
            self._order = sorted(self.items.values(), key=self.note_type.sort_key)
        return self._order

    def change(
        self,
        draft: Callable[[S], R],
        by: AuthorArgs,
        make: Callable[[Any], S] = ChangeSet,  # type: ignore[assignment]
    ) -> tuple[R, BatchResult]:
        """Write as one step of the history what `draft` does to the current notes.

        `draft` gets a change set, which `make` creates for this collection. It is called while the
        vault is locked, and again if a note is saved meanwhile. `by` says who makes the change.
        Return the last answer of `draft`, and what was written, which is nothing if the change set
        has no drafts. Raise what `draft` raises, Conflict if the notes keep changing, AlreadyExists
        if a new note's path was taken meanwhile, ReadOnly, and Unavailable if the vault stays
        locked.
        """
        answers: list[R] = []
        drafts: list[Draft] = []

        def attempt() -> list[Draft]:
            """Call `draft` with the current notes, and return what is to be written."""
            self.refresh()
            change_set = make(self)
            answers[:] = [draft(change_set)]
            drafts[:] = change_set.drafts()
            # A new list per attempt: the store would not retry the same one.
            return list(drafts)

        self.extension.catch_up()
        with self.lock:
            result = self.extension.change(attempt, **by)
            # The notes are written. If this fails, the next change that is noticed repeats it.
            with suppress(Unavailable):
                self._apply_written(result, drafts)
        return answers[0], result

    def _apply_written(self, result: BatchResult, drafts: Collection[Draft]) -> None:
        """Bring the collection up to date with a change that it has written itself.

        `drafts` are those that were written, and `result` is what the store returned for them.
        """
        hashes: dict[str, str] = {}
        for written in result.written:
            hashes[written.path] = written.sha256 or ""
        notes: list[Read] = []
        for path, text in result.texts.items():
            notes.append(Read(path, text, sha256=hashes[path], problem=""))

        deleted: list[str] = []
        created: list[str] = []
        for draft in drafts:
            is_note = not isinstance(draft.text, bytes)
            if draft.text is None:
                deleted.append(draft.path)
            if draft.old_text is None and is_note:
                created.append(draft.path)
        self.apply(notes, deleted=deleted, created=created)

    def refresh(self) -> None:
        """Read the notes that changed since the last call. The caller holds the lock.

        Notes that this collection has written itself are not read again.
        """
        changes = self.extension.since(self.mark)
        if changes.mark == self.mark:
            return

        changed_notes = {note.path: note for note in changes.notes}
        created = changed_notes.keys() - self._all_paths
        deleted = self._deleted_paths(changes, created)

        # A conflict copy has the frontmatter of its note, but is no second item.
        copies: set[str] = set()
        stale: list[str] = []
        for path, note in changed_notes.items():
            if _is_conflict_copy(note):
                copies.add(path)
            elif self._is_stale(note):
                stale.append(path)

        is_item_deleted = not deleted.isdisjoint(self.items)
        if self.mark is not None and (stale or is_item_deleted):
            self.external_changes += 1
        notes = self.extension.read(sorted(stale))
        self.apply(
            notes,
            deleted=deleted | copies,
            created=created | copies,
        )
        # This comes last, so that a change whose handling failed is noticed again.
        self.mark = changes.mark

    def _deleted_paths(self, changes: Changes, created: Collection[str]) -> set[str]:
        """Return the paths of the notes that were deleted since the last call of `refresh`.

        `created` are the paths among the changes that are new. The index lists no deleted notes:
        there are some if it has fewer notes than the other changes explain.
        """
        expected_count = len(self._all_paths) + len(created)
        if changes.count == expected_count:
            return set()
        if changes.whole:
            return self._all_paths.difference(note.path for note in changes.notes)
        return self._all_paths - self.extension.indexed()

    def _is_stale(self, note: NoteRow) -> bool:
        """Return whether a note that the index reports as changed has to be read.

        That is an item with another text, or a note of the collection's type that is no item yet.
        """
        item = self.items.get(note.path)
        if item is not None:
            return item.sha256 != note.sha256
        return self.note_type.includes(note.path, note.type)

    def apply(
        self,
        notes: Iterable[Read],
        *,
        deleted: Collection[str] = (),
        created: Collection[str] = (),
    ) -> None:
        """Bring the collection up to date with notes that were read, and with deleted ones.

        `deleted` and `created` are paths of notes of any type, since those may change what a link
        resolves to. A note that was read and is not of this type is no longer an item, unless
        `is_needed`. The caller holds the lock.
        """
        changed = set(deleted)
        for path in deleted:
            self.remove(path)
        for item in map(self.note_type.read, notes):
            changed.add(item.path)
            if item.is_own or self.is_needed(item.path):
                self.add(item)
            else:
                self.remove(item.path)

        self._all_paths -= set(deleted)
        self._all_paths |= set(created)
        self._pending_items |= changed
        self._pending_files |= {*deleted, *created}
        self.update_derived(self._pending_items, self._pending_files)
        self._pending_items = set()
        self._pending_files = set()

    def is_needed(self, path: str) -> bool:  # noqa: ARG002
        """Return whether the note at a path is an item although it is of another type.

        A subclass may override it. By default no such note is an item.
        """
        return False

    def update_derived(self, changed: Collection[str], files: Collection[str]) -> None:
        """Update what a subclass derives from the items. By default nothing is derived.

        `apply` calls it after each change. `changed` are the paths of items that changed or were
        removed. `files` are the paths of notes of any type that were created or deleted. If it
        raises, its next call gets these paths again.
        """

    def add(self, item: T) -> None:
        """Add an item, or replace the one with its path. The caller holds the lock."""
        self.items[item.path] = item
        self._order = None

    def remove(self, path: str) -> None:
        """Remove the item with a path, if there is one. The caller holds the lock."""
        self.items.pop(path, None)
        self._order = None


def _is_conflict_copy(note: NoteRow) -> bool:
    """Return whether the index and the name of a note say that it is a conflict copy.

    A name such as "Plan 2" may also be that of a note of its own.
    """
    if not note.is_copy:
        return False
    conflict = parse_conflict_name(note.path)
    return conflict is not None and conflict.certain
