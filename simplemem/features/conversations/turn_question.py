"""The question to a language model about a turn while it is stored. Pure.

It is one JSON object: the message, the last turns of its topic and of the most similar ones, the
facts that are current, and the profile of the user. `turn_reading` asks the model and checks its
answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from simplemem.features.conversations.profile import Profile
from simplemem.features.conversations.topic import Topic
from simplemem.features.conversations.turns import Turn
from simplemem.features.fact import Fact
from simplemem.note.words import shorten

MAX_MESSAGE: Final = 20_000  # characters of a message that a model is sent
MAX_TOPICS: Final = 12  # that a model may choose from

_MAX_KEYWORDS: Final = 5  # of a topic
_MAX_FACT: Final = 300  # characters of the value of a fact


class _Excerpt(NamedTuple):
    """How much a model gets of a topic."""

    max_turns: int  # the last ones
    max_message: int  # characters
    max_answer: int  # characters


_CURRENT_EXCERPT: Final = _Excerpt(max_turns=6, max_message=600, max_answer=300)
_OTHER_EXCERPT: Final = _Excerpt(max_turns=3, max_message=300, max_answer=150)


class TurnQuestion(NamedTuple):
    """What a model gets about a turn. The caller leaves out whatever is private."""

    turn: Turn
    topics: Mapping[str, Topic]  # by their ids; the current one first, then by similarity
    current: Topic | None  # the session's current topic
    chooses_topic: bool  # whether the model says which of the topics is the turn's
    facts: Mapping[str, Fact]  # those that are current, by their ids
    profile: Profile

    def content(self) -> dict[str, Any]:
        """Return the JSON object that the model gets."""
        topics = [
            _describe_topic(topic, is_current=topic is self.current)
            for topic in self.topics.values()
        ]
        facts = [_describe_fact(id_, fact) for id_, fact in self.facts.items()]
        return {
            "said_on": f"{self.turn.at.astimezone():%Y-%m-%d}",
            "message": self.turn.message[:MAX_MESSAGE],
            "choose_topic": self.chooses_topic,
            "topics": topics,
            "facts": facts,
            "profile": _describe_profile(self.profile),
        }


def texts_of_traits(profile: Profile) -> Sequence[str]:
    """Return the constraints and preferences of a profile in the words that a model gets."""
    return [*_texts_of_constraints(profile), *profile.preferences.values()]


def _describe_topic(topic: Topic, *, is_current: bool) -> dict[str, Any]:
    """Return what a model gets of a topic: its id, label, summary, keywords and last turns."""
    excerpt = _CURRENT_EXCERPT if is_current else _OTHER_EXCERPT
    turns = []
    for turn in topic.turns[-excerpt.max_turns :]:
        row = {
            "user": shorten(turn.message, excerpt.max_message),
            "assistant": shorten(turn.answer, excerpt.max_answer),
        }
        turns.append(row)
    return {
        "block_id": topic.id,
        "topic": topic.label,
        "about": topic.summary,
        "keywords": list(topic.keywords[:_MAX_KEYWORDS]),
        "turns": turns,
        "is_current": is_current,
    }


def _describe_fact(id_: str, fact: Fact) -> dict[str, Any]:
    """Return what a model gets of a fact: its id, subject, key, value and beginning."""
    subject = fact.slot.subject if fact.slot is not None else ""
    since = f"{fact.valid_from:%Y-%m-%d}" if fact.valid_from is not None else None
    return {
        "id": id_,
        "about": subject,
        "key": fact.key.replace("_", " "),
        "value": shorten(fact.value, _MAX_FACT),
        "since": since,
    }


def _describe_profile(profile: Profile) -> dict[str, Any]:
    """Return what a model gets of the profile of the user."""
    return {
        "name": profile.user_name,
        "constraints": _texts_of_constraints(profile),
        "preferences": list(profile.preferences.values()),
    }


def _texts_of_constraints(profile: Profile) -> list[str]:
    """Return the constraints of a profile as texts, without their ids."""
    return [constraint["text"] for constraint in profile.constraints]
