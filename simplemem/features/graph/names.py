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
# Tried in turn, until no other file has the name. 64 is the whole digest.
_DIGEST_LENGTHS: Final = (12, 24, 64)
_NOT_IN_TARGET: Final = frozenset("[]|#")
_NOT_IN_SHOWN_NAME: Final = frozenset("[]|#^")


def _is_never_taken(path: str) -> bool:  # noqa: ARG001
    """Return False, for callers that do not know which paths are taken."""
    return False


def path_for_entity(
    name: str, is_taken: Callable[[str], bool] = _is_never_taken, owner: str = ""
) -> str:
    """Return the path of the note for a new entity, below the folder of the graph.

    The file has the entity's name if every system and every link can carry it and the path is not
    taken. Otherwise it has a similar name with a digest of the name and the `owner`, so that the
    path differs between users. `is_taken` says whether another file has a path; without it, none
    has. `owner` is "" for an entity of all users.
    """
    path = f"{FOLDER}/{name}.md"
    if fits_in_path(name) and not is_taken(path):
        return path

    identity = name
    if owner:
        identity = f"{owner}\0{name}"
    digest = hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()
    readable = _readable_part(name)

    candidates = (f"{FOLDER}/{readable}~{digest[:length]}.md" for length in _DIGEST_LENGTHS)
    return next(path for path in candidates if not is_taken(path))


def _readable_part(name: str) -> str:
    """Return a legal file name that is similar to the name of an entity, without a tilde."""
    encodable = name.replace("~", "-").encode("utf-8", "replace").decode()
    legal = legal_name(encodable).encode()
    return legal[:_MAX_NAME_IN_PATH].decode("utf-8", "ignore").rstrip(" .")


def fits_in_path(name: str) -> bool:
    """Return whether the file of an entity can have exactly this name, without a digest.

    False for a name with a tilde: only file names with a digest have one.
    """
    if "~" in name or not name.isprintable():
        return False
    return legal_name(name) == name == name_of(name)


def format_link(target: str, name: str) -> str:
    """Return a link in brackets to a note. `target` is what the link resolves by.

    It shows `name`, the name of the note's entity, or only the target if a link cannot show the
    name. If no link can have the target, return the name as a literal.
    """
    if _NOT_IN_TARGET & set(target):
        return format_literal(name)

    is_short = len(name) <= _MAX_NAME_IN_LINK
    can_show = is_short and is_plain(name) and not _NOT_IN_SHOWN_NAME & set(name)
    if name != target and can_show:
        return f"[[{target}|{name}]]"
    return f"[[{target}]]"
