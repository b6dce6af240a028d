"""Keeps the texts of the long notes that were opened last, so that their parts are read once.

Reading an 11 MB note with its links takes seconds. The page asks for one part after the other, and
each needs nothing but the text.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from simplemem.web.markdown.parts import PART_CHARACTERS

_MAX_NOTES: Final = 3
_MAX_CHARACTERS: Final = 24_000_000  # of all texts together


@dataclass(frozen=True, slots=True)
class NoteBody:
    """The text of a note without its header and title. `first_line` is its line in the file."""

    text: str
    first_line: int


class LongNotes:
    """The texts of long notes by the hash of their file. Guards their number and their length.

    May be used by several threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._bodies: OrderedDict[str, NoteBody] = OrderedDict()

    def get(self, key: str) -> NoteBody | None:
        """Return the text for a key, or None. It counts as read last from now on."""
        with self._lock:
            body = self._bodies.get(key)
            if body is not None:
                self._bodies.move_to_end(key)
            return body

    def put(self, key: str, body: NoteBody) -> None:
        """Keep a text of more than one part, and drop those that were read least recently."""
        if len(body.text) <= PART_CHARACTERS:
            return
        with self._lock:
            self._bodies[key] = body
            self._bodies.move_to_end(key)
            while len(self._bodies) > _MAX_NOTES or self._character_count() > _MAX_CHARACTERS:
                self._bodies.popitem(last=False)

    def _character_count(self) -> int:
        """Return the characters of all texts."""
        return sum(len(body.text) for body in self._bodies.values())
