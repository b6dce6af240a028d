"""Collect the tokens of notes, from which a segment of the term index is made. Needs no numpy."""

from __future__ import annotations

import itertools
from array import array

from simplemem.index.terms.tokens import NoteTokens


class _Numbers(dict[str, int]):
    """A number for each different term, in the order of their first occurrence."""

    def __missing__(self, term: str) -> int:
        number = self[term] = len(self)
        return number


class SegmentBuilder:
    """The tokens of some notes, as numbers. Keeps each different term once."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = _Numbers()
        self.tokens = array("I")  # of all texts, one behind the other
        self.note_ids: list[int] = []
        self.block_counts: list[int] = []
        self.word_counts = array("I")  # of each text
        self.extra_counts = array("I")
        self.text_keys = array("Q")  # of each block

    def add(self, note: NoteTokens) -> None:
        """Add a note. A note must not be added twice."""
        self.note_ids.append(note.note_id)
        self.block_counts.append(len(note.blocks))
        self.text_keys.extend(note.text_keys or [0] * len(note.blocks))
        for text in itertools.chain((note.title, note.summary), note.blocks):
            self.word_counts.append(len(text.words))
            self.extra_counts.append(len(text.extras))
            self.tokens.extend(map(self.numbers.__getitem__, text.words))
            if text.extras:
                self.tokens.extend(map(self.numbers.__getitem__, text.extras))
