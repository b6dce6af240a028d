"""The figures of docs/performance.md: `make bench`, or `python bench/run.py --notes 10000`.

Prints CPU seconds of this machine, and wall time only where the disk decides. A vault is made
afresh in a temporary folder each time.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import get_args

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.measure import (
    child_cpu_seconds,
    cpu_milliseconds,
    cpu_seconds,
    peak_memory,
    percentile,
)
from bench.vaults import make_queries, make_vault
from simplemem.search.rank import Mode
from simplemem.settings.loading import load_settings
from simplemem.store import EnhancedStore

COMMAND = [sys.executable, "-m", "simplemem"]


def main() -> None:
    """Make a vault, and print each figure of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--queries", type=int, default=200)
    options = parser.parse_args()

    with tempfile.TemporaryDirectory(prefix="simplemem-bench-", ignore_cleanup_errors=True) as root:
        vault = Path(root) / "vault"
        make_vault(vault, options.notes)
        size = sum(path.stat().st_size for path in vault.rglob("*.md"))
        print(f"{options.notes} notes, {size / 1e6:.1f} MB")

        measure_first_index(vault)
        measure_unchanged_scan(vault)
        measure_searches(vault, options.queries)
        measure_commands(vault)
        measure_writes(vault)


def measure_first_index(vault: Path) -> None:
    """Print what it costs to index words, and words and vectors, from nothing.

    Words are indexed three times, because other work on the machine can only add to the cost.
    """
    times = []
    for _ in range(3):
        seconds, _ = _first_index(vault, embed=False)
        times.append(seconds)
    with_vectors, megabytes = _first_index(vault, embed=True)
    print(
        f"cold index: text searchable after {min(times):.2f} s cpu "
        f"({max(times):.2f} s at most of three), "
        f"with vectors after {with_vectors:.2f} s; {megabytes:.0f} MB"
    )


def _first_index(vault: Path, *, embed: bool) -> tuple[float, float]:
    """Index from nothing. Return the CPU seconds until all is found, and the index's size in MB.

    Notes are found before the segments of the term index are merged, which is done last.
    """
    shutil.rmtree(vault / ".simplemem", ignore_errors=True)
    seconds = 0.0

    def note_progress(_phase: str, done: int, total: int) -> None:
        nonlocal seconds
        if done == total:
            seconds = time.process_time() - start

    with EnhancedStore(vault) as store:
        index_path = store._parts.index.path
        start = time.process_time()
        store.sync(progress=note_progress, embed=embed)

    # The store is closed, so nothing is left in the write-ahead log.
    return seconds, index_path.stat().st_size / 1e6


def measure_unchanged_scan(vault: Path) -> None:
    """Print what it costs to compare a vault that has not changed with its index."""
    with EnhancedStore(vault) as store:
        times = [cpu_seconds(store.sync) for _ in range(5)]
    print(f"unchanged scan: {statistics.median(times):.3f} s cpu")


def measure_searches(vault: Path, count: int) -> None:
    """Print the cost of searches in one process by each mode, and its peak of memory."""
    queries = make_queries(count)
    with EnhancedStore(vault) as store:
        store.search(queries[0])
        for mode in get_args(Mode):
            times = [
                cpu_milliseconds(lambda q=query, m=mode: store.search(q, mode=m))
                for query in queries
            ]
            median = percentile(times, 0.5)
            high = percentile(times, 0.95)
            print(f"search {mode}: p50 {median:.1f} ms, p95 {high:.1f} ms cpu")
        print(f"resident at most: {peak_memory():.0f} MB")


def measure_commands(vault: Path) -> None:
    """Print the cost of two commands from their start to their end."""
    for arguments in (["--help"], ["search", "bada komi", "--vault", str(vault)]):
        times = [child_cpu_seconds([*COMMAND, *arguments]) for _ in range(5)]
        print(f"simplemem {arguments[0]}: {statistics.median(times):.2f} s cpu")


def measure_writes(vault: Path) -> None:
    """Print the cost of an append, which waits until the disk has the text."""
    with EnhancedStore(vault, load_settings({"embed.provider": "none"})) as store:
        store.create("bench/note", "First line.")
        wall_times = []
        cpu_times = []
        for number in range(100):
            start = time.perf_counter()
            cpu = cpu_milliseconds(
                lambda line=f"line {number}": store.update("bench/note", append=line)  # type: ignore[misc]
            )
            wall_times.append(1000 * (time.perf_counter() - start))
            cpu_times.append(cpu)

    wall = statistics.median(wall_times)
    print(f"write: {wall:.1f} ms wall, {statistics.median(cpu_times):.1f} ms cpu")
    shutil.rmtree(vault / "bench")


if __name__ == "__main__":
    main()
