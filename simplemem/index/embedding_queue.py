"""The texts of notes that were just indexed and wait for their vectors."""

from __future__ import annotations

import threading
from typing import Final

_MAX_CHARACTERS: Final = 40_000_000  # of the texts in memory


class EmbeddingQueue:
    """Texts that wait for their vectors, by note, so that no note is read a second time.

    Several threads may use it. Guards the number of characters: a note whose texts have no room is
    left out, and its file is read again when its vectors are computed.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._texts: dict[int, list[tuple[int, str]]] = {}
        self._characters = 0

    def keep(self, note_id: int, texts: list[tuple[int, str]]) -> None:
        """Store the texts of a note, with the ids of their chunks, if there is room."""
        size = sum(len(text) for _, text in texts)
        self.take(note_id)
        with self._lock:
            has_room = self._characters + size <= _MAX_CHARACTERS
            if texts and has_room:
                self._texts[note_id] = texts
                self._characters += size

    def take(self, note_id: int) -> list[tuple[int, str]] | None:
        """Remove and return the texts of a note; None if the queue does not have them."""
        with self._lock:
            texts = self._texts.pop(note_id, None)
            if texts is not None:
                self._characters -= sum(len(text) for _, text in texts)
            return texts
