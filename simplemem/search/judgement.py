"""Decide whether the best hit of a search answers the question, and which scores are shown.

Pure: callers pass in what they measured. A confidence below 0 means that the hit does not answer;
the answer then carries a notice. docs/search.md describes the rules, and `bench/honesty.py` prints
how often they are right.

The weights and minimums are fitted to half of the questions of `bench/honesty.py`; `--held-out`
reports the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import log, sqrt
from statistics import fmean

from simplemem.models import NO_WORD_HELD, NOTHING_FOUND

# Beside 1 of coverage. A hit far ahead of the others is more likely an answer; the lead is 0.3 at
# most (`rank.lead_of`).
_SIMILARITY_WEIGHT = 1.5
_LEAD_WEIGHT = 1.5

# No note covers the whole of a long question, so the more words a question has, the less coverage
# it needs.
_WORD_COUNT_WEIGHT = 0.1

# What the weighted sum must reach with the bundled word vectors. Little changes from 1.3 to 1.4. A
# higher minimum puts the notice above more hits that answer, a lower one omits it above more hits
# that do not.
_MIN_BY_VECTORS = 1.34

# What it must reach where only words are compared, so that similarity is not known.
_MIN_BY_WORDS = 0.86

# A hit without a word of the question must be this many spreads more similar to it than the other
# notes are.
_MIN_Z_SCORE = 2.2

# A note that contains only a name of the question must be this similar to the rest of the question.
# Without this rule the note "Anna" would answer "When is Anna's birthday?", whatever it contains.
_MIN_MISSING_SIMILARITY = 0.2

# A few similarities say little about their spread: one more is counted, at this distance from their
# mean.
_ASSUMED_DEVIATION = 0.1

# The least spread. Without it, if all notes are almost equally far from the question, a tiny
# difference would make one an outlier.
_MIN_SPREAD = 0.04

# The mean similarity that is assumed in a vault of one note.
_ASSUMED_MEAN = 0.05

# The bundled model gives short vectors to words that carry little meaning, such as "like" or "one".
_UNINFORMATIVE_LENGTH = 4.0
_MIN_INFORMATION = 0.5


@dataclass(frozen=True)
class Evidence:
    """What a hit with a word of the question has in common with it, by the bundled vectors."""

    # Informative words of the question.
    word_count: int

    # The cosine of the question and the hit.
    similarity: float

    # The share of the question that the best passage of the hit covers, from `coverage_of`.
    coverage: float

    # The lead over the sixth hit of the ranking, from `rank.lead_of`.
    lead: float

    # If the hit contains only names of the question, its similarity to the other words; else None.
    missing_similarity: float | None


def confidence(evidence: Evidence) -> float:
    """Return the confidence in a hit with a word of the question, by the bundled word vectors."""
    missing_similarity = evidence.missing_similarity
    if missing_similarity is not None and missing_similarity < _MIN_MISSING_SIMILARITY:
        return missing_similarity - _MIN_MISSING_SIMILARITY

    match = evidence.coverage + _SIMILARITY_WEIGHT * evidence.similarity
    return match + _expectation(evidence.word_count, evidence.lead) - _MIN_BY_VECTORS


def confidence_by_words(word_count: int, coverage: float, lead: float) -> float:
    """Return the confidence in a hit by the share of the question's words that it contains."""
    return coverage + _expectation(word_count, lead) - _MIN_BY_WORDS


def confidence_by_meaning(z_score: float) -> float:
    """Return the confidence in a hit by its meaning alone, with any embedder."""
    return z_score - _MIN_Z_SCORE


def _expectation(word_count: int, lead: float) -> float:
    """Return what the lead of a hit and the length of the question add to the confidence."""
    return _LEAD_WEIGHT * lead + _WORD_COUNT_WEIGHT * log(max(word_count, 1))


def z_score(similarity: float, other_similarities: Sequence[float]) -> float:
    """Return by how many spreads a note is more similar to a question than the other notes are.

    Everything is measured as a share of the distance from the mean to 1, so the scale of an
    embedder does not matter: with some, texts that have nothing in common have a cosine of 0.7.
    """
    mean = _ASSUMED_MEAN
    if other_similarities:
        mean = fmean(other_similarities)
    distance = max(1 - mean, 0.01)

    squares = sum((other - mean) ** 2 for other in other_similarities)
    squares += (_ASSUMED_DEVIATION * distance) ** 2
    spread = sqrt(squares / (len(other_similarities) + 1))

    return (similarity - mean) / (spread + _MIN_SPREAD * distance)


def informative_weights(rarity: Mapping[str, float], lengths: Iterable[float]) -> dict[str, float]:
    """Weigh the words of a question by their rarity in the vault and the lengths of their vectors.

    In a small vault every word is rare, "get" and "long" too: the lengths tell them from words with
    a meaning.
    """
    weights: dict[str, float] = {}
    for word, length in zip(rarity, lengths, strict=True):
        information = _MIN_INFORMATION
        if is_informative(word):
            information = max(length - _UNINFORMATIVE_LENGTH, _MIN_INFORMATION)
        weights[word] = rarity[word] * information
    return weights


def is_informative(word: str) -> bool:
    """Return whether a word can carry meaning. A single letter, as in "Anna's", does not."""
    return len(word) > 1 or not word.isascii()


def coverage_of(weights: Mapping[str, float], similarities: Sequence[float]) -> float:
    """Return the share of a question that a passage covers, from the similarity of each word.

    Similarities are squared: a word at half the similarity counts a quarter.
    """
    total = sum(weights.values())
    if not total:
        return 0.0

    weighted_similarities = zip(weights.values(), similarities, strict=True)
    covered = sum(weight * similarity**2 for weight, similarity in weighted_similarities)
    return covered / total


def notice_of(only_nearest: bool, words: Sequence[str], absent: Sequence[str]) -> str:
    """Return the sentence above hits that answer nothing, "" above hits that answer.

    `absent` are those of the question's `words` that no note contains.
    """
    if not only_nearest:
        return ""
    if len(absent) == len(words):
        return NO_WORD_HELD
    return NOTHING_FOUND


def falling_scores(scores: Iterable[float]) -> list[float]:
    """Cap each score by the one above it, so that shown numbers never contradict the order.

    A hit keeps its own score unless a hit above it has a lower one. A score never depends on the
    hits below, so it is the same whatever the limit of a search.
    """
    return list(accumulate(scores, min))
