"""Measures the search on a user's own notes.

A note gives one question: its title, a heading or a sentence. That text, and whatever says nearly the same, is taken
out of a private copy of the vault, and the copy is searched. Only the questions are stored.
"""

from __future__ import annotations

import math
import random
import re
import shutil
import statistics
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError

from simplemem.errors import Invalid, NotFound, SimplememError
from simplemem.note.names import base_name, name_of
from simplemem.note.note import Note, read_note
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
FILE = "eval.json"  # in `.simplemem/`, beside the index, so never a note
_MAX_HITS = 10
_MIN_WORDS_LEFT = 10  # that a note must keep, so that it can be found at all
_MIN_WORDS = {"title": 1, "heading": 2, "sentence": 8}  # of a question, by kind
_MAX_WORDS = 40
_MIN_RARE_NOTES = 5  # a word is rare if at most so many notes have it, or one note in 20
# One sentence repeats another if they share this part of their words.
_SHARED_WORDS = 0.6
_LONG_QUESTION_WORDS = 5
_FREE_PROVIDERS = ("wordllama", "none")
# Marks, and what a search takes for a filter.
_NOT_PROSE = re.compile(r"""\[!|[|<${}\\"]|%%|\w:\S|(?:^|\s)-\w""")


@dataclass(frozen=True)
class HeldOut:
    """A text that is taken out of a note before a question is asked; `what` is one of `KINDS`."""

    note: str
    what: str
    text: str


@dataclass(frozen=True)
class Pair:
    """A question, the names of the notes that answer it, and the texts that would give them away."""

    kind: str
    question: Annotated[str, Field(pattern=r"\S")]
    gold: Annotated[tuple[str, ...], Field(min_length=1)]
    held_out: tuple[HeldOut, ...] = ()


@dataclass(frozen=True)
class Questions:
    """A set of questions, and from how many notes they were chosen."""

    pairs: tuple[Pair, ...]
    notes: int
    seed: int | None = None
    format: Literal[1] = 1


_QUESTIONS = TypeAdapter(Questions)


@dataclass(frozen=True)
class _Outcome:
    """How well one question was answered, in how many milliseconds, and what degraded the search."""

    quality: dict[str, float]
    ms: float
    degraded: str


