"""Mixed use of one server for a long time, with an editor at work beside it: do memory and open files stay where they were?

    python bench/soak.py [--minutes 30] [--notes 2000]

A client searches, reads, writes, moves, deletes and takes back, while another hand saves, renames and deletes the same files. Prints
memory, descriptors and CPU as it goes, and at the end whether every answer came and what a second look finds (`simplemem doctor`).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

WORDS = [
    "tide",
    "harbour",
    "kite",
    "balloon",
    "lantern",
    "copper",
    "meadow",
    "signal",
    "winter",
    "orchard",
    "ledger",
    "compass",
    "violet",
    "engine",
    "ferry",
]


class Conversation:
    """A client of one server."""

    def __init__(self, vault: Path) -> None:
        command = [sys.executable, "-m", "simplemem", "serve", "--vault", str(vault)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self._next = 0
        about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "soak", "version": "1"}}
        self.ask("initialize", about)
        self.ask("tools/list", {})

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdin is not None and self.process.stdout is not None
        self._next += 1
        self.process.stdin.write(
            json.dumps({"jsonrpc": "2.0", "id": self._next, "method": method, "params": params}) + "\n"
        )
        while (answer := json.loads(self.process.stdout.readline())).get("id") != self._next:
            pass
        return dict(answer["result"])

    def call(self, tool: str, **arguments: Any) -> str:
        """The code of the failure, or nothing."""
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})
        return str(result["structuredContent"]["error"]["code"]) if result.get("isError") else ""

    def figures(self) -> tuple[float, int, float]:
        """Resident megabytes, open files, CPU seconds."""
        at = Path("/proc") / str(self.process.pid)
        resident = next(
            int(row.split()[1]) for row in (at / "status").read_text().split("\n") if row.startswith("VmRSS")
        )
        fields = (at / "stat").read_text().rsplit(")", 1)[1].split()
        cpu = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return resident / 1024, len(os.listdir(at / "fd")), cpu


def said(rng: random.Random, words: int) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(words))


def edit_by_hand(vault: Path, stop: threading.Event, rng: random.Random) -> None:
    """Somebody with an editor, a file manager and a sync tool."""
    while not stop.wait(rng.uniform(0.05, 0.5)):
        path = vault / f"n{rng.randrange(400)}.md"
        act = rng.random()
        try:
            if act < 0.5:
                path.write_text(f"---\ntitle: By hand\n---\n{said(rng, 60)} [[n{rng.randrange(400)}]]\n")
            elif act < 0.8:
                beside = path.with_name(f".{path.name}.swp")
                beside.write_text(said(rng, 80))
                beside.replace(path)
            elif act < 0.9:
                path.rename(vault / f"n{rng.randrange(400)}.md")
            else:
                path.unlink()
        except FileNotFoundError:
            pass


def one_act(talk: Conversation, rng: random.Random) -> tuple[str, str]:
    name = f"n{rng.randrange(400)}"
    acts: dict[str, dict[str, Any]] = {
        "search_memories": {"query": said(rng, 3), "limit": rng.choice([5, 20])},
        "read_memory": {"name": name},
        "create_memory": {
            "name": name,
            "content": said(rng, 100),
            "metadata": {"tags": said(rng, 1)},
            "overwrite": True,
        },
        "update_memory": {"name": name, "append": said(rng, 10)},
        "change_tag": {"name": name, "tags": {said(rng, 1): rng.choice([True, None])}},
        "list_memories": {"limit": 50},
        "get_backlinks": {"name": name},
        "build_context": {"query": said(rng, 3)},
        "move_memory": {"name": name, "new_name": f"n{rng.randrange(400)}"},
        "delete_memory": {"name": name},
        "memory_history": {"name": name, "diff": True},
        "undo_change": {"name": name},
    }
    weights = [8, 6, 4, 4, 2, 1, 2, 2, 1, 1, 1, 1]
    tool = rng.choices(list(acts), weights)[0]
    return tool, talk.call(tool, **acts[tool])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--notes", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    with tempfile.TemporaryDirectory() as folder:
        vault = Path(folder)
        for k in range(args.notes):
            (vault / f"n{k}.md").write_text(
                f"---\ntitle: Note {k}\n---\n{said(rng, 150)} [[n{rng.randrange(args.notes)}]]\n"
            )
        talk = Conversation(vault)
        stop = threading.Event()
        hand = threading.Thread(target=edit_by_hand, args=(vault, stop, random.Random(args.seed + 1)))
        hand.start()
        counted: Counter[str] = Counter()
        began = shown = time.monotonic()
        while time.monotonic() - began < args.minutes * 60:
            tool, failure = one_act(talk, rng)
            counted[failure or "answered"] += 1
            if failure in ("unavailable", "invalid"):
                counted[f"{tool}: {failure}"] += 1
            if time.monotonic() - shown >= 60:
                shown = time.monotonic()
                resident, files, cpu = talk.figures()
                print(
                    f"{(shown - began) / 60:5.1f} min  {resident:6.1f} MB  {files:3d} files  {cpu:6.1f} s CPU  {sum(counted.values())} calls",
                    flush=True,
                )
            time.sleep(0.02)
        stop.set()
        hand.join()
        assert talk.process.stdin is not None
        talk.process.stdin.close()
        print(f"exit {talk.process.wait(10)}; answers: {dict(counted)}")
        return subprocess.run([sys.executable, "-m", "simplemem", "doctor", "--vault", str(vault)]).returncode


if __name__ == "__main__":
    sys.exit(main())
