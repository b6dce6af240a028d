"""What servers cost that nobody asks anything: several on one vault, all idle; how soon an edit by hand is found; and
how soon it is when the one that leads is killed.

    python bench/idle.py [--servers 5] [--notes 10000] [--seconds 60] [--edits 20] [--takeovers 3]

Prints, for each server, processor time, how often its threads woke, inotify instances, memory, threads and children
over the idle time; then how long after a save by hand, and after `kill -9` of the leader, a search finds what was
saved. The vault is made afresh and indexed before the servers start.
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


def wakes(server: Conversation) -> int:
    """How often its threads have woken."""
    tasks = (Path("/proc") / str(server.process.pid) / "task").iterdir()
    lines = (line for task in tasks for line in (task / "status").read_text().split("\n"))
    return sum(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches"))


def watches(server: Conversation) -> bool:
    """Whether it listens to the vault: the one that leads does."""
    folder = Path("/proc") / str(server.process.pid) / "fd"
    return any(
        os.path.lexists(fd) and os.readlink(fd) == "anon_inode:inotify" for fd in folder.iterdir()
    )


def idle(servers: list[Conversation], notes: int, seconds: float) -> None:
    for server in servers:
        while "index" in server.use("list_memories", limit=1)["structuredContent"]:
            time.sleep(0.1)  # a list says so if the index is not complete
    time.sleep(5.0)  # what a start still has to do
    before = [(server.figures().cpu, wakes(server)) for server in servers]
    time.sleep(seconds)
    print(f"{len(servers)} servers on {notes} notes, idle for {seconds:g} s")
    spent = 0.0
    for number, (server, (cpu, woken)) in enumerate(zip(servers, before, strict=True), 1):
        now = server.figures()
        spent += now.cpu - cpu
        print(
            f"  server {number}: {now.cpu - cpu:.2f} s cpu, {(wakes(server) - woken) / seconds:.1f} wakes a second, "
            f"{now.resident:.0f} MB resident ({now.private:.0f} MB its own), {now.threads} threads, "
            f"{'watching' if watches(server) else 'not watching'}"
        )
    print(f"together: {spent:.2f} s cpu, {100 * spent / seconds:.2f} % of a core")


def found_after(server: Conversation, note: Path, word: str) -> float:
    """The seconds from a save by hand to a search that finds it: only what is in the index can be found."""
    note.write_text(f"By hand: {word}\n")
    began = time.monotonic()
    while not server.use("search_memories", query=word, mode="text", limit=1)["structuredContent"][
        "hits"
    ]:
        time.sleep(0.002)
    return time.monotonic() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--servers", type=int, default=5)
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--edits", type=int, default=20)
    parser.add_argument("--takeovers", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="simplemem-idle-") as room, ExitStack() as held:
        vault = Path(room) / "vault"
        make_vault(vault, given.notes)
        index = [sys.executable, "-m", "simplemem", "index", "--vault", str(vault)]
        subprocess.run(index, check=True, stdout=subprocess.DEVNULL)
        servers = [held.enter_context(Conversation(serve(vault))) for _ in range(given.servers)]
        idle(servers, given.notes, given.seconds)
        took = [
            1000 * found_after(servers[0], vault / "edited.md", f"editedword{k}")
            for k in range(given.edits)
        ]
        if took:
            print(
                f"an edit by hand is found after {statistics.median(took):.0f} ms (median), {max(took):.0f} ms at most"
            )
        for number in range(min(given.takeovers, given.servers - 1)):
            leader = next(server for server in servers if watches(server))
            servers.remove(leader)
            leader.kill()
            seconds = found_after(
                servers[0], vault / f"takeover-{number}.md", f"takeoverword{number}"
            )
            print(
                f"takeover {number + 1}: an edit by hand is found {seconds:.2f} s after the leader died"
            )


if __name__ == "__main__":
    main()
