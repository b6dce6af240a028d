"""Where commands print, and how texts are made safe and short for people: answers to stdout, everything else to stderr.
Colour is for terminals (`NO_COLOR` and `FORCE_COLOR` are heeded); piped output is never wrapped or cut."""

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

from simplemem.cli.local import TERMINAL_OVERRIDES
from simplemem.errors import SimplememError
from simplemem.note.words import content_words, format_count, unique_words

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_GAP = 2  # columns between the columns of a table

_MIN_CUT = 10  # of a column that is cut, before it is left out
_MIN_WRAPPED = 6  # of a column whose cells wrap


class Column(Enum):
    """What becomes of a column of a table that is wider than the terminal."""

    WHOLE = (
        "whole"  # what the next command needs: names, versions, dates. It is never cut; it may wrap
    )
    OPTIONAL = "optional"  # it is shown whole, or left out
    SHRINKS = "shrinks"  # what helps to choose a row: it is cut, or left out


WHOLE = Column.WHOLE
OPTIONAL = Column.OPTIONAL
SHRINKS = Column.SHRINKS

Part: TypeAlias = str | tuple[str, str]
"""A text, or a text and its style."""
Lines: TypeAlias = list[list[Part]]

# A note may hold anything; an escape sequence in it must reach no terminal. Tab and newline may.
_CONTROLS: dict[int, str | int] = {code: 0x2400 + code for code in range(32) if code not in (9, 10)}
_CONTROLS |= {0x7F: "\u2421", **dict.fromkeys(range(0x80, 0xA0), "\ufffd")}
_CONTROLS |= dict.fromkeys(
    (*range(0x202A, 0x202F), *range(0x2066, 0x206A)), "\ufffd"
)  # they turn the order of letters
_UNSAFE = re.compile("[\x7f-\x9f\u202a-\u202e\u2066-\u2069]")  # which JSON need not escape
_TYPED = {  # what agents call it in a hint, and what a person types
    "Update the note to change it; overwrite=true": "`simplemem edit` changes it; --overwrite",
    "Read the note, and update it": "Read the note, and change it with `simplemem edit`",
    "With overwrite=true, those": "With --overwrite, those",
    "Append to `daily` to create it": "`simplemem daily` creates it",
    "Search for it, or list": "`simplemem search` finds notes by their text; `simplemem list` shows",
    'Give {"todo": true, "status": "done"} or ["todo", "status/done"]': "Give todo, status=done or -todo",
    "delete_memory deletes it": "`simplemem delete` deletes it",
    "the history lists the latest": "`simplemem history` lists the latest",
    "The history of a note lists": "`simplemem history NOTE` lists",
    "Pass `at`:": "Pass `--at`:",
    "simplemem can be undone.": "simplemem can be undone. Undo edits of your own in your editor.",
}
_TYPED_CALLS = (  # the same for calls that have arguments
    (re.compile(r'undo_change\(version="(v\d+)"\)'), r"`simplemem undo \1`"),
    (
        re.compile(r'read_memory\(name="(.+)", version="v\d+"\) shows its text'),
        r"`simplemem restore '\1'` restores it",
    ),
)


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
            return f"{format_count(int(seconds // size), unit)} ago"
    return then.astimezone().strftime("%Y-%m-%d %H:%M")


def diff_lines(diff: str | None) -> Lines:
    """A unified diff in its usual colours."""
    styles = {"+": "green", "-": "red", "@": "cyan"}
    lines = diff.removesuffix("\n").split("\n") if diff else []
    return [[(line.removesuffix("\r"), styles.get(line[:1], ""))] for line in lines]


def labelled(facts: Mapping[str, Any]) -> dict[str, str]:
    """Facts for a person: the keys and the values in words."""
    return {key.replace("_", " "): in_words(value) for key, value in facts.items()}


