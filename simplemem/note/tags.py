"""Parse requests for tags, and change the tags in the header of a note.

A new note gets its tags as a list; an existing note keeps its notation, a list, a text or a map. A
`#tag` in the text of a note is never changed, and forms that Obsidian no longer reads are never
added. Everything here is pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from simplemem.errors import Invalid
from simplemem.note import note
from simplemem.note.header import core_value, find_value, read_header
from simplemem.note.properties import set_property

TagValue = str | bool | int | float | None

# By name: the value of a tag, True for a tag without one, None or False to remove the tag.
Request = dict[str, TagValue]

_MAX_LINE_NUMBERS: Final = 10  # that a warning lists for one tag
_KEY_AND_VALUE: Final = re.compile(r"\s*+(?P<key>[^\s=:]*+)\s*+[=:](?P<value>.*)", re.DOTALL)
_HEADER_START: Final = re.compile(r"---\s*[\w-]+:\s")
_NOT_ONLY_A_NUMBER: Final = re.compile(r"[^0-9/]")


# Requests


def parse_tag_request(value: object) -> Request:
    """Parse a map, a list, a text like "a, status=b", or one of these as JSON; or raise Invalid."""
    request: Request = {}

    for key, entry in _entries(value):
        name = _tag_name(key)
        if isinstance(entry, (list, tuple)):
            for part in entry:
                request[_tag_name(f"{name}/{part}")] = True
        elif entry is None or isinstance(entry, (bool, int, float)):
            # A number stays a number, because a map of tags contains `prio: 2`, not a text.
            request[name] = entry
        elif isinstance(entry, str):
            request[name] = entry.strip() or True
        else:
            raise _invalid_request({key: entry})

    return request


def _entries(value: object) -> Iterator[tuple[Any, Any]]:
    """Yield the keys and values of a request as the caller wrote them; raise Invalid."""
    if isinstance(value, str):
        value = _parse_text(value)

    items: Iterable[object]
    if isinstance(value, Mapping):
        items = [value]
    elif isinstance(value, (list, tuple)):
        items = value
    elif value is None:
        items = ()
    else:
        raise _invalid_request(value)

    for item in items:
        entries = _entries_of_item(item)
        if entries is None:
            raise _invalid_request(value)
        yield from entries.items()


def _parse_text(text: str) -> object:
    """Return the value of a JSON text, or the parts of a text like "a b, status=c"."""
    if not text.lstrip().startswith(("{", "[")):
        return _split(text)

    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # a number with too many digits raises ValueError too
        raise _invalid_request(text) from None


def _split(text: str) -> list[str]:
    """Split a text at commas, and at spaces too where they do not belong to a `key=value`."""
    tags: list[str] = []
    for part in text.split(","):
        if _KEY_AND_VALUE.fullmatch(part):
            tags.append(part)
        else:
            tags.extend(part.split())
    return tags


def _entries_of_item(item: object) -> Mapping[Any, Any] | None:
    """Return an item of a list of tags as a map, None if it is neither a text nor a map."""
    if isinstance(item, Mapping):
        return item
    if not isinstance(item, str):
        return None

    match = _KEY_AND_VALUE.fullmatch(item)
    if match is None:
        return {item: True}
    return {match["key"]: match["value"]}


def _tag_name(key: object) -> str:
    """Return the key of a request as the name of a tag; raise Invalid if nothing is left of it."""
    name = note.joined(note.bare_tag(key)) if isinstance(key, str) else ""
    if not name:
        raise _invalid_request(key)
    return name


def _invalid_request(value: object) -> Invalid:
    return Invalid(
        f"{str(value)[:80]!r} is not a valid set of tags",
        hint='Give {"todo": true, "status": "done"} or ["todo", "status/done"].',
    )


# Warnings


def respelled(value: object, written: Mapping[str, Any]) -> list[str]:
    """Return a warning for each tag of a request that a note could not store as requested.

    `written` is the map of the tags that the note has now.
    """
    warnings = []

    for key, entry in _entries(value):
        name = _tag_name(key)
        original = note.bare_tag(key)
        if isinstance(entry, str) and written.get(name) == note.joined(entry):
            name = f"{name}/{note.joined(entry)}"
            original = f"{original}/{entry.strip()}"

        if entry is False and name not in written:
            warnings.append(
                f"`{key}: false` was stored, which means that the note does not have the tag {name}"
            )
        elif original != name and entry not in (None, False):
            warnings.append(
                f"the tag {original!r} was written as {name}, because a tag has no spaces"
            )

    return warnings


def tags_left_in_text(changed: note.Note, changes: Request) -> list[str]:
    """Return a warning for each tag in the text that a request removes or replaces.

    A tag in the text is part of a sentence that somebody wrote, so it does not change together
    with the tags of the frontmatter. Each warning names the tag and its lines.
    """
    lines_by_tag: dict[str, list[int]] = {}
    for tag, line in zip(changed.body.tags, changed.body.tag_lines, strict=True):
        if any(_contradicts(tag, name, value) for name, value in changes.items()):
            lines_by_tag.setdefault(tag, []).append(line)

    return [_tag_stays_warning(tag, lines) for tag, lines in lines_by_tag.items()]


def _contradicts(tag: str, name: str, value: TagValue) -> bool:
    """Return whether a request removes a tag of the text, or gives its name another value."""
    if value is True or not _is_within(tag, name):
        return False
    if value is None or value is False:
        return True

    tag_with_value = note.nested_tag(name, str(value)) or name
    return not _is_tag(tag, name) and not _is_tag(tag, tag_with_value)


def _tag_stays_warning(tag: str, lines: Sequence[int]) -> str:
    noun = "line" if len(lines) == 1 else "lines"
    where = f"{noun} {', '.join(map(str, lines[:_MAX_LINE_NUMBERS]))}"
    if len(lines) > _MAX_LINE_NUMBERS:
        where += f" and {len(lines) - _MAX_LINE_NUMBERS} more"

    return (
        f"the tag #{tag} stays, because it is in the text ({where}); "
        "edit the text to remove it there"
    )


# Metadata


def without_header(
    content: str | None, metadata: Mapping[str, Any] | None
) -> tuple[Any, dict[str, Any], list[str]]:
    """Move a block of YAML at the start of a content to its metadata.

    Returns the content, the metadata and a warning if there was such a block. The values in
    `metadata` take precedence, but tags of both are combined. Raises Invalid if the content begins
    with a block of properties that cannot be read.
    """
    text = (content or "").lstrip()
    header = read_header(text)
    if header.style == "broken" and _HEADER_START.match(text):
        reason = header.problem.message if header.problem else ""
        raise Invalid(
            f"the YAML block that the content begins with cannot be read: {reason}",
            hint="Give the properties as metadata.",
        )

    merged = dict(metadata or {})
    if not header.properties:
        return content, merged, []

    explicit = {str(key).casefold(): value for key, value in merged.items() if value is not None}
    merged |= {
        key: value for key, value in header.properties.items() if key.casefold() not in explicit
    }

    header_tags = header.get("tags")
    explicit_tags = explicit.get("tags")
    if header_tags and explicit_tags:
        pairs = (*_entries(header_tags), *_entries(explicit_tags))
        merged["tags"] = [{key: value} for key, value in pairs]

    names = ", ".join(header.properties)
    warning = f"the YAML block at the start of the content was taken as metadata: {names}"
    return text[header.body_start :], merged, [warning]


# Names


def nearest_tag(name: str) -> str:
    """Return the valid tag that is most like a name."""
    tag = note.NOT_IN_TAG.sub("-", name)
    tag = re.sub(r"/+", "/", tag).strip("-/")
    if not tag:
        return "tag"
    if not _NOT_ONLY_A_NUMBER.search(tag):
        return f"n{tag}"
    return tag


def _check_name(name: str) -> str:
    """Return a name that Obsidian accepts as a tag; raise Invalid for any other."""
    has_only_full_parts = all(name.split("/"))
    if has_only_full_parts and not note.NOT_IN_TAG.search(name) and _NOT_ONLY_A_NUMBER.search(name):
        return name

    proposed = nearest_tag(name)
    hint = (
        "A tag consists of letters, digits, _, - and /, and is not only a number. "
        f"Use {proposed!r}."
    )
    raise Invalid(f"{name!r} is not a valid tag", hint=hint, proposed=proposed)


def _is_within(item: object, name: str) -> bool:
    """Return whether an item is this tag or one below it: `status/done` is within `status`."""
    if not note.is_tag_item(item):
        return False
    return f"{note.bare_tag(item).casefold()}/".startswith(f"{name.casefold()}/")


def _is_tag(item: object, name: str) -> bool:
    return note.is_tag_item(item) and note.bare_tag(item).casefold() == name.casefold()


def _is_key_of(key: str, name: str) -> bool:
    """Return whether a key in a map of tags names this tag."""
    return note.joined(note.bare_tag(key)).casefold() == name.casefold()


# New and changed tags


def tags_for_new_note(request: object) -> tuple[list[str], dict[str, Any]]:
    """Return the tags of a new note, and properties for the values that no tag can contain.

    Raises Invalid for a request that cannot be parsed, and for names and values that a note
    cannot store.
    """
    tags: list[str] = []
    properties: dict[str, Any] = {}

    for key, value in parse_tag_request(request).items():
        if value is None:
            continue
        if value is False:
            # No tag can express false, but a property can.
            if key.lower() not in note.RESERVED_KEYS:
                properties[key] = False
            continue

        tags, property_value = _add_tag(tags, _check_name(key), value, {})
        if property_value is not None:
            properties[key] = property_value

    return tags, properties


def change_tags(text: str, changes: Mapping[str, TagValue]) -> str:
    """Return a note with tags set and removed in its header, in the notation that the note has.

    A value replaces the other values of its key. Raises Invalid for names and values that the note
    cannot store, and Unreadable for a header that cannot be changed.
    """
    properties = read_header(text).properties
    tags = find_value(properties, "tags")

    is_map = isinstance(tags, Mapping)
    if is_map:
        text = set_property(text, "tags", _change_map(tags, changes))
    else:
        text = _change_list(text, properties, tags, changes)

    # In a map, false is a value like any other, and removes nothing.
    removed_names = [
        _tag_name(key)
        for key, value in changes.items()
        if value is None or (value is False and not is_map)
    ]
    return _remove_from_legacy_keys(text, properties, removed_names)


def _change_map(tags: Mapping[str, Any], changes: Mapping[str, TagValue]) -> dict[str, Any]:
    entries = dict(tags)

    for key, value in changes.items():
        name = _tag_name(key)
        if value is None:
            entries = _without_entries(entries, name)
            continue

        entry_key = next((spelling for spelling in entries if _is_key_of(spelling, name)), name)
        # The tag `status/done` may be in the map as `status: done`.
        has_tag = any(_is_tag(tag, name) for _, tag, _ in note.map_entries(entries))
        if value is not True or entry_key in entries or not has_tag:
            entries[entry_key] = _with_type_of(entries.get(entry_key), value)

    return entries


def _without_entries(entries: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a map of tags without this tag and those below it."""
    removed = {key for key, tag, _ in note.map_entries(entries) if _is_within(tag, name)}
    return {
        key: value
        for key, value in entries.items()
        if key not in removed and not _is_key_of(key, name)
    }


