"""How well search finds.

    python bench/quality.py --locomo FILE.json.gz --vault DIR [--questions FILE.tsv]

Prints the table of docs/search.md. LoCoMo-shaped JSON has `docs` (id, date, turns of speaker and
text) and `queries` (query, ids of the right docs). From a vault of your own, the description and
the first sentence of every note become questions; each is removed from its note first. A file of
questions has one per line: the question, a tab, and the notes that answer it, separated by `;`.
Figures are means with 95 % intervals, by resampling the questions.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.retrieval.data import valid_name, write_notes
from bench.retrieval.loaders import locomo_note, read_json
from bench.retrieval.metrics import interval, mean, reciprocal_rank
from simplemem.evaluate import without
from simplemem.note.note import Note, read_note
from simplemem.note.sentences import sentence_spans
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

Questions = list[tuple[str, frozenset[str]]]
"""Each question with the names of the notes that answer it."""

MODES: Final = {"as it is": "hybrid", "words only": "text", "meaning only": "semantic"}
_SHORTEST_QUESTION: Final = 15  # characters


def main() -> None:
    """Print a row for each set of questions and each mode."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--locomo", type=Path)
    parser.add_argument("--vault", type=Path)
    parser.add_argument("--questions", type=Path)
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        print("| | | recall@5 | recall@10 | MRR |\n|---|---|---|---|---|")
        for title, vault, questions in question_sets(options, Path(folder)):
            with EnhancedStore(vault, Settings()) as store:
                store.sync()
                for label, mode in MODES.items():
                    figures = measure(store, questions, mode)
                    print(f"| {title}, {len(questions)} | {label} | {figures} |", flush=True)


def question_sets(
    options: argparse.Namespace, folder: Path
) -> Iterator[tuple[str, Path, Questions]]:
    """Make the vault of each set below `folder`; yield its title, its vault and its questions."""
    if options.locomo:
        vault = folder / "locomo"
        yield "LoCoMo", vault, write_locomo(options.locomo, vault)
    if options.vault:
        vault = folder / "descriptions"
        yield "descriptions", vault, write_held_out(options.vault, description, vault)
        vault = folder / "sentences"
        yield "first sentences", vault, write_held_out(options.vault, first_sentence, vault)
    if options.vault and options.questions:
        vault = folder / "hand"
        yield "questions by hand", vault, read_questions(options.vault, options.questions, vault)


def write_locomo(file: Path, vault: Path) -> Questions:
    """Write each session as a note with a list item per turn, and return the questions."""
    data = read_json(file)
    notes = [locomo_note(str(doc["id"]), doc["date"], doc["turns"]) for doc in data["docs"]]
    write_notes(notes, vault / "chats")

    questions: Questions = []
    for query in data["queries"]:
        right = frozenset(f"chats/{valid_name(str(id_))}" for id_ in query["gold"])
        questions.append((query["query"], right))
    return questions


def write_held_out(source: Path, question_of: Callable[[Note], str], vault: Path) -> Questions:
    """Copy a vault, but remove from each note what is asked about it. Return what was removed."""
    questions: Questions = []
    for file in sorted(source.rglob("*.md")):
        name = file.relative_to(source).as_posix().removesuffix(".md")
        note = read_note(file.read_bytes())
        question = question_of(note)
        text = note.text
        if len(question) >= _SHORTEST_QUESTION:
            text = without(text, [question])
            questions.append((question, frozenset({name})))
        write(vault / f"{name}.md", text)
    return questions


def description(note: Note) -> str:
    """Return the property `description` of a note, or an empty text."""
    return note.text_property("description") or ""


def first_sentence(note: Note) -> str:
    """Return the first sentence that begins with a letter, or an empty text."""
    body = note.content
    for start, end in sentence_spans(body):
        if body[start].isalpha():
            return body[start:end]
    return ""


def read_questions(source: Path, file: Path, vault: Path) -> Questions:
    """Copy a vault, and return the questions of a file. A note may be named by the end of its path.

    Raises:
        SystemExit: The vault has no such note.
    """
    shutil.copytree(source, vault, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".simplemem"))
    paths = [path.relative_to(source).as_posix() for path in source.rglob("*.md")]
    names = [path.removesuffix(".md") for path in paths]

    questions: Questions = []
    for line in file.read_text(encoding="utf-8").split("\n"):
        if not line.strip() or line.startswith("#"):
            continue
        question, _, answers = line.partition("\t")
        endings = tuple(f"/{answer.strip()}" for answer in answers.split(";"))
        right = frozenset(name for name in names if f"/{name}".endswith(endings))
        if not right:
            raise SystemExit(f"{file}: no note is called {answers!r}")
        questions.append((question, right))
    return questions


def write(file: Path, text: str) -> None:
    """Write a note and the folders above it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8", newline="\n")


def measure(store: EnhancedStore, questions: Questions, mode: str) -> str:
    """Ask all questions and return recall at five and at ten, and the mean reciprocal rank."""
    recalls_at_5 = []
    recalls_at_10 = []
    reciprocal_ranks = []
    for question, right in questions:
        names = [hit.name for hit in store.search(question, limit=10, mode=mode).hits]
        recalls_at_5.append(len(right & set(names[:5])) / max(1, len(right)))
        recalls_at_10.append(len(right & set(names)) / max(1, len(right)))
        reciprocal_ranks.append(reciprocal_rank(names, right))
    at_5 = with_interval(recalls_at_5)
    return f"{at_5} | {mean(recalls_at_10):.3f} | {with_interval(reciprocal_ranks)}"


def with_interval(values: Sequence[float]) -> str:
    """Return the mean and its 95 % interval, as text."""
    low, high = interval(values)
    return f"{mean(values):.3f} [{low:.3f}, {high:.3f}]"


if __name__ == "__main__":
    main()
