"""Names that look like one that is not there: the same but for accents, spaces and marks, or a few slips away. Pure."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import cached_property

from simplemem.note.names import base_name

MOST = 3
_MOST_ASKED = 3_000  # names that are compared with every other; a vault full of links to nowhere must not take all day
_TOO_COMMON = 2_000  # three letters that so many names share tell nothing
_LOOKED_AT = 60


class NearNames:
    """The files of a vault by what their names look like."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = sorted(paths)
        self._known: dict[str, tuple[str, ...]] = {}

    def of(self, target: str) -> tuple[str, ...]:
        """The paths, at most three, whose names are nearest to that of a link's target; none when none is near."""
        loose = loose_key(base_name(target))
        if loose not in self._known:
            self._known[loose] = () if len(self._known) >= _MOST_ASKED else self._nearest(loose)
        return self._known[loose]

    def _nearest(self, loose: str) -> tuple[str, ...]:
        if same := self._by_name.get(loose):
            return tuple(same[:MOST])
        shared: Counter[str] = Counter()
        for part in _parts(loose):
            names = self._by_part.get(part, ())
            if len(names) <= _TOO_COMMON:
                shared.update(names)
        reach = 1 if len(loose) < 6 else 2 if len(loose) < 14 else 3
        ranked: list[tuple[int, str]] = []
        for name, _ in shared.most_common(_LOOKED_AT):
            # "Chapter 1" is no slip for "Chapter 2", nor one day for another.
            if _digits(name) == _digits(loose) and (slips := slips_between(name, loose, reach)) <= reach:
                ranked += [(slips, path) for path in self._by_name[name]]
        return tuple(path for _, path in sorted(ranked)[:MOST])

    @cached_property
    def _by_name(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for path in self._paths:
            if loose := loose_key(base_name(path)):
                found.setdefault(loose, []).append(path)
        return found

    @cached_property
    def _by_part(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for name in self._by_name:
            for part in _parts(name):
                found.setdefault(part, []).append(name)
        return found


def loose_key(name: str) -> str:
    """A name without case, accents, spaces and marks."""
    plain = unicodedata.normalize("NFKD", name).casefold()
    return "".join(char for char in plain if char.isalnum())


def slips_between(one: str, other: str, most: int) -> int:
    """How many letters must be put in, left out, changed or swapped to make one name of the other; `most` + 1 when more."""
    if abs(len(one) - len(other)) > most:
        return most + 1
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        earlier, before, row = before, row, [i]
        for j, there in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != there))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == there:
                cost = min(cost, earlier[j - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
    return min(row[-1], most + 1)


def _parts(name: str) -> set[str]:
    marked = f"^{name[:120]}$"
    return {marked[k : k + 3] for k in range(len(marked) - 2)}


def _digits(name: str) -> str:
    return "".join(char for char in name if char.isdigit())
