"""Which file an entity is kept in: its own name where every system and every link can carry it, else a near one.

The exact name then stands in the note's title. A name of a file is never read back as anything but itself.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Callable
from typing import Final

from simplemem.errors import SimplememError
from simplemem.kinds.graph.page import FOLDER
from simplemem.note.names import check_name, legal_name

_MOST_BYTES: Final = 120  # of the readable part, where more must follow


def file_for(name: str, is_taken: Callable[[str], bool]) -> str:
    """The path of the note for a new entity. `is_taken` says of a path whether a link to its name would be doubtful."""
    if _carries(name):
        path = f"{FOLDER}/{name}.md"
        if not is_taken(path):
            return path
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    readable = legal_name(name.replace("~", "-").encode("utf-8", "replace").decode())
    readable = readable.encode()[:_MOST_BYTES].decode("utf-8", "ignore").rstrip(" .")
    for length in (12, 24, 64):
        path = f"{FOLDER}/{readable}~{digest[:length]}.md"
        if not is_taken(path):
            return path
    raise AssertionError("two names with one SHA-256")


def _carries(name: str) -> bool:
    """Whether the name can be the file's, letter for letter; the tilde is kept for the others."""
    if "/" in name or "~" in name or not name.isprintable() or unicodedata.normalize("NFC", name) != name:
        return False
    try:
        return check_name(name) == name
    except SimplememError:
        return False
