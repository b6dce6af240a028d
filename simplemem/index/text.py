"""The rows of a note's text: the places of its chunks, its tokens, and the vectors that stay.

A chunk is a passage or a block. docs/internals/term-index.md describes the tokens.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final, NamedTuple

from simplemem.index.engine import Connection
from simplemem.index.notes import Rows, vector_space
from simplemem.index.parsed_note import Chunk, ParsedNote
from simplemem.index.places import BLOCK, SHIFT
from simplemem.index.terms.tokens import NoteTokens, TextTokens, tokenize
from simplemem.index.terms.writer import remove_note
from simplemem.note.names import base_name
from simplemem.note.passages import text_hash, text_key
from simplemem.note.stems import MARKS, stems_of
from simplemem.note.words import parts_of_names, searchable

# A line that only names a block by its id is no text of the block.
_ID_LINE: Final = re.compile(r"^[ \t>]*+\^[A-Za-z0-9-]+[ \t\r]*+(?:\n|\Z)", re.MULTILINE)
_KEY_BITS: Final = (1 << 64) - 1
_INSERT_PLACE: Final = """
    INSERT INTO places (id, start, stop, line, headings, hash)
    VALUES ($1, $2, $3, $4, $5, $6)
"""


class EmbeddedChunk(NamedTuple):
    """A chunk under its id, and the text of its vector; "" if it gets no vector."""

    chunk_id: int
    chunk: Chunk
    text: str


class _HashedText(NamedTuple):
    """The text of a vector, with the id of its chunk and the hash by which it is recognised."""

    chunk_id: int
    text: str
    digest: bytes


def embedded_chunks(note_id: int, parsed: ParsedNote) -> Iterator[EmbeddedChunk]:
    """Yield every passage, then every block of a note, with the texts of their vectors.

    Such a text is the heading above the chunk and the text of the chunk. Headings, ids of blocks
    and blocks that are a whole passage get no vector.
    """
    first_id = note_id << SHIFT
    passage_spans = {(passage.start, passage.stop) for passage in parsed.passages}
    chunks = chain(
        enumerate(parsed.passages, first_id),
        enumerate(parsed.blocks, first_id | BLOCK),
    )
    for chunk_id, chunk in chunks:
        text = ""
        is_passage = chunk.kind == "passage"
        if is_passage or (
            chunk.kind != "heading" and (chunk.start, chunk.stop) not in passage_spans
        ):
            text = _text_to_embed(chunk, parsed.metadata.title)
        yield EmbeddedChunk(chunk_id, chunk, text)


def _text_to_embed(chunk: Chunk, title: str) -> str:
    """Return the text of a chunk below its heading, or below the title; "" if it has no text."""
    text = chunk.text
    if "^" in text:
        text = _ID_LINE.sub("", text)
    if not text.strip():
        return ""
    heading = chunk.headings[-1] if chunk.headings else title
    return f"{heading}\n{text}"


def put_text(
    rows: Rows, note_id: int, parsed: ParsedNote, *, new: bool, private: bool = False
) -> list[tuple[int, str]]:
    """Add the text rows of a note to `rows`, in place of those that it has unless it is `new`.

    Vectors whose text has not changed stay. Returns the ids and texts of the chunks that need a
    vector. No text of a private note is returned if a remote service computes the vectors.
    """
    db = rows.db
    old_vectors: dict[bytes, bytes] = {}
    if not new:
        old_vectors = _vectors_by_text(db, note_id)
        remove_text(db, note_id)

    chunks = list(embedded_chunks(note_id, parsed))
    texts = [_HashedText(chunk_id, text, text_hash(text)) for chunk_id, _, text in chunks if text]
    rows.add(_INSERT_PLACE, _place_rows(chunks, texts))
    rows.add_words(_note_tokens(note_id, parsed))

    if private and vector_space(db).remote:
        texts = []
    rows.add_vectors(
        (chunk_id, old_vectors[digest]) for chunk_id, _, digest in texts if digest in old_vectors
    )

    missing = [(chunk_id, text) for chunk_id, text, digest in texts if digest not in old_vectors]
    if not missing:
        db.execute("UPDATE notes SET embedded = 1 WHERE id = $1", (note_id,)).fetchall()
    return missing


def _place_rows(
    chunks: Sequence[EmbeddedChunk], texts: Iterable[_HashedText]
) -> list[tuple[object, ...]]:
    """Return the rows of the table `places`, in which headings are a JSON list."""
    digests = {text.chunk_id: text.digest for text in texts}
    quote = json.encoder.encode_basestring
    headings_as_json = {
        headings: f"[{', '.join(map(quote, headings))}]"
        for headings in {chunk.headings for _, chunk, _ in chunks}
    }
    return [
        (
            chunk_id,
            chunk.start,
            chunk.stop,
            chunk.line,
            headings_as_json[chunk.headings],
            digests.get(chunk_id),
        )
        for chunk_id, chunk, _ in chunks
    ]


def _vectors_by_text(db: Connection, note_id: int) -> dict[bytes, bytes]:
    """Return the vectors of a note by the hashes of their texts."""
    sql = "SELECT id, hash FROM places WHERE id >= $1 AND id < $2 AND hash IS NOT NULL"
    digests: dict[int, bytes] = dict(db.execute(sql, chunk_ids_of_note(note_id)))
    vectors = db.vectors.read(list(digests))
    return {digests[chunk_id]: vector for chunk_id, vector in vectors.items()}


def _note_tokens(note_id: int, parsed: ParsedNote) -> NoteTokens:
    """Return the tokens of a note. Its title, description and aliases are in no block."""
    name = base_name(parsed.path)
    title = parsed.metadata.title
    titles = title if title == name else f"{title}\n{name}"
    language = parsed.language
    return NoteTokens(
        note_id,
        _text_tokens(titles, language),
        _summary_tokens(parsed),
        [_text_tokens(block.text, language) for block in parsed.blocks],
        [(text_key(block.text) or 0) & _KEY_BITS for block in parsed.blocks],
    )


def _summary_tokens(parsed: ParsedNote) -> TextTokens:
    """Return the tokens of the description and the aliases, and the mark of the language.

    By the mark, a query finds out which languages the notes are in.
    """
    lines = [parsed.metadata.description, *parsed.note.aliases]
    tokens = _text_tokens("\n".join(lines).strip(), parsed.language)
    mark = MARKS.get(parsed.language)
    if mark is None:
        return tokens
    return TextTokens(tokens.words, [*tokens.extras, *tokenize(mark)])


def _text_tokens(text: str, language: str) -> TextTokens:
    """Return the tokens of a text: its words, then the parts of names in it, then its stems."""
    parts = parts_of_names(text)
    stems = stems_of(text, language) if language else ""
    words = tokenize(searchable(text))
    if not parts and not stems:
        return TextTokens(words)
    return TextTokens(words, tokenize(f"{parts}\n{stems}"))


def chunk_ids_of_note(note_id: int) -> tuple[int, int]:
    """Return the first id that a chunk of a note can have, and the first id of the next note."""
    return note_id << SHIFT, (note_id + 1) << SHIFT


def remove_text(db: Connection, note_id: int) -> None:
    """Delete the places, tokens and vectors of a note."""
    remove_note(db, note_id)
    db.vectors.remove(note_id)
    sql = "DELETE FROM places WHERE id >= $1 AND id < $2"
    db.execute(sql, chunk_ids_of_note(note_id)).fetchall()
