"""A note as a value: the bytes of its file, read once, with its links, tags and properties. Pure.

`read_note` accepts any bytes. Bytes that are not text, frontmatter that is not YAML and ten
megabytes of brackets give a note that can be shown and searched; `Note.problem` then says why it
must not be rewritten.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from simplemem.errors import Unreadable
from simplemem.note.body import Body, Link, read_body, read_value_link
from simplemem.note.header import Header, Scalar, content_start, read_header
from simplemem.note.tags import Tag, read_tags
from simplemem.note.words import count_lines

_BINARY_PROBE_BYTES: Final = 8192  # the beginning of a file, which is searched for null bytes
_OPEN_TASK: Final = re.compile(
    r"[ \t>]*(?:[-*+]|\d{1,9}[.)])[ \t]+\[ \][ \t]+(?P<text>\S[^\n]*)",
)


@dataclass(frozen=True)
class Note:
    """The text of a note and what it contains."""

    text: str
    sha256: str  # of the bytes of the file
    header: Header
    problem: str | None  # why the note must not be rewritten; None if it may be

    @cached_property
    def body(self) -> Body:
        """Return the headings, blocks, links and tags below the frontmatter."""
        return read_body(self.text, self.header.body_start)

    @cached_property
    def links(self) -> tuple[Link, ...]:
        """Return all links, those in properties first.

        As in Obsidian, the value of a property is a link only if it is one link and nothing else.
        """
        return tuple(self._property_links()) + self.body.links

    @cached_property
    def tags(self) -> tuple[Tag, ...]:
        """Return the tags of the frontmatter and of the body."""
        return read_tags(self.header.properties, self.body.tags)

    @cached_property
    def aliases(self) -> tuple[str, ...]:
        """Return the other names of the note: a list of texts in `aliases`, or one text.

        Items that are not texts, such as numbers, are left out, as Obsidian does.
        """
        value = self.header.get("aliases")
        items = value if isinstance(value, list) else [value]
        texts = [item.strip() for item in items if isinstance(item, str)]
        return tuple(text for text in texts if text)

    @property
    def content(self) -> str:
        """Return the text after the frontmatter, with the blank lines at its beginning."""
        return self.text[self.header.body_start :]

    @property
    def content_start(self) -> int:
        """Return the offset of the text after the frontmatter and the blank lines below it."""
        return content_start(self.text, self.header)

    @property
    def open_tasks(self) -> list[tuple[int, str]]:
        """Return the line and the text of each open task, written `- [ ] text` as in Obsidian."""
        if "[ ]" not in self.text:
            return []

        tasks = []
        for block in self.body.blocks:
            if block.kind != "item":
                continue
            task = _OPEN_TASK.match(self.text, block.start)
            if task is not None:
                tasks.append((block.line, task["text"].strip()))
        return tasks

    def text_property(self, key: str) -> str | None:
        """Return a property as text; None if it is missing, blank, a list or a map."""
        value = self.header.get(key)
        if value is None or isinstance(value, (Mapping, list)):
            return None
        return str(value).strip() or None

    def in_table(self, offset: int) -> bool:
        """Return whether an offset lies in a table, where a bar would end the cell."""
        tables = [block for block in self.body.blocks if block.kind == "table"]
        return any(table.start <= offset < table.end for table in tables)

    def check_editable(self, path: str) -> None:
        """Raise Unreadable if the note has a problem, because a rewrite could destroy its text."""
        if self.problem is None:
            return

        location = self.header.problem
        line = None if location is None else location.line
        raise Unreadable(
            f"{path} cannot be changed: {self.problem}",
            hint="The note can still be read and found. Fix it in an editor, then try again.",
            line=line,
        )

    def _property_links(self) -> list[Link]:
        """Return the links in properties. Few notes have any, so the text is checked first."""
        header_text = self.text[: self.header.body_start]
        if "[" not in header_text and "\\" not in header_text:
            return []

        links = []
        for scalar in self.header.scalars:
            link = read_value_link(scalar.value)
            if link is not None:
                links.append(_place_link(link, self.text, scalar))
        return links


def _place_link(link: Link, text: str, scalar: Scalar) -> Link:
    """Return the link that a value of a property is, with its offsets in the whole text."""
    property_path = ".".join(scalar.path)
    line = 1 + count_lines(text, 0, scalar.start)
    if scalar.verbatim < 0:
        # Escapes or folding changed the value, so that only the value as a whole has an offset.
        return link._replace(
            property=property_path,
            line=line,
            start=scalar.start,
            end=scalar.end,
            path_start=scalar.start,
            path_end=scalar.end,
            display_start=-1,
            display_end=-1,
            scalar=scalar,
        )

    indent = len(scalar.value) - len(scalar.value.lstrip())
    distance = scalar.verbatim + indent
    display_start = link.display_start
    display_end = link.display_end
    if display_start >= 0:  # else the link displays its target
        display_start += distance
        display_end += distance

    return link._replace(
        property=property_path,
        line=line,
        start=link.start + distance,
        end=link.end + distance,
        path_start=link.path_start + distance,
        path_end=link.path_end + distance,
        display_start=display_start,
        display_end=display_end,
        scalar=scalar,
    )


def decode_text(data: bytes) -> tuple[str, str | None]:
    """Return the text of a file, and why it is not UTF-8; None if it is. Never raises."""
    try:
        return data.decode("utf-8"), None
    except UnicodeDecodeError as error:
        return data.decode("utf-8", "replace"), f"byte {error.start} is not UTF-8 text"


def read_note(data: bytes, sha256: str | None = None) -> Note:
    """Return the note that these bytes are. Never raises, and takes linear time.

    `sha256` is the hash of `data`, if the caller has computed it already.
    """
    text, problem = decode_text(data)
    if b"\0" in data[:_BINARY_PROBE_BYTES]:
        problem = "it contains binary data or UTF-16 text, not UTF-8"

    header = read_header(text)
    if problem is None and header.problem is not None:
        message, line, column = header.problem
        problem = f"its frontmatter cannot be read: {message} (line {line}, column {column})"

    digest = sha256 or hashlib.sha256(data).hexdigest()
    return Note(text, digest, header, problem)
