"""Readers for programs that store memories as records.

They read the JSON of mem0 and OpenMemory (the result of `get_all` or an export), and a palace of
MemPalace, which is an SQLite file of ChromaDB with chunks of texts.
"""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from simplemem.errors import Invalid, SimplememError, Unreadable
from simplemem.importers.export import (
    ExportedFile,
    Item,
    Skipped,
    convert_records,
    local_time,
    make_note,
    title_of,
)

Record = dict[str, Any]
"""A memory of an export as JSON, or the metadata of a drawer by key."""
_MAX_FILE_BYTES = 1_000_000_000
# Characters that the end of a chunk and the beginning of the next one may have in common.
_MIN_OVERLAP = 20
_MAX_OVERLAP = 1000
_SELECT_DRAWERS = """
    SELECT
        e.embedding_id,
        json_group_object(
            m.key, coalesce(m.string_value, m.int_value, m.float_value, m.bool_value)
        )
    FROM collections c
    JOIN segments s ON s.collection = c.id AND s.scope = 'METADATA'
    JOIN embeddings e ON e.segment_id = s.id
    JOIN embedding_metadata m ON m.id = e.id
    WHERE c.name = 'mempalace_drawers'
    GROUP BY e.id
    ORDER BY e.id"""


def read_mem0(files: Mapping[str, ExportedFile]) -> Iterator[Item | Skipped]:
    """Yield a note for each memory of mem0 or OpenMemory.

    A memory that was deleted, or has no id or no text, is skipped. Raises Unreadable if a file is
    not JSON or is larger than 1 GB.
    """
    for path, file in files.items():
        try:
            data = json.loads(file.read(_MAX_FILE_BYTES))
            names = _names_by_id(data)
        except (SimplememError, ValueError, TypeError, RecursionError) as error:
            raise Unreadable(
                f"{path} is not valid JSON: {error}",
                hint="Export it again.",
            ) from error

        rows = _rows_of(data)
        records = [(f"memory {number}", row) for number, row in enumerate(rows, start=1)]
        convert = partial(_convert_memory, names)
        yield from convert_records(records, convert)


def _names_by_id(data: object) -> dict[str, str]:
    """Return the names of the categories and apps that an export of OpenMemory lists, by id.

    {} for any other data.
    """
    names: dict[str, str] = {}
    if not isinstance(data, dict):
        return names

    for key in ("categories", "apps"):
        for row in data.get(key) or ():
            if isinstance(row, dict):
                names[str(row.get("id"))] = str(row.get("name"))
    return names


def _rows_of(data: object) -> list[Any]:
    """Return the memories of a file.

    The file is a list, an object with a list in `results`, `memories` or `items`, or one memory.
    """
    if isinstance(data, dict):
        for key in ("results", "memories", "items"):
            if key in data:
                data = data[key]
                break
    if isinstance(data, list):
        return data
    return [data]


def _convert_memory(names: Mapping[str, str], origin: str, row: Any) -> Iterator[Item]:
    """Yield the note of a memory. `names` are those of categories and apps, by id.

    Raises Invalid if the memory was deleted, or has no id or no text.
    """
    memory_id, text = _read_id_and_text(row)
    properties = _read_properties(row, names)
    title = title_of(text)
    yield make_note(
        origin,
        f"{title}.md",
        text,
        source=f"mem0:{memory_id}",
        properties=properties,
    )


def _read_properties(row: Record, names: Mapping[str, str]) -> Record:
    """Return the properties of a memory: its metadata, user, agent, run, app, dates and tags.

    `names` are those of categories and apps, by id. A property that the memory does not state may
    be None.
    """
    metadata = row.get("metadata")
    if not isinstance(metadata, dict):
        metadata = {}

    properties: Record = {}
    for key, value in metadata.items():
        if key and isinstance(value, (str, int, float)):
            properties[key] = value
    for key in ("user_id", "agent_id", "run_id"):
        if isinstance(row.get(key), str):
            properties[key] = row[key]

    app_id = row.get("app_id")
    if isinstance(app_id, str):
        properties["app"] = names.get(app_id, app_id)
    properties["created"] = local_time(row.get("created_at"))
    properties["modified"] = local_time(row.get("updated_at"))

    categories = row.get("categories")
    category_ids = row.get("category_ids")
    tags = metadata.get("tags")
    properties["tags"] = _read_tags((categories, category_ids, tags), names)
    return properties


def _read_tags(tag_lists: Iterable[object], names: Mapping[str, str]) -> list[str]:
    """Return the tags of all values that are lists, with names in place of ids.

    Other values, and tags that are no texts, are left out.
    """
    tags: list[str] = []
    for tag_list in tag_lists:
        if not isinstance(tag_list, list):
            continue
        for tag in tag_list:
            if isinstance(tag, str):
                name = names.get(tag, tag)
                tags.append(name)
    return tags


def _read_id_and_text(row: object) -> tuple[str | int, str]:
    """Return the id and the text of a memory.

    Raises Invalid if it was deleted, or has no id or no text.
    """
    match row:
        case {"state": "deleted"}:
            raise Invalid("it was deleted in the other program")
        case {"id": str() | int() as memory_id, "memory": str(text)}:
            pass
        case {"id": str() | int() as memory_id, "content": str(text)}:
            pass
        case _:
            raise Invalid("it has no id, or no text in `memory` or `content`")

    if not text.strip():
        raise Invalid("its text is empty")
    return memory_id, text


