"""The whole difference between a text and a mended one, however long: what is agreed to must have been seen. Pure."""

from __future__ import annotations

import difflib

from simplemem.vault.difference import alike, lines_of

_MOST_LINES = 2_000  # of what differs; beyond that difflib, quadratic at worst, would take too long
_AROUND = 3


def whole_difference(old: bytes, new: bytes, old_name: str, new_name: str) -> str:
    """A unified diff from one text to the other; "" when they are equal."""
    if old == new:
        return ""
    one, two = lines_of(old), lines_of(new)
    head, tail = alike(one, two)
    if len(one) == len(two):
        hunks = _line_by_line(one, two)
    elif max(len(one), len(two)) - head - tail <= _MOST_LINES:
        hunks = list(difflib.unified_diff(one, two, n=_AROUND))[2:]
    else:
        hunks = [f"@@ -{head + 1},{len(one) - head - tail} +{head + 1},{len(two) - head - tail} @@\n"]
        hunks += [f"-{line}" for line in one[head : len(one) - tail]]
        hunks += [f"+{line}" for line in two[head : len(two) - tail]]
    return f"--- {old_name}\n+++ {new_name}\n" + "".join(map(_ended, hunks))


def _line_by_line(one: list[str], two: list[str]) -> list[str]:
    """The hunks of two texts with as many lines: links change within theirs. Linear, however long the note."""
    differing = [k for k, pair in enumerate(zip(one, two, strict=True)) if pair[0] != pair[1]]
    hunks: list[str] = []
    first = 0
    while first < len(differing):
        last = first
        while last + 1 < len(differing) and differing[last + 1] - differing[last] <= 2 * _AROUND:
            last += 1
        start, stop = max(differing[first] - _AROUND, 0), min(differing[last] + _AROUND + 1, len(one))
        hunks.append(f"@@ -{start + 1},{stop - start} +{start + 1},{stop - start} @@\n")
        for k in range(start, stop):
            hunks += [f" {one[k]}"] if one[k] == two[k] else [f"-{one[k]}", f"+{two[k]}"]
        first = last + 1
    return hunks


def _ended(line: str) -> str:
    return line if line.endswith("\n") else line + "\n\\ No newline at end of file\n"
