"""The same contention and the same kills against @modelcontextprotocol/server-memory and against simplemem: one table.

    python bench/peers.py [--folder FOLDER] [--writes 200] [--kills 30] [--only NAME]

Needs Node and npm, and the network the first time: the other server is installed into a folder of its own (a temporary
one unless `--folder` says where to keep it). Each is a real server over its standard streams, and used as it is meant
to be: ours appends with the hash that was read and tries again on a conflict, the other adds observations to an entity.
What was acknowledged is then looked for in the files. Exits with 1 when one of ours is lost.
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
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.conversation import Conversation, Gone, failure_in, serve

PACKAGE = "@modelcontextprotocol/server-memory"
BEFORE = 1000  # memories that are there when the kills begin


class Server(ABC):
    """A kind of server on a folder of its own."""

    name: str

    @abstractmethod
    def start(self, room: Path) -> Conversation:
        """A process of it, and a client."""

    @abstractmethod
    def bring(self, room: Path, names: list[str]) -> None:
        """Put memories there before any server runs."""

    @abstractmethod
    def append(self, talk: Conversation, name: str, line: str) -> str:
        """Add a line to a memory: the failure, or nothing when it was acknowledged."""

    @abstractmethod
    def create(self, talk: Conversation, name: str) -> str:
        """Make a memory: the failure, or nothing when it was acknowledged."""

    @abstractmethod
    def found(self, room: Path) -> tuple[dict[str, list[str]], int]:
        """What the files hold, memory by memory, and how much of it cannot be read."""


class Simplemem(Server):
    name = "simplemem"

    def start(self, room: Path) -> Conversation:
        return Conversation(serve(room), quiet=True)

    def bring(self, room: Path, names: list[str]) -> None:
        for name in names:
            (room / f"{name}.md").write_text(f"---\ntitle: {name}\n---\nstart\n")

    def append(self, talk: Conversation, name: str, line: str) -> str:
        for _ in range(500):
            seen = talk.use("read_memory", name=name).get("structuredContent", {}).get("sha256")
            failure = failure_in(talk.use("update_memory", name=name, append=line, if_sha256=seen))
            if failure != "conflict":
                return failure
        return "conflict"

    def create(self, talk: Conversation, name: str) -> str:
        return failure_in(talk.use("create_memory", name=name, content="made\n"))

    def found(self, room: Path) -> tuple[dict[str, list[str]], int]:
        texts = {path.stem: path.read_text().split("\n") for path in room.glob("*.md")}
        return texts, sum("start" not in lines and "made" not in lines for lines in texts.values())


class ServerMemory(Server):
    name = "server-memory"

    def __init__(self, program: Path) -> None:
        self.program = program

    def start(self, room: Path) -> Conversation:
        return Conversation(
            ["node", str(self.program)],
            env={"MEMORY_FILE_PATH": str(room / "memory.jsonl")},
            quiet=True,
        )

    def bring(self, room: Path, names: list[str]) -> None:
        entities = [
            {"type": "entity", "name": n, "entityType": "note", "observations": ["start"]}
            for n in names
        ]
        (room / "memory.jsonl").write_text("\n".join(map(json.dumps, entities)))

    def append(self, talk: Conversation, name: str, line: str) -> str:
        return failure_in(
            talk.use("add_observations", observations=[{"entityName": name, "contents": [line]}])
        )

    def create(self, talk: Conversation, name: str) -> str:
        entity = {"name": name, "entityType": "note", "observations": ["made"]}
        return failure_in(talk.use("create_entities", entities=[entity]))

    def found(self, room: Path) -> tuple[dict[str, list[str]], int]:
        texts: dict[str, list[str]] = {}
        unreadable = 0
        for line in (room / "memory.jsonl").read_text(errors="replace").split("\n"):
            try:
                entity = json.loads(line) if line.strip() else {}
            except ValueError:
                unreadable += 1
                continue
            if entity.get("type") == "entity":
                texts.setdefault(entity["name"], []).extend(entity["observations"])
        return texts, unreadable


def contention(server: Server, room: Path, servers: int, writes: int, pace: float) -> str:
    """So many servers on four memories: how much of what was acknowledged is gone."""
    server.bring(room, [f"note{k}" for k in range(4)])
    acknowledged: list[tuple[str, str]] = []
    counted: Counter[str] = Counter()

    def work(me: int) -> None:
        chance = random.Random(me)
        try:
            with server.start(room) as talk:
                for k in range(writes):
                    name, line = f"note{chance.randrange(4)}", f"line s{me}w{k}"
                    failure = server.append(talk, name, line)
                    acknowledged.append((name, line)) if not failure else counted.update(
                        ["refused"]
                    )
                    if pace:
                        time.sleep(pace)
        except Gone:
            counted["servers that ended"] += 1

    threads = [threading.Thread(target=work, args=(me,)) for me in range(servers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    texts, torn = server.found(room)
    lost = sum(line not in texts.get(name, []) for name, line in acknowledged)
    others = f", {counted['refused']} refused" if counted["refused"] else ""
    others += f", {torn} unreadable" if torn else ""
    return f"{lost} of {len(acknowledged)} lost ({lost / max(1, len(acknowledged)):.0%}){others}"


def kills(server: Server, room: Path, rounds: int) -> str:
    """Kill it while it makes memories, one after the other: how many are gone, and how often files were torn."""
    server.bring(room, [f"old{k}" for k in range(BEFORE)])
    known = {f"old{k}" for k in range(BEFORE)}
    with server.start(room) as talk:  # once in peace, so that what is made ready at first is ready
        server.create(talk, "first")
        known.add("first")
        time.sleep(2)
        talk.end()
    chance = random.Random(1)
    made = 1
    lost: set[str] = set()
    counted: Counter[str] = Counter()
    for number in range(rounds):
        try:
            with server.start(room) as talk:
                killer = threading.Timer(chance.uniform(0, 1), talk.process.kill)
                killer.start()
                try:
                    for k in range(100_000):
                        name = f"new{number}-{k}"
                        if not server.create(talk, name):
                            known.add(name)
                            made += 1
                        else:
                            counted["refused"] += 1
                finally:
                    killer.cancel()
        except Gone:
            pass
        texts, torn = server.found(room)
        counted["rounds with something torn"] += bool(torn)
        gone = known - texts.keys()
        lost |= gone
        known -= gone
        if counted["refused"] > 1000:
            break
    others = f", {counted['refused']} refused" if counted["refused"] else ""
    return f"{len(lost)} of {made + BEFORE} lost, torn after {counted['rounds with something torn']} of {rounds}{others}"


def installed(folder: Path) -> tuple[Path, str] | None:
    """The other server's program and version, put into a folder by npm if it is not there yet."""
    package = folder / "node_modules" / PACKAGE
    if not package.exists():
        npm = shutil.which("npm")
        if npm is None or shutil.which("node") is None:
            return None
        words = [
            "install",
            "--no-audit",
            "--no-fund",
            "--loglevel=error",
            "--prefix",
            str(folder),
            PACKAGE,
        ]
        if subprocess.run([npm, *words], stdout=subprocess.DEVNULL, check=False).returncode:
            return None
    about = json.loads((package / "package.json").read_text())
    return package / next(iter(about["bin"].values())), about["version"]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument(
        "--folder", type=Path, help="where the other server is, or is to be installed and kept"
    )
    parser.add_argument("--writes", type=int, default=200)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--only", choices=("simplemem", "server-memory"))
    given = parser.parse_args()
    ours_lost = False
    with tempfile.TemporaryDirectory(prefix="simplemem-peers-", ignore_cleanup_errors=True) as room:
        servers: list[Server] = [Simplemem()]
        found = installed((given.folder or Path(room) / "npm").absolute())
        if found is None:
            print(
                "Node and npm are not here, or npm cannot reach its registry: simplemem alone is measured."
            )
        else:
            print(f"{PACKAGE} {found[1]}")
            servers.append(ServerMemory(found[0]))
        trials = {
            f"8 servers, {given.writes} writes each": lambda s, r: contention(
                s, r, 8, given.writes, 0
            ),
            f"3 servers, {given.writes} writes each, one in 50 ms": lambda s, r: contention(
                s, r, 3, given.writes, 0.05
            ),
            f"{given.kills} kills, {BEFORE} memories there before": lambda s, r: kills(
                s, r, given.kills
            ),
        }
        for title, trial in trials.items():
            for server in servers:
                if given.only in (None, server.name):
                    place = Path(tempfile.mkdtemp(dir=room))
                    said = trial(server, place)
                    print(f"{title}: {server.name}: {said}", flush=True)
                    ours_lost |= server.name == "simplemem" and not said.startswith("0 of")
    return 1 if ours_lost else 0


if __name__ == "__main__":
    sys.exit(main())
