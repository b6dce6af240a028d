"""Search, asked as a person asks.

    python bench/person.py --vault DIR [--questions FILE.tsv] [--list]

The file has one question per line: its wording (title, words, other, vague, absent), the question,
and the notes that answer it. The vault is copied, so that nothing is written to it.

For answerable questions the table counts the right notes at rank 1 and in the first 5, and the
answers that say "nothing found". For absent questions it counts the lists that are given without
that message. `--list` also prints every question that went wrong.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[1]))

from simplemem.models import Found
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

QUESTIONS: Final = Path(__file__).with_name("person_questions.tsv")
NO_ANSWER: Final = "-"  # in place of the notes that answer a question

_HEADINGS: Final = (
    "question by",
    "questions",
    "right at rank 1",
    "right in the first 5",
    'false "nothing found"',
)


@dataclass(frozen=True)
class PersonQuestion:
    """A question, its wording, and the names of the notes that answer it, none if it is absent."""

    wording: str
    text: str
    answers: frozenset[str]


@dataclass(frozen=True)
class Outcome:
    """What search answered."""

    question: PersonQuestion
    rank: int  # of the first right note, 0 if there is none
    first_name: str
    says_nothing_found: bool

    @property
    def is_wrong(self) -> bool:
        """Return whether the first note is not right, or the message is false or missing."""
        if not self.question.answers:
            return not self.says_nothing_found
        return self.rank != 1 or self.says_nothing_found


def main() -> None:
    """Ask all questions in a copy of the vault, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--vault", type=Path, required=True)
    parser.add_argument("--questions", type=Path, default=QUESTIONS)
    parser.add_argument("--list", action="store_true", help="print every question that went wrong")
    options = parser.parse_args()

    questions = read_questions(options.questions, options.vault)
    with tempfile.TemporaryDirectory() as folder:
        vault = Path(folder) / "vault"
        shutil.copytree(options.vault, vault, ignore=shutil.ignore_patterns(".simplemem"))
        with EnhancedStore(vault, Settings()) as store:
            store.sync()
            outcomes = [ask(store, question) for question in questions]

    print_table(outcomes)
    if options.list:
        print_wrong(outcomes)


def read_questions(file: Path, vault: Path) -> list[PersonQuestion]:
    """Return the questions of a file.

    Raises:
        SystemExit: The vault lacks a note that is named as an answer.
    """
    paths = [path.relative_to(vault).as_posix() for path in vault.rglob("*.md")]
    names = {path.removesuffix(".md") for path in paths}

    questions = []
    for line in file.read_text(encoding="utf-8").split("\n"):
        if not line.strip() or line.startswith("#"):
            continue
        question = _parse_question(line)
        missing = question.answers - names
        if missing:
            raise SystemExit(f"{file}: the vault has no note called {sorted(missing)}")
        questions.append(question)
    return questions


def _parse_question(line: str) -> PersonQuestion:
    wording, text, answers = line.split("\t")
    if answers == NO_ANSWER:
        return PersonQuestion(wording, text, frozenset())
    return PersonQuestion(wording, text, frozenset(answers.split(";")))


def ask(store: EnhancedStore, question: PersonQuestion) -> Outcome:
    """Ask one question in the default mode, for ten hits, and return what came back."""
    result = store.search(question.text, limit=10)
    names = [hit.name for hit in result.hits]
    return Outcome(
        question,
        rank=_rank_of_answer(names, question.answers),
        first_name=names[0] if names else "-",
        says_nothing_found=says_nothing_found(result),
    )


def says_nothing_found(result: Found) -> bool:
    """Return whether an answer has no hits, or lists them below a notice that nothing was found."""
    return result.only_nearest or not result.hits


def _rank_of_answer(names: Sequence[str], answers: frozenset[str]) -> int:
    """Return the rank of the first right name, from 1, or 0 if there is none."""
    for rank, name in enumerate(names, 1):
        if name in answers:
            return rank
    return 0


def print_table(outcomes: Sequence[Outcome]) -> None:
    """Print a row of counts for each wording, and what became of absent questions."""
    answerable = [outcome for outcome in outcomes if outcome.question.answers]
    absent = [outcome for outcome in outcomes if not outcome.question.answers]
    by_wording: dict[str, list[Outcome]] = {}
    for outcome in answerable:
        by_wording.setdefault(outcome.question.wording, []).append(outcome)

    print(f"| {' | '.join(_HEADINGS)} |")
    print("|---|---|---|---|---|")
    for wording, outcomes_of_wording in by_wording.items():
        _print_row(wording, outcomes_of_wording)
    _print_row("all answerable", answerable)

    confident = sum(not outcome.says_nothing_found for outcome in absent)
    print(
        f"\nOf {len(absent)} questions that the vault cannot answer, "
        f"{confident} got a confident list."
    )


def _print_row(label: str, outcomes: Sequence[Outcome]) -> None:
    first = sum(outcome.rank == 1 for outcome in outcomes)
    in_five = sum(1 <= outcome.rank <= 5 for outcome in outcomes)
    not_found = sum(outcome.says_nothing_found for outcome in outcomes)
    print(f"| {label} | {len(outcomes)} | {first} | {in_five} | {not_found} |")


def print_wrong(outcomes: Iterable[Outcome]) -> None:
    """Print the questions that went wrong, and what search answered."""
    for outcome in outcomes:
        if not outcome.is_wrong:
            continue
        question = outcome.question
        message = ' "nothing found"' if outcome.says_nothing_found else ""
        print(
            f"{question.wording}: {question.text} -> rank {outcome.rank}{message}; "
            f"first: {outcome.first_name}"
        )


if __name__ == "__main__":
    main()
