"""Compute the vectors of passages and blocks, with one embedder at a time.

Vectors follow once the text is searchable by words. A private note is read again before its text is
sent anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from simplemem.errors import SimplememError, Unavailable
from simplemem.index import notes
from simplemem.index.api import Embedded, Progress
from simplemem.index.engine import Connection, DatabaseRow, Engine
from simplemem.index.text import EmbeddingQueue, embedded_chunks, parse_note, text_digests
from simplemem.note.note import read_note
from simplemem.note.passages import text_hash
from simplemem.note.scopes import private_reason
from simplemem.note.words import without_stop_words
from simplemem.providers.api import Embedder, RequestRefused
from simplemem.vault.source import NoteSource

_MAX_BATCH_NOTES = 500  # that are looked up at once


def set_embedder(engine: Engine, embedder: Embedder) -> None:
    """Make the index one of this embedder's vectors. Does nothing if it is already.

    Otherwise all vectors are removed, also those of the same embedder from when it was on another
    machine, and all visible notes wait for vectors; with a remote embedder, private ones do not.
    """
    with engine.reading() as db:
        space = notes.vector_space(db)
    is_same_embedder = space.embedder == embedder.name and space.remote == embedder.remote
    if is_same_embedder:
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
    db: Connection,
    note_id: int,
    sha256: str,
    vectors: Mapping[int, bytes],
    refused: str = "",
) -> bool:
    """Store vectors of a note, by place, and why a text was refused ("" if none was).

    The note then counts as done, even if places lack a vector. Returns False, and stores nothing,
    if the note has no longer the text with the hash `sha256`. For a write transaction.
    """
    current_sha256 = db.execute("SELECT sha256 FROM notes WHERE id = $1", (note_id,)).get
    if current_sha256 != sha256:
        return False

    hashes = text_digests(db, note_id)
    db.vectors.write((place, vector) for place, vector in vectors.items() if place in hashes)

    # A process that has the vectors in memory follows by the number of the change.
    rev = notes.next_rev(db)
    sql = "UPDATE notes SET embedded = 1, refused = nullif($1, ''), rev = $2 WHERE id = $3"
    db.execute(sql, (refused, rev, note_id)).fetchall()
    return True


def missing_hashes_of(db: Connection, note_id: int) -> dict[int, bytes]:
    """Return the places of a note that should have a vector and lack it, with text hashes."""
    hashes = text_digests(db, note_id)
    existing = db.vectors.read(list(hashes))
    return {place: digest for place, digest in hashes.items() if place not in existing}


def embedded(db: Connection, embedder: str, remote: bool) -> Embedded:
    """Return how many notes have, lack or get no vectors of an embedder.

    An embedder whose vectors the index does not have lacks those of all notes. `remote` says
    whether it is a service, which gets no private notes.
    """
    sql = "SELECT count(*), count(private) FROM notes WHERE hidden IS NULL"
    row = db.execute(sql).fetchone()
    assert row is not None
    visible, private = row
    total = visible
    if remote:
        total -= private

    waiting = total
    if notes.vector_space(db).embedder == embedder:
        waiting = notes.waiting(db)

    sql = "SELECT path, refused FROM notes WHERE refused IS NOT NULL ORDER BY path"
    refused: Any = db.execute(sql)
    return Embedded(
        waiting=waiting,
        notes=total,
        private=private,
        refused=list(refused),
    )


# -- vectors of another index


def copy_vectors(
    old: Engine, into: Engine, width: int | None, progress: Progress | None = None
) -> int:
    """Copy vectors of the same embedder from another index, for texts that are equal.

    The other index may be in another engine. Returns how many notes now lack no vector; 0, without
    copying, if the embedders differ, or the width of `old` is not `width` (None: any). Copies in
    several transactions, with `progress` called after each as "taken"; what was copied stays,
    however it ends.
    """
    with old.reading() as db:
        old_space = notes.vector_space(db)
        sql = "SELECT id, hash FROM places WHERE hash IS NOT NULL"
        place_of_text = {digest: place for place, digest in db.execute(sql)}
    with into.writing() as db:
        space = notes.vector_space(db)
        total = notes.waiting(db)
        is_same_width = width is None or width == old_space.dimension
        is_same_embedder = space.embedder == old_space.embedder
        if not (is_same_embedder and is_same_width and old_space.dimension):
            return 0
        _set_dimension(db, old_space.dimension)

    last = looked_at = complete = 0
    while True:
        with into.writing() as db:
            note_ids = _waiting_notes(db, last)
            if not note_ids:
                return complete
            complete += _copy_vectors_of(db, note_ids, old, place_of_text)
        last = note_ids[-1]
        looked_at += len(note_ids)
        into.checkpoint(is_bulk=True)
        if progress is not None:
            progress("taken", looked_at, max(looked_at, total))


def _waiting_notes(db: Connection, after: int) -> list[int]:
    """Return the ids of the next 500 notes that lack vectors, of those greater than `after`."""
    sql = "SELECT id FROM notes WHERE embedded = 0 AND id > $1 ORDER BY id LIMIT $2"
    return [note_id for (note_id,) in db.execute(sql, (after, _MAX_BATCH_NOTES))]


def _copy_vectors_of(
    db: Connection,
    note_ids: Sequence[int],
    old: Engine,
    place_of_text: Mapping[bytes, int],
) -> int:
    """Copy from `old` the vectors that some notes lack. For a write transaction.

    Returns how many of these notes are now complete. `place_of_text` has the places in `old`, by
    the hash of their text.
    """
    digest_of_place: dict[int, bytes] = {}
    digests_of_note: dict[int, set[bytes]] = {}
    for note_id in note_ids:
        missing = missing_hashes_of(db, note_id)
        digest_of_place |= missing
        digests_of_note[note_id] = set(missing.values())

    vector_of_text = _read_vectors(old, digest_of_place.values(), place_of_text)
    db.vectors.write(
        (place, vector_of_text[digest])
        for place, digest in digest_of_place.items()
        if digest in vector_of_text
    )

    rev = notes.next_rev(db)
    complete = [
        (rev, note_id)
        for note_id, digests in digests_of_note.items()
        if digests <= vector_of_text.keys()
    ]
    db.executemany("UPDATE notes SET embedded = 1, rev = $1 WHERE id = $2", complete)
    return len(complete)


def _read_vectors(
    engine: Engine, digests: Iterable[bytes], place_of_text: Mapping[bytes, int]
) -> dict[bytes, bytes]:
    """Return the vectors that an index has of some texts, by the hash of the text.

    `place_of_text` has its places, by the hash of their text. Texts without a vector are absent.
    """
    digest_of_place = {}
    for digest in digests:
        if digest in place_of_text:
            place = place_of_text[digest]
            digest_of_place[place] = digest

    with engine.reading() as db:
        vectors = db.vectors.read(sorted(digest_of_place))
    return {digest_of_place[place]: vector for place, vector in vectors.items()}


def _set_dimension(db: Connection, dimension: int) -> None:
    """Record the width of the vectors, and make room for them. For a write transaction."""
    db.execute("UPDATE vector_space SET dimension = $1", (dimension,)).fetchall()
    db.vectors.create(dimension)


# -- new vectors


class _TextsOfNote(NamedTuple):
    """A note that lacks vectors, and the texts of the places that lack one."""

    note_id: int
    sha256: str  # of the file that the texts are from; "" if it could not be read just now
    texts: list[tuple[int, str]]


class _EmbeddedTexts(NamedTuple):
    """The vectors of texts, and the reasons of the embedder for those that it refused, by text."""

    vectors: dict[str, bytes]
    refusals: dict[str, str]


@dataclass(slots=True)
class EmbeddingJob:
    """Computes the vectors that an index lacks, note by note.

    Those computed before a failure stay. `ready` has texts of notes that need not be read again.
    `stopped` is asked between two batches. `private` are the rules for notes that a remote embedder
    does not get.
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
        """Compute and store vectors until no note lacks any, and return how many notes got theirs.

        First makes the index one of this embedder's vectors, which removes those of another one.
        Ends early if `stopped` returns True, or if another process begins with another embedder. A
        note that cannot be read now is left out. Raises Unavailable if the embedder fails.
        """
        set_embedder(self.database, self.embedder)
        with self.database.reading() as db:
            total = notes.waiting(db)

        looked_at: set[int] = set()
        done = 0
        while not self.stopped():
            # The notes that were looked at and still lack vectors come first.
            limit = _MAX_BATCH_NOTES + len(looked_at) - done
            rows = self._waiting_rows(limit)
            new_rows = [row for row in rows if row[0] not in looked_at]
            batch = self._next_batch(new_rows)
            if not batch:
                break
            stored = self._embed(batch)
            if stored is None:
                break

            done += stored
            looked_at.update(texts.note_id for texts in batch)
            self.database.checkpoint(is_bulk=True)
            if self.progress is not None:
                count = len(looked_at)
                self.progress("vectors", min(count, total), max(total, count))
        return done

    def _waiting_rows(self, limit: int) -> list[DatabaseRow]:
        """Return (id, path, hash) of at most `limit` notes that lack vectors, in the order of ids.

        None are returned if the index has another embedder by now.
        """
        with self.database.reading() as db:
            if notes.vector_space(db).embedder != self.embedder.name:
                return []
            sql = "SELECT id, path, sha256 FROM notes WHERE embedded = 0 ORDER BY id LIMIT $1"
            return db.execute(sql, (limit,)).fetchall()

    def _next_batch(self, rows: Sequence[DatabaseRow]) -> list[_TextsOfNote]:
        """Return the first notes with their texts, until these fill a batch of the embedder.

        At least one note is returned if there is any.
        """
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
        """Return the texts of a note that lack a vector, from memory or from its file.

        There are none if the file cannot be read, or if it is private and the embedder is remote.
        Texts that have changed since the note was indexed are left out.
        """
        with self.database.reading() as db:
            missing = missing_hashes_of(db, note_id)

        ready = self._pop_ready(note_id, missing)
        if ready is not None:
            return _TextsOfNote(note_id, sha256, ready)

        try:
            file = self.vault.read(path)
        except (SimplememError, OSError):
            return _TextsOfNote(note_id, sha256="", texts=[])

        note = read_note(file.data)
        if self.embedder.remote:
            reason = private_reason(path, note, self.private)
            if reason is not None:
                return _TextsOfNote(note_id, file.sha256, texts=[])

        parsed = parse_note(path, note, notes.stat_of(file.entry))
        texts = []
        for chunk_id, _, text in embedded_chunks(note_id, parsed):
            if text and missing.get(chunk_id) == text_hash(text):
                texts.append((chunk_id, text))
        return _TextsOfNote(note_id, file.sha256, texts)

    def _pop_ready(
        self, note_id: int, missing: Mapping[int, bytes]
    ) -> list[tuple[int, str]] | None:
        """Remove a note's texts from memory, and return them if just these lack a vector.

        They are not if another process has changed the note since: then the result is None. It is
        also None for a remote embedder, whose texts are always read from the file.
        """
        if self.ready is None or self.embedder.remote:
            return None
        texts = self.ready.pop(note_id)
        if texts is None:
            return None
        hashes = {place: text_hash(text) for place, text in texts}
        return texts if hashes == missing else None

    def _embed(self, batch: Sequence[_TextsOfNote]) -> int | None:
        """Embed some notes, each distinct text once, and store the vectors of unchanged notes.

        Returns how many notes were completed; None, and stores nothing, if another embedder has
        begun. Raises Unavailable if the embedder fails.
        """
        texts: dict[str, None] = {}
        for note in batch:
            texts |= dict.fromkeys(text for _, text in note.texts)
        result = self._embed_texts(list(texts))

        with self.database.writing() as db:
            space = notes.vector_space(db)
            if space.embedder != self.embedder.name:
                return None

            self._check_width(result.vectors, space.dimension)
            if result.vectors and not space.dimension:
                first = next(iter(result.vectors.values()))
                _set_dimension(db, len(first))
            return sum(_put_result(db, note, result) for note in batch)

    def _check_width(self, vectors: Mapping[str, bytes], dimension: int) -> None:
        """Raise Unavailable if vectors have several widths, or not that of the index (0: none yet)."""
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

    def _embed_texts(self, texts: list[str]) -> _EmbeddedTexts:
        """Return the vectors of distinct texts, and the reasons for which texts were refused.

        Which text of a batch is refused is found by asking for its halves. Raises Unavailable if
        the embedder fails, and RequestRefused if it refuses even a harmless word.
        """
        if not texts:
            return _EmbeddedTexts({}, {})
        inputs = texts
        if not self.embedder.reads_sentences:
            inputs = [without_stop_words(text) for text in texts]
        try:
            vectors = self.embedder.documents(inputs, stopped=self.stopped)
            self._has_embedded = True
            vector_of_text = dict(zip(texts, vectors, strict=True))
            return _EmbeddedTexts(vector_of_text, {})
        except RequestRefused as error:
            if not self._has_embedded:
                # Does it refuse this text, or every text?
                self.embedder.documents(["memory"], stopped=self.stopped)
                self._has_embedded = True
            if len(texts) == 1:
                return _EmbeddedTexts({}, {texts[0]: error.message})

        half = len(texts) // 2
        first = self._embed_texts(texts[:half])
        rest = self._embed_texts(texts[half:])
        return _EmbeddedTexts(first.vectors | rest.vectors, first.refusals | rest.refusals)


def _put_result(db: Connection, note: _TextsOfNote, result: _EmbeddedTexts) -> bool:
    """Store the vectors of a note, and why a text was refused. Return whether it was unchanged."""
    if not note.sha256:
        return False
    rows = {}
    refusals = []
    for place, text in note.texts:
        if text in result.vectors:
            rows[place] = result.vectors[text]
        elif text in result.refusals:
            refusals.append(result.refusals[text])
    reason = refusals[0] if refusals else ""
    return put(db, note.note_id, note.sha256, rows, reason)
