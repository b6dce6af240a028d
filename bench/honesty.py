"""How often search says that it found nothing, rightly and wrongly: `python bench/honesty.py [--locomo FILE.json.gz]
[--longmemeval FILE.json.xz] [--vault DIR --questions FILE.tsv] [--paraphrases FILE.json] [--precision FILE.tar.gz]
[--held-out]`.

Every question is asked of a vault, and once more without the notes that answer it. Two shares count:

- **refused**: of the questions whose first hit is right, how many are listed below a notice that nothing was found;
- **recognised**: of the questions that no note answers, how many are.

Small vaults of one's own come first, for they need no file: `bench/honesty_questions.toml`. Of LoCoMo the questions
that ask for a guess (category 3) are left out, and of those without their notes the ones that several notes answer.
`--embedder URL` judges by the vectors of an OpenAI-compatible service in place of ours.

`--held-out` asks only questions to which no constant of `simplemem/search/judgement.py` is fitted: one half of each set,
chosen by a hash of the question, and the sets that were written afterwards, `bench/unseen_notes.toml` (Spanish, French
and German) and, with `--vault` of Obsidian's English help, `bench/unseen_questions.tsv`. Fit constants to the other half.
"""

from __future__ import annotations

import argparse
import gzip
import json
import lzma
import shutil
import sys
import tarfile
import tempfile
import tomllib
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.person import read_questions
from bench.quality import Questions, by_hand, held_out, locomo, write
from bench.vaults import make_queries
from simplemem.search.rank import MODES
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

_OWN = Path(__file__).with_name("honesty_questions.toml")
_SIZES = {"en": (4, 20, 60), "es": (4, 20)}
_UNSEEN = Path(__file__).with_name("unseen_notes.toml")
_UNSEEN_SIZES = {"es": (25,), "fr": (8,), "de": (8,)}
_UNSEEN_HELP = Path(__file__).with_name("unseen_questions.tsv")
_PARAPHRASED = ("en", "es")
_PARAPHRASED_UNSEEN = ("de", "fr", "pt")
_KINDS = ("asked", "paraphrase", "named", "keywords")
_GUESS = 3  # the category of LoCoMo
_PRECISION_ABSENT = (
    "what's a good way to grade a 1909-S VDB penny without sending it to PCGS?",
    "Vue component architecture",
    "should we self-host the landing page or go with Fly.io?",
    "my blood pressure readings",
    "how do I get a visa for Vietnam?",
    "who won the league?",
)
_HELP_ABSENT = (
    "my blood pressure readings", "when is Anna's birthday", "¿Quién ganó la liga?", "queso", "Who won the world cup?",
    "what is the recipe for pancakes?", "How tall is the Eiffel tower?", "Which vaccines did the dog get?",
    "my salary negotiation", "How do I change the oil of a car?", "Who painted the Mona Lisa?",
    "which bus goes to the airport", "side effects of ibuprofen", "how to knit a scarf", "flight to Tokyo",
    "What did the lawyer say about the divorce?",
)  # fmt: skip


@dataclass
class QuestionSet:
    """What is asked of one vault: questions with the notes that answer each, and questions that none answers."""

    name: str
    vault: Path
    answered: Questions
    absent: Sequence[str] = ()
    without_notes: bool = True  # whether each is asked again without the notes that answer it
    several_answer: bool = True  # whether this is done where several notes answer


@dataclass
class Tally:
    """The answers of one set: whether each was listed below a notice that nothing was found."""

    answered: list[bool] = field(default_factory=list)
    right_first: list[bool] = field(default_factory=list)
    absent: list[bool] = field(default_factory=list)


def note_sets(
    file: Path, sizes_of: Mapping[str, Sequence[int]], label: str, room: Path
) -> Iterator[QuestionSet]:
    """Small vaults, as people have them in their first weeks: the first notes of each language."""
    data = tomllib.loads(file.read_text(encoding="utf-8"))
    unknown = {each["language"]: each["questions"] for each in data["absent"]}
    for language, sizes in sizes_of.items():
        notes = [note for note in data["note"] if note["language"] == language]
        for size in sizes:
            vault = room / f"{file.stem}-{language}-{size}"
            for note in notes[:size]:
                write(vault / f"{note['name']}.md", f"{note['text']}\n")
            name = f"{label}{size} notes, {language}"
            for kind in _KINDS:
                asked = [
                    (note[kind], frozenset({note["name"]})) for note in notes[:size] if kind in note
                ]
                yield QuestionSet(f"{name}, {kind}", vault, asked)
            yield QuestionSet(f"{name}, unknown", vault, [], unknown[language])


