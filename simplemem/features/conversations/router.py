"""Decide which topic a message belongs to, by rules that give a reason.

A message belongs to the topic that it returns to by name. It belongs to the current topic while it
is vague, and while an agent names the topics, because such an agent names changes too. Otherwise
the most similar topic wins, or a new topic does. If the scores are in doubt, the conversation stays
in its topic. No model is asked, and nothing is written.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from simplemem.features.conversations.patterns import (
    NUMBERS,
    content_words,
    has_marker,
    read_return,
)
from simplemem.features.conversations.similarity import (
    Comparison,
    TopicComparer,
    find_by_rare_words,
)
from simplemem.features.conversations.topic import Topic
from simplemem.note.sentences import sentence_spans
from simplemem.providers.word_vectors import shared_multilingual

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# The weights of the scores; `bench/talk.py` measures and tunes them. Those of a topic are for its
# similarity, those of the other three for the markers of a message.
NEAR: Final = NUMBERS["near"]
STAY: Final = NUMBERS["stay"]  # in the current topic
BACK: Final = NUMBERS["back"]  # to another topic
NEW: Final = NUMBERS["new"]  # for a new topic
LIMITS: Final = NUMBERS["limits"]

_MAX_RANKED: Final = 12  # topics that a model may choose from
_MARKERS: Final = ("shift", "aside", "greeting", "opening", "follow", "news")
_SECONDS_PER_HOUR: Final = 3600
_SECONDS_PER_QUARTER: Final = 900
_SECONDS_PER_MINUTE: Final = 60
_MANY_SENTENCES: Final = 3  # beside the first one


class Decision(NamedTuple):
    """The topic of a message, and the reason."""

    topic: Topic | None  # None for a new one
    reason: str
    ranked: tuple[Topic, ...] = ()  # the open topics, most similar first, if scores decided
    is_certain: bool = False  # whether a model need not be asked for a better one
    method: str = "rules"
    label: str = ""  # of a new topic, if a model chose one


class TopicDecision(NamedTuple):
    """Where a session is, and where one of its messages belongs."""

    current: Topic | None  # the session's current topic, None if it has none
    decision: Decision


class _ComparedTopics(NamedTuple):
    """How similar a message and some topics are, and how that was found out."""

    comparisons: list[Comparison]  # one per topic, in the order of the topics
    method: str  # "rules", with the reason if only words could be compared


class TopicRouter:
    """Decides the topics of messages. Guards what it has compared topics by."""

    def __init__(
        self,
        vectors: Callable[[Sequence[str]], NDArray[np.float32]] | None = None,
    ) -> None:
        """Make a router that compares texts by the unit vectors that `vectors` returns for them.

        Without it, the bundled word vectors are used, for which the weights were found.
        """
        self._comparer = TopicComparer(vectors or _word_vectors)

    def decide(
        self,
        message: str,
        at: datetime,
        topics: Sequence[Topic],
        current: Topic | None,
        answer: str = "",
    ) -> Decision:
        """Decide the topic of a message for which the agent named none; None stands for a new one.

        `topics` are those in which the session may continue, `current` is its current one, `at` is
        the time of the message. `answer` is the reply to it, "" if there is none yet. The topic is
        new if there are no topics, or none fits well enough.
        Never raises: if the vectors cannot be computed, only words are compared, and the
        decision's `method` says why.
        """
        text = message[: LIMITS["text"]]
        markers = _read_markers(text)
        decision = _decide_by_form(text, markers, at, topics, current)
        if decision is not None:
            return decision

        open_topics = _open_topics(topics, current)
        if current is not None and _is_pause(current, at):
            markers.add("day")
        elif current is not None and _has_just_begun(current, open_topics):
            markers.add("begun")
        signs = _weigh_markers(text, markers, current, at)

        answer = answer[: LIMITS["text"]]
        compared = self._compare(text, open_topics, answer)
        return self._decide_by_scores(compared, open_topics, current, signs, at)

    def _decide_by_scores(
        self,
        compared: _ComparedTopics,
        topics: Sequence[Topic],
        current: Topic | None,
        signs: Mapping[str, float],
        at: datetime,
    ) -> Decision:
        """Return a decision for the topic with the best score; its topic is None for a new one.

        `signs` are those of `_weigh_markers`, `at` is the time of the message. Of equal scores,
        that of the current topic is the best. The decision is certain only if the message stays
        after a short silence: by a clear margin, or in reply to a question of the assistant.
        """
        stay = _sum_weights(STAY, signs)
        back = _sum_weights(BACK, signs)
        scores: dict[Topic | None, float] = {None: _sum_weights(NEW, signs)}
        replies_to_question = False
        for topic, comparison in zip(topics, compared.comparisons, strict=True):
            bonus = back
            if topic is current:
                replies_to_question = comparison.answers_question
                bonus = stay + STAY["asked"] * replies_to_question
            scores[topic] = _score(comparison) + bonus

        ranked = sorted(scores, key=lambda topic: (-scores[topic], topic is not current))
        best = ranked[0]
        stays = best is not None and best is current and _is_prompt(best, at)
        is_clear = _is_clear([scores[topic] for topic in ranked])
        ranked_topics = [topic for topic in ranked if topic is not None]
        return Decision(
            topic=best,
            reason=_reason(best, current),
            ranked=tuple(ranked_topics[:_MAX_RANKED]),
            is_certain=stays and (replies_to_question or is_clear),
            method=compared.method,
        )

    def _compare(self, text: str, topics: Sequence[Topic], answer: str) -> _ComparedTopics:
        """Return how similar a message and each topic are, and the method of the comparison.

        Never raises: if the vectors cannot be computed, the topics are compared without them, so
        that the message can be stored. The method then has the reason.
        """
        try:
            comparisons = self._comparer.compare(text, topics, answer)
            return _ComparedTopics(comparisons, "rules")
        except Exception as error:  # noqa: BLE001 - whatever fails, the message is stored
            reason = getattr(error, "message", type(error).__name__)
            comparisons = TopicComparer(_no_vectors).compare(text, topics, answer)
            return _ComparedTopics(comparisons, f"rules (words only: {reason})")


def _decide_by_form(
    text: str,
    markers: Collection[str],
    at: datetime,
    topics: Sequence[Topic],
    current: Topic | None,
) -> Decision | None:
    """Return a decision that does not depend on similarity; None if similarity must decide.

    A message may name a topic that it returns to. It stays in the current topic if an agent names
    the topics, and unless a pause precedes it, also if it is a digression or too vague.
    """
    if not topics:
        return Decision(None, "the first message", is_certain=True)

    return_words = read_return(text)
    named_topic = find_by_rare_words(return_words, topics) if return_words else None
    if named_topic is not None:
        words = " ".join(return_words or ())
        return Decision(named_topic, f'returns to "{words}"', is_certain=True)

    if current is not None and current.named_by == "agent" and "shift" not in markers:
        reason = "the agent named the topic and no other one since"
        return Decision(current, reason, is_certain=True)
    if current is None or _is_pause(current, at):
        return None
    if "aside" in markers:
        return Decision(current, "announced as a digression")
    if return_words == () or _is_too_short(text, markers):
        reason = "too short to start another topic"
        return Decision(current, reason, is_certain=_is_prompt(current, at))
    return None


def _word_vectors(texts: Sequence[str]) -> NDArray[np.float32]:
    """Return the unit vectors of texts by the bundled word vectors."""
    return shared_multilingual().unit_vectors(texts)


def _no_vectors(texts: Sequence[str]) -> NDArray[np.float32]:
    """Return vectors by which no two texts are similar."""
    import numpy as np

    return np.zeros((len(texts), 1), np.float32)


def _read_markers(text: str) -> set[str]:
    """Return the markers at the beginning of a message, and "always", which every message has.

    "day" and "begun" do not depend on the text; `decide` adds them.
    """
    markers = {name for name in _MARKERS if has_marker(name, text)}
    markers.add("always")
    return markers


def _weigh_markers(
    text: str, markers: Collection[str], current: Topic | None, at: datetime
) -> dict[str, float]:
    """Return what the form of a message and its time say, as numbers from 0 to 1.

    Those are its markers, each 1. "pause" is the silence since the last turn, on a logarithmic
    scale from a quarter of an hour to eight hours, and "many" says how many sentences the message
    has, up to four: who answers only has one, and then comes to something else.
    """
    signs = dict.fromkeys(markers, 1.0)
    sentence_count = sum(1 for _ in sentence_spans(text))
    signs["many"] = min(max(sentence_count - 1, 0), _MANY_SENTENCES) / _MANY_SENTENCES
    signs["short"] = float(len(content_words(text)) < LIMITS["few_words"])
    if current is not None:
        seconds = (at - current.last).total_seconds()
        quarters = max(seconds, 1) / _SECONDS_PER_QUARTER
        longest = LIMITS["hours"] * _SECONDS_PER_HOUR / _SECONDS_PER_QUARTER
        signs["pause"] = min(max(math.log(quarters) / math.log(longest), 0), 1)
    return signs


def _sum_weights(weights: Mapping[str, float], signs: Mapping[str, float]) -> float:
    """Return the sum of the weights of a message's signs, each times its number."""
    return sum(weight * signs.get(name, 0) for name, weight in weights.items())


