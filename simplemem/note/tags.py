"""Tags: one idea in three notations, list, nested name (`status/done`) and map (`{status: done}`). Pure.

All are read alike; a new note gets Obsidian's list, and a note keeps the notation it has (obsidian.md §2,
§3.3). The body is never changed here: an inline `#tag` is read, and stays. Forms that Obsidian dropped
are read as `legacy`, and never written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from simplemem.errors import Invalid
from simplemem.note.header import find_key, read_header
from simplemem.note.properties import remove_entry, remove_item, set_entry, set_property
from simplemem.note.yaml_values import core_value

Value = str | bool | int | float


def bare_name(name: str) -> str:
    """obsidian.md §2: a leading `#` may stand in a property; a trailing slash is not part of a tag."""
    return name.strip().lstrip("#").rstrip("/")


def joined(text: str) -> str:
    return "-".join(text.split())


def tag_value(value: Value) -> str:
    """How a value is spelled inside a nested tag: `in progress` stands as `status/in-progress`."""
    return joined(spelled(value))


def spelled(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def parse_tag_request(value: object) -> dict[str, str | bool | None]:
    """Tags as callers write them, forgivingly: a map, a list, "a, status=b", or any of these as JSON text."""
    if value is None:
        return {}
    if isinstance(value, str):
        if value.lstrip()[:1] in ("{", "["):
            try:
                return parse_tag_request(json.loads(value))
            except (ValueError, RecursionError):  # a number of too many digits is a ValueError too
                raise refused_request(value) from None
        return _merged(_from_text(part) for part in _parts(value))
    if isinstance(value, Mapping):
        return _merged(_from_entry(key, entry) for key, entry in value.items())
    if isinstance(value, (list, tuple)):
        return _merged(
            _from_text(item) if isinstance(item, str) else parse_tag_request(_only_map(item)) for item in value
        )
    raise refused_request(value)


def refused_request(value: object) -> Invalid:
    return Invalid(
        f"These are not tags: {str(value)[:80]!r}.",
        hint='Give {"todo": true, "status": "done"} or ["todo", "status/done"].',
    )


def _only_map(item: object) -> object:
    if not isinstance(item, Mapping):
        raise refused_request(item)
    return item


def _merged(parts: Iterable[dict[str, str | bool | None]]) -> dict[str, str | bool | None]:
    return {key: value for part in parts for key, value in part.items()}


def _parts(text: str) -> Iterator[str]:
    """Commas stand between tags, and so do spaces where they are not part of a `key=value`."""
    for part in text.split(","):
        if _ENTRY.fullmatch(part):
            yield part
        else:
            yield from part.split()


_ENTRY: Final = re.compile(r"\s*+([^\s=:]*+)\s*+[=:](.*)", re.DOTALL)


def _from_text(text: str) -> dict[str, str | bool | None]:
    found = _ENTRY.fullmatch(text)
    return _from_entry(found[1], found[2].strip()) if found else _from_entry(text, True)


def _from_entry(key: object, value: object) -> dict[str, str | bool | None]:
    name = joined(bare_name(key)) if isinstance(key, str) else ""
    if not name:
        raise refused_request(key)
    if value is None or isinstance(value, bool):
        return {name: value}
    if isinstance(value, (list, tuple)):
        return _merged(_from_entry(f"{name}/{item}", True) for item in value)
    if isinstance(value, (str, int, float)):
        return {name: spelled(value).strip() or True}
    raise refused_request({key: value})


# obsidian.md §2: what may not stand in a tag. A slash separates the levels of a nested one.
_NOT_IN_TAG: Final = re.compile(r"[\s!\"#$%&'()*+,.:;<=>?@\[\\\]^`{|}~\u2000-\u206f\u2e00-\u2e7f]+")
_LEGACY_KEYS: Final = ("tag", "keywords")
_APART: Final = re.compile(r"[\s,]+")
# Properties with a meaning of their own: a tag's value is neither kept in one of these nor looked for there.
_RESERVED: Final = frozenset(
    (
        *("title", "description", "type", "id", "created", "modified", "links", "tags", "tag", "keywords"),
        *("aliases", "alias", "cssclasses", "publish", "permalink", "image", "cover"),
    )
)


class Tag(NamedTuple):
    """A tag as it is spelled, without `#`: `status/done`."""

    name: str
    source: Literal["property", "inline", "map", "legacy"]


# ------------------------------------------------------------------ reading


def read_tags(properties: Mapping[str, Any], inline: Sequence[str]) -> tuple[Tag, ...]:
    """All tags of a note, properties first. Case does not count; the first spelling is the one shown."""
    found: dict[str, Tag] = {}
    for tag in (*_property_tags(properties), *(Tag(bare_name(name), "inline") for name in inline)):
        if tag.name:
            found.setdefault(tag.name.casefold(), tag)
    return tuple(found.values())


def _property_tags(properties: Mapping[str, Any]) -> Iterator[Tag]:
    value = _property(properties, "tags")
    if isinstance(value, Mapping):
        for _, name, _ in _map_entries(value):
            yield Tag(name, "map")
    else:
        yield from _list_tags(value, "property")
    for key in _LEGACY_KEYS:
        yield from _list_tags(_property(properties, key), "legacy")


def _list_tags(value: Any, source: Literal["property", "legacy"]) -> Iterator[Tag]:
    if isinstance(value, str):
        names = [name for name in _APART.split(value) if name]
        # obsidian.md §0.5: one text is one tag; several in one text are Foam's way, and no tags to Obsidian.
        yield from (Tag(bare_name(name), source if len(names) == 1 else "legacy") for name in names)
    elif isinstance(value, list):
        yield from (Tag(bare_name(item), source) for item in value if _is_item(item))


def _is_item(item: Any) -> bool:
    """obsidian.md §2: items of the list that are no text, or hold spaces, are no tags."""
    return isinstance(item, str) and bool(item.strip()) and not any(map(str.isspace, item.strip()))


def _map_entries(entries: Mapping[str, Any]) -> Iterator[tuple[str, str, Value]]:
    """Key, tag and value of each entry of a map that stands for a tag: `false` and null stand for none."""
    for key, value in entries.items():
        name = joined(bare_name(key))
        if name and value is not None and value is not False:
            yield key, _nested(name, value) or name, value if isinstance(value, (str, int, float)) else True


def _property(properties: Mapping[str, Any], key: str) -> Any:
    return properties.get(find_key(properties, key) or key)


def _nested(name: str, value: Any) -> str | None:
    """`key/value` when the value can be part of a tag (spaces become `-`, obsidian.md §3.3), else None."""
    if value is True or not isinstance(value, (str, int, float)):
        return None
    part = tag_value(value)
    return f"{name}/{part}" if part and "/" not in part and not _NOT_IN_TAG.search(part) else None


def tag_names(tags: Iterable[Tag]) -> list[str]:
    return [tag.name for tag in tags]


def tag_pairs(tags: Iterable[Tag], properties: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Rows for filters: (key, "") says that it is there, (key, value) what it says. Keys are lower-cased.

    `a/b/c` gives (a, ""), (a/b, ""), (a/b/c, ""), (a, b/c) and (a/b, c). An entry of a map gives the
    same, and its value to the letter.
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
        for name in (bare_name(key).lower(), joined(bare_name(key)).lower()):
            rows[name, ""] = None
            if value is not True:
                rows[name, spelled(value)] = None
    return tuple(rows)


def tag_map(tags: Iterable[Tag], properties: Mapping[str, Any]) -> dict[str, Value]:
    """The tags as a map: `{"todo": true, "status": "done"}`. A second value of a key keeps its full name."""
    tags = tuple(tags)
    whole = {key.casefold(): (key, value) for key, value in _values_kept_whole(tags, properties)}
    found: dict[str, tuple[str, Value]] = {}
    for tag in tags:
        if tag.source == "map":
            continue
        key, slash, rest = tag.name.partition("/")
        folded = key.casefold()
        if slash and key and (folded not in found or found[folded][1] is True):
            found[folded] = key, rest
        elif slash:
            found.setdefault(tag.name.casefold(), (tag.name, True))
        else:
            found.setdefault(folded, (key, True))
    for folded, (key, value) in whole.items():
        if folded not in found or found[folded][1] is True:
            found[folded] = found.get(folded, (bare_name(key), True))[0], value
    return dict(found.values())


def _values_kept_whole(tags: Sequence[Tag], properties: Mapping[str, Any]) -> Iterator[tuple[str, Value]]:
    """Values outside a tag's name: in a map, or in a property beside a bare tag (obsidian.md §3.3)."""
    entries = _property(properties, "tags")
    if isinstance(entries, Mapping):
        yield from ((key, value) for key, _, value in _map_entries(entries))
        return
    for tag in tags:
        if tag.source == "property" and tag.name.lower() not in _RESERVED:
            value = _property(properties, tag.name)
            if _is_value(value):
                yield tag.name, value