def paraphrase_sets(file: Path, languages: Sequence[str], room: Path) -> Iterator[QuestionSet]:
    """One fact per note, asked in other words."""
    facts = json.loads(file.read_text(encoding="utf-8"))
    for language in languages:
        vault = room / f"paraphrases-{language}"
        for number, fact in enumerate(facts):
            write(vault / f"{number}.md", f"{fact['facts'][language]}\n")
        asked = [
            (fact["questions"][language], frozenset({str(number)}))
            for number, fact in enumerate(facts)
        ]
        yield QuestionSet(f"paraphrases, {language}", vault, asked)


def precision_sets(file: Path, room: Path) -> Iterator[QuestionSet]:
    """Beliefs of one user, one per note."""
    with tarfile.open(file) as archive:
        beliefs, cases = (
            json.loads(archive.extractfile(f"precision_membench/{name}").read())  # type: ignore[union-attr]
            for name in ("beliefs.seed.json", "retrieval.cases.json")
        )
    for belief in beliefs:
        if belief["user_id"] == "test-user" and not belief.get("superseded_by"):
            header = f"---\naliases: {json.dumps(belief['aliases'])}\n---\n"
            text = f"# {belief['canonical_name']}\n\n{belief['content']}\n\n{belief['why_it_matters']}\n"
            write(room / "precision" / f"{belief['_id']}.md", header + text)
    asked = [
        (case["query"], frozenset(wanted))
        for case in cases
        if case["query"].strip()
        and (wanted := (case["expect"].get("relevantBeliefs") or {}).get("shouldOnlyInclude"))
    ]
    yield QuestionSet(
        "PrecisionMemBench", room / "precision", asked, _PRECISION_ABSENT, without_notes=False
    )


def help_sets(given: argparse.Namespace, room: Path) -> Iterator[QuestionSet]:
    """A vault of one's own: questions by hand, its descriptions and first sentences, and questions of other things."""
    if given.questions:
        yield QuestionSet(
            "help, by hand", room / "hand", by_hand(given.vault, given.questions, room / "hand")
        )
        yield QuestionSet("help, unknown", room / "hand", [], _HELP_ABSENT)
    for what in ("description", "sentence"):
        asked = held_out(given.vault, what, room / what)
        yield QuestionSet(f"help, {what}", room / what, asked, without_notes=False)


def locomo_set(file: Path, room: Path) -> QuestionSet:
    raw = file.read_bytes()
    data = json.loads(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)
    guesses = {query["query"] for query in data["queries"] if query.get("category") == _GUESS}
    asked = [each for each in locomo(file, room / "locomo") if each[0] not in guesses]
    return QuestionSet("LoCoMo", room / "locomo", asked, several_answer=False)


def longmemeval_sets(file: Path, room: Path) -> Iterator[QuestionSet]:
    """Each question has a vault of its own, of some 48 sessions."""
    data = json.loads(lzma.decompress(file.read_bytes()))
    for question in data["questions"]:
        vault = room / f"lme-{question['id']}"
        for name in question["haystack"]:
            turns = data["sessions"][name]["turns"]
            body = "\n\n".join(f"**{role.title()}:** {text}" for role, text in turns)
            write(vault / f"{name}.md", f"{body}\n")
        if question["id"].endswith("_abs"):
            yield QuestionSet("LongMemEval", vault, [], [question["question"]])
        else:
            yield QuestionSet(
                "LongMemEval", vault, [(question["question"], frozenset(question["evidence"]))]
            )


def fitted_sets(given: argparse.Namespace, room: Path) -> Iterator[QuestionSet]:
    """The sets to one half of which the constants are fitted."""
    yield from note_sets(_OWN, _SIZES, "", room)
    if given.paraphrases:
        yield from paraphrase_sets(given.paraphrases, _PARAPHRASED, room)
    if given.precision:
        yield from precision_sets(given.precision, room)
    if given.vault:
        yield from help_sets(given, room)
    if given.longmemeval:
        yield from longmemeval_sets(given.longmemeval, room)
    if given.locomo:
        yield locomo_set(given.locomo, room)


def unseen_sets(given: argparse.Namespace, room: Path) -> Iterator[QuestionSet]:
    """The sets to which no constant is fitted."""
    yield from note_sets(_UNSEEN, _UNSEEN_SIZES, "unseen: ", room)
    if given.paraphrases:
        yield from paraphrase_sets(given.paraphrases, _PARAPHRASED_UNSEEN, room)
    if given.vault:
        vault = room / "unseen-help"
        shutil.copytree(given.vault, vault, ignore=shutil.ignore_patterns(".simplemem"))
        questions = read_questions(_UNSEEN_HELP, given.vault)
        for manner in dict.fromkeys(question.manner for question in questions):
            those = [question for question in questions if question.manner == manner]
            answered = [(question.text, question.answers) for question in those if question.answers]
            absent = [question.text for question in those if not question.answers]
            yield QuestionSet(
                f"unseen: help, {manner}", vault, answered, absent, without_notes=False
            )


