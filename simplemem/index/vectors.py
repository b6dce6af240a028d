"""Vectors of passages and blocks, int8, of one embedder at a time. They are made once the text is searchable; a private
note is read again before its text is sent. Passages are in memory from the first question on, blocks from the second."""

from __future__ import annotations

import threading
from array import array
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from simplemem.errors import SimplememError, Unavailable
from simplemem.index import notes
from simplemem.index.connection import Connection, Tables
from simplemem.index.database import WAL_LIMIT_AMID_MUCH
from simplemem.index.door import Embedded, Ids, Nearness, Progress, as_values
from simplemem.index.places import BLOCK, SHIFT
from simplemem.index.text import PUT_VECTOR, Waiting, places_of_note, understood, units
from simplemem.note.fingerprints import text_hash
from simplemem.note.note import read_note
from simplemem.note.privacy import private_reason
from simplemem.note.words import without_stop_words
from simplemem.providers.client import Refused
from simplemem.providers.embed import Embedder
from simplemem.vault.source import NoteSource

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_HELD = 64_000_000  # numbers: 250,000 passages of 256
_LEFT = 1_000  # rows of notes that changed or went, and a quarter of all: then all are loaded anew
_NOBODY = 0  # is no note
_FAR = -2.0  # below every cosine
_NOTES_AT_ONCE = 500  # that are looked up to have their vectors made

Paths = Callable[[Collection[int]], Mapping[int, str]]  # of notes that are there
_Whose = tuple[object, int]  # an index, and its newest `rev`
_ToEmbed = tuple[int, str, list[tuple[int, str]]]
"""A note, the hash that it had ("" when it could not be read just now), and its places with their texts."""


def adopt(database: Tables, embedder: Embedder) -> None:
    """Make the index one of this embedder's vectors. Another's are let go, or its own of when it was elsewhere."""
    wanted = embedder.name, embedder.remote
    with database.reading() as db:
        found = notes.vector_space(db)
    if (found.embedder, found.remote) != wanted:
        with database.writing() as db:
            for table in ("vectors", "vector_space"):
                db.execute(f"DELETE FROM {table}").fetchall()
            db.execute("INSERT INTO vector_space VALUES (?, 0, ?)", wanted).fetchall()
            wants_none = "hidden IS NOT NULL OR (:remote = 1 AND private IS NOT NULL)"
            sql = f"UPDATE notes SET refused = NULL, embedded = CASE WHEN {wants_none} THEN 1 ELSE 0 END"
            db.execute(sql, {"remote": int(embedder.remote)}).fetchall()


def put(
    db: Connection, note_id: int, sha256: str, vectors: Mapping[int, bytes], refused: str = ""
) -> bool:
    """Store a note's vectors, unless the note has changed since its text was read; and what the embedder refused."""
    if db.execute("SELECT sha256 FROM notes WHERE id = ?", (note_id,)).get != sha256:
        return False
    wanted = hashes_of(db, note_id)
    rows = ((place, wanted[place], vector) for place, vector in vectors.items() if place in wanted)
    db.executemany(PUT_VECTOR, rows)
    # Whoever holds the vectors in memory follows by the number of the change.
    sql = "UPDATE notes SET embedded = 1, refused = nullif(?, ''), rev = ? WHERE id = ?"
    db.execute(sql, (refused, notes.next_rev(db), note_id)).fetchall()
    return True


def take(old: Tables, into: Tables, width: int | None, progress: Progress | None = None) -> int:
    """Take vectors of the same embedder and width from another index, of any engine, wherever the text is the same.
    Returns how many notes now lack none. What was taken stays, however it ends."""
    with old.reading() as db:
        theirs = notes.vector_space(db)
        places = {digest: place for place, digest in db.execute("SELECT id, hash FROM vectors")}
    with into.writing() as db:
        ours, total = notes.vector_space(db), notes.waiting(db)
        if (
            ours.embedder != theirs.embedder
            or not theirs.dimension
            or width not in (None, theirs.dimension)
        ):
            return 0
        db.execute("UPDATE vector_space SET dimension = ?", (theirs.dimension,)).fetchall()
    last = looked = taken = 0
    while True:
        with into.writing() as db:
            sql = "SELECT id FROM notes WHERE embedded = 0 AND id > ? ORDER BY id LIMIT ?"
            if not (some := [row[0] for row in db.execute(sql, (last, _NOTES_AT_ONCE))]):
                return taken
            wanted = {note: hashes_of(db, note, missing=True) for note in some}
            every = [
                (place, digest) for hashes in wanted.values() for place, digest in hashes.items()
            ]
            asked = {places[digest] for _, digest in every if digest in places}
            with old.reading() as other:
                sql = "SELECT v.hash, v.vector FROM carray(:ids) n CROSS JOIN vectors v ON v.id = n.value"
                vectors = dict(other.execute(sql, {"ids": other.many(sorted(asked))}))
            found = [
                (place, digest, vectors[digest]) for place, digest in every if digest in vectors
            ]
            db.executemany(PUT_VECTOR, found)
            rev = notes.next_rev(db)
            whole = [(rev, note) for note in some if vectors.keys() >= {*wanted[note].values()}]
            db.executemany("UPDATE notes SET embedded = 1, rev = ? WHERE id = ?", whole)
            last, looked, taken = some[-1], looked + len(some), taken + len(whole)
        into.checkpoint(WAL_LIMIT_AMID_MUCH)
        if progress is not None:
            progress("taken", looked, max(looked, total))


