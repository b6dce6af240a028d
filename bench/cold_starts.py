"""Eight processes start at the same moment on a vault without an index; then all write at once.

    python bench/cold_starts.py [--rounds 25] [--servers 8] [--commits 200]

In every round all processes start together, scan the vault and search it. Each must find every note
without an error, and one index must result. In the end each changes a note of its own many times,
and checkpoints the log now and then. No change may fail, and the index must be sound and equal a
rebuilt one. Exits with 1 if anything is wrong.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from simplemem.settings.loading import load_settings
from simplemem.store import EnhancedStore

T = TypeVar("T")
SETTINGS: Final = load_settings({"embed.provider": "none"})
NOTES: Final = 30
FORK: Final = multiprocessing.get_context("fork")


def main() -> int:
    """Run the rounds and the writes. Return the exit code: 1 if anything was wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--servers", type=int, default=8)
    parser.add_argument("--commits", type=int, default=200)
    options = parser.parse_args()

    with tempfile.TemporaryDirectory(prefix="simplemem-cold-") as folder:
        vault = Path(folder)
        make_notes(vault)
        problems: list[str] = []
        for number in range(options.rounds):
            problems += start_cold(vault, number, options.servers)
        print(
            f"{options.rounds} cold starts of {options.servers} stores, "
            f"{len(problems)} answers not as they should be"
        )

        waits = in_parallel(options.servers, partial(write_often, vault, options.commits))
        print(
            f"{options.servers} times {options.commits} changes, "
            f"longest wait {max(waits) * 1000:.0f} ms"
        )
        problems += check_index(vault)

    for problem in problems:
        print(problem)
    if problems:
        print(f"{len(problems)} things are wrong")
        return 1
    print("one index each time, whole, and equal to a rebuilt one")
    return 0


def make_notes(vault: Path) -> None:
    """Write notes that all contain the word `plum` and link to the next one."""
    for number in range(NOTES):
        target = (number + 1) % NOTES
        text = f"plum {number} [[n{target}]]\n" + "other words\n" * 50
        (vault / f"n{number}.md").write_text(text)


def start_cold(vault: Path, number: int, servers: int) -> list[str]:
    """Delete the index, start so many processes, and return a line for each wrong count of hits."""
    for file in (vault / ".simplemem").glob("index.db*"):
        file.unlink()
    counts = in_parallel(servers, partial(count_hits, vault))
    return [f"start {number}: {count} notes found" for count in counts if count != NOTES]


def in_parallel(count: int, work: Callable[[int], T]) -> list[T]:
    """Call `work` with 0, 1, … in processes that begin at one moment. Return the results."""
    barrier = FORK.Barrier(count)
    with FORK.Pool(count, initializer=barrier.wait) as pool:
        return pool.map(work, range(count), chunksize=1)


def count_hits(vault: Path, _: int) -> int:
    """Scan a vault and return how many notes are found."""
    with EnhancedStore(vault, SETTINGS) as store:
        store.sync(embed=False)
        return len(store.search("plum", mode="text", limit=50).hits)


def write_often(vault: Path, count: int, process: int) -> float:
    """Append so many lines to the note of one process. Return the longest wait in seconds."""
    longest = 0.0
    with EnhancedStore(vault, SETTINGS) as store:
        for number in range(count):
            start = time.monotonic()
            store.update(f"n{process}", append=f"plum line {number}")
            if number % 40 == 5 * process:
                store._parts.index.database.checkpoint_log()
            longest = max(longest, time.monotonic() - start)
    return longest


def check_index(vault: Path) -> list[str]:
    """Return what is wrong with the index, by its own check and by `doctor`."""
    with EnhancedStore(vault, SETTINGS) as store:
        problems = list(store._parts.index.database.check())
        problems += [finding.message for finding in store.doctor() if finding.level == "error"]
    return problems


if __name__ == "__main__":
    sys.exit(main())
