"""How well search finds: `python bench/quality.py --locomo FILE.json.gz --vault DIR [--questions FILE.tsv]`, the table
of docs/search.md.

LoCoMo-shaped JSON holds `docs` (id, date, turns of who and what) and `queries` (query, gold ids). Of a vault of one's
own the description and the first sentence of every note are asked for, each taken out of all notes before it is asked;
and the questions of a file, one a line: the question, a tab, the notes that answer it with `;` between them. Figures
are means with 95 % intervals by resampling the questions.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from simplemem.evaluate import without
from simplemem.note.note import read_note
from simplemem.note.sentences import sentence_spans
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

Questions = list[tuple[str, frozenset[str]]]
_NO_NAME = re.compile(r'[\\/:*?"<>|#^\[\]\x00-\x1f]')


def locomo(file: Path, room: Path) -> Questions:
    """A session becomes a note, a turn a list item."""
    raw = file.read_bytes()
    data = json.loads(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)
    names = {str(doc["id"]): f"chats/{_NO_NAME.sub('-', str(doc['id']))}" for doc in data["docs"]}
    for doc in data["docs"]:
        turns = "\n".join(f"- **{who}:** {text}".replace("\n", " ") for who, text in doc["turns"])
        title = json.dumps(f"{doc['id']} ({doc['date']})", ensure_ascii=False)
        text = f"---\ntitle: {title}\n---\n\n# Chat session at {doc['date']}\n\n{turns}\n"
        write(room / f"{names[str(doc['id'])]}.md", text)
    return [
        (each["query"], frozenset(names.get(str(gold), str(gold)) for gold in each["gold"]))
        for each in data["queries"]
    ]


def held_out(vault: Path, what: str, room: Path) -> Questions:
    """The notes of a vault without their descriptions or first sentences, and those as questions."""
    questions: Questions = []
    for file in sorted(vault.rglob("*.md")):
        name = file.relative_to(vault).as_posix().removesuffix(".md")
        note = read_note(file.read_bytes())
        asked = (
            note.text_property("description")
            if what == "description"
            else first_sentence(note.content)
        )
        text = note.text
        if asked and len(asked) >= 15:
            text = without(text, [asked])
            questions.append((asked, frozenset({name})))
        write(room / f"{name}.md", text)
    return questions


def first_sentence(body: str) -> str:
    return next(
        (body[start:end] for start, end in sentence_spans(body) if body[start].isalpha()), ""
    )


def by_hand(vault: Path, file: Path, room: Path) -> Questions:
    """The questions of a file. Notes may be named from any folder above them on."""
    shutil.copytree(vault, room, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".simplemem"))
    names = [path.relative_to(vault).as_posix().removesuffix(".md") for path in vault.rglob("*.md")]
    questions: Questions = []
    for line in file.read_text(encoding="utf-8").split("\n"):
        if line.strip() and not line.startswith("#"):
            asked, _, answers = line.partition("\t")
            wanted = tuple(f"/{answer.strip()}" for answer in answers.split(";"))
            gold = frozenset(name for name in names if f"/{name}".endswith(wanted))
            if not gold:
                raise SystemExit(f"{file}: no note is called {answers!r}")
            questions.append((asked, gold))
    return questions


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8", newline="\n")


def interval(values: Sequence[float]) -> str:
    chance = random.Random(1)
    means = sorted(sum(chance.choices(values, k=len(values))) / len(values) for _ in range(2_000))
    return f"{sum(values) / len(values):.3f} [{means[50]:.3f}, {means[1949]:.3f}]"


def row(store: EnhancedStore, questions: Questions, mode: str) -> str:
    """Recall at five and at ten, and the mean reciprocal rank."""
    scores = []
    for asked, gold in questions:
        found = [hit.name for hit in store.search(asked, limit=10, mode=mode).hits]
        first = next((place for place, name in enumerate(found, 1) if name in gold), 0)
        share = [len(gold & set(found[:most])) / max(1, len(gold)) for most in (5, 10)]
        scores.append((*share, 1 / first if first else 0.0))
    five, ten, mrr = zip(*scores, strict=True)
    return f"{interval(five)} | {sum(ten) / len(ten):.3f} | {interval(mrr)}"


def sets(given: argparse.Namespace, room: Path) -> Iterator[tuple[str, Path, Questions]]:
    """What is asked: a name, the vault it is asked of, the questions."""
    if given.locomo:
        yield "LoCoMo", room / "locomo", locomo(given.locomo, room / "locomo")
    if given.vault:
        yield (
            "descriptions",
            room / "descriptions",
            held_out(given.vault, "description", room / "descriptions"),
        )
        yield (
            "first sentences",
            room / "sentences",
            held_out(given.vault, "sentence", room / "sentences"),
        )
        if given.questions:
            yield (
                "questions by hand",
                room / "hand",
                by_hand(given.vault, given.questions, room / "hand"),
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--locomo", type=Path)
    parser.add_argument("--vault", type=Path)
    parser.add_argument("--questions", type=Path)
    with tempfile.TemporaryDirectory() as folder:
        print("| | | recall@5 | recall@10 | MRR |\n|---|---|---|---|---|")
        for name, vault, questions in sets(parser.parse_args(), Path(folder)):
            with EnhancedStore(vault, Settings()) as store:
                store.sync()
                for label, mode in (
                    ("as it is", "hybrid"),
                    ("words only", "text"),
                    ("meaning only", "semantic"),
                ):
                    print(
                        f"| {name}, {len(questions)} | {label} | {row(store, questions, mode)} |",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
