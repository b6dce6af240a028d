"""The lists of a page: where its sections are, and which of its list items count. Pure.

Items under `## Observations` and `## Relations` count, and those of the lead, which is the text
above the first heading below the title. Code blocks and comments of several lines are never read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from simplemem.features.graph.bullets import Bullet, RelationLine, Section, parse_bullet

# The two sections that have a heading of their own.
_SECTIONS: Final[Mapping[str, Section]] = {
    "observations": "observations",
    "relations": "relations",
}
_MASK: Final = "\0"  # takes the place of each character that is not read
_BULLET: Final = re.compile(r"[-*+][ \t]+")
_LINE: Final = re.compile(r"([^\r\n]*)(?:\r\n|\n|\r|$)")
_HEADING: Final = re.compile(r"(#{1,6})[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*$")

# Code and comments of several lines, up to the line that closes them. If nothing closes them, the
# match has a group after the first one.
_HIDDEN: Final = re.compile(
    r"^ {0,3}(?:(`{3,}(?!.*`)|~{3,})(?s:.*?)(?:\n {0,3}\1[`~]*[ \t]*\r?$|\Z())"
    r"|%%(?!.*%%)(?s:.*?)(?:%%.*|\Z())|<!--(?!.*-->)(?s:.*?)(?:-->.*|\Z()))",
    re.MULTILINE,
)


class SectionSpan(NamedTuple):
    """Where a section begins, and where its last item and the text that belongs to it end."""

    start: int
    end: int


class PageLists(NamedTuple):
    """What was read from the lists of a page.

    Attributes:
        bullets: The list items that are observations or relations, in the order of the page.
        sections: The spans of the sections that it has, by `observations` and `relations`.
        readable_end: Where a code block or comment begins that nothing closes, else the length of
            the text. Nothing is read or added after it.
    """

    bullets: tuple[Bullet, ...]
    sections: Mapping[str, SectionSpan]
    readable_end: int


def read_lists(
    text: str,
    body_start: int,
    note_name: str,
    *,
    is_entity: bool,
) -> PageLists:
    """Return the lists of a note. `text` is the whole note, whose body begins at `body_start`.

    In the lead of a note that is no entity only relations count, and no observations. A relation
    of the lead must not lead to `note_name`, which is the note itself: its path without `.md`.
    """
    readable_end = _find_readable_end(text, body_start)
    body = _HIDDEN.sub(lambda hidden: _MASK * len(hidden[0]), text[body_start:])
    masked = text[:body_start] + body

    reader = _ListReader(text)
    for match in _LINE.finditer(masked, body_start, readable_end):
        reader.read_line(_Line(match[1], match.start(), match.end()))

    bullets = []
    for item in reader.items:
        bullet = _to_bullet(item, note_name, is_entity=is_entity)
        if bullet is not None:
            bullets.append(bullet)
    return PageLists(tuple(bullets), reader.sections, readable_end)


def _find_readable_end(text: str, body_start: int) -> int:
    """Return where a code block or comment begins that nothing closes, else the text's length."""
    for hidden in _HIDDEN.finditer(text, body_start):
        is_unclosed = hidden.lastindex is not None and hidden.lastindex > 1
        if is_unclosed:
            return hidden.start()
    return len(text)


@dataclass(slots=True)
class _Item:
    """A list item as far as it was read: its span, its section if it counts, and its lines."""

    start: int
    end: int
    section: Section | None
    lines: list[str]


def _to_bullet(item: _Item, note_name: str, *, is_entity: bool) -> Bullet | None:
    """Return an item as an observation or a relation; None if it does not count."""
    if item.section is None:
        return None
    content = parse_bullet("\n".join(item.lines).rstrip(), item.section, note_name)
    if content is None:
        return None

    is_relation = isinstance(content, RelationLine)
    if item.section == "lead" and not is_entity and not is_relation:
        return None
    return Bullet(item.start, item.end, content)


class _Line(NamedTuple):
    """A line without its line break, and its span in the page, which includes the break."""

    text: str
    start: int
    end: int


class _ListReader:
    """Reads a page line by line. Guards the items and sections so far, and where the reader is."""

    def __init__(self, text: str) -> None:
        """Begin above the first line of a page with this text."""
        self.items: list[_Item] = []
        self.sections: dict[str, SectionSpan] = {}
        self._text = text  # with the characters that `read_line` gets masked
        self._section: Section | None = None  # one that has a heading
        self._level = 0  # of the heading that the reader is below
        self._is_in_lead = True
        self._open_item: _Item | None = None  # the item that an indented line would continue
        self._is_after_item = False  # whether the lines since the last item belong to it

    def read_line(self, line: _Line) -> None:
        """Read the next line of the page. It updates the items and the ends of the sections."""
        heading = _HEADING.match(line.text)
        if heading is not None:
            title = heading[2].strip().casefold()
            self._enter_heading(title, len(heading[1]), line)
            return

        bullet = _BULLET.match(line.text)
        if bullet is not None:
            self._start_item(line, bullet.end())
        elif self._open_item is not None and _is_continuation(line.text):
            _continue_item(self._open_item, line)
        else:
            self._open_item = None
            if not line.text.strip():
                return
            self._is_after_item = self._is_after_item and self._belongs_to_item(line)

        if self._section is not None and self._is_after_item:
            start = self.sections[self._section].start
            self.sections[self._section] = SectionSpan(start, line.end)

    def _enter_heading(
        self,
        title: str,
        level: int,
        line: _Line,
    ) -> None:
        """Begin a section, or leave the current one unless the heading is below its own.

        `title` is the text of the heading in lower case. The second heading of a section begins no
        section. Any heading but one of level 1 ends the lead.
        """
        self._open_item = None
        self._is_after_item = False

        section = _SECTIONS.get(title)
        if section is not None and section not in self.sections:
            self._section = section
            self._level = level
            self.sections[section] = SectionSpan(line.start, line.end)
        elif level <= self._level or self._section is None:
            self._section = None
            self._level = level
            self._is_in_lead = self._is_in_lead and level == 1

    def _start_item(self, line: _Line, text_start: int) -> None:
        """Begin a list item, whose text begins at a position of the line."""
        section = self._section
        if section is None and self._is_in_lead:
            section = "lead"
        self._open_item = _Item(line.start, line.end, section, [line.text[text_start:]])
        self._is_after_item = True
        self.items.append(self._open_item)

    def _belongs_to_item(self, line: _Line) -> bool:
        """Return whether a line that is no item and no heading belongs to the item above it.

        It does if it is indented, or follows directly. Outside the sections the answer is True,
        because nothing depends on it.
        """
        if self._section is None:
            return True
        is_indented = self._text[line.start] in " \t"
        follows_directly = line.start == self.sections[self._section].end
        return is_indented or follows_directly


def _is_continuation(text: str) -> bool:
    """Return whether a line after an open item is a further line of the item's text."""
    is_indented = text.startswith((" ", "\t"))
    is_hidden = _MASK in text
    return is_indented and not is_hidden and bool(text.strip())


def _continue_item(item: _Item, line: _Line) -> None:
    """Add a line to an item, without its indentation of one or two spaces or a tab."""
    indentation = 2 if line.text.startswith("  ") else 1
    item.lines.append(line.text[indentation:])
    item.end = line.end
