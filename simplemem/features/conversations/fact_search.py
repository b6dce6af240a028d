"""Find the facts that a question asks for, and none if it asks for what nobody stated.

A fact is asked for by the words of its key. docs/decisions.md has the reasons for the rules. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence, Set
from datetime import datetime
from functools import lru_cache
from typing import Final, NamedTuple

from simplemem.features.conversations.patterns import SYNONYMS, WORDS
from simplemem.features.fact import Fact
from simplemem.features.facts.key_notes import stated_at
from simplemem.features.facts.stated import IN_EVERY_KEY
from simplemem.note.stems import stem
from simplemem.note.words import STOP_WORDS


class _Match(NamedTuple):
    """A fact that a question asks for, and how well the question names it."""

    fact: Fact
    overlap: float  # the share of the words of question and key that both have

    @property
    def rank(self) -> tuple[float, datetime, str]:
        """What matches are ordered by: the overlap, then the time of the statement."""
        return self.overlap, stated_at(self.fact), self.fact.path


class ParsedQuestion(NamedTuple):
    """The stems of a question: all of them, and those of each noun phrase."""

    stems: set[str]
    phrases: Sequence[frozenset[str]]


class _FactStems(NamedTuple):
    """The stems by which a question is compared with a fact."""

    key: frozenset[str]  # of the key, and of that part of the subject which the question has
    context: frozenset[str]  # of all that a question for the fact may have


def find_facts(question: str, facts: Sequence[Fact], labels: Mapping[str, str]) -> list[Fact]:
    """Return the facts that a question asks for, best first; [] if it asks for none of them.

    `labels` are those of the topics, by id: a question may name the topic in which a fact was
    stated. Of facts that are named equally well, the one that was stated last comes first.
    """
    parsed = parse_question(question)
    matches = []
    for fact in facts:
        if not _may_be_about_subject(parsed, fact):
            continue
        stems = _stems_of_fact(parsed, fact, labels.get(fact.block_id, ""))
        if _asks_for(parsed, stems):
            overlap = _overlap(parsed.stems, stems.key)
            matches.append(_Match(fact, overlap))

    matches.sort(key=lambda match: match.rank, reverse=True)
    return [match.fact for match in matches]


def _may_be_about_subject(question: ParsedQuestion, fact: Fact) -> bool:
    """Return whether a question names the subject of a fact. A fact of the user needs no naming."""
    if not _subject_of(fact):
        return True
    return not question.stems.isdisjoint(subject_stems(fact))


def _stems_of_fact(question: ParsedQuestion, fact: Fact, label: str) -> _FactStems:
    """Return the stems by which a question is compared with a fact.

    `label` is that of the topic in which the fact was stated.
    """
    subject = subject_stems(fact)
    key = key_stems(fact) | (subject & question.stems)
    context = key | subject | _stems(fact.statement) | _stems(label)
    return _FactStems(key, context)


def parse_question(question: str) -> ParsedQuestion:
    """Return the stems of a question, without words such as "remind" and "tell"."""
    texts = _PHRASE_END.split(question.lower())
    phrases = [_stems(text) - _QUESTION_STEMS for text in texts]
    stems = set[str]().union(*phrases)
    return ParsedQuestion(stems, phrases)


def key_stems(fact: Fact) -> frozenset[str]:
    """Return the stems of the words of a fact's key."""
    return _stems(fact.key.replace("_", " "))


def subject_stems(fact: Fact) -> frozenset[str]:
    """Return the stems of whom or what a fact is about; none for a fact of the user."""
    return _stems(_subject_of(fact))


def naming_stems(fact: Fact) -> frozenset[str]:
    """Return the stems of all that a fact names: its subject, its key and its value."""
    return subject_stems(fact) | key_stems(fact) | _stems(fact.value)


def _subject_of(fact: Fact) -> str:
    """Return whom or what a fact is about, "" for the user."""
    return fact.slot.subject if fact.slot is not None else ""


