"""Facts that an agent states beside a text, as new facts for the scope of a user.

The words of the text are kept: if one sentence has the value of one fact, the sentence is the
statement of that fact, and the agent says its key, its times and what it replaces. Otherwise the
statement is "key: value". Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from itertools import groupby
from typing import Final

from simplemem.features.agent_statements import AGENT, AgentFact, AgentStatements
from simplemem.features.conversations.trait_reading import Trait
from simplemem.features.fact import Fact, Slot
from simplemem.features.facts.language import MAX_READ
from simplemem.features.facts.memory_type import memory_type_of
from simplemem.features.facts.new_fact import AgentReading, NewFact
from simplemem.features.facts.reading import read_statement
from simplemem.features.facts.reviews import find_restated
from simplemem.features.facts.unstated import is_statement
from simplemem.note.dates import now
from simplemem.note.sentences import sentence_spans

_CONFIDENCE: Final = 0.9  # of a fact in the words of the agent


def with_agent_facts(
    statements: Iterable[NewFact], stated: AgentStatements, current: Collection[Fact]
) -> list[NewFact]:
    """Return new facts of a text with those that the agent states, and the name of the user.

    A statement that has the value of one fact of the agent becomes that fact. A sentence that has
    several, whether or not it was divided, is replaced by these facts, each with the sentence as
    its quote. A fact of the agent that is among the `current` ones is stated in their words. What
    is over comes first, so that a statement such as "I no longer live in Rome" finds it ended.
    """
    over: list[NewFact] = []
    new_facts: list[NewFact] = []
    open_facts = list(stated.facts)
    for statement in _undivided(statements, open_facts):
        stated_here = _facts_in(statement.text, open_facts)
        open_facts = [fact for fact in open_facts if fact not in stated_here]
        if not stated_here:
            new_facts.append(statement)
        elif len(stated_here) == 1:
            new_facts.append(_in_own_words(statement, stated_here[0]))
        else:
            quote = statement.text
            new_facts += [_in_words_of_agent(fact, current, quote) for fact in stated_here]

    for fact in open_facts:
        in_words = _in_words_of_agent(fact, current)
        if fact.until is not None and fact.until < now():
            over.append(in_words)
        else:
            new_facts.append(in_words)
    if stated.user_name:
        new_facts.append(NewFact(f"My name is {stated.user_name}.", decided_by=AGENT))
    reading = _reading_of(stated)
    return [fact._replace(agent_reading=reading) for fact in [*over, *new_facts]]


def _reading_of(stated: AgentStatements) -> AgentReading | None:
    """Return what the facts of an agent say of the whole text; None if it states no fact."""
    if not stated.facts:
        return None
    return AgentReading(
        subjects=frozenset(fact.subject for fact in stated.facts),
        names_replaced=any(fact.replaced_ids for fact in stated.facts),
    )


def _undivided(statements: Iterable[NewFact], facts: Sequence[AgentFact]) -> list[NewFact]:
    """Return statements in which the clauses of a sentence are one, if the agent divides it.

    That is so if the sentence has the values of several `facts` of the agent.
    """
    undivided: list[NewFact] = []
    for sentence, clauses in groupby(statements, key=_sentence_of):
        if len(_facts_in(sentence, facts)) > 1:
            undivided.append(NewFact(sentence))
        else:
            undivided += clauses
    return undivided


def _sentence_of(statement: NewFact) -> str:
    """Return the sentence of which a statement is, perhaps as a clause."""
    return statement.quote or statement.text


def facts_beside(text: str, stated: AgentStatements, current: Collection[Fact]) -> list[NewFact]:
    """Return the facts that the agent states beside a long text, in its sentences if they can.

    Sentences without a fact of the agent are left out, and the name of the user is the last fact.
    `current` are the facts that hold.
    """
    sentences = []
    for start, stop in sentence_spans(text):
        sentence = " ".join(text[start:stop].split())
        if len(sentence) < MAX_READ and _facts_in(sentence, stated.facts):
            sentences.append(NewFact(sentence))
    return with_agent_facts(sentences, stated, current)


def traits_of(stated: AgentStatements) -> list[Trait]:
    """Return what the agent states for the profile of the user."""
    traits = [Trait("Constraints", text) for text in stated.constraints]
    traits += [Trait("Preferences", text) for text in stated.preferences]
    if stated.user_name:
        traits.append(Trait("name", stated.user_name))
    return traits


def traits_as_facts(stated: AgentStatements) -> list[NewFact]:
    """Return the constraints and preferences as facts, for a call that stores nothing else."""
    facts = [NewFact(text, memory_type="fact", decided_by=AGENT) for text in stated.constraints]
    facts += [
        NewFact(text, memory_type="preference", decided_by=AGENT) for text in stated.preferences
    ]
    return facts


def _facts_in(sentence: str, facts: Iterable[AgentFact]) -> list[AgentFact]:
    """Return the facts of the agent whose values a sentence states as true, in their order."""
    stated = [fact for fact in facts if _has_value(sentence, fact)]
    if not stated or not is_statement(sentence):
        return []
    reading = read_statement(sentence)
    return stated if reading.is_affirmed and not reading.is_hedged else []


def _has_value(sentence: str, fact: AgentFact) -> bool:
    """Return whether a sentence has the value of a fact, as whole words."""
    words = re.escape(fact.value.casefold())
    return bool(re.search(rf"(?<!\w){words}(?!\w)", sentence.casefold()))


def _in_own_words(statement: NewFact, fact: AgentFact) -> NewFact:
    """Return a statement of the text as the fact that the agent read in it.

    The slot that a rule reads stays if it has the same value, since questions name its relation.
    """
    slot = statement.slot or read_statement(statement.text).slot
    if slot is None or fact.subject or not _is_own_slot(slot, fact):
        slot = _slot_of(fact)
    return statement._replace(
        slot=slot,
        memory_type=_lasting_type(statement),
        valid_from=fact.since or statement.valid_from,
        valid_to=fact.until or statement.valid_to,
        decided_by=AGENT,
        replaces=fact.replaced_ids,
    )


def _is_own_slot(slot: Slot, fact: AgentFact) -> bool:
    """Return whether a slot is about the user and has the value of a fact."""
    return not slot.subject and slot.object.casefold() == fact.value.casefold()


def _lasting_type(statement: NewFact) -> str:
    """Return the memory type of a statement of which the agent says that it is a fact.

    It is no episode, since that would fade.
    """
    memory_type = statement.memory_type or memory_type_of(statement.text, now()).name
    return "fact" if memory_type == "episode" else memory_type


def _in_words_of_agent(fact: AgentFact, current: Iterable[Fact], quote: str = "") -> NewFact:
    """Return a fact in the words of a current one that states it, else as "key: value".

    A subject stands before the key. `quote` is the sentence that states it, if there is one.
    """
    slot = _slot_of(fact)
    restated = find_restated(slot, current)
    if restated is not None:
        text = restated.statement
    elif fact.subject:
        text = f"{fact.subject}, {fact.relation}: {fact.value}"
    else:
        text = f"{fact.relation}: {fact.value}"
    return NewFact(
        text,
        memory_type="fact",
        slot=slot,
        valid_from=fact.since,
        valid_to=fact.until,
        quote=quote,
        confidence=_CONFIDENCE,
        decided_by=AGENT,
        replaces=fact.replaced_ids,
    )


def _slot_of(fact: AgentFact) -> Slot:
    """Return the slot that the agent states."""
    return Slot(fact.subject, fact.relation, fact.value)
