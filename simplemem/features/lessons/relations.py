"""Relations between lessons, and which of two lessons a relation marks as superseded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from simplemem.features.collection import ChangeSet, NoteCollection
from simplemem.features.lessons.description import LessonRelation, RelationsByPath
from simplemem.features.lessons.lesson import Lesson, with_relation
from simplemem.store import now

if TYPE_CHECKING:
    from simplemem.store import ExtensionAPI

SUPERSEDING: Final = ("supersedes", "superseded_by")
"""Types of relations that mark one of two lessons as superseded."""

_CONFIDENCE_LOSS: Final = 0.3  # of a superseded lesson
_MIN_CONFIDENCE: Final = 0.1
_STATUS_PROPERTIES: Final = ("status", "superseded_by", "superseded_at", "superseded_reason")


class Relations:
    """The relations of the lessons of a collection. It reads them, and writes into change sets."""

    def __init__(self, extension: ExtensionAPI, collection: NoteCollection[Lesson]) -> None:
        """Relate the lessons of a collection; `extension` resolves their links."""
        self._extension = extension
        self._collection = collection

    def relations_of(self, lessons: Sequence[Lesson]) -> RelationsByPath:
        """Return the relations of some lessons to lessons; an empty list for one without any.

        A relation to another note, or to none, is left out.
        """
        links = [
            (relation.link, lesson.path) for lesson in lessons for relation in lesson.relations
        ]
        paths = iter(self._extension.resolve_links(links))

        relations: RelationsByPath = {}
        for lesson in lessons:
            resolved: list[LessonRelation] = []
            for relation in lesson.relations:
                path = next(paths)
                if path in self._collection.items:
                    target = self._collection.items[path]
                    resolved.append(LessonRelation(relation.type, target))
            relations[lesson.path] = resolved
        return relations

    def lessons_related_to(self, target: Lesson, lessons: Sequence[Lesson]) -> list[Lesson]:
        """Return those among `lessons` with a relation to `target`, in their order."""
        relations = self.relations_of(lessons)
        related: list[Lesson] = []
        for lesson in lessons:
            target_paths = {relation.target.path for relation in relations[lesson.path]}
            if target.path in target_paths:
                related.append(lesson)
        return related

    def add(
        self, change_set: ChangeSet, source: Lesson, relation_type: str, target: Lesson
    ) -> bool:
        """Put a relation into the change set unless the lesson has it. Return whether it did."""
        relation = LessonRelation(relation_type, target)
        if relation in self.relations_of([source])[source.path]:
            return False
        self.put(change_set, source, relation_type, target, {})
        return True

    def put(
        self,
        change_set: ChangeSet,
        source: Lesson,
        relation_type: str,
        target: Lesson,
        attributes: Mapping[str, str],
    ) -> None:
        """Put a relation into the change set."""
        text = change_set.text(source.path)
        text = with_relation(text, relation_type, target.name, attributes)
        change_set.put(source.path, text)

    def supersede(self, change_set: ChangeSet, winner: Lesson, loser: Lesson) -> bool:
        """Mark a lesson as superseded by another, in the change set. False if it already was.

        The last call counts: if the loser had superseded the winner, the winner holds again.
        """
        if self._is_superseded_by(loser, winner):
            return False
        if self._is_superseded_by(winner, loser):
            change_set.set(winner.path, **dict.fromkeys(_STATUS_PROPERTIES))
        mark_superseded(change_set, winner, loser, "decided by a client")
        return True

    def _is_superseded_by(self, lesson: Lesson, winner: Lesson) -> bool:
        """Return whether a lesson is superseded, and links to `winner` as what replaced it."""
        if not lesson.is_superseded:
            return False
        [path] = self._extension.resolve_links([(lesson.superseded_by, lesson.path)])
        return path == winner.path


def mark_superseded(change_set: ChangeSet, winner: Lesson, loser: Lesson, reason: str) -> None:
    """Put into the change set that `winner` supersedes `loser`, now and for a reason.

    The confidence of the loser falls by 0.3, to 0.1 or more; one without a confidence gets none.
    """
    change_set.set(
        loser.path,
        status="superseded",
        superseded_by=f"[[{winner.name}]]",
        superseded_at=now(),
        superseded_reason=reason,
    )
    if loser.confidence is not None:
        lowered = round(loser.confidence - _CONFIDENCE_LOSS, 4)
        change_set.set(loser.path, confidence=max(_MIN_CONFIDENCE, lowered))
