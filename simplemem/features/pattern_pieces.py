"""Compile patterns of a file that are put together from named pieces. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_PIECE: Final = re.compile(r"\(\?&(\w+)\)")
_PIECE_IN_BRACES: Final = re.compile(r"\{([a-z_]+)\}")


def compile_pattern(source: str, pieces: Mapping[str, str]) -> re.Pattern[str]:
    """Return a pattern of a file, without line breaks and indentation.

    "(?&name)" in the source is replaced by the piece of that name, also within pieces. Raises
    KeyError for a name that `pieces` does not have.
    """
    while "(?&" in source:
        source = _PIECE.sub(lambda piece: pieces[piece[1]], source)
    lines = [line.lstrip() for line in source.splitlines()]
    return re.compile("".join(lines))


def fill_braces(source: str, pieces: Mapping[str, str]) -> str:
    """Return a pattern in which the text of a piece replaces each `{name}`, also within pieces.

    Raise KeyError for a name that `pieces` does not have.
    """
    while True:
        filled = _PIECE_IN_BRACES.sub(lambda piece: pieces[piece[1]], source)
        if filled == source:
            return filled
        source = filled
