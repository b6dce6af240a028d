"""Many writers, a few notes: is any acknowledged write lost?

    python bench/contention.py [--stores 8] [--writes 200] [--notes 4] [--seed 1]

Each writer is a process with a store of its own. It reads a note, appends a line of its own with the hash it read, and tries
again on a conflict; every tenth act is a race of all to create one note, or to move a note of its own to one name.
Afterwards every acknowledged line stands in its note exactly once, each race has one winner, the history has a version for
every change, and the index equals a rebuilt one. Exits with 1 when anything is otherwise.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
import traceback
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from simplemem.config import load_settings
from simplemem.errors import AlreadyExists, Conflict
from simplemem.store import EnhancedStore

SETTINGS = load_settings({"embed.provider": "none"})


@dataclass
class Told:
    """What one writer was told."""

    lines: list[tuple[str, str]] = field(default_factory=list)  # note and line, each acknowledged
    won: list[str] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    conflicts: int = 0


def write_much(store: EnhancedStore, me: int, given: argparse.Namespace) -> Told:
    """One writer's work."""
    chance, told = random.Random(f"{given.seed} {me}"), Told()
    for k in range(given.writes):
        note, line = f"note{chance.randrange(given.notes)}", f"line s{me}w{k}x{chance.randrange(10**9)}"
        began = time.monotonic()
        while True:
            try:
                store.update(note, append=line, if_sha256=store.read(note).sha256)
                break
            except Conflict:
                told.conflicts += 1
        told.waits.append(time.monotonic() - began)
        told.lines.append((note, line))
        with suppress(AlreadyExists):  # somebody else won this race
            if k % 20 == 0:
                store.create(f"race{k}", f"by {me}")
                told.won.append(f"race{k}")
            elif k % 10 == 0:
                store.create(f"own{me}-{k}", f"by {me}")
                store.move(f"own{me}-{k}", f"race{k}")
                told.won.append(f"race{k}")
    return told


def by_stores(vault: Path, given: argparse.Namespace) -> list[Told]:
    """What each writer was told, in a process of its own. One that met an error says nothing but that."""
    pipes = []
    for me in range(given.stores):
        hearing, telling = os.pipe()
        if os.fork() == 0:
            try:
                with EnhancedStore(vault, SETTINGS) as store:
                    told = write_much(store, me, given)
                with os.fdopen(telling, "w") as pipe:
                    json.dump(told.__dict__, pipe)
                os._exit(0)
            finally:  # only an error leads here
                traceback.print_exc()
                os._exit(3)
        os.close(telling)
        pipes.append(os.fdopen(hearing))
    answers = [pipe.read() for pipe in pipes]
    for _ in pipes:
        os.wait()
    return [Told(**json.loads(answer)) for answer in answers if answer]


def what_is_wrong(vault: Path, told: list[Told], given: argparse.Namespace) -> list[str]:
    """Compare what was acknowledged with what is there."""
    lines = [pair for each in told for pair in map(tuple, each.lines)]
    texts = {path.stem: path.read_text(encoding="utf-8").split("\n") for path in vault.glob("*.md")}
    wrong = [f"{name} lost or doubled: {line}" for name, line in lines if texts[name].count(line) != 1]
    if len(lines) != given.stores * given.writes:
        wrong.append(f"{len(lines)} of {given.stores * given.writes} writes were acknowledged")
    won = sorted(name for each in told for name in each.won)
    if won != sorted(f"race{k}" for k in range(0, given.writes, 10)):
        wrong.append(f"the races were won by {won}")
    with EnhancedStore(vault, SETTINGS) as store:
        store.sync(embed=False)
        wrong += [finding.message for finding in store.doctor() if finding.level == "error"]
        wrong += [f"not in the index: {line}" for name, line in lines[:: max(1, len(lines) // 20)]
                  if name not in {hit.name for hit in store.search(line.split()[1], mode="text").hits}]  # fmt: skip
        wrong += [f"left behind: {path}" for path in vault.rglob(".simplemem-*.tmp")]
        updates = [entry for entry in store.history(limit=1_000_000) if entry.op == "update"]
        if len(updates) != len(lines):
            wrong.append(f"the history has {len(updates)} changes of text for {len(lines)} writes")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    for name, usual in (("stores", 8), ("writes", 200), ("notes", 4), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="simplemem-contention-") as folder:
        vault = Path(folder)
        for k in range(given.notes):
            (vault / f"note{k}.md").write_text(f"---\ntitle: Note {k}\n---\nstart\n")
        began = time.monotonic()
        told = by_stores(vault, given)
        seconds = time.monotonic() - began
        wrong = what_is_wrong(vault, told, given)
    waits = [1000 * wait for wait in sorted(wait for each in told for wait in each.waits)]
    print(*dict.fromkeys(wrong), sep="\n", end="\n" if wrong else "")
    print(
        f"{len(waits)} writes by {given.stores} stores on {given.notes} notes in {seconds:.1f} s, "
        f"{sum(each.conflicts for each in told)} conflicts tried again, seed {given.seed}"
    )
    if waits:
        print(f"a write with its tries: p50 {waits[len(waits) // 2]:.0f} ms, p99 {waits[int(len(waits) * 0.99)]:.0f} ms, "
              f"most {waits[-1]:.0f} ms")  # fmt: skip
    print(f"{len(wrong)} things are wrong" if wrong else "nothing was lost, doubled or refused without reason")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
