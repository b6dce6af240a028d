"""What changed between two texts, as a unified diff of bounded size and bounded work. Nothing else."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

_MOST_BYTES = 200_000
_MOST_LINES = 400  # of what is left when the equal head and tail are set aside; difflib is quadratic at worst
_MOST_CHARACTERS = 4_000
WHAT_YOU_HAD = ("what you had", "what is there now")
WHAT_YOU_WANT = ("what you want", "what is there now")
_HUNK = re.compile(r"@@ -(\d+)(,\d+)? \+(\d+)(,\d+)? @@\n")
_SHORTENED = "... (shortened)\n"


def difference(old: bytes | None, new: bytes, names: tuple[str, str], most: int = _MOST_CHARACTERS) -> str:
    """From one text to another, called by their names. Empty when it would be too large to be of use."""
    if old is None or len(old) > _MOST_BYTES or len(new) > _MOST_BYTES:
        return ""
    one, two = lines_of(old), lines_of(new)
    head, tail = alike(one, two)
    # Three lines around the change are shown, so that a reader finds the place.
    start, end_one, end_two = max(head - 3, 0), len(one) - max(tail - 3, 0), len(two) - max(tail - 3, 0)
    one, two = one[start:end_one], two[start:end_two]
    cut = max(len(one), len(two)) > _MOST_LINES
    lines = difflib.unified_diff(one[:_MOST_LINES], two[:_MOST_LINES], *names)
    text = "".join(_moved_down(line, start) for line in lines)
    if cut or len(text) > most:
        text = text[:most].rpartition("\n")[0] + "\n" + _SHORTENED
    return text


def alike(one: Sequence[str], two: Sequence[str]) -> tuple[int, int]:
    """With how many equal lines two texts begin, and with how many of the rest they end."""
    head = 0
    while head < min(len(one), len(two)) and one[head] == two[head]:
        head += 1
    tail = 0
    while tail < min(len(one), len(two)) - head and one[-1 - tail] == two[-1 - tail]:
        tail += 1
    return head, tail


def _moved_down(line: str, by: int) -> str:
    """The head of a hunk as it would stand had the equal lines before it been compared as well."""
    line = line if line.endswith("\n") else line + "\n\\ No newline at end of file\n"
    found = _HUNK.fullmatch(line)
    if found is None:
        return line
    return f"@@ -{int(found[1]) + by}{found[2] or ''} +{int(found[3]) + by}{found[4] or ''} @@\n"


def lines_of(data: bytes) -> list[str]:
    """A text's lines, each with its end, which is `\\n` alone: what else some take for one stands within a line."""
    *lines, last = data.decode("utf-8", "replace").split("\n")
    return [line + "\n" for line in lines] + ([last] if last else [])
