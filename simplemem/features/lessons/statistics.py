"""Lessons, counted: totals, what is read most, what recurs, and how counts change over time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import date, timedelta
from typing import Final

from simplemem.features.lessons.contradictions import Data
from simplemem.features.lessons.findings import groups_with_same_beginning, lesson_labels
from simplemem.features.lessons.lesson import Lesson
from simplemem.features.lessons.read_counts import ReadCounts

HIGH_CONFIDENCE: Final = 0.8
LOW_CONFIDENCE: Final = 0.5
"""A confidence below this is low. From `HIGH_CONFIDENCE` on it is high, between them medium."""

_MAX_READ_MOST: Final = 5
_MAX_TAGS: Final = 50
_RECURRING_CHARACTERS: Final = 50  # lessons that begin with the same ones recur


def count_lessons(lessons: Sequence[Lesson], counts: ReadCounts) -> Data:
    """Return totals of lessons with the fields that clients know.

    They are the numbers `total`, `by_type`, `by_confidence` (high, medium, low), `verified`,
    `superseded` and `never_read`, and the five lessons that were read most (`most_accessed`).
    `counts` says how often each was read.
    """
    types: Counter[str] = Counter()
    by_confidence = {"high": 0, "medium": 0, "low": 0}
    for lesson in lessons:
        types[lesson.type] += 1
        if lesson.confidence is not None:
            level = _confidence_level(lesson.confidence)
            by_confidence[level] += 1
    return {
        "total": len(lessons),
        "by_type": dict(sorted(types.items())),
        "by_confidence": by_confidence,
        "verified": sum(lesson.verified for lesson in lessons),
        "superseded": sum(lesson.is_superseded for lesson in lessons),
        "never_read": sum(lesson.id not in counts for lesson in lessons),
        "most_accessed": _read_most(lessons, counts),
    }


def _confidence_level(confidence: float) -> str:
    """Return whether a confidence is high, medium or low."""
    if confidence >= HIGH_CONFIDENCE:
        return "high"
    if confidence < LOW_CONFIDENCE:
        return "low"
    return "medium"


def _read_most(lessons: Sequence[Lesson], counts: ReadCounts) -> list[Data]:
    """Return the five lessons that were read most, the most read first.

    Each has its `id`, the headline as `says`, the `count`, and the time of the `last` reading.
    """
    read_lessons = [lesson for lesson in lessons if lesson.id in counts]
    read_lessons.sort(key=lambda lesson: (-counts[lesson.id].times, lesson.name))

    rows: list[Data] = []
    for lesson in read_lessons[:_MAX_READ_MOST]:
        read = counts[lesson.id]
        rows.append(
            {
                "id": lesson.id,
                "says": lesson.headline,
                "count": read.times,
                "last": read.last,
            }
        )
    return rows


def find_patterns(lessons: Sequence[Lesson], today: date) -> Data:
    """Return what recurs in lessons, and how their number changes, as fields that clients know.

    They are `recurring` (groups of lessons that begin with the same 50 characters), the numbers by
    `types` and `tags`, `lately` (the numbers of the last 7, 30 and 90 days until `today`), `before`
    (the number of the 30 days before the last 30), the `trend` between these two, and the mean
    `confidence` by type.
    """
    types = Counter(lesson.type for lesson in lessons)
    tags = Counter(tag for lesson in lessons for tag in lesson.tags)

    last_days = {}
    for days in (7, 30, 90):
        last_days[str(days)] = _count_created_within(days, lessons, today)
    in_last_30 = last_days["30"]
    in_30_before = _count_created_within(60, lessons, today) - in_last_30
    return {
        "recurring": _find_recurring(lessons),
        "types": dict(types.most_common()),
        "tags": dict(tags.most_common(_MAX_TAGS)),
        "lately": last_days,
        "before": in_30_before,
        "trend": _trend(in_30_before, in_last_30),
        "confidence": _confidence_by_type(lessons),
    }


def _count_created_within(days: int, lessons: Sequence[Lesson], today: date) -> int:
    """Return how many lessons were created in the last `days` days, `today` included."""
    last_day_before = today - timedelta(days)
    since = last_day_before.isoformat()
    return sum(lesson.created[:10] > since for lesson in lessons)


def _find_recurring(lessons: Sequence[Lesson]) -> list[Data]:
    """Return the groups of lessons that begin with the same 50 characters, the largest first.

    Each has the `type`, the headline of its first lesson as `says`, the `count`, and the labels of
    its lessons as `entries`.
    """
    groups = groups_with_same_beginning(lessons, _RECURRING_CHARACTERS)
    groups.sort(key=lambda group: (-len(group), group[0].name))

    recurring: list[Data] = []
    for group in groups:
        first = group[0]
        recurring.append(
            {
                "type": first.type,
                "says": first.headline,
                "count": len(group),
                "entries": lesson_labels(group),
            }
        )
    return recurring


def _confidence_by_type(lessons: Sequence[Lesson]) -> dict[str, float]:
    """Return the mean confidence by type, of the lessons that have one."""
    by_type: dict[str, list[float]] = defaultdict(list)
    for lesson in lessons:
        if lesson.confidence is not None:
            by_type[lesson.type].append(lesson.confidence)

    means: dict[str, float] = {}
    for type_name in sorted(by_type):
        confidences = by_type[type_name]
        mean = sum(confidences) / len(confidences)
        means[type_name] = round(mean, 3)
    return means


def _trend(previous_count: int, last_count: int) -> str:
    """Return "rising" if the last count is higher than the previous one, "falling" if lower.

    Returns "steady" if they are equal.
    """
    if last_count > previous_count:
        return "rising"
    if last_count < previous_count:
        return "falling"
    return "steady"
