"""What vectors cost in a `vec0` table of sqlite-vec: writing, reading all, and the nearest notes.

    python bench/vectors.py [--notes 10000]

Each note has three passages and two blocks, with random vectors of 256 numbers. The same is
measured with an ordinary table, as where the extension is missing. Times are CPU milliseconds, the
least of three runs.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.measure import cpu_milliseconds
from simplemem.index import vectors as in_memory
from simplemem.index.places import BLOCK, SHIFT
from simplemem.index.sqlite import engine as sqlite
from simplemem.index.sqlite.engine import SqliteConnection, open_engine

DIMENSION: Final = 256
PLACES_A_NOTE: Final = (0, 1, 2, BLOCK, BLOCK | 1)
NEAREST: Final = """
    SELECT id FROM vectors WHERE vector MATCH vec_int8($1) AND k = 800 AND is_block = 0
    ORDER BY distance"""
PASSAGES: Final = "SELECT id, vector FROM vectors WHERE id & 524288 = 0"

Rows = list[tuple[int, bytes]]
"""The ids of places with their vectors."""


def main() -> None:
    """Measure both kinds of table with the same rows."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--notes", type=int, default=10_000)
    options = parser.parse_args()

    rng = random.Random(1)
    rows = [(place, rng.randbytes(DIMENSION)) for place in place_ids(options.notes)]
    query = rng.randbytes(DIMENSION)
    for is_vec0 in (True, False):
        if not is_vec0:
            sqlite._extension = lambda: None  # type: ignore[assignment]
        with tempfile.TemporaryDirectory(prefix="simplemem-vectors-") as folder:
            measure(Path(folder), rows, query, is_vec0=is_vec0)


def place_ids(notes: int) -> Iterator[int]:
    """Yield the ids of the passages and blocks of so many notes."""
    for note_id in range(1, notes + 1):
        for number in PLACES_A_NOTE:
            yield note_id << SHIFT | number


def measure(folder: Path, rows: Rows, query: bytes, *, is_vec0: bool) -> None:
    """Write the rows into a new index, read and compare them, and print what each step cost."""
    engine = open_engine(folder / "index.db", nullcontext)
    with engine.writing() as db:
        insert_places(db, rows)
        db.vectors.create(DIMENSION)
        write = cpu_milliseconds(lambda: db.vectors.write(rows))

    with engine.reading() as db:
        read = least(lambda: db.vectors.read_all(blocks=False))
        read_by_row = least(lambda: db.execute(PASSAGES).fetchall())
        search = None
        if is_vec0:
            search = least(lambda: db.execute(NEAREST, (query,)).fetchall())
        passages = in_memory._Rows(*db.vectors.read_all(blocks=False))
        compare = least(lambda: passages.best(query, None))

    engine.checkpoint_log()
    print(f"{engine.vector_storage}, {len(rows):,} vectors, {engine.size() / 1e6:.1f} MB:")
    print(f"  write {write:.0f}; read all passages {read:.0f}, by row {read_by_row:.0f}")
    by_engine = "" if search is None else f"by the engine {search:.1f}, "
    print(f"  nearest passages: {by_engine}in memory {compare:.1f}")
    engine.close()


def insert_places(db: SqliteConnection, rows: Rows) -> None:
    """Insert the places to which the vectors belong."""
    sql = """
        INSERT INTO places (id, start, stop, line, headings, hash)
        VALUES ($1, 0, 1, 1, '[]', x'00')
    """
    db.executemany(sql, [(place,) for place, _ in rows])


def least(work: Callable[[], object]) -> float:
    """Do some work three times and return the least CPU milliseconds."""
    return min(cpu_milliseconds(work) for _ in range(3))


if __name__ == "__main__":
    main()
