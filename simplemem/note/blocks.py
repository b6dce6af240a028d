"""The blocks of a Markdown body, line by line in one pass: CommonMark with tables and `$$`, as `markdown-it-py` reads it
but for corners in which readers differ, at a sixth of its cost. Pure; it looks at no inline markup."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

# What CommonMark strips around text: all of Unicode's spaces, but fewer controls than str.strip() takes.
SPACES = " \t\n\v\f\r\xa0\u1680\u202f\u205f\u3000\u2028\u2029" + "".join(
    map(chr, range(0x2000, 0x200B))
)

MOST_CONTAINERS = 50


class Leaf(NamedTuple):
    """A block that holds text and no blocks: the lines from `first` up to, not including, `end`, from 0."""

    kind: str
    first: int
    end: int
    level: int = 0


def trimmed(lines: Sequence[str], leaf: Leaf) -> Leaf:
    """A leaf without the empty lines at its end: what nobody closed runs to the end of what holds it."""
    end = leaf.end
    while end - 1 > leaf.first and not lines[end - 1].strip(" \t>"):
        end -= 1
    return leaf._replace(end=end)


_BLANK_START = re.compile(r"[ \t]*")
_ATX = re.compile(r"(#{1,6})(?:[ \t]|$)")
_SETEXT = re.compile(r"(?:=+|-+)[ \t]*$")
_FENCE = re.compile(r"(`{3,})[^`]*$|(~{3,})")
_RULE = re.compile(r"(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$")
_MARKER = re.compile(r"(?:[-+*]|([0-9]{1,9})[.)])(?=[ \t]|$)")
_DELIMITERS = re.compile(r"(?:[|:][-|: \t]|-[-|:])[-|: \t]*$")
_STARTERS = frozenset("#>-+*_`~<=|:$[0123456789")
_NOT_PLAIN = _STARTERS | {" ", "\t"}


class Scan:
    """The leaves of some lines: the open containers and the open leaf while they go by (CommonMark, appendix A)."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self.leaves: list[Leaf] = []
        self.stack: list[int] = []  # how far each open list item is indented; a quote is -1
        self.marks: list[str] = []  # of each of them: what its marker is made of, ">" for a quote
        self.fresh = False  # the innermost of them is an item that is still empty
        self.open = self.kind = self.fence = (
            ""  # an open paragraph is one, whatever kind of leaf it will be
        )
        self.skip_to = self.first = self.last = 0
        self.html_end: re.Pattern[str] | None = None
        self.opened_at = -1
        # Of the paragraph line before: where its content begins, its indent, whether it was lazy.
        self.before = (0, 0, False)

    def read(self) -> list[Leaf]:
        """Return the leaves of all lines."""
        self.read_lines()
        self.close(len(self.lines))
        return self.leaves

    def read_lines(self) -> None:
        """Read all lines, and leave open what is open at their end."""
        for number, line in enumerate(self.lines):
            if number >= self.skip_to:
                self.take(number, line)

    def close(self, number: int) -> None:
        if not self.open:
            return
        leaf = Leaf(self.kind, self.first, self.last + 1 if self.open == "code" else number)
        self.leaves.append(trimmed(self.lines, leaf) if self.open in ("fence", "html") else leaf)
        self.open = ""

    def begin(self, kind: str, number: int) -> None:
        self.open, self.kind = kind, "code" if kind == "fence" else kind
        self.first = self.last = number
        if kind == "paragraph" and self.stack:
            self.kind = "quote" if self.stack[-1] < 0 else "item" if self.fresh else "paragraph"
        self.fresh = False

    def emit(self, kind: str, number: int, level: int = 0) -> None:
        self.leaves.append(Leaf(kind, number, number + 1, level))
        self.fresh = False

    def enter(self, width: int, mark: str, number: int, matched: int) -> int:
        """Open a container; how many are open then."""
        self._end(number, matched)
        self.stack.append(width)
        self.marks.append(mark)
        self.fresh = width >= 0
        self.opened_at = number
        return len(self.stack)

    def take(self, number: int, line: str) -> None:
        """Read one line: which containers go on, what begins, or what it adds to the open leaf."""
        length = len(line)
        if not self.stack:
            if not length:
                self._blank(number, 0)
                return
            first = line[0]  # most lines of most notes are plain text or headings outside of lists
            if self.open in ("", "paragraph"):
                if first not in _NOT_PLAIN:
                    if not self.open:
                        self.open, self.kind, self.first = "paragraph", "paragraph", number
                    self.before = (0, 0, False)
                    return
                if first == "#" and (found := _ATX.match(line)) is not None:
                    self.close(number)
                    self.emit("heading", number, len(found[1]))
                    return
        at = _BLANK_START.match(line).end()  # type: ignore[union-attr]  # it matches everything
        indent = at if "\t" not in line[:at] else _columns(line[:at], 0)
        column, matched, blank = indent, 0, at == length
        for width in self.stack:
            if width < 0:
                if blank or line[at] != ">" or indent > 3:
                    break
                at, indent = _after_quote(line, at)
                blank = at == length
            elif not blank:
                if indent < width:
                    break
                indent -= width
            matched += 1
        if blank:
            self._blank(number, matched)
        elif not self._goes_on(number, line, at, indent, matched):
            self._begin(number, line, at, indent, matched, column)

    def _blank(self, number: int, matched: int) -> None:
        if matched < len(self.stack):
            self._end(number, matched)
            return
        if self.open in ("paragraph", "table") or (self.open == "html" and self.html_end is None):
            self.close(number)
        if self.fresh:  # an item that begins with a blank line has no second one
            self.stack.pop()
            self.marks.pop()
            self.fresh = False

    def _goes_on(self, number: int, line: str, at: int, indent: int, matched: int) -> bool:
        """Whether the line belongs to open code or HTML, where nothing else can begin."""
        if self.open in ("", "paragraph"):
            return False
        if matched < len(self.stack):
            self._end(number, matched)
            return False
        if self.open == "fence":
            if indent < 4 and line[at] == self.fence[0]:
                rest = line[at:].rstrip(" \t")
                if len(rest) >= len(self.fence) and not rest.strip(self.fence[0]):
                    self.close(number + 1)
        elif self.open == "html":
            if self.html_end is not None and self.html_end.search(line, at):
                self.close(number + 1)
        elif self.open == "code" and indent >= 4:
            self.last = number
        else:
            if self.open == "code":
                self.close(number)
            return False
        return True

    def _begin(
        self, number: int, line: str, at: int, indent: int, matched: int, column: int
    ) -> None:
        """What begins on this line: containers from the outermost in, then a leaf, or more of a paragraph."""
        while True:
            in_paragraph = self.open == "paragraph"
            lazy = in_paragraph and matched < len(self.stack)
            if indent >= 4:
                if not in_paragraph:
                    self._end(number, matched)
                    self.begin("code", number)
                else:
                    self.before = (at, indent, False)
                return
            mark = line[at]
            if mark not in _STARTERS:
                break
            if mark in "|-:" and self._table(number, line, at, lazy):
                return
            if mark in "=-" and in_paragraph and not lazy and _SETEXT.match(line, at):
                self.leaves.append(Leaf("heading", self.first, number + 1, 1 if mark == "=" else 2))
                self.open = ""
                return
            if len(self.stack) >= MOST_CONTAINERS and matched == len(self.stack):
                break
            if mark == ">":
                at, indent = _after_quote(line, at)
                matched = self.enter(-1, mark, number, matched)
            elif (found := _MARKER.match(line, at)) is not None and not _RULE.match(line, at):
                after = _BLANK_START.match(line, found.end()).end()  # type: ignore[union-attr]
                empty = after == len(line)
                if (
                    in_paragraph
                    and not lazy
                    and (empty or (found[1] is not None and int(found[1]) != 1))
                ):
                    break
                gap = line[found.end() : after]
                column += found.end() - at
                room = len(gap) if "\t" not in gap else _columns(gap, column)
                used = 1 if empty or room > 4 else room
                width = indent + found.end() - at + used
                matched = self.enter(width, line[found.end() - 1], number, matched)
                column, at, indent = column + room, after, room - used
            elif self._leaf(number, line, at, mark, matched):
                return
            else:
                break
            if at == len(line):
                return
        if self.open == "table" and line[at:].strip(SPACES):
            return
        if self.open == "paragraph":
            self.before = (at, indent, matched < len(self.stack))
            return
        self._end(number, matched)
        if line[at] == "[" and self._is_definition(number, line, at):
            self.emit("definition", number)
            return
        self.begin("paragraph", number)
        self.before = (at, indent, False)

    def _end(self, number: int, matched: int) -> None:
        """Something begins here: the open leaf and the containers that did not go on are over."""
        self.close(number)
        self.fresh = self.fresh and matched == len(self.stack)
        del self.stack[matched:]
        del self.marks[matched:]

    def _leaf(self, number: int, line: str, at: int, mark: str, matched: int) -> bool:
        """Begin a leaf that its first characters announce. False when the line is only text."""
        if mark == "#" and (found := _ATX.match(line, at)) is not None:
            self._end(number, matched)
            self.emit("heading", number, len(found[1]))
        elif mark in "-*_" and _RULE.match(line, at):
            self._end(number, matched)
            self.emit("rule", number)
        elif mark in "`~" and (found := _FENCE.match(line, at)) is not None:
            self._end(number, matched)
            self.begin("fence", number)
            self.fence = found[1] or found[2]
        elif mark == "$":
            return self._math(number, line, at, matched)
        elif mark == "<":
            return self._html(number, line[at:], matched)
        else:
            return False
        return True

    def _math(self, number: int, line: str, at: int, matched: int) -> bool:
        """A line `$$` opens a block up to the next `$$`, over empty lines and whatever looks like a list."""
        if not line.startswith("$$", at) or "$$" in line[at + 2 :]:
            return False
        self._end(number, matched)
        for later in range(number + 1, len(self.lines)):
            if "$$" in self.lines[later]:
                self.leaves.append(Leaf("math", number, later + 1))
                self.skip_to = later + 1
                return True
        return False

    def _html(self, number: int, rest: str, matched: int) -> bool:
        kind = next((kind for kind in _HTML_KINDS if kind[0].match(rest)), None)
        if kind is None or (self.open in ("paragraph", "table") and not kind[2]):
            return False
        self._end(number, matched)
        self.html_end = kind[1]
        if self.html_end is not None and self.html_end.search(rest):
            self.emit("html", number)
        else:
            self.begin("html", number)
        return True

    def _table(self, number: int, line: str, at: int, lazy: bool) -> bool:
        """Whether this line and the one before it begin a table. The parser asks this before anything else."""
        if number == 0 or self.open == "table" or "|" not in self.lines[number - 1]:
            return False
        if not _DELIMITERS.match(line, at):
            return False
        begins, indent, was_lazy = self.before
        if self.open != "paragraph" or lazy or was_lazy or self.opened_at == number - 1:
            return False
        # As many delimiters as cells; a bar at either end is a border.
        cells = [cell.strip() for cell in line[at:].split("|")]
        inner = [cell for k, cell in enumerate(cells) if cell or k not in (0, len(cells) - 1)]
        header = self.lines[number - 1][begins:].strip(SPACES)
        heads = len(_BAR.findall(header)) + 1 - header.startswith("|")
        heads -= heads > 0 and header.endswith("|") and not header.endswith("\\|")
        if (
            indent >= 4
            or not inner
            or len(inner) != heads
            or not all(map(_COLUMN.fullmatch, inner))
        ):
            return False
        if self.first == number - 1:
            self.open, self.kind = "table", "table"
        else:
            self.close(number - 1)
            self.begin("table", number - 1)
        return True

    def _is_definition(self, number: int, line: str, at: int) -> bool:
        """Whether a link definition begins and ends on this line. A footnote `[^1]:` is none."""
        found = None if line.startswith("[^", at) else _DEFINITION.match(line, at)
        following = "".join(self.lines[number + 1 : number + 2]).lstrip(" \t>")
        return found is not None and (found[1] is not None or following[:1] not in ('"', "'", "("))


