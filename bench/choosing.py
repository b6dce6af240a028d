"""What the constants of simplemem/index/legs.py cost and lose: `python bench/choosing.py`, on the vault of bench/run.py, or
`python bench/choosing.py --passages N --keep DIR` on one that `bench/scale.py N --keep DIR` has left there.

For each value: CPU milliseconds of the leg of whole notes, and how many of the twenty and of the hundred best notes it
finds, against every note with a word scored by SQLite.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.corpus import PASSAGES_A_NOTE, Corpus
from bench.vaults import make_queries, make_vault
from simplemem.index import legs
from simplemem.index.door import Question
from simplemem.search.query import read_query
from simplemem.store import EnhancedStore

_GROUPED = {"_MOST_NOTES": 0, "_WORTH": 10_000}  # as if there were too many notes to score
TRIED: list[tuple[str, dict[str, float]]] = [
    ("as it is", {}),
    *((f"_CHOOSING {value}", {"_CHOOSING": value}) for value in (0.1, 0.2, 0.8)),
    *((f"_WORTH {value}", {"_WORTH": value}) for value in (1, 2, 6)),
    *((f"_MOST_NOTES {value}", {"_MOST_NOTES": value}) for value in (10_000, 50_000)),
    ("words all frequent, two groups", {**_GROUPED, "_IN_PAIRS": 1 << 30}),
    ("words all frequent, three", {**_GROUPED, "_IN_PAIRS": 0}),
]


def main() -> None:
    args = argparse.ArgumentParser(description=(__doc__ or "").split(":", 1)[0])
    args.add_argument("--passages", type=int)
    args.add_argument("--keep", type=Path, metavar="DIR")
    args.add_argument("--queries", type=int, default=60)
    given = args.parse_args()
    if given.keep:
        corpus = Corpus(max(1, given.passages // PASSAGES_A_NOTE), 1)
        ask("ordinary questions", given.keep / "vault", [words for words, _ in corpus.questions(given.queries)])
        ask("frequent words only", given.keep / "vault", corpus.frequent_questions(given.queries))
        return
    with tempfile.TemporaryDirectory(prefix="simplemem-choosing-") as made:
        make_vault(Path(made), 10_000)
        with EnhancedStore(Path(made)) as store:
            store.sync(embed=False)
        ask("questions of bench/run.py", Path(made), make_queries(given.queries))


def ask(name: str, vault: Path, questions: Sequence[str]) -> None:
    """A line for each value."""
    asked = [Question(read_query(question).terms(), closer=0) for question in questions]
    with EnhancedStore(vault) as store:
        index = store._core.index
        with index.snapshot() as db:
            full = [[match.note for match in legs.leg(db, "note", each.terms, 100, None)] for each in asked]
        for each in asked:
            index.ask(each)  # its words are counted once while nothing changes
        print(f"{name}: {len(questions)}")
        for told, values in TRIED:
            before = {constant: getattr(legs, constant) for constant in values}
            for constant, value in values.items():
                setattr(legs, constant, value)
            times, found = [], []
            for each in asked:
                began = time.process_time()
                found.append([match.note for match in index.ask(each).notes])
                times.append(1000 * (time.process_time() - began))
            for constant, value in before.items():
                setattr(legs, constant, value)
            shares = (
                statistics.mean(_share(best[:count], here[:count]) for best, here in zip(full, found, strict=True))
                for count in (20, 100)
            )
            print(f"  {told:32} p50 {statistics.median(times):5.1f} ms, found {', '.join(f'{s:.4f}' for s in shares)}")


def _share(best: Sequence[int], found: Sequence[int]) -> float:
    return len(set(best) & set(found)) / len(best) if best else 1.0


if __name__ == "__main__":
    main()
