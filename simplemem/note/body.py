"""What stands in a note's body: headings, blocks, links, tags, block ids, each with its place in the whole text. Pure.
Blocks are CommonMark's (`blocks.py`), links and tags Obsidian's: what counts and what hides is obsidian.md §1.1, §1.2
and §2. Whatever begins first wins. Where a link leads is not known here."""

from __future__ import annotations

import html
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Literal, NamedTuple
from urllib.parse import unquote

from simplemem.note.blocks import HTML_TAG, SPACES, Leaf, Scan
from simplemem.note.header import LINE_END, Scalar


class Heading(NamedTuple):
    """A heading: its text without the marks around it. `end` is the end of its own line or lines."""

    level: int
    text: str
    line: int
    start: int
    end: int


class Block(NamedTuple):
    """A piece of the body: paragraph, item, quote, heading, table, code, math, html or definition."""

    kind: str
    start: int  # after the indent of its first line
    end: int
    line: int
    heading: int  # the index of the one it stands under (a heading's own), -1 above the first


class Link(NamedTuple):
    """A link or embed as it is written: what it looks up, what it shows, and where each part stands."""

    form: Literal["wiki", "markdown"]
    embed: bool
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
        """What is told of it: how it is written, or that it embeds, or stands in a property."""
        return "property" if self.property is not None else "embed" if self.embed else self.form


class Body(NamedTuple):
    """Everything found in a body, in the order it stands there. `block_ids` are (id, line) pairs."""

    headings: tuple[Heading, ...]
    blocks: tuple[Block, ...]
    links: tuple[Link, ...]
    tags: tuple[str, ...]  # without their hashes
    block_ids: tuple[tuple[str, int], ...]
    start: int = 0
    tag_lines: tuple[int, ...] = ()  # the line of each tag


_MARKS = r"[ \t]*+(?:(?:>|[-+*](?=[ \t])|[0-9]{1,9}[.)](?=[ \t]))[ \t]*+)*+"
_HEADING = re.compile(rf"{_MARKS}(#{{1,6}})(?:[ \t]|$)")
_LEADING_MARKS = re.compile(_MARKS)
_QUOTE_MARKS = re.compile(r"[ \t>]*+")
_CLOSING_HASHES = re.compile(r"(?:^|[ \t])#+[ \t]*$")
_BLOCK_ID = re.compile(r"(?:^|[ \t])\^([A-Za-z0-9-]+)[ \t]*$")

_WITH_TEXT = frozenset({"paragraph", "item", "quote", "heading", "math"})
_WITH_IDS = _WITH_TEXT - {"math"} | {"table"}


def read_body(text: str, start: int) -> Body:
    """The facts of the body that begins at `start`. Never raises; time grows with the length of the text."""
    if start == 0 and text.startswith("\ufeff"):
        start = 1
    lines, starts = _split(text, start)
    first_line = 1 + count_lines(text, 0, start)
    scanner = _InlineScanner(text, starts, first_line)
    headings, blocks, ids = list[Heading](), list[Block](), list[tuple[str, int]]()
    for leaf in Scan(lines).read():
        kind, first, end, level = leaf
        if kind == "rule":
            continue
        line = lines[first]
        begins = starts[first] + len(line) - len(line.lstrip(" \t"))
        ends = starts[end - 1] + len(lines[end - 1].rstrip(" \t"))
        if kind == "heading":
            headings.append(
                Heading(level, _heading_text(lines, leaf), first + first_line, begins, ends)
            )
        if kind in _WITH_TEXT and (
            end > first + 1 or "[" in line or line.count("#") != level
        ):  # not marks alone
            scanner.read(starts[first], ends)
        elif kind == "table":
            for row in range(first, end):
                scanner.read_row(starts[row], starts[row] + len(lines[row]))
        if (
            "^" in lines[end - 1]
            and kind in _WITH_IDS
            and (found := _BLOCK_ID.search(lines[end - 1])) is not None
        ):
            ids.append((found[1], end - 1 + first_line))
        blocks.append(Block(kind, begins, ends, first + first_line, len(headings) - 1))
    links = sorted(
        scanner.links, key=lambda link: link.start
    )  # one inside another is complete before it
    found_tags = sorted(scanner.tags)
    tags = tuple(name for _, name in found_tags)
    tag_lines = tuple(scanner.line_of(offset) for offset, _ in found_tags)
    return Body(tuple(headings), tuple(blocks), tuple(links), tags, tuple(ids), start, tag_lines)


