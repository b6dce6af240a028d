"""Track which text of each note a client has seen, so that it does not overwrite unseen text.

The history names the session of a change, and its sources: what was read in it before.
"""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from simplemem.errors import Conflict, SimplememError
from simplemem.note.names import path_of
from simplemem.note.words import count_lines, format_count

if TYPE_CHECKING:
    from simplemem.models import Hit, Memory, Saved
    from simplemem.store import EnhancedStore

_MAX_NOTES = 2000  # the oldest are forgotten
_MAX_SOURCES = 10
_MAX_CHANGES_SEARCHED = 10  # of a note, for the author of a text
_SHORT_HASH_LENGTH = 12
_ID_BYTES = 6


class Session:
    """The hash of the text that one client last saw of each note, by path. Thread-safe.

    Guards also which sources the client was shown last. `id` is the session's id in the history: no
    two sessions have the same.
    """

    def __init__(self) -> None:
        """Begin with a client that has seen no note."""
        self.id = secrets.token_hex(_ID_BYTES)
        self._hashes: OrderedDict[str, str] = OrderedDict()
        # Names of notes and addresses, the last one shown last.
        self._sources: OrderedDict[str, None] = OrderedDict()
        self._found: OrderedDict[str, None] = OrderedDict()
        self._lock = threading.Lock()

    def sources(self) -> tuple[str, ...]:
        """Return the last 10 sources that the client was shown: names of notes, and addresses.

        Those that it read come first, latest first. Of the notes of which it saw only the passage
        that a search found, as many follow as there is room for: a client that searches for a place
        to write must not push out what it has read.
        """
        with self._lock:
            read = list(reversed(self._sources))
            found = [name for name in reversed(self._found) if name not in self._sources]
        return tuple([*read, *found][:_MAX_SOURCES])

    def record_sources(self, sources: Iterable[str]) -> None:
        """Record that the client was shown these notes or addresses, in this order.

        Of a note, it may have been a part.
        """
        with self._lock:
            _record_latest(self._sources, sources)

    def record_hits(self, hits: Sequence[Hit]) -> None:
        """Record the notes of which a search showed the client a passage. The best hit is first."""
        names = [hit.name for hit in hits if hit.snippet]
        with self._lock:
            _record_latest(self._found, reversed(names))  # the best is recorded last

    def known_hash(self, path: str) -> str | None:
        """Return the hash of the text that the client last saw at this path, or None."""
        with self._lock:
            return self._hashes.get(path)

    def record_read(self, memory: Memory) -> None:
        """Record that the client was shown a note, or a part of it with the hash of the whole."""
        self.record_hash(memory.path, memory.sha256)
        self.record_sources([memory.name])

    def record_whole_write(self, saved: Saved) -> None:
        """Record that the client wrote the whole text of a note, which it therefore knows."""
        self.record_hash(saved.path, saved.sha256)

    def record_change(self, saved: Saved, *, named_hash: bool = False) -> None:
        """Record a change that the client made to part of a note.

        The client knows the result only if it knew the text that was changed: an append that
        follows somebody else's edit does not show the client that edit. With `named_hash`, the
        client named the hash of that text, so it knew the text.
        """
        if named_hash:
            self.record_hash(saved.path, saved.sha256)
        elif saved.previous_sha256 is not None:
            self._follow(saved.path, saved.path, saved.previous_sha256, saved.sha256)

    def record_step(self, store: EnhancedStore, version: str) -> None:
        """Record a change of several notes, such as a move that rewrote links, by its version.

        Of each note, the client knows the new text only if it knew the old one. For "", nothing is
        recorded. Raises NotFound for an unknown version.
        """
        if not version:
            return
        for entry in store.history(version):
            old_path = path_of(entry.name)
            new_path = path_of(entry.new_name) if entry.new_name else old_path
            self._follow(old_path, new_path, entry.before, entry.sha256)

    def _follow(
        self, old_path: str, new_path: str, old_hash: str | None, new_hash: str | None
    ) -> None:
        """Replace what is recorded of a note that changed, was moved, or is gone (`new_hash` None).

        The client knows the new text only if it knew the old one. A note that it has not seen stays
        unknown.
        """
        with self._lock:
            known_hash = self._hashes.pop(old_path, None)
            if known_hash is None or new_hash is None:
                return
            if known_hash == old_hash:
                known_hash = new_hash
            self._hashes[new_path] = known_hash

    def record_hash(self, path: str, sha256: str) -> None:
        """Record the hash of the text that the client knows at a path.

        Of more than 2,000 notes, those that were recorded longest ago are forgotten.
        """
        with self._lock:
            self._hashes[path] = sha256
            self._hashes.move_to_end(path)
            while len(self._hashes) > _MAX_NOTES:
                self._hashes.popitem(last=False)


