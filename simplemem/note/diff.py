"""The one differ: which lines two texts share, and the unified diff that shows the others. Pure, and of bounded work:
where that is used up, one large change is seen, never a wrong one. Lines that stand once in both texts are matched
first, in the longest order they share (patience), then what lies between them, and a small rest by `difflib`."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import Final, TypeVar

SHORT_DIFF: Final = 4_000  # characters of a diff inside an error
LONG_DIFF: Final = 40_000  # of one that was asked for
WHAT_YOU_HAD: Final = ("the text you had", "the current text")
WHAT_YOU_WANT: Final = ("the text you want", "the current text")

_MOST_BYTES: Final = 200_000  # of a text whose diff may be shortened
_AROUND: Final = 3  # equal lines shown around a change, so that a reader finds the place
_MOST_CELLS: Final = 40_000  # of one small rest
_ALL_CELLS: Final = 1_500_000
_PASSES: Final = 12  # so many times the length of both texts may be looked through

_Lines = Sequence[str]
_Maker = TypeVar("_Maker")
_Change = tuple[int, int, int, int]  # these lines of the one text became those of the other


def unified_diff(
    old: bytes | None, new: bytes, names: tuple[str, str], most: int | None = SHORT_DIFF
) -> str:
    """From one text to another in at most so many characters; "" for equal ones, and unless `most` is None for large."""
    if old is None or old == new or (most is not None and max(len(old), len(new)) > _MOST_BYTES):
        return ""
    one, two = lines_of(old), lines_of(new)
    hunks: list[list[_Change]] = []  # changes near each other share one
    for change in changes(one, two):
        if not hunks or change[0] - hunks[-1][-1][1] > 2 * _AROUND:
            hunks.append([])
        hunks[-1].append(change)
    lines = [
        f"--- {names[0]}\n",
        f"+++ {names[1]}\n",
        *(line for near in hunks for line in _hunk(one, two, near)),
    ]
    text = "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )
    if most is not None and len(text) > most:
        text = text[:most].rpartition("\n")[0] + "\n... (shortened)\n"
    return text


def _hunk(one: _Lines, two: _Lines, near: Sequence[_Change]) -> Iterator[str]:
    before, after = min(_AROUND, near[0][0]), min(_AROUND, len(one) - near[-1][1])
    at, end = near[0][0] - before, near[-1][1] + after
    there, stop = near[0][2] - before, near[-1][3] + after
    # Lines are counted from 1, and an empty span by the line before it; a span of one line has no length.
    spans = [
        f"{a + (b > a)}" + ("" if b - a == 1 else f",{b - a}")
        for a, b in ((at, end), (there, stop))
    ]
    yield f"@@ -{spans[0]} +{spans[1]} @@\n"
    for start, upto, first, last in near:
        yield from (f" {line}" for line in one[at:start])
        yield from (f"-{line}" for line in one[start:upto])
        yield from (f"+{line}" for line in two[first:last])
        at = upto
    yield from (f" {line}" for line in one[at:end])


def changes(one: _Lines, two: _Lines) -> Iterator[_Change]:
    """What differs: these lines of `one` became those of `two`, in order."""
    at = there = 0
    for line, match in enumerate([*matches(one, two), len(two)]):
        if match >= 0:
            if line > at or match > there:
                yield at, line, there, match
            at, there = line + 1, match + 1


def lines_of(data: bytes) -> list[str]:
    """A text's lines, each with its end, which is `\\n` alone: what else some take for one stands within a line."""
    *lines, last = data.decode("utf-8", "replace").split("\n")
    return [line + "\n" for line in lines] + ([last] if last else [])


def blame(
    now: bytes, states: Sequence[tuple[str | None, _Maker]], text_of: Callable[[str], bytes | None]
) -> list[_Maker | None]:
    """Who made every line of the text of the first state; each is a hash (None: no note) and its maker, newest first.
    Where a text is not kept, and several could have written a line, nobody is named."""
    lines = [line.rstrip() for line in lines_of(now)]
    found: list[_Maker | None] = [None] * len(lines)
    oldest = {sha: at for at, (sha, _) in enumerate(states)}
    places = dict(
        enumerate(range(len(lines)))
    )  # the lines whose maker is still sought, and where they stood then
    at = 0
    while places and at < len(states):
        at = oldest[states[at][0]]
        before, earlier = at + 1, None
        while before < len(states) and earlier is None:
            sha = states[before][0]
            earlier = (
                b"" if sha is None else text_of(sha)
            )  # a note that was not there has no lines to hand on
            before += earlier is None
        makers = {maker for _, maker in states[at:before]}
        old = [line.rstrip() for line in lines_of(earlier or b"")]
        was = matches(lines, old)
        found_here = states[at][1] if len(makers) == 1 else None
        for line, place in list(places.items()):
            if was[place] < 0:
                found[line] = found_here
                del places[line]
            else:
                places[line] = was[place]
        at, lines = before, old
    return found


def matches(one: _Lines, other: _Lines) -> list[int]:
    """For each line of `one`, which line of `other` it is, or -1. Rising, so that no two matches cross."""
    found = [-1] * len(one)
    looks = _PASSES * (len(one) + len(other)) + _ALL_CELLS
    waiting = [(0, len(one), 0, len(other))]
    while waiting:
        start, end, there, stop = waiting.pop()
        while start < end and there < stop and one[start] == other[there]:
            found[start] = there
            start, there = start + 1, there + 1
        while start < end and there < stop and one[end - 1] == other[stop - 1]:
            end, stop = end - 1, stop - 1
            found[end] = stop
        looks -= end - start + stop - there
        if start == end or there == stop or looks < 0:
            continue
        anchors = _anchors(one, other, start, end, there, stop)
        if not anchors:
            # No line stands once: a small stretch is matched by the longest stretches that both have.
            if (end - start) * (stop - there) <= _MOST_CELLS:
                looks -= (end - start) * (stop - there)
                rest = SequenceMatcher(None, one[start:end], other[there:stop], autojunk=False)
                for mine, theirs, size in rest.get_matching_blocks():
                    found[start + mine : start + mine + size] = range(
                        there + theirs, there + theirs + size
                    )
            continue
        for mine, theirs in [*anchors, (end, stop)]:
            if mine < end:
                found[mine] = theirs
            if start < mine and there < theirs:
                waiting.append((start, mine, there, theirs))
            start, there = mine + 1, theirs + 1
    return found


def _anchors(
    one: _Lines, other: _Lines, start: int, end: int, there: int, stop: int
) -> list[tuple[int, int]]:
    """Of the lines that stand once on either side of a stretch, the longest row that rises on both sides."""
    here, over = Counter(one[start:end]), Counter(other[there:stop])
    places = {other[at]: at for at in range(there, stop) if over[other[at]] == 1}
    pairs = [
        (at, places[one[at]])
        for at in range(start, end)
        if here[one[at]] == 1 and one[at] in places
    ]
    ends: list[int] = []  # the smallest second number that a row of each length ends with
    last: list[int] = []  # the pair that is that end
    before: list[int] = []
    for at, (_, second) in enumerate(pairs):
        length = bisect_left(ends, second)
        before.append(last[length - 1] if length else -1)
        ends[length : length + 1] = [second]
        last[length : length + 1] = [at]
    row = []
    at = last[-1] if last else -1
    while at >= 0:
        row.append(pairs[at])
        at = before[at]
    return row[::-1]
