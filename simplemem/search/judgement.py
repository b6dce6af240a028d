"""The judgement of a search: whether its best hit answers the question, and the scores that are shown.

Pure: what is judged is handed in. docs/search.md describes the rules, bench/honesty.py prints their figures.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import log, sqrt
from statistics import fmean

from simplemem.memory import NO_WORD_HELD, NOTHING_FOUND

# The weights and floors are fitted to questions with and without the notes that answer them (bench/honesty.py).
_COVERED = 1.2  # of what the words of a passage cover, beside the nearness of its note
_STANDING_OUT = 0.15  # of how far a hit stands out from the other notes, beside the words it holds
_FAR = 4.0  # farther out tells no more
_AHEAD = 1.2  # of the lead in the ranking
_WORDS = 0.2  # of the logarithm of their number: no note holds the whole of a long question
_QUESTION = 0.12  # what a question needs more by our vectors: a statement names many things, not one
_FLOOR_OF_VECTORS = 1.29
_FLOOR_OF_WORDS = 0.88
_FLOOR_OF_BOTH = 1.15
_LEAST_ASKED = 0.2

# Of a hit that holds no word of the question. Sums of made-up words are near to some note by chance: with our vectors
# its words have to be near as well.
_LEAST_STANDING_OUT = 2.0
_COVERED_OUT = 4.0
_LEAST_OUT_AND_COVERED = 2.4

# Of a few notes, that one stands out tells little: one is counted among them that is as far from the middle as this.
_SPREAD_OF_CHANCE = 0.1
_LEAST_SPREAD = 0.04
_MIDDLE_OF_CHANCE = 0.05  # how near a note is that stands alone

_LEAST_TELLING = 4.0  # length of the vector of a word that tells nothing, as "like" or "one"


@dataclass(frozen=True)
class Evidence:
    """What speaks for the best hit being an answer, by our word vectors."""

    is_question: bool
    holds_word: bool  # the hit holds a word of the question, in any form
    holds_only_names: bool  # and what it holds of the question is nothing but names
    near: float  # cosine of the question and the hit
    standing_out: float  # how far that is above the other notes, from `standing_out`
    covered: float  # share of the question that its best passage covers, word by word
    ahead: float  # its lead in the ranking, from `rank.lead_of`
    asked: float  # how near its best passage is to the words that it does not hold


def sureness(words: int, evidence: Evidence) -> float:
    """Return how sure it is that the best hit answers a question of so many words; below 0 it does not."""
    if not evidence.holds_word:
        return evidence.standing_out + _COVERED_OUT * evidence.covered - _LEAST_OUT_AND_COVERED
    if evidence.holds_only_names and evidence.asked < _LEAST_ASKED:
        return evidence.asked - _LEAST_ASKED  # it is about Anna, but not about her birthday
    alike = evidence.near + _COVERED * evidence.covered
    needed = _FLOOR_OF_VECTORS + (_QUESTION if evidence.is_question else 0.0)
    return _sureness(words, alike, evidence.ahead) - needed


def sureness_by_words(words: int, share: float, ahead: float) -> float:
    """Return the same where there are no vectors, from the share of the question that the hit holds."""
    return _sureness(words, share, ahead) - _FLOOR_OF_WORDS


def sureness_by_both(words: int, share: float, ahead: float, standing_out: float) -> float:
    """Return the same by the vectors of any embedder, from the share of the question that the hit holds."""
    alike = share + _STANDING_OUT * min(standing_out, _FAR)
    return _sureness(words, alike, ahead) - _FLOOR_OF_BOTH


def sureness_by_meaning(standing_out: float) -> float:
    """Return the same by the vectors of any embedder, where the hit holds no word: it must stand out."""
    return standing_out - _LEAST_STANDING_OUT


def _sureness(words: int, alike: float, ahead: float) -> float:
    return alike + _AHEAD * ahead + _WORDS * log(max(words, 1))


def standing_out(near: float, others: Sequence[float]) -> float:
    """Return how many times their spread a note is nearer to a question than the other notes are.

    All is measured by what is left to 1, so that the scale of an embedder does not matter: with some, texts that
    have nothing in common have a cosine of 0.7.
    """
    middle = fmean(others) if others else _MIDDLE_OF_CHANCE
    left = max(1 - middle, 0.01)
    squares = sum((other - middle) ** 2 for other in others) + (_SPREAD_OF_CHANCE * left) ** 2
    spread = sqrt(squares / (len(others) + 1))
    return (near - middle) / (spread + _LEAST_SPREAD * left)


def telling(weights: Mapping[str, float], lengths: Iterable[float]) -> dict[str, float]:
    """Weigh the words of a question by how much they tell anywhere, and by how rare they are in the vault.

    In a small vault every word is rare, "get" and "long" too: the lengths of their vectors tell them apart.
    """
    told: dict[str, float] = {}
    for (word, weight), length in zip(weights.items(), lengths, strict=True):
        beyond = length - _LEAST_TELLING if is_telling(word) else 0.0
        told[word] = weight * max(beyond, 0.5)
    return told


def is_telling(word: str) -> bool:
    """Return whether a word may tell anything: a single letter does not, as the last of "Anna's"."""
    return len(word) > 1 or not word.isascii()


def covered_share(weights: Mapping[str, float], nearness: Sequence[float]) -> float:
    """Return the share of a question that a passage covers: a word that is half as near counts a quarter."""
    whole = sum(weights.values())
    covered = sum(weight * near**2 for weight, near in zip(weights.values(), nearness, strict=True))
    return covered / whole if whole else 0.0


def notice_of(only_nearest: bool, words: Sequence[str], absent: Sequence[str]) -> str:
    """Return the sentence that goes above hits which answer nothing, "" above hits that do.

    `absent` are those of the question's `words` that no note holds.
    """
    if not only_nearest:
        return ""
    return NO_WORD_HELD if len(absent) == len(words) else NOTHING_FOUND


def falling_scores(scores: Iterable[float]) -> list[float]:
    """Cap each score by the one above it, so that shown numbers never contradict the order.

    A hit keeps its own score unless a hit above it has a lower one. A score never depends on the hits below,
    so it is the same whatever the limit of a search.
    """
    return list(accumulate(scores, min))
