"""One note as a value: its bytes read once, into everything the rest of the house asks about it. Pure. None is refused:
bytes that are no text, a header that is no YAML, ten megabytes of brackets can be served and searched."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal, NamedTuple

from simplemem.errors import Unreadable
from simplemem.note.body import Body, Link, count_lines, read_body, read_value_link
from simplemem.note.header import Header, content_start, find_value, read_header
from simplemem.note.names import private_by_rule

_BINARY_PROBE = 8192
_OPEN_TASK = re.compile(r"[ \t>]*(?:[-*+]|\d{1,9}[.)])[ \t]+\[ \][ \t]+(\S[^\n]*)")
_NOT_PRIVATE = frozenset(("", "false", "no", "off", "0", "null", "none", "~"))
_MEANT_AS_HEADER = re.compile(
    r"\s*---[ \t]*\r?\n(?:[^\n]*\n){0,40}?[\"']?private[\"']?[ \t]*:", re.IGNORECASE
)


@dataclass(frozen=True)
class Note:
    """A note's text and what was found in it. `problem` says why it must not be rewritten, None when it may."""

    text: str
    sha256: str
    header: Header
    problem: str | None

    @cached_property
    def body(self) -> Body:
        return read_body(self.text, self.header.body_start)

    @cached_property
    def links(self) -> tuple[Link, ...]:
        """All links, those in properties first: values that are one link and nothing else (obsidian.md §1.3)."""
        found: list[Link] = []
        written = self.text[: self.header.body_start]
        for scalar in (
            self.header.scalars if "[" in written or "\\" in written else ()
        ):  # as few have them
            link = read_value_link(scalar.value)
            if link is not None:
                places = [scalar.start, scalar.end, scalar.start, scalar.end, -1, -1]
                if (
                    scalar.verbatim >= 0
                ):  # else the source is escaped, and only the value has a place
                    at = scalar.verbatim + len(scalar.value) - len(scalar.value.lstrip())
                    places = [at + place if place >= 0 else -1 for place in link[7:13]]
                says = (
                    link.target,
                    link.subpath,
                    link.display,
                    1 + count_lines(self.text, 0, scalar.start),
                )
                values = (
                    link.form,
                    link.embed,
                    ".".join(scalar.path),
                    *says,
                    *places,
                    link.angle,
                    scalar,
                )
                found.append(Link._make(values))
        return (*found, *self.body.links)

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

    @property
    def open_tasks(self) -> list[tuple[int, str]]:
        """The line and the text of each task that is not done, as Obsidian has them: `- [ ] text`."""
        blocks = self.body.blocks if "[ ]" in self.text else ()
        found = (
            (block.line, _OPEN_TASK.match(self.text, block.start))
            for block in blocks
            if block.kind == "item"
        )
        return [(line, task[1].strip()) for line, task in found if task is not None]

    def string(self, key: str) -> str | None:
        """A property as one line of text, None when it is absent, empty or not a plain value."""
        value = self.header.get(key)
        return (
            None
            if value is None or isinstance(value, (Mapping, list))
            else str(value).strip() or None
        )

    def in_table(self, offset: int) -> bool:
        """Whether this place is inside a table, where a bar would end the cell."""
        return any(
            block.start <= offset < block.end for block in self.body.blocks if block.kind == "table"
        )

    def must_be_editable(self, path: str) -> None:
        """Raise Unreadable where rewriting would mean guessing."""
        if self.problem is not None:
            where = self.header.problem
            hint = "The note can still be read and found. Fix it in an editor, then try again."
            raise Unreadable(
                f"{path} cannot be changed: {self.problem}", hint=hint, line=where and where.line
            )


def decoded(data: bytes) -> tuple[str, str | None]:
    """The text of a file, and what keeps it from being UTF-8."""
    try:
        return data.decode("utf-8"), None
    except UnicodeDecodeError as error:
        return data.decode("utf-8", "replace"), f"byte {error.start} is not UTF-8 text"


def read_note(data: bytes, sha256: str | None = None) -> Note:
    """The note these bytes are. Never raises and never stalls. `sha256` is their hash, where it is known already."""
    text, problem = decoded(data)
    if b"\0" in data[:_BINARY_PROBE]:
        problem = "it contains binary data or UTF-16 text, not UTF-8"
    header = read_header(text)
    if problem is None and header.problem is not None:
        message, line, column = header.problem
        problem = f"its frontmatter cannot be read: {message} (line {line}, column {column})"
    return Note(text, sha256 or hashlib.sha256(data).hexdigest(), header, problem)


# In three notations, list, nested name (`status/done`) and map (`{status: done}`), which are read alike.

Value = str | bool | int | float

# obsidian.md §2: what may not stand in a tag. A slash separates the levels of a nested one.
NOT_IN_TAG: Final = re.compile(r"[\s!\"#$%&'()*+,.:;<=>?@\[\\\]^`{|}~\u2000-\u206f\u2e00-\u2e7f]+")
LEGACY_KEYS: Final = ("tag", "keywords")
# Properties with a meaning of their own: a tag's value is neither kept in one of these nor looked for there.
RESERVED_KEYS: Final = frozenset(
    """title description type id created modified links tags tag keywords aliases alias cssclasses publish permalink
    image cover""".split()
)


class Tag(NamedTuple):
    """A tag as it is spelled, without `#`: `status/done`."""

    name: str
    source: Literal["property", "inline", "map", "legacy"]


def bare_tag(name: str) -> str:
    """obsidian.md §2: a leading `#` may stand in a property; a trailing slash is not part of a tag."""
    return name.strip().lstrip("#").rstrip("/")


