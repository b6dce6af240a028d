"""Recognise conflict copies by their names and texts. Pure.

If two devices changed a note at the same time, a synchroniser keeps both versions, one of them
under a name similar to that of the note. Only programs give some of these names. People give
others as well, such as "Chapter 2"; then the texts decide.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Final, NamedTuple

from simplemem.note.header import read_header

COPY_REASON: Final = "a conflict copy made by "
_MIN_SHARED: Final = 0.75  # of the characters of both bodies


class ConflictName(NamedTuple):
    """The name of a conflict copy."""

    original: str  # the path of the note that it is a copy of
    maker: str  # the program that gives copies such a name
    certain: bool  # False if people give such names as well

    @property
    def reason(self) -> str:
        """Return why the copy is hidden from search."""
        return COPY_REASON + self.maker


def is_copy_reason(hidden: str | None) -> bool:
    """Return whether a note is hidden from search because it is a conflict copy.

    `hidden` is the reason why it is hidden; None if it is not.
    """
    return hidden is not None and hidden.startswith(COPY_REASON)


class _CopyPattern(NamedTuple):
    """How a program names its conflict copies; `pattern` matches the file name without `.md`."""

    maker: str
    is_certain: bool
    pattern: re.Pattern[str]


# Dropbox translates the term into the language of the computer. People's folders had these.
_CONFLICTED_COPY: Final = (
    "(?i:conflicted copy|conflict copy|in konflikt stehende kopie|konfliktkopie"
    "|copie en conflit|copia en conflicto|copia conflictiva|còpia en conflicte"
    "|copia in conflitto|cópia em conflito"
    "|конфликтующая копия|の競合コピー|冲突副本)"
)
_TEXT: Final = r"[^()]*(?:\([^()]*\)[^()]*)?"  # the name of a device may be `MacBook Pro (2)`

# The first pattern that matches decides.
_COPY_PATTERNS: Final = (
    _CopyPattern(
        maker="Syncthing",
        is_certain=True,
        pattern=re.compile(r"(?P<stem>.+)\.sync-conflict-\d{8}-\d{6}(?:-[A-Z0-9]{5,8})?"),
    ),
    _CopyPattern(
        maker="Obsidian Sync",
        is_certain=True,
        pattern=re.compile(rf"(?P<stem>.*\S) \((?i:conflicted copy) {_TEXT}\d{{12}}\)"),
    ),
    _CopyPattern(
        maker="Nextcloud",
        is_certain=True,
        pattern=re.compile(rf"(?P<stem>.*\S) \({_CONFLICTED_COPY} \d{{4}}-\d\d-\d\d \d{{6}}\)"),
    ),
    _CopyPattern(
        maker="Dropbox",
        is_certain=True,
        pattern=re.compile(rf"(?P<stem>.*\S) \({_TEXT}{_CONFLICTED_COPY}{_TEXT}\)(?:-\d+)?"),
    ),
    _CopyPattern(
        maker="Dropbox",
        is_certain=True,
        pattern=re.compile(
            r"(?P<stem>.*\S) \((?:Case|Selective Sync|Unicode Encoding|Whitespace) Conflict"
            r"(?: \(?\d+\)?)?\)"
        ),
    ),
    _CopyPattern(
        maker="Seafile",
        is_certain=True,
        pattern=re.compile(r"(?P<stem>.*\S) \(SFConflict [^()]+\)"),
    ),
    _CopyPattern(
        maker="pCloud",
        is_certain=True,
        pattern=re.compile(r"(?P<stem>.*\S) (?:\(conflicted(?: \d+)?\)|\[conflicted(?: \d+)?\])"),
    ),
    _CopyPattern(
        maker="ownCloud",
        is_certain=True,
        pattern=re.compile(r"(?P<stem>.+)_conflict-\d{8}-\d{6}"),
    ),
    _CopyPattern(
        maker="git",
        is_certain=True,
        pattern=re.compile(r"(?P<stem>.+)[_.](?:BACKUP|BASE|LOCAL|REMOTE)[_.]\d+"),
    ),
    _CopyPattern(
        maker="OneDrive",
        is_certain=False,
        pattern=re.compile(r"(?P<stem>.*\S)-(?:DESKTOP|LAPTOP|WIN)-[A-Z0-9]{4,}(?:-\d{1,2})?"),
    ),
    _CopyPattern(
        maker="a synchroniser",
        is_certain=False,
        pattern=re.compile(r"(?P<stem>.*\S) \(\d{1,2}\)"),
    ),
    _CopyPattern(
        maker="iCloud",
        is_certain=False,
        pattern=re.compile(r"(?P<stem>.*\S) (?:[2-9]|[1-9]\d)"),  # the first copy has the number 2
    ),
)
_GIT_COPY: Final = re.compile(r"(?P<original>.+\.md)(?:~[^~]+|\.orig)", re.IGNORECASE)


def parse_conflict_name(path: str) -> ConflictName | None:
    """Return what the path of a conflict copy tells; None if the path is an ordinary one."""
    folder, slash, file_name = path.rpartition("/")
    stem = file_name[:-3]
    extension = file_name[-3:]
    if extension.casefold() != ".md":
        git_copy = _GIT_COPY.fullmatch(file_name)
        if git_copy is None:
            return None
        return ConflictName(f"{folder}{slash}{git_copy['original']}", "git", certain=True)

    # A quick check: the names of copies end so, and few others do.
    last = stem[-1:]
    may_be_copy = last in (")", "]") or last.isdigit() or last.isupper()
    if not may_be_copy:
        return None

    for maker, is_certain, pattern in _COPY_PATTERNS:
        copy = pattern.fullmatch(stem)
        if copy:
            original = f"{folder}{slash}{copy['stem']}{extension}"
            return ConflictName(original, maker, is_certain)
    return None


def are_similar(one: str, other: str) -> bool:
    """Return whether two texts are versions of one: three quarters of their bodies are the same.

    Frontmatter does not count, because notes of one template share it.
    """
    lines = _count_body_lines(one)
    other_lines = _count_body_lines(other)
    total = _count_characters(lines + other_lines)
    shared = _count_characters(lines & other_lines)
    return total > 0 and 2 * shared >= _MIN_SHARED * total


def _count_body_lines(text: str) -> Counter[str]:
    """Return the lines of a note's body without blanks around them, and how often each occurs."""
    body = text[read_header(text).body_start :]
    return Counter(map(str.strip, body.split("\n")))


def _count_characters(lines: Counter[str]) -> int:
    """Return the number of characters in counted lines."""
    return sum(len(line) * count for line, count in lines.items())
