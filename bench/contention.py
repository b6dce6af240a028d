"""Many writers, a few notes: is any acknowledged write lost?

    python bench/contention.py [--servers 8] [--writes 200] [--notes 4] [--pace-ms 0] [--through store|server] [--seed 1]

Each writer is a process of its own: with `server` a real `simplemem serve` and a client, with `store` the store alone. It
reads a note, appends a line of its own with the hash it read, and tries again on a conflict; every tenth act is a race of
all to create one note, or to move a note of its own to one name. Afterwards every acknowledged line stands in its note
exactly once, each race has one winner, the history has a version for every change, and the index equals a rebuilt one.
Exits with 1 when anything is otherwise.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.conversation import Conversation, failure_in, serve
from simplemem.config import load_settings
from simplemem.errors import SimplememError
from simplemem.store import EnhancedStore

SETTINGS = load_settings({"embed.provider": "none"})
MOST_TRIES = 500


@dataclass
class Told:
    """What one writer was told."""

    lines: list[tuple[str, str]] = field(default_factory=list)  # note and line, each acknowledged
    won: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    conflicts: int = 0


Act = Callable[..., tuple[str, dict[str, Any]]]
"""Asks for something by the name of its tool: the code of the failure ("" when it was done), and what was answered."""


def through_a_server(talk: Conversation) -> Act:
    def act(tool: str, **arguments: Any) -> tuple[str, dict[str, Any]]:
        result = talk.use(tool, **arguments)
        return failure_in(result), result.get("structuredContent", {})

    return act


def through_a_store(store: EnhancedStore) -> Act:
    def act(tool: str, **arguments: Any) -> tuple[str, dict[str, Any]]:
        try:
            if tool == "read_memory":
                return "", {"sha256": store.read(**arguments).sha256}
            getattr(store, tool.partition("_")[0])(**arguments)
            return "", {}
        except SimplememError as error:
            return error.code, {}

    return act


def write_much(act: Act, me: int, writes: int, notes: int, pace: float, seed: int) -> Told:
    """One writer's work."""
    chance, told = random.Random(f"{seed} {me}"), Told()
    for k in range(writes):
        note, line = f"note{chance.randrange(notes)}", f"line s{me}w{k}x{chance.randrange(10**9)}"
        began = time.monotonic()
        for _ in range(MOST_TRIES):
            _, seen = act("read_memory", name=note)
            failure, _ = act("update_memory", name=note, append=line, if_sha256=seen.get("sha256"))
            if failure != "conflict":
                break
            told.conflicts += 1
        told.waits.append(time.monotonic() - began)
        told.lines.append((note, line)) if not failure else told.errors.append(failure)
        if k % 10 == 0:
            race(act, me, k, told)
        if pace:
            time.sleep(pace * chance.random() * 2)
    return told


def race(act: Act, me: int, k: int, told: Told) -> None:
    """All make one note, or move one of their own to one name: one of them wins."""
    if k % 20 == 0:
        failure, _ = act("create_memory", name=f"race{k}", content=f"by {me}")
    else:
        act("create_memory", name=f"own{me}-{k}", content=f"by {me}")
        failure, _ = act("move_memory", name=f"own{me}-{k}", new_name=f"race{k}")
    if not failure:
        told.won.append(f"race{k}")
    elif failure != "already_exists":
        told.errors.append(failure)


