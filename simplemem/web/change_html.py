"""Renders what a change did to a note: its text as it is displayed, with added and removed words.

`simplemem.web.rendering` calls it in a worker process, because a note may be hostile. The HTML is
made by the template `change.html`, which escapes all words.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Final, NamedTuple

from simplemem.note.word_diff import BlockChange, SpanKind, compare_blocks, compare_words
from simplemem.web.markdown_blocks import Block, Word, split_into_blocks
from simplemem.web.templating import render_template

_MAX_ROWS: Final = 1_500
_CONTEXT: Final = 1  # equal blocks shown beside a change
_MIN_FOLDED: Final = 3  # equal blocks that are folded


class Part(NamedTuple):
    """Words of one style that were added, removed or are the same."""

    kind: SpanKind
    text: str
    styles: tuple[str, ...]
    href: str


class Row(NamedTuple):
    """A block of the old or the new text, or of both. `kind` is its CSS class.

    `change` is "added" or "removed" for a block that is in one text only, "changed" if its words
    differ, else "same".
    """

    kind: str
    depth: int
    change: str
    parts: tuple[Part, ...]

    @property
    def old_parts(self) -> list[Part]:
        """What the old text has."""
        return [part for part in self.parts if part.kind != "added"]

    @property
    def new_parts(self) -> list[Part]:
        """What the new text has."""
        return [part for part in self.parts if part.kind != "removed"]


class Section(NamedTuple):
    """Rows that are shown, or equal ones that are folded."""

    is_folded: bool
    rows: tuple[Row, ...]


def render_change(old: str, new: str, prefix: str, layout: str, *, is_cut: bool = False) -> str:
    """Return the HTML of two texts of a note, with the words that were added and removed.

    In the layout "inline", added and removed words follow each other; in "side", the old text is
    beside the new one. Equal parts are folded. `prefix` is that of the vault, for links. `is_cut`
    says that the texts are parts of larger ones, which the HTML says too.
    """
    rows = _compare(split_into_blocks(old, prefix), split_into_blocks(new, prefix))
    is_cut = is_cut or len(rows) > _MAX_ROWS
    return render_template(
        "change.html",
        sections=_fold(rows[:_MAX_ROWS]),
        is_side_by_side=layout == "side",
        is_cut=is_cut,
        is_equal=all(row.change == "same" for row in rows),
    )


def _compare(old: Sequence[Block], new: Sequence[Block]) -> list[Row]:
    """Return the rows of two notes, in the order of the new one."""
    rows = []
    changes = compare_blocks([block.keys for block in old], [block.keys for block in new])
    for change in changes:
        rows += _rows_of(change, old, new)
    return rows


def _rows_of(change: BlockChange, old: Sequence[Block], new: Sequence[Block]) -> list[Row]:
    """Return the rows of one block: two if it became a block of another kind, such as a heading."""
    old_block = None if change.old is None else old[change.old]
    new_block = None if change.new is None else new[change.new]
    if old_block is None and new_block is not None:
        return [_whole_row(new_block, "added")]
    if new_block is None and old_block is not None:
        return [_whole_row(old_block, "removed")]

    assert old_block is not None
    assert new_block is not None
    if not change.is_changed:
        return [_whole_row(new_block, "same")]
    if (old_block.kind, old_block.depth) != (new_block.kind, new_block.depth):
        return [_whole_row(old_block, "removed"), _whole_row(new_block, "added")]
    return [_changed_row(old_block, new_block)]


def _whole_row(block: Block, kind: SpanKind) -> Row:
    """Return the row of a block all of whose words were added, removed or are the same."""
    return Row(block.kind, block.depth, kind, tuple(_join_words(kind, block.words)))


def _changed_row(old: Block, new: Block) -> Row:
    """Return the row of a block some of whose words changed."""
    parts: list[Part] = []
    for span in compare_words([word.key for word in old.words], [word.key for word in new.words]):
        words = old.words if span.kind == "removed" else new.words
        parts += _join_words(span.kind, words[span.start : span.end])
    return Row(new.kind, new.depth, "changed", tuple(parts))


def _join_words(kind: SpanKind, words: Sequence[Word]) -> list[Part]:
    """Return words in parts of one style each."""
    parts = []
    for (styles, href), run in groupby(words, lambda word: (word.styles, word.href)):
        text = "".join(word.text for word in run)
        parts.append(Part(kind, text, styles, href))
    return parts


def _fold(rows: Sequence[Row]) -> list[Section]:
    """Return rows in sections: what changed with one equal block on each side, and folded rest.

    Short runs of equal rows between changes are shown. All rows are folded if nothing changed.
    """
    is_equal = all(row.change == "same" for row in rows)
    shown = [False] * len(rows)
    for index, row in enumerate(rows):
        if row.change != "same":
            for near in range(max(0, index - _CONTEXT), min(len(rows), index + _CONTEXT + 1)):
                shown[near] = True

    sections = []
    for is_shown, run in groupby(range(len(rows)), lambda index: shown[index]):
        section_rows = tuple(rows[index] for index in run)
        is_folded = not is_shown and (is_equal or len(section_rows) >= _MIN_FOLDED)
        sections.append(Section(is_folded, section_rows))
    return sections
