"""Compare vectors: the notes nearest to a query, in the engine or in the memory of a process.

The first query makes a process read the vectors of all passages into memory, and the second those
of all blocks, unless there are too many. PostgreSQL with pgvector finds the notes of the first
query itself: reading all vectors over a network would take longer.
"""

from __future__ import annotations

import threading
from array import array
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from simplemem.index.api import Ids, Similarities
from simplemem.index.engine import Connection
from simplemem.index.places import SHIFT

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# If the passages have more numbers than these, blocks are not kept in memory. That is the size of
# 250,000 vectors of 256 numbers.
MAX_NUMBERS_IN_MEMORY = 64_000_000
# If more rows than these and a quarter of all rows are outdated, all are read again.
_MAX_STALE_ROWS = 1_000
_NO_NOTE = 0  # the owner of an outdated row; ids of notes begin at 1
_FAR = -2.0  # below every cosine
_MAX_PASSAGES_OF_MEAN = 64

Paths = Callable[[Collection[int]], Mapping[int, str]]  # the paths of those notes that exist
_IndexState = tuple[object, int]  # which index, and its newest `rev`


def nearest_places(db: Connection, query: bytes, note_ids: Iterable[int]) -> dict[int, int]:
    """Return for each note the id of its stored passage that is nearest to a query.

    Notes without a vector are absent. Of passages that are equally near, that with the smallest id
    counts.
    """
    places = []
    packed = bytearray()
    for place, vector in db.vectors.read_notes(note_ids, blocks=False):
        places.append(place)
        packed += vector

    distance_of_place = (-cosines(query, packed)).tolist()
    by_distance = sorted(zip(distance_of_place, places, strict=True))
    nearest_place: dict[int, int] = {}
    for _, place in by_distance:
        note_id = place >> SHIFT
        nearest_place.setdefault(note_id, place)
    return nearest_place


def vectors_of(db: Connection, note_id: int) -> list[bytes]:
    """Return the stored vectors of a note's passages, in order; empty without any."""
    return [vector for _, vector in db.vectors.read_notes([note_id], blocks=False)]


def mean_vector(db: Connection, note_id: int) -> bytes | None:
    """Return the mean vector of a note's first 64 passages, scaled to bytes; None without any."""
    import numpy as np

    vectors = vectors_of(db, note_id)[:_MAX_PASSAGES_OF_MEAN]
    if not vectors:
        return None
    rows = [np.frombuffer(vector, np.int8) for vector in vectors]
    sums = np.sum(rows, axis=0, dtype=np.float64)
    largest = np.abs(sums).max() or 1
    mean = np.rint(sums * 127 / largest)
    return mean.astype(np.int8).tobytes()


def cosines(query: bytes, rows: Any) -> NDArray[np.float64]:
    """Return the cosine of each row of a buffer with a query; 0 for a row or a query of zeros.

    `rows` are packed vectors of the width of the query.
    """
    return _cosines(query, rows, inverse_lengths(rows, len(query)))


