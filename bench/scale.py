"""How search keeps up as a vault grows: `python bench/scale.py 100000`, for so many passages.

The vault is made with a fixed seed (bench/corpus.py) and indexed as any other. `--keep DIR` keeps
it: a run that was stopped continues there, and a later run only searches. Questions are four to
eight words of a section, stop words among them. Times are CPU milliseconds of one process that
searches again and again; memory is that of this process, which does nothing else.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from bench.corpus import PASSAGES_A_NOTE, Corpus
from bench.measure import cpu_milliseconds, cpu_seconds, memory_status, peak_memory, percentile
from simplemem.models import Filter
from simplemem.store import EnhancedStore

Question = tuple[str, str]
"""The words to search for, and the path of the note that they were taken from."""

_GOALS: Final = {10_000: 10, 100_000: 25, 1_000_000: 100}  # passages: milliseconds
_COUNTED_TABLES: Final = ("notes", "places", "vectors")
_FILTERS: Final = {
    "by both, one tag": Filter.of(tags={"project": ""}),
    "by both, tag and folder": Filter.of(tags={"status": "done"}, prefix="area-1"),
    "by both, a small folder": Filter.of(prefix="area-07/03"),
}


def main() -> None:
    """Make and index the vault in this process, and search it in another one."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("passages", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--keep", type=Path, metavar="DIR", help="make the vault there and keep it")
    parser.add_argument("--only-ask", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()

    corpus = Corpus(max(1, options.passages // PASSAGES_A_NOTE), options.seed)
    if options.only_ask:
        measure_searches(corpus, options.keep, options.queries)
        return

    with tempfile.TemporaryDirectory(prefix="simplemem-scale-") as temporary:
        folder = options.keep or Path(temporary)
        vault = folder / "vault"
        build(corpus, vault)
        command = [sys.executable, __file__, str(options.passages), "--only-ask"]
        command += ["--seed", str(options.seed)]
        command += ["--queries", str(options.queries)]
        command += ["--keep", str(vault)]
        subprocess.run(command, check=True)


def build(corpus: Corpus, vault: Path) -> None:
    """Write and index the notes of a corpus that are not there yet, and print what it cost."""
    seconds = cpu_seconds(lambda: _write_notes(corpus, vault))
    _print_row("notes written", f"{corpus.notes} in {seconds:.1f} s")

    with EnhancedStore(vault) as store:
        _index(store, "words indexed", embed=False)
        _index(store, "vectors made", embed=True)

        index = store._parts.index
        counts = []
        for table in _COUNTED_TABLES:
            count = index.database.rows(f"SELECT count(*) FROM {table}")[0][0]
            counts.append(f"{count} {table}")
        _print_row("rows", ", ".join(counts))

        note_bytes = sum(file.stat().st_size for file in vault.rglob("*.md"))
        index_bytes = index.path.stat().st_size
        _print_row("on disk", f"notes {note_bytes / 1e6:.0f} MB, index {index_bytes / 1e6:.0f} MB")


def _write_notes(corpus: Corpus, vault: Path) -> None:
    for count in corpus.write(vault):
        if count % 10_000 == 0 and sys.stderr.isatty():
            print(f"\r{count} notes written", end="", file=sys.stderr)


def _index(store: EnhancedStore, title: str, *, embed: bool) -> None:
    """Index the vault and print how many notes were indexed, or embedded, in what time."""
    progress = _print_progress if sys.stderr.isatty() else None
    cpu_start = time.process_time()
    wall_start = time.perf_counter()
    report = store.sync(progress=progress, embed=embed)
    cpu = time.process_time() - cpu_start
    wall = time.perf_counter() - wall_start

    count = report.embedded if embed else len(report.added)
    rate = f", {count / cpu:.0f} a second" if count else ""
    _print_row(title, f"{count} notes in {cpu:.1f} s cpu, {wall:.0f} s wall{rate}")


def measure_searches(corpus: Corpus, vault: Path, count: int) -> None:
    """Print what searches of each kind cost, the memory, and how often the right note was found."""
    questions = corpus.questions(count)
    frequent = [(words, "") for words in corpus.frequent_questions(count)]
    passages = corpus.notes * PASSAGES_A_NOTE
    goal = f" (goal {_GOALS[passages]} ms)" if passages in _GOALS else ""

    with EnhancedStore(vault) as store:
        embedder, why_not = store._parts.embedding.load()
        if embedder is None:
            raise SystemExit(why_not)

        first = cpu_seconds(lambda: store.search(questions[0][0]))
        _print_row("first question", f"{first:.2f} s")
        _print_row("by both", _search_times(store, questions) + goal)
        _print_row("by words", _search_times(store, questions, mode="text"))
        _print_row("by meaning", _search_times(store, questions, mode="semantic"))
        for title, narrow_filter in _FILTERS.items():
            _print_row(title, _search_times(store, questions, filter=narrow_filter))
        _print_row("frequent words only", _search_times(store, frequent))
        _print_row("after a change each", _times_after_changes(store, questions))
        _print_row("names by a part", _name_times(store, questions))
        _print_row("memory", _describe_memory())
        _print_row("the note itself found", _describe_recall(store, questions))


def _search_times(store: EnhancedStore, questions: list[Question], **options: Any) -> str:
    """Search for each question with the same options, and describe the CPU times."""
    times = []
    for text, _ in questions:
        times.append(cpu_milliseconds(lambda text=text: store.search(text, **options)))  # type: ignore[misc]
    return _describe_times(times)


def _times_after_changes(store: EnhancedStore, questions: list[Question]) -> str:
    """Describe the CPU times of searches, each of which follows a change of one note."""
    store.create("bench/changing", "First line.", overwrite=True)
    times = []
    for number, (text, _) in enumerate(questions[:50]):
        store.update("bench/changing", append=f"Line {number}.")
        times.append(cpu_milliseconds(lambda text=text: store.search(text)))  # type: ignore[misc]
    store.delete("bench/changing")
    return _describe_times(times)


def _name_times(store: EnhancedStore, questions: list[Question]) -> str:
    """Describe the CPU times of finding names by the first words of each question, misspelt."""
    times = []
    for text, _ in questions:
        typed = " ".join(text.split()[:2])[:-1]
        times.append(cpu_milliseconds(lambda typed=typed: store.find_names(typed)))  # type: ignore[misc]
    return _describe_times(times)


def _describe_times(times: list[float]) -> str:
    median = percentile(times, 0.5)
    high = percentile(times, 0.95)
    return f"p50 {median:6.1f} ms, p95 {high:6.1f} ms, most {max(times):6.1f} ms"


def _describe_recall(store: EnhancedStore, questions: list[Question]) -> str:
    """Say how often the note of a question was the first hit, and among the first 5 and 10."""
    ranks = [_rank_of(store, text, path) for text, path in questions]
    shares = []
    for depth in (1, 5, 10):
        found = sum(rank <= depth for rank in ranks)
        shares.append(f"{found / len(ranks):.3f} in the first {depth}")
    return ", ".join(shares)


def _rank_of(store: EnhancedStore, text: str, path: str) -> int:
    """Return the place of a note among ten hits, from 1, or 11 if it is not among them."""
    names = [hit.name for hit in store.search(text, limit=10).hits]
    name = path.removesuffix(".md")
    if name not in names:
        return 11
    return names.index(name) + 1


def _describe_memory() -> str:
    """Say what this process uses now and used at most; on Linux also without mapped files."""
    status = memory_status()
    if not status:
        return f"{peak_memory():.0f} MB at most"
    return (
        f"{status['VmRSS']:.0f} MB resident, {status['RssAnon']:.0f} MB of it its own; "
        f"{status['VmHWM']:.0f} MB at most"
    )


def _print_progress(phase: str, done: int, total: int) -> None:
    print(f"\r{phase}: {done} of {total} notes ", end="", file=sys.stderr)


def _print_row(title: str, value: str) -> None:
    print(f"{title:24} {value}", flush=True)


if __name__ == "__main__":
    main()
