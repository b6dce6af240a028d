"""Verdicts about pairs of lessons: which contradict each other, and which of two lessons holds.

Each is written as a relation in the notes, so that a pair with a verdict is not offered again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Unpack

from simplemem.errors import Conflict, Invalid
from simplemem.features.collection import ChangeSet
from simplemem.features.lessons.lesson import Lesson, with_relation
from simplemem.features.lessons.refs import find_lesson
from simplemem.features.lessons.relations import SUPERSEDING, mark_superseded
from simplemem.models import AuthorArgs

if TYPE_CHECKING:
    from simplemem.features.lessons.contradictions import Contradiction
    from simplemem.features.lessons.service import LessonService

CONTRADICTS: Final = "contradicts"
"""The relation between two lessons that were confirmed to contradict each other."""

COMPATIBLE: Final = "compatible_with"
"""The relation between two lessons that were offered as a contradiction, and are none."""

_VERDICTS: Final = (CONTRADICTS, COMPATIBLE)


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


def review_pairs(
    service: LessonService,
    verdicts: Sequence[PairVerdict],
    *,
    decided_by: str = "",
    **by: Unpack[AuthorArgs],
) -> Review:
    """Keep verdicts about pairs in their notes, as one step, so that no pair is offered again.

    A pair that contradicts gets the relation `contradicts`; if one is to be kept, that one gets
    `supersedes` instead, and the other is marked as superseded. Another pair gets
    `compatible_with`. Of several verdicts about a pair, the last one counts: each removes an
    earlier `contradicts` or `compatible_with`. If the pair does not contradict, or the other lesson
    is kept, the lesson that was superseded holds again, and `supersedes` is removed. `decided_by`
    names the model that decided; it is written beside `contradicts` and `compatible_with` only.

    Raises Invalid if a pair has one lesson twice, and NotFound or Ambiguous if a ref does not name
    one lesson, or `keep` not one of the two. Then nothing is written. Raises also what
    `NoteCollection.change` raises.
    """

    def draft(change_set: ChangeSet) -> list[ReviewedPair]:
        """Write the verdicts, and return the pairs."""
        lessons = service.collection.in_order()
        return [
            _write_review(service, change_set, lessons, verdict, decided_by) for verdict in verdicts
        ]

    author = AuthorArgs(tool="review_contradictions") | by
    reviewed, result = service.collection.change(draft, author)
    version = result.written[0].version if result.written else ""
    return Review(reviewed, version)


def _write_review(
    service: LessonService,
    change_set: ChangeSet,
    lessons: Sequence[Lesson],
    verdict: PairVerdict,
    decided_by: str,
) -> ReviewedPair:
    """Put one verdict into the change set, and return its pair. Raises as `review_pairs` does."""
    one = find_lesson(lessons, verdict.one)
    other = find_lesson(lessons, verdict.other)
    if one.path == other.path:
        raise Invalid("an entry cannot contradict itself")
    winner: Lesson | None = None
    if verdict.keep:
        winner = find_lesson((one, other), verdict.keep)

    _remove_earlier_verdict(service, change_set, one, other, verdict, winner)
    attributes = {"by": decided_by} if decided_by else {}
    if not verdict.contradicts:
        service.relations.put(change_set, other, COMPATIBLE, one, attributes)
        return ReviewedPair(one, other, contradicts=False, superseded=None)
    if winner is None:
        service.relations.put(change_set, other, CONTRADICTS, one, attributes)
        return ReviewedPair(one, other, contradicts=True, superseded=None)

    loser = other if winner.path == one.path else one
    service.relations.add(change_set, winner, "supersedes", loser)
    service.relations.supersede(change_set, winner, loser)
    return ReviewedPair(one, other, contradicts=True, superseded=loser)


def _remove_earlier_verdict(
    service: LessonService,
    change_set: ChangeSet,
    one: Lesson,
    other: Lesson,
    verdict: PairVerdict,
    winner: Lesson | None,
) -> None:
    """Remove what an earlier verdict about two lessons wrote, as far as `verdict` replaces it.

    A verdict that leaves open which lesson holds does not change which one is superseded.
    """
    for source, target in ((one, other), (other, one)):
        replaced_types = set(_VERDICTS)
        if not verdict.contradicts:
            replaced_types.update(SUPERSEDING)
            service.relations.restore(change_set, source, target)
        elif winner is source:
            replaced_types.add("superseded_by")
        elif winner is target:
            replaced_types.add("supersedes")
        service.relations.remove(change_set, source, target, replaced_types)


def supersede_losers(
    service: LessonService, contradictions: Iterable[Contradiction], **by: Unpack[AuthorArgs]
) -> str:
    """Mark the losers of contradictions as superseded, as one step of the history.

    Each winner gets a relation to its loser, whose confidence falls. Contradictions without a
    verdict are skipped. Returns the version of the step, "" if nothing was written. Raises
    Conflict, and writes nothing, if one of the lessons has changed since it was judged.
    """
    decided = [item for item in contradictions if item.verdict is not None]

    def draft(change_set: ChangeSet) -> str:
        """Write all verdicts and return "", or only return the name of a changed lesson."""
        stale_name = _find_stale(service, decided)
        if stale_name:
            return stale_name  # and nothing is written
        for contradiction in decided:
            _write_verdict(change_set, contradiction)
        return ""

    reason = f"{len(decided)} contradictions resolved"
    author = AuthorArgs(tool="auto_resolve_contradictions", reason=reason) | by
    stale_name, result = service.collection.change(draft, author)
    if stale_name:
        raise Conflict(
            f"{stale_name} has changed since it was read",
            current_sha256=None,
            hint="Repeat the call.",
        )
    return result.written[0].version if result.written else ""


def _find_stale(service: LessonService, contradictions: Iterable[Contradiction]) -> str:
    """Return the name of the first lesson that changed since it was judged; "" if none did."""
    for contradiction in contradictions:
        if contradiction.verdict is None:
            continue
        for lesson in (contradiction.verdict.winner, contradiction.verdict.loser):
            current = service.collection.items.get(lesson.path)
            if current is None or current.sha256 != lesson.sha256:
                return lesson.name
    return ""


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
    mark_superseded(change_set, winner, loser, f"{contradiction.rule}: {verdict.reason}")
