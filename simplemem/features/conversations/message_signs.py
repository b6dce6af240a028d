"""What the form of a message and its time say about its topic: markers, length and silence. Pure.

The `router` decides by these signs and by the similarity of topics.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple

from simplemem.features.conversations.patterns import NUMBERS, content_words, has_marker
from simplemem.features.conversations.topic import Topic
from simplemem.note.sentences import sentence_spans

_LIMITS: Final = NUMBERS["limits"]
_MARKERS: Final = ("shift", "aside", "greeting", "opening", "follow", "news")
_SECONDS_PER_HOUR: Final = 3600
_SECONDS_PER_QUARTER: Final = 900
_SECONDS_PER_MINUTE: Final = 60
_MANY_SENTENCES: Final = 3  # after the first one


class IncomingMessage(NamedTuple):
    """A message whose topic is to be decided, and the current topic of its session."""

    text: str  # its beginning, as far as the router reads it
    at: datetime
    current: Topic | None  # None if the session has no current topic
    markers: frozenset[str]  # those that the text begins with


def read_incoming(message: str, at: datetime, current: Topic | None) -> IncomingMessage:
    """Return a message of a session with the markers that it begins with."""
    text = message[: _LIMITS["text"]]
    markers = frozenset(name for name in _MARKERS if has_marker(name, text))
    return IncomingMessage(text, at, current, markers)


def weigh_signs(message: IncomingMessage, open_topics: Sequence[Topic]) -> dict[str, float]:
    """Return the signs of a message, as numbers from 0 to 1. `english.toml` describes them.

    A marker of the message is 1, and so is "always". "many" grows with the number of sentences, up
    to four: people who only answer write one sentence. "short" is 1 for few content words. "pause",
    "day" and "begun" depend on the current topic; `open_topics` are those among which another topic
    of the session is searched. Signs that the message does not have are 0 or left out.
    """
    signs = dict.fromkeys(message.markers, 1.0)
    signs["always"] = 1.0

    sentence_count = sum(1 for _ in sentence_spans(message.text))
    sentences_after_first = max(sentence_count - 1, 0)
    signs["many"] = min(sentences_after_first, _MANY_SENTENCES) / _MANY_SENTENCES
    signs["short"] = float(_has_few_words(message.text))

    current = message.current
    if current is None:
        return signs
    signs["pause"] = _weigh_silence(current, message.at)
    if is_after_pause(current, message.at):
        signs["day"] = 1.0
    elif _has_just_begun(current, open_topics):
        signs["begun"] = 1.0
    return signs


def is_after_pause(current: Topic, at: datetime) -> bool:
    """Return whether a message comes so late that it need not continue its current topic.

    The silence is counted from the last turn of `current` to `at`, the time of the message.
    """
    max_seconds = _SECONDS_PER_HOUR * _LIMITS["hours"]
    return bool(_seconds_since(current, at) >= max_seconds)


def is_prompt(current: Topic, at: datetime) -> bool:
    """Return whether a message comes so soon that it may reply to the last turn of its topic.

    It is so for a back-dated message too.
    """
    max_seconds = _SECONDS_PER_MINUTE * _LIMITS["reply_minutes"]
    return bool(_seconds_since(current, at) < max_seconds)


def is_too_short(message: IncomingMessage) -> bool:
    """Return whether a message has too few content words to start a topic.

    A message is never too short if it announces another subject, or is a greeting with news.
    """
    if "shift" in message.markers:
        return False
    if message.markers >= {"greeting", "news"}:
        return False
    return _has_few_words(message.text)


def _has_few_words(text: str) -> bool:
    """Return whether a text has so few content words that it does not say what it is about."""
    return bool(len(content_words(text)) < _LIMITS["few_words"])


def _seconds_since(current: Topic, at: datetime) -> float:
    """Return the seconds from the last turn of a topic to a time; negative if it is earlier."""
    silence = at - current.last
    return silence.total_seconds()


def _weigh_silence(current: Topic, at: datetime) -> float:
    """Return the silence since the last turn of a topic on a logarithmic scale.

    The scale goes from 0, a quarter of an hour or less, to 1, eight hours or more.
    """
    quarters = max(_seconds_since(current, at), 1) / _SECONDS_PER_QUARTER
    max_quarters = _LIMITS["hours"] * _SECONDS_PER_HOUR / _SECONDS_PER_QUARTER
    weight = math.log(quarters) / math.log(max_quarters)
    return min(max(weight, 0), 1)


def _has_just_begun(current: Topic, topics: Sequence[Topic]) -> bool:
    """Return whether the session came to its current topic with the last turn.

    It did if the topic has fewer than two turns, or if another topic of the session among `topics`
    has a turn after the last but one of the current topic.
    """
    if len(current.turns) < 2:
        return True

    before_last = current.turns[-2].at
    for topic in topics:
        is_of_session = topic is not current and topic.session == current.session
        if is_of_session and topic.last > before_last:
            return True
    return False
