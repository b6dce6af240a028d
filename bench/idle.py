"""What servers cost that nobody asks anything: several on one vault, all idle, and then the one that leads is killed.

    python bench/idle.py [--servers 5] [--notes 10000] [--seconds 60] [--takeovers 3]

Prints, for each server, processor time, how often its threads woke, inotify instances, memory, threads and children over
the idle time; then how long after `kill -9` of the leader another server has indexed an edit that was made by hand the
moment the leader died. The vault is made afresh and indexed before the servers start.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.vaults import make_vault


@dataclass(frozen=True)
class Cost:
    """What a server has used and holds at a moment."""

    cpu: float
    wakes: int
    resident: float
    private: float
    inotify: int
    threads: int
    children: int


class Idle:
    """A server and a client that has said hello, asked for the tools and then says nothing more."""

    def __init__(self, vault: Path) -> None:
        command = [sys.executable, "-m", "simplemem", "serve", "--vault", str(vault)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self._next = 0
        self._held = b""
        about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "idle", "version": "1"}}
        self.ask("initialize", about)
        self.ask("tools/list", {})

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdin is not None
        self._next += 1
        message = {"jsonrpc": "2.0", "id": self._next, "method": method, "params": params}
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        while (answer := json.loads(self._line())).get("id") != self._next:
            pass
        return dict(answer["result"])

    def _line(self) -> bytes:
        assert self.process.stdout is not None
        while b"\n" not in self._held:
            self._held += os.read(self.process.stdout.fileno(), 1 << 16)
        line, self._held = self._held.split(b"\n", 1)
        return line

    def finds(self, word: str) -> bool:
        """Whether a search for the word finds a note: only what is in the index can be found."""
        params = {"name": "search_memories", "arguments": {"query": word, "mode": "text", "limit": 1}}
        return bool(self.ask("tools/call", params)["structuredContent"]["hits"])

    def is_settled(self) -> bool:
        params = {"name": "list_memories", "arguments": {"limit": 1}}
        return bool(self.ask("tools/call", params)["structuredContent"]["index"]["state"] == "ready")

    def cost(self) -> Cost:
        at = Path("/proc") / str(self.process.pid)
        status = _fields(at / "status")
        times = (at / "stat").read_text().rsplit(")", 1)[1].split()
        tasks = list((at / "task").iterdir())
        return Cost(
            cpu=(int(times[11]) + int(times[12])) / os.sysconf("SC_CLK_TCK"),
            wakes=sum(int(_fields(task / "status")["voluntary_ctxt_switches"]) for task in tasks),
            resident=int(status["VmRSS"].split()[0]) / 1024,
            private=int(status["RssAnon"].split()[0]) / 1024,
            inotify=sum(1 for fd in (at / "fd").iterdir() if _points_at(fd) == "anon_inode:inotify"),
            threads=len(tasks),
            children=sum(len((task / "children").read_text().split()) for task in tasks),
        )

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


def _fields(file: Path) -> dict[str, str]:
    return dict(row.split(":", 1) for row in file.read_text().split("\n") if ":" in row)


def _points_at(link: Path) -> str:
    try:
        return str(os.readlink(link))
    except OSError:
        return ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--servers", type=int, default=5)
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--takeovers", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="simplemem-idle-") as room:
        vault = Path(room) / "vault"
        make_vault(vault, given.notes)
        subprocess.run(
            [sys.executable, "-m", "simplemem", "index", "--vault", str(vault)], check=True, stdout=subprocess.DEVNULL
        )
        servers = [Idle(vault) for _ in range(given.servers)]
        try:
            idle(servers, given.notes, given.seconds)
            for number in range(min(given.takeovers, given.servers - 1)):
                takeover(vault, servers, number)
        finally:
            for server in servers:
                server.end()


def idle(servers: list[Idle], notes: int, seconds: float) -> None:
    for server in servers:
        while not server.is_settled():
            time.sleep(0.1)
    time.sleep(5.0)  # what a start still has to do
    before = [server.cost() for server in servers]
    time.sleep(seconds)
    after = [server.cost() for server in servers]
    print(f"{len(servers)} servers on {notes} notes, idle for {seconds:g} s")
    for one, (was, now) in enumerate(zip(before, after, strict=True), 1):
        print(
            f"  server {one}: {now.cpu - was.cpu:.2f} s cpu, {(now.wakes - was.wakes) / seconds:.1f} wakes a second, "
            f"{now.inotify} inotify, {now.resident:.0f} MB resident ({now.private:.0f} MB its own), "
            f"{now.threads} threads, {now.children} children"
        )
    spent = sum(now.cpu - was.cpu for was, now in zip(before, after, strict=True))
    print(
        f"together: {spent:.2f} s cpu, {100 * spent / seconds:.2f} % of a core; "
        f"{sum(now.inotify for now in after)} inotify; {sum(now.private for now in after):.0f} MB their own"
    )


def takeover(vault: Path, servers: list[Idle], number: int) -> None:
    leader = next(server for server in servers if server.cost().inotify)
    servers.remove(leader)
    word = f"takeoverword{number}"
    leader.process.kill()
    began = time.monotonic()
    (vault / f"takeover-{number}.md").write_text(f"By hand: {word}\n")
    leader.process.wait()
    while not servers[0].finds(word):
        time.sleep(0.02)
    print(f"takeover {number + 1}: an edit by hand is indexed {time.monotonic() - began:.2f} s after the leader died")


if __name__ == "__main__":
    main()
