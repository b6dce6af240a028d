"""How similar an exchange and topics are: by word vectors, by rare words and by names. Pure.

An exchange is a message with its answer. A topic is represented by its first exchange, which says
what it is about, and by its last ones. An exchange that is to be routed may lack its answer.
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
from simplemem.note.sentences import sentence_spans

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Rows = NDArray[np.float32]

_MAX_LAST_EXCHANGES: Final = 8  # whose vectors represent a topic
_MAX_WORD_EXCHANGES: Final = 20  # last ones, whose words represent a topic
_MAX_RECENT_EXCHANGES: Final = 2  # last ones, whose words what is said next has in common
_MAX_ROWS: Final = _MAX_LAST_EXCHANGES + 2
"""Vectors of a topic: its last exchange as it is written, then the words of each exchange."""
_MIN_ENDING_WORDS: Final = 3  # content words of the last sentences of a message
_STEM: Final = 6  # letters; the endings of longer words differ, in Spanish more than in English
_MAX_CHARACTERS: Final = NUMBERS["limits"]["text"]
_MIN_RETURN_SHARE: Final = NUMBERS["limits"]["named"]
_MAX_ANSWER_ENDING: Final = 60  # characters in which an answer may ask something
_SHORT: Final = 1e-9  # the least divisor
_MIN_RARITY: Final = 0.3  # of a word that all topics have
_UNUSED_WORD_COUNT: Final = 0.5  # of topics, for a word that none has


class Comparison(NamedTuple):
    """How similar an exchange and a topic are."""

    follows: float  # the cosine of the message and the last exchange, as they are written
    is_about: float  # the best cosine of the content words of the message and of an exchange
    fits: float  # the cosine of the content words of the new exchange and of all exchanges
    ending: float  # the best cosine of the content words of the message's end and of an exchange
    shared: float  # the share of the words that any topic has; rare words count more
    recent: float  # how many words of the new exchange the last ones have; rare words count more
    answers_question: bool  # whether the last answer asks something
    is_stranger: bool  # whether the message names someone whom only other topics name


class _Cosines(NamedTuple):
    """The parts of a `Comparison` that are computed from vectors."""

    follows: float
    is_about: float
    fits: float
    ending: float


def _stem(word: str) -> str:
    """Return the beginning of a word by which it is compared with other words."""
    without_ending: str = PATTERNS["ending"].sub("", word)
    return without_ending[:_STEM]


@dataclass(frozen=True)
class _Outline:
    """What represents a topic, before the vectors of its texts are known."""

    words: frozenset[str]  # stems, and capitalized words as they are written
    recent_words: frozenset[str]  # stems of the last exchanges
    ends_with_question: bool
    texts: Sequence[str]  # one for each of its vectors


@dataclass(frozen=True)
class _Representation:
    """What represents a topic."""

    words: frozenset[str]
    recent_words: frozenset[str]
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

    def compare(self, text: str, topics: Sequence[Topic], answer: str = "") -> list[Comparison]:
        """Return how similar a message with its answer and each topic are, in their order.

        Returns [] for no topics. Raises whatever the function that makes vectors raises.
        """
        if not topics:
            return []

        words = content_words(text)
        exchange_words = content_words(f"{text} {answer}")
        message_rows = self._embed([text, words, exchange_words, _ending_words(text)], topics)
        representations = [self._representations[topic] for topic in topics]
        cosines = _compare_vectors(message_rows, representations)
        shares = _share_rare_words(words, representations)
        recent = _count_recent_words(exchange_words, representations)
        names = _known_names(text, representations)

        comparisons = []
        for index, representation in enumerate(representations):
            comparison = Comparison(
                *cosines[index],
                shared=shares[index],
                recent=recent[index],
                answers_question=representation.ends_with_question,
                is_stranger=bool(names) and not names & representation.words,
            )
            comparisons.append(comparison)
        return comparisons

    def _embed(self, parts: Sequence[str | Sequence[str]], topics: Sequence[Topic]) -> Rows:
        """Return a vector of each part of a message: of a text, or of content words.

        Also represents the topics that are not represented yet, so that all of `topics` are
        afterwards. The function that makes vectors is called once, and what it raises is raised.
        """
        outlines = {}
        for topic in topics:
            if topic not in self._representations:
                outlines[topic] = _outline(topic)

        texts = [part if isinstance(part, str) else " ".join(part) for part in parts]
        for outline in outlines.values():
            texts += outline.texts
        rows = self._vectors(texts)

        start = len(parts)
        for topic, outline in outlines.items():
            self._representations[topic] = _Representation(
                words=outline.words,
                recent_words=outline.recent_words,
                ends_with_question=outline.ends_with_question,
                rows=rows[start : start + _MAX_ROWS],
            )
            start += _MAX_ROWS
        return rows[: len(parts)]


def _ending_words(text: str) -> Sequence[str]:
    """Return the content words of the last sentences of a message, at least three if it has them.

    A message often answers first, and comes to its subject then.
    """
    spans = list(sentence_spans(text))
    for start, _ in reversed(spans):
        words = content_words(text[start:])
        if len(words) >= _MIN_ENDING_WORDS:
            return words
    return content_words(text)


def _outline(topic: Topic) -> _Outline:
    """Return what represents a topic, with exactly `_MAX_ROWS` texts; missing ones are empty."""
    exchanges = _exchanges_of(topic, _MAX_LAST_EXCHANGES)
    texts = exchanges[-1:]
    for exchange in exchanges:
        texts.append(" ".join(content_words(exchange)))
    missing_count = _MAX_ROWS - len(texts)
    texts += [""] * missing_count

    words = set[str]()
    for exchange in _exchanges_of(topic, _MAX_WORD_EXCHANGES):
        words.update(map(_stem, content_words(exchange)))
        words.update(_capitalized_words(exchange))
    recent_words = set[str]()
    for exchange in exchanges[-_MAX_RECENT_EXCHANGES:]:
        recent_words.update(map(_stem, content_words(exchange)))

    return _Outline(
        words=frozenset(words),
        recent_words=frozenset(recent_words),
        ends_with_question=_ends_with_question(topic.turns),
        texts=texts,
    )


def _exchanges_of(topic: Topic, count: int) -> list[str]:
    """Return the first exchange of a topic and its last `count` ones, each once, as texts."""
    last_turns = topic.turns[-count:]
    earlier_turns = topic.turns[:-count]
    exchanges = []
    for turn in [*earlier_turns[:1], *last_turns]:
        message = turn.message[:_MAX_CHARACTERS]
        answer = turn.answer[:_MAX_CHARACTERS]
        exchanges.append(f"{message} {answer}")
    return exchanges


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

    `message_rows` has the vectors of the message as it is written, of its content words, of those
    with its answer, and of those of its end. There must be a topic.
    """
    import numpy as np

    rows_of_topics = [representation.rows for representation in representations]
    stacked = np.stack(rows_of_topics)
    # einsum, because a matrix product of so few rows would wait for its threads.
    cosines = np.einsum("bed,sd->bes", stacked, message_rows)
    follows = cosines[:, 0, 0].tolist()
    is_about = cosines[:, 1:, 1].max(axis=1).tolist()
    sums = stacked[:, 1:].sum(axis=1)
    lengths = np.sqrt(np.einsum("bd,bd->b", sums, sums))
    fits = cosines[:, 1:, 2].sum(axis=1) / np.maximum(lengths, _SHORT)
    ending = cosines[:, 1:, 3].max(axis=1).tolist()
    return list(map(_Cosines, follows, is_about, fits.tolist(), ending))


def _count_recent_words(
    words: Iterable[str], representations: Sequence[_Representation]
) -> list[float]:
    """Return for each topic the logarithm of how many of the words its last exchanges have.

    They are in the order of `representations`. A word counts more the fewer topics have it.
    """
    stems = set(map(_stem, words))
    topic_counts = Counter[str]()
    for representation in representations:
        topic_counts.update(stems & representation.words)

    ratio = len(representations) + 1
    rarity = {}
    for word, count in topic_counts.items():
        rarity[word] = math.log(ratio / count) + _MIN_RARITY

    counts = []
    for representation in representations:
        weight = sum(rarity[word] for word in stems & representation.recent_words)
        counts.append(math.log1p(weight))
    return counts


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
