"""File names of entities, and the links that relations have to them. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Final

from simplemem.features.graph.literals import format_literal, is_plain
from simplemem.features.graph.page import FOLDER
from simplemem.note.names import legal_name, name_of

_MAX_NAME_IN_LINK: Final = 120  # characters
_MAX_NAME_IN_PATH: Final = 120  # bytes
_DIGEST_LENGTHS: Final = (12, 24, 64)  # tried in turn, until no other file has the name
_NOT_IN_TARGET: Final = frozenset("[]|#")
_NOT_IN_SHOWN_NAME: Final = frozenset("[]|#^")


def _is_never_taken(path: str) -> bool:  # noqa: ARG001
    """Return that no other file has a path."""
    return False


def path_for_entity(
    name: str, is_taken: Callable[[str], bool] = _is_never_taken, owner: str = ""
) -> str:
    """Return the path of the note for a new entity; `is_taken` says whether another file has it.

    The file has the entity's name if every system and every link can carry it and no other file has
    it, or else a similar name with a digest, which differs between users.
    """
    path = f"{FOLDER}/{name}.md"
    if fits_in_path(name) and not is_taken(path):
        return path

    identity = f"{owner}\0{name}" if owner else name
    digest = hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()
    readable = _readable_part(name)
    candidates = (f"{FOLDER}/{readable}~{digest[:length]}.md" for length in _DIGEST_LENGTHS)
    return next(path for path in candidates if not is_taken(path))


def _readable_part(name: str) -> str:
    """Return a legal file name that is similar to the name of an entity."""
    encodable = name.replace("~", "-").encode("utf-8", "replace").decode()
    legal = legal_name(encodable).encode()
    return legal[:_MAX_NAME_IN_PATH].decode("utf-8", "ignore").rstrip(" .")


def fits_in_path(name: str) -> bool:
    """Return whether a file can have exactly this name. Names with a tilde are left for digests."""
    if "~" in name or not name.isprintable():
        return False
    return legal_name(name) == name == name_of(name)


def format_link(target: str, name: str) -> str:
    """Return a link that shows a name, or the name as a literal if no link can have the target.

    A link that cannot show the name shows its target.
    """
    if _NOT_IN_TARGET & set(target):
        return format_literal(name)

    is_short = len(name) <= _MAX_NAME_IN_LINK
    can_show = is_short and is_plain(name) and not _NOT_IN_SHOWN_NAME & set(name)
    if name != target and can_show:
        return f"[[{target}|{name}]]"
    return f"[[{target}]]"
