"""What a text holds that its reader does not see: invisible characters, turned writing, comments. Pure; changes nothing.

A person reads a note as it is drawn, a model as it is spelled, and what only one of them sees may be meant to mislead the
other. What writing needs is not counted: joiners in emoji and in scripts that join, marks in text from right to left, a
variation selector after its character.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_SAID = {
    "invisible": ("invisible character", "invisible characters"),
    "direction": ("character that turns the direction of writing", "characters that turn the direction of writing"),
    "tag": ("invisible letter (a Unicode tag)", "invisible letters (Unicode tags)"),
    "control": ("control character", "control characters"),
    "html": ("HTML comment, which its readers do not see", "HTML comments, which its readers do not see"),
    "comment": ("comment (%%), which its readers do not see", "comments (%%), which its readers do not see"),
}


@dataclass(frozen=True, slots=True)
class Unseen:
    """How much of one kind there is, and the line of the first."""

    kind: str
    count: int
    line: int

    def said(self) -> str:
        """`3 invisible characters`."""
        return f"{self.count} {_SAID[self.kind][self.count != 1]}"


_SUSPECT = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff]+"
)
_KINDS = (
    ("direction", re.compile("[\u202a-\u202e\u2066-\u2069]")),
    ("tag", re.compile("[\U000e0000-\U000e007f]")),
    ("control", re.compile("[\x00-\x1f\x7f-\x9f]")),
    ("invisible", re.compile("[^\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f\x00-\x1f\x7f-\x9f]")),
)
_MARKS = "\u200e\u200f\u061c"
_FROM_THE_RIGHT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]")
# Scripts whose letters are joined or parted by U+200C and U+200D: Arabic and its kin, those of India and South-East Asia.
_JOINING = re.compile("[\u0600-\u08ff\u0900-\u0dff\u0e00-\u109f\u1780-\u18af\ua800-\ua8ff\ufb50-\ufdff\ufe70-\ufefc]")
_PICTURE = re.compile("[\u00a9\u00ae\u203c-\u3299\U0001f000-\U0001faff\ufe0f]")
_IDEOGRAPH = re.compile("[\u2e80-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_FLAG = re.compile("[\U000e0020-\U000e007e]{1,6}\U000e007f")
_BLACK_FLAG = "\U0001f3f4"
_FENCE = re.compile(r" {0,3}(?:> ?)*(`{3,}|~{3,})")


def find_unseen(text: str, first_line: int = 1) -> list[Unseen]:
    """What a reader of this text does not see, by kind. Lines are counted from `first_line`."""
    found: dict[str, tuple[int, int]] = {}  # how many, and where the first is
    for kind, count, at in (*_characters(text), *_comments(text)):
        if count:
            many, first = found.get(kind, (0, at))
            found[kind] = many + count, first
    return [Unseen(kind, many, first_line + text.count("\n", 0, at)) for kind, (many, at) in found.items()]


def _characters(text: str) -> Iterator[tuple[str, int, int]]:
    from_the_right: bool | None = None
    for run in _SUSPECT.finditer(text):
        if run[0] in _MARKS:
            if from_the_right is None:
                from_the_right = _FROM_THE_RIGHT.search(text) is not None
            if from_the_right:
                continue
        if not _is_needed(text, run.start(), run.end()):
            yield from ((kind, len(one.findall(run[0])), run.start()) for kind, one in _KINDS)


def _is_needed(text: str, start: int, end: int) -> bool:
    """Whether a run of characters that are not seen is what the writing around it needs."""
    run, before, after = text[start:end], text[start - 1 : start] if start else "", text[end : end + 1]
    if run == "\ufeff":
        return start == 0
    if run in ("\u200c", "\u200d") and _JOINING.match(before):
        return True
    if run in ("\u200d", "\ufe0f\u200d"):
        return bool(_PICTURE.match(before) and _PICTURE.match(after))
    if len(run) == 1 and "\ufe00" <= run <= "\ufe0f":
        return bool(before) and not before.isspace()
    if len(run) == 1 and "\U000e0100" <= run <= "\U000e01ef":
        return _IDEOGRAPH.match(before) is not None
    if before == _BLACK_FLAG:
        return _FLAG.fullmatch(run) is not None
    return run in ("\xad", "\u034f") and before.isalpha() and (after.isalpha() or after in "\r\n")


def _comments(text: str) -> Iterator[tuple[str, int, int]]:
    if "<!--" not in text and "%%" not in text:
        return
    at, fence, within = 0, "", False
    for line in text.split("\n"):
        opened = _FENCE.match(line)
        if fence:
            if opened and opened[1].startswith(fence) and not line[opened.end() :].strip(" `~\r"):
                fence = ""
        elif opened and not within:
            fence = opened[1]
        else:
            yield "html", line.count("<!--"), at
            for _ in range(line.count("%%")):
                within = not within
                yield "comment", int(within), at
        at += len(line) + 1
