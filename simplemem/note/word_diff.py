"""Compare two texts block by block and then word by word. Pure.

A block is a unit of its own, such as a line, a paragraph or an item of a list. Blocks that are
equal are matched first. Between those, a removed and an added block that share words count as one
changed block, which is compared word by word.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from simplemem.note.diff import changed_regions

_WORD: Final = re.compile(r"\w+|\s+|[^\w\s]")
_MIN_SHARE: Final = 0.35  # of common words, so that two blocks count as one changed block
_MAX_PAIRS: Final = 400  # of blocks that are compared with one another in one region

Words: TypeAlias = Sequence[str]
"""The words of a block, with the spaces and the punctuation between them."""
SpanKind = Literal["same", "added", "removed"]


class Span(NamedTuple):
    """A run of words: in the old block if it was removed, else in the new one.

    `start` and `end` are positions of words in that block.
    """

    kind: SpanKind
    start: int
    end: int

    @property
    def is_empty(self) -> bool:
        """Whether the run has no words."""
        return self.start == self.end


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


def compare_blocks(old: Sequence[Words], new: Sequence[Words]) -> list[BlockChange]:
    """Return what became of each block, in the order of the new text.

    A removed block is where it was in the old text.
    """
    old_texts = ["\0".join(words) for words in old]
    new_texts = ["\0".join(words) for words in new]
    changes: list[BlockChange] = []
    next_old = 0
    next_new = 0

    for region in changed_regions(old_texts, new_texts):
        unchanged = range(next_old, region.old_start)
        changes += _unchanged_blocks(unchanged, next_new)
        removed = range(region.old_start, region.old_end)
        added = range(region.new_start, region.new_end)
        changes += _changes_in_region(old, new, removed, added)
        next_old = region.old_end
        next_new = region.new_end

    unchanged = range(next_old, len(old))
    changes += _unchanged_blocks(unchanged, next_new)
    return changes


def _unchanged_blocks(old_positions: range, new_start: int) -> list[BlockChange]:
    """Return the changes of equal blocks, which begin at `new_start` in the new text."""
    return [
        BlockChange(old_position, new_position, is_changed=False)
        for new_position, old_position in enumerate(old_positions, start=new_start)
    ]


def _changes_in_region(
    old: Sequence[Words],
    new: Sequence[Words],
    removed: range,
    added: range,
) -> list[BlockChange]:
    """Return what became of the blocks in a region without equal ones.

    `removed` and `added` are the positions of its blocks in the old and in the new text. Blocks
    that share words are paired, unless the region is too large.
    """
    pairs: list[tuple[int, int]] = []
    if len(removed) * len(added) <= _MAX_PAIRS:
        pairs = _pair_blocks(old, new, removed, added)

    changes: list[BlockChange] = []
    next_old = removed.start
    next_new = added.start
    for old_position, new_position in pairs:
        changes += _removed_blocks(range(next_old, old_position))
        changes += _added_blocks(range(next_new, new_position))
        changes.append(BlockChange(old_position, new_position, is_changed=True))
        next_old = old_position + 1
        next_new = new_position + 1

    changes += _removed_blocks(range(next_old, removed.stop))
    changes += _added_blocks(range(next_new, added.stop))
    return changes


def _removed_blocks(positions: range) -> list[BlockChange]:
    """Return the changes of blocks that are only in the old text."""
    return [BlockChange(position, None, is_changed=True) for position in positions]


def _added_blocks(positions: range) -> list[BlockChange]:
    """Return the changes of blocks that are only in the new text."""
    return [BlockChange(None, position, is_changed=True) for position in positions]


def _pair_blocks(
    old: Sequence[Words],
    new: Sequence[Words],
    removed: range,
    added: range,
) -> list[tuple[int, int]]:
    """Return the pairs of blocks that do not cross and together share the most words.

    A pair has the position in the old text and that in the new one. The pairs are in order.
    """
    removed_blocks = old[removed.start : removed.stop]
    added_blocks = new[added.start : added.stop]
    best = _best_shares(removed_blocks, added_blocks)

    pairs: list[tuple[int, int]] = []
    row = len(removed)
    column = len(added)
    while row > 0 and column > 0:
        if best[row][column] == best[row - 1][column]:
            row -= 1
        elif best[row][column] == best[row][column - 1]:
            column -= 1
        else:
            row -= 1
            column -= 1
            pair = (removed[row], added[column])
            pairs.append(pair)
    pairs.reverse()
    return pairs


def _best_shares(removed: Sequence[Words], added: Sequence[Words]) -> list[list[float]]:
    """Return a table of how much the best pairs of blocks share.

    The cell in row i and column j is the largest sum of the shares of pairs that do not cross,
    among the first i removed and the first j added blocks. Blocks that share too little are no
    pair.
    """
    first_row = [0.0] * (len(added) + 1)
    table = [first_row]
    for removed_block in removed:
        row_above = table[-1]
        row = [0.0]
        for column, added_block in enumerate(added):
            without_pair = max(row_above[column + 1], row[column])
            with_pair = 0.0
            share = shared_words(removed_block, added_block)
            if share >= _MIN_SHARE:
                with_pair = row_above[column] + share
            row.append(max(without_pair, with_pair))
        table.append(row)
    return table


def shared_words(one: Words, other: Words) -> float:
    """Return the share of words that two blocks have in common, from 0 to 1, whatever their order.

    Spaces and punctuation do not count. Two blocks without words share nothing.
    """
    counts = Counter(filter(_is_word, one))
    other_counts = Counter(filter(_is_word, other))
    total = counts.total() + other_counts.total()
    if total == 0:
        return 0.0

    common_counts = counts & other_counts
    return 2 * common_counts.total() / total


def _is_word(text: str) -> bool:
    """Return whether a text is more than spaces or a sign."""
    return text[:1].isalnum()


def compare_words(old: Words, new: Words) -> list[Span]:
    """Return which words of a block were removed and added, and which are the same, in order.

    Spaces and signs between two changed words count as changed too, so that a reader sees one
    change instead of many.
    """
    spans: list[Span] = []
    position = 0  # in the new block
    for removed, added in _changed_runs(old, new):
        same = Span("same", position, added.start)
        spans += [same, removed, added]
        position = added.end

    rest = Span("same", position, len(new))
    spans.append(rest)
    return [span for span in spans if not span.is_empty]


def _changed_runs(old: Words, new: Words) -> list[tuple[Span, Span]]:
    """Return the removed words of each change with the added ones; one of them may be empty.

    Changes without a word between them are one change.
    """
    runs: list[tuple[Span, Span]] = []
    for region in changed_regions(old, new):
        removed = Span("removed", region.old_start, region.old_end)
        added = Span("added", region.new_start, region.new_end)
        if runs:
            last_removed, last_added = runs[-1]
            between = new[last_added.end : added.start]
            if not any(map(_is_word, between)):
                removed = removed._replace(start=last_removed.start)
                added = added._replace(start=last_added.start)
                runs.pop()
        runs.append((removed, added))
    return runs
