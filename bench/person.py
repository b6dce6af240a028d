"""Search asked as a person asks: `python bench/person.py --vault DIR [--questions FILE.tsv] [--list]`.

The file holds one question per line: how it is put (title, words, other, vague, absent), the question, and the notes
that answer it. The vault is copied, so that nothing is written to it.

For answerable questions the table counts the right notes at rank 1 and in the first 5, and the answers that say
"nothing found". For absent questions it counts the lists that are given without that message. `--list` also prints every
question that went wrong.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

QUESTIONS = Path(__file__).with_name("person_questions.tsv")
NO_ANSWER = "-"  # in place of the notes that answer a question


@dataclass(frozen=True)
class PersonQuestion:
    """A question, how it is put, and the names of the notes that answer it (none for an absent one)."""

    manner: str
    text: str
    answers: frozenset[str]


@dataclass(frozen=True)
class Outcome:
    """What search answered: the rank of the first right note (0 if none), the first name, and the message."""

    question: PersonQuestion
    rank: int
    first: str
    says_nothing_found: bool


def read_questions(file: Path, vault: Path) -> list[PersonQuestion]:
    """Read a file of questions. Raises SystemExit if the vault lacks a note that is named as an answer."""
    names = {path.relative_to(vault).as_posix().removesuffix(".md") for path in vault.rglob("*.md")}
    questions = []
    for line in file.read_text(encoding="utf-8").split("\n"):
        if not line.strip() or line.startswith("#"):
            continue
        manner, text, answers = line.split("\t")
        wanted = frozenset() if answers == NO_ANSWER else frozenset(answers.split(";"))
        if missing := wanted - names:
            raise SystemExit(f"{file}: the vault has no note called {sorted(missing)}")
        questions.append(PersonQuestion(manner, text, wanted))
    return questions


def ask(store: EnhancedStore, question: PersonQuestion) -> Outcome:
    """Ask one question in the default mode, for ten hits."""
    found = store.search(question.text, limit=10)
    names = [hit.name for hit in found.hits]
    right = [rank for rank, name in enumerate(names, 1) if name in question.answers]
    rank = right[0] if right else 0
    first = names[0] if names else "-"
    return Outcome(question, rank, first, found.only_nearest or not names)


def print_row(label: str, outcomes: Sequence[Outcome]) -> None:
    first = sum(outcome.rank == 1 for outcome in outcomes)
    in_five = sum(1 <= outcome.rank <= 5 for outcome in outcomes)
    silent = sum(outcome.says_nothing_found for outcome in outcomes)
    print(f"| {label} | {len(outcomes)} | {first} | {in_five} | {silent} |")


def print_table(outcomes: Sequence[Outcome]) -> None:
    answerable = [outcome for outcome in outcomes if outcome.question.answers]
    absent = [outcome for outcome in outcomes if not outcome.question.answers]
    print(
        '| question by | questions | right at rank 1 | right in the first 5 | false "nothing found" |'
    )
    print("|---|---|---|---|---|")
    for manner in dict.fromkeys(outcome.question.manner for outcome in answerable):
        print_row(manner, [outcome for outcome in answerable if outcome.question.manner == manner])
    print_row("all answerable", answerable)
    confident = sum(not outcome.says_nothing_found for outcome in absent)
    print(
        f"\nOf {len(absent)} questions that the vault cannot answer, {confident} got a confident list."
    )


def print_wrong(outcomes: Iterable[Outcome]) -> None:
    for outcome in outcomes:
        question = outcome.question
        is_right = outcome.rank == 1 if question.answers else outcome.says_nothing_found
        if not is_right or (question.answers and outcome.says_nothing_found):
            message = ' "nothing found"' if outcome.says_nothing_found else ""
            print(
                f"{question.manner}: {question.text} -> rank {outcome.rank}{message}; first: {outcome.first}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vault", type=Path, required=True)
    parser.add_argument("--questions", type=Path, default=QUESTIONS)
    parser.add_argument("--list", action="store_true", help="print every question that went wrong")
    given = parser.parse_args()
    questions = read_questions(given.questions, given.vault)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "vault"
        shutil.copytree(given.vault, copy, ignore=shutil.ignore_patterns(".simplemem"))
        with EnhancedStore(copy, Settings()) as store:
            store.sync()
            outcomes = [ask(store, question) for question in questions]
    print_table(outcomes)
    if given.list:
        print_wrong(outcomes)


if __name__ == "__main__":
    main()
