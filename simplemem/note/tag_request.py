"""Tags as callers write them: a map, a list, a line of text, or any of these as JSON. Pure; forgiving on purpose.

Whatever the notation, it becomes one map from the tag to its value: `true` for the tag alone, null or false for its removal.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from simplemem.errors import Invalid

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
