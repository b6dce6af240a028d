"""Find characters and comments that a person who reads a note does not see. Pure.

A person reads a note as it is displayed, a model as it is written. What only one of them sees may
be meant to mislead the other.
"""

from __future__ import annotations

import re
from typing import Final

from simplemem.note.words import format_count

_SUSPECT: Final = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e"
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U000e0000-\U000e0fff]+"
)
_RIGHT_TO_LEFT: Final = re.compile(
    "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]"
)
_DIRECTION_MARKS: Final = frozenset("\u200e\u200f\u061c")
_PICTURE: Final = "[\u00a9\u00ae\u203c-\u3299\U0001f000-\U0001faff\ufe0f]"

# The invisible characters that writing needs.
_NEEDED: Final = re.compile(
    # a byte order mark at the beginning of the text
    "\\A\ufeff"
    # joiners in Arabic and related scripts, and in those of India and South-East Asia
    "|(?<=[\u0600-\u08ff\u0900-\u0dff\u0e00-\u109f\u1780-\u18af\ua800-\ua8ff\ufb50-\ufdff"
    "\ufe70-\ufefc])[\u200c\u200d]"
    # joined emoji
    f"|(?<={_PICTURE})\ufe0f?\u200d(?={_PICTURE})"
    # variants of characters
    "|(?<=\\S)[\ufe00-\ufe0f]"
    "|(?<=[\u2e80-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])[\U000e0100-\U000e01ef]"
    # the flag of a region
    "|(?<=\U0001f3f4)[\U000e0020-\U000e007e]{1,6}\U000e007f"
    # a soft hyphen, or a grapheme joiner, within a word
    "|(?<=[^\\W\\d_])[\xad\u034f](?=[^\\W\\d_]|[\r\n]|$)"
)
_FENCED_CODE: Final = re.compile(
    r"(?ms)^ {0,3}(?:> ?)*+(?P<fence>`{3,}+|~{3,}+).*?"
    r"(?:^ {0,3}(?:> ?)*+(?P=fence)[`~]*+[ \t]*+$|\Z)"
)
_COMMENT: Final = re.compile(r"<!--|%%(?:[^%]|%(?!%))*+(?:%%)?")


def find_unseen(text: str, first_line: int = 1) -> list[tuple[str, int]]:
    """Return what a person who reads this text does not see, each with its first line.

    There are at most two findings, one for characters and one for comments, such as `("3 characters
    that readers do not see", 7)`; the list is empty if there is nothing. Characters that the
    writing needs and comments in fenced code do not count. `first_line` is the number of the text's
    first line.
    """
    findings = []
    runs = _find_unseen_characters(text)
    if runs:
        number = sum(len(run[0]) for run in runs)
        line = first_line + _line_index(runs[0])
        findings.append((f"{format_count(number, 'character')} that readers do not see", line))

    comments = _find_comments(text)
    if comments:
        line = first_line + _line_index(comments[0])
        findings.append((f"{format_count(len(comments), 'comment')} that readers do not see", line))
    return findings


def _find_unseen_characters(text: str) -> list[re.Match[str]]:
    """Return the runs of characters that are not displayed and that the writing does not need."""
    # A text with right-to-left script needs single direction marks. A longer run is reported.
    ignored = _DIRECTION_MARKS if _RIGHT_TO_LEFT.search(text) else frozenset()
    runs = []
    for run in _SUSPECT.finditer(text):
        needed = _NEEDED.match(text, run.start())
        is_needed = needed is not None and needed.end() == run.end()
        if not is_needed and run[0] not in ignored:
            runs.append(run)
    return runs


def _find_comments(text: str) -> list[re.Match[str]]:
    """Return the comments outside of fenced code.

    Their offsets are those of the text without its code, but their lines are those of the text.
    """
    if "<!--" not in text and "%%" not in text:
        return []
    without_code = _FENCED_CODE.sub(_newlines_of, text)
    return list(_COMMENT.finditer(without_code))


def _newlines_of(match: re.Match[str]) -> str:
    """Return only the newlines of a match, so that the lines below keep their numbers."""
    return "\n" * match[0].count("\n")


def _line_index(match: re.Match[str]) -> int:
    """Return the number of newlines before a match in the text that was searched."""
    return match.string.count("\n", 0, match.start())
