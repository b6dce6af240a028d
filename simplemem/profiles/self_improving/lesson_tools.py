"""The tools that save, find, relate, correct and delete lessons ("knowledge" for clients)."""

# ruff: noqa: N803  (the names of arguments are the contract's)
from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal, NotRequired, TypedDict

from pydantic import Field

from simplemem.features.lessons import TYPES
from simplemem.features.lessons.analysis import analysis_of
from simplemem.features.lessons.causes import CAUSED_BY, FIXED_BY
from simplemem.features.lessons.changes import DEFAULT_CONFIDENCE, LessonChange
from simplemem.features.lessons.findings import lesson_label
from simplemem.features.lessons.relations import SUPERSEDING
from simplemem.features.lessons.reviewing import ModelReview, review_with_model
from simplemem.features.lessons.service import (
    NewRelation,
)
from simplemem.features.lessons.verdicts import PairVerdict, ReviewedPair, review_pairs
from simplemem.features.services import LessonService
from simplemem.profiles.self_improving.adapter import ADAPTER, Limit, Query
from simplemem.tools import render
from simplemem.tools.arguments import (
    Arguments,
    Several,
    Share,
    Words,
    about,
    aliases,
    clamp,
)
from simplemem.tools.tool import Caller, Data, Reply, Tool, tool

if TYPE_CHECKING:
    from simplemem.features.lessons.causes import ChainStep
    from simplemem.features.lessons.lesson import Lesson
    from simplemem.features.lessons.proposals import Proposal
    from simplemem.store import EnhancedStore

_MAX_TWINS: Final = 5  # that an answer names
_MAX_OFFERS: Final = 3  # that an answer shows
_FIELDS: Final = ("content", "context", "confidence", "verified", "tags")

LessonType = Literal[TYPES]  # type: ignore[valid-type]
Content = Annotated[
    str,
    about("what was learned; Markdown, at most 10,000 characters"),
    Field(min_length=1),
]
Relationship = Annotated[
    str,
    Field(max_length=100),
    about("fixes, causes, supersedes, …"),
]
MaxPairs = Annotated[
    int, clamp(300), Field(ge=1), about("that the model is asked about, offered ones first")
]
MaxSteps = Annotated[int, clamp(50), Field(ge=1)]
LessonId = Annotated[
    str,
    aliases("id", "entryId", "knowledgeId"),
    about("its id, the first characters of the id, or its note's name"),
]


Refs = Annotated[Words, about("ids or names of entries")]


class PairIn(Arguments):
    """Two entries, and whether they contradict each other."""

    one: Annotated[str, about("id or name of an entry")]
    other: Annotated[str, about("id or name of an entry")]
    verdict: Literal["contradict", "compatible"]
    keep: Annotated[str, about("id of the one that holds; it supersedes the other")] = ""


class Saved(TypedDict):
    """The saved lesson, and the ids of those that said the same before."""

    id: str
    name: str
    same_as: list[str]
    warnings: list[str]
    changed: NotRequired[list[str]]
    may_contradict: NotRequired[list[Data]]


class Updated(TypedDict):
    """The corrected lesson, and the names of the fields that changed."""

    id: str
    name: str
    changed: list[str]
    warnings: list[str]


class Deleted(TypedDict):
    """The deleted lesson, the version that undoes this, and the ids of those that link to it."""

    id: str
    name: str
    version: str
    related: list[str]


class Reviewed(TypedDict):
    """The verdicts that are now in the notes, and who decided."""

    reviewed: list[Data]
    version: str
    asked: int
    method: str
    degraded: str


class Chain(TypedDict):
    """The causes, effects and fixes of an entry."""

    chain: list[Data]


class FoundLessons(TypedDict):
    """Lessons with their scores, how they were found, and why the search was degraded."""

    results: list[Data]
    method: str
    degraded: str


class Linked(TypedDict):
    """The ids of both lessons, the relation, and the ids of those that no longer hold."""

    sourceId: str
    targetId: str
    relationship: str
    changed: bool
    superseded: NotRequired[list[str]]


