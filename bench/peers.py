"""The same contention and the same kills for server-memory of MCP and for simplemem: one table.

    python bench/peers.py [--folder FOLDER] [--writes 200] [--kills 30] [--only NAME]

Needs Node and npm, and the network the first time: the other server is installed into a folder, a
temporary one unless `--folder` names one to keep. Each is a real server over standard streams and
is used as it is meant to be: simplemem appends with the hash that was read and repeats after a
conflict; the other one adds observations to an entity. What was acknowledged is then looked for in
the files. Exits with 1 if simplemem lost anything.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.conversation import Conversation, Gone, failure_in, serve

PACKAGE: Final = "@modelcontextprotocol/server-memory"
NOT_INSTALLED: Final = (
    "Node and npm are not here, or npm cannot reach its registry: simplemem alone is measured."
)
MEMORIES_AT_START: Final = 1000  # when the kills begin
_CONTENDED_MEMORIES: Final = 4
_MOST_CONFLICTS: Final = 500  # of one append
_MOST_REFUSALS: Final = 1000  # then a damaged server is given up


@dataclass(frozen=True)
class Memories:
    """What the files of a server contain."""

    lines: dict[str, list[str]]  # by the name of the memory
    torn: int  # how many cannot be read, or only in part


class Server(ABC):
    """A kind of server, which serves one folder."""

    name: str

    @abstractmethod
    def start(self, folder: Path) -> Conversation:
        """Start a process of it and return its client."""

    @abstractmethod
    def prepare(self, folder: Path, names: list[str]) -> None:
        """Write memories into the folder, before any server runs."""

    @abstractmethod
    def append(self, server: Conversation, name: str, line: str) -> str:
        """Add a line to a memory. Return the failure, or "" if the line was acknowledged."""

    @abstractmethod
    def create(self, server: Conversation, name: str) -> str:
        """Create a memory. Return the failure, or "" if it was acknowledged."""

    @abstractmethod
    def read(self, folder: Path) -> Memories:
        """Return what the files contain, without a server."""


class Simplemem(Server):
    """simplemem with its default tools: a memory is a note."""

    name = "simplemem"

    def start(self, folder: Path) -> Conversation:
        return Conversation(serve(folder), quiet=True)

    def prepare(self, folder: Path, names: list[str]) -> None:
        for name in names:
            (folder / f"{name}.md").write_text(f"---\ntitle: {name}\n---\nstart\n")

    def append(self, server: Conversation, name: str, line: str) -> str:
        for _ in range(_MOST_CONFLICTS):
            note = server.use("read_memory", name=name).get("structuredContent", {})
            hash_read = note.get("sha256")
            result = server.use("update_memory", name=name, append=line, if_sha256=hash_read)
            failure = failure_in(result)
            if failure != "conflict":
                return failure
        return "conflict"

    def create(self, server: Conversation, name: str) -> str:
        return failure_in(server.use("create_memory", name=name, content="made\n"))

    def read(self, folder: Path) -> Memories:
        lines = {path.stem: path.read_text().split("\n") for path in folder.glob("*.md")}
        torn = 0
        for note_lines in lines.values():
            if "start" not in note_lines and "made" not in note_lines:
                torn += 1
        return Memories(lines, torn)


class ServerMemory(Server):
    """@modelcontextprotocol/server-memory: a memory is an entity in one JSONL file."""

    name = "server-memory"

    def __init__(self, program: Path) -> None:
        self.program = program

    def start(self, folder: Path) -> Conversation:
        env = {"MEMORY_FILE_PATH": str(folder / "memory.jsonl")}
        return Conversation(["node", str(self.program)], env=env, quiet=True)

    def prepare(self, folder: Path, names: list[str]) -> None:
        rows = []
        for name in names:
            entity = {"type": "entity", "name": name, "entityType": "note"}
            rows.append(json.dumps({**entity, "observations": ["start"]}))
        (folder / "memory.jsonl").write_text("\n".join(rows))

    def append(self, server: Conversation, name: str, line: str) -> str:
        observations = [{"entityName": name, "contents": [line]}]
        return failure_in(server.use("add_observations", observations=observations))

    def create(self, server: Conversation, name: str) -> str:
        entity = {"name": name, "entityType": "note", "observations": ["made"]}
        return failure_in(server.use("create_entities", entities=[entity]))

    def read(self, folder: Path) -> Memories:
        lines: dict[str, list[str]] = {}
        torn = 0
        for row in (folder / "memory.jsonl").read_text(errors="replace").split("\n"):
            try:
                entity = json.loads(row) if row.strip() else {}
            except ValueError:
                torn += 1
                continue
            if entity.get("type") == "entity":
                lines.setdefault(entity["name"], []).extend(entity["observations"])
        return Memories(lines, torn)


def main() -> int:
    """Run each trial with each server, and print a line for each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument(
        "--folder", type=Path, help="where the other server is, or is to be installed and kept"
    )
    parser.add_argument("--writes", type=int, default=200)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--only", choices=("simplemem", "server-memory"))
    options = parser.parse_args()

    with tempfile.TemporaryDirectory(
        prefix="simplemem-peers-", ignore_cleanup_errors=True
    ) as temporary:
        servers = find_servers((options.folder or Path(temporary) / "npm").absolute())
        has_lost = False
        for title, trial in trials(options.writes, options.kills).items():
            for server in servers:
                if options.only not in (None, server.name):
                    continue
                folder = Path(tempfile.mkdtemp(dir=temporary))
                result = trial(server, folder)
                print(f"{title}: {server.name}: {result}", flush=True)
                if server.name == "simplemem" and not result.startswith("0 of"):
                    has_lost = True
    return 1 if has_lost else 0


