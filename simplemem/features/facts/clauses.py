"""Split a sentence that states several facts: "I'm Ana, I live in Rome and work at Fiat". Pure."""

from __future__ import annotations

from simplemem.features.facts.language import MAX_READ, Language, language_of, plain_text
from simplemem.features.facts.reading import read_statement


def clauses_of(sentence: str) -> list[str]:
    """Return the clauses of a sentence, each as a statement, if each of them states a fact.

    That is the value of a slot about the user, or his or her name. Return the whole sentence in a
    list if it cannot be divided so. "I live in Rome and Milan" is one statement.
    """
    if len(sentence) > MAX_READ or sentence.rstrip().endswith("?"):
        return [sentence]
    language = language_of(plain_text(sentence))
    parts = _parts_of(language, sentence)
    if len(parts) < 2:
        return [sentence]

    clauses = [_complete(language, part) for part in parts]
    if all(_states_fact(language, clause) for clause in clauses):
        return clauses
    return [sentence]


def _parts_of(language: Language, sentence: str) -> list[str]:
    """Return the parts of a sentence between its commas and conjunctions."""
    parts = language.patterns["clause_end"].split(sentence.strip().rstrip(".! "))
    return [part.strip() for part in parts if part.strip()]


def _complete(language: Language, part: str) -> str:
    """Return a part of a sentence with a subject: "I work at Fiat" for "work at Fiat"."""
    subject = language.sources["carried_subject"]
    if subject and language.patterns["clause_verb"].match(part.lower()):
        return f"{subject} {part}"
    return f"{part[0].upper()}{part[1:]}"


def _states_fact(language: Language, clause: str) -> bool:
    """Return whether a clause states the name of the user, or the value of a slot about them."""
    if language.patterns["own_name"].search(clause):
        return True
    if not language.patterns["clause_subject"].match(plain_text(clause)):
        return False
    return read_statement(clause).slot is not None