def _score(comparison: Comparison) -> float:
    """Return the weighted sum of what a comparison of a message and a topic found."""
    cosines = comparison.cosines
    score: float = NEAR["follows"] * cosines.follows
    score += NEAR["about"] * cosines.is_about
    score += NEAR["fits"] * cosines.fits
    score += NEAR["ending"] * cosines.ending
    score += NEAR["shared"] * comparison.shared
    score += NEAR["recent"] * comparison.recent
    score += NEAR["asked"] * comparison.answers_question
    score += NEAR["stranger"] * comparison.is_stranger
    return score


def _is_clear(scores: Sequence[float]) -> bool:
    """Return whether the first score, which is the best, is far above the second one."""
    if len(scores) < 2:
        return False
    return bool(scores[0] - scores[1] >= LIMITS["clear"])


def _reason(best: Topic | None, current: Topic | None) -> str:
    """Return why scores chose a topic."""
    if best is None:
        return "starts a new topic"
    if best is current:
        return "continues the current topic"
    return "closest to the last messages of that topic"


def _is_pause(current: Topic, at: datetime) -> bool:
    """Return whether so much time has passed that a message need not continue its topic.

    It is counted from the last turn of `current` to `at`, the time of the message.
    """
    silence = at - current.last
    return bool(silence.total_seconds() >= _SECONDS_PER_HOUR * LIMITS["hours"])


