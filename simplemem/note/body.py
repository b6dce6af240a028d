"""Read the body of a note: its blocks, and the links and tags in their text. Pure.

Links and tags are those of Obsidian. What would become a link or tag does not count in code, math,
HTML comments and HTML tags; in Obsidian comments (`%%`) it does. Of two constructs that overlap,
the one that begins first counts. `simplemem/obsidian/settings.py` decides which file a link means.
"""

from __future__ import annotations

import html
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Literal, NamedTuple
from urllib.parse import unquote

from simplemem.note.blocks import HTML_TAG, SPACES, BlockScanner, Leaf
from simplemem.note.header import Scalar
from simplemem.note.words import BYTE_ORDER_MARK, LINE_END, count_lines

# -- links and tags

# The destination of a Markdown link: in angle brackets, or without spaces and with parentheses
# nested at most three deep. A title may follow.
_PLAIN = r"[^ \t\n\r\v\f\x00-\x1f\x7f()\\]++|\\[!-/:-@\[-`{-~]?+"
_NESTED = rf"\((?:{_PLAIN}|\((?:{_PLAIN}|\((?:{_PLAIN})*+\))*+\))*+\)"
_TITLE = r"""(?:"(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+'|\((?:[^()\\]|\\.)*+\))"""
_GAP = r"[ \t\n\r]"
_DESTINATION = re.compile(
    rf"(?s)\({_GAP}*+"
    rf"(?:<(?P<angle>(?:[^<>\\\n\r]|\\.)*+)>|(?P<plain>(?!<)(?:{_PLAIN}|{_NESTED})*+))"
    rf"(?:{_GAP}++{_TITLE})?+{_GAP}*+\)"
)
_WEB_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:|//")
_ESCAPED = re.compile(r"\\(?P<character>[!-/:-@\[-`{-~])")
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")

# Each alternative begins with a character of its own, so that `re` skips over plain text at once.
_TOKEN = re.compile(r"\\[!-/:-@\[-`{-~]|``*|\$\$?|<|!\[\[?|\[\[?|\]|#")
_WIKILINK_END = re.compile(r"\]\]|\[\[|[\n\r]")
_BACKTICKS = re.compile(r"`+")
_MATH_END = re.compile(r"(?<![\s\\])\$(?![0-9])")
_TAG_OR_AUTOLINK = re.compile(rf"<[A-Za-z][A-Za-z0-9+.-]{{1,31}}:[^\s<>\x00-\x1f]*+>|{HTML_TAG}")

# A tag ends at white space, at ASCII punctuation other than - / _ and at typographic punctuation.
_NOT_IN_TAG = r"\x00-\x20!-,.:-@\[-\^`{-\x7f\x85\xa0\u1680\u2000-\u206f\u2e00-\u2e7f\u3000\ufeff"
_TAG = re.compile(f"#(?P<name>[^{_NOT_IN_TAG}]++)")
_SPACE = frozenset(SPACES + BYTE_ORDER_MARK)
_BEFORE_EMPHASIS = _SPACE | frozenset("!\"'(,-.:;>?[{|")
_CELL_END = re.compile(r"\[\[[^\[\]|\n\r]*+(?:\|[^\[\]|\n\r]*+)?+\]\]|(?<!\\)(?P<bar>\|)")
QUOTE_MARKS = re.compile(r"[ \t>]*+")


class Link(NamedTuple):
    """A link or embed as it is written: what it looks up and displays, and where its parts are.

    Offsets are those of the whole text. `target` is the path that is looked up, "" for the note
    itself; `subpath` is "#Heading" or "#^id", or "". `property` is the path of a property link,
    such as "related.0", else None. A link without a display text has the offsets -1 for it.
    """

    form: Literal["wiki", "markdown"]
    is_embed: bool
    property: str | None  # the header path ("related.0") of a property link
    target: str  # what is looked up; "" means the note itself
    subpath: str  # "#Heading" or "#^id"; "" when there is none
    display: str
    line: int
    start: int  # the whole link, with its brackets and the "!" before it
    end: int
    path_start: int  # what a rename replaces
    path_end: int
    display_start: int  # -1 when there is none
    display_end: int
    angle: bool  # a Markdown destination in <>
    scalar: Scalar | None  # the value that a property link is, None in the body

    def kind(self) -> str:
        """Return "property", "embed", or for any other link its form: "wiki" or "markdown".

        An embed in a property counts as "property".
        """
        if self.property is not None:
            return "property"
        if self.is_embed:
            return "embed"
        return self.form


