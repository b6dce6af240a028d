"""Tags: one idea in three notations, list, nested name (`status/done`) and map (`{status: done}`). Pure.

All are read alike; a new note gets Obsidian's list, and a note keeps the notation it has (obsidian.md §2, §3.3). The
body is never changed here: an inline `#tag` is read, and stays. Forms that Obsidian dropped are read as `legacy`, and
never written. Callers may write tags in any notation: they become one map from the tag to its value, `true` for the tag
alone, null or false for its removal.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from simplemem.errors import Invalid
from simplemem.note.header import core_value, find_key, read_header
from simplemem.note.properties import set_property

Value = str | bool | int | float
Request = dict[str, str | bool | None]

# obsidian.md §2: what may not stand in a tag. A slash separates the levels of a nested one.
_NOT_IN_TAG: Final = re.compile(r"[\s!\"#$%&'()*+,.:;<=>?@\[\\\]^`{|}~\u2000-\u206f\u2e00-\u2e7f]+")
_LEGACY_KEYS: Final = ("tag", "keywords")
# Properties with a meaning of their own: a tag's value is neither kept in one of these nor looked for there.
_RESERVED: Final = frozenset(
    """title description type id created modified links tags tag keywords aliases alias cssclasses publish permalink image
    cover""".split()
)


class Tag(NamedTuple):
    """A tag as it is spelled, without `#`: `status/done`."""

    name: str
    source: Literal["property", "inline", "map", "legacy"]


def _bare(name: str) -> str:
    """obsidian.md §2: a leading `#` may stand in a property; a trailing slash is not part of a tag."""
    return name.strip().lstrip("#").rstrip("/")


def _joined(text: str) -> str:
    return "-".join(text.split())


def _is_item(item: Any) -> bool:
    """obsidian.md §2: items of the list that are no text, or hold spaces, are no tags."""
    return isinstance(item, str) and bool(item.strip()) and not any(map(str.isspace, item.strip()))


def _is_named(item: Any, name: str) -> bool:
    """Whether an item is this tag or one below it: `status` means `status/done` too (obsidian.md §2)."""
    return _is_item(item) and f"{_bare(item).casefold()}/".startswith(f"{name.casefold()}/")


def _is_tag(item: Any, name: str) -> bool:
    return _is_item(item) and _bare(item).casefold() == name.casefold()


def _items(tags: Any) -> list[Any]:
    """The tags property as a list; of a text, the tags that are in it."""
    if isinstance(tags, str):
        return tags.replace(",", " ").split()
    return tags if isinstance(tags, list) else [] if tags is None else [tags]


def _property(properties: Mapping[str, Any], key: str) -> Any:
    return properties.get(find_key(properties, key) or key)


def _kept_value(properties: Mapping[str, Any], name: str) -> Value | None:
    """The value of a tag that stands in a property beside it (obsidian.md §3.3)."""
    value = _property(properties, name)
    is_plain = isinstance(value, (str, int, float)) and not isinstance(value, bool)
    return value if is_plain and name.lower() not in _RESERVED else None


# ------------------------------------------------------------------ what callers ask for


_ENTRY: Final = re.compile(r"\s*+([^\s=:]*+)\s*+[=:](.*)", re.DOTALL)


def parse_tag_request(value: object) -> Request:
    """Tags as callers write them, forgivingly: a map, a list, "a, status=b", or any of these as JSON text."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):  # a number of too many digits is a ValueError too
            raise _refused(value) from None
    if isinstance(value, str):
        # Commas stand between tags, and so do spaces where they are not part of a `key=value`.
        parts = ([part] if _ENTRY.fullmatch(part) else part.split() for part in value.split(","))
        value = [part for several in parts for part in several]
    request: Request = {}
    if isinstance(value, Mapping):
        for key, entry in value.items():
            name = _name_of(key)
            if isinstance(entry, (list, tuple)):
                request |= {_name_of(f"{name}/{item}"): True for item in entry}
            elif entry is None or isinstance(entry, bool):
                request[name] = entry
            elif isinstance(entry, (str, int, float)):
                request[name] = str(entry).strip() or True
            else:
                raise _refused({key: entry})
    elif isinstance(value, (list, tuple)):
        for item in value:
            if not isinstance(item, (str, Mapping)):
                raise _refused(value)
            found = _ENTRY.fullmatch(item) if isinstance(item, str) else None
            entry = {found[1]: found[2].strip()} if found else {item: True} if isinstance(item, str) else item
            request |= parse_tag_request(entry)
    elif value is not None:
        raise _refused(value)
    return request


def _refused(value: object) -> Invalid:
    return Invalid(
        f"These are not tags: {str(value)[:80]!r}.",
        hint='Give {"todo": true, "status": "done"} or ["todo", "status/done"].',
    )


