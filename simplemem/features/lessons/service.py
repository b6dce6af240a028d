"""The service of lessons: it saves, finds, corrects, relates and deletes those of one store."""

from __future__ import annotations

import time
import uuid
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Unpack

from simplemem.errors import Invalid
from simplemem.features.collection import ChangeSet, NoteCollection
from simplemem.features.event_log import EventLog
from simplemem.features.lessons.causes import ChainStep, trace_causes
from simplemem.features.lessons.changes import (
    LessonChange,
    changed_properties,
    clean_change,
    clean_lesson_text,
    confidence_value,
    legal_tags,
    says_same,
    twin_to_update,
)
from simplemem.features.lessons.description import (
    Fields,
    RelationsByPath,
    describe_lessons,
)
from simplemem.features.lessons.lesson import (
    FOLDER,
    LESSON,
    Lesson,
    read_lesson,
    render_body,
    replace_body,
    slug_of,
    with_relation,
)
from simplemem.features.lessons.note_search import NoteHits, search_notes, with_falling_scores
from simplemem.features.lessons.proposals import Proposal, propose_against
from simplemem.features.lessons.read_counts import FILE, ReadCounts, add_reads
from simplemem.features.lessons.reading_cache import ReadingCache
from simplemem.features.lessons.refs import find_lesson
from simplemem.features.lessons.relations import Relations
from simplemem.features.lessons.statements import Reading
from simplemem.features.service import FeatureService
from simplemem.models import AuthorArgs, Hit
from simplemem.note.properties import remove_property
from simplemem.store import now

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore

LessonHit = tuple[Lesson, Hit]

_MIN_SCORE_SHARE: Final = 0.35  # of the best score; a lower hit answers another question
_MAX_DURATIONS: Final = 1000  # per tool
_MAX_COMPARED_ON_SAVE: Final = 1000  # lessons, so that saving stays quick


class NewRelation(NamedTuple):
    """A relation that a lesson is saved with."""

    type: str
    target: str  # the ref of a lesson


class SavedLesson(NamedTuple):
    """A lesson that was saved, or updated because it said the same already."""

    lesson: Lesson  # as it is now
    twins: list[Lesson]  # the lessons that said the same before, as they were then
    warnings: list[str]


class UpdatedLesson(NamedTuple):
    """A lesson as it is now, and warnings."""

    lesson: Lesson
    warnings: list[str]


class DeletedLesson(NamedTuple):
    """A deleted lesson."""

    lesson: Lesson
    related: list[Lesson]  # those with a relation to it
    version: str  # the name of the deletion in the history, to undo it


class LinkedLessons(NamedTuple):
    """Two lessons of which the source has a relation to the target."""

    source: Lesson  # as it is now
    target: Lesson  # as it was before the change
    is_changed: bool  # false if the relation existed already