def read_value_link(value: str) -> Link | None:
    """Return the link that a property's value consists of, apart from white space, or None.

    A value with other text, with two links or with a link to the web gives None. The link's places
    are offsets in the value without the white space around it; its line is 0.
    """
    value = value.strip()
    if not (value.startswith("[") and value.endswith(("]]", ")"))):
        return None

    scanner = InlineScanner(value, line_starts=[0], first_line=0)
    scanner.read(0, len(value))
    for link in scanner.links:
        if link.start == 0 and link.end == len(value):
            return link
    return None


def _decode_destination(destination: str) -> str:
    """Return a Markdown destination with its escapes, entities and percent signs decoded.

    Percent signs stay if what they encode is no UTF-8. Never raises.
    """
    if "\\" in destination:
        destination = _ESCAPED.sub(r"\g<character>", destination)
    if "&" in destination:
        destination = _ENTITY.sub(lambda entity: html.unescape(entity[0]), destination)
    if "%" not in destination:
        return destination

    try:
        return unquote(destination, errors="strict")
    except UnicodeDecodeError:  # a percent sign that stands for itself
        return destination


def _lookup_name(path: str) -> str:
    """Return a link's path as Obsidian looks it up: NFC, no-break spaces as spaces, trimmed.

    A path in ASCII is returned as it is: callers have trimmed it.
    """
    if path.isascii():
        return path
    with_spaces = path.replace("\xa0", " ")
    return unicodedata.normalize("NFC", with_spaces).strip()


class _Bracket(NamedTuple):
    """An open "[" or "![", which becomes a link if a closing bracket and a destination follow."""

    start: int
    content_start: int
    is_image: bool