# ------------------------------------------------------------------ writing


def tags_for_new_note(request: object) -> tuple[list[str], dict[str, Any]]:
    """The list of tags a new note gets, and the properties for values that cannot be part of a tag."""
    names: dict[str, str] = {}
    properties: dict[str, Any] = {}
    for key, value in parse_tag_request(request).items():
        if value is None or value is False:
            continue
        legal = _legal(key)
        nested = legal if value is True else _nested(legal, value)
        if nested is None:
            properties[_unreserved(legal, value)] = value
        names.setdefault((nested or legal).casefold(), nested or legal)
    return list(names.values()), properties


def _legal(name: str) -> str:
    """The name, when Obsidian would take it for a tag (obsidian.md §2)."""
    has_letters = re.search(r"[^0-9/]", name) is not None
    if has_letters and not _NOT_IN_TAG.search(name) and not name.startswith("/") and "//" not in name:
        return name
    proposed = re.sub(r"/+", "/", _NOT_IN_TAG.sub("-", name)).strip("-/")
    proposed = proposed if re.search(r"[^0-9/]", proposed) else f"n{proposed}" if proposed else "tag"
    raise Invalid(
        f"{name!r} cannot be a tag.",
        hint=f"Tags are letters, digits, _, - and /, and more than a number. Use {proposed!r}.",
        proposed=proposed,
    )


