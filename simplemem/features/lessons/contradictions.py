"""Contradictions between lessons.

A contradiction is two values for a subject, a statement and its denial, or a near duplicate.
Sentences are compared by rules and lessons by the vectors of the index. No model is used.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Final, Literal, NamedTuple

from simplemem.features.lessons.claims import (
    Claim,
    are_about_same,
    read_claim,
    without_emphasis,
)
from simplemem.features.lessons.lesson import Lesson, plain_text
from simplemem.note.sentences import Sentence, contradicts, sentences
from simplemem.note.words import STOP_WORDS, words_in_order

Data = dict[str, Any]
"""Fields of an answer, as clients know them. The function that makes them names the fields."""

Pair = tuple[int, int]
"""The positions of two lessons in a list."""

# A form that is filled in again and again has more sentences than this. It contradicts nothing.
_MAX_ALIKE: Final = 40
_ROUNDING: Final = 1e-9


class Verdict(NamedTuple):
    """Which of two lessons holds, which does not, and why."""

    winner: Lesson
    loser: Lesson
    reason: str


class Contradiction(NamedTuple):
    """Two lessons that disagree, and the verdict; None if nothing decides.

    The fields of `data` are the `rule`, the labels of the lessons as `one` and `other`, each with
    the sentence that it `said` and its `confidence`, what they are `about`, and their `similarity`.
    With a verdict they are also the id of the `winner`, and `why` it wins.
    """

    data: Data
    verdict: Verdict | None

    @property
    def rule(self) -> str:
        """The name of the rule that found it.

        *slot* is one subject with two values, *polarity* the same words affirmed and denied,
        *duplicate?* two similar lessons with different confidence, and *confirmed* two lessons of
        which an agent, a model or a person said that they contradict each other.
        """
        rule: str = self.data["rule"]
        return rule


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Two sentences of two lessons that disagree."""

    rule: str  # as in `Contradiction`
    pair: Pair
    one_sentence: str
    other_sentence: str
    subject: str = ""  # the words that both sentences are about; "" for near duplicates


class _Group(NamedTuple):
    """What some statements share: a frame (see `Sentence`), or a claim's subject and condition.

    In the words of the latter, "" separates the two.
    """

    kind: Literal["frame", "subject"]
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Statement:
    """A sentence of a lesson, and what it claims."""

    position: int  # of the lesson
    sentence: Sentence  # its frame has no words that only stress or address
    claim: Claim


def find_disagreements(lessons: Sequence[Lesson]) -> Iterator[Disagreement]:
    """Yield the pairs of sentences that give a subject two values, or that deny each other.

    Both sentences are never of one lesson. Two lessons may occur in several pairs.
    """
    # The name of a note tells two subjects apart. A lesson is named after what it says.
    names = ["" if lesson.is_own else lesson.name for lesson in lessons]

    for group, statements in _group_statements(lessons).items():
        subject = " ".join(word for word in group.words if word)
        for one, other in _pair_statements(statements):
            rule = _find_rule(group, one, other, names)
            if rule:
                yield Disagreement(
                    rule,
                    (one.position, other.position),
                    one.sentence.text,
                    other.sentence.text,
                    subject,
                )


def find_duplicates(
    lessons: Sequence[Lesson], similar_pairs: Iterable[Pair], min_delta: float
) -> Iterator[Disagreement]:
    """Yield the similar pairs of which one says all of the other, if their confidence differs.

    `min_delta` is the smallest difference of the confidences. Lessons without a confidence are left
    out. The sentences are the headlines with the confidences.
    """
    for pair in similar_pairs:
        one = lessons[pair[0]]
        other = lessons[pair[1]]
        if one.confidence is None or other.confidence is None:
            continue
        delta = abs(one.confidence - other.confidence)
        if delta >= min_delta - _ROUNDING and _is_part(one.text, other.text):
            yield Disagreement("duplicate?", pair, _with_confidence(one), _with_confidence(other))


def judge(one: Lesson, other: Lesson, is_by_hand: Callable[[Lesson], bool]) -> Verdict | None:
    """Return which of two lessons holds; None if nothing decides.

    A lesson wins that the user edited (`is_by_hand`), else a verified one, a newer one, or one with
    a higher confidence, in this order.
    """
    criteria = (
        ("the user edited it", is_by_hand(one), is_by_hand(other)),
        ("it is verified", one.verified, other.verified),
        ("it is newer", _modified(one), _modified(other)),
        ("it has the higher confidence", one.confidence or 0.0, other.confidence or 0.0),
    )
    for reason, value, other_value in criteria:
        if value > other_value:  # type: ignore[operator]  # both are of one type
            return Verdict(one, other, reason)
        if value != other_value:
            return Verdict(other, one, reason)
    return None


def _group_statements(lessons: Sequence[Lesson]) -> dict[_Group, list[_Statement]]:
    """Return the sentences of all lessons by their frames.

    Those with a claim are also returned by its subject and condition.
    """
    groups: dict[_Group, list[_Statement]] = defaultdict(list)
    for position, lesson in enumerate(lessons):
        text = plain_text(lesson.text)
        for sentence in sentences(text):
            claim = read_claim(sentence)
            frame = without_emphasis(sentence.frame)
            statement = _Statement(position, replace(sentence, frame=frame), claim)

            groups[_Group("frame", frame)].append(statement)
            if claim.is_comparable():
                subject = (*claim.subject, "", *claim.qualifier)
                groups[_Group("subject", subject)].append(statement)
    return groups


def _pair_statements(statements: Sequence[_Statement]) -> Iterator[tuple[_Statement, _Statement]]:
    """Yield each pair of statements that are of two different lessons.

    Yields none if there are more than 40 statements: so many similar ones are a template.
    """
    if len(statements) > _MAX_ALIKE:
        return
    for one, other in combinations(statements, 2):
        if one.position != other.position:
            yield one, other


def _find_rule(group: _Group, one: _Statement, other: _Statement, names: Sequence[str]) -> str:
    """Return the rule by which two statements of a group disagree; "" if they do not.

    `names` is as in `_compare_in_frame`.
    """
    if group.kind == "frame":
        return _compare_in_frame(one, other, names)
    if one.claim.disagrees(other.claim):
        return "slot"
    return ""


def _compare_in_frame(one: _Statement, other: _Statement, names: Sequence[str]) -> str:
    """Return the rule by which two statements of one frame disagree; "" if they do not.

    The rule is "slot" or "polarity". `names` has, by position, the names of the notes that are no
    lessons: a value that is in the name of its note does not count.
    """
    name = names[one.position]
    other_name = names[other.position]
    if not contradicts(one.sentence, other.sentence, name, other_name):
        return ""
    if not are_about_same(one.sentence, other.sentence):
        return ""
    if one.sentence.values == other.sentence.values:
        return "polarity"
    return "slot"


def _is_part(one: str, other: str) -> bool:
    """Return whether one of two texts has all words of the other, and both the same numbers."""
    one_words = set(words_in_order(plain_text(one))) - STOP_WORDS
    other_words = set(words_in_order(plain_text(other))) - STOP_WORDS
    differing = "".join(one_words ^ other_words)
    if any(character.isdigit() for character in differing):
        return False
    return one_words <= other_words or other_words <= one_words


def _with_confidence(lesson: Lesson) -> str:
    """Return the headline of a lesson with its confidence, which it must have."""
    return f"{lesson.headline} (confidence {lesson.confidence:g})"


def _modified(lesson: Lesson) -> str:
    """Return the time of the last change to the second, in a form that compares."""
    return lesson.modified[:19].replace(" ", "T")