def _name_of(key: object) -> str:
    name = _joined(_bare(key)) if isinstance(key, str) else ""
    if not name:
        raise _refused(key)
    return name


# ------------------------------------------------------------------ reading


def read_tags(properties: Mapping[str, Any], inline: Sequence[str]) -> tuple[Tag, ...]:
    """All tags of a note, properties first. Case does not count; the first spelling is the one shown."""
    found: dict[str, Tag] = {}
    for tag in (*_property_tags(properties), *(Tag(_bare(name), "inline") for name in inline)):
        if tag.name:
            found.setdefault(tag.name.casefold(), tag)
    return tuple(found.values())


def _property_tags(properties: Mapping[str, Any]) -> Iterator[Tag]:
    for key in ("tags", *_LEGACY_KEYS):
        value = _property(properties, key)
        if isinstance(value, Mapping) and key == "tags":
            yield from (Tag(name, "map") for _, name, _ in _map_entries(value))
            continue
        items = _items(value)
        # obsidian.md §0.5: one text is one tag; several in one text are Foam's way, and no tags to Obsidian.
        is_legacy = key != "tags" or (isinstance(value, str) and len(items) > 1)
        yield from (Tag(_bare(item), "legacy" if is_legacy else "property") for item in items if _is_item(item))


def _map_entries(entries: Mapping[str, Any]) -> Iterator[tuple[str, str, Value]]:
    """Key, tag and value of each entry of a map that stands for a tag: `false` and null stand for none."""
    for key, value in entries.items():
        name = _joined(_bare(key))
        if name and value is not None and value is not False:
            yield key, _nested(name, value) or name, value if isinstance(value, (str, int, float)) else True


def _nested(name: str, value: Any) -> str | None:
    """`key/value` when the value can be part of a tag (spaces become `-`, obsidian.md §3.3), else None."""
    if value is True or not isinstance(value, (str, int, float)):
        return None
    part = _joined(str(value))
    return f"{name}/{part}" if part and "/" not in part and not _NOT_IN_TAG.search(part) else None


def tag_names(tags: Iterable[Tag]) -> list[str]:
    return [tag.name for tag in tags]


