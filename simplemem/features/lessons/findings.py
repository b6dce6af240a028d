"""Findings about lessons, as clients get them: what was found, how urgent it is, and where."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final, Literal

from simplemem.features.lessons.contradictions import Data
from simplemem.features.lessons.lesson import Lesson, plain_text

Priority = Literal["critical", "high", "medium", "low"]
_PRIORITIES: Final = ("critical", "high", "medium", "low")


def make_finding(
    kind: str,
    priority: Priority,
    sentence: str,
    lessons: Iterable[Lesson],
    *,
    words: Sequence[str] = (),
    numbers: Data | None = None,
) -> Data:
    """Return a finding with the fields that clients know.

    They are `kind`, `priority`, the sentence as `says`, the labels of the lessons that it is about
    as `entries`, the `words` that these have in common, and the `numbers` that the sentence gives.
    """
    return {
        "kind": kind,
        "priority": priority,
        "says": sentence,
        "entries": lesson_labels(lessons),
        "words": list(words),
        "numbers": numbers or {},
    }


def by_priority(findings: Iterable[Data]) -> list[Data]:
    """Return findings sorted by `priority`, the most urgent first, otherwise in their order."""
    return sorted(findings, key=lambda finding: _PRIORITIES.index(finding["priority"]))


def lesson_label(lesson: Lesson) -> Data:
    """Return the label of a lesson: its `id`, `name` and `type`, and its headline as `says`."""
    return {
        "id": lesson.id,
        "name": lesson.name,
        "type": lesson.type,
        "says": lesson.headline,
    }


def lesson_labels(lessons: Iterable[Lesson]) -> list[Data]:
    """Return the labels of lessons, in their order."""
    return [lesson_label(lesson) for lesson in lessons]


def groups_with_same_beginning(lessons: Iterable[Lesson], characters: int) -> list[list[Lesson]]:
    """Return the groups of two or more lessons of one type that begin with the same characters.

    `characters` is the number of them that are compared. Case, Markdown and the kind of blanks are
    ignored. Lessons without a text are in no group.
    """
    groups: dict[tuple[str, str], list[Lesson]] = defaultdict(list)
    for lesson in lessons:
        text = " ".join(plain_text(lesson.content).casefold().split())
        if text:
            key = (lesson.type, text[:characters])
            groups[key].append(lesson)
    return [group for group in groups.values() if len(group) > 1]
