"""Parse a note into what the index stores of it, and write its text.

A parsed note has metadata, passages, blocks and a language. Texts that lack their vectors wait in
an `EmbeddingQueue`.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final, NamedTuple

from simplemem.errors import SimplememError
from simplemem.index import changes, notes
from simplemem.index.api import Chunk, NoteMetadata, NoteRow, ParsedNote, Stat
from simplemem.index.engine import Connection, DatabaseRow, Engine, IntegerList
from simplemem.index.notes import PendingRows, stat_of, vector_space
from simplemem.index.places import BLOCK, SHIFT
from simplemem.index.terms.tokens import NoteTokens, TextTokens, tokenize
from simplemem.index.terms.writer import remove_note
from simplemem.note.dates import file_time, sortable_time
from simplemem.note.names import are_similar, base_name
from simplemem.note.note import Note, read_note
from simplemem.note.passages import cut_passages, heading_paths, text_hash, text_key
from simplemem.note.proposal import HIDDEN_REASON, PROPOSAL_TYPE
from simplemem.note.scopes import is_private_by_rule, private_reason
from simplemem.note.stems import MARKS, stems_of
from simplemem.note.words import language_of, parts_of_names, searchable
from simplemem.vault.source import NoteSource
from simplemem.vault.values import File

_MAX_CHUNKS: Final = BLOCK - 1  # of either kind: the id of a chunk has no room for more


# -- parsing


def parse_note(path: str, note: Note, stat: Stat) -> ParsedNote:
    """Return what the index stores of the note at `path`. Never raises, and reads no file.

    Frontmatter that cannot be parsed is part of the text, so that searches find it.
    """
    metadata = read_metadata(path, note, stat.mtime_ns)
    passages = _cut_into_passages(note)
    blocks = _cut_into_blocks(note)

    header_end = note.header.body_start
    if note.header.style == "broken" and header_end > 0:
        header = Chunk(
            start=0,
            stop=header_end,
            line=1,
            kind="header",
            headings=(),
            text=note.text[:header_end],
        )
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

    `modified` is the later one of the property and the time of the file. A note without a title has
    the name of its file.
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
    """Return the passages of a note in order, each of a size for one vector: see `cut_passages`."""
    text = note.text
    return [
        Chunk(
            start=start,
            stop=end,
            line=line,
            kind="passage",
            headings=headings,
            text=text[start:end],
        )
        for start, end, line, headings in cut_passages(text, note.body)
    ]


def _cut_into_blocks(note: Note) -> list[Chunk]:
    """Return the blocks of a note: paragraphs, headings, list items and the like."""
    text = note.text
    paths = heading_paths(note.body)
    return [
        Chunk(
            start=start,
            stop=end,
            line=line,
            kind=kind,
            headings=paths[heading],
            text=text[start:end],
        )
        for kind, start, end, line, heading in note.body.blocks
    ]


def _find_language(note: Note, title: str) -> str:
    """Return the language of a note's stems: the one it declares, else the one of its words.

    It is "" for English, and if the language is not clear.
    """
    declared = note.text_property("lang") or note.text_property("language")
    return language_of(f"{title}\n{note.content}", declared)


# -- texts

# A line that only names a block by its id is no text of the block.
_ID_LINE: Final = re.compile(r"^[ \t>]*+\^[A-Za-z0-9-]+[ \t\r]*+(?:\n|\Z)", re.MULTILINE)
_KEY_BITS: Final = (1 << 64) - 1
_INSERT_PLACE: Final = """
    INSERT INTO places (id, start, stop, line, headings, hash)
    VALUES ($1, $2, $3, $4, $5, $6)
