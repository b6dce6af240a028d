"""Renders what a change did to a note: its text as it is displayed, with added and removed words.

`simplemem.web.rendering` calls it in a worker process, because a note may be hostile. The HTML is
made by the template `change.html`, which escapes all words.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Final, Literal, NamedTuple

from simplemem.note.word_diff import BlockChange, SpanKind, compare_blocks, compare_words
from simplemem.web.markdown_blocks import Block, Word, split_into_blocks
from simplemem.web.templating import render_template

_MAX_ROWS: Final = 1_500
_CONTEXT_ROWS: Final = 1  # equal rows that are shown on each side of a change
_MIN_FOLDED_ROWS: Final = 3  # a shorter run of equal rows between changes is shown

RowChange = Literal["same", "added", "removed", "changed"]


class Part(NamedTuple):
    """Words of one style that were added, removed or are the same.

    `styles` are names of CSS classes. `href` is the address that the words link to, "" for none.
    """

    kind: SpanKind
    text: str
    styles: tuple[str, ...]
    href: str


class Row(NamedTuple):
    """A block of the old or the new text, or of both.

    `kind` is the name of its CSS class, and `depth` how far it is indented. `change` is "added" or
    "removed" for a block that is in one text only, "changed" if its words differ, else "same".
    """

    kind: str
    depth: int
    change: RowChange
    parts: tuple[Part, ...]

    @property
    def old_parts(self) -> list[Part]:
        """The parts that the old text has."""
        return [part for part in self.parts if part.kind != "added"]

    @property
    def new_parts(self) -> list[Part]:
        """The parts that the new text has."""
        return [part for part in self.parts if part.kind != "removed"]


class Section(NamedTuple):
    """Rows that follow one another: all of them are shown, or all are equal and folded."""

    is_folded: bool
    rows: tuple[Row, ...]


def render_change(old: str, new: str, prefix: str, layout: str, *, is_cut: bool = False) -> str:
    """Return the HTML of two texts of a note, with the words that were added and removed.

    In the layout "inline", added and removed words follow each other; in "side", the old text is
    beside the new one. Long equal parts are folded, and only the first 1,500 rows are shown.
    `prefix` is that of the vault, for links. `is_cut` says that the texts are parts of larger ones,
    which the HTML says too.
    """
    old_blocks = split_into_blocks(old, prefix)
    new_blocks = split_into_blocks(new, prefix)
    rows = _compare(old_blocks, new_blocks)
    shown_rows = rows[:_MAX_ROWS]
    has_more_rows = len(rows) > _MAX_ROWS
    return render_template(
        "change.html",
        sections=_fold(shown_rows),
        is_side_by_side=layout == "side",
        is_cut=is_cut or has_more_rows,
        is_equal=_are_equal(rows),
    )


def _compare(old: Sequence[Block], new: Sequence[Block]) -> list[Row]:
    """Return the rows of two texts, in the order of the new one."""
    old_keys = [block.keys for block in old]
    new_keys = [block.keys for block in new]
    rows: list[Row] = []
    for change in compare_blocks(old_keys, new_keys):
        rows += _rows_of(change, old, new)
    return rows


def _rows_of(change: BlockChange, old: Sequence[Block], new: Sequence[Block]) -> list[Row]:
    """Return the row of one block, or two rows if it became a block of another kind.

    A paragraph that became a heading, for example, has a row as removed and a row as added.
    """
    if change.old is not None and change.new is not None:
        old_block = old[change.old]
        new_block = new[change.new]
        if not change.is_changed:
            return [_whole_row(new_block, "same")]
        if _look_alike(old_block, new_block):
            return [_changed_row(old_block, new_block)]

    rows: list[Row] = []
    if change.old is not None:
        rows.append(_whole_row(old[change.old], "removed"))
    if change.new is not None:
        rows.append(_whole_row(new[change.new], "added"))
    return rows


def _look_alike(one: Block, other: Block) -> bool:
    """Return whether two blocks are displayed in the same way, whatever their words are."""
    return one.kind == other.kind and one.depth == other.depth


def _whole_row(block: Block, kind: SpanKind) -> Row:
    """Return the row of a block all of whose words were added, removed or are the same."""
    parts = _join_words(kind, block.words)
    return Row(block.kind, block.depth, kind, tuple(parts))


def _changed_row(old: Block, new: Block) -> Row:
    """Return the row of a block some of whose words changed."""
    old_keys = [word.key for word in old.words]
    new_keys = [word.key for word in new.words]
    parts: list[Part] = []
    for span in compare_words(old_keys, new_keys):
        words = old.words if span.kind == "removed" else new.words
        parts += _join_words(span.kind, words[span.start : span.end])
    return Row(new.kind, new.depth, "changed", tuple(parts))


def _join_words(kind: SpanKind, words: Sequence[Word]) -> list[Part]:
    """Return words as parts, as few as possible, each with one style and one address."""
    parts: list[Part] = []
    for (styles, href), run in groupby(words, lambda word: (word.styles, word.href)):
        text = "".join(word.text for word in run)
        parts.append(Part(kind, text, styles, href))
    return parts


def _are_equal(rows: Sequence[Row]) -> bool:
    """Return whether no row has a change."""
    return all(row.change == "same" for row in rows)


def _fold(rows: Sequence[Row]) -> list[Section]:
    """Return rows in sections: changes with one equal row on each side, and what is between.

    Equal rows between changes are folded, unless they are fewer than three. If nothing changed, all
    rows are folded.
    """
    is_equal = _are_equal(rows)
    near_changes = _near_changes(rows)
    sections: list[Section] = []
    for is_near, run in groupby(range(len(rows)), lambda index: index in near_changes):
        section_rows = tuple(rows[index] for index in run)
        is_long = len(section_rows) >= _MIN_FOLDED_ROWS
        is_folded = not is_near and (is_long or is_equal)
        sections.append(Section(is_folded, section_rows))
    return sections


def _near_changes(rows: Sequence[Row]) -> set[int]:
    """Return the indexes of the rows that have a change, and of the rows beside them."""
    indexes = set[int]()
    for index, row in enumerate(rows):
        if row.change != "same":
            first = index - _CONTEXT_ROWS
            last = index + _CONTEXT_ROWS
            indexes.update(range(first, last + 1))
    return indexes
