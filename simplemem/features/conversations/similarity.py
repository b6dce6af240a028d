"""How similar a message and topics are: by vectors, by the words they share and by names. Pure.

`topic_vectors` compares the vectors, this module the words. A message that is to be routed may have
an answer already, and is compared with it then.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple
from weakref import WeakKeyDictionary

from simplemem.features.conversations.patterns import PATTERNS, content_words
from simplemem.features.conversations.rare_words import rarity_of, stems_of
from simplemem.features.conversations.topic import Topic
from simplemem.features.conversations.topic_vectors import (
    MAX_LAST_EXCHANGES,
    Cosines,
    VectorComparer,
    exchanges_of,
)
from simplemem.features.conversations.turns import Turn

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Rows = NDArray[np.float32]

_MAX_WORD_EXCHANGES: Final = 20  # the last ones, whose words represent a topic
_MAX_RECENT_EXCHANGES: Final = 2  # the last ones, whose words the next message often repeats
_MAX_ANSWER_ENDING: Final = 60  # characters in which an answer may ask something
_MIN_RARITY: Final = 0.3  # of a recent word that all topics have


class Comparison(NamedTuple):
    """How similar a message and a topic are. Of words, rare ones count more."""

    cosines: Cosines
    shared: float  # the share of the message's words that the topic has, of those in any topic
    recent: float  # how many words of message and answer the topic's last exchanges have
    answers_question: bool  # whether the topic's last answer asks something
    is_stranger: bool  # whether the message names someone whom only other topics name


@dataclass(frozen=True)
class _TopicWords:
    """The words of a topic."""

    words: frozenset[str]  # stems, and capitalized words as they are written
    recent_stems: frozenset[str]  # of the last exchanges
    ends_with_question: bool


class TopicComparer:
    """Compares messages with topics. Guards the words and vectors of topics it has compared.

    A topic whose note changes is a new object, and so it is read again.
    """

    def __init__(self, vectors: Callable[[Sequence[str]], Rows]) -> None:
        """Make a comparer. `vectors` returns the unit vector of each text, as rows in their order.

        Whatever it raises reaches the caller of `compare`.
        """
        self._vector_comparer = VectorComparer(vectors)
        self._words_by_topic: WeakKeyDictionary[Topic, _TopicWords] = WeakKeyDictionary()

    def compare(self, text: str, topics: Sequence[Topic], answer: str = "") -> list[Comparison]:
        """Return how similar a message with its answer and each topic are, in their order.

        Returns [] for no topics. Raises whatever the function that makes vectors raises.
        """
        message_stems = stems_of(content_words(text))
        exchange_stems = stems_of(content_words(f"{text} {answer}"))
        words_of_topics = [self._words_of(topic) for topic in topics]

        cosines = self._vector_comparer.compare(text, topics, answer)
        shares = _share_rare_words(message_stems, words_of_topics)
        recent_counts = _count_recent_words(exchange_stems, words_of_topics)
        names = _names_in_topics(text, words_of_topics)

        comparisons = []
        for index, topic_words in enumerate(words_of_topics):
            comparison = Comparison(
                cosines=cosines[index],
                shared=shares[index],
                recent=recent_counts[index],
                answers_question=topic_words.ends_with_question,
                is_stranger=bool(names) and not names & topic_words.words,
            )
            comparisons.append(comparison)
        return comparisons

    def _words_of(self, topic: Topic) -> _TopicWords:
        """Return the words of a topic, which are read once."""
        if topic not in self._words_by_topic:
            self._words_by_topic[topic] = _read_words(topic)
        return self._words_by_topic[topic]


def _read_words(topic: Topic) -> _TopicWords:
    """Return the words of the exchanges of a topic."""
    words = set[str]()
    for exchange in exchanges_of(topic, _MAX_WORD_EXCHANGES):
        words |= stems_of(content_words(exchange))
        words.update(_capitalized_words(exchange))

    recent_exchanges = exchanges_of(topic, MAX_LAST_EXCHANGES)[-_MAX_RECENT_EXCHANGES:]
    recent_stems = set[str]()
    for exchange in recent_exchanges:
        recent_stems |= stems_of(content_words(exchange))

    return _TopicWords(
        words=frozenset(words),
        recent_stems=frozenset(recent_stems),
        ends_with_question=_ends_with_question(topic.turns),
    )


def _ends_with_question(turns: Sequence[Turn]) -> bool:
    """Return whether the answer of the last turn asks something at its end."""
    if not turns:
        return False
    ending = turns[-1].answer[-_MAX_ANSWER_ENDING:]
    return "?" in ending


def _count_recent_words(stems: set[str], topics: Sequence[_TopicWords]) -> list[float]:
    """Return for each topic the logarithm of how many of the stems its last exchanges have.

    The counts are in the order of `topics`. A stem counts more the fewer topics have it.
    """
    topic_counts = Counter[str]()
    for topic in topics:
        topic_counts.update(stems & topic.words)

    topic_count = len(topics)
    rarity = {}
    for stem, count in topic_counts.items():
        rarity[stem] = math.log((topic_count + 1) / count) + _MIN_RARITY

    recent_counts = []
    for topic in topics:
        weight = sum(rarity[stem] for stem in stems & topic.recent_stems)
        recent_counts.append(math.log1p(weight))
    return recent_counts


def _share_rare_words(stems: set[str], topics: Sequence[_TopicWords]) -> list[float]:
    """Return for each topic its share of the stems of a message that any topic has, 0 to 1.

    The shares are in the order of `topics`. A stem counts more the fewer topics have it. All shares
    are 0 if no topic has one of the stems.
    """
    stems_by_topic = [stems & topic.words for topic in topics]
    topic_counts = Counter[str]()
    for topic_stems in stems_by_topic:
        topic_counts.update(topic_stems)

    rarity = {}
    for stem, count in topic_counts.items():
        rarity[stem] = rarity_of(count, len(topics))
    total = sum(rarity.values()) or 1.0

    shares = []
    for topic_stems in stems_by_topic:
        weight = sum(rarity[stem] for stem in topic_stems)
        shares.append(weight / total)
    return shares


def _names_in_topics(text: str, topics: Iterable[_TopicWords]) -> set[str]:
    """Return the capitalized words of a message that one of the topics has too."""
    names = set(_capitalized_words(text))
    shared_names = set[str]()
    for topic in topics:
        shared_names |= names & topic.words
    return shared_names


def _capitalized_words(text: str) -> list[str]:
    """Return the words that begin with a capital letter, except at the beginning of a sentence."""
    words: list[str] = PATTERNS["capital"].findall(text)
    return words