def every_set(given: argparse.Namespace, room: Path) -> Iterator[QuestionSet]:
    if not given.held_out:
        yield from fitted_sets(given, room)
        return

    for questions in fitted_sets(given, room):
        answered = [each for each in questions.answered if is_held_out(each[0])]
        yield replace(
            questions, answered=answered, absent=list(filter(is_held_out, questions.absent))
        )
    yield from unseen_sets(given, room)


def is_held_out(question: str) -> bool:
    """Return whether a question is of the half to which no constant is fitted."""
    return zlib.crc32(question.encode()) % 2 == 1


class Asking:
    """One set, asked. Subclasses look at more of an answer."""

    def __init__(self, store: EnhancedStore, mode: str, tally: Tally) -> None:
        self.store = store
        self.mode = mode
        self.tally = tally

    def answerable(self, asked: str, gold: frozenset[str]) -> None:
        found = self.store.search(asked, mode=self.mode)
        is_refused = found.only_nearest or not found.hits
        self.tally.answered.append(is_refused)
        if found.hits and found.hits[0].name in gold:
            self.tally.right_first.append(is_refused)

    def absent(self, asked: str) -> None:
        found = self.store.search(asked, mode=self.mode)
        self.tally.absent.append(found.only_nearest or not found.hits)

    def ask(self, questions: QuestionSet, every: int) -> None:
        answered = questions.answered[::every]
        for asked, gold in answered:
            self.answerable(asked, gold)
        for asked in questions.absent:
            self.absent(asked)
        if questions.without_notes:
            self._without_notes(
                [each for each in answered if len(each[1]) == 1 or questions.several_answer]
            )

    def _without_notes(self, answered: Iterable[tuple[str, frozenset[str]]]) -> None:
        by_notes: dict[frozenset[str], list[str]] = {}
        for asked, gold in answered:
            by_notes.setdefault(gold, []).append(asked)
        for gold, questions in by_notes.items():
            texts = {
                file: file.read_bytes()
                for name in gold
                if (file := self.store.root / f"{name}.md").exists()
            }
            for file in texts:
                file.unlink()
            self.store.sync()
            for asked in questions:
                self.absent(asked)
            for file, text in texts.items():
                file.write_bytes(text)
            self.store.sync()


def settings_of(given: argparse.Namespace) -> Settings:
    if not given.embedder:
        return Settings()
    embed = {"provider": "openai", "url": given.embedder, "model": "bench", "api_key": "none"}
    return Settings.model_validate({"embed": embed})


def share(answers: Sequence[bool]) -> str:
    return f"{sum(answers)} of {len(answers)}" if answers else ""


def main(asking: type[Asking] = Asking) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("locomo", "longmemeval", "vault", "questions", "paraphrases", "precision"):
        parser.add_argument(f"--{name}", type=Path)
    parser.add_argument("--embedder", default="")
    parser.add_argument(
        "--every", type=int, default=1, help="ask only every Nth question that has an answer"
    )
    parser.add_argument("--mode", choices=MODES, action="append")
    parser.add_argument(
        "--held-out", action="store_true", help="ask only questions that no constant is fitted to"
    )
    given = parser.parse_args()

    print(
        "| | mode | answerable, refused | right first hits, refused | absent, recognised |\n|---|---|---|---|---|"
    )
    with tempfile.TemporaryDirectory() as folder:
        tallies: dict[tuple[str, str], Tally] = {}
        for questions in every_set(given, Path(folder)):
            with EnhancedStore(questions.vault, settings_of(given)) as store:
                store.sync()
                for mode in given.mode or MODES:
                    tally = tallies.setdefault((questions.name, mode), Tally())
                    asking(store, mode, tally).ask(questions, given.every)
        for (name, mode), tally in tallies.items():
            print_row(name, mode, tally)
        for mode in given.mode or MODES:
            print_row(
                "all", mode, together(tally for (_, each), tally in tallies.items() if each == mode)
            )

        made_up = make_queries(100)
        nothing = sum(store_says_nothing(Path(folder) / "honesty_questions-en-60", made_up))
        print(f"\nOf {len(made_up)} questions of made-up words {nothing} are recognised.")


def store_says_nothing(vault: Path, questions: Sequence[str]) -> Iterator[bool]:
    with EnhancedStore(vault, Settings()) as store:
        store.sync()
        for asked in questions:
            found = store.search(asked)
            yield found.only_nearest or not found.hits


def together(tallies: Iterable[Tally]) -> Tally:
    whole = Tally()
    for tally in tallies:
        whole.answered += tally.answered
        whole.right_first += tally.right_first
        whole.absent += tally.absent
    return whole


def print_row(name: str, mode: str, tally: Tally) -> None:
    if not (tally.answered or tally.absent):
        return

    figures: list[Any] = [share(tally.answered), share(tally.right_first), share(tally.absent)]
    print(f"| {name} | {mode} | {' | '.join(figures)} |", flush=True)


if __name__ == "__main__":
    main()
