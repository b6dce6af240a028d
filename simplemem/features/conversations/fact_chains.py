"""Follow facts through the names in them: "my sister" is Ruth, and Ruth lives in Manchester.

A question may name something only by what is known of it ("the wifi at my sister's"). The facts
that answer it are reached from those that it names, in three steps at most. docs/conversations.md
has an example. Pure.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from simplemem.features.conversations.fact_search import (
    asks_for_rest,
    names_part_of,
    naming_stems,
    parse_question,
    subject_stems,
)
from simplemem.features.fact import Fact, normalize_name

_MAX_STEPS: Final = 3
_MAX_REACHED: Final = 200  # facts that are followed, so that a name in many facts costs little
_MAX_WORDS_OF_NAME: Final = 6  # a longer value is a sentence, not a name
_LETTERS: Final = re.compile(r"[^\W\d_]{2}")


@dataclass(frozen=True, eq=False)
class ReachedFact:
    """A fact, and the one that names what it is about."""

    fact: Fact
    previous: ReachedFact | None = None  # None for a fact that the question itself names

    @property
    def way(self) -> list[ReachedFact]:
        """The facts through which it was reached, the first one first, without itself."""
        steps = list[ReachedFact]()
        step = self.previous
        while step is not None:
            steps.append(step)
            step = step.previous
        steps.reverse()
        return steps


class _About(NamedTuple):
    """A fact, and the normalized words of its subject and key between spaces."""

    fact: Fact
    words: str


def follow_facts(question: str, facts: Sequence[Fact], found: Sequence[Fact]) -> list[ReachedFact]:
    """Return facts that a question asks for by way of others, each behind those others.

    `found` are the facts that it asks for directly; they come first, in their order. The rest are
    facts that can be reached, and of whose key the question has what the way to them lacks. Those
    that need fewer steps come first. Each fact is returned once.
    """
    parsed = parse_question(question)
    answers = {fact: ReachedFact(fact) for fact in found}
    start = list(answers.values())
    partly_named = [fact for fact in facts if names_part_of(parsed, fact)]
    start += [ReachedFact(fact) for fact in partly_named if fact not in answers]

    for reached in _reach(start, facts):
        if asks_for_rest(parsed, reached.fact, _stems_on_way(reached)):
            for step in [*reached.way, reached]:
                answers.setdefault(step.fact, step)
    return list(answers.values())


def _stems_on_way(reached: ReachedFact) -> set[str]:
    """Return the stems of what the way to a fact names, and of the fact's own subject."""
    stems = set(subject_stems(reached.fact))
    for step in reached.way:
        stems |= naming_stems(step.fact)
    return stems


def _reach(start: Sequence[ReachedFact], facts: Sequence[Fact]) -> Iterator[ReachedFact]:
    """Yield the facts that are reached from `start` in up to three steps, once each.

    Those with fewer steps come first. The facts of `start` are not yielded. At most 200 facts are
    followed, including those.
    """
    if not start:
        return

    facts_by_word = _index_by_word(facts)
    visited = {step.fact for step in start}
    frontier = start
    for _ in range(_MAX_STEPS):
        next_frontier = list[ReachedFact]()
        for step in frontier:
            for fact in _facts_about(step.fact, facts_by_word):
                if fact not in visited and len(visited) < _MAX_REACHED:
                    visited.add(fact)
                    next_frontier.append(ReachedFact(fact, step))
        yield from next_frontier
        frontier = next_frontier


def _index_by_word(facts: Sequence[Fact]) -> dict[str, list[_About]]:
    """Return facts by each word of what they are about."""
    facts_by_word = defaultdict[str, list[_About]](list)
    for fact in facts:
        if fact.slot is None:
            continue
        words = normalize_name(f"{fact.slot.subject} {fact.slot.relation}")
        about = _About(fact, f" {words} ")
        for word in words.split():
            facts_by_word[word].append(about)
    return facts_by_word


def _facts_about(fact: Fact, facts_by_word: Mapping[str, Sequence[_About]]) -> Iterator[Fact]:
    """Yield the facts that are about what a fact names.

    That is its value, and its subject; for a fact of the user, its key, such as "sister". Their
    subject or key has the value, or begins with the subject, and says more than that.
    """
    if fact.slot is None:
        return

    value = normalize_name(fact.value)
    if _is_name(value):
        name = f" {value} "
        for about in facts_by_word.get(_first_word(value), ()):
            if name in about.words:
                yield about.fact

    subject = normalize_name(fact.slot.subject or fact.slot.relation)
    if _is_name(subject):
        name = f" {subject} "
        for about in facts_by_word.get(_first_word(subject), ()):
            if about.words != name and about.words.startswith(name):
                yield about.fact


def _first_word(name: str) -> str:
    """Return the first word of a normalized name."""
    return name.split(" ", 1)[0]


def _is_name(text: str) -> bool:
    """Return whether a normalized text can name something: it is short and has letters."""
    has_letters = _LETTERS.search(text) is not None
    is_short = len(text.split()) <= _MAX_WORDS_OF_NAME
    return has_letters and is_short
