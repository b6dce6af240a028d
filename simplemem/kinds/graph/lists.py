"""The lists of a page of the graph: which bullets say something, and where the two sections are. Pure.

Code says nothing, and no more does a comment that its reader does not see: `%% … %%` and `<!-- … -->` as blocks of their
own. Time grows with the length of the text, whatever stands there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from simplemem.kinds.graph import spelling
from simplemem.kinds.graph.values import Observation

BARE: Final = "relates_to"  # a link without a word before it
OPEN: Final = "open"  # not a section: code or a comment that nobody closed, behind which nothing is read
BULLET: Final = re.compile(r"[-*+][ \t]+")
_SECTIONS: Final = frozenset({"observations", "relations"})
_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\n|\r|$)")
_HEADING: Final = re.compile(r"(#{1,6})[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*$")
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")
# A comment that is a block of its own, in Obsidian's words and in HTML's.
_HIDING: Final = re.compile(r" {0,3}(%%|<!--)")
_HIDING_ENDS: Final = {"%%": "%%", "<!--": "-->"}
_OUTSIDE: Final = re.compile(r"[\r\n][^ \t\r\n]")  # where a line begins that is not set in
_CATEGORY: Final = re.compile(r"\[[^\[\]|]{2,60}\] +\S")


class Bond(NamedTuple):
    """A relation as it stands on its page: to a link's target, or to a name that is said exactly."""

    type: str
    link: str  # "" when the name is said
    name: str
    attributes: Mapping[str, Any]


class Bullet(NamedTuple):
    """One item of a list that says something, and its lines."""

    start: int
    end: int
    says: Observation | Bond


class Section(NamedTuple):
    """One of the two lists. `start` is where its heading begins, `end` is behind its last bullet, or behind its
    heading."""

    start: int
    end: int
    stop: int  # where the next heading begins


def read_lists(text: str, start: int, *, everything: bool) -> tuple[tuple[Bullet, ...], dict[str, Section]]:
    """The bullets that say something, and the two sections. Without `everything` a bullet outside of them must have the
    form of other memories to count."""
    lists = _Lists(text, everything=everything)
    lists.read(start)
    return tuple(lists.bullets), lists.sections


class _Lists:
    """What was read of a page so far."""

    def __init__(self, text: str, *, everything: bool) -> None:
        self.bullets: list[Bullet] = []
        self.sections: dict[str, Section] = {}
        self._text = text
        self._everything = everything
        self._section, self._level = "", 0  # the section that we are in, and how deep its heading is
        self._above = True  # before the first heading below the title
        self._item = False  # whether what comes may belong to an item
        self._fence, self._code_at = "", 0  # what the code that we are in began with, and where

    def read(self, at: int) -> None:
        size = len(self._text)
        while at < size:
            end = self._take(at)
            at = end if end > at else size
        if self._fence:
            self.sections[OPEN] = Section(self._code_at, self._code_at, size)

    def _take(self, at: int) -> int:
        """Take in what begins with the line at `at`. Returns where it ends."""
        found = _LINE.match(self._text, at)
        assert found is not None
        end, line = found.end(), found[0].rstrip("\r\n")
        first = line[:1]
        if self._fence:
            self._code(line, end)
        elif first == "#" and (heading := _HEADING.match(line)):
            self._heading(at, end, len(heading[1]), heading[2].strip().casefold())
        elif first and first in "-*+" and (mark := BULLET.match(line)):
            return self._bullet(at, end, line[mark.end() :])
        elif line.strip():
            if first in "%< " and (hiding := _HIDING.match(line)):
                closed = _hidden_until(self._text, at, hiding)
                if closed is None:
                    self.sections[OPEN] = Section(at, at, len(self._text))
                    return len(self._text)
                end = closed
            elif first in "`~ " and (opening := _FENCE.match(line)):
                self._fence, self._code_at = opening[1], at
            self._item = self._goes_on(at, first)
            if self._item:
                self._reaches(end)
        return end

    def _code(self, line: str, end: int) -> None:
        closing = _FENCE.match(line)
        if closing and closing[1].startswith(self._fence) and not line[closing.end() :].strip():
            self._fence = ""
        if self._item:
            self._reaches(end)

    def _heading(self, at: int, end: int, depth: int, title: str) -> None:
        self._item = False
        if self._section and depth <= self._level:
            self.sections[self._section] = self.sections[self._section]._replace(stop=at)
        if title in _SECTIONS and title not in self.sections:
            self._section, self._level = title, depth
            self.sections[title] = Section(at, end, len(self._text))
        elif depth <= self._level or not self._section:
            self._section, self._level, self._above = "", depth, self._above and depth == 1

    def _bullet(self, at: int, end: int, content: str) -> int:
        more, end = _set_in(self._text, end)
        says = _said((content + more).rstrip(), self._section, everything=self._everything and self._above)
        if says is not None:
            self.bullets.append(Bullet(at, end, says))
        self._item = True
        if self._section:
            self._reaches(end)
        return end

    def _goes_on(self, at: int, first: str) -> bool:
        """Whether a line belongs to an item of the section: it follows at once, or is indented. What is added to the section
        must not come between."""
        return bool(self._section) and self._item and (at == self.sections[self._section].end or first in " \t")

    def _reaches(self, end: int) -> None:
        self.sections[self._section] = self.sections[self._section]._replace(end=end)


