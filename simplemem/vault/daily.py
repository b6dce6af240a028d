"""Which day a daily note is about, told from its name by the vault's Moment format. Text in, a date out.

Moment's tokens are read (`YYYY-MM-DD`, `YYYY/MM MMMM/Do`, `GGGG-[W]WW-E`, ...), text in [brackets] is
literal. English month names are known; any language's where the format has the month as a number too.
Names of weekdays are read over. This never writes a name and never guesses: what does not match is not a
daily note.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import date
from functools import lru_cache

MAX_FORMAT = 200  # characters
MAX_TOKENS, MAX_WORDS = 12, 3  # keep the pattern's backtracking small, whatever a settings file says

_WORD = r"[^\W\d_]{1,20}\.?"  # the name of a month or a weekday, in any script
_ORDINAL = r"\d{1,2}[^\W\d_]{0,3}"  # 1st, 2nd, 3e

# What a token looks like, and the part of a date it says, if any.
_TOKENS: dict[str, tuple[str, str]] = {
    "YYYY": (r"\d{4}", "year"),
    "YY": (r"\d{2}", "short year"),
    "MMMM": (_WORD, "month name"),
    "MMM": (_WORD, "short month name"),
    "MM": (r"\d{2}", "month"),
    "Mo": (_ORDINAL, "month"),
    "M": (r"\d{1,2}", "month"),
    "DDDD": (r"\d{3}", "day of year"),
    "DDD": (r"\d{1,3}", "day of year"),
    "DD": (r"\d{2}", "day"),
    "Do": (_ORDINAL, "day"),
    "D": (r"\d{1,2}", "day"),
    "GGGG": (r"\d{4}", "week year"),
    "WW": (r"\d{2}", "week"),
    "W": (r"\d{1,2}", "week"),
    "E": (r"\d", "weekday"),
    **dict.fromkeys(("dddd", "ddd", "dd", "A", "a"), (_WORD, "")),
    **dict.fromkeys(("do", "Wo", "wo", "Qo"), (_ORDINAL, "")),
    **dict.fromkeys(("d", "e", "Q"), (r"\d", "")),
    **dict.fromkeys(("gggg",), (r"\d{4}", "")),
    **dict.fromkeys(("GG", "gg", "ww", "HH", "hh", "mm", "ss"), (r"\d{2}", "")),
    **dict.fromkeys(("w", "H", "h", "m", "s"), (r"\d{1,2}", "")),
}
_LONGEST_FIRST = "|".join(sorted(_TOKENS, key=len, reverse=True))
_SPLIT = re.compile(rf"\[([^\[\]]*)\]|({_LONGEST_FIRST})|(.)", re.DOTALL)
_MONTHS = ["january", "february", "march", "april", "may", "june"]
_MONTHS += ["july", "august", "september", "october", "november", "december"]


def read_date(moment_format: str, text: str) -> date | None:
    """The date `text` shows when it has exactly the form of `moment_format`; None otherwise."""
    made = _pattern_of(moment_format)
    found = made[0].fullmatch(_fold(text)) if made else None
    if made is None or found is None:
        return None
    parts: dict[str, int] = {}
    for part, shown in zip(made[1], found.groups(), strict=True):
        said = _value(part, shown)
        # `YYYY/MM/YYYY-MM-DD`: a note that lies in another year's folder is not that day's note.
        if said is not None and parts.setdefault(said[0], said[1]) != said[1]:
            return None
    try:
        return _date_of(parts)
    except ValueError:  # 31 February has the form of a date and is none
        return None


@lru_cache(maxsize=8)
def _pattern_of(moment_format: str) -> tuple[re.Pattern[str], tuple[str, ...]] | None:
    """The format as a pattern with a group a token, and what each group says; None beyond reason."""
    if len(moment_format) > MAX_FORMAT:
        return None
    built: list[str] = []
    tokens: list[str] = []
    for literal, token, other in _SPLIT.findall(moment_format):
        if token:
            tokens.append(token)
            built.append(f"({_TOKENS[token][0]})")
        else:
            built.append(re.escape(_fold(literal or other)))
    if len(tokens) > MAX_TOKENS or sum(_TOKENS[token][0] == _WORD for token in tokens) > MAX_WORDS:
        return None
    return re.compile("".join(built)), tuple(_TOKENS[token][1] for token in tokens)


def _fold(text: str) -> str:
    return unicodedata.normalize("NFC", text).casefold()


def _value(part: str, shown: str) -> tuple[str, int] | None:
    """The part of a date that a token says, as a number; None for a token that only decorates."""
    if part in ("month name", "short month name"):
        names = _MONTHS if part == "month name" else [name[:3] for name in _MONTHS]
        return ("month", names.index(shown) + 1) if shown in names else None
    if part == "short year":  # as Moment reads it: 69 is 1969, 68 is 2068
        return "year", int(shown) + (1900 if int(shown) > 68 else 2000)
    return (part, int("".join(filter(str.isdigit, shown)))) if part else None


def _date_of(parts: dict[str, int]) -> date | None:
    if {"year", "month", "day"} <= parts.keys():
        return date(parts["year"], parts["month"], parts["day"])
    if {"year", "day of year"} <= parts.keys():
        day = date.fromordinal(date(parts["year"], 1, 1).toordinal() + parts["day of year"] - 1)
        return day if day.year == parts["year"] else None
    if {"week year", "week", "weekday"} <= parts.keys():
        return date.fromisocalendar(parts["week year"], parts["week"], parts["weekday"])
    return None
