"""The blocks of a Markdown body, found line by line in one pass; inline markup is not read. Pure.

The syntax is CommonMark with tables and `$$` blocks. The result equals that of `markdown-it-py`,
except in corners in which Markdown readers differ, and takes a sixth of its time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

# What CommonMark strips around text: every Unicode space, but fewer controls than str.strip() does.
_TYPOGRAPHIC_SPACES = "".join(chr(code) for code in range(0x2000, 0x200B))
SPACES = " \t\n\v\f\r\xa0\u1680\u202f\u205f\u3000\u2028\u2029" + _TYPOGRAPHIC_SPACES

MAX_CONTAINERS = 50


class Leaf(NamedTuple):
    """A block that holds text and no blocks: the lines from `first` up to, not including `end`.

    `kind` is "paragraph", "item" (a paragraph that begins a list item), "quote" (one directly in a
    quote), "heading", "table", "code", "math", "html", "definition" or "rule". Lines are counted
    from 0. `level` is that of a heading, from 1 to 6, and 0 for other kinds.
    """

    kind: str
    first: int
    end: int
    level: int = 0


def trim_leaf(lines: Sequence[str], leaf: Leaf) -> Leaf:
    """Return a leaf without the lines at its end that are blank or have only quote marks.

    Needed for a fence or HTML block that is never closed: it runs to the end of its container. The
    first line always stays.
    """
    end = leaf.end
    while end - 1 > leaf.first and not lines[end - 1].strip(" \t>"):
        end -= 1
    return leaf._replace(end=end)


_CODE_INDENT = 4  # columns; a line that is indented so far begins no block but indented code
_MAX_MARKER_GAP = 4  # columns; behind a wider gap, an item begins with indented code
_TAB_COLUMNS = 4
_QUOTE_WIDTH = -1

_ATX = re.compile(r"(#{1,6})(?:[ \t]|$)")
_SETEXT = re.compile(r"(?:=+|-+)[ \t]*$")
_FENCE = re.compile(r"(`{3,})[^`]*$|(~{3,})")
_RULE = re.compile(r"(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$")
_MARKER = re.compile(r"(?:[-+*]|(?P<number>[0-9]{1,9})[.)])(?=[ \t]|$)")
_DELIMITERS = re.compile(r"(?:[|:][-|: \t]|-[-|:])[-|: \t]*$")
# What any block but a paragraph or indented code begins with, or a mark below a paragraph.
_STARTERS = frozenset("#>-+*_`~<=|:$[0123456789")
_CONTAINER_STARTERS = frozenset(">-+*0123456789")
_NOT_PLAIN = _STARTERS | {" ", "\t"}


class BlockScanner:
    """The leaves found so far, and what is open (CommonMark, appendix A).

    `open` is the open leaf: "paragraph", "table", "fence", "code" (indented), "html", or "" if none
    is. `kind` is the kind of the `Leaf` that it becomes. A paragraph that begins a list item is an
    "item", and one that stands directly in a quote is a "quote".

    While a line is read, the cursor stands before the part that is not understood yet.
    """

    def __init__(self, lines: Sequence[str]) -> None:
        """Begin a scan of lines, which have no line ends. Nothing is read yet."""
        self.lines = lines
        self.leaves: list[Leaf] = []

        # The open containers, from the outermost to the innermost.
        self.stack: list[int] = []  # columns that a list item's content is indented; -1 for a quote
        self.marks: list[str] = []  # the last character of a list item's marker; ">" for a quote
        self.item_is_empty = False  # whether the innermost container is a list item without content
        self.entered_line = -1  # the last line that opened a container

        # The open leaf.
        self.open = ""
        self.kind = ""
        self.first = 0
        self.last_code_line = 0  # of indented code; blank lines may follow it
        self.fence = ""
        self.html_end: re.Pattern[str] | None = None  # None: a blank line ends it

        # The last line of an open paragraph, which may be the header of a table.
        self.text_offset = 0
        self.text_indent = 0
        self.is_lazy_line = False  # whether it lacks the marks of its containers

        # The cursor.
        self.number = 0
        self.line = ""
        self.offset = 0
        self.indent = 0  # columns, counted from where the content of the container begins
        self.column = 0  # of the offset in the whole line; needed for the width of tabs
        self.matched = 0  # how many of the open containers go on in this line
        self.next_line = 0  # the lines before are read already

    def read(self) -> list[Leaf]:
        """Read all lines and return the leaves, in order. To be called once for each scanner."""
        self.read_lines()
        self._close(len(self.lines))
        return self.leaves

    def read_lines(self) -> None:
        """Read all lines, but leave open what is open at their end.

        The open leaf is then not in `leaves`; `open`, `kind`, `first`, `stack` and `marks` describe
        it.
        """
        for number, line in enumerate(self.lines):
            if number >= self.next_line:
                self._read_line(number, line)

    def _read_line(self, number: int, line: str) -> None:
        """Read a line: continue or close what is open, and open what begins."""
        self.number = number
        self.line = line

        # For speed only: most lines of most notes are empty or text, outside of containers.
        if not self.stack:
            if not line:
                self.matched = 0
                self._read_blank_line()
                return
            if line[0] not in _NOT_PLAIN and self.open in ("", "paragraph"):
                self._read_plain_text()
                return

        self._match_containers()
        if self.offset == len(line):
            self._read_blank_line()
        elif not self._continue_leaf():
            self._begin_blocks()

    def _read_plain_text(self) -> None:
        """Begin a paragraph with the line, or continue the open one. No containers may be open."""
        if not self.open:
            self.open = "paragraph"
            self.kind = "paragraph"
            self.first = self.number
        self.text_offset = 0
        self.text_indent = 0
        self.is_lazy_line = False

    def _match_containers(self) -> None:
        """Move the cursor behind the marks and indents of the containers that go on.

        `matched` is then their number. Containers that do not go on are not closed yet.
        """
        line = self.line
        offset = len(line) - len(line.lstrip(" \t"))
        blanks = line[:offset]
        indent = _count_columns(blanks, 0) if "\t" in blanks else offset
        is_blank = offset == len(line)
        self.column = indent

        matched = 0
        for width in self.stack:
            if width == _QUOTE_WIDTH:
                if is_blank or line[offset] != ">" or indent >= _CODE_INDENT:
                    break
                offset, indent = _skip_quote_mark(line, offset)
                is_blank = offset == len(line)
            elif not is_blank:
                if indent < width:
                    break
                indent -= width
            matched += 1

        self.offset = offset
        self.indent = indent
        self.matched = matched

    def _read_blank_line(self) -> None:
        """Close what a blank line ends.

        It ends containers that do not go on, paragraphs, tables, list items without content, and
        HTML of the kinds that have no end mark. Fenced and indented code goes on.
        """
        if self.matched < len(self.stack):
            self._close_unmatched()
            return

        ends_html = self.open == "html" and self.html_end is None
        if ends_html or self.open in ("paragraph", "table"):
            self._close(self.number)

        # A list item may begin with one blank line, but not with two.
        if self.item_is_empty:
            self.stack.pop()
            self.marks.pop()
            self.item_is_empty = False

    def _continue_leaf(self) -> bool:
        """Return whether the line belongs to open code or HTML, in which nothing else can begin.

        Closes the leaf if the line is its last one, or if the line no longer belongs to it; also
        containers that do not go on in the line, if code or HTML is open. The line is not blank.
        """
        if self.open in ("", "paragraph"):
            return False
        if self.matched < len(self.stack):
            self._close_unmatched()
            return False

        if self.open == "fence":
            if self._closes_fence():
                self._close(self.number + 1)
            return True
        if self.open == "html":
            if self.html_end is not None and self.html_end.search(self.line, self.offset):
                self._close(self.number + 1)
            return True
        if self.open == "code":
            if self.indent >= _CODE_INDENT:
                self.last_code_line = self.number
                return True
            self._close(self.number)
        return False

    def _closes_fence(self) -> bool:
        """Return whether the line closes the open fence.

        It has at least as many of the same marks, and nothing else.
        """
        character = self.fence[0]
        if self.indent >= _CODE_INDENT or self.line[self.offset] != character:
            return False

        rest = self.line[self.offset :].rstrip(" \t")
        if len(rest) < len(self.fence):
            return False
        return not rest.strip(character)

    def _begin_blocks(self) -> None:
        """Open the containers and the leaf that begin in the line, or read it as text."""
        while True:
            if self.indent >= _CODE_INDENT:
                self._read_indented_line()
                return

            mark = self.line[self.offset]
            if mark not in _STARTERS:
                break
            if mark in "|-:" and self._begin_table():
                return
            if mark in "=-" and self._end_setext_heading(mark):
                return
            if len(self.stack) >= MAX_CONTAINERS and self.matched == len(self.stack):
                break  # too many are open, and a new one would not close any of them
            if mark in _CONTAINER_STARTERS and self._enter_container(mark):
                if self.offset == len(self.line):
                    return  # nothing follows the mark
                continue  # another container or a leaf may begin behind the mark
            if self._begin_leaf(mark):
                return
            break

        self._read_text()

    def _read_indented_line(self) -> None:
        """Read a line that is indented like code: as more of an open paragraph, else as code."""
        if self.open == "paragraph":
            self.text_offset = self.offset
            self.text_indent = self.indent
            self.is_lazy_line = False
            return
        self._close_unmatched()
        self._open_leaf("code", self.number)

    def _read_text(self) -> None:
        """Read a line in which no block begins.

        It is more of an open table or paragraph, a whole link definition, or the first line of a
        new paragraph.
        """
        if self.open == "table" and self.line[self.offset :].strip(SPACES):
            return

        is_lazy = self._is_lazy()
        if self.open != "paragraph":
            self._close_unmatched()
            if self.line[self.offset] == "[" and self._is_definition():
                self._add("definition", self.number)
                return
            self._open_leaf("paragraph", self.number)
        self.text_offset = self.offset
        self.text_indent = self.indent
        self.is_lazy_line = is_lazy

    def _is_lazy(self) -> bool:
        """Return whether the line may continue the open paragraph without its containers' marks."""
        return self.open == "paragraph" and self.matched < len(self.stack)

    def _enter_container(self, mark: str) -> bool:
        """Open the quote or list item that begins at the cursor. Return whether there is one.

        The cursor moves to its content. Nothing changes if `mark` begins none, because it begins a
        rule or text, or a list that may not interrupt the open paragraph.
        """
        if mark == ">":
            self.offset, self.indent = _skip_quote_mark(self.line, self.offset)
            self._open_container(_QUOTE_WIDTH, mark)
            return True

        marker = _MARKER.match(self.line, self.offset)
        if marker is None or _RULE.match(self.line, self.offset):
            return False
        content_start = _skip_spaces(self.line, marker.end())
        is_empty = content_start == len(self.line)
        if not self._may_begin_list(marker, is_empty):
            return False

        gap = self.line[marker.end() : content_start]
        marker_width = marker.end() - marker.start()
        gap_column = self.column + marker_width
        gap_width = _count_columns(gap, gap_column) if "\t" in gap else len(gap)
        # Behind a wide gap begins indented code: only one column of the gap belongs to the marker.
        used_gap = 1 if is_empty or gap_width > _MAX_MARKER_GAP else gap_width

        content_indent = self.indent + marker_width + used_gap
        last_character = marker[0][-1]
        self._open_container(content_indent, last_character)
        self.offset = content_start
        self.indent = gap_width - used_gap
        self.column = gap_column + gap_width
        return True

    def _may_begin_list(self, marker: re.Match[str], is_empty: bool) -> bool:
        """Return whether a list may begin here.

        A list ends a paragraph only if it has content and counts from 1.
        """
        if self.open != "paragraph" or self._is_lazy():
            return True
        if is_empty:
            return False

        number = marker["number"]
        return number is None or int(number) == 1

    def _open_container(self, width: int, mark: str) -> None:
        """Open a container within those that go on in the line.

        Closes the other containers and the open leaf. `width` is the indentation of an item's
        content, or -1 for a quote; `mark` is the last character of the marker.
        """
        self._close_unmatched()
        self.stack.append(width)
        self.marks.append(mark)
        self.matched = len(self.stack)
        self.item_is_empty = width != _QUOTE_WIDTH
        self.entered_line = self.number

    def _close_unmatched(self) -> None:
        """Close the open leaf, and the containers that do not go on in the line.

        The leaf is closed even if all containers go on.
        """
        self._close(self.number)
        if self.matched < len(self.stack):
            self.item_is_empty = False
            del self.stack[self.matched :]
            del self.marks[self.matched :]

    def _open_leaf(self, name: str, number: int) -> None:
        """Open a leaf that begins in line `number`, and derive its kind.

        `name` is a value of `open`. Does not close the leaf that is open: callers do that first.
        """
        self.open = name
        self.kind = "code" if name == "fence" else name
        if name == "paragraph" and self.stack:
            if self.stack[-1] == _QUOTE_WIDTH:
                self.kind = "quote"
            elif self.item_is_empty:
                self.kind = "item"
        self.first = number
        self.last_code_line = number
        self.item_is_empty = False

    def _close(self, number: int) -> None:
        """Append the open leaf, if there is one, to the leaves. It ends before line `number`.

        Indented code ends with its last line of code instead, so blank lines behind it are left
        out.
        """
        if not self.open:
            return

        end = self.last_code_line + 1 if self.open == "code" else number
        leaf = Leaf(self.kind, self.first, end)
        if self.open in ("fence", "html"):
            leaf = trim_leaf(self.lines, leaf)
        self.leaves.append(leaf)
        self.open = ""

    def _add(self, kind: str, number: int, level: int = 0) -> None:
        """Add a leaf of one line, with the number of that line. The open leaf is not closed."""
        self.leaves.append(Leaf(kind, number, number + 1, level))
        self.item_is_empty = False

    def _begin_leaf(self, mark: str) -> bool:
        """Open or add the leaf that begins at the cursor. Return False if the line is text.

        `mark` is the character at the cursor. Tables and underlined headings are not tried here.
        """
        if mark == "#":
            return self._add_heading()
        if mark in "`~":
            return self._open_fence()
        if mark == "$":
            return self._add_math()
        if mark == "<":
            return self._open_html()
        if mark in "-*_" and _RULE.match(self.line, self.offset):
            self._close_unmatched()
            self._add("rule", self.number)
            return True
        return False

    def _add_heading(self) -> bool:
        """Add the heading that begins with `#` at the cursor. Return False if there is none."""
        heading = _ATX.match(self.line, self.offset)
        if heading is None:
            return False
        self._close_unmatched()
        self._add("heading", self.number, level=len(heading[1]))
        return True

    def _end_setext_heading(self, mark: str) -> bool:
        """Turn the open paragraph into a heading if the line underlines it. Return whether so.

        `mark` is the character at the cursor: `=` gives level 1, `-` level 2.
        """
        if self.open != "paragraph" or self._is_lazy():
            return False
        if not _SETEXT.match(self.line, self.offset):
            return False

        level = 1 if mark == "=" else 2
        self.leaves.append(Leaf("heading", self.first, self.number + 1, level))
        self.open = ""
        return True

    def _open_fence(self) -> bool:
        """Open the fenced code that begins at the cursor. Return False if there is none."""
        fence = _FENCE.match(self.line, self.offset)
        if fence is None:
            return False
        self._close_unmatched()
        self._open_leaf("fence", self.number)
        self.fence = fence[1] or fence[2]
        return True

    def _add_math(self) -> bool:
        """Add the block from a line that begins with `$$` to the line with the next `$$`.

        Blank lines and list markers do not end it, and its lines are skipped. Returns False if no
        `$$` follows, or if the first line has both. A line that begins with `$$` ends a paragraph
        even if no other `$$` follows.
        """
        starts_math = self.line.startswith("$$", self.offset)
        if not starts_math or "$$" in self.line[self.offset + 2 :]:
            return False

        self._close_unmatched()
        for number in range(self.number + 1, len(self.lines)):
            if "$$" in self.lines[number]:
                self.leaves.append(Leaf("math", self.number, number + 1))
                self.next_line = number + 1
                return True
        return False

    def _open_html(self) -> bool:
        """Open the HTML block that begins at the cursor, or add it if it ends in the same line.

        Returns False if there is none, or if one of its kind cannot interrupt the open paragraph or
        table.
        """
        rest = self.line[self.offset :]
        kind = next((kind for kind in _HTML_KINDS if kind.begin.match(rest)), None)
        if kind is None:
            return False
        if self.open in ("paragraph", "table") and not kind.may_interrupt:
            return False

        self._close_unmatched()
        self.html_end = kind.end
        if kind.end is not None and kind.end.search(rest):
            self._add("html", self.number)
        else:
            self._open_leaf("html", self.number)
        return True

    def _begin_table(self) -> bool:
        """Open a table if the line is its delimiter row. Return whether it is.

        The line before, which belongs to the open paragraph, becomes the header; earlier lines of
        the paragraph stay one. `markdown-it-py` looks for tables before anything else.
        """
        if not self._may_be_delimiter_row():
            return False

        header_line = self.lines[self.number - 1]
        header = header_line[self.text_offset :].strip(SPACES)
        delimiters = _split_delimiters(self.line[self.offset :])
        if not delimiters or len(delimiters) != _count_cells(header):
            return False
        if not all(_DELIMITER.fullmatch(delimiter) for delimiter in delimiters):
            return False

        header_number = self.number - 1
        paragraph_is_header = self.first == header_number
        if paragraph_is_header:
            self.open = "table"
            self.kind = "table"
        else:
            self._close(header_number)
            self._open_leaf("table", header_number)
        return True

    def _may_be_delimiter_row(self) -> bool:
        """Return whether the line looks like a delimiter row below a possible header.

        The header is the line before. It must have a bar, and must not be the line in which a
        container begins. The number of cells is not compared.
        """
        if self.open != "paragraph" or self._is_lazy():
            return False
        if self.is_lazy_line or self.text_indent >= _CODE_INDENT:
            return False

        header_number = self.number - 1
        if self.entered_line == header_number or "|" not in self.lines[header_number]:
            return False
        return _DELIMITERS.match(self.line, self.offset) is not None

    def _is_definition(self) -> bool:
        """Return whether the line is a whole link definition.

        A definition whose title may begin on the next line is not whole. A footnote `[^1]:` is
        none.
        """
        if self.line.startswith("[^", self.offset):
            return False
        definition = _DEFINITION.match(self.line, self.offset)
        if definition is None:
            return False
        if definition["title"] is not None or self.number + 1 == len(self.lines):
            return True

        following = self.lines[self.number + 1].lstrip(" \t>")
        return not following.startswith(('"', "'", "("))


