"""What several servers on one vault cost while idle, and how soon they find an edit by hand.

    python bench/idle.py [--servers 5] [--notes 10000] [--seconds 60] [--edits 20] [--takeovers 3]

Prints for each server the CPU time, how often its threads woke, memory, threads, and whether it
watches the folder, all over the idle time. Then it prints how long after a save by hand a search
finds the saved text, also after `kill -9` of the server that watches. The vault is made and indexed
before the servers start. Linux only.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.conversation import Conversation, serve
from bench.vaults import make_vault


def main() -> None:
    """Make a vault, start the servers, and print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--servers", type=int, default=5)
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--edits", type=int, default=20)
    parser.add_argument("--takeovers", type=int, default=3)
    options = parser.parse_args()

    with tempfile.TemporaryDirectory(prefix="simplemem-idle-") as root, ExitStack() as stack:
        vault = Path(root) / "vault"
        make_vault(vault, options.notes)
        index = [sys.executable, "-m", "simplemem", "index", "--vault", str(vault)]
        subprocess.run(index, check=True, stdout=subprocess.DEVNULL)

        servers = [stack.enter_context(Conversation(serve(vault))) for _ in range(options.servers)]
        _wait_until_idle(servers)
        print(f"{len(servers)} servers on {options.notes} notes, idle for {options.seconds:g} s")
        measure_idle(servers, options.seconds)
        measure_edits(servers[0], vault, options.edits)
        takeovers = min(options.takeovers, options.servers - 1)
        measure_takeovers(servers, vault, takeovers)


def measure_idle(servers: list[Conversation], seconds: float) -> None:
    """Wait, and print what each server used meanwhile, and all together."""
    start = [(server.figures().cpu, count_wakes(server)) for server in servers]
    time.sleep(seconds)

    total_cpu = 0.0
    for number, (server, (cpu_at_start, wakes_at_start)) in enumerate(
        zip(servers, start, strict=True), 1
    ):
        figures = server.figures()
        cpu = figures.cpu - cpu_at_start
        wakes = (count_wakes(server) - wakes_at_start) / seconds
        role = "watching" if is_watching(server) else "not watching"
        print(
            f"  server {number}: {cpu:.2f} s cpu, {wakes:.1f} wakes a second, "
            f"{figures.resident:.0f} MB resident ({figures.private:.0f} MB its own), "
            f"{figures.threads} threads, {role}"
        )
        total_cpu += cpu
    print(f"together: {total_cpu:.2f} s cpu, {100 * total_cpu / seconds:.2f} % of a core")


def measure_edits(server: Conversation, vault: Path, count: int) -> None:
    """Edit a note by hand several times, and print how soon each edit was found."""
    times = []
    for number in range(count):
        seconds = seconds_until_found(server, vault / "edited.md", f"editedword{number}")
        times.append(1000 * seconds)
    if times:
        print(
            f"an edit by hand is found after {statistics.median(times):.0f} ms (median), "
            f"{max(times):.0f} ms at most"
        )


def measure_takeovers(servers: list[Conversation], vault: Path, count: int) -> None:
    """Kill the watching server several times, and print how soon another one finds an edit."""
    remaining = list(servers)
    for number in range(count):
        leader = next(server for server in remaining if is_watching(server))
        remaining.remove(leader)
        leader.kill()
        note = vault / f"takeover-{number}.md"
        seconds = seconds_until_found(remaining[0], note, f"takeoverword{number}")
        print(
            f"takeover {number + 1}: an edit by hand is found {seconds:.2f} s after the leader died"
        )


def _wait_until_idle(servers: list[Conversation]) -> None:
    """Wait until the index is complete, and 5 s more for the rest of the start."""
    for server in servers:
        # A list says so as long as the index is not complete.
        while "index" in server.use("list_memories", limit=1)["structuredContent"]:
            time.sleep(0.1)
    time.sleep(5.0)


def seconds_until_found(server: Conversation, note: Path, word: str) -> float:
    """Save a note by hand, and return how long it took until a search by words found it."""
    note.write_text(f"By hand: {word}\n")
    start = time.monotonic()
    while not _finds(server, word):
        time.sleep(0.002)
    return time.monotonic() - start


def _finds(server: Conversation, word: str) -> bool:
    answer = server.use("search_memories", query=word, mode="text", limit=1)
    return bool(answer["structuredContent"]["hits"])


def count_wakes(server: Conversation) -> int:
    """Return how often the threads of a server have waited and gone on."""
    wakes = 0
    for task in (Path("/proc") / str(server.process.pid) / "task").iterdir():
        for line in (task / "status").read_text().split("\n"):
            if line.startswith("voluntary_ctxt_switches"):
                wakes += int(line.split()[1])
    return wakes


def is_watching(server: Conversation) -> bool:
    """Tell whether a server watches the vault with inotify, as only the leader does."""
    descriptors = (Path("/proc") / str(server.process.pid) / "fd").iterdir()
    targets = (os.readlink(fd) for fd in descriptors if os.path.lexists(fd))
    return "anon_inode:inotify" in targets


if __name__ == "__main__":
    main()
