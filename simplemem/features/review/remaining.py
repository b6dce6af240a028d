"""What is left of a change in a note that was changed again since. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from simplemem.note.diff import changed_regions
from simplemem.note.word_diff import compare_blocks, shared_words, split_into_words

_MIN_SHARE: Final = 0.6  # of common words, so that a line counts as corrected and not as rewritten


def remaining_text(old: str, new: str, current: str) -> str:
    """Return the text before a change, with only those parts of the change that are still there.

    `old` and `new` are the texts before and after the change, `current` is the note as it is now.

    - A line that the change added is in the result if the note still has it. If it was corrected
      since, the result has the corrected line. If it was removed or rewritten, it is left out.
    - A line that the change removed is in the result only if the note has it again.
    """
    current_lines = set(current.splitlines())
    corrections = _find_corrections(old, new, current)
    old_lines = old.splitlines(keepends=True)
    new_lines = new.splitlines(keepends=True)
    remaining: list[str] = []
    position = 0

    for region in changed_regions(old_lines, new_lines):
        remaining += old_lines[position : region.old_start]
        removed = old_lines[region.old_start : region.old_end]
        added = new_lines[region.new_start : region.new_end]
        remaining += [line for line in removed if _content_of(line) in current_lines]
        remaining += _remaining_lines(added, current_lines, corrections)
        position = region.old_end

    remaining += old_lines[position:]
    return "".join(remaining)


def _remaining_lines(
    added: Sequence[str], current_lines: Collection[str], corrections: Mapping[str, str]
) -> Iterator[str]:
    """Yield the added lines that the note still has; corrected ones as they are now."""
    for line in added:
        content = _content_of(line)
        line_end = line[len(content) :]
        if content in current_lines:
            yield line
        elif content in corrections:
            yield corrections[content] + line_end


def _find_corrections(old: str, new: str, current: str) -> dict[str, str]:
    """Return the lines of a change that were corrected since, each with its text of now.

    A line that keeps most of its words counts as corrected. One that is again as it was before the
    change does not: nothing of the change is left in it.
    """
    old_lines = set(old.splitlines())
    new_lines = new.splitlines()
    current_lines = current.splitlines()
    new_words = [split_into_words(line) for line in new_lines]
    current_words = [split_into_words(line) for line in current_lines]

    corrections: dict[str, str] = {}
    for block in compare_blocks(new_words, current_words):
        if block.old is None or block.new is None or not block.is_changed:
            continue
        corrected = current_lines[block.new]
        share = shared_words(new_words[block.old], current_words[block.new])
        if share >= _MIN_SHARE and corrected not in old_lines:
            corrections[new_lines[block.old]] = corrected
    return corrections


def _content_of(line: str) -> str:
    """Return a line without its line end."""
    return line.rstrip("\r\n")
