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
from simplemem.store import BatchResult, Draft, ExtensionAPI, Mark, Read

R = TypeVar("R")
T = TypeVar("T", bound=NoteValue)


class ChangeSet:
    """Guards the texts of notes before and after one change of a collection.

    Nothing is written until the collection writes the drafts. A draft function makes its changes
    with `text`, `put`, `set` and `drop`.
    """

    def __init__(self, collection: NoteCollection[Any]) -> None:
        self.extension = collection.extension
        self._collection = collection
        self._before: dict[str, str | bytes] = {}
        self._after: dict[str, str | bytes | None] = {}

    def text(self, path: str) -> str:
        """Return the text of a note of the collection as this change has made it so far.

        Raise KeyError if the collection has no such note, Conflict if the file differs from the
        collection, Unreadable if it cannot be changed.
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
        """Read a note whose text is the one that the collection has.

        Raise Conflict if the file has another text or is gone; the collection is then up to date.
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
        """Set the text of a note, or the bytes of an attachment.

        A note whose text was not read through this change set is a new one. Raise TooLong if the
        text exceeds the limit of a note.
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
        """Set properties of a note of the collection; None and "" remove a property.

        Raise what `text` and `put` raise.
        """
        text = self.text(path)
        for key, value in properties.items():
            if value in (None, ""):
                text = remove_property(text, key)
            else:
                text = set_property(text, key, value)
        self.put(path, text)

    def has(self, path: str) -> bool:
        """Return whether this change touches the file at a path."""
        return path in self._after

    def texts(self) -> dict[str, str]:
        """Return the texts so far of the notes that this change touches and does not delete."""
        return {path: text for path, text in self._after.items() if isinstance(text, str)}

    def drop(self, path: str) -> None:
        """Move a note of the collection to the trash. Raise what `text` raises."""
        self.text(path)
        self._after[path] = None

    def drop_file(self, path: str) -> None:
        """Move a file outside the collection to the trash: an attachment or a note of another type.

        Do nothing if there is no such file.
        """
        data = self.extension.bytes_of(path)
        if data is None:
            return
        self._before[path] = data
        self._after[path] = None

    def drafts(self) -> list[Draft]:
        """Return the drafts of all files that this change makes different."""
        drafts: list[Draft] = []
        for path, text in self._after.items():
            old_text = self._before.get(path)
            if text != old_text:
                drafts.append(Draft(path, text, old_text))
        return drafts


S = TypeVar("S", bound=ChangeSet)


class NoteCollection(Generic[T]):
    """Guards the values of all notes of one type, read again when the index reports a change.

    Callers look at `items`, which are by path, inside `reading` or in a draft of `change`. It is
    thread-safe: both hold its lock.
    """

    def __init__(self, extension: ExtensionAPI, note_type: NoteType[T]) -> None:
        self.extension = extension
        self.note_type = note_type
        self.lock = threading.RLock()
        self.items: dict[str, T] = {}
        self.external_changes = 0  # grows when the user or another process changes an item
        self.mark: Mark | None = None  # the position in the log of changes up to which `items` is
        self._order: list[T] | None = None
        self._all_paths: set[str] = set()  # of all notes of the vault, whatever their type
        # Arguments that `update_derived` was called with and failed at.
        self._pending_items: set[str] = set()
        self._pending_files: set[str] = set()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Hold the lock on the collection, which is up to date with what was saved so far."""
        self.extension.catch_up()
        with self.lock:
            self.refresh()
            yield

    def in_order(self) -> list[T]:
        """Return all items, sorted by the key of their type. The caller holds the collection."""
        if self._order is None:
            self._order = sorted(self.items.values(), key=self.note_type.sort_key)
        return self._order

    def change(
        self,
        draft: Callable[[S], R],
        by: AuthorArgs,
        make: Callable[[Any], S] = ChangeSet,  # type: ignore[assignment]
    ) -> tuple[R, BatchResult]:
        """Write as one step what `draft` does to the current notes.

        `draft` gets a change set, which `make` creates for this collection. It is called again if a
        note is saved meanwhile. Return its last answer, and what was written. Raise what `draft`
        raises, Conflict, ReadOnly, and Unavailable if the vault stays locked.
        """
        answers: list[R] = []
        drafts: list[Draft] = []

        def attempt() -> list[Draft]:
            self.refresh()
            change_set = make(self)
            answers[:] = [draft(change_set)]
            drafts[:] = change_set.drafts()
            return list(drafts)  # a new list per attempt: the store would not retry the same one

        self.extension.catch_up()
        with self.lock:
            result = self.extension.change(attempt, **by)
            # The notes are written. If this fails, the next change that is noticed repeats it.
            with suppress(Unavailable):
                self._apply_written(result, drafts)
        return answers[0], result

    def _apply_written(self, result: BatchResult, drafts: Collection[Draft]) -> None:
        """Bring the collection up to date with a change that it has written itself."""
        hashes = {written.path: written.sha256 or "" for written in result.written}
        notes = [
            Read(path, text, sha256=hashes[path], problem="") for path, text in result.texts.items()
        ]

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
        """Read the notes that changed since the last call. The caller holds the lock."""
        news = self.extension.since(self.mark)
        if news.mark == self.mark:
            return

        changed = {note.path: note for note in news.notes}
        created = changed.keys() - self._all_paths
        expected_count = len(self._all_paths) + len(created)
        deleted = set[str]()
        if news.count != expected_count:
            if news.whole:
                deleted = self._all_paths - changed.keys()
            else:
                deleted = self._all_paths - self.extension.indexed()

        # A conflict copy has the frontmatter of its note, but is no second item.
        copies: set[str] = set()
        stale: list[str] = []
        for path, note in changed.items():
            if note.is_copy and _is_copy_name(path):
                copies.add(path)
            elif self._is_stale(path, note.sha256, note.type):
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
        self.mark = news.mark  # last, so that whatever failed is noticed again

    def _is_stale(self, path: str, sha256: str, declared_type: str | None) -> bool:
        """Return whether a note that the index reports as changed has to be read.

        That is an item with another text, or a note of the collection's type that is no item yet.
        """
        item = self.items.get(path)
        if item is not None:
            return item.sha256 != sha256
        return self.note_type.includes(path, declared_type)

    def apply(
        self,
        notes: Iterable[Read],
        *,
        deleted: Collection[str] = (),
        created: Collection[str] = (),
    ) -> None:
        """Bring the collection up to date with notes that were read, and with deleted ones.

        `deleted` and `created` are paths of notes of any type, since those may change what a link
        resolves to. The caller holds the lock.
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
        """Return whether the collection keeps a note although it is of another type.

        A subclass may override it. None is kept by default.
        """
        return False

    def update_derived(self, changed: Collection[str], files: Collection[str]) -> None:
        """Update what a subclass derives from the items. Nothing is derived by default.

        `changed` are the paths of items that changed or were removed. `files` are the paths of
        notes of any type that were created or deleted.
        """

    def add(self, item: T) -> None:
        """Add an item, or replace the one with its path."""
        self.items[item.path] = item
        self._order = None

    def remove(self, path: str) -> None:
        """Remove an item, if the collection has it."""
        self.items.pop(path, None)
        self._order = None


def _is_copy_name(path: str) -> bool:
    """Return whether a name can only be that of a conflict copy; "Plan 2" may be a note."""
    conflict = parse_conflict_name(path)
    return conflict is not None and conflict.certain