class InlineScanner:
    """Collects the links and tags of a text, one region after another, in `links` and `tags`.

    A region is the text of a block or of a table's cell: no construct reaches beyond it. A mark
    that a search did not find in a region is not searched again there, so the time stays linear.
    `tags` has pairs of the offset of the hash and the name. Links are in the order in which they
    end: one that is within another comes before it.

    Methods that read a construct return the offset at which reading goes on.
    """

    def __init__(self, text: str, line_starts: Sequence[int], first_line: int) -> None:
        """Begin with no links and tags; nothing is read yet.

        `line_starts` are the offsets in `text` at which lines begin, in order; the first of them is
        the line with the number `first_line`.
        """
        self.text = text
        self.line_starts = line_starts
        self.first_line = first_line

        self.links: list[Link] = []
        self.tags: list[tuple[int, str]] = []  # the offset of the hash, and the name

        self._begin_region(0, 0)

    def _begin_region(self, start: int, end: int) -> None:
        """Forget the brackets and searches of the last region, and begin text[start:end]."""
        self.start = start
        self.end = end

        # Where text begins again: behind code, a link, a tag, an escape. A tag may begin there.
        self.text_start = start

        # As in CommonMark, a link cannot contain a link: the brackets around one are inactive.
        self.brackets: list[_Bracket] = []
        self.inactive_levels = 0  # how many open brackets, from the outermost, cannot become links

        # Results of searches in the whole region.
        self.backticks: dict[int, list[int]] | None = None  # length of a run -> where runs start
        self.missing_marks: set[str] = set()
        self.no_math_before = -1  # the end of a line that has no "$" that ends math

    def read_row(self, start: int, end: int) -> None:
        """Collect the links and tags of the table row text[start:end], cell by cell.

        A bar within a link such as `[[a|b]]` does not end its cell; an escaped bar does not either.
        """
        cell_start = start
        for match in _CELL_END.finditer(self.text, start, end):
            if match["bar"]:
                self.read(cell_start, match.start())
                cell_start = match.end()
        self.read(cell_start, end)

    def read(self, start: int, end: int) -> None:
        """Collect the links and tags of the region text[start:end], which is one block or cell."""
        text = self.text
        if text.find("[", start, end) < 0 and text.find("#", start, end) < 0:
            return

        self._begin_region(start, end)
        token = _TOKEN.search(text, start, end)
        while token is not None:
            position = self._read_token(token)
            token = _TOKEN.search(text, position, end)

    def line_of(self, offset: int) -> int:
        """Return the number of the line that an offset is in, counted from `first_line`."""
        return bisect_right(self.line_starts, offset) - 1 + self.first_line

    def _read_token(self, match: re.Match[str]) -> int:
        """Read the construct that a match of `_TOKEN` begins.

        It is collected if it is a link or tag, else skipped: as a whole, or only its mark.
        """
        token = match[0]
        start, end = match.span()
        mark = token[0]
        if mark == "#":
            return self._read_tag(start)
        if mark == "\\":
            return self._skip_to(end)
        if mark == "`":
            return self._skip_code(start, end)
        if mark == "]":
            return self._close_bracket(start)
        if mark == "$":
            is_display = len(token) == len("$$")
            if is_display:
                return self._skip_past("$$", end, otherwise=end)
            return self._skip_math(end)
        if mark == "<":
            return self._skip_html(start)

        is_image = mark == "!"
        if token.endswith("[["):
            return self._read_wikilink(start, end, is_image)
        return self._open_bracket(start, end, is_image)

    def _skip_to(self, end: int) -> int:
        """Note that text begins again at `end`, where a tag may begin, and return `end`."""
        self.text_start = end
        return end

    def _skip_past(self, mark: str, content_start: int, otherwise: int) -> int:
        """Skip to behind the next `mark` in the region, or return `otherwise` if there is none.

        The search begins at `content_start`. A mark that was not found is not searched again in the
        region.
        """
        if mark in self.missing_marks:
            return otherwise

        mark_start = self.text.find(mark, content_start, self.end)
        if mark_start < 0:
            self.missing_marks.add(mark)
            return otherwise
        return self._skip_to(mark_start + len(mark))

    # Tags

    def _read_tag(self, start: int) -> int:
        """Collect the tag that begins with the hash at `start`, if there is one.

        Returns the offset behind the tag, or behind the hash if it begins none.
        """
        tag = _TAG.match(self.text, start, self.end)
        if tag is None or not self._may_begin_tag(start):
            return start + 1
        return self._add_tag(start, tag["name"])

    def _add_tag(self, start: int, name: str) -> int:
        """Collect a tag, and return where it ends. A slash at its end is not part of it.

        `start` is the offset of the hash. A number, or nothing but slashes, is no tag: it is not
        collected, but the offset of its end is returned all the same.
        """
        name = name.rstrip("/")
        end = start + 1 + len(name)
        is_number = name.isascii() and name.isdigit()
        if not name or is_number:
            return end

        self.tags.append((start, name))
        return self._skip_to(end)

    def _may_begin_tag(self, start: int) -> bool:
        """Return whether the text before a hash allows a tag.

        A tag begins where text begins, behind a space, behind marks that open emphasis, and behind
        the mark of a quote.
        """
        text = self.text
        if start == self.text_start or start == self.start or text[start - 1] in _SPACE:
            return True

        marks_start = start
        while marks_start > self.start and text[marks_start - 1] in "*_~=":
            marks_start -= 1
        if marks_start < start:
            return self._opens_emphasis(marks_start, start)

        return text[start - 1] == ">" and self._is_behind_quote_marks(start)

    def _opens_emphasis(self, start: int, end: int) -> bool:
        """Return whether a run of marks opens emphasis, strikethrough (~~) or a highlight (==).

        The run is text[start:end] in front of a hash. It opens only where text begins, or behind a
        space or punctuation.
        """
        single_marks = self.text[start:end].replace("==", "").replace("~~", "")
        if single_marks.strip("*_"):
            return False
        if start in (self.start, self.text_start):
            return True
        return self.text[start - 1] in _BEFORE_EMPHASIS

    def _is_behind_quote_marks(self, offset: int) -> bool:
        """Return whether only marks of quotes stand before an offset in its line."""
        text = self.text
        line_end = max(
            text.rfind("\n", self.start, offset),
            text.rfind("\r", self.start, offset),
        )
        line_start = self.start if line_end < 0 else line_end + 1
        return QUOTE_MARKS.fullmatch(text, line_start, offset) is not None

    # Code, math and HTML, which hide links and tags

    def _skip_code(self, start: int, end: int) -> int:
        """Skip code up to the next run of as many backticks, or else only these backticks.

        `start` and `end` are the offsets of the opening run.
        """
        if self.backticks is None:
            self.backticks = {}
            for run in _BACKTICKS.finditer(self.text, self.start, self.end):
                length = run.end() - run.start()
                self.backticks.setdefault(length, []).append(run.start())

        length = end - start
        run_starts = self.backticks.get(length, [])
        next_run = bisect_right(run_starts, start)
        if next_run == len(run_starts):
            return end
        return self._skip_to(run_starts[next_run] + length)

    def _skip_math(self, content_start: int) -> int:
        """Skip `$math$` within a line, or only the dollar; return where reading goes on.

        `content_start` is the offset behind the dollar. Prices ("$5 and $6") are no math.
        """
        text = self.text
        if content_start >= self.end or content_start < self.no_math_before:
            return content_start
        if text[content_start] in _SPACE:
            return content_start

        next_line_end = LINE_END.search(text, content_start, self.end)
        line_end = next_line_end.start() if next_line_end else self.end
        math_end = _MATH_END.search(text, content_start, line_end)
        if math_end is None:
            self.no_math_before = line_end
            return content_start
        return self._skip_to(math_end.end())

    def _skip_html(self, start: int) -> int:
        """Skip a comment, a tag or an <autolink> that begins at `start`, or else only the "<"."""
        text = self.text
        if not text.startswith("<!--", start):
            tag = _TAG_OR_AUTOLINK.match(text, start, self.end)
            return self._skip_to(tag.end()) if tag else start + 1

        content_start = start + len("<!--")
        if text.startswith((">", "->"), content_start):  # an empty comment in CommonMark
            return self._skip_to(text.index(">", start) + 1)
        return self._skip_past("-->", content_start, otherwise=start + 1)

    # Links

    def _open_bracket(self, start: int, content_start: int, is_image: bool) -> int:
        """Remember a "[" or "![" as open, and return `content_start`, at which its text begins."""
        self.brackets.append(_Bracket(start, content_start, is_image))
        return content_start

    def _read_wikilink(self, start: int, content_start: int, is_embed: bool) -> int:
        """Collect the wikilink that begins at `start`, or open its first bracket if it is none.

        `content_start` is the offset behind the "[[". A link without any name or heading is none.
        """
        text = self.text
        content_end = self._wikilink_content_end(content_start)
        if content_end is None or not text[content_start:content_end].strip():
            behind_first_bracket = content_start - 1
            return self._open_bracket(start, behind_first_bracket, is_embed)

        content = text[content_start:content_end]
        end = content_end + len("]]")
        path = content
        display = ""
        display_start = display_end = -1

        bar = content.find("|", 1)  # Obsidian reads the bar of [[|x]] as part of the name
        if bar >= 0:
            path = content[:bar].removesuffix("\\")  # the bar is escaped in tables
            display = content[bar + 1 :]
            display_start = content_start + bar + 1
            display_end = content_end

        written_name, hash_mark, heading = path.partition("#")
        name = written_name.strip()
        path_start = content_start
        if name:
            path_start += len(written_name) - len(written_name.lstrip())

        self.links.append(
            Link(
                form="wiki",
                is_embed=is_embed,
                property=None,
                target=_lookup_name(name),
                subpath=(hash_mark + heading).rstrip(),
                display=display,
                line=self.line_of(start),
                start=start,
                end=end,
                path_start=path_start,
                path_end=path_start + len(name),
                display_start=display_start,
                display_end=display_end,
                angle=False,
                scalar=None,
            )
        )
        return self._skip_to(end)

    def _wikilink_content_end(self, content_start: int) -> int | None:
        """Return where the "]]" of a wikilink begins, or None if the brackets are none.

        Of nested brackets, the innermost are the link: `[[[x]]]` is a bracket and a link.
        """
        if self.text.startswith("[", content_start):
            return None
        match = _WIKILINK_END.search(self.text, content_start, self.end)
        if match is None or match[0] != "]]":
            return None
        return match.start()

    def _close_bracket(self, start: int) -> int:
        """Close the innermost bracket with the "]" at `start`.

        It is collected as a Markdown link if a destination follows. A bracket around a link cannot
        become a link itself, except that of an image.
        """
        if not self.brackets:
            return start + 1

        bracket = self.brackets.pop()
        level = len(self.brackets)  # how many brackets are open around it
        is_inactive = level < self.inactive_levels and not bracket.is_image
        # The bracket is closed. Only those that are still open can stay inactive.
        self.inactive_levels = min(self.inactive_levels, level)
        if is_inactive:
            return start + 1

        destination = _DESTINATION.match(self.text, start + 1, self.end)
        if destination is None:
            return start + 1

        if not bracket.is_image:
            self.inactive_levels = level  # all brackets around the link
            self._add_tag_of_link_text(bracket.content_start, start)
        self._add_markdown_link(bracket, start, destination)
        return self._skip_to(destination.end())

    def _add_tag_of_link_text(self, start: int, end: int) -> None:
        """Collect the tag that a link's text, text[start:end], begins with, if there is one.

        Text begins again within a link, so no space is needed before the tag.
        """
        tag = _TAG.match(self.text, start, end)
        if tag is not None:
            self._add_tag(start, tag["name"])

    def _add_markdown_link(
        self,
        bracket: _Bracket,
        display_end: int,
        destination: re.Match[str],
    ) -> None:
        """Collect a Markdown link, unless it leads to the web or nowhere.

        `display_end` is the offset of its "]"; `destination` matched from the "(" on.
        """
        is_angle = destination["angle"] is not None
        group = "angle" if is_angle else "plain"
        address_start, address_end = destination.span(group)
        address = self.text[address_start:address_end]
        if not address or _WEB_ADDRESS.match(address):
            return

        path, hash_mark, heading = address.partition("#")
        display_start = bracket.content_start
        display = self.text[display_start:display_end]
        if not display:
            display_start = display_end = -1

        self.links.append(
            Link(
                form="markdown",
                is_embed=bracket.is_image,
                property=None,
                target=_lookup_name(_decode_destination(path).strip()),
                subpath=_decode_destination(hash_mark + heading),
                display=display,
                line=self.line_of(bracket.start),
                start=bracket.start,
                end=destination.end(),
                path_start=address_start,
                path_end=address_start + len(path),
                display_start=display_start,
                display_end=display_end,
                angle=is_angle,
                scalar=None,
            )
        )


