"""Read the tags of a note in each notation: inline, list, text and map. Pure.

Tags are written as items of a list (`[status/done]`), where the part after the slash can be read
as a value, or as a map (`{status: done}`). All functions read both notations alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeGuard

from simplemem.note.header import Properties, find_value

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
    """A tag as the note spells it, without `#`, such as `status/done`."""

    name: str
    source: Literal["property", "inline", "map", "legacy"]


def bare_tag(name: str) -> str:
    """Return a tag without spaces around it, `#` before it and slashes behind it.

    Obsidian accepts the `#` in a property, and does not count a trailing slash as part of a tag.
    """
    return name.strip().lstrip("#").rstrip("/")


def hyphenate(text: str) -> str:
    """Return a text with a hyphen in place of each run of white space, none at its ends."""
    return "-".join(text.split())


def is_tag_item(item: object) -> TypeGuard[str]:
    """Return whether an item of a tag list is a tag: a text with neither spaces within nor blank.

    Obsidian ignores the other items, too.
    """
    return isinstance(item, str) and len(item.split()) == 1


def is_within(item: object, name: str) -> bool:
    """Return whether an item is this tag or one below it: `status/done` is within `status`."""
    if not is_tag_item(item):
        return False
    return f"{bare_tag(item).casefold()}/".startswith(f"{name.casefold()}/")


def is_tag(item: object, name: str) -> bool:
    return is_tag_item(item) and bare_tag(item).casefold() == name.casefold()


def tag_items(tags: object) -> list[Any]:
    """Return the value of a tags property as a list.

    A text is split at commas and spaces. Any other value, such as a map, is the only item.
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
    and numbers count, and no reserved property.
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
    """Return the tags in a property, of which `key` is the usual spelling."""
    if isinstance(value, Mapping) and key == "tags":
        return [Tag(name, "map") for _, name, _ in map_entries(value)]

    items = tag_items(value)
    # Obsidian reads one text as one tag. Several tags in one text are a notation of Foam.
    is_foam_text = isinstance(value, str) and len(items) > 1
    is_legacy = key != "tags" or is_foam_text
    source: Literal["legacy", "property"] = "legacy" if is_legacy else "property"
    return [Tag(bare_tag(item), source) for item in items if is_tag_item(item)]


def map_entries(entries: Mapping[str, Any]) -> Iterator[tuple[str, str, TagValue]]:
    """Yield key, tag and value of each entry of a map of tags. `false` and null are no tags.

    The tag contains the value if it can: `status/done` for `status: done`, but `owner` for
    `owner: Ann, B`. A value that is a list or a map counts as True.
    """
    for key, value in entries.items():
        name = hyphenate(bare_tag(key))
        if not name or value is None or value is False:
            continue
        tag = nested_tag(name, value) or name
        tag_value = value if isinstance(value, SCALAR_TYPES) else True
        yield key, tag, tag_value


def nested_tag(name: str, value: object) -> str | None:
    """Return the tag `name/value`, with hyphens for spaces; None if a tag cannot have the value."""
    if value is True or not isinstance(value, SCALAR_TYPES):
        return None

    part = hyphenate(str(value))
    if not part or "/" in part or NOT_IN_TAG.search(part):
        return None
    return f"{name}/{part}"


def filter_pairs(tags: Sequence[Tag], properties: Properties) -> tuple[tuple[str, str], ...]:
    """Return the pairs (key, value) by which filters find tags, with keys in lower case.

    (key, "") says that the note has the tag, (key, value) that the tag has this value. `a/b/c`
    gives (a, ""), (a/b, ""), (a/b/c, ""), (a, b/c) and (a/b, c). A value outside the tag's name,
    such as an entry of a map, is also returned as it is written.
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
    """Return the tags as a map: `{"todo": True, "status": "done"}`.

    If a key has several values, only the first is its value; the other tags keep their full names.
    """
    spellings: dict[str, str] = {}  # by the case-folded key, as are the values
    values: dict[str, TagValue] = {}
    for tag in tags:
        if tag.source == "map":
            continue

        name, slash, value = tag.name.partition("/")
        key = name.casefold()
        if name and slash and values.get(key, True) is True:
            spellings[key] = name
            values[key] = value
            continue

        key = tag.name.casefold()
        if key not in values:
            spellings[key] = tag.name
            values[key] = True

    for name, outside_value in _values_outside_names(tags, properties):
        key = name.casefold()
        if values.get(key, True) is True:
            spellings.setdefault(key, bare_tag(name))
            values[key] = outside_value
    return {spellings[key]: value for key, value in values.items()}


def _values_outside_names(
    tags: Sequence[Tag], properties: Properties
) -> Iterator[tuple[str, TagValue]]:
    """Yield name and value of the tags whose value is not part of their name.

    Such a value is in a map of tags, or in a property that is called like the tag.
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