def _skip_spaces(line: str, offset: int) -> int:
    """Return the offset of the first character from `offset` on that is no space or tab."""
    return len(line) - len(line[offset:].lstrip(" \t"))


def _skip_quote_mark(line: str, offset: int) -> tuple[int, int]:
    """Return where the content behind a `>` and one space begins, and how far it is indented.

    `offset` is that of the `>`. The indent is the number of further spaces and tabs before the
    content.
    """
    start = offset + 1
    if line.startswith(" ", start):
        start += 1
    content_start = _skip_spaces(line, start)
    return content_start, content_start - start


def _count_columns(blanks: str, column: int) -> int:
    """Return the width of the spaces and tabs `blanks`, which begin in `column` of their line."""
    start = column % _TAB_COLUMNS
    return len((" " * start + blanks).expandtabs(_TAB_COLUMNS)) - start


def _split_delimiters(row: str) -> list[str]:
    """Return the cells of a table's delimiter row. A bar at either end is a border."""
    cells = [cell.strip() for cell in row.split("|")]
    if not cells[0]:
        del cells[0]
    if cells and not cells[-1]:
        del cells[-1]
    return cells


def _count_cells(header: str) -> int:
    """Return the number of cells in the header of a table. A bar at either end is a border.

    An escaped bar does not separate cells.
    """
    count = len(_BAR.findall(header)) + 1
    if header.startswith("|"):
        count -= 1
    if header.endswith("|") and not header.endswith("\\|"):
        count -= 1
    return count