@tool("Save knowledge", writes=True, idempotent=False, adapter=ADAPTER)
def save_knowledge(
    lessons: LessonService,
    caller: Caller,
    kind: Annotated[LessonType, aliases("type")],
    content: Content,
    confidence: Annotated[Share | None, about(f"0 to 1; default {DEFAULT_CONFIDENCE}")] = None,
    tags: Words = [],  # noqa: B006
    context: Annotated[str, about("where, when, why")] = "",
    verified: bool | None = None,
    causedBy: Refs = [],  # noqa: B006
    fixedBy: Refs = [],  # noqa: B006
    fixes: Refs = [],  # noqa: B006
) -> Reply[Saved]:
    """Save one lesson as an entry: a decision, error, solution, pattern or insight.

    Saving the same content again updates its entry. `may_contradict` in the answer names entries
    to judge with review_contradictions."""
    relations = [NewRelation(CAUSED_BY, ref) for ref in causedBy]
    relations += [NewRelation(FIXED_BY, ref) for ref in fixedBy]
    relations += [NewRelation("fixes", ref) for ref in fixes]
    lesson, twins, warnings = lessons.save(
        kind,
        content,
        context=context,
        confidence=confidence,
        verified=verified,
        tags=tags,
        relations=relations,
        **caller,
    )
    twin_ids = [twin.id for twin in twins]
    data: Saved = {
        "id": lesson.id,
        "name": lesson.name,
        "same_as": twin_ids,
        "warnings": warnings,
    }

    lines = [f"Knowledge saved with ID: {lesson.id}"]
    previous = _find_by_id(twins, lesson.id)
    if previous is not None:
        changed = _changed_fields(previous, lesson)
        data["changed"] = changed
        lines.append(f"The entry existed already; changed: {', '.join(changed) or 'nothing'}")
    elif twin_ids:
        lines.append(f"Entries with the same content: {', '.join(twin_ids[:_MAX_TWINS])}")
    lines += warnings

    offers = lessons.may_contradict(lesson)[:_MAX_OFFERS]
    if offers:
        data["may_contradict"] = [_offer_data(lesson, offer) for offer in offers]
        lines += [_offer_line(offer) for offer in data["may_contradict"]]
    return Reply("\n".join(lines), data)


def _offer_data(lesson: Lesson, offer: Proposal) -> Data:
    """Return the other entry of a pair that a lesson may contradict, with the reason."""
    other = offer.one if offer.other.path == lesson.path else offer.other
    return lesson_label(other) | {"created": other.created[:10], "reason": offer.reason.text}


def _offer_line(offer: Data) -> str:
    """Return the line of an answer that shows an entry which a saved one may contradict."""
    return (
        f'This may contradict: "{offer["says"]}" ({offer["created"]}) [{offer["id"]}]:'
        f" {offer['reason']}. Tell review_contradictions whether it does."
    )


def _find_by_id(lessons: list[Lesson], lesson_id: str) -> Lesson | None:
    """Return the lesson among these with an id, None if there is none."""
    for lesson in lessons:
        if lesson.id == lesson_id:
            return lesson
    return None


def _changed_fields(previous: Lesson, current: Lesson) -> list[str]:
    """Return the names of the fields that differ between two states of a lesson, in fixed order."""
    return [field for field in _FIELDS if getattr(previous, field) != getattr(current, field)]


def _updated(previous: Lesson, current: Lesson, warnings: list[str]) -> Updated:
    """Return what a client is told of a changed lesson."""
    return {
        "id": current.id,
        "name": current.name,
        "changed": _changed_fields(previous, current),
        "warnings": warnings,
    }


