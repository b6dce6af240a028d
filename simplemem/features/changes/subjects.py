"""Read what an earlier fact is about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from simplemem.features.changes.languages import (
    LANGUAGES,
    SPEAKER,
    Language,
    Topic,
    Words,
    groups_of,
)

_MIN_PHONE_DIGITS: Final = 4


@dataclass(frozen=True)
class Naming:
    """The name and the value of what a fact is about, as one language reads its words."""

    name: Words  # of the thing: "alarm code"
    value: Words
    own_value: Words  # of the speaker only: the value without where, when and with whom
    provided: Words  # "insurance", if the value is the company that provides it; else no words


@dataclass(frozen=True)
class Subject:
    """What an earlier fact is about: its topics, and how each language names it."""

    topics: frozenset[Topic]  # empty if it is about none
    namings: Mapping[str, Naming]  # by the code of the language


@dataclass(frozen=True)
class _NamedValue:
    """The name and the value of a thing; no words for a name or a value that is not read."""

    name: Words
    value: Words


@lru_cache(maxsize=20_000)
def subject_of(statement: str, key: str = "", value: str = "") -> Subject:
    """Return what a fact is about, by its statement, and by its key and value if it has them.

    A key is the relation of a conversation's fact, in snake case, such as `home_address`. Key and
    value are "" for other facts. A statement in no known form has no topics and empty namings.
    """
    topics = set[Topic]()
    namings = dict[str, Naming]()
    for language in LANGUAGES:
        text = language.normalize(statement)
        topics.update(_topics_of_statement(language, text))
        topics.update(_topics_of_key(language, key))
        namings[language.code] = _read_naming(language, text, key, value)

    return Subject(frozenset(topics), namings)


def _topics_of_statement(language: Language, text: str) -> Iterator[Topic]:
    """Yield the topics that a statement is about, each with its owner."""
    for rule in language.topics:
        match = rule.fact.match(text)
        if match is None:
            continue
        owner = language.read_owner(groups_of(match).get("who", ""))
        if owner is not None:
            yield Topic(rule.name, owner)


def _topics_of_key(language: Language, key: str) -> Iterator[Topic]:
    """Yield the topics that a key names.

    "address" is about the home of the speaker, "sister address" about that of the sister.
    """
    words = language.words(key)
    for rule in language.topics:
        if words & rule.keys:
            yield Topic(rule.name, words - rule.keys)


def _read_naming(language: Language, text: str, key: str, value: str) -> Naming:
    """Return the name and the value of a fact: those of its key, else those in its statement.

    A phone whose value has at least 4 digits also has the name "number". `text` is the statement as
    `Language.normalize` returns it.
    """
    named_value = _NamedValue(language.words(key), language.words(value))
    if not key:
        named_value = _read_named_value(language, text) or named_value

    name = named_value.name
    digit_count = sum(character.isdigit() for character in value or text)
    if name & language.phones and digit_count >= _MIN_PHONE_DIGITS:
        name |= language.number
    return Naming(
        name=name,
        value=named_value.value,
        own_value=_read_own_value(language, text),
        provided=_read_provided(language, text, name),
    )


def _read_provided(language: Language, text: str, name: Words) -> Words:
    """Return what a company provides, if the value of a fact is the name of that company.

    `name` is the name in the fact, as in `Naming`. There are no words if the value is no company.
    """
    names_company = bool(name & language.providers)
    if names_company or language.patterns.at_a_provider.match(text):
        return name - language.providers
    return frozenset()


def _read_named_value(language: Language, text: str) -> _NamedValue | None:
    """Return the name and value in a statement of one of two forms, None if it has neither.

    The forms are "the alarm code is 4711", and "I live in Rome", which has a value only.
    """
    patterns = language.patterns
    equation = patterns.before_is.match(text)
    if equation is not None:
        groups = groups_of(equation)
        name = " ".join([groups.get("owner", ""), groups.get("of", ""), groups["what"]])
        return _NamedValue(language.words(name), language.words(groups["value"]))

    residence = patterns.lived_in.match(text)
    if residence is not None:
        place = patterns.value_end.sub("", groups_of(residence)["value"])
        return _NamedValue(frozenset(), language.words(place))
    return None


def _read_own_value(language: Language, text: str) -> Words:
    """Return the value of what the speaker is or has, without where, when and with whom.

    There are no words if the statement has no known form, or is about another person.
    """
    patterns = language.patterns
    for pattern in (patterns.other_value, patterns.before_is):
        match = pattern.match(text)
        if match is None:
            continue
        groups = groups_of(match)
        owner = language.read_owner(groups.get("who", ""))
        if owner == SPEAKER and "owner" not in groups:
            value = patterns.value_end.sub("", groups["value"])
            return language.words(value)

    return frozenset()
