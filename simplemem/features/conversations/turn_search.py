"""Choose the turns that answer a question, by their own scores, whatever topics they are in.

The score of a turn has two parts: how near it is to the question in meaning, by the bundled word
vectors, and how rare the words are that both have. Without vectors, words alone decide.
docs/conversations.md says how many turns are returned. Writes nothing.
"""

from __future__ import annotations

import re
import threading
from collections import Counter, OrderedDict
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from simplemem.errors import SimplememError
from simplemem.features.conversations.topic import Topic, Turn
from simplemem.features.service import FeatureService
from simplemem.note.stems import stem
from simplemem.note.words import (
    LANGUAGES,
    STOP_WORDS,
    count_tokens,
    find_stop_words,
    unique_words,
)
from simplemem.providers.word_vectors import shared_multilingual

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from simplemem.store import EnhancedStore

    Rows = NDArray[np.float32]

_MAX_CANDIDATES: Final = 2_000  # turns that are compared; of more, those of the first topics
_MAX_REMEMBERED: Final = 4_000  # turns whose features are remembered, about 5 kB each
_MAX_CHARACTERS: Final = 2_000  # of a message, and of an answer, that count
_MAX_SHORT_REPLY: Final = 80  # characters of a message that is not understood without the question
_MAX_ENDING: Final = 300  # characters at the end of a turn, of which the question is taken
_SENTENCE_END: Final = re.compile(r"[.!?\n]")

# What these are measured with: bench/natural_recall.py.
_WORDS_WEIGHT: Final = 0.1  # of shared words, beside the mean of two cosines


class TurnBudget(NamedTuple):
    """How much one answer has at most."""

    topics: int
    turns: int  # of all topics together
    tokens: int  # of messages and answers


class TurnText(NamedTuple):
    """What of a turn is compared with a question."""

    message: str
    answer: str
    question_before: str  # to which it is a short reply, such as "By the station"; "" for none

    @property
    def whole(self) -> str:
        """All of it, in the order in which it was said."""
        return f"{self.question_before} {self.message} {self.answer}"


class Candidate(NamedTuple):
    """A turn that may answer a question, and the position of its topic."""

    topic_index: int
    turn: Turn
    text: TurnText

    @property
    def tokens(self) -> int:
        """How many tokens the turn has in an answer, about."""
        return count_tokens(f"{self.turn.message} {self.turn.answer}")


