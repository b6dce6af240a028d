"""The path of a note or attachment in a vault: which texts are valid paths, and their parts."""

from __future__ import annotations

import sys

from simplemem.errors import Invalid
from simplemem.note.names import is_device

Parts = tuple[str, ...]
"""The components of a path, outermost folder first; () is the vault itself."""

MAX_PATH_PARTS = 128  # a folder vault keeps each folder on the way open

_CONTROL_CHARACTERS = frozenset(map(chr, range(32)))
_NOT_ON_WINDOWS = frozenset('<>:"|?*') | _CONTROL_CHARACTERS


def check_path(path: str, *, windows: bool = sys.platform == "win32") -> Parts:
    """Return the components of the path of a note or attachment.

    Raises Invalid if the path could lead out of the vault, or to a hidden file.
    """
    parts = tuple(path.split("/"))
    problem = _problem_with(path, parts, windows)
    if problem:
        hint = "Give a path inside the vault, such as folder/note.md."
        message = f"{path[:200]!r} is not a valid path in the vault: {problem}"
        raise Invalid(message, hint=hint)
    return parts


def _problem_with(path: str, parts: Parts, windows: bool) -> str:
    """Return why a path is not valid, "" if it is."""
    if "\0" in path or "\\" in path:
        return "it contains a NUL or a backslash"
    if "" in parts:
        return "it is empty, is absolute or has an empty part"
    if len(parts) > MAX_PATH_PARTS:
        return "it has too many nested folders"
    if path[0] == "." or "/." in path:
        return "a part of it starts with a dot, and the vault does not include such files"
    if not is_unicode(path):
        return "it is not valid Unicode"
    if windows and not all(map(_is_windows_name, parts)):
        return (
            "Windows does not allow a part of it as a name, "
            "or reads it as a device, a stream or another file"
        )
    return ""


def _is_windows_name(name: str) -> bool:
    """Return whether Windows takes a name for exactly the file of this name."""
    ends_well = name[-1] not in ". "
    return ends_well and _NOT_ON_WINDOWS.isdisjoint(name) and not is_device(name)


def is_path(path: str) -> bool:
    """Return whether `check_path` accepts a path."""
    parts = tuple(path.split("/"))
    return not _problem_with(path, parts, sys.platform == "win32")


def parent(path: str) -> Parts:
    """Return the folder of a vault path, () for the root."""
    return tuple(path.split("/")[:-1])


def is_unicode(text: str) -> bool:
    """Return whether a name is valid Unicode. Python keeps invalid bytes as lone surrogates."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
