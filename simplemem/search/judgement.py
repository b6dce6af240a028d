"""Judge how well a note covers a question, whether it answers it, and which scores are shown.

A question is answered in one place. So a note is as good as its best passage. Words of the question
in a few neighbouring lines of that passage count more than words spread over the whole passage.

A confidence below 0 means that the hit does not answer; the answer then carries a notice.
docs/search.md describes the rules, and `bench/honesty.py` prints how often they are right. The
weights and minimums are fitted to half of its questions; its `--held-out` reports the others.

Pure: callers pass in what they measured.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, islice, pairwise
from math import log, sqrt
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from simplemem.index.api import NoteDetails, TextSpan
from simplemem.models import LOOSELY_RELATED, NO_WORD_FOUND, NOTHING_FOUND
from simplemem.note.words import STOP_WORDS, words_in_order

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from simplemem.providers.word_vectors import WordLlama


# -- coverage

# How many passages of a note are compared: those with its best blocks by words. If no block was
# found by words, more of them are: those around the passage that is nearest in meaning.
_MAX_PASSAGES = 10
_MAX_PASSAGES_BY_MEANING = 64

_LINES_TOGETHER = 3  # equally good from 2 to 4
_MAX_CHARACTERS = 4_000  # of one line

# The share of its coverage that a passage without any name of the question keeps. The ranking is
# equally good from 0.1 to 0.4.
_NAMELESS_SHARE = 0.3

# From this cosine on, two words are forms of one word. Two different names are never that similar.
SAME_WORD = 0.9

# Marks among the words of a passage; no word contains a newline. Marks and stop words have no
# vector, so their row numbers are below 0, where the table of `Coverage` has no rows.
_LINE_END = "\n"
_PASSAGE_END = "\n\n"
_ROW_OF_STOP_WORD = -1
_ROW_OF_MARK = {_LINE_END: -2, _PASSAGE_END: -3}

# Finds the same words as `words_in_order`, in ASCII text in lower case.
_find_words_and_line_ends = re.compile("[a-z0-9]+|\n").findall

# Limits of the cache of `Coverage`: 20 MB of vectors, and 6 MB of passages.
_MAX_CACHED_WORDS = 20_000
_MAX_CACHED_PASSAGES = 6_400


_PassageKey = tuple[Hashable, tuple[int, int]]
"""The key of a note, and the span of one of its passages."""


class Passages(NamedTuple):
    """The passages of a note that are compared with a question."""

    key: Hashable  # identifies the text of the note, for caches
    spans: Sequence[tuple[int, int]]
    read: Callable[[], str]  # returns the text of the note

    def passage_keys(self) -> list[_PassageKey]:
        """Return the keys of the passages, without repeated ones."""
        unique_spans = dict.fromkeys(self.spans)
        return [(self.key, span) for span in unique_spans]

    def texts(self) -> list[str]:
        """Return the text of each passage."""
        text = self.read()
        return [text[start:stop] for start, stop in self.spans]


def spans_to_compare(details: NoteDetails) -> list[tuple[int, int]]:
    """Return the passages of a note that may cover a question best.

    These are all passages of a short note. Of a longer note they are those with its best blocks by
    words, else those around its best place, else the first ones.
    """
    passages = details.passages
    count = len(passages)

    if details.blocks and count > _MAX_PASSAGES:
        passages = _passages_with(details.blocks, passages)
    elif details.best is not None and count > _MAX_PASSAGES_BY_MEANING:
        passages = _passages_around(details.best, passages)
    elif count > _MAX_PASSAGES_BY_MEANING:
        passages = passages[:_MAX_PASSAGES_BY_MEANING]

    return [(passage.start, passage.stop) for passage in passages]


def _passages_with(blocks: Iterable[TextSpan], passages: Sequence[TextSpan]) -> list[TextSpan]:
    """Return the passages in which the best blocks begin, in the order of the note.

    `blocks` come best first. After 10 passages, further blocks are ignored.
    """
    chosen: set[int] = set()
    for block in blocks:
        for number, passage in enumerate(passages):
            if passage.start <= block.start < passage.stop:
                chosen.add(number)
        if len(chosen) >= _MAX_PASSAGES:
            break
    return [passages[number] for number in sorted(chosen)]


def _passages_around(best: TextSpan, passages: Sequence[TextSpan]) -> Sequence[TextSpan]:
    """Return at most 64 passages of a note around the best one, in their order.

    At most 32 of them are up to the best one; the others are after it.
    """
    count_up_to_best = 0
    for passage in passages:
        if passage.start <= best.start:
            count_up_to_best += 1

    first = max(0, count_up_to_best - _MAX_PASSAGES_BY_MEANING // 2)
    end = first + _MAX_PASSAGES_BY_MEANING
    return passages[first:end]


class _LineSimilarities(NamedTuple):
    """How similar each word of a question is to each line of some notes."""

    # One row per word of the question, one column per line of all notes in their order. Empty if
    # the question or the notes have no words.
    by_line: NDArray[np.float32]

    first_lines: NDArray[np.int32]  # the column of the first line of each passage
    passage_counts: list[int]  # the number of passages with words of each note


class _PassageWords(NamedTuple):
    """The words of a passage, as rows of the table of `Coverage`."""

    words: NDArray[np.int32]
    line_lengths: NDArray[np.int32]  # the number of words of each line that has words


class _Comparison(NamedTuple):
    """How similar some words are to each passage of some notes."""

    words: Sequence[str]
    by_passage: Mapping[Hashable, NDArray[np.float32]]  # one row per word, one column per passage

    @classmethod
    def of(
        cls,
        words: Sequence[str],
        notes: Sequence[Passages],
        by_passage: NDArray[np.float32],
        passage_counts: Sequence[int],
    ) -> _Comparison:
        """Return a comparison with `by_passage` split by note.

        `by_passage` has a column for each passage of the first note, then of the second, and so on.
        """
        first_passages = accumulate(passage_counts, initial=0)
        keys = [tuple(note.passage_keys()) for note in notes]
        by_note: dict[Hashable, NDArray[np.float32]] = {}
        for key, (start, stop) in zip(keys, pairwise(first_passages), strict=True):
            by_note[key] = by_passage[:, start:stop]
        return cls(list(words), by_note)

    def find(self, words: Sequence[str], passages: Passages) -> NDArray[np.float32] | None:
        """Return how similar the words are to the passages of a note.

        Returns None if these words, in this order, were not compared with these passages. `words`
        must be a list, as `self.words` is.
        """
        if words != self.words:
            return None
        key = tuple(passages.passage_keys())
        return self.by_passage.get(key)


class Coverage:
    """Measure how well notes cover the words of a question, by word vectors.

    Guards a cache of the words of notes and of their vectors; threads may share it. The last
    comparison is replaced as a whole, so it needs no lock.
    """

    def __init__(self, vectors: WordLlama) -> None:
        self.vectors = vectors
        self._lock = threading.Lock()
        self._last_comparison = _Comparison((), {})
        self._clear()

    def _clear(self) -> None:
        """Make empty caches. The caller must hold the lock, or be the only one with the object."""
        import numpy as np

        shape = (_MAX_CACHED_WORDS, self.vectors.dimension)
        self._table: NDArray[np.float32] = np.empty(shape, np.float32)
        self._size = 0  # the number of rows in use
        self._row_of = dict.fromkeys(STOP_WORDS, _ROW_OF_STOP_WORD) | _ROW_OF_MARK
        self._words_of_passages: dict[_PassageKey, _PassageWords] = {}

    def of(
        self,
        words: Sequence[str],
        notes: Sequence[Passages],
        names: Collection[str] = (),
    ) -> list[float]:
        """Return for each note how well its best passage covers the words.

        The value is the sum of two mean similarities of the words: to the whole passage, and to its
        best few lines. It is 0 for a note without words.

        A name is covered only by itself, not by a similar word. A passage that lacks some of
        `names`, which are names among the words, keeps only a part of its value.
        """
        import numpy as np

        by_line, first_lines, passage_counts = self._compare(words, notes)
        if not by_line.size:
            return [0.0] * len(passage_counts)

        by_passage = np.maximum.reduceat(by_line, first_lines, axis=1)
        self._last_comparison = _Comparison.of(words, notes, by_passage, passage_counts)

        by_few_lines = self._with_following_lines(by_line, first_lines)
        best_lines = np.maximum.reduceat(by_few_lines.mean(axis=0), first_lines)
        coverage = by_passage.mean(axis=0) + best_lines

        # For each passage, the share of the names that it contains.
        share_of_names: NDArray[np.float64] | float = 1.0
        if names:
            is_name = [word in names for word in words]
            has_name = by_passage[is_name] > SAME_WORD
            share_of_names = has_name.mean(axis=0)

        named_share = 1 - _NAMELESS_SHARE
        coverage = coverage * (_NAMELESS_SHARE + named_share * share_of_names)
        return _best_of_notes(coverage.tolist(), passage_counts)

    @staticmethod
    def _with_following_lines(
        by_line: NDArray[np.float32],
        first_lines: NDArray[np.int32],
    ) -> NDArray[np.float32]:
        """Return how similar each word is to each line together with the two lines after it.

        Lines of the next passage do not count. Changes `by_line`, and returns it.
        """
        import numpy as np

        # The line before the first line of a passage is the last line of the passage before it. For
        # the first passage that is -1, which stands for the last line of all.
        last_lines = first_lines - 1
        lines = np.arange(by_line.shape[1])
        lines_with_next = np.delete(lines, last_lines)

        # Each round takes in one more line.
        for _ in range(_LINES_TOGETHER - 1):
            own = by_line[:, lines_with_next]
            of_next = by_line[:, lines_with_next + 1]
            by_line[:, lines_with_next] = np.maximum(own, of_next)
        return by_line

    def share(
        self,
        weights: Mapping[str, float],
        label: str,
        passages: Passages,
    ) -> float:
        """Return the weighted share of the words that a note covers in its label and best passage.

        `label` has the names of the note and its tags. The share is from 0 to 1; it is 0 without
        words to compare. As in `coverage_of`, similarities are squared.
        """
        import numpy as np

        words = list(weights)
        by_passage = self._by_passage_with_label(words, label, passages)
        if not by_passage.size:
            return 0.0

        weight_of_words = np.array(list(weights.values()))
        covered = weight_of_words @ by_passage**2
        best_share = covered.max() / weight_of_words.sum()
        return min(1.0, float(best_share))

    def by_word(
        self,
        weights: Mapping[str, float],
        label: str,
        passages: Passages,
    ) -> list[float]:
        """Return how similar each word is to the passage of a note that covers most of them.

        The words of the `label` count with every passage.
        """
        import numpy as np

        words = list(weights)
        by_passage = self._by_passage_with_label(words, label, passages)
        if not by_passage.size:
            return [0.0] * len(words)

        weight_of_words = np.array(list(weights.values()))
        covered = weight_of_words @ by_passage**2
        similarities: list[float] = by_passage[:, covered.argmax()].tolist()
        return similarities

    def _by_passage_with_label(
        self,
        words: Sequence[str],
        label: str,
        passages: Passages,
    ) -> NDArray[np.float32]:
        """Return how similar each word is to each passage with the label, one column per passage.

        If the label has words, it is also a passage of its own, in the first column. The array has
        no elements if there are no words or no columns.
        """
        import numpy as np

        label_passages = Passages(
            key=(label,),
            spans=[(0, len(label))],
            read=lambda: label,
        )
        by_label = self._by_passage(words, label_passages)
        by_passage = self._by_passage(words, passages)
        if by_label.size and by_passage.size:
            by_passage = np.maximum(by_passage, by_label)

        nonempty = [part for part in (by_label, by_passage) if part.size]
        if not nonempty:
            return by_passage
        return np.concatenate(nonempty, axis=1)

    def _by_passage(self, words: Sequence[str], passages: Passages) -> NDArray[np.float32]:
        """Return how similar each word is to each passage of a note, one column per passage.

        Passages without words are left out. No elements if none is left, or if `words` is empty.
        """
        import numpy as np

        # `of` has compared the best notes of a search when `share` measures those that are shown.
        known = self._last_comparison.find(words, passages)
        if known is not None:
            return known
        by_line, first_lines, _ = self._compare(words, [passages])
        if not by_line.size:
            return by_line
        return np.maximum.reduceat(by_line, first_lines, axis=1)

    def _compare(self, words: Sequence[str], notes: Sequence[Passages]) -> _LineSimilarities:
        """Return how similar each word is to each line of all notes.

        Only passages and lines with words count.
        """
        import numpy as np

        with self._lock:
            if self._size > _MAX_CACHED_WORDS:
                self._clear()
            words_of_notes = self._read(notes)
            table = self._table[: self._size]

        passage_counts = [len(passages) for passages in words_of_notes]
        passages = list(chain.from_iterable(words_of_notes))
        if not words or not passages:
            empty = np.empty((0, 0), np.float32)
            return _LineSimilarities(empty, np.empty(0, np.int32), passage_counts)

        rows_of_passages = [passage.words for passage in passages]
        lengths_of_passages = [passage.line_lengths for passage in passages]
        rows = np.concatenate(rows_of_passages)
        line_lengths = np.concatenate(lengths_of_passages)
        passage_lengths = np.array([len(lengths) for lengths in lengths_of_passages])

        # Each different word of the notes is compared once, whatever the number of its occurrences.
        # `column_of_row` maps its row in the table to its column in `similarities`.
        is_used = np.zeros(len(table), bool)
        is_used[rows] = True
        used_rows = np.flatnonzero(is_used)
        column_of_row = np.empty(len(table), np.int32)
        column_of_row[used_rows] = np.arange(len(used_rows))

        lowered_words = [word.lower() for word in words]
        question_vectors = self.vectors.word_vectors(lowered_words)
        note_vectors = table[used_rows]
        cosines = question_vectors @ note_vectors.T
        similarities = np.maximum(cosines, 0.0)

        # The similarity to a line is that to its most similar word.
        by_word = similarities[:, column_of_row[rows]]
        first_words = np.cumsum(line_lengths) - line_lengths
        by_line = np.maximum.reduceat(by_word, first_words, axis=1)
        first_lines = np.cumsum(passage_lengths) - passage_lengths
        return _LineSimilarities(by_line, first_lines, passage_counts)

    def _read(self, notes: Sequence[Passages]) -> list[list[_PassageWords]]:
        """Return for each note the words of its passages, without passages that have none.

        The caller must hold the lock.
        """
        self._add_passages(notes)

        # Used passages move to the end of the cache; those at its beginning are removed first.
        cache = self._words_of_passages
        keys_of_notes = [note.passage_keys() for note in notes]
        unique_keys = dict.fromkeys(chain.from_iterable(keys_of_notes))
        used = {key: cache.pop(key) for key in unique_keys}
        cache |= used
        excess = len(cache) - _MAX_CACHED_PASSAGES
        oldest_keys = list(islice(cache, max(0, excess)))
        for key in oldest_keys:
            del cache[key]

        words_of_notes: list[list[_PassageWords]] = []
        for keys in keys_of_notes:
            passages = [used[key] for key in keys]
            words_of_notes.append([passage for passage in passages if len(passage.words)])
        return words_of_notes

    def _add_passages(self, notes: Iterable[Passages]) -> None:
        """Add the passages of notes to the cache. Reads a note only if one of them is missing."""
        cache = self._words_of_passages
        missing_keys: list[_PassageKey] = []
        tokens: list[str] = []
        for note in notes:
            keys = [key for key in note.passage_keys() if key not in cache]
            if not keys:
                continue

            text = note.read()
            missing_keys += keys
            for _, (start, stop) in keys:
                tokens += _tokens_of(text[start:stop])
                tokens.append(_PASSAGE_END)

        # All passages are converted together: a passage has few words, so calls of numpy for each
        # would cost more than the work in them.
        if missing_keys:
            self._add_vectors(tokens)
            passages = self._passages_of(tokens)
            cache.update(zip(missing_keys, passages, strict=True))

    def _passages_of(self, tokens: Iterable[str]) -> Iterator[_PassageWords]:
        """Yield the words of each passage as rows of the table.

        `tokens` are those of many passages, each with `_PASSAGE_END` after it. Their words must be
        in the table.
        """
        import numpy as np

        row_of_token = map(self._row_of.__getitem__, tokens)
        rows = np.array(list(row_of_token), np.int32)
        is_word = rows >= 0
        words = rows[is_word]

        # The number of the line and of the passage of each token: how many ends come before it.
        is_passage_end = rows == _ROW_OF_MARK[_PASSAGE_END]
        is_line_end = (rows < 0) & (rows != _ROW_OF_STOP_WORD)
        passage_of_token = np.cumsum(is_passage_end)
        line_of_token = np.cumsum(is_line_end)

        # A line begins where the line number of a word differs from that of the word before.
        line_of_word = line_of_token[is_word]
        first_words = np.flatnonzero(np.diff(line_of_word, prepend=-1))
        line_lengths = np.diff(first_words, append=len(words)).astype(np.int32)

        # The words of passage n are those from word_bounds[n] to word_bounds[n + 1].
        passage_of_word = passage_of_token[is_word]
        passage_of_line = passage_of_word[first_words]
        passage_count = int(passage_of_token[-1])
        numbers = np.arange(passage_count + 1)
        word_bounds = np.searchsorted(passage_of_word, numbers).tolist()
        line_bounds = np.searchsorted(passage_of_line, numbers).tolist()
        for word_span, line_span in zip(pairwise(word_bounds), pairwise(line_bounds), strict=True):
            # Copies, so that no passage keeps the others in memory.
            yield _PassageWords(
                words=words[slice(*word_span)].copy(),
                line_lengths=line_lengths[slice(*line_span)].copy(),
            )

    def _add_vectors(self, words: Iterable[str]) -> None:
        """Add the vectors of those words to the table that it does not have.

        The caller must hold the lock.
        """
        import numpy as np

        new_words = list(set(words).difference(self._row_of))
        if not new_words:
            return

        vectors = self.vectors.word_vectors(new_words)
        first = self._size
        self._size += len(new_words)
        self._row_of.update(zip(new_words, range(first, self._size), strict=True))

        while self._size > len(self._table):
            free_rows = np.empty_like(self._table)
            self._table = np.concatenate([self._table, free_rows])
        self._table[first : self._size] = vectors


def _tokens_of(text: str) -> list[str]:
    """Return the words of a passage in small letters, with a mark at each line end.

    Only the first 4,000 characters of each line are read.
    """
    if text.isascii() and len(text) <= _MAX_CHARACTERS:
        return _find_words_and_line_ends(text.lower())

    tokens: list[str] = []
    for line in text.split("\n"):
        lowered = line[:_MAX_CHARACTERS].lower()
        tokens += words_in_order(lowered)
        tokens.append(_LINE_END)
    return tokens


def _best_of_notes(values: Sequence[float], passage_counts: Sequence[int]) -> list[float]:
    """Return the greatest value of each note's passages; 0 for a note without a passage."""
    best_values: list[float] = []
    first = 0
    for count in passage_counts:
        end = first + count
        best_value = max(values[first:end], default=0.0)
        best_values.append(best_value)
        first = end
    return best_values