def write_questions(file: Path, questions: Questions) -> None:
    """Write a set of questions to a file. An existing file is replaced as a whole or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    write_file(file, _QUESTIONS.dump_json(questions, indent=2) + b"\n")


def read_questions(file: Path) -> Questions:
    """Return the questions in a file. Raises NotFound if it is missing, Invalid if it is damaged."""
    try:
        return _QUESTIONS.validate_json(read_bounded(file, 50_000_000).decode("utf-8-sig"))
    except FileNotFoundError as error:
        raise NotFound(
            f"no questions at {file}", hint="`simplemem eval init` creates them."
        ) from error
    except ValueError as error:
        reason = str(error)
        if isinstance(error, ValidationError):
            first = error.errors()[0]
            reason = f"{first['loc']}: {first['msg']}"
        hint = "`simplemem eval init` creates one; docs/eval.md describes its format."
        raise Invalid(f"{file} is not a file of questions: {reason}", hint=hint) from error


# Making questions


def make_questions(store: EnhancedStore, size: int, seed: int) -> Questions:
    """Return at most `size` questions, one per note, with about as many of each kind.

    Private notes give no questions. The same seed chooses the same questions.
    """
    notes = _readable_notes(store)
    rare_stems = _rare_stems(notes)
    candidates = {name: _candidates(name, note, rare_stems) for name, note in notes.items()}
    repeated = Counter(
        _comparable(held_out.text) for texts in candidates.values() for held_out in texts
    )

    order = sorted(notes)
    random.Random(seed).shuffle(order)  # noqa: S311 - repeatable, not secret
    count_by_kind: Counter[str] = Counter()
    pairs: list[Pair] = []
    for name in order:
        if len(pairs) >= size:
            break
        unique = [text for text in candidates[name] if repeated[_comparable(text.text)] == 1]
        unique.sort(key=lambda text: (count_by_kind[text.what], KINDS.index(text.what)))
        for held_out in unique:
            if _is_answerable(notes[name], held_out):
                pairs.append(Pair(held_out.what, held_out.text, (name,), (held_out,)))
                count_by_kind[held_out.what] += 1
                break
    pairs.sort(key=lambda pair: (KINDS.index(pair.kind), pair.gold))
    return Questions(tuple(pairs), len(notes), seed)


def _readable_notes(store: EnhancedStore) -> dict[str, Note]:
    """Return all notes that are not private, by name."""
    paths = {item.path for item in store.extension.list_all()}
    private = store.extension.private_among(sorted(paths))
    reads = store.extension.read(sorted(paths - private))
    return {name_of(read.path): read_note(read.text.encode()) for read in reads}


def _rare_stems(notes: Mapping[str, Note]) -> set[str]:
    """Return the stems that few notes have."""
    counts = Counter(
        stem for name, note in notes.items() for stem in _stems(f"{name}\n{note.text}")
    )
    max_notes = max(_MIN_RARE_NOTES, len(notes) // 20)
    return {stem for stem, count in counts.items() if count <= max_notes}


def _candidates(name: str, note: Note, rare_stems: Set[str]) -> list[HeldOut]:
    """Return the title, headings and sentences of a note that make a question."""
    title = note.text_property("title") or base_name(f"{name}.md")
    texts = [("title", title)]
    texts += [("heading", heading.text) for heading in note.body.headings]
    texts += [("sentence", note.content[start:end]) for start, end in sentence_spans(note.content)]
    return [
        HeldOut(name, kind, plain_text(text))
        for kind, text in texts
        if _is_question(kind, text, rare_stems)
    ]


def _is_question(kind: str, text: str, rare_stems: Set[str]) -> bool:
    """Return whether a text is prose of a fitting length with a word that few notes have."""
    words = unique_words(plain_text(text))
    word_count = sum(not word.isdecimal() for word in words)
    if not _MIN_WORDS[kind] <= word_count <= _MAX_WORDS:
        return False
    if not _stems(text) & rare_stems:
        return False
    return not _NOT_PROSE.search(text)


def _is_answerable(note: Note, held_out: HeldOut) -> bool:
    """Return whether enough of a note is left without a text, with a word that both share."""
    try:
        rest = without(note.text, [held_out.text], title=held_out.what == "title")
    except SimplememError:  # a header that cannot be read
        return False
    if len(words_in_order(rest)) < _MIN_WORDS_LEFT:
        return False
    return bool(_stems(held_out.text) & _stems(rest))


# Taking texts out of a note


def without(text: str, held: Sequence[str], *, title: bool = False) -> str:
    """Return a note without whatever says one of these texts, or nearly so.

    With `title`, the property `title` is removed too.
    """
    repeats = _RepetitionTest(held)

    note = read_note(text.encode("utf-8", "surrogatepass"))
    for key in ("title", "description"):
        value = note.text_property(key)
        is_held_title = title and key == "title"
        if value and (is_held_title or repeats(value)):
            text = remove_property(text, key)
    other_aliases = [alias for alias in note.aliases if not repeats(alias)]
    if len(other_aliases) < len(note.aliases):
        text = set_property(text, "aliases", other_aliases)

    note = read_note(text.encode("utf-8", "surrogatepass"))
    spans = [
        (heading.start, heading.end) for heading in note.body.headings if repeats(heading.text)
    ]
    content_start = len(text) - len(note.content)
    for start, end in sentence_spans(note.content):
        if repeats(note.content[start:end]):
            spans.append((content_start + start, content_start + end))
    return apply_edits(text, [(start, end, "") for start, end in spans])


class _RepetitionTest:
    """Tests whether a sentence says one of some texts, or nearly so; holds what they are compared by."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._keys = {_comparable(text) for text in texts}
        self._stems = [_stems(text) for text in texts]

    def __call__(self, sentence: str) -> bool:
        if _comparable(sentence) in self._keys:
            return True
        stems = _stems(plain_text(sentence))
        return any(_shares_most(stems, text_stems) for text_stems in self._stems)