def amount(number: float) -> str:
    """A number as a person says it: 4,389, or 3.2 million."""
    return f"{number / 1e6:.1f} million" if number >= 1e6 else f"{number:,}"


def megabytes(number: int) -> str:
    """The size of a file: 45 kB, 0.8 MB, 271 MB."""
    return (
        f"{number / 1e6:,.{0 if number >= 1e7 else 1}f} MB"
        if number >= 1e5
        else f"{number / 1e3:,.0f} kB"
    )


def styled(*parts: Part) -> Text:
    """A line of parts, nothing in it able to steer a terminal."""
    from rich.text import Text

    line = Text()
    for part in parts:
        text, style = (part, "") if isinstance(part, str) else part
        line.append(plain(text), style)
    return line


@dataclass(frozen=True)
class Terminal:
    """Where a command prints, and what is known of the person before it.

    A command prints to the streams of its process. A server that runs a command for another process has the streams
    of that process described here instead, and sends back what was printed.
    """

    out: TextIO
    err: TextIO
    environment: Mapping[str, str]
    has_keyboard: bool  # standard input is a terminal, so that a pager can be used
    page: Callable[[str], None]
    size: tuple[int, int] | None = None  # columns and lines; None: those of this process

    @property
    def is_width_given(self) -> bool:
        """Whether the width of what is not a terminal was given, too."""
        return "COLUMNS" in self.environment

    @property
    def is_forced(self) -> bool:
        """Whether the environment says more of a stream than the stream itself does."""
        return any(name in self.environment for name in TERMINAL_OVERRIDES)

    def console(self, stream: TextIO) -> Console:
        """A console of Rich that prints to one of the streams."""
        from rich.console import Console

        more: dict[str, Any] = {}
        if self.size is not None:
            more = {"width": self.size[0], "height": self.size[1], "_environ": self.environment}
        return Console(file=stream, highlight=False, markup=False, emoji=False, **more)


def page_here(text: str) -> None:
    """Show a text through the pager of this process."""
    import pydoc

    os.environ.setdefault("LESS", "-FRX")  # as git sets it: colours, and no clearing of the screen
    pydoc.pager(text)


_TERMINAL: ContextVar[Terminal | None] = ContextVar("terminal", default=None)


def terminal() -> Terminal:
    """Where this command prints. Asked for each time, as streams can be replaced."""
    given = _TERMINAL.get()
    if given is not None:
        return given
    has_keyboard = sys.stdin is not None and sys.stdin.isatty()
    return Terminal(sys.stdout, sys.stderr, os.environ, has_keyboard, page_here)


@contextmanager
def printing_to(given: Terminal) -> Iterator[None]:
    """Print to the streams of another process."""
    token = _TERMINAL.set(given)
    try:
        yield
    finally:
        _TERMINAL.reset(token)


def fitted_widths(
    widths: Mapping[int, int], kinds: Mapping[int, Column], room: int
) -> dict[int, int]:
    """Return the widths with which the columns of a table fit into `room`. Columns that are left out are absent.

    Columns that shrink are narrowed first. If that is not enough, a column that is not WHOLE is left out, the last one
    first. If the WHOLE columns do not fit by themselves, the widest of them are narrowed, and their cells wrap.
    """
    fitted = dict(widths)
    while True:
        shrinking = [number for number in fitted if kinds[number] is SHRINKS]
        missing = sum(fitted.values()) + _GAP * (len(fitted) - 1) - room
        missing = _narrow(fitted, shrinking, _MIN_CUT, missing)
        if missing <= 0:
            return fitted
        dispensable = [number for number in fitted if kinds[number] is not WHOLE]
        if not dispensable:
            _narrow(fitted, list(fitted), _MIN_WRAPPED, missing)
            return fitted
        fitted = {number: widths[number] for number in fitted if number != dispensable[-1]}


