"""Memories of mem0 and OpenMemory: the JSON of `get_all`, or an export, which may be in a zip."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from simplemem.errors import Invalid, SimplememError, Unreadable
from simplemem.imports.export import File, Item, Left, each, note, title_of, wall_time

_MOST_BYTES = 1_000_000_000


def read(files: Mapping[str, File]) -> Iterator[Item | Left]:
    """A note for each memory."""
    for path, file in files.items():
        try:
            data = json.loads(file.data(_MOST_BYTES))
        except (SimplememError, ValueError, RecursionError) as error:
            raise Unreadable(f"{path} is not JSON that can be read: {error}", hint="Export it again.") from error
        names = dict[str, str]()  # of categories and programs, by their ids
        if isinstance(data, dict):
            named = (row for key in ("categories", "apps") if isinstance(data.get(key), list) for row in data[key])
            names = {str(row.get("id")): str(row.get("name")) for row in named if isinstance(row, dict)}
            data = next((data[key] for key in ("results", "memories", "items") if key in data), [data])
        rows = enumerate(data if isinstance(data, list) else [data], 1)
        yield from each(((f"memory {number}", row) for number, row in rows), partial(_note, names))


def _note(names: Mapping[str, str], where: str, row: Any) -> Iterator[Item]:
    match row:
        case {"state": "deleted"}:
            raise Invalid("it was deleted there")
        case {"id": str() | int() as id_, "memory": str(text)} | {"id": str() | int() as id_, "content": str(text)}:
            if not text.strip():
                raise Invalid("its text is empty")
        case _:
            raise Invalid("it has no id, or no text in `memory`")
    more: dict[str, Any] = row["metadata"] if isinstance(row.get("metadata"), dict) else {}
    told: dict[str, Any] = {key: value for key, value in more.items() if isinstance(value, (str, int, float)) and key}
    told |= {key: row[key] for key in ("user_id", "agent_id", "run_id") if isinstance(row.get(key), str)}
    if isinstance(row.get("app_id"), str):
        told["app"] = names.get(row["app_id"], row["app_id"])
    told |= {"created": wall_time(row.get("created_at")), "modified": wall_time(row.get("updated_at"))}
    lists = (row.get("categories"), row.get("category_ids"), more.get("tags"))
    tags = [names.get(tag, tag) for some in lists if isinstance(some, list) for tag in some if isinstance(tag, str)]
    yield note(where, f"{title_of(text)}.md", text, f"mem0:{id_}", {**told, "tags": tags})
