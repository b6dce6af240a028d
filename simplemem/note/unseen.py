"""What a text holds that its reader does not see: invisible characters, turned writing, comments. Pure; changes
nothing.

A person reads a note as it is drawn, a model as it is spelled, and what only one of them sees may be meant to mislead
the other. What writing needs is not counted: joiners in emoji and in scripts that join, marks in text from right to
left, a variation selector after its character.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Unseen:
    """How many characters or comments there are that a reader does not see, and the line of the first."""

    kind: str
    count: int
    line: int

    def said(self) -> str:
        """`3 characters that readers do not see`."""
        return f"{self.count} {self.kind}{'s' * (self.count != 1)} that readers do not see"


_SUSPECT = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff]+"
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
    """What a reader of this text does not see. Lines are counted from `first_line`."""
    kinds = (("character", [*_characters(text)]), ("comment", [*_comments(text)]))
    return [
        Unseen(kind, sum(count for count, _ in found), first_line + text.count("\n", 0, found[0][1]))
        for kind, found in kinds
        if found
    ]


def _characters(text: str) -> Iterator[tuple[int, int]]:
    """How many stand together, and where."""
    from_the_right = _FROM_THE_RIGHT.search(text) is not None
    for run in _SUSPECT.finditer(text):
        needed = _NEEDED.match(text, run.start())
        if not (needed and needed.end() == run.end()) and not (from_the_right and run[0] in "\u200e\u200f\u061c"):
            yield len(run[0]), run.start()


def _comments(text: str) -> Iterator[tuple[int, int]]:
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
            signs = line.count("%%") + within  # every second one opens a comment, and one may be open already
            count = line.count("<!--") + (signs + 1) // 2 - within
            within = signs % 2 == 1
            if count:
                yield count, at
        at += len(line) + 1