# -- judgement

# The number of the best hits that are compared with a question: any of them may answer it.
JUDGED_HITS = 3

# Added to the number of characters of a text, so that an empty one has a logarithm.
_ADDED_LENGTH = 20

# Hits are loosely related to a question if they contain this share of it. Words count by their
# rarity and information, so a name or "get" alone is less.
_MIN_RELATED_SHARE = 0.25

# The greatest number of words that a notice names.
_MAX_NAMED_WORDS = 8

# A few similarities say little about their spread. So one more is assumed, whose distance from the
# mean is this share of the distance from the mean to 1.
_ASSUMED_DEVIATION = 0.1

# Added to the spread, also as a share of the distance from the mean to 1. Without it, if all notes
# are almost equally far from the question, a tiny difference would make one an outlier.
_ADDED_SPREAD = 0.04

# The mean similarity that is assumed in a vault of one note.
_ASSUMED_MEAN = 0.05

# A hit without a word of the question that is this many spreads more similar to it than the other
# notes are, answers it.
_CLEAR_Z_SCORE = 2.5

# A hit that contains only names of the question must have a word that is this similar to another
# word. Without this rule the note "Anna" would answer "When is Anna's birthday?".
_MIN_SIMILARITY_OF_OTHERS = 0.15

# The bundled model gives short vectors to words that carry little meaning, such as "like" or "one".
# What a vector is longer than this length is the information of its word, but at least the minimum.
_UNINFORMATIVE_LENGTH = 4.0
_MIN_INFORMATION = 0.5


