"""Compare earlier facts with what a later statement says has changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from simplemem.features.changes.reading import Change
from simplemem.features.changes.subjects import Naming, Subject

_WORK: Final = "work"  # the topic of employers


@dataclass(frozen=True)
class StatedSubject:
    """What an earlier fact is about, and the year in which it was stated."""

    subject: Subject
    year: int | None  # None if nobody knows


def find_doubtful(subjects: Sequence[StatedSubject], change: Change) -> list[int]:
    """Return the indexes of the earlier facts that a change puts in doubt.

    A change may name a fact with fewer words than the fact has: "the alarm code" for that of the office.
    Such a fact is returned only if the change puts no other fact in doubt.
    """
    doubtful = [
        index
        for index, stated in enumerate(subjects)
        if puts_in_doubt(stated.subject, change, stated.year)
    ]
    if doubtful:
        return doubtful

    partly_named = [
        index for index, stated in enumerate(subjects) if _is_partly_named(stated, change)
    ]
    return partly_named if len(partly_named) == 1 else []


def puts_in_doubt(subject: Subject, change: Change, stated_year: int | None = None) -> bool:
    """Return whether a change puts a fact in doubt that was stated in `stated_year`.

    A change that happened in an earlier year does not.
    """
    if _is_before(change, stated_year):
        return False

    naming = subject.namings[change.language]
    if _ends_value(change, naming):
        return True
    is_about_work = any(topic.name == _WORK for topic in subject.topics)
    if is_about_work and any(employer <= naming.own_value for employer in change.left_employers):
        return True

    is_same_thing = bool(naming.name) and naming.name in change.things
    is_same_service = bool(naming.provided) and naming.provided in change.provided
    is_same_topic = not subject.topics.isdisjoint(change.topics)
    return (is_same_thing or is_same_service or is_same_topic) and not _keeps_value(change, naming)


def _is_partly_named(stated: StatedSubject, change: Change) -> bool:
    """Return whether a change names a fact with two words or more, but not with all words of its name."""
    if _is_before(change, stated.year):
        return False

    naming = stated.subject.namings[change.language]
    is_partly_named = any(len(thing) > 1 and thing < naming.name for thing in change.things)
    return is_partly_named and not _keeps_value(change, naming)


def _is_before(change: Change, stated_year: int | None) -> bool:
    """Return whether a change names a year before the one in which a fact was stated."""
    return change.year is not None and stated_year is not None and change.year < stated_year


def _ends_value(change: Change, naming: Naming) -> bool:
    """Return whether a change says that the value of a fact is no longer true."""
    return any(value <= naming.own_value or value == naming.value for value in change.ended_values)


def _keeps_value(change: Change, naming: Naming) -> bool:
    """Return whether a change names the old value as the new one: "a new car, a Volvo again"."""
    return bool(naming.value) and naming.value <= change.words and not change.ends_named_value