def _change_list(
    text: str, properties: Mapping[str, Any], tags: object, changes: Mapping[str, TagValue]
) -> str:
    """Return a note whose tags are a list or a text, with these changes."""
    old_items = note.tag_items(tags)
    items = old_items

    for key, value in changes.items():
        name = _tag_name(key)
        if value is None or value is False:
            items = [item for item in items if not _is_within(item, name)]
            continue

        items, property_value = _add_tag(items, _check_name(name), value, properties)
        if property_value is not None:
            text = set_property(text, name, property_value)

    if items == old_items:
        return text

    # A text that is one tag stays a text.
    if isinstance(tags, str) and len(items) == 1 and len(old_items) == 1:
        return set_property(text, "tags", items[0])
    return set_property(text, "tags", items)


def _remove_from_legacy_keys(
    text: str, properties: Mapping[str, Any], removed_names: Sequence[str]
) -> str:
    """Remove tags from `tag` and `keywords` too, because searches would still find them there."""
    for key in note.LEGACY_KEYS:
        value = find_value(properties, key)
        old_items = note.tag_items(value)
        items = [
            item for item in old_items if not any(_is_within(item, name) for name in removed_names)
        ]
        if items == old_items:
            continue

        if isinstance(value, str):
            text = set_property(text, key, ", ".join(items) or None)
        else:
            text = set_property(text, key, items)

    return text


