"""PostgreSQL beside the sidecar: `python bench/engine.py 50000`, for so many passages of a vault made by bench/corpus.py.

Both engines index the same notes and are asked the same questions. CPU is that of this process and of the server's
processes together; the server is one of its own, from a wheel, on a socket in a temporary folder (Linux).
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from postgres import running

from bench.corpus import PASSAGES_A_NOTE, Corpus
from simplemem.config import Settings
from simplemem.memory import Filter
from simplemem.store import EnhancedStore

_TICKS = os.sysconf("SC_CLK_TCK")
FILTERS = {
    "none": Filter(),
    "a tag": Filter.of(tags={"project": ""}),
    "a folder": Filter.of(prefix="area-07/"),
    "since a day": Filter.of(since="2025-01-01"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("passages", type=int)
    parser.add_argument("--queries", type=int, default=60)
    given = parser.parse_args()
    corpus = Corpus(max(1, given.passages // PASSAGES_A_NOTE), 1)
    with tempfile.TemporaryDirectory(prefix="simplemem-engine-") as made, running() as url:
        vault = Path(made)
        for _ in corpus.write(vault):
            pass
        questions = corpus.questions(given.queries)
        hits: list[list[list[str]]] = []
        for engine in ("", url):
            with EnhancedStore(vault, Settings.model_validate({"index": {"engine": engine}})) as store:
                print(f"{store.stats()['engine']}: {corpus.notes} notes")
                spent = _spent(lambda store=store: store.sync())
                print(f"  index             {spent:.1f} s CPU, {store.stats()['index_bytes'] / 1e6:.0f} MB on disk")
                store.search(questions[0][0])
                found = []
                for name, narrow in FILTERS.items():
                    times = []
                    for text, _ in questions:
                        answer: list[str] = []
                        search = lambda: answer.extend(h.name for h in store.search(text, limit=10, filter=narrow).hits)  # noqa: B023, E731
                        began = time.perf_counter()
                        cpu = _spent(search)
                        times.append((cpu, time.perf_counter() - began))
                        found.append(answer)
                    mean = 1000 * sum(cpu for cpu, _ in times) / len(times)
                    wall = sorted(1000 * seconds for _, seconds in times)[len(times) // 2]
                    print(f"  search, {name:<11} {mean:6.1f} ms CPU in the mean, {wall:6.1f} ms wall p50")
                hits.append(found)
                store.create("changing", "First line.")
                began = time.perf_counter()
                cpu = _spent(lambda store=store: store.update("changing", append="A quixotic line."))
                seen = [hit.name for hit in store.search("quixotic").hits]
                waited = 1000 * (time.perf_counter() - began)
                print(f"  a change          {1000 * cpu:.1f} ms CPU, found after {waited:.0f} ms: {seen[:1]}")
                store.delete("changing")
        same = sum(one == two for one, two in zip(*hits, strict=True))
        print(f"the same ten hits in the same order: {same} of {len(hits[0])}")


def _spent(work: Callable[[], object]) -> float:
    began = time.process_time() + _servers()
    work()
    return time.process_time() + _servers() - began


def _servers() -> float:
    """CPU seconds of all processes of PostgreSQL on this machine."""
    seconds = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            said = stat.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        if "(postgres)" in said:
            seconds += sum(map(int, said.rpartition(")")[2].split()[11:13]))
    return seconds / _TICKS


if __name__ == "__main__":
    main()
