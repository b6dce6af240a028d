"""Search measured on one's own notes. A note gives one question: its title, a heading or a sentence. In a private copy
that is taken out of it, with what says nearly the same, and the copy is searched; only the questions are written
down."""

from __future__ import annotations

import math
import random
import re
import shutil
import statistics
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError

from simplemem.config import Settings
from simplemem.errors import Invalid, NotFound, SimplememError
from simplemem.note.names import base_name, name_of
from simplemem.note.note import Note, read_note
from simplemem.note.passages import sentence_spans
from simplemem.note.properties import remove_item, remove_property
from simplemem.note.words import content_words, words_in_order, words_of
from simplemem.store import EnhancedStore, Progress, write_file

KINDS = ("title", "heading", "sentence")
FILE = "eval.json"  # in `.simplemem/`, beside the index, so never a note
_LEAST_LEFT = 10  # words that a note must keep, so that it can be found at all
_SHORTEST, _LONGEST = 8, 40  # words of a sentence that is asked for
_SHARE = 0.6  # of the words that two sentences have in common when one gives the other away
_NOT_PROSE = re.compile(r"""\[!|[|<${}\\"]|%%|\w:\S|(?:^|\s)-\w""")  # marks, and what a search takes for a filter
_LINK = re.compile(r"\[\[(?:[^\[\]|]*+\|)?([^\[\]]*+)\]\]|\[([^\[\]]*+)\]\([^)\s]{0,1000}+\)")
_MARKS = re.compile(r"[*`]+|(?<!\w)_+|_+(?!\w)|==|~~|\^[A-Za-z0-9-]+\s*$")


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
    """A set of questions and how it came about. `notes` is how many there were to choose from."""

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
    """The questions that a file keeps. Raises NotFound or Invalid, and says what to do."""
    try:
        return _QUESTIONS.validate_json(file.read_bytes().decode("utf-8-sig"))
    except FileNotFoundError as error:
        raise NotFound(f"there are no questions at {file}", hint="`simplemem eval init` makes them.") from error
    except ValueError as error:
        why = f"{error.errors()[0]['loc']}: {error.errors()[0]['msg']}" if isinstance(error, ValidationError) else error
        hint = "`simplemem eval init` makes one; docs/eval.md tells what stands in it."
        raise Invalid(f"{file} is not a file of questions: {why}", hint=hint) from error


# -- making questions


