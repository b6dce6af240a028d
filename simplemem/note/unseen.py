"""What a text holds that its reader does not see: invisible characters, turned writing, comments. Pure; changes nothing.

A person reads a note as it is drawn, a model as it is spelled, and what only one of them sees may be meant to mislead the
other. What writing needs is not counted: joiners in emoji and in scripts that join, marks in text from right to left, a
variation selector after its character.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_NAMES = {
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
        return f"{self.count} {_NAMES[self.kind][self.count != 1]}"


_SUSPECT = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff]+"
)
_KIND = re.compile(
    "(?P<direction>[\u202a-\u202e\u2066-\u2069]+)|(?P<tag>[\U000e0000-\U000e007f]+)|(?P<control>[\x00-\x1f\x7f-\x9f]+)"
    "|(?P<invisible>[^\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f\x00-\x1f\x7f-\x9f]+)"
)
_FROM_THE_RIGHT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]")
_PICTURE = "[\u00a9\u00ae\u203c-\u3299\U0001f000-\U0001faff\ufe0f]"
_NEEDED = re.compile(
    "\\A\ufeff"
    # Letters of Arabic and its kin and of the scripts of India and South-East Asia are joined or parted.
    "|(?<=[\u0600-\u08ff\u0900-\u0dff\u0e00-\u109f\u1780-\u18af\ua800-\ua8ff\ufb50-\ufdff\ufe70-\ufefc])[\u200c\u200d]"
    f"|(?<={_PICTURE})\ufe0f?\u200d(?={_PICTURE})"
    "|(?<=\\S)[\ufe00-\ufe0f]"
    "|(?<=[\u2e80-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])[\U000e0100-\U000e01ef]"
    "|(?<=\U0001f3f4)[\U000e0020-\U000e007e]{1,6}\U000e007f"  # a flag of letters
    "|(?<=[^\\W\\d_])[\xad\u034f](?=[^\\W\\d_]|[\r\n]|$)"
)
_FENCE = re.compile(r" {0,3}(?:> ?)*(`{3,}|~{3,})(.*)")


def find_unseen(text: str, first_line: int = 1) -> list[Unseen]:
    """What a reader of this text does not see, by kind. Lines are counted from `first_line`."""
    found: dict[str, tuple[int, int]] = {}  # how many, and where the first is
    for kind, count, at in (*_characters(text), *_comments(text)):
        many, first = found.get(kind, (0, at))
        found[kind] = many + count, first
    return [Unseen(kind, many, first_line + text.count("\n", 0, at)) for kind, (many, at) in found.items()]


def _characters(text: str) -> Iterator[tuple[str, int, int]]:
    from_the_right = _FROM_THE_RIGHT.search(text) is not None
    for run in _SUSPECT.finditer(text):
        needed = _NEEDED.match(text, run.start())
        if not (needed and needed.end() == run.end()) and not (from_the_right and run[0] in "\u200e\u200f\u061c"):
            yield from ((str(part.lastgroup), len(part[0]), run.start()) for part in _KIND.finditer(run[0]))


def _comments(text: str) -> Iterator[tuple[str, int, int]]:
    if "<!--" not in text and "%%" not in text:
        return
    at, fence, within = 0, "", False
    for line in text.split("\n"):
        mark = None if within else _FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence) and not mark[2].strip():
            fence = ""
        elif not fence:
            if html := line.count("<!--"):
                yield "html", html, at
            for _ in range(line.count("%%")):
                within = not within
                if within:
                    yield "comment", 1, at
        at += len(line) + 1
