"""Decide which topic a message belongs to, by rules that give a reason.

A message belongs to the topic that it returns to by name, or to the current topic while it is vague. Otherwise the
nearest topic wins by its last exchanges and by what it is about, or a new topic does. If the scores are in doubt, the
conversation stays in its topic. Asks no model and writes nothing.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from functools import cache, partial
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple
from weakref import WeakKeyDictionary

from simplemem.errors import Ambiguous, NotFound
from simplemem.features.conversations.patterns import (
    NUMBERS,
    PATTERNS,
    back_to,
    content_words,
)
from simplemem.features.conversations.topic import Topic
from simplemem.note.names import base_name
from simplemem.providers.wordllama import WordLlama

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MAX_EXCHANGES: Final = 4  # the last ones of a topic, which represent it
_ROWS: Final = _MAX_EXCHANGES + 2
"""Vectors of a topic: the last exchange as it was written, the first exchange, and the last ones."""
_MAX_RANKED: Final = 12  # topics that a model may choose from
_CUES: Final = ("shift", "greeting", "opening", "follow", "news")
_ANSWER_ENDING: Final = 60  # characters in which an answer may ask something

# The weights of the scores, by the cues of the message; `bench/talk.py` measures and tunes them.
NEAR, STAY, BACK, NEW, LIMITS = (
    NUMBERS[name] for name in ("near", "stay", "back", "new", "limits")
)
_load_word_vectors: Final = cache(WordLlama)
_by_last_turn: Final = attrgetter("last", "id")
_stem: Final = partial(PATTERNS["ending"].sub, "")


def current_topic(topics: Sequence[Topic], session: str, at: datetime) -> Topic | None:
    """Return the active topic of a session; for a back-dated message, the topic active at that time."""
    own_topics = [topic for topic in topics if topic.session == session and not topic.problem]
    active = [topic for topic in own_topics if topic.status == "active"]
    newest = max(active, key=_by_last_turn, default=None)
    if newest is None or at >= newest.last:
        return newest

    earlier_turns = [
        (turn.at, topic)
        for topic in own_topics
        if topic.status != "closed"
        for turn in topic.turns
        if turn.at <= at
    ]
    if not earlier_turns:
        return newest
    _, topic = max(earlier_turns, key=lambda turn: turn[0])
    return topic


def reachable_topics(topics: Sequence[Topic], session: str) -> list[Topic]:
    """Return the topics in which a session may continue: not the active ones of other sessions."""
    return [
        topic
        for topic in topics
        if not topic.problem and (topic.session == session or topic.status != "active")
    ]


def named_topic(topics: Sequence[Topic], name: str, session: str) -> Topic | None:
    """Return the topic that an agent names by id, else the newest open one with that label, else None.

    Raise NotFound if no topic has the id.
    """
    if name.startswith("block_"):
        return find_topic(topics, name)

    same_label = [
        topic
        for topic in reachable_topics(topics, session)
        if topic.label.casefold() == name.casefold() and topic.status != "closed"
    ]
    return max(same_label, key=_by_last_turn, default=None)


def find_topic(topics: Sequence[Topic], ref: str) -> Topic:
    """Return the topic with this id, label or note name.

    Raise NotFound with similar ids, Ambiguous with all candidates.
    """
    found = [topic for topic in topics if topic.id == ref]
    if not found:
        found = [topic for topic in topics if ref.casefold() in _names_of(topic)]
    if len(found) > 1:
        raise Ambiguous(
            f"{ref[:80]} matches {len(found)} topics",
            candidates=[f"{topic.id} ({topic.path[:-3]})" for topic in found],
        )
    if not found:
        raise _not_found(topics, ref)
    return found[0]


def _names_of(topic: Topic) -> list[str]:
    names = (topic.label, base_name(topic.path), topic.path[:-3])
    return [name.casefold() for name in names]


def _not_found(topics: Sequence[Topic], ref: str) -> NotFound:
    similar = get_close_matches(ref[:80], [topic.id for topic in topics], 3, 0.5)
    hint = "list_active_topics lists the topics."
    if similar:
        hint = f"Did you mean {' or '.join(similar)}?"
    return NotFound(f"no topic called {ref[:80]}", hint=hint, candidates=similar)


class Decision(NamedTuple):
    """The topic of a message, or None for a new one, and the reason."""

    topic: Topic | None
    reason: str
    ranked: tuple[Topic, ...] = ()  # the open topics, nearest first, if scores decided
    is_close: bool = False  # the two best scores are so close that a model may be asked
    method: str = "rules"


@dataclass(frozen=True)
class _Representation:
    """What represents a topic: its last exchanges, and the first, which says what it is about."""

    words: frozenset[str]  # stems, and names as they are written
    is_asked: bool  # whether the last answer asks something
    rows: NDArray[np.float32]


@dataclass(frozen=True)
class _Outline:
    """What of a topic is made into a `_Representation`."""

    words: frozenset[str]
    is_asked: bool
    texts: Sequence[str]  # one for each of its vectors


class TopicRouter:
    """Decides the topics of messages. Caches what represents each topic until its note changes."""

    def __init__(
        self, vectors: Callable[[Sequence[str]], NDArray[np.float32]] | None = None
    ) -> None:
        self._vectors = vectors or _word_vectors
        self._representations: WeakKeyDictionary[Topic, _Representation] = WeakKeyDictionary()

    def decide(
        self, message: str, at: datetime, topics: Sequence[Topic], current: Topic | None
    ) -> Decision:
        """Return the topic of a message whose topic no agent named. `topics` are the reachable ones.

        If the vectors cannot be had, only words are compared, and `method` says why.
        """
        if not topics:
            return Decision(None, "the first message")

        head = message[: LIMITS["text"]]
        return_words = back_to(head)
        if return_words:
            topic = _find_by_rare_words(return_words, topics)
            if topic is not None:
                return Decision(topic, f'returns to "{" ".join(return_words)}"')

        cues = _read_cues(head)
        words = content_words(head)
        cues["day"] = current is not None and _is_pause(current, at)
        is_vague = return_words == () or _is_short(words, cues)
        if current and is_vague and not cues["day"]:
            return Decision(current, "too short to start another topic")

        open_topics = _open_topics(topics, current)
        if current and not cues["day"]:
            cues["begun"] = _has_just_begun(current, open_topics)
        return self._decide_by_scores(head, words, open_topics, current, cues)

    def _decide_by_scores(
        self,
        head: str,
        words: Sequence[str],
        topics: Sequence[Topic],
        current: Topic | None,
        cues: Mapping[str, bool],
    ) -> Decision:
        """Return the topic with the best score, or a new one."""
        nearness, method = self._nearness_by_all_means(head, words, topics)
        stay = _sum_weights(STAY, cues)
        back = _sum_weights(BACK, cues)
        scores: dict[Topic | None, float] = {None: _sum_weights(NEW, cues)}
        for topic, near in zip(topics, nearness, strict=True):
            scores[topic] = near + (stay if topic is current else back)

        ranked = sorted(scores, key=lambda topic: (-scores[topic], topic is not current))
        best = ranked[0]
        is_close = len(ranked) > 1 and scores[best] - scores[ranked[1]] < LIMITS["close"]
        nearest_topics = tuple(topic for topic in ranked if topic is not None)[:_MAX_RANKED]
        return Decision(best, _reason(best, current), nearest_topics, is_close, method)

    def _nearness_by_all_means(
        self, head: str, words: Sequence[str], topics: Sequence[Topic]
    ) -> tuple[list[float], str]:
        """Return the nearness of each topic, and how it was found: without vectors if those fail."""
        if not topics:
            return [], "rules"
        try:
            return self.nearness(head, words, topics), "rules"
        except Exception as error:  # noqa: BLE001 - whatever fails, the turn is stored
            import numpy as np

            reason = getattr(error, "message", type(error).__name__)
            by_words = TopicRouter(lambda texts: np.zeros((len(texts), 1), np.float32))
            return by_words.nearness(head, words, topics), f"rules (words only: {reason})"

    def nearness(self, head: str, words: Sequence[str], topics: Sequence[Topic]) -> list[float]:
        """Return how near a message is to each topic, by vectors, rare words and names."""
        message_rows = self._embed(head, words, topics)
        representations = [self._representations[topic] for topic in topics]
        nearness = _nearness_by_vectors(message_rows, representations)
        shares = _weighted_rare_words(words, representations)
        names = _known_names(head, representations)

        for index, representation in enumerate(representations):
            is_stranger = bool(names) and not names & representation.words
            nearness[index] += shares[index] + NEAR["asked"] * representation.is_asked
            nearness[index] += NEAR["stranger"] * is_stranger
        return nearness

    def _embed(
        self, head: str, words: Sequence[str], topics: Sequence[Topic]
    ) -> NDArray[np.float32]:
        """Return the two vectors of a message, and represent the topics that are not cached yet."""
        outlines = {
            topic: _outline(topic) for topic in topics if topic not in self._representations
        }
        texts = [head, " ".join(words)]
        for outline in outlines.values():
            texts += outline.texts
        rows = self._vectors(texts)

        start = 2
        for topic, outline in outlines.items():
            self._representations[topic] = _Representation(
                outline.words, outline.is_asked, rows[start : start + _ROWS]
            )
            start += _ROWS
        return rows[:2]


def _word_vectors(texts: Sequence[str]) -> NDArray[np.float32]:
    """Return the unit vectors of texts by the bundled word vectors."""
    return _load_word_vectors().unit_vectors(texts)


def _reason(best: Topic | None, current: Topic | None) -> str:
    if best is None:
        return "starts a new topic"
    if best is current:
        return "continues the current topic"
    return "closest to the last messages of that topic"


def _read_cues(head: str) -> dict[str, bool]:
    """Return which cues a message has. `day` and `begun` are filled in by its surroundings."""
    cues = {kind: bool(PATTERNS[kind].match(head)) for kind in _CUES}
    return cues | {"always": True, "begun": False, "day": False}


def _sum_weights(weights: Mapping[str, float], cues: Mapping[str, bool]) -> float:
    return sum(weight for cue, weight in weights.items() if cues[cue])


def _is_pause(current: Topic, at: datetime) -> bool:
    """Return whether so much time has passed that a message need not continue its topic."""
    seconds = (at - current.last).total_seconds()
    return bool(seconds >= 3600 * LIMITS["hours"])


def _is_short(words: Sequence[str], cues: Mapping[str, bool]) -> bool:
    """Return whether a message is too short to start a topic, and does not announce one."""
    announces = cues["shift"] or (cues["greeting"] and cues["news"])
    return len(words) < LIMITS["few_words"] and not announces


def _open_topics(topics: Sequence[Topic], current: Topic | None) -> list[Topic]:
    """Return the topics that were spoken in last, and the current one behind them."""
    others = [topic for topic in topics if topic.status != "closed" and topic is not current]
    others.sort(key=attrgetter("last"), reverse=True)
    latest = others[: LIMITS["live"]]
    return [*latest, current] if current else latest


def _has_just_begun(current: Topic, topics: Sequence[Topic]) -> bool:
    """Return whether the last turn is the first one since the session was in another topic."""
    if len(current.turns) < 2:
        return True
    before_last = current.turns[-2].at
    return any(
        topic.last > before_last
        for topic in topics
        if topic is not current and topic.session == current.session
    )


def _nearness_by_vectors(
    message_rows: NDArray[np.float32], representations: Sequence[_Representation]
) -> list[float]:
    """Return for each topic how alike it is to a message in how and about what it is written."""
    import numpy as np

    stacked = np.stack([representation.rows for representation in representations])
    # einsum: a matrix product of so few rows would wait for its threads.
    cosines = np.einsum("bed,sd->bes", stacked, message_rows)
    follows = NEAR["follows"] * cosines[:, 0, 0]
    about = NEAR["about"] * cosines[:, 1:, 1].max(axis=1)
    nearness: list[float] = (follows + about).tolist()
    return nearness


def _weighted_rare_words(
    words: Sequence[str], representations: Sequence[_Representation]
) -> list[float]:
    """Return the weighted share of a message's words that each topic has; rare words count more."""
    wanted = set(map(_stem, words))
    shared = [wanted & representation.words for representation in representations]
    topics_with = Counter(word for topic_words in shared for word in topic_words)
    rarity = {
        word: math.log(1 + (len(representations) + 1) / count)
        for word, count in topics_with.items()
    }
    total = sum(rarity.values()) or 1.0
    return [
        NEAR["shared"] * sum(rarity[word] for word in topic_words) / total for topic_words in shared
    ]