# -- blocks

# The marks of the quotes and list items that a line stands in, and those of a heading.
_MARKS = r"[ \t]*+(?:(?:>|[-+*](?=[ \t])|[0-9]{1,9}[.)](?=[ \t]))[ \t]*+)*+"
_LEADING_MARKS = re.compile(_MARKS)
_ATX_START = re.compile(rf"{_MARKS}#{{1,6}}(?:[ \t]|$)")
_CLOSING_HASHES = re.compile(r"(?:^|[ \t])#+[ \t]*$")
_BLOCK_ID = re.compile(r"(?:^|[ \t])\^(?P<id>[A-Za-z0-9-]+)[ \t]*$")

_KINDS_WITH_TEXT = frozenset({"paragraph", "item", "quote", "heading", "math"})
_KINDS_WITH_IDS = frozenset({"paragraph", "item", "quote", "heading", "table"})


class Heading(NamedTuple):
    """A heading: its text without the marks around it. It ends with its own line or lines."""

    level: int
    text: str
    line: int
    start: int
    end: int


class TextBlock(NamedTuple):
    """A piece of the body: its kind, its offsets in the whole text, and its first line.

    `heading` is the index of the heading that it stands under, -1 above the first.
    """

    kind: str  # paragraph, item, quote, heading, table, code, math, html or definition
    start: int  # after the indent of its first line
    end: int
    line: int
    heading: int  # the index of the one it stands under (a heading's own), -1 above the first