def _narrow(widths: dict[int, int], some: Sequence[int], least: int, missing: int) -> int:
    """Take columns from the widest of some columns, as long as they are wider than `least`; return what is missing."""
    while missing > 0 and some:
        widest = max(some, key=lambda number: widths[number])
        if widths[widest] <= least:
            break
        widths[widest] -= 1
        missing -= 1
    return missing


class Screen:
    """The terminal, or the pipe, that this run prints to. Made anew each time, as streams can be replaced."""

    def __init__(self, *, stderr: bool = False) -> None:
        self._terminal = terminal()
        self._stream = self._terminal.err if stderr else self._terminal.out
        # Rich costs a tenth of a search; a pipe that nothing is said of needs none of it.
        is_settled = not self._terminal.is_forced
        self.is_terminal = self._stream.isatty() if is_settled else self.console.is_terminal
        self._is_plain = is_settled and not self.is_terminal and not self._terminal.is_width_given

    @cached_property
    def console(self) -> Console:
        """Rich's console on the same stream."""
        console = self._terminal.console(self._stream)
        if not console.is_terminal and not self._terminal.is_width_given:
            console.width = 100_000  # a pipe has none: what reads it cuts lines as it likes
        return console

    def _say_plainly(self, parts: Iterable[Part]) -> bool:
        """Print a line to a pipe, where no style and no width changes it. False where Rich has to."""
        text = "".join(part if isinstance(part, str) else part[0] for part in parts)
        if not self._is_plain or "\t" in text:  # Rich makes spaces of tabs
            return False
        self._stream.write(plain(text) + "\n")
        self._stream.flush()
        return True

    def say(self, *parts: Part, hang: int | None = None) -> None:
        """Print one line of parts. A terminal wraps it between words, and it goes on where it began or at `hang`."""
        if self._say_plainly(parts):
            return
        line = styled(*parts)
        hang = len(line.plain) - len(line.plain.lstrip(" ")) if hang is None else hang
        width = self.console.width
        if line.cell_len <= width or width - hang < 20:
            self.console.print(line, soft_wrap=True)
            return
        head, rest = line.divide([hang]) if hang else (styled(), line)
        ends, column = [], 0
        for word in re.finditer(
            r"\S+\s*", rest.plain
        ):  # Rich would cut what is wider than the terminal
            taken = styled(word[0].rstrip()).cell_len
            if column and column + taken > width - hang:
                ends.append(word.start())
                column = 0
            column += taken + len(word[0]) - len(word[0].rstrip())
        for number, piece in enumerate(rest.divide(ends)):
            piece.rstrip()
            self.console.print((styled(" " * hang) if number else head) + piece, soft_wrap=True)

    def facts(self, facts: Mapping[str, str]) -> None:
        """Print labels and what they say, all of it, beside each other."""
        hang = max(map(len, facts), default=0) + _GAP
        for label, said in facts.items():
            self.say((f"{label:<{hang}}", "dim"), said, hang=hang)

    def text(self, text: str) -> None:
        """Print a note, or what is for another program: into a pipe to the byte."""
        if not self.is_terminal:
            self._stream.flush()
            self._stream.buffer.write(text.encode("utf-8", "surrogatepass"))
            self._stream.buffer.flush()
            return
        for line in text.removesuffix("\n").split("\n"):
            self.say((line.removesuffix("\r"), "bold" if line.startswith("#") else ""))

    def note(self, facts: Mapping[str, str], content: str) -> None:
        """Print a note in a terminal as it reads, through a pager when it is longer than the screen."""
        from rich.markdown import Markdown

        with self.console.capture() as caught:
            self.facts(facts)
            self.console.print(
                *[""] if facts else [], Markdown(plain(content), hyperlinks=False), sep="\n"
            )
        shown = caught.get()
        if not self._terminal.has_keyboard or shown.count("\n") < self.console.height:
            self._stream.write(shown)
            return
        self._terminal.page(shown)

    def table(self, rows: Iterable[Sequence[Part]], *, columns: Sequence[Column] = ()) -> None:
        """Print rows as aligned columns, without the empty ones. Columns that are not declared are WHOLE."""
        rows = [list(row) for row in rows]
        if self._print_plainly(rows):
            return
        from rich.table import Table

        lines = [[styled(cell) for cell in row] for row in rows]
        cells = {
            number: column for number, column in enumerate(zip(*lines, strict=True)) if any(column)
        }
        if not cells:
            return
        widths = {number: max(cell.cell_len for cell in column) for number, column in cells.items()}
        kinds = {number: columns[number] if number < len(columns) else WHOLE for number in widths}
        fitted = fitted_widths(widths, kinds, self.console.width)

        table = Table.grid(padding=(0, _GAP))
        for number, width in fitted.items():
            is_cut = kinds[number] is SHRINKS
            table.add_column(no_wrap=is_cut, overflow="ellipsis" if is_cut else "fold", width=width)
        for row in zip(*(cells[number] for number in fitted), strict=True):
            table.add_row(*row)
        if self.is_terminal:
            self.console.print(table)
            return
        with self.console.capture() as caught:
            self.console.print(table)
        for line in caught.get().split("\n")[:-1]:
            self._stream.write(f"{line.rstrip()}\n")

    def _print_plainly(self, rows: Sequence[Sequence[Part]]) -> bool:
        """Print rows to a pipe as Rich would. False where Rich has to: for a cell with lines or tabs in it."""
        lines = [
            [plain(part if isinstance(part, str) else part[0]) for part in row] for row in rows
        ]
        if not self._is_plain or any(
            "\n" in cell or "\t" in cell for line in lines for cell in line
        ):
            return False
        widths = [max(map(_width, column)) for column in zip(*lines, strict=True)]
        shown = [number for number, width in enumerate(widths) if width]
        for line in lines if shown else ():
            cells = [
                line[number] + " " * (widths[number] - _width(line[number])) for number in shown
            ]
            self._stream.write(f"{(' ' * _GAP).join(cells).rstrip()}\n")
        return True