def names_part_of(question: ParsedQuestion, fact: Fact) -> bool:
    """Return whether a question names a fact: its key, its subject or its value.

    That does not mean that it asks for the fact. Words that many keys have, such as "number", name
    nothing.
    """
    key = key_stems(fact) - _GENERIC_STEMS
    value = _stems(fact.value) - _GENERIC_STEMS
    subject = subject_stems(fact)
    if not subject:
        return _has_all(question, key) or _has_all(question, value)
    if question.stems.isdisjoint(subject):
        return False
    return _has_all(question, subject) or _has_all(question, key)


def _has_all(question: ParsedQuestion, stems: Set[str]) -> bool:
    """Return whether a question has all of some stems. It has none of no stems."""
    return bool(stems) and stems <= question.stems


def asks_for_rest(question: ParsedQuestion, fact: Fact, stems_on_way: Collection[str]) -> bool:
    """Return whether a question asks for a fact whose subject it describes in other words.

    `stems_on_way` are the stems of the way to the fact. Of the others in its key, the question must
    have one, and all that are special.
    """
    rest = key_stems(fact).difference(stems_on_way)
    if _asks_for_other_kind(question, rest) or question.stems.isdisjoint(rest):
        return False
    special = rest - _GENERIC_STEMS
    return special <= question.stems


def _asks_for_other_kind(question: ParsedQuestion, key: Set[str]) -> bool:
    """Return whether a question asks for a kind of thing that is not in the stems of a key.

    An address does not answer the question for a phone number.
    """
    kinds = question.stems & _KIND_STEMS
    return bool(kinds) and kinds.isdisjoint(key)


def _overlap(stems: set[str], key: Set[str]) -> float:
    """Return the share of all stems of a question and a key that both have, 0 to 1.

    One of the two must have stems.
    """
    shared = stems & key
    both = stems | key
    return len(shared) / len(both)


def _asks_for(question: ParsedQuestion, fact: _FactStems) -> bool:
    """Return whether a question asks for the fact with some stems."""
    special = fact.key - _OMISSIBLE_STEMS
    names_fact = not question.stems.isdisjoint(fact.key) and special <= question.stems
    if not names_fact or _asks_for_other_kind(question, fact.key):
        return False

    specific = question.stems - _OMISSIBLE_STEMS
    foreign = specific - fact.context
    max_foreign = 0  # the key says only "number" or the like, so all other words have to fit
    if special:
        max_foreign = len(specific) // 2
    if len(foreign) > max_foreign:
        return False

    # "my brother's phone number" does not ask for the phone number of someone else.
    for phrase in question.phrases:
        names_key = not phrase.isdisjoint(fact.key)
        names_other = not phrase.isdisjoint(foreign)
        if names_key and names_other:
            return False
    return True


@lru_cache(maxsize=5_000)
def _stems(text: str) -> frozenset[str]:
    """Return the stems of the words of a text, without stop words.

    Words that mean the same, such as "phone" and "mobile", have one stem.
    """
    stems = set()
    for word in re.findall(r"(?<!['’])\b[\w-]+", text.lower()):
        if word not in STOP_WORDS:
            replacement = SYNONYMS.get(word, word)
            stems.add(stem(replacement, ""))
    return frozenset(stems)


_GENERIC_WORDS: Final = WORDS["generic"]
_GENERIC_STEMS: Final = _stems(" ".join(_GENERIC_WORDS))
# Stems of a key that a question for the fact may leave out. A question for a credential has to say
# so, because the door code does not answer "Which door is open?".
_OMISSIBLE_STEMS: Final = _GENERIC_WORDS - {"credential", "private"}
_QUESTION_STEMS: Final = _stems(" ".join(WORDS["asking"]))
_KIND_STEMS: Final = _stems(" ".join(WORDS["kind"]))
_SEPARATORS: Final = "|".join(STOP_WORDS - IN_EVERY_KEY)
# The end of a noun with everything that belongs to it.
_PHRASE_END: Final = re.compile(rf"[^\w\s'’-]+|\b(?:{_SEPARATORS})\b")
