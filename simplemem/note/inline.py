"""Links and tags in a stretch of Markdown text: how each is written, and where they stand. Pure; no blocks here.

What counts and what hides is obsidian.md §1.1, §1.2 and §2: code, math, HTML comments and escapes hide; `%%` does not.
Whatever begins first wins: a backtick in `[[...]]` is the link's, brackets in code are code. What a link leads to is not
known to a note at all.
"""

from __future__ import annotations

import html
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from typing import Literal, NamedTuple
from urllib.parse import unquote

from simplemem.note.blocks import HTML_TAG
from simplemem.note.header import Scalar


class InlineTag(NamedTuple):
    """A `#tag` in the body, without its hash."""

    name: str
    line: int
    start: int
    end: int


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

    def in_property(self, scalar: Scalar, line: int) -> Link:
        """This link, read from a property's value, in its place; where the source is escaped, only the value has one."""
        start, end = scalar.start, scalar.end
        path_start, path_end, display_start, display_end = start, end, -1, -1
        if scalar.verbatim >= 0:
            at = scalar.verbatim + len(scalar.value) - len(scalar.value.lstrip())
            start, end, path_start, path_end = (at + place for place in self[7:11])
            display_start, display_end = (at + place if place >= 0 else -1 for place in self[11:13])
        shown = (self.target, self.subpath, self.display, line)
        places = (start, end, path_start, path_end, display_start, display_end)
        return Link(self.form, self.embed, ".".join(scalar.path), *shown, *places, self.angle, scalar)


def read_value_link(value: str) -> Link | None:
    """The link that a value is, blanks around it aside; its places are in the value without those blanks."""
    value = value.strip()
    if value.startswith("[[") and value.endswith("]]"):
        if not _WIKI_END.search(value, 2, len(value) - 2):
            return _read_wikilink(value, 0, len(value), False, 0)
    elif value.startswith("[") and value.endswith(")"):
        scanner = InlineScanner(value, [0], 0)
        scanner.read(0, len(value))
        whole = (link for link in scanner.links if link.form == "markdown" and link.end - link.start == len(value))
        return next(whole, None)
    return None


def _read_wikilink(text: str, start: int, end: int, embed: bool, line: int) -> Link | None:
    """The link `[[...]]` or `![[...]]` between two offsets, None when it names nothing."""
    begins, stop = start + 2 + embed, end - 2
    inner = text[begins:stop]
    if not inner or inner.isspace():
        return None
    bar = inner.find("|", 1)  # [[|x]] keeps its bar (obsidian.md §1.1)
    path = inner if bar < 0 else inner[:bar]
    if bar >= 0 and path.endswith("\\"):  # in tables the bar is escaped
        path = path[:-1]
    name, mark, rest = path.partition("#")
    lead = len(name) - len(name.lstrip())
    name = name.strip()
    at = begins + lead if name else begins
    display = inner[bar + 1 :] if bar >= 0 else ""
    places = (start, end, at, at + len(name), *((begins + bar + 1, stop) if bar >= 0 else (-1, -1)))
    subpath = (mark + rest).rstrip()
    return Link("wiki", embed, None, _looked_up(name), subpath, display, line, *places, angle=False, scalar=None)


# A destination with its title: <in angles>, or without spaces and with parentheses nested at most three deep.
_PLAIN = r"[^ \t\n\r\v\f\x00-\x1f\x7f()\\]++|\\[!-/:-@\[-`{-~]?+"
_NESTED = rf"\((?:{_PLAIN}|\((?:{_PLAIN}|\((?:{_PLAIN})*+\))*+\))*+\)"
_TITLE = r"""(?:"(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+'|\((?:[^()\\]|\\.)*+\))"""
_GAP = r"[ \t\n\r]"
_DESTINATION = re.compile(
    rf"\({_GAP}*+(?:<((?:[^<>\\\n\r]|\\.)*+)>|((?!<)(?:{_PLAIN}|{_NESTED})*+))(?:{_GAP}++{_TITLE})?+{_GAP}*+\)",
    re.DOTALL,
)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:|//")
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")


