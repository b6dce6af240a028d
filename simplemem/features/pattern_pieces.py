"""Compile patterns of a file that are put together from named pieces. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_PIECE: Final = re.compile(r"\(\?&(\w+)\)")


def compile_pattern(source: str, pieces: Mapping[str, str]) -> re.Pattern[str]:
    """Return a pattern of a file, without line breaks and indentation.

    "(?&name)" in the source is replaced by the piece of that name, also within pieces. Raises
    KeyError for a name that `pieces` does not have.
    """
    while "(?&" in source:
        source = _PIECE.sub(lambda piece: pieces[piece[1]], source)
    lines = [line.lstrip() for line in source.splitlines()]
    return re.compile("".join(lines))
