"""What sentences claim: the value that each gives to a subject, and whether two disagree."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from simplemem.note.sentences import Sentence
from simplemem.note.words import STOP_WORDS, words_in_order

# Words that only stress or address.
_EMPHASIS: Final = frozenset(
    "always should must shall please prefer we you i the a an not never no do does".split()
)
# Forms that leave little doubt: `use VALUE for PURPOSE`, `SUBJECT is set to STATED`, and
# `SUBJECT is STATED`.
_CLAIM: Final = re.compile(
    r"(?:we |you |always |please |should |must |decided to )*"
    r"(?:use|using|chose|prefer|adopt|go with|switch to) "
    r"(?P<value>.{1,60}?) (?P<purpose>(?:for|as|when|in) .{3,80})"
    r"|(?:the |our |its )?(?P<subject>.{2,80}?)"
    r" (?:set to|defaults? to|listens on|(?P<copula>is|=|must be|should be)) (?P<stated>.+)"
)
_REASON: Final = re.compile(r"[,;]?\s\b(?:because|since|so that|instead|rather)\b.*")
# A statement about staging, about Safari or about rain says nothing about anything else.
_QUALIFIER: Final = re.compile(
    r"[,;:(].*|\b(?:in|on|at|by|of|for|from|with|under|during|before|after|until|via|per|within"
    r"|while|when|where|which|if|unless|and|or|but)\s.*"
)
# Numbers that name something (versions, steps, tickets, dates) tell two facts apart. A number that
# measures follows one of the verbs of _MEASURES.
_NUMBERED: Final = frozenset(
    """version release build step ticket issue pr bug task sprint phase stage week day quarter
    chapter section page part line row rule item room floor model revision commit id error code adr
    rfc migration episode level round run""".split()
)
_MEASURES: Final = re.compile(
    r"\b(?:is|are|was|were|be|=|equals?|has|have|had|takes?|took|costs?|weighs?|weighed|lasts?"
    r"|lasted|needs?|needed|holds?|listens|(?:set|limited|raised|lowered|defaults?) to)"
    r"(?: (?:about|around|exactly|only|at|on|to|of|up|most|least|a|than|more|less))*\W*$"
)
_QUANTITY: Final = re.compile(
    r"(?!(?:19|20)\d\d\b)\d[\d ,_]*(?![\d.:/-]*\d)|\d+[.,]\d+(?=\s?[^\W\d])"
)
_NAMES_A_VALUE: Final = re.compile(r" (?:of|for|in) |['’]s |^(?:current|main|only) ")
_HAS_ONE_VALUE: Final = re.compile(r"(?:default|maximum|minimum|preferred) ")
_MAX_VALUE_WORDS: Final = 5


@dataclass(frozen=True, slots=True)
class Claim:
    """What a sentence claims: that a subject has a value, perhaps under a condition.

    A sentence that makes no claim of a known form has an empty subject and no value.
    """

    subject: tuple[str, ...] = ()  # its words without stop words, sorted
    value: frozenset[str] = frozenset()  # its words without stop words
    qualifier: tuple[str, ...] = ()  # the words of the condition

    def is_comparable(self) -> bool:
        """Return whether there is a subject and a value of at most five words."""
        return bool(self.subject) and 0 < len(self.value) <= _MAX_VALUE_WORDS

    def disagrees(self, other: Claim) -> bool:
        """Return whether at most half of the words of the shorter value are in both values."""
        shared = self.value & other.value
        shorter_length = min(len(self.value), len(other.value))
        return 2 * len(shared) <= shorter_length


def read_claim(sentence: Sentence) -> Claim:
    """Return what a sentence claims.

    A negation, a question or a sentence of another form gives an empty claim.
    """
    text = _without_marks_and_reason(sentence.text)
    if sentence.negated or text.endswith("?"):
        return Claim()
    match = _CLAIM.fullmatch(text.rstrip(".!… "))
    if match is None:
        return Claim()

    subject_text = match["purpose"] or match["subject"]
    subject = set(words_in_order(subject_text))

    # A condition may follow the value.
    stated_text = match["value"] or match["stated"]
    value_text = _QUALIFIER.sub("", stated_text)
    value_end = len(value_text)
    qualifier = words_in_order(stated_text[value_end:])

    value = set(words_in_order(value_text)) - STOP_WORDS
    if match["copula"] and not _states_value(subject_text, value, sentence):
        value = set()
    if _names_something(subject, value_text):
        value = set()

    subject_words = sorted(subject - STOP_WORDS - {"s"})
    return Claim(
        tuple(subject_words),
        frozenset(value),
        tuple(qualifier),
    )


def _names_something(subject: set[str], value_text: str) -> bool:
    """Return whether the number in a value is a name, such as that of a version."""
    if subject.isdisjoint(_NUMBERED):
        return False
    return any(character.isdigit() for character in value_text)


def _without_marks_and_reason(text: str) -> str:
    """Return a sentence in lower case, without marks of emphasis and code, and its reason.

    The reason is what follows "because" and similar words.
    """
    unmarked = text.replace("*", "").replace("`", "")
    one_line = " ".join(unmarked.split())
    return _REASON.sub("", one_line.lower())


def _states_value(subject_text: str, value: set[str], sentence: Sentence) -> bool:
    """Return whether what follows "is" is a value, such as a name, and no description.

    `value` has the words of it, and `subject_text` is what comes before "is".
    """
    if _HAS_ONE_VALUE.match(subject_text):
        return True
    if not _NAMES_A_VALUE.search(subject_text):
        return False
    return _is_named(value, sentence)


def _is_named(value: set[str], sentence: Sentence) -> bool:
    """Return whether each word of a value is a number or is capitalised in the sentence.

    `value` has the words in lower case. A value without words is named.
    """
    for word in value:
        is_capitalised = word not in sentence.text
        if not is_capitalised and not word.isdigit():
            return False
    return True


def without_emphasis(frame: Sequence[str]) -> tuple[str, ...]:
    """Return the words of a frame (see `Sentence`) without those that only stress or address."""
    return tuple(word for word in frame if word not in _EMPHASIS)


def are_about_same(one: Sentence, other: Sentence) -> bool:
    """Return whether two sentences of one frame are about the same thing.

    No small word differs (on, off), and a number differs only if it measures.
    """
    differing_words = set(one.words) ^ set(other.words)
    values = " ".join((*one.values, *other.values))
    ignored_words = _EMPHASIS.union(values.split())
    if not differing_words <= ignored_words:
        return False
    if one.values == other.values:
        return True
    return _measures(one) and _measures(other)


def _measures(sentence: Sentence) -> bool:
    """Return whether the only number of a sentence counts or measures, and does not name."""
    if len(sentence.values) != 1:
        return False
    if not _NUMBERED.isdisjoint(sentence.frame):
        return False

    text = sentence.text.lower()
    first_word = sentence.values[0].split()[0]
    start = text.find(first_word)
    text_before = text[:start]
    follows_verb = _MEASURES.search(text_before) is not None
    return follows_verb and _QUANTITY.match(text, start) is not None