_BLOCK_NAMES = (
    "address|article|aside|base|basefont|blockquote|body|caption|center|col|colgroup|dd|details"
    "|dialog|dir|div|dl|dt|fieldset|figcaption|figure|footer|form|frame|frameset|h[1-6]|head|header"
    "|hr|html|iframe|legend|li|link|main|menu|menuitem|nav|noframes|ol|optgroup|option|p|param"
    "|search|section|summary|table|tbody|td|tfoot|th|thead|title|tr|track|ul"
)
_VALUE = r"""(?:[^"'=<>`\x00-\x20]++|'[^']*'|"[^"]*")"""
_ATTRIBUTE = rf"(?:\s++[a-zA-Z_:][a-zA-Z0-9:._-]*+(?:\s*+=\s*+{_VALUE})?+)"
HTML_TAG = rf"(?:<[A-Za-z][A-Za-z0-9-]*+{_ATTRIBUTE}*+\s*+/?>|</[A-Za-z][A-Za-z0-9-]*+\s*+>)"


class _HtmlKind(NamedTuple):
    """How an HTML block of one kind begins and ends (CommonMark 4.6)."""

    begin: re.Pattern[str]
    end: re.Pattern[str] | None  # None: a blank line ends it
    may_interrupt: bool  # whether it may end a paragraph


