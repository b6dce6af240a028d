"""What commands of the command line cost.

    python bench/commands.py [--notes 2000] [--against FOLDER]

Each command runs as a process of its own. With `--against`, the checkout in FOLDER runs the same
command in turn with this one, and the ratio of both is printed: CPU seconds of a busy machine
drift, the ratio of two neighbours hardly does. FOLDER needs its own `.venv`, unless this one's
Python can run it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import select
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.measure import cpu_of_ended_children
from bench.vaults import make_vault, vocabulary

ROOT: Final = Path(__file__).resolve().parent.parent

_DETECT_CONTRADICTIONS: Final = """
import sys, time
from simplemem.features.lessons.analysis import analysis_of
from simplemem.store import open_store

with open_store(sys.argv[1]) as store:
    store.sync()
    start = time.process_time()
    analysis = analysis_of(store, "")
    contradictions = analysis.contradictions()
    if hasattr(analysis, "offers"):  # another checkout may not have it
        analysis.offers(contradictions)
    print(time.process_time() - start, len(contradictions))
"""
_COMPLETE: Final = """
import sys
sys.argv[0] = "simplemem"
from simplemem.__main__ import main
sys.exit(main())
"""

_HUGE_LINES: Final = 180_000  # of 100 characters: a note of 18 MB
_HUGE_LINE: Final = "word " * 19 + "word\n"
_MAX_WAIT: Final = 60  # seconds for a server to be ready
_LESSON_TYPES: Final = ("error", "solution", "decision", "pattern", "insight")


class RunTime(NamedTuple):
    """What one run of a command took, in seconds."""

    cpu: float
    wall: float


@dataclass(frozen=True)
class Checkout:
    """A copy of the sources, and the Python that runs it with the packages installed for it."""

    folder: Path
    python: str

    def run(self, arguments: Sequence[str], env: dict[str, str]) -> RunTime:
        """Run this Python once with arguments, and return what that took. The output is dropped."""
        cpu_start = cpu_of_ended_children()
        start = time.perf_counter()
        subprocess.run(
            [self.python, *arguments],
            cwd=self.folder,
            env=env,
            check=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wall = time.perf_counter() - start
        return RunTime(cpu_of_ended_children() - cpu_start, wall)

    def read(self, arguments: Sequence[str], env: dict[str, str]) -> str:
        """Run this Python once with arguments, and return its standard output.

        Raises:
            subprocess.CalledProcessError: It failed.
        """
        result = subprocess.run(
            [self.python, *arguments],
            cwd=self.folder,
            env=env,
            check=True,
            capture_output=True,
            text=True,
        )
        return result.stdout

    def start(self, arguments: Sequence[str], env: dict[str, str]) -> subprocess.Popen[bytes]:
        """Start this Python with arguments and pipes for its standard input and output."""
        return subprocess.Popen(
            [self.python, *arguments],
            cwd=self.folder,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )


def checkout_at(folder: Path) -> Checkout:
    """Return the checkout in a folder, with its own Python if it has one, else with this one."""
    python = folder / ".venv" / "bin" / "python"
    return Checkout(folder, str(python) if python.exists() else sys.executable)


def main() -> None:
    """Measure the parts that the options name."""
    options = _make_parser().parse_args()
    checkouts = [checkout_at(ROOT)]
    if options.against:
        checkouts.append(checkout_at(options.against.resolve()))

    with _temporary_folder() as folder:
        bench = Bench(folder, checkouts, options.runs)
        parts: dict[str, Callable[[], None]] = {
            "short": lambda: measure_short(bench, options.notes),
            "served": lambda: measure_served(bench, options.notes),
            "large": lambda: measure_large(bench, options.large),
            "learned": lambda: measure_lessons(bench, _read_counts(options.entries)),
        }
        names = options.only.split(",") if options.only else list(parts)
        for name, measure in parts.items():
            if name in names:
                measure()


def _make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
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
    return parser


def _read_counts(text: str) -> list[int]:
    return [int(count) for count in text.split(",")]


@contextmanager
def _temporary_folder() -> Iterator[Path]:
    prefix = "simplemem-bench-"
    with tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


class Bench:
    """The checkouts to compare. Guards their vaults, and the environment of their commands."""

    def __init__(self, folder: Path, checkouts: list[Checkout], runs: int) -> None:
        """Make a bench that makes its vaults in `folder`, and runs each command so many times."""
        self.folder = folder
        self.checkouts = checkouts
        self.checkout = checkouts[0]
        self.runs = runs
        self.env = self._make_environment()

    def _make_environment(self) -> dict[str, str]:
        """Return this process's environment without its settings of simplemem."""
        env = {
            name: value for name, value in os.environ.items() if not name.startswith("SIMPLEMEM_")
        }
        env.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed program is compiled once
        env["HOME"] = str(self.folder)
        env["XDG_CONFIG_HOME"] = str(self.folder / ".config")
        return env

    def vault(self, name: str, notes: int) -> Path:
        """Return a vault with an index in the format of this checkout. It is made once."""
        vault = self.folder / name
        if not vault.exists():
            make_vault(vault, notes)
            self.index(vault)
        return vault

    def index(self, vault: Path) -> None:
        """Index a vault with the command of this checkout."""
        self.checkout.run(["-m", "simplemem", "index", "--vault", str(vault)], self.env)

    def compare_command(self, label: str, vault: Path, *arguments: str) -> None:
        """Run a command on a vault with all checkouts in turn, and print the medians."""
        self.compare(label, ["-m", "simplemem", *arguments, "--vault", str(vault)])

    def compare_completion(self, label: str, line: str, vault: Path) -> None:
        """Complete a command line as bash asks for it, and print the medians."""
        self.compare(
            label,
            ["-c", _COMPLETE],
            _SIMPLEMEM_COMPLETE="complete_bash",
            SIMPLEMEM_VAULT=str(vault),
            COMP_WORDS=line,
            COMP_CWORD=str(line.count(" ")),
        )

    def compare(self, label: str, arguments: Sequence[str], **env: str) -> None:
        """Run Python with arguments in all checkouts in turn, and print the medians."""
        times: list[list[float]] = [[] for _ in self.checkouts]
        for number in range(self.runs + 1):
            for times_of_checkout, checkout in zip(times, self.checkouts, strict=True):
                cpu = checkout.run(arguments, {**self.env, **env}).cpu
                if number:  # the first run compiles modules, and fills the disk cache
                    times_of_checkout.append(cpu)

        medians = [statistics.median(times_of_checkout) for times_of_checkout in times]
        line = f"{label}: {medians[0]:.3f} s cpu"
        if len(medians) > 1:
            ratios = [first / second for first, second in zip(*times, strict=True)]
            line += f", against {medians[1]:.3f} s: ratio {statistics.median(ratios):.2f}"
        print(line, flush=True)


