"""Memories of programs that keep them as records: mem0's and OpenMemory's JSON, the result of `get_all` or an export; and a
palace of MemPalace as it lies on disk, ChromaDB's SQLite file, where chunks of one file become one note."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import closing
from functools import partial
from itertools import pairwise
from typing import Any

from simplemem.errors import Invalid, SimplememError, Unreadable
from simplemem.importers.export import ExportedFile, Item, Left, each, note, title_of, wall_time

_MOST_BYTES = 1_000_000_000
_LEAST_SHARED, _MOST_SHARED = 20, 1000  # characters of two chunks that lie side by side
_DRAWERS = """
    SELECT e.embedding_id,
           json_group_object(m.key, coalesce(m.string_value, m.int_value, m.float_value, m.bool_value))
    FROM collections c JOIN segments s ON s.collection = c.id AND s.scope = 'METADATA'
    JOIN embeddings e ON e.segment_id = s.id JOIN embedding_metadata m ON m.id = e.id
    WHERE c.name = 'mempalace_drawers' GROUP BY e.id ORDER BY e.id"""


def read_mem0(files: Mapping[str, ExportedFile]) -> Iterator[Item | Left]:
    """A note for each memory."""
    for path, file in files.items():
        try:
            data = json.loads(file.data(_MOST_BYTES))
            whole = data if isinstance(data, dict) else {"results": data}
            named = [
                row
                for key in ("categories", "apps")
                for row in whole.get(key) or ()
                if isinstance(row, dict)
            ]
        except (SimplememError, ValueError, TypeError, RecursionError) as error:
            raise Unreadable(
                f"{path} is not valid JSON: {error}", hint="Export it again."
            ) from error
        names = {
            str(row.get("id")): str(row.get("name")) for row in named
        }  # of categories and programs
        rows = next((whole[key] for key in ("results", "memories", "items") if key in whole), whole)
        records = enumerate(rows if isinstance(rows, list) else [rows], 1)
        yield from each(
            ((f"memory {number}", row) for number, row in records), partial(_memory, names)
        )


def _memory(names: Mapping[str, str], where: str, row: Any) -> Iterator[Item]:
    match row:
        case {"state": "deleted"}:
            raise Invalid("it was deleted in the other program")
        case {"id": str() | int() as id_, "memory": str(text)} | {
            "id": str() | int() as id_,
            "content": str(text),
        }:
            if not text.strip():
                raise Invalid("its text is empty")
        case _:
            raise Invalid("it has no id, or no text in `memory` or `content`")
    more: dict[str, Any] = row["metadata"] if isinstance(row.get("metadata"), dict) else {}
    told: dict[str, Any] = {
        key: value for key, value in more.items() if isinstance(value, (str, int, float)) and key
    }
    told |= {
        key: row[key] for key in ("user_id", "agent_id", "run_id") if isinstance(row.get(key), str)
    }
    if isinstance(row.get("app_id"), str):
        told["app"] = names.get(row["app_id"], row["app_id"])
    told |= {
        "created": wall_time(row.get("created_at")),
        "modified": wall_time(row.get("updated_at")),
    }
    lists = (row.get("categories"), row.get("category_ids"), more.get("tags"))
    tags = [
        names.get(tag, tag)
        for some in lists
        if isinstance(some, list)
        for tag in some
        if isinstance(tag, str)
    ]
    yield note(where, f"{title_of(text)}.md", text, f"mem0:{id_}", {**told, "tags": tags})


def read_mempalace(files: Mapping[str, ExportedFile]) -> Iterator[Item | Left]:
    """A note for each file whose chunks are kept, and for each drawer of its own."""
    notes = defaultdict[tuple[str, ...], list[dict[str, Any]]](list)
    for palace in (file.real.absolute() for file in files.values() if file.real):
        try:
            with closing(sqlite3.connect(f"{palace.as_uri()}?mode=ro", uri=True)) as db:
                drawers = [(drawer, json.loads(said)) for drawer, said in db.execute(_DRAWERS)]
        except sqlite3.Error as error:
            raise Unreadable(
                f"{palace} cannot be read: {error}",
                hint="Close MemPalace, which may be using it, and try again.",
            ) from error
        for drawer, said in drawers:
            of_file = tuple(str(said.get(key) or "") for key in ("wing", "room", "source_file"))
            part_of = said.get("parent_drawer_id") or said.get("parent_entry_id") or drawer
            if said.get("ingest_mode") != "registry":  # of files that were looked at, not a memory
                notes[of_file if of_file[2] else (str(part_of),)].append(said)
    yield from each(
        (("/".join(filter(None, whose)), some) for whose, some in notes.items()), _drawers
    )


def _drawers(whose: str, drawers: list[dict[str, Any]]) -> Iterator[Item]:
    drawers.sort(
        key=lambda said: (int(said.get("chunk_index") or 0), str(said.get("timestamp") or ""))
    )
    texts = [
        text
        for said in drawers
        if isinstance(text := said.get("chroma:document"), str) and text.strip()
    ]
    if not texts:
        raise Invalid("it has no text")
    first = drawers[0]
    wing, room, file = (str(first.get(key) or "") for key in ("wing", "room", "source_file"))
    name = file.replace("\\", "/").rpartition("/")[2].rpartition(".")[0] or title_of(texts[0])
    folder = "/".join(part.replace("/", "-") for part in (wing, room) if part)
    told = {
        "wing": wing,
        "room": room,
        "file": file,
        "modified": wall_time(first.get("last_modified")),
    }
    told["created"] = wall_time(first.get("authored_at") or first.get("filed_at"))
    text = _joined(texts) if file else "".join(texts)
    yield note(whose, f"{folder}/{name}.md", text, f"mempalace:{whose}", told)


def _joined(chunks: list[str]) -> str:
    """A file's text of its chunks, each of which may begin with how the one before it ends."""
    parts = chunks[:1]
    for before, chunk in pairwise(chunks):
        most = min(len(before), len(chunk), _MOST_SHARED)
        shared = next(
            (size for size in range(most, _LEAST_SHARED, -1) if before.endswith(chunk[:size])), 0
        )
        parts.append(chunk[shared:] if shared else f"\n\n{chunk}")
    return "".join(parts)