def _cosines(query: bytes, rows: Any, inverse: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the cosine of each row with a query. `inverse` has 1 / length of each row.

    A caller that compares the same rows often keeps `inverse`: the inner product alone takes half
    the time of simsimd's cosine, and is exact.
    """
    import numpy as np
    import simsimd

    if not len(inverse) or not any(query):
        return np.zeros(len(inverse))
    width = len(query)
    result = simsimd.cdist(_matrix(query, width), _matrix(rows, width), "inner")
    return _numbers(result) * inverse * inverse_lengths(query, width)


def inverse_lengths(rows: Any, width: int) -> NDArray[np.float64]:
    """Return 1 / length of each packed vector of `width` numbers; 0 for one of zeros."""
    import numpy as np
    import simsimd

    if not len(rows):
        return np.zeros(0)
    matrix = _matrix(rows, width)
    lengths = np.sqrt(_numbers(simsimd.inner(matrix, matrix)))
    inverse = np.zeros(len(lengths))
    np.divide(1.0, lengths, out=inverse, where=lengths > 0)
    return inverse


def _matrix(rows: Any, width: int) -> NDArray[np.int8]:
    """Return a view of a buffer as a matrix with `width` signed bytes per row. Copies nothing."""
    import numpy as np

    return np.frombuffer(rows, np.int8).reshape(-1, width)


def _numbers(result: Any) -> NDArray[np.float64]:
    """Return the numbers of a result of simsimd, which is a buffer, as a flat array."""
    import numpy as np

    return np.frombuffer(memoryview(result).cast("B"), np.float64)


class QueryVector(bytes):
    """The vector of a query, with its embedder: vectors of two embedders are never compared."""

    embedder: str

    def __new__(cls, vector: bytes, embedder: str) -> QueryVector:
        query_vector = super().__new__(cls, vector)
        query_vector.embedder = embedder
        return query_vector


class _Rows:
    """Packed vectors in memory, one per row, and the note that owns each row.

    A row that is outdated has no owner, and stays until all rows are read again.
    """

    def __init__(self, places: Iterable[int] = (), vectors: bytearray | None = None) -> None:
        """`vectors` are those of `places`, in the same order."""
        self.owners = array("q", [place >> SHIFT for place in places])
        self.vectors = vectors if vectors is not None else bytearray()
        self.stale_rows = 0
        # Of the first rows. Those of new rows are computed when rows are compared.
        self._inverse_lengths = array("d")

    def add(self, rows: Iterable[tuple[int, bytes]]) -> None:
        """Append pairs of a place id and its vector, as new rows. Old rows of these notes stay."""
        for place, vector in rows:
            self.owners.append(place >> SHIFT)
            self.vectors += vector

    def forget(self, note_ids: Iterable[int]) -> None:
        """Mark the rows of notes as outdated, so that they have no owner."""
        import numpy as np

        owners = np.frombuffer(self.owners, np.int64)
        is_forgotten_note = _marks(note_ids, _id_limit(owners))
        is_forgotten = is_forgotten_note[owners]
        owners[is_forgotten] = _NO_NOTE
        self.stale_rows += int(np.count_nonzero(is_forgotten))

    def best(
        self,
        query: bytes,
        note_ids: Iterable[int] | None,
        size: int = 0,
    ) -> NDArray[np.float64]:
        """Return the best cosine with a query per note: an array by note id, of at least `size`.

        It is _FAR for an id without a row. The elements of `note_ids` are right (None: all); other
        elements may be right or _FAR.
        """
        import numpy as np

        owners = np.frombuffer(self.owners, np.int64)
        vectors = np.frombuffer(self.vectors, np.int8)
        inverse = self._inverse_lengths_of_all(len(query))
        best = np.full(max(size, _id_limit(owners)), _FAR)

        if note_ids is not None:
            is_candidate = _marks(note_ids, len(best))
            rows = np.flatnonzero(is_candidate[owners])
            # Copying more than a quarter of the rows takes longer than comparing all.
            if 4 * len(rows) < len(owners):
                owners = owners.take(rows)
                inverse = inverse.take(rows)
                table = vectors.reshape(-1, len(query))
                vectors = table.take(rows, 0).reshape(-1)

        np.maximum.at(best, owners, _cosines(query, vectors.data, inverse))
        best[_NO_NOTE] = _FAR
        return best

    def _inverse_lengths_of_all(self, width: int) -> NDArray[np.float64]:
        """Return 1 / length of each row, in their order. Computed once per row."""
        import numpy as np

        known_bytes = len(self._inverse_lengths) * width
        if known_bytes < len(self.vectors):
            new_rows = memoryview(self.vectors)[known_bytes:]
            new_lengths = inverse_lengths(new_rows, width)
            self._inverse_lengths.frombytes(new_lengths.tobytes())
        return np.frombuffer(self._inverse_lengths, np.float64)


def _id_limit(owners: NDArray[np.int64]) -> int:
    """Return the number above the largest of some note ids: the size of an array by note id."""
    return int(owners.max(initial=_NO_NOTE)) + 1


def _marks(note_ids: Iterable[int], size: int) -> NDArray[np.bool_]:
    """Return a mask by note id, of `size` elements, that is true for `note_ids`.

    Larger ids are ignored.
    """
    import numpy as np

    if not isinstance(note_ids, array):
        note_ids = list(note_ids)
    ids = np.asarray(note_ids, np.int64)
    marks = np.zeros(size, bool)
    marks[ids[ids < size]] = True
    return marks


class NearestNotes:
    """Finds the notes nearest to a query, for any thread.

    Guards the vectors that a process has in memory. By the `rev` of the notes, only those that
    changed are read again. A note that was removed is noticed when it would be returned.
    """

    def __init__(self, max_numbers: int = MAX_NUMBERS_IN_MEMORY) -> None:
        self._max_numbers = max_numbers
        self._lock = threading.Lock()
        self._state: _IndexState = (None, -1)
        self._passages = _Rows()
        self._blocks: _Rows | None = None  # None: each query reads the blocks that it needs
        self._was_asked = False  # whether there was a query before this one

    def find(
        self,
        db: Connection,
        state: _IndexState,
        query: bytes,
        ids: Ids,
        limit: int,
        also: Iterable[int],
        paths: Paths,
    ) -> Similarities:
        """Return the similarities of the `limit` nearest notes among `ids`, and of those in `also`.

        `ids` None means all notes; `also` must be among them. `state` says which index it is, and
        its newest `rev`; `paths` returns the paths of those notes that exist. Notes without a
        vector are left out. An engine that can find the nearest notes is asked first, if it has an
        index of vectors or this is the first query. Otherwise the vectors in memory are compared,
        after reading what changed.
        """
        if db.vectors.is_indexed or not self._was_asked:
            candidates = db.vectors.nearest_notes(query, ids, limit)
            if candidates is not None:
                self._was_asked = True
                return _compare(db, query, candidates, limit, set(also))
        with self._lock:
            self._follow(db, state)
            passages = self._passages.best(query, ids)
            if ids is not None:
                passages[~_marks(ids, len(passages))] = _FAR

            chosen = self._choose_notes(passages, limit, also, paths)
            return self._similarities_of(db, query, passages, chosen)

    def _choose_notes(
        self,
        passages: NDArray[np.float64],
        limit: int,
        also: Iterable[int],
        paths: Paths,
    ) -> set[int]:
        """Return the `limit` notes with the best passages, and those in `also` that have a passage.

        `passages` has cosines by note id. A note that no longer exists is not chosen: it is marked
        in `passages` as _FAR, its rows are forgotten, and the next best note is chosen instead.
        """
        import numpy as np

        also_ids = np.fromiter(also, np.int64)
        also_ids = also_ids[also_ids < len(passages)]
        while True:
            best = _best_of_all(passages, limit)
            also_comparable = also_ids[passages[also_ids] > _FAR]
            chosen = {*best.tolist(), *also_comparable.tolist()}

            removed = list(chosen.difference(paths(chosen)))
            if not removed:
                return chosen
            passages[removed] = _FAR
            self._passages.forget(removed)
            if self._blocks is not None:
                self._blocks.forget(removed)

    def _similarities_of(
        self,
        db: Connection,
        query: bytes,
        passages: NDArray[np.float64],
        note_ids: set[int],
    ) -> Similarities:
        """Return the similarities of some notes.

        `passages` has the cosine of each note's best passage. If the vectors of blocks are not in
        memory, those of these notes are read now.
        """
        import numpy as np

        blocks = self._blocks
        if blocks is None:
            blocks = _Rows()
            blocks.add(db.vectors.read_notes(sorted(note_ids), blocks=True))

        chosen = list(note_ids)
        best_passages = passages[chosen]
        best_blocks = blocks.best(query, note_ids, len(passages))[chosen]
        # A block that is a whole passage has no vector of its own: the passage counts as a block.
        best_blocks = np.maximum(best_passages, np.maximum(best_blocks, 0.0))
        scores = np.maximum((best_passages + best_blocks) / 2, 0.0)

        return Similarities(
            passages=dict(zip(chosen, best_passages.tolist(), strict=True)),
            blocks=dict(zip(chosen, best_blocks.tolist(), strict=True)),
            scores=dict(zip(chosen, scores.tolist(), strict=True)),
        )

    def _follow(self, db: Connection, state: _IndexState) -> None:
        """Bring the vectors in memory to a state of the index. Called with the lock held.

        If the index is another one or many rows are outdated, all passages are read; otherwise only
        the vectors of changed notes. From the second query on, blocks are kept in memory too, if
        the passages are not too many.
        """
        index, _ = state
        old_index, old_rev = self._state
        max_stale_rows = _MAX_STALE_ROWS + len(self._passages.owners) // 4
        is_stale = self._passages.stale_rows > max_stale_rows
        if index != old_index or is_stale:
            places, vectors = db.vectors.read_all(blocks=False)
            self._passages = _Rows(places, vectors)
            self._blocks = None
        elif state != self._state:
            self._read_changed(db, old_rev)

        are_few = len(self._passages.vectors) <= self._max_numbers
        if self._was_asked and self._blocks is None and are_few:
            places, vectors = db.vectors.read_all(blocks=True)
            self._blocks = _Rows(places, vectors)
        self._state = state
        self._was_asked = True

    def _read_changed(self, db: Connection, old_rev: int) -> None:
        """Replace the rows in memory of the notes whose `rev` is greater than `old_rev`."""
        rows = db.execute("SELECT id FROM notes WHERE rev > $1", (old_rev,))
        changed = sorted(note_id for (note_id,) in rows)
        self._passages.forget(changed)
        self._passages.add(db.vectors.read_notes(changed, blocks=False))
        if self._blocks is not None:
            self._blocks.forget(changed)
            self._blocks.add(db.vectors.read_notes(changed, blocks=True))


def _best_of_all(passages: NDArray[np.float64], limit: int) -> NDArray[np.int64]:
    """Return the ids of the `limit` notes with the best passages, best first, then by id.

    `passages` has a cosine at each note id; ids with _FAR are left out.
    """
    import numpy as np

    least = _FAR  # the cosine of the last note that can be returned
    if limit < len(passages):
        partitioned = np.partition(passages, -limit)
        least = partitioned[-limit]

    is_candidate = (passages >= least) & (passages > _FAR)
    candidates = np.flatnonzero(is_candidate)
    order = np.argsort(-passages[candidates], kind="stable")
    return candidates[order][:limit]


def _compare(
    db: Connection,
    query: bytes,
    candidates: Collection[int],
    limit: int,
    also: set[int],
) -> Similarities:
    """Return the similarities of the `limit` nearest candidates and of `also`.

    Reads the vectors of all candidates. Notes without a vector are left out.
    """
    note_ids = sorted(also.union(candidates))
    best_passages = _best_of_notes(query, db.vectors.read_notes(note_ids, blocks=False))
    best_blocks = _best_of_notes(query, db.vectors.read_notes(note_ids, blocks=True))
    comparable = [note_id for note_id in candidates if note_id in best_passages]
    comparable.sort(key=lambda note_id: (-best_passages[note_id], note_id))
    chosen = also.union(comparable[:limit])

    passages = {}
    blocks = {}
    scores = {}
    for note_id, passage in best_passages.items():
        if note_id not in chosen:
            continue
        block = max(0.0, passage, best_blocks.get(note_id, 0.0))
        passages[note_id] = passage
        blocks[note_id] = block
        scores[note_id] = max(0.0, (passage + block) / 2)
    return Similarities(passages, blocks, scores)


def _best_of_notes(query: bytes, rows: Iterable[tuple[int, bytes]]) -> dict[int, float]:
    """Return the best cosine with a query per note. `rows` are (place, vector)."""
    note_ids = []
    packed = bytearray()
    for place, vector in rows:
        note_ids.append(place >> SHIFT)
        packed += vector

    best: dict[int, float] = {}
    for note_id, cosine in zip(note_ids, cosines(query, packed).tolist(), strict=True):
        best_cosine = best.get(note_id, _FAR)
        best[note_id] = max(cosine, best_cosine)
    return best