def _is_prompt(current: Topic, at: datetime) -> bool:
    """Return whether a message comes so soon that it may reply to the last turn of its topic."""
    silence = at - current.last
    return bool(silence.total_seconds() < _SECONDS_PER_MINUTE * LIMITS["reply_minutes"])


def _is_too_short(text: str, markers: Collection[str]) -> bool:
    """Return whether a message has too few content words to start a topic.

    A message is never too short if it announces another subject, or is a greeting with news.
    """
    starts_over = "greeting" in markers and "news" in markers
    if "shift" in markers or starts_over:
        return False
    return bool(len(content_words(text)) < LIMITS["few_words"])


def _open_topics(topics: Sequence[Topic], current: Topic | None) -> list[Topic]:
    """Return the open topics, those with the last turns first, and the current one behind them.

    Of the others, only the `live` ones of LIMITS are kept, those with the latest turns; a message
    returns to older topics by name only. `current` is included even if it is not among `topics`.
    """
    open_topics = [topic for topic in topics if topic.status != "closed"]
    if current in open_topics:
        open_topics.remove(current)
    open_topics.sort(key=attrgetter("last"), reverse=True)

    latest = open_topics[: LIMITS["live"]]
    if current is not None:
        latest.append(current)
    return latest


def _has_just_begun(current: Topic, topics: Sequence[Topic]) -> bool:
    """Return whether the session has come to its current topic only with the last turn.

    That is so if the topic has fewer than two turns, or if another topic of the session has a turn
    after the last but one of the current topic. `topics` are those that are searched for it.
    """
    if len(current.turns) < 2:
        return True

    before_last = current.turns[-2].at
    for topic in topics:
        is_of_session = topic is not current and topic.session == current.session
        if is_of_session and topic.last > before_last:
            return True
    return False
