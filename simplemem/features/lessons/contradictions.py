"""Contradictions between entries: two values for a subject, a statement and its denial, near duplicates.

Sentences are compared by rules and entries by the vectors of the index. No model is asked.
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
from simplemem.features.lessons.entry import KnowledgeEntry, plain_text
from simplemem.note.sentences import Sentence, contradicts, sentences
from simplemem.note.words import STOP_WORDS, words_in_order

Data = dict[str, Any]
Pair = tuple[int, int]
"""The positions of two entries."""
# A form that is filled in again and again has more sentences than this. It contradicts nothing.
_MAX_ALIKE: Final = 40
_ROUNDING: Final = 1e-9


class Contradiction(NamedTuple):
    """Two entries that disagree, as data, and the verdict: winner, loser and reason.

    The rule in the data is *slot*, one subject with two values; *polarity*, the same words affirmed
    and denied; or *duplicate?*, similar entries with different confidence.
    """

    data: Data
    verdict: tuple[KnowledgeEntry, KnowledgeEntry, str] | None


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Two entries by position, what each of them says, the rule, and the words of the subject."""

    rule: str
    ends: Pair
    one_says: str
    other_says: str
    about: str = ""


class _Group(NamedTuple):
    """Statements with the same words in their frame, or in the subject and condition of their claim."""

    kind: Literal["frame", "subject"]
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Statement:
    """A sentence of an entry, by the entry's position, and its claim."""

    position: int
    sentence: Sentence
    claim: Claim


def find_disagreements(entries: Sequence[KnowledgeEntry]) -> Iterator[Disagreement]:
    """Yield the pairs of sentences that give a subject two values, or that deny each other."""
    # The name of a note tells two subjects apart. An entry is named after what it says.
    names = ["" if entry.is_own else entry.name for entry in entries]

    for group, statements in _group_statements(entries).items():
        about = " ".join(filter(None, group.words))
        for one, other in _pairs(statements):
            if group.kind == "frame":
                rule = _compare_in_frame(one, other, names)
            else:
                rule = "slot" if one.claim.disagrees(other.claim) else ""
            if rule:
                ends = (one.position, other.position)
                yield Disagreement(rule, ends, one.sentence.text, other.sentence.text, about)


def find_duplicates(
    entries: Sequence[KnowledgeEntry], near: Iterable[Pair], min_delta: float
) -> Iterator[Disagreement]:
    """Yield the near pairs of which one says all that the other says, with another confidence."""
    for ends in near:
        one, other = (entries[end] for end in ends)
        if one.confidence is None or other.confidence is None:
            continue
        delta = abs(one.confidence - other.confidence)
        if delta >= min_delta - _ROUNDING and _is_part(one.text, other.text):
            yield Disagreement("duplicate?", ends, _with_confidence(one), _with_confidence(other))


def judge(
    one: KnowledgeEntry, other: KnowledgeEntry, is_by_hand: Callable[[KnowledgeEntry], bool]
) -> tuple[KnowledgeEntry, KnowledgeEntry, str] | None:
    """Return the winner, the loser and the reason; None if nothing decides.

    An entry wins that the user edited, else a verified one, a newer one, or one with a higher
    confidence, in this order.
    """
    criteria = (
        ("the user edited it", is_by_hand(one), is_by_hand(other)),
        ("it is verified", one.verified, other.verified),
        ("it is newer", _modified(one), _modified(other)),
        ("it has the higher confidence", one.confidence or 0.0, other.confidence or 0.0),
    )
    for reason, value, other_value in criteria:
        if value > other_value:  # type: ignore[operator]  # both are of one type
            return one, other, reason
        if value != other_value:
            return other, one, reason
    return None


def _group_statements(
    entries: Sequence[KnowledgeEntry],
) -> dict[_Group, list[_Statement]]:
    """Return the sentences of all entries by frame, and those with a claim also by its subject."""
    groups: dict[_Group, list[_Statement]] = defaultdict(list)
    for position, entry in enumerate(entries):
        for sentence in sentences(plain_text(entry.text)):
            claim = read_claim(sentence)
            frame = without_emphasis(sentence.frame)
            statement = _Statement(position, replace(sentence, frame=frame), claim)

            groups[_Group("frame", frame)].append(statement)
            if claim.is_comparable():
                subject = (*claim.subject, "", *claim.qualifier)
                groups[_Group("subject", subject)].append(statement)
    return groups


def _pairs(statements: Sequence[_Statement]) -> Iterator[tuple[_Statement, _Statement]]:
    """Yield the pairs of statements of two entries; none if too many statements are alike."""
    if len(statements) > _MAX_ALIKE:
        return
    for one, other in combinations(statements, 2):
        if one.position != other.position:
            yield one, other


def _compare_in_frame(one: _Statement, other: _Statement, names: Sequence[str]) -> str:
    """Return the rule by which two statements of one frame disagree; "" if they do not."""
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
    """Return whether one text has all words of the other, and the same numbers."""
    one_words = set(words_in_order(plain_text(one))) - STOP_WORDS
    other_words = set(words_in_order(plain_text(other))) - STOP_WORDS
    differing = "".join(one_words ^ other_words)
    if any(character.isdigit() for character in differing):
        return False
    return one_words <= other_words or other_words <= one_words


def _with_confidence(entry: KnowledgeEntry) -> str:
    return f"{entry.headline} (confidence {entry.confidence:g})"


def _modified(entry: KnowledgeEntry) -> str:
    """Return the time of the last change to the second, in a form that compares."""
    return entry.modified[:19].replace(" ", "T")