def by_servers(vault: Path, given: argparse.Namespace) -> list[Told]:
    """Each writer a client with a server of its own."""
    told: list[Told] = []

    def work(me: int) -> None:
        with Conversation(serve(vault), name=f"writer {me}") as talk:
            told.append(write_much(through_a_server(talk), me, given.writes, given.notes, given.pace, given.seed))
            talk.end()

    threads = [threading.Thread(target=work, args=(me,)) for me in range(given.servers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return told


def by_stores(vault: Path, given: argparse.Namespace) -> list[Told]:
    """Each writer a process with a store of its own."""
    pipes = []
    for me in range(given.servers):
        hearing, telling = os.pipe()
        if os.fork() == 0:
            try:
                with EnhancedStore(vault, SETTINGS) as store:
                    act = through_a_store(store)
                    told = write_much(act, me, given.writes, given.notes, given.pace, given.seed)
                with os.fdopen(telling, "w") as pipe:
                    json.dump(told.__dict__, pipe)
                os._exit(0)
            finally:  # only an error leads here
                traceback.print_exc()
                os._exit(3)
        os.close(telling)
        pipes.append(hearing)
    answers = []
    for hearing in pipes:
        with os.fdopen(hearing) as pipe:
            answers.append(pipe.read())
    for _ in pipes:
        os.wait()
    return [Told(**json.loads(answer)) for answer in answers if answer]


def what_is_wrong(vault: Path, told: list[Told], given: argparse.Namespace) -> list[str]:
    """Compare what was acknowledged with what is there."""
    lines = [pair for each in told for pair in map(tuple, each.lines)]
    texts = {path.stem: path.read_text(encoding="utf-8").split("\n") for path in vault.glob("*.md")}
    wrong = [f"{name} lost or doubled: {line}" for name, line in lines if texts[name].count(line) != 1]
    if len(lines) != given.servers * given.writes:
        wrong.append(f"{len(lines)} of {given.servers * given.writes} writes were acknowledged")
    wrong += [f"an error: {error}" for each in told for error in each.errors]
    won = sorted(name for each in told for name in each.won)
    if won != sorted(f"race{k}" for k in range(0, given.writes, 10)):
        wrong.append(f"the races were won by {won}")
    with EnhancedStore(vault, SETTINGS) as store:
        store.sync(embed=False)
        wrong += [finding.message for finding in store.doctor() if finding.level == "error"]
        wrong += [f"not in the index: {line}" for name, line in lines[:: max(1, len(lines) // 20)]
                  if name not in {hit.name for hit in store.search(line.split()[1], mode="text").hits}]  # fmt: skip
        wrong += [f"left behind: {path}" for path in store._core.vault.strays()]
        updates = [entry for entry in store.history(limit=1_000_000) if entry.op == "update"]
        if len(updates) != len(lines):
            wrong.append(f"the history has {len(updates)} changes of text for {len(lines)} writes")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--servers", type=int, default=8)
    parser.add_argument("--writes", type=int, default=200)
    parser.add_argument("--notes", type=int, default=4)
    parser.add_argument("--pace-ms", type=float, default=0, dest="pace", help="wait so long between writes (the mean)")
    parser.add_argument("--through", choices=("server", "store"), default="server")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    given.pace /= 1000
    with tempfile.TemporaryDirectory(prefix="simplemem-contention-") as folder:
        vault = Path(folder)
        for k in range(given.notes):
            (vault / f"note{k}.md").write_text(f"---\ntitle: Note {k}\n---\nstart\n")
        began = time.monotonic()
        told = by_servers(vault, given) if given.through == "server" else by_stores(vault, given)
        seconds = time.monotonic() - began
        wrong = what_is_wrong(vault, told, given)
    waits = sorted(wait for each in told for wait in each.waits)
    print(*dict.fromkeys(wrong), sep="\n", end="\n" if wrong else "")
    print(
        f"{sum(len(each.lines) for each in told)} writes by {given.servers} {given.through}s on {given.notes} notes in "
        f"{seconds:.1f} s, {sum(each.conflicts for each in told)} conflicts tried again, seed {given.seed}"
    )
    if waits:
        at = [1000 * waits[int((len(waits) - 1) * share)] for share in (0.5, 0.99, 1.0)]
        print(f"a write with its tries: p50 {at[0]:.0f} ms, p99 {at[1]:.0f} ms, most {at[2]:.0f} ms")
    print(f"{len(wrong)} things are wrong" if wrong else "nothing was lost, doubled or refused without reason")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