class Body(NamedTuple):
    """The contents of a body, each kind in the order of the text.

    `block_ids` has pairs of id and line, `tag_lines` the line of each of `tags`. Lines count from
    1.
    """

    headings: tuple[Heading, ...]
    blocks: tuple[TextBlock, ...]
    links: tuple[Link, ...]
    tags: tuple[str, ...]  # without their hashes
    block_ids: tuple[tuple[str, int], ...]  # pairs of id and line
    start: int = 0
    tag_lines: tuple[int, ...] = ()  # the line of each tag


def read_body(text: str, start: int) -> Body:
    """Return the contents of the body that begins at the offset `start` of a note's text.

    Offsets count from the start of the whole text, lines from 1 at its first line. Rules (`---`)
    are not among the blocks. Any text is a body: this never raises. The time is proportional to the
    length of the text.
    """
    if start == 0 and text.startswith(BYTE_ORDER_MARK):
        start = 1
    lines, line_starts = _split_lines(text, start)
    first_line = 1 + count_lines(text, 0, start)
    scanner = InlineScanner(text, line_starts, first_line)

    headings: list[Heading] = []
    blocks: list[TextBlock] = []
    block_ids: list[tuple[str, int]] = []
    for leaf in BlockScanner(lines).read():
        kind, first, end, level = leaf
        if kind == "rule":
            continue

        line = lines[first]
        last_line = lines[end - 1]
        indent = len(line) - len(line.lstrip(" \t"))
        block_start = line_starts[first] + indent
        block_end = line_starts[end - 1] + len(last_line.rstrip(" \t"))
        line_number = first + first_line

        if kind == "heading":
            heading = Heading(
                level=level,
                text=_heading_text(lines, leaf),
                line=line_number,
                start=block_start,
                end=block_end,
            )
            headings.append(heading)
        block = TextBlock(
            kind=kind,
            start=block_start,
            end=block_end,
            line=line_number,
            heading=len(headings) - 1,
        )
        blocks.append(block)

        _read_inline(scanner, lines, leaf, block_end)
        block_id = _find_block_id(kind, last_line)
        if block_id is not None:
            last_line_number = end - 1 + first_line
            block_ids.append((block_id, last_line_number))

    # A link that is the text of another is complete before the other, and so precedes it.
    links = sorted(scanner.links, key=lambda link: link.start)
    tags = sorted(scanner.tags)
    return Body(
        headings=tuple(headings),
        blocks=tuple(blocks),
        links=tuple(links),
        tags=tuple(name for _, name in tags),
        block_ids=tuple(block_ids),
        start=start,
        tag_lines=tuple(scanner.line_of(offset) for offset, _ in tags),
    )