def _split(text: str, start: int) -> tuple[list[str], list[int]]:
    """The lines from `start` on and where each begins. Lines end at LF, CRLF or a lone CR."""
    if text.find("\r", start) < 0:
        lines = text[start:].split("\n")
        return lines, list(accumulate((len(line) + 1 for line in lines), initial=start))[:-1]
    ends = [found.span() for found in LINE_END.finditer(text, start)]
    starts = [start, *(after for _, after in ends)]
    return [
        text[at:end] for at, (end, _) in zip(starts, [*ends, (len(text), 0)], strict=True)
    ], starts


def count_lines(text: str, start: int, end: int) -> int:
    """How many lines end between two offsets."""
    if text.find("\r", start, end) < 0:
        return text.count("\n", start, end)
    return sum(1 for _ in LINE_END.finditer(text, start, end))


def newline_of(text: str) -> str:
    """The line end that a text uses: its first one."""
    found = LINE_END.search(text)
    return found[0] if found else "\n"


def _heading_text(lines: Sequence[str], leaf: Leaf) -> str:
    """What a heading says, without the marks of the heading and of what it stands in."""
    found = _HEADING.match(lines[leaf.first]) if leaf.end == leaf.first + 1 else None
    if found is not None:
        return _CLOSING_HASHES.sub("", lines[leaf.first][found.end() :]).strip(SPACES)
    marks = _LEADING_MARKS.match(lines[leaf.first])[0]  # type: ignore[index]  # it matches everything
    more = lines[leaf.first + 1 : leaf.end - 1]
    if ">" in marks:
        more = [_QUOTE_MARKS.sub("", line, count=1) for line in more]
    return " ".join(part.strip(SPACES) for part in (lines[leaf.first][len(marks) :], *more)).strip(
        SPACES
    )


def read_value_link(value: str) -> Link | None:
    """The link that a value is, blanks around it aside; its places are in the value without those blanks."""
    value = value.strip()
    if not (value.startswith("[") and value.endswith(("]]", ")"))):
        return None
    scanner = _InlineScanner(value, [0], 0)
    scanner.read(0, len(value))
    return next((link for link in scanner.links if (link.start, link.end) == (0, len(value))), None)


# A destination with its title: <in angles>, or without spaces and with parentheses nested at most three deep.
_PLAIN = r"[^ \t\n\r\v\f\x00-\x1f\x7f()\\]++|\\[!-/:-@\[-`{-~]?+"
_NESTED = rf"\((?:{_PLAIN}|\((?:{_PLAIN}|\((?:{_PLAIN})*+\))*+\))*+\)"
_TITLE = r"""(?:"(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+'|\((?:[^()\\]|\\.)*+\))"""
_GAP = r"[ \t\n\r]"
_DESTINATION = re.compile(
    rf"(?s)\({_GAP}*+(?:<((?:[^<>\\\n\r]|\\.)*+)>|((?!<)(?:{_PLAIN}|{_NESTED})*+))(?:{_GAP}++{_TITLE})?+{_GAP}*+\)"
)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:|//")
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")


def _decoded(destination: str) -> str:
    """A destination as the name it stands for: escapes, entities and percent signs undone."""
    if "\\" in destination:
        destination = _ESCAPED.sub(r"\1", destination)
    if "&" in destination:
        destination = _ENTITY.sub(lambda found: html.unescape(found[0]), destination)
    try:
        return unquote(destination, errors="strict") if "%" in destination else destination
    except UnicodeDecodeError:  # a percent sign that stands for itself
        return destination


def _looked_up(name: str) -> str:
    """A link's path as it is looked up: no-break spaces are spaces, NFC, trimmed (obsidian.md §1.4)."""
    return (
        name if name.isascii() else unicodedata.normalize("NFC", name.replace("\xa0", " ")).strip()
    )


# Every alternative begins with a character of its own, so that `re` skips over plain text at once.
_TOKEN = re.compile(r"\\[!-/:-@\[-`{-~]|``*|\$\$?|<|!\[\[?|\[\[?|\]|#")
_WIKI_END = re.compile(r"\]\]|\[\[|[\n\r]")
_TICKS = re.compile(r"`+")
_MATH_END = re.compile(r"(?<![\s\\])\$(?![0-9])")
_TAG_OR_AUTOLINK = re.compile(rf"<[A-Za-z][A-Za-z0-9+.-]{{1,31}}:[^\s<>\x00-\x1f]*+>|{HTML_TAG}")

