"""Does a context pack contain the answer?

    python bench/context.py [--help-vault DIR] [--locomo FILE.json.gz] [--lme FILE.json.xz]
                            [--budget N] [--missing]

Asks the questions of `bench/context_questions.tsv`: those about the example vault, and with
`--help-vault` those about Obsidian's English help. Prints how often a pack within the budget (1,500
tokens by default) contains the answer, how many tokens the packs have, and the CPU time of one.
`--missing` also lists the questions whose answer is missing.

`--locomo` asks half of LoCoMo, which has no answers in words: printed is the mean share of the
right sessions that the packs quote. `--lme` asks a part of LongMemEval-S, one vault per question:
those questions count whose answer stands word for word in a right session.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.quality import write_locomo
from bench.retrieval.data import write_notes
from bench.retrieval.loaders import longmemeval_notes, read_json
from simplemem.models import Pack
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

EXAMPLE: Final = Path(__file__).parent.parent / "vault-example"
QUESTIONS: Final = Path(__file__).with_name("context_questions.tsv")

_ALTERNATIVES: Final = " || "
_MARKS: Final = re.compile(r"[*_`\\]")
_CELL_EDGE: Final = re.compile(r" *\| *")


@dataclass(slots=True)
class Figures:
    """What the packs of one set of questions contain, and what they cost.

    Each list has one value per question. Callers of `ask` add the score themselves: 1 for an
    answer, 0 for none, or the share of the right sessions.
    """

    scores: list[float] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    passages: list[int] = field(default_factory=list)
    notes: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def ask(self, store: EnhancedStore, question: str, budget: int) -> Pack:
        """Return the pack of a question, and add its size and its CPU time to the figures."""
        start = time.process_time()
        pack = store.context(question, budget_tokens=budget)
        self.seconds.append(time.process_time() - start)
        self.tokens.append(pack.tokens)
        self.passages.append(len(pack.items))
        self.notes.append(len({item["name"] for item in pack.items}))
        return pack

    def row(self, title: str) -> str:
        """Return a row of the printed table. At least one question must have been asked."""
        count = len(self.scores)
        cells = [
            title,
            f"{sum(self.scores):.0f} of {count} ({sum(self.scores) / count:.1%})",
            f"{sum(self.tokens) / count:,.0f}",
            f"{sum(self.passages) / count:.1f}",
            f"{sum(self.notes) / count:.1f}",
            f"{sum(self.seconds) / count * 1000:.1f} ms",
        ]
        return f"| {' | '.join(cells)} |"


def main() -> None:
    """Print a row for each set of questions."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--help-vault", type=Path)
    parser.add_argument("--locomo", type=Path)
    parser.add_argument("--lme", type=Path)
    parser.add_argument("--budget", type=int, default=1500)
    parser.add_argument("--missing", action="store_true")
    options = parser.parse_args()

    print("| questions | answers in packs | tokens | passages | notes | CPU of one |")
    print("|---|---|---|---|---|---|")
    missing: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for title, vault in (("help", options.help_vault), ("example", EXAMPLE)):
            if vault:
                figures = measure_by_hand(vault, Path(folder) / title, title, options, missing)
                print(figures.row(f"by hand, {title}"), flush=True)
        if options.locomo:
            figures = measure_locomo(options.locomo, Path(folder) / "locomo", options.budget)
            print(figures.row("LoCoMo, right sessions"), flush=True)
        if options.lme:
            figures = measure_lme(options.lme, Path(folder) / "lme", options, missing)
            print(figures.row("LongMemEval, answer in words"), flush=True)
    if options.missing:
        print("\n".join(missing))


def measure_by_hand(
    source: Path,
    vault: Path,
    title: str,
    options: argparse.Namespace,
    missing: list[str],
) -> Figures:
    """Ask the questions of the file about a vault, in a copy of it.

    `title` names the vault in the file of questions. Adds the questions whose answer is not in the
    pack to `missing`, with the names of the notes in the pack.
    """
    shutil.copytree(source, vault, ignore=shutil.ignore_patterns(".simplemem", ".git"))
    figures = Figures()
    with EnhancedStore(vault, Settings()) as store:
        store.sync()
        for question, answers in questions_about(title):
            pack = figures.ask(store, question, options.budget)
            has_answer = contains_any(pack.text, answers)
            figures.scores.append(has_answer)
            if not has_answer:
                names = [item["name"] for item in pack.items]
                missing.append(f"{title}: {question} — {names}")
    return figures


def questions_about(title: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the questions about a vault, each with its answers, of which any is enough."""
    for line in QUESTIONS.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        vault, question, answers = line.split("\t")
        if vault == title:
            yield question, answers.split(_ALTERNATIVES)


def contains_any(text: str, answers: list[str]) -> bool:
    """Return whether a text contains one of the answers. Both are compared as `folded`."""
    folded_text = folded(text)
    return any(folded(answer) in folded_text for answer in answers)


def folded(text: str) -> str:
    """Return a text without case, runs of white space, marks of Markdown and blanks around "|"."""
    plain = _MARKS.sub("", text).casefold()
    return _CELL_EDGE.sub("|", " ".join(plain.split()))


def measure_locomo(file: Path, vault: Path, budget: int) -> Figures:
    """Ask half of LoCoMo. A score is the share of the right sessions that the pack quotes."""
    questions = write_locomo(file, vault)
    figures = Figures()
    with EnhancedStore(vault, Settings()) as store:
        store.sync()
        for question, right in questions:
            pack = figures.ask(store, question, budget)
            quoted = {item["name"] for item in pack.items}
            figures.scores.append(len(right & quoted) / max(1, len(right)))
    return figures


def measure_lme(
    file: Path,
    folder: Path,
    options: argparse.Namespace,
    missing: list[str],
) -> Figures:
    """Ask the questions of LongMemEval whose answer stands word for word in a right session.

    Adds the questions whose answer is not in the pack to `missing`, with the answer.
    """
    data = read_json(file)
    figures = Figures()
    for question in data["questions"]:
        answer = str(question["answer"]).rstrip(".")
        turns = [turn for id_ in question["evidence"] for turn in data["sessions"][id_]["turns"]]
        if not any(is_quoted(answer, text) for _, text in turns):
            continue
        vault = folder / question["id"]
        write_notes(longmemeval_notes(data, question), vault)
        with EnhancedStore(vault, Settings()) as store:
            store.sync()
            pack = figures.ask(store, question["question"], options.budget)
        has_answer = is_quoted(answer, pack.text)
        figures.scores.append(has_answer)
        if not has_answer:
            missing.append(f"LongMemEval: {question['question']} — {answer}")
        shutil.rmtree(vault)
    return figures


def is_quoted(answer: str, text: str) -> bool:
    """Return whether an answer stands in a text as whole words."""
    return re.search(rf"(?<!\w){re.escape(folded(answer))}(?!\w)", folded(text)) is not None


if __name__ == "__main__":
    main()
