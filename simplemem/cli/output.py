"""Print answers to stdout and everything else to stderr, and make texts safe and short for people.

Only terminals get colours; `NO_COLOR` and `FORCE_COLOR` override that. Piped output is never
wrapped or cut.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any, TextIO, TypeAlias

from simplemem.cli.terminal import TERMINAL_OVERRIDES, show_in_pager
from simplemem.errors import Hint, HintSentence, SimplememError
from simplemem.note.words import content_words, format_count, unique_words

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

_GAP = 2  # terminal columns between two columns of a table
_MIN_CUT = 10  # the width below which a column that shrinks is left out instead
_MIN_WRAPPED = 6  # the smallest width of a column whose cells wrap
_MIN_TEXT = 20  # terminal columns beside the indent; with fewer, lines are not wrapped
_PIPE_WIDTH = 100_000  # a pipe has no width: the program that reads it cuts lines as it likes


class Column(Enum):
    """What happens to a column of a table that is wider than the terminal."""

    # Names, versions and dates, which the next command needs: never cut, but cells may wrap.
    WHOLE = "whole"
    # Shown whole, or left out.
    OPTIONAL = "optional"
    # What helps to choose a row: cut, or left out.
    SHRINKS = "shrinks"


WHOLE = Column.WHOLE
OPTIONAL = Column.OPTIONAL
SHRINKS = Column.SHRINKS

Part: TypeAlias = str | tuple[str, str]
"""A text, or a text and its style."""
Lines: TypeAlias = list[list[Part]]

# A note may contain any characters, but no escape sequence in it may reach a terminal.
# Tab and newline may.
_CONTROLS: dict[int, str | int] = {code: 0x2400 + code for code in range(32) if code not in (9, 10)}
_CONTROLS |= {0x7F: "\u2421", **dict.fromkeys(range(0x80, 0xA0), "\ufffd")}
# These change the order of letters on the screen.
_CONTROLS |= dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)), "\ufffd")
_UNSAFE = re.compile("[\x7f-\x9f\u202a-\u202e\u2066-\u2069]")  # which JSON need not escape
# Sentences of hints with commands and options, by the key of a HintSentence.
_SENTENCES_FOR_PEOPLE = {
    "update": "`simplemem edit` changes it;",
    "overwrite": "--overwrite replaces it, and the old text stays in the history.",
    "update_instead": "Read the note, and change it with `simplemem edit`.",
    "overwrite_links": "With --overwrite, those links are rewritten first and keep their targets.",
    "create_daily": "`simplemem daily` creates it.",
    "find_note": "`simplemem search` finds notes by their text; `simplemem list` shows the notes.",
    "give_tags": "Give todo, status=done or -todo.",
    "delete": "`simplemem delete` deletes it;",
    "list_versions": "`simplemem history` lists the latest.",
    "list_versions_of_note": "`simplemem history NOTE` lists its versions.",
    "list_commits": "`simplemem history NOTE` lists its commits.",
    "pass_at": "Pass `--at`: a version of its history, or a date.",
    "undo_only_ours": "Only changes made through simplemem can be undone."
    " Undo edits of your own in your editor.",
    "undo": "`simplemem undo {version}` restores it.",
    "read_version": "`simplemem restore '{name}'` restores it.",
}


def plain(text: str) -> str:
    """Return a text that is safe to print in a terminal: control characters are made visible."""
    return text.replace("\r\n", "\n").translate(_CONTROLS)


def one_line(text: str) -> str:
    """Return a safe text on one line. Each run of white space becomes one space."""
    return plain(" ".join(text.split()))


def tags_shown(tags: Iterable[str]) -> str:
    """Return tags as a person writes them: `#todo #work`."""
    return " ".join(f"#{tag}" for tag in tags)


def short_title(title: str, name: str) -> str:
    """Return the title of a note, or "" if it is the last part of its name."""
    if title == name.rsplit("/", 1)[-1]:
        return ""
    return one_line(title)


def in_words(value: Any) -> str:
    """Return a JSON value as a person reads it.

    That is "yes" or "no" for a boolean, "none" for null and an empty value, and the items of a list
    or the keys and values of a map with commas between them.
    """
    if isinstance(value, bool):
        return "yes" if value else "no"

    if isinstance(value, Mapping):
        words = [f"{key} {in_words(item)}" for key, item in value.items()]
        return ", ".join(words) or "none"
    if isinstance(value, list | tuple):
        words = [in_words(item) for item in value]
        return ", ".join(words) or "none"

    if value is None or value == "":
        return "none"
    return one_line(str(value))


def day(moment: str | None) -> str:
    """Return the day of an ISO time, such as "2026-01-24"; "" if there is no time."""
    if not moment:
        return ""
    return moment[:10]


_UNITS = (("minute", 60, 60), ("hour", 3600, 24), ("day", 86400, 7))
"""Units of time: the name, the length in seconds, and how many of them are at most counted."""


def ago(moment: str, now: datetime | None = None) -> str:
    """Return how long ago an ISO time was, such as "3 days ago".

    Return its date and time if it was more than a week ago, or is not over yet. Any other text is
    returned as it is. `now` is the current time by default.
    """
    try:
        time = datetime.fromisoformat(moment)
    except ValueError:
        return moment

    if time.tzinfo is None:
        time = time.astimezone()
    if now is None:
        now = datetime.now(UTC)
    seconds = (now - time).total_seconds()

    if 0 <= seconds < 60:
        return "just now"
    for unit, unit_seconds, limit in _UNITS:
        if 0 <= seconds < unit_seconds * limit:
            count = int(seconds // unit_seconds)
            return f"{format_count(count, unit)} ago"
    return time.astimezone().strftime("%Y-%m-%d %H:%M")


_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}
"""The style of a line of a unified diff, by its first character."""


def diff_lines(diff: str | None) -> Lines:
    """Return the lines of a unified diff in its usual colours; [] if there is no difference."""
    if not diff:
        return []

    lines: Lines = []
    for line in diff.removesuffix("\n").split("\n"):
        style = _DIFF_STYLES.get(line[:1], "")
        lines.append([(line.removesuffix("\r"), style)])
    return lines


def labelled(facts: Mapping[str, Any]) -> dict[str, str]:
    """Return fields with keys and values in words: {"is_read": True} as {"is read": "yes"}."""
    return {key.replace("_", " "): in_words(value) for key, value in facts.items()}


def amount(number: float) -> str:
    """Return a number as a person writes it: 4,389, or 3.2 million."""
    if number >= 1e6:
        return f"{number / 1e6:.1f} million"
    return f"{number:,}"


def megabytes(number: int) -> str:
    """Return the size of a file: 45 kB, 0.8 MB, 271 MB."""
    if number >= 1e7:
        return f"{number / 1e6:,.0f} MB"
    if number >= 1e5:
        return f"{number / 1e6:,.1f} MB"
    return f"{number / 1e3:,.0f} kB"


def _text_of(part: Part) -> str:
    """Return the text of a part, without its style."""
    return part if isinstance(part, str) else part[0]


def styled(*parts: Part) -> Text:
    """Return a line for Rich. No part of it can control a terminal."""
    from rich.text import Text

    line = Text()
    for part in parts:
        if isinstance(part, str):
            line.append(plain(part))
        else:
            text, style = part
            line.append(plain(text), style)
    return line


@dataclass(frozen=True)
class Terminal:
    """Where a command prints, and whether a person reads it.

    A command prints to the streams of its process. If a server runs a command for another process,
    this describes the streams of that process, and the server sends back what was printed.
    """

    out: TextIO
    err: TextIO
    environment: Mapping[str, str]
    has_keyboard: bool  # standard input is a terminal, so that a pager can be used
    page: Callable[[str], None]
    size: tuple[int, int] | None = None  # columns and lines; None for those of this process

    @property
    def is_width_given(self) -> bool:
        """Whether the environment gives a width, which also applies to a pipe."""
        return "COLUMNS" in self.environment

    @property
    def is_forced(self) -> bool:
        """Whether the environment overrides what the streams say about themselves."""
        return any(name in self.environment for name in TERMINAL_OVERRIDES)

    def console(self, stream: TextIO) -> Console:
        """Return a console of Rich that prints to one of the streams."""
        from rich.console import Console

        options: dict[str, Any] = {}
        if self.size is not None:
            width, height = self.size
            options = {"width": width, "height": height, "_environ": self.environment}
        return Console(file=stream, highlight=False, markup=False, emoji=False, **options)


_TERMINAL: ContextVar[Terminal | None] = ContextVar("terminal", default=None)


def _current_terminal() -> Terminal:
    """Return where this command prints: to another process, or to the streams of this one.

    Call it for each output, because streams can be replaced.
    """
    terminal = _TERMINAL.get()
    if terminal is not None:
        return terminal

    has_keyboard = sys.stdin is not None and sys.stdin.isatty()
    return Terminal(sys.stdout, sys.stderr, os.environ, has_keyboard, show_in_pager)


@contextmanager
def printing_to(terminal: Terminal) -> Iterator[None]:
    """Print to a terminal, such as that of another process, as long as the context is open."""
    token = _TERMINAL.set(terminal)
    try:
        yield
    finally:
        _TERMINAL.reset(token)


def fitted_widths(
    widths: Mapping[int, int], kinds: Mapping[int, Column], room: int
) -> dict[int, int]:
    """Return the widths with which the columns of a table fit into `room`.

    `widths` and `kinds` have the columns by their numbers. Columns that are left out are absent
    from the result.

    Columns that shrink are narrowed first. If that is not enough, a column that is not WHOLE is
    left out, the last one first. If the WHOLE columns do not fit by themselves, the widest of them
    are narrowed, and their cells wrap. `room` includes the gaps between the columns. In a very
    narrow terminal the result may exceed it.
    """
    fitted = dict(widths)
    while True:
        gaps = _GAP * (len(fitted) - 1)
        excess = sum(fitted.values()) + gaps - room
        shrinking = [number for number in fitted if kinds[number] is SHRINKS]
        excess = _narrow(fitted, shrinking, _MIN_CUT, excess)
        if excess <= 0:
            return fitted

        dispensable = [number for number in fitted if kinds[number] is not WHOLE]
        if not dispensable:
            _narrow(fitted, list(fitted), _MIN_WRAPPED, excess)
            return fitted

        # The columns that were narrowed get their full widths again for the next attempt.
        fitted = {number: widths[number] for number in fitted if number != dispensable[-1]}


def _narrow(widths: dict[int, int], numbers: Sequence[int], min_width: int, excess: int) -> int:
    """Narrow the columns with these numbers, the widest first, down to `min_width`.

    Changes `widths`. Returns the excess that is left.
    """
    while excess > 0 and numbers:
        widest = max(numbers, key=lambda number: widths[number])
        if widths[widest] <= min_width:
            break
        widths[widest] -= 1
        excess -= 1
    return excess


class Screen:
    """The terminal or the pipe that a command prints to: stdout, or with `stderr` stderr.

    It keeps the stream, and whether that is a terminal and needs Rich. Create one for each output,
    because streams can be replaced.
    """

    def __init__(self, *, stderr: bool = False) -> None:
        self._terminal = _current_terminal()
        self._stream = self._terminal.err if stderr else self._terminal.out
        # Importing Rich costs a tenth of a search. A pipe needs it only if the environment says so.
        if self._terminal.is_forced:
            self.is_terminal = self.console.is_terminal
        else:
            self.is_terminal = self._stream.isatty()
        self._needs_rich = (
            self.is_terminal or self._terminal.is_forced or self._terminal.is_width_given
        )

    @cached_property
    def console(self) -> Console:
        """Rich's console on the same stream."""
        console = self._terminal.console(self._stream)
        if not console.is_terminal and not self._terminal.is_width_given:
            console.width = _PIPE_WIDTH
        return console

    def say(self, *parts: Part, hang: int | None = None) -> None:
        """Print one line of parts. A terminal wraps it between words.

        The lines that continue it are indented by `hang`; by default, as the first one.
        """
        if self._say_plainly(parts):
            return

        line = styled(*parts)
        if hang is None:
            hang = len(line.plain) - len(line.plain.lstrip(" "))
        room = self.console.width - hang
        if line.cell_len <= self.console.width or room < _MIN_TEXT:
            self.console.print(line, soft_wrap=True)
        else:
            self._say_wrapped(line, hang, room)

    def _say_wrapped(self, line: Text, hang: int, room: int) -> None:
        """Print a line on several lines, of which each has `room` columns after `hang` columns."""
        prefix = styled()
        text = line
        if hang:
            prefix, text = line.divide([hang])

        indent = styled(" " * hang)
        for piece in text.divide(_line_ends(text.plain, room)):
            piece.rstrip()
            self.console.print(prefix + piece, soft_wrap=True)
            prefix = indent

    def _say_plainly(self, parts: Iterable[Part]) -> bool:
        """Print a line without Rich. Return False, and print nothing, if Rich has to print it."""
        text = "".join(_text_of(part) for part in parts)
        if self._needs_rich or "\t" in text:  # Rich replaces tabs with spaces
            return False

        self._stream.write(plain(text) + "\n")
        self._stream.flush()
        return True

    def facts(self, facts: Mapping[str, str]) -> None:
        """Print labels and their values in two columns. Nothing is cut."""
        hang = max(map(len, facts), default=0) + _GAP
        for label, value in facts.items():
            self.say((f"{label:<{hang}}", "dim"), value, hang=hang)

    def text(self, text: str) -> None:
        """Print the text of a note. A pipe gets it byte for byte."""
        if not self.is_terminal:
            self._stream.flush()
            self._stream.buffer.write(text.encode("utf-8", "surrogatepass"))
            self._stream.buffer.flush()
            return

        for line in text.removesuffix("\n").split("\n"):
            style = "bold" if line.startswith("#") else ""
            self.say((line.removesuffix("\r"), style))

    def note(self, facts: Mapping[str, str], content: str) -> None:
        """Print a rendered note, its properties first.

        A pager shows it if it is longer than the screen and there is a keyboard.
        """
        from rich.markdown import Markdown

        with self.console.capture() as capture:
            self.facts(facts)
            if facts:
                self.console.print("")
            self.console.print(Markdown(plain(content), hyperlinks=False))

        rendered = capture.get()
        is_long = rendered.count("\n") >= self.console.height
        if is_long and self._terminal.has_keyboard:
            self._terminal.page(rendered)
        else:
            self._stream.write(rendered)

    def table(self, rows: Iterable[Sequence[Part]], *, columns: Sequence[Column] = ()) -> None:
        """Print rows as aligned columns. All rows have the same number of cells.

        Empty columns are left out; those without a declaration are WHOLE. A terminal gets as many
        columns as fit into it.
        """
        rows = [list(row) for row in rows]
        if self._print_plainly(rows):
            return

        cells = _cells_by_column(rows)
        if not cells:
            return

        table = self._grid(cells, columns)
        if self.is_terminal:
            self.console.print(table)
            return

        with self.console.capture() as capture:
            self.console.print(table)
        for line in capture.get().split("\n")[:-1]:
            self._stream.write(f"{line.rstrip()}\n")

    def _grid(self, cells: Mapping[int, Sequence[Text]], columns: Sequence[Column]) -> Table:
        """Return a table of Rich that fits into the terminal, with columns left out if necessary.

        `cells` are its columns by their numbers, `columns` the declarations of the first columns;
        the others are WHOLE.
        """
        from rich.table import Table

        widths = {}
        kinds = {}
        for number, column in cells.items():
            widths[number] = max(cell.cell_len for cell in column)
            kinds[number] = columns[number] if number < len(columns) else WHOLE

        fitted = fitted_widths(widths, kinds, self.console.width)
        table = Table.grid(padding=(0, _GAP))
        for number, width in fitted.items():
            if kinds[number] is SHRINKS:
                table.add_column(no_wrap=True, overflow="ellipsis", width=width)
            else:
                table.add_column(no_wrap=False, overflow="fold", width=width)

        fitted_cells = [cells[number] for number in fitted]
        for row in zip(*fitted_cells, strict=True):
            table.add_row(*row)
        return table

    def _print_plainly(self, rows: Sequence[Sequence[Part]]) -> bool:
        """Print rows to a pipe as Rich would, without Rich.

        Return False, and print nothing, if only Rich can print them.
        """
        if self._needs_rich:
            return False

        lines = [[plain(_text_of(part)) for part in row] for row in rows]
        if any(_needs_layout(cell) for cells in lines for cell in cells):
            return False

        widths = [max(map(_width, column)) for column in zip(*lines, strict=True)]
        for cells in lines:
            line = _aligned(cells, widths)
            if line is not None:
                self._stream.write(line + "\n")
        return True


