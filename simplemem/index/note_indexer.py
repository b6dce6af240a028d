"""Read single notes, decide what the index has to say about them, and write their rows."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from simplemem.errors import SimplememError
from simplemem.index import change_rows, notes
from simplemem.index.door import Row, Stat
from simplemem.index.embedding_queue import EmbeddingQueue
from simplemem.index.engine import Connection, Engine
from simplemem.index.notes import Rows, stat_of
from simplemem.index.parsed_note import ParsedNote, parse_note
from simplemem.index.text import put_text, remove_text
from simplemem.note.names import are_similar
from simplemem.note.note import Note, read_note
from simplemem.note.scopes import is_private_by_rule, private_reason
from simplemem.vault.source import NoteSource
from simplemem.vault.values import File

# A conflict copy has these properties from its note. If they differ, it is a note of its own.
_IDENTITY_PROPERTIES = ("id", "created")

ReadOutcome = ParsedNote | Stat | SimplememError | OSError
"""The result of reading a file: the note; or the stat of a file that is as the index has it; or the
error."""


@dataclass(slots=True)
class NoteIndexer:
    """Indexes the notes of one vault in one database.

    Guards what is known beside the rows: the files that are not indexed, the texts that wait for
    vectors, and the notes that were given a new path before they are read again.
    """

    vault: NoteSource
    database: Engine
    hidden_reason: Callable[[str], str | None]  # why a note is left out of recall, by its path
    max_note_bytes: int
    private: Sequence[str] = ()  # the rules for notes that are not sent to remote services

    waiting: EmbeddingQueue | None = field(default_factory=EmbeddingQueue)  # None: no vectors
    skipped: dict[str, str] = field(default_factory=dict)  # files that are not indexed, and why
    moved_from: dict[str, str] = field(default_factory=dict)  # old paths, by the new ones
    unread: int | None = None  # notes that a long pass has yet to read, None before the first pass
    stop: threading.Event = field(default_factory=threading.Event)  # ends a pass after some notes

    # Read

    def read(
        self,
        path: str,
        known: Row | None = None,
        read_file: Callable[[str], File] | None = None,
    ) -> ReadOutcome:
        """Read and parse a note, unless its bytes and its time are those that the index has.

        `known` is what the index has of it. The function to read with is that of the vault, unless
        one is given.
        """
        read_file = read_file or self.vault.read
        try:
            file = read_file(path)
        except (SimplememError, OSError) as error:
            return error

        stat = stat_of(file.entry)
        if known is not None:
            is_same_file = (known.sha256, known.mtime_ns) == (file.sha256, file.entry.mtime_ns)
            if is_same_file and not self.is_judged_otherwise(known):
                return stat
        return parse_note(path, read_note(file.data, file.sha256), stat)

    def is_judged_otherwise(self, known: Row) -> bool:
        """Return whether the rows of a note are outdated although its file is the same.

        That is so if the note has a new path, or if the settings or the log say something else of
        it now. Each scan asks this of each note.
        """
        if known.is_at_new_path:
            return True
        is_copy = known.is_copy
        if is_copy and self._is_named_by_us(known.path):
            return True

        reason_by_settings = None if is_copy else known.hidden
        if reason_by_settings != self.hidden_reason(known.path):
            return True
        is_private = bool(self.private) and is_private_by_rule(known.path, self.private)
        return (known.private == "rule") != is_private

    def _is_named_by_us(self, path: str) -> bool:
        with self.database.reading() as db:
            return change_rows.is_named_by_us(db, path)

    def skip_if_large(self, path: str, size: int) -> bool:
        """Return whether a file is too large to be indexed. If so, it is listed as skipped."""
        if size <= self.max_note_bytes:
            return False
        self.skipped[path] = f"{size} bytes; notes over {self.max_note_bytes} are not indexed"
        return True

    # Write

    def put_note(self, rows: Rows, note: ParsedNote, known: Row | None) -> None:
        """Add all rows of a note to `rows`. `known` is what the index has of it."""
        hidden = self._hidden_reason_of(rows.db, note)
        private = private_reason(note.path, note.note, self.private)
        known_id = None if known is None else known.id
        note_id = notes.put(rows, known_id, note, hidden, private)

        if hidden is not None:
            remove_text(rows.db, note_id)
            return
        is_new = known is None
        is_private = private is not None
        without_vector = put_text(rows, note_id, note, new=is_new, private=is_private)
        if self.waiting is not None:
            self.waiting.keep(note_id, without_vector)

    def write_note(self, rows: Rows, note: ParsedNote, known: Row | None) -> None:
        """Write all rows of a note in place of those it has. A note that is too large gets none."""
        if self.skip_if_large(note.path, note.stat.size):
            self.remove_at(rows.db, note.path)
            return
        self.skipped.pop(note.path, None)
        self.put_note(rows, note, known)
        rows.write()

    def remove_at(self, db: Connection, path: str) -> None:
        """Remove the note that has a path now.

        Another process may have given a new path to the note that had it before.
        """
        known = notes.known(db, path)
        if known is not None:
            remove_text(db, known.id)
            notes.remove(db, known.id)

    # Conflict copies

    def rejudge_copies(self, rows: Rows, originals: Collection[str]) -> list[str]:
        """Write the conflict copies of some notes again if they are judged otherwise now.

        Returns the paths of the copies that were written. A copy that cannot be read stays as it is.
        """
        rewritten = []
        for path in notes.copies_of(rows.db, originals):
            known = notes.known(rows.db, path)
            if known is None:
                continue
            is_hidden_by_settings = self.hidden_reason(path) is not None and not known.is_copy
            if is_hidden_by_settings:
                continue

            copy = self.read(path)
            if not isinstance(copy, ParsedNote):
                continue
            if self._hidden_reason_of(rows.db, copy) != known.hidden:
                self.write_note(rows, copy, known)
                rewritten.append(path)
        return rewritten

    def _hidden_reason_of(self, db: Connection, note: ParsedNote) -> str | None:
        """Return why a note is left out of recall: by the settings, or as a conflict copy."""
        reason = self.hidden_reason(note.path)
        if reason is not None:
            return reason

        copy = notes.copy_at(db, note.path)
        if copy is None:
            return None
        name, original_path = copy
        if name.certain or self._is_copy_of(note.note, original_path):
            return name.reason
        return None

    def _is_copy_of(self, note: Note, original_path: str) -> bool:
        """Return whether the contents of a note show that it is a copy of another."""
        try:
            file = self.vault.read(original_path)
            original = read_note(file.data)
        except (SimplememError, OSError):
            return False
        if _have_different_identities(note, original):
            return False
        return are_similar(note.text, original.text)


def _have_different_identities(note: Note, other: Note) -> bool:
    """Return whether the properties of two notes say that neither is a copy of the other."""
    for key in _IDENTITY_PROPERTIES:
        value = note.text_property(key)
        other_value = other.text_property(key)
        if value and other_value and value != other_value:
            return True
    return False
