"""What commands of the command line cost: `python bench/commands.py [--notes 2000] [--against FOLDER]`.

Each command runs as a process of its own. With `--against`, the checkout in FOLDER runs the same command in turn with
this one, and the ratio of the two is printed: CPU seconds of a busy machine drift, the ratio of two neighbours hardly.
FOLDER needs its own `.venv`, unless this one's Python can run it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import select
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.vaults import make_vault, vocabulary

HERE = Path(__file__).resolve().parent.parent
CONTRADICTIONS = """
import sys, time
from simplemem.features.lessons.analysis import analysis_of
from simplemem.store import open_store

with open_store(sys.argv[1]) as store:
    store.sync()
    began = time.process_time()
    found = analysis_of(store, "").contradictions()
    print(time.process_time() - began, len(found))
"""
COMPLETION = (
    "import sys; sys.argv[0] = 'simplemem'; from simplemem.__main__ import main; sys.exit(main())"
)
HUGE_LINES = 180_000  # of 100 characters: a note of 18 MB


@dataclass(frozen=True)
class Checkout:
    """A copy of the sources, and the interpreter that runs it, with the packages that are installed for it."""

    folder: Path
    python: str

    def run(self, arguments: Sequence[str], env: dict[str, str]) -> tuple[float, float]:
        """The CPU and wall seconds of one run."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        began = time.perf_counter()
        subprocess.run(
            [self.python, *arguments],
            cwd=self.folder,
            env=env,
            check=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wall = time.perf_counter() - began
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return cpu, wall


def checkout(folder: Path) -> Checkout:
    own = folder / ".venv" / "bin" / "python"
    return Checkout(folder, str(own) if own.exists() else sys.executable)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--notes", type=int, default=2000)
    parser.add_argument(
        "--large", type=int, default=10_000, help="notes of the vault for `inspect`"
    )
    parser.add_argument(
        "--entries", default="1250,2500", help="sizes of the vaults for contradictions: 2500,10000"
    )
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--against", type=Path, help="another checkout, run in turn with this one")
    parser.add_argument("--only", default="", help="parts: short, served, large, learned")
    given = parser.parse_args()
    parts = given.only.split(",") if given.only else ["short", "served", "large", "learned"]
    checkouts = [checkout(HERE)]
    if given.against:
        checkouts.append(checkout(given.against.resolve()))
    with tempfile.TemporaryDirectory(prefix="simplemem-bench-", ignore_cleanup_errors=True) as room:
        bench = Bench(Path(room), checkouts, given.runs)
        if "short" in parts:
            bench.short(given.notes)
        if "served" in parts:
            bench.served(given.notes)
        if "large" in parts:
            bench.large(given.large)
        if "learned" in parts:
            bench.learned([int(count) for count in given.entries.split(",")])


class Bench:
    """The vaults of one run, and the environment that its commands see."""

    def __init__(self, room: Path, checkouts: list[Checkout], runs: int) -> None:
        self.room = room
        self.checkouts = checkouts
        self.runs = runs
        self.env = {
            key: value for key, value in os.environ.items() if not key.startswith("SIMPLEMEM_")
        }
        self.env.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed program is compiled once
        self.env |= {"HOME": str(room), "XDG_CONFIG_HOME": str(room / ".config")}

    def vault(self, name: str, notes: int) -> Path:
        """A vault with an index in the format of this checkout, made once."""
        vault = self.room / name
        if not vault.exists():
            make_vault(vault, notes)
            self.checkouts[0].run(["-m", "simplemem", "index", "--vault", str(vault)], self.env)
        return vault

    def compare(self, label: str, arguments: Sequence[str], **env: str) -> None:
        """Run a command of every checkout in turn, and print the medians."""
        cpu: list[list[float]] = [[] for _ in self.checkouts]
        for number in range(self.runs + 1):
            for measured, each in zip(cpu, self.checkouts, strict=True):
                seconds, _ = each.run(arguments, {**self.env, **env})
                if number:  # the first run writes what Python compiles, and fills the disk cache
                    measured.append(seconds)
        medians = [statistics.median(measured) for measured in cpu]
        line = f"{label}: {medians[0]:.3f} s cpu"
        if len(medians) > 1:
            ratios = [ours / theirs for ours, theirs in zip(*cpu, strict=True)]
            line += f", against {medians[1]:.3f} s: ratio {statistics.median(ratios):.2f}"
        print(line, flush=True)

    def short(self, notes: int) -> None:
        """Commands without a server."""
        vault = self.vault("vault", notes)
        where = ["--vault", str(vault)]
        self.compare("--help", ["-m", "simplemem", "--help"])
        self.compare("search --help", ["-m", "simplemem", "search", "--help"])
        self.complete("completion of a command", "simplemem se", vault)
        self.complete("completion of a name", "simplemem show a", vault)
        self.compare("search", ["-m", "simplemem", "search", "bada", "komi", *where])
        self.compare(
            "search --json", ["-m", "simplemem", "search", "bada", "komi", "--json", *where]
        )
        self.compare(
            "search --mode text", ["-m", "simplemem", "search", "bada", "--mode", "text", *where]
        )
        self.compare("list", ["-m", "simplemem", "list", *where])

    def complete(self, label: str, line: str, vault: Path) -> None:
        words = {"COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
        self.compare(
            label,
            ["-c", COMPLETION],
            _SIMPLEMEM_COMPLETE="complete_bash",
            SIMPLEMEM_VAULT=str(vault),
            **words,
        )

    def served(self, notes: int) -> None:
        """Commands that a running server answers: what the command itself costs, and how long it takes."""
        vault = self.vault("vault", notes)
        where = ["--vault", str(vault)]
        ours = self.checkouts[0]
        server = subprocess.Popen(
            [ours.python, "-m", "simplemem", "serve", *where],
            cwd=ours.folder,
            env=self.env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        try:
            begin_session(server)
            wait_for(vault / ".simplemem" / "server.sock")
            for label, arguments in (
                ("search", ["search", "bada", "komi", *where]),
                ("list", ["list", *where]),
            ):
                runs = [
                    ours.run(["-m", "simplemem", *arguments], self.env)
                    for _ in range(self.runs + 1)
                ]
                first, rest = runs[0], runs[1:]
                cpu = statistics.median(cpu for cpu, _ in rest)
                wall = statistics.median(wall for _, wall in rest)
                print(
                    f"{label}, answered by a server: {cpu:.3f} s cpu, {wall:.3f} s wall "
                    f"(the first time {first[1]:.3f} s wall)",
                    flush=True,
                )
        finally:
            server.kill()
            server.wait()

    def large(self, notes: int) -> None:
        """A note of 18 MB, and a whole vault at once."""
        vault = self.vault("small", 20)
        line = "word " * 19 + "word\n"
        (vault / "Huge.md").write_text("# Huge\n\n" + line * HUGE_LINES, encoding="utf-8")
        self.compare(
            "show of an 18 MB note", ["-m", "simplemem", "show", "Huge", "--vault", str(vault)]
        )
        for count in (notes // 4, notes):
            vault = self.vault(f"large{count}", count)
            self.compare(
                f"inspect, {count} notes", ["-m", "simplemem", "inspect", "--vault", str(vault)]
            )

    def learned(self, counts: Sequence[int]) -> None:
        """What it costs to compare all entries of what was learned, without and with the other findings.

        Each is run once: it takes seconds, which grow with the number of entries and of what is found. Twice the
        entries of these vaults have more than three times the contradictions.
        """
        ours = self.checkouts[0]
        for count in counts:
            vault = self.room / f"lessons{count}"
            make_lessons(vault, count)
            ours.run(["-m", "simplemem", "index", "--vault", str(vault)], self.env)
            detecting = subprocess.run(
                [ours.python, "-c", CONTRADICTIONS, str(vault)],
                cwd=ours.folder,
                env=self.env,
                check=True,
                capture_output=True,
                text=True,
            )
            seconds, found = detecting.stdout.split()
            print(
                f"detect_contradictions, {count} entries: {float(seconds):.2f} s cpu, {found} found",
                flush=True,
            )
            cpu, _ = ours.run(
                ["-m", "simplemem", "lessons", "analyze", "--vault", str(vault)], self.env
            )
            print(f"lessons analyze, {count} entries: {cpu:.2f} s cpu", flush=True)


def make_lessons(vault: Path, count: int) -> None:
    """Write `count` entries of what was learned, many of which give one subject two values."""
    chance = random.Random(5)
    words = vocabulary(3, 4000)

    def word() -> str:
        return words[int(len(words) ** chance.random()) - 1]

    for number in range(count):
        kind = ("error", "solution", "decision", "pattern", "insight")[number % 5]
        claim = f"The {word()} of {word()} is {chance.randint(1, 99)}. Use {word()} for {word()} {word()}."
        text = f"{claim} {' '.join(word() for _ in range(20))}."
        path = vault / "knowledge" / kind / f"note-{number:05}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        header = f"type: knowledge\nid: {number:08x}-0000-4000-8000-000000000000\nknowledge_type: {kind}\n"
        header += f"confidence: {chance.choice((0.4, 0.6, 0.9))}\nverified: false\n"
        path.write_text(f"---\n{header}---\n{text}\n", encoding="utf-8")


def begin_session(server: subprocess.Popen[bytes]) -> None:
    """Greet a server over its standard streams and ask for its tools, as a client does."""
    assert server.stdin is not None
    assert server.stdout is not None
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "bench", "version": "1"},
    }
    messages = (
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    )
    for message in messages:
        server.stdin.write(json.dumps(message).encode() + b"\n")
        server.stdin.flush()
        if "id" in message:
            select.select([server.stdout], [], [], 60)
            server.stdout.readline()


def wait_for(path: Path) -> None:
    """Wait until a file is there, a minute at most."""
    ends = time.monotonic() + 60
    while not path.exists() and time.monotonic() < ends:
        time.sleep(0.05)


if __name__ == "__main__":
    main()
