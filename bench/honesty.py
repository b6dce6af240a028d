"""How often search says that it found nothing, rightly and wrongly.

    python bench/honesty.py [--locomo FILE.json.gz] [--longmemeval FILE.json.xz]
                            [--vault DIR --questions FILE.tsv]
                            [--paraphrases FILE.json] [--precision FILE.tar.gz] [--held-out]

Every question is asked of a vault, and once more without the notes that answer it. Two shares
count:

- **refused**: of the questions whose first hit is right, how many are listed below a notice that
  nothing was found
- **recognised**: of the questions that no note answers, how many are listed below that notice

The small vaults of `bench/honesty_questions.toml` come first, because they need no other file.
LoCoMo's questions that ask for a guess (category 3) are left out. Its questions that several notes
answer are not asked without their notes. `--embedder URL` uses the vectors of an OpenAI-compatible
service instead of the bundled ones.

`--curve` prints another table: if the minimum of the confidence were higher or lower, which share
of the answerable questions would be refused, and which share of those without an answer recognised.
A question is answerable if a right note is among the first five hits. Each kind of set weighs the
same. The headings count only questions that the minimum decides: not those whose best hit has no
word of them.

`--held-out` asks only questions to which no constant of `simplemem/search/judgement.py` is fitted:
one half of each set, chosen by a hash of the question, and the sets that were written later,
`bench/unseen_notes.toml` (Spanish, French and German) and, with `--vault` of Obsidian's English
help, `bench/unseen_questions.tsv`. Fit constants to the other half.
"""

from __future__ import annotations

import argparse
import gzip
import json
import lzma
import math
import shutil
import sys
import tarfile
import tempfile
import tomllib
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import Any, Final
from unittest import mock

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.languages import FACTS, read_facts, texts_of
from bench.person import PersonQuestion, says_nothing_found
from bench.person import read_questions as read_person_questions
from bench.quality import (
    Questions,
    description,
    first_sentence,
    read_questions,
    write,
    write_held_out,
    write_locomo,
)
from bench.vaults import make_queries
from simplemem.models import Found
from simplemem.note.note import Note
from simplemem.search import judgement
from simplemem.search.judgement import Evidence, Weights
from simplemem.search.rank import MODES
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

_OWN_NOTES: Final = Path(__file__).with_name("honesty_questions.toml")
_OWN_SIZES: Final = {"en": (4, 20, 60), "es": (4, 20)}
_UNSEEN_NOTES: Final = Path(__file__).with_name("unseen_notes.toml")
_UNSEEN_SIZES: Final = {"es": (25,), "fr": (8,), "de": (8,)}
_UNSEEN_HELP: Final = Path(__file__).with_name("unseen_questions.tsv")
_PARAPHRASED: Final = ("en", "es")
_PARAPHRASED_UNSEEN: Final = ("de", "fr", "pt")
_FACTS_QUESTIONS: Final = Path(__file__).with_name("facts_questions.toml")
_EXAMPLE_VAULT: Final = Path(__file__).parents[1] / "vault-example"
_KINDS: Final = ("asked", "paraphrase", "named", "keywords")
_GUESS: Final = 3  # the category of LoCoMo
_RIGHT_WITHIN: Final = 5  # hits
_CURVE: Final = (0.01, 0.02, 0.03, 0.05, 0.1, 0.2)  # shares of the answerable questions

_PRECISION_ABSENT: Final = (
    "what's a good way to grade a 1909-S VDB penny without sending it to PCGS?",
    "Vue component architecture",
    "should we self-host the landing page or go with Fly.io?",
    "my blood pressure readings",
    "how do I get a visa for Vietnam?",
    "who won the league?",
)
_HELP_ABSENT: Final = (
    "my blood pressure readings",
    "when is Anna's birthday",
    "¿Quién ganó la liga?",
    "queso",
    "Who won the world cup?",
    "what is the recipe for pancakes?",
    "How tall is the Eiffel tower?",
    "Which vaccines did the dog get?",
    "my salary negotiation",
    "How do I change the oil of a car?",
    "Who painted the Mona Lisa?",
    "which bus goes to the airport",
    "side effects of ibuprofen",
    "how to knit a scarf",
    "flight to Tokyo",
    "What did the lawyer say about the divorce?",
)


