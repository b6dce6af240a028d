"""Parse a note into what the index stores of it: metadata, passages, blocks and a language.

This module only reads text. `text.py` and `notes.py` write the rows.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from simplemem.index.api import Stat
from simplemem.index.places import BLOCK
from simplemem.note.dates import file_time, sortable_time
from simplemem.note.names import base_name
from simplemem.note.note import Note
from simplemem.note.passages import cut_passages, heading_paths
from simplemem.note.words import language_of

_MAX_CHUNKS: Final = BLOCK - 1  # of either kind: the id of a chunk has no room for more


class Chunk(NamedTuple):
    """A passage or a block of a note: its kind, where it stands, and its text."""

    start: int
    stop: int
    line: int
    kind: str
    headings: tuple[str, ...]
    text: str


class NoteMetadata(NamedTuple):
    """The properties of a note that the index has columns for. Times are local and sortable."""

    title: str
    description: str
    type: str
    created: str
    modified: str


class ParsedNote(NamedTuple):
    """A note file that was read and parsed, ready to be stored in an index."""

    path: str
    note: Note
    stat: Stat
    metadata: NoteMetadata
    passages: tuple[Chunk, ...]
    blocks: tuple[Chunk, ...]
    language: str  # of its stems; "" for English, and if it is not clear


def parse_note(path: str, note: Note, stat: Stat) -> ParsedNote:
    """Return what the index stores of the note at `path`. Never raises.

    Frontmatter that cannot be read is part of the text, so that searches find it.
    """
    metadata = read_metadata(path, note, stat.mtime_ns)
    passages = _cut_into_passages(note)
    blocks = _cut_into_blocks(note)

    header_end = note.header.body_start
    if note.header.style == "broken" and header_end > 0:
        header = Chunk(0, header_end, 1, "header", (), note.text[:header_end])
        passages.insert(0, header)
        blocks.insert(0, header)

    return ParsedNote(
        path=path,
        note=note,
        stat=stat,
        metadata=metadata,
        passages=tuple(passages[:_MAX_CHUNKS]),
        blocks=tuple(blocks[:_MAX_CHUNKS]),
        language=_find_language(note, metadata.title),
    )


def read_metadata(path: str, note: Note, mtime_ns: int) -> NoteMetadata:
    """Return the metadata of a note, whose file was last changed at `mtime_ns`.

    The time of the last change is the later one of the property `modified` and the file's.
    """
    created = sortable_time(note.text_property("created")) or ""
    modified = sortable_time(note.text_property("modified")) or ""
    return NoteMetadata(
        title=note.text_property("title") or base_name(path),
        description=note.text_property("description") or "",
        type=note.text_property("type") or "",
        created=created,
        modified=max(modified, file_time(mtime_ns)),
    )


def _cut_into_passages(note: Note) -> list[Chunk]:
    text = note.text
    return [
        Chunk(start, end, line, "passage", headings, text[start:end])
        for start, end, line, headings in cut_passages(text, note.body)
    ]


def _cut_into_blocks(note: Note) -> list[Chunk]:
    text = note.text
    paths = heading_paths(note.body)
    return [
        Chunk(start, end, line, kind, paths[heading], text[start:end])
        for kind, start, end, line, heading in note.body.blocks
    ]


def _find_language(note: Note, title: str) -> str:
    declared = note.text_property("lang") or note.text_property("language")
    return language_of(f"{title}\n{note.content}", declared)
