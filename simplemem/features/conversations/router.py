"""Decide which topic a message belongs to, by rules that give a reason.

The rules apply in this order:

1. A message belongs to the topic that it returns to by name.
2. It stays in the current topic if an agent named that topic and the message announces no change,
   because such an agent names changes too.
3. It stays in the current topic if it is a digression or too vague, unless a pause precedes it.
4. Otherwise scores decide: it belongs to the most similar topic, or starts a new one. The scores
   favour the current topic.

No model is asked, and nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from simplemem.features.conversations.message_signs import (
    IncomingMessage,
    is_after_pause,
    is_prompt,
    is_too_short,
    read_incoming,
    weigh_signs,
)
from simplemem.features.conversations.patterns import NUMBERS, read_return
from simplemem.features.conversations.rare_words import find_by_rare_words
from simplemem.features.conversations.similarity import Comparison, TopicComparer
from simplemem.features.conversations.topic import Topic
from simplemem.providers.word_vectors import shared_multilingual

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# The weights of the scores; `bench/talk.py` measures and tunes them. NEAR weighs the similarity of
# a topic, the other three weigh the signs of a message.
NEAR: Final = NUMBERS["near"]
STAY: Final = NUMBERS["stay"]  # for the current topic
BACK: Final = NUMBERS["back"]  # for another topic
NEW: Final = NUMBERS["new"]  # for a new topic
LIMITS: Final = NUMBERS["limits"]

_MAX_RANKED: Final = 12  # topics that a model may choose from


class Decision(NamedTuple):
    """The topic of a message, and the reason."""

    topic: Topic | None  # None for a new one
    reason: str
    ranked: tuple[Topic, ...] = ()  # the open topics, most similar first, if scores decided
    is_certain: bool = False  # whether a model need not be asked for a better one
    method: str = "rules"
    label: str = ""  # of a new topic, if a model chose one


class TopicDecision(NamedTuple):
    """The current topic of a session, and the decision for one of its messages."""

    current: Topic | None  # None if the session has no current topic
    decision: Decision


class _ComparedTopics(NamedTuple):
    """How similar a message and some topics are, and how they were compared."""

    comparisons: list[Comparison]  # one per topic, in the order of the topics
    method: str  # "rules", with the reason if only words could be compared


class TopicRouter:
    """Decides the topics of messages. Guards the words and vectors of topics it has compared."""

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
        """Return the decision for a message for which the agent named no topic.

        `topics` are those in which the session may continue, `current` is its current one, and `at`
        is the time of the message. `answer` is the reply to it, "" if there is none yet. The topic
        is new if there are no topics, or if none fits well enough.

        Never raises: if the vectors cannot be computed, only words are compared, and the
        decision's `method` says why.
        """
        incoming = read_incoming(message, at, current)
        decision = _decide_by_form(incoming, topics)
        if decision is not None:
            return decision

        open_topics = _open_topics(topics, current)
        compared = self._compare(incoming.text, open_topics, answer[: LIMITS["text"]])
        return _decide_by_scores(incoming, open_topics, compared)

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


def _decide_by_form(message: IncomingMessage, topics: Sequence[Topic]) -> Decision | None:
    """Return a decision that does not depend on similarity; None if scores must decide."""
    if not topics:
        return Decision(None, "the first message", is_certain=True)

    return_words = read_return(message.text)
    if return_words:
        returned_topic = find_by_rare_words(return_words, topics)
        if returned_topic is not None:
            words = " ".join(return_words)
            return Decision(returned_topic, f'returns to "{words}"', is_certain=True)

    if message.current is None:
        return None
    returns_to_unnamed = return_words == ()
    return _decide_to_stay(message, message.current, returns_to_unnamed=returns_to_unnamed)


def _decide_to_stay(
    message: IncomingMessage, current: Topic, *, returns_to_unnamed: bool
) -> Decision | None:
    """Return the decision that a message stays in the current topic; None if scores must decide.

    `returns_to_unnamed` says that the message returns to something that it does not name, such as
    "Back to that", so that it is vague.
    """
    if current.named_by == "agent" and "shift" not in message.markers:
        reason = "the agent named the topic and no other one since"
        return Decision(current, reason, is_certain=True)

    if is_after_pause(current, message.at):
        return None
    if "aside" in message.markers:
        return Decision(current, "announced as a digression")
    if returns_to_unnamed or is_too_short(message):
        reason = "too short to start another topic"
        return Decision(current, reason, is_certain=is_prompt(current, message.at))
    return None


def _open_topics(topics: Sequence[Topic], current: Topic | None) -> list[Topic]:
    """Return the open topics, the one with the latest turn first, and the current one last.

    If there are many, only the `live` ones of LIMITS with the latest turns are returned; a message
    returns to older topics by name only. `current` is included even if it is not among `topics`.
    """
    other_topics = [topic for topic in topics if topic.status != "closed"]
    if current in other_topics:
        other_topics.remove(current)
    other_topics.sort(key=attrgetter("last"), reverse=True)

    open_topics = other_topics[: LIMITS["live"]]
    if current is not None:
        open_topics.append(current)
    return open_topics


def _decide_by_scores(
    message: IncomingMessage, topics: Sequence[Topic], compared: _ComparedTopics
) -> Decision:
    """Return a decision for the topic with the best score; its topic is None for a new one.

    Of equal scores, that of the current topic is the best. The decision is certain only if the
    message stays after a short silence, and then by a clear margin, or in reply to a question of
    the assistant.
    """
    current = message.current
    signs = weigh_signs(message, topics)
    scores = _score_topics(topics, compared.comparisons, current, signs)

    ranked = sorted(scores, key=lambda topic: (-scores[topic], topic is not current))
    ranked_scores = [scores[topic] for topic in ranked]
    ranked_topics = [topic for topic in ranked if topic is not None]
    best = ranked[0]

    is_certain = False
    if best is not None and best is current and is_prompt(best, message.at):
        comparison = compared.comparisons[topics.index(best)]
        is_certain = comparison.answers_question or _is_clear(ranked_scores)
    return Decision(
        topic=best,
        reason=_reason(best, current),
        ranked=tuple(ranked_topics[:_MAX_RANKED]),
        is_certain=is_certain,
        method=compared.method,
    )


def _score_topics(
    topics: Sequence[Topic],
    comparisons: Sequence[Comparison],
    current: Topic | None,
    signs: Mapping[str, float],
) -> dict[Topic | None, float]:
    """Return the score of each topic, and that of a new topic for None.

    `comparisons` are in the order of `topics`, and `signs` are those of the message.
    """
    stay = _sum_weights(STAY, signs)
    back = _sum_weights(BACK, signs)

    scores: dict[Topic | None, float] = {None: _sum_weights(NEW, signs)}
    for topic, comparison in zip(topics, comparisons, strict=True):
        bonus = back
        if topic is current:
            bonus = stay + STAY["asked"] * comparison.answers_question
        scores[topic] = _score_similarity(comparison) + bonus
    return scores


def _sum_weights(weights: Mapping[str, float], signs: Mapping[str, float]) -> float:
    """Return the sum of the weights of a message's signs, each times its sign."""
    return sum(weight * signs.get(name, 0) for name, weight in weights.items())


def _score_similarity(comparison: Comparison) -> float:
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


def _word_vectors(texts: Sequence[str]) -> NDArray[np.float32]:
    """Return the unit vectors of texts by the bundled word vectors."""
    return shared_multilingual().unit_vectors(texts)


def _no_vectors(texts: Sequence[str]) -> NDArray[np.float32]:
    """Return vectors by which no two texts are similar."""
    import numpy as np

    return np.zeros((len(texts), 1), np.float32)