def measure_short(bench: Bench, notes: int) -> None:
    """Print what commands without a server cost."""
    vault = bench.vault("vault", notes)
    bench.compare("--help", ["-m", "simplemem", "--help"])
    bench.compare("search --help", ["-m", "simplemem", "search", "--help"])
    bench.compare_completion("completion of a command", "simplemem se", vault)
    bench.compare_completion("completion of a name", "simplemem show a", vault)
    bench.compare_command("search", vault, "search", "bada", "komi")
    bench.compare_command("search --json", vault, "search", "bada", "komi", "--json")
    bench.compare_command("search --mode text", vault, "search", "bada", "--mode", "text")
    bench.compare_command("list", vault, "list")


def measure_served(bench: Bench, notes: int) -> None:
    """Print what commands that a running server answers cost themselves, and how long they take."""
    vault = bench.vault("vault", notes)
    serve = ["-m", "simplemem", "serve", "--vault", str(vault)]
    server = bench.checkout.start(serve, bench.env)
    try:
        begin_session(server)
        wait_for(vault / ".simplemem" / "server.sock")
        _measure_served_command(bench, "search", vault, "bada", "komi")
        _measure_served_command(bench, "list", vault)
    finally:
        server.kill()
        server.wait()


def _measure_served_command(bench: Bench, command: str, vault: Path, *arguments: str) -> None:
    """Print the medians of a command's times, and the wall time of the first run."""
    process_arguments = ["-m", "simplemem", command, *arguments, "--vault", str(vault)]
    first = bench.checkout.run(process_arguments, bench.env)
    runs = [bench.checkout.run(process_arguments, bench.env) for _ in range(bench.runs)]

    cpu = statistics.median(run.cpu for run in runs)
    wall = statistics.median(run.wall for run in runs)
    print(
        f"{command}, answered by a server: {cpu:.3f} s cpu, {wall:.3f} s wall "
        f"(the first time {first.wall:.3f} s wall)",
        flush=True,
    )