def _after_quote(line: str, at: int) -> tuple[int, int]:
    """Past a quote's `>` and one space: where the content begins and how far it is indented."""
    begins = at + 1 + line.startswith(" ", at + 1)
    after = _BLANK_START.match(line, begins).end()  # type: ignore[union-attr]
    return after, after - begins


def _columns(blank: str, column: int) -> int:
    """How wide spaces and tabs are that begin at `column`."""
    return len((" " * (column % 4) + blank).expandtabs(4)) - column % 4


_BLOCK_NAMES = (
    "address|article|aside|base|basefont|blockquote|body|caption|center|col|colgroup|dd|details|dialog|dir|div"
    "|dl|dt|fieldset|figcaption|figure|footer|form|frame|frameset|h[1-6]|head|header|hr|html|iframe|legend|li"
    "|link|main|menu|menuitem|nav|noframes|ol|optgroup|option|p|param|search|section|summary|table|tbody|td"
    "|tfoot|th|thead|title|tr|track|ul"
)
_VALUE = r"""(?:[^"'=<>`\x00-\x20]++|'[^']*'|"[^"]*")"""
_ATTRIBUTE = rf"(?:\s++[a-zA-Z_:][a-zA-Z0-9:._-]*+(?:\s*+=\s*+{_VALUE})?+)"
HTML_TAG = rf"(?:<[A-Za-z][A-Za-z0-9-]*+{_ATTRIBUTE}*+\s*+/?>|</[A-Za-z][A-Za-z0-9-]*+\s*+>)"

