"""Cosines of a message and topics, from the vectors that an embedder makes of their texts.

A topic is represented by its first exchange, which says what it is about, and by its last ones. An
exchange is a message with its answer; the one that is to be routed may lack its answer.
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
_MAX_ROWS: Final = MAX_LAST_EXCHANGES + 2
"""Vectors of a topic: its last exchange as it is written, then one of each exchange."""
_MIN_ENDING_WORDS: Final = 3  # content words of the last sentences of a message
_MAX_CHARACTERS: Final = NUMBERS["limits"]["text"]
_SHORT: Final = 1e-9  # the least divisor


class Cosines(NamedTuple):
    """How similar the vectors of a message and a topic are.

    They are those of content words, but for `follows`.
    """

    follows: float  # of the message and the last exchange, both as they are written
    is_about: float  # of the message and the exchange that is most similar to it
    fits: float  # of the message with its answer and all exchanges
    ending: float  # of the end of the message and the exchange that is most similar to it


class VectorComparer:
    """Compares messages with topics by vectors. Guards the vectors of topics it has compared.

    A topic whose note changes is a new object, and so its vectors are made again.
    """

    def __init__(self, vectors: Callable[[Sequence[str]], Rows]) -> None:
        """Make a comparer. `vectors` returns the unit vector of each text, as rows in their order.

        It is called once per comparison, and whatever it raises reaches the caller of `compare`.
        """
        self._vectors = vectors
        self._rows_by_topic: WeakKeyDictionary[Topic, Rows] = WeakKeyDictionary()

    def compare(self, text: str, topics: Sequence[Topic], answer: str = "") -> list[Cosines]:
        """Return the cosines of a message with its answer and each topic, in their order.

        Returns [] for no topics. Raises whatever the function that makes vectors raises.
        """
        if not topics:
            return []

        texts = [
            text,
            _content_of(text),
            _content_of(f"{text} {answer}"),
            _content_of(_ending(text)),
        ]
        message_rows = self._embed(texts, topics)
        return _compare_rows(message_rows, [self._rows_by_topic[topic] for topic in topics])

    def _embed(self, texts: Sequence[str], topics: Sequence[Topic]) -> Rows:
        """Return the vectors of texts of a message, and remember those of topics without any.

        The function that makes vectors is called once, and what it raises is raised.
        """
        new_topics = [topic for topic in topics if topic not in self._rows_by_topic]
        all_texts = list(texts)
        for topic in new_topics:
            all_texts += _texts_of(topic)
        rows = self._vectors(all_texts)

        start = len(texts)
        for topic in new_topics:
            self._rows_by_topic[topic] = rows[start : start + _MAX_ROWS]
            start += _MAX_ROWS
        return rows[: len(texts)]


def _texts_of(topic: Topic) -> list[str]:
    """Return the texts that represent a topic, exactly `_MAX_ROWS`; missing ones are empty."""
    exchanges = exchanges_of(topic, MAX_LAST_EXCHANGES)
    texts = [*exchanges[-1:], *map(_content_of, exchanges)]
    missing_count = _MAX_ROWS - len(texts)
    return texts + [""] * missing_count


def _content_of(text: str) -> str:
    """Return the content words of a text."""
    return " ".join(content_words(text))


def exchanges_of(topic: Topic, count: int) -> list[str]:
    """Return the first exchange of a topic and its last `count` ones, each once, as texts."""
    last_turns = topic.turns[-count:]
    earlier_turns = topic.turns[:-count]
    exchanges = []
    for turn in [*earlier_turns[:1], *last_turns]:
        message = turn.message[:_MAX_CHARACTERS]
        answer = turn.answer[:_MAX_CHARACTERS]
        exchanges.append(f"{message} {answer}")
    return exchanges


def _ending(text: str) -> str:
    """Return the last sentences of a message, with at least three content words if it has them.

    A message often answers first, and comes to its subject then.
    """
    spans = list(sentence_spans(text))
    for start, _ in reversed(spans):
        if len(content_words(text[start:])) >= _MIN_ENDING_WORDS:
            return text[start:]
    return text


def _compare_rows(message_rows: Rows, rows_of_topics: Sequence[Rows]) -> list[Cosines]:
    """Return the cosines of a message and each topic, in the order of `rows_of_topics`.

    `message_rows` has the vectors of the message as it is written, of the message, of the message
    with its answer, and of its end. There must be a topic.
    """
    import numpy as np

    stacked = np.stack(rows_of_topics)
    # einsum, because a matrix product of so few rows would wait for its threads.
    cosines = np.einsum("bed,sd->bes", stacked, message_rows)
    follows = cosines[:, 0, 0].tolist()
    is_about = cosines[:, 1:, 1].max(axis=1).tolist()
    sums = stacked[:, 1:].sum(axis=1)
    lengths = np.sqrt(np.einsum("bd,bd->b", sums, sums))
    fits = cosines[:, 1:, 2].sum(axis=1) / np.maximum(lengths, _SHORT)
    ending = cosines[:, 1:, 3].max(axis=1).tolist()
    return list(map(Cosines, follows, is_about, fits.tolist(), ending))
