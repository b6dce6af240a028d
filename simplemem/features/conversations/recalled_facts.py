"""Find the facts that answer a question, and give them the form that clients get. Pure.

`fact_search.py` finds those that the question names, and `fact_chains.py` those that it asks for by
way of others.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from simplemem.features.answers import FactOut
from simplemem.features.changes import find_doubtful
from simplemem.features.conversations.fact_chains import ReachedFact, follow_facts
from simplemem.features.conversations.fact_search import find_facts
from simplemem.features.conversations.topic import Topic
from simplemem.features.conversations.turns import Turn
from simplemem.features.fact import EPOCH, Fact
from simplemem.features.facts.key_notes import fact_out, stated_at, stated_subject
from simplemem.features.facts.reader import read_text
from simplemem.note.dates import format_moment
from simplemem.note.words import shorten

_MAX_FACTS: Final = 10
_MAX_DISPUTING_TEXT: Final = 400  # characters of a message of which no sentence disputes the fact
_DISPUTING_CONFIDENCE: Final = 0.5  # of a sentence that no rule reads
_DISPUTED_SHARE: Final = 0.5  # of its confidence, which a fact keeps that such a sentence disputes


class _TurnOfTopic(NamedTuple):
    """A turn, and the topic that it is in."""

    topic: Topic
    turn: Turn


def recall_facts(question: str, facts: Sequence[Fact], topics: Collection[Topic]) -> list[FactOut]:
    """Return the facts that a question asks for as clients get them, best first.

    `facts` are those that hold. At most ten of them are returned, each behind the sentence that
    disputes it, if there is one. Those that the question asks for by way of others come behind
    these. Returns [] if the question asks for none.
    """
    labels = {topic.id: topic.label for topic in topics}
    named_facts = find_facts(question, facts, labels)
    reached_facts = follow_facts(question, facts, named_facts)
    rows = []
    for reached in reached_facts[:_MAX_FACTS]:
        rows += _fact_rows(reached, topics)
    return rows


def _fact_rows(reached: ReachedFact, topics: Collection[Topic]) -> list[FactOut]:
    """Return a fact as clients get it: one row, or two if it is disputed.

    The first of two has the later sentences that dispute it. A turn that was deleted disputes
    nothing. A disputed fact has half its confidence, and the times at which it was stated and
    disputed.
    """
    fact = reached.fact
    row = _dated_row(reached)
    if fact.disputed is None:
        return [row]
    disputing = _find_turn(fact.disputed_by, topics)
    if disputing is None:
        return [row]

    disputing_row = FactOut(
        key=fact.key,
        value=_disputing_text(fact, disputing.turn),
        block_id=disputing.topic.id,
        confidence=_DISPUTING_CONFIDENCE,
        valid_from=format_moment(disputing.turn.at),
    )
    row["confidence"] = round(_DISPUTED_SHARE * fact.confidence, 4)
    row["valid_from"] = format_moment(stated_at(fact))
    row["disputed"] = format_moment(fact.disputed)
    return [disputing_row, row]


def _dated_row(reached: ReachedFact) -> FactOut:
    """Return a fact as clients get it, with its dates and the facts that led to it."""
    fact = reached.fact
    row = fact_out(fact, fact.block_id)
    if fact.valid_from is not None and fact.valid_from > EPOCH:
        row["since"] = format_moment(fact.valid_from)
    if fact.valid_to is not None:
        row["until"] = format_moment(fact.valid_to)

    way = [_describe(step.fact) for step in reached.way]
    if way:
        row["reached_by"] = way
    return row


def _describe(fact: Fact) -> str:
    """Return a fact in a few words: what it is about, and its value."""
    subject = fact.slot.subject if fact.slot is not None else ""
    key = fact.key.replace("_", " ")
    name = f"{subject} {key}".strip()
    return f"{name}: {fact.value}"


def _find_turn(mark: str, topics: Collection[Topic]) -> _TurnOfTopic | None:
    """Return the turn with a block id (`mark`, without the caret), None if no topic has it."""
    for topic in topics:
        for turn in topic.turns:
            if turn.mark == mark:
                return _TurnOfTopic(topic, turn)

    return None


def _disputing_text(fact: Fact, turn: Turn) -> str:
    """Return the sentences of a turn that dispute a fact, joined by spaces.

    Returns the message, shortened to 400 characters, if none of its sentences disputes the fact.
    """
    subject = stated_subject(fact)
    sentences = []
    for sentence, change in read_text(turn.message).changes.items():
        if find_doubtful([subject], change):
            sentences.append(sentence)

    if not sentences:
        return shorten(turn.message, _MAX_DISPUTING_TEXT)
    return " ".join(sentences)