# CommonMark 4.6: how an HTML block begins, what ends it (None: an empty line), may it end a paragraph.
_HTML_KINDS = tuple(
    (re.compile(begin), re.compile(end) if end else None, may_interrupt)
    for begin, end, may_interrupt in (
        (
            r"<(?ai:script|pre|style|textarea)(?=\s|>|$)",
            r"</(?ai:script|pre|style|textarea)>",
            True,
        ),
        (r"<!--", r"-->", True),
        (r"<\?", r"\?>", True),
        (r"<![A-Za-z]", r">", True),
        (r"<!\[CDATA\[", r"\]\]>", True),
        (rf"</?(?ai:{_BLOCK_NAMES})(?=\s|/?>|$)", None, True),
        (HTML_TAG + r"\s*$", None, False),
    )
)

_COLUMN = re.compile(r":?-+:?")
_BAR = re.compile(r"(?<!\\)\|")

# One line that is a link definition whatever stands around it, unless the next line begins a title.
_DEFINITION = re.compile(
    r"\[(?=\s*+[^\]\s])[^\[\]\\]++\]:[ \t]*+"
    r"(?!<?(?i:vbscript|javascript|file|data):)(?:[^\s<>\\()&%\x00-\x1f\x7f]++|<[^<>\\&%\x00-\x1f\x7f]*+>)"
    r"""([ \t]++(?:"[^"\\]*+"|'[^'\\]*+'|\([^()\\]*+\)))?[ \t]*+$"""
)
