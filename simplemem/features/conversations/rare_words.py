"""Words as topics share them: a word says more about a topic the fewer topics have it. Pure.

Words are compared by their stems. `find_by_rare_words` finds the topic that a message names.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

from simplemem.features.conversations.patterns import NUMBERS, PATTERNS, content_words
from simplemem.features.conversations.topic import Topic

_STEM_LENGTH: Final = 6  # letters; the endings of longer words differ, most of all in Spanish
_MIN_RETURN_SHARE: Final = NUMBERS["limits"]["named"]
_UNUSED_WORD_COUNT: Final = 0.5  # of topics, for a word that none has


def stems_of(words: Iterable[str]) -> set[str]:
    """Return the beginnings by which words are compared with other words."""
    return set(map(_stem, words))


def rarity_of(topics_with_word: float, topic_count: int) -> float:
    """Return how much a word distinguishes topics: more, the fewer of them have it.

    `topics_with_word` must not be 0.
    """
    ratio = (topic_count + 1) / topics_with_word
    return math.log(1 + ratio)


def find_by_rare_words(words: Sequence[str], topics: Sequence[Topic]) -> Topic | None:
    """Return the topic that has most of the words that a message says it returns to.

    A word counts more if few topics have it, and in a topic in which many turns have it. Of equal
    topics, the one with the last turn is returned. Returns None if the best topic has too few of
    the words. Raises ValueError if `topics` is empty.
    """
    stems = stems_of(words)
    weights_by_topic = {topic: _weigh_stems(topic, stems) for topic in topics}
    rarity = _rarity_of_stems(stems, list(weights_by_topic.values()), len(topics))

    def rank(topic: Topic) -> tuple[float, datetime]:
        """Return the score of a topic, and its last time for topics with the same score."""
        score = 0.0
        for stem, weight in weights_by_topic[topic].items():
            score += rarity[stem] * weight
        return score, topic.last

    best = max(topics, key=rank)
    found_rarity = sum(rarity[stem] for stem in weights_by_topic[best])
    min_rarity = _MIN_RETURN_SHARE * sum(rarity.values())
    return best if found_rarity >= min_rarity else None


def _stem(word: str) -> str:
    """Return the beginning of a word by which it is compared with other words."""
    without_ending: str = PATTERNS["ending"].sub("", word)
    return without_ending[:_STEM_LENGTH]


def _rarity_of_stems(
    stems: Iterable[str], weights_of_topics: Sequence[Mapping[str, float]], topic_count: int
) -> dict[str, float]:
    """Return the rarity of each stem. Stems that no topic has are the rarest.

    `weights_of_topics` has the stems of each topic.
    """
    rarity = {}
    for stem in stems:
        topics_with_stem: float = sum(stem in weights for weights in weights_of_topics)
        if not topics_with_stem:
            topics_with_stem = _UNUSED_WORD_COUNT
        rarity[stem] = rarity_of(topics_with_stem, topic_count)
    return rarity


def _weigh_stems(topic: Topic, stems: set[str]) -> Mapping[str, float]:
    """Return the weight of each stem in a topic: 1, plus the share of turns with the stem.

    The label and the keywords count like one more turn. Stems that the topic lacks are left out.
    """
    keywords = " ".join(topic.keywords)
    heading = f"{topic.label} {keywords}"
    texts = [heading.lower()]
    for turn in topic.turns:
        exchange = f"{turn.message} {turn.answer}"
        texts.append(exchange.lower())

    text_counts = Counter[str]()
    for text in texts:
        # Most texts have none of the stems. This check saves splitting them into words.
        if any(stem in text for stem in stems):
            text_counts.update(stems & stems_of(content_words(text)))

    weights = {}
    for stem, count in text_counts.items():
        weights[stem] = 1 + count / len(texts)
    return weights
