"""Find the facts that a text puts in doubt or asks to forget, without stating their values. Pure.

A text may name the facts ("I've changed the alarm code"), or only hint at them ("no sorry, it's
the 6th").
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from simplemem.features.agent_statements import AGENT
from simplemem.features.changes import (
    Change,
    StatedSubject,
    find_doubtful,
    read_change,
    subject_of,
)
from simplemem.features.changes.mentions import Mention, find_about, find_possibly_outdated
from simplemem.features.changes.vague import read_vague_change
from simplemem.features.fact import Fact, Slot, normalize_name
from simplemem.features.facts.ends import end_of_appointment
from simplemem.features.facts.new_fact import AgentReading, NewFact


def find_disputed(new: NewFact, facts: Sequence[Fact], at: datetime) -> list[Fact]:
    """Return those among `facts` that a new statement, made at a time, puts in doubt.

    Its text says that they changed, but not to what; or the agent states another value for the
    same key, and not which fact that replaces.
    """
    doubtful = find_doubted_by_text(new.text, facts, at)
    names_no_fact = read_change(new.text) is None
    if names_no_fact:
        doubtful = [fact for fact in doubtful if _may_be_meant(fact, new.agent_reading)]

    is_of_agent = new.decided_by == AGENT and not new.replaces
    if is_of_agent and new.slot is not None:
        for fact in facts:
            if _has_other_value(fact, new.slot) and fact not in doubtful:
                doubtful.append(fact)
    return doubtful


def _may_be_meant(fact: Fact, reading: AgentReading | None) -> bool:
    """Return whether a text that names no fact may mean this one, after what an agent read in it.

    It does not if the agent names the facts that are outdated, or if all that it read is about
    others. Two names are of one subject if they share a word: "Becky" and "sister Becky".
    """
    if reading is None:
        return True
    if reading.names_replaced:
        return False
    if fact.slot is None:
        return True

    words_of_fact = normalize_name(fact.slot.subject).split()
    for subject in reading.subjects:
        words = normalize_name(subject).split()
        are_of_user = not words and not words_of_fact
        if are_of_user or not set(words).isdisjoint(words_of_fact):
            return True
    return False


def _has_other_value(fact: Fact, slot: Slot) -> bool:
    """Return whether a fact has the subject and the relation of a slot, and another value."""
    if fact.slot is None:
        return False
    fact_slot = _in_small_letters(fact.slot)
    other_slot = _in_small_letters(slot)
    has_same_subject = fact_slot.subject == other_slot.subject
    has_same_relation = fact_slot.relation == other_slot.relation
    return has_same_subject and has_same_relation and fact_slot.object != other_slot.object


def _in_small_letters(slot: Slot) -> Slot:
    """Return a slot in the form in which slots are compared."""
    return Slot(slot.subject.casefold(), slot.relation.casefold(), slot.object.casefold())


def find_doubted_by_text(text: str, facts: Sequence[Fact], at: datetime) -> list[Fact]:
    """Return those among `facts` of which a text says at a time that they changed, but not to what.

    They are in the order of `facts`. The list is empty if the text states no change.
    """
    change = read_change(text)
    if change is not None:
        doubtful = find_doubted_by_changes([change], facts, _stated_subject)
        if doubtful:
            return doubtful
    return _find_vaguely_doubted(text, facts, at)


def find_doubted_by_changes(
    changes: Iterable[Change],
    facts: Sequence[Fact],
    subject_of_fact: Callable[[Fact], StatedSubject],
) -> list[Fact]:
    """Return the facts of which a change says that they are different now, but not how.

    Each is returned once: those of the first change first, in the order of `facts`.
    `subject_of_fact` says what a fact is about.
    """
    subjects = [subject_of_fact(fact) for fact in facts]
    doubtful_by_path: dict[str, Fact] = {}
    for change in changes:
        for index in find_doubtful(subjects, change):
            fact = facts[index]
            doubtful_by_path[fact.path] = fact
    return list(doubtful_by_path.values())


def end_of_corrected_appointment(
    text: str, in_doubt: Sequence[Fact], at: datetime
) -> datetime | None:
    """Return when the appointment ends of which a text corrects a detail, None if it corrects none.

    A text that names a day itself corrects the day. `in_doubt` are the facts that the text, which
    is stated at a time, puts in doubt.
    """
    change = read_vague_change(text)
    if change is None or change.kind != "correction" or not change.numbers:
        return None
    names_day = end_of_appointment(text, at) is not None
    if names_day:
        return None

    mentions = [_mention_of(fact) for fact in in_doubt]
    ends = [mention.ends for mention in mentions if mention.ends is not None]
    return max(ends, default=None)


def _stated_subject(fact: Fact) -> StatedSubject:
    """Return what a fact is about, and the year since which it is valid."""
    year = fact.valid_from.year if fact.valid_from is not None else None
    return StatedSubject(subject_of(fact.statement), year)


def _find_vaguely_doubted(text: str, facts: Sequence[Fact], at: datetime) -> list[Fact]:
    """Return those among `facts` that a text may outdate without naming them, in their order."""
    change = read_vague_change(text)
    if change is None:
        return []
    mentions = [_mention_of(fact) for fact in facts]
    indexes = find_possibly_outdated(mentions, change, at)
    return [facts[index] for index in indexes]


def _mention_of(fact: Fact) -> Mention:
    """Return what a vague change compares of a fact. Only an appointment has an end there."""
    stated = fact.valid_from
    if stated is None or end_of_appointment(fact.statement, stated) is None:
        return Mention(fact.statement, stated, None)
    return Mention(fact.statement, stated, fact.valid_to)


def find_about_topic(topic: str, facts: Sequence[Fact]) -> list[Fact]:
    """Return the facts that are about a topic, in their order, as `find_about` reads it.

    The list is empty if the topic has no word that names anything.
    """
    mentions = [_mention_of(fact) for fact in facts]
    indexes = find_about(mentions, topic)
    return [facts[index] for index in indexes]