def _add_tag(
    items: list[Any], name: str, value: str | bool | float, properties: Mapping[str, Any]
) -> tuple[list[Any], TagValue]:
    """Return the items with this tag, and the value for the property of the same name.

    The second result is None if the tag itself contains the value. Raises Invalid if neither a tag
    nor a property can contain it.
    """
    has_tag = any(_is_tag(item, name) for item in items)
    if value is True:
        return (items if has_tag else [*items, name]), None

    is_value_in_property = has_tag and note.kept_value(properties, name) is not None
    tag_with_value = None if is_value_in_property else note.nested_tag(name, value)
    if tag_with_value is not None:
        return _replace_values(items, name, tag_with_value), None

    old_value = find_value(properties, name)
    is_reserved = name.lower() in note.RESERVED_KEYS
    if is_reserved or "/" in name or isinstance(old_value, (list, Mapping)):
        raise Invalid(
            f"the tag {name!r} cannot have the value {str(value)[:60]!r}: "
            "neither a tag nor a property can express it",
            hint="Use only letters, digits, _ and - in the value, or another key.",
        )
    return _replace_values(items, name, name), _with_type_of(old_value, value)


def _replace_values(items: list[Any], name: str, new_tag: str) -> list[Any]:
    """Return the items with `new_tag` in place of the first tag below `name`, without the others.

    If the items contain `new_tag`, it keeps its place and its spelling.
    """
    value_indexes = [
        index
        for index, item in enumerate(items)
        if _is_within(item, name) and not _is_tag(item, name)
    ]
    same_indexes = [index for index, item in enumerate(items) if _is_tag(item, new_tag)]

    changed = list(items)
    if same_indexes:
        index_of_tag = same_indexes[0]
    elif value_indexes:
        index_of_tag = value_indexes[0]
        changed[index_of_tag] = new_tag
    else:
        index_of_tag = len(items)
        changed.append(new_tag)

    return [
        item
        for index, item in enumerate(changed)
        if index == index_of_tag or index not in value_indexes
    ]


def _with_type_of(old_value: object, value: TagValue) -> TagValue:
    """Return a value as a number if the old value is one and the new one can be.

    Values arrive as text, and Obsidian gives every property one type.
    """
    if isinstance(old_value, bool) or not isinstance(old_value, (int, float)):
        return value

    number = core_value(value) if isinstance(value, str) else value
    if not isinstance(number, (int, float)):
        return value
    return number