def joined(text: str) -> str:
    return "-".join(text.split())


def is_tag_item(item: Any) -> bool:
    """obsidian.md §2: items of the list that are no text, or hold spaces, are no tags."""
    return isinstance(item, str) and bool(item.strip()) and not any(map(str.isspace, item.strip()))


def tag_items(tags: Any) -> list[Any]:
    """The tags property as a list; of a text, the tags that are in it."""
    if isinstance(tags, str):
        return tags.replace(",", " ").split()
    return tags if isinstance(tags, list) else [] if tags is None else [tags]


def kept_value(properties: Mapping[str, Any], name: str) -> Value | None:
    """The value of a tag that stands in a property beside it (obsidian.md §3.3)."""
    value = find_value(properties, name)
    is_plain = isinstance(value, (str, int, float)) and not isinstance(value, bool)
    return value if is_plain and name.lower() not in RESERVED_KEYS else None


def read_tags(properties: Mapping[str, Any], inline: Sequence[str]) -> tuple[Tag, ...]:
    """All tags of a note, properties first. Case does not count; the first spelling is the one shown."""
    tags: list[Tag] = []
    for key in ("tags", *LEGACY_KEYS):
        value = find_value(properties, key)
        if isinstance(value, Mapping) and key == "tags":
            tags += (Tag(name, "map") for _, name, _ in map_entries(value))
            continue
        items = tag_items(value)
        # obsidian.md §0.5: one text is one tag; several in one text are Foam's way, and no tags to Obsidian.
        is_legacy = key != "tags" or (isinstance(value, str) and len(items) > 1)
        tags += (
            Tag(bare_tag(item), "legacy" if is_legacy else "property")
            for item in items
            if is_tag_item(item)
        )
    found: dict[str, Tag] = {}
    for tag in (*tags, *(Tag(bare_tag(name), "inline") for name in inline)):
        if tag.name:
            found.setdefault(tag.name.casefold(), tag)
    return tuple(found.values())


def map_entries(entries: Mapping[str, Any]) -> Iterator[tuple[str, str, Value]]:
    """Key, tag and value of each entry of a map that stands for a tag: `false` and null stand for none."""
    for key, value in entries.items():
        name = joined(bare_tag(key))
        if name and value is not None and value is not False:
            yield (
                key,
                nested_tag(name, value) or name,
                value if isinstance(value, (str, int, float)) else True,
            )


def nested_tag(name: str, value: Any) -> str | None:
    """`key/value` when the value can be part of a tag (spaces become `-`, obsidian.md §3.3), else None."""
    if value is True or not isinstance(value, (str, int, float)):
        return None
    part = joined(str(value))
    return f"{name}/{part}" if part and "/" not in part and not NOT_IN_TAG.search(part) else None


def tag_pairs(tags: Sequence[Tag], properties: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Rows for filters, with lower-case keys: (key, "") says that it is there, (key, value) what it says. `a/b/c` gives
    (a, ""), (a/b, ""), (a/b/c, ""), (a, b/c) and (a/b, c); an entry of a map also its value to the letter."""
    rows: dict[tuple[str, str], None] = {}
    for tag in tags:
        levels = tag.name.split("/")
        for depth in range(1, len(levels) + 1):
            key = "/".join(levels[:depth]).lower()
            rows[key, ""] = rows[key, "/".join(levels[depth:])] = None
    for key, value in _values_kept_whole(tags, properties):
        for name in (bare_tag(key).lower(), joined(bare_tag(key)).lower()):
            rows[name, ""] = rows[name, "" if value is True else str(value)] = None
    return tuple(rows)


def tag_map(tags: Sequence[Tag], properties: Mapping[str, Any]) -> dict[str, Value]:
    """The tags as a map: `{"todo": true, "status": "done"}`. A second value of a key keeps its full name."""
    found: dict[str, tuple[str, Value]] = {}
    for tag in tags:
        key, slash, rest = tag.name.partition("/")
        if (
            tag.source != "map"
            and slash
            and key
            and found.get(key.casefold(), ("", True))[1] is True
        ):
            found[key.casefold()] = key, rest
        elif tag.source != "map":
            found.setdefault(tag.name.casefold(), (tag.name, True))
    for key, value in _values_kept_whole(tags, properties):
        shown, there = found.get(key.casefold(), (bare_tag(key), True))
        if there is True:
            found[key.casefold()] = shown, value
    return dict(found.values())


def _values_kept_whole(
    tags: Sequence[Tag], properties: Mapping[str, Any]
) -> Iterator[tuple[str, Value]]:
    """Values outside a tag's name: in a map, or in a property beside a bare tag (obsidian.md §3.3)."""
    entries = find_value(properties, "tags")
    if isinstance(entries, Mapping):
        yield from ((key, value) for key, _, value in map_entries(entries))
        return
    for tag in tags:
        if tag.source == "property" and (value := kept_value(properties, tag.name)) is not None:
            yield tag.name, value


def private_reason(path: str, note: Note, rules: Sequence[str]) -> str | None:
    """Why a note is private, None when it is not: its text never leaves this machine. One that cannot be read is."""
    if private_by_rule(path, rules):
        return "rule"
    if note.problem is not None or (
        not note.header.properties and _MEANT_AS_HEADER.match(note.text)
    ):
        return "unreadable"
    said = note.header.get("private")
    if (
        said is not None and str(said).strip().casefold() not in _NOT_PRIVATE
    ):  # anything but a clear no
        return "property"
    if any(f"{tag.name.casefold()}/".startswith("private/") for tag in note.tags):
        return "tag"
    return None