"""


class EmbeddedChunk(NamedTuple):
    """A chunk with its id, and the text that is embedded for it; "" if it gets no vector."""

    chunk_id: int
    chunk: Chunk
    text: str


class _HashedText(NamedTuple):
    """The text of a vector, with the id of its chunk and the hash by which it is recognised."""

    chunk_id: int
    text: str
    digest: bytes


def embedded_chunks(note_id: int, parsed: ParsedNote) -> Iterator[EmbeddedChunk]:
    """Yield every passage, then every block of a note, with the text that is embedded for it.

    This text is the heading above the chunk and the text of the chunk. It is "" for chunks that get
    no vector: headings, ids of blocks, frontmatter that cannot be parsed, and blocks that are a
    whole passage.
    """
    first_id = note_id << SHIFT
    passage_spans = {(passage.start, passage.stop) for passage in parsed.passages}
    chunks = chain(
        enumerate(parsed.passages, first_id),
        enumerate(parsed.blocks, first_id | BLOCK),
    )
    for chunk_id, chunk in chunks:
        gets_vector = chunk.kind == "passage"
        if not gets_vector and chunk.kind != "heading":
            gets_vector = (chunk.start, chunk.stop) not in passage_spans

        text = ""
        if gets_vector:
            text = _text_to_embed(chunk, parsed.metadata.title)
        yield EmbeddedChunk(chunk_id, chunk, text)


def _text_to_embed(chunk: Chunk, title: str) -> str:
    """Return the text of a chunk below its heading, or below `title`; "" if it has no text."""
    text = chunk.text
    if "^" in text:
        text = _ID_LINE.sub("", text)
    if not text.strip():
        return ""
    heading = chunk.headings[-1] if chunk.headings else title
    return f"{heading}\n{text}"


def put_text(
    rows: PendingRows,
    note_id: int,
    parsed: ParsedNote,
    *,
    new: bool,
    private: bool = False,
) -> list[tuple[int, str]]:
    """Add a note's places, words and vectors to `rows`, in place of those it has.

    With `new`, the note has none yet. Vectors of texts that have not changed are kept. Returns the
    ids and texts of the chunks that lack a vector; if there are none, the note is marked as
    embedded. A `private` note loses all its vectors, and none of its texts are returned, if a
    remote service computes the vectors.
    """
    db = rows.db
    old_places: dict[int, DatabaseRow] = {}
    old_digests: dict[int, bytes] = {}
    if not new:
        old_places = _places_of(db, note_id)
        old_digests = {place: row[-1] for place, row in old_places.items() if row[-1] is not None}
        remove_note(db, note_id)  # its words; the new ones are added below

    chunks = list(embedded_chunks(note_id, parsed))
    texts = [_HashedText(chunk_id, text, text_hash(text)) for chunk_id, _, text in chunks if text]
    _replace_places(rows, old_places, _place_rows(chunks, texts))
    rows.add_words(_note_tokens(note_id, parsed))

    if private and vector_space(db).remote:
        texts = []
    missing = _replace_vectors(rows, old_digests, texts)
    if not missing:
        db.execute("UPDATE notes SET embedded = 1 WHERE id = $1", (note_id,)).fetchall()
    return missing


def _replace_vectors(
    rows: PendingRows,
    old_digests: Mapping[int, bytes],
    texts: Iterable[_HashedText],
) -> list[tuple[int, str]]:
    """Keep the stored vectors of a note that fit one of `texts`, and remove the others.

    `old_digests` has the hashes of the note's old texts by chunk id. A vector whose text is now in
    another chunk is added to `rows` for that chunk. Returns the ids and texts of the chunks that
    lack a vector.
    """
    stored = rows.db.vectors
    old_vectors: dict[int, bytes] = {}
    if old_digests:
        old_vectors = stored.read(list(old_digests))
    vector_of_text = {old_digests[chunk_id]: vector for chunk_id, vector in old_vectors.items()}

    vectors: dict[int, bytes] = {}
    missing: list[tuple[int, str]] = []
    for chunk_id, text, digest in texts:
        vector = vector_of_text.get(digest)
        if vector is None:
            missing.append((chunk_id, text))
        else:
            vectors[chunk_id] = vector

    stored.remove([chunk_id for chunk_id in old_vectors if chunk_id not in vectors])
    rows.add_vectors(
        (chunk_id, vector)
        for chunk_id, vector in vectors.items()
        if old_vectors.get(chunk_id) != vector
    )
    return missing


def _place_rows(chunks: Sequence[EmbeddedChunk], texts: Iterable[_HashedText]) -> list[DatabaseRow]:
    """Return the rows of the table `places` for chunks. A chunk that gets no vector has no hash."""
    digests = {text.chunk_id: text.digest for text in texts}
    # The chunks of a section share their headings, and this is faster than `json.dumps`.
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


def _places_of(db: Connection, note_id: int) -> dict[int, DatabaseRow]:
    """Return the rows of the table `places` that belong to a note, by place id."""
    sql = """
        SELECT id, start, stop, line, headings, hash FROM places
        WHERE id >= $1 AND id < $2"""
    return {row[0]: row for row in db.execute(sql, chunk_ids_of_note(note_id))}


def _replace_places(
    rows: PendingRows,
    old_rows: Mapping[int, DatabaseRow],
    new_rows: Sequence[DatabaseRow],
) -> None:
    """Replace the places of a note. Old rows that equal a new one stay.

    The other old rows are deleted now; the other new rows are added to `rows`.
    """
    changed_rows = [row for row in new_rows if old_rows.get(row[0]) != row]
    if old_rows:
        unchanged_ids = {row[0] for row in new_rows} - {row[0] for row in changed_rows}
        outdated = IntegerList(old_rows.keys() - unchanged_ids)
        sql = f"DELETE FROM places WHERE {rows.db.dialect.in_integers('id', '$1')}"
        rows.db.execute(sql, (outdated,)).fetchall()
    rows.add(_INSERT_PLACE, changed_rows)


def text_digests(db: Connection, note_id: int) -> dict[int, bytes]:
    """Return the hashes of a note's texts by place id, for the places that should have a vector."""
    sql = "SELECT id, hash FROM places WHERE id >= $1 AND id < $2 AND hash IS NOT NULL"
    return dict(db.execute(sql, chunk_ids_of_note(note_id)))


