"""What a language model gets to read about a turn while it is stored. Pure.

It is one JSON object: the message, the last turns of its topic and of the most similar ones, the
facts that hold, and the profile of the user. `turn_reading` asks the model and checks its answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from simplemem.features.conversations.profile import Profile
from simplemem.features.conversations.topic import Topic, Turn
from simplemem.features.fact import Fact
from simplemem.note.words import shorten

MAX_MESSAGE: Final = 20_000  # characters of a message that a model is sent
MAX_TOPICS: Final = 12  # that a model may choose from

_MAX_KEYWORDS: Final = 5  # of a topic
_MAX_FACT: Final = 300  # characters of the value of a fact


class _Excerpt(NamedTuple):
    """How much a model gets of a topic."""

    turns: int  # the last ones
    message: int  # characters
    answer: int  # characters


_OF_CURRENT: Final = _Excerpt(turns=6, message=600, answer=300)
_OF_OTHERS: Final = _Excerpt(turns=3, message=300, answer=150)


class TurnQuestion(NamedTuple):
    """What a model gets about a turn. Nothing of it is private."""

    turn: Turn
    topics: Mapping[str, Topic]  # by their ids; the current one first, then by similarity
    current: Topic | None  # the session's current topic
    chooses_topic: bool  # whether the model says which of the topics is the turn's
    facts: Mapping[str, Fact]  # that hold, by their ids
    profile: Profile

    def content(self) -> dict[str, Any]:
        """Return the JSON object that the model gets."""
        topics = []
        for topic in self.topics.values():
            excerpt = _OF_CURRENT if topic is self.current else _OF_OTHERS
            description = _describe_topic(topic, excerpt)
            topics.append(description | {"is_current": topic is self.current})
        return {
            "said_on": f"{self.turn.at.astimezone():%Y-%m-%d}",
            "message": self.turn.message[:MAX_MESSAGE],
            "choose_topic": self.chooses_topic,
            "topics": topics,
            "facts": [_describe_fact(id_, fact) for id_, fact in self.facts.items()],
            "profile": {
                "name": self.profile.user_name,
                "constraints": [constraint["text"] for constraint in self.profile.constraints],
                "preferences": list(self.profile.preferences.values()),
            },
        }


def _describe_topic(topic: Topic, excerpt: _Excerpt) -> dict[str, Any]:
    """Return what a model gets of a topic: its id, label, summary, keywords and last turns."""
    turns = []
    for turn in topic.turns[-excerpt.turns :]:
        row = {
            "user": shorten(turn.message, excerpt.message),
            "assistant": shorten(turn.answer, excerpt.answer),
        }
        turns.append(row)
    return {
        "block_id": topic.id,
        "topic": topic.label,
        "about": topic.summary,
        "keywords": list(topic.keywords[:_MAX_KEYWORDS]),
        "turns": turns,
    }


def _describe_fact(id_: str, fact: Fact) -> dict[str, Any]:
    """Return what a model gets of a fact."""
    subject = fact.slot.subject if fact.slot is not None else ""
    since = f"{fact.valid_from:%Y-%m-%d}" if fact.valid_from is not None else None
    return {
        "id": id_,
        "about": subject,
        "key": fact.key.replace("_", " "),
        "value": shorten(fact.value, _MAX_FACT),
        "since": since,
    }


def texts_of_traits(profile: Profile) -> Sequence[str]:
    """Return the constraints and preferences of a profile in the words that a model gets."""
    constraints = [constraint["text"] for constraint in profile.constraints]
    return [*constraints, *profile.preferences.values()]
