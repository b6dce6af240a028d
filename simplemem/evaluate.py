"""Search measured on one's own notes. A note gives one question: its title, a heading or a sentence. In a private copy
that is taken out, with what says nearly the same, and the copy is searched; only the questions are written down."""

from __future__ import annotations

import math
import random
import re
import shutil
import statistics
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError

from simplemem.errors import Invalid, NotFound, SimplememError
from simplemem.note.names import base_name, name_of
from simplemem.note.note import read_note
from simplemem.note.plain_text import plain_text
from simplemem.note.properties import remove_property, set_property
from simplemem.note.sentences import sentence_spans
from simplemem.note.text_edits import apply_edits
from simplemem.note.words import content_words, unique_words, words_in_order
from simplemem.settings.files import read_bounded
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore, Progress, write_file

KINDS = ("title", "heading", "sentence")
QUALITY = ("recall5", "recall10", "mrr")
_LOOKED_AT = 10  # hits
FILE = "eval.json"  # in `.simplemem/`, beside the index, so never a note
_LEAST_LEFT = 10  # words that a note must keep, so that it can be found at all
_SHORTEST, _LONGEST = 8, 40  # words of a sentence that is asked for
_SHARE = 0.6  # of the words that two sentences have in common when one gives the other away
_NOT_PROSE = re.compile(
    r"""\[!|[|<${}\\"]|%%|\w:\S|(?:^|\s)-\w"""
)  # marks, and what a search takes for a filter


@dataclass(frozen=True)
class HeldOut:
    """What is taken out of one note before a question is asked; `what` is one of `KINDS`."""

    note: str
    what: str
    text: str


@dataclass(frozen=True)
class Pair:
    """A question, the names of the notes that answer it, and what must not be there while it is asked."""

    kind: str
    question: Annotated[str, Field(pattern=r"\S")]
    gold: Annotated[tuple[str, ...], Field(min_length=1)]
    held_out: tuple[HeldOut, ...] = ()


@dataclass(frozen=True)
class Questions:
    """A set of questions, and of how many notes they were chosen."""

    pairs: tuple[Pair, ...]
    notes: int
    seed: int | None = None
    format: Literal[1] = 1


_QUESTIONS = TypeAdapter(Questions)


