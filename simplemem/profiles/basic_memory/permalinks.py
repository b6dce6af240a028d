"""Permalinks as basic-memory makes them of paths, and the paths that it refuses."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Final

_LETTERS: Final = str.maketrans(
    {
        "ß": "ss",
        "ẞ": "ss",
        "ø": "o",
        "Ø": "o",
        "æ": "ae",
        "Æ": "ae",
        "œ": "oe",
        "Œ": "oe",
        "ł": "l",
        "Ł": "l",
        "đ": "d",
        "Đ": "d",
        "ð": "d",
        "þ": "th",
        "ı": "i",
        "'": "",
        "’": "",
        "‘": "",
        "`": "",
    }
)
"""Letters that Unicode does not decompose. Letters of other scripts stay as they are."""

_WORD_BOUNDARY: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SEPARATORS: Final = re.compile(r"[^\w./]++|_++")
_HYPHENS: Final = re.compile(r"--++")
_OUTSIDE: Final = re.compile(r"(?:^|/)\.\.(?:/|$)|^~|^[A-Za-z]:|\\|//")


@lru_cache(1 << 16)
def slug(path: str) -> str:
    """Return the permalink of a path: lower case without accents, words joined by hyphens.

    An ending `.md` and apostrophes are left out, and slashes and dots stay. Any text has one; that
    of "" is "".
    """
    decomposed = unicodedata.normalize("NFKD", path.removesuffix(".md").translate(_LETTERS))
    letters = "".join(char for char in decomposed if not unicodedata.combining(char))
    words = _WORD_BOUNDARY.sub("-", letters)

    lowered = unicodedata.normalize("NFC", words).lower()
    hyphenated = _SEPARATORS.sub("-", lowered)
    parts = (_HYPHENS.sub("-", part).strip("-") for part in hyphenated.split("/"))
    return "/".join(parts)


def is_outside(place: str) -> bool:
    """Return whether a path or memory:// address could lead out of the project.

    It could if it has a part `..`, a backslash or a double slash, or begins with `~` or a drive.
    """
    return _OUTSIDE.search(place.removeprefix("memory://")) is not None
