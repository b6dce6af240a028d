"""What the commands print: lines and tables for people, JSON for programs, errors with a way out.

Answers go to stdout, everything else to stderr. Colour is for terminals only (`NO_COLOR` and `FORCE_COLOR`
are heeded); piped output is never wrapped or cut. Nothing here reads or writes a note.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from simplemem.errors import SimplememError
from simplemem.note.words import content_words, words_of

# A pipe has no width: what reads it cuts lines as it likes. `COLUMNS` sets one all the same.
_UNBOUNDED = 100_000
_GAP = 2  # columns between the columns of a table

# A note may hold anything; an escape sequence in it must reach no terminal. Tab and newline may.
_CONTROLS: dict[int, str | int] = {code: 0x2400 + code for code in range(32) if code not in (9, 10)}
_CONTROLS |= {0x7F: "\u2421", **dict.fromkeys(range(0x80, 0xA0), "\ufffd")}


def console(*, stderr: bool = False) -> Console:
    """The terminal, or the pipe, that this run prints to. Made anew each time, as streams can be replaced."""
    screen = Console(stderr=stderr, highlight=False, markup=False, emoji=False)
    if not screen.is_terminal and "COLUMNS" not in os.environ:
        screen.width = _UNBOUNDED
    return screen


def plain(text: str) -> str:
    """A text with its control characters made visible, safe to show in a terminal."""
    return text.replace("\r\n", "\n").translate(_CONTROLS)


def one_line(text: str) -> str:
    """A text on one line, its runs of white space made single spaces."""
    return plain(" ".join(text.split()))


def styled(*parts: str | tuple[str, str]) -> Text:
    """A line of parts, each a text or a text and its style, nothing in it able to steer a terminal."""
    line = Text()
    for part in parts:
        text, style = (part, "") if isinstance(part, str) else part
        line.append(plain(text), style)
    return line


def say(*parts: str | tuple[str, str], screen: Console | None = None) -> None:
    """Print one line of parts, left to the terminal to wrap."""
    (screen or console()).print(styled(*parts), soft_wrap=True)


def say_indented(text: Text, indent: int, screen: Console) -> None:
    """Print a paragraph set in by some columns, wrapped to the terminal."""
    if screen.width == _UNBOUNDED:
        screen.print(Text(" " * indent) + text, soft_wrap=True)
        return
    for line in text.wrap(screen, max(20, screen.width - indent)):
        line.rstrip()
        screen.print(Padding(line, (0, 0, 0, indent), expand=False))


def warn(message: str) -> None:
    """Say on stderr what a person should know beside the answer."""
    say(("note: ", "yellow"), message, screen=console(stderr=True))


def print_table(rows: Iterable[Sequence[Text]], *, gives_way: int | None = None) -> None:
    """Print rows as aligned columns, leaving out empty ones.

    In a terminal what does not fit is cut, first of all in the column that `gives_way`.
    """
    columns = {
        number: column for number, column in enumerate(zip(*rows, strict=True)) if any(cell.plain for cell in column)
    }
    if not columns:
        return
    screen = console()
    widths = {number: max(cell.cell_len for cell in column) for number, column in columns.items()}
    too_wide = sum(widths.values()) + _GAP * (len(widths) - 1) - screen.width
    table = Table.grid(padding=(0, _GAP))
    for number, width in widths.items():
        kept = max(min(width, 10), width - too_wide) if number == gives_way and too_wide > 0 else None
        table.add_column(no_wrap=True, overflow="ellipsis", width=kept)
    for row in zip(*columns.values(), strict=True):
        table.add_row(*row)
    if screen.is_terminal:
        screen.print(table)
        return
    with screen.capture() as caught:
        screen.print(table)
    sys.stdout.writelines(f"{line.rstrip()}\n" for line in caught.get().split("\n")[:-1])


def print_json(value: Any, *, compact: bool = False) -> None:
    """Print a value for programs; `compact` puts it on one line, for streams of values."""
    json.dump(value, sys.stdout, ensure_ascii=False, indent=None if compact else 2)
    sys.stdout.write("\n")
    if compact:
        sys.stdout.flush()


def print_error(error: SimplememError, *, as_json: bool) -> None:
    """Say what failed: one red line and a hint on stderr, or with `--json` the error object on stdout."""
    if as_json:
        print_json({"error": error.as_dict()})
        return
    screen = console(stderr=True)
    say(("error: ", "bold red"), (one_line(error.message), "red"), screen=screen)
    candidates = error.details.get("candidates")
    named = [c for c in candidates if c not in error.message + error.hint] if isinstance(candidates, list) else []
    if named:
        say(("near: ", "dim"), ", ".join(named), screen=screen)
    if error.hint:
        say(("hint: ", "dim"), error.hint, screen=screen)
    diff = error.details.get("diff")
    if isinstance(diff, str) and diff:
        print_diff(diff, screen)


def print_diff(diff: str, screen: Console) -> None:
    """Print a unified diff in its usual colours."""
    styles = {"+": "green", "-": "red", "@": "cyan"}
    for line in diff.removesuffix("\n").split("\n"):
        say((line.removesuffix("\r"), styles.get(line[:1], "")), screen=screen)


def print_mapping(facts: Mapping[str, Any]) -> None:
    """Print facts as two columns, the keys in words."""
    rows = []
    for key, value in facts.items():
        rows.append((styled((key.replace("_", " "), "dim")), styled(in_words(value))))
    print_table(rows)


def in_words(value: Any) -> str:
    """A JSON value as a person reads it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {in_words(each)}" for key, each in value.items()) or "none"
    if isinstance(value, list | tuple):
        return ", ".join(in_words(each) for each in value) or "none"
    return "none" if value in (None, "") else one_line(str(value))


