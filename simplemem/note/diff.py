"""Compare two texts line by line: which lines both have, and the unified diff of the others. Pure.

Every comparison of the program goes through `match_lines`. It first matches the lines that occur
exactly once in each text, in the longest order that the texts share (a "patience diff"), then the
lines between those. `difflib` matches small regions in which no such line is left. The work is
bounded: where the bound is reached, the rest of a region counts as one large change. Lines that
differ are never matched.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import Final, NamedTuple, TypeVar

SHORT_DIFF: Final = 4_000  # characters of a diff in an error message
LONG_DIFF: Final = 40_000  # characters of a diff that is the answer
WHAT_YOU_HAD: Final = ("the text you had", "the current text")
WHAT_YOU_WANT: Final = ("the text you want", "the current text")

_MAX_BYTES: Final = 200_000  # of a text, if its diff may be left out
_CONTEXT_LINES: Final = 3  # shown around a change, so that a reader finds the place
_MAX_DIFFLIB_CELLS: Final = 40_000  # the lines of one side times those of the other
# The bound on the work of `match_lines`: so many steps for each line, and so many for any texts.
_STEPS_PER_LINE: Final = 12
_EXTRA_STEPS: Final = 1_500_000

_NO_NEWLINE: Final = "\n\\ No newline at end of file\n"

_Lines = Sequence[str]
_Region = tuple[int, int, int, int]  # start and end in one text, start and end in the other
_LinePair = tuple[int, int]  # the indexes of equal lines
_AuthorT = TypeVar("_AuthorT")
_TextState = tuple[str | None, _AuthorT]  # the hash of a text, None if there was no note


class _Change(NamedTuple):
    """The lines old_start:old_end of one text became the lines new_start:new_end of another."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


def unified_diff(
    old: bytes | None,
    new: bytes,
    names: tuple[str, str],
    max_characters: int | None = SHORT_DIFF,
) -> str:
    """Return the unified diff of two texts, cut after `max_characters`.

    `names` are those of the old and the new text in its header. Returns "" if the texts are equal,
    if there is no old text, or if one of them has more than 200,000 bytes. A cut diff ends with a
    whole line and the line `... (shortened)`. With `max_characters` None, no text is too large, and
    nothing is cut.
    """
    if old is None or old == new:
        return ""
    larger_size = max(len(old), len(new))
    if max_characters is not None and larger_size > _MAX_BYTES:
        return ""

    old_lines = lines_of(old)
    new_lines = lines_of(new)
    old_name, new_name = names
    lines = [f"--- {old_name}\n", f"+++ {new_name}\n"]
    for hunk in _group_into_hunks(changed_regions(old_lines, new_lines)):
        lines += _hunk_lines(old_lines, new_lines, hunk)

    text = "".join(map(_end_line, lines))
    if max_characters is not None and len(text) > max_characters:
        whole_lines, _, _ = text[:max_characters].rpartition("\n")
        text = whole_lines + "\n... (shortened)\n"
    return text


def _end_line(line: str) -> str:
    """Return a line of a diff with a line end.

    A line without one, which is the last of its file, gets git's remark about that too.
    """
    if line.endswith("\n"):
        return line
    return line + _NO_NEWLINE


def _group_into_hunks(changes: Iterator[_Change]) -> list[list[_Change]]:
    """Return the changes in groups. Those whose 3 context lines would meet are in one group."""
    hunks: list[list[_Change]] = []
    last_end = 0
    for change in changes:
        unchanged_lines = change.old_start - last_end
        if not hunks or unchanged_lines > 2 * _CONTEXT_LINES:
            hunks.append([])
        hunks[-1].append(change)
        last_end = change.old_end
    return hunks


def _hunk_lines(
    old: _Lines,
    new: _Lines,
    hunk: Sequence[_Change],
) -> Iterator[str]:
    """Yield the lines of a hunk: its header, its changes, and the context lines around them.

    The last line of a text may lack its line end.
    """
    first = hunk[0]
    last = hunk[-1]
    lines_to_end = len(old) - last.old_end
    lines_before = min(_CONTEXT_LINES, first.old_start)
    lines_after = min(_CONTEXT_LINES, lines_to_end)
    start = first.old_start - lines_before
    end = last.old_end + lines_after
    new_start = first.new_start - lines_before
    new_end = last.new_end + lines_after
    old_range = _format_range(start, end)
    new_range = _format_range(new_start, new_end)

    yield f"@@ -{old_range} +{new_range} @@\n"
    position = start
    for change in hunk:
        context = old[position : change.old_start]
        removed = old[change.old_start : change.old_end]
        added = new[change.new_start : change.new_end]
        yield from _prefix_lines(" ", context)
        yield from _prefix_lines("-", removed)
        yield from _prefix_lines("+", added)
        position = change.old_end
    yield from _prefix_lines(" ", old[position:end])


