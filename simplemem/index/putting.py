"""One note into the tables and out of them again: what was read of its file, and the rules by which it is kept.

Whoever writes here holds a transaction; which notes are put, and when, is decided in `sync` and `reconciling`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import apsw

from simplemem.errors import SimplememError
from simplemem.index import copies, links, notes, text, vectors
from simplemem.index.generations import NEXT, NOW
from simplemem.index.notes import Known, Stat, Understood, stat_of, understood
from simplemem.index.rows import Rows
from simplemem.index.waiting import Waiting
from simplemem.note.copies import is_copy_reason
from simplemem.note.note import read_note
from simplemem.note.privacy import private_by_rule, private_reason
from simplemem.vault.links import Named
from simplemem.vault.vault import File, Vault

Looked = Understood | SimplememError | OSError
"""What came of reading a file: its note, or why it could not be read."""


class Putting:
    """Puts the notes of one vault. `hidden_reason` says which are left out of recall, and why; `private` are the rules by
    which notes are kept private."""

    def __init__(
        self, vault: Vault, hidden_reason: Callable[[str], str | None], max_note_bytes: int, private: Sequence[str]
    ) -> None:
        self.vault = vault
        self.hidden_reason = hidden_reason
        self.max_note_bytes = max_note_bytes
        self.private = tuple(private)
        self.waiting: Waiting | None = Waiting()  # None when nothing will be embedded
        self.skipped: dict[str, str] = {}  # files that are not indexed, and why

    # -- before a note is put

    @staticmethod
    def look(path: str, reading: Callable[[str], File]) -> Looked:
        """Read a file and understand it."""
        file = _file_at(path, reading)
        return _understood(path, file) if isinstance(file, File) else file

    def look_again(self, path: str, reading: Callable[[str], File], known: Known | None) -> Looked | Stat:
        """The same of a file that the index may know as it is: one that was written so shortly before it was read last that
        its time proves nothing. Where its bytes and its date are those, only what the disk says of it is told."""
        file = _file_at(path, reading)
        if not isinstance(file, File):
            return file
        is_known = known is not None and (known.sha256, known.mtime_ns) == (file.sha256, file.entry.mtime_ns)
        if is_known and known is not None and not self.is_judged_otherwise(known):
            return stat_of(file.entry)
        return _understood(path, file)

    def is_judged_otherwise(self, known: Known) -> bool:
        """Whether the settings now say something else of a note whose file is the same."""
        by_rule = private_by_rule(known.path, self.private)
        by_settings = None if is_copy_reason(known.hidden) else known.hidden
        return by_settings != self.hidden_reason(known.path) or (known.private == "rule") != by_rule

    def skip_if_large(self, path: str, size: int) -> bool:
        """Whether a file is too large to be indexed, which is then remembered of it."""
        if size <= self.max_note_bytes:
            return False
        self.skipped[path] = f"{size} bytes; notes over {self.max_note_bytes} are not indexed"
        return True

    # -- rows

    def put_unless_large(self, db: apsw.Connection, read: Understood, named: Named) -> None:
        """Write all rows of a note in place of those it has. One that is too large has none."""
        found = notes.known(db, read.path)
        if not self.skip_if_large(read.path, read.stat.size):
            self.skipped.pop(read.path, None)
            self.put(db, read, named, found)
        elif found is not None:
            self.remove(db, found)

    def put(
        self, db: apsw.Connection, read: Understood, named: Named, found: Known | None, into: Rows | None = None
    ) -> None:
        """Write all rows of a note; `found` is what the index has of it."""
        hidden = self._hidden(db, read)
        facts = read.facts
        private = private_reason(read.path, read.note, self.private)
        new, note_id = found is None, None if found is None else found.id
        note_id = notes.put(db, note_id, read, hidden, private, into)
        if hidden is None:
            missing = text.put(db, note_id, read.path, facts, new=new, private=private is not None, into=into)
            if self.waiting is not None:
                self.waiting.keep(note_id, read.note.sha256, missing)
        else:
            text.remove(db, note_id)
            for shelf in (NOW, NEXT):
                vectors.settle(db, note_id, shelf)
        links.put(db, note_id, read.path, read.note, named, new=new, into=into)

    def judge_copies_of(self, db: apsw.Connection, originals: Collection[str], named: Named) -> list[str]:
        """Put the conflict copies of these notes again where they are judged otherwise now: a copy is one while its note
        is there, and some only while their texts are akin. Returns the paths of those."""
        changed = []
        for path in copies.copies_of(db, originals):
            found = notes.known(db, path)
            if found is None or (self.hidden_reason(path) is not None and not is_copy_reason(found.hidden)):
                continue
            with self.vault.reading() as reading:
                read = self.look(path, reading)
            if isinstance(read, Exception):
                continue  # what was known of it stays
            if self._hidden(db, read) != found.hidden:
                self.put_unless_large(db, read, named)
                changed.append(path)
        return changed

    def remove_at(self, db: apsw.Connection, path: str) -> None:
        """Remove what a path names now: the note it named before may have another name since, by another process."""
        if (found := notes.known(db, path)) is not None:
            self.remove(db, found)

    def remove(self, db: apsw.Connection, found: Known) -> None:
        text.remove(db, found.id)
        links.remove(db, found.id)
        notes.remove(db, found.id)

    def _hidden(self, db: apsw.Connection, read: Understood) -> str | None:
        """Why a note is left out of recall: by the settings, or as a conflict copy."""
        reason = self.hidden_reason(read.path)
        return reason if reason is not None else copies.copy_reason(db, read.path, read.note.text, self._text_at)

    def _text_at(self, path: str) -> str | None:
        try:
            return self.vault.read(path).data.decode("utf-8", "replace")
        except (SimplememError, OSError):
            return None


def _file_at(path: str, reading: Callable[[str], File]) -> File | SimplememError | OSError:
    try:
        return reading(path)
    except (SimplememError, OSError) as error:
        return error


def _understood(path: str, file: File) -> Understood:
    return understood(path, read_note(file.data, file.sha256), stat_of(file.entry))


def is_note(path: str) -> bool:
    return path[-3:].lower() == ".md"