def hashes_of(db: Connection, note_id: int, *, missing: bool = False) -> dict[int, bytes]:
    """The places of a note that are to have a vector, or lack it, with the hash of what it is made of."""
    lacking = "AND id NOT IN (SELECT id FROM vectors WHERE id >= ?1 AND id < ?2)" if missing else ""
    sql = f"SELECT id, hash FROM places WHERE id >= ?1 AND id < ?2 AND hash IS NOT NULL {lacking}"
    return dict(db.execute(sql, places_of_note(note_id)))


def embedded(db: Connection, embedder: str, remote: bool) -> Embedded:
    """How far an embedder is, which may not have begun yet."""
    visible, private = next(
        db.execute("SELECT count(*), count(private) FROM notes WHERE hidden IS NULL")
    )
    wanted, space = visible - private if remote else visible, notes.vector_space(db)
    refused: Any = db.execute(
        "SELECT path, refused FROM notes WHERE refused IS NOT NULL ORDER BY path"
    )
    return Embedded(
        notes.waiting(db) if space.embedder == embedder else wanted, wanted, private, list(refused)
    )


@dataclass(slots=True)
class Filling:
    """Embeds what is missing. `ready` holds texts that need no reading. What was made before a failure is kept."""

    vault: NoteSource
    database: Tables
    embedder: Embedder
    progress: Progress | None = None
    stopped: Callable[[], bool] = lambda: False
    ready: Waiting | None = None
    private: Sequence[str] = ()
    _took_any: bool = False  # whether the embedder has taken a text yet

    def run(self) -> int:
        """Returns how many notes got their vectors. Ends early when another process begins with another embedder."""
        adopt(self.database, self.embedder)
        passed: set[int] = set()
        done, total = 0, -1
        while not self.stopped():
            with self.database.reading() as db:
                if notes.vector_space(db).embedder != self.embedder.name:
                    break
                total = notes.waiting(db) if total < 0 else total
                sql = "SELECT id, path, sha256 FROM notes WHERE embedded = 0 ORDER BY id LIMIT ?"
                there: Any = db.execute(sql, (_NOTES_AT_ONCE + len(passed) - done,)).fetchall()
            batch: list[_ToEmbed] = []
            for (
                note_id,
                path,
                sha256,
            ) in there:  # as many notes at once as the embedder takes texts, one at least
                if (
                    note_id not in passed
                    and sum(len(texts) for *_, texts in batch) < self.embedder.batch
                ):
                    batch.append(self._texts(note_id, path, sha256))
            if not batch or (stored := self._embed(batch)) is None:
                break
            done += stored
            passed |= {note_id for note_id, *_ in batch}
            self.database.checkpoint(WAL_LIMIT_AMID_MUCH)
            if self.progress is not None:
                self.progress("vectors", min(len(passed), total), max(total, len(passed)))
        return done

    def _texts(self, note_id: int, path: str, sha256: str) -> _ToEmbed:
        with self.database.reading() as db:
            wanted = hashes_of(db, note_id, missing=True)
        kept = (
            self.ready.take(note_id)
            if self.ready is not None and not self.embedder.remote
            else None
        )
        if kept is not None and {place: text_hash(words) for place, words in kept} == wanted:
            return note_id, sha256, kept  # else another process has changed it since
        try:
            file = self.vault.read(path)
        except (SimplememError, OSError):
            return note_id, "", []
        note = read_note(file.data)
        if self.embedder.remote and private_reason(path, note, self.private) is not None:
            return note_id, file.sha256, []
        every = units(note_id, understood(path, note, notes.stat_of(file.entry)))
        texts = [
            (place, words)
            for place, _, words in every
            if words and wanted.get(place) == text_hash(words)
        ]
        return note_id, file.sha256, texts

    def _embed(self, batch: Sequence[_ToEmbed]) -> int | None:
        """Embed some notes, each text once, and store what still fits. None when another embedder has begun."""
        name = self.embedder.name
        made, refused = self._asked(
            list(dict.fromkeys(words for *_, texts in batch for _, words in texts))
        )
        with self.database.writing() as db:
            if (space := notes.vector_space(db)).embedder != name:
                return None
            widths = sorted({len(vector) for vector in made.values()} | ({space.dimension} - {0}))
            if len(widths) > 1:
                numbers = " and ".join(map(str, widths))
                message = (
                    f"{name} returned vectors of {numbers} dimensions, so its model has changed"
                )
                hint = (
                    "`simplemem index --rebuild` creates all vectors again with the current model."
                )
                raise Unavailable(message, hint=hint)
            if made and not space.dimension:  # the first vector has come
                db.execute("UPDATE vector_space SET dimension = ?", (widths[0],)).fetchall()
            done = 0
            for note_id, sha256, texts in batch:
                why = next((refused[words] for _, words in texts if words in refused), "")
                rows = {place: made[words] for place, words in texts if words in made}
                done += bool(sha256) and put(db, note_id, sha256, rows, why)
            return done

    def _asked(self, texts: list[str]) -> tuple[dict[str, bytes], dict[str, str]]:
        """The vectors of texts, and what is said of those refused, found by asking for the halves of a batch."""
        if not texts:
            return {}, {}
        given = (
            texts
            if self.embedder.reads_sentences
            else [without_stop_words(words) for words in texts]
        )
        try:
            made = dict(
                zip(texts, self.embedder.documents(given, stopped=self.stopped), strict=True)
            )
            self._took_any = True
            return made, {}
        except Refused as error:
            if not self._took_any:  # does it refuse this text, or every text?
                self.embedder.documents(["memory"], stopped=self.stopped)
                self._took_any = True
            if len(texts) == 1:
                return {}, {texts[0]: error.message}
        half = len(texts) // 2
        (first, refused), (second, refused_too) = (
            self._asked(texts[:half]),
            self._asked(texts[half:]),
        )
        return first | second, refused | refused_too