def write_questions(file: Path, questions: Questions) -> None:
    """Keep a set of questions in place of the file that was there: whole or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    write_file(file, _QUESTIONS.dump_json(questions, indent=2) + b"\n")


def read_questions(file: Path) -> Questions:
    """The questions that a file keeps."""
    try:
        return _QUESTIONS.validate_json(read_bounded(file, 50_000_000).decode("utf-8-sig"))
    except FileNotFoundError as error:
        raise NotFound(
            f"no questions at {file}", hint="`simplemem eval init` creates them."
        ) from error
    except ValueError as error:
        why = (
            f"{error.errors()[0]['loc']}: {error.errors()[0]['msg']}"
            if isinstance(error, ValidationError)
            else error
        )
        hint = "`simplemem eval init` creates one; docs/eval.md describes its format."
        raise Invalid(f"{file} is not a file of questions: {why}", hint=hint) from error


def make_questions(store: EnhancedStore, size: int, seed: int) -> Questions:
    """At most `size` questions, one a note, each kind as often as the others. Private notes are not asked for."""
    paths = sorted(item.path for item in store.extension.list_all())
    reads = store.extension.read(sorted({*paths} - store.extension.private_among(paths)))
    notes = {name_of(read.path): read_note(read.text.encode()) for read in reads}
    counts = Counter(
        stem for name, note in notes.items() for stem in _stems(f"{name}\n{note.text}")
    )
    rare = {stem for stem, count in counts.items() if count <= max(5, len(notes) // 20)}
    candidates: dict[str, list[HeldOut]] = {}
    for name, note in notes.items():
        texts = [("title", note.text_property("title") or base_name(f"{name}.md"), 1)]
        texts += [("heading", heading.text, 2) for heading in note.body.headings]
        texts += [
            ("sentence", note.content[start:end], _SHORTEST)
            for start, end in sentence_spans(note.content)
        ]
        candidates[name] = [
            HeldOut(name, what, plain_text(text))
            for what, text, least in texts
            if least
            <= sum(not word.isdecimal() for word in unique_words(plain_text(text)))
            <= _LONGEST
            and _stems(text) & rare
            and not _NOT_PROSE.search(text)
        ]
    repeated = Counter(_key(held.text) for each in candidates.values() for held in each)
    order = sorted(notes)
    random.Random(seed).shuffle(order)  # noqa: S311 - repeatable, not secret
    asked: Counter[str] = Counter()
    pairs: list[Pair] = []
    for name in order:
        for held in sorted(
            candidates[name], key=lambda held: (asked[held.what], KINDS.index(held.what))
        ):
            if len(pairs) < size and repeated[_key(held.text)] == 1:
                with suppress(SimplememError):  # a header that cannot be read
                    left = without(notes[name].text, [held.text], title=held.what == "title")
                    # Enough must be left of the note, and something that ties it to the question.
                    if len(words_in_order(left)) >= _LEAST_LEFT and _stems(held.text) & _stems(
                        left
                    ):
                        pairs.append(Pair(held.what, held.text, (name,), (held,)))
                        asked[held.what] += 1
                        break
    pairs.sort(key=lambda pair: (KINDS.index(pair.kind), pair.gold))
    return Questions(tuple(pairs), len(notes), seed)


def without(text: str, held: Sequence[str], *, title: bool = False) -> str:
    """A note's text without what says one of these, or nearly so; and with `title` without its title."""
    keys, asked = {_key(each) for each in held}, [_stems(each) for each in held]

    def says(sentence: str) -> bool:
        said = _stems(plain_text(sentence))
        # A sentence that has both words of a title does not repeat it; a long question is repeated by six in ten words.
        least = [(min if len(each) >= 5 else max)(len(said), len(each)) for each in asked]
        near = (
            len(said & each) >= max(2, _SHARE * most)
            for each, most in zip(asked, least, strict=True)
        )
        return _key(sentence) in keys or any(near)

    note = read_note(text.encode("utf-8", "surrogatepass"))
    for key in ("title", "description"):
        if (said := note.text_property(key)) and (says(said) or (key == "title" and title)):
            text = remove_property(text, key)
    if any(map(says, note.aliases)):
        text = set_property(text, "aliases", [alias for alias in note.aliases if not says(alias)])
    note = read_note(text.encode("utf-8", "surrogatepass"))
    begins = len(text) - len(note.content)
    spans = [(heading.start, heading.end) for heading in note.body.headings if says(heading.text)]
    sentences = [span for span in sentence_spans(note.content) if says(note.content[slice(*span)])]
    spans += [(begins + start, begins + end) for start, end in sentences]
    return apply_edits(text, [(*span, "") for span in spans])


def _key(text: str) -> str:
    """What two texts have in common that are the same question."""
    return " ".join(words_in_order(plain_text(text)))


def _stems(text: str) -> frozenset[str]:
    """The beginnings of the words that carry meaning."""
    return frozenset(
        word[:5]
        for word in content_words(unique_words(text))
        if len(word) > 2 or not word.isascii()
    )


