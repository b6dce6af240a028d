"""How often search says that it found nothing: `python bench/honesty.py --locomo FILE.json.gz --vault DIR [--questions
FILE.tsv] [--every N]`, with the sets of `quality.py`.

Every question is asked twice: of the vault, and of the vault without the notes that answer it. A row of the curve is a
floor, beside that of search, and the share of each that is answered "nothing found" at it: of the first wrongly, of the
second rightly. Questions of made-up words, which no note holds, come last.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.quality import Questions, sets
from bench.vaults import make_queries
from simplemem.config import Settings
from simplemem.search import rank
from simplemem.store import EnhancedStore, recall

_AROUND = (-0.3, -0.2, -0.1, -0.05, 0.0, 0.05, 0.1, 0.2, 0.3)  # the floor of search


def sureness(store: EnhancedStore, asked: str, mode: rank.Mode) -> float:
    """How far the best hit is above the floor; -1 for a question none of whose words is held."""
    core = store._core  # an answer says only on which side of the floor it is
    ranking = recall.ranked(core, asked, None, 5, mode)
    if not ranking.best or ranking.query.only_nearest:
        return -1.0
    return rank.above_floor(recall.quality(core, ranking, ranking.best[0]), ranking.every, mode, asked)


def twice(store: EnhancedStore, questions: Questions, mode: rank.Mode) -> tuple[list[float], list[float]]:
    """How sure search is with the notes that answer, and without them."""
    there = [sureness(store, asked, mode) for asked, gold in questions if gold]
    gone: list[float] = []
    for gold in sorted({gold for _, gold in questions if gold}, key=sorted):
        texts = {store.root / f"{name}.md": (store.root / f"{name}.md").read_bytes() for name in gold}
        for file in texts:
            file.unlink()
        store.sync()
        gone += [sureness(store, asked, mode) for asked, wanted in questions if wanted == gold]
        for file, text in texts.items():
            file.write_bytes(text)
        store.sync()
    return there, gone


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--locomo", type=Path)
    parser.add_argument("--vault", type=Path)
    parser.add_argument("--questions", type=Path)
    parser.add_argument("--every", type=int, default=1, help="ask only every Nth question")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name, vault, questions in sets(given, Path(folder)):
            with EnhancedStore(vault, Settings()) as store:
                store.sync()
                for mode in rank.MODES:
                    there, gone = twice(store, questions[:: given.every], mode)
                    print(
                        f"\n| {name}, {mode} | floor | {len(there)} refused | {len(gone)} without their notes, refused |"
                    )
                    print("|---|---|---|---|")
                    for more in _AROUND:
                        shares = (f"{sum(each < more for each in asked) / len(asked):.3f}" for asked in (there, gone))
                        print(f"| {'' if more else '->'} | {more:+.2f} | {' | '.join(shares)} |")
                made_up = make_queries(100)
                nothing = sum(store.search(asked).only_nearest for asked in made_up)
                print(f"\nOf {len(made_up)} questions of made-up words {nothing} are answered so.", flush=True)


if __name__ == "__main__":
    main()
