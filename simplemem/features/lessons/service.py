"""The service of lessons: it saves, finds, relates and supersedes the lessons of one store."""

from __future__ import annotations

import time
import uuid
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Unpack

from simplemem.errors import Ambiguous, Conflict, Invalid, NotFound
from simplemem.features.collection import ChangeSet, NoteCollection
from simplemem.features.event_log import EventLog
from simplemem.features.graph.bullets import Bullet, RelationLine
from simplemem.features.graph.page import read_page
from simplemem.features.graph.page_edits import remove_bullets
from simplemem.features.lessons.causes import ChainStep, trace_causes
from simplemem.features.lessons.description import (
    Fields,
    LessonRelation,
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
from simplemem.features.lessons.statements import Reading
from simplemem.features.service import FeatureService
from simplemem.features.text import clean_text
from simplemem.models import AuthorArgs, Hit
from simplemem.note.properties import remove_property
from simplemem.note.tag_changes import tags_for_new_note
from simplemem.store import now

if TYPE_CHECKING:
    from simplemem.features.lessons.contradictions import Contradiction
    from simplemem.store import EnhancedStore

DEFAULT_CONFIDENCE: Final = 0.7
"""The confidence of a new lesson if the caller gives none."""

SUPERSEDING: Final = ("supersedes", "superseded_by")
"""Types of relations that mark one of two lessons as superseded."""

CONTRADICTS: Final = "contradicts"
"""The relation between two lessons that were confirmed to contradict each other."""

COMPATIBLE: Final = "compatible_with"
"""The relation between two lessons that were offered as a contradiction, and are none."""

LessonHit = tuple[Lesson, Hit]

_MAX_CHARACTERS: Final = 10_000
_MIN_SCORE_SHARE: Final = 0.35  # of the best score; a lower hit answers another question
_MIN_ID_PREFIX: Final = 3  # characters
_CONFIDENCE_LOSS: Final = 0.3  # of a superseded lesson
_MIN_CONFIDENCE: Final = 0.1
_MAX_DURATIONS: Final = 1000  # per tool
_MAX_COMPARED_ON_SAVE: Final = 1000  # lessons, so that saving stays quick
_VERDICTS: Final = (CONTRADICTS, COMPATIBLE)
_STATUS_PROPERTIES: Final = ("status", "superseded_by", "superseded_at", "superseded_reason")


class LessonChange(NamedTuple):
    """New values for the parts of a lesson. None leaves a part as it is."""

    content: str | None = None
    context: str | None = None
    confidence: float | None = None
    verified: bool | None = None
    tags: tuple[str, ...] | None = None


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


class PairVerdict(NamedTuple):
    """What an agent or a model says about two lessons, which are given by refs."""

    one: str
    other: str
    contradicts: bool
    keep: str = ""  # the one that holds, so that it supersedes the other; "" leaves that open


class ReviewedPair(NamedTuple):
    """Two lessons, and the verdict that is now in their notes."""

    one: Lesson  # as they were before
    other: Lesson
    contradicts: bool
    superseded: Lesson | None  # the one that no longer holds


class Review(NamedTuple):
    """Pairs whose verdicts were written as one step."""

    pairs: list[ReviewedPair]
    version: str  # of the step, to undo it; "" if nothing was written


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
        relations = self.relations_of([lesson, *others])
        related = {relation.target.path for relation in relations[lesson.path]}
        for other in others:
            if any(relation.target.path == lesson.path for relation in relations[other.path]):
                related.add(other.path)
        unrelated = [other for other in others if other.path not in related]
        [reading, *other_readings] = self.read_statements([lesson, *unrelated])
        return propose_against(reading, other_readings)

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
        return _find_lesson(self.lessons(), ref)

    def relations_of(self, lessons: Sequence[Lesson]) -> RelationsByPath:
        """Return the relations of some lessons to lessons; an empty list for one without any.

        A relation to another note, or to none, is left out.
        """
        links = [
            (relation.link, lesson.path) for lesson in lessons for relation in lesson.relations
        ]
        paths = iter(self.extension.resolve_links(links))

        relations: RelationsByPath = {}
        for lesson in lessons:
            resolved: list[LessonRelation] = []
            for relation in lesson.relations:
                path = next(paths)
                if path in self.collection.items:
                    target = self.collection.items[path]
                    resolved.append(LessonRelation(relation.type, target))
            relations[lesson.path] = resolved
        return relations

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
        content = _clean(content, "content")
        context = _clean(context, "context")
        if not content:
            raise Invalid("the content is empty")

        legal_tags, warnings = _legal_tags(tags)
        body = render_body(content, context)
        properties: dict[str, Any] = {
            "tags": legal_tags,
            "id": str(uuid.uuid4()),
            "knowledge_type": lesson_type,
            "confidence": _confidence_value(confidence),
            "verified": bool(verified),
        }
        text = LESSON.render(properties, body, now())
        folder = f"{FOLDER}/{lesson_type}"
        new_lesson = read_lesson(f"{folder}/x.md", text)
        change = LessonChange(context=context or None, confidence=confidence, verified=verified)

        def draft(change_set: ChangeSet) -> tuple[str, list[Lesson]]:
            """Update the lesson that says the same, else add a note. Return its path, and twins."""
            lessons = self.collection.in_order()
            targets = [(new.type, _find_lesson(lessons, new.target)) for new in relations]
            twins = [lesson for lesson in lessons if _says_same(lesson, new_lesson)]
            twin = _twin_to_update(twins, new_lesson)
            if twin is None:
                stem = f"{folder}/{slug_of(content)}"
                path = self.free_path(change_set, stem, between="-")
                change_set.put(path, _with_relations(text, targets))
                return path, twins

            new_tags = [tag for tag in legal_tags if tag not in twin.tags]
            all_tags = (*twin.tags, *new_tags)
            self._apply(change_set, twin, change._replace(tags=all_tags))
            for relation_type, target in targets:
                self._add_relation(change_set, twin, relation_type, target)
            return twin.path, twins

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
        clean_change, warnings = _clean_change(change)

        def draft(change_set: ChangeSet) -> str:
            """Apply the change, and return the path of the lesson."""
            lesson = _find_lesson(self.collection.in_order(), ref)
            self._apply(change_set, lesson, clean_change)
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

        properties = _changed_properties(lesson, change)
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
        lesson = _find_lesson(lessons, ref)
        return trace_causes(lesson, lessons, self.relations_of(lessons), max_steps)

    def delete(self, ref: str, **by: Unpack[AuthorArgs]) -> DeletedLesson:
        """Move the note of a lesson to the trash. Relations to it stay in the other notes.

        Raises NotFound or Ambiguous if `ref` does not name one lesson.
        """

        def draft(change_set: ChangeSet) -> tuple[Lesson, list[Lesson]]:
            """Delete the note. Return the lesson, and those with a relation to it."""
            lessons = self.collection.in_order()
            lesson = _find_lesson(lessons, ref)
            related = self._lessons_related_to(lesson, lessons)
            change_set.drop(lesson.path)
            return lesson, related

        author = AuthorArgs(tool="delete_knowledge") | by
        (lesson, related), result = self.collection.change(draft, author)
        return DeletedLesson(lesson, related, result.written[0].version)

    def _lessons_related_to(self, target: Lesson, lessons: Sequence[Lesson]) -> list[Lesson]:
        """Return those among `lessons` with a relation to `target`, in their order."""
        relations = self.relations_of(lessons)
        related: list[Lesson] = []
        for lesson in lessons:
            target_paths = {relation.target.path for relation in relations[lesson.path]}
            if target.path in target_paths:
                related.append(lesson)
        return related

    # Relations and superseded lessons

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
            one = _find_lesson(lessons, source)
            other = _find_lesson(lessons, target)
            if one.path == other.path:
                raise Invalid("an entry cannot be related to itself")

            is_changed = self._add_relation(change_set, one, relation_type, other)
            if type_key == "supersedes":
                is_marked = self._supersede_by_client(change_set, winner=one, loser=other)
            elif type_key == "superseded_by":
                is_marked = self._supersede_by_client(change_set, winner=other, loser=one)
            else:
                is_marked = False
            return LinkedLessons(one, other, is_changed or is_marked)

        author = AuthorArgs(tool="link_knowledge") | by
        linked, _ = self.collection.change(draft, author)
        current_source = self.collection.items[linked.source.path]
        return linked._replace(source=current_source)

    def review(
        self, verdicts: Sequence[PairVerdict], *, decided_by: str = "", **by: Unpack[AuthorArgs]
    ) -> Review:
        """Keep verdicts about pairs in their notes, as one step, so that no pair is offered again.

        A pair that contradicts gets the relation `contradicts`, or `supersedes` if one is to be
        kept; another pair gets `compatible_with`. These replace an earlier verdict. `decided_by`
        names the model that decided. Raises Invalid if a pair has one lesson twice or `keep` is
        none of the two, and NotFound or Ambiguous if a ref does not name one lesson; then nothing
        is written.
        """

        def draft(change_set: ChangeSet) -> list[ReviewedPair]:
            """Write the verdicts, and return the pairs."""
            lessons = self.collection.in_order()
            return [
                self._write_review(change_set, lessons, verdict, decided_by) for verdict in verdicts
            ]

        author = AuthorArgs(tool="review_contradictions") | by
        reviewed, result = self.collection.change(draft, author)
        version = result.written[0].version if result.written else ""
        return Review(reviewed, version)

    def _write_review(
        self,
        change_set: ChangeSet,
        lessons: Sequence[Lesson],
        verdict: PairVerdict,
        decided_by: str,
    ) -> ReviewedPair:
        """Put one verdict into the change set, instead of an earlier one, and return its pair."""
        one = _find_lesson(lessons, verdict.one)
        other = _find_lesson(lessons, verdict.other)
        if one.path == other.path:
            raise Invalid("an entry cannot contradict itself")
        winner: Lesson | None = None
        if verdict.keep:
            winner = _find_lesson((one, other), verdict.keep)

        self._drop_verdict(change_set, one, other)
        self._drop_verdict(change_set, other, one)
        attributes = {"by": decided_by} if decided_by else {}
        if not verdict.contradicts:
            self._put_relation(change_set, other, COMPATIBLE, one, attributes)
            return ReviewedPair(one, other, contradicts=False, superseded=None)
        if winner is None:
            self._put_relation(change_set, other, CONTRADICTS, one, attributes)
            return ReviewedPair(one, other, contradicts=True, superseded=None)

        loser = other if winner.path == one.path else one
        self._add_relation(change_set, winner, "supersedes", loser)
        self._supersede_by_client(change_set, winner, loser)
        return ReviewedPair(one, other, contradicts=True, superseded=loser)

    def _drop_verdict(self, change_set: ChangeSet, source: Lesson, target: Lesson) -> None:
        """Remove the verdict about two lessons from the note of the first, if it has one."""
        text = change_set.text(source.path)
        page = read_page(source.path, text)
        dropped: list[Bullet] = []
        for bullet in page.bullets:
            relation = bullet.content
            if not isinstance(relation, RelationLine) or not relation.link:
                continue
            if relation.type not in _VERDICTS:
                continue
            [path] = self.extension.resolve_links([(relation.link, source.path)])
            if path == target.path:
                dropped.append(bullet)
        if dropped:
            change_set.put(source.path, remove_bullets(text, dropped))

    def _add_relation(
        self, change_set: ChangeSet, source: Lesson, relation_type: str, target: Lesson
    ) -> bool:
        """Put a relation into the change set unless the lesson has it. Return whether it did."""
        relation = LessonRelation(relation_type, target)
        if relation in self.relations_of([source])[source.path]:
            return False
        self._put_relation(change_set, source, relation_type, target, {})
        return True

    def _put_relation(
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

    def _supersede_by_client(self, change_set: ChangeSet, winner: Lesson, loser: Lesson) -> bool:
        """Mark a lesson as superseded by another, in the change set. False if it already was.

        The last call counts: if the loser had superseded the winner, the winner holds again.
        """
        if self._is_superseded_by(loser, winner):
            return False
        if self._is_superseded_by(winner, loser):
            change_set.set(winner.path, **dict.fromkeys(_STATUS_PROPERTIES))
        _mark_superseded(change_set, winner, loser, "decided by a client")
        return True

    def _is_superseded_by(self, lesson: Lesson, winner: Lesson) -> bool:
        """Return whether a lesson is superseded, and links to `winner` as what replaced it."""
        if not lesson.is_superseded:
            return False
        [path] = self.extension.resolve_links([(lesson.superseded_by, lesson.path)])
        return path == winner.path

    def supersede(self, contradictions: Iterable[Contradiction], **by: Unpack[AuthorArgs]) -> str:
        """Mark the losers of contradictions as superseded, as one step of the history.

        Each winner gets a relation to its loser, whose confidence falls. Contradictions without a
        verdict are skipped. Returns the version of the step, "" if nothing was written. Raises
        Conflict, and writes nothing, if one of the lessons has changed since it was judged.
        """
        decided = [item for item in contradictions if item.verdict is not None]

        def draft(change_set: ChangeSet) -> str:
            """Write all verdicts and return "", or only return the name of a changed lesson."""
            stale_name = self._find_stale(decided)
            if stale_name:
                return stale_name  # and nothing is written
            for contradiction in decided:
                _write_verdict(change_set, contradiction)
            return ""

        reason = f"{len(decided)} contradictions resolved"
        author = AuthorArgs(tool="auto_resolve_contradictions", reason=reason) | by
        stale_name, result = self.collection.change(draft, author)
        if stale_name:
            raise Conflict(
                f"{stale_name} has changed since it was read",
                current_sha256=None,
                hint="Repeat the call.",
            )
        return result.written[0].version if result.written else ""

    def _find_stale(self, contradictions: Iterable[Contradiction]) -> str:
        """Return the name of the first lesson that changed since it was judged; "" if none did."""
        for contradiction in contradictions:
            if contradiction.verdict is None:
                continue
            for lesson in (contradiction.verdict.winner, contradiction.verdict.loser):
                current = self.collection.items.get(lesson.path)
                if current is None or current.sha256 != lesson.sha256:
                    return lesson.name
        return ""


lesson_service: Final = LessonService.of  # returns the one service of a store


def _new_durations() -> deque[float]:
    """Return an empty list of durations, which forgets the oldest ones."""
    return deque(maxlen=_MAX_DURATIONS)


def _find_lesson(lessons: Sequence[Lesson], ref: str) -> Lesson:
    """Return the lesson with this id, else with this name, else with an id that begins so.

    Raises NotFound if there is none, Ambiguous if there are several.
    """
    ref = ref.strip()
    matches = _matching_lessons(lessons, ref)
    if not matches:
        raise NotFound(
            f"Knowledge entry not found: {ref[:100]}",
            hint="Give an id, the first letters of an id, or the name of a note in knowledge/.",
        )
    if len(matches) > 1:
        raise Ambiguous(
            f"{ref[:60]} matches {len(matches)} entries",
            candidates=[f"{lesson.id} ({lesson.name})" for lesson in matches],
        )
    return matches[0]


def _matching_lessons(lessons: Sequence[Lesson], ref: str) -> list[Lesson]:
    """Return all lessons with this id, else with this name, else with an id that begins so."""
    by_id = [lesson for lesson in lessons if lesson.id == ref]
    if by_id:
        return by_id

    key = ref.removeprefix("[[").removesuffix("]]")
    key = key.removesuffix(".md").casefold()
    by_name = [lesson for lesson in lessons if _has_name(lesson, key)]
    if by_name or len(key) < _MIN_ID_PREFIX:
        return by_name
    return [lesson for lesson in lessons if lesson.id.casefold().startswith(key)]


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


def _has_name(lesson: Lesson, key: str) -> bool:
    """Return whether a lower-case key is the name of a lesson, with or without its folder."""
    name = lesson.name.casefold()
    return key in (name, name.rpartition("/")[2])


def _says_same(lesson: Lesson, new_lesson: Lesson) -> bool:
    """Return whether a lesson has the type and content of a new one, and no other context."""
    if not lesson.is_own or lesson.type != new_lesson.type:
        return False
    if lesson.content != new_lesson.content:
        return False
    return not new_lesson.context or lesson.context in ("", new_lesson.context)


def _twin_to_update(twins: Sequence[Lesson], new_lesson: Lesson) -> Lesson | None:
    """Return the lesson to update: the first with the same context, else the oldest.

    `twins` are sorted by age. Returns None if all are superseded, or there are none.
    """
    current = [lesson for lesson in twins if not lesson.is_superseded]
    for lesson in current:
        if lesson.context == new_lesson.context:
            return lesson
    return current[0] if current else None


def _with_relations(text: str, targets: Iterable[tuple[str, Lesson]]) -> str:
    """Return the text of a note with relations to lessons, each given with its type."""
    for relation_type, target in targets:
        text = with_relation(text, relation_type, target.name)
    return text


def _write_verdict(change_set: ChangeSet, contradiction: Contradiction) -> None:
    """Relate the winner of a contradiction to the loser, and mark the loser as superseded.

    Both are done in the change set. A contradiction without a verdict changes nothing.
    """
    verdict = contradiction.verdict
    if verdict is None:
        return
    winner = verdict.winner
    loser = verdict.loser
    text = with_relation(change_set.text(winner.path), "supersedes", loser.name)
    change_set.put(winner.path, text)
    _mark_superseded(change_set, winner, loser, f"{contradiction.rule}: {verdict.reason}")


def _mark_superseded(change_set: ChangeSet, winner: Lesson, loser: Lesson, reason: str) -> None:
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


def _changed_properties(lesson: Lesson, change: LessonChange) -> dict[str, Any]:
    """Return the properties that a change makes different, by key, with values for the note.

    They may be `tags`, `confidence` and `verified`.
    """
    properties: dict[str, Any] = {}
    if change.tags is not None and change.tags != lesson.tags:
        properties["tags"] = list(change.tags)
    if change.confidence is not None and change.confidence != lesson.confidence:
        properties["confidence"] = _confidence_value(change.confidence)
    if change.verified is not None and change.verified != lesson.verified:
        properties["verified"] = change.verified
    return properties


def _clean_change(change: LessonChange) -> tuple[LessonChange, list[str]]:
    """Return a change with clean texts and legal tags, and a warning per tag that was changed.

    Raises Invalid for an empty content, TooLong for a text over 10,000 characters.
    """
    warnings: list[str] = []
    if change.tags is not None:
        legal_tags, warnings = _legal_tags(change.tags)
        change = change._replace(tags=tuple(legal_tags))
    if change.content is not None:
        change = change._replace(content=_clean(change.content, "content"))
        if not change.content:
            raise Invalid("the content is empty", hint="delete_knowledge removes an entry.")
    if change.context is not None:
        change = change._replace(context=_clean(change.context, "context"))
    return change, warnings


def _legal_tags(tags: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return tags as a note can have them, each once, and a warning per changed tag."""
    legal: list[str] = []
    warnings: list[str] = []
    for tag in tags:
        try:
            new_tags, _ = tags_for_new_note([tag])
            legal += new_tags
        except Invalid as error:
            proposed = str(error.details.get("proposed", "tag"))
            legal.append(proposed)
            warnings.append(
                f"the tag {tag!r} was written as {proposed!r}:"
                " a tag has only letters, digits, _, - and /"
            )
    return list(dict.fromkeys(legal)), warnings


def _confidence_value(confidence: float | None) -> float:
    """Return a confidence as it is written in a note: 1, not 1.0. None gives the default."""
    if confidence is None:
        return DEFAULT_CONFIDENCE
    if confidence in (0, 1):
        return int(confidence)
    return confidence


def _clean(text: str, argument: str) -> str:
    """Return a text without blanks around it. `argument` is its name in messages of errors.

    Raises TooLong if it has more than 10,000 characters, and Invalid if a note cannot contain one
    of them.
    """
    hint = "Nothing was saved. Shorten the text, or create several entries and link them."
    return clean_text(text.strip(), argument, _MAX_CHARACTERS, hint)