def read_mempalace(files: Mapping[str, ExportedFile]) -> Iterator[Item | Skipped]:
    """Yield a note for each file that a palace contains, and for each drawer without a file.

    A palace is a file of SQLite on disk; files in archives are ignored. Notes without a text are
    skipped. Raises Unreadable if a palace cannot be read.
    """
    notes: dict[tuple[str, ...], list[Record]] = defaultdict(list)
    for file in files.values():
        if file.disk_path is None:
            continue
        palace = file.disk_path.absolute()
        for drawer_id, drawer in _read_drawers(palace):
            # An entry of the registry says that a file was looked at. It is no memory.
            if drawer.get("ingest_mode") != "registry":
                key = _note_key(drawer_id, drawer)
                notes[key].append(drawer)

    records = []
    for key, drawers in notes.items():
        parts = [part for part in key if part]
        origin = "/".join(parts)
        records.append((origin, drawers))
    yield from convert_records(records, _join_drawers)


def _read_drawers(palace: Path) -> list[tuple[str, Record]]:
    """Return the drawers of a palace with their ids.

    Raises Unreadable if SQLite cannot read the file.
    """
    drawers = []
    try:
        with closing(sqlite3.connect(f"{palace.as_uri()}?mode=ro", uri=True)) as db:
            for drawer_id, metadata in db.execute(_SELECT_DRAWERS):
                drawers.append((drawer_id, json.loads(metadata)))
    except sqlite3.Error as error:
        raise Unreadable(
            f"{palace} cannot be read: {error}",
            hint="Close MemPalace, which may be using it, and try again.",
        ) from error
    return drawers


def _note_key(drawer_id: str, drawer: Record) -> tuple[str, ...]:
    """Return what the drawers of one note have in common.

    It is their wing, room and file; for a drawer without a file, the id of its note's first drawer.
    """
    file = _text_in(drawer, "source_file")
    if file:
        wing = _text_in(drawer, "wing")
        room = _text_in(drawer, "room")
        return wing, room, file
    first_id = drawer.get("parent_drawer_id") or drawer.get("parent_entry_id") or drawer_id
    return (str(first_id),)


def _text_in(drawer: Record, key: str) -> str:
    """Return a value of a drawer as text, "" without one."""
    return str(drawer.get(key) or "")


def _join_drawers(origin: str, drawers: list[Record]) -> Iterator[Item]:
    """Yield the note of the drawers that belong together, in their order.

    Its path is made of the wing, the room, and the file's name or the text's title. Raises Invalid
    if the drawers have no text.
    """
    drawers = sorted(drawers, key=_drawer_order)
    texts = _texts_of(drawers)
    if not texts:
        raise Invalid("it has no text")

    first = drawers[0]
    wing = _text_in(first, "wing")
    room = _text_in(first, "room")
    file = _text_in(first, "source_file")
    properties = {
        "wing": wing,
        "room": room,
        "file": file,
        "modified": local_time(first.get("last_modified")),
        "created": local_time(first.get("authored_at") or first.get("filed_at")),
    }

    _, _, file_name = file.replace("\\", "/").rpartition("/")
    stem, _, _ = file_name.rpartition(".")
    name = stem or title_of(texts[0])
    folder = "/".join(part.replace("/", "-") for part in (wing, room) if part)
    text = "".join(texts)
    if file:
        text = _join_chunks(texts)
    yield make_note(
        origin,
        f"{folder}/{name}.md",
        text,
        source=f"mempalace:{origin}",
        properties=properties,
    )


def _texts_of(drawers: Iterable[Record]) -> list[str]:
    """Return the texts of the drawers that have one."""
    texts = []
    for drawer in drawers:
        text = drawer.get("chroma:document")
        if isinstance(text, str) and text.strip():
            texts.append(text)
    return texts


def _drawer_order(drawer: Record) -> tuple[int, str]:
    """Return the sort key of a drawer within its note: its number, then its time.

    Raises ValueError if the number is none.
    """
    chunk_index = int(drawer.get("chunk_index") or 0)
    return chunk_index, _text_in(drawer, "timestamp")


def _join_chunks(chunks: list[str]) -> str:
    """Return the text of a file from its chunks. Text that two chunks share occurs once.

    Chunks that share nothing are separated by an empty line.
    """
    parts = chunks[:1]
    for previous, chunk in pairwise(chunks):
        overlap = _overlap(previous, chunk)
        parts.append(chunk[overlap:] if overlap else f"\n\n{chunk}")
    return "".join(parts)


def _overlap(previous: str, chunk: str) -> int:
    """Return how many characters at the end of a chunk begin the next one; 0 for up to 20."""
    max_overlap = min(len(previous), len(chunk), _MAX_OVERLAP)
    for length in range(max_overlap, _MIN_OVERLAP, -1):
        if previous.endswith(chunk[:length]):
            return length
    return 0
