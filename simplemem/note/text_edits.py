"""Edits of a text: parts that are replaced, given by their offsets. Pure."""

from __future__ import annotations

from collections.abc import Iterable

Edit = tuple[int, int, str]  # replace text[start:end] by the string


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """Return a text with edits applied, which may come in any order but must not overlap.

    All offsets are those of the unchanged text. Overlaps are not noticed.
    """
    pieces: list[str] = []
    position = 0
    for start, end, replacement in sorted(edits):
        pieces += [text[position:start], replacement]
        position = end

    pieces.append(text[position:])
    return "".join(pieces)