def tag_pairs(tags: Iterable[Tag], properties: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Rows for filters: (key, "") says that it is there, (key, value) what it says. Keys are lower-cased.

    `a/b/c` gives (a, ""), (a/b, ""), (a/b/c, ""), (a, b/c) and (a/b, c). An entry of a map gives the same, and its
    value to the letter.
    """
    tags = tuple(tags)
    rows: dict[tuple[str, str], None] = {}
    for tag in tags:
        levels = tag.name.split("/")
        for depth in range(1, len(levels) + 1):
            key = "/".join(levels[:depth]).lower()
            rows[key, ""] = None
            if depth < len(levels):
                rows[key, "/".join(levels[depth:])] = None
    for key, value in _values_kept_whole(tags, properties):
        for name in (_bare(key).lower(), _joined(_bare(key)).lower()):
            rows[name, ""] = None
            if value is not True:
                rows[name, str(value)] = None
    return tuple(rows)


def tag_map(tags: Iterable[Tag], properties: Mapping[str, Any]) -> dict[str, Value]:
    """The tags as a map: `{"todo": true, "status": "done"}`. A second value of a key keeps its full name."""
    tags = tuple(tags)
    found: dict[str, tuple[str, Value]] = {}
    for tag in tags:
        if tag.source == "map":
            continue
        key, slash, rest = tag.name.partition("/")
        folded = key.casefold()
        if slash and key and (folded not in found or found[folded][1] is True):
            found[folded] = key, rest
        else:
            found.setdefault(tag.name.casefold(), (tag.name, True))
    for key, value in _values_kept_whole(tags, properties):
        shown, there = found.get(key.casefold(), (_bare(key), True))
        if there is True:
            found[key.casefold()] = shown, value
    return dict(found.values())


def _values_kept_whole(tags: Sequence[Tag], properties: Mapping[str, Any]) -> Iterator[tuple[str, Value]]:
    """Values outside a tag's name: in a map, or in a property beside a bare tag (obsidian.md §3.3)."""
    entries = _property(properties, "tags")
    if isinstance(entries, Mapping):
        yield from ((key, value) for key, _, value in _map_entries(entries))
        return
    for tag in tags:
        if tag.source == "property" and (value := _kept_value(properties, tag.name)) is not None:
            yield tag.name, value


# ------------------------------------------------------------------ writing


def tags_for_new_note(request: object) -> tuple[list[str], dict[str, Any]]:
    """The list of tags a new note gets, and the properties for values that cannot be part of a tag."""
    items: list[Any] = []
    properties: dict[str, Any] = {}
    for key, value in parse_tag_request(request).items():
        if value is not None and value is not False:
            items, kept = _change_list(items, _legal(key), value, {})
            properties |= {key: kept} if kept is not None else {}
    return items, properties


def _legal(name: str) -> str:
    """The name, when Obsidian would take it for a tag (obsidian.md §2)."""
    if all(name.split("/")) and not _NOT_IN_TAG.search(name) and re.search(r"[^0-9/]", name):
        return name
    proposed = re.sub(r"/+", "/", _NOT_IN_TAG.sub("-", name)).strip("-/")
    proposed = proposed if re.search(r"[^0-9/]", proposed) else f"n{proposed}" if proposed else "tag"
    raise Invalid(
        f"{name!r} cannot be a tag.",
        hint=f"Tags are letters, digits, _, - and /, and more than a number. Use {proposed!r}.",
        proposed=proposed,
    )


def change_tags(text: str, changes: Mapping[str, str | bool | None]) -> str:
    """Set and remove tags in the header, in the notation the note has. null removes; in a list false does.

    A value takes the place of the key's other values (`status: done` for `status/active`). In a list `true` only adds
    the tag; in a map it is the value.
    """
    properties = read_header(text).properties
    tags = _property(properties, "tags")
    is_map = isinstance(tags, Mapping)
    entries: dict[str, Any] = dict(tags) if isinstance(tags, Mapping) else {}
    items = _items(tags)
    gone: list[str] = []
    for key, value in changes.items():
        name = _name_of(key)
        if value is None or (value is False and not is_map):
            gone.append(name)
            entries = {k: v for k, v in entries.items() if not _is_entry(k, v, name)}
            items = [item for item in items if not _is_named(item, name)]
        elif is_map:
            is_key = (k for k in entries if _joined(_bare(k)).casefold() == name.casefold())
            spelled = next(is_key, name)
            # In a map, `status/done` may be there as `status: done`.
            if (
                value is not True
                or spelled in entries
                or not any(_is_tag(t, name) for _, t, _ in _map_entries(entries))
            ):
                entries[spelled] = _typed_like(entries.get(spelled), value)
        else:
            items, kept = _change_list(items, _legal(name), value, properties)
            text = text if kept is None else set_property(text, name, kept)
    if is_map:
        text = set_property(text, "tags", entries)
    elif items != _items(tags):
        is_text = isinstance(tags, str) and len(items) == 1 and len(_items(tags)) == 1
        text = set_property(text, "tags", items[0] if is_text else items)  # one text is one tag, and stays a text
    for key in _LEGACY_KEYS:  # what is asked away goes from these too, or it would still be found
        old = _property(properties, key)
        left = [item for item in _items(old) if not any(_is_named(item, name) for name in gone)]
        if left != _items(old):
            text = set_property(text, key, ", ".join(left) or None if isinstance(old, str) else left)
    return text


def _is_entry(key: str, value: Any, name: str) -> bool:
    """Whether an entry of the map is asked for by its key, or stands for this tag or one below it."""
    tags = [tag for _, tag, _ in _map_entries({key: value})]
    return _joined(_bare(key)).casefold() == name.casefold() or any(_is_named(tag, name) for tag in tags)


def _change_list(
    items: list[Any], name: str, value: str | bool, properties: Mapping[str, Any]
) -> tuple[list[Any], Any]:
    """The items with this tag, and the value that is kept in a property of its name, None when the tag says it."""
    is_there = any(_is_tag(item, name) for item in items)
    if value is True:
        return items if is_there else [*items, name], None
    there = _property(properties, name)
    nested = None if is_there and _kept_value(properties, name) is not None else _nested(name, value)
    if nested is None and (name.lower() in _RESERVED or "/" in name or isinstance(there, (list, Mapping))):
        raise Invalid(
            f"The tag {name!r} cannot carry {str(value)[:60]!r}: no tag and no property here can hold it.",
            hint="Use letters, digits, _ and - in the value, or another key.",
        )
    wanted = nested or name
    # The first value there is gives up its place to the new one; the others of that key go.
    values = [at for at, item in enumerate(items) if _is_named(item, name) and not _is_tag(item, name)]
    place = next((at for at, item in enumerate(items) if _is_tag(item, wanted)), values[0] if values else len(items))
    changed = [*items, wanted] if place == len(items) else list(items)
    if not _is_tag(changed[place], wanted):
        changed[place] = wanted
    left = [item for at, item in enumerate(changed) if at == place or at not in values]
    return left, _typed_like(there, value) if nested is None else None


def _typed_like(there: Any, value: Any) -> Any:
    """A number stays a number: values arrive as text, and Obsidian gives every property one type."""
    number = core_value(value) if isinstance(value, str) else value
    is_number = isinstance(number, (int, float)) and isinstance(there, (int, float)) and not isinstance(there, bool)
    return number if is_number else value
