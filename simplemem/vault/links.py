"""What a link means, as Obsidian resolves it. Pure: no disk, no SQL. How links are written again is `rewrite.py`.

A link is looked up by the name of a file. `Named` is whatever can answer "which files have this name": the index does it
for the whole vault, a dictionary does it in tests.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from simplemem.note.names import compare_key

Named = Callable[[str], Sequence[str]]
"""From the compare key of a file name ("note.md") to the vault paths of all files so called."""

Via = Literal["self", "relative", "root", "name", "path", "suffix", "none"]


class Resolution(NamedTuple):
    """What a link leads to: a vault path or nothing, by which rule, and the other files it might have meant."""

    path: str | None
    via: Via
    ambiguous: tuple[str, ...] = ()


_NOWHERE = Resolution(None, "none")


def name_key(path: str) -> str:
    """The key a file is found under: the last segment of its path, compared without case and Unicode form."""
    return compare_key(path.rsplit("/", 1)[-1])


def lookup_keys(path: str) -> tuple[str, ...]:
    """The keys of all links that could mean this file: its name, and for a note its name without the extension."""
    key = name_key(path)
    return (key, key[:-3]) if key.endswith(".md") else (key,)


def resolve(target: str, source: str, named: Named) -> Resolution:
    """Where a link with this target in the note `source` leads. obsidian.md §1.4, step for step."""
    if not target:
        return Resolution(source, "self")
    candidates = named(name_key(target)) or named(name_key(target) + ".md")
    if not candidates:
        return _NOWHERE
    if target.startswith(("./", "../")):
        wanted = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        return _exactly(wanted, candidates, "relative")
    if target.startswith("/"):
        return _exactly(target.lstrip("/"), candidates, "root")
    if "/" not in target and len(candidates) == 1:
        return Resolution(candidates[0], "name")
    exact = _exactly(target, candidates, "path")
    if exact.path is not None:
        return exact
    return _nearest(target, source, candidates)


def _exactly(wanted: str, candidates: Sequence[str], via: Via) -> Resolution:
    keys = (compare_key(wanted), compare_key(wanted) + ".md")
    for path in candidates:
        if compare_key(path) in keys:
            return Resolution(path, via)
    return _NOWHERE


def _nearest(target: str, source: str, candidates: Sequence[str]) -> Resolution:
    """Step 6: paths that end with the target, those below the source's folder first, then the shortest."""
    if "/" in target:
        endings = ("/" + compare_key(target), "/" + compare_key(target) + ".md")
        candidates = [path for path in candidates if compare_key(path).endswith(endings)]
        if not candidates:
            return _NOWHERE
    folder = posixpath.dirname(source)
    below = compare_key(folder) + "/" if folder else ""

    def distance(path: str) -> tuple[bool, int]:
        return (not compare_key(path).startswith(below), len(path))

    ranked = sorted(candidates, key=lambda path: (distance(path), path))
    best = ranked[0]
    equal = tuple(path for path in ranked[1:] if distance(path) == distance(best))
    return Resolution(best, "suffix" if "/" in target else "name", (best, *equal) if equal else ())
