"""How search keeps up as a vault grows: `python bench/scale.py 100000`, for so many passages.

The vault is made with a fixed seed (bench/corpus.py) and indexed as any other; with `--keep DIR` it stays, a run that
was stopped goes on where it was, and a later run only asks. Questions are four to eight words of a section, small words
among them. Times are CPU milliseconds of one process that stays; memory is what that process holds, in a process of its
own. Recall is against the same question asked in full: every row with a word scored by SQLite. Every vector is compared
anyway.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from bench.corpus import PASSAGES_A_NOTE, Corpus
from simplemem.models import Filter
from simplemem.store import EnhancedStore

_GOALS = {10_000: 10, 100_000: 25, 1_000_000: 100}  # milliseconds, of the passages there are
Words = tuple[str, str]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("passages", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument(
        "--keep", type=Path, metavar="DIR", help="where the vault is made, to be asked again"
    )
    parser.add_argument("--only-ask", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    corpus = Corpus(max(1, given.passages // PASSAGES_A_NOTE), given.seed)
    if given.only_ask:
        ask(corpus, given.keep, given.queries)
        return
    with tempfile.TemporaryDirectory(prefix="simplemem-scale-") as made:
        vault = (given.keep or Path(made)) / "vault"
        build(corpus, vault)
        same = [
            str(given.passages),
            "--seed",
            str(given.seed),
            "--queries",
            str(given.queries),
            "--keep",
            str(vault),
        ]
        subprocess.run([sys.executable, __file__, *same, "--only-ask"], check=True)


def build(corpus: Corpus, vault: Path) -> None:
    """Notes, words and vectors; what is there already is left as it is."""
    began = time.process_time()
    for done in corpus.write(vault):
        if done % 10_000 == 0 and sys.stderr.isatty():
            print(f"\r{done} notes written", end="", file=sys.stderr)
    _say("notes written", f"{corpus.notes} in {time.process_time() - began:.1f} s")
    with EnhancedStore(vault) as store:
        for name, embed in (("words indexed", False), ("vectors made", True)):
            began, wall = time.process_time(), time.perf_counter()
            report = store.sync(progress=_shown if sys.stderr.isatty() else None, embed=embed)
            took, waited = time.process_time() - began, time.perf_counter() - wall
            count = report.embedded if embed else len(report.added)
            rate = f", {count / took:.0f} a second" if count else ""
            _say(name, f"{count} notes in {took:.1f} s cpu, {waited:.0f} s wall{rate}")
        counts = {
            table: store._parts.index.database.rows(f"SELECT count(*) FROM {table}")[0][0]
            for table in _TABLES
        }
        _say("rows", ", ".join(f"{count} {table}" for table, count in counts.items()))
        sizes = (
            sum(file.stat().st_size for file in vault.rglob("*.md")),
            store._parts.index.path.stat().st_size,
        )
        _say("on disk", f"notes {sizes[0] / 1e6:.0f} MB, index {sizes[1] / 1e6:.0f} MB")


_TABLES = ("notes", "places", "vectors")


def ask(corpus: Corpus, vault: Path, count: int) -> None:
    """What a server's questions cost, what they miss, and what it holds meanwhile."""
    questions = corpus.questions(count)
    frequent = [(words, "") for words in corpus.frequent_questions(count)]
    with EnhancedStore(vault) as store:
        embedder, why_not = store._parts.embedding.load()
        if embedder is None:
            raise SystemExit(why_not)
        _say("first question", f"{_cpu(lambda: store.search(questions[0][0])):.2f} s")
        passages = corpus.notes * PASSAGES_A_NOTE
        goal = f" (goal {_GOALS[passages]} ms)" if passages in _GOALS else ""
        _say("by both", _times(store, questions, goal))
        _say("by words", _times(store, questions, mode="text"))
        _say("by meaning", _times(store, questions, mode="semantic"))
        half, tenth = (
            Filter.of(tags={"project": ""}),
            Filter.of(tags={"status": "done"}, prefix="area-1"),
        )
        _say("by both, one tag", _times(store, questions, filter=half))
        _say("by both, tag and folder", _times(store, questions, filter=tenth))
        _say(
            "by both, a small folder",
            _times(store, questions, filter=Filter.of(prefix="area-07/03")),
        )
        _say("frequent words only", _times(store, frequent))
        _say("after a change each", _after_changes(store, questions))
        _say("memory", _memory())
        _say("the note itself found", _found(store, questions))


def _times(store: EnhancedStore, questions: Iterable[Words], goal: str = "", **asked: Any) -> str:
    times = sorted(
        1000 * _cpu(lambda text=text: store.search(text, **asked)) for text, _ in questions
    )  # type: ignore[misc]
    return f"p50 {_at(times, 0.5):6.1f} ms, p95 {_at(times, 0.95):6.1f} ms, most {times[-1]:6.1f} ms{goal}"


def _after_changes(store: EnhancedStore, questions: list[Words]) -> str:
    """Questions of which each follows a change of one note."""
    store.create("bench/changing", "First line.", overwrite=True)
    times = []
    for k, (text, _) in enumerate(questions[:50]):
        store.update("bench/changing", append=f"Line {k}.")
        times.append(1000 * _cpu(lambda text=text: store.search(text)))  # type: ignore[misc]
    store.delete("bench/changing")
    times.sort()
    return (
        f"p50 {_at(times, 0.5):6.1f} ms, p95 {_at(times, 0.95):6.1f} ms, most {times[-1]:6.1f} ms"
    )


def _found(store: EnhancedStore, questions: list[Words]) -> str:
    """How often the note that a question was taken from is among its hits."""
    ranks = []
    for text, path in questions:
        names = [hit.name for hit in store.search(text, limit=10).hits]
        ranks.append(
            names.index(path.removesuffix(".md")) + 1 if path.removesuffix(".md") in names else 0
        )
    return ", ".join(
        f"{sum(0 < rank <= k for rank in ranks) / len(ranks):.3f} in the first {k}"
        for k in (1, 5, 10)
    )


def _memory() -> str:
    """What this process holds now and held at most; of Linux, what of it is its own."""
    try:
        status = dict(
            line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines()
        )
    except OSError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (
            1 << 20 if sys.platform == "darwin" else 1024
        )
        return f"{most:.0f} MB at most"
    now, own, most = (int(status[key].split()[0]) / 1024 for key in ("VmRSS", "RssAnon", "VmHWM"))
    return f"{now:.0f} MB resident, {own:.0f} MB of it its own; {most:.0f} MB at most"


def _shown(phase: str, done: int, total: int) -> None:
    print(f"\r{phase}: {done} of {total} notes ", end="", file=sys.stderr)


def _say(name: str, told: str) -> None:
    print(f"{name:24} {told}", flush=True)


def _cpu(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def _at(times: list[float], share: float) -> float:
    return times[min(len(times) - 1, int(len(times) * share))]


if __name__ == "__main__":
    main()