def run(
    store: EnhancedStore,
    questions: Questions,
    variants: Mapping[str, Settings],
    *,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Ask all questions with each of the settings; the others are compared with the first."""
    with tempfile.TemporaryDirectory(
        prefix="simplemem-eval-", ignore_cleanup_errors=True
    ) as folder:
        vault, rows, first = (
            Path(folder) / "vault",
            list[dict[str, Any]](),
            list[dict[str, float]](),
        )
        asked = _make_copy(store, questions, vault)
        if not asked:
            why = "none of the questions can be used: their notes are missing or private"
            raise Invalid(why, hint="`simplemem eval init` creates new questions.")
        for number, (label, settings) in enumerate(variants.items()):
            changed: dict[str, Any] = {
                "vault": vault,
                "db": vault.with_name(f"{number}.db"),
                "read_only": False,
            }
            changed["write"] = settings.write.model_copy(update={"durability": "fast"})
            with EnhancedStore(vault, settings.model_copy(update=changed)) as copy:
                if settings.embed.provider not in (
                    "wordllama",
                    "none",
                ):  # what was paid for is not paid for again
                    copy.sync(progress=progress, embed=False)
                    copy.extension.take_vectors(store.extension)
                copy.sync(progress=progress)
                copy.extension.expect_more()
                outcomes, whys = zip(*(_outcome(copy, question) for question in asked), strict=True)
            row = {"name": label, "questions": len(asked)} | {
                key: _mean([o[key] for o in outcomes]) for key in QUALITY
            }
            row["ms_median"] = round(statistics.median(outcome["ms"] for outcome in outcomes), 2)
            if first:
                both = list(zip(outcomes, first, strict=True))
                row["difference"] = {
                    key: _mean([a[key] - b[key] for a, b in both]) for key in QUALITY
                }
            if degraded := Counter(filter(None, whys)).most_common(1):
                row["degraded"] = {"why": degraded[0][0], "questions": degraded[0][1]}
            rows.append(row)
            first = first or list(outcomes)
    head = {"about": str(store.root), "notes": questions.notes, "seed": questions.seed}
    return head | {"left_out": len(questions.pairs) - len(asked), "rows": rows}


def _make_copy(store: EnhancedStore, questions: Questions, root: Path) -> list[Pair]:
    """Copy the notes without what is held out of them. Returns what can be asked: nothing about private notes."""
    paths = {name_of(path): path for path in store.extension.indexed()}
    private = {name_of(path) for path in store.extension.private_among(list(paths.values()))}
    asked, texts, untitled = list[Pair](), defaultdict[str, list[str]](list), set[str]()
    for pair in questions.pairs:
        about = {each.note for each in pair.held_out}
        if {*pair.gold, *about} <= paths.keys() and about.isdisjoint(private):
            asked.append(pair)
            for each in pair.held_out:
                texts[each.note] += [
                    each.text,
                    *([pair.question] if each.note in pair.gold else []),
                ]
                untitled |= {each.note} if each.what == "title" else set()
    renamed: dict[str, str] = {}
    for read in store.extension.read(paths.values()):
        name, text = name_of(read.path), read.text
        if name in texts:
            text = without(text, texts[name], title=name in untitled)
        if (
            name in untitled
        ):  # no word, and nobody's name; a rule would not know a private note by it
            renamed[name] = f"{name[: name.rfind('/') + 1]}q{len(renamed):05d}x"
        file = root / f"{renamed.get(name, name)}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode("utf-8", "surrogatepass"))
        with suppress(FileNotFoundError):  # of a branch there is none
            shutil.copystat(store.root / read.path, file)
    for convention in (store.root / ".obsidian").glob(
        "*.json"
    ):  # what Obsidian leaves out is left out here too
        (root / ".obsidian").mkdir(exist_ok=True)
        shutil.copyfile(convention, root / ".obsidian" / convention.name)
    return [
        Pair(pair.kind, pair.question, tuple(renamed.get(name, name) for name in pair.gold))
        for pair in asked
    ]


def _outcome(store: EnhancedStore, question: Pair) -> tuple[dict[str, float], str]:
    """How well a question was answered, and what lessened the search."""
    began = time.process_time()
    found = store.search(question.question, limit=_LOOKED_AT)
    ms = 1000 * (time.process_time() - began)
    names, gold = [hit.name for hit in found.hits], set(question.gold)
    first = next((place for place, name in enumerate(names, 1) if name in gold), 0)
    five, ten = (len(gold & set(names[:most])) / len(gold) for most in (5, 10))
    return {
        "recall5": five,
        "recall10": ten,
        "mrr": 1 / first if first else 0.0,
        "ms": ms,
    }, found.degraded


def _mean(values: Sequence[float]) -> dict[str, float]:
    """The mean, and where it lies in 95 of 100 samples of this size."""
    mean = statistics.fmean(values)
    wide = 1.96 * statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    return {"value": round(mean, 4), "low": round(mean - wide, 4), "high": round(mean + wide, 4)}
