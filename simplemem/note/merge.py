"""Two versions of a note into one: the header property by property, the body line by line. Pure.

Both sides stamp `modified` and add tags; line by line that would nearly always be a conflict. So where all headers can be
read each property is merged as what it is: lists as sets, of two times the later, of two creations the earlier. Properties
that were set to different things stay as ours has them, and both stand marked at the head of the body, since marks in a
header would make it unreadable.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from simplemem.errors import SimplememError
from simplemem.note.diff import matches
from simplemem.note.header import Header, find_key, read_header
from simplemem.note.properties import remove_property, render_header, set_property
from simplemem.note.yaml_values import same

_LINES = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")
NAMES = ("ours", "theirs")


@dataclass(frozen=True, slots=True)
class Merged:
    """A merge and in how many places the sides could not be brought together. 0 means that it is clean."""

    text: str
    conflicts: int

    @property
    def clean(self) -> bool:
        return self.conflicts == 0


@dataclass(frozen=True, slots=True)
class _Chunk:
    """A stretch of each text that stands in the same place. `same`: the same lines but for their ends."""

    base: list[str]
    ours: list[str]
    theirs: list[str]
    same: bool


def merge_lines(base: str | None, ours: str, theirs: str, names: tuple[str, str] = NAMES) -> Merged:
    """One text out of two that began as `base`."""
    if ours == theirs or theirs == base:
        return Merged(ours, 0)
    if ours == base:
        return Merged(theirs, 0)
    newlines = newline_of(ours), newline_of(theirs)
    newline = _of_three(None if base is None else newline_of(base), *newlines)
    parts: list[str] = []
    conflicts = 0
    for found in _chunks(base, ours, theirs):
        if found.same:
            parts += (_of_three(*lines) for lines in zip(found.base, found.ours, found.theirs, strict=True))
            continue
        ours_in, theirs_in = (
            lines if held == newline else [_ended(line, newline) for line in lines]
            for lines, held in zip((found.ours, found.theirs), newlines, strict=True)
        )
        chunk = _Chunk(found.base, ours_in, theirs_in, same=False)
        taken = _taken(chunk, two_way=base is None)
        conflicts += taken is None
        parts += _marked(chunk, names, newline) if taken is None else taken
    # A last line without an end may not be the last any more.
    text = "".join(part if part.endswith(("\n", "\r")) else part + newline for part in parts[:-1]) + "".join(parts[-1:])
    return Merged(text, conflicts)


def newline_of(text: str) -> str:
    """The line end that a text begins with."""
    found = re.search(r"\r\n|\n|\r", text)
    return found.group() if found else "\n"


def lines_of(text: str) -> list[str]:
    """The lines with their ends."""
    return _LINES.findall(text)


def _of_three(base: str | None, ours: str, theirs: str) -> str:
    """Of three spellings the one that was changed; of two changes the same one whichever way round they are given."""
    if ours == base:
        return theirs
    return ours if theirs == base else min(ours, theirs)


def _chunks(base: str | None, ours: str, theirs: str) -> Iterator[_Chunk]:
    mine, yours = lines_of(ours), lines_of(theirs)
    my_keys, your_keys = _keys(mine), _keys(yours)
    if base is None:  # what both have is all that is known of where they began
        found = matches(my_keys, your_keys)
        to_yours = [at for at in found if at >= 0]
        to_mine = [at for at, other in enumerate(found) if other >= 0]
        common = [mine[at] for at in to_mine]
    else:
        common = lines_of(base)
        keys = _keys(common)
        to_mine, to_yours = matches(keys, my_keys), matches(keys, your_keys)
    at = my_at = your_at = 0
    while at < len(common) or my_at < len(mine) or your_at < len(yours):
        end = at
        while end < len(common) and to_mine[end] == my_at + end - at and to_yours[end] == your_at + end - at:
            end += 1
        if end > at:
            count = end - at
            yield _Chunk(common[at:end], mine[my_at : my_at + count], yours[your_at : your_at + count], same=True)
            at, my_at, your_at = end, my_at + count, your_at + count
            continue
        while end < len(common) and (to_mine[end] < 0 or to_yours[end] < 0):
            end += 1
        my_end = to_mine[end] if end < len(common) else len(mine)
        your_end = to_yours[end] if end < len(common) else len(yours)
        yield _Chunk(common[at:end], mine[my_at:my_end], yours[your_at:your_end], same=False)
        at, my_at, your_at = end, my_end, your_end


def _taken(chunk: _Chunk, *, two_way: bool) -> list[str] | None:
    """The lines that a chunk becomes, None where both sides changed it differently."""
    base, ours, theirs = _keys(chunk.base), _keys(chunk.ours), _keys(chunk.theirs)
    if two_way and not (ours and theirs):
        return chunk.ours or chunk.theirs
    if ours == theirs:
        return list(map(max, chunk.ours, chunk.theirs))  # the one with a line end, where only one has it
    if theirs == base:
        return chunk.ours
    return chunk.theirs if ours == base else None


def _marked(chunk: _Chunk, names: tuple[str, str], newline: str) -> list[str]:
    """Both sides between marks; what both begin and end with alike stands outside of them, once."""
    ours, theirs = chunk.ours, chunk.theirs
    my_keys, your_keys = _keys(ours), _keys(theirs)
    shorter = min(len(ours), len(theirs))
    head = next((at for at in range(shorter) if my_keys[at] != your_keys[at]), shorter)
    tail = next((at for at in range(shorter - head) if my_keys[-1 - at] != your_keys[-1 - at]), shorter - head)
    mine, yours = ours[head : len(ours) - tail], theirs[head : len(theirs) - tail]
    return [
        *ours[:head],
        f"<<<<<<< {names[0]}{newline}",
        *mine,
        f"======={newline}",
        *yours,
        f">>>>>>> {names[1]}{newline}",
        *ours[len(ours) - tail :],
    ]


def _keys(lines: Sequence[str]) -> list[str]:
    return [line.rstrip("\r\n") for line in lines]


def _ended(line: str, newline: str) -> str:
    """A line in the line ends of the text it comes into. The last of all may have none."""
    bare = line.rstrip("\r\n")
    return line if bare == line else bare + newline


_LATER = ("modified", "updated", "date modified", "last_modified")
_EARLIER = ("created", "date created")
_BOM = "\ufeff"
_ABSENT = object()
_MOST_ITEMS = 1_000  # of lists that are merged as sets
_TAG_GAP = re.compile(r"[,\s]+")


def merge(base: str | None, ours: str, theirs: str, names: tuple[str, str] = NAMES) -> Merged:
    """One note out of two that began as `base`; without a base nothing is taken for deleted."""
    if ours == theirs or theirs == base:
        return Merged(ours, 0)
    if ours == base:
        return Merged(theirs, 0)
    marks = [text.startswith(_BOM) for text in (ours, theirs, *([] if base is None else [base]))]
    bom = marks[0] if base is None or marks[0] != marks[2] else marks[1]
    merged = _without_mark(base and base.removeprefix(_BOM), ours.removeprefix(_BOM), theirs.removeprefix(_BOM), names)
    return Merged(_BOM + merged.text, merged.conflicts) if bom else merged


def _without_mark(base: str | None, ours: str, theirs: str, names: tuple[str, str]) -> Merged:
    texts = (base, ours, theirs)
    headers = [None if text is None else read_header(text) for text in texts]
    if all(header is None or header.style == "none" for header in headers):
        return merge_lines(base, ours, theirs, names)
    if not all(header is None or header.editable for header in headers):
        return merge_lines(base, ours, theirs, names)
    heads = [None if t is None or h is None else t[: h.body_start] for t, h in zip(texts, headers, strict=True)]
    bodies = [None if t is None or h is None else t[h.body_start :] for t, h in zip(texts, headers, strict=True)]
    try:
        head, disputed = _headers(heads[0], heads[1] or "", heads[2] or "")
    except SimplememError:  # written in a way that cannot be changed without changing something else
        return merge_lines(base, ours, theirs, names)
    body = merge_lines(bodies[0], bodies[1] or "", bodies[2] or "", names)
    return Merged(head + _disputed(disputed, names, newline_of(ours)) + body.text, body.conflicts + len(disputed))


Disputed = dict[str, tuple[Any, Any]]


def _headers(base: str | None, ours: str, theirs: str) -> tuple[str, Disputed]:
    """The merged header, and the properties that both sides set to different things: as ours has them."""
    if ours == theirs or theirs == base:
        return ours, {}
    if ours == base:
        return theirs, {}
    wanted, disputed = _properties(
        None if base is None else read_header(base).properties,
        read_header(ours).properties,
        read_header(theirs).properties,
    )
    # What both changed is brought to one value in all three first, so that the rest, with comments, can go line by line.
    alike = [None if text is None else _agreeing(text, wanted) for text in (base, ours, theirs)]
    by_lines = merge_lines(alike[0], alike[1] or "", alike[2] or "")
    header = read_header(by_lines.text)
    if by_lines.clean and _holds(header, wanted) and header.body_start == len(by_lines.text):
        return by_lines.text, disputed
    head = ours
    for key in [key for key in read_header(ours).properties if key not in wanted]:
        head = remove_property(head, key)
    for key, value in wanted.items():
        head = set_property(head, key, value)
    return _with_comments(head, "" if base is None else base, theirs), disputed


def _with_comments(head: str, base: str, theirs: str) -> str:
    """The header with the comments that the other side added, which no property carries."""
    there, was = (lines_of(text) for text in (head, base))
    new = [line for line in lines_of(theirs) if line.lstrip().startswith("#") and line not in (*there, *was)]
    if not new or not there:
        return head
    commented = "".join([*there[:-1], *new, there[-1]])
    return commented if read_header(commented).properties == read_header(head).properties else head


def _agreeing(head: str, wanted: Mapping[str, Any]) -> str:
    """A header with the values that are wanted, for the properties it has."""
    for key in read_header(head).properties:
        if key in wanted:
            head = set_property(head, key, wanted[key])
    return head


def _holds(header: Header, wanted: Mapping[str, Any]) -> bool:
    held = header.properties
    return header.editable and held.keys() == wanted.keys() and all(same(held[key], wanted[key]) for key in held)


def _properties(
    base: Mapping[str, Any] | None, ours: Mapping[str, Any], theirs: Mapping[str, Any]
) -> tuple[dict[str, Any], Disputed]:
    wanted: dict[str, Any] = {}
    disputed: Disputed = {}
    for key in dict.fromkeys((*ours, *theirs)):
        old = _ABSENT if base is None else _value(base, key)
        mine, yours = _value(ours, key), _value(theirs, key)
        if key not in ours and find_key(ours, key) is not None:
            continue  # the same property in other letters
        try:
            value = _one_value(key, old, mine, yours, two_way=base is None)
        except _Disputed:
            value = mine
            disputed[key] = (None if mine is _ABSENT else mine, None if yours is _ABSENT else yours)
        if value is not _ABSENT:
            wanted[key] = value
    return wanted, disputed


class _Disputed(Exception):
    """Both sides set a property to different things. An event inside this module."""


def _one_value(key: str, old: Any, mine: Any, yours: Any, *, two_way: bool) -> Any:
    if _equal(mine, yours) or (not two_way and _equal(yours, old)):
        return mine
    if not two_way and _equal(mine, old):
        return yours
    if two_way and (mine is _ABSENT or yours is _ABSENT):
        return yours if mine is _ABSENT else mine
    lists = [_as_list(key, value) for value in (old, mine, yours)]
    if lists[1] is not None and lists[2] is not None and len(lists[1]) + len(lists[2]) <= _MOST_ITEMS:
        return _lists(lists[0] or [], lists[1], lists[2], in_order=two_way)
    if isinstance(mine, Mapping) and isinstance(yours, Mapping):
        merged, disputed = _properties(None if two_way else old if isinstance(old, Mapping) else {}, mine, yours)
        if not disputed:
            return merged
    for keys, choose in ((_LATER, max), (_EARLIER, min)):
        if key.casefold() in keys and (first := _moment(mine)) and (second := _moment(yours)):
            return mine if choose(first, second) == first else yours
    raise _Disputed


def _as_list(key: str, value: Any) -> list[Any] | None:
    """A list; for tags also their other notation, `tags: one, two`."""
    if isinstance(value, str) and key.casefold() == "tags":
        return [tag for tag in _TAG_GAP.split(value) if tag]
    return value if isinstance(value, list) else None


def _lists(old: list[Any], mine: list[Any], yours: list[Any], *, in_order: bool) -> list[Any]:
    """What neither took away, in the old order, and then what either added: sorted, so that it is the same whoever is
    called ours."""
    kept = [item for item in old if _among(item, mine) and _among(item, yours)]
    added = [item for item in (*mine, *yours) if not _among(item, old)]
    both = [item for at, item in enumerate(added) if not _among(item, added[:at])]
    return kept + (both if in_order else sorted(both, key=lambda item: (str(type(item)), str(item))))


def _among(item: Any, items: list[Any]) -> bool:
    return any(same(item, other) for other in items)


def _value(properties: Mapping[str, Any], key: str) -> Any:
    found = find_key(properties, key)
    return _ABSENT if found is None else properties[found]


def _equal(one: Any, other: Any) -> bool:
    if one is _ABSENT or other is _ABSENT:
        return one is other
    return same(one, other)


def _moment(value: Any) -> datetime | None:
    if not isinstance(value, str) or len(value) > 40:
        return None
    try:
        return datetime.fromisoformat(value.strip().replace(" ", "T", 1)).astimezone()
    except (ValueError, OverflowError, OSError):
        return None


def _disputed(disputed: Disputed, names: tuple[str, str], newline: str) -> str:
    """The two values of each such property, marked as git marks lines."""
    if not disputed:
        return ""
    lines = [f"<<<<<<< {names[0]}"]
    for side in (0, 1):
        lines += [line for key, values in disputed.items() for line in _shown(key, values[side])]
        lines.append("=======" if side == 0 else f">>>>>>> {names[1]}")
    return newline.join([*lines, ""])


def _shown(key: str, value: Any) -> list[str]:
    try:
        return render_header({key: value}).split("\n")[1:-2]
    except SimplememError:
        return [f"{key}: {value}"]
