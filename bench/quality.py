"""How well search finds: `python bench/quality.py --locomo FILE.json.gz --vault DIR`, the tables of docs/search.md.

LoCoMo-shaped JSON holds `docs` (id, date, turns of who and what) and `queries` (query, gold ids, category). Of a vault of
one's own, the description and the first sentence of every note are asked for, each taken out of the note before it is
indexed. Figures are means with 95 % intervals by resampling the questions; the rows leave out one part at a time.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

sys.path.insert(0, str(Path(__file__).parents[1]))

from simplemem.index import legs
from simplemem.note.note import read_note
from simplemem.search import rank
from simplemem.store import EnhancedStore


@dataclass(frozen=True, slots=True)
class Question:
    """A question and the names of the notes that answer it."""

    text: str
    gold: frozenset[str]


@dataclass(frozen=True, slots=True)
class Corpus:
    """Notes in a folder, and questions to them."""

    name: str
    vault: Path
    questions: list[Question]


def locomo(file: Path, room: Path) -> Corpus:
    """One note a session, a list item a turn."""
    raw = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    data = json.loads(raw)
    vault = room / "locomo"
    (vault / "chats").mkdir(parents=True)
    for doc in data["docs"]:
        turns = [f"- **{who}:** {text}".replace("\n", " ") for who, text in doc["turns"]]
        title = f"{doc['id']} ({doc['date']})"
        lines = ["---", f'title: "{title}"', "---", "", f"# Chat session at {doc['date']}", "", *turns]
        (vault / "chats" / f"{doc['id']}.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    questions = [Question(q["query"], frozenset(f"chats/{id_}" for id_ in q["gold"])) for q in data["queries"]]
    return Corpus("LoCoMo", vault, questions)


def held_out(source: Path, room: Path, kind: str) -> Corpus:
    """A vault without the sentences that are asked for, nor those that say nearly the same."""
    vault = room / kind
    questions = []
    for file in sorted(source.rglob("*.md")):
        path = file.relative_to(source)
        if any(part.startswith(".") for part in path.parts):
            continue
        note = read_note(file.read_bytes())
        header = re.sub(r"(?m)^description:.*\n", "", note.text[: note.header.body_start])
        asked = note.string("description") if kind == "descriptions" else _first_sentence(note.content)
        body = note.content
        if asked and len(asked) >= 15:
            questions.append(Question(asked, frozenset([path.with_suffix("").as_posix()])))
            body = _without(body, asked)
        (vault / path).parent.mkdir(parents=True, exist_ok=True)
        (vault / path).write_text(header + body, encoding="utf-8")
    return Corpus(kind, vault, questions)


def _first_sentence(body: str) -> str:
    for line in body.split("\n"):
        if line.strip() and not line.lstrip().startswith(("#", "!", ">", "-", "|", "`", "%", "<")):
            return re.sub(r"\[\[(?:[^\]|]*\|)?([^\]]*)\]\]", r"\1", re.split(r"(?<=[.!?])\s", line)[0])
    return ""


def _without(body: str, asked: str) -> str:
    """The body without sentences that share six in ten of the question's word stems."""
    stems = _stems(asked)
    lines = []
    for line in body.split("\n"):
        kept = [
            s for s in re.split(r"(?<=[.!?])\s", line) if len(_stems(s) & stems) < 0.6 * len(stems) or not _stems(s)
        ]
        lines.append(" ".join(kept))
    return "\n".join(lines)


def _stems(text: str) -> set[str]:
    return {word[:5] for word in re.findall(r"[a-z0-9]+", text.lower()) if len(word) > 2}


Scores = list[tuple[float, float, float]]


def ask(corpus: Corpus, mode: str = "hybrid") -> Scores:
    """Recall at five and at ten, and the reciprocal rank, of every question."""
    scores: Scores = []
    with EnhancedStore(corpus.vault) as store:
        store.sync()
        for question in corpus.questions:
            found = [hit.name for hit in store.search(question.text, limit=10, mode=mode).hits]
            if not question.gold:
                scores.append((0.0, 0.0, 0.0))
                continue
            first = next((k for k, name in enumerate(found, 1) if name in question.gold), 0)
            five, ten = (len(question.gold & set(found[:k])) / len(question.gold) for k in (5, 10))
            scores.append((five, ten, 1 / first if first else 0.0))
    return scores


@contextmanager
def part(name: str, value: float, of: ModuleType = rank) -> Iterator[None]:
    """A constant of the ranking set to another value."""
    before = getattr(of, name)
    setattr(of, name, value)
    try:
        yield
    finally:
        setattr(of, name, before)


def _with(name: str, value: float) -> Callable[[Corpus], Scores]:
    def asked(corpus: Corpus) -> Scores:
        with part(name, value):
            return ask(corpus)

    return asked


def _as_in_a_large_vault(corpus: Corpus) -> Scores:
    """The rarest words of a question choose a few notes, and only these are scored by all of them."""
    with part("MOST_SCORED", 0, legs), part("_CHOSEN", 25, legs):
        return ask(corpus)


ROWS: dict[str, Callable[[Corpus], Scores]] = {
    "as it is": ask,
    "as in a large vault": _as_in_a_large_vault,
    "words only": lambda corpus: ask(corpus, "text"),
    "meaning only": lambda corpus: ask(corpus, "semantic"),
    "without neighbouring words": _with("_PHRASES", 0.0),
    "neighbouring words 0.07": _with("_PHRASES", 0.07),
    "neighbouring words 0.14": _with("_PHRASES", 0.14),
    "without blocks": _with("_BLOCK_WEIGHT", 0.0),
    "blocks 0.35": _with("_BLOCK_WEIGHT", 0.35),
    "blocks 0.75": _with("_BLOCK_WEIGHT", 0.75),
}


def interval(values: list[float]) -> tuple[float, float]:
    """Where the mean lies in 95 of 100 resamplings."""
    chance = random.Random(1)
    means = sorted(statistics.fmean(chance.choices(values, k=len(values))) for _ in range(1000))
    return means[25], means[975]


def main() -> None:
    args = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    args.add_argument("--locomo", type=Path, help="LoCoMo-shaped JSON, gzipped or not")
    args.add_argument("--vault", type=Path, help="a vault to take questions from")
    given = args.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        room = Path(folder)
        corpora = [locomo(given.locomo, room)] if given.locomo else []
        if given.vault:
            corpora += [held_out(given.vault, room, kind) for kind in ("descriptions", "first sentences")]
        for corpus in corpora:
            print(f"\n{corpus.name}: {len(corpus.questions)} questions")
            print(f"{'':28} recall@5               recall@10  MRR")
            for name, asked in ROWS.items():
                five, ten, ranks = (list(column) for column in zip(*asked(corpus), strict=True))
                (a, b), (c, d) = interval(five), interval(ranks)
                print(
                    f"{name:28} {statistics.fmean(five):.3f} [{a:.3f}, {b:.3f}]   {statistics.fmean(ten):.3f}      "
                    f"{statistics.fmean(ranks):.3f} [{c:.3f}, {d:.3f}]",
                    flush=True,
                )


if __name__ == "__main__":
    main()
