"""Cosines of a message and topics, from the vectors that an embedder makes of their texts.

An exchange is a message with its answer. A topic is represented by its first exchange, which says
what it is about, and by its last ones. A message that is to be routed may lack its answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple
from weakref import WeakKeyDictionary

from simplemem.features.conversations.patterns import NUMBERS, content_words
from simplemem.features.conversations.topic import Topic
from simplemem.note.sentences import sentence_spans

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Rows = NDArray[np.float32]

MAX_LAST_EXCHANGES: Final = 8  # whose vectors represent a topic
_ROW_COUNT: Final = MAX_LAST_EXCHANGES + 2
"""Vectors per topic: of its last exchange as it is written, of its first, and of the last ones."""
_MIN_ENDING_WORDS: Final = 3  # content words of the last sentences of a message
_MAX_CHARACTERS: Final = NUMBERS["limits"]["text"]
_MIN_DIVISOR: Final = 1e-9


class Cosines(NamedTuple):
    """How similar the vectors of a message and a topic are.

    Except for `follows`, they are vectors of content words.
    """

    follows: float  # of the message and the last exchange, both as they are written
    is_about: float  # of the message and the exchange that is most similar to it
    fits: float  # of the message with its answer, and the sum of all exchanges
    ending: float  # of the end of the message and the exchange that is most similar to it


class VectorComparer:
    """Compares messages with topics by vectors. Guards the vectors of topics it has compared.

    When the note of a topic changes, there is a new `Topic`, and its vectors are made again.
    """

    def __init__(self, vectors: Callable[[Sequence[str]], Rows]) -> None:
        """Make a comparer. `vectors` returns the unit vector of each text, as rows in their order.

        It is called once per comparison, and `compare` lets its exceptions through.
        """
        self._vectors = vectors
        self._rows_by_topic: WeakKeyDictionary[Topic, Rows] = WeakKeyDictionary()

    def compare(self, text: str, topics: Sequence[Topic], answer: str = "") -> list[Cosines]:
        """Return the cosines of a message with its answer and each topic, in their order.

        Returns [] for no topics. Raises whatever the function that makes vectors raises.
        """
        if not topics:
            return []

        message_texts = [
            text,
            _content_of(text),
            _content_of(f"{text} {answer}"),
            _content_of(_ending(text)),
        ]
        message_rows = self._embed(message_texts, topics)
        rows_of_topics = [self._rows_by_topic[topic] for topic in topics]
        return _compare_rows(message_rows, rows_of_topics)

    def _embed(self, message_texts: Sequence[str], topics: Sequence[Topic]) -> Rows:
        """Return the vectors of a message's texts, and store those of topics that have none yet.

        All vectors are made in one call, which is faster than a call per topic.
        """
        new_topics = [topic for topic in topics if topic not in self._rows_by_topic]
        texts = list(message_texts)
        for topic in new_topics:
            texts += _texts_of(topic)
        rows = self._vectors(texts)

        start = len(message_texts)
        for topic in new_topics:
            self._rows_by_topic[topic] = rows[start : start + _ROW_COUNT]
            start += _ROW_COUNT
        return rows[: len(message_texts)]


def _texts_of(topic: Topic) -> list[str]:
    """Return the texts that represent a topic, in the order of its vectors.

    There are always `_ROW_COUNT`: those that a short topic lacks are empty.
    """
    exchanges = exchanges_of(topic, MAX_LAST_EXCHANGES)
    contents = [_content_of(exchange) for exchange in exchanges]
    texts = [*exchanges[-1:], *contents]
    missing_count = _ROW_COUNT - len(texts)
    return texts + [""] * missing_count


def _content_of(text: str) -> str:
    """Return the content words of a text, joined by spaces."""
    return " ".join(content_words(text))


def exchanges_of(topic: Topic, count: int) -> list[str]:
    """Return the first exchange of a topic and its last `count` ones, each once, as texts.

    Of long messages and answers, only the beginnings are returned.
    """
    last_turns = topic.turns[-count:]
    earlier_turns = topic.turns[:-count]
    exchanges = []
    for turn in [*earlier_turns[:1], *last_turns]:
        message = turn.message[:_MAX_CHARACTERS]
        answer = turn.answer[:_MAX_CHARACTERS]
        exchanges.append(f"{message} {answer}")
    return exchanges


def _ending(text: str) -> str:
    """Return the shortest end of a message with whole sentences and three content words.

    Returns the whole message if it has fewer. People often reply first, and name the subject in the
    last sentence.
    """
    spans = list(sentence_spans(text))
    for start, _ in reversed(spans):
        if len(content_words(text[start:])) >= _MIN_ENDING_WORDS:
            return text[start:]
    return text


def _compare_rows(message_rows: Rows, rows_of_topics: Sequence[Rows]) -> list[Cosines]:
    """Return the cosines of a message and each topic, in the order of `rows_of_topics`.

    `message_rows` has the vectors of the message as it is written, of its content words, of those
    of the message with its answer, and of those of its end. There must be a topic.
    """
    import numpy as np

    rows = np.stack(rows_of_topics)
    # The axes of `cosines` are the topics, the texts of a topic, and those of the message.
    # A matrix product of so few rows would wait for its threads, einsum does not.
    cosines = np.einsum("bed,sd->bes", rows, message_rows)
    follows = cosines[:, 0, 0].tolist()
    is_about = cosines[:, 1:, 1].max(axis=1).tolist()
    ending = cosines[:, 1:, 3].max(axis=1).tolist()

    # The cosine of a vector and a sum is the sum of the cosines, divided by the length of the sum.
    sums = rows[:, 1:].sum(axis=1)
    lengths = np.sqrt(np.einsum("bd,bd->b", sums, sums))
    cosine_sums = cosines[:, 1:, 2].sum(axis=1)
    fits = (cosine_sums / np.maximum(lengths, _MIN_DIVISOR)).tolist()

    return list(map(Cosines, follows, is_about, fits, ending))
