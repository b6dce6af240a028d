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
    """Return a finding: its kind, priority and sentence, and the lessons that it is about.

    `words` are what the lessons have in common, `numbers` the figures that the sentence gives.
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
    """Return findings, the most urgent first, otherwise in their order."""
    return sorted(findings, key=lambda finding: _PRIORITIES.index(finding["priority"]))


def lesson_label(lesson: Lesson) -> Data:
    """Return a lesson as findings name it: id, note, type and headline."""
    return {
        "id": lesson.id,
        "name": lesson.name,
        "type": lesson.type,
        "says": lesson.headline,
    }


def lesson_labels(lessons: Iterable[Lesson]) -> list[Data]:
    """Return lessons as findings name them."""
    return [lesson_label(lesson) for lesson in lessons]


def groups_with_same_beginning(lessons: Iterable[Lesson], characters: int) -> list[list[Lesson]]:
    """Return the groups of lessons of one type that begin with the same characters.

    Case, Markdown and the kind of blanks are ignored. Lessons without a text are in no group.
    """
    groups: dict[tuple[str, str], list[Lesson]] = defaultdict(list)
    for lesson in lessons:
        text = " ".join(plain_text(lesson.content).casefold().split())
        if text:
            key = (lesson.type, text[:characters])
            groups[key].append(lesson)
    return [group for group in groups.values() if len(group) > 1]
