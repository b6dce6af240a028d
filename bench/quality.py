"""How well search finds: `python bench/quality.py --locomo FILE.json.gz --vault DIR [--questions FILE.tsv]`, the tables of
docs/search.md.

LoCoMo-shaped JSON holds `docs` (id, date, turns of who and what) and `queries` (query, gold ids, category). Of a vault of
one's own, the description and the first sentence of every note are asked for, each kind taken out of all notes before it
is asked; and the questions of a file, one a line: the question, a tab, the notes that answer it with `;` between them
(help_questions.tsv, beside this, has some for Obsidian's English help). Figures are means with 95 % intervals by
resampling the questions; the rows leave out one part at a time, or give a constant another value. `simplemem eval` asks
more kinds of questions, and of any settings; here are the constants of the ranking itself.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parents[1]))

from simplemem.config import Settings
from simplemem.evaluate.asking import held_out
from simplemem.evaluate.figures import interval
from simplemem.evaluate.locomo import write_locomo
from simplemem.evaluate.pairs import Held, Pair
from simplemem.evaluate.scratch import Read, read_vault, scratch, temporary_folder
from simplemem.evaluate.sentences import plain, sentences
from simplemem.index import legs
from simplemem.note.note import Note
from simplemem.search import coverage, priors, rank
from simplemem.search.query import read_query
from simplemem.store import EnhancedStore, recall

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Corpus:
    """Notes with what is asked for taken out of them, a store on them, and the questions."""

    name: str
    store: EnhancedStore
    questions: list[tuple[str, frozenset[str]]]


@contextmanager
def corpus(name: str, read: Read, pairs: Sequence[Pair]) -> Iterator[Corpus]:
    """All that any of the pairs holds out is held out of all: no two of them are about the same note."""
    paths = {source.name: source.path for source in read.sources}
    texts = {source.name: source.text for source in read.sources}
    changed: dict[str, tuple[str, bytes]] = {}
    for number, pair in enumerate(pairs):
        held = held_out(pair, number, paths, texts) or {}
        changed |= {path: (now, text.encode("utf-8", "surrogatepass")) for path, (now, text) in held.items()}
    with scratch(read, {"": Settings()}) as copy:
        copy.hold(changed)
        yield Corpus(name, copy.stores[0], [(pair.question, frozenset(pair.gold)) for pair in pairs])


def corpora(locomo: Path | None, vault: Path | None, questions: Path | None) -> Iterator[Corpus]:
    """One after the other what is asked."""
    if locomo:
        with temporary_folder() as folder:
            room = Path(folder) / "locomo"
            asked_of = write_locomo(locomo, room)
            with corpus("LoCoMo", read_vault(room, Settings()), asked_of.pairs) as made:
                yield made
    if vault:
        read = read_vault(vault, Settings())
        for kind, asked in (("descriptions", lambda note: note.string("description")), ("first sentences", _first)):
            what = "description" if kind == "descriptions" else "sentence"
            said = {source.name: asked(source.read()) for source in read.sources}
            pairs = [
                Pair(kind, text, (name,), (Held(name, what, text),))
                for name, text in said.items()
                if text and len(text) >= 15
            ]
            with corpus(kind, read, pairs) as made:
                yield made
        if questions:
            names = [source.name for source in read.sources]
            with corpus("questions by hand", read, list(by_hand(names, questions))) as made:
                yield made


def by_hand(names: Sequence[str], file: Path) -> Iterator[Pair]:
    """The questions of a file. Notes may be named from any folder above them on."""
    for line in file.read_text(encoding="utf-8").split("\n"):
        if line.strip() and not line.startswith("#"):
            asked, _, answers = line.partition("\t")
            wanted = tuple(f"/{answer.strip()}" for answer in answers.split(";"))
            gold = tuple(name for name in names if f"/{name}".endswith(wanted))
            if not gold:
                raise SystemExit(f"{file}: no note is called {answers!r}")
            yield Pair("by hand", asked, gold)


def _first(note: Note) -> str:
    return next((plain(note.text[start:end]) for kind, start, end in sentences(note) if kind == "paragraph"), "")


Scores = list[tuple[float, float, float]]


def ask(corpus: Corpus, mode: str = "hybrid") -> Scores:
    """What a search finds for every question."""
    return scored(
        corpus, lambda question: [hit.name for hit in corpus.store.search(question, limit=10, mode=mode).hits]
    )


def scored(corpus: Corpus, find: Callable[[str], Sequence[str]]) -> Scores:
    """Recall at five and at ten, and the reciprocal rank, of every question."""
    scores: Scores = []
    for question, gold in corpus.questions:
        found = find(question)[:10]
        first = next((k for k, name in enumerate(found, 1) if name in gold), 0)
        five, ten = (len(gold & set(found[:k])) / len(gold) if gold else 0.0 for k in (5, 10))
        scores.append((five, ten, 1 / first if first else 0.0))
    return scores


@contextmanager
def part(module: ModuleType, name: str, value: object) -> Iterator[None]:
    """A part of the ranking exchanged for another."""
    before = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, before)


def _with(module: ModuleType, name: str, value: float) -> Callable[[Corpus], Scores]:
    def asked(corpus: Corpus) -> Scores:
        with part(module, name, value):
            return ask(corpus)

    return asked


def _as_in_a_large_vault(corpus: Corpus) -> Scores:
    """The rarest words of a question choose a few notes, and only these are scored by all of them."""
    with part(legs, "MOST_SCORED", 0), part(legs, "_CHOSEN", 25):
        return ask(corpus)


def _words_all_frequent(corpus: Corpus) -> Scores:
    """The same, where even the rarest words of every question are frequent: the notes that hold one of each group."""
    with part(legs, "_MOST_NOTES", 0), part(legs, "_WORTH", 10_000), part(legs, "_FEW", 0):
        return _as_in_a_large_vault(corpus)


ROWS: dict[str, Callable[[Corpus], Scores]] = {
    "as it is": ask,
    "as in a large vault": _as_in_a_large_vault,
    "and words all frequent": _words_all_frequent,
    "words only": lambda corpus: ask(corpus, "text"),
    "meaning only": lambda corpus: ask(corpus, "semantic"),
    "without neighbouring words": _with(rank, "_PHRASES", 0.0),
    "neighbouring words 0.07": _with(rank, "_PHRASES", 0.07),
    "neighbouring words 0.14": _with(rank, "_PHRASES", 0.14),
    "without blocks": _with(rank, "_BLOCK_WEIGHT", 0.0),
    "blocks 0.35": _with(rank, "_BLOCK_WEIGHT", 0.35),
    "blocks 0.75": _with(rank, "_BLOCK_WEIGHT", 0.75),
    "without covered questions": _with(coverage, "WEIGHT", 0.0),
    "covered 0.25": _with(coverage, "WEIGHT", 0.25),
    "covered 0.5": _with(coverage, "WEIGHT", 0.5),
    "covered, 60 notes": _with(coverage, "NOTES", 60),
    "without dates": _with(priors, "DATED", 0.0),
    "dates 0.05": _with(priors, "DATED", 0.05),
    "dates 0.2": _with(priors, "DATED", 0.2),
}


def statements_covered(asked_of: Corpus) -> Scores:
    """Covering for statements as for questions."""
    with part(recall, "is_question", lambda _: True):
        return ask(asked_of)


def whole_notes_covered(asked_of: Corpus) -> Scores:
    """The words of a question may be met anywhere in the note, not in one passage."""
    in_passages = coverage.coverage

    def in_notes(asked: Sequence[str], notes: Sequence[Sequence[str]], vectors: coverage.WordVectors) -> list[float]:
        return in_passages(asked, [["\n".join(note)[:4_000]] for note in notes], vectors)

    with part(coverage, "coverage", in_notes):
        return ask(asked_of)


def split(asked_of: Corpus) -> Scores:
    """A question of several parts is asked part by part as well, and what they find is added by half."""

    def found(question: str) -> list[str]:
        scores = {hit.name: hit.score for hit in asked_of.store.search(question, limit=30).hits}
        parts = [one for one in re.split(r"\b(?:and|or)\b|[,;]", question) if len(read_query(one).words) > 1]
        for one in parts if len(parts) > 1 else ():
            for hit in asked_of.store.search(f"{one}?", limit=30).hits:
                scores[hit.name] = scores.get(hit.name, 0.0) + hit.score / 2 / len(parts)
        return sorted(scores, key=lambda name: (-scores[name], name))

    return scored(asked_of, found)


def newest_first(asked_of: Corpus) -> Scores:
    """A tenth for the newest of thirty hits, less for the older ones."""

    def found(question: str) -> list[str]:
        hits = asked_of.store.search(question, limit=30).hits
        ages = sorted(hits, key=lambda hit: hit.created or hit.modified, reverse=True)
        scores = {hit.name: hit.score + 0.1 * (1 - place / 30) for place, hit in enumerate(ages)}
        return sorted(scores, key=lambda name: (-scores[name], name))

    return scored(asked_of, found)


def unlike_each_other(asked_of: Corpus) -> Scores:
    """Of twenty hits the best that is least like those before it: a tenth of the nearest cosine is taken off."""
    import numpy as np

    index = asked_of.store.core.index

    def middle(name: str) -> NDArray[np.float32]:
        row = index.row(f"{name}.md")
        stored = [np.frombuffer(raw, np.int8).astype(np.float32) for raw in index.vectors_of(row.id)] if row else []
        each_of_length_one = [each / (np.linalg.norm(each) or 1) for each in stored]
        whole: NDArray[np.float32] = np.sum(each_of_length_one or [np.zeros(1)], axis=0).astype(np.float32)
        return whole / np.float32(np.linalg.norm(whole) or 1)

    def found(question: str) -> list[str]:
        left = {hit.name: (hit.score, middle(hit.name)) for hit in asked_of.store.search(question, limit=20).hits}
        taken: list[tuple[str, NDArray[np.float32]]] = []
        while left and len(taken) < 10:
            worth = {
                name: score - 0.1 * max((float(np.sum(vector * other)) for _, other in taken), default=0.0)
                for name, (score, vector) in left.items()
            }
            best = max(worth, key=worth.__getitem__)
            taken.append((best, left.pop(best)[1]))
        return [name for name, _ in taken]

    return scored(asked_of, found)


def links_lend(asked_of: Corpus) -> Scores:
    """The five best lend an eighth to the notes that they link to, shared out by how many of them do."""

    def found(question: str) -> list[str]:
        scores = {hit.name: hit.score for hit in asked_of.store.search(question, limit=40).hits}
        lent: dict[str, float] = {}
        for name in list(scores)[:5]:
            to = {(link.path or "").removesuffix(".md") for link in asked_of.store.core.index.links_from(f"{name}.md")}
            for other in (to & scores.keys()) - {name}:
                lent[other] = lent.get(other, 0.0) + scores[name]
        most = max(lent.values(), default=1.0)
        return sorted(scores, key=lambda name: (-scores[name] - 0.12 * lent.get(name, 0.0) / most, name))

    return scored(asked_of, found)


TRIED: dict[str, Callable[[Corpus], Scores]] = {
    "as it is": ask,
    "statements covered too": statements_covered,
    "whole notes covered": whole_notes_covered,
    "split at and, or, commas": split,
    "the newest first by 0.1": newest_first,
    "unlike each other by 0.1": unlike_each_other,
    "links lend 0.12": links_lend,
}
"""What was tried and left out."""


def main() -> None:
    args = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    args.add_argument("--locomo", type=Path, help="LoCoMo-shaped JSON, gzipped or not")
    args.add_argument("--vault", type=Path, help="a vault to take questions from")
    args.add_argument("--questions", type=Path, help="questions to that vault, a line each")
    args.add_argument("--tried", action="store_true", help="what was tried and left out, instead of what is there")
    given = args.parse_args()
    rows = TRIED if given.tried else ROWS
    for asked_of in corpora(given.locomo, given.vault, given.questions):
        print(f"\n{asked_of.name}: {len(asked_of.questions)} questions")
        print(f"{'':28} recall@5               recall@10  MRR")
        for name, asked in rows.items():
            five, ten, ranks = (interval(column) for column in zip(*asked(asked_of), strict=True))
            print(
                f"{name:28} {five.value:.3f} [{five.low:.3f}, {five.high:.3f}]   {ten.value:.3f}      "
                f"{ranks.value:.3f} [{ranks.low:.3f}, {ranks.high:.3f}]",
                flush=True,
            )


if __name__ == "__main__":
    main()
