"""The review of near pairs of lessons by the configured language model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Unpack

from simplemem.errors import Unavailable
from simplemem.features.event_log import Event, EventLog
from simplemem.features.lessons.analysis import Analysis
from simplemem.features.lessons.language_model import ModelVerdict, judge_pairs
from simplemem.features.lessons.proposals import Proposal
from simplemem.features.lessons.service import LessonService
from simplemem.features.lessons.verdicts import PairVerdict, Review, review_pairs
from simplemem.models import AuthorArgs
from simplemem.note.passages import text_hash

if TYPE_CHECKING:
    from simplemem.features.lessons.lesson import Lesson
    from simplemem.providers.api import ChatModel

_FILE: Final = "state/compared_lessons.jsonl"


class ModelReview(NamedTuple):
    """What a model said about pairs of lessons."""

    review: Review  # what was written
    asked_count: int  # pairs that the model was asked about
    method: str  # which model
    degraded: str  # why the model did not answer about all of them; or ""


def review_with_model(
    service: LessonService, analysis: Analysis, max_pairs: int, **by: Unpack[AuthorArgs]
) -> ModelReview:
    """Ask the configured model about near pairs of lessons, and keep its verdicts in the notes.

    The offered pairs come first. A near pair that no rule offers is kept only if it contradicts;
    that the model was asked about it is logged, and it is asked again only after a change. Private
    lessons are not sent. If the model does not answer, or not in the requested format, `degraded`
    says why, and the verdicts until then are kept. Raises Unavailable if no model is configured.
    """
    chat = service.chat
    if chat is None:
        raise Unavailable(
            "no language model is configured",
            hint="Judge the offered pairs yourself and pass them as verdicts.",
        )
    log = EventLog[set[str]](service.extension, _FILE, set, _add_compared)
    compared = log.state()
    proposals = _public_only(service, analysis.unjudged())
    unanswered = [
        proposal
        for proposal in proposals
        if proposal.is_offered or _pair_key(proposal) not in compared
    ][:max_pairs]

    verdicts, degraded = _ask_model(chat, unanswered)
    decided = [
        PairVerdict(verdict.proposal.one.id, verdict.proposal.other.id, verdict.contradicts)
        for verdict in verdicts
        if verdict.contradicts or verdict.proposal.is_offered
    ]
    review = Review([], "")
    if decided:
        review = review_pairs(service, decided, decided_by=chat.method, **by)
    if verdicts:
        log.add({"pairs": [_pair_key(verdict.proposal) for verdict in verdicts]})
    return ModelReview(review, len(unanswered), chat.method, degraded)


def _public_only(service: LessonService, proposals: Sequence[Proposal]) -> list[Proposal]:
    """Return the pairs of which no lesson is private, since no service may receive that."""
    paths = {path for proposal in proposals for path in proposal.paths}
    private_paths = service.extension.private_among(paths)
    return [proposal for proposal in proposals if proposal.paths.isdisjoint(private_paths)]


def _ask_model(chat: ChatModel, proposals: list[Proposal]) -> tuple[list[ModelVerdict], str]:
    """Return a model's verdicts, and why it gave no more of them.

    The reason is "" if the model answered about all pairs. After a failure, it is asked no more.
    """
    verdicts: list[ModelVerdict] = []
    try:
        for portion in judge_pairs(chat, proposals):
            verdicts += portion
    except Unavailable as error:
        return verdicts, str(error)
    return verdicts, ""


def _pair_key(proposal: Proposal) -> str:
    """Return a key of what two lessons say, for the log."""
    return "-".join(sorted((_text_key(proposal.one), _text_key(proposal.other))))


def _text_key(lesson: Lesson) -> str:
    """Return a short hash of what a lesson says."""
    return text_hash(lesson.text).hex()[:16]


def _add_compared(compared: set[str], event: Event) -> None:
    """Add the pairs of an event of the log to the keys of those that a model was asked about."""
    pairs = event.get("pairs")
    if isinstance(pairs, list):
        compared.update(map(str, pairs))