def _read_inline(
    scanner: InlineScanner,
    lines: Sequence[str],
    leaf: Leaf,
    block_end: int,
) -> None:
    """Collect the links and tags of a block, whose last line has its text up to `block_end`.

    Blocks of code, HTML and definitions have none. In tables, each row is read cell by cell.
    """
    kind, first, end, level = leaf
    if kind in _KINDS_WITH_TEXT:
        # For speed: most blocks of one line have neither links nor tags. A heading has as many
        # hashes as its level; any more may begin a tag.
        line = lines[first]
        has_more_lines = end > first + 1
        if has_more_lines or "[" in line or line.count("#") != level:
            scanner.read(scanner.line_starts[first], block_end)
    elif kind == "table":
        for row in range(first, end):
            row_start = scanner.line_starts[row]
            row_end = row_start + len(lines[row])
            scanner.read_row(row_start, row_end)


def _find_block_id(kind: str, last_line: str) -> str | None:
    """Return the id (`^id`) at the end of a block, without its caret; None if it has none.

    `kind` is that of the block. Headings, tables, and paragraphs also of items and quotes, can have
    an id.
    """
    if "^" not in last_line or kind not in _KINDS_WITH_IDS:
        return None
    block_id = _BLOCK_ID.search(last_line)
    if block_id is None:
        return None
    return block_id["id"]


def _split_lines(text: str, start: int) -> tuple[list[str], list[int]]:
    """Return the lines from `start` on, without their ends, and the offset of each of them.

    As in CommonMark, lines end at LF, CRLF or a lone CR. The offsets are those in the whole text.
    """
    if text.find("\r", start) < 0:  # for speed
        lines = text[start:].split("\n")
        lengths = (len(line) + 1 for line in lines)
        line_starts = list(accumulate(lengths, initial=start))
        return lines, line_starts[:-1]

    lines = []
    line_starts = [start]
    for line_end in LINE_END.finditer(text, start):
        lines.append(text[line_starts[-1] : line_end.start()])
        line_starts.append(line_end.end())
    lines.append(text[line_starts[-1] :])
    return lines, line_starts


def _heading_text(lines: Sequence[str], leaf: Leaf) -> str:
    """Return the text of a heading without its own marks and those of its containers.

    `leaf` is the heading among `lines`. The lines of an underlined heading are joined by spaces.
    """
    line = lines[leaf.first]
    if leaf.end == leaf.first + 1:
        atx_start = _ATX_START.match(line)
        if atx_start is not None:
            heading = line[atx_start.end() :]
            return _CLOSING_HASHES.sub("", heading).strip(SPACES)

    # A heading that is underlined may have several lines. Its last line is the underline.
    first_text = _LEADING_MARKS.sub("", line, count=1)
    leading_marks = line.removesuffix(first_text)
    further_lines = lines[leaf.first + 1 : leaf.end - 1]
    if ">" in leading_marks:  # the heading stands in a quote, as do its further lines
        further_lines = [QUOTE_MARKS.sub("", text, count=1) for text in further_lines]

    parts = [part.strip(SPACES) for part in (first_text, *further_lines)]
    return " ".join(parts).strip(SPACES)