@tool("Search knowledge", adapter=ADAPTER)
def search_knowledge(
    lessons: LessonService,
    query: Query,
    kind: Annotated[LessonType | None, aliases("type")] = None,
    minConfidence: Share = 0.0,
    limit: Limit = 10,
) -> Reply[FoundLessons]:
    """Find entries by meaning and words, with their relations; an empty query lists the newest.

    Call this before you solve a problem again."""
    hits, method, degraded = lessons.search(
        query,
        lesson_type=kind or "",
        min_confidence=minConfidence,
        limit=limit,
    )
    found = [lesson for lesson, _ in hits]
    lessons.record_reads([lesson.id for lesson in found])  # the answer contains them whole

    results: list[Data] = []
    for fields, (_, hit) in zip(lessons.describe(found), hits, strict=True):
        fields["score"] = hit.score
        fields["snippet"] = hit.snippet
        fields["method"] = method
        results.append(fields)
    data: FoundLessons = {"results": results, "method": method, "degraded": degraded}
    return Reply(render.pretty(results), data)


@tool("Link knowledge", writes=True, adapter=ADAPTER)
def link_knowledge(
    lessons: LessonService,
    caller: Caller,
    sourceId: str,
    targetId: str,
    relationship: Relationship = "relates_to",
) -> Reply[Linked]:
    """Relate one entry to another, e.g. a solution that fixes an error.

    After "supersedes" the target no longer holds."""
    source, target, is_changed = lessons.link(sourceId, targetId, relationship, **caller)
    relation_type = " ".join(relationship.split()) or "relates_to"
    text = f"Knowledge linked: {source.id} {relation_type} {target.id}"
    if not is_changed:
        text += " (unchanged)"
    data: Linked = {
        "sourceId": source.id,
        "targetId": target.id,
        "relationship": relation_type,
        "changed": is_changed,
    }

    if relation_type.casefold().replace(" ", "_") in SUPERSEDING:
        both = [lessons.find(source.id), lessons.find(target.id)]
        superseded = [lesson.id for lesson in both if lesson.is_superseded]
        if superseded:
            data["superseded"] = superseded
            text += f"\nNo longer holds: {', '.join(superseded)}"
    return Reply(text, data)


@tool("Update knowledge", writes=True, destructive=True, adapter=ADAPTER)
def update_knowledge(
    lessons: LessonService,
    caller: Caller,
    id: LessonId,  # noqa: A002
    content: Annotated[str | None, about("the corrected content")] = None,
    context: Annotated[str | None, about('where, when, why; "" removes it')] = None,
    confidence: Annotated[Share | None, about("0 to 1")] = None,
    verified: bool | None = None,
    tags: Annotated[Words | None, about("replaces all its tags")] = None,
) -> Reply[Updated]:
    """Correct an entry. Omitted fields, its id and its relations stay."""
    previous = lessons.find(id)
    change = LessonChange(content, context, confidence, verified)
    if tags is not None:
        change = change._replace(tags=tuple(tags))
    lesson, warnings = lessons.update(id, change, **caller)

    data = _updated(previous, lesson, warnings)
    text = f"Knowledge updated: {lesson.id} ({', '.join(data['changed']) or 'no change'})"
    return Reply("\n".join([text, *warnings]), data)


@tool("Delete knowledge", writes=True, destructive=True, deletes=True, adapter=ADAPTER)
def delete_knowledge(
    lessons: LessonService,
    caller: Caller,
    id: LessonId,  # noqa: A002
) -> Reply[Deleted]:
    """Delete an entry that was never right; it moves to the trash.

    To keep an entry as history, supersede it."""
    lesson, related, version = lessons.delete(id, **caller)
    related_ids = [other.id for other in related]
    data: Deleted = {
        "id": lesson.id,
        "name": lesson.name,
        "version": version,
        "related": related_ids,
    }
    text = f"Knowledge deleted: {lesson.id}"
    if related_ids:
        text += f"\nRelated entries: {', '.join(related_ids)}"
    return Reply(text, data)


