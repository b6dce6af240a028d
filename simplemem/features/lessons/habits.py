"""Habits that make lessons less useful, such as errors without a solution."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from simplemem.features.lessons.contradictions import Data
from simplemem.features.lessons.description import RelationsByPath
from simplemem.features.lessons.findings import (
    Priority,
    groups_with_same_beginning,
    make_finding,
)
from simplemem.features.lessons.lesson import Lesson
from simplemem.features.lessons.read_counts import ReadCounts
from simplemem.features.lessons.statistics import LOW_CONFIDENCE

_MAX_LESSONS: Final = 20  # that a finding names
_DUPLICATE_CHARACTERS: Final = 100  # lessons that begin with the same ones are duplicates


class _Habit(NamedTuple):
    """The lessons that have a weakness, and those that could have it.

    It is a finding if more than `max_share` of the latter have it.
    """

    kind: str  # of the finding
    priority: Priority
    weak: Sequence[Lesson]  # those that have it
    all_lessons: Sequence[Lesson]  # those that could have it
    max_share: float


def find_habits(
    lessons: Sequence[Lesson], counts: ReadCounts, relations: RelationsByPath
) -> Iterator[Data]:
    """Yield findings: the weaknesses that too many lessons have, then groups that begin alike.

    The kinds of findings are `errors without solution`, `low confidence`, `never read`, `untagged`
    and `duplicates`. `counts` says how often each lesson was read, and `relations` has an entry for
    each lesson.
    """
    habits = (
        _errors_without_solution(lessons, relations),
        _low_confidence(lessons),
        _never_read(lessons, counts),
        _untagged(lessons),
    )
    for habit in habits:
        count = len(habit.weak)
        total = len(habit.all_lessons)
        if count > habit.max_share * total:
            yield make_finding(
                habit.kind,
                habit.priority,
                f"{habit.kind}: {count} of {total}",
                habit.weak[:_MAX_LESSONS],
                numbers={"share": round(count / total, 3)},
            )

    for group in groups_with_same_beginning(lessons, _DUPLICATE_CHARACTERS):
        sentence = f"{len(group)} entries begin the same way"
        yield make_finding("duplicates", "high", sentence, group)


def _errors_without_solution(lessons: Sequence[Lesson], relations: RelationsByPath) -> _Habit:
    """Return the errors that no relation connects with a solution."""
    solved_paths: set[str] = set()
    for lesson in lessons:
        for relation in relations[lesson.path]:
            if "solution" in (lesson.type, relation.target.type):
                solved_paths |= {lesson.path, relation.target.path}

    errors = [lesson for lesson in lessons if lesson.type == "error"]
    unsolved = [lesson for lesson in errors if lesson.path not in solved_paths]
    return _Habit("errors without solution", "high", unsolved, errors, 0.5)


def _low_confidence(lessons: Sequence[Lesson]) -> _Habit:
    """Return the lessons with a confidence below 0.5, of those that have one."""
    rated: list[Lesson] = []
    unsure: list[Lesson] = []
    for lesson in lessons:
        if lesson.confidence is None:
            continue
        rated.append(lesson)
        if lesson.confidence < LOW_CONFIDENCE:
            unsure.append(lesson)
    return _Habit("low confidence", "medium", unsure, rated, 0.2)


def _never_read(lessons: Sequence[Lesson], counts: ReadCounts) -> _Habit:
    """Return the lessons that nobody read, without ordinary notes, whose reads are not counted."""
    own = [lesson for lesson in lessons if lesson.is_own]
    unread = [lesson for lesson in own if lesson.id not in counts]
    return _Habit("never read", "medium", unread, own, 0.3)


def _untagged(lessons: Sequence[Lesson]) -> _Habit:
    """Return the lessons without tags."""
    untagged = [lesson for lesson in lessons if not lesson.tags]
    return _Habit("untagged", "low", untagged, lessons, 0.3)