def _read_destination(
    text: str, found: re.Match[str], start: int, shown: tuple[int, int], image: bool, line: int
) -> Link | None:
    """The internal Markdown link that a match of `_DESTINATION` ends, None when it is external or empty."""
    angle = found[1] is not None
    begins, stop = found.span(1 if angle else 2)
    destination = text[begins:stop]
    if not destination or _SCHEME.match(destination):
        return None
    path, mark, rest = destination.partition("#")
    target, subpath = _looked_up(_decoded(path).strip()), _decoded(mark + rest)
    places = (start, found.end(), begins, begins + len(path), *(shown if shown[0] < shown[1] else (-1, -1)))
    return Link("markdown", image, None, target, subpath, text[slice(*shown)], line, *places, angle, scalar=None)


def _decoded(destination: str) -> str:
    """A destination as the name it stands for: escapes, entities and percent signs undone."""
    if "\\" in destination:
        destination = _ESCAPED.sub(r"\1", destination)
    if "&" in destination:
        destination = _ENTITY.sub(lambda found: html.unescape(found[0]), destination)
    if "%" in destination:
        try:
            return unquote(destination, errors="strict")
        except UnicodeDecodeError:  # a percent sign that stands for itself
            return destination
    return destination


def _looked_up(name: str) -> str:
    """A link's path as it is looked up: no-break spaces are spaces, NFC, trimmed (obsidian.md §1.4)."""
    return name if name.isascii() else unicodedata.normalize("NFC", name.replace("\xa0", " ")).strip()


# ------------------------------------------------------------------ the scanner

# Every alternative begins with a character of its own, so that `re` skips over plain text at once.
_TOKEN = re.compile(r"\\[!-/:-@\[-`{-~]|``*|\$\$?|<|!\[\[?|\[\[?|\]|#")
_WIKI_END = re.compile(r"\]\]|\[\[|[\n\r]")
_TICKS = re.compile(r"`+")
_LINE_END = re.compile(r"[\n\r]")
_MATH_END = re.compile(r"(?<![\s\\])\$(?![0-9])")
_TAG_OR_AUTOLINK = re.compile(rf"<[A-Za-z][A-Za-z0-9+.-]{{1,31}}:[^\s<>\x00-\x1f]*+>|{HTML_TAG}")

# obsidian.md §2: what a tag cannot hold, and what must stand before its hash.
_NO_TAG = "\\x00-\\x20!-,.:-@\\[-\\^`{-\\x7f\\x85\\xa0\\u1680\\u2000-\\u206f\\u2e00-\\u2e7f\\u3000\\ufeff"
_TAG = re.compile(f"#([^{_NO_TAG}]++)")
_SPACE = frozenset(
    "\t\n\v\f\r \xa0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff" + "".join(map(chr, range(0x2000, 0x200B)))
)
_QUOTE_MARKS = re.compile(r"[ \t>]*+")
_CELL = re.compile(r"\[\[[^\[\]|\n\r]*+(?:\|[^\[\]|\n\r]*+)?+\]\]|(?<!\\)(\|)")


class InlineScanner:
    """Collects the links and tags of one body, region by region."""

    def __init__(self, text: str, line_starts: Sequence[int], first_line: int) -> None:
        self.text = text
        self.links: list[Link] = []
        self.tags: list[InlineTag] = []
        self._line_starts = line_starts
        self._first_line = first_line

    def line_of(self, offset: int) -> int:
        return bisect_right(self._line_starts, offset) - 1 + self._first_line

    def read_row(self, start: int, end: int) -> None:
        """A table row: each cell by itself, but a bar inside [[a|b]] does not end the cell."""
        cell = start
        for found in _CELL.finditer(self.text, start, end):
            if found[1]:
                self.read(cell, found.start())
                cell = found.end()
        self.read(cell, end)

    def read(self, start: int, end: int) -> None:
        """Find the links and tags between two offsets: a paragraph, a heading, a cell."""
        text = self.text
        if text.find("[", start, end) < 0 and text.find("#", start, end) < 0:
            return
        links, tags = len(self.links), len(self.tags)
        if _Region(self, start, end).read():  # a link is complete at its end, one inside it before that
            self.links[links:] = sorted(self.links[links:], key=lambda link: link.start)
            self.tags[tags:] = sorted(self.tags[tags:], key=lambda tag: tag.start)


