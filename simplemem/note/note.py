"""One note as a value: its bytes read once, into everything the rest of the house asks about it. Pure.

A note is never refused: bytes that are not text, a header that is not YAML, ten megabytes of brackets all give a `Note`
that can be served and searched. What must not be rewritten says so in `problem`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from simplemem.errors import Unreadable
from simplemem.note.body import Body, read_body, read_property_links
from simplemem.note.header import Header, read_header
from simplemem.note.inline import Link
from simplemem.note.tags import Tag, read_tags

_BINARY_PROBE = 8192


@dataclass(frozen=True)
class Note:
    """A note's text and what was found in it. `problem` says why it must not be rewritten, None when it may."""

    text: str
    sha256: str
    header: Header
    body: Body
    problem: str | None
    problem_line: int | None

    @cached_property
    def links(self) -> tuple[Link, ...]:
        """All links, those in properties first."""
        if not self.header.may_hold_links:
            return self.body.links
        return read_property_links(self.text, self.header.scalars) + self.body.links

    @cached_property
    def tags(self) -> tuple[Tag, ...]:
        return read_tags(self.header.properties, [tag.name for tag in self.body.tags])

    @cached_property
    def aliases(self) -> tuple[str, ...]:
        return read_aliases(self.header.get("aliases"))

    @property
    def content(self) -> str:
        """The body, without the header and without the blank line that sets it off."""
        return self.text[self.header.body_start :]

    @property
    def content_start(self) -> int:
        """Where the content begins that is shown and replaced: after the header and the blank lines below it."""
        at = self.header.body_start
        while at and self.text[at : at + 1] in ("\n", "\r"):
            at += 1
        return at

    def string(self, key: str) -> str | None:
        """A property as one line of text, None when it is absent, empty or not a plain value."""
        value = self.header.get(key)
        if value is None or isinstance(value, (Mapping, list)):
            return None
        text = str(value).strip()
        return text or None

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
    text, problem = _decode(data)
    header = read_header(text)
    line: int | None = None
    if problem is None and header.problem is not None:
        line = header.problem.line
        problem = f"its header cannot be read: {header.problem.message} (line {line}, column {header.problem.column})"
    return Note(text, sha256 or sha256_of(data), header, read_body(text, header.body_start), problem, line)


def sha256_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _decode(data: bytes) -> tuple[str, str | None]:
    if b"\0" in data[:_BINARY_PROBE]:
        return data.decode("utf-8", "replace"), "it holds binary data or UTF-16 text, not UTF-8"
    try:
        return data.decode("utf-8"), None
    except UnicodeDecodeError as error:
        return data.decode("utf-8", "replace"), f"byte {error.start} is not UTF-8 text"


def read_aliases(value: Any) -> tuple[str, ...]:
    """The other names of a note: a list of texts, or one text (obsidian.md §0.5)."""
    items = value if isinstance(value, list) else [value]
    return tuple(item.strip() for item in items if isinstance(item, str) and item.strip())
