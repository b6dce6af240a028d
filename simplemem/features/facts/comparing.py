"""Find the current facts that a text is compared with, and apply the rules of statements to them.

The index is asked here, so that `reconciling` can be pure.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from simplemem.features.fact import Fact
from simplemem.features.facts.people import people_in
from simplemem.features.facts.reading import Reading, read_statement
from simplemem.features.facts.statement_rules import Verdict, apply_rules
from simplemem.features.facts.statements import statement_to_forget
from simplemem.store import ExtensionAPI

_MAX_COMPARED: Final = 200  # facts of a scope that are all compared with a new one
_MAX_SIMILAR: Final = 20  # facts that are similar by words, and as many by meaning
_MAX_FOR_MODEL: Final = 100  # facts that a model gets beside a text


class SimilarFact(NamedTuple):
    """A fact, and the cosine of its meaning with that of a text; 0 if only words are alike."""

    fact: Fact
    similarity: float


class Comparison(NamedTuple):
    """What the rules say that a text does to facts, and which of them are similar to it."""

    verdict: Verdict
    target: Fact | None = None  # the fact that the verdict is about; None if it is about none
    similar: Sequence[SimilarFact] = ()


def compare(extension: ExtensionAPI, text: str, facts: Collection[Fact]) -> Comparison:
    """Return what the rules say about a text among current facts, and which facts are similar.

    A text that asks to forget something has the event DELETE, with the fact that states it as the
    target, if there is one. Nothing is written. The index is brought up to date first, and an
    embedding service may be asked.
    """
    similar = _similar_facts(extension, text, facts)
    text_to_forget = statement_to_forget(text)
    reading = read_statement(text_to_forget or text)
    compared = _facts_to_compare(reading, facts, similar)

    statements = [fact.statement for fact in facts]
    people = people_in([text, *statements])
    current = [people.resolve(read_statement(fact.statement)) for fact in compared]
    verdict = apply_rules(people.resolve(reading), current)
    target = None
    if verdict.target_index is not None:
        target = compared[verdict.target_index]

    if text_to_forget:
        is_stated = verdict.event == "NOOP"
        verdict = Verdict("DELETE", rule="rule:forget")
        if not is_stated:
            target = None
    return Comparison(verdict, target, similar)


def _similar_facts(
    extension: ExtensionAPI,
    text: str,
    facts: Collection[Fact],
) -> list[SimilarFact]:
    """Return the facts that are most similar to a text by meaning, then those by words.

    There are up to 20 of each. The most similar ones come first, and each fact is returned once.
    """
    facts_by_path = {fact.path: fact for fact in facts}
    likeness = extension.likeness(text, facts_by_path, _MAX_SIMILAR)

    similar_facts = []
    for path in likeness.best_paths(_MAX_SIMILAR):
        similarity = likeness.meaning.get(path, 0.0)
        similar_facts.append(SimilarFact(facts_by_path[path], similarity))
    return similar_facts


def facts_for_model(extension: ExtensionAPI, text: str, facts: Collection[Fact]) -> list[Fact]:
    """Return those among `facts` that a model may get beside a text: those that are not private.

    Of more than 100, they are those nearest to the text, by its words and by the vectors of the
    configured embedder.
    """
    facts_by_path = {fact.path: fact for fact in facts}
    private_paths = extension.private_among(facts_by_path)
    paths = [path for path in facts_by_path if path not in private_paths]
    if len(paths) > _MAX_FOR_MODEL:
        likeness = extension.likeness(text, paths, _MAX_FOR_MODEL)
        # Half of them by meaning, and as many by words.
        paths = likeness.best_paths(_MAX_FOR_MODEL // 2)
    return [facts_by_path[path] for path in paths]


def _facts_to_compare(
    reading: Reading,
    facts: Collection[Fact],
    similar: Sequence[SimilarFact],
) -> list[Fact]:
    """Return the facts with which a new statement is compared: all if they are up to 200.

    Otherwise they are those of the same relation, the similar ones, and those that were added in
    the same step and are not indexed yet.
    """
    are_few = len(facts) <= _MAX_COMPARED
    compared_by_path: dict[str, Fact] = {}
    for fact in facts:
        is_just_written = not fact.sha256
        if are_few or is_just_written or _has_same_relation(fact, reading):
            compared_by_path[fact.path] = fact
    for fact, _ in similar:
        compared_by_path[fact.path] = fact
    return list(compared_by_path.values())


def _has_same_relation(fact: Fact, reading: Reading) -> bool:
    """Return whether a fact and a statement fill slots of the same relation."""
    if fact.slot is None or reading.slot is None:
        return False
    return fact.slot.relation == reading.slot.relation
