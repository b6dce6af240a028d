"""Cuts the texts of a large note before they are compared."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile
from typing import Final

_MAX_CHARACTERS: Final = 100_000  # of each text that are compared
_LINES_KEPT: Final = 20  # equal lines around the changed part of a large note


def cut_texts(old: str, new: str) -> tuple[str, str, bool]:
    """Return the parts of two texts that are compared, and whether something was left out.

    Of large texts, equal lines at the beginning and the end are left out.
    """
    if max(len(old), len(new)) <= _MAX_CHARACTERS:
        return old, new, False

    old_lines = old.splitlines(keepends=True)
    new_lines = new.splitlines(keepends=True)
    start = _count_equal(old_lines, new_lines)
    shorter = min(len(old_lines), len(new_lines)) - start
    end = min(_count_equal(reversed(old_lines), reversed(new_lines)), shorter)

    first = max(0, start - _LINES_KEPT)
    rest = max(0, end - _LINES_KEPT)
    old_part = "".join(old_lines[first : len(old_lines) - rest])
    new_part = "".join(new_lines[first : len(new_lines) - rest])
    return old_part[:_MAX_CHARACTERS], new_part[:_MAX_CHARACTERS], True


def _count_equal(one: Iterable[str], other: Iterable[str]) -> int:
    """Return how many texts two sequences have in common at their beginning."""
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
