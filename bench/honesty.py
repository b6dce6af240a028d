"""How often search says that it found nothing: `python bench/honesty.py --locomo FILE.json.gz --vault DIR [--questions
FILE.tsv] [--every N]`, with the sets of `quality.py`.

Every question is asked twice: of the vault, and of the vault without the notes that answer it. A row of the curve is a
floor, beside that of search, and the share of each that is answered "nothing found" at it: of the first wrongly, of the
second rightly. Questions of made-up words, which no note holds, come last.

Of LoCoMo there is a second curve. Left out of it are its questions that ask for a guess (category 3: "Would John be
considered patriotic?"), which no note answers; and of those without their notes the ones that several notes answer
("What kind of art does she make?"), for other notes go on answering them.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.quality import Questions, sets
from bench.vaults import make_queries
from simplemem.config import Settings
from simplemem.search import rank
from simplemem.store import EnhancedStore, recall

_AROUND = (-0.3, -0.2, -0.1, -0.05, 0.0, 0.05, 0.1, 0.2, 0.3)  # the floor of search
_GUESS = 3  # the category of LoCoMo


class Twice(NamedTuple):
    """A question, how many notes answer it, and how sure search is with them and without them."""

    asked: str
    notes: int
    there: float
    gone: float


def sureness(store: EnhancedStore, asked: str, mode: rank.Mode) -> float:
    """How far the best hit is above the floor; -1 for a question none of whose words is held."""
    core = store._core  # an answer says only on which side of the floor it is
    ranking = recall.ranked(core, asked, None, 5, mode)
    return -1.0 if not ranking.best or ranking.query.only_nearest else recall.sureness(core, ranking)


def twice(store: EnhancedStore, questions: Questions, mode: rank.Mode) -> list[Twice]:
    answered = [(asked, gold, sureness(store, asked, mode)) for asked, gold in questions if gold]
    both: list[Twice] = []
    for gold in sorted({gold for _, gold, _ in answered}, key=sorted):
        texts = {store.root / f"{name}.md": (store.root / f"{name}.md").read_bytes() for name in gold}
        for file in texts:
            file.unlink()
        store.sync()
        both += [
            Twice(asked, len(gold), there, sureness(store, asked, mode))
            for asked, wanted, there in answered
            if wanted == gold
        ]
        for file, text in texts.items():
            file.write_bytes(text)
        store.sync()
    return both


def print_curve(name: str, there: Sequence[float], gone: Sequence[float]) -> None:
    print(f"\n| {name} | floor | {len(there)} refused | {len(gone)} without their notes, refused |")
    print("|---|---|---|---|")
    for more in _AROUND:
        shares = (f"{sum(each < more for each in asked) / len(asked):.3f}" for asked in (there, gone))
        print(f"| {'' if more else '->'} | {more:+.2f} | {' | '.join(shares)} |")


def guesses(file: Path) -> set[str]:
    raw = file.read_bytes()
    data = json.loads(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)
    return {each["query"] for each in data["queries"] if each.get("category") == _GUESS}


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
                    both = twice(store, questions[:: given.every], mode)
                    print_curve(f"{name}, {mode}", [each.there for each in both], [each.gone for each in both])
                    if name == "LoCoMo":
                        guessed = guesses(given.locomo)
                        facts = [each for each in both if each.asked not in guessed]
                        gone = [each.gone for each in facts if each.notes == 1]
                        print_curve(f"{name} without guesses, {mode}", [each.there for each in facts], gone)
                made_up = make_queries(100)
                nothing = sum(store.search(asked).only_nearest for asked in made_up)
                print(f"\nOf {len(made_up)} questions of made-up words {nothing} are answered so.", flush=True)


if __name__ == "__main__":
    main()
