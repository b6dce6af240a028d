"""Compare two texts block by block and then word by word. Pure.

A block is a unit of its own, such as a line, a paragraph or an item of a list. Blocks that are
equal are matched first. Between those, a removed and an added block that share words count as one
changed block, which is compared word by word.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from simplemem.note.diff import changed_regions

_WORD: Final = re.compile(r"\w+|\s+|[^\w\s]")
_MIN_SHARED: Final = 0.35  # of the words, so that two blocks count as one changed block
_MAX_PAIRS: Final = 400  # of blocks that are compared with one another in one region

SpanKind = Literal["same", "added", "removed"]


class Span(NamedTuple):
    """A run of words: in the old block if it was removed, else in the new one.

    `start` and `end` are positions of words in that block.
    """

    kind: SpanKind
    start: int
    end: int


class BlockChange(NamedTuple):
    """What became of one block: its position in the old and in the new text.

    `old` is None for an added block, and `new` for a removed one. If the block is in both texts,
    `is_changed` says whether its words differ.
    """

    old: int | None
    new: int | None
    is_changed: bool


def split_into_words(text: str) -> list[str]:
    """Return the words of a text, with the spaces and the punctuation between them."""
    return _WORD.findall(text)


def compare_blocks(old: Sequence[Sequence[str]], new: Sequence[Sequence[str]]) -> list[BlockChange]:
    """Return what became of each block, in the order of the new text.

    A block is a sequence of words. A removed block is where it was in the old text.
    """
    old_keys = ["\0".join(words) for words in old]
    new_keys = ["\0".join(words) for words in new]
    changes: list[BlockChange] = []
    old_position = 0
    new_position = 0

    for region in changed_regions(old_keys, new_keys):
        while old_position < region.old_start:
            changes.append(BlockChange(old_position, new_position, is_changed=False))
            old_position += 1
            new_position += 1
        removed = range(region.old_start, region.old_end)
        added = range(region.new_start, region.new_end)
        changes += _pair_blocks(old, new, removed, added)
        old_position = region.old_end
        new_position = region.new_end

    while old_position < len(old):
        changes.append(BlockChange(old_position, new_position, is_changed=False))
        old_position += 1
        new_position += 1
    return changes


def _pair_blocks(
    old: Sequence[Sequence[str]], new: Sequence[Sequence[str]], removed: range, added: range
) -> list[BlockChange]:
    """Return what became of the blocks of a region: those that share words are paired, in order."""
    pairs = []
    if len(removed) * len(added) <= _MAX_PAIRS:
        pairs = _similar_pairs(old, new, removed, added)

    changes = []
    old_position = removed.start
    new_position = added.start
    for old_index, new_index in [*pairs, (removed.stop, added.stop)]:
        changes += [
            BlockChange(index, None, is_changed=True) for index in range(old_position, old_index)
        ]
        changes += [
            BlockChange(None, index, is_changed=True) for index in range(new_position, new_index)
        ]
        if old_index < removed.stop:
            changes.append(BlockChange(old_index, new_index, is_changed=True))
        old_position = old_index + 1
        new_position = new_index + 1
    return changes


def _similar_pairs(
    old: Sequence[Sequence[str]], new: Sequence[Sequence[str]], removed: range, added: range
) -> list[tuple[int, int]]:
    """Return the pairs of blocks that do not cross and together share the most words."""
    # best[i][j] is the most that the first i removed and the first j added blocks can share.
    best = [[0.0] * (len(added) + 1) for _ in range(len(removed) + 1)]
    shares = {}
    for row, old_index in enumerate(removed, start=1):
        for column, new_index in enumerate(added, start=1):
            share = shared_words(old[old_index], new[new_index])
            shares[row, column] = share
            without_pair = max(best[row - 1][column], best[row][column - 1])
            with_pair = 0.0
            if share >= _MIN_SHARED:
                with_pair = best[row - 1][column - 1] + share
            best[row][column] = max(without_pair, with_pair)

    pairs = []
    row = len(removed)
    column = len(added)
    while row and column:
        if best[row][column] == best[row - 1][column]:
            row -= 1
        elif best[row][column] == best[row][column - 1]:
            column -= 1
        else:
            row -= 1
            column -= 1
            pairs.append((removed[row], added[column]))
    pairs.reverse()
    return pairs


def shared_words(one: Sequence[str], other: Sequence[str]) -> float:
    """Return the share of words that two blocks have in common, from 0 to 1, whatever their order.

    Spaces and punctuation do not count. Two blocks without words share nothing.
    """
    words = [word for word in one if word[:1].isalnum()]
    other_words = [word for word in other if word[:1].isalnum()]
    total = len(words) + len(other_words)
    if not total:
        return 0.0

    counts: dict[str, int] = {}
    for word in words:
        counts[word] = counts.get(word, 0) + 1
    common = 0
    for word in other_words:
        if counts.get(word, 0) > 0:
            counts[word] -= 1
            common += 1
    return 2 * common / total


def compare_words(old: Sequence[str], new: Sequence[str]) -> list[Span]:
    """Return which words of a block were removed and added, and which are the same, in order.

    Spaces and signs between two changed words count as changed too, so that a reader sees one
    change instead of many.
    """
    spans: list[Span] = []
    position = 0  # in the new block
    for removed, added in _changed_runs(old, new):
        spans.append(Span("same", position, added.start))
        spans.append(removed)
        spans.append(added)
        position = added.end
    spans.append(Span("same", position, len(new)))
    return [span for span in spans if span.end > span.start]


def _changed_runs(old: Sequence[str], new: Sequence[str]) -> list[tuple[Span, Span]]:
    """Return the removed words of each change with the added ones; either may be empty."""
    runs: list[tuple[Span, Span]] = []
    for region in changed_regions(old, new):
        old_start = region.old_start
        new_start = region.new_start
        if runs:
            last_removed, last_added = runs[-1]
            if not _has_word(new[last_added.end : new_start]):
                old_start = last_removed.start
                new_start = last_added.start
                runs.pop()
        removed = Span("removed", old_start, region.old_end)
        added = Span("added", new_start, region.new_end)
        runs.append((removed, added))
    return runs


def _has_word(words: Sequence[str]) -> bool:
    """Return whether one of the words is more than spaces or a sign."""
    return any(word[:1].isalnum() for word in words)
