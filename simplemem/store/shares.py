"""One author's share of a note that several wrote: the lines that are theirs, and the passages and blocks these stand in."""

from __future__ import annotations

from dataclasses import dataclass

from simplemem.index.facts import facts_of
from simplemem.index.text import BLOCK, Place, places
from simplemem.index.theirs import Own
from simplemem.note.authors import Authorship, is_by
from simplemem.note.body import count_lines
from simplemem.note.note import read_note
from simplemem.vault.vault import File


@dataclass(frozen=True, slots=True)
class Share:
    """The share, and the author's lines in blocks that others wrote in too: the block, the text, its language."""

    own: Own
    lines: tuple[tuple[int, str, str], ...]


def shares_of(file: File, written: Authorship, note_id: int, wanted: str) -> Share | None:
    """What an author wrote of a note; None when it is all of its body."""
    note = read_note(file.data)
    facts = facts_of(file.path, note, file.entry.mtime_ns)
    text = note.text
    stretches = written.stretches(lambda origin: is_by(origin, wanted), note.header.body_start)
    mine, whole, shown, lines = set[int](), set[int](), list[Place](), list[tuple[int, str, str]]()
    every = True
    for place, unit in places(note_id, facts):
        theirs = [
            (max(start, unit.start), min(stop, unit.stop))
            for start, stop in stretches
            if start < unit.stop and unit.start < stop
        ]
        said = "\n".join(text[start:stop] for start, stop in theirs)
        is_whole = _letters(said) == _letters(unit.text)
        every = every and is_whole
        if is_by(written.of(unit.start, unit.stop), wanted):
            mine.add(place)
        if not place & BLOCK:
            shown += [
                Place(start, stop, unit.line + count_lines(text, unit.start, start), unit.headings)
                for start, stop in theirs
            ]
        elif is_whole:
            whole.add(place)
        elif said.strip():
            lines.append((place, said, facts.language))
    if every and (whole or is_by(written.of_all(), wanted)):
        return None
    shared = frozenset(place for place, _, _ in lines)
    own = Own(file.sha256, frozenset(mine), frozenset(whole), shared, tuple(shown))
    return Share(own, tuple(lines))


def _letters(text: str) -> int:
    return sum(map(len, text.split()))