def _record_latest(shown: OrderedDict[str, None], names: Iterable[str]) -> None:
    """Move names to the end of those that were shown, and forget all but the last 10."""
    for name in names:
        shown[name] = None
        shown.move_to_end(name)
    while len(shown) > _MAX_SOURCES:
        shown.popitem(last=False)


def describe_replaced(store: EnhancedStore, name: str, previous_sha256: str) -> str:
    """Return a warning about a text that was replaced although the client had not read it.

    `previous_sha256` is the hash of this text. Raises nothing if the history no longer has it.
    """
    text = text_replaced(store, name, previous_sha256)
    return f"this replaced a text that was not read in this session: {text}"


def text_replaced(store: EnhancedStore, name: str, previous_sha256: str) -> str:
    """Return the length of a replaced text, its author and its hash, with commas between them.

    What the history no longer has is left out, without an error.
    """
    parts: list[str] = []
    with suppress(SimplememError):  # the history may no longer have the text
        replaced = store.read(name, version=previous_sha256)
        parts.append(format_count(_number_of_lines(replaced.content), "line"))
    with suppress(SimplememError):
        parts.append(_last_author(store, name, previous_sha256))
    parts.append(f"sha256 {previous_sha256[:_SHORT_HASH_LENGTH]}")
    return ", ".join(parts)


def _number_of_lines(text: str) -> int:
    """Return the number of lines of a text. A last one without a line end counts too."""
    ends = count_lines(text, 0, len(text))
    is_ended = not text or text.endswith(("\n", "\r"))
    return ends if is_ended else ends + 1


def _last_author(store: EnhancedStore, name: str, sha256: str) -> str:
    """Return who wrote a text, by the last ten changes of its note, as a part of a sentence.

    `sha256` is the hash of the text. Raises NotFound if there is no such note, and Ambiguous if
    several have this name.
    """
    for change in store.history(name, limit=_MAX_CHANGES_SEARCHED):
        if change.sha256 == sha256:
            return f"last changed by {change.who or 'a program'} at {change.when}"
    return "last changed outside simplemem"


def replaced_and_undo(
    store: EnhancedStore, name: str, previous_sha256: str, version: str, where: str = ""
) -> str:
    """Return that a write replaced a text that was not read, which, and the command that undoes it.

    For a profile without an undo tool. `previous_sha256` is the hash of the replaced text, and
    `version` the version of the write. `where` is put after the command, with a space before it,
    such as " in the folder of the knowledge base"; it is "" if the command is run in the vault.
    """
    replaced = describe_replaced(store, name, previous_sha256)
    return f"{replaced[0].upper()}{replaced[1:]}. Undo it with `simplemem undo {version}`{where}."


def without_offer(error: Conflict, hint: str) -> Conflict:
    """Return a conflict with another hint and without a merge, for tools that take no hash."""
    details = error.details
    return Conflict(
        error.message,
        current_sha256=details.get("current_sha256"),
        diff=details.get("diff", ""),
        hint=hint,
    )
