"""What one client has read: the hash of each note's text that it knows, so that it overwrites no text it has not seen."""

from __future__ import annotations

import threading
from collections import OrderedDict
from contextlib import suppress
from typing import TYPE_CHECKING

from simplemem.errors import Conflict, SimplememError
from simplemem.note.body import count_lines
from simplemem.note.names import path_of
from simplemem.note.words import counted

if TYPE_CHECKING:
    from simplemem.memory import Memory, Saved
    from simplemem.store import EnhancedStore

_MAX_NOTES = 2000
_MAX_STEP = 1000  # notes that one own change is looked through for
_SHOWN_DIGITS = 12


class Session:
    """The notes that one client has read or written in a session, by path. Safe to use from several threads."""

    def __init__(self) -> None:
        self._hashes: OrderedDict[str, str] = OrderedDict()
        self._lock = threading.Lock()

    def known_hash(self, path: str) -> str | None:
        """Return the hash of the text that the client last read at this path, or None if it read none."""
        with self._lock:
            return self._hashes.get(path)

    def record_read(self, memory: Memory) -> None:
        """Record that the client was shown the current text of a note, or a part of it with its hash."""
        self.record_hash(memory.path, memory.sha256)

    def record_whole_write(self, saved: Saved) -> None:
        """Record that the client wrote the whole text of a note, which it therefore knows."""
        self.record_hash(saved.path, saved.sha256)

    def record_change(self, saved: Saved) -> None:
        """Record a change that the client made to part of a note.

        The client knows the result only if it knew the text that was changed: an append that follows
        somebody else's edit does not show the client that edit.
        """
        if saved.previous_sha256 is not None:
            self._follow(saved.path, saved.path, saved.previous_sha256, saved.sha256)

    def record_step(self, store: EnhancedStore, version: str) -> None:
        """Record a change of several notes, such as a move that rewrote links, by its version."""
        if not version:
            return
        for entry in store.history(version, limit=_MAX_STEP):
            old_path = path_of(entry.name)
            new_path = path_of(entry.new_name) if entry.new_name else old_path
            self._follow(old_path, new_path, entry.before, entry.sha256)

    def _follow(self, old_path: str, new_path: str, before: str | None, after: str | None) -> None:
        with self._lock:
            known = self._hashes.get(old_path)
            if known is None:
                return
            del self._hashes[old_path]
            if after is not None:
                self._hashes[new_path] = after if known == before else known

    def record_hash(self, path: str, sha256: str) -> None:
        """Record the hash of the text that the client knows at a path. The oldest of very many are forgotten."""
        with self._lock:
            self._hashes[path] = sha256
            self._hashes.move_to_end(path)
            while len(self._hashes) > _MAX_NOTES:
                self._hashes.popitem(last=False)


def describe_replaced(store: EnhancedStore, name: str, previous_sha256: str) -> str:
    """Say which text a write without a hash replaced, for a client that had not read the note."""
    return f"this replaced a text that was not read in this session: {text_replaced(store, name, previous_sha256)}"


def text_replaced(store: EnhancedStore, name: str, previous_sha256: str) -> str:
    """Say how long a text was that a write replaced, who made it, and its hash."""
    facts = []
    with suppress(SimplememError):  # the text may no longer be kept; the write has happened all the same
        replaced = store.read(name, version=previous_sha256)
        facts.append(counted(_number_of_lines(replaced.content), "line"))
    with suppress(SimplememError):
        facts.append(_last_author(store, name, previous_sha256))
    facts.append(f"sha256 {previous_sha256[:_SHOWN_DIGITS]}")
    return ", ".join(facts)


def _number_of_lines(text: str) -> int:
    """Count the lines of a note's text. A last one without a line end counts too."""
    ends = count_lines(text, 0, len(text))
    is_ended = not text or text.endswith(("\n", "\r"))
    return ends if is_ended else ends + 1


def _last_author(store: EnhancedStore, name: str, sha256: str) -> str:
    """Say who made a text, by the change before the newest one."""
    entries = store.history(name, limit=2)
    earlier = entries[1] if len(entries) > 1 else None
    if earlier is None or earlier.sha256 != sha256:
        return "last changed outside simplemem"
    return f"last changed by {earlier.who or 'a program'} at {earlier.when}"


def replaced_and_undo(store: EnhancedStore, name: str, previous_sha256: str, version: str, where: str = "") -> str:
    """Say what a write replaced and how to undo it, for a profile without a tool that undoes.

    `where` says in which folder the command is given, if that is not the vault.
    """
    replaced = describe_replaced(store, name, previous_sha256)
    return f"{replaced[0].upper()}{replaced[1:]}. Undo it with `simplemem undo {version}`{where}."


def without_offer(error: Conflict, hint: str) -> Conflict:
    """Return a conflict with another hint and without a merge, for a profile whose tools take no hash."""
    details = error.details
    return Conflict(
        error.message, current_sha256=details.get("current_sha256"), diff=details.get("diff", ""), hint=hint
    )
