"""Mixed use of one server for a long time, with an editor at work beside it: do memory and open files stay where they were?

    python bench/soak.py [--minutes 30] [--notes 2000]

A client searches, reads, writes, moves, deletes, takes back, subscribes and asks for prompts, while another hand saves,
renames and deletes the same files. Prints memory, descriptors, threads and CPU as it goes, and at the end how the last
quarter compares with the second (the first warms up), whether every answer came, and what a second look finds
(`simplemem doctor`). Exits with 1 when something went wrong, a descriptor or thread was left behind, or, in five minutes and
more, memory grew by more than a twentieth.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.conversation import Conversation, Figures, Gone, serve

WORDS = (
    "tide harbour kite balloon lantern copper meadow signal winter orchard ledger compass violet engine ferry anchor "
    "barley candle dune ember falcon garnet hollow island juniper kernel lagoon marble nectar opal pebble quarry"
).split()
NAMES = 400
SAMPLE_SECONDS = 5.0
MOST_GROWTH = 0.05
"""Of memory, from the second quarter to the last: more is a leak, or a cache that is larger than it is worth."""
MOST_LEFT = 2
"""Files or threads more than then. Some come and go."""
FILES_OF_A_THREAD = 3
"""A second thread that answers is begun when two questions first meet, and has the index open."""
LEAST_MINUTES = 5.0

REFUSALS = {"not_found", "already_exists", "undo_change: conflict"}
"""What is to be expected where two hands work on the same notes. Anything else is a fault."""


def said(rng: random.Random, words: int) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(words))


def some_name(rng: random.Random) -> str:
    return f"n{rng.randrange(NAMES)}"


def edit_by_hand(vault: Path, stop: threading.Event, rng: random.Random) -> None:
    """Somebody with an editor, a file manager and a sync tool."""
    while not stop.wait(rng.uniform(0.05, 0.5)):
        path = vault / f"{some_name(rng)}.md"
        act = rng.random()
        try:
            if act < 0.5:
                path.write_text(f"---\ntitle: By hand\n---\n{said(rng, 60)} [[{some_name(rng)}]]\n")
            elif act < 0.8:
                beside = path.with_name(f".{path.name}.swp")
                beside.write_text(said(rng, 80))
                beside.replace(path)
            elif act < 0.9:
                path.rename(vault / f"{some_name(rng)}.md")
            else:
                path.unlink()
        except FileNotFoundError:
            pass


def one_act(talk: Conversation, rng: random.Random) -> tuple[str, str]:
    """Something that a client does: what it was, and how it failed if it did."""
    name = some_name(rng)
    if rng.random() < 0.1:
        return _beside_the_tools(talk, rng, name)
    written = {"content": said(rng, 100), "overwrite": True, "metadata": {"tags": said(rng, 1)}}
    acts: list[tuple[int, str, dict[str, Any]]] = [
        (8, "search_memories", {"query": said(rng, 3), "limit": rng.choice([5, 20])}),
        (6, "read_memory", {"name": name}),
        (4, "create_memory", {"name": name} | written),
        (4, "update_memory", {"name": name, "append": said(rng, 10)}),
        (2, "change_tag", {"name": name, "tags": {said(rng, 1): rng.choice([True, None])}}),
        (1, "list_memories", {"limit": 50}),
        (2, "get_backlinks", {"name": name}),
        (2, "build_context", {"query": said(rng, 3)}),
        (1, "move_memory", {"name": name, "new_name": f"{some_name(rng)}-{rng.randrange(2)}"}),
        (1, "delete_memory", {"name": name}),
        (1, "memory_history", {"name": name, "diff": True}),
        (1, "undo_change", {"name": name}),
    ]  # fmt: skip
    _, tool, arguments = rng.choices(acts, [weight for weight, _, _ in acts])[0]
    return tool, talk.call(tool, arguments)


def _beside_the_tools(talk: Conversation, rng: random.Random, name: str) -> tuple[str, str]:
    uri = rng.choice([f"memory://{name}", "memory://changes"])
    method, params = rng.choice([
        ("resources/read", {"uri": "memory://changes"}),
        ("resources/list", {}),
        ("resources/subscribe", {"uri": uri}),
        ("resources/unsubscribe", {"uri": uri}),
        ("prompts/get", {"name": "recall", "arguments": {"topic": said(rng, 2)}}),
        ("completion/complete", {"ref": {"type": "ref/resource", "uri": "memory://{+name}"},
                                 "argument": {"name": "name", "value": "n1"}}),
    ])  # fmt: skip
    return method, "protocol error" if "error" in talk.ask(method, params) else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--notes", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    rng = random.Random(given.seed)
    with tempfile.TemporaryDirectory(prefix="simplemem-soak-") as folder:
        vault = Path(folder)
        for k in range(given.notes):
            text = f"---\ntitle: Note {k}\n---\n{said(rng, 150)} [[n{rng.randrange(given.notes)}]]\n"
            (vault / f"n{k}.md").write_text(text)
        talk = Conversation(serve(vault), name="soak")
        talk.ask("tools/list", {})
        stop = threading.Event()
        hand = threading.Thread(target=edit_by_hand, args=(vault, stop, random.Random(given.seed + 1)))
        hand.start()
        try:
            counted, seen = use(talk, rng, given.minutes * 60)
        except Gone:
            print(f"the server is gone: exit {talk.process.wait()}")
            return 1
        finally:
            stop.set()
            hand.join()
        code = talk.end()
        print(f"exit {code}; {talk.told} notifications; answers: {dict(counted.most_common())}")
        faults = [each for each in counted if each != "answered" and each not in REFUSALS]
        left = compare(seen, given.minutes)
        looked = subprocess.run([sys.executable, "-m", "simplemem", "doctor", "--vault", str(vault), "--json"],
                                capture_output=True, text=True, check=False)  # fmt: skip
        found = Counter(finding["check"] for finding in json.loads(looked.stdout)["findings"])
        print(f"doctor: {dict(found)}")
        return 1 if code or faults or left or "index" in found else 0


def use(talk: Conversation, rng: random.Random, seconds: float) -> tuple[Counter[str], list[Figures]]:
    """Use a server for so long; how its answers were, and what it held all the while."""
    counted: Counter[str] = Counter()
    seen: list[Figures] = []
    began = shown = sampled = time.monotonic()
    while (now := time.monotonic()) - began < seconds:
        act, failure = one_act(talk, rng)
        counted[failure if failure in REFUSALS else f"{act}: {failure}" if failure else "answered"] += 1
        if now - sampled >= SAMPLE_SECONDS:
            sampled = now
            seen.append(talk.figures())
        if now - shown >= 60 and seen:
            shown = now
            print(f"{(now - began) / 60:5.1f} min  {line_of(seen[-1])}  {sum(counted.values())} calls", flush=True)
        time.sleep(0.02)
    return counted, seen


def line_of(at: Figures) -> str:
    return (
        f"{at.resident:6.1f} MB resident, {at.private:6.1f} MB its own  {at.files:3d} files  {at.threads:2d} threads  "
        f"{at.cpu:6.1f} s CPU"
    )


def compare(seen: list[Figures], minutes: float) -> bool:
    """Print the second quarter and the last side by side. Whether memory grew, or files or threads were left behind."""
    quarter = len(seen) // 4
    if not quarter:
        print("too short to compare")
        return False
    early, late = seen[quarter : 2 * quarter], seen[-quarter:]
    faults, threads = [], 0.0
    for what in ("resident", "private", "threads", "files"):
        before, after = (statistics.median(getattr(each, what) for each in part) for part in (early, late))
        grown = after - before
        if what == "threads":
            threads = max(grown, 0.0)
        most = {
            "resident": before * MOST_GROWTH,
            "threads": MOST_LEFT,
            "files": MOST_LEFT + FILES_OF_A_THREAD * threads,
        }
        judged = what in most and (
            what != "resident" or minutes >= LEAST_MINUTES
        )  # the private is a part of the resident
        if judged and grown > most[what]:
            faults.append("memory" if what == "resident" else what)
        share = f", {grown / before:+.1%}" if what in ("resident", "private") else ""
        print(f"{what}: {before:.1f} in the second quarter, {after:.1f} in the last ({grown:+.1f}{share})")
    if minutes < LEAST_MINUTES:
        print(f"memory is judged from {LEAST_MINUTES:g} minutes on: before, a server is still loading what it uses")
    if faults:
        print(f"not flat: {', '.join(faults)}")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