_HTML_KINDS = (
    _HtmlKind(
        re.compile(r"<(?ai:script|pre|style|textarea)(?=\s|>|$)"),
        re.compile(r"</(?ai:script|pre|style|textarea)>"),
        may_interrupt=True,
    ),
    _HtmlKind(re.compile(r"<!--"), re.compile(r"-->"), may_interrupt=True),
    _HtmlKind(re.compile(r"<\?"), re.compile(r"\?>"), may_interrupt=True),
    _HtmlKind(re.compile(r"<![A-Za-z]"), re.compile(r">"), may_interrupt=True),
    _HtmlKind(re.compile(r"<!\[CDATA\["), re.compile(r"\]\]>"), may_interrupt=True),
    _HtmlKind(
        re.compile(rf"</?(?ai:{_BLOCK_NAMES})(?=\s|/?>|$)"),
        None,
        may_interrupt=True,
    ),
    _HtmlKind(re.compile(HTML_TAG + r"\s*$"), None, may_interrupt=False),
)

_DELIMITER = re.compile(r":?-+:?")
_BAR = re.compile(r"(?<!\\)\|")

# One line that is a link definition whatever stands around it, unless the next line begins a title.
_DEFINITION = re.compile(
    r"\[(?=\s*+[^\]\s])[^\[\]\\]++\]:[ \t]*+"
    r"(?!<?(?i:vbscript|javascript|file|data):)"
    r"(?:[^\s<>\\()&%\x00-\x1f\x7f]++|<[^<>\\&%\x00-\x1f\x7f]*+>)"
    r"""(?P<title>[ \t]++(?:"[^"\\]*+"|'[^'\\]*+'|\([^()\\]*+\)))?[ \t]*+$"""
)