@dataclass
class QuestionSet:
    """Questions about one vault, with the notes that answer each, and questions without any."""

    name: str
    vault: Path
    answered: Questions
    absent: Sequence[str] = ()
    ask_without_notes: bool = True  # ask each again without the notes that answer it
    several_may_answer: bool = True  # also where several notes answer


@dataclass
class Tally:
    """For each answer of a set, whether it was listed below a notice that nothing was found."""

    answered: list[bool] = field(default_factory=list)
    right_first: list[bool] = field(default_factory=list)
    absent: list[bool] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Add the answers of another tally."""
        self.answered += other.answered
        self.right_first += other.right_first
        self.absent += other.absent


def main() -> None:
    """Ask each set in each mode, and print a row for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_set_options(parser)
    parser.add_argument("--embedder", default="")
    parser.add_argument(
        "--every", type=int, default=1, help="ask only every Nth question that has an answer"
    )
    parser.add_argument("--mode", choices=MODES, action="append")
    parser.add_argument(
        "--held-out", action="store_true", help="ask only questions that no constant is fitted to"
    )
    parser.add_argument(
        "--curve", action="store_true", help="print what other minimums would refuse and recognise"
    )
    options = parser.parse_args()
    modes = options.mode or MODES
    if options.curve:
        print_curves(options, modes)
        return

    print("| | mode | answerable, refused | right first hits, refused | absent, recognised |")
    print("|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        tallies: dict[tuple[str, str], Tally] = {}
        for questions in all_sets(options, Path(folder)):
            with EnhancedStore(questions.vault, settings_of(options)) as store:
                store.sync()
                for mode in modes:
                    tally = tallies.setdefault((questions.name, mode), Tally())
                    Interview(store, mode, tally).ask(questions, options.every)
        print_table(tallies, modes)

        invented = make_queries(100)
        refused = count_refused(Path(folder) / "honesty_questions-en-60", invented)
        print(f"\nOf {len(invented)} questions of made-up words {refused} are recognised.")


def add_set_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that name the files of sets."""
    for name in ("locomo", "longmemeval", "vault", "questions", "paraphrases", "precision"):
        parser.add_argument(f"--{name}", type=Path)


def settings_of(options: argparse.Namespace) -> Settings:
    """Return the settings: the bundled vectors, or those of the service of `--embedder`."""
    if not options.embedder:
        return Settings()
    embed = {"provider": "openai", "url": options.embedder, "model": "bench", "api_key": "none"}
    return Settings.model_validate({"embed": embed})


def print_table(tallies: Mapping[tuple[str, str], Tally], modes: Sequence[str]) -> None:
    """Print a row for each set and mode, and the sum of each mode."""
    for (name, mode), tally in tallies.items():
        print_row(name, mode, tally)
    for mode in modes:
        total = Tally()
        for (_, tally_mode), tally in tallies.items():
            if tally_mode == mode:
                total.add(tally)
        print_row("all", mode, total)


def print_row(name: str, mode: str, tally: Tally) -> None:
    """Print the shares of a tally, unless it is empty."""
    if not tally.answered and not tally.absent:
        return
    shares = [share(tally.answered), share(tally.right_first), share(tally.absent)]
    print(f"| {name} | {mode} | {' | '.join(shares)} |", flush=True)


def share(answers: Sequence[bool]) -> str:
    """Return how many of the answers are true, as text. Empty if there is no answer."""
    if not answers:
        return ""
    return f"{sum(answers)} of {len(answers)}"


# Asking


class Interview:
    """Asks the questions of one set in one mode. Guards its tally."""

    def __init__(self, store: EnhancedStore, mode: str, tally: Tally) -> None:
        self.store = store
        self.mode = mode
        self._tally = tally

    def ask(self, questions: QuestionSet, step: int) -> None:
        """Ask each `step`-th answered question and all absent ones; then those without notes."""
        answered = questions.answered[::step]
        for question, right in answered:
            self.ask_answered(question, right)
        for question in questions.absent:
            self.ask_absent(question)
        if questions.ask_without_notes:
            several = questions.several_may_answer
            self._ask_without_notes(
                (question, right) for question, right in answered if len(right) == 1 or several
            )

    def ask_answered(self, question: str, right: frozenset[str]) -> None:
        """Ask a question that the notes called `right` answer, and count the answer."""
        found = self.store.search(question, mode=self.mode)
        is_refused = says_nothing_found(found)
        self._tally.answered.append(is_refused)
        if found.hits and found.hits[0].name in right:
            self._tally.right_first.append(is_refused)

    def ask_absent(self, question: str) -> None:
        """Ask a question that no note answers, and count the answer."""
        found = self.store.search(question, mode=self.mode)
        self._tally.absent.append(says_nothing_found(found))

    def _ask_without_notes(self, answered: Iterable[tuple[str, frozenset[str]]]) -> None:
        """Ask each question while the notes that answer it are deleted."""
        questions_by_notes: dict[frozenset[str], list[str]] = {}
        for question, right in answered:
            questions_by_notes.setdefault(right, []).append(question)

        for right, questions in questions_by_notes.items():
            files = [self.store.root / f"{name}.md" for name in right]
            texts = {file: file.read_bytes() for file in files if file.exists()}
            for file in texts:
                file.unlink()
            self.store.sync()
            for question in questions:
                self.ask_absent(question)
            for file, text in texts.items():
                file.write_bytes(text)
            self.store.sync()


@dataclass(frozen=True)
class Sample:
    """The evidence of the hits for one question, and whether they answer it.

    `is_certain` is whether they count as an answer whatever the evidence, because a name or all
    words match. Without `evidence`, a rule without weights decided.
    """

    family: str
    is_answered: bool
    is_certain: bool
    evidence: Evidence | None = None
    weights: Sequence[Weights] = ()

    @property
    def confidence(self) -> float:
        """The confidence that the hits answer; infinite if no minimum matters."""
        if self.is_certain:
            return math.inf
        if self.evidence is None:
            return -math.inf
        return judgement.confidence(self.evidence, self.weights)


class Recorder(Interview):
    """Asks the questions of one set, and adds the evidence of each answer to `samples`.

    Answerable questions whose answer is not among the hits are left out.
    """

    def __init__(self, store: EnhancedStore, mode: str, family: str, samples: list[Sample]) -> None:
        super().__init__(store, mode, Tally())
        self._family = family
        self._samples = samples
        self._last: tuple[Evidence | None, Sequence[Weights]] = (None, ())

    def ask_answered(self, question: str, right: frozenset[str]) -> None:
        """Record the evidence if a right note is among the first hits."""
        found = self._search(question)
        if right.intersection(hit.name for hit in found.hits):
            self._add(found, is_answered=True)

    def ask_absent(self, question: str) -> None:
        """Record the evidence of hits that do not answer."""
        found = self._search(question)
        self._add(found, is_answered=False)

    def _search(self, question: str) -> Found:
        """Search with a confidence below 0, so that all of the evidence is measured."""
        self._last = (None, ())
        with mock.patch.object(judgement, "confidence", self._note):
            return self.store.search(question, mode=self.mode, limit=_RIGHT_WITHIN)

    def _note(self, evidence: Evidence, weights: Sequence[Weights]) -> float:
        self._last = (evidence, weights)
        return -1.0

    def _add(self, found: Found, *, is_answered: bool) -> None:
        is_certain = bool(found.hits) and not found.only_nearest
        sample = Sample(self._family, is_answered, is_certain, *self._last)
        self._samples.append(sample)


def family_of(name: str) -> str:
    """Return the kind of a set: its name without numbers and without what follows a comma."""
    words = name.split(",")[0].split()
    return " ".join(word for word in words if not word.isdigit())


def print_curves(options: argparse.Namespace, modes: Sequence[str]) -> None:
    """Record the evidence of all sets, and print a table for each mode."""
    samples: dict[str, list[Sample]] = {mode: [] for mode in modes}
    with tempfile.TemporaryDirectory() as folder:
        for questions in all_sets(options, Path(folder)):
            with EnhancedStore(questions.vault, settings_of(options)) as store:
                store.sync()
                family = family_of(questions.name)
                for mode in modes:
                    Recorder(store, mode, family, samples[mode]).ask(questions, options.every)

    for mode in modes:
        headings = " | ".join(f"{share:.0%} of all" for share in _CURVE)
        print(f"\n| {mode}: refused / recognised | {headings} |\n|---|{'---|' * len(_CURVE)}")
        print_curve(samples[mode])


def print_curve(samples: Sequence[Sample]) -> None:
    """Print a row for each family, and one for all: what is refused and recognised."""
    families = list(dict.fromkeys(sample.family for sample in samples))
    by_family = {
        family: [sample for sample in samples if sample.family == family] for family in families
    }
    minimums = [minimum_that_refuses(samples, share) for share in _CURVE]
    columns: list[list[tuple[float, float]]] = [[] for _ in minimums]
    for family, members in by_family.items():
        cells = []
        for minimum, column in zip(minimums, columns, strict=True):
            refused = share_below(members, minimum, is_answered=True)
            recognised = share_below(members, minimum, is_answered=False)
            column.append((refused, recognised))
            cells.append(f"{percent(refused)} / {percent(recognised)}")
        print(f"| {family} | {' | '.join(cells)} |")

    means = []
    for column in columns:
        refused, recognised = (mean_known(shares) for shares in zip(*column, strict=True))
        means.append(f"{percent(refused)} / {percent(recognised)}")
    print(f"| mean | {' | '.join(means)} |")


def minimum_that_refuses(samples: Sequence[Sample], share: float) -> float:
    """Return the minimum below which the share of the answerable questions is.

    Each family counts the same. Questions that a rule without weights decides do not count.
    """
    answered = [sample for sample in samples if sample.is_answered and sample.evidence is not None]
    counts = Counter(sample.family for sample in answered)
    rest = share * len(counts)
    for sample in sorted(answered, key=lambda sample: sample.confidence):
        rest -= 1 / counts[sample.family]
        if rest < 0:
            return sample.confidence
    return math.inf


def share_below(samples: Sequence[Sample], minimum: float, *, is_answered: bool) -> float:
    """Return the share of the samples with a lower confidence, or NaN if there is no sample."""
    chosen = [
        sample.confidence < minimum for sample in samples if sample.is_answered == is_answered
    ]
    return sum(chosen) / len(chosen) if chosen else math.nan


def mean_known(values: Iterable[float]) -> float:
    """Return the mean of the values that are numbers."""
    return fmean(value for value in values if not math.isnan(value))


def percent(share: float) -> str:
    """Return a share in percent, "-" for NaN."""
    return "-" if math.isnan(share) else f"{share:.0%}"


def count_refused(vault: Path, questions: Sequence[str]) -> int:
    """Return how many questions are answered with the notice that nothing was found."""
    refused = 0
    with EnhancedStore(vault, Settings()) as store:
        store.sync()
        for question in questions:
            found = store.search(question)
            if says_nothing_found(found):
                refused += 1
    return refused


# The sets


def all_sets(options: argparse.Namespace, folder: Path) -> Iterator[QuestionSet]:
    """Make the vault of each set below `folder` and yield the set, half of it if held out."""
    if not options.held_out:
        yield from fitted_sets(options, folder)
        return

    for questions in fitted_sets(options, folder):
        answered = [
            (question, right) for question, right in questions.answered if is_held_out(question)
        ]
        absent = [question for question in questions.absent if is_held_out(question)]
        yield replace(questions, answered=answered, absent=absent)
    yield from unseen_sets(options, folder)


def is_held_out(question: str) -> bool:
    """Tell whether a question is of the half to which no constant is fitted."""
    return zlib.crc32(question.encode()) % 2 == 1


def fitted_sets(options: argparse.Namespace, folder: Path) -> Iterator[QuestionSet]:
    """Yield the sets to one half of which the constants are fitted."""
    yield from note_sets(_OWN_NOTES, _OWN_SIZES, "", folder)
    yield from facts_sets(folder)
    if options.paraphrases:
        yield from paraphrase_sets(options.paraphrases, _PARAPHRASED, folder)
    if options.precision:
        yield precision_set(options.precision, folder / "precision")
    if options.vault:
        yield from help_sets(options, folder)
    if options.longmemeval:
        yield from longmemeval_sets(options.longmemeval, folder)
    if options.locomo:
        yield locomo_set(options.locomo, folder / "locomo")


def unseen_sets(options: argparse.Namespace, folder: Path) -> Iterator[QuestionSet]:
    """Yield the sets to which no constant is fitted."""
    yield from note_sets(_UNSEEN_NOTES, _UNSEEN_SIZES, "unseen: ", folder)
    if options.paraphrases:
        yield from paraphrase_sets(options.paraphrases, _PARAPHRASED_UNSEEN, folder)
    if options.vault:
        yield from unseen_help_sets(options.vault, folder / "unseen-help")


def note_sets(
    file: Path, sizes: Mapping[str, Sequence[int]], label: str, folder: Path
) -> Iterator[QuestionSet]:
    """Yield sets about small vaults, as people have at first: the first notes of each language."""
    data = tomllib.loads(file.read_text(encoding="utf-8"))
    absent = {entry["language"]: entry["questions"] for entry in data["absent"]}
    for language, language_sizes in sizes.items():
        all_notes = [note for note in data["note"] if note["language"] == language]
        for size in language_sizes:
            notes = all_notes[:size]
            vault = folder / f"{file.stem}-{language}-{size}"
            for note in notes:
                write(vault / f"{note['name']}.md", f"{note['text']}\n")

            name = f"{label}{size} notes, {language}"
            for kind in _KINDS:
                questions = [
                    (note[kind], frozenset({note["name"]})) for note in notes if kind in note
                ]
                yield QuestionSet(f"{name}, {kind}", vault, questions)
            yield QuestionSet(f"{name}, unknown", vault, [], absent[language])


def facts_sets(folder: Path) -> Iterator[QuestionSet]:
    """Yield sets about the facts of `bench/languages.json`, one note each, in five languages.

    They are asked in words of the facts and in other words. The questions without an answer are
    also asked of the example vault.
    """
    facts = read_facts(FACTS)
    data = tomllib.loads(_FACTS_QUESTIONS.read_text(encoding="utf-8"))
    example = folder / "example"
    shutil.copytree(_EXAMPLE_VAULT, example, ignore=shutil.ignore_patterns(".simplemem"))

    for language, absent in data["absent"].items():
        vault = folder / f"facts-{language}"
        for number, fact in enumerate(texts_of(facts, "facts", language)):
            write(vault / f"fact {number}.md", f"{fact}\n")

        asked = {
            question: frozenset({f"fact {number}"})
            for number, question in data["asked"][language].items()
        }
        other_words = {
            question: frozenset({f"fact {number}"})
            for number, question in enumerate(texts_of(facts, "questions", language))
        }
        yield QuestionSet(f"facts, {language}, asked", vault, list(asked.items()))
        yield QuestionSet(f"facts, {language}, other words", vault, list(other_words.items()))
        yield QuestionSet(f"facts, {language}, unknown", vault, [], absent)
        yield QuestionSet(f"example vault, {language}, unknown", example, [], absent)


def paraphrase_sets(file: Path, languages: Sequence[str], folder: Path) -> Iterator[QuestionSet]:
    """Yield a set for each language: one fact per note, asked in other words."""
    facts = json.loads(file.read_text(encoding="utf-8"))
    for language in languages:
        vault = folder / f"paraphrases-{language}"
        questions: Questions = []
        for number, fact in enumerate(facts):
            write(vault / f"{number}.md", f"{fact['facts'][language]}\n")
            questions.append((fact["questions"][language], frozenset({str(number)})))
        yield QuestionSet(f"paraphrases, {language}", vault, questions)


def precision_set(file: Path, vault: Path) -> QuestionSet:
    """Write PrecisionMemBench's beliefs of one user, one per note, and return the set."""
    with tarfile.open(file) as archive:
        beliefs = _read_member(archive, "precision_membench/beliefs.seed.json")
        cases = _read_member(archive, "precision_membench/retrieval.cases.json")

    for belief in beliefs:
        if belief["user_id"] == "test-user" and not belief.get("superseded_by"):
            header = f"---\naliases: {json.dumps(belief['aliases'])}\n---\n"
            parts = [f"# {belief['canonical_name']}", belief["content"], belief["why_it_matters"]]
            write(vault / f"{belief['_id']}.md", header + "\n\n".join(parts) + "\n")

    questions: Questions = []
    for case in cases:
        expected = case["expect"].get("relevantBeliefs") or {}
        right = expected.get("shouldOnlyInclude")
        if case["query"].strip() and right:
            questions.append((case["query"], frozenset(right)))
    return QuestionSet(
        "PrecisionMemBench", vault, questions, _PRECISION_ABSENT, ask_without_notes=False
    )


def _read_member(archive: tarfile.TarFile, name: str) -> Any:
    file = archive.extractfile(name)
    assert file is not None
    return json.loads(file.read())


def help_sets(options: argparse.Namespace, folder: Path) -> Iterator[QuestionSet]:
    """Yield sets about a vault of your own: by hand, unknown, descriptions, first sentences."""
    if options.questions:
        vault = folder / "hand"
        questions = read_questions(options.vault, options.questions, vault)
        yield QuestionSet("help, by hand", vault, questions)
        yield QuestionSet("help, unknown", vault, [], _HELP_ABSENT)

    kinds: dict[str, Callable[[Note], str]] = {
        "description": description,
        "sentence": first_sentence,
    }
    for kind, question_of in kinds.items():
        vault = folder / kind
        questions = write_held_out(options.vault, question_of, vault)
        yield QuestionSet(f"help, {kind}", vault, questions, ask_without_notes=False)


def unseen_help_sets(source: Path, vault: Path) -> Iterator[QuestionSet]:
    """Copy Obsidian's help to `vault`, and yield a set for each wording of its questions."""
    shutil.copytree(source, vault, ignore=shutil.ignore_patterns(".simplemem"))
    by_wording: dict[str, list[PersonQuestion]] = {}
    for question in read_person_questions(_UNSEEN_HELP, source):
        by_wording.setdefault(question.wording, []).append(question)
    for wording, questions in by_wording.items():
        answered = [(question.text, question.answers) for question in questions if question.answers]
        absent = [question.text for question in questions if not question.answers]
        name = f"unseen: help, {wording}"
        yield QuestionSet(name, vault, answered, absent, ask_without_notes=False)


def locomo_set(file: Path, vault: Path) -> QuestionSet:
    """Write LoCoMo's sessions, and return its questions without those that ask for a guess."""
    raw = file.read_bytes()
    data = json.loads(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)
    guesses = {query["query"] for query in data["queries"] if query.get("category") == _GUESS}
    questions = [
        (question, right)
        for question, right in write_locomo(file, vault)
        if question not in guesses
    ]
    return QuestionSet("LoCoMo", vault, questions, several_may_answer=False)


def longmemeval_sets(file: Path, folder: Path) -> Iterator[QuestionSet]:
    """Yield a set for each question of LongMemEval, each about a vault of some 48 sessions."""
    data = json.loads(lzma.decompress(file.read_bytes()))
    for question in data["questions"]:
        vault = folder / f"lme-{question['id']}"
        for name in question["haystack"]:
            turns = data["sessions"][name]["turns"]
            body = "\n\n".join(f"**{role.title()}:** {text}" for role, text in turns)
            write(vault / f"{name}.md", f"{body}\n")

        if question["id"].endswith("_abs"):
            yield QuestionSet("LongMemEval", vault, [], [question["question"]])
        else:
            right = frozenset(question["evidence"])
            yield QuestionSet("LongMemEval", vault, [(question["question"], right)])


if __name__ == "__main__":
    main()