@dataclass(frozen=True)
class Evidence:
    """What the best hits of a search have in common with its question."""

    # The greatest share of the question that one of these hits covers.
    coverage: float

    # The share of the names in the question that the best hit lacks.
    missing_names: float

    # The number of informative words of the question.
    word_count: int

    # The mean number of characters of these hits.
    text_length: float

    # The lead over the sixth hit of the ranking, from `rank.lead_of`.
    lead: float

    # The greatest cosine of the question and one of these hits; 0 without vectors.
    similarity: float = 0.0


@dataclass(frozen=True)
class Weights:
    """What each figure of `Evidence` adds to the confidence, and what their sum must reach.

    `word_count` and `text_length` are weights of logarithms. No note covers the whole of a long
    question, and a long text covers more of any question by chance.
    """

    coverage: float
    word_count: float
    minimum: float
    missing_names: float = 0.0
    text_length: float = 0.0
    lead: float = 0.0
    similarity: float = 0.0


# Evidence must suffice by each of the weights for its kind.

# For English questions and the bundled vectors. The first weights were chosen by hand for small
# vaults, where the lead of a hit says little; for hits that contain only names,
# `is_about_names_only` stands for them. `bench/calibrate.py` prints the second ones, which are
# fitted to all vaults.
ENGLISH_WEIGHTS = (
    Weights(coverage=7.25, word_count=1.53, similarity=4.61, minimum=5.55),
    Weights(
        coverage=3.56,
        word_count=1.63,
        missing_names=-1.56,
        text_length=-0.35,
        lead=13.44,
        similarity=7.04,
        minimum=6.91,
    ),
)

