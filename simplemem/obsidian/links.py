"""Resolve links as Obsidian does: which file of the vault a link means. Pure.

docs/internals/links.md states the rules. Names are compared by `compare_key`, so letter case and
the normal form of Unicode make no difference.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from simplemem.note.names import compare_key

LinkFormat = Literal["shortest", "relative", "absolute"]
"""How a vault writes new links, as Obsidian's setting `newLinkFormat` has it."""

FilesNamed = Callable[[str], Sequence[str]]
"""Returns the vault paths of all files with a name, by the key of the name ("note.md")."""


class Resolution(NamedTuple):
    """The file that a link means, None if there is none, and the files that it could mean equally.

    `ambiguous` includes the file that was chosen; it is empty if the choice was clear.
    """

    path: str | None
    ambiguous: tuple[str, ...] = ()


def name_key(path: str) -> str:
    """Return the key by which a file is found: that of the last part of its path."""
    return compare_key(path.rsplit("/", 1)[-1])


def lookup_keys(path: str) -> tuple[str, ...]:
    """Return the keys of all links that could mean a file.

    These are the key of its name and, for a note, the key of its name without `.md`.
    """
    key = name_key(path)
    if key.endswith(".md"):
        return (key, key[:-3])
    return (key,)


def resolve_link(target: str, source: str, files_named: FilesNamed) -> Resolution:
    """Return which file a link with this target means in the note `source`."""
    if not target:
        return Resolution(source)

    candidates = find_candidates(target, files_named)
    if target.startswith(("./", "../")):
        return Resolution(_find_path(join_relative(target, source), candidates))
    if target.startswith("/"):
        return Resolution(_find_path(target.lstrip("/"), candidates))
    if "/" not in target and len(candidates) == 1:
        return Resolution(candidates[0])

    path = _find_path(target, candidates)
    if path is not None:
        return Resolution(path)
    return _find_nearest(target, source, candidates)


def find_candidates(target: str, files_named: FilesNamed) -> Sequence[str]:
    """Return the files whose name is the last part of a target, else those with `.md` behind it."""
    key = name_key(target)
    return files_named(key) or files_named(key + ".md")


def join_relative(target: str, source: str) -> str:
    """Return the path that a relative target states in the note `source`.

    It begins with `..` if it leads out of the vault.
    """
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), target))


def _find_path(path: str, candidates: Sequence[str]) -> str | None:
    """Return the candidate that has exactly this path, with or without `.md`."""
    if not candidates:
        return None

    key = compare_key(path)
    keys = (key, key + ".md")
    return next((candidate for candidate in candidates if compare_key(candidate) in keys), None)


def _find_nearest(target: str, source: str, candidates: Sequence[str]) -> Resolution:
    """Return the nearest of the candidates whose path ends with the target.

    Those below the folder of the source are nearest, then those with shorter paths.
    """
    if "/" in target:
        ending = f"/{compare_key(target)}"
        endings = (ending, f"{ending}.md")
        candidates = [path for path in candidates if compare_key(path).endswith(endings)]
    if not candidates:
        return Resolution(None)

    folder = posixpath.dirname(source)
    folder_key = f"{compare_key(folder)}/" if folder else ""
    ranked = sorted((_distance(path, folder_key), path) for path in candidates)
    least_distance, nearest = ranked[0]
    equals = tuple([path for distance, path in ranked if distance == least_distance])
    if len(equals) == 1:
        return Resolution(nearest)
    return Resolution(nearest, equals)


def _distance(path: str, folder_key: str) -> tuple[bool, int]:
    """Return a key by which paths are sorted, the nearest to a folder first."""
    is_outside = not compare_key(path).startswith(folder_key)
    return is_outside, len(path)
