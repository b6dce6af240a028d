"""What the index keeps of a note, made from the note in one place. Pure: no SQL, no disk.

Both the first indexing and every later one go through `facts_of`, so that an index after any sequence of changes equals
one built afresh.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any, NamedTuple

from simplemem.note.names import base_name, compare_key
from simplemem.note.note import Note
from simplemem.note.passages import cut_passages, heading_paths
from simplemem.note.tags import tag_pairs
from simplemem.note.words import language_of, parts_of_names, searchable, stems_of

SHIFT = 20  # an id of a passage or block is the note's id and a place
BLOCK = 1 << 19  # set in the places of blocks


class Unit(NamedTuple):
    """A passage or a block: where it stands, and its text."""

    start: int
    stop: int
    line: int
    kind: str
    headings: tuple[str, ...]
    text: str


class Head(NamedTuple):
    """What a note says of itself."""

    title: str
    description: str
    type: str
    created: str
    modified: str


class Facts(NamedTuple):
    """One note as rows."""

    title: str
    description: str
    type: str
    created: str
    modified: str
    words: int
    summary: str  # what is searched with the whole note but stands in no passage: description and aliases
    passages: tuple[Unit, ...]
    blocks: tuple[Unit, ...]
    language: str  # of its stems; "" for English and what cannot be told


def facts_of(path: str, note: Note, mtime_ns: int) -> Facts:
    """The facts of the note at `path`. A header that cannot be read is part of the text (DESIGN §1.2)."""
    head = head_of(path, note, mtime_ns)
    text, content = note.text, note.content
    passages = tuple(
        Unit(start, end, line, "passage", headings, text[start:end])
        for start, end, line, headings in cut_passages(text, note.body)
    )
    paths = heading_paths(note.body)
    blocks = tuple(
        Unit(start, end, line, kind, paths[heading], text[start:end])
        for kind, start, end, line, heading in note.body.blocks
    )
    if note.header.style == "broken" and note.header.body_start:
        header = Unit(0, note.header.body_start, 1, "header", (), text[: note.header.body_start])
        passages, blocks = (header, *passages), (header, *blocks)
    return Facts(
        *head,
        words=len(content.split()),
        summary="\n".join([head.description, *note.aliases]).strip(),
        passages=passages,
        blocks=blocks,
        language=language_of(f"{head.title}\n{content}", note.string("lang") or note.string("language")),
    )


def head_of(path: str, note: Note, mtime_ns: int) -> Head:
    """What the note at `path` says of itself: cheaper than all its facts."""
    return Head(
        title=note.string("title") or base_name(path),
        description=note.string("description") or "",
        type=note.string("type") or "",
        created=instant(note.string("created")) or "",
        modified=modified_of(note, mtime_ns),
    )


def modified_of(note: Note, mtime_ns: int) -> str:
    """When the note last changed: what its header says, or its file where that is newer."""
    return max(instant(note.string("modified")) or "", local_time(mtime_ns))


def local_time(ns: int) -> str:
    """A file time as notes write times: local, to the second, without an offset."""
    try:
        return datetime.fromtimestamp(ns / 1e9).isoformat(timespec="seconds")  # noqa: DTZ006  (local on purpose)
    except (OverflowError, OSError, ValueError):
        return "1970-01-01T00:00:00"


def instant(text: str | None) -> str | None:
    """A date or time as a note has it, in the form that sorts: `2026-01-24T12:00:00`. None for anything else."""
    if not text or len(text) > 40:
        return None
    try:
        found = datetime.fromisoformat(text.strip().replace(" ", "T", 1))
    except ValueError:
        return None
    if found.tzinfo is not None:
        try:
            found = found.astimezone(UTC).astimezone().replace(tzinfo=None)
        except (OverflowError, OSError, ValueError):
            return None
    return found.isoformat(timespec="seconds") if found.year >= 1000 else None


def embedded_text(title: str, unit: Unit) -> str:
    """What a vector is made of: where a passage stands (its own heading, else the title), then its words."""
    return (unit.headings[-1] if unit.headings else title) + "\n" + unit.text


def property_rows(note: Note) -> list[tuple[str, str]]:
    """The header as (key, JSON value)."""
    return [(str(key), as_json(value)) for key, value in note.header.properties.items()]


def as_json(value: Any) -> str:
    if type(value) is str:  # nearly all are, and the encoder's own way there is long
        return json.encoder.encode_basestring(value)
    return json.dumps(value, ensure_ascii=False, default=str, allow_nan=True)


def pair_rows(note: Note) -> list[tuple[str, str]]:
    """The (key, value) rows a tag filter asks for, once each."""
    pairs = tag_pairs(note.tags, note.header.properties)
    return list(dict.fromkeys((key, compare_key(value)) for key, value in pairs))


# -- passages and blocks, under the ids they are stored with


def places(note_id: int, facts: Facts) -> list[tuple[int, Unit]]:
    """Every passage and block of a note under its id, in the order they are stored."""
    first = note_id << SHIFT
    kept = [(first | k, unit) for k, unit in enumerate(facts.passages[: BLOCK - 1])]
    return kept + [(first | BLOCK | k, unit) for k, unit in enumerate(facts.blocks[: BLOCK - 1])]


def to_embed(note_id: int, facts: Facts) -> list[tuple[int, str]]:
    """The places of a note that get a vector, and what it is made of: passages, and blocks but for headings and those
    that are a whole passage (they would say it twice; docs/search.md)."""
    return placed_to_embed(places(note_id, facts), facts)


def placed_to_embed(placed: list[tuple[int, Unit]], facts: Facts) -> list[tuple[int, str]]:
    whole = {(passage.start, passage.stop) for passage in facts.passages}
    return [
        (id_, embedded_text(facts.title, unit))
        for id_, unit in placed
        if not id_ & BLOCK or (unit.kind != "heading" and (unit.start, unit.stop) not in whole)
    ]


def as_indexed(text: str, language: str, *, names: bool = True) -> str:
    """A text as the index takes it in: its words, then the parts of the names in it (`names`: there may be some) and its
    stems. What is added stands behind the text, so that neighbours in the text stay neighbours."""
    parts = parts_of_names(text) if names else ""
    if not parts and not language:
        return searchable(text)
    return "\n".join([searchable(text), parts, stems_of(text, language) if language else "", ""])


def titles(path: str, facts: Facts) -> str:
    """The title, and the file name where it is another."""
    name = base_name(path)
    return facts.title if facts.title == name else f"{facts.title}\n{name}"