def _note_tokens(note_id: int, parsed: ParsedNote) -> NoteTokens:
    """Return the tokens of a note, as the term index stores them.

    The title and the file name are one text, the description and the aliases another. Neither text
    belongs to a block. Blocks that read the same have the same key; 0 is the key of a block without
    words.
    """
    name = base_name(parsed.path)
    title = parsed.metadata.title
    titles = title if title == name else f"{title}\n{name}"
    language = parsed.language
    block_tokens = []
    block_keys = []
    for block in parsed.blocks:
        key = text_key(block.text) or 0
        block_keys.append(key & _KEY_BITS)
        block_tokens.append(_text_tokens(block.text, language))

    title_tokens = _text_tokens(titles, language)
    summary_tokens = _summary_tokens(parsed)
    return NoteTokens(
        note_id,
        title_tokens,
        summary_tokens,
        block_tokens,
        block_keys,
    )


def _summary_tokens(parsed: ParsedNote) -> TextTokens:
    """Return the tokens of the description and the aliases, and a token that marks the language.

    By these marks, a search knows which languages the notes are in.
    """
    lines = [parsed.metadata.description, *parsed.note.aliases]
    tokens = _text_tokens("\n".join(lines).strip(), parsed.language)
    mark = MARKS.get(parsed.language)
    if mark is None:
        return tokens
    return TextTokens(tokens.words, [*tokens.extras, *tokenize(mark)])


def _text_tokens(text: str, language: str) -> TextTokens:
    """Return the tokens of a text: its words, and as extras the parts of names and the stems.

    `language` is that of the stems. With "", none are added; words have English stems anyway.
    """
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
    """Delete the places, words and vectors of a note. Its own row stays.

    For a write transaction.
    """
    db.vectors.remove(list(text_digests(db, note_id)))
    remove_note(db, note_id)
    sql = "DELETE FROM places WHERE id >= $1 AND id < $2"
    db.execute(sql, chunk_ids_of_note(note_id)).fetchall()


# -- texts that wait for vectors

_MAX_CHARACTERS: Final = 40_000_000  # of the texts in memory


