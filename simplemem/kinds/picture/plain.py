"""Texts in files that cannot hold every character: what they cannot is shown as unreadable. Pure."""

from __future__ import annotations

import re

# Control characters but tab and newline, halves of characters, and what is none: XML has no way to say them.
_UNSAYABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def sayable(text: str) -> str:
    """A text without what neither XML nor UTF-8 can hold. Marks that join letters stay: scripts need them."""
    return _UNSAYABLE.sub("\ufffd", text)


def on_one_line(text: str) -> str:
    """A text that can be said, on one line: each run of white space is one space."""
    return sayable(" ".join(text.split()))
