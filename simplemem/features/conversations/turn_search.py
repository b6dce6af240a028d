"""Score turns by how well they answer a question, whatever topics they are in.

The score of a turn has two parts: how near it is to the question in meaning, by the bundled word
vectors, and how rare the words are that both have. Without vectors, words alone decide.
`turn_choice.py` chooses by the scores. Writes nothing.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from simplemem.errors import SimplememError
from simplemem.features.conversations.topic import Topic
from simplemem.features.conversations.turn_choice import (
    TurnBudget,
    TurnText,
    candidates_of,
    choose_turns,
)
from simplemem.features.conversations.turns import Turn
from simplemem.features.service import FeatureService
from simplemem.note.stems import stem
from simplemem.note.words import (
    LANGUAGES,
    STOP_WORDS,
    find_stop_words,
    unique_words,
)
from simplemem.providers.word_vectors import shared_multilingual

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from simplemem.store import EnhancedStore

    Vectors = NDArray[np.float32]  # one unit vector per row

_MAX_REMEMBERED: Final = 4_000  # turns whose features are remembered, about 5 kB each

# Measured with bench/natural_recall.py.
_WORDS_WEIGHT: Final = 0.1  # of shared words, beside the mean of two cosines


class _Features(NamedTuple):
    """What a turn is compared by."""

    stems: frozenset[str]
    vectors: Vectors | None  # that of the message, and that of the exchange; None without vectors


class TurnSearch(FeatureService):
    """Scores and chooses the turns of one store. Guards the features of compared turns."""

    def __init__(self, store: EnhancedStore) -> None:
        """Make the search of a store. Callers use `of`, so that a store has only one."""
        super().__init__(store)
        self._lock = threading.Lock()
        self._features: OrderedDict[TurnText, _Features] = OrderedDict()

    def choose(
        self, question: str, topics: Sequence[Topic], budget: TurnBudget
    ) -> dict[Topic, list[Turn]]:
        """Return the turns that answer a question best, in their order, by topic.

        `topics` are best first, and keep their order. `choose_turns` says which of them are taken
        and how the budget is spent. A short reply is read with the question before it.
        """
        candidates = candidates_of(topics)
        texts = [candidate.text for candidate in candidates]
        return choose_turns(topics, candidates, self._score(question, texts), budget)

    def _score(self, question: str, texts: Sequence[TurnText]) -> list[float]:
        """Return how well each turn answers a question; comparable within one call."""
        features = self._features_of(texts)
        shares = _share_rare_words(question_stems(question), features)
        cosines = self._cosines(question, features)
        scores = []
        for share, cosine in zip(shares, cosines, strict=True):
            scores.append(_WORDS_WEIGHT * share + cosine)
        return scores

    def _cosines(self, question: str, features: Sequence[_Features]) -> list[float]:
        """Return how near each turn is to a question in meaning: the mean of two cosines.

        One is that of its message, the other that of its exchange. All are 0 without vectors.
        """
        turn_vectors = [turn.vectors for turn in features if turn.vectors is not None]
        question_vectors = self._try_vectors([question])
        are_complete = len(turn_vectors) == len(features)
        if not turn_vectors or not are_complete or question_vectors is None:
            return [0.0] * len(features)

        import numpy as np

        # einsum, because a matrix product of so few rows would wait for its threads.
        cosines = np.einsum("ted,d->te", np.stack(turn_vectors), question_vectors[0])
        means: list[float] = cosines.mean(axis=1).tolist()
        return means

    def _features_of(self, texts: Sequence[TurnText]) -> list[_Features]:
        """Return what each turn is compared by, and remember it for the next questions."""
        with self._lock:
            features = {text: self._features[text] for text in texts if text in self._features}

        new_texts = [text for text in dict.fromkeys(texts) if text not in features]
        if new_texts:
            new_features = dict(zip(new_texts, self._make_features(new_texts), strict=True))
            self._remember(new_features)
            features |= new_features
        return [features[text] for text in texts]

    def _remember(self, features: Mapping[TurnText, _Features]) -> None:
        """Remember features; the oldest ones are forgotten if there are too many."""
        with self._lock:
            self._features.update(features)
            while len(self._features) > _MAX_REMEMBERED:
                self._features.popitem(last=False)

    def _make_features(self, texts: Sequence[TurnText]) -> list[_Features]:
        """Return what turns are compared by."""
        messages = [text.message for text in texts]
        exchanges = [text.exchange for text in texts]
        # One call for all texts: first the vectors of the messages, then those of the exchanges.
        vectors = self._try_vectors(messages + exchanges)

        features = []
        for index, exchange in enumerate(exchanges):
            stems = frozenset(content_stems(exchange))
            turn_vectors = None
            if vectors is not None:
                turn_vectors = vectors[[index, len(texts) + index]]
            features.append(_Features(stems, turn_vectors))
        return features

    def _try_vectors(self, texts: Sequence[str]) -> Vectors | None:
        """Return the unit vectors of texts by the bundled model, which knows many languages.

        Returns None if the model is missing, or if the settings turn vectors off.
        """
        if self.settings.embed.provider == "none":
            return None
        try:
            return shared_multilingual().unit_vectors(texts)
        except SimplememError:
            return None


def _share_rare_words(stems: set[str], features: Sequence[_Features]) -> list[float]:
    """Return for each turn its share of the words of a question that any turn has, 0 to 1.

    A word counts 1 divided by the number of turns that have it.
    """
    shared_stems = [stems & turn.stems for turn in features]
    turn_counts = Counter[str]()
    for turn_stems in shared_stems:
        turn_counts.update(turn_stems)

    rarities = {word: 1 / count for word, count in turn_counts.items()}
    total = sum(rarities.values()) or 1.0  # without a shared word, every share is 0
    shares = []
    for turn_stems in shared_stems:
        turn_total = sum(rarities[word] for word in turn_stems)
        shares.append(turn_total / total)
    return shares


def question_stems(question: str) -> set[str]:
    """Return the stems of the words of a question, without the stop words of its language."""
    stop_words = find_stop_words(unique_words(question.lower()), LANGUAGES)
    return content_stems(question, stop_words)


def content_stems(text: str, stop_words: Collection[str] = ()) -> set[str]:
    """Return the stems of the words of a text, without English stop words and `stop_words`."""
    stems = set()
    for word in unique_words(text.lower()):
        if word not in STOP_WORDS and word not in stop_words:
            stems.add(stem(word, ""))
    return stems
