"""What the notes of facts say that a new fact supersedes or puts in doubt, in both forms of notes.

Also which facts are put in doubt by what a text says has changed. `outcome` decides the rest. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from simplemem.features.changes import Change, StatedSubject, find_doubtful
from simplemem.features.fact import Fact
from simplemem.note.dates import format_moment


def facts_put_in_doubt(
    changes: Iterable[Change],
    facts: Sequence[Fact],
    subject_of_fact: Callable[[Fact], StatedSubject],
) -> list[Fact]:
    """Return the facts of which a change says that they are different now, but not how.

    Each is returned once: those of the first change first, in the order of `facts`.
    `subject_of_fact` says what a fact is about.
    """
    subjects = [subject_of_fact(fact) for fact in facts]
    doubtful: dict[str, Fact] = {}
    for change in changes:
        for index in find_doubtful(subjects, change):
            fact = facts[index]
            doubtful[fact.path] = fact
    return list(doubtful.values())


def end_of_superseded(old: Fact, new_begins: datetime | None, at: datetime) -> datetime:
    """Return when a fact ends that a new one supersedes at a time.

    That is when the new one begins, at the latest now, but not before the old one began itself.
    """
    end = min(new_begins or at, at)
    return end if old.valid_from is None else max(end, old.valid_from)


def superseded_properties(
    old: Fact, link: str, new_begins: datetime | None, at: datetime
) -> Mapping[str, Any]:
    """Return the properties of the note of a fact that a new one supersedes.

    `link` is a link to the note of the new one. The old one is disputed no longer.
    """
    return {
        "superseded_by": link,
        "valid_to": format_moment(end_of_superseded(old, new_begins, at)),
        "disputed": None,
        "disputed_by": None,
    }


def disputed_since(old: Fact, at: datetime) -> datetime:
    """Return since when a fact is disputed that is put in doubt at a time.

    A fact that is disputed already keeps the time since when it is.
    """
    return old.disputed or at


def disputed_properties(old: Fact, link: str, at: datetime) -> Mapping[str, Any]:
    """Return the properties of the note of a fact that is put in doubt at a time.

    `link` is a link to the fact or the turn that does so.
    """
    return {"disputed": format_moment(disputed_since(old, at)), "disputed_by": link}
