"""What a write costs beyond its syncs: create, replace, append, tag, move and delete.

    python bench/writes.py [--notes 1000] [--times 60]

Prints for each operation the median wall time, how much of it the disk's syncs took, the rest (the
goal is 3 ms), and the CPU time, which is what the rest would be on a quiet machine. TMPDIR=FOLDER
chooses another disk.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.vaults import make_vault
from simplemem.settings.loading import load_settings
from simplemem.store import EnhancedStore
from simplemem.vault.folder import disk

Operation = Callable[[EnhancedStore, int], Any]
"""Carries out one write; the number makes its notes different from those of other calls."""

OPERATIONS: Final[dict[str, Operation]] = {
    "create": lambda store, number: store.create(
        f"bench/n{number}", f"Note {number} about [[note-000001]].\n\nSome more of it."
    ),
    "replace": lambda store, number: store.update(
        f"bench/n{number}", content=f"Another text {number}, of [[note-000002]]."
    ),
    "append": lambda store, number: store.update(f"bench/n{number}", append=f"And line {number}."),
    "tag": lambda store, number: store.change_tags(f"bench/n{number}", {"status": "done"}),
    "move": lambda store, number: store.move(f"bench/n{number}", f"bench/moved/m{number}"),
    "delete": lambda store, number: store.delete(f"bench/moved/m{number}"),
}


def main() -> None:
    """Make a vault and measure each operation in it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--notes", type=int, default=1000)
    parser.add_argument("--times", type=int, default=60)
    options = parser.parse_args()

    syncs = MeasuredSyncs()
    disk.sync_file = syncs
    with tempfile.TemporaryDirectory(prefix="simplemem-writes-") as folder:
        vault = Path(folder)
        make_vault(vault, options.notes)
        with EnhancedStore(vault, load_settings({"embed.provider": "none"})) as store:
            store.sync()
            for name, operation in OPERATIONS.items():
                samples = [
                    measure(syncs, partial(operation, store, number))
                    for number in range(options.times)
                ]
                print(f"{name}: {describe(samples)}")


class MeasuredSyncs:
    """Stands in for `disk.sync_file`. Counts its calls and the time that they take."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.cpu = 0.0
        self.count = 0
        self._sync_file = disk.sync_file

    def __call__(self, *args: Any, **options: Any) -> None:
        start = time.perf_counter()
        cpu_start = time.process_time()
        self._sync_file(*args, **options)
        self.seconds += time.perf_counter() - start
        self.cpu += time.process_time() - cpu_start
        self.count += 1


@dataclass(frozen=True)
class Sample:
    """What one write cost, in milliseconds, and its number of syncs."""

    wall: float
    in_syncs: float
    cpu: float  # without that of the syncs
    syncs: int


def measure(syncs: MeasuredSyncs, write: Callable[[], object]) -> Sample:
    """Carry out one write and return what it cost."""
    seconds_before = syncs.seconds
    count_before = syncs.count
    cpu_before = time.process_time() - syncs.cpu
    start = time.perf_counter()
    write()
    return Sample(
        wall=1000 * (time.perf_counter() - start),
        in_syncs=1000 * (syncs.seconds - seconds_before),
        cpu=1000 * (time.process_time() - syncs.cpu - cpu_before),
        syncs=syncs.count - count_before,
    )


def describe(samples: list[Sample]) -> str:
    """Return the medians of all samples as a line."""
    wall = statistics.median(sample.wall for sample in samples)
    in_syncs = statistics.median(sample.in_syncs for sample in samples)
    rest = statistics.median(sample.wall - sample.in_syncs for sample in samples)
    cpu = statistics.median(sample.cpu for sample in samples)
    sync_count = sum(sample.syncs for sample in samples) / len(samples)
    return (
        f"{wall:.1f} ms, of which {in_syncs:.1f} ms in {sync_count:.1f} syncs; "
        f"{rest:.1f} ms beyond them, {cpu:.1f} ms of it CPU"
    )


if __name__ == "__main__":
    main()
