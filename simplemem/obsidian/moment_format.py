"""Dates in the formats of Moment.js, which Obsidian's settings and templates have. Pure.

The names of days and months are English, and weeks are those of ISO 8601.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final

# A text in brackets, or a token; the letters in the group are a token once or twice: M or MM.
_TOKEN: Final = re.compile(
    r"\[[^\[\]]*\]|YYYY|YY|GGGG|gggg|MMMM|MMM|Do|DDDD|dddd|ddd|([MDHhWw])\1?|mm|ss|A"
)
_DIRECTIVES: Final = {  # of `strftime`
    "YYYY": "%Y", "YY": "%y", "GGGG": "%G", "gggg": "%G",
    "MMMM": "%B", "MMM": "%b", "MM": "%m",
    "DDDD": "%j", "DD": "%d", "dddd": "%A", "ddd": "%a",
    "WW": "%V", "ww": "%V",
    "HH": "%H", "hh": "%I", "mm": "%M", "ss": "%S", "A": "%p",
}  # fmt: skip
_ORDINAL_ENDINGS: Final = {1: "st", 21: "st", 31: "st", 2: "nd", 22: "nd", 3: "rd", 23: "rd"}


def format_date(pattern: str, moment: datetime) -> str:
    """Return a moment in a format of Moment.js, such as `YYYY-MM-DD`.

    Text in brackets stays, without the brackets, and so do letters that are no token. Never raises.
    """
    return _TOKEN.sub(lambda match: _format_token(match[0], moment), pattern)


def _format_token(name: str, moment: datetime) -> str:
    """Return what one token, or a text in brackets, of a format stands for."""
    if name.startswith("["):
        return name[1:-1]
    if name == "Do":
        return f"{moment.day}{_ORDINAL_ENDINGS.get(moment.day, 'th')}"
    if name in _DIRECTIVES:
        return moment.strftime(_DIRECTIVES[name])

    # One letter is the same number as two, without a zero before it.
    number = moment.strftime(_DIRECTIVES[name * 2])
    return number.lstrip("0") or "0"