def _prefix_lines(prefix: str, lines: _Lines) -> Iterator[str]:
    """Yield each line behind a prefix."""
    return (prefix + line for line in lines)


def _format_range(start: int, end: int) -> str:
    """Return the range of lines start:end, counted from 0, as the header of a hunk names it.

    There, lines are counted from 1, and the length follows the first line: `4,2` for 3:5. A range
    of one line is written without its length: `4`. An empty one has the number of the line before
    it: `3,0` for 3:3.
    """
    length = end - start
    if length == 0:
        return f"{start},0"
    if length == 1:
        return f"{start + 1}"
    return f"{start + 1},{length}"


def changed_regions(old: _Lines, new: _Lines) -> Iterator[_Change]:
    """Yield the ranges in which two sequences of texts differ, in order, as indexes in each.

    One side of a change is empty if items were only added or only removed. Equal sequences yield
    nothing.
    """
    old_start = 0
    new_start = 0
    # A change ends before the next pair of equal lines. Behind the last lines, the ends are a pair.
    new_ends = [*match_lines(old, new), len(new)]
    for old_end, new_end in enumerate(new_ends):
        if new_end < 0:
            continue
        if old_end > old_start or new_end > new_start:
            yield _Change(old_start, old_end, new_start, new_end)
        old_start = old_end + 1
        new_start = new_end + 1


def lines_of(data: bytes) -> list[str]:
    """Return the lines of a text with their ends. Only LF ends a line.

    The last line has no end if the text has none. Bytes that are not UTF-8 become U+FFFD.
    """
    text = data.decode("utf-8", "replace")
    *lines, last_line = text.split("\n")
    ended_lines = [line + "\n" for line in lines]
    if last_line:
        ended_lines.append(last_line)
    return ended_lines


def blame(
    now: bytes,
    states: Sequence[_TextState[_AuthorT]],
    text_of: Callable[[str], bytes | None],
) -> list[_AuthorT | None]:
    """Return the author of each line of a text, as many as `lines_of` gives lines.

    `states` are the states of the note, newest first; the first is that with the text `now`. A
    state has the hash of its text (None: there was no note) and the author who wrote it. `text_of`
    returns the text with a hash, or None if it is no longer kept. The author of a line is None if
    several could have written it, because the texts between their changes are not kept, or if there
    are no states. Changes of the spaces at line ends do not count.
    """
    lines = _stripped_lines(now)
    authors: list[_AuthorT | None] = [None] * len(lines)
    oldest_index = {sha: index for index, (sha, _) in enumerate(states)}
    # For each line whose author is not determined yet: its index in `lines`, an ever older text.
    positions = {line: line for line in range(len(lines))}
    index = 0

    while positions and index < len(states):
        # A text that came back, for example by an undo, is as old as its first occurrence.
        sha, _ = states[index]
        index = oldest_index[sha]
        previous_index, previous_text = _previous_kept_text(states, index, text_of)
        author = _only_author(states[index:previous_index])

        previous_lines = _stripped_lines(previous_text)
        matched = match_lines(lines, previous_lines)
        previous_positions: dict[int, int] = {}
        for line, position in positions.items():
            previous_position = matched[position]
            if previous_position < 0:
                authors[line] = author
            else:
                previous_positions[line] = previous_position

        index = previous_index
        lines = previous_lines
        positions = previous_positions
    return authors


def _stripped_lines(data: bytes) -> list[str]:
    """Return the lines of a text without the white space at their ends, which has no author."""
    return [line.rstrip() for line in lines_of(data)]


def _previous_kept_text(
    states: Sequence[_TextState[_AuthorT]],
    index: int,
    text_of: Callable[[str], bytes | None],
) -> tuple[int, bytes]:
    """Return the index of the first state after `index` whose text is kept, and the text.

    If there is none, returns the number of states and an empty text. A note that did not exist has
    an empty text too.
    """
    for previous_index in range(index + 1, len(states)):
        sha, _ = states[previous_index]
        text = b"" if sha is None else text_of(sha)
        if text is not None:
            return previous_index, text
    return len(states), b""


def _only_author(states: Sequence[_TextState[_AuthorT]]) -> _AuthorT | None:
    """Return the author of some states, at least one; None if they have more than one."""
    _, author = states[0]
    authors = {author for _, author in states}
    if len(authors) > 1:
        return None
    return author


def match_lines(one: _Lines, other: _Lines) -> list[int]:
    """Return for each line of `one` the index of the same line of `other`, or -1.

    The indexes rise, so no two matches cross. The work is bounded: between large texts that differ
    much, equal lines may stay unmatched. Lines that differ are never matched.
    """
    matcher = _Matcher(one, other)
    matcher.match_all()
    return matcher.matched


