"""Relations between lessons, and which of two lessons a relation marks as superseded."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from simplemem.features.collection import ChangeSet, NoteCollection
from simplemem.features.graph.bullets import Bullet, RelationLine
from simplemem.features.graph.page import read_page
from simplemem.features.graph.page_edits import remove_bullets
from simplemem.features.lessons.description import LessonRelation, RelationsByPath
from simplemem.features.lessons.lesson import Lesson, read_lesson, with_relation
from simplemem.store import now

if TYPE_CHECKING:
    from simplemem.store import ExtensionAPI

SUPERSEDING: Final = ("supersedes", "superseded_by")
"""Types of relations that mark one of two lessons as superseded."""

_CONFIDENCE_LOSS: Final = 0.3  # of a superseded lesson
_MIN_CONFIDENCE: Final = 0.1
_STATUS_PROPERTIES: Final = ("status", "superseded_by", "superseded_at", "superseded_reason")


class Relations:
    """The relations of the lessons of a collection. It reads them, and writes into change sets.

    What a change set has made of a lesson counts, not what the collection has: one change may
    relate the same two lessons several times.
    """

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
        source = _read_changed(change_set, source)
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
        """Put a relation into the change set, also if the lesson has it already."""
        text = change_set.text(source.path)
        text = with_relation(text, relation_type, target.name, attributes)
        change_set.put(source.path, text)

    def remove(
        self,
        change_set: ChangeSet,
        source: Lesson,
        target: Lesson,
        relation_types: Collection[str],
    ) -> None:
        """Remove the relations of these types from one lesson to another, in the change set."""
        text = change_set.text(source.path)
        removed: list[Bullet] = []
        for bullet in read_page(source.path, text).bullets:
            relation = bullet.content
            if not isinstance(relation, RelationLine) or not relation.link:
                continue
            if relation.type not in relation_types:
                continue
            [path] = self._extension.resolve_links([(relation.link, source.path)])
            if path == target.path:
                removed.append(bullet)
        if removed:
            change_set.put(source.path, remove_bullets(text, removed))

    def supersede(self, change_set: ChangeSet, winner: Lesson, loser: Lesson) -> bool:
        """Mark a lesson as superseded by another, in the change set. False if it already was.

        The last call counts: if the loser had superseded the winner, the winner holds again.
        """
        loser = _read_changed(change_set, loser)
        if self._is_superseded_by(loser, winner):
            return False
        self.restore(change_set, winner, loser)
        mark_superseded(change_set, winner, loser, "decided by a client")
        return True

    def restore(self, change_set: ChangeSet, lesson: Lesson, former_winner: Lesson) -> None:
        """Make a lesson hold again, in the change set, if `former_winner` superseded it.

        Its confidence stays lowered, because the note does not contain the former one.
        """
        lesson = _read_changed(change_set, lesson)
        if self._is_superseded_by(lesson, former_winner):
            change_set.set(lesson.path, **dict.fromkeys(_STATUS_PROPERTIES))

    def _is_superseded_by(self, lesson: Lesson, winner: Lesson) -> bool:
        """Return whether a lesson is superseded, and links to `winner` as what replaced it."""
        if not lesson.is_superseded:
            return False
        [path] = self._extension.resolve_links([(lesson.superseded_by, lesson.path)])
        return path == winner.path


def _read_changed(change_set: ChangeSet, lesson: Lesson) -> Lesson:
    """Return a lesson as the change set has made it so far."""
    text = change_set.text(lesson.path)
    return read_lesson(lesson.path, text)


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