def stored(
    db: Connection, some: Iterable[int] | None, *, blocks: bool = False
) -> Iterable[tuple[int, bytes]]:
    """The places and vectors of the passages of some notes or of all, or of their blocks, in order."""
    first, after = (BLOCK, 1 << SHIFT) if blocks else (0, BLOCK)
    if some is None:
        return db.execute(
            f"SELECT id, vector FROM vectors WHERE (id & {BLOCK}) = {first} ORDER BY id"
        )
    start = f"(n.value << {SHIFT})"
    sql = f"""SELECT v.id, v.vector FROM carray(:ids) n CROSS JOIN vectors v
              WHERE v.id >= {start} + {first} AND v.id < {start} + {after}"""  # a range: so engines use the key
    return db.execute(sql, {"ids": db.many(sorted(some))})


def nearest_places(db: Connection, query: bytes, some: Iterable[int]) -> dict[int, int]:
    """Of each of some notes the passage that is nearest; those without a vector are absent."""
    rows = list(stored(db, some))
    far = distances(query, b"".join(vector for _, vector in rows)).tolist()
    farthest_first = sorted(zip(far, (place for place, _ in rows), strict=True), reverse=True)
    return {place >> SHIFT: place for _, place in farthest_first}  # the last of each note stays


def vectors_of(db: Connection, note_id: int) -> list[bytes]:
    """The vectors of a note's passages."""
    return [vector for _, vector in sorted(stored(db, [note_id]))]


def mean_vector(db: Connection, note: int) -> bytes | None:
    """The middle of a note's passages, as a vector of the same kind."""
    import numpy as np

    if not (rows := [np.frombuffer(vector, np.int8) for vector in vectors_of(db, note)[:64]]):
        return None
    sums = np.sum(rows, axis=0, dtype=np.float64)
    return np.rint(sums * 127 / (np.abs(sums).max() or 1)).astype(np.int8).tobytes()


def distances(query: bytes, rows: Any) -> NDArray[np.float64]:
    """How far each row of a buffer is from a query, by cosine; a vector of zeros is near to nothing."""
    import numpy as np
    import simsimd

    count = len(rows) // len(query) if query else 0
    if not count or not any(query):
        return np.ones(count)
    asked = memoryview(query).cast("b", shape=[1, len(query)])
    found: Any = simsimd.cdist(
        asked, memoryview(rows).cast("b", shape=[count, len(query)]), "cosine", dtype="int8"
    )
    return np.frombuffer(memoryview(found).cast("B"), np.float64)


