"""How well search finds notes by queries with a misspelt word.

    python bench/typos.py [--vault DIR] [--locomo FILE.json.gz] [--seed NUMBER] [--mode MODE]
        [--show]

Makes misspelt queries: from the titles of a vault of notes, and from the questions of LoCoMo-shaped
JSON (see bench/quality.py). In each query, one word gets one wrong letter: one letter is left out,
doubled, replaced by a neighbour on the keyboard, or swapped with the next. Words have at least five
letters, and the misspelt word is in no note. The same files and seed always give the same queries.
The rules were adjusted to those of the default seed.

Prints three rows: for the original queries, for the misspelt queries without correction, and for
the misspelt queries. Each has the share of the right notes among the first five hits (recall@5),
the mean of 1 divided by the rank of the first right note (MRR), and the CPU time of a query. Then
it prints how many words were corrected, and how many of these to the word that was meant.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.quality import write, write_locomo
from simplemem.note.words import STOP_WORDS
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

DEFAULT_SEED: Final = 38
LIMIT: Final = 10
MAX_QUESTIONS: Final = 300  # of LoCoMo
SHORTEST_WORD: Final = 5
ROWS: Final = ("qwertyuiop", "asdfghjkl", "zxcvbnm")


class Query(NamedTuple):
    """A query with one misspelt word, and the notes that answer it."""

    text: str  # as it was before
    misspelt_text: str
    word: str  # as it was before, in lower case
    misspelt_word: str  # in lower case
    right: frozenset[str]  # the names of the notes


def main() -> None:
    """Print the figures of each set of queries."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vault", type=Path)
    parser.add_argument("--locomo", type=Path)
    parser.add_argument("--seed", type=int, default=DEFAULT_SEED)
    parser.add_argument("--mode", default="hybrid")
    parser.add_argument("--show", action="store_true", help="print the words not corrected")
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        for title, vault, questions in question_sets(options, Path(folder)):
            with EnhancedStore(vault, Settings()) as store:
                store.sync()
                print_figures(store, title, questions, options)


def question_sets(
    options: argparse.Namespace, folder: Path
) -> Iterator[tuple[str, Path, list[tuple[str, frozenset[str]]]]]:
    """Yield the title of each set, its vault, and its queries with the right notes."""
    if options.vault:
        vault = folder / "titles"
        titles: dict[str, set[str]] = {}
        for file in sorted(options.vault.rglob("*.md")):
            name = file.relative_to(options.vault).as_posix().removesuffix(".md")
            write(vault / f"{name}.md", file.read_text(encoding="utf-8"))
            titles.setdefault(file.stem, set()).add(name)
        yield "titles", vault, [(title, frozenset(names)) for title, names in titles.items()]
    if options.locomo:
        vault = folder / "locomo"
        questions = [(text, right) for text, right in write_locomo(options.locomo, vault) if right]
        random.Random(options.seed).shuffle(questions)
        yield "LoCoMo", vault, questions[:MAX_QUESTIONS]


def print_figures(
    store: EnhancedStore,
    title: str,
    questions: Sequence[tuple[str, frozenset[str]]],
    options: argparse.Namespace,
) -> None:
    """Print the rows of one set of queries."""
    queries = misspelt_queries(store, questions, options.seed)
    print(f"{title}: {len(queries)} queries, mode {options.mode}")
    print("| queries | recall@5 | MRR | CPU ms per query |\n|---|---|---|---|")
    print(f"| spelt correctly | {measure(store, queries, options.mode, lambda q: q.text)} |")
    with without_correction():
        row = measure(store, queries, options.mode, lambda q: q.misspelt_text)
        print(f"| misspelt, without correction | {row} |")
    print(f"| misspelt | {measure(store, queries, options.mode, lambda q: q.misspelt_text)} |")

    corrected = 0
    meant = 0
    for query in queries:
        notice = store.search(query.misspelt_text, limit=1, mode=options.mode).degraded
        is_corrected = f"No note contains {query.misspelt_word}; searched for" in notice
        is_meant = f"searched for {query.word}." in notice
        corrected += is_corrected
        meant += is_meant
        if options.show and not is_meant:
            print(f"{query.word}: {query.misspelt_word}: {notice}")
    print(f"corrected: {corrected}, of these to the word that was meant: {meant}\n", flush=True)


def misspelt_queries(
    store: EnhancedStore, questions: Sequence[tuple[str, frozenset[str]]], seed: int
) -> list[Query]:
    """Return the queries with one misspelt word, which is chosen at random by the seed.

    Queries without a long word are left out, and those whose misspelt word is in a note.
    """
    chance = random.Random(seed)
    queries = []
    for text, right in questions:
        words = [word for word in re.findall(r"[A-Za-z]+", text) if len(word) >= SHORTEST_WORD]
        words = [word for word in words if word.lower() not in STOP_WORDS]
        if not words:
            continue
        word = chance.choice(words)
        misspelt = misspell(word, chance)
        with without_correction():
            is_in_notes = bool(store.search(misspelt, mode="text", limit=1).hits)
        if is_in_notes:
            continue
        misspelt_text = re.sub(rf"\b{word}\b", misspelt, text, count=1)
        queries.append(Query(text, misspelt_text, word.lower(), misspelt.lower(), right))
    return queries


def misspell(word: str, chance: random.Random) -> str:
    """Return a word with one wrong letter.

    The first letter stays, or is swapped with the second one.
    """
    place = chance.randrange(1, len(word))
    kind = chance.choice(("leave out", "double", "replace", "swap"))
    before, letter, after = word[:place], word[place], word[place + 1 :]
    if kind == "leave out":
        return before + after
    if kind == "double":
        return before + letter * 2 + after
    if kind == "replace":
        return before + chance.choice(neighbours(letter)) + after
    return before[:-1] + letter + before[-1] + after


def neighbours(letter: str) -> str:
    """Return the one or two letters beside a letter in its row of the keyboard."""
    row = next(row for row in ROWS if letter.lower() in row)
    place = row.index(letter.lower())
    return row[max(0, place - 1) : place] + row[place + 1 : place + 2]


def measure(
    store: EnhancedStore,
    queries: Sequence[Query],
    mode: str,
    text_of: Callable[[Query], str],
) -> str:
    """Return recall@5, MRR and the CPU time of a query as cells of a table.

    `text_of` returns the text of a query to search for.
    """
    recalls = []
    ranks = []
    start = time.process_time()
    for query in queries:
        hits = store.search(text_of(query), limit=LIMIT, mode=mode).hits
        names = [hit.name for hit in hits]
        found = query.right.intersection(names[:5])
        recalls.append(len(found) / len(query.right))
        right_ranks = [rank for rank, name in enumerate(names, 1) if name in query.right]
        ranks.append(1 / right_ranks[0] if right_ranks else 0.0)
    milliseconds = (time.process_time() - start) / len(queries) * 1000
    recall = sum(recalls) / len(recalls)
    mrr = sum(ranks) / len(ranks)
    return f"{recall:.3f} | {mrr:.3f} | {milliseconds:.1f}"


@contextmanager
def without_correction() -> Iterator[None]:
    """Search without the correction of misspelt words."""
    target = "simplemem.search.spelling.SpellingCorrector.correct"
    with patch(target, lambda _self, query, _plain_query: query):
        yield


if __name__ == "__main__":
    main()