def _cells_by_column(rows: Iterable[Sequence[Part]]) -> dict[int, Sequence[Text]]:
    """Return the cells of each column that is not empty, for Rich, by the number of the column."""
    lines = [[styled(cell) for cell in row] for row in rows]
    columns = enumerate(zip(*lines, strict=True))
    return {number: column for number, column in columns if any(column)}


def _needs_layout(cell: str) -> bool:
    """Return whether a cell takes several lines, or has tabs, which Rich replaces with spaces."""
    return "\n" in cell or "\t" in cell


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str | None:
    """Return a row of a table as a line. Columns without a width are left out.

    None if no column has a width.
    """
    padded = []
    for cell, width in zip(cells, widths, strict=True):
        if width:
            padded.append(cell + " " * (width - _width(cell)))
    if not padded:
        return None

    gap = " " * _GAP
    return gap.join(padded).rstrip()


def _line_ends(text: str, width: int) -> list[int]:
    """Return where to divide a text into lines of at most `width`, between words.

    Rich would cut a word that is wider than the terminal.
    """
    ends = []
    column = 0
    for word in re.finditer(r"\S+\s*", text):
        letters = word[0].rstrip()
        letters_width = styled(letters).cell_len
        if column and column + letters_width > width:
            ends.append(word.start())
            column = 0
        column += letters_width + len(word[0]) - len(letters)
    return ends


