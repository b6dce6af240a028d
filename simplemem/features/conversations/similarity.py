"""How similar a message and topics are: by word vectors, by rare words and by names. Pure.

A topic is represented by its first exchange, which says what it is about, and by its last ones. An
exchange is a message with its answer.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple
from weakref import WeakKeyDictionary

from simplemem.features.conversations.patterns import NUMBERS, PATTERNS, content_words
from simplemem.features.conversations.topic import Topic, Turn

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Rows = NDArray[np.float32]

_MAX_LAST_EXCHANGES: Final = 4
_MAX_ROWS: Final = _MAX_LAST_EXCHANGES + 2
"""Vectors of a topic: its last exchange as it is written, then the words of each exchange."""
_MAX_CHARACTERS: Final = NUMBERS["limits"]["text"]
_MIN_RETURN_SHARE: Final = NUMBERS["limits"]["named"]
_MAX_ANSWER_ENDING: Final = 60  # characters in which an answer may ask something
_UNUSED_WORD_COUNT: Final = 0.5  # of topics, for a word that none has

_stem: Final = partial(PATTERNS["ending"].sub, "")


class Comparison(NamedTuple):
    """How similar a message and a topic are."""

    follows: float  # the cosine of the message and the last exchange, as they are written
    is_about: float  # the best cosine of the content words of the message and of an exchange
    shared: float  # the share of the words that any topic has; rare words count more
    answers_question: bool  # whether the last answer asks something
    is_stranger: bool  # whether the message names someone whom only other topics name


class _Cosines(NamedTuple):
    """The parts of a `Comparison` that are computed from vectors."""

    follows: float
    is_about: float


@dataclass(frozen=True)
class _Outline:
    """What represents a topic, before the vectors of its texts are known."""

    words: frozenset[str]  # stems, and capitalized words as they are written
    ends_with_question: bool
    texts: Sequence[str]  # one for each of its vectors


@dataclass(frozen=True)
class _Representation:
    """What represents a topic."""

    words: frozenset[str]
    ends_with_question: bool
    rows: Rows


class TopicComparer:
    """Compares messages with topics. Guards the representations of topics that it has compared.

    A topic whose note changes is a new object, and so it is represented again.
    """

    def __init__(self, vectors: Callable[[Sequence[str]], Rows]) -> None:
        """Make a comparer. `vectors` returns the unit vector of each text, as rows in their order.

        It is called once per comparison, and whatever it raises reaches the caller of `compare`.
        """
        self._vectors = vectors
        self._representations: WeakKeyDictionary[Topic, _Representation] = WeakKeyDictionary()

    def compare(self, text: str, topics: Sequence[Topic]) -> list[Comparison]:
        """Return how similar a message and each topic are, in the order of `topics`.

        Returns [] for no topics. Raises whatever the function that makes vectors raises.
        """
        if not topics:
            return []

        words = content_words(text)
        message_rows = self._embed(text, words, topics)
        representations = [self._representations[topic] for topic in topics]
        cosines = _compare_vectors(message_rows, representations)
        shares = _share_rare_words(words, representations)
        names = _known_names(text, representations)

        comparisons = []
        for index, representation in enumerate(representations):
            comparison = Comparison(
                follows=cosines[index].follows,
                is_about=cosines[index].is_about,
                shared=shares[index],
                answers_question=representation.ends_with_question,
                is_stranger=bool(names) and not names & representation.words,
            )
            comparisons.append(comparison)
        return comparisons

    def _embed(self, text: str, words: Sequence[str], topics: Sequence[Topic]) -> Rows:
        """Return two vectors of a message: as it is written, and of its content words (`words`).

        Also represents the topics that are not represented yet, so that all of `topics` are
        afterwards. The function that makes vectors is called once, and what it raises is raised.
        """
        outlines = {}
        for topic in topics:
            if topic not in self._representations:
                outlines[topic] = _outline(topic)

        texts = [text, " ".join(words)]
        for outline in outlines.values():
            texts += outline.texts
        rows = self._vectors(texts)

        start = 2
        for topic, outline in outlines.items():
            self._representations[topic] = _Representation(
                words=outline.words,
                ends_with_question=outline.ends_with_question,
                rows=rows[start : start + _MAX_ROWS],
            )
            start += _MAX_ROWS
        return rows[:2]


def _outline(topic: Topic) -> _Outline:
    """Return what represents a topic, with exactly `_MAX_ROWS` texts; missing ones are empty."""
    last_turns = topic.turns[-_MAX_LAST_EXCHANGES:]
    earlier_turns = topic.turns[:-_MAX_LAST_EXCHANGES]
    exchanges = []
    for turn in [*earlier_turns[:1], *last_turns]:
        message = turn.message[:_MAX_CHARACTERS]
        answer = turn.answer[:_MAX_CHARACTERS]
        exchanges.append(f"{message} {answer}")

    words = set[str]()
    texts = exchanges[-1:]
    for exchange in exchanges:
        exchange_words = content_words(exchange)
        texts.append(" ".join(exchange_words))
        words.update(map(_stem, exchange_words))
        words.update(_capitalized_words(exchange))
    missing_count = _MAX_ROWS - len(texts)
    texts += [""] * missing_count

    return _Outline(
        words=frozenset(words),
        ends_with_question=_ends_with_question(last_turns),
        texts=texts,
    )


def _ends_with_question(turns: Sequence[Turn]) -> bool:
    """Return whether the answer of the last turn asks something at its end."""
    if not turns:
        return False
    ending = turns[-1].answer[-_MAX_ANSWER_ENDING:]
    return "?" in ending


def _compare_vectors(
    message_rows: Rows, representations: Sequence[_Representation]
) -> list[_Cosines]:
    """Return the cosines of a message and each topic, in the order of `representations`.

    `message_rows` has two vectors: of the message as it is written, which is compared with the last
    exchange, and of its content words, compared with those of each exchange; the largest cosine
    counts. There must be a topic.
    """
    import numpy as np

    rows_of_topics = [representation.rows for representation in representations]
    stacked = np.stack(rows_of_topics)
    # einsum, because a matrix product of so few rows would wait for its threads.
    cosines = np.einsum("bed,sd->bes", stacked, message_rows)
    follows = cosines[:, 0, 0].tolist()
    is_about = cosines[:, 1:, 1].max(axis=1).tolist()
    return list(map(_Cosines, follows, is_about))


def _share_rare_words(
    words: Iterable[str], representations: Sequence[_Representation]
) -> list[float]:
    """Return for each topic its share of the words of a message that any topic has, 0 to 1.

    The shares are in the order of `representations`. A word counts more the fewer topics have it.
    All shares are 0 if no topic has one of the words.
    """
    stems = set(map(_stem, words))
    shared = [stems & representation.words for representation in representations]
    topic_counts = Counter[str]()
    for topic_words in shared:
        topic_counts.update(topic_words)

    topic_count = len(representations)
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


def _known_names(text: str, representations: Iterable[_Representation]) -> set[str]:
    """Return the capitalized words of a message that one of the topics has too."""
    names = set(_capitalized_words(text))
    known_names = set[str]()
    for representation in representations:
        known_names |= names & representation.words
    return known_names


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
    texts = [f"{topic.label} {keywords}"]
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