# For questions that are not English, as `bench/calibrate.py` prints them. Few questions of this
# kind could be fitted, so they have few figures.
FOREIGN_WEIGHTS = (Weights(coverage=2.43, word_count=0.76, similarity=8.5, minimum=3.49),)

# Without vectors, and for words where another embedder is used.
WORD_WEIGHTS = (Weights(coverage=1.0, word_count=0.1, lead=1.5, minimum=0.86),)


def confidence(evidence: Evidence, all_weights: Iterable[Weights]) -> float:
    """Return the confidence that one of the best hits answers; below 0 none does.

    It is the least one by any of the weights.
    """
    return min(_confidence_by(weights, evidence) for weights in all_weights)


def _confidence_by(weights: Weights, evidence: Evidence) -> float:
    """Return the confidence in hits by one set of weights."""
    by_words = weights.coverage * evidence.coverage
    by_words += weights.missing_names * evidence.missing_names

    by_length = weights.word_count * log(max(evidence.word_count, 1))
    by_length += weights.text_length * log(evidence.text_length + _ADDED_LENGTH)

    by_meaning = weights.similarity * evidence.similarity
    by_rank = weights.lead * evidence.lead
    return by_words + by_length + by_meaning + by_rank - weights.minimum


def is_clear_by_meaning(z_score: float) -> bool:
    """Return whether a hit without a word of the question answers it, by its `z_score` alone."""
    return z_score >= _CLEAR_Z_SCORE


