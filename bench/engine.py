"""PostgreSQL beside SQLite, for so many passages of a vault made by bench/corpus.py.

    python bench/engine.py 50000

Both engines index the same notes and answer the same questions, each in a process of its own. CPU
and memory are those of this process and of the database server together; pages that several
processes share count once. The server is a new one, from a wheel, on a socket in a temporary folder
(Linux). Where the vectors have more numbers than `--most-held`, PostgreSQL uses pgvector's index
instead of comparing all of them.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import psycopg
from postgres import running

from bench.corpus import PASSAGES_A_NOTE, Corpus
from bench.measure import stat_fields
from simplemem.index.postgres.database import PostgresEngine
from simplemem.models import Filter
from simplemem.search.rank import Mode
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

FILTERS: Final = {
    "none": Filter(),
    "a tag": Filter.of(tags={"project": ""}),
    "a folder": Filter.of(prefix="area-07/"),
    "since a day": Filter.of(since="2025-01-01"),
}
MODES: Final[dict[str, Mode]] = {"words": "text", "meaning": "semantic", "both": "hybrid"}

Answers = dict[str, list[list[str]]]
"""The names of the ten hits of each question, by "MODE, FILTER"."""


def main() -> None:
    """Make the vault, measure the engines one after the other, and compare their answers."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("passages", type=int)
    parser.add_argument("--queries", type=int, default=60)
    parser.add_argument("--most-held", type=int, default=PostgresEngine.max_compared_numbers)
    parser.add_argument("--alone", action="store_true", help="only PostgreSQL, without SQLite")
    options = parser.parse_args()

    corpus = Corpus(max(1, options.passages // PASSAGES_A_NOTE), 1)
    with tempfile.TemporaryDirectory(prefix="simplemem-engine-") as folder, running() as url:
        vault = Path(folder)
        for _ in corpus.write(vault):
            pass

        engines = [url] if options.alone else ["", url]
        answers = []
        for engine in engines:
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor:
                result = executor.submit(
                    measure, vault, engine, corpus, options.queries, options.most_held
                )
                answers.append(result.result())
    if not options.alone:
        compare(*answers)


def compare(exact: Answers, other: Answers) -> None:
    """Print how many of the hits, and how many whole lists of hits, two engines have in common."""
    for name in exact:
        pairs = list(zip(exact[name], other[name], strict=True))
        shares = [
            len({*expected} & {*found}) / len(expected) for expected, found in pairs if expected
        ]
        recall = sum(shares) / len(shares) if shares else 1.0  # nothing was to be found
        equal = sum(expected == found for expected, found in pairs)
        print(f"{name}: recall@10 {recall:.3f}, in the same order {equal} of {len(pairs)}")


def measure(vault: Path, engine: str, corpus: Corpus, queries: int, most_held: int) -> Answers:
    """Index a vault and search it with one engine, print what it costs, and return the answers.

    `engine` is the value of the setting `index.engine`: empty for SQLite.
    """
    PostgresEngine.max_compared_numbers = most_held
    questions = corpus.questions(queries * len(MODES) * len(FILTERS))
    unused = iter([text for text, _ in questions])  # each search asks what no other has asked
    answers: Answers = {}

    with EnhancedStore(vault, Settings.model_validate({"index": {"engine": engine}})) as store:
        processes = Processes(_server_of(engine) if engine else None)
        print_line(f"{store.stats()['engine']}: {corpus.notes} notes")

        seconds = processes.cpu_seconds(lambda: store.sync())
        megabytes = store.stats()["index_bytes"] / 1e6
        memory = processes.describe_memory()
        print_line(f"  index {seconds:.1f} s CPU, {megabytes:.0f} MB on disk; {memory}")
        for mode_name, mode in MODES.items():
            for filter_name, narrow_filter in FILTERS.items():
                search = partial(_names_found, store, mode=mode, narrow_filter=narrow_filter)
                texts = [next(unused) for _ in range(queries)]
                found, milliseconds = _measure_searches(processes, search, texts)
                answers[f"{mode_name}, {filter_name}"] = found
                print_line(
                    f"  search by {mode_name:<7} {filter_name:<11} {milliseconds:6.1f} ms CPU p50"
                )
        print_line(f"  {processes.describe_memory()}")
        _measure_change(store, processes)
    return answers


def _names_found(
    store: EnhancedStore, text: str, *, mode: Mode, narrow_filter: Filter
) -> list[str]:
    result = store.search(text, limit=10, filter=narrow_filter, mode=mode)
    return [hit.name for hit in result.hits]


def _measure_searches(
    processes: Processes, search: Callable[[str], list[str]], texts: list[str]
) -> tuple[list[list[str]], float]:
    """Return what each text found, and the median of the CPU milliseconds."""
    for text in ("what", "is read once"):
        search(text)

    found: list[list[str]] = []
    times = []
    for text in texts:
        seconds = processes.cpu_seconds(lambda text=text: found.append(search(text)))  # type: ignore[misc]
        times.append(1000 * seconds)
    return found, median(times)


def _measure_change(store: EnhancedStore, processes: Processes) -> None:
    """Print the cost of an append, and of the search after it, which must find the change."""
    store.create("changing", "First line.")
    change = processes.cpu_seconds(lambda: store.update("changing", append="A quixotic line."))
    names: list[str] = []

    def search() -> None:
        names.extend(hit.name for hit in store.search("quixotic").hits)

    seconds = processes.cpu_seconds(search)
    print_line(
        f"  a change {1000 * change:.1f} ms CPU, the search after it {1000 * seconds:.1f}, "
        f"which finds {names[:1]}"
    )
    store.delete("changing")


def print_line(line: str) -> None:
    """Print a line at once: another process prints the next one."""
    print(line, flush=True)


@dataclass(frozen=True)
class Processes:
    """This process and, if there is one, the database server with its children."""

    server: int | None

    def cpu_seconds(self, work: Callable[[], object]) -> float:
        """Do some work and return the CPU seconds that all processes spent on it."""
        start = self._cpu()
        work()
        return self._cpu() - start

    def _cpu(self) -> float:
        seconds = time.process_time()
        if self.server is not None:
            seconds += _server_cpu(self.server)
        return seconds

    def describe_memory(self) -> str:
        """Say how many MB this process and the server use. Shared pages are divided."""
        sizes = [_proportional_size(os.getpid())]
        if self.server is not None:
            sizes.append(sum(map(_proportional_size, _with_children(self.server))))
        return "memory " + " + ".join(f"{size / 1e3:.0f}" for size in sizes) + " MB"


def _server_of(url: str) -> int:
    """Return the process number of the server to which a URL connects."""
    with psycopg.connect(url) as connection:
        return int(stat_fields(connection.info.backend_pid)[1])


def _with_children(server: int) -> Iterator[int]:
    yield server
    children = Path(f"/proc/{server}/task/{server}/children").read_text(encoding="utf-8")
    yield from map(int, children.split())


def _server_cpu(server: int) -> float:
    """Return the CPU seconds of a server, its running children, and those that have ended."""
    nanoseconds = 0
    for process in _with_children(server):
        schedule = Path(f"/proc/{process}/schedstat").read_text(encoding="utf-8")
        nanoseconds += int(schedule.split()[0])
    ended_ticks = sum(map(int, stat_fields(server)[13:15]))
    return nanoseconds / 1e9 + ended_ticks / os.sysconf("SC_CLK_TCK")


def _proportional_size(process: int) -> int:
    """Return the kB of a process, with its part of the pages that it shares."""
    lines = Path(f"/proc/{process}/smaps_rollup").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


if __name__ == "__main__":
    main()