class _Region:
    """One pass over one region. What was looked for in vain is remembered and not looked for again."""

    def __init__(self, scanner: InlineScanner, start: int, end: int) -> None:
        self.scanner = scanner
        self.text = scanner.text
        self.start = start
        self.end = end
        self.chunk = start  # where text begins anew: after code, a link, a tag, an escape
        self.brackets: list[tuple[int, bool]] = []  # open "[" and "![": where, and whether it is an image
        self.dead_below = 0  # brackets below this level cannot become links: one inside them did
        self.ticks: dict[int, list[int]] | None = None
        self.no_display_math = False
        self.no_math_until = -1
        self.no_comment = False
        self.nested = False

    def read(self) -> bool:
        """Read it all. True when links came out of order."""
        text, end, search = self.text, self.end, _TOKEN.search
        at = self.start
        while (found := search(text, at, end)) is not None:
            at = found.end()
            token = found[0]
            first = token[0]
            if first == "#":
                at = self._tag(at - 1)
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
        return self.nested

    def _past(self, end: int) -> int:
        """Text begins anew here."""
        self.chunk = end
        return end

    def _tag(self, at: int) -> int:
        found = _TAG.match(self.text, at, self.end)
        return self._add_tag(at, found[1]) if found is not None and self._may_begin(at) else at + 1

    def _add_tag(self, at: int, name: str) -> int:
        name = name.rstrip("/")
        end = at + 1 + len(name)
        if not name or (name.isascii() and name.isdigit()):
            return end
        self.scanner.tags.append(InlineTag(name, self.scanner.line_of(at), at, end))
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
            run = text[before:at]
            if run.replace("==", "").replace("~~", "").strip("*_"):
                return False
            opener = before == self.start or before == self.chunk or text[before - 1] in _SPACE
            return opener or text[before - 1] in "!\"'(,-.:;>?[{|"
        if text[at - 1] == ">":  # a quote's mark without a space after it
            line = max(text.rfind("\n", self.start, at), text.rfind("\r", self.start, at)) + 1 or self.start
            return _QUOTE_MARKS.match(text, line, at).end() == at  # type: ignore[union-attr]
        return False

    def _code(self, at: int, after: int) -> int:
        """Past a code span, or past backticks that nothing closes."""
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
            close = -1 if self.no_display_math else text.find("$$", after, self.end)
            self.no_display_math = close < 0
            return after if close < 0 else self._past(close + 2)
        if after >= self.end or after < self.no_math_until or text[after] in _SPACE:
            return after
        line_end = _LINE_END.search(text, after, self.end)
        stop = line_end.start() if line_end else self.end
        found = _MATH_END.search(text, after, stop)
        if found is None:
            self.no_math_until = stop
            return after
        return self._past(found.end())

    def _html(self, at: int) -> int:
        """Past a comment, a tag or an <autolink>."""
        text = self.text
        if text.startswith("<!--", at):
            if text.startswith((">", "->"), at + 4):
                return self._past(text.index(">", at) + 1)
            close = -1 if self.no_comment else text.find("-->", at + 4, self.end)
            self.no_comment = close < 0
            return at + 1 if close < 0 else self._past(close + 3)
        found = _TAG_OR_AUTOLINK.match(text, at, self.end)
        return at + 1 if found is None else self._past(found.end())

    def _open(self, at: int, token: str) -> int:
        """A wikilink, or brackets that may become a Markdown link."""
        text = self.text
        embed = token[0] == "!"
        begins = at + len(token)
        if token.endswith("[["):
            if not text.startswith("[", begins):  # [[[x]]] is a bracket and a link: the innermost wins
                found = _WIKI_END.search(text, begins, self.end)
                if found is not None and found[0] == "]]":
                    link = _read_wikilink(text, at, found.end(), embed, self.scanner.line_of(at))
                    if link is not None:
                        self.scanner.links.append(link)
                        return self._past(found.end())
            begins -= 1
        self.brackets.append((at, embed))
        return begins

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
            if (tag := _TAG.match(self.text, shown, at)) is not None:  # the text of a link is a chunk of its own
                self._add_tag(shown, tag[1])
                self.nested = True
        link = _read_destination(self.text, found, start, (shown, at), image, self.scanner.line_of(start))
        if link is not None:
            links = self.scanner.links
            self.nested = self.nested or (bool(links) and links[-1].start > start)
            links.append(link)
        return self._past(found.end())
