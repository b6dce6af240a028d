"""Eight processes that start at the same moment on a vault without an index, again and again; then all write at once.

    python bench/cold_starts.py [--rounds 25] [--servers 8] [--commits 200]

In every round all begin together, look through the vault and search it: each must find every note, without an error,
and one index be made. In the end they change a note of their own so many times and fold the log in now and then: no
change may fail, and the index must be whole and equal a rebuilt one. Exits with 1 when anything was not as it should
be.
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
from typing import TypeVar

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from simplemem.settings.loading import load_settings
from simplemem.store import EnhancedStore

T = TypeVar("T")
SETTINGS = load_settings({"embed.provider": "none"})
NOTES = 30
FORKED = multiprocessing.get_context("fork")


def together(count: int, work: Callable[[int], T]) -> list[T]:
    """What so many processes say that begin at one moment."""
    start = FORKED.Barrier(count)
    with FORKED.Pool(count, initializer=start.wait) as pool:
        return pool.map(work, range(count), chunksize=1)


def found_by_a_store(vault: Path, _: int) -> int:
    with EnhancedStore(vault, SETTINGS) as store:
        store.sync(embed=False)
        return len(store.search("plum", mode="text", limit=50).hits)


def commit_much(vault: Path, commits: int, me: int) -> float:
    """Change a note so often; the longest wait in seconds."""
    longest = 0.0
    with EnhancedStore(vault, SETTINGS) as store:
        for k in range(commits):
            began = time.monotonic()
            store.update(f"n{me}", append=f"plum line {k}")
            if k % 40 == 5 * me:
                store._parts.index.database.checkpoint_log()
            longest = max(longest, time.monotonic() - began)
    return longest


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--servers", type=int, default=8)
    parser.add_argument("--commits", type=int, default=200)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="simplemem-cold-") as folder:
        vault = Path(folder)
        for k in range(NOTES):
            (vault / f"n{k}.md").write_text(
                f"plum {k} [[n{(k + 1) % NOTES}]]\n" + "other words\n" * 50
            )
        wrong: list[str] = []
        for k in range(given.rounds):
            for file in (vault / ".simplemem").glob("index.db*"):
                file.unlink()
            answers = together(given.servers, partial(found_by_a_store, vault))
            wrong += [f"start {k}: {answer} notes found" for answer in answers if answer != NOTES]
        print(
            f"{given.rounds} cold starts of {given.servers} stores, {len(wrong)} answers not as they should be"
        )
        waits = together(given.servers, partial(commit_much, vault, given.commits))
        print(
            f"{given.servers} times {given.commits} changes, longest wait {max(waits) * 1000:.0f} ms"
        )
        with EnhancedStore(vault, SETTINGS) as store:
            wrong += store._parts.index.database.check()
            wrong += [finding.message for finding in store.doctor() if finding.level == "error"]
    print(*wrong, sep="\n", end="\n" if wrong else "")
    print(
        f"{len(wrong)} things are wrong"
        if wrong
        else "one index each time, whole, and equal to a rebuilt one"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
