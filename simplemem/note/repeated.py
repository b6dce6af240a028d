"""Keys that stand twice in a header, for which it has no properties at all (obsidian.md §3.1). Pure.

Two programs that each add a line leave such headers behind. Where both lines say the same, the later can go; where they
differ, only a person knows which one is meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from simplemem.errors import Unreadable
from simplemem.note.header import Fences, find_fences, read_with_places
from simplemem.note.yaml_read import RefusedError, read_yaml
from simplemem.note.yaml_write import same

_LINE: Final = re.compile(r"[^\r\n]*+(?:\r\n|\r|\n|\Z)")
_NEXT_LINE: Final = re.compile(r"\r\n|\r|\n")
# What cannot begin a property: white space, a comment, an item of the list above, a bracket that ends one.
_NO_KEY: Final = frozenset(" \t\r\n#-]}")


@dataclass(frozen=True, slots=True)
class Repeated:
    """A key that is there again, with the lines of the file on which it stands; `equal` when both say the same."""

    key: str
    first_line: int
    line: int
    equal: bool


@dataclass(frozen=True, slots=True)
class _Entry:
    key: str
    value: Any
    start: int
    end: int  # behind its last line; comments and blank lines below belong to what follows


def repeated_keys(text: str) -> tuple[Repeated, ...]:
    """The keys that stand twice or more; none where the header is broken in another way."""
    fences = find_fences(text)
    entries = _entries(text, fences) if fences is not None else None
    if entries is None:
        return ()
    first: dict[str, _Entry] = {}
    found = []
    for entry in entries:
        there = first.setdefault(entry.key, entry)
        if there is not entry:
            equal = same(there.value, entry.value)
            found.append(Repeated(entry.key, _line_of(text, there.start), _line_of(text, entry.start), equal))
    return tuple(found)


def without_repeated(text: str) -> str:
    """The note with each such key where it stands first. Unreadable where two of them differ, or more is wrong."""
    fences = find_fences(text)
    entries = _entries(text, fences) if fences is not None else None
    if fences is None or entries is None:
        raise Unreadable("The header is broken in another way.", hint="Mend it in an editor.")
    kept: dict[str, Any] = {}
    pieces, at = [], 0
    for entry in entries:
        if entry.key not in kept:
            kept[entry.key] = entry.value
        elif same(kept[entry.key], entry.value):
            pieces.append(text[at : entry.start])
            at = entry.end
        else:
            raise Unreadable(f"{entry.key!r} is there twice, with two values.", hint="Keep one of them.")
    changed = "".join([*pieces, text[at:]])
    now = read_with_places(changed)
    if now.header.problem is not None or not same(dict(now.header.properties), kept):
        raise Unreadable("The header is broken in another way as well.", hint="Mend it in an editor.")
    if changed[now.header.body_start :] != text[fences.body :]:
        raise Unreadable("The header does not end where it seems to.", hint="Mend it in an editor.")
    return changed


def _entries(text: str, fences: Fences) -> list[_Entry] | None:
    """The properties one by one, None where they are not lines that can be read one by one."""
    found = []
    try:
        for start, end, stop in _spans(text, fences):
            root = read_yaml(text, start, end).root
            if root is None or root.style != ":" or len(root.value) != 1:
                return None
            ((key, value),) = root.value.items()
            found.append(_Entry(key, value, start, stop))
    except RefusedError:
        return None
    return found


def _spans(text: str, fences: Fences) -> Iterator[tuple[int, int, int]]:
    """Where each property begins, where the next does, and where its own last line ends."""
    start, stop, at = -1, -1, fences.start
    while at < fences.end:
        line = _LINE.match(text, at, fences.end)
        assert line is not None
        if text[at] not in _NO_KEY:
            if start >= 0:
                yield start, at, stop
            start = at
        if line[0].strip() and text[at] != "#":
            stop = line.end()
        at = line.end()
    if start >= 0:
        yield start, fences.end, stop


def _line_of(text: str, offset: int) -> int:
    return 1 + sum(1 for _ in _NEXT_LINE.finditer(text, 0, offset))
