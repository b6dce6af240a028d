"""Tags and metadata as they are asked for and changed: a new note gets a list, a note keeps the notation it has. Pure.
An inline `#tag` is never changed, and forms that Obsidian dropped are never written (obsidian.md §2, §3.3)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from simplemem.errors import Invalid
from simplemem.note import note
from simplemem.note.header import core_value, find_value, read_header
from simplemem.note.properties import set_property

TagValue = str | bool | int | float | None
Request = dict[
    str, TagValue
]  # a tag's value, `true` for the tag alone, null or false for its removal
_MAX_LINES: Final = 10  # that are named of one tag
_ENTRY: Final = re.compile(r"\s*+([^\s=:]*+)\s*+[=:](.*)", re.DOTALL)


def _is_named(item: Any, name: str) -> bool:
    """Whether an item is this tag or one below it: `status` means `status/done` too (obsidian.md §2)."""
    return note.is_tag_item(item) and f"{note.bare_tag(item).casefold()}/".startswith(
        f"{name.casefold()}/"
    )


def _is_tag(item: Any, name: str) -> bool:
    return note.is_tag_item(item) and note.bare_tag(item).casefold() == name.casefold()


def _is_key(key: str, name: str) -> bool:
    return note.joined(note.bare_tag(key)).casefold() == name.casefold()


def parse_tag_request(value: object) -> Request:
    """Tags as callers write them, forgivingly: a map, a list, "a, status=b", or any of these as JSON text."""
    request: Request = {}
    for key, entry in _entries(value):
        name = _name_of(key)
        if isinstance(entry, (list, tuple)):
            request |= {_name_of(f"{name}/{each}"): True for each in entry}
        elif entry is None or isinstance(entry, (bool, int, float)):
            request[name] = entry  # a number stays one: a map of tags says `prio: 2`, and no text
        elif isinstance(entry, str):
            request[name] = entry.strip() or True
        else:
            raise _refused({key: entry})
    return request


def respelled(value: object, written: Mapping[str, Any]) -> list[str]:
    """What became of tags that cannot be one as they were asked for; `written` is the map of those the note has now."""
    said = []
    for key, entry in _entries(value):
        name, asked = _name_of(key), note.bare_tag(key)
        if isinstance(entry, str) and written.get(name) == note.joined(entry):
            name, asked = f"{name}/{note.joined(entry)}", f"{asked}/{entry.strip()}"
        if entry is False and name not in written:
            said.append(
                f"`{key}: false` was stored, which means that the note does not have the tag {name}"
            )
        elif asked != name and entry not in (None, False):
            said.append(f"the tag {asked!r} was written as {name}, because a tag has no spaces")
    return said


def tags_left_in_text(changed: note.Note, changes: Request) -> list[str]:
    """Say which tags that a request takes away, or replaces, stand in the text of a changed note, and on which lines.

    A tag in the text is part of a sentence of somebody's: it is not changed together with those of the frontmatter.
    """
    lines: dict[str, list[int]] = {}
    for tag, line in zip(changed.body.tags, changed.body.tag_lines, strict=True):
        if any(_should_be_gone(tag, name, value) for name, value in changes.items()):
            lines.setdefault(tag, []).append(line)
    return [_left_on_lines(tag, numbers) for tag, numbers in lines.items()]


def _should_be_gone(tag: str, name: str, value: TagValue) -> bool:
    """Whether a tag in the text contradicts what was asked for a name: its removal, or another value."""
    if value is True or not _is_named(tag, name):
        return False
    if value is None or value is False:
        return True
    return not _is_tag(tag, name) and not _is_tag(tag, note.nested_tag(name, str(value)) or name)


def _left_on_lines(tag: str, numbers: list[int]) -> str:
    shown = ", ".join(map(str, numbers[:_MAX_LINES]))
    more = len(numbers) - _MAX_LINES
    where = f"line{'s' * (len(numbers) > 1)} {shown}" + (f" and {more} more" if more > 0 else "")
    return f"the tag #{tag} stays, because it is in the text ({where}); edit the text to remove it there"


def without_header(
    content: str | None, metadata: Mapping[str, Any] | None
) -> tuple[Any, dict[str, Any], list[str]]:
    """Content and metadata, where a block of YAML at the start of the content is metadata too, and a word about it."""
    header = read_header(text := (content or "").lstrip())
    if header.style == "broken" and re.match(r"---\s*[\w-]+:\s", text):
        why = header.problem.message if header.problem else ""
        raise Invalid(
            f"the YAML block that the content begins with cannot be read: {why}",
            hint="Give the properties as metadata.",
        )
    if not header.properties:
        return content, dict(metadata or {}), []
    given = {
        str(key).casefold(): value for key, value in (metadata or {}).items() if value is not None
    }
    block = {key: value for key, value in header.properties.items() if key.casefold() not in given}
    if (tags := header.get("tags")) and given.get("tags"):
        block["tags"] = [{key: value} for key, value in (*_entries(tags), *_entries(given["tags"]))]
    said = f"the YAML block at the start of the content was taken as metadata: {', '.join(header.properties)}"
    return text[header.body_start :], {**(metadata or {}), **block}, [said]


def _entries(value: object) -> Iterator[tuple[Any, Any]]:
    """The tags of a request with their values, as they were given."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):  # a number of too many digits is a ValueError too
            raise _refused(value) from None
    if isinstance(value, str):
        # Commas stand between tags, and so do spaces where they are not part of a `key=value`.
        parts = ([part] if _ENTRY.fullmatch(part) else part.split() for part in value.split(","))
        value = [part for several in parts for part in several]
    if not isinstance(value, (Mapping, list, tuple, type(None))):
        raise _refused(value)
    for item in [value] if isinstance(value, Mapping) else value or ():
        found = _ENTRY.fullmatch(item) if isinstance(item, str) else None
        entries = {found[1]: found[2]} if found else {item: True} if isinstance(item, str) else item
        if not isinstance(entries, Mapping):
            raise _refused(value)
        yield from entries.items()


