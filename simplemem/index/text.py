"""What the index takes in of a note's text: its facts, made in one place, and their rows, whole and block by block."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from simplemem.index.door import Stat
from simplemem.index.engine import Connection
from simplemem.index.notes import Rows, vector_space
from simplemem.index.places import BLOCK, SHIFT
from simplemem.index.terms.tokens import NoteTokens, TextTokens, tokenize
from simplemem.index.terms.writer import remove_note
from simplemem.note.code_names import parts_of_names
from simplemem.note.dates import file_time, sortable_time
from simplemem.note.fingerprints import text_hash, text_key
from simplemem.note.languages import language_of
from simplemem.note.names import base_name
from simplemem.note.note import Note
from simplemem.note.passages import cut_passages
from simplemem.note.sections import heading_paths
from simplemem.note.stems import MARKS, stems_of
from simplemem.note.words import searchable

_ID_LINE = re.compile(
    r"^[ \t>]*+\^[A-Za-z0-9-]+[ \t\r]*+(?:\n|\Z)", re.MULTILINE
)  # it names a block and says nothing
_KEY_BITS = (1 << 64) - 1
_MOST_CHARACTERS = 40_000_000  # of texts that wait for their vectors in memory
_PUT_PLACE = (
    "INSERT INTO places (id, start, stop, line, headings, hash) VALUES ($1, $2, $3, $4, $5, $6)"
)


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


class Understood(NamedTuple):
    """A note file that was read and understood, ready to be put."""

    path: str
    note: Note
    stat: Stat
    head: Head
    passages: tuple[Unit, ...]
    blocks: tuple[Unit, ...]
    language: str  # of its stems; "" for English and what cannot be told


def understood(path: str, note: Note, stat: Stat) -> Understood:
    """The facts of the note at `path`. A header that cannot be read is part of the text."""
    head, text = head_of(path, note, stat.mtime_ns), note.text
    paths, cut = heading_paths(note.body), cut_passages(text, note.body)
    passages = tuple(
        Unit(a, b, line, "passage", headings, text[a:b]) for a, b, line, headings in cut
    )
    blocks = tuple(
        Unit(a, b, line, kind, paths[above], text[a:b])
        for kind, a, b, line, above in note.body.blocks
    )
    if note.header.style == "broken" and note.header.body_start:
        header = Unit(0, note.header.body_start, 1, "header", (), text[: note.header.body_start])
        passages, blocks = (header, *passages), (header, *blocks)
    language = language_of(
        f"{head.title}\n{note.content}",
        note.text_property("lang") or note.text_property("language"),
    )
    return Understood(path, note, stat, head, passages[: BLOCK - 1], blocks[: BLOCK - 1], language)


def head_of(path: str, note: Note, mtime_ns: int) -> Head:
    """What a note says of itself. It changed last when its header says so, or its file where that is newer."""
    changed = file_time(mtime_ns)
    title, description, type_ = (
        note.text_property(key) or "" for key in ("title", "description", "type")
    )
    created, modified = (
        sortable_time(note.text_property(key)) or "" for key in ("created", "modified")
    )
    return Head(title or base_name(path), description, type_, created, max(modified, changed))


def units(note_id: int, read: Understood) -> Iterator[tuple[int, Unit, str]]:
    """Every passage and block under its id, in order, with the text of its vector: the heading, then the words. It is
    empty for headings, for ids, and for blocks that are a whole passage."""
    first, whole = note_id << SHIFT, {(passage.start, passage.stop) for passage in read.passages}
    for place, unit in chain(
        enumerate(read.passages, first), enumerate(read.blocks, first | BLOCK)
    ):
        is_wanted = unit.kind == "passage" or (
            unit.kind != "heading" and (unit.start, unit.stop) not in whole
        )
        words = _ID_LINE.sub("", unit.text) if is_wanted and "^" in unit.text else unit.text
        above = unit.headings[-1] if unit.headings else read.head.title
        yield place, unit, f"{above}\n{words}" if is_wanted and words.strip() else ""


def put(
    rows: Rows, note_id: int, read: Understood, *, new: bool, private: bool = False
) -> list[tuple[int, str]]:
    """Keep a note's text rows in `rows`, with vectors whose text is the same; returns the places that need one."""
    db = rows.db
    vector_of_text: dict[bytes, bytes] = {}
    if not new:
        vector_of_text = _vectors_by_text(db, note_id)
        remove(db, note_id)
    every = list(units(note_id, read))
    texts = [(place, text, text_hash(text)) for place, _, text in every if text]
    hashes = {place: hash_ for place, _, hash_ in texts}
    quoted = json.encoder.encode_basestring
    above = {
        headings: f"[{', '.join(map(quoted, headings))}]"
        for headings in {unit.headings for _, unit, _ in every}
    }
    places = []
    for id_, unit, _ in every:
        places.append(
            (id_, unit.start, unit.stop, unit.line, above[unit.headings], hashes.get(id_))
        )
    rows.add(_PUT_PLACE, places)
    rows.add_words(_tokens_of(note_id, read))
    wanted = [] if private and vector_space(db).remote else texts
    rows.add_vectors(
        (place, vector_of_text[hash_]) for place, _, hash_ in wanted if hash_ in vector_of_text
    )
    missing = [(place, text) for place, text, hash_ in wanted if hash_ not in vector_of_text]
    if not missing:
        db.execute("UPDATE notes SET embedded = 1 WHERE id = $1", (note_id,)).fetchall()
    return missing