def _known_names(head: str, representations: Sequence[_Representation]) -> set[str]:
    """Return the capitalized words of a message that one of the topics has too."""
    names = set(PATTERNS["capital"].findall(head))
    return {
        name
        for name in names
        if any(name in representation.words for representation in representations)
    }


def _outline(topic: Topic) -> _Outline:
    """Return what represents a topic: of its first exchange and of the last ones."""
    turns = (*topic.turns[:-_MAX_EXCHANGES][:1], *topic.turns[-_MAX_EXCHANGES:])
    max_characters = LIMITS["text"]
    exchanges = [
        f"{turn.message[:max_characters]} {turn.answer[:max_characters]}" for turn in turns
    ]
    words_of_each = [content_words(text) for text in exchanges]

    words = {_stem(word) for exchange_words in words_of_each for word in exchange_words}
    for text in exchanges:
        words.update(PATTERNS["capital"].findall(text))
    is_asked = bool(turns) and "?" in turns[-1].answer[-_ANSWER_ENDING:]
    texts = [*exchanges[-1:], *map(" ".join, words_of_each)]
    padding = [""] * (_ROWS - len(texts))
    return _Outline(frozenset(words), is_asked, [*texts, *padding])


def _find_by_rare_words(return_words: Sequence[str], topics: Sequence[Topic]) -> Topic | None:
    """Return the topic that has most of the rare words of what a message returns to.

    A word counts more in a topic in which more turns have it. None if no topic has enough of them.
    """
    wanted = set(map(_stem, return_words))
    shares = {topic: _shares_of_turns(topic, wanted) for topic in topics}
    rarity = dict[str, float]()
    for word in wanted:
        topics_with = sum(word in share for share in shares.values()) or 0.5
        rarity[word] = math.log(1 + (len(topics) + 1) / topics_with)

    def weigh(topic: Topic) -> tuple[float, datetime]:
        weight = sum(rarity[word] * share for word, share in shares[topic].items())
        return weight, topic.last

    best = max(topics, key=weigh)
    found = sum(rarity[word] for word in shares[best])
    return best if found >= LIMITS["named"] * sum(rarity.values()) else None


def _shares_of_turns(topic: Topic, wanted: set[str]) -> dict[str, float]:
    """Return for each wanted word of a topic 1, and the share of its turns that have it."""
    label = f"{topic.label} {' '.join(topic.keywords)}"
    texts = [label, *(f"{turn.message} {turn.answer}".lower() for turn in topic.turns)]
    counts = Counter[str]()
    for text in texts:
        if any(word in text for word in wanted):
            counts.update(wanted.intersection(map(_stem, content_words(text))))
    return {word: 1 + count / (1 + len(topic.turns)) for word, count in counts.items()}
