"""Measure the search on a user's own notes.

A note gives one question: its title, a heading or a sentence. That text, and whatever says nearly
the same, is removed from a private copy of the vault, and the copy is searched. Only the questions
are stored.
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
from collections.abc import Iterator, Mapping, Sequence, Set
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

KINDS = ("title", "heading", "sentence")  # of questions
QUALITY = ("recall5", "recall10", "mrr")  # the measures of hits: recall at 5 and 10, and rank
FILE = "eval.json"  # in `.simplemem/`, beside the index, so never a note
_MAX_HITS = 10
_MIN_WORDS_LEFT = 10  # that a note must keep, so that it can be found at all
_MIN_WORDS = {"title": 1, "heading": 2, "sentence": 8}  # of a question, by kind
_MAX_WORDS = 40
_MIN_RARE_NOTES = 5  # a word is rare if at most this many notes have it, or one note in 20
# One sentence repeats another if they share this part of their words.
_SHARED_WORDS = 0.6
_LONG_QUESTION_WORDS = 5  # so many make a long one
_FREE_PROVIDERS = ("wordllama", "none")  # all others may cost money or time for each vector
_STEM_LENGTH = 5  # letters at the beginning of a word
_MIN_STEM_LENGTH = 3  # of a word in Latin letters that carries meaning
_MAX_FILE_BYTES = 50_000_000
# Marks, and what a search takes for a filter.
_NOT_PROSE = re.compile(r"""\[!|[|<${}\\"]|%%|\w:\S|(?:^|\s)-\w""")


@dataclass(frozen=True)
class HeldOut:
    """A text that is removed from a note before a question is asked.

    Attributes:
        note: The name of the note.
        what: What the text is in the note, one of `KINDS`.
        text: The text, without Markdown.
    """

    note: str
    what: str
    text: str

    @property
    def key(self) -> str:
        """The words of the text, by which questions are compared."""
        return _comparable(self.text)


@dataclass(frozen=True)
class Pair:
    """A question and its answer.

    Attributes:
        kind: What the question was in a note, one of `KINDS`, or a word of the user's.
        question: The text to search for.
        gold: The names of the notes that answer it.
        held_out: The texts that are removed from notes first, because they would reveal the answer.
    """

    kind: str
    question: Annotated[str, Field(pattern=r"\S")]
    gold: Annotated[tuple[str, ...], Field(min_length=1)]
    held_out: tuple[HeldOut, ...] = ()


@dataclass(frozen=True)
class Questions:
    """A set of questions, as a file of questions has it.

    Attributes:
        pairs: The questions.
        notes: From how many notes they were chosen.
        seed: The random seed; None if they were written by hand.
        format: The version of the file's format.
    """

    pairs: tuple[Pair, ...]
    notes: int
    seed: int | None = None
    format: Literal[1] = 1


_QUESTIONS = TypeAdapter(Questions)
Notes = Mapping[str, Note]  # by name
Figures = dict[str, Any]  # as `eval run --json` prints them; see `run` and `_row`


@dataclass(frozen=True)
class _Outcome:
    """How well and how fast one question was answered.

    Attributes:
        quality: The figures of `QUALITY`, by name.
        ms: The CPU time of the search in milliseconds.
        degraded: What degraded the search, or "".
    """

    quality: dict[str, float]
    ms: float
    degraded: str


def write_questions(file: Path, questions: Questions) -> None:
    """Write a set of questions to a file, as JSON, and create its folder if it is missing.

    An existing file is replaced as a whole or not at all. Raises OSError if it cannot be written.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    write_file(file, _QUESTIONS.dump_json(questions, indent=2) + b"\n")


def read_questions(file: Path) -> Questions:
    """Return the questions in a file.

    Raises NotFound if it is missing, Invalid if it is damaged or larger than 50 MB, and OSError if
    it cannot be read.
    """
    try:
        text = read_bounded(file, _MAX_FILE_BYTES).decode("utf-8-sig")
        return _QUESTIONS.validate_json(text)
    except FileNotFoundError as error:
        raise NotFound(
            f"no questions at {file}", hint="`simplemem eval init` creates them."
        ) from error
    except ValueError as error:
        raise Invalid(
            f"{file} is not a file of questions: {_reason_of(error)}",
            hint="`simplemem eval init` creates one; docs/eval.md describes its format.",
        ) from error


def _reason_of(error: ValueError) -> str:
    """Return why a file of questions was refused. Of several errors in it, the first is named."""
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"{first['loc']}: {first['msg']}"
    return str(error)


# Making questions


def make_questions(store: EnhancedStore, size: int, seed: int) -> Questions:
    """Return at most `size` questions, one per note, with about as many of each kind.

    They are sorted by kind and note. There are none if no note gives one. Private notes give no
    questions. The same seed and notes give the same questions.
    """
    notes = _readable_notes(store)
    candidates = _unique_candidates(notes)

    names = sorted(notes)
    random.Random(seed).shuffle(names)  # noqa: S311 - repeatable, not secret
    count_by_kind: Counter[str] = Counter()

    def by_rarity(text: HeldOut) -> tuple[int, int]:
        """Return the sort key that puts the kind with the fewest questions so far first."""
        return count_by_kind[text.what], KINDS.index(text.what)

    pairs: list[Pair] = []
    for name in names:
        if len(pairs) >= size:
            break
        for held_out in sorted(candidates[name], key=by_rarity):
            if not _is_answerable(notes[name], held_out):
                continue
            kind = held_out.what
            count_by_kind[kind] += 1
            pair = Pair(
                kind,
                held_out.text,
                gold=(name,),
                held_out=(held_out,),
            )
            pairs.append(pair)
            break

    pairs.sort(key=lambda pair: (KINDS.index(pair.kind), pair.gold))
    return Questions(
        tuple(pairs),
        notes=len(notes),
        seed=seed,
    )


def _readable_notes(store: EnhancedStore) -> dict[str, Note]:
    """Return all notes that are not private and can be read, by name."""
    all_notes = store.extension.list_all()
    paths = {note.path for note in all_notes}
    private = store.extension.private_among(sorted(paths))
    readable = sorted(paths - private)

    notes: dict[str, Note] = {}
    for read in store.extension.read(readable):
        name = name_of(read.path)
        data = read.text.encode()
        notes[name] = read_note(data)
    return notes


def _unique_candidates(notes: Notes) -> dict[str, list[HeldOut]]:
    """Return the texts that make a question, by the name of their note.

    Texts that occur several times, also in different notes, are left out. A note without such a
    text has [].
    """
    rare_stems = _rare_stems(notes)
    candidates: list[HeldOut] = []
    for name, note in notes.items():
        candidates += _candidates(name, note, rare_stems)
    occurrences = Counter(candidate.key for candidate in candidates)

    unique: dict[str, list[HeldOut]] = {name: [] for name in notes}
    for candidate in candidates:
        if occurrences[candidate.key] == 1:
            unique[candidate.note].append(candidate)
    return unique


def _rare_stems(notes: Notes) -> set[str]:
    """Return the stems that at most 5 notes have, or one note in 20 if that is more."""
    counts: Counter[str] = Counter()
    for name, note in notes.items():
        text = f"{name}\n{note.text}"
        counts.update(_stems(text))

    twentieth = len(notes) // 20
    max_notes = max(_MIN_RARE_NOTES, twentieth)
    return {stem for stem, count in counts.items() if count <= max_notes}


def _candidates(name: str, note: Note, rare_stems: Set[str]) -> list[HeldOut]:
    """Return the title, headings and sentences of a note that make a question."""
    candidates: list[HeldOut] = []
    for kind, text in _texts_of(name, note):
        if _is_question(kind, text, rare_stems):
            candidate = HeldOut(
                note=name,
                what=kind,
                text=plain_text(text),
            )
            candidates.append(candidate)
    return candidates


def _texts_of(name: str, note: Note) -> Iterator[tuple[str, str]]:
    """Yield the title, headings and sentences of a note with their Markdown, each with its kind."""
    title = note.text_property("title")
    yield "title", title or base_name(f"{name}.md")
    for heading in note.body.headings:
        yield "heading", heading.text
    for start, end in sentence_spans(note.content):
        yield "sentence", note.content[start:end]


def _is_question(kind: str, text: str, rare_stems: Set[str]) -> bool:
    """Return whether a text can be a question.

    It must be prose with a word that few notes have. A title needs 1 word, a heading 2, and a
    sentence 8; none has more than 40. Numbers do not count.
    """
    words = unique_words(plain_text(text))
    word_count = sum(not word.isdecimal() for word in words)
    if not _MIN_WORDS[kind] <= word_count <= _MAX_WORDS:
        return False
    if rare_stems.isdisjoint(_stems(text)):
        return False
    return not _NOT_PROSE.search(text)


def _is_answerable(note: Note, held_out: HeldOut) -> bool:
    """Return whether a note can still be found without a text.

    The rest must have 10 words, and share one with the text. False if its frontmatter cannot be
    edited.
    """
    is_title = held_out.what == "title"
    try:
        rest = without(note.text, [held_out.text], title=is_title)
    except SimplememError:  # frontmatter that cannot be read
        return False
    if len(words_in_order(rest)) < _MIN_WORDS_LEFT:
        return False
    stems = _stems(held_out.text)
    return not stems.isdisjoint(_stems(rest))


# Removing texts from a note


def without(text: str, held_out: Sequence[str], *, title: bool = False) -> str:
    """Return the text of a note without all that says one of the texts `held_out`, or nearly so.

    Sentences, headings, aliases, `title` and `description` are removed. With `title`, the property
    `title` is removed whatever it says. Raises Unreadable if the frontmatter cannot be edited.
    """
    repeats = _RepetitionTest(held_out)
    text = _without_properties(text, repeats, title=title)

    note = _parse(text)
    repeating = [heading for heading in note.body.headings if repeats(heading.text)]
    removals = [(heading.start, heading.end, "") for heading in repeating]

    content = note.content
    content_start = len(text) - len(content)
    for start, end in sentence_spans(content):
        if repeats(content[start:end]):
            removal = (
                content_start + start,
                content_start + end,
                "",
            )
            removals.append(removal)
    return apply_edits(text, removals)


def _parse(text: str) -> Note:
    """Return a text as a note. Lone surrogates stay."""
    return read_note(text.encode("utf-8", "surrogatepass"))


def _without_properties(text: str, repeats: _RepetitionTest, *, title: bool) -> str:
    """Return the text of a note without the properties and aliases that repeat a text.

    With `title`, the property `title` is removed whatever it says. Raises Unreadable if the
    frontmatter cannot be edited.
    """
    note = _parse(text)
    for key in ("title", "description"):
        value = note.text_property(key)
        is_removed = title and key == "title"
        if value and (is_removed or repeats(value)):
            text = remove_property(text, key)

    aliases = [alias for alias in note.aliases if not repeats(alias)]
    if len(aliases) < len(note.aliases):
        text = set_property(text, "aliases", aliases)
    return text


class _RepetitionTest:
    """Tests whether a sentence says one of some texts, or nearly so.

    Guards what the texts are compared by: their words in order, and their stems.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        """Prepare a test for these texts, which may contain Markdown."""
        self._keys = {_comparable(text) for text in texts}
        self._stems = [_stems(text) for text in texts]

    def __call__(self, sentence: str) -> bool:
        """Return whether a sentence, which may contain Markdown, repeats one of the texts."""
        if _comparable(sentence) in self._keys:
            return True
        stems = _stems(plain_text(sentence))
        return any(_shares_most(stems, text_stems) for text_stems in self._stems)


def _shares_most(stems: Set[str], text_stems: Set[str]) -> bool:
    """Return whether a sentence with these stems repeats a text with `text_stems`.

    It does if it shares two stems with the text, and 60 % of the smaller set of stems. For a text
    with fewer than 5 stems, it must share 60 % of the larger set: a sentence that has both words of
    a title among others does not repeat the title.
    """
    sizes = (len(stems), len(text_stems))
    if len(text_stems) >= _LONG_QUESTION_WORDS:
        size = min(sizes)
    else:
        size = max(sizes)
    shared_count = len(stems & text_stems)
    return shared_count >= max(2, _SHARED_WORDS * size)


def _comparable(text: str) -> str:
    """Return the words of a text without Markdown, by which texts are compared."""
    return " ".join(words_in_order(plain_text(text)))


def _stems(text: str) -> frozenset[str]:
    """Return the first five letters of the words that carry meaning, without very short words."""
    words = content_words(unique_words(text))
    return frozenset(
        word[:_STEM_LENGTH] for word in words if len(word) >= _MIN_STEM_LENGTH or not word.isascii()
    )


# Asking questions


def run(
    store: EnhancedStore,
    questions: Questions,
    variants: Mapping[str, Settings],
    *,
    progress: Progress | None = None,
) -> Figures:
    """Ask all questions with the settings of each variant, and return a row of figures for each.

    `variants` are settings by label; all are compared with the first. The vault is not changed:
    each variant indexes a private copy. The keys of the figures are `about` (the vault), `notes`,
    `seed`, `left_out` (how many questions cannot be used) and `rows` (`_row`). Raises Invalid if no
    question can be used.
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

        rows: list[Figures] = []
        first_outcomes: list[_Outcome] = []
        for number, (label, settings) in enumerate(variants.items()):
            copy_settings = _settings_for_copy(settings, vault, number)
            outcomes = _ask_all(store, pairs, vault, copy_settings, progress)
            rows.append(_row(label, outcomes, first_outcomes))
            if not first_outcomes:
                first_outcomes = outcomes

    skipped_count = len(questions.pairs) - len(pairs)
    return {
        "about": str(store.root),
        "notes": questions.notes,
        "seed": questions.seed,
        "left_out": skipped_count,
        "rows": rows,
    }


def _settings_for_copy(settings: Settings, vault: Path, number: int) -> Settings:
    """Return the settings of a variant for the copy of the vault, with an index of its own.

    `number` is that of the variant, and names the index.
    """
    write = settings.write.model_copy(update={"durability": "fast"})
    changes = {
        "vault": vault,
        "db": vault.with_name(f"{number}.db"),
        "read_only": False,
        "write": write,
    }
    return settings.model_copy(update=changes)


def _ask_all(
    store: EnhancedStore,
    pairs: Sequence[Pair],
    vault: Path,
    settings: Settings,
    progress: Progress | None,
) -> list[_Outcome]:
    """Index the copy of the vault with these settings, and return the outcomes of all questions.

    `store` is that of the user's vault, whose vectors are used again if they were expensive.
    """
    with EnhancedStore(vault, settings) as copy:
        if settings.embed.provider not in _FREE_PROVIDERS:
            # Vectors that cost money or much time are not made again.
            copy.sync(progress=progress, embed=False)
            copy.extension.take_vectors(store.extension)
        copy.sync(progress=progress)
        copy.extension.expect_more()
        return [_ask(copy, pair) for pair in pairs]


def _ask(store: EnhancedStore, pair: Pair) -> _Outcome:
    """Search for one question in the copy, and return how well and how fast it was answered."""
    start = time.process_time()
    result = store.search(pair.question, limit=_MAX_HITS)
    ms = 1000 * (time.process_time() - start)

    names = [hit.name for hit in result.hits]
    quality = _measure(names, set(pair.gold))
    return _Outcome(
        quality,
        ms,
        degraded=result.degraded,
    )


def _measure(names: Sequence[str], gold: Set[str]) -> dict[str, float]:
    """Return the figures of `QUALITY` for the hits of one question, by their names, best first.

    `gold` are the notes that answer it.
    """
    reciprocal_rank = 0.0
    for rank, name in enumerate(names, 1):
        if name in gold:
            reciprocal_rank = 1 / rank
            break
    return {
        "recall5": len(gold & set(names[:5])) / len(gold),
        "recall10": len(gold & set(names[:10])) / len(gold),
        "mrr": reciprocal_rank,
    }


def _row(label: str, outcomes: Sequence[_Outcome], first_outcomes: Sequence[_Outcome]) -> Figures:
    """Return the figures of one variant.

    The keys are `name` (the label), `questions`, those of `QUALITY` (see `_mean`), `ms_median`,
    `difference` (to the first variant) if there are `first_outcomes`, and `degraded` if a search
    was: the most frequent reason `why`, and for how many `questions`.
    """
    row: Figures = {"name": label, "questions": len(outcomes)}
    for key in QUALITY:
        values = [outcome.quality[key] for outcome in outcomes]
        row[key] = _mean(values)

    durations = [outcome.ms for outcome in outcomes]
    median = statistics.median(durations)
    row["ms_median"] = round(median, 2)
    if first_outcomes:
        row["difference"] = _differences(outcomes, first_outcomes)

    reasons = Counter(outcome.degraded for outcome in outcomes)
    del reasons[""]
    for reason, count in reasons.most_common(1):
        row["degraded"] = {"why": reason, "questions": count}
    return row


def _differences(outcomes: Sequence[_Outcome], first_outcomes: Sequence[_Outcome]) -> Figures:
    """Return the mean differences to the first variant's outcomes, by the keys of `QUALITY`.

    Both have the same questions in the same order.
    """
    differences: Figures = {}
    for key in QUALITY:
        differences[key] = _mean(
            [
                outcome.quality[key] - first.quality[key]
                for outcome, first in zip(outcomes, first_outcomes, strict=True)
            ]
        )
    return differences


def _mean(values: Sequence[float]) -> dict[str, float]:
    """Return the mean of some values, and its 95 % confidence interval.

    The keys are `value`, `low` and `high`. There must be a value.
    """
    mean = statistics.fmean(values)
    half_width = 0.0
    if len(values) > 1:
        standard_error = statistics.stdev(values) / math.sqrt(len(values))
        half_width = 1.96 * standard_error
    return {
        "value": round(mean, 4),
        "low": round(mean - half_width, 4),
        "high": round(mean + half_width, 4),
    }


# The copy of the vault


class _Removals:
    """What is removed from the notes of the copy.

    Attributes:
        texts: The texts to remove, by the name of their note.
        untitled: The names of the notes that lose their title.
    """

    def __init__(self, pairs: Sequence[Pair]) -> None:
        """Collect what these questions remove."""
        self.texts: dict[str, list[str]] = defaultdict(list)
        self.untitled: set[str] = set()
        for pair in pairs:
            for held_out in pair.held_out:
                self._add(held_out, pair)

    def _add(self, held_out: HeldOut, pair: Pair) -> None:
        """Add a text, and the question too if the note answers it."""
        name = held_out.note
        self.texts[name].append(held_out.text)
        if name in pair.gold:
            self.texts[name].append(pair.question)
        if held_out.what == "title":
            self.untitled.add(name)

    def apply(self, name: str, text: str) -> str:
        """Return the text of the note of this name without what is removed from it.

        Raises Unreadable if its frontmatter cannot be edited.
        """
        if name not in self.texts:
            return text
        return without(text, self.texts[name], title=name in self.untitled)


def _make_copy(store: EnhancedStore, questions: Questions, root: Path) -> list[Pair]:
    """Copy the notes to `root` without the texts that are held out; return the usable questions.

    A question is left out if one of its notes is missing, or if a text of a private note is held
    out. All notes of the index are copied, private ones too. Notes whose title is held out get
    another name in the copy, also in the questions. Raises Unreadable if the frontmatter of a note
    with such a text cannot be edited, and OSError if the copy cannot be written.
    """
    pairs = _usable_pairs(store, questions)
    removals = _Removals(pairs)
    new_names = _new_names(removals.untitled)

    paths = store.extension.indexed()
    for read in store.extension.read(paths):
        name = name_of(read.path)
        text = removals.apply(name, read.text)
        new_name = new_names.get(name, name)
        _write_copy(
            store.root / read.path,
            root / f"{new_name}.md",
            text,
        )
    _copy_obsidian_settings(store.root, root)

    renamed: list[Pair] = []
    for pair in pairs:
        gold = [new_names.get(name, name) for name in pair.gold]
        new_pair = Pair(
            pair.kind,
            pair.question,
            gold=tuple(gold),
        )
        renamed.append(new_pair)
    return renamed


def _new_names(names: Set[str]) -> dict[str, str]:
    """Return a new name that says nothing about the note, by its old name.

    The folder stays, because rules for private notes name it.
    """
    new_names: dict[str, str] = {}
    for number, name in enumerate(sorted(names)):
        folder, slash, _ = name.rpartition("/")
        base = f"q{number:05d}x"  # neither a word nor a person's name
        new_names[name] = f"{folder}{slash}{base}"
    return new_names


def _usable_pairs(store: EnhancedStore, questions: Questions) -> list[Pair]:
    """Return the questions whose notes exist and that hold out no text of a private note."""
    paths = store.extension.indexed()
    private_paths = store.extension.private_among(paths)
    names = set(map(name_of, paths))
    private = set(map(name_of, private_paths))
    return [pair for pair in questions.pairs if _can_be_asked(pair, names, private)]


def _can_be_asked(pair: Pair, names: Set[str], private: Set[str]) -> bool:
    """Return whether the notes of a question exist, and no text of a private note is held out.

    `names` are those of all notes, and `private` those of private ones. A private note may be the
    answer.
    """
    held_notes = {held_out.note for held_out in pair.held_out}
    all_notes = held_notes.union(pair.gold)
    return all_notes <= names and held_notes.isdisjoint(private)


def _write_copy(source: Path, target: Path, text: str) -> None:
    """Write a text to `target`, with the times of the note `source` that it comes from.

    Missing folders are created. Without a source file, the times are those of the writing.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(text.encode("utf-8", "surrogatepass"))
    with suppress(FileNotFoundError):  # the note of a branch has no file
        shutil.copystat(source, target)


def _copy_obsidian_settings(vault: Path, root: Path) -> None:
    """Copy Obsidian's settings from `vault` to `root`, which then excludes the same files.

    Does nothing if the vault has none.
    """
    target_folder = root / ".obsidian"
    for file in (vault / ".obsidian").glob("*.json"):
        target_folder.mkdir(exist_ok=True)
        shutil.copyfile(file, target_folder / file.name)