def _width(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)

    from rich.cells import cell_len

    return cell_len(text)


def print_json(value: Any, *, compact: bool = False) -> None:
    """Print a JSON value to stdout, for programs.

    `compact` puts it on one line, for a stream of values. Characters that could control a
    terminal are escaped.
    """
    text = json.dumps(value, ensure_ascii=False, indent=None if compact else 2)
    safe_text = _UNSAFE.sub(_json_escape, text)
    out = _current_terminal().out
    out.write(safe_text + "\n")
    if compact:
        out.flush()


def _json_escape(match: re.Match[str]) -> str:
    """Return the one character that was matched as JSON escapes it."""
    return f"\\u{ord(match[0]):04x}"


def print_error(error: SimplememError, *, as_json: bool) -> None:
    """Print an error: a red line and a hint on stderr, or as JSON an object on stdout.

    Changes the hint of the error, which names tools of agents, so that it names commands.
    """
    error.hint = _for_people(error.hint)
    if as_json:
        print_json({"error": error.as_dict()})
        return

    screen = Screen(stderr=True)
    screen.say(("error: ", "bold red"), (one_line(error.message), "red"))
    message_and_hint = error.message + error.hint
    candidates = [
        candidate
        for candidate in error.details.get("candidates", ())
        if candidate not in message_and_hint
    ]
    if candidates:
        screen.say(("near: ", "dim"), ", ".join(candidates))
    if error.hint:
        screen.say(("hint: ", "dim"), error.hint)
    for line in diff_lines(error.details.get("diff")):
        screen.say(*line)