def tags_shown(tags: Iterable[str]) -> str:
    """Tags as a person writes them."""
    return " ".join(f"#{tag}" for tag in tags)


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
    if seconds < 0:
        return then.astimezone().strftime("%Y-%m-%d %H:%M")
    if seconds < 60:
        return "just now"
    for unit, size, limit in (("minute", 60, 60), ("hour", 3600, 24), ("day", 86400, 7)):
        if seconds < size * limit:
            count = int(seconds // size)
            return f"{count} {unit}{'' if count == 1 else 's'} ago"
    return then.astimezone().strftime("%Y-%m-%d %H:%M")


_FIELD = re.compile(r"(?:tag|path|type):", re.IGNORECASE)
_WORD = re.compile(r"\w+")


def words_asked(query: str) -> frozenset[str]:
    """The words of a query that a person looks for in an answer: no fields, nothing excluded, no "the"."""
    asked = (part for part in query.split() if not part.startswith("-") and not _FIELD.match(part))
    return frozenset(content_words(words_of(" ".join(asked))))


def with_words_bold(snippet: str, asked: frozenset[str]) -> Text:
    """A snippet with the words that were asked for in bold, in whatever form they stand there."""
    text = Text(one_line(snippet))
    for found in _WORD.finditer(text.plain):
        if any(_same_word(found.group().casefold(), word) for word in asked):
            text.stylize("bold", found.start(), found.end())
    for word in asked:
        if word.isascii():
            continue
        # Scripts without spaces: the word stands inside a longer run of letters. Where folding changes
        # the length the offsets would be off, so only texts that keep theirs are searched.
        folded = text.plain.casefold()
        start = folded.find(word) if len(folded) == len(text.plain) else -1
        while start >= 0:
            text.stylize("bold", start, start + len(word))
            start = folded.find(word, start + 1)
    return text


def _same_word(found: str, asked: str) -> bool:
    """Whether two words share a stem, near enough for emphasis: launch, launches, launching."""
    if found == asked:
        return True
    shared = 0
    for a, b in zip(found, asked, strict=False):
        if a != b:
            break
        shared += 1
    return shared >= 4 and shared >= min(len(found), len(asked)) - 1 and max(len(found), len(asked)) - shared <= 4
