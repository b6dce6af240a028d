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
    """Make this embedder the one whose vectors the index has. Does nothing if it is already.

    Otherwise all vectors are removed, and all visible notes wait for vectors; with a remote
    embedder, private notes do not. An embedder of the same name that was local and is now remote,
    or the reverse, counts as another one.
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
    """Store vectors of a note by place id, and why the embedder refused a text ("" if it did not).

    The note then waits no longer, even if places lack a vector. Vectors for places that get none
    are ignored. Returns False, and stores nothing, if the note is gone or no longer has the text
    with the hash `sha256`. For a write transaction.
    """
    current_sha256 = db.execute("SELECT sha256 FROM notes WHERE id = $1", (note_id,)).get
    if current_sha256 != sha256:
        return False

    hashes = text_digests(db, note_id)
    db.vectors.write((place, vector) for place, vector in vectors.items() if place in hashes)

    # By this number, a process that has vectors in memory notices that they changed.
    rev = notes.next_rev(db)
    sql = "UPDATE notes SET embedded = 1, refused = nullif($1, ''), rev = $2 WHERE id = $3"
    db.execute(sql, (refused, rev, note_id)).fetchall()
    return True


def missing_hashes_of(db: Connection, note_id: int) -> dict[int, bytes]:
    """Return the hashes of a note's texts by place id, for the places that lack their vector."""
    hashes = text_digests(db, note_id)
    existing = db.vectors.read(list(hashes))
    return {place: digest for place, digest in hashes.items() if place not in existing}