def _unreserved(key: str, value: str | bool, there: Any = None) -> str:
    if key.lower() in _RESERVED or "/" in key or isinstance(there, (list, Mapping)):
        raise Invalid(
            f"The tag {key!r} cannot carry {str(value)[:60]!r}: no tag and no property here can hold it.",
            hint="Use letters, digits, _ and - in the value, or another key.",
        )
    return key


def change_tags(text: str, changes: Mapping[str, str | bool | None]) -> str:
    """Set and remove tags in the header, in the notation the note has. null removes; in a list false does.

    A value takes the place of the key's other values (`status: done` for `status/active`). In a list
    `true` only adds the tag; in a map it is the value.
    """
    for key, value in changes.items():
        name = joined(bare_name(key))
        if not name:
            raise refused_request(key)
        if isinstance(read_header(text).get("tags"), Mapping):
            text = _change_in_map(text, name, value)
        elif value is None or value is False:
            text = _without(text, name)
        else:
            text = _change_in_list(text, _legal(name), value)
    return text


def _change_in_map(text: str, name: str, value: str | bool | None) -> str:
    entries: Mapping[str, Any] = read_header(text).get("tags")
    spelled = next((key for key in entries if joined(bare_name(key)).casefold() == name.casefold()), None)
    if value is not None:
        if value is True and spelled is None and _stands_in_map(entries, name):
            return text
        return set_entry(text, "tags", spelled or name, _typed_like(entries.get(spelled or name), value))
    for key, tag, _ in list(_map_entries(entries)):
        if _is_below(tag, name) or key == spelled:
            text = remove_entry(text, "tags", key)
    return _without_legacy(remove_entry(text, "tags", spelled) if spelled is not None else text, name)