class EmbeddingQueue:
    """Texts that wait for their vectors, by note, so that no note is read a second time.

    Several threads may use it. Guards the number of characters: a note whose texts have no room is
    left out, and its file is read again when its vectors are computed.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._texts: dict[int, list[tuple[int, str]]] = {}
        self._characters = 0

    def keep(self, note_id: int, texts: list[tuple[int, str]]) -> None:
        """Store the texts of a note, with the ids of their chunks. They replace earlier ones.

        If there is no room or no text, nothing is stored, and the earlier texts are removed.
        """
        size = sum(len(text) for _, text in texts)
        self.pop(note_id)
        with self._lock:
            has_room = self._characters + size <= _MAX_CHARACTERS
            if texts and has_room:
                self._texts[note_id] = texts
                self._characters += size

    def pop(self, note_id: int) -> list[tuple[int, str]] | None:
        """Remove and return the texts of a note, with the ids of their chunks; None without any."""
        with self._lock:
            texts = self._texts.pop(note_id, None)
            if texts is not None:
                self._characters -= sum(len(text) for _, text in texts)
            return texts


# -- single notes

# A conflict copy has the values of its note for these. A note with other values is no copy of it.
_IDENTITY_PROPERTIES = ("id", "created")

ReadOutcome = ParsedNote | Stat | SimplememError | OSError
"""The result of reading a file: the note, its stat if the index is up to date, or the error."""


@dataclass(slots=True)
class NoteIndexer:
    """Indexes the notes of one vault in one database.

    Guards the state that is not in the rows: the files that are not indexed, the texts that wait
    for vectors, and the notes that were given a new path before they are read again.
    """

    vault: NoteSource
    database: Engine
    hidden_reason: Callable[[str], str | None]  # why the settings hide the note at a path
    max_note_bytes: int
    private: Sequence[str] = ()  # the rules for notes that are not sent to remote services

    waiting: EmbeddingQueue | None = field(default_factory=EmbeddingQueue)  # None: no vectors
    skipped: dict[str, str] = field(default_factory=dict)  # files that are not indexed, and why
    moved_from: dict[str, str] = field(default_factory=dict)  # old paths, by the new ones
    unread: int | None = None  # notes that a long pass has yet to read, None before the first pass
    stop: threading.Event = field(default_factory=threading.Event)  # ends a pass after some notes

    # Read

    def read(
        self,
        path: str,
        row: NoteRow | None = None,
        read_file: Callable[[str], File] | None = None,
    ) -> ReadOutcome:
        """Read and parse the note at a path.

        `row` is what the index has of the note; with None, the note is always parsed. If the row
        has the same bytes and time and is not outdated, only the stat is returned. An error of
        reading is returned, not raised. `read_file` replaces the method of the vault.
        """
        read_file = read_file or self.vault.read
        try:
            file = read_file(path)
        except (SimplememError, OSError) as error:
            return error

        stat = stat_of(file.entry)
        if row is not None:
            is_same_file = row.sha256 == file.sha256 and row.mtime_ns == stat.mtime_ns
            if is_same_file and not self.has_outdated_rows(row):
                return stat
        return parse_note(path, read_note(file.data, file.sha256), stat)

    def has_outdated_rows(self, row: NoteRow) -> bool:
        """Return whether the rows of a note must be written again although its file is the same.

        They must if the note was moved, if the settings now hide it, show it or make it private or
        public, or if the log now says that it is no conflict copy. Each scan calls this per note.
        """
        if row.is_at_new_path:
            return True
        is_copy = row.is_copy
        if is_copy and self._is_named_by_us(row.path):
            return True

        is_by_contents = is_copy or row.hidden == HIDDEN_REASON
        reason_by_settings = None if is_by_contents else row.hidden
        if reason_by_settings != self.hidden_reason(row.path):
            return True

        was_private = row.private == "rule"
        is_private = bool(self.private) and is_private_by_rule(row.path, self.private)
        return was_private != is_private

    def _is_named_by_us(self, path: str) -> bool:
        """Return whether simplemem gave the note at a path its name; see `changes.py`."""
        with self.database.reading() as db:
            return changes.is_named_by_us(db, path)

    def skip_if_large(self, path: str, size: int) -> bool:
        """Return whether a file is too large to be indexed. If so, record it in `skipped`."""
        if size <= self.max_note_bytes:
            return False
        self.skipped[path] = f"{size} bytes; notes over {self.max_note_bytes} are not indexed"
        return True

    # Write

    def put_note(self, rows: PendingRows, note: ParsedNote, old_row: NoteRow | None) -> None:
        """Replace what the index has of a note. Part of it is only added to `rows`, to be written.

        `old_row` is the row that it replaces, None for a new note. The text of a hidden note is not
        indexed. Texts that lack vectors are kept in `waiting`. The size is not checked.
        """
        hidden = self._hidden_reason_of(rows.db, note)
        private = private_reason(note.path, note.note, self.private)
        is_new = old_row is None
        old_id = None if old_row is None else old_row.id
        note_id = notes.put(rows, old_id, note, hidden, private)

        if hidden is not None:
            remove_text(rows.db, note_id)
            return

        is_private = private is not None
        without_vector = put_text(rows, note_id, note, new=is_new, private=is_private)
        if self.waiting is not None:
            self.waiting.keep(note_id, without_vector)

    def write_note(self, rows: PendingRows, note: ParsedNote, old_row: NoteRow | None) -> None:
        """Replace what the index has of a note, and write all that waits in `rows`.

        `old_row` is the row that it replaces, None for a new note. If the note is too large, it is
        removed from the index instead, and `rows` are not written.
        """
        if self.skip_if_large(note.path, note.stat.size):
            self.remove_at(rows.db, note.path)
            return
        self.skipped.pop(note.path, None)
        self.put_note(rows, note, old_row)
        rows.write()

    def remove_at(self, db: Connection, path: str) -> None:
        """Remove the note that has a path now from the index, if there is one. Its file stays.

        The row is looked up here, because another process may have given the note another path.
        """
        row = notes.row_at(db, path)
        if row is not None:
            remove_text(db, row.id)
            notes.remove(db, row.id)

    # Conflict copies

    def update_conflict_copies(self, rows: PendingRows, originals: Collection[str]) -> list[str]:
        """Write the conflict copies of some notes again if they are now hidden or shown.

        `originals` are paths of notes, which may be gone. Returns the paths of the copies that were
        written. A copy that cannot be read stays.
        """
        rewritten = []
        for path in notes.copies_of(rows.db, originals):
            row = notes.row_at(rows.db, path)
            if row is None:
                continue
            is_hidden_by_settings = self.hidden_reason(path) is not None and not row.is_copy
            if is_hidden_by_settings:
                continue

            copy = self.read(path)
            if not isinstance(copy, ParsedNote):
                continue
            if self._hidden_reason_of(rows.db, copy) != row.hidden:
                self.write_note(rows, copy, row)
                rewritten.append(path)
        return rewritten

    def _hidden_reason_of(self, db: Connection, note: ParsedNote) -> str | None:
        """Return why a note is left out: by the settings, as a proposal, or as a conflict copy.

        None if it is not left out. If the name alone does not decide whether it is a copy, the file
        of the other note is read and compared; one that cannot be read is no reason.
        """
        reason = self.hidden_reason(note.path)
        if reason is not None:
            return reason
        if note.note.header.properties.get("type") == PROPOSAL_TYPE:
            return HIDDEN_REASON

        copy = notes.copy_at(db, note.path)
        if copy is None:
            return None
        name, original_path = copy
        if name.certain or self._is_copy_of(note.note, original_path):
            return name.reason
        return None

    def _is_copy_of(self, note: Note, original_path: str) -> bool:
        """Return whether the contents of a note show that it is a copy of the note at a path.

        They do if the texts are similar and neither `id` nor `created` differs. False if the note
        at that path cannot be read.
        """
        try:
            file = self.vault.read(original_path)
            original = read_note(file.data)
        except (SimplememError, OSError):
            return False
        if _have_different_identities(note, original):
            return False
        return are_similar(note.text, original.text)


def _have_different_identities(note: Note, other: Note) -> bool:
    """Return whether both notes have an `id` or `created` that differs: then neither is a copy."""
    for key in _IDENTITY_PROPERTIES:
        value = note.text_property(key)
        other_value = other.text_property(key)
        if value and other_value and value != other_value:
            return True
    return False
