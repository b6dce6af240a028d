"""What a language model is asked about lessons, if the user configured one.

`questions.toml` has the instructions. What lessons say is sent as JSON in the user's message of the
question, never as part of the instructions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from simplemem.features.lessons.lesson import Lesson
from simplemem.features.lessons.proposals import Proposal
from simplemem.features.model_questions import load_questions
from simplemem.providers.api import ChatModel

_MAX_PAIRS: Final = 10  # in one question
_MAX_TEXT: Final = 1500  # characters of a lesson that are sent
_QUESTIONS: Final = load_questions(__file__)


class ModelVerdict(NamedTuple):
    """What a model says about a pair of lessons."""

    proposal: Proposal
    contradicts: bool


def judge_pairs(chat: ChatModel, proposals: Sequence[Proposal]) -> Iterator[list[ModelVerdict]]:
    """Yield a model's verdicts, one list per question of up to ten pairs.

    A pair of which the model is unsure, that it leaves out, or whose contradiction it does not
    quote, has no verdict. Raises Unavailable while it yields, if the model does not answer or not
    in the requested format; earlier verdicts stay valid.
    """
    for start in range(0, len(proposals), _MAX_PAIRS):
        yield _judge_portion(chat, proposals[start : start + _MAX_PAIRS])


def _judge_portion(chat: ChatModel, proposals: Sequence[Proposal]) -> list[ModelVerdict]:
    """Return a model's verdicts about the pairs of one question."""
    by_id = {str(number): proposal for number, proposal in enumerate(proposals, 1)}
    rows = [
        {"id": id_, "one": _describe(proposal.one), "other": _describe(proposal.other)}
        for id_, proposal in by_id.items()
    ]
    answer = chat.ask(_QUESTIONS["contradictions"], {"pairs": rows})

    verdicts: dict[str, ModelVerdict] = {}
    for row in _objects_in(answer["pairs"]):
        id_ = str(row.get("id"))
        proposal = by_id.get(id_)
        if proposal is None:
            continue
        verdict = _read_verdict(proposal, row)
        if verdict is not None:
            verdicts[id_] = verdict
    return list(verdicts.values())


def _describe(lesson: Lesson) -> dict[str, str]:
    """Return what a model is told about a lesson."""
    return {
        "type": lesson.type,
        "text": lesson.text[:_MAX_TEXT],
        "written": lesson.created[:10],
    }


def _objects_in(rows: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the objects in a list of a model's answer; none if it is no list."""
    if isinstance(rows, list):
        for row in rows:
            if isinstance(row, dict):
                yield row


def _read_verdict(proposal: Proposal, row: Mapping[str, Any]) -> ModelVerdict | None:
    """Return the verdict in a row of a model's answer; None if it is none that can be used."""
    if row.get("verdict") == "compatible":
        return ModelVerdict(proposal, contradicts=False)
    if row.get("verdict") != "contradict":
        return None
    is_quoted = _quotes(row.get("one_quote"), proposal.one)
    if is_quoted and _quotes(row.get("other_quote"), proposal.other):
        return ModelVerdict(proposal, contradicts=True)
    return None


def _quotes(quote: Any, lesson: Lesson) -> bool:
    """Return whether a value of a model's answer is a text that is in a lesson."""
    if not isinstance(quote, str):
        return False
    quoted = " ".join(quote.casefold().split())
    return bool(quoted) and quoted in " ".join(lesson.text.casefold().split())
