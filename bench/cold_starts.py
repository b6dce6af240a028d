"""Eight processes that start at the same moment on a vault without an index, again and again; then all write at once.

    python bench/cold_starts.py [--rounds 25] [--servers 8] [--commits 200]

In every round all begin together, look through the vault and search it: each must find every note, without an error, and one
index be made. In the end they change a note of their own so many times and fold the log in now and then: no change may fail,
and the index must be whole and equal a rebuilt one. Exits with 1 when anything was not as it should be.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from simplemem.config import load_settings
from simplemem.store import EnhancedStore

SETTINGS = load_settings({"embed.provider": "none"})
NOTES = 30


def together(count: int, work: Callable[[int], object]) -> list[str]:
    """What so many processes say that begin at one moment."""
    start, go = os.pipe()
    hearing = []
    for me in range(count):
        reading, telling = os.pipe()
        if os.fork() == 0:
            said = "an error; see above"
            try:
                os.close(go)
                os.read(start, 1)  # until the starting pistol is closed
                said = json.dumps(work(me))
            except Exception as error:  # noqa: BLE001  (to be told of)
                traceback.print_exc()
                said = json.dumps(repr(error))
            finally:
                os.write(telling, said.encode())
                os._exit(0)
        os.close(telling)
        hearing.append(reading)
    os.close(start)
    os.close(go)
    answers = []
    for reading in hearing:
        with os.fdopen(reading) as pipe:
            answers.append(pipe.read())
    for _ in hearing:
        os.wait()
    return answers


def found_by_a_store(vault: Path) -> int:
    with EnhancedStore(vault, SETTINGS) as store:
        store.sync(embed=False)
        return len(store.search("plum", mode="text", limit=50).hits)


def commit_much(vault: Path, me: int, commits: int) -> float:
    """Change a note so often; the longest wait in seconds."""
    longest = 0.0
    with EnhancedStore(vault, SETTINGS) as store:
        for k in range(commits):
            began = time.monotonic()
            store.update(f"n{me}", append=f"plum line {k}")
            if k % 40 == 5 * me:
                store._core.index.database.checkpoint(0)
            longest = max(longest, time.monotonic() - began)
    return longest


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--servers", type=int, default=8)
    parser.add_argument("--commits", type=int, default=200)
    given = parser.parse_args()
    wrong: list[str] = []
    with tempfile.TemporaryDirectory(prefix="simplemem-cold-") as folder:
        vault = Path(folder)
        for k in range(NOTES):
            (vault / f"n{k}.md").write_text(f"plum {k} [[n{(k + 1) % NOTES}]]\n" + "other words\n" * 50)
        for k in range(given.rounds):
            for file in (vault / ".simplemem").glob("index.db*"):
                file.unlink()
            answers = together(given.servers, lambda _: found_by_a_store(vault))
            wrong += [f"start {k}: {answer}" for answer in answers if answer != str(NOTES)]
        print(f"{given.rounds} cold starts of {given.servers} stores, {len(wrong)} answers not as they should be")
        if given.commits:
            waits = together(given.servers, lambda me: commit_much(vault, me, given.commits))
            failed = [wait for wait in waits if not wait.replace(".", "").isdigit()]
            wrong += failed
            longest = max((float(wait) for wait in waits if wait not in failed), default=0.0)
            print(
                f"{given.servers} times {given.commits} changes, {len(failed)} failed, longest wait {longest * 1000:.0f} ms"
            )
        with EnhancedStore(vault, SETTINGS) as store:
            wrong += store._core.index.database.check()
            wrong += [finding.message for finding in store.doctor() if finding.level == "error"]
    print(*wrong, sep="\n", end="\n" if wrong else "")
    print(f"{len(wrong)} things are wrong" if wrong else "one index each time, whole, and equal to a rebuilt one")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
