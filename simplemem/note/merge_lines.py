"""Three texts into one, line by line, by the rules of diff3. Pure.

What only one side changed is taken from it, what both changed alike is taken once, and where they differ both stand, marked
as git marks them. Lines are compared without their ends: a side that was saved with other line ends has not changed every
line. Without a base nothing can be told deleted, so what only one side has is kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from simplemem.note.matching import matches

_LINES = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")
NAMES = ("ours", "theirs")


@dataclass(frozen=True, slots=True)
class Merged:
    """A merge and in how many places the sides could not be brought together. 0 means that it is clean."""

    text: str
    conflicts: int

    @property
    def clean(self) -> bool:
        return self.conflicts == 0


@dataclass(frozen=True, slots=True)
class _Chunk:
    """A stretch of each text that stands in the same place. `same`: the same lines but for their ends."""

    base: list[str]
    ours: list[str]
    theirs: list[str]
    same: bool


def merge_lines(base: str | None, ours: str, theirs: str, names: tuple[str, str] = NAMES) -> Merged:
    """One text out of two that began as `base`."""
    if ours == theirs or theirs == base:
        return Merged(ours, 0)
    if ours == base:
        return Merged(theirs, 0)
    newlines = newline_of(ours), newline_of(theirs)
    newline = _of_three(None if base is None else newline_of(base), *newlines)
    parts: list[str] = []
    conflicts = 0
    for found in _chunks(base, ours, theirs):
        if found.same:
            parts += (_of_three(*lines) for lines in zip(found.base, found.ours, found.theirs, strict=True))
            continue
        ours_in, theirs_in = (
            lines if held == newline else [_ended(line, newline) for line in lines]
            for lines, held in zip((found.ours, found.theirs), newlines, strict=True)
        )
        chunk = _Chunk(found.base, ours_in, theirs_in, same=False)
        taken = _taken(chunk, two_way=base is None)
        conflicts += taken is None
        parts += _marked(chunk, names, newline) if taken is None else taken
    # A last line without an end may not be the last any more.
    text = "".join(part if part.endswith(("\n", "\r")) else part + newline for part in parts[:-1]) + "".join(parts[-1:])
    return Merged(text, conflicts)


def newline_of(text: str) -> str:
    """The line end that a text begins with."""
    found = re.search(r"\r\n|\n|\r", text)
    return found.group() if found else "\n"


def lines_of(text: str) -> list[str]:
    """The lines with their ends."""
    return _LINES.findall(text)


def _of_three(base: str | None, ours: str, theirs: str) -> str:
    """Of three spellings the one that was changed; of two changes the same one whichever way round they are given."""
    if ours == base:
        return theirs
    return ours if theirs == base else min(ours, theirs)


def _chunks(base: str | None, ours: str, theirs: str) -> Iterator[_Chunk]:
    mine, yours = lines_of(ours), lines_of(theirs)
    my_keys, your_keys = _keys(mine), _keys(yours)
    if base is None:  # what both have is all that is known of where they began
        found = matches(my_keys, your_keys)
        to_yours = [at for at in found if at >= 0]
        to_mine = [at for at, other in enumerate(found) if other >= 0]
        common = [mine[at] for at in to_mine]
    else:
        common = lines_of(base)
        keys = _keys(common)
        to_mine, to_yours = matches(keys, my_keys), matches(keys, your_keys)
    at = my_at = your_at = 0
    while at < len(common) or my_at < len(mine) or your_at < len(yours):
        end = at
        while end < len(common) and to_mine[end] == my_at + end - at and to_yours[end] == your_at + end - at:
            end += 1
        if end > at:
            count = end - at
            yield _Chunk(common[at:end], mine[my_at : my_at + count], yours[your_at : your_at + count], same=True)
            at, my_at, your_at = end, my_at + count, your_at + count
            continue
        while end < len(common) and (to_mine[end] < 0 or to_yours[end] < 0):
            end += 1
        my_end = to_mine[end] if end < len(common) else len(mine)
        your_end = to_yours[end] if end < len(common) else len(yours)
        yield _Chunk(common[at:end], mine[my_at:my_end], yours[your_at:your_end], same=False)
        at, my_at, your_at = end, my_end, your_end


def _taken(chunk: _Chunk, *, two_way: bool) -> list[str] | None:
    """The lines that a chunk becomes, None where both sides changed it differently."""
    base, ours, theirs = _keys(chunk.base), _keys(chunk.ours), _keys(chunk.theirs)
    if two_way and not (ours and theirs):
        return chunk.ours or chunk.theirs
    if ours == theirs:
        return list(map(max, chunk.ours, chunk.theirs))  # the one with a line end, where only one has it
    if theirs == base:
        return chunk.ours
    return chunk.theirs if ours == base else None


def _marked(chunk: _Chunk, names: tuple[str, str], newline: str) -> list[str]:
    """Both sides between marks; what both begin and end with alike stands outside of them, once."""
    ours, theirs = chunk.ours, chunk.theirs
    my_keys, your_keys = _keys(ours), _keys(theirs)
    shorter = min(len(ours), len(theirs))
    head = next((at for at in range(shorter) if my_keys[at] != your_keys[at]), shorter)
    tail = next((at for at in range(shorter - head) if my_keys[-1 - at] != your_keys[-1 - at]), shorter - head)
    mine, yours = ours[head : len(ours) - tail], theirs[head : len(theirs) - tail]
    return [
        *ours[:head],
        f"<<<<<<< {names[0]}{newline}",
        *mine,
        f"======={newline}",
        *yours,
        f">>>>>>> {names[1]}{newline}",
        *ours[len(ours) - tail :],
    ]


def _keys(lines: Sequence[str]) -> list[str]:
    return [line.rstrip("\r\n") for line in lines]


def _ended(line: str, newline: str) -> str:
    """A line in the line ends of the text it comes into. The last of all may have none."""
    bare = line.rstrip("\r\n")
    return line if bare == line else bare + newline