def embedded(db: Connection, embedder: str, remote: bool) -> Embedded:
    """Return how many notes have, lack or get no vectors of an embedder.

    If the index has the vectors of another embedder, all notes lack theirs. `remote` says whether
    the embedder is a service, which gets no private notes.
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

    The engines may differ. Returns how many notes waited for vectors and are now complete. Returns
    0, without copying, if the embedders differ, if `old` has no vectors, or if their width is not
    `width` (None: any). Copies in several transactions, and calls `progress` with "taken" after
    each. What was copied stays, even if a later transaction fails.
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

    last = 0  # the id of the last note that was looked at
    looked_at = 0
    complete = 0
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

    Returns how many of these notes are now complete. `place_of_text` has a place id in `old` for
    the hash of each text.
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

    `place_of_text` has a place id in that index for the hash of each text. Texts without a vector
    are absent.
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
    """Vectors by text, and for each text that the embedder refused, its reason."""

    vectors: dict[str, bytes]
    refusals: dict[str, str]


@dataclass(slots=True)
class EmbeddingJob:
    """Computes the vectors that an index lacks, in batches of notes.

    Each batch is stored before the next one is computed, so a failure loses only the last. `ready`
    has the texts of notes that were just indexed, so their files need not be read again. `stopped`
    is called between two batches, and while a service is awaited. `private` are the rules for notes
    that a remote embedder does not get.
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
        """Compute and store vectors until no note waits, and return how many notes got theirs.

        First removes the vectors of any other embedder. Ends early if `stopped` returns True, or if
        another process has set another embedder meanwhile. A note that cannot be read now is left
        out. Raises Unavailable if the embedder fails.
        """
        set_embedder(self.database, self.embedder)
        with self.database.reading() as db:
            total = notes.waiting(db)

        looked_at: set[int] = set()
        done = 0
        while not self.stopped():
            # The first rows may be of notes that were looked at and still wait.
            still_waiting = len(looked_at) - done
            limit = _MAX_BATCH_NOTES + still_waiting
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
        """Return (id, path, hash) of at most `limit` notes that wait for vectors, in order of id.

        Returns an empty list if the index has another embedder by now.
        """
        with self.database.reading() as db:
            if notes.vector_space(db).embedder != self.embedder.name:
                return []
            sql = "SELECT id, path, sha256 FROM notes WHERE embedded = 0 ORDER BY id LIMIT $1"
            return db.execute(sql, (limit,)).fetchall()

    def _next_batch(self, rows: Sequence[DatabaseRow]) -> list[_TextsOfNote]:
        """Return the first notes with their texts, as many as fill one batch of the embedder.

        The last note may exceed the batch. Empty only if `rows` is empty.
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

        If the file cannot be read, or if the note is private and the embedder is remote, there are
        no texts. Texts that have changed since the note was indexed are left out.
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
        """Remove a note's texts from memory, and return them if exactly these lack a vector.

        Returns None if other texts do, because another process has changed the note since. For a
        remote embedder, always returns None: the note may have become private, so its file is read
        again before its text is sent.
        """
        if self.ready is None or self.embedder.remote:
            return None
        texts = self.ready.pop(note_id)
        if texts is None:
            return None
        hashes = {place: text_hash(text) for place, text in texts}
        return texts if hashes == missing else None

    def _embed(self, batch: Sequence[_TextsOfNote]) -> int | None:
        """Embed the texts of some notes, each distinct text once, and store the vectors.

        Notes that have changed meanwhile are left out. Returns how many notes got their vectors.
        Returns None, and stores nothing, if another process has set another embedder meanwhile.
        Raises Unavailable if the embedder fails.
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
        """Raise Unavailable unless all vectors have one width, `dimension` if it is not 0."""
        widths = {len(vector) for vector in vectors.values()}
        if dimension:
            widths.add(dimension)
        if len(widths) > 1:
            numbers = " and ".join(str(width) for width in sorted(widths))
            raise Unavailable(
                f"{self.embedder.name} returned vectors of {numbers} dimensions, "
                "so its model has changed",
                hint=(
                    "`simplemem index --rebuild` creates all vectors again with the current model."
                ),
            )

    def _embed_texts(self, texts: list[str]) -> _EmbeddedTexts:
        """Return the vectors of distinct texts, and the reasons for which texts were refused.

        If the embedder refuses a batch, its halves are requested alone, until the text that is at
        fault is found. Raises Unavailable if the embedder fails, and RequestRefused if it refuses
        even a harmless word.
        """
        if not texts:
            return _EmbeddedTexts({}, {})
        inputs = texts
        if not self.embedder.reads_sentences:
            inputs = [without_stop_words(text) for text in texts]
        try:
            vectors = self.embedder.documents(inputs, stopped=self.stopped)
        except RequestRefused as error:
            refusal = error.message
        else:
            self._has_embedded = True
            vector_of_text = dict(zip(texts, vectors, strict=True))
            return _EmbeddedTexts(vector_of_text, {})

        self._check_accepts_any_text()
        if len(texts) == 1:
            return _EmbeddedTexts({}, {texts[0]: refusal})
        half = len(texts) // 2
        first = self._embed_texts(texts[:half])
        rest = self._embed_texts(texts[half:])
        return _EmbeddedTexts(first.vectors | rest.vectors, first.refusals | rest.refusals)

    def _check_accepts_any_text(self) -> None:
        """Raise RequestRefused if the embedder refuses a harmless word; Unavailable if it fails.

        Sends nothing if it has embedded a text before.
        """
        if not self._has_embedded:
            self.embedder.documents(["memory"], stopped=self.stopped)
            self._has_embedded = True


def _put_result(db: Connection, note: _TextsOfNote, result: _EmbeddedTexts) -> bool:
    """Store the vectors of a note, and why its first refused text was refused.

    Returns False, and stores nothing, if the note could not be read or has changed since.
    """
    if not note.sha256:
        return False
    vectors = {}
    refusals = []
    for place, text in note.texts:
        if text in result.vectors:
            vectors[place] = result.vectors[text]
        elif text in result.refusals:
            refusals.append(result.refusals[text])
    reason = refusals[0] if refusals else ""
    return put(db, note.note_id, note.sha256, vectors, reason)
