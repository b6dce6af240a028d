"""Do questions that name a time find the notes of that time?

    python bench/dates.py [--lme FILE.json.xz] [--locomo FILE.json.gz]

`bench/dates.toml` has questions in 14 languages. Each has a vault of its own, in which only the day
tells the notes apart. Prints per language how many questions are answered rightly: the right note
is before all others or, if the question asks for an order, the notes are in this order.

`--lme` asks the temporal questions of LongMemEval at their own dates, each in a vault of its own
sessions. `--locomo` asks the temporal questions of LoCoMo (category 2). `--verbose` also prints the
questions of `bench/dates.toml` that are not answered rightly.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.quality import reciprocal_rank, write, write_locomo
from bench.retrieval.data import write_notes
from bench.retrieval.loaders import longmemeval_notes, longmemeval_time, read_json
from simplemem.models import Found
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

QUESTIONS: Final = Path(__file__).with_name("dates.toml")
TEMPORAL: Final = 2  # a category of LoCoMo

Answered = tuple[Sequence[str], frozenset[str]]
"""The names of the hits of a question, best first, and those of the notes that answer it."""


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--lme", type=Path)
    parser.add_argument("--locomo", type=Path)
    parser.add_argument("--verbose", action="store_true", help="print the questions that fail")
    options = parser.parse_args()

    print_own(options.verbose)
    if options.lme:
        print_figures("LongMemEval, temporal", ask_lme(options.lme))
    if options.locomo:
        print_figures("LoCoMo, temporal", ask_locomo(options.locomo))


def print_own(is_verbose: bool) -> None:
    """Ask the questions of `dates.toml`, and print how many of each language are right."""
    data = tomllib.loads(QUESTIONS.read_text(encoding="utf-8"))
    right: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for question in data["question"]:
        total[question["language"]] += 1
        is_right = answers(question, data["now"])
        right[question["language"]] += is_right
        if is_verbose and not is_right:
            print("not right:", question["text"])
    print("| language | right | questions |\n|---|---|---|")
    for language, count in total.items():
        print(f"| {language} | {right[language]} | {count} |")
    print(f"| all | {right.total()} | {total.total()} |", flush=True)


def answers(question: dict[str, Any], now: datetime) -> bool:
    """Return whether search answers a question of `dates.toml` rightly, asked at the time `now`."""
    extra = question.get("extra", {})
    with tempfile.TemporaryDirectory() as folder:
        for number, day in enumerate(question["days"], 1):
            text = question["note"].replace("{}", str(number + 2))
            write(Path(folder, f"{day}.md"), f"{text}\n")
        for day, text in extra.items():
            write(Path(folder, f"{day}.md"), f"{text}\n")
        with EnhancedStore(Path(folder), Settings()) as store:
            store.sync()
            found = store.search(question["text"], limit=10, now=now)

    if question.get("ordered"):
        return [name for name in days_in_order(found) if name in extra] == sorted(extra)
    names = [hit.name for hit in found.hits if hit.name not in extra]
    return names[:1] == [str(question["days"][0])]


def days_in_order(found: Found) -> list[str]:
    """Return the names of the hits in order of date; none if the answer has no such order."""
    return [note.name for note in found.by_date]


def ask_lme(file: Path) -> Iterator[Answered]:
    """Ask the temporal questions of LongMemEval, each in a vault of its sessions, at its date.

    Questions without an answer are left out.
    """
    data = read_json(file)
    for question in data["questions"]:
        if question["type"] != "temporal-reasoning" or question["id"].endswith("_abs"):
            continue
        with tempfile.TemporaryDirectory() as folder:
            write_notes(longmemeval_notes(data, question), Path(folder))
            with EnhancedStore(Path(folder), Settings()) as store:
                store.sync()
                asked_at = longmemeval_time(question["date"])
                found = store.search(question["question"], limit=10, now=asked_at)
        yield [hit.name for hit in found.hits], frozenset(question["evidence"])


def ask_locomo(file: Path) -> Iterator[Answered]:
    """Ask the temporal questions of LoCoMo in one vault of all its sessions."""
    data = json.loads(gzip.decompress(file.read_bytes()))
    with tempfile.TemporaryDirectory() as folder:
        questions = write_locomo(file, Path(folder))
        with EnhancedStore(Path(folder), Settings()) as store:
            store.sync()
            for query, (text, right) in zip(data["queries"], questions, strict=True):
                if query["category"] == TEMPORAL:
                    found = store.search(text, limit=10)
                    yield [hit.name for hit in found.hits], right


def print_figures(title: str, answered: Iterable[Answered]) -> None:
    """Print hit@1, recall@5, recall@10 and MRR of some questions."""
    rows = list(answered)
    sums: Counter[str] = Counter()
    for names, right in rows:
        sums["hit@1"] += bool(right & set(names[:1]))
        sums["recall@5"] += len(right & set(names[:5])) / len(right)
        sums["recall@10"] += len(right & set(names)) / len(right)
        sums["MRR"] += reciprocal_rank(names, right)
    figures = ", ".join(f"{name} {total / len(rows):.3f}" for name, total in sums.items())
    print(f"{title}, {len(rows)} questions: {figures}", flush=True)


if __name__ == "__main__":
    main()