def _shares_most(stems: Set[str], text_stems: Set[str]) -> bool:
    """Return whether two sets of stems share most of the smaller one, or of the larger for a short text.

    A sentence that has both words of a title does not repeat the title. A long question is repeated
    by a sentence with six of ten of its words.
    """
    sizes = (len(stems), len(text_stems))
    size = min(sizes) if len(text_stems) >= _LONG_QUESTION_WORDS else max(sizes)
    return len(stems & text_stems) >= max(2, _SHARED_WORDS * size)


def _comparable(text: str) -> str:
    """Return a text in the form in which equal questions are equal."""
    return " ".join(words_in_order(plain_text(text)))


def _stems(text: str) -> frozenset[str]:
    """Return the beginnings of the words that carry meaning."""
    words = content_words(unique_words(text))
    return frozenset(word[:5] for word in words if len(word) > 2 or not word.isascii())


# Asking questions


def run(
    store: EnhancedStore,
    questions: Questions,
    variants: Mapping[str, Settings],
    *,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Ask all questions with each of the settings, and return one row of figures per variant.

    All variants are compared with the first. Raises Invalid if no question can be used.
    """
    with tempfile.TemporaryDirectory(
        prefix="simplemem-eval-", ignore_cleanup_errors=True
    ) as folder:
        vault = Path(folder) / "vault"
        pairs = _make_copy(store, questions, vault)
        if not pairs:
            raise Invalid(
                "none of the questions can be used: their notes are missing or private",
                hint="`simplemem eval init` creates new questions.",
            )

        rows: list[dict[str, Any]] = []
        first_outcomes: list[_Outcome] = []
        for number, (label, settings) in enumerate(variants.items()):
            copy_settings = _settings_for_copy(settings, vault, number)
            outcomes = _ask_all(store, pairs, vault, copy_settings, progress)
            rows.append(_row(label, outcomes, first_outcomes))
            first_outcomes = first_outcomes or outcomes
    return {
        "about": str(store.root),
        "notes": questions.notes,
        "seed": questions.seed,
        "left_out": len(questions.pairs) - len(pairs),
        "rows": rows,
    }


def _settings_for_copy(settings: Settings, vault: Path, number: int) -> Settings:
    """Return the settings of a variant for the copy of the vault, with an index of its own."""
    write = settings.write.model_copy(update={"durability": "fast"})
    return settings.model_copy(
        update={
            "vault": vault,
            "db": vault.with_name(f"{number}.db"),
            "read_only": False,
            "write": write,
        }
    )


def _ask_all(
    store: EnhancedStore,
    pairs: Sequence[Pair],
    vault: Path,
    settings: Settings,
    progress: Progress | None,
) -> list[_Outcome]:
    """Index the copy of the vault with these settings, and ask all questions."""
    with EnhancedStore(vault, settings) as copy:
        if settings.embed.provider not in _FREE_PROVIDERS:
            # Vectors that the user has paid for are not requested again.
            copy.sync(progress=progress, embed=False)
            copy.extension.take_vectors(store.extension)
        copy.sync(progress=progress)
        copy.extension.expect_more()
        return [_ask(copy, pair) for pair in pairs]


def _ask(store: EnhancedStore, pair: Pair) -> _Outcome:
    """Ask one question."""
    start = time.process_time()
    result = store.search(pair.question, limit=_MAX_HITS)
    ms = 1000 * (time.process_time() - start)

    names = [hit.name for hit in result.hits]
    gold = set(pair.gold)
    first_rank = next((rank for rank, name in enumerate(names, 1) if name in gold), 0)
    quality = {
        "recall5": len(gold.intersection(names[:5])) / len(gold),
        "recall10": len(gold.intersection(names[:10])) / len(gold),
        "mrr": 1 / first_rank if first_rank else 0.0,
    }
    return _Outcome(quality, ms, result.degraded)


def _row(
    label: str, outcomes: Sequence[_Outcome], first_outcomes: Sequence[_Outcome]
) -> dict[str, Any]:
    """Return the figures of one variant, and the differences to the first one, if there is one."""
    row: dict[str, Any] = {"name": label, "questions": len(outcomes)}
    for key in QUALITY:
        row[key] = _mean([outcome.quality[key] for outcome in outcomes])
    row["ms_median"] = round(statistics.median(outcome.ms for outcome in outcomes), 2)

    if first_outcomes:
        both = list(zip(outcomes, first_outcomes, strict=True))
        row["difference"] = {
            key: _mean([outcome.quality[key] - first.quality[key] for outcome, first in both])
            for key in QUALITY
        }
    reasons = Counter(outcome.degraded for outcome in outcomes if outcome.degraded)
    for reason, count in reasons.most_common(1):
        row["degraded"] = {"why": reason, "questions": count}
    return row


def _mean(values: Sequence[float]) -> dict[str, float]:
    """Return the mean of some values, and its 95 % confidence interval."""
    mean = statistics.fmean(values)
    half_width = 0.0
    if len(values) > 1:
        half_width = 1.96 * statistics.stdev(values) / math.sqrt(len(values))
    return {
        "value": round(mean, 4),
        "low": round(mean - half_width, 4),
        "high": round(mean + half_width, 4),
    }


# The copy of the vault


def _make_copy(store: EnhancedStore, questions: Questions, root: Path) -> list[Pair]:
    """Copy the notes without the texts that are held out, and return the questions that can be asked.

    Questions about private or missing notes are left out. Notes whose title is held out get
    another name in the copy, also in the questions.
    """
    paths = {name_of(path): path for path in store.extension.indexed()}
    private_paths = store.extension.private_among(list(paths.values()))
    private = {name_of(path) for path in private_paths}
    pairs = [pair for pair in questions.pairs if _can_be_asked(pair, paths.keys(), private)]

    held_texts: dict[str, list[str]] = defaultdict(list)
    untitled: set[str] = set()
    for pair in pairs:
        for held_out in pair.held_out:
            held_texts[held_out.note].append(held_out.text)
            if held_out.note in pair.gold:
                held_texts[held_out.note].append(pair.question)
            if held_out.what == "title":
                untitled.add(held_out.note)

    renamed: dict[str, str] = {}
    for read in store.extension.read(paths.values()):
        name = name_of(read.path)
        text = read.text
        if name in held_texts:
            text = without(text, held_texts[name], title=name in untitled)
        if name in untitled:
            # Neither a word nor anybody's name. The folder stays: rules for private notes name it.
            folder = name[: name.rfind("/") + 1]
            renamed[name] = f"{folder}q{len(renamed):05d}x"
        _write_copy(store.root / read.path, root / f"{renamed.get(name, name)}.md", text)

    _copy_obsidian_settings(store.root, root)
    return [
        Pair(pair.kind, pair.question, tuple(renamed.get(name, name) for name in pair.gold))
        for pair in pairs
    ]


def _can_be_asked(pair: Pair, names: Set[str], private: Set[str]) -> bool:
    """Return whether the notes of a question exist, and no text of a private note is held out."""
    held_notes = {held_out.note for held_out in pair.held_out}
    return {*pair.gold, *held_notes} <= names and held_notes.isdisjoint(private)


def _write_copy(source: Path, target: Path, text: str) -> None:
    """Write a text with the times of the note that it comes from."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(text.encode("utf-8", "surrogatepass"))
    with suppress(FileNotFoundError):  # the note of a branch has no file
        shutil.copystat(source, target)


def _copy_obsidian_settings(vault: Path, root: Path) -> None:
    """Copy Obsidian's settings, so that the files it excludes are excluded here too."""
    for file in (vault / ".obsidian").glob("*.json"):
        (root / ".obsidian").mkdir(exist_ok=True)
        shutil.copyfile(file, root / ".obsidian" / file.name)
