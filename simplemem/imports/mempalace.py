"""A palace of MemPalace as it lies on disk: ChromaDB's SQLite file. Chunks of one file become one note."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

from simplemem.errors import Unreadable
from simplemem.imports.take import Item, Left, note, title_of, wall_time

_LEAST_SHARED, _MOST_SHARED = 20, 1000  # characters of two chunks that lie side by side
_DRAWERS = """
    SELECT e.embedding_id, m.key, coalesce(m.string_value, m.int_value, m.float_value, m.bool_value)
    FROM collections c JOIN segments s ON s.collection = c.id AND s.scope = 'METADATA'
    JOIN embeddings e ON e.segment_id = s.id JOIN embedding_metadata m ON m.id = e.id
    WHERE c.name = 'mempalace_drawers' ORDER BY e.id"""


def read(palace: Path) -> Iterator[Item | Left]:
    """A note for each file whose chunks are kept, and for each drawer of its own."""
    file = palace / "chroma.sqlite3" if palace.is_dir() else palace
    if not file.is_file():
        raise Unreadable(f"{palace} is no palace of MemPalace", hint="It has a chroma.sqlite3: ~/.mempalace/palace.")
    drawers = defaultdict[str, dict[str, Any]](dict)
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as db:
            for drawer, key, value in db.execute(_DRAWERS):
                drawers[drawer][key] = value
    except sqlite3.Error as error:
        raise Unreadable(f"{file} cannot be read: {error}", hint="MemPalace may be at work on it.") from error
    notes = defaultdict[tuple[str, ...], list[dict[str, Any]]](list)
    for drawer, said in drawers.items():
        if said.get("ingest_mode") == "registry":  # of files that were looked at, not a memory
            continue
        of_file = tuple(str(said.get(key) or "") for key in ("source_file", "wing", "room"))
        part_of = said.get("parent_drawer_id") or said.get("parent_entry_id") or drawer
        notes[of_file if of_file[0] else (str(part_of),)].append(said)
    for whose, some in notes.items():
        some.sort(key=lambda said: (_number(said.get("chunk_index")), str(said.get("timestamp") or "")))
        yield _note("/".join(filter(None, whose[1:] + whose[:1])), some)


def _number(said: Any) -> int:
    return said if isinstance(said, int) else 0


def _note(whose: str, drawers: list[dict[str, Any]]) -> Item | Left:
    texts = [text for each in drawers if isinstance(text := each.get("chroma:document"), str) and text.strip()]
    if not texts:
        return Left(whose, "it has no text")
    first = drawers[0]
    wing, room, file = (str(first.get(key) or "") for key in ("wing", "room", "source_file"))
    name = file.replace("\\", "/").rpartition("/")[2].rpartition(".")[0] if file else title_of(texts[0])
    folder = "/".join(part.replace("/", "-") for part in (wing, room) if part)
    told = {"wing": wing, "room": room, "file": file, "modified": wall_time(first.get("last_modified"))}
    told["created"] = wall_time(first.get("authored_at") or first.get("filed_at"))
    text = _joined(texts) if file else "".join(texts)
    return note(whose, f"{folder}/{name or title_of(texts[0])}.md", text, f"mempalace:{whose}", told)


def _joined(chunks: list[str]) -> str:
    """A file's text of its chunks, each of which may begin with how the one before it ends."""
    parts = chunks[:1]
    for before, chunk in pairwise(chunks):
        most = min(len(before), len(chunk), _MOST_SHARED)
        shared = next((size for size in range(most, _LEAST_SHARED, -1) if before.endswith(chunk[:size])), 0)
        parts.append(chunk[shared:] if shared else f"\n\n{chunk}")
    return "".join(parts)
