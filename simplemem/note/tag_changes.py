"""Change the tags in the header of a note. Pure.

A new note gets its tags as a list; an existing note keeps its notation, a list, a text or a map. A
`#tag` in the text of a note is never changed, and forms that Obsidian no longer reads are never
added.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from simplemem.errors import Invalid
from simplemem.note.header import find_value, parse_plain_scalar, read_header
from simplemem.note.note import (
    LEGACY_KEYS,
    NOT_IN_TAG,
    RESERVED_KEYS,
    bare_tag,
    hyphenate,
    is_tag,
    is_within,
    map_entries,
    nested_tag,
    tag_items,
    value_in_property,
)
from simplemem.note.properties import set_property
from simplemem.note.tag_requests import RequestedValue, parse_tag_name, parse_tag_request

_NOT_ONLY_A_NUMBER: Final = re.compile(r"[^0-9/]")


def nearest_tag(name: str) -> str:
    """Return a valid tag made from a name: `-` replaces each other character. Never raises.

    It is "tag" if nothing is left. A number gets the letter n before it.
    """
    tag = NOT_IN_TAG.sub("-", name)
    tag = re.sub(r"/+", "/", tag).strip("-/")
    if not tag:
        return "tag"
    if not _NOT_ONLY_A_NUMBER.search(tag):
        return f"n{tag}"
    return tag


def _check_name(name: str) -> str:
    """Return a name that Obsidian accepts as a tag, unchanged; raise Invalid for any other.

    The hint proposes the nearest valid one.
    """
    has_only_full_parts = all(name.split("/"))  # no slash at an end, no two side by side
    has_only_valid_characters = NOT_IN_TAG.search(name) is None
    is_only_a_number = _NOT_ONLY_A_NUMBER.search(name) is None
    if has_only_full_parts and has_only_valid_characters and not is_only_a_number:
        return name

    proposed = nearest_tag(name)
    hint = (
        "A tag consists of letters, digits, _, - and /, and is not only a number. "
        f"Use {proposed!r}."
    )
    raise Invalid(f"{name!r} is not a valid tag", hint=hint, proposed=proposed)


def _is_key_of(key: str, name: str) -> bool:
    """Return whether a key in a map of tags is this tag, in any case; spaces equal hyphens."""
    return hyphenate(bare_tag(key)).casefold() == name.casefold()


def tags_for_new_note(request: object) -> tuple[list[str], dict[str, Any]]:
    """Return the tags of a new note, and properties for the values that no tag can contain.

    `request` is in one of the forms of `parse_tag_request`. Raises Invalid for a request that
    cannot be parsed, and for names and values that a note cannot store.
    """
    tags: list[str] = []
    properties: dict[str, Any] = {}

    for key, value in parse_tag_request(request).items():
        if value is None:
            continue
        if value is False:
            # No tag can express false, but a property can.
            if key.lower() not in RESERVED_KEYS:
                properties[key] = False
            continue

        tags, property_value = _add_tag(tags, _check_name(key), value, {})
        if property_value is not None:
            properties[key] = property_value

    return tags, properties


def change_tags(text: str, changes: Mapping[str, RequestedValue]) -> str:
    """Return a note with tags set and removed in its header, in the notation that the note has.

    `changes` has the values by the names of tags: True for a tag without a value, None or False to
    remove a tag and those below it. In a map of tags, False is a value. A value replaces the other
    values of its key. Tags in the body are never changed. Raises Invalid for names and values that
    the note cannot store, and Unreadable for a header that cannot be changed.
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
        parse_tag_name(key)
        for key, value in changes.items()
        if value is None or (value is False and not is_map)
    ]
    return _remove_from_legacy_keys(text, properties, removed_names)


def _change_map(
    tags: Mapping[str, Any],
    changes: Mapping[str, RequestedValue],
) -> dict[str, Any]:
    """Return the entries of a map of tags after some changes, in their old order.

    A key keeps its spelling. False is stored as a value; only None removes.
    """
    entries = dict(tags)

    for key, value in changes.items():
        name = parse_tag_name(key)
        if value is None:
            entries = _without_entries(entries, name)
            continue

        spellings = (spelling for spelling in entries if _is_key_of(spelling, name))
        entry_key = next(spellings, name)
        if value is True and entry_key not in entries:
            # The tag `status/done` may be in the map as `status: done`.
            has_tag = any(is_tag(tag, name) for _, tag, _ in map_entries(entries))
            if has_tag:
                continue

        old_value = entries.get(entry_key)
        entries[entry_key] = _with_type_of(old_value, value)

    return entries


