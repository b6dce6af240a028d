"""Read by rules which slot a question asks for, and how well a statement fills it. Pure."""

from __future__ import annotations

from functools import lru_cache

from simplemem.features.facts.language import LANGUAGES, language_of, plain_text
from simplemem.features.facts.reading import Reading, read_statement


@lru_cache(maxsize=100)
def relations_asked_for(question: str) -> frozenset[str]:
    """Return the first words of the relations that a question may ask for, in any language.

    It is empty if the question has no known form.
    """
    plain = plain_text(question).strip("?¿ ")
    first_words = set[str]()
    for language in LANGUAGES:
        for form in language.forms:
            match = form.question.search(plain)
            if match is None:
                continue
            noun = match.groupdict().get("noun", "")
            relation = form.relation.replace("{noun}", noun)
            first_words.add(_first_word(relation))
    return frozenset(first_words)


def _first_word(relation: str) -> str:
    """Return the first word of a relation, without the "/about" behind it, in British spelling."""
    words = relation.partition("/")[0].split(" ")
    return words[0].replace("favorite", "favourite")


def fit_to_question(question: str, reading: Reading) -> float:
    """Return how well a statement fills the slot that a question asks for: 0, or from 0.5 to 1.

    `reading` is what the rules read in the statement. The result is 0 if the statement has no slot,
    denies it, has another relation, or is about a subject that the question does not name. It is 1
    if the question has all words of the relation.
    """
    slot = reading.slot
    if slot is None or not reading.is_affirmed:
        return 0.0
    if _first_word(slot.relation) not in relations_asked_for(question):
        return 0.0

    language = language_of(plain_text(question))
    words_of_question = read_statement(question).words
    words_of_subject = set(language.stems_of(slot.subject.lower()))
    if not words_of_subject.issubset(words_of_question):
        return 0.0

    words_of_relation = set(language.stems_of(slot.relation.lower()))
    common_words = words_of_relation.intersection(words_of_question)
    return 0.5 + 0.5 * len(common_words) / max(1, len(words_of_relation))
