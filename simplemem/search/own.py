"""The index as one author's words: of notes that several wrote, only the lines that are theirs count. Pure but for the
questions it asks the index.

Such a note is found by these lines or not at all, and scores no more than the blocks they stand in. Meaning is compared by
passages and blocks of which most is theirs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Protocol

from simplemem.index.legs import Match
from simplemem.index.text import BLOCK, SHIFT, Place
from simplemem.index.theirs import Theirs
from simplemem.index.vectors import Nearness
from simplemem.note.body import count_lines
from simplemem.search.rank import Legs

_ALL = 1_000_000_000  # rows: every one; a limit would be filled by what others wrote
_STEM = 4  # letters of a word that its forms share


class Asked(Legs, Protocol):
    """What is asked of the index."""

    def cosines(self, query: bytes, places: Iterable[int]) -> dict[int, float]: ...


class OwnLegs:
    """The legs of the index, with notes that several wrote only as far as the author's share goes."""

    def __init__(self, index: Asked, theirs: Theirs) -> None:
        self._index = index
        self._theirs = theirs

    def leg(self, name: str, expression: str, limit: int, ids: Sequence[int] | None) -> list[Match]:
        assert ids is not None, "a filter by author always leaves certain notes"
        several = [note for note in ids if note in self._theirs.notes]
        others = [note for note in ids if note not in self._theirs.notes]
        own = own_matches(self._index, self._theirs, expression, several)
        if name == "block":
            found = [*(self._index.leg(name, expression, limit, others) if others else ()), *own]
        else:
            earned: dict[int, float] = {}
            for match in own:
                earned[match.note] = earned.get(match.note, 0.0) + match.score
            found = [
                Match(match.note, 0, min(match.score, earned.get(match.note, match.score)))
                for match in self._index.leg(name, expression, limit, sorted([*others, *earned]))
            ]
        return sorted(found, key=lambda match: -match.score)[:limit]

    def nearest(
        self, query: bytes, ids: Sequence[int] | None, limit: int, also: Collection[int]
    ) -> dict[int, Nearness]:
        assert ids is not None, "a filter by author always leaves certain notes"
        notes = self._theirs.notes
        others = [note for note in ids if note not in notes]
        found = self._index.nearest(query, others, limit, [note for note in also if note not in notes])
        places = [place for note in ids if note in notes for place in notes[note].places]
        best: dict[int, tuple[float, float]] = {}  # of passages and of blocks
        for place, cosine in self._index.cosines(query, places).items() if places else ():
            passage, block = best.get(place >> SHIFT, (-1.0, -1.0))
            if place & BLOCK:
                best[place >> SHIFT] = passage, max(block, cosine)
            else:
                best[place >> SHIFT] = max(passage, cosine), block
        for note, (passage, block) in best.items():
            found[note] = Nearness(passage if passage > -1.0 else block, max(passage, block))
        first = sorted(found, key=lambda note: (-found[note].passage, note))[:limit]
        return {note: found[note] for note in {*first, *(found.keys() & set(also))}}


def own_matches(index: Legs, theirs: Theirs, expression: str, notes: Sequence[int]) -> list[Match]:
    """The blocks of notes that several wrote in which lines of the author have words of an expression."""
    if not notes:
        return []
    shared = theirs.blocks_holding(expression)
    return [
        match
        for match in index.leg("block", expression, _ALL, notes)
        if match.place in theirs.notes[match.note].whole or match.place in shared
    ]


def own_place(place: Place | None, passages: Sequence[Place], text: str, words: Sequence[str]) -> Place | None:
    """What of a place is the author's: of several stretches the one with most of the words."""
    if place is None:
        return None
    inside = []
    for each in passages:
        start, stop = max(each.start, place.start), min(each.stop, place.stop)
        if start < stop:
            inside.append(Place(start, stop, each.line + count_lines(text, each.start, start), each.headings))
    beginnings = {word[:_STEM].casefold() for word in words}
    return max(inside, key=lambda each: _held(text[each.start : each.stop], beginnings), default=None)


def _held(text: str, beginnings: Collection[str]) -> int:
    said = text.casefold()
    return sum(beginning in said for beginning in beginnings)
