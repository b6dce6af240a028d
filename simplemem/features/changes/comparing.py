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
    year: int | None  # None if it is unknown


def find_doubtful(subjects: Sequence[StatedSubject], change: Change) -> list[int]:
    """Return the indexes of the earlier facts that a change puts in doubt, in ascending order.

    A change may name a fact with fewer words than the fact has: "the alarm code" for that of the
    office. Such a fact is returned only if it is the only one, and no other fact is in doubt.
    """
    doubtful: list[int] = []
    for index, stated in enumerate(subjects):
        if puts_in_doubt(stated.subject, change, stated.year):
            doubtful.append(index)
    if doubtful:
        return doubtful

    partly_named: list[int] = []
    for index, stated in enumerate(subjects):
        if _is_partly_named(stated, change):
            partly_named.append(index)
    if len(partly_named) > 1:
        return []
    return partly_named


def puts_in_doubt(subject: Subject, change: Change, stated_year: int | None = None) -> bool:
    """Return whether a change puts a fact with this subject in doubt.

    `stated_year` is the year in which the fact was stated, None if it is unknown. A change that
    happened in an earlier year does not put the fact in doubt.
    """
    if _is_earlier(change, stated_year):
        return False

    naming = subject.namings[change.language]
    if _ends_value(change, naming) or _leaves_employer(change, subject, naming):
        return True
    return _changes_subject(change, subject, naming) and not _keeps_value(change, naming)


def _leaves_employer(change: Change, subject: Subject, naming: Naming) -> bool:
    """Return whether a change says that the speaker left the employer whom a fact names.

    Here and below, `naming` is how the language of the change names the `subject` of the fact.
    """
    is_about_work = any(topic.name == _WORK for topic in subject.topics)
    if not is_about_work:
        return False
    return any(employer <= naming.own_value for employer in change.left_employers)


def _changes_subject(change: Change, subject: Subject, naming: Naming) -> bool:
    """Return whether a change is about the thing, the service or the topic of a fact."""
    if naming.name and naming.name in change.things:
        return True
    if naming.provided and naming.provided in change.provided:
        return True
    return not subject.topics.isdisjoint(change.topics)


def _is_partly_named(stated: StatedSubject, change: Change) -> bool:
    """Return whether a change names a fact with two words or more, but not all of its words."""
    if _is_earlier(change, stated.year):
        return False

    naming = stated.subject.namings[change.language]
    if _keeps_value(change, naming):
        return False
    return any(len(thing) > 1 and thing < naming.name for thing in change.things)


def _is_earlier(change: Change, stated_year: int | None) -> bool:
    """Return whether a change names a year before the one in which a fact was stated."""
    if change.year is None or stated_year is None:
        return False
    return change.year < stated_year


def _ends_value(change: Change, naming: Naming) -> bool:
    """Return whether a change says that the value of a fact is no longer true."""
    return any(value <= naming.own_value or value == naming.value for value in change.ended_values)


def _keeps_value(change: Change, naming: Naming) -> bool:
    """Return whether the statement of a change names the value of a fact as the new one too.

    An example is "I have a new car, a Volvo again", if the fact is about a Volvo.
    """
    if not naming.value or change.ends_named_value:
        return False
    return naming.value <= change.words