def trials(writes: int, kills: int) -> dict[str, Callable[[Server, Path], str]]:
    """Return the trials by their titles. Each returns what it found, first what was lost."""
    return {
        f"8 servers, {writes} writes each": partial(contend, servers=8, writes=writes, pause=0.0),
        f"3 servers, {writes} writes each, one in 50 ms": partial(
            contend, servers=3, writes=writes, pause=0.05
        ),
        f"{kills} kills, {MEMORIES_AT_START} memories there before": partial(kill, rounds=kills),
    }


def find_servers(folder: Path) -> list[Server]:
    """Return simplemem and, if it can be installed into `folder`, the other server."""
    servers: list[Server] = [Simplemem()]
    peer = installed(folder)
    if peer is None:
        print(NOT_INSTALLED)
    else:
        program, version = peer
        print(f"{PACKAGE} {version}")
        servers.append(ServerMemory(program))
    return servers


def installed(folder: Path) -> tuple[Path, str] | None:
    """Return the other server's program and version; npm installs it if it is not in `folder` yet.

    Returns None if Node or npm is missing, or npm fails.
    """
    package = folder / "node_modules" / PACKAGE
    if not package.exists() and not _install(folder):
        return None
    about = json.loads((package / "package.json").read_text())
    return package / next(iter(about["bin"].values())), about["version"]


def _install(folder: Path) -> bool:
    """Install the other server with npm. Return whether it worked."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        return False
    options = ["--no-audit", "--no-fund", "--loglevel=error", "--prefix", str(folder)]
    command = [npm, "install", *options, PACKAGE]
    return subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode == 0


# The trials


def contend(kind: Server, folder: Path, *, servers: int, writes: int, pause: float) -> str:
    """Let so many servers append to four memories, and say how many acknowledged lines are lost."""
    kind.prepare(folder, [f"note{number}" for number in range(_CONTENDED_MEMORIES)])
    acknowledged: list[tuple[str, str]] = []
    counts: Counter[str] = Counter()

    def work(number: int) -> None:
        rng = random.Random(number)
        try:
            with kind.start(folder) as server:
                for write in range(writes):
                    name = f"note{rng.randrange(_CONTENDED_MEMORIES)}"
                    line = f"line s{number}w{write}"
                    if kind.append(server, name, line):
                        counts["refused"] += 1
                    else:
                        acknowledged.append((name, line))
                    time.sleep(pause)
        except Gone:
            counts["servers that ended"] += 1

    threads = [threading.Thread(target=work, args=(number,)) for number in range(servers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    memories = kind.read(folder)
    lost = sum(line not in memories.lines.get(name, []) for name, line in acknowledged)
    share = lost / max(1, len(acknowledged))
    result = f"{lost} of {len(acknowledged)} lost ({share:.0%})"
    if counts["refused"]:
        result += f", {counts['refused']} refused"
    if memories.torn:
        result += f", {memories.torn} unreadable"
    return result


def kill(kind: Server, folder: Path, *, rounds: int) -> str:
    """Kill a server while it creates memories, again and again, and say how many are lost."""
    old_names = [f"old{number}" for number in range(MEMORIES_AT_START)]
    kind.prepare(folder, old_names)
    existing = set(old_names)
    with kind.start(folder) as server:  # once without a kill, so that its first index is complete
        kind.create(server, "first")
        existing.add("first")
        time.sleep(2)
        server.end()

    rng = random.Random(1)
    created = 1
    refused = 0
    lost: set[str] = set()
    torn_rounds = 0
    for number in range(rounds):
        names, refusals = _create_until_killed(kind, folder, number, rng.uniform(0, 1))
        existing |= names
        created += len(names)
        refused += refusals

        memories = kind.read(folder)
        torn_rounds += memories.torn > 0
        missing = existing - memories.lines.keys()
        lost |= missing
        existing -= missing
        if refused > _MOST_REFUSALS:
            break

    result = f"{len(lost)} of {created + MEMORIES_AT_START} lost"
    result += f", torn after {torn_rounds} of {rounds}"
    if refused:
        result += f", {refused} refused"
    return result


def _create_until_killed(
    kind: Server, folder: Path, round_number: int, seconds: float
) -> tuple[set[str], int]:
    """Create memories until the server is killed. Return acknowledged names and refusals."""
    names: set[str] = set()
    refusals = 0
    try:
        with kind.start(folder) as server:
            killer = threading.Timer(seconds, server.process.kill)
            killer.start()
            try:
                for number in range(100_000):
                    name = f"new{round_number}-{number}"
                    if kind.create(server, name):
                        refusals += 1
                    else:
                        names.add(name)
            finally:
                killer.cancel()
    except Gone:
        pass  # as intended
    return names, refusals


if __name__ == "__main__":
    sys.exit(main())