def _width(text: str) -> int:
    """How many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def print_json(value: Any, *, compact: bool = False) -> None:
    """Print a value for programs; `compact` puts it on one line, for streams of values."""
    text = json.dumps(value, ensure_ascii=False, indent=None if compact else 2)
    out = terminal().out
    out.write(_UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n")
    if compact:
        out.flush()


def print_error(error: SimplememError, *, as_json: bool) -> None:
    """Say what failed: one red line and a hint on stderr, or with `--json` the error object on stdout."""
    for for_agents, typed in _TYPED.items():
        error.hint = error.hint.replace(for_agents, typed)
    for call, command in _TYPED_CALLS:
        error.hint = call.sub(command, error.hint)
    if as_json:
        print_json({"error": error.as_dict()})
        return
    screen = Screen(stderr=True)
    screen.say(("error: ", "bold red"), (one_line(error.message), "red"))
    if near := [
        each
        for each in error.details.get("candidates", ())
        if each not in error.message + error.hint
    ]:
        screen.say(("near: ", "dim"), ", ".join(near))
    if error.hint:
        screen.say(("hint: ", "dim"), error.hint)
    for line in diff_lines(error.details.get("diff")):
        screen.say(*line)


def words_asked(query: str) -> list[str]:
    """The words that a query searches for: no fields, nothing excluded, no "the"."""
    asked = (part for part in query.split() if part[0] != "-" and ":" not in part)
    return list(content_words(unique_words(" ".join(asked))))


def highlighted(text: str, query: str) -> list[Part]:
    """A text with the words of a query in bold: no fields, nothing excluded, no "the"."""
    words = "|".join(map(re.escape, words_asked(query)))
    pieces = (
        re.split(f"({words})", text, flags=re.IGNORECASE) if words else [text]
    )  # every second one is a word
    return [(piece, "bold" * (number % 2)) for number, piece in enumerate(pieces)]
