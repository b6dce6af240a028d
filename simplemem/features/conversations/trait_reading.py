"""Read by rules what a message says about the user: a name, constraints, preferences, languages.

The patterns are in `trait_rules.py`. The questions about one statement are here too: how strict it
is, whose it is, and what a preference is about. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from simplemem.features.conversations.patterns import WORDS
from simplemem.features.conversations.trait_rules import (
    TraitLanguage,
    english,
    languages_of_message,
    trait_languages,
)
from simplemem.features.facts.reader import read_text
from simplemem.note.words import STOP_WORDS

_NOT_NAMES: Final = WORDS["no_name"]
_MAX_STATEMENT: Final = 300  # characters of a sentence that becomes a bullet
_NOT_IN_BULLET: Final = re.compile(r"%%+|\[\[|\]\]|\A[-*+>#\s]+")
_OUTER_PUNCTUATION: Final = " ,;:–-"
_ARTICLE_OR_ANY_MORE: Final = re.compile(r"\Aan? | any ?more\Z")
_PREFERRED_TO: Final = re.compile(r" (?:to|over|than|for|when|with) ")
_WORD: Final = re.compile(r"[^\W_][\w'’-]*")


class Trait(NamedTuple):
    """Something that a message says about the user."""

    section: str  # of the profile's note; or "name", or "gone" for what is no longer so
    statement: str


def read_traits(message: str) -> list[Trait]:
    """Return what a message says about the user or orders of the assistant, each trait once.

    Moods, plans, questions, suppositions and what it says of other people are left out.
    """
    languages = languages_of_message(message)
    reading = read_text(message)
    stated = frozenset(reading.stated)

    traits = dict[Trait, None]()  # a dict, because it keeps the order
    for sentence in reading.sentences:
        sentence_traits = list[Trait]()
        if sentence in stated:
            sentence_traits = _read_worded(sentence, english())
        if not sentence_traits:
            sentence_traits = _read_in_languages(sentence, languages)
        for trait in sentence_traits:
            traits[trait] = None
    return list(traits)


def _read_in_languages(sentence: str, languages: Iterable[TraitLanguage]) -> list[Trait]:
    """Return the traits of a sentence by the first language whose rules read one; [] if none do."""
    for language in languages:
        traits = _read_in_language(sentence, language)
        if traits:
            return traits
    return []


def _read_in_language(sentence: str, language: TraitLanguage) -> list[Trait]:
    """Return the traits of a sentence by the rules of one language of its message.

    A sentence without a fixed form is one trait as a whole if it has the signals of one.
    """
    plain = _with_plain_apostrophes(sentence)
    if language.states_no_rule(plain):
        return []

    # `read_traits` has tried the fixed forms of English.
    if language is not english():
        worded = _read_worded(sentence, language)
        if worded:
            return worded

    section = language.section_of(plain)
    statement = _as_bullet(sentence)
    if not section or not statement:
        return []
    return [Trait(section, statement)]


def _read_worded(sentence: str, language: TraitLanguage) -> list[Trait]:
    """Return the traits that a sentence states in a fixed form of a language."""
    plain = _with_plain_apostrophes(sentence)
    traits = []
    for rule in language.wording_rules:
        for match in rule.pattern.finditer(plain):
            trait = _make_trait(rule.section, match["says"])
            if trait is not None:
                traits.append(trait)
    return traits


def _make_trait(section: str, words: str) -> Trait | None:
    """Return the trait that the words of a match state.

    `section` is that of the rule which matched. Returns None if it is "name" and the words begin
    with one that is no name.
    """
    statement = " ".join(words.split())
    if section == "name":
        first_word = statement.split()[0]
        if first_word in _NOT_NAMES:
            return None
    return Trait(section, _ARTICLE_OR_ANY_MORE.sub("", statement))


def _as_bullet(sentence: str) -> str:
    """Return a sentence as the text of a bullet, without the marks that a bullet has behind it.

    Returns "" if it is too long for a bullet.
    """
    without_marks = _NOT_IN_BULLET.sub(" ", sentence)
    words = " ".join(without_marks.split())
    statement = words.strip(_OUTER_PUNCTUATION).rstrip(".")
    if len(statement) > _MAX_STATEMENT:
        return ""
    return statement


def _with_plain_apostrophes(sentence: str) -> str:
    """Return a sentence with the apostrophes that the patterns have. Offsets stay the same."""
    return sentence.replace("’", "'")


def severity_of(constraint: str) -> str:
    """Return "strict" if a constraint says "strictly", "allergic" or the like, else "firm"."""
    for language in trait_languages():
        if language.patterns["strict"].search(constraint):
            return "strict"
    return "firm"


def owner_of(statement: str) -> str:
    """Return whose a statement is, as "daughter" for "my daughter is allergic"; "" for the user.

    Several words are joined by hyphens.
    """
    for language in trait_languages():
        owner = language.owner_of(statement)
        if owner:
            return "-".join(owner.split())
    return ""


def noun_of(preference: str) -> str:
    """Return what a preference is about, in small letters: "tea" for "I prefer tea to coffee".

    That is the last word before "to" and the like that is no stop word; the whole statement if it
    has only stop words.
    """
    statement = preference.lower()
    preferred = _PREFERRED_TO.split(statement)[0]
    words: list[str] = _WORD.findall(preferred)
    for word in reversed(words):
        if word not in STOP_WORDS:
            return word
    return statement


def has_fixed_form(preference: str) -> bool:
    """Return whether a preference is in a fixed form, so that `noun_of` says what it is about."""
    plain = _with_plain_apostrophes(preference)
    for rule in english().wording_rules:
        if rule.section == "Preferences" and rule.pattern.search(plain):
            return True
    return False