def _vectors_by_text(db: Connection, note_id: int) -> dict[bytes, bytes]:
    """Return the vectors of a note by the hashes of the texts that they are of."""
    sql = "SELECT id, hash FROM places WHERE id >= $1 AND id < $2 AND hash IS NOT NULL"
    hashes: dict[int, bytes] = dict(db.execute(sql, places_of_note(note_id)))
    vectors = db.vectors.read(list(hashes))
    return {hashes[place]: vector for place, vector in vectors.items()}


def _tokens_of(note_id: int, read: Understood) -> NoteTokens:
    """Return the tokens of a note. Its blocks hold its text; description and aliases are in no block."""
    name, title, language = base_name(read.path), read.head.title, read.language
    titles = title if title == name else f"{title}\n{name}"
    summary = "\n".join([read.head.description, *read.note.aliases]).strip()
    summary_tokens = _text_tokens(summary, language)
    if language in MARKS:  # by which a query finds the notes of a language
        extras = [*summary_tokens.extras, *tokenize(MARKS[language])]
        summary_tokens = TextTokens(summary_tokens.words, extras)
    return NoteTokens(
        note_id,
        _text_tokens(titles, language),
        summary_tokens,
        [_text_tokens(block.text, language) for block in read.blocks],
        [(text_key(block.text) or 0) & _KEY_BITS for block in read.blocks],
    )


def _text_tokens(text: str, language: str) -> TextTokens:
    """Return the tokens of a text: its words, then the parts of names in it, then its stems."""
    parts = parts_of_names(text)
    stems = stems_of(text, language) if language else ""
    words = tokenize(searchable(text))
    if not parts and not stems:
        return TextTokens(words)
    return TextTokens(words, tokenize(f"{parts}\n{stems}"))


def places_of_note(note_id: int) -> tuple[int, int]:
    """Return the first id of a note's places, and the first one after them."""
    return note_id << SHIFT, (note_id + 1) << SHIFT


def remove(db: Connection, note_id: int) -> None:
    """Forget a note's text and vectors."""
    remove_note(db, note_id)
    db.vectors.remove(note_id)
    sql = "DELETE FROM places WHERE id >= $1 AND id < $2"
    db.execute(sql, places_of_note(note_id)).fetchall()


class Waiting:
    """Texts that were just indexed and wait for their vectors, by note, so that no note is read twice."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._texts: dict[int, list[tuple[int, str]]] = {}
        self._characters = 0

    def keep(self, note_id: int, rows: list[tuple[int, str]]) -> None:
        """Remember a note's texts, if there is room."""
        size = sum(len(words) for _, words in rows)
        self.take(note_id)
        with self._lock:
            if rows and self._characters + size <= _MOST_CHARACTERS:
                self._texts[note_id] = rows
                self._characters += size

    def take(self, note_id: int) -> list[tuple[int, str]] | None:
        """A note's texts, once."""
        with self._lock:
            if (found := self._texts.pop(note_id, None)) is not None:
                self._characters -= sum(len(words) for _, words in found)
            return found
