"""Lessons as the fields that clients know."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

from simplemem.features.lessons.lesson import Lesson
from simplemem.features.lessons.read_counts import NEVER_READ, ReadCount, ReadCounts

Fields = dict[str, Any]
"""The fields of a lesson in an answer, as `describe_lessons` names them."""


class LessonRelation(NamedTuple):
    """A relation of a lesson: its type, and the lesson that it leads to."""

    type: str
    target: Lesson


RelationsByPath = dict[str, list[LessonRelation]]
"""The relations of lessons, by the paths of their notes."""


def describe_lessons(
    lessons: Sequence[Lesson],
    *,
    all_lessons: Sequence[Lesson],
    relations: RelationsByPath,
    counts: ReadCounts,
) -> list[Fields]:
    """Return the fields of some lessons, in their order.

    Each has id, type, content, context, confidence, verified, tags, timestamp, accessCount,
    lastAccessed (None for never), relatedIds and name. A lesson with relations also has these as
    sentences in `relations`; a superseded one has `status` and `supersededBy`. The argument
    `relations` has those of `all_lessons`, because a lesson also shows the ones that lead to it.
    `counts` says how often each lesson was read.
    """
    sentences = _relation_sentences(all_lessons, relations)

    descriptions: list[Fields] = []
    for lesson in lessons:
        targets = [relation.target for relation in relations.get(lesson.path, ())]
        count = counts.get(lesson.id, NEVER_READ)
        fields = _describe_lesson(lesson, count, targets)
        if sentences[lesson.path]:
            fields["relations"] = sentences[lesson.path]
        if lesson.is_superseded:
            fields["status"] = "superseded"
            fields["supersededBy"] = lesson.superseded_by
        descriptions.append(fields)
    return descriptions


def _describe_lesson(lesson: Lesson, read: ReadCount, targets: Sequence[Lesson]) -> Fields:
    """Return the fields that every lesson has.

    `read` says how often the lesson was read. `targets` are the lessons that it has relations to.
    """
    target_ids = dict.fromkeys(target.id for target in targets)
    return {
        "id": lesson.id,
        "type": lesson.type,
        "content": lesson.content,
        "context": lesson.context,
        "confidence": lesson.confidence,
        "verified": lesson.verified,
        "tags": list(lesson.tags),
        "timestamp": lesson.created,
        "accessCount": read.times,
        "lastAccessed": read.last or None,
        "relatedIds": list(target_ids),
        "name": lesson.name,
    }


def _relation_sentences(
    lessons: Sequence[Lesson], relations: RelationsByPath
) -> dict[str, list[str]]:
    """Return the relations from and to each lesson as sentences, by the path of its note."""
    sentences: dict[str, list[str]] = defaultdict(list)
    for lesson in lessons:
        for relation in relations.get(lesson.path, ()):
            target = relation.target
            verb = relation.type.replace("_", " ")
            sentences[lesson.path].append(f'this {verb} "{target.headline}" ({target.id})')
            sentences[target.path].append(f'"{lesson.headline}" ({lesson.id}) {verb} this')
    return sentences
