"""What the local model gains and costs, compared with the bundled word vectors.

    python bench/local_model.py [--locomo FILE] [--lme FILE] [--vault DIR] [--facts FILE]
        [--every N] [--sessions N]
    python bench/local_model.py --means DJANGO.whl

Needs the extra `local`. Prints a row for each set of questions and each embedder:

- the share of the right notes among the first 3 and the first 5 hits, and the mean of 1 / rank of
  the first right note; first by words and meaning, then by meaning alone
- the CPU time of the first index, and of a query by words and meaning
- the memory of a process that does both

The sets are:

- `bench/languages.json` and each file of `--facts`: facts in several languages, with questions in
  other words
- `--vault`: Obsidian's help with `bench/help_questions.tsv`
- `--locomo`: LoCoMo-shaped JSON (see `bench/quality.py`)
- `--lme`: a part of LongMemEval, with a vault per question

`--every` takes only each Nth question of LoCoMo and LongMemEval, and `--sessions` only the first N
sessions of LoCoMo.

`--means` computes the mean vectors of the model again, from the translated messages in a package of
Django 5.2, and prints how similar they are to the stored ones.
"""

from __future__ import annotations

import argparse
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.languages import FACTS, read_facts, texts_of
from bench.quality import Questions, read_questions, reciprocal_rank, write, write_locomo
from bench.retrieval.data import write_notes
from bench.retrieval.loaders import longmemeval_notes, read_json
from simplemem.providers.api import EmbedderConfig
from simplemem.providers.local_model import MEANS_FILE, PURPOSES, LocalEmbedder
from simplemem.settings.model import EmbedSettings, Settings
from simplemem.store import EnhancedStore

EMBEDDERS: Final = ("wordllama", "local")
MODES: Final = ("hybrid", "semantic")
HELP_QUESTIONS: Final = Path(__file__).with_name("help_questions.tsv")
HEADER: Final = (
    "| questions | embedder | recall@3 | recall@5 | MRR | by meaning: recall@3 | recall@5 | MRR"
    " | first index, CPU s | query, CPU ms | memory, MB |\n" + "|---" * 11 + "|"
)
MAX_HITS: Final = 10


def main() -> None:
    """Print a row for each set and embedder, or compute the means."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    for name in ("locomo", "lme", "vault", "means"):
        parser.add_argument(f"--{name}", type=Path)
    parser.add_argument("--facts", type=Path, action="append", default=[FACTS])
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--sessions", type=int)
    # "SET,EMBEDDER", which a process of its own measures.
    parser.add_argument("--only", help=argparse.SUPPRESS)
    options = parser.parse_args()

    if options.means:
        compare_means(options.means)
    elif options.only:
        name, embedder = options.only.split(",")
        print(row_of(name, embedder, options), flush=True)
    else:
        print(HEADER, flush=True)
        for name in sets_of(options):
            for embedder in EMBEDDERS:
                # Each row has its own process, because memory is measured.
                command = [sys.executable, *sys.argv, "--only", f"{name},{embedder}"]
                subprocess.run(command, check=True)


# Sets of questions

Vaults = Iterator[tuple[Path, Questions]]
"""Pairs of a vault and its questions. The vault is written just before it is yielded."""


def sets_of(options: argparse.Namespace) -> dict[str, Callable[[Path], Vaults]]:
    """Return the sets of questions by name: functions that write their vaults below a folder."""
    sets: dict[str, Callable[[Path], Vaults]] = {}
    for file in options.facts:
        facts = read_facts(file)
        sets[f"{file.stem} in English"] = lambda folder, f=facts: facts_in_english(f, folder)
        sets[f"{file.stem} in each language"] = lambda folder, f=facts: facts_in_each(f, folder)
        sets[f"{file.stem} across languages"] = lambda folder, f=facts: facts_across(f, folder)
    if options.vault:
        sets["help by hand"] = lambda folder: help_by_hand(options.vault, folder)
    if options.locomo:
        sets["LoCoMo"] = lambda folder: locomo(options, folder)
    if options.lme:
        sets["LongMemEval"] = lambda folder: longmemeval(options.lme, options.every, folder)
    return sets


def facts_in_english(facts: list[dict[str, Any]], folder: Path) -> Vaults:
    """Ask the English facts in English."""
    yield fact_vault(facts, "en", ["en"], folder)


def facts_in_each(facts: list[dict[str, Any]], folder: Path) -> Vaults:
    """Ask the facts of each language but English in that language."""
    for language in other_languages(facts):
        yield fact_vault(facts, language, [language], folder / language)


def facts_across(facts: list[dict[str, Any]], folder: Path) -> Vaults:
    """Ask the English facts in each other language."""
    yield fact_vault(facts, "en", other_languages(facts), folder)


def other_languages(facts: list[dict[str, Any]]) -> list[str]:
    """Return the languages of some facts without English."""
    return [language for language in facts[0]["facts"] if language != "en"]


def fact_vault(
    facts: list[dict[str, Any]], language: str, asked_in: list[str], folder: Path
) -> tuple[Path, Questions]:
    """Write the facts of a language, a note each, and return their questions in languages."""
    for number, fact in enumerate(texts_of(facts, "facts", language)):
        write(folder / f"fact {number}.md", f"{fact}\n")
    questions: Questions = []
    for name in asked_in:
        for number, question in enumerate(texts_of(facts, "questions", name)):
            questions.append((question, frozenset({f"fact {number}"})))
    return folder, questions


def help_by_hand(source: Path, folder: Path) -> Vaults:
    """Ask Obsidian's help the questions that were written by hand."""
    yield folder, read_questions(source, HELP_QUESTIONS, folder)


