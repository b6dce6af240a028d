"""What it costs to keep vectors in a `vec0` table of sqlite-vec: writing, reading all, and the nearest notes.

    python bench/vectors.py [--notes 10000]

Each note has three passages and two blocks, with random vectors of 256 numbers. CPU milliseconds; the least of three.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path

from simplemem.index import vectors as in_memory
from simplemem.index.places import BLOCK, SHIFT
from simplemem.index.sqlite import engine as sqlite
from simplemem.index.sqlite.engine import SqliteConnection, open_engine

DIMENSION = 256
NEAREST = """
    SELECT id FROM vectors WHERE vector MATCH vec_int8($1) AND k = 800 AND is_block = 0
    ORDER BY distance"""
NUMBERS = (0, 1, 2, BLOCK, BLOCK | 1)  # of the places of a note


def places(notes: int) -> Iterator[int]:
    for note_id in range(1, notes + 1):
        for number in NUMBERS:
            yield note_id << SHIFT | number


def milliseconds(act: Callable[[], object], times: int = 3) -> float:
    best = float("inf")
    for _ in range(times):
        began = time.process_time()
        act()
        best = min(best, time.process_time() - began)
    return 1000 * best


def fill(db: SqliteConnection, rows: list[tuple[int, bytes]]) -> None:
    sql = "INSERT INTO places (id, start, stop, line, headings, hash) VALUES ($1, 0, 1, 1, '[]', x'00')"
    db.executemany(sql, [(place,) for place, _ in rows])
    db.vectors.create(DIMENSION)


def measure(folder: Path, rows: list[tuple[int, bytes]], query: bytes, *, is_vec0: bool) -> None:
    engine = open_engine(folder / "index.db", nullcontext)
    with engine.writing() as db:
        fill(db, rows)
        written = milliseconds(lambda: db.vectors.write(rows), times=1)
    with engine.reading() as db:
        read = milliseconds(lambda: db.vectors.read_all(blocks=False))
        all_rows = "SELECT id, vector FROM vectors WHERE id & 524288 = 0"
        by_row = milliseconds(lambda: db.execute(all_rows).fetchall())
        nearest = milliseconds(lambda: db.execute(NEAREST, (query,)).fetchall()) if is_vec0 else 0
        places_and_vectors = db.vectors.read_all(blocks=False)
        passages = in_memory._Rows(*places_and_vectors)
        compared = milliseconds(lambda: passages.best(query, None))
    engine.checkpoint_log()
    print(f"{engine.vector_storage}, {len(rows):,} vectors, {engine.size() / 1e6:.1f} MB:")
    print(f"  write {written:.0f}; read all passages {read:.0f}, by row {by_row:.0f}")
    by_engine = f"by the engine {nearest:.1f}, " if is_vec0 else ""
    print(f"  nearest passages: {by_engine}in memory {compared:.1f}")
    engine.close()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--notes", type=int, default=10_000)
    given = parser.parse_args()
    chance = random.Random(1)
    rows = [(place, chance.randbytes(DIMENSION)) for place in places(given.notes)]
    query = chance.randbytes(DIMENSION)
    for has_extension in (True, False):
        if not has_extension:
            sqlite._extension = lambda: None  # type: ignore[assignment]
        with tempfile.TemporaryDirectory(prefix="simplemem-vectors-") as folder:
            measure(Path(folder), rows, query, is_vec0=has_extension)


if __name__ == "__main__":
    main()
