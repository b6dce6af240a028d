"""Who wrote each line of a text, told from its earlier versions. Pure.

A line belongs to whoever last changed it. A version that brings an earlier text back writes nothing: its lines are as old as
they were then. Where a text in between is not kept and several could have written a line, nobody is named.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

Kind = Literal["human", "agent", "unknown"]

COMMAND_LINE = "command line"
"""How the history names a person who uses the commands."""

_SMALL = 250  # lines; difflib is quadratic at worst
_LINE_END = re.compile(r"\r\n?|\n")


@dataclass(frozen=True, slots=True)
class Origin:
    """Who wrote something, and when at the latest (UTC); "" when that is not known."""

    kind: Kind
    name: str = ""
    when: str = ""

    @property
    def shown(self) -> str:
        return self.name or self.kind


HUMAN, UNKNOWN = Origin("human"), Origin("unknown")


def origin_of(who: str, tool: str, when: str) -> Origin:
    """Who a change of ours is by. The tools of agents have an underscore in their names, the commands of people have none:
    a client cannot pass for a person by what it calls itself."""
    if who == COMMAND_LINE and "_" not in tool:
        return Origin("human", "", when)
    name = who or ("an agent without a name" if "_" in tool else "a program")
    return Origin("agent", f"an agent called {name}" if name.casefold() in ("human", "unknown") else name, when)


def is_by(origin: Origin, wanted: str) -> bool:
    """Whether this is who is asked for: `human`, `agent`, `unknown`, or how a name begins."""
    key = wanted.casefold()
    return key == origin.kind if key in ("human", "agent", "unknown") else _begins(origin.name.casefold(), key)


def _begins(name: str, beginning: str) -> bool:
    return bool(beginning) and name.startswith(beginning)


@dataclass(frozen=True, slots=True)
class State:
    """A text that a note had: its hash (None: there was no note), and who made it so."""

    sha256: str | None
    by: Origin


def origins(
    now: str, states: Sequence[State], text_of: Callable[[str], str | None], *, to_the_day: bool = True
) -> list[Origin]:
    """The origin of every line of a text, which is that of the first state; states come newest first. `text_of` gives an
    earlier text by its hash, None when it is not kept. Unless it is to be told `to_the_day`, of several changes by one
    author in a row only the first text before them is read."""
    lines = _lines(now)
    found = [UNKNOWN] * len(lines)
    oldest = {state.sha256: at for at, state in enumerate(states)}
    left = list(range(len(lines)))  # whose origin is still sought...
    stand = list(range(len(lines)))  # ...and the line of the state looked at on which each stands
    at = 0
    while left and at < len(states):
        at = oldest[states[at].sha256]
        before, earlier = _next_known(states, at, text_of, every=to_the_day)
        by = one_of([state.by for state in states[at:before]])
        was = _same_lines(earlier, lines)
        still = [(line, was[place]) for line, place in zip(left, stand, strict=True) if place in was]
        for line, place in zip(left, stand, strict=True):
            if place not in was:
                found[line] = by
        left, stand = [line for line, _ in still], [place for _, place in still]
        at, lines = before, earlier
    return found


def _is_same(one: Origin, other: Origin) -> bool:
    return (one.kind, one.name) == (other.kind, other.name)


def one_of(makers: Sequence[Origin]) -> Origin:
    """What is certain when one of some made a line: who, or at least of what kind."""
    if len({maker.name for maker in makers}) == len({maker.kind for maker in makers}) == 1:
        return makers[0]
    return Origin(makers[0].kind) if len({maker.kind for maker in makers}) == 1 else UNKNOWN


def _next_known(
    states: Sequence[State], at: int, text_of: Callable[[str], str | None], *, every: bool
) -> tuple[int, list[str]]:
    """The next older state whose text is known, and its lines. Before the oldest there was nothing."""
    for before in range(at + 1, len(states)):
        sha256 = states[before].sha256
        if sha256 is None:
            return before, []  # a note that was not there has no lines to hand on
        if not every and _is_same(states[before].by, states[at].by):
            continue
        if (text := text_of(sha256)) is not None:
            return before, _lines(text)
    return len(states), []


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in _LINE_END.split(text)]


def _same_lines(old: Sequence[str], new: Sequence[str]) -> dict[int, int]:
    """For each line of the new text that stood in the old one, its place there. First what is equal at both ends, then
    lines that occur once in both, then what lies between them."""
    same: dict[int, int] = {}
    todo = [(0, len(old), 0, len(new))]
    while todo:
        a, a_end, b, b_end = todo.pop()
        while a < a_end and b < b_end and old[a] == new[b]:
            same[b] = a
            a, b = a + 1, b + 1
        while a < a_end and b < b_end and old[a_end - 1] == new[b_end - 1]:
            a_end, b_end = a_end - 1, b_end - 1
            same[b_end] = a_end
        if a == a_end or b == b_end:
            continue
        anchors = _anchors(old, new, (a, a_end, b, b_end))
        if anchors:
            edges = [(a - 1, b - 1), *anchors, (a_end, b_end)]
            same.update((there, here) for here, there in anchors)
            todo += [(one + 1, two, first + 1, second) for (one, first), (two, second) in pairwise(edges)]
        elif a_end - a <= _SMALL and b_end - b <= _SMALL:
            same.update(_by_difflib(old, new, (a, a_end, b, b_end)))
    return same


def _anchors(old: Sequence[str], new: Sequence[str], span: tuple[int, int, int, int]) -> list[tuple[int, int]]:
    """The lines that occur once in both stretches, as many as stand in the same order."""
    a, a_end, b, b_end = span
    once_old, once_new = _once(old, a, a_end), _once(new, b, b_end)
    pairs = [(once_old[line], there) for line, there in once_new.items() if line in once_old]  # in the order of `new`
    ends: list[int] = []  # of the longest rising runs, the place in `old` of the last of each length
    last: list[int] = []  # the pair each of these is
    behind: list[int] = []  # for each pair, the one before it in its run
    for number, (here, _) in enumerate(pairs):
        length = bisect_left(ends, here)
        ends[length : length + 1] = [here]
        last[length : length + 1] = [number]
        behind.append(last[length - 1] if length else -1)
    run: list[tuple[int, int]] = []
    number = last[-1] if last else -1
    while number >= 0:
        run.append(pairs[number])
        number = behind[number]
    return run[::-1]


def _once(lines: Sequence[str], start: int, stop: int) -> dict[str, int]:
    found: dict[str, int] = {}
    again: set[str] = set()
    for place in range(start, stop):
        line = lines[place]
        if line in found:
            again.add(line)
        found[line] = place
    return {line: place for line, place in found.items() if line not in again}


def _by_difflib(old: Sequence[str], new: Sequence[str], span: tuple[int, int, int, int]) -> dict[int, int]:
    from difflib import SequenceMatcher

    a, a_end, b, b_end = span
    matcher = SequenceMatcher(None, old[a:a_end], new[b:b_end], autojunk=False)
    return {b + there + k: a + here + k for here, there, size in matcher.get_matching_blocks() for k in range(size)}


def counted_lines(text: str) -> int:
    """How many lines a text has here; what follows the last line end is one."""
    return len(_LINE_END.findall(text)) + 1


class Authorship:
    """The origins of a text's lines, to be asked by where something stands in it."""

    def __init__(self, text: str, origins: Sequence[Origin]) -> None:
        self.text = text
        self.origins = origins
        self._starts = [0, *(end.end() for end in _LINE_END.finditer(text))]

    def stretches(self, is_wanted: Callable[[Origin], bool], first: int = 0) -> list[tuple[int, int]]:
        """The runs of lines whose origin is wanted, from the offset `first` on; blank lines interrupt none."""
        found: list[tuple[int, int]] = []
        is_open = False
        edges = [*self._starts, len(self.text)]
        for (start, stop), origin in zip(pairwise(edges), self.origins, strict=True):
            if stop <= first or self.text[start:stop].isspace() or start == stop:
                continue
            if not is_wanted(origin):
                is_open = False
                continue
            if is_open:
                found[-1] = found[-1][0], stop
            else:
                found.append((max(start, first), stop))
            is_open = True
        return found

    def of_all(self) -> Origin:
        """Who wrote most of the whole text."""
        return self.of(0, len(self.text))

    def of(self, start: int, stop: int) -> Origin:
        """Who wrote most of a stretch: of the characters that are not blank. Of two who wrote as much, the later."""
        return next(iter(self.all_of(start, stop)), UNKNOWN)

    def all_of(self, start: int, stop: int) -> list[Origin]:
        """Everybody who wrote in a stretch, who wrote most first; each with when they last did."""
        first, last = bisect_right(self._starts, start) - 1, max(bisect_left(self._starts, stop), 1)
        written: dict[tuple[Kind, str], int] = {}
        latest: dict[tuple[Kind, str], Origin] = {}
        edges = [*self._starts[first:last], len(self.text) + 1]
        for number, (begin, end) in enumerate(pairwise(edges), first):
            origin = self.origins[number]
            who = (origin.kind, origin.name)
            said = sum(map(len, self.text[max(begin, start) : min(end, stop)].split()))
            if not said:
                continue
            written[who] = written.get(who, 0) + said
            if who not in latest or origin.when > latest[who].when:
                latest[who] = origin
        order = sorted(written, key=lambda who: (written[who], latest[who].when, who), reverse=True)
        return [latest[who] for who in order]
