"""What a write costs beyond its syncs: create, replace, append, tag, move and delete, in a vault of some size.

    python bench/writes.py [--notes 1000] [--times 60]

Prints for each the median wall time, how much of it the disk's syncs took, what is left (the goal is 3 ms), and the CPU
time, which is what would be left on a machine that nobody else uses. Another disk is tried with TMPDIR=FOLDER.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.vaults import make_vault
from simplemem.settings.loading import load_settings
from simplemem.store import EnhancedStore
from simplemem.vault.folder import disk

ACTS: dict[str, Callable[[EnhancedStore, int], Any]] = {
    "create": lambda s, k: s.create(
        f"bench/n{k}", f"Note {k} about [[note-000001]].\n\nSome more of it."
    ),
    "replace": lambda s, k: s.update(
        f"bench/n{k}", content=f"Another text {k}, of [[note-000002]]."
    ),
    "append": lambda s, k: s.update(f"bench/n{k}", append=f"And line {k}."),
    "tag": lambda s, k: s.change_tags(f"bench/n{k}", {"status": "done"}),
    "move": lambda s, k: s.move(f"bench/n{k}", f"bench/moved/m{k}"),
    "delete": lambda s, k: s.delete(f"bench/moved/m{k}"),
}


class Syncs:
    """How long the disk was waited for."""

    def __init__(self) -> None:
        self.seconds = self.cpu = 0.0
        self.count = 0
        self._real = disk.sync_file

    def __call__(self, *args: Any, **options: Any) -> None:
        began, cpu = time.perf_counter(), time.process_time()
        self._real(*args, **options)
        self.seconds += time.perf_counter() - began
        self.cpu += time.process_time() - cpu
        self.count += 1


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--notes", type=int, default=1000)
    parser.add_argument("--times", type=int, default=60)
    given = parser.parse_args()
    syncs = Syncs()
    disk.sync_file = syncs
    with tempfile.TemporaryDirectory(prefix="simplemem-writes-") as folder:
        vault = Path(folder)
        make_vault(vault, given.notes)
        with EnhancedStore(vault, load_settings({"embed.provider": "none"})) as store:
            store.sync()
            for name, act in ACTS.items():
                walls, synced, cpus, count = [], [], [], syncs.count
                for k in range(given.times):
                    before, began, cpu = (
                        syncs.seconds,
                        time.perf_counter(),
                        time.process_time() - syncs.cpu,
                    )
                    act(store, k)
                    walls.append(1000 * (time.perf_counter() - began))
                    cpus.append(1000 * (time.process_time() - syncs.cpu - cpu))
                    synced.append(1000 * (syncs.seconds - before))
                beyond = [wall - sync for wall, sync in zip(walls, synced, strict=True)]
                print(
                    f"{name}: {statistics.median(walls):.1f} ms, of which {statistics.median(synced):.1f} ms in "
                    f"{(syncs.count - count) / given.times:.1f} syncs; {statistics.median(beyond):.1f} ms beyond them, "
                    f"{statistics.median(cpus):.1f} ms of it CPU"
                )


if __name__ == "__main__":
    main()