class _Rows:
    """Vectors one behind the other, with the notes they are of. What a note had before it changed belongs to nobody."""

    def __init__(self, rows: Iterable[tuple[int, bytes]]) -> None:
        self.vectors, self.owners, self.left = bytearray(), array("q"), 0
        self.add(rows)

    def add(self, rows: Iterable[tuple[int, bytes]]) -> None:
        for place, vector in rows:
            self.owners.append(place >> SHIFT)
            self.vectors += vector

    def forget(self, some: Iterable[int]) -> None:
        """Take notes out."""
        import numpy as np

        owners = np.frombuffer(self.owners, np.int64)
        rows = _marks(some, int(owners.max(initial=0)) + 1)[owners]
        owners[rows] = _NOBODY
        self.left += int(np.count_nonzero(rows))

    def best(self, query: bytes, some: Iterable[int] | None, size: int = 0) -> NDArray[np.float64]:
        """By note (so many at least) the cosine of its best row, of some notes at least; _FAR where there is none."""
        import numpy as np

        owners, vectors = np.frombuffer(self.owners, np.int64), np.frombuffer(self.vectors, np.int8)
        best = np.full(max(size, int(owners.max(initial=0)) + 1), _FAR)
        # All are compared as soon as a quarter of them.
        if some is not None and 4 * len(
            rows := np.flatnonzero(_marks(some, len(best))[owners])
        ) < len(owners):
            owners, vectors = (
                owners.take(rows),
                vectors.reshape(-1, len(query)).take(rows, 0).reshape(-1),
            )
        np.maximum.at(best, owners, 1 - distances(query, vectors.data))
        best[_NOBODY] = _FAR
        return best


def _marks(some: Iterable[int], size: int) -> NDArray[np.bool_]:
    """For each note below `size` whether it is one of some."""
    import numpy as np

    ids = np.asarray(some if isinstance(some, array) else list(some), np.int64)
    marks = np.zeros(size, bool)
    marks[ids[ids < size]] = True
    return marks


class VectorsInMemory:
    """The vectors of one index. Follows the table by the notes' `rev`; notes that are gone are met in answers."""

    def __init__(self, most_held: int = MOST_HELD) -> None:
        self._most_held, self._lock = most_held, threading.Lock()
        self._seen: _Whose = (None, -1)
        self._passages = _Rows(())
        self._blocks: _Rows | None = None  # whoever asks once is read those it needs
        self._asked = False

    def nearest(
        self,
        db: Connection,
        whose: _Whose,
        query: bytes,
        ids: Ids,
        limit: int,
        also: Iterable[int],
        paths: Paths,
    ) -> dict[int, Nearness]:
        """The notes with the nearest passages, among `ids`, and those in `also`, by `whose` vectors."""
        import numpy as np

        if (found := db.nearest(query, ids, limit, also)) is not None:
            return found
        with self._lock:
            self._follow(db, whose)
            passages = self._passages.best(query, ids)
            others = np.fromiter(also, np.int64)
            others = others[others < len(passages)]
            if ids is not None:
                passages[~_marks(ids, len(passages))] = _FAR
            while True:
                least = np.partition(passages, -limit)[-limit] if limit < len(passages) else _FAR
                near = np.flatnonzero((passages >= least) & (passages > _FAR))
                best = near[np.argsort(-passages[near], kind="stable")][:limit].tolist()
                wanted = {*best, *others[passages[others] > _FAR].tolist()}
                known = paths(wanted)
                if not (gone := list(wanted.difference(known))):
                    break
                passages[gone] = _FAR
                for rows in filter(None, (self._passages, self._blocks)):
                    rows.forget(gone)
            blocks = (self._blocks or _Rows(stored(db, wanted, blocks=True))).best(
                query, wanted, len(passages)
            )
        held = list(wanted)
        nearest = np.maximum(passages, np.maximum(blocks[: len(passages)], 0.0))[held]
        figures = zip(passages[held].tolist(), nearest.tolist(), strict=True)
        return dict(zip(held, as_values(Nearness, figures), strict=True))

    def _follow(self, db: Connection, seen: _Whose) -> None:
        (whose, _), (before, rev) = seen, self._seen
        if whose != before or self._passages.left > _LEFT + len(self._passages.owners) // 4:
            self._passages, self._blocks, self._asked = (
                _Rows(stored(db, None)),
                None,
                self._asked and whose == before,
            )
        elif seen != self._seen:
            changed = [row[0] for row in db.execute("SELECT id FROM notes WHERE rev > ?", (rev,))]
            for rows in filter(None, (self._passages, self._blocks)):
                rows.forget(changed)
                rows.add(stored(db, changed, blocks=rows is self._blocks))
        if self._asked and self._blocks is None and len(self._passages.vectors) <= self._most_held:
            self._blocks = _Rows(stored(db, None, blocks=True))
        self._seen, self._asked = seen, True
