"""Texts that were just indexed and wait for their vectors, kept in memory so that no note is read twice.

A convenience with a bound: what finds no room here is read from its note again when its turn comes.
"""

from __future__ import annotations

import threading

MOST_CHARACTERS = 40_000_000


class Waiting:
    """By note: the hash its text had, and the places that need a vector with what to embed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._texts: dict[int, tuple[str, list[tuple[int, str]]]] = {}
        self._characters = 0

    def keep(self, note_id: int, sha256: str, rows: list[tuple[int, str]]) -> None:
        """Remember a note's texts, if there is room."""
        size = sum(len(text) for _, text in rows)
        with self._lock:
            self._forget(note_id)
            if rows and self._characters + size <= MOST_CHARACTERS:
                self._texts[note_id] = (sha256, rows)
                self._characters += size

    def take(self, note_id: int) -> tuple[str, list[tuple[int, str]]] | None:
        """A note's texts, once."""
        with self._lock:
            return self._forget(note_id)

    def _forget(self, note_id: int) -> tuple[str, list[tuple[int, str]]] | None:
        found = self._texts.pop(note_id, None)
        if found is not None:
            self._characters -= sum(len(text) for _, text in found[1])
        return found