def is_about_names_only(similarity_of_others: float) -> bool:
    """Return whether a hit with names of the question has nothing similar to its other words.

    `similarity_of_others` is the greatest similarity of one of these.
    """
    return similarity_of_others < _MIN_SIMILARITY_OF_OTHERS


def z_score(similarity: float, other_similarities: Sequence[float]) -> float:
    """Return by how many spreads a note is more similar to a question than the other notes are.

    The deviations are relative to the distance from the mean to 1, so the scale of an embedder does
    not matter: with some, texts that have nothing in common have a cosine of 0.7. Without other
    notes, a mean of 0.05 is assumed.
    """
    mean = _ASSUMED_MEAN
    if other_similarities:
        mean = fmean(other_similarities)
    distance = max(1 - mean, 0.01)

    squares = sum((other - mean) ** 2 for other in other_similarities)
    squares += (_ASSUMED_DEVIATION * distance) ** 2
    count = len(other_similarities) + 1
    spread = sqrt(squares / count)

    added_spread = _ADDED_SPREAD * distance
    return (similarity - mean) / (spread + added_spread)


def informative_weights(
    rarity: Mapping[str, float],
    lengths: Iterable[float],
) -> dict[str, float]:
    """Weigh the words of a question by their rarity in the vault and the lengths of their vectors.

    `lengths` are those of the words of `rarity`, in its order. In a small vault every word is rare,
    "get" and "long" too: the lengths tell them from words with a meaning.
    """
    weights: dict[str, float] = {}
    for word, length in zip(rarity, lengths, strict=True):
        information = _MIN_INFORMATION
        if is_informative(word):
            information = max(length - _UNINFORMATIVE_LENGTH, _MIN_INFORMATION)
        weights[word] = rarity[word] * information
    return weights