class _Features(NamedTuple):
    """What a turn is compared by."""

    stems: frozenset[str]
    rows: Rows | None  # the unit vectors of message and exchange; None without vectors


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

        `topics` are best first. If they exceed the number of topics in the budget, the first half
        of that number is taken, and then those with the best turns. Every topic that is taken gets
        its best turn, however long; the rest of the budget goes to the best turns of all of them.
        A short reply is read with the question before it. Of turns with one score, the later one
        is preferred. The topics keep their order.
        """
        candidates = _candidates_of(topics)
        scores = self._score(question, candidates)

        def rank(index: int) -> tuple[float, int]:
            """Return the score of a candidate, and its position."""
            return scores[index], index

        best_first = sorted(range(len(candidates)), key=rank, reverse=True)
        best_turns = _best_of_topics(candidates, best_first, budget, len(topics))
        chosen = _choose_within(candidates, best_turns, best_first, budget)

        taken = {*best_turns}
        if len(topics) <= budget.topics:
            taken |= {*range(len(topics))}  # those without turns too
        turns: dict[Topic, list[Turn]] = {topics[index]: [] for index in sorted(taken)}
        for index in sorted(chosen):
            candidate = candidates[index]
            turns[topics[candidate.topic_index]].append(candidate.turn)
        return turns

    def _score(self, question: str, candidates: Sequence[Candidate]) -> list[float]:
        """Return how well each candidate answers a question; comparable within one call."""
        features = self._features_of([candidate.text for candidate in candidates])
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
        rows = [turn.rows for turn in features if turn.rows is not None]
        question_rows = self._try_vectors([question])
        if not rows or question_rows is None or len(rows) < len(features):
            return [0.0] * len(features)

        import numpy as np

        # einsum, because a matrix product of so few rows would wait for its threads.
        cosines = np.einsum("ted,d->te", np.stack(rows), question_rows[0])
        means: list[float] = cosines.mean(axis=1).tolist()
        return means

    def _features_of(self, texts: Sequence[TurnText]) -> list[_Features]:
        """Return what each turn is compared by, and remember it for the next questions."""
        with self._lock:
            known = {text: self._features[text] for text in texts if text in self._features}

        new_texts = list(dict.fromkeys(text for text in texts if text not in known))
        if new_texts:
            made = dict(zip(new_texts, self._make_features(new_texts), strict=True))
            known |= made
            self._remember(made)
        return [known[text] for text in texts]

    def _remember(self, made: dict[TurnText, _Features]) -> None:
        """Remember features; the oldest ones are forgotten if there are too many."""
        with self._lock:
            self._features.update(made)
            while len(self._features) > _MAX_REMEMBERED:
                self._features.popitem(last=False)

    def _make_features(self, texts: Sequence[TurnText]) -> list[_Features]:
        """Return what turns are compared by."""
        messages = [text.message for text in texts]
        wholes = [text.whole for text in texts]
        rows = self._try_vectors([*messages, *wholes])

        count = len(texts)
        features = []
        for index, whole in enumerate(wholes):
            pair = None if rows is None else rows[[index, count + index]]
            features.append(_Features(frozenset(content_stems(whole)), pair))
        return features

    def _try_vectors(self, texts: Sequence[str]) -> Rows | None:
        """Return the unit vectors of texts by the bundled model, which knows many languages.

        Returns None if the model is missing, or if the settings say that there be no vectors.
        """
        if self.settings.embed.provider == "none":
            return None
        try:
            return shared_multilingual().unit_vectors(texts)
        except SimplememError:
            return None


def _candidates_of(topics: Sequence[Topic]) -> list[Candidate]:
    """Return the turns of topics, at most 2,000; of a topic that exceeds them, the last ones."""
    candidates = list[Candidate]()
    for topic_index, topic in enumerate(topics):
        room = _MAX_CANDIDATES - len(candidates)
        turns = topic.turns[max(0, len(topic.turns) - room) :]
        for index, turn in enumerate(turns):
            text = TurnText(
                message=turn.message[:_MAX_CHARACTERS],
                answer=turn.answer[:_MAX_CHARACTERS],
                question_before=_question_before(turns, index),
            )
            candidates.append(Candidate(topic_index, turn, text))
    return candidates


def _share_rare_words(stems: set[str], features: Sequence[_Features]) -> list[float]:
    """Return for each turn its share of the words of a question that any turn has, 0 to 1.

    A word counts 1 divided by the number of turns that have it.
    """
    shared = [stems & turn.stems for turn in features]
    counts = Counter[str]()
    for words in shared:
        counts.update(words)

    total = sum(1 / count for count in counts.values()) or 1.0
    shares = []
    for words in shared:
        rarities = [1 / counts[word] for word in words]
        shares.append(sum(rarities) / total)
    return shares


def _question_before(turns: Sequence[Turn], index: int) -> str:
    """Return the question to which a turn replies: the end of the turn before it, if that asks.

    Returns "" if it does not, or if the message is long enough to be understood alone.
    """
    if index == 0 or len(turns[index].message) > _MAX_SHORT_REPLY:
        return ""
    before = turns[index - 1]
    ending = (before.answer or before.message)[-_MAX_ENDING:].rstrip()
    if not ending.endswith("?"):
        return ""
    sentences = _SENTENCE_END.split(ending[:-1])
    return f"{sentences[-1].strip()}?"


def _best_of_topics(
    candidates: Sequence[Candidate],
    best_first: Sequence[int],
    budget: TurnBudget,
    topic_count: int,
) -> dict[int, int]:
    """Return the topics that an answer has, each with the index of its best candidate.

    Both are positions. `best_first` are the positions of candidates.
    """
    best = dict[int, int]()
    for index in best_first:
        best.setdefault(candidates[index].topic_index, index)

    kept_count = topic_count
    if topic_count > budget.topics:
        kept_count = (budget.topics + 1) // 2
    kept = {topic: index for topic, index in best.items() if topic < kept_count}
    for topic, index in best.items():
        if len(kept) < budget.topics:
            kept.setdefault(topic, index)
    return kept


def _choose_within(
    candidates: Sequence[Candidate],
    best_turns: Mapping[int, int],
    best_first: Sequence[int],
    budget: TurnBudget,
) -> set[int]:
    """Return the best candidates of topics, and the best others that fit into a budget.

    `best_turns` has the best one of each topic. Turns of other topics are left out. A turn that is
    too long is skipped; shorter ones behind it may still fit.
    """
    chosen = {*best_turns.values()}
    tokens = sum(candidates[index].tokens for index in chosen)
    for index in best_first:
        if len(chosen) >= budget.turns:
            break
        candidate = candidates[index]
        if index in chosen or candidate.topic_index not in best_turns:
            continue
        if tokens + candidate.tokens <= budget.tokens:
            chosen.add(index)
            tokens += candidate.tokens
    return chosen


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
