"""What a language model reads in topics that are archived, if the user configured one.

It reads the turns that no model has read while they were stored (`turn_reading`). `questions.toml`
has the instructions. What people wrote is sent as JSON in the user's message of the question, never
as part of the instructions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from simplemem.features.conversations.topic import Topic
from simplemem.features.conversations.turns import Turn
from simplemem.features.facts.keyed_facts import make_fact
from simplemem.features.facts.stated import StatedFact
from simplemem.features.model_questions import load_questions
from simplemem.providers.api import ChatModel

_MAX_SENT: Final = 20_000  # characters in one question
_CONFIDENCE: Final = 0.7  # of a fact that a model reads
_QUESTIONS: Final = load_questions(__file__)


class FactOfTurn(NamedTuple):
    """A fact that a model read, and the turn in which it is stated."""

    turn: Turn
    fact: StatedFact


class FactReading(NamedTuple):
    """The facts that a model read in consecutive turns of a topic."""

    path: str  # of the topic's note
    last_mark: str  # the block id of the last turn that was read, without the caret
    facts: list[FactOfTurn]  # in the order of the model's answer; [] if it read none


def read_facts(chat: ChatModel, topic: Topic) -> Iterator[FactReading]:
    """Yield the facts that a model reads in the turns of a topic that no model has read yet.

    Each reading is one question, with the next turns whose messages have 20,000 characters
    together, at least one turn. A reading without facts is yielded too, so that its turns are not
    read again. Yields nothing if all turns have been read. Raises Unavailable while it yields, if
    the model does not answer; earlier readings stay valid.
    """
    turns = [turn for turn in topic.turns if turn.mark > topic.facts_read]
    while turns:
        count = _count_fitting(turns)
        portion = turns[:count]
        turns = turns[count:]
        facts = _read_portion(chat, portion)
        yield FactReading(topic.path, portion[-1].mark, facts)


def write_profile(chat: ChatModel, profile: str) -> str:
    """Return a profile of the user in a model's words, "" if its answer is no text.

    The model gets at most 20,000 characters of the profile. Raises Unavailable if it does not
    answer, or if the calls of this hour are used up.
    """
    content = {"profile": profile[:_MAX_SENT]}
    answer = chat.ask(_QUESTIONS["profile"], content)
    text = answer["text"]
    if not isinstance(text, str):
        return ""
    return text.strip()


def _count_fitting(turns: Sequence[Turn]) -> int:
    """Return how many of the first turns fit into one question, at least one."""
    size = 0
    count = 0
    for turn in turns:
        size += len(turn.message)
        if size > _MAX_SENT:
            break
        count += 1
    return max(1, count)


def _read_portion(chat: ChatModel, turns: Sequence[Turn]) -> list[FactOfTurn]:
    """Return the facts that a model reads in some turns, in the order of its answer.

    Rows of the answer that are no facts of one of the turns are skipped, and an answer without a
    list gives []. Raises Unavailable if the model does not answer.
    """
    messages = []
    for turn in turns:
        message = turn.message[:_MAX_SENT]
        messages.append({"turn_id": turn.id, "message": message})

    answer = chat.ask(_QUESTIONS["facts"], {"turns": messages})
    rows = answer["facts"]
    if not isinstance(rows, list):
        return []

    turns_by_id = {turn.id: turn for turn in turns}
    facts = []
    for row in rows:
        if not isinstance(row, dict):
            continue
        turn_of_row = turns_by_id.get(_read_text(row, "turn_id"))
        if turn_of_row is None:
            continue
        fact = _fact_of_row(chat, turn_of_row, row)
        if fact is not None:
            facts.append(FactOfTurn(turn_of_row, fact))
    return facts


def _fact_of_row(chat: ChatModel, turn: Turn, row: Mapping[str, Any]) -> StatedFact | None:
    """Return the fact in a row of a model's answer, None if the row states none.

    It states none if the evidence is no quotation of the turn that has the value, if the value is
    empty or has several lines, or if there is no key.
    """
    name = _read_text(row, "key")
    value = _read_text(row, "value")
    evidence = _read_text(row, "evidence")
    is_one_line = bool(value) and "\n" not in value
    is_quoted = evidence in turn.message and value in evidence
    if not is_one_line or not is_quoted:
        return None

    fact = make_fact(chat.method, name, value, evidence, _CONFIDENCE)
    if not fact.key:
        return None
    return fact


def _read_text(row: Mapping[str, Any], field: str) -> str:
    """Return a field of a model's answer as stripped text, "" if it has no value."""
    value = row.get(field)
    return str(value or "").strip()