def _for_people(hint: str) -> str:
    """Return the hint of an error with the commands and options of the command line."""
    if not isinstance(hint, Hint):
        return hint
    return hint.worded(_words_for_people)


def _words_for_people(sentence: HintSentence) -> str:
    """Return the words of a sentence for a person, or those for Python if there are no others."""
    words = _SENTENCES_FOR_PEOPLE.get(sentence.key)
    if words is None:
        return sentence.text
    return words.format(**sentence.values)


def searched_words(query: str) -> list[str]:
    """Return the words that a query searches for, each once, in lower case and in order.

    Fields such as `tag:x`, excluded words such as `-x`, and stop words are left out. If the query
    has nothing but stop words, they are returned.
    """
    words = []
    for word in query.split():
        is_excluded = word.startswith("-")
        is_field = ":" in word
        if not is_excluded and not is_field:
            words.append(word)
    return list(content_words(unique_words(" ".join(words))))


def highlighted(text: str, query: str) -> list[Part]:
    """Return a text with the words that a query searches for in bold."""
    words = "|".join(re.escape(word) for word in searched_words(query))
    if not words:
        return [(text, "")]

    parts: list[Part] = []
    pieces = re.split(f"({words})", text, flags=re.IGNORECASE)
    for number, piece in enumerate(pieces):
        is_word = number % 2 == 1  # the pieces between the words come first
        parts.append((piece, "bold" if is_word else ""))
    return parts
