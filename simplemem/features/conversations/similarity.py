"""How similar an exchange and topics are: by word vectors, by rare words and by names. Pure.

An exchange is a message with its answer; the one that is to be routed may lack its answer.
`topic_vectors` compares the vectors, this module the words.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple
from weakref import WeakKeyDictionary

from simplemem.features.conversations.patterns import NUMBERS, PATTERNS, content_words
from simplemem.features.conversations.topic import Topic, Turn
from simplemem.features.conversations.topic_vectors import (
    MAX_LAST_EXCHANGES,
    Cosines,
    VectorComparer,
    exchanges_of,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Rows = NDArray[np.float32]

_MAX_WORD_EXCHANGES: Final = 20  # last ones, whose words represent a topic
_MAX_RECENT_EXCHANGES: Final = 2  # last ones, whose words what is said next has in common
_STEM: Final = 6  # letters; the endings of longer words differ, in Spanish more than in English
_MIN_RETURN_SHARE: Final = NUMBERS["limits"]["named"]
_MAX_ANSWER_ENDING: Final = 60  # characters in which an answer may ask something
_MIN_RARITY: Final = 0.3  # of a word that all topics have
_UNUSED_WORD_COUNT: Final = 0.5  # of topics, for a word that none has


class Comparison(NamedTuple):
    """How similar an exchange and a topic are."""

    cosines: Cosines
    shared: float  # the share of the words that any topic has; rare words count more
    recent: float  # how many words of the new exchange the last ones have; rare words count more
    answers_question: bool  # whether the last answer asks something
    is_stranger: bool  # whether the message names someone whom only other topics name


def _stem(word: str) -> str:
    """Return the beginning of a word by which it is compared with other words."""
    without_ending: str = PATTERNS["ending"].sub("", word)
    return without_ending[:_STEM]


@dataclass(frozen=True)
class _TopicWords:
    """The words of a topic."""

    words: frozenset[str]  # stems, and capitalized words as they are written
    recent_words: frozenset[str]  # stems of the last exchanges
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
        words = content_words(text)
        exchange_words = content_words(f"{text} {answer}")
        words_of_topics = [self._words_of(topic) for topic in topics]
        cosines = self._vector_comparer.compare(text, topics, answer)
        shares = _share_rare_words(words, words_of_topics)
        recent = _count_recent_words(exchange_words, words_of_topics)
        names = _names_in_topics(text, words_of_topics)

        comparisons = []
        for index, topic_words in enumerate(words_of_topics):
            comparison = Comparison(
                cosines=cosines[index],
                shared=shares[index],
                recent=recent[index],
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
        words.update(map(_stem, content_words(exchange)))
        words.update(_capitalized_words(exchange))
    recent_words = set[str]()
    for exchange in exchanges_of(topic, MAX_LAST_EXCHANGES)[-_MAX_RECENT_EXCHANGES:]:
        recent_words.update(map(_stem, content_words(exchange)))

    return _TopicWords(
        words=frozenset(words),
        recent_words=frozenset(recent_words),
        ends_with_question=_ends_with_question(topic.turns),
    )


def _ends_with_question(turns: Sequence[Turn]) -> bool:
    """Return whether the answer of the last turn asks something at its end."""
    if not turns:
        return False
    ending = turns[-1].answer[-_MAX_ANSWER_ENDING:]
    return "?" in ending


def _count_recent_words(words: Iterable[str], topics: Sequence[_TopicWords]) -> list[float]:
    """Return for each topic the logarithm of how many of the words its last exchanges have.

    They are in the order of `topics`. A word counts more the fewer topics have it.
    """
    stems = set(map(_stem, words))
    topic_counts = Counter[str]()
    for topic in topics:
        topic_counts.update(stems & topic.words)

    ratio = len(topics) + 1
    rarity = {}
    for word, count in topic_counts.items():
        rarity[word] = math.log(ratio / count) + _MIN_RARITY

    counts = []
    for topic in topics:
        weight = sum(rarity[word] for word in stems & topic.recent_words)
        counts.append(math.log1p(weight))
    return counts


def _share_rare_words(words: Iterable[str], topics: Sequence[_TopicWords]) -> list[float]:
    """Return for each topic its share of the words of a message that any topic has, 0 to 1.

    The shares are in the order of `topics`. A word counts more the fewer topics have it.
    All shares are 0 if no topic has one of the words.
    """
    stems = set(map(_stem, words))
    shared = [stems & topic.words for topic in topics]
    topic_counts = Counter[str]()
    for topic_words in shared:
        topic_counts.update(topic_words)

    topic_count = len(topics)
    rarity = {}
    for word, count in topic_counts.items():
        rarity[word] = _rarity(count, topic_count)

    total = sum(rarity.values()) or 1.0
    shares = []
    for topic_words in shared:
        weight = sum(rarity[word] for word in topic_words)
        shares.append(weight / total)
    return shares


def _rarity(topics_with_word: float, topic_count: int) -> float:
    """Return how much a word tells one topic from others: more, the fewer topics have it.

    `topics_with_word` must not be 0.
    """
    ratio = (topic_count + 1) / topics_with_word
    return math.log(1 + ratio)


def _names_in_topics(text: str, topics: Iterable[_TopicWords]) -> set[str]:
    """Return the capitalized words of a message that one of the topics has too."""
    names = set(_capitalized_words(text))
    shared_names = set[str]()
    for topic in topics:
        shared_names |= names & topic.words
    return shared_names


def _capitalized_words(text: str) -> list[str]:
    """Return the words with a capital letter where no sentence begins."""
    words: list[str] = PATTERNS["capital"].findall(text)
    return words


def find_by_rare_words(words: Sequence[str], topics: Sequence[Topic]) -> Topic | None:
    """Return the topic that has most of the words that a message says it returns to.

    A word counts more if few topics have it, and in a topic in which many turns have it. Of equal
    topics, the one with the last turn is returned. Returns None if the best topic has too few of
    the words. Raises ValueError if `topics` is empty.
    """
    stems = set(map(_stem, words))
    weights = {topic: _weigh_words(topic, stems) for topic in topics}
    rarity = {}
    for word in stems:
        topics_with_word: float = 0
        for topic_weights in weights.values():
            if word in topic_weights:
                topics_with_word += 1
        if not topics_with_word:
            topics_with_word = _UNUSED_WORD_COUNT
        rarity[word] = _rarity(topics_with_word, len(topics))

    def rank(topic: Topic) -> tuple[float, datetime]:
        """Return the score of a topic, and its last time for topics with the same score."""
        score = 0.0
        for word, weight in weights[topic].items():
            score += rarity[word] * weight
        return score, topic.last

    best = max(topics, key=rank)
    found_rarity = sum(rarity[word] for word in weights[best])
    min_rarity = _MIN_RETURN_SHARE * sum(rarity.values())
    return best if found_rarity >= min_rarity else None


def _weigh_words(topic: Topic, stems: set[str]) -> Mapping[str, float]:
    """Return the weight of each stem in a topic: 1, plus the share of turns with the stem.

    The label and the keywords count like one more turn. Stems that the topic lacks are left out.
    """
    keywords = " ".join(topic.keywords)
    heading = f"{topic.label} {keywords}"
    texts = [heading.lower()]
    for turn in topic.turns:
        exchange = f"{turn.message} {turn.answer}"
        texts.append(exchange.lower())

    counts = Counter[str]()
    for text in texts:
        if any(word in text for word in stems):  # saves splitting most texts into words
            text_stems = map(_stem, content_words(text))
            counts.update(stems.intersection(text_stems))

    weights = {}
    for word, count in counts.items():
        weights[word] = 1 + count / len(texts)
    return weights