def _stands_in_map(entries: Mapping[str, Any], name: str) -> bool:
    return any(tag.casefold() == name.casefold() for _, tag, _ in _map_entries(entries))


def _is_below(tag: str, name: str) -> bool:
    """obsidian.md §2: `status` means `status/done` too."""
    return f"{tag.casefold()}/".startswith(f"{name.casefold()}/")


def _change_in_list(text: str, name: str, value: str | Literal[True]) -> str:
    items = _items(text)
    if value is True:
        return text if _holds(items, name) else _with_items(text, [*items, name])
    there = read_header(text).get(name)
    stands_in_property = _holds(items, name) and name.lower() not in _RESERVED and _is_value(there)
    nested = None if stands_in_property else _nested(name, value)
    if nested is None:
        text = set_property(text, _unreserved(name, value, there), _typed_like(there, value))
    wanted = nested or name
    # The first value there is gives up its place to the new one; the others of that key go.
    held = (at for at, item in enumerate(items) if _holds([item], wanted))
    values = (at for at, item in enumerate(items) if _is_value_of(item, name))
    place = next(held, next(values, None))
    kept = [
        wanted if at == place and not _holds([item], wanted) else item
        for at, item in enumerate(items)
        if at == place or not _is_value_of(item, name)
    ]
    return _with_items(text, kept if place is not None else [*kept, wanted])


def _is_value(value: Any) -> bool:
    return isinstance(value, (str, int, float)) and not isinstance(value, bool)


def _typed_like(there: Any, value: Any) -> Any:
    """A number stays a number: values arrive as text, and Obsidian gives every property one type."""
    number = core_value(value) if isinstance(value, str) else value
    if isinstance(there, (int, float)) and isinstance(number, (int, float)) and not isinstance(there, bool):
        return number
    return value


def _is_value_of(item: Any, name: str) -> bool:
    return _is_item(item) and _is_below(bare_name(item), name) and bare_name(item).casefold() != name.casefold()


def _holds(items: Iterable[Any], name: str) -> bool:
    return any(_is_item(item) and bare_name(item).casefold() == name.casefold() for item in items)


def _items(text: str) -> list[Any]:
    """The tags property as a list; of a text, the tags that are in it."""
    value = read_header(text).get("tags")
    if isinstance(value, list):
        return value
    if isinstance(value, str):
        return [name for name in _APART.split(value) if name]
    return [] if value is None else [value]


def _with_items(text: str, items: list[Any]) -> str:
    value = read_header(text).get("tags")
    if isinstance(value, str) and len(items) == 1 and len(_APART.split(value.strip())) == 1:
        return set_property(text, "tags", items[0])  # one text is one tag, and stays a text
    return text if items == _items(text) else set_property(text, "tags", items)


def _without(text: str, name: str) -> str:
    items = _items(text)
    kept = [item for item in items if not (_is_item(item) and _is_below(bare_name(item), name))]
    return _without_legacy(text if len(kept) == len(items) else set_property(text, "tags", kept), name)


def _without_legacy(text: str, name: str) -> str:
    """A tag that is asked away goes from `tag:` and `keywords:` too, or it would still be found."""
    for key in _LEGACY_KEYS:
        value = read_header(text).get(key)
        if isinstance(value, list):
            for item in value:
                if _is_item(item) and _is_below(bare_name(item), name):
                    text = remove_item(text, key, item)
        elif isinstance(value, str):
            there = [part for part in _APART.split(value) if part]
            kept = [part for part in there if not _is_below(bare_name(part), name)]
            if len(kept) < len(there):
                text = set_property(text, key, ", ".join(kept) or None)
    return text
