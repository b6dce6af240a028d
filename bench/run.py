"""The figures of docs/performance.md: `make bench`, or `python bench/run.py --notes 10000`.

CPU seconds of this machine, and ratios; wall time only where waiting is the point. A vault is made afresh in a temporary
folder each time.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.vaults import make_queries, make_vault
from simplemem.settings.loading import load_settings
from simplemem.store import EnhancedStore

COMMAND = [sys.executable, "-m", "simplemem"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--queries", type=int, default=200)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="simplemem-bench-", ignore_cleanup_errors=True) as room:
        vault = Path(room) / "vault"
        make_vault(vault, given.notes)
        print(
            f"{given.notes} notes, {sum(p.stat().st_size for p in vault.rglob('*.md')) / 1e6:.1f} MB"
        )
        for measure in (cold, unchanged, searching, one_shot, writing):
            measure(vault, given.queries)


def cold(vault: Path, _: int) -> None:
    """From no index to words, and to words and vectors, as `simplemem index` makes them. Words three times, since
    whoever else is on the machine only ever adds to what one costs."""
    words = sorted(_first_index(vault, embed=False)[0] for _ in range(3))
    whole, size = _first_index(vault, embed=True)
    print(
        f"cold index: text searchable after {words[0]:.2f} s cpu ({words[-1]:.2f} s at most of three), "
        f"with vectors after {whole:.2f} s; {size:.0f} MB"
    )


def _first_index(vault: Path, *, embed: bool) -> tuple[float, float]:
    """The CPU seconds until all that is wanted is found, and the megabytes of the index. Words are found before they are
    folded, which the first index does at its end."""
    shutil.rmtree(vault / ".simplemem", ignore_errors=True)
    found = 0.0

    def told(_stage: str, done: int, total: int) -> None:
        nonlocal found
        if done == total:
            found = time.process_time() - began

    with EnhancedStore(vault) as store:
        index = store._parts.index.path
        began = time.process_time()
        store.sync(progress=told, embed=embed)
    return found, index.stat().st_size / 1e6  # closed, so nothing is left in the write-ahead log


def unchanged(vault: Path, _: int) -> None:
    """A start on a vault that has not changed."""
    with EnhancedStore(vault) as store:
        print(f"unchanged scan: {statistics.median(_cpu(store.sync) for _ in range(5)):.3f} s cpu")


def searching(vault: Path, count: int) -> None:
    """Searches in a process that stays."""
    queries = make_queries(count)
    with EnhancedStore(vault) as store:
        store.search(queries[0])
        for mode in ("hybrid", "text", "semantic"):
            times = sorted(
                1000 * _cpu(lambda q=query, m=mode: store.search(q, mode=m)) for query in queries
            )
            print(f"search {mode}: p50 {_at(times, 0.5):.1f} ms, p95 {_at(times, 0.95):.1f} ms cpu")
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"resident at most: {memory:.0f} MB")


def one_shot(vault: Path, _: int) -> None:
    """Commands, from start to end."""
    for words in (["--help"], ["search", "bada komi", "--vault", str(vault)]):
        times = [_child_cpu([*COMMAND, *words]) for _ in range(5)]
        print(f"simplemem {words[0]}: {statistics.median(times):.2f} s cpu")


def writing(vault: Path, _: int) -> None:
    """A write that waits for the disk."""
    with EnhancedStore(vault, load_settings({"embed.provider": "none"})) as store:
        store.create("bench/note", "First line.")
        walls, cpus = [], []
        for k in range(100):
            began = time.perf_counter()
            cpus.append(1000 * _cpu(lambda k=k: store.update("bench/note", append=f"line {k}")))  # type: ignore[misc]
            walls.append(1000 * (time.perf_counter() - began))
        print(
            f"write: {statistics.median(walls):.1f} ms wall, {statistics.median(cpus):.1f} ms cpu"
        )
    shutil.rmtree(vault / "bench")


def _cpu(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def _child_cpu(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _at(times: list[float], share: float) -> float:
    return times[min(len(times) - 1, int(len(times) * share))]


if __name__ == "__main__":
    main()
