"""What the texts before and after a change show at a glance: changed lines and warnings. Pure."""

from __future__ import annotations

import re
from typing import Final

from simplemem.features.review.inbox import ChangedLine, TextPart, TextReview
from simplemem.note.diff import changed_regions
from simplemem.note.header import content_start, read_header
from simplemem.note.instructions import added_instructions
from simplemem.note.invisible import find_unseen
from simplemem.note.secrets import added_secrets
from simplemem.note.word_diff import (
    BlockChange,
    compare_blocks,
    compare_words,
    split_into_words,
)

_MAX_CHARACTERS: Final = 60_000  # of both texts together, in which words are compared
_MAX_LINES: Final = 6  # changed lines that are shown at a glance
_MAX_LINE: Final = 400  # characters of a changed line
_MIN_LINES_REMOVED: Final = 4  # of a large deletion
_MIN_SHARE_REMOVED: Final = 0.3
_WRITTEN_BY_US: Final = re.compile(r"(?:created|modified):|---\s*$")


def review_texts(old: str, new: str, current: str | None = None) -> TextReview:
    """Return the first changed lines, how many words changed, and what a reviewer should look at.

    The texts of a note that does not exist are "". Texts of more than 60,000 characters are not
    compared word by word. If the note has another text at present, `current`, warnings name the
    lines of that.
    """
    warnings = tuple(find_warnings(old, new, current))
    if len(old) + len(new) > _MAX_CHARACTERS:
        return TextReview(
            warnings=warnings, problem="the note is too large to compare word by word"
        )

    old_lines = [split_into_words(line) for line in _lines_without_stamps(old)]
    new_lines = [split_into_words(line) for line in _lines_without_stamps(new)]
    added = 0
    removed = 0
    lines = []
    for change in compare_blocks(old_lines, new_lines):
        if not change.is_changed:
            continue
        parts = _parts_of(change, old_lines, new_lines)
        added += _count_words(parts, "added")
        removed += _count_words(parts, "removed")
        if any(part.text.strip() for part in parts):
            lines.append(parts)

    return TextReview(
        words_added=added,
        words_removed=removed,
        lines=tuple(ChangedLine(_cut(parts)) for parts in lines[:_MAX_LINES]),
        has_more=len(lines) > _MAX_LINES,
        warnings=warnings,
    )


def _lines_without_stamps(text: str) -> list[str]:
    """Return the lines of a note, without its fences and the times of its creation and change.

    simplemem writes these itself, so they say nothing about a change.
    """
    header, body = _split_header(text)
    header_lines = [line for line in header.splitlines() if not _WRITTEN_BY_US.match(line)]
    return header_lines + body.splitlines()


def _split_header(text: str) -> tuple[str, str]:
    """Return the frontmatter of a note with its fences, and the rest."""
    start = content_start(text, read_header(text))
    return text[:start], text[start:]


def _parts_of(
    change: BlockChange, old_lines: list[list[str]], new_lines: list[list[str]]
) -> list[TextPart]:
    """Return a changed line in parts that were added, removed or are the same."""
    old = old_lines[change.old] if change.old is not None else []
    new = new_lines[change.new] if change.new is not None else []
    parts = []
    for span in compare_words(old, new):
        words = old if span.kind == "removed" else new
        parts.append(TextPart(span.kind, "".join(words[span.start : span.end])))
    return parts


def _count_words(parts: list[TextPart], kind: str) -> int:
    """Return how many words the parts of a kind have."""
    texts = [part.text for part in parts if part.kind == kind]
    return sum(word[:1].isalnum() for text in texts for word in split_into_words(text))


def _cut(parts: list[TextPart]) -> tuple[TextPart, ...]:
    """Return the parts of a line up to 400 characters."""
    cut = []
    left = _MAX_LINE
    for part in parts:
        if left <= 0:
            break
        cut.append(TextPart(part.kind, part.text[:left]))
        left -= len(part.text)
    return tuple(cut)


def has_lost_secret(old: str, new: str, current: str) -> bool:
    """Return whether a change added what looks like a secret that the current text lacks."""
    values = [new[secret.start : secret.end] for secret in added_secrets(old, new)]
    return any(value not in current for value in values)


def find_warnings(old: str, new: str, current: str | None = None) -> list[str]:
    """Return what a reviewer should look at in the new text, as sentences without a full stop.

    They are about what the change added: orders to agents, secrets, and what a reader does not see;
    and about a large part that it removed. What the old text had already is left out. Lines are
    those of `current` if it is given, else of the new text.
    """

    def number_of(line: int) -> int:
        """Return the number of a line of the new text in the current text."""
        return line if current is None else _number_in(current, new, line)

    warnings = [
        f"line {number_of(instruction.line)} {instruction.what}: “{instruction.quote}”"
        for instruction in added_instructions(old, new)
    ]
    warnings += [
        f"line {number_of(secret.line)} may contain a secret ({secret.kind}): {secret.shown};"
        " the history keeps it after an undo, so change it where it is used"
        for secret in added_secrets(old, new)
    ]

    known = {finding for finding, _ in find_unseen(old)}
    for finding, line in find_unseen(new):
        if finding not in known:
            warnings.append(f"{finding}, the first on line {number_of(line)}")

    removal = _describe_removal(old, new)
    if removal:
        warnings.append(removal)
    return warnings


def _number_in(current: str, text: str, line: int) -> int:
    """Return the number of the first line of the current text that is like a line of a text.

    Returns the number itself if there is none.
    """
    lines = text.splitlines()
    current_lines = current.splitlines()
    if line > len(lines) or lines[line - 1] not in current_lines:
        return line
    return current_lines.index(lines[line - 1]) + 1


def _describe_removal(old: str, new: str) -> str:
    """Return how many lines of a note's body an edit removed, if it is a large part; else ""."""
    _, old_body = _split_header(old)
    _, new_body = _split_header(new)
    old_lines = [line.strip() for line in old_body.splitlines() if line.strip()]
    new_lines = [line.strip() for line in new_body.splitlines() if line.strip()]
    if not new_lines:
        return ""  # a deletion, or an emptied note, shows that itself

    if len(old) + len(new) > _MAX_CHARACTERS:
        removed = _count_missing_lines(old_lines, new_lines)
    else:
        removed = _count_struck_lines(old_lines, new_lines)
    is_large = removed >= _MIN_LINES_REMOVED and removed >= _MIN_SHARE_REMOVED * len(old_lines)
    if not is_large:
        return ""
    return f"removes {removed} of {len(old_lines)} lines"


def _count_struck_lines(old_lines: list[str], new_lines: list[str]) -> int:
    """Return how many lines are shown as removed: no line that shares words is in their place."""
    old_words = [split_into_words(line) for line in old_lines]
    new_words = [split_into_words(line) for line in new_lines]
    return sum(change.new is None for change in compare_blocks(old_words, new_words))


def _count_missing_lines(old_lines: list[str], new_lines: list[str]) -> int:
    """Return by how many lines the changed regions have become shorter. Words do not matter."""
    removed = 0
    for region in changed_regions(old_lines, new_lines):
        lost = (region.old_end - region.old_start) - (region.new_end - region.new_start)
        removed += max(0, lost)
    return removed
