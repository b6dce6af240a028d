"""One note as a value: its bytes read once, into everything the rest of the house asks about it. Pure.

A note is never refused: bytes that are not text, a header that is not YAML, ten megabytes of brackets all give a `Note`
that can be served and searched. What must not be rewritten says so in `problem`. The body is looked through when it is
first asked for.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from simplemem.errors import Unreadable
from simplemem.note.body import Body, Link, count_lines, read_body, read_value_link
from simplemem.note.header import Header, Scalar, content_start, read_header
from simplemem.note.names import private_by_rule
from simplemem.note.tags import Tag, read_tags

_BINARY_PROBE = 8192


@dataclass(frozen=True)
class Note:
    """A note's text and what was found in it. `problem` says why it must not be rewritten, None when it may."""

    text: str
    sha256: str
    header: Header
    problem: str | None
    problem_line: int | None

    @cached_property
    def body(self) -> Body:
        return read_body(self.text, self.header.body_start)

    @cached_property
    def links(self) -> tuple[Link, ...]:
        """All links, those in properties first."""
        if any(self.text.find(sign, 0, self.header.body_start) >= 0 for sign in "[\\"):  # as few headers have them
            return read_property_links(self.text, self.header.scalars) + self.body.links
        return self.body.links

    @cached_property
    def tags(self) -> tuple[Tag, ...]:
        return read_tags(self.header.properties, self.body.tags)

    @cached_property
    def aliases(self) -> tuple[str, ...]:
        """The other names of a note: a list of texts, or one text (obsidian.md §0.5)."""
        value = self.header.get("aliases")
        items = value if isinstance(value, list) else [value]
        return tuple(item.strip() for item in items if isinstance(item, str) and item.strip())

    @property
    def content(self) -> str:
        """The body, without the header and without the blank line that sets it off."""
        return self.text[self.header.body_start :]

    @property
    def content_start(self) -> int:
        return content_start(self.text, self.header)

    def string(self, key: str) -> str | None:
        """A property as one line of text, None when it is absent, empty or not a plain value."""
        value = self.header.get(key)
        return None if value is None or isinstance(value, (Mapping, list)) else str(value).strip() or None

    def in_table(self, offset: int) -> bool:
        """Whether this place is inside a table, where a bar would end the cell."""
        return any(block.start <= offset < block.end for block in self.body.blocks if block.kind == "table")

    def must_be_editable(self, path: str) -> None:
        """Raise Unreadable where rewriting would mean guessing."""
        if self.problem is not None:
            raise Unreadable(
                f"{path} cannot be changed: {self.problem}",
                hint="It is served and searched as it is. Mend it in an editor, then try again.",
                line=self.problem_line,
            )


def read_note(data: bytes, sha256: str | None = None) -> Note:
    """The note these bytes are. Never raises and never stalls. `sha256` is their hash, where it is known already."""
    problem: str | None = None
    line: int | None = None
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        text, problem = data.decode("utf-8", "replace"), f"byte {error.start} is not UTF-8 text"
    if b"\0" in data[:_BINARY_PROBE]:
        problem = "it holds binary data or UTF-16 text, not UTF-8"
    header = read_header(text)
    if problem is None and header.problem is not None:
        line = header.problem.line
        problem = f"its header cannot be read: {header.problem.message} (line {line}, column {header.problem.column})"
    return Note(text, sha256 or hashlib.sha256(data).hexdigest(), header, problem, line)


def read_property_links(text: str, scalars: Iterable[Scalar]) -> tuple[Link, ...]:
    """The links in a header: values that are one link and nothing else (obsidian.md §1.3)."""
    found = ((read_value_link(scalar.value), scalar) for scalar in scalars)
    return tuple(_in_property(link, scalar, text) for link, scalar in found if link is not None)


def _in_property(link: Link, scalar: Scalar, text: str) -> Link:
    """A link, read from a property's value, in its place; where the source is escaped, only the value has one."""
    start, end = scalar.start, scalar.end
    path_start, path_end, shown, shown_end = start, end, -1, -1
    if scalar.verbatim >= 0:
        at = scalar.verbatim + len(scalar.value) - len(scalar.value.lstrip())
        start, end, path_start, path_end, shown, shown_end = (at + place if place >= 0 else -1 for place in link[7:13])
    places = (start, end, path_start, path_end, shown, shown_end)
    line = 1 + count_lines(text, 0, scalar.start)
    says = (link.target, link.subpath, link.display, line)
    return Link(link.form, link.embed, ".".join(scalar.path), *says, *places, link.angle, scalar)


_NOT_PRIVATE = frozenset(("", "false", "no", "off", "0", "null", "none", "~"))
_MEANT_AS_HEADER = re.compile(r"\s*---[ \t]*\r?\n(?:[^\n]*\n){0,40}?[\"']?private[\"']?[ \t]*:", re.IGNORECASE)


def private_reason(
    path: str, note: Note, rules: Sequence[str]
) -> Literal["rule", "property", "tag", "unreadable"] | None:
    """Why a note is private, None when it is not. The text of a private note never leaves this machine.

    A person says so with the property `private: true`, the tag `private` (or one below it), or with a rule in the
    setting `embed.private`. Where a header cannot be read nobody knows what it says, so its note is kept private too.
    """
    if private_by_rule(path, rules):
        return "rule"
    if note.problem is not None or (not note.header.properties and _MEANT_AS_HEADER.match(note.text)):
        return "unreadable"
    said = note.header.get("private")
    if said is not None and str(said).strip().casefold() not in _NOT_PRIVATE:  # anything but a clear no
        return "property"
    if any(f"{tag.name.casefold()}/".startswith("private/") for tag in note.tags):
        return "tag"
    return None
