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
from datetime import datetime
from typing import Any, Final, NamedTuple

from simplemem.errors import SimplememError
from simplemem.note.diff import matches
from simplemem.note.header import find_key, read_header, same
from simplemem.note.properties import remove_property, render_header, set_property

_OF_TIMES: Final = dict.fromkeys(("modified", "updated", "date modified", "last_modified"), max) | dict.fromkeys(
    ("created", "date created"), min
)
_ABSENT: Final = object()
_CLASH: Final = object()  # both sides set a property to different things
_LINES: Final = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")
_LINE_END: Final = re.compile(r"\r\n|\n|\r")

_Disputed = dict[str, tuple[Any, Any]]


class Merged(NamedTuple):
    """A merge and in how many places the sides could not be brought together. 0 means that it is clean."""

    text: str
    conflicts: int

    @property
    def clean(self) -> bool:
        return self.conflicts == 0


def merge(base: str | None, ours: str, theirs: str, names: tuple[str, str] = ("ours", "theirs")) -> Merged:
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


def _merge_lines(base: str | None, ours: str, theirs: str, names: tuple[str, str] = ("", "")) -> Merged:
    """One text out of two that began as `base`. Lines are compared without their ends: a side that was saved with other
    line ends has not changed every line."""
    settled = _settled(base, ours, theirs)
    if settled is not None:
        return Merged(settled, 0)
    newline = _newline_of(ours)
    sides = _LINES.findall(ours), _LINES.findall(theirs)
    if _newline_of(theirs) != newline:
        sides = sides[0], [_LINE_END.sub(newline, line) for line in sides[1]]
    parts: list[str] = []
    conflicts = 0
    for old, mine, yours in _chunks(None if base is None else _keys(_LINES.findall(base)), *sides):
        my_keys, your_keys = _keys(mine), _keys(yours)
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


def _chunks(
    base: list[str] | None, mine: list[str], yours: list[str]
) -> Iterator[tuple[list[str], list[str], list[str]]]:
    """The stretches of each text that stand in the same place: all the same, or with a difference somewhere."""
    my_keys, your_keys = _keys(mine), _keys(yours)
    if base is None:  # what both have is all that is known of where they began
        to_yours = matches(my_keys, your_keys)
        to_mine = [at for at, other in enumerate(to_yours) if other >= 0]
        base, to_yours = [my_keys[at] for at in to_mine], [other for other in to_yours if other >= 0]
    else:
        to_mine, to_yours = matches(base, my_keys), matches(base, your_keys)
    at = my_at = your_at = 0
    while at < len(base) or my_at < len(mine) or your_at < len(yours):
        end = at
        while end < len(base) and to_mine[end] == my_at + end - at and to_yours[end] == your_at + end - at:
            end += 1
        my_end, your_end = my_at + end - at, your_at + end - at
        if end == at:
            while end < len(base) and (to_mine[end] < 0 or to_yours[end] < 0):
                end += 1
            my_end, your_end = (to_mine[end], to_yours[end]) if end < len(base) else (len(mine), len(yours))
        yield base[at:end], mine[my_at:my_end], yours[your_at:your_end]
        at, my_at, your_at = end, my_end, your_end


def _marked(ours: list[str], theirs: list[str], names: tuple[str, str], newline: str) -> list[str]:
    """Both sides between marks."""
    lines = [f"<<<<<<< {names[0]}", *_keys(ours), "=======", *_keys(theirs), f">>>>>>> {names[1]}"]
    return [line + newline for line in lines]


def _newline_of(text: str) -> str:
    """The line end that a text begins with."""
    found = _LINE_END.search(text)
    return found[0] if found else "\n"


def _keys(lines: Sequence[str]) -> list[str]:
    return [line.rstrip("\r\n") for line in lines]


# ------------------------------------------------------------------ properties


def _merge_headers(base: str | None, ours: str, theirs: str) -> tuple[str, _Disputed]:
    """The merged header, and the properties that both sides set to different things: as ours has them."""
    settled = _settled(base, ours, theirs)
    if settled is not None:
        return settled, {}
    was, mine, yours = (read_header(text or "").properties for text in (base, ours, theirs))
    wanted, disputed = _merge_properties(was, mine, yours)
    head = theirs  # with its comments: what an agent writes has none
    for key in yours.keys() - wanted.keys():
        head = remove_property(head, key)
    for key, value in wanted.items():
        head = set_property(head, key, value)
    return head, disputed


def _merge_properties(
    base: Mapping[str, Any], ours: Mapping[str, Any], theirs: Mapping[str, Any]
) -> tuple[dict[str, Any], _Disputed]:
    wanted: dict[str, Any] = {}
    disputed: _Disputed = {}
    for key in dict.fromkeys((*ours, *theirs)):
        if key not in ours and find_key(ours, key) is not None:
            continue  # the same property in other letters
        old, mine, yours = (side.get(find_key(side, key) or key, _ABSENT) for side in (base, ours, theirs))
        value = _merge_values(key, old, mine, yours)
        if value is _CLASH:
            value = mine
            disputed[key] = (None if mine is _ABSENT else mine, None if yours is _ABSENT else yours)
        if value is not _ABSENT:
            wanted[key] = value
    return wanted, disputed


def _merge_values(key: str, old: Any, mine: Any, yours: Any) -> Any:
    if same(mine, yours) or same(yours, old):
        return mine
    if same(mine, old):
        return yours
    was, ours, theirs = (_as_list(key, value) for value in (old, mine, yours))
    if ours is not None and theirs is not None:
        return _merge_lists(was, ours, theirs)
    if isinstance(mine, Mapping) and isinstance(yours, Mapping):
        merged, disputed = _merge_properties(old if isinstance(old, Mapping) else {}, mine, yours)
        return _CLASH if disputed else merged
    choose = _OF_TIMES.get(key.casefold())
    if choose and (first := _moment(mine)) and (second := _moment(yours)):
        return mine if choose(first, second) == first else yours
    return _CLASH


def _as_list(key: str, value: Any) -> list[Any] | None:
    """A list; for tags also their other notation, `tags: one, two`."""
    if isinstance(value, str) and key.casefold() == "tags":
        return value.replace(",", " ").split()
    return value if isinstance(value, list) else None


def _merge_lists(old: list[Any] | None, mine: list[Any], yours: list[Any]) -> list[Any]:
    """What neither took away, in the old order, and then what either added: sorted, whoever is called ours."""
    before, ours, theirs = ({repr(item): item for item in items} for items in (old or [], mine, yours))
    kept = [item for key, item in before.items() if key in ours and key in theirs]
    added = {key: item for key, item in (ours | theirs).items() if key not in before}
    return kept + [added[key] for key in (added if old is None else sorted(added))]


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