# obsidian.md §2: what a tag cannot hold, and what must stand before its hash.
_NO_TAG = (
    "\\x00-\\x20!-,.:-@\\[-\\^`{-\\x7f\\x85\\xa0\\u1680\\u2000-\\u206f\\u2e00-\\u2e7f\\u3000\\ufeff"
)
_TAG = re.compile(f"#([^{_NO_TAG}]++)")
_SPACE = frozenset(SPACES + "\ufeff")
_CELL = re.compile(r"\[\[[^\[\]|\n\r]*+(?:\|[^\[\]|\n\r]*+)?+\]\]|(?<!\\)(\|)")


class _InlineScanner:
    """Collects the links and tags of one body by regions: a paragraph, a cell. No vain search is made again in one."""

    def __init__(self, text: str, line_starts: Sequence[int], first_line: int) -> None:
        self.text = text
        self.links: list[Link] = []
        self.tags: list[tuple[int, str]] = []  # where they stand, and their names
        self.line_starts, self.first_line = line_starts, first_line

    def read_row(self, start: int, end: int) -> None:
        """A table row: each cell by itself, but a bar inside [[a|b]] does not end the cell."""
        cell = start
        for found in _CELL.finditer(self.text, start, end):
            if found[1]:
                self.read(cell, found.start())
                cell = found.end()
        self.read(cell, end)

    def read(self, start: int, end: int) -> None:
        text = self.text
        if text.find("[", start, end) < 0 and text.find("#", start, end) < 0:
            return
        self.start, self.end = start, end
        self.chunk = start  # where text begins anew: after code, a link, a tag, an escape
        self.brackets: list[
            tuple[int, bool]
        ] = []  # open "[" and "![": where, and whether it is an image
        self.dead_below = 0  # brackets below this level cannot become links: one inside them did
        self.ticks: dict[int, list[int]] | None = None
        self.missing: set[str] = set()
        self.no_math_until = -1
        at = start
        while (found := _TOKEN.search(text, at, end)) is not None:
            at, token = found.end(), found[0]
            first = token[0]
            if first == "#":
                tag = _TAG.match(text, at - 1, end)
                at = (
                    self._add_tag(at - 1, tag[1])
                    if tag is not None and self._may_begin(at - 1)
                    else at
                )
            elif first == "\\":
                self.chunk = at
            elif first == "`":
                at = self._code(found.start(), at)
            elif first == "]":
                at = self._close(at - 1)
            elif first == "$":
                at = self._math(at, len(token) == 2)
            elif first == "<":
                at = self._html(at - 1)
            else:
                at = self._open(found.start(), token)

    def line_of(self, offset: int) -> int:
        """The number of the line in which an offset lies."""
        return bisect_right(self.line_starts, offset) - 1 + self.first_line

    def _past(self, end: int) -> int:
        self.chunk = end
        return end

    def _past_mark(self, mark: str, after: int, otherwise: int) -> int:
        """Past the next of these marks, or to another place where there is none."""
        close = -1 if mark in self.missing else self.text.find(mark, after, self.end)
        if close < 0:
            self.missing.add(mark)
        return otherwise if close < 0 else self._past(close + len(mark))

    def _add_tag(self, at: int, name: str) -> int:
        name = name.rstrip("/")
        end = at + 1 + len(name)
        if not name or (name.isascii() and name.isdigit()):
            return end
        self.tags.append((at, name))
        return self._past(end)

    def _may_begin(self, at: int) -> bool:
        """Whether a hash here begins a tag: where a chunk starts, after a space, or where emphasis opens."""
        text = self.text
        if at == self.chunk or at == self.start or text[at - 1] in _SPACE:
            return True
        before = at
        while before > self.start and text[before - 1] in "*_~=":
            before -= 1
        if before < at:
            is_emphasis = not text[before:at].replace("==", "").replace("~~", "").strip("*_")
            is_opener = before in (self.start, self.chunk) or text[before - 1] in _SPACE
            return is_emphasis and (is_opener or text[before - 1] in "!\"'(,-.:;>?[{|")
        # A quote's mark without a space after it.
        line = (
            max(text.rfind("\n", self.start, at), text.rfind("\r", self.start, at)) + 1
            or self.start
        )
        return text[at - 1] == ">" and _QUOTE_MARKS.match(text, line, at).end() == at  # type: ignore[union-attr]

    def _code(self, at: int, after: int) -> int:
        if self.ticks is None:
            self.ticks = {}
            for run in _TICKS.finditer(self.text, self.start, self.end):
                self.ticks.setdefault(run.end() - run.start(), []).append(run.start())
        closers = self.ticks.get(after - at, [])
        k = bisect_right(closers, at)
        return after if k == len(closers) else self._past(closers[k] + after - at)

    def _math(self, after: int, display: bool) -> int:
        """Past `$math$` on one line or `$$math$$` over several. Prices ("$5 and $6") are none."""
        text = self.text
        if display:
            return self._past_mark("$$", after, after)
        if after >= self.end or after < self.no_math_until or text[after] in _SPACE:
            return after
        line_end = LINE_END.search(text, after, self.end)
        stop = line_end.start() if line_end else self.end
        if (found := _MATH_END.search(text, after, stop)) is not None:
            return self._past(found.end())
        self.no_math_until = stop
        return after

    def _html(self, at: int) -> int:
        """Past a comment, a tag or an <autolink>."""
        text = self.text
        if text.startswith("<!--", at):
            if text.startswith((">", "->"), at + 4):
                return self._past(text.index(">", at) + 1)
            return self._past_mark("-->", at + 4, at + 1)
        found = _TAG_OR_AUTOLINK.match(text, at, self.end)
        return self._past(found.end()) if found else at + 1

    def _open(self, at: int, token: str) -> int:
        """A wikilink, or brackets that may become a Markdown link."""
        text, embed, begins = self.text, token[0] == "!", at + len(token)
        if not token.endswith("[["):
            self.brackets.append((at, embed))
            return begins
        # [[[x]]] is a bracket and a link: the innermost wins
        found = None if text.startswith("[", begins) else _WIKI_END.search(text, begins, self.end)
        inner = text[begins : found.start()] if found and found[0] == "]]" else ""
        if found is None or not inner.strip():  # it names nothing
            self.brackets.append((at, embed))
            return begins - 1
        bar = inner.find("|", 1)  # [[|x]] keeps its bar (obsidian.md §1.1)
        path = inner if bar < 0 else inner[:bar]
        if bar >= 0 and path.endswith("\\"):  # in tables the bar is escaped
            path = path[:-1]
        name, mark, rest = path.partition("#")
        lead = len(name) - len(name.lstrip())
        name = name.strip()
        start = begins + lead if name else begins
        says = (
            _looked_up(name),
            (mark + rest).rstrip(),
            inner[bar + 1 :] if bar >= 0 else "",
            self.line_of(at),
        )
        shown = (begins + bar + 1, found.start()) if bar >= 0 else (-1, -1)
        places = (at, found.end(), start, start + len(name), *shown)
        self.links.append(Link("wiki", embed, None, *says, *places, angle=False, scalar=None))
        return self._past(found.end())

    def _close(self, at: int) -> int:
        """A closing bracket: a Markdown link when a destination follows the bracket pair."""
        if not self.brackets:
            return at + 1
        start, image = self.brackets.pop()
        level = len(self.brackets)
        dead = not image and level < self.dead_below
        self.dead_below = min(self.dead_below, level)
        found = None if dead else _DESTINATION.match(self.text, at + 1, self.end)
        if found is None:
            return at + 1
        shown = start + 1 + image
        if not image:
            self.dead_below = level
            if (
                tag := _TAG.match(self.text, shown, at)
            ) is not None:  # the text of a link is a chunk of its own
                self._add_tag(shown, tag[1])
        angle = found[1] is not None
        begins, stop = found.span(1 if angle else 2)
        destination = self.text[begins:stop]
        if destination and not _SCHEME.match(destination):  # else it is external, or nothing
            path, mark, rest = destination.partition("#")
            target, subpath = _looked_up(_decoded(path).strip()), _decoded(mark + rest)
            says = (target, subpath, self.text[shown:at], self.line_of(start))
            places = (
                start,
                found.end(),
                begins,
                begins + len(path),
                *((shown, at) if shown < at else (-1, -1)),
            )
            self.links.append(Link("markdown", image, None, *says, *places, angle, scalar=None))
        return self._past(found.end())