class _Matcher:
    """Guards the matches of two texts, and how much work may still be done for more of them.

    `matched` has, for each line of `one`, the index of its match in `other`, or -1. A region is the
    start and end of some lines in `one`, then those in `other`.
    """

    def __init__(self, one: _Lines, other: _Lines) -> None:
        """Begin without matches. The longer the texts, the more work is allowed."""
        self._one = one
        self._other = other
        line_count = len(one) + len(other)
        self._steps_left = _STEPS_PER_LINE * line_count + _EXTRA_STEPS
        self.matched = [-1] * len(one)

    def match_all(self) -> None:
        """Match the lines of both texts, until no region is left or the work is too much."""
        whole = (0, len(self._one), 0, len(self._other))
        regions = [whole]
        while regions:
            region = self._match_ends(regions.pop())
            start, end, other_start, other_end = region
            length = end - start
            other_length = other_end - other_start
            self._steps_left -= length + other_length
            if not length or not other_length or self._steps_left < 0:
                continue

            anchors = _find_anchors(self._one, self._other, region)
            if anchors:
                regions += self._match_anchors(region, anchors)
            elif length * other_length <= _MAX_DIFFLIB_CELLS:
                self._steps_left -= length * other_length
                self._match_by_difflib(region)

    def _match_ends(self, region: _Region) -> _Region:
        """Match the equal lines at the start and the end of a region; return what lies between."""
        one = self._one
        other = self._other
        matched = self.matched
        start, end, other_start, other_end = region

        while start < end and other_start < other_end and one[start] == other[other_start]:
            matched[start] = other_start
            start += 1
            other_start += 1
        while start < end and other_start < other_end and one[end - 1] == other[other_end - 1]:
            end -= 1
            other_end -= 1
            matched[end] = other_end
        return start, end, other_start, other_end

    def _match_anchors(self, region: _Region, anchors: list[_LinePair]) -> list[_Region]:
        """Match pairs of equal lines in a region; return the regions between them.

        Regions that are empty on one side are left out.
        """
        matched = self.matched
        regions = []
        start, end, other_start, other_end = region
        for line, other_line in anchors:
            matched[line] = other_line
            if start < line and other_start < other_line:
                regions.append((start, line, other_start, other_line))
            start = line + 1
            other_start = other_line + 1

        if start < end and other_start < other_end:
            regions.append((start, end, other_start, other_end))
        return regions

    def _match_by_difflib(self, region: _Region) -> None:
        """Match the longest runs of equal lines in a region, then those on both sides of them."""
        start, end, other_start, other_end = region
        rest = SequenceMatcher(
            None,
            self._one[start:end],
            self._other[other_start:other_end],
            autojunk=False,
        )
        for position, other_position, size in rest.get_matching_blocks():
            first = start + position
            other_first = other_start + other_position
            other_lines = range(other_first, other_first + size)
            self.matched[first : first + size] = other_lines


def _find_anchors(
    one: _Lines,
    other: _Lines,
    region: _Region,
) -> list[_LinePair]:
    """Return pairs of equal lines that occur once on each side of a region and do not cross.

    A pair has the index in `one` and the index in `other`. As many as possible are returned, in
    order.
    """
    start, end, other_start, other_end = region
    indexes = _unique_lines(one, start, end)
    other_indexes = _unique_lines(other, other_start, other_end)

    pairs: list[_LinePair] = []
    for line, index in indexes.items():
        other_index = other_indexes.get(line)
        if other_index is not None:
            pairs.append((index, other_index))
    return _longest_rising(pairs)


def _unique_lines(lines: _Lines, start: int, end: int) -> dict[str, int]:
    """Return the lines that occur once in `lines[start:end]`, in order, with their indexes."""
    counts = Counter(lines[start:end])
    return {lines[index]: index for index in range(start, end) if counts[lines[index]] == 1}


def _longest_rising(pairs: list[_LinePair]) -> list[_LinePair]:
    """Return the longest selection of pairs whose second numbers rise, in their order.

    The first numbers of `pairs` must rise already. The algorithm is patience sorting: for each
    length, it keeps the selection that ends with the smallest number.
    """
    smallest_ends: list[int] = []  # by the length of a selection, from 1
    last_pairs: list[int] = []  # the index of the pair with that end
    previous_pairs: list[int] = []  # for each pair, the one before it in its selection, or -1
    for index, (_, number) in enumerate(pairs):
        length = bisect_left(smallest_ends, number)
        previous = last_pairs[length - 1] if length else -1
        previous_pairs.append(previous)
        if length == len(smallest_ends):
            smallest_ends.append(number)
            last_pairs.append(index)
        else:
            smallest_ends[length] = number
            last_pairs[length] = index

    selection: list[_LinePair] = []
    index = last_pairs[-1] if last_pairs else -1
    while index >= 0:
        selection.append(pairs[index])
        index = previous_pairs[index]
    selection.reverse()
    return selection
