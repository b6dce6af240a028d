"""Merge two versions of a text line by line, by the rules of diff3. Pure.

A change that only one side made is taken from that side. Where both sides changed the same place
differently, both texts are kept between the conflict marks that git uses.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from simplemem.note.diff import match_lines
from simplemem.note.words import LINE_END, newline_of

# A line with its end, which the last line of a text may lack.
LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")


class Merged(NamedTuple):
    """The merged text, and in how many places the sides conflict."""

    text: str
    conflicts: int

    @property
    def is_clean(self) -> bool:
        """Whether there is no conflict."""
        return self.conflicts == 0


class _Chunk(NamedTuple):
    """The lines between two cuts, of each of the three texts."""

    base: list[str]
    current: list[str]
    other: list[str]


class _Cut(NamedTuple):
    """A place between lines that the three texts have in common, as an index into each."""

    base: int
    current: int
    other: int


def take_only_change(base: str | None, current: str, other: str) -> str | None:
    """Return the changed text if at most one side changed it, or both did alike.

    Returns None if the sides changed it differently. `base` is None if it is not known; then only
    two equal texts give a text.
    """
    if other in (current, base):
        return current
    if current == base:
        return other
    return None


def merge_lines(
    base: str | None,
    current: str,
    other: str,
    names: tuple[str, str],
    *,
    both: bool,
) -> Merged:
    """Merge the current and the other text line by line. Never raises.

    Lines are compared without their ends, so a side that was saved with other line ends has not
    changed every line. Without a base, nothing counts as deleted. `names` of the current and the
    other side are written into the conflict marks. With `both` and a base, lines that the two sides
    added in the same place are kept from both, without a conflict.
    """
    only_change = take_only_change(base, current, other)
    if only_change is not None:
        return Merged(only_change, 0)

    newline = _choose_newline(base, current, other)
    base_lines = None if base is None else LINE.findall(base)
    current_lines = _split_lines(current, newline)
    other_lines = _split_lines(other, newline)
    keeps_additions = both and base is not None

    lines: list[str] = []
    conflicts = 0
    for chunk in _cut_into_chunks(base_lines, current_lines, other_lines):
        merged_lines = _merge_chunk(chunk, keeps_additions=keeps_additions)
        if merged_lines is None:
            merged_lines = mark_conflict(chunk.current, chunk.other, names, newline)
            conflicts += 1
        lines += merged_lines
    return Merged(_join_lines(lines, newline), conflicts)


def _choose_newline(base: str | None, current: str, other: str) -> str:
    """Return the line end of the merged text: that of the only side that changed it.

    If no side changed it, all have the same. If both changed it differently, or the base is not
    known, the lesser of the two in the order of their characters is returned, so that the result
    does not depend on which side is the current one.
    """
    base_newline = newline_of(base) if base else None
    current_newline = newline_of(current)
    other_newline = newline_of(other)

    only_change = take_only_change(base_newline, current_newline, other_newline)
    return only_change or min(current_newline, other_newline)


def _split_lines(text: str, newline: str) -> list[str]:
    """Return the lines of a text with their ends.

    If its first line ends in another way than `newline`, all lines get that end.
    """
    if newline_of(text) != newline:
        text = LINE_END.sub(newline, text)
    return LINE.findall(text)


def _join_lines(lines: Sequence[str], newline: str) -> str:
    """Join lines. The last line of a text may lack its end, and gets it if others follow."""
    ended_lines = [_end_line(line, newline) for line in lines[:-1]]
    return "".join([*ended_lines, *lines[-1:]])


def _end_line(line: str, newline: str) -> str:
    """Return a line with a line end: its own, or `newline` if it has none."""
    if line.endswith(("\n", "\r")):
        return line
    return line + newline


def _merge_chunk(chunk: _Chunk, *, keeps_additions: bool) -> list[str] | None:
    """Return the merged lines of a chunk; None if the sides conflict.

    With `keeps_additions`, lines that both sides added where the base has none do not conflict.
    """
    base = _without_ends(chunk.base)
    current = _without_ends(chunk.current)
    other = _without_ends(chunk.other)

    if current == other:
        # If only one side ends its last line, the greater of the two is the line with the end.
        return list(map(max, chunk.current, chunk.other))
    if other == base:
        return chunk.current
    if current == base:
        return chunk.other
    if keeps_additions and not chunk.base:
        return _join_additions(chunk.current, chunk.other)
    return None


def _join_additions(current: list[str], other: list[str]) -> list[str]:
    """Return the lines of both sides; between two that both have, the current ones come first.

    Lines that both have come once, where they are in the same order on both sides.
    """
    lines: list[str] = []
    for chunk in _cut_into_chunks(None, current, other):
        lines += chunk.current
        if _without_ends(chunk.current) != _without_ends(chunk.other):
            lines += chunk.other
    return lines


def _cut_into_chunks(
    base: list[str] | None,
    current: list[str],
    other: list[str],
) -> Iterator[_Chunk]:
    """Yield the chunks of three texts in order; together they have all lines.

    Chunks of lines that all three texts share alternate with chunks of the lines between. Without a
    base, the lines that both sides share are taken for it. Line ends are not compared.
    """
    current_keys = _without_ends(current)
    other_keys = _without_ends(other)
    if base is None:
        base = _shared_lines(current_keys, other_keys)

    base_keys = _without_ends(base)
    in_current = match_lines(base_keys, current_keys)
    in_other = match_lines(base_keys, other_keys)

    start = _Cut(0, 0, 0)
    last = _Cut(len(base), len(current), len(other))
    while start != last:
        end = _end_of_shared_lines(start, in_current, in_other)
        if end == start:
            end = _next_shared_line(start, in_current, in_other, last)
        yield _Chunk(
            base[start.base : end.base],
            current[start.current : end.current],
            other[start.other : end.other],
        )
        start = end


def _shared_lines(one: list[str], other: list[str]) -> list[str]:
    """Return the lines of `one` that `other` has too, in the order that both share."""
    positions = match_lines(one, other)
    return [line for line, position in zip(one, positions, strict=True) if position >= 0]


def _end_of_shared_lines(
    start: _Cut,
    in_current: Sequence[int],
    in_other: Sequence[int],
) -> _Cut:
    """Return the cut after the lines that follow `start` in all three texts.

    It is `start` if they share none there. `in_current` and `in_other` have for each line of the
    base its index in that text, or -1.
    """
    # From an index of the base to that of the same line in the other texts, while they run along.
    current_distance = start.current - start.base
    other_distance = start.other - start.base
    end = start.base
    while (
        end < len(in_current)
        and in_current[end] == end + current_distance
        and in_other[end] == end + other_distance
    ):
        end += 1
    return _Cut(end, end + current_distance, end + other_distance)


def _next_shared_line(
    start: _Cut,
    in_current: Sequence[int],
    in_other: Sequence[int],
    last: _Cut,
) -> _Cut:
    """Return the cut before the next line that all three texts share; `last` if there is none.

    `in_current` and `in_other` have for each line of the base its index in that text, or -1.
    """
    for line in range(start.base, last.base):
        if in_current[line] >= 0 and in_other[line] >= 0:
            return _Cut(line, in_current[line], in_other[line])
    return last


def mark_conflict(
    current: list[str],
    other: list[str],
    names: tuple[str, str],
    newline: str,
) -> list[str]:
    """Return the lines of both sides between git's conflict marks, each ended with `newline`.

    `=======` stands between the sides. `names` are those of the current and the other side, as they
    stand behind the outer marks.
    """
    lines = [
        f"<<<<<<< {names[0]}",
        *_without_ends(current),
        "=======",
        *_without_ends(other),
        f">>>>>>> {names[1]}",
    ]
    return [line + newline for line in lines]


def _without_ends(lines: list[str]) -> list[str]:
    """Return the lines without their line ends."""
    return [line.rstrip("\r\n") for line in lines]
