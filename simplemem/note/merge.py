"""Two versions of a note into one: the header property by property, the body line by line by the rules of diff3. Pure.

What only one side changed is taken from it, what both changed alike is taken once, and where they differ both stand,
marked as git marks them. Both sides stamp `modified` and add tags, so where all headers can be read each property is
merged as what it is: lists as sets, of two times the later, of two creations the earlier. Properties that were set to
different things stay as ours has them, and both stand marked at the head of the body, since marks in a header would
make it unreadable.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from simplemem.errors import SimplememError
from simplemem.note.diff import matches
from simplemem.note.header import find_key, read_header, same
from simplemem.note.properties import remove_property, render_header, set_property

_NAMES: Final = ("ours", "theirs")
_LATER: Final = ("modified", "updated", "date modified", "last_modified")
_EARLIER: Final = ("created", "date created")
_ABSENT: Final = object()
_CLASH: Final = object()  # both sides set a property to different things
_MOST_ITEMS: Final = 1_000  # of lists that are merged as sets
_TAG_GAP: Final = re.compile(r"[,\s]+")
_LINES: Final = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")
_LINE_END: Final = re.compile(r"\r\n|\n|\r")

_Disputed = dict[str, tuple[Any, Any]]


@dataclass(frozen=True, slots=True)
class Merged:
    """A merge and in how many places the sides could not be brought together. 0 means that it is clean."""

    text: str
    conflicts: int

    @property
    def clean(self) -> bool:
        return self.conflicts == 0


def merge(base: str | None, ours: str, theirs: str, names: tuple[str, str] = _NAMES) -> Merged:
    """One note out of two that began as `base`; without a base nothing is taken for deleted."""
    headers = [read_header(text or "") for text in (base, ours, theirs)]
    if any(header.problem for header in headers) or all(header.style == "none" for header in headers):
        return _merge_lines(base, ours, theirs, names)
    was, mine, yours = (header.body_start for header in headers)
    try:
        head, disputed = _merge_headers(base and base[:was], ours[:mine], theirs[:yours])
    except SimplememError:  # written in a way that cannot be changed without changing something else
        return _merge_lines(base, ours, theirs, names)
    body = _merge_lines(base and base[was:], ours[mine:], theirs[yours:], names)
    both = _marked(_shown(disputed, 0), _shown(disputed, 1), names, _newline_of(ours)) if disputed else []
    return Merged(head + "".join(both) + body.text, body.conflicts + len(disputed))


def _settled(base: Any, ours: Any, theirs: Any) -> Any:
    """What stands where at most one side changed it, or both alike; None where both did."""
    if ours == theirs or theirs == base:
        return ours
    return theirs if ours == base else None


# ------------------------------------------------------------------ lines


def _merge_lines(base: str | None, ours: str, theirs: str, names: tuple[str, str] = _NAMES) -> Merged:
    """One text out of two that began as `base`. Lines are compared without their ends: a side that was saved with other
    line ends has not changed every line."""
    settled = _settled(base, ours, theirs)
    if settled is not None:
        return Merged(settled, 0)
    newlines = _newline_of(ours), _newline_of(theirs)
    newline = _settled(base and _newline_of(base), *newlines) or min(newlines)
    parts: list[str] = []
    conflicts = 0
    for *chunk, is_same in _chunks(base, ours, theirs):
        if is_same:
            parts += (_settled(*lines) or min(lines[1:]) for lines in zip(*chunk, strict=True))
            continue
        mine, yours = (
            lines if held == newline else [_ended(line, newline) for line in lines]
            for lines, held in zip(chunk[1:], newlines, strict=True)
        )
        old, my_keys, your_keys = map(_keys, chunk)
        if my_keys == your_keys:
            parts += map(max, mine, yours)  # the one with a line end, where only one has it
        elif your_keys == old or (base is None and not your_keys):
            parts += mine
        elif my_keys == old or (base is None and not my_keys):
            parts += yours
        else:
            parts += _marked(mine, yours, names, newline)
            conflicts += 1
    # A last line without an end may not be the last any more.
    text = "".join(part if part.endswith(("\n", "\r")) else part + newline for part in parts[:-1]) + "".join(parts[-1:])
    return Merged(text, conflicts)


def _chunks(base: str | None, ours: str, theirs: str) -> Iterator[tuple[list[str], list[str], list[str], bool]]:
    """The stretches of each text that stand in the same place, and whether they are the same lines but for their
    ends."""
    mine, yours = _lines_of(ours), _lines_of(theirs)
    my_keys, your_keys = _keys(mine), _keys(yours)
    if base is None:  # what both have is all that is known of where they began
        pairs = [(at, other) for at, other in enumerate(matches(my_keys, your_keys)) if other >= 0]
        to_mine, to_yours = [at for at, _ in pairs], [other for _, other in pairs]
        common = [mine[at] for at in to_mine]
    else:
        common = _lines_of(base)
        keys = _keys(common)
        to_mine, to_yours = matches(keys, my_keys), matches(keys, your_keys)
    at = my_at = your_at = 0
    while at < len(common) or my_at < len(mine) or your_at < len(yours):
        end = at
        while end < len(common) and to_mine[end] == my_at + end - at and to_yours[end] == your_at + end - at:
            end += 1
        is_same = end > at
        if is_same:
            my_end, your_end = my_at + end - at, your_at + end - at
        else:
            while end < len(common) and (to_mine[end] < 0 or to_yours[end] < 0):
                end += 1
            my_end, your_end = (to_mine[end], to_yours[end]) if end < len(common) else (len(mine), len(yours))
        yield common[at:end], mine[my_at:my_end], yours[your_at:your_end], is_same
        at, my_at, your_at = end, my_end, your_end


def _marked(ours: list[str], theirs: list[str], names: tuple[str, str], newline: str) -> list[str]:
    """Both sides between marks; what both begin and end with alike stands outside of them, once."""
    mine, yours = _keys(ours), _keys(theirs)
    shorter = min(len(ours), len(theirs))
    head = next((at for at in range(shorter) if mine[at] != yours[at]), shorter)
    tail = next((at for at in range(shorter - head) if mine[-1 - at] != yours[-1 - at]), shorter - head)
    return [
        *ours[:head],
        f"<<<<<<< {names[0]}{newline}",
        *(_ended(line, newline) for line in ours[head : len(ours) - tail]),
        f"======={newline}",
        *(_ended(line, newline) for line in theirs[head : len(theirs) - tail]),
        f">>>>>>> {names[1]}{newline}",
        *ours[len(ours) - tail :],
    ]


def _newline_of(text: str) -> str:
    """The line end that a text begins with."""
    found = _LINE_END.search(text)
    return found[0] if found else "\n"


def _lines_of(text: str) -> list[str]:
    """The lines with their ends, of all three kinds."""
    return _LINES.findall(text)


def _keys(lines: Sequence[str]) -> list[str]:
    return [line.rstrip("\r\n") for line in lines]


def _ended(line: str, newline: str) -> str:
    """A line in the line ends of the text it comes into. The last of all may have none."""
    bare = line.rstrip("\r\n")
    return line if bare == line else bare + newline


# ------------------------------------------------------------------ properties


def _merge_headers(base: str | None, ours: str, theirs: str) -> tuple[str, _Disputed]:
    """The merged header, and the properties that both sides set to different things: as ours has them."""
    settled = _settled(base, ours, theirs)
    if settled is not None:
        return settled, {}
    was, mine, yours = (None if text is None else read_header(text).properties for text in (base, ours, theirs))
    wanted, disputed = _merge_properties(was, mine or {}, yours or {})
    # What both changed is brought to one value in all three first, so that the rest, with comments, can go line by line.
    by_lines = _merge_lines(base and _agreeing(base, wanted), _agreeing(ours, wanted), _agreeing(theirs, wanted))
    header = read_header(by_lines.text)
    if by_lines.clean and header.problem is None and header.body_start == len(by_lines.text):
        held = header.properties
        if held.keys() == wanted.keys() and all(same(held[key], wanted[key]) for key in held):
            return by_lines.text, disputed
    head = ours
    for key in [key for key in mine or {} if key not in wanted]:
        head = remove_property(head, key)
    for key, value in wanted.items():
        head = set_property(head, key, value)
    # The comments that the other side added are in no property.
    lines, known = _lines_of(head), {*_lines_of(head), *_lines_of(base or "")}
    new = [line for line in _lines_of(theirs) if line.lstrip().startswith("#") and line not in known]
    commented = "".join([*lines[:-1], *new, *lines[-1:]])
    return commented if read_header(commented).properties == read_header(head).properties else head, disputed


def _agreeing(head: str, wanted: Mapping[str, Any]) -> str:
    """A header with the values that are wanted, for the properties it has."""
    for key in read_header(head).properties:
        if key in wanted:
            head = set_property(head, key, wanted[key])
    return head


def _merge_properties(
    base: Mapping[str, Any] | None, ours: Mapping[str, Any], theirs: Mapping[str, Any]
) -> tuple[dict[str, Any], _Disputed]:
    wanted: dict[str, Any] = {}
    disputed: _Disputed = {}
    for key in dict.fromkeys((*ours, *theirs)):
        if key not in ours and find_key(ours, key) is not None:
            continue  # the same property in other letters
        old, mine, yours = (
            _ABSENT if side is None else side.get(find_key(side, key) or key, _ABSENT) for side in (base, ours, theirs)
        )
        value = _merge_values(key, old, mine, yours, two_way=base is None)
        if value is _CLASH:
            value = mine
            disputed[key] = (None if mine is _ABSENT else mine, None if yours is _ABSENT else yours)
        if value is not _ABSENT:
            wanted[key] = value
    return wanted, disputed


def _merge_values(key: str, old: Any, mine: Any, yours: Any, *, two_way: bool) -> Any:
    if same(mine, yours) or (not two_way and same(yours, old)) or (two_way and yours is _ABSENT):
        return mine
    if (two_way and mine is _ABSENT) or (not two_way and same(mine, old)):
        return yours
    lists = [_as_list(key, value) for value in (old, mine, yours)]
    if lists[1] is not None and lists[2] is not None and len(lists[1]) + len(lists[2]) <= _MOST_ITEMS:
        return _merge_lists(lists[0] or [], lists[1], lists[2], in_order=two_way)
    if isinstance(mine, Mapping) and isinstance(yours, Mapping):
        merged, disputed = _merge_properties(None if two_way else old if isinstance(old, Mapping) else {}, mine, yours)
        return _CLASH if disputed else merged
    for keys, choose in ((_LATER, max), (_EARLIER, min)):
        if key.casefold() in keys and (first := _moment(mine)) and (second := _moment(yours)):
            return mine if choose(first, second) == first else yours
    return _CLASH


def _as_list(key: str, value: Any) -> list[Any] | None:
    """A list; for tags also their other notation, `tags: one, two`."""
    if isinstance(value, str) and key.casefold() == "tags":
        return [tag for tag in _TAG_GAP.split(value) if tag]
    return value if isinstance(value, list) else None


def _merge_lists(old: list[Any], mine: list[Any], yours: list[Any], *, in_order: bool) -> list[Any]:
    """What neither took away, in the old order, and then what either added: sorted, whoever is called ours."""
    kept = [item for item in old if _among(item, mine) and _among(item, yours)]
    added = [item for item in (*mine, *yours) if not _among(item, old)]
    both = [item for at, item in enumerate(added) if not _among(item, added[:at])]
    return kept + (both if in_order else sorted(both, key=lambda item: (str(type(item)), str(item))))


def _among(item: Any, items: list[Any]) -> bool:
    return any(same(item, other) for other in items)


def _moment(value: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(value.strip().replace(" ", "T", 1)).astimezone()
    except (AttributeError, ValueError, OverflowError, OSError):
        return None


def _shown(disputed: _Disputed, side: int) -> list[str]:
    """The lines of these properties as one side has them."""
    lines: list[str] = []
    for key, values in disputed.items():
        try:
            lines += render_header({key: values[side]}).split("\n")[1:-2]
        except SimplememError:
            lines.append(f"{key}: {values[side]}")
    return [f"{line}\n" for line in lines]
