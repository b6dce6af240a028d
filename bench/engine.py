"""PostgreSQL beside the sidecar: `python bench/engine.py 50000`, for so many passages of a vault made by bench/corpus.py.

Both engines index the same notes and are asked the same questions, each by a process of its own. CPU and memory are those of
this process and of the server's together, pages that its processes share counted once. The server is one of its own, from a
wheel, on a socket in a temporary folder (Linux). Passages of more numbers than `most_held` have pgvector's index.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import psycopg
from postgres import running

from bench.corpus import PASSAGES_A_NOTE, Corpus
from simplemem.index.postgres.database import PostgresEngine
from simplemem.models import Filter
from simplemem.search.rank import Mode
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

_TICKS = os.sysconf("SC_CLK_TCK")
FILTERS = {
    "none": Filter(),
    "a tag": Filter.of(tags={"project": ""}),
    "a folder": Filter.of(prefix="area-07/"),
    "since a day": Filter.of(since="2025-01-01"),
}
MODES: dict[str, Mode] = {"words": "text", "meaning": "semantic", "both": "hybrid"}
Answers = dict[str, list[list[str]]]
"""The ten hits of each question, by what was asked for."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("passages", type=int)
    parser.add_argument("--queries", type=int, default=60)
    parser.add_argument("--most-held", type=int, default=PostgresEngine.max_compared_numbers)
    parser.add_argument("--alone", action="store_true", help="PostgreSQL without the sidecar")
    given = parser.parse_args()
    corpus = Corpus(max(1, given.passages // PASSAGES_A_NOTE), 1)
    with tempfile.TemporaryDirectory(prefix="simplemem-engine-") as made, running() as url:
        vault = Path(made)
        for _ in corpus.write(vault):
            pass
        answers: list[Answers] = []
        for engine in (url,) if given.alone else ("", url):
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
                asked = process.submit(
                    measured, vault, engine, corpus, given.queries, given.most_held
                )
                answers.append(asked.result())
    exact, *others = answers
    for name in exact if others else ():
        pairs = list(zip(exact[name], others[0][name], strict=True))
        share = [len({*one} & {*two}) / len(one) for one, two in pairs if one]
        same = sum(one == two for one, two in pairs)
        print(
            f"{name}: recall@10 {sum(share) / max(1, len(share)):.3f}, in the same order {same} of {len(pairs)}"
        )


def measured(vault: Path, engine: str, corpus: Corpus, queries: int, most_held: int) -> Answers:
    """What an engine costs is printed, and what it finds is returned."""
    PostgresEngine.max_compared_numbers = most_held
    every = [text for text, _ in corpus.questions(queries * len(MODES) * len(FILTERS))]
    answers: Answers = {}
    with EnhancedStore(vault, Settings.model_validate({"index": {"engine": engine}})) as store:
        of = [os.getpid(), *(_server(engine) if engine else ())]
        say(f"{store.stats()['engine']}: {corpus.notes} notes")
        spent = _spent(of, lambda: store.sync())
        say(
            f"  index {spent:.1f} s CPU, {store.stats()['index_bytes'] / 1e6:.0f} MB on disk; {_memory(of)}"
        )
        for mode, kind in MODES.items():
            for name, narrow in FILTERS.items():
                found: list[list[str]] = []
                questions, every = (
                    every[:queries],
                    every[queries:],
                )  # new ones: nothing of them was read yet

                def search(text: str, kind: Mode = kind, narrow: Filter = narrow) -> list[str]:
                    return [
                        hit.name
                        for hit in store.search(text, limit=10, filter=narrow, mode=kind).hits
                    ]

                for text in ("what", "is read once"):
                    search(text)
                times = [
                    _spent(of, partial(found.extend, map(search, [text]))) for text in questions
                ]
                answers[f"{mode}, {name}"] = found
                say(f"  search by {mode:<7} {name:<11} {1000 * median(times):6.1f} ms CPU p50")
        say(f"  {_memory(of)}")
        store.create("changing", "First line.")
        cpu = _spent(of, lambda: store.update("changing", append="A quixotic line."))
        seen: list[str] = []
        after = _spent(of, lambda: seen.extend(hit.name for hit in store.search("quixotic").hits))
        say(
            f"  a change {1000 * cpu:.1f} ms CPU, the search after it {1000 * after:.1f}, which finds {seen[:1]}"
        )
        store.delete("changing")
    return answers


def say(line: str) -> None:
    print(line, flush=True)


def _spent(of: list[int], work: Callable[[], object]) -> float:
    """CPU seconds of this process, and of a server's and its children."""
    began = time.process_time() + sum(map(_cpu, of[1:]))
    work()
    return time.process_time() + sum(map(_cpu, of[1:])) - began


def _server(url: str) -> list[int]:
    with psycopg.connect(url) as db:
        return [int(_stat(db.info.backend_pid)[1])]


def _stat(pid: int) -> list[str]:
    """The fields behind the name of a process."""
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()


def _processes(server: int) -> Iterator[int]:
    yield server
    yield from map(
        int, Path(f"/proc/{server}/task/{server}/children").read_text(encoding="utf-8").split()
    )


def _cpu(server: int) -> float:
    """Seconds of those that run, to the microsecond, and of those that ended."""
    running = sum(
        int(Path(f"/proc/{pid}/schedstat").read_text(encoding="utf-8").split()[0])
        for pid in _processes(server)
    )
    return running / 1e9 + sum(map(int, _stat(server)[13:15])) / _TICKS


def _memory(of: list[int]) -> str:
    """What this process and the server's hold, in MB: their part of pages that several share."""
    sizes = [_pss(of[0]), *(sum(map(_pss, _processes(server))) for server in of[1:])]
    return "memory " + " + ".join(f"{size / 1e3:.0f}" for size in sizes) + " MB"


def _pss(pid: int) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


if __name__ == "__main__":
    main()