@tool("Verify knowledge", writes=True, adapter=ADAPTER)
def verify_knowledge(
    lessons: LessonService,
    caller: Caller,
    id: LessonId,  # noqa: A002
    verified: bool = True,
    note: Annotated[str, about("how it was tested"), Field(max_length=500)] = "",
) -> Reply[Updated]:
    """Record that an entry was tested and holds, or with verified=false that it did not."""
    previous = lessons.find(id)
    lesson, warnings = lessons.verify(id, verified=verified, note=note, **caller)
    data = _updated(previous, lesson, warnings)
    outcome = "verified" if lesson.verified else "not verified"
    return Reply("\n".join([f"Knowledge {outcome}: {lesson.id}", *warnings]), data)


@tool("Review contradictions", writes=True, destructive=True, adapter=ADAPTER)
def review_contradictions(
    store: EnhancedStore,
    lessons: LessonService,
    caller: Caller,
    verdicts: Several[PairIn] = [],  # noqa: B006
    maxPairs: MaxPairs = 60,
) -> Reply[Reviewed]:
    """Say of offered pairs whether they contradict each other; the notes keep it, and no such pair
    is offered again. Without verdicts, the configured language model is asked."""
    if verdicts:
        pairs = [
            PairVerdict(pair.one, pair.other, pair.verdict == "contradict", pair.keep)
            for pair in verdicts
        ]
        review = review_pairs(lessons, pairs, **caller)
        outcome = ModelReview(review, 0, "verdicts of the caller", "")
    else:
        outcome = review_with_model(lessons, analysis_of(store), maxPairs, **caller)

    rows = [_reviewed_data(pair) for pair in outcome.review.pairs]
    data: Reviewed = {
        "reviewed": rows,
        "version": outcome.review.version,
        "asked": outcome.asked_count,
        "method": outcome.method,
        "degraded": outcome.degraded,
    }
    lines = [f"{len(rows)} pairs reviewed, by {outcome.method}"]
    lines += [f"{row['one']['id']} {row['verdict']} {row['other']['id']}" for row in rows]
    if outcome.degraded:
        lines.append(outcome.degraded)
    return Reply("\n".join(lines), data)


def _reviewed_data(pair: ReviewedPair) -> Data:
    """Return a reviewed pair as fields: `one`, `other`, `verdict`, and the id `superseded`."""
    data: Data = {
        "one": lesson_label(pair.one),
        "other": lesson_label(pair.other),
        "verdict": "contradict" if pair.contradicts else "compatible",
    }
    if pair.superseded is not None:
        data["superseded"] = pair.superseded.id
    return data


@tool("Trace knowledge", adapter=ADAPTER)
def trace_knowledge(
    lessons: LessonService,
    id: LessonId,  # noqa: A002
    maxSteps: MaxSteps = 10,
) -> Reply[Chain]:
    """Follow what caused an entry, what it led to, and what fixed each, over all relations."""
    steps = lessons.trace(id, maxSteps)
    chain = [_step_data(step) for step in steps]
    lines = [_step_line(step) for step in steps]
    return Reply(render.answer("Causes first.", "\n".join(lines)), {"chain": chain})


def _step_data(step: ChainStep) -> Data:
    """Return a step of a chain: the label of its entry, its `role`, `of` and `distance`."""
    data = lesson_label(step.lesson) | {
        "role": step.role,
        "of": None if step.of is None else step.of.id,
        "distance": step.distance,
        "verified": step.lesson.verified,
    }
    if step.lesson.is_superseded:
        data["status"] = "superseded"
    return data


def _step_line(step: ChainStep) -> str:
    """Return the line of an answer that shows a step of a chain."""
    note = ", superseded" if step.lesson.is_superseded else ""
    target = "" if step.of is None else f" of {step.of.id}"
    return f"{step.role}{target}: {step.lesson.headline} [{step.lesson.id}{note}]"


KNOWLEDGE: tuple[Tool, ...] = (
    save_knowledge,
    search_knowledge,
    link_knowledge,
    update_knowledge,
    delete_knowledge,
    verify_knowledge,
    review_contradictions,
    trace_knowledge,
)
