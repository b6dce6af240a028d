"""What a language model is asked about conversations, if the user configured one.

`questions.toml` has the instructions. Texts of the user are sent as JSON in the user's message, never as part of the
instructions.
"""

from __future__ import annotations

import tomllib
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, Final, NamedTuple

from simplemem.features.conversations.exchange import MAX_LABEL
from simplemem.features.conversations.facts import StatedFact, fact_stated_by
from simplemem.features.conversations.topic import Topic, Turn
from simplemem.note.words import unique_words
from simplemem.providers.api import ChatModel

_MAX_SENT: Final = 20_000  # characters in one question
_MAX_KEYWORDS: Final = 5  # of a topic that the model chooses from
_CONFIDENCE: Final = 0.7  # of a fact that a model reads
_QUESTIONS: Final = tomllib.loads(
    Path(__file__).with_name("questions.toml").read_text(encoding="utf-8")
)


class TopicAdvice(NamedTuple):
    """The topic that a model chose for a message."""

    method: str  # which model
    topic_id: str  # "" for a new topic
    label: str  # of a new topic; "" if the model gave none in words of the message


class FactReading(NamedTuple):
    """The facts that a model read in consecutive turns of a topic."""

    path: str
    last_mark: str  # the block id of the last turn that was read
    facts: list[tuple[Turn, StatedFact]]


def choose_topic(
    chat: ChatModel, topics: Mapping[str, Topic], message: str, timeout: float
) -> TopicAdvice | None:
    """Return which of some topics, by id, a message belongs to; None if the model names another.

    Raise Unavailable if the model cannot be asked.
    """
    choices = [
        {
            "block_id": topic.id,
            "topic": topic.label,
            "about": topic.summary,
            "keywords": list(topic.keywords[:_MAX_KEYWORDS]),
        }
        for topic in topics.values()
    ]
    question = {"topics": choices, "message": message[:_MAX_SENT]}
    answer = chat.ask(_QUESTIONS["route"], question, timeout)

    topic_id = "" if answer["new"] is True else answer["block_id"]
    label = _label_in_words_of(message, answer["label"])
    if topic_id not in ("", *topics):
        return None
    return TopicAdvice(chat.method, topic_id, label)


def _label_in_words_of(message: str, label: Any) -> str:
    """Return a model's label if all its words are in the message, else ""."""
    if not isinstance(label, str):
        return ""
    label = " ".join(label.split())
    words = set(unique_words(label.lower()))
    if not words or len(label) > MAX_LABEL:
        return ""
    return label if words <= set(unique_words(message.lower())) else ""


def read_facts(chat: ChatModel, topic: Topic) -> Iterator[FactReading]:
    """Yield the facts that a model reads in the turns of a topic that no model has read.

    One reading holds as many turns as fit into a question. Raise Unavailable if the model cannot be asked.
    """
    turns = [turn for turn in topic.turns if turn.mark > topic.facts_read]
    while turns:
        count = _count_fitting(turns)
        facts = _read_portion(chat, turns[:count])
        yield FactReading(topic.path, turns[count - 1].mark, facts)
        turns = turns[count:]


def _count_fitting(turns: Sequence[Turn]) -> int:
    """Return how many of the first turns fit into one question, at least one."""
    sizes = accumulate(len(turn.message) for turn in turns)
    return max(1, sum(size <= _MAX_SENT for size in sizes))


def _read_portion(chat: ChatModel, turns: Collection[Turn]) -> list[tuple[Turn, StatedFact]]:
    question = {
        "turns": [{"turn_id": turn.id, "message": turn.message[:_MAX_SENT]} for turn in turns]
    }
    rows = chat.ask(_QUESTIONS["facts"], question)["facts"]
    if not isinstance(rows, list):
        return []

    turns_by_id = {turn.id: turn for turn in turns}
    facts = list[tuple[Turn, StatedFact]]()
    for row in rows:
        fields = defaultdict[str, Any](str, row if isinstance(row, dict) else {})
        turn = turns_by_id.get(_text(fields["turn_id"]))
        fact = _fact_of_row(chat, turn, fields) if turn else None
        if turn and fact:
            facts.append((turn, fact))
    return facts


def _fact_of_row(chat: ChatModel, turn: Turn, fields: Mapping[str, Any]) -> StatedFact | None:
    """Return the fact in a row of a model's answer, None if its evidence is no quotation of the turn."""
    value = _text(fields["value"])
    evidence = _text(fields["evidence"])
    is_quoted = evidence in turn.message and value in evidence
    if not value or "\n" in value or not is_quoted:
        return None

    fact = fact_stated_by(chat.method, _text(fields["key"]), value, evidence, _CONFIDENCE)
    return fact if fact.key else None


def _text(value: Any) -> str:
    return str(value or "").strip()
