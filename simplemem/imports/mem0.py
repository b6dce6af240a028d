"""Memories of mem0 and OpenMemory: the JSON of `get_all`, or an export, which may be in a zip."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from simplemem.errors import Unreadable
from simplemem.imports.archive import members
from simplemem.imports.take import Item, Left, note, title_of, wall_time


def read(file: Path) -> Iterator[Item | Left]:
    """A note for each memory."""
    try:
        data = json.loads(_text(file))
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"{file} is not JSON: {error}", hint="Export as JSON.") from error
    names = dict[str, str]()  # of categories and programs, by their ids
    if isinstance(data, dict):
        named = (each for key in ("categories", "apps") if isinstance(data.get(key), list) for each in data[key])
        names = {str(each.get("id")): str(each.get("name")) for each in named if isinstance(each, dict)}
        data = next((data[key] for key in ("results", "memories", "items") if key in data), [data])
    for number, row in enumerate(data if isinstance(data, list) else [data], 1):
        yield _note(row, f"memory {number}", names)


def _text(file: Path) -> bytes:
    if not zipfile.is_zipfile(file):
        return file.read_bytes()
    with members(file) as every:
        data = next((each.data() for each in every if each.path.rpartition("/")[2] == "memories.json"), None)
    if isinstance(data, bytes):
        return data
    raise Unreadable(f"{file} has no memories.json" if data is None else f"{file}: {data.why}", hint="Export it again.")


def _note(row: Any, where: str, names: Mapping[str, str]) -> Item | Left:
    match row:
        case {"id": str() | int() as id_, "memory": str(text)} | {"id": str() | int() as id_, "content": str(text)}:
            pass
        case _:
            return Left(where, "it has no id, or no text in `memory`")
    if not text.strip() or row.get("state") == "deleted":
        return Left(where, "its text is empty" if not text.strip() else "it was deleted there")
    more: dict[str, Any] = row["metadata"] if isinstance(row.get("metadata"), dict) else {}
    told: dict[str, Any] = {key: value for key, value in more.items() if isinstance(value, (str, int, float)) and key}
    told |= {key: row[key] for key in ("user_id", "agent_id", "run_id") if isinstance(row.get(key), str)}
    if isinstance(row.get("app_id"), str):
        told["app"] = names.get(row["app_id"], row["app_id"])
    told |= {"created": wall_time(row.get("created_at")), "modified": wall_time(row.get("updated_at"))}
    tags = _texts(row, "categories") + _texts(row, "category_ids") + _texts(more, "tags")
    tags = [names.get(each, each) for each in tags]
    return note(where, f"{title_of(text)}.md", text, f"mem0:{id_}", {**told, "tags": tags})


def _texts(row: dict[str, Any], key: str) -> list[str]:
    texts = row.get(key)
    return [each for each in texts if isinstance(each, str)] if isinstance(texts, list) else []