def make_questions(store: EnhancedStore, size: int, seed: int) -> Questions:
    """As many questions as there are, at most `size`: one a note, each kind as often as the others where there are
    enough, the same ones for the same vault and seed. Private notes are not asked for."""
    paths = sorted(item.path for item in store.list(limit=10**9).items)
    reads = store.bench.read(sorted({*paths} - store.bench.private(paths)))
    notes = {name_of(read.path): read_note(read.text.encode()) for read in reads}
    counts = Counter(stem for name, note in notes.items() for stem in _stems(f"{name}\n{note.text}"))
    rare = {stem for stem, count in counts.items() if count <= max(5, len(notes) // 20)}
    candidates = {name: list(_candidates(name, note, rare)) for name, note in notes.items()}
    repeated = Counter(_key(held.text) for each in candidates.values() for held in each)
    order = sorted(notes)
    random.Random(seed).shuffle(order)  # noqa: S311 - repeatable, not secret
    asked: Counter[str] = Counter()
    pairs: list[Pair] = []
    for name in order:
        for held in sorted(candidates[name], key=lambda held: (asked[held.what], KINDS.index(held.what))):
            if len(pairs) < size and repeated[_key(held.text)] == 1:
                with suppress(SimplememError):  # a header that cannot be read
                    left = without(notes[name].text, [held], [held.text])
                    # Enough must be left of the note, and something that ties it to the question.
                    if len(words_in_order(left)) >= _LEAST_LEFT and _stems(held.text) & _stems(left):
                        pairs.append(Pair(held.what, held.text, (name,), (held,)))
                        asked[held.what] += 1
                        break
    pairs.sort(key=lambda pair: (KINDS.index(pair.kind), pair.gold))
    return Questions(tuple(pairs), len(notes), seed)


def _candidates(name: str, note: Note, rare: set[str]) -> Iterator[HeldOut]:
    """What a note could be asked by: texts that hold a word few notes have."""
    found = [("title", note.string("title") or base_name(f"{name}.md"), 1)]
    found += [("heading", heading.text, 2) for heading in note.body.headings]
    found += [("sentence", note.content[start:end], _SHORTEST) for start, end in sentence_spans(note.content)]
    for what, text, least in found:
        words = [word for word in words_of(_plain(text)) if not word.isdecimal()]
        if least <= len(words) <= _LONGEST and _stems(text) & rare and not _NOT_PROSE.search(text):
            yield HeldOut(name, what, _plain(text))


def without(text: str, held: Iterable[HeldOut], questions: Iterable[str]) -> str:
    """A note's text without what is held out of it, and without whatever gives a question away. The name of its file
    stays: whoever holds a title out renames that as well. Unreadable where the header is."""
    keys = {(each.what, _key(each.text)) for each in held}
    asked = [_stems(question) for question in questions]

    def goes(what: str, said: str) -> bool:
        return (what, _key(said)) in keys or _gives_away(said, asked)

    note = read_note(text.encode("utf-8", "surrogatepass"))
    titles = any(what == "title" for what, _ in keys)
    for key in ("title", "description"):
        if (said := note.string(key)) and (goes(key, said) or (key == "title" and titles)):
            text = remove_property(text, key)
    for alias in note.aliases:
        if goes("alias", alias):
            text = remove_item(text, "aliases", alias)
    note = read_note(text.encode("utf-8", "surrogatepass"))
    begins = len(text) - len(note.content)
    spans = [(heading.start, heading.end) for heading in note.body.headings if goes("heading", heading.text)]
    for start, end in sentence_spans(note.content):
        if goes("sentence", note.content[start:end]):
            spans.append((begins + start, begins + end))
    for start, end in sorted(spans, reverse=True):
        text = text[:start] + text[end:]
    return text


def _gives_away(sentence: str, asked: Sequence[frozenset[str]]) -> bool:
    """Whether a sentence shares six in ten of its words and of a question's. Where the question is long, of either: a
    sentence that has both words of a title is no repetition of the title."""
    said = _stems(_plain(sentence))
    for question in asked:
        least = min(len(said), len(question)) if len(question) >= 5 else max(len(said), len(question))
        if len(said & question) >= max(2, _SHARE * least):
            return True
    return False


def _plain(text: str) -> str:
    """A text as a person would say it: links by what they show, no emphasis, one line."""
    return " ".join(_MARKS.sub("", _LINK.sub(lambda link: link[1] or link[2] or "", text)).split())


def _key(text: str) -> str:
    """What two texts have in common that are the same question."""
    return " ".join(words_in_order(_plain(text)))


def _stems(text: str) -> frozenset[str]:
    """The beginnings of the words that carry meaning."""
    return frozenset(word[:5] for word in content_words(words_of(text)) if len(word) > 2 or not word.isascii())


# -- asking them

QUALITY = ("recall5", "recall10", "mrr")
_LOOKED_AT = 10  # hits


def run(
    store: EnhancedStore,
    questions: Questions,
    variants: Mapping[str, Settings],
    *,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Ask all questions with each of the settings; the others are compared with the first. The figures as plain
    values."""
    with tempfile.TemporaryDirectory(prefix="simplemem-eval-", ignore_cleanup_errors=True) as folder:
        asked = _make_copy(store, questions, Path(folder) / "vault")
        if not asked:
            why = "none of the questions is about notes that are in the vault and not private"
            raise Invalid(why, hint="`simplemem eval init` makes new ones.")
        rows: list[dict[str, Any]] = []
        first: list[dict[str, float]] = []
        for number, (label, settings) in enumerate(variants.items()):
            with _store_of(store, Path(folder), str(number), settings, progress) as copy:
                found = [_outcome(copy, question) for question in asked]
            outcomes = [outcome for outcome, _ in found]
            row = {"name": label, "questions": len(asked)} | {key: _mean([o[key] for o in outcomes]) for key in QUALITY}
            row["ms_median"] = round(statistics.median(outcome["ms"] for outcome in outcomes), 2)
            if first:
                both = list(zip(outcomes, first, strict=True))
                row["difference"] = {key: _mean([a[key] - b[key] for a, b in both]) for key in QUALITY}
            if degraded := Counter(why for _, why in found if why).most_common(1):
                row["degraded"] = {"why": degraded[0][0], "questions": degraded[0][1]}
            rows.append(row)
            first = first or outcomes
    head = {"about": str(store.root), "notes": questions.notes, "seed": questions.seed}
    return head | {"left_out": len(questions.pairs) - len(asked), "rows": rows}


def _make_copy(store: EnhancedStore, questions: Questions, root: Path) -> list[Pair]:
    """Copy the notes without what is held out of them; the questions that can be asked of the copies. Those about a
    private note are not: under its other name no rule would know it."""
    paths = {name_of(path): path for path in store.bench.indexed()}
    there = [pair for pair in questions.pairs if {*pair.gold, *(held.note for held in pair.held_out)} <= paths.keys()]
    private = store.bench.private({paths[held.note] for pair in there for held in pair.held_out})
    asked = [pair for pair in there if not any(paths[held.note] in private for held in pair.held_out)]
    asked_of: dict[str, list[Pair]] = defaultdict(list)
    for pair in asked:
        for name in {held.note for held in pair.held_out}:
            asked_of[name].append(pair)
    renamed: dict[str, str] = {}
    for read in store.bench.read(paths.values()):
        name, text = name_of(read.path), read.text
        if about := asked_of[name]:
            held = [each for pair in about for each in pair.held_out if each.note == name]
            text = without(text, held, [pair.question for pair in about if name in pair.gold])
            if any(each.what == "title" for each in held):  # no word, and nobody's name
                renamed[name] = f"{name[: name.rfind('/') + 1]}q{len(renamed):05d}x"
        file = root / f"{renamed.get(name, name)}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode("utf-8", "surrogatepass"))
        shutil.copystat(store.root / read.path, file)
    for convention in (store.root / ".obsidian").glob("*.json"):  # what Obsidian leaves out is left out here too
        (root / ".obsidian").mkdir(exist_ok=True)
        shutil.copyfile(convention, root / ".obsidian" / convention.name)
    return [Pair(pair.kind, pair.question, tuple(renamed.get(name, name) for name in pair.gold)) for pair in asked]


def _store_of(
    store: EnhancedStore, room: Path, number: str, settings: Settings, progress: Progress | None
) -> EnhancedStore:
    """A store on the copy, with an index of its own. Vectors that the vault has paid for are not paid for again."""
    fast = settings.write.model_copy(update={"durability": "fast"})
    changed = {"vault": room / "vault", "db": room / number / "index.db", "read_only": False, "write": fast}
    copy = EnhancedStore(room / "vault", settings.model_copy(update=changed))
    if settings.embed.provider not in ("wordllama", "none"):
        copy.sync(progress=progress, embed=False)
        copy.bench.take_vectors(store.bench)
    copy.sync(progress=progress)
    copy.bench.expect_more()
    return copy


def _outcome(store: EnhancedStore, question: Pair) -> tuple[dict[str, float], str]:
    """How well a question was answered, and what lessened the search."""
    began = time.process_time()
    found = store.search(question.question, limit=_LOOKED_AT)
    ms = 1000 * (time.process_time() - began)
    names, gold = [hit.name for hit in found.hits], set(question.gold)
    first = next((place for place, name in enumerate(names, 1) if name in gold), 0)
    five, ten = (len(gold & set(names[:most])) / len(gold) for most in (5, 10))
    return {"recall5": five, "recall10": ten, "mrr": 1 / first if first else 0.0, "ms": ms}, found.degraded


def _mean(values: Sequence[float]) -> dict[str, float]:
    """The mean, and where it lies in 95 of 100 samples of this size."""
    mean = statistics.fmean(values)
    wide = 1.96 * statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    return {"value": round(mean, 4), "low": round(mean - wide, 4), "high": round(mean + wide, 4)}
