"""A palace of MemPalace as it lies on disk: ChromaDB's SQLite file. Chunks of one file become one note."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import closing
from itertools import pairwise
from typing import Any

from simplemem.errors import Invalid, Unreadable
from simplemem.imports.export import File, Item, Left, each, note, title_of, wall_time

_LEAST_SHARED, _MOST_SHARED = 20, 1000  # characters of two chunks that lie side by side
_DRAWERS = """
    SELECT e.embedding_id,
           json_group_object(m.key, coalesce(m.string_value, m.int_value, m.float_value, m.bool_value))
    FROM collections c JOIN segments s ON s.collection = c.id AND s.scope = 'METADATA'
    JOIN embeddings e ON e.segment_id = s.id JOIN embedding_metadata m ON m.id = e.id
    WHERE c.name = 'mempalace_drawers' GROUP BY e.id ORDER BY e.id"""


def read(files: Mapping[str, File]) -> Iterator[Item | Left]:
    """A note for each file whose chunks are kept, and for each drawer of its own."""
    notes = defaultdict[tuple[str, ...], list[dict[str, Any]]](list)
    for palace in (file.real.absolute() for file in files.values() if file.real):
        try:
            with closing(sqlite3.connect(f"{palace.as_uri()}?mode=ro", uri=True)) as db:
                drawers = [(drawer, json.loads(said)) for drawer, said in db.execute(_DRAWERS)]
        except sqlite3.Error as error:
            raise Unreadable(f"{palace} cannot be read: {error}", hint="MemPalace may be at work on it.") from error
        for drawer, said in drawers:
            of_file = tuple(str(said.get(key) or "") for key in ("wing", "room", "source_file"))
            part_of = said.get("parent_drawer_id") or said.get("parent_entry_id") or drawer
            if said.get("ingest_mode") != "registry":  # of files that were looked at, not a memory
                notes[of_file if of_file[2] else (str(part_of),)].append(said)
    yield from each((("/".join(filter(None, whose)), some) for whose, some in notes.items()), _note)


def _note(whose: str, drawers: list[dict[str, Any]]) -> Iterator[Item]:
    drawers.sort(key=lambda said: (int(said.get("chunk_index") or 0), str(said.get("timestamp") or "")))
    texts = [text for said in drawers if isinstance(text := said.get("chroma:document"), str) and text.strip()]
    if not texts:
        raise Invalid("it has no text")
    first = drawers[0]
    wing, room, file = (str(first.get(key) or "") for key in ("wing", "room", "source_file"))
    name = file.replace("\\", "/").rpartition("/")[2].rpartition(".")[0] or title_of(texts[0])
    folder = "/".join(part.replace("/", "-") for part in (wing, room) if part)
    told = {"wing": wing, "room": room, "file": file, "modified": wall_time(first.get("last_modified"))}
    told["created"] = wall_time(first.get("authored_at") or first.get("filed_at"))
    text = _joined(texts) if file else "".join(texts)
    yield note(whose, f"{folder}/{name}.md", text, f"mempalace:{whose}", told)


def _joined(chunks: list[str]) -> str:
    """A file's text of its chunks, each of which may begin with how the one before it ends."""
    parts = chunks[:1]
    for before, chunk in pairwise(chunks):
        most = min(len(before), len(chunk), _MOST_SHARED)
        shared = next((size for size in range(most, _LEAST_SHARED, -1) if before.endswith(chunk[:size])), 0)
        parts.append(chunk[shared:] if shared else f"\n\n{chunk}")
    return "".join(parts)