def measure_large(bench: Bench, notes: int) -> None:
    """Print what a note of 18 MB costs, and a command that reads a whole vault."""
    vault = bench.vault("small", 20)
    text = "# Huge\n\n" + _HUGE_LINE * _HUGE_LINES
    (vault / "Huge.md").write_text(text, encoding="utf-8")
    bench.compare_command("show of an 18 MB note", vault, "show", "Huge")

    for count in (notes // 4, notes):
        vault = bench.vault(f"large{count}", count)
        bench.compare_command(f"inspect, {count} notes", vault, "inspect")


def measure_lessons(bench: Bench, counts: Sequence[int]) -> None:
    """Print what it costs to find contradictions of lessons, and to analyze lessons.

    Each is run once: it takes seconds, which grow with the number of lessons and of what is found.
    Twice the lessons of these vaults have more than three times the contradictions.
    """
    for count in counts:
        vault = bench.folder / f"lessons{count}"
        make_lessons(vault, count)
        bench.index(vault)

        output = bench.checkout.read(["-c", _DETECT_CONTRADICTIONS, str(vault)], bench.env)
        seconds, contradictions = output.split()
        print(
            f"detect_contradictions, {count} entries: {float(seconds):.2f} s cpu, "
            f"{contradictions} found",
            flush=True,
        )

        analyze = ["-m", "simplemem", "lessons", "analyze", "--vault", str(vault)]
        cpu = bench.checkout.run(analyze, bench.env).cpu
        print(f"lessons analyze, {count} entries: {cpu:.2f} s cpu", flush=True)


def make_lessons(vault: Path, count: int) -> None:
    """Write so many lessons, many of which give one subject two values."""
    rng = random.Random(5)
    words = vocabulary(3, 4000)
    for number in range(count):
        lesson_type = _LESSON_TYPES[number % len(_LESSON_TYPES)]
        text = _make_lesson_text(rng, words)
        frontmatter = (
            f"type: knowledge\n"
            f"id: {number:08x}-0000-4000-8000-000000000000\n"
            f"knowledge_type: {lesson_type}\n"
            f"confidence: {rng.choice((0.4, 0.6, 0.9))}\n"
            f"verified: false\n"
        )
        file = vault / "knowledge" / lesson_type / f"note-{number:05}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"---\n{frontmatter}---\n{text}\n", encoding="utf-8")


def _make_lesson_text(rng: random.Random, words: Sequence[str]) -> str:
    """Return a claim, an advice, and a sentence of twenty random words."""

    def word() -> str:
        return words[int(len(words) ** rng.random()) - 1]

    claim = f"The {word()} of {word()} is {rng.randint(1, 99)}."
    advice = f"Use {word()} for {word()} {word()}."
    sentence = " ".join(word() for _ in range(20))
    return f"{claim} {advice} {sentence}."


def begin_session(server: subprocess.Popen[bytes]) -> None:
    """Initialize a session over the standard streams of a server, and list its tools."""
    assert server.stdin is not None
    assert server.stdout is not None
    parameters = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "bench", "version": "1"},
    }
    messages = (
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": parameters},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    )
    for message in messages:
        server.stdin.write(json.dumps(message).encode() + b"\n")
        server.stdin.flush()
        if "id" in message:
            select.select([server.stdout], [], [], _MAX_WAIT)
            server.stdout.readline()


def wait_for(file: Path) -> None:
    """Wait until a file exists, a minute at most."""
    deadline = time.monotonic() + _MAX_WAIT
    while not file.exists() and time.monotonic() < deadline:
        time.sleep(0.05)


if __name__ == "__main__":
    main()
