"""Make the vectors of passages and blocks, of one embedder at a time.

They are made once the text is searchable by words. A private note is read again before its text is
sent anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from simplemem.errors import SimplememError, Unavailable
from simplemem.index import notes
from simplemem.index.api import Embedded, Progress
from simplemem.index.engine import Connection, Engine
from simplemem.index.parsed_notes import parse_note
from simplemem.index.text import EmbeddingQueue, chunk_ids_of_note, embedded_chunks
from simplemem.note.note import read_note
from simplemem.note.passages import text_hash
from simplemem.note.scopes import private_reason
from simplemem.note.words import without_stop_words
from simplemem.providers.api import Embedder, RequestRefused
from simplemem.vault.source import NoteSource

_NOTES_AT_ONCE = 500  # that are looked up to have their vectors made


def adopt(engine: Engine, embedder: Embedder) -> None:
    """Make the index one of this embedder's vectors.

    Those of another embedder are removed, and its own from when it was on another machine.
    """
    with engine.reading() as db:
        space = notes.vector_space(db)
    if (space.embedder, space.remote) == (embedder.name, embedder.remote):
        return

    with engine.writing() as db:
        db.vectors.clear()
        db.execute("DELETE FROM vector_space").fetchall()
        is_remote = int(embedder.remote)
        sql = "INSERT INTO vector_space (embedder, dimension, remote) VALUES ($1, 0, $2)"
        db.execute(sql, (embedder.name, is_remote)).fetchall()
        sql = """
            UPDATE notes SET refused = NULL, embedded = CASE
                WHEN hidden IS NOT NULL OR ($1 = 1 AND private IS NOT NULL) THEN 1 ELSE 0
            END"""
        db.execute(sql, (is_remote,)).fetchall()


def put(
    db: Connection, note_id: int, sha256: str, vectors: Mapping[int, bytes], refused: str = ""
) -> bool:
    """Store a note's vectors by place, and why the embedder refused a text, "" if it did not.

    The note then counts as done. Returns False, and stores nothing, if the note has changed since
    its text was read.
    """
    if db.execute("SELECT sha256 FROM notes WHERE id = $1", (note_id,)).get != sha256:
        return False
    hashes = hashes_of(db, note_id)
    db.vectors.write((place, vector) for place, vector in vectors.items() if place in hashes)
    # A process that has the vectors in memory follows by the number of the change.
    sql = "UPDATE notes SET embedded = 1, refused = nullif($1, ''), rev = $2 WHERE id = $3"
    db.execute(sql, (refused, notes.next_rev(db), note_id)).fetchall()
    return True


def hashes_of(db: Connection, note_id: int) -> dict[int, bytes]:
    """Return the places of a note that are to have a vector, with the hash of its text."""
    sql = "SELECT id, hash FROM places WHERE id >= $1 AND id < $2 AND hash IS NOT NULL"
    return dict(db.execute(sql, chunk_ids_of_note(note_id)))


def missing_hashes_of(db: Connection, note_id: int) -> dict[int, bytes]:
    """Return the places of a note that lack their vector, with the hash of its text."""
    hashes = hashes_of(db, note_id)
    existing = db.vectors.read(list(hashes))
    return {place: digest for place, digest in hashes.items() if place not in existing}


def embedded(db: Connection, embedder: str, remote: bool) -> Embedded:
    """Return how far an embedder is, which may not have begun yet."""
    row = db.execute("SELECT count(*), count(private) FROM notes WHERE hidden IS NULL").fetchone()
    assert row is not None
    visible, private = row
    total = visible - private if remote else visible
    is_current = notes.vector_space(db).embedder == embedder
    waiting = notes.waiting(db) if is_current else total
    refused: Any = db.execute(
        "SELECT path, refused FROM notes WHERE refused IS NOT NULL ORDER BY path"
    )
    return Embedded(waiting, total, private, list(refused))


# -- vectors of another index


def take(old: Engine, into: Engine, width: int | None, progress: Progress | None = None) -> int:
    """Copy vectors of the same embedder and width from another index, wherever the text is the same.

    The other index may be in another engine. Returns how many notes now lack no vector. What was
    copied stays, however it ends.
    """
    with old.reading() as db:
        old_space = notes.vector_space(db)
        sql = "SELECT id, hash FROM places WHERE hash IS NOT NULL"
        place_of_text = {digest: place for place, digest in db.execute(sql)}
    with into.writing() as db:
        space = notes.vector_space(db)
        total = notes.waiting(db)
        is_same_width = width in (None, old_space.dimension)
        if space.embedder != old_space.embedder or not old_space.dimension or not is_same_width:
            return 0
        _set_dimension(db, old_space.dimension)

    last = looked_at = complete = 0
    while True:
        with into.writing() as db:
            note_ids = _waiting_notes(db, last)
            if not note_ids:
                return complete
            complete += _copy_vectors(db, note_ids, old, place_of_text)
        last = note_ids[-1]
        looked_at += len(note_ids)
        into.checkpoint(is_bulk=True)
        if progress is not None:
            progress("taken", looked_at, max(looked_at, total))


def _waiting_notes(db: Connection, after: int) -> list[int]:
    sql = "SELECT id FROM notes WHERE embedded = 0 AND id > $1 ORDER BY id LIMIT $2"
    return [note_id for (note_id,) in db.execute(sql, (after, _NOTES_AT_ONCE))]


def _copy_vectors(
    db: Connection, note_ids: Sequence[int], old: Engine, place_of_text: Mapping[bytes, int]
) -> int:
    """Copy the vectors of some notes, and return how many of these now lack none."""
    missing = {note_id: missing_hashes_of(db, note_id) for note_id in note_ids}
    digests = {digest for hashes in missing.values() for digest in hashes.values()}
    old_places = {place_of_text[digest]: digest for digest in digests if digest in place_of_text}
    with old.reading() as old_db:
        old_vectors = old_db.vectors.read(sorted(old_places))
    vector_of_text = {old_places[place]: vector for place, vector in old_vectors.items()}

    db.vectors.write(
        (place, vector_of_text[digest])
        for hashes in missing.values()
        for place, digest in hashes.items()
        if digest in vector_of_text
    )
    rev = notes.next_rev(db)
    complete = [
        (rev, note_id)
        for note_id in note_ids
        if vector_of_text.keys() >= set(missing[note_id].values())
    ]
    db.executemany("UPDATE notes SET embedded = 1, rev = $1 WHERE id = $2", complete)
    return len(complete)


def _set_dimension(db: Connection, dimension: int) -> None:
    """Remember the width of the vectors, and make room for them."""
    db.execute("UPDATE vector_space SET dimension = $1", (dimension,)).fetchall()
    db.vectors.create(dimension)


# -- new vectors


class _TextsOfNote(NamedTuple):
    """A note that lacks vectors, and the texts of the places that lack one."""

    note_id: int
    sha256: str  # of the file that the texts are from; "" if it could not be read just now
    texts: list[tuple[int, str]]


@dataclass(slots=True)
class Filling:
    """Embeds what is missing. What was made before a failure is kept.

    `ready` holds texts of notes that need not be read again.
    """

    vault: NoteSource
    database: Engine
    embedder: Embedder
    progress: Progress | None = None
    stopped: Callable[[], bool] = lambda: False
    ready: EmbeddingQueue | None = None
    private: Sequence[str] = ()
    _has_embedded: bool = False  # whether the embedder has taken a text yet

    def run(self) -> int:
        """Return how many notes got their vectors.

        Ends early if another process begins with another embedder.
        """
        adopt(self.database, self.embedder)
        looked_at: set[int] = set()
        done = 0
        total = -1
        while not self.stopped():
            with self.database.reading() as db:
                if notes.vector_space(db).embedder != self.embedder.name:
                    break
                if total < 0:
                    total = notes.waiting(db)
                # The notes that were looked at and still lack vectors come first.
                limit = _NOTES_AT_ONCE + len(looked_at) - done
                sql = "SELECT id, path, sha256 FROM notes WHERE embedded = 0 ORDER BY id LIMIT $1"
                rows = db.execute(sql, (limit,)).fetchall()
            batch = self._next_batch([row for row in rows if row[0] not in looked_at])
            if not batch:
                break
            stored = self._embed(batch)
            if stored is None:
                break
            done += stored
            looked_at |= {texts.note_id for texts in batch}
            self.database.checkpoint(is_bulk=True)
            if self.progress is not None:
                count = len(looked_at)
                self.progress("vectors", min(count, total), max(total, count))
        return done

    def _next_batch(self, rows: Sequence[tuple[Any, ...]]) -> list[_TextsOfNote]:
        """Return at least one note, and as many as have the texts that the embedder takes at once."""
        batch: list[_TextsOfNote] = []
        text_count = 0
        for note_id, path, sha256 in rows:
            if text_count >= self.embedder.batch:
                break
            texts = self._texts_of(note_id, path, sha256)
            batch.append(texts)
            text_count += len(texts.texts)
        return batch

    def _texts_of(self, note_id: int, path: str, sha256: str) -> _TextsOfNote:
        with self.database.reading() as db:
            missing = missing_hashes_of(db, note_id)
        ready = None
        if self.ready is not None and not self.embedder.remote:
            ready = self.ready.take(note_id)
        # Otherwise another process has changed the note since.
        if ready is not None and {place: text_hash(text) for place, text in ready} == missing:
            return _TextsOfNote(note_id, sha256, ready)

        try:
            file = self.vault.read(path)
        except (SimplememError, OSError):
            return _TextsOfNote(note_id, "", [])
        note = read_note(file.data)
        if self.embedder.remote and private_reason(path, note, self.private) is not None:
            return _TextsOfNote(note_id, file.sha256, [])
        every_unit = embedded_chunks(note_id, parse_note(path, note, notes.stat_of(file.entry)))
        texts = [
            (place, text)
            for place, _, text in every_unit
            if text and missing.get(place) == text_hash(text)
        ]
        return _TextsOfNote(note_id, file.sha256, texts)

    def _embed(self, batch: Sequence[_TextsOfNote]) -> int | None:
        """Embed some notes, each text once, and store what still fits.

        Returns how many notes have their vectors; None if another embedder has begun.
        """
        every_text = dict.fromkeys(text for note in batch for _, text in note.texts)
        vectors, refusals = self._embed_texts(list(every_text))
        with self.database.writing() as db:
            space = notes.vector_space(db)
            if space.embedder != self.embedder.name:
                return None
            self._check_width(vectors, space.dimension)
            if vectors and not space.dimension:
                first = next(iter(vectors.values()))
                _set_dimension(db, len(first))
            done = 0
            for note in batch:
                refused = [refusals[text] for _, text in note.texts if text in refusals]
                rows = {place: vectors[text] for place, text in note.texts if text in vectors}
                if note.sha256:
                    reason = refused[0] if refused else ""
                    done += put(db, note.note_id, note.sha256, rows, reason)
            return done

    def _check_width(self, vectors: Mapping[str, bytes], dimension: int) -> None:
        """Raise Unavailable if vectors have several widths, or not that of the index."""
        widths = {len(vector) for vector in vectors.values()}
        if dimension:
            widths.add(dimension)
        if len(widths) > 1:
            numbers = " and ".join(str(width) for width in sorted(widths))
            raise Unavailable(
                f"{self.embedder.name} returned vectors of {numbers} dimensions, "
                "so its model has changed",
                hint="`simplemem index --rebuild` creates all vectors again with the current model.",
            )

    def _embed_texts(self, texts: list[str]) -> tuple[dict[str, bytes], dict[str, str]]:
        """Return the vectors of texts, and the reasons for which texts were refused.

        Which text of a batch is refused is found by asking for its halves.
        """
        if not texts:
            return {}, {}
        inputs = texts
        if not self.embedder.reads_sentences:
            inputs = [without_stop_words(text) for text in texts]
        try:
            vectors = self.embedder.documents(inputs, stopped=self.stopped)
            self._has_embedded = True
            return dict(zip(texts, vectors, strict=True)), {}
        except RequestRefused as error:
            if not self._has_embedded:
                # Does it refuse this text, or every text?
                self.embedder.documents(["memory"], stopped=self.stopped)
                self._has_embedded = True
            if len(texts) == 1:
                return {}, {texts[0]: error.message}

        half = len(texts) // 2
        vectors_of_first, refusals_of_first = self._embed_texts(texts[:half])
        vectors_of_rest, refusals_of_rest = self._embed_texts(texts[half:])
        return vectors_of_first | vectors_of_rest, refusals_of_first | refusals_of_rest
