"""A note as a value: the bytes of its file, read once, with its links, tags and properties. Pure.

`read_note` accepts any bytes. Bytes that are not text, frontmatter that is not YAML and ten
megabytes of brackets give a note that can be shown and searched; `Note.problem` then says why it
must not be rewritten. Tags have three notations, which are read alike.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal, NamedTuple, TypeGuard

from simplemem.errors import Unreadable
from simplemem.note.body import Body, Link, read_body, read_value_link
from simplemem.note.header import Header, Properties, Scalar, content_start, find_value, read_header
from simplemem.note.words import count_lines

# -- tags

TagValue = str | bool | int | float
"""The value of a tag. A tag without a value has the value True."""

SCALAR_TYPES: Final = (str, int, float)

# The characters that a tag cannot contain in Obsidian. A slash separates the levels of a tag.
NOT_IN_TAG: Final = re.compile(r"[\s!\"#$%&'()*+,.:;<=>?@\[\\\]^`{|}~\u2000-\u206f\u2e00-\u2e7f]+")

# Properties that older versions of Obsidian and other programs keep tags in.
LEGACY_KEYS: Final = ("tag", "keywords")

# Properties with a meaning of their own: none of them holds the value of the tag of the same name.
RESERVED_KEYS: Final = frozenset(
    """
    title description type id created modified links tags tag keywords aliases alias
    cssclasses publish permalink image cover
    """.split()
)


class Tag(NamedTuple):
    """A tag as the note spells it, without `#`, such as `status/done`.

    `source` says where it is: in a list of tags ("property"), in the text ("inline"), in a map of
    tags, or where Obsidian no longer reads tags ("legacy").
    """

    name: str
    source: Literal["property", "inline", "map", "legacy"]


def bare_tag(name: str) -> str:
    """Return a tag without spaces around it, `#` before it and slashes behind it.

    Obsidian accepts the `#` in a property, and does not count a trailing slash as part of a tag.
    The result may be "".
    """
    return name.strip().lstrip("#").rstrip("/")


def hyphenate(text: str) -> str:
    """Return a text with a hyphen in place of each run of white space, none at its ends."""
    return "-".join(text.split())


def is_tag_item(item: object) -> TypeGuard[str]:
    """Return whether an item of a tag list is a tag: a text without spaces within it.

    Blank texts, numbers and other values are none. Obsidian ignores them, too.
    """
    return isinstance(item, str) and len(item.split()) == 1


def is_within(item: object, name: str) -> bool:
    """Return whether an item is this tag or one below it: `status/done` is within `status`.

    Letter case does not matter. `name` has no `#`. An item that is no tag is within none.
    """
    if not is_tag_item(item):
        return False

    tag_path = f"{bare_tag(item).casefold()}/"
    path = f"{name.casefold()}/"
    return tag_path.startswith(path)


def is_tag(item: object, name: str) -> bool:
    """Return whether an item is exactly this tag, in any case of letters.

    `name` has no `#`. A tag below it is not meant.
    """
    if not is_tag_item(item):
        return False

    tag = bare_tag(item)
    return tag.casefold() == name.casefold()


def tag_items(tags: object) -> list[Any]:
    """Return the value of a tags property as a list; nothing is filtered out.

    A text is split at commas and spaces. None gives []. Any other value, such as a map, is the only
    item. A list is returned itself, not copied.
    """
    if tags is None:
        return []
    if isinstance(tags, list):
        return tags
    if isinstance(tags, str):
        return tags.replace(",", " ").split()
    return [tags]


def value_in_property(properties: Properties, name: str) -> TagValue | None:
    """Return the value of a tag that is stored in the property of the same name, else None.

    With `tags: [due]` and `due: 2026-12-01`, the tag `due` has that date as its value. Only texts
    and numbers count, and no reserved property. Whether the note has the tag is not checked.
    """
    if name.lower() in RESERVED_KEYS:
        return None

    value = find_value(properties, name)
    if isinstance(value, bool) or not isinstance(value, SCALAR_TYPES):
        return None
    return value


def read_tags(properties: Properties, inline: Sequence[str]) -> tuple[Tag, ...]:
    """Return all tags of a note, those of properties first, each of them once.

    `inline` are the tags of the body. Letter case is ignored; the first spelling is returned.
    `tags`, `tag` and `keywords` are the properties with tags.
    """
    tags: list[Tag] = []
    for key in ("tags", *LEGACY_KEYS):
        tags += _read_tag_property(key, find_value(properties, key))
    tags += [Tag(bare_tag(name), "inline") for name in inline]

    by_folded_name: dict[str, Tag] = {}
    for tag in tags:
        if tag.name:
            by_folded_name.setdefault(tag.name.casefold(), tag)
    return tuple(by_folded_name.values())


def _read_tag_property(key: str, value: object) -> list[Tag]:
    """Return the tags in a property. `key` is its usual spelling: "tags", "tag" or "keywords".

    Their source is "map" for a map in `tags`, "property" for a list or a single tag in `tags`, and
    "legacy" for what Obsidian no longer reads.
    """
    if isinstance(value, Mapping) and key == "tags":
        return [Tag(name, "map") for _, name, _ in map_entries(value)]

    items = tag_items(value)
    # Obsidian reads one text as one tag. Several tags in one text are a notation of Foam.
    is_foam_text = isinstance(value, str) and len(items) > 1
    is_legacy = key != "tags" or is_foam_text
    source: Literal["legacy", "property"] = "legacy" if is_legacy else "property"
    return [Tag(bare_tag(item), source) for item in items if is_tag_item(item)]


def map_entries(entries: Mapping[str, Any]) -> Iterator[tuple[str, str, TagValue]]:
    """Yield key, tag and value of each entry of a map of tags.

    Entries with `false`, null or a blank key are left out: they are no tags. The tag contains the
    value if it can: `status/done` for `status: done`, but `owner` for `owner: Ann, B`. A value that
    is a list or a map counts as True.
    """
    for key, value in entries.items():
        name = hyphenate(bare_tag(key))
        if not name or value is None or value is False:
            continue
        tag = nested_tag(name, value) or name
        tag_value = value if isinstance(value, SCALAR_TYPES) else True
        yield key, tag, tag_value


def nested_tag(name: str, value: object) -> str | None:
    """Return the tag `name/value`, with hyphens for spaces; None if no tag can have the value.

    True, lists, maps, and texts with a slash or punctuation cannot be in a tag.
    """
    if value is True or not isinstance(value, SCALAR_TYPES):
        return None

    part = hyphenate(str(value))
    if not part or "/" in part or NOT_IN_TAG.search(part):
        return None
    return f"{name}/{part}"


def filter_pairs(
    tags: Sequence[Tag],
    properties: Properties,
) -> tuple[tuple[str, str], ...]:
    """Return the pairs (key, value) by which filters find tags, with keys in lower case.

    `properties` are those of the note that has the tags. (key, "") says that the note has the tag,
    (key, value) that the tag has this value. `a/b/c` gives (a, ""), (a/b, ""), (a/b/c, ""), (a,
    b/c) and (a/b, c). A value outside the tag's name, such as an entry of a map, is also returned
    as it is written.
    """
    pairs: dict[tuple[str, str], None] = {}  # a dict keeps the order and has each pair once
    for tag in tags:
        levels = tag.name.split("/")
        for depth in range(1, len(levels) + 1):
            key = "/".join(levels[:depth]).lower()
            rest = "/".join(levels[depth:])
            pairs[key, ""] = None
            pairs[key, rest] = None

    for name, value in _values_outside_names(tags, properties):
        text = "" if value is True else str(value)
        bare_name = bare_tag(name)
        for spelling in (bare_name, hyphenate(bare_name)):
            key = spelling.lower()
            pairs[key, ""] = None
            pairs[key, text] = None
    return tuple(pairs)


def tag_map(tags: Sequence[Tag], properties: Properties) -> dict[str, TagValue]:
    """Return the tags as a map: `todo` and `status/done` give {"todo": True, "status": "done"}.

    `properties` are those of the note that has the tags; they may contain values of tags. If a key
    has several values, only the first is its value; the other tags keep their full names, with
    True.
    """
    # Both are by the case-folded key. True is the value of a key that has no other value yet.
    spellings: dict[str, str] = {}
    values: dict[str, TagValue] = {}
    for tag in tags:
        if tag.source == "map":
            continue  # its value is outside its name, as in all maps

        name, slash, value = tag.name.partition("/")
        key = name.casefold()
        has_value = values.get(key, True) is not True
        if name and slash and not has_value:
            spellings[key] = name
            values[key] = value
            continue

        key = tag.name.casefold()
        if key not in values:
            spellings[key] = tag.name
            values[key] = True

    for name, outside_value in _values_outside_names(tags, properties):
        key = name.casefold()
        has_value = values.get(key, True) is not True
        if not has_value:
            spellings.setdefault(key, bare_tag(name))
            values[key] = outside_value
    return {spellings[key]: value for key, value in values.items()}


def _values_outside_names(
    tags: Sequence[Tag],
    properties: Properties,
) -> Iterator[tuple[str, TagValue]]:
    """Yield name and value of the tags whose value is not part of their name.

    Such a value is in a map of tags, or in a property that is called like the tag. All entries of a
    map are yielded, also those whose value a tag's name could contain.
    """
    entries = find_value(properties, "tags")
    if isinstance(entries, Mapping):
        for key, _, value in map_entries(entries):
            yield key, value
        return

    for tag in tags:
        if tag.source != "property":
            continue
        property_value = value_in_property(properties, tag.name)
        if property_value is not None:
            yield tag.name, property_value


# -- notes

_BINARY_PROBE_BYTES: Final = 8192  # the beginning of a file, which is searched for null bytes
_TASK: Final = re.compile(
    r"[ \t>]*(?:[-*+]|\d{1,9}[.)])[ \t]+\[(?P<mark>[ xX])\][ \t]+(?P<text>\S[^\n]*)",
)


class Task(NamedTuple):
    """A list item with a box, written `- [ ] text`, or `- [x] text` if it is done.

    `line` counts from 1 at the first line of the file. `mark` is the offset of the character
    between the brackets.
    """

    line: int
    text: str
    is_done: bool
    mark: int


@dataclass(frozen=True)
class Note:
    """The text of a note and what it contains. Never changes.

    `problem` says why the note must not be rewritten; None if it may be. `sha256` is the hash of
    the bytes of its file.
    """

    text: str
    sha256: str  # of the bytes of the file
    header: Header
    problem: str | None  # why the note must not be rewritten; None if it may be

    @cached_property
    def body(self) -> Body:
        """Return the headings, blocks, links and tags below the frontmatter, read on first use."""
        return read_body(self.text, self.header.body_start)

    @cached_property
    def links(self) -> tuple[Link, ...]:
        """Return all links and embeds, those in properties first; links to the web are none.

        As in Obsidian, the value of a property is a link only if it is one link and nothing else.
        """
        return tuple(self._property_links()) + self.body.links

    @cached_property
    def tags(self) -> tuple[Tag, ...]:
        """Return the tags of the frontmatter and of the body, each once, without `#`."""
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
        """Return the offset of the text after the frontmatter and the blank lines below it.

        It is 0 for a note without frontmatter.
        """
        return content_start(self.text, self.header)

    @property
    def tasks(self) -> list[Task]:
        """Return the tasks of the note in their order, open and done ones."""
        tasks = []
        for block in self.body.blocks:
            if block.kind != "item":
                continue
            task = _TASK.match(self.text, block.start)
            if task is not None:
                is_done = task["mark"] != " "
                text = task["text"].strip()
                tasks.append(Task(block.line, text, is_done, task.start("mark")))
        return tasks

    @property
    def open_tasks(self) -> list[tuple[int, str]]:
        """Return line and text of each open task, written as the list item `- [ ] text`.

        Lines count from 1 at the first line of the file.
        """
        if "[ ]" not in self.text:
            return []
        return [(task.line, task.text) for task in self.tasks if not task.is_done]

    def text_property(self, key: str) -> str | None:
        """Return a property as text without spaces around it, whatever the case of its name.

        Numbers become text too. Returns None if it is missing, blank, a list or a map.
        """
        value = self.header.get(key)
        if value is None or isinstance(value, (Mapping, list)):
            return None
        return str(value).strip() or None

    def in_table(self, offset: int) -> bool:
        """Return whether an offset of the text lies in a table, where a bar would end the cell."""
        for block in self.body.blocks:
            if block.kind == "table" and block.start <= offset < block.end:
                return True
        return False

    def check_editable(self, path: str) -> None:
        """Raise Unreadable if the note has a problem, because a rewrite could destroy its text.

        `path` only names the note in the message.
        """
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
        """Return the links in properties, with their places in the whole text.

        Few notes have any, so the text is checked first.
        """
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
    """Return a link that was read from a value, with its offsets and line in the whole note.

    `link` has the offsets of `read_value_link`; `scalar` is the value in the header of `text`.
    """
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

    stripped = scalar.value.lstrip()
    indent = len(scalar.value) - len(stripped)
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
    """Return the text of a file, and why it is not UTF-8; None if it is. Never raises.

    In the text, U+FFFD replaces what is not UTF-8. A byte order mark stays.
    """
    try:
        return data.decode("utf-8"), None
    except UnicodeDecodeError as error:
        return data.decode("utf-8", "replace"), f"byte {error.start} is not UTF-8 text"


def read_note(data: bytes, sha256: str | None = None) -> Note:
    """Return the note that these bytes are. Never raises, and takes linear time.

    Bytes that are not text, or frontmatter that is not YAML, give a note with a `problem`. Links
    and tags are read on first use. `sha256` is the hash of `data`, if the caller has computed it
    already.
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