def _refused(value: object) -> Invalid:
    hint = 'Give {"todo": true, "status": "done"} or ["todo", "status/done"].'
    return Invalid(f"{str(value)[:80]!r} is not a valid set of tags", hint=hint)


def _name_of(key: object) -> str:
    name = note.joined(note.bare_tag(key)) if isinstance(key, str) else ""
    if not name:
        raise _refused(key)
    return name


def tags_for_new_note(request: object) -> tuple[list[str], dict[str, Any]]:
    """The list of tags a new note gets, and the properties for values that cannot be part of a tag."""
    items, properties = list[Any](), dict[str, Any]()
    for key, value in parse_tag_request(request).items():
        if value is False:
            if key.lower() not in note.RESERVED_KEYS:
                properties[key] = False  # no tag says so; a property does
        elif value is not None:
            items, kept = _with_tag(items, _legal(key), value, {})
            properties |= {key: kept} if kept is not None else {}
    return items, properties


def _legal(name: str) -> str:
    """The name, when Obsidian would take it for a tag (obsidian.md §2)."""
    if all(name.split("/")) and not note.NOT_IN_TAG.search(name) and re.search(r"[^0-9/]", name):
        return name
    proposed = nearest_tag(name)
    hint = f"A tag consists of letters, digits, _, - and /, and is not only a number. Use {proposed!r}."
    raise Invalid(f"{name!r} is not a valid tag", hint=hint, proposed=proposed)


def nearest_tag(name: str) -> str:
    """The tag that is most like a name."""
    proposed = re.sub(r"/+", "/", note.NOT_IN_TAG.sub("-", name)).strip("-/")
    return proposed if re.search(r"[^0-9/]", proposed) else f"n{proposed}" if proposed else "tag"


def change_tags(text: str, changes: Mapping[str, TagValue]) -> str:
    """Set and remove tags in the header, in the notation the note has: a value takes the place of the key's others."""
    properties = read_header(text).properties
    tags = find_value(properties, "tags")
    is_map = isinstance(tags, Mapping)
    entries: dict[str, Any] = dict(tags) if is_map else {}
    items, gone = note.tag_items(tags), list[str]()
    for key, value in changes.items():
        name = _name_of(key)
        if value is None or (value is False and not is_map):
            gone.append(name)
            keys = {key for key, tag, _ in note.map_entries(entries) if _is_named(tag, name)}
            entries = {k: v for k, v in entries.items() if k not in keys and not _is_key(k, name)}
            items = [item for item in items if not _is_named(item, name)]
        elif is_map:
            spelled = next((k for k in entries if _is_key(k, name)), name)
            # In a map, `status/done` may be there as `status: done`.
            is_there = any(_is_tag(tag, name) for _, tag, _ in note.map_entries(entries))
            if value is not True or spelled in entries or not is_there:
                entries[spelled] = _typed_like(entries.get(spelled), value)
        else:
            items, kept = _with_tag(items, _legal(name), value, properties)
            text = text if kept is None else set_property(text, name, kept)
    if is_map:
        text = set_property(text, "tags", entries)
    elif items != note.tag_items(tags):
        is_text = isinstance(tags, str) and len(items) == 1 and len(note.tag_items(tags)) == 1
        text = set_property(
            text, "tags", items[0] if is_text else items
        )  # one text is one tag, and stays a text
    for (
        key
    ) in note.LEGACY_KEYS:  # what is asked away goes from these too, or it would still be found
        old = find_value(properties, key)
        left = [
            item for item in note.tag_items(old) if not any(_is_named(item, name) for name in gone)
        ]
        if left != note.tag_items(old):
            text = set_property(
                text, key, ", ".join(left) or None if isinstance(old, str) else left
            )
    return text


def _with_tag(
    items: list[Any], name: str, value: str | bool | float, properties: Mapping[str, Any]
) -> tuple[list[Any], Any]:
    """The items with this tag, and the value that is kept in a property of its name, None when the tag says it."""
    is_there = any(_is_tag(item, name) for item in items)
    if value is True:
        return items if is_there else [*items, name], None
    there = find_value(properties, name)
    nested = (
        None
        if is_there and note.kept_value(properties, name) is not None
        else note.nested_tag(name, value)
    )
    if nested is None and (
        name.lower() in note.RESERVED_KEYS or "/" in name or isinstance(there, (list, Mapping))
    ):
        message = f"the tag {name!r} cannot have the value {str(value)[:60]!r}: neither a tag nor a property can express it"
        raise Invalid(
            message, hint="Use only letters, digits, _ and - in the value, or another key."
        )
    wanted = nested or name
    # The first value there is gives up its place to the new one; the others of that key go.
    values = [
        at for at, item in enumerate(items) if _is_named(item, name) and not _is_tag(item, name)
    ]
    same = [at for at, item in enumerate(items) if _is_tag(item, wanted)]
    place = (same or values or [len(items)])[0]
    changed = [*items[:place], items[place] if same else wanted, *items[place + 1 :]]
    left = [item for at, item in enumerate(changed) if at == place or at not in values]
    return left, _typed_like(there, value) if nested is None else None


def _typed_like(there: Any, value: Any) -> Any:
    """A number stays a number: values arrive as text, and Obsidian gives every property one type."""
    number = core_value(value) if isinstance(value, str) else value
    is_number = (
        isinstance(number, (int, float))
        and isinstance(there, (int, float))
        and not isinstance(there, bool)
    )
    return number if is_number else value