class LessonService(FeatureService):
    """The lessons of one store. Each change of them is one step of the history.

    A change takes as `by` who makes it. It raises ReadOnly if the vault is read-only, Conflict if a
    note was saved in the meantime, and Unreadable if the frontmatter of a note cannot be edited;
    nothing is written then. A `ref` names a lesson: by its id, the name of its note, or the first
    three or more characters of its id.

    Guards the lessons as they are in the vault, how often each was read, and `durations`: how many
    milliseconds the last calls of each tool took, by its name, in this process.
    """

    def __init__(self, store: EnhancedStore) -> None:
        """Make the service of a store. Callers use `lesson_service`, so that there is only one."""
        super().__init__(store)
        self.collection = NoteCollection(store.extension, LESSON)
        self.durations: dict[str, deque[float]] = defaultdict(_new_durations)
        self._reads: EventLog[ReadCounts] = EventLog(
            store.extension,
            FILE,
            empty=dict,
            apply=add_reads,
        )
        self.relations = Relations(store.extension, self.collection)
        self._readings = ReadingCache()

    # Reading

    def lessons(self) -> list[Lesson]:
        """Return all lessons, the oldest first, after all notes saved so far were read."""
        with self.collection.reading():
            return list(self.collection.in_order())

    def read_statements(self, lessons: Sequence[Lesson]) -> list[Reading]:
        """Return what lessons say, in their order. A lesson is read again only after a change."""
        return self._readings.read(lessons, self.collection.items)

    def may_contradict(self, lesson: Lesson) -> list[Proposal]:
        """Return the pairs of a lesson with a current one that rules offer as a contradiction.

        Pairs with a relation are left out. Returns none if there are more than 1,000 lessons.
        """
        others = [
            other
            for other in self.lessons()
            if other.path != lesson.path and not other.is_superseded
        ]
        if len(others) > _MAX_COMPARED_ON_SAVE:
            return []

        unrelated = self._without_related(others, lesson)
        [reading, *other_readings] = self.read_statements([lesson, *unrelated])
        return propose_against(reading, other_readings)

    def _without_related(self, lessons: Sequence[Lesson], lesson: Lesson) -> list[Lesson]:
        """Return lessons without those that have a relation to a lesson, or that it has one to."""
        [relations_from] = self.relations_of([lesson]).values()
        related = {relation.target.path for relation in relations_from}
        for source in self.relations.lessons_related_to(lesson, lessons):
            related.add(source.path)
        return [other for other in lessons if other.path not in related]

    def read_counts(self) -> ReadCounts:
        """Return how often each lesson was read, and when last, by id.

        A lesson that was never read is absent.
        """
        return self._reads.state()

    def record_reads(self, ids: Collection[str]) -> None:
        """Record that the lessons with these ids were read just now.

        Nothing is recorded, and nothing raised, if the vault is read-only or the log is locked.
        """
        if ids:
            at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            self._reads.add({"at": at, "ids": list(ids)})

    def find(self, ref: str) -> Lesson:
        """Return the lesson with this id, else with this name, else with an id that begins so.

        Raises NotFound if there is none, Ambiguous if there are several.
        """
        return find_lesson(self.lessons(), ref)

    def relations_of(self, lessons: Sequence[Lesson]) -> RelationsByPath:
        """Return the relations of some lessons to lessons; an empty list for one without any.

        A relation to another note, or to none, is left out.
        """
        return self.relations.relations_of(lessons)

    def describe(self, lessons: Sequence[Lesson]) -> list[Fields]:
        """Return lessons in their order, each with the fields of `describe_lessons`."""
        if not lessons:
            return []
        all_lessons = self.lessons()
        return describe_lessons(
            lessons,
            all_lessons=all_lessons,
            relations=self.relations_of(all_lessons),
            counts=self.read_counts(),
        )

    def search(
        self,
        query: str,
        *,
        lesson_type: str = "",
        min_confidence: float = 0.0,
        limit: int = 10,
    ) -> NoteHits[Lesson]:
        """Return up to `limit` lessons that answer a query, best first, superseded ones last.

        Any lesson answers an empty query; for other queries, lessons below 0.35 of the best score
        are left out. With `lesson_type`, only lessons of this type are returned. The confidence of
        a lesson without one counts as 0.
        """
        current: dict[str, Lesson] = {}
        superseded: dict[str, Lesson] = {}
        for lesson in self.lessons():
            if not _passes(lesson, lesson_type, min_confidence):
                continue
            group = superseded if lesson.is_superseded else current
            group[lesson.path] = lesson

        properties: dict[str, str] = {}
        if lesson_type:
            properties["knowledge_type"] = lesson_type

        result = search_notes(self.store, LESSON, current, query, limit, properties)
        hits = result.hits

        missing = limit - len(hits)
        if superseded and missing > 0:
            more = search_notes(self.store, LESSON, superseded, query, missing, properties)
            hits += more.hits

        if query.strip():
            hits = _without_weak_hits(hits)
        return NoteHits(with_falling_scores(hits), result.method, result.degraded)

    # Saving, correcting, deleting

    def save(
        self,
        lesson_type: str,
        content: str,
        *,
        context: str = "",
        confidence: float | None = None,
        verified: bool | None = None,
        tags: Sequence[str] = (),
        relations: Sequence[NewRelation] = (),
        **by: Unpack[AuthorArgs],
    ) -> SavedLesson:
        """Save a lesson as a note, or update the lesson that says the same.

        A lesson that is not superseded says the same if it has this type and content, and no other
        context. It gets the confidence, `verified` and context that are given, and the tags and
        relations in addition to its own.

        Raises Invalid for an empty content or one that leaves a code block open, TooLong for a
        content or context over 10,000 characters, and NotFound or Ambiguous if a relation does not
        name one lesson; nothing is written then.
        """
        content = clean_lesson_text(content, "content")
        context = clean_lesson_text(context, "context")
        if not content:
            raise Invalid("the content is empty")

        note_tags, warnings = legal_tags(tags)
        body = render_body(content, context)
        properties: dict[str, Any] = {
            "tags": note_tags,
            "id": str(uuid.uuid4()),
            "knowledge_type": lesson_type,
            "confidence": confidence_value(confidence),
            "verified": bool(verified),
        }
        text = LESSON.render(properties, body, now())
        folder = f"{FOLDER}/{lesson_type}"
        new_lesson = read_lesson(f"{folder}/x.md", text)
        change = LessonChange(context=context or None, confidence=confidence, verified=verified)

        def draft(change_set: ChangeSet) -> tuple[str, list[Lesson]]:
            """Update the lesson that says the same, else add a note. Return its path, and twins."""
            lessons = self.collection.in_order()
            targets = [(new.type, find_lesson(lessons, new.target)) for new in relations]
            twins = [lesson for lesson in lessons if says_same(lesson, new_lesson)]
            twin = twin_to_update(twins, new_lesson)

            if twin is not None:
                new_tags = [tag for tag in note_tags if tag not in twin.tags]
                all_tags = (*twin.tags, *new_tags)
                self._apply(change_set, twin, change._replace(tags=all_tags))
                for relation_type, target in targets:
                    self.relations.add(change_set, twin, relation_type, target)
                return twin.path, twins

            stem = f"{folder}/{slug_of(content)}"
            path = self.free_path(change_set, stem, between="-")
            change_set.put(path, _with_relations(text, targets))
            return path, twins

        author = AuthorArgs(tool="save_knowledge") | by
        (path, twins), result = self.collection.change(draft, author)
        lesson = self.collection.items[path]
        return SavedLesson(lesson, twins, [*warnings, *result.warnings])

    def update(self, ref: str, change: LessonChange, **by: Unpack[AuthorArgs]) -> UpdatedLesson:
        """Correct a lesson. What is None in the change stays, and so do its id and its relations.

        Nothing is written if the lesson has all these values already. Raises Invalid if the change
        has no values or the content would be empty or leave a code block open, TooLong for a text
        over 10,000 characters, and NotFound or Ambiguous if `ref` does not name one lesson.
        """
        if all(value is None for value in change):
            raise Invalid(
                "no change given", hint="Give content, context, confidence, verified or tags."
            )
        cleaned, warnings = clean_change(change)

        def draft(change_set: ChangeSet) -> str:
            """Apply the change, and return the path of the lesson."""
            lesson = find_lesson(self.collection.in_order(), ref)
            self._apply(change_set, lesson, cleaned)
            return lesson.path

        author = AuthorArgs(tool="update_knowledge") | by
        path, result = self.collection.change(draft, author)
        lesson = self.collection.items[path]
        return UpdatedLesson(lesson, [*warnings, *result.warnings])

    def _apply(self, change_set: ChangeSet, lesson: Lesson, change: LessonChange) -> None:
        """Put the parts of a lesson that a change makes different into the change set.

        Raises Invalid if the new content leaves a code block or comment open.
        """
        content = lesson.content
        if change.content is not None:
            content = change.content
        context = lesson.context
        if change.context is not None:
            context = change.context

        if content != lesson.content or context != lesson.context:
            text = change_set.text(lesson.path)
            # A person may have written the context as a property.
            text = remove_property(text, "context")
            text = replace_body(text, content, context)
            change_set.put(lesson.path, text)

        properties = changed_properties(lesson, change)
        if properties:
            change_set.set(lesson.path, **properties)

    def verify(
        self, ref: str, *, verified: bool, note: str = "", **by: Unpack[AuthorArgs]
    ) -> UpdatedLesson:
        """Record whether a lesson was tested and holds, and add how to its context.

        Raises what `update` raises.
        """
        lesson = self.find(ref)
        change = LessonChange(verified=verified)
        evidence = " ".join(note.split())
        if evidence:
            outcome = "Verified" if verified else "Did not hold"
            line = f"{outcome} on {now()[:10]}: {evidence}"
            if line not in lesson.context.split("\n"):
                change = change._replace(context=f"{lesson.context}\n\n{line}".strip())
        author = AuthorArgs(tool="verify_knowledge") | by
        return self.update(lesson.id, change, **author)

    def trace(self, ref: str, max_steps: int = 10) -> list[ChainStep]:
        """Return the causes, effects and fixes of a lesson, as `trace_causes` orders them.

        Raises NotFound or Ambiguous if `ref` does not name one lesson.
        """
        lessons = self.lessons()
        lesson = find_lesson(lessons, ref)
        return trace_causes(lesson, lessons, self.relations_of(lessons), max_steps)

    def delete(self, ref: str, **by: Unpack[AuthorArgs]) -> DeletedLesson:
        """Move the note of a lesson to the trash. Relations to it stay in the other notes.

        Raises NotFound or Ambiguous if `ref` does not name one lesson.
        """

        def draft(change_set: ChangeSet) -> tuple[Lesson, list[Lesson]]:
            """Delete the note. Return the lesson, and those with a relation to it."""
            lessons = self.collection.in_order()
            lesson = find_lesson(lessons, ref)
            related = self.relations.lessons_related_to(lesson, lessons)
            change_set.drop(lesson.path)
            return lesson, related

        author = AuthorArgs(tool="delete_knowledge") | by
        (lesson, related), result = self.collection.change(draft, author)
        return DeletedLesson(lesson, related, result.written[0].version)

    # Relations

    def link(
        self, source: str, target: str, relationship: str = "relates_to", **by: Unpack[AuthorArgs]
    ) -> LinkedLessons:
        """Add a relation from one lesson to another, unless it exists.

        `source` and `target` are refs of lessons. The relationships `supersedes` and
        `superseded_by` also mark the lesson that no longer holds as superseded. Raises Invalid if
        both are the same lesson, and NotFound or Ambiguous if `source` or `target` does not name
        one lesson.
        """
        relation_type = " ".join(relationship.split()) or "relates_to"
        type_key = relation_type.casefold().replace(" ", "_")

        def draft(change_set: ChangeSet) -> LinkedLessons:
            """Write the relation and what it supersedes. Return both lessons as they were."""
            lessons = self.collection.in_order()
            one = find_lesson(lessons, source)
            other = find_lesson(lessons, target)
            if one.path == other.path:
                raise Invalid("an entry cannot be related to itself")

            is_changed = self.relations.add(change_set, one, relation_type, other)
            if type_key == "supersedes":
                is_marked = self.relations.supersede(change_set, winner=one, loser=other)
            elif type_key == "superseded_by":
                is_marked = self.relations.supersede(change_set, winner=other, loser=one)
            else:
                is_marked = False
            return LinkedLessons(one, other, is_changed or is_marked)

        author = AuthorArgs(tool="link_knowledge") | by
        linked, _ = self.collection.change(draft, author)
        current_source = self.collection.items[linked.source.path]
        return linked._replace(source=current_source)


lesson_service: Final = LessonService.of  # returns the one service of a store


def _new_durations() -> deque[float]:
    """Return an empty list of durations, which forgets the oldest ones."""
    return deque(maxlen=_MAX_DURATIONS)


def _passes(lesson: Lesson, lesson_type: str, min_confidence: float) -> bool:
    """Return whether a lesson has a type, "" for any, and at least a confidence."""
    if lesson_type not in ("", lesson.type):
        return False
    confidence = lesson.confidence or 0.0
    return confidence >= min_confidence


def _without_weak_hits(hits: Sequence[LessonHit]) -> list[LessonHit]:
    """Return the hits without those whose score is below 0.35 of the best one."""
    best_score = max((hit.score for _, hit in hits), default=0.0)
    min_score = _MIN_SCORE_SHARE * best_score
    return [(lesson, hit) for lesson, hit in hits if hit.score >= min_score]


def _with_relations(text: str, targets: Iterable[tuple[str, Lesson]]) -> str:
    """Return the text of a note with relations to lessons, each given with its type."""
    for relation_type, target in targets:
        text = with_relation(text, relation_type, target.name)
    return text