def _without_entries(entries: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a map of tags without this tag and those below it."""
    removed: set[str] = set()
    for key, tag, _ in map_entries(entries):
        if is_within(tag, name):
            removed.add(key)

    return {
        key: value
        for key, value in entries.items()
        if key not in removed and not _is_key_of(key, name)
    }


def _change_list(
    text: str,
    properties: Mapping[str, Any],
    tags: object,
    changes: Mapping[str, RequestedValue],
) -> str:
    """Return a note whose tags are a list, a text or missing, with these changes.

    `tags` is the value of its property `tags`. Raises Invalid for names and values that the note
    cannot store.
    """
    old_items = tag_items(tags)
    items = old_items

    for key, value in changes.items():
        name = parse_tag_name(key)
        if value is None or value is False:
            items = [item for item in items if not is_within(item, name)]
            continue

        valid_name = _check_name(name)
        items, property_value = _add_tag(items, valid_name, value, properties)
        if property_value is not None:
            text = set_property(text, name, property_value)

    if items == old_items:
        return text

    # A text that is one tag stays a text.
    stays_one_tag = len(old_items) == 1 and len(items) == 1
    if isinstance(tags, str) and stays_one_tag:
        return set_property(text, "tags", items[0])
    return set_property(text, "tags", items)


def _remove_from_legacy_keys(
    text: str,
    properties: Mapping[str, Any],
    removed_names: Sequence[str],
) -> str:
    """Return a note without some tags in `tag` and `keywords`, in which searches find them too.

    `properties` are those of the note before any change. The tags below a removed one go with it.
    """
    for key in LEGACY_KEYS:
        value = find_value(properties, key)
        old_items = tag_items(value)
        items = old_items
        for name in removed_names:
            items = [item for item in items if not is_within(item, name)]
        if items == old_items:
            continue

        if isinstance(value, str):
            text = set_property(text, key, ", ".join(items) or None)
        else:
            text = set_property(text, key, items)

    return text


def _add_tag(
    items: list[Any],
    name: str,
    value: str | bool | float,
    properties: Mapping[str, Any],
) -> tuple[list[Any], RequestedValue]:
    """Return the items with this tag, and the value for the property of the same name.

    `items` are those of the list of tags, which is not changed itself; `properties` are those of
    the note. The second result is None if no property has to be set, because the tag has no value
    or contains it. Raises Invalid if neither a tag nor a property can contain it.
    """
    has_tag = any(is_tag(item, name) for item in items)
    if value is True:
        if has_tag:
            return items, None
        return [*items, name], None

    # A value that is in a property so far stays in the property.
    is_value_in_property = has_tag and value_in_property(properties, name) is not None
    if not is_value_in_property:
        tag_with_value = nested_tag(name, value)
        if tag_with_value is not None:
            return _replace_values(items, name, tag_with_value), None

    old_value = find_value(properties, name)
    is_reserved = name.lower() in RESERVED_KEYS
    if is_reserved or "/" in name or isinstance(old_value, (list, Mapping)):
        raise Invalid(
            f"the tag {name!r} cannot have the value {str(value)[:60]!r}: "
            "neither a tag nor a property can express it",
            hint="Use only letters, digits, _ and - in the value, or another key.",
        )

    new_items = _replace_values(items, name, name)
    return new_items, _with_type_of(old_value, value)


def _replace_values(items: list[Any], name: str, new_tag: str) -> list[Any]:
    """Return the items with `new_tag` in place of the first tag below `name`.

    The other tags below `name` are left out. If the items contain `new_tag`, it keeps its place and
    its spelling. If they contain neither, it is added at the end. `name` itself stays.
    """
    indexes_below = [
        index
        for index, item in enumerate(items)
        if is_within(item, name) and not is_tag(item, name)
    ]
    indexes_of_new_tag = [index for index, item in enumerate(items) if is_tag(item, new_tag)]

    changed = list(items)
    if indexes_of_new_tag:
        kept_index = indexes_of_new_tag[0]
    elif indexes_below:
        kept_index = indexes_below[0]
        changed[kept_index] = new_tag
    else:
        kept_index = len(items)
        changed.append(new_tag)

    return [
        item
        for index, item in enumerate(changed)
        if index == kept_index or index not in indexes_below
    ]


def _with_type_of(old_value: object, value: RequestedValue) -> RequestedValue:
    """Return a value as a number if the old value is one and the new one can be read as one.

    Any other value is returned as it is. Values arrive as text, and Obsidian gives every property
    one type.
    """
    if isinstance(old_value, bool) or not isinstance(old_value, (int, float)):
        return value

    number: object = value
    if isinstance(value, str):
        number = parse_plain_scalar(value)
    if not isinstance(number, (int, float)):
        return value
    return number