def _hidden_until(text: str, at: int, hiding: re.Match[str]) -> int | None:
    """Where the last line of a comment ends whose first line begins at `at`, None when nobody closed it."""
    closing = text.find(_HIDING_ENDS[hiding[1]], at + hiding.start(1) + 2)  # `<!-->` is a whole comment
    if closing < 0:
        return None
    last = _LINE.match(text, closing)
    assert last is not None
    return last.end()


def _set_in(text: str, at: int) -> tuple[str, int]:
    """The lines of an item behind its first, which are set in, and where they end. A comment over several of them is no
    part of what it says; one on a single line may hold attributes."""
    lines: list[str] = []
    until: int | None = None  # where the item must end; looked for once, since many lines may begin a comment
    without: set[str] = set()
    while text.startswith((" ", "\t"), at) and (more := _LINE.match(text, at)) and more[0].strip():
        if (hiding := _HIDING.match(more[0])) and hiding[1] not in without:
            if until is None:
                outside = _OUTSIDE.search(text, at)
                until = len(text) if outside is None else outside.start()
            closing = text.find(_HIDING_ENDS[hiding[1]], at + hiding.start(1) + 2, until)
            if closing >= more.end():
                break
            if closing < 0:
                without.add(hiding[1])
        lines.append("\n" + _dedented(more[0].rstrip("\r\n")))
        at = more.end()
    return "".join(lines), at


def _dedented(line: str) -> str:
    return line[2:] if line.startswith("  ") else line.lstrip(" \t")


def _said(content: str, section: str, *, everything: bool) -> Observation | Bond | None:
    """What a bullet says, None for nothing to the graph."""
    if section == "observations":
        return _observation(content)
    bond = _bond(content)
    if section == "relations" or bond is not None:
        return bond
    return _observation(content) if everything or _CATEGORY.match(content) else None


def _observation(content: str) -> Observation:
    said, attributes = spelling.split_attributes(content)
    return Observation(spelling.read(said), attributes)


def _bond(content: str) -> Bond | None:
    """A relation: its type, a link or an exact name, and what stands behind in a comment."""
    said, attributes = spelling.split_attributes(content)
    kind: str | None = None
    if said.startswith('"'):
        kind, end = spelling.literal_in(said)
        if kind is not None:
            said = said[end:].lstrip()
    if kind is not None and said.startswith('"'):
        name, end = spelling.literal_in(said)
        return Bond(kind, "", name, attributes) if name is not None and end == len(said) else None
    if kind is None and (named := _named(said, attributes)) is not None:
        return named
    found = spelling.link_in(said)
    if found is None:
        return None
    before, link = found
    if kind is not None:
        return Bond(kind, _target(link), "", attributes) if not before else None
    if before.startswith("[") or before.endswith("!"):
        return None
    return Bond(before or BARE, _target(link), "", attributes)


def _named(said: str, attributes: Mapping[str, Any]) -> Bond | None:
    """`knows "a name"`: a relation to a name that no link can say."""
    at = said.find(' "')
    if at < 0 or not said.endswith('"'):
        return None
    name, end = spelling.literal_in(said[at + 1 :])
    return Bond(said[:at], "", name, attributes) if name is not None and at + 1 + end == len(said) else None


def _target(link: str) -> str:
    return link.split("|", 1)[0].split("#", 1)[0].strip()
