"""Texts for people: safe in a terminal, on one line, with plurals and ages. Pure, and quick to load."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeAlias

from simplemem.note.words import counted

Part: TypeAlias = str | tuple[str, str]
"""A text, or a text and its style."""

# A note may hold anything; an escape sequence in it must reach no terminal. Tab and newline may.
_CONTROLS: dict[int, str | int] = {code: 0x2400 + code for code in range(32) if code not in (9, 10)}
_CONTROLS |= {0x7F: "\u2421", **dict.fromkeys(range(0x80, 0xA0), "\ufffd")}


def plain(text: str) -> str:
    """A text with its control characters made visible, safe to show in a terminal."""
    return text.replace("\r\n", "\n").translate(_CONTROLS)


def one_line(text: str) -> str:
    """A text on one line, its runs of white space made single spaces."""
    return plain(" ".join(text.split()))


def tags_shown(tags: Iterable[str]) -> str:
    """Tags as a person writes them."""
    return " ".join(f"#{tag}" for tag in tags)


def short_title(title: str, name: str) -> str:
    """A title where it says more than the last part of the name."""
    return "" if title == name.rsplit("/", 1)[-1] else one_line(title)


def in_words(value: Any) -> str:
    """A JSON value as a person reads it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {in_words(each)}" for key, each in value.items()) or "none"
    if isinstance(value, list | tuple):
        return ", ".join(in_words(each) for each in value) or "none"
    return "none" if value in (None, "") else one_line(str(value))


def day(moment: str | None) -> str:
    """The day of an ISO moment, or nothing."""
    return (moment or "")[:10]


def ago(moment: str, now: datetime | None = None) -> str:
    """How long ago something happened, while that says more than its date."""
    try:
        then = datetime.fromisoformat(moment)
    except ValueError:
        return moment
    then = then.astimezone() if then.tzinfo is None else then
    seconds = ((now or datetime.now(UTC)) - then).total_seconds()
    if 0 <= seconds < 60:
        return "just now"
    for unit, size, limit in (("minute", 60, 60), ("hour", 3600, 24), ("day", 86400, 7)):
        if 0 <= seconds < size * limit:
            return f"{counted(int(seconds // size), unit)} ago"
    return then.astimezone().strftime("%Y-%m-%d %H:%M")


def diff_lines(diff: str | None) -> list[list[Part]]:
    """A unified diff in its usual colours."""
    styles = {"+": "green", "-": "red", "@": "cyan"}
    lines = diff.removesuffix("\n").split("\n") if diff else []
    return [[(line.removesuffix("\r"), styles.get(line[:1], ""))] for line in lines]


def facts_table(facts: Mapping[str, Any]) -> list[list[Part]]:
    """Facts as two columns, the keys in words."""
    return [[(key.replace("_", " "), "dim"), in_words(value)] for key, value in facts.items()]
