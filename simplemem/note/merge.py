"""Two versions of a note into one: the header property by property, the body line by line by the rules of diff3. Pure.
What only one side changed is taken from it. Where both differ both stand, marked as git marks them: for properties at
the head of the body, since marks in a header would make it unreadable."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, Final, NamedTuple

from simplemem.errors import SimplememError
from simplemem.note.body import newline_of
from simplemem.note.diff import matches
from simplemem.note.header import LINE_END, find_key, read_header, same
from simplemem.note.note import tag_items
from simplemem.note.properties import remove_property, render_header, set_property

_ABSENT: Final = object()
_CLASH: Final = object()  # both sides set a property to different things
_MOST_ITEMS: Final = 1_000  # of lists that are merged as sets
_LINES: Final = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")

_Chunk = tuple[list[str], list[str], list[str]]


class Merged(NamedTuple):
    """A merge and in how many places the sides could not be brought together. 0 means that it is clean."""

    text: str
    conflicts: int

    @property
    def clean(self) -> bool:
        return self.conflicts == 0


def merge(
    base: str | None,
    ours: str,
    theirs: str,
    names: tuple[str, str] = ("ours", "theirs"),
    *,
    both: bool = False,
) -> Merged:
    """One note out of two that began as `base`; without a base nothing is taken for deleted. With `both`, what either
    added in the same place stands there one after the other, and is no conflict."""
    headers = [read_header(text or "") for text in (base, ours, theirs)]
    if any(header.problem for header in headers) or all(
        header.style == "none" for header in headers
    ):
        return _merge_lines(base, ours, theirs, names, both=both)
    was, mine, yours = (header.body_start for header in headers)
    try:
        head, mine_only, yours_only = _merge_headers(
            base and base[:was], ours[:mine], theirs[:yours]
        )
    except (
        SimplememError
    ):  # written in a way that cannot be changed without changing something else
        return _merge_lines(base, ours, theirs, names, both=both)
    body = _merge_lines(base and base[was:], ours[mine:], theirs[yours:], names, both=both)
    marked = (
        _marked(_shown(mine_only), _shown(yours_only), names, newline_of(ours)) if mine_only else []
    )
    return Merged(head + "".join(marked) + body.text, body.conflicts + len(mine_only))


def _settled(base: Any, ours: Any, theirs: Any) -> Any:
    """What stands where at most one side changed it, or both alike; None where both did."""
    if ours == theirs or theirs == base:
        return ours
    return theirs if ours == base else None


def _merge_lines(
    base: str | None, ours: str, theirs: str, names: tuple[str, str], *, both: bool = False
) -> Merged:
    """Lines are compared without their ends: a side that was saved with others has not changed every line."""
    settled = _settled(base, ours, theirs)
    if settled is not None:
        return Merged(settled, 0)
    ends = newline_of(ours), newline_of(theirs)
    newline = _settled(base and newline_of(base), *ends) or min(ends)
    mine, yours = (
        _LINES.findall(text if end == newline else LINE_END.sub(newline, text))
        for text, end in zip((ours, theirs), ends, strict=True)
    )
    parts: list[str] = []
    conflicts = 0
    for old, my_part, your_part in _chunks(
        None if base is None else _LINES.findall(base), mine, yours
    ):
        old_keys, my_keys, your_keys = map(_keys, (old, my_part, your_part))
        if my_keys == your_keys:
            parts += map(max, my_part, your_part)  # the one with a line end, where only one has it
        elif old_keys in (my_keys, your_keys):
            parts += my_part if your_keys == old_keys else your_part
        elif both and base is not None and not old:
            for _, mine_here, yours_here in _chunks(
                None, my_part, your_part
            ):  # lines of both stand once
                parts += mine_here + (yours_here if _keys(mine_here) != _keys(yours_here) else [])
        else:
            parts += _marked(my_part, your_part, names, newline)
            conflicts += 1
    # A last line without an end may not be the last any more.
    text = "".join(
        part if part.endswith(("\n", "\r")) else part + newline for part in parts[:-1]
    ) + "".join(parts[-1:])
    return Merged(text, conflicts)


def _chunks(base: list[str] | None, mine: list[str], yours: list[str]) -> Iterator[_Chunk]:
    """The stretches of each text that stand in the same place, either the same lines or all that lies between such."""
    my_keys, your_keys = _keys(mine), _keys(yours)
    if base is None:  # what both have is all that is known of where they began
        base = [mine[at] for at, other in enumerate(matches(my_keys, your_keys)) if other >= 0]
    to_mine, to_yours = matches(_keys(base), my_keys), matches(_keys(base), your_keys)
    at = my_at = your_at = 0
    while at < len(base) or my_at < len(mine) or your_at < len(yours):
        end = at
        while (
            end < len(base)
            and to_mine[end] == my_at + end - at
            and to_yours[end] == your_at + end - at
        ):
            end += 1
        my_end, your_end = my_at + end - at, your_at + end - at
        if end == at:
            while end < len(base) and (to_mine[end] < 0 or to_yours[end] < 0):
                end += 1
            my_end, your_end = (
                (to_mine[end], to_yours[end]) if end < len(base) else (len(mine), len(yours))
            )
        yield base[at:end], mine[my_at:my_end], yours[your_at:your_end]
        at, my_at, your_at = end, my_end, your_end


def _marked(ours: list[str], theirs: list[str], names: tuple[str, str], newline: str) -> list[str]:
    """Both sides between marks."""
    lines = (f"<<<<<<< {names[0]}", *_keys(ours), "=======", *_keys(theirs), f">>>>>>> {names[1]}")
    return [line + newline for line in lines]


def _keys(lines: list[str]) -> list[str]:
    return [line.rstrip("\r\n") for line in lines]


def _merge_headers(
    base: str | None, ours: str, theirs: str
) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """The merged header, and what both sides have of the properties that they set to different things."""
    settled = _settled(base, ours, theirs)
    if settled is not None:
        return settled, {}, {}
    sides = [read_header(text or "").properties for text in (base, ours, theirs)]
    head, mine_only, yours_only = ours, dict[str, Any](), dict[str, Any]()
    for key in dict.fromkeys((*sides[1], *sides[2])):
        if key not in sides[1] and find_key(sides[1], key) is not None:
            continue  # the same property in other letters
        old, mine, yours = (side.get(find_key(side, key) or key, _ABSENT) for side in sides)
        value = _merge_values(key, old, mine, yours)
        if value is _CLASH:  # ours stays
            mine_only[key], yours_only[key] = (
                None if each is _ABSENT else each for each in (mine, yours)
            )
        else:
            head = (
                remove_property(head, key) if value is _ABSENT else set_property(head, key, value)
            )
    # The comments that the other side added are in no property.
    lines = _LINES.findall(head)
    known = {*lines, *_LINES.findall(base or "")}
    new = [
        line
        for line in _LINES.findall(theirs)
        if line.lstrip().startswith("#") and line not in known
    ]
    commented = "".join([*lines[:-1], *new, *lines[-1:]])
    head = commented if read_header(commented).properties == read_header(head).properties else head
    return head, mine_only, yours_only


def _merge_values(key: str, old: Any, mine: Any, yours: Any) -> Any:
    """Lists as sets; of two times the later or, of creations, the earlier."""
    if same(mine, yours) or same(yours, old):
        return mine
    if same(mine, old):
        return yours
    if key.casefold() == "tags":  # which may be one text
        old, mine, yours = (
            tag_items(value) if isinstance(value, str) else value for value in (old, mine, yours)
        )
    if isinstance(mine, list) and isinstance(yours, list) and len(mine) + len(yours) <= _MOST_ITEMS:
        # What neither took away, in the old order, then what either added: sorted, whoever is called ours.
        before = old if isinstance(old, list) else []
        kept = [item for item in before if _among(item, mine) and _among(item, yours)]
        added = [item for item in (*mine, *yours) if not _among(item, before)]
        both = [item for at, item in enumerate(added) if not _among(item, added[:at])]
        return kept + sorted(both, key=lambda item: (str(type(item)), str(item)))
    if (
        key.casefold() in ("modified", "created")
        and (first := _moment(mine))
        and (second := _moment(yours))
    ):
        return mine if (first >= second) == (key.casefold() == "modified") else yours
    return _CLASH


def _among(item: Any, items: list[Any]) -> bool:
    return any(same(item, other) for other in items)


def _moment(value: Any) -> datetime | None:
    with suppress(AttributeError, ValueError, OverflowError, OSError):
        return datetime.fromisoformat(value.strip().replace(" ", "T", 1)).astimezone()
    return None


def _shown(properties: Mapping[str, Any]) -> list[str]:
    """The lines of some properties."""
    try:
        return [f"{line}\n" for line in render_header(properties).split("\n")[1:-2]]
    except SimplememError:
        return [f"{key}: {value}\n" for key, value in properties.items()]