def locomo(options: argparse.Namespace, folder: Path) -> Vaults:
    """Ask about chat sessions, one note each. With `--sessions`, the others are left out."""
    questions = write_locomo(options.locomo, folder)
    if options.sessions is not None:
        files = sorted(folder.rglob("*.md"))
        for file in files[options.sessions :]:
            file.unlink()
        names = {f"chats/{file.stem}" for file in files[: options.sessions]}
        questions = [(question, right) for question, right in questions if right and right <= names]
    yield folder, questions[:: options.every]


def longmemeval(file: Path, every: int, folder: Path) -> Vaults:
    """Ask about chat sessions with an assistant, in a vault per question.

    Questions without an answer are left out.
    """
    data = read_json(file)
    answerable = [row for row in data["questions"] if not row["id"].endswith("_abs")]
    for row in answerable[::every]:
        vault = folder / row["id"]
        write_notes(longmemeval_notes(data, row), vault)
        yield vault, [(row["question"], frozenset(row["evidence"]))]


# Measuring


class Figures(NamedTuple):
    """The sums over questions of the recall at 3 and at 5, and of the reciprocal rank."""

    recall_at_3: float = 0.0
    recall_at_5: float = 0.0
    reciprocal_rank: float = 0.0

    def plus(self, names: list[str], right: frozenset[str]) -> Figures:
        """Return the sums with one more question: the names of its hits, and of its right notes."""
        count = max(1, len(right))
        return Figures(
            self.recall_at_3 + len(right & set(names[:3])) / count,
            self.recall_at_5 + len(right & set(names[:5])) / count,
            self.reciprocal_rank + reciprocal_rank(names, right),
        )


def row_of(name: str, embedder: str, options: argparse.Namespace) -> str:
    """Ask the questions of a set with an embedder, and return the row of the table."""
    settings = Settings(embed=EmbedSettings(provider=embedder))
    figures = dict.fromkeys(MODES, Figures())
    index_seconds = query_seconds = 0.0
    count = 0
    with tempfile.TemporaryDirectory() as folder:
        for vault, questions in sets_of(options)[name](Path(folder)):
            with EnhancedStore(vault, settings) as store:
                start = time.process_time()
                store.sync()
                index_seconds += time.process_time() - start
                for mode in MODES:
                    start = time.process_time()
                    for question, right in questions:
                        hits = store.search(question, limit=MAX_HITS, mode=mode).hits
                        names = [hit.name for hit in hits]
                        figures[mode] = figures[mode].plus(names, right)
                    if mode == "hybrid":
                        query_seconds += time.process_time() - start
            count += len(questions)

    cells = [f"{total / count:.3f}" for mode in MODES for total in figures[mode]]
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_000
    costs = [f"{index_seconds:.1f}", f"{query_seconds / count * 1e3:.1f}", f"{megabytes:.0f}"]
    return f"| {name}, {count} | {embedder} | {' | '.join([*cells, *costs])} |"


# The mean vectors

LANGUAGES: Final = "en es pt fr de it nl pl ru zh_Hans ja ko ar hi".split()
MESSAGES_PER_LANGUAGE: Final = 80
# Messages that are not longer than this are left out.
MAX_SHORT: Final = 20
MAX_SHORT_IN_CJK: Final = 8  # in Chinese, Japanese and Korean


def compare_means(wheel: Path) -> None:
    """Compute the mean vectors, and write them if there are none. Print their cosines."""
    import numpy as np

    embedder = LocalEmbedder(EmbedderConfig())
    by_language = [messages_of(wheel, language) for language in LANGUAGES]
    rows = []
    for purpose in PURPOSES:
        means = [embedder.raw_vectors(texts, purpose).mean(axis=0) for texts in by_language]
        rows.append(np.mean(means, axis=0))
    if not MEANS_FILE.exists():
        np.save(MEANS_FILE, np.array(rows, np.float16))

    stored = np.load(MEANS_FILE).astype(np.float32)
    for purpose, row, stored_row in zip(PURPOSES, rows, stored, strict=True):
        lengths = np.linalg.norm(row) * np.linalg.norm(stored_row)
        print(f"{purpose}: cosine with the stored mean {row @ stored_row / lengths:.5f}")


def messages_of(wheel: Path, language: str) -> list[str]:
    """Return up to 80 messages of Django in a language, without placeholders and HTML tags.

    The same package always gives the same messages.
    """
    is_cjk = language in ("zh_Hans", "ja", "ko")
    name = f"django/conf/locale/{language}/LC_MESSAGES/django.po"
    with zipfile.ZipFile(wheel) as archive:
        catalogue = archive.read(name).decode()
    field = "msgid" if language == "en" else "msgstr"
    messages = set()
    for lines in re.findall(rf'^{field} (".*"(?:\n".*")*)', catalogue, re.MULTILINE):
        message = "".join(re.findall(r'"(.*)"', lines)).replace("\\n", " ").replace('\\"', '"')
        message = re.sub(r"%\(?\w*\)?[sd]?|<[^>]*>|\{\w*\}", "", message).strip()
        max_short = MAX_SHORT_IN_CJK if is_cjk else MAX_SHORT
        if len(message) > max_short and "Project-Id" not in message:
            messages.add(message)
    chosen = sorted(messages)
    random.Random(0).shuffle(chosen)
    return chosen[:MESSAGES_PER_LANGUAGE]


if __name__ == "__main__":
    main()