def is_informative(word: str) -> bool:
    """Return whether a word can carry meaning. A single ASCII letter or digit does not."""
    return len(word) > 1 or not word.isascii()


def coverage_of(weights: Mapping[str, float], similarities: Sequence[float]) -> float:
    """Return the share of a question that a passage covers, from the similarity of each word.

    Similarities are squared: a word at half the similarity counts a quarter. The share is 0 without
    words.
    """
    total = sum(weights.values())
    if not total:
        return 0.0

    covered_weights: list[float] = []
    for weight, similarity in zip(weights.values(), similarities, strict=True):
        covered_share = similarity**2
        covered_weights.append(weight * covered_share)
    return sum(covered_weights) / total


@dataclass(frozen=True)
class Verdict:
    """Whether the hits answer a question.

    `notice` is a sentence above hits that do not, "" above hits that do. `missing` are then the
    words of the question that no hit contains.
    """

    only_nearest: bool = False
    notice: str = ""
    missing: tuple[str, ...] = ()


ANSWERED = Verdict()


def unanswered(
    weights: Mapping[str, float],
    absent: Collection[str],
    missing: Sequence[str],
) -> Verdict:
    """Return the verdict on hits that do not answer: they are loosely related, or nothing is found.

    `weights` are those of the words of the question. No note contains those that are `absent`, and
    no hit contains those that are `missing`.
    """
    if len(absent) == len(weights):
        return Verdict(only_nearest=True, notice=NO_WORD_FOUND, missing=tuple(missing))

    total = sum(weights.values())
    missing_weight = sum(weights[word] for word in missing)
    is_related = total - missing_weight >= _MIN_RELATED_SHARE * total
    notice = NOTHING_FOUND
    if is_related:
        notice = _notice_of_related(missing)
    return Verdict(only_nearest=True, notice=notice, missing=tuple(missing))


def _notice_of_related(missing: Sequence[str]) -> str:
    """Return the sentence above loosely related hits, with the words that none of them contains."""
    if not missing:
        return f"{LOOSELY_RELATED}; no hit contains all words."
    words = ", ".join(missing[:_MAX_NAMED_WORDS])
    return f"{LOOSELY_RELATED}; no hit contains: {words}."


def falling_scores(scores: Iterable[float]) -> list[float]:
    """Cap each score by the one above it, so that shown numbers never contradict the order.

    A hit keeps its own score unless a hit above it has a lower one. A score never depends on the
    hits below, so it is the same whatever the limit of a search.
    """
    return list(accumulate(scores, min))
