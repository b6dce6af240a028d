"""The sentences that say how a conversation ended, for the summary of its topic. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from simplemem.features.conversations.patterns import content_words, states_outcome

_MAX_OUTCOMES: Final = 2  # sentences of a summary
_MIN_OUTCOME_WORDS: Final = 4  # of an outcome that is understood without another sentence
_MIN_CONTENT_WORDS: Final = 3  # of a sentence that is informative


def choose_outcome(sentences: Sequence[str]) -> list[str]:
    """Return the sentences that say how a conversation ended, at most two, in their order.

    `sentences` are those of the user. The last ones that state a decision or a result are chosen. A
    short one, such as "Done.", comes with the sentence before or after it. If no sentence states an
    outcome, the last informative one is chosen, and the last one of all if there is none. Returns
    [] for no sentences.
    """
    outcome_positions = []
    for position, sentence in enumerate(sentences):
        if not _is_question(sentence) and states_outcome(sentence):
            outcome_positions.append(position)

    if outcome_positions:
        return _with_context(sentences, outcome_positions)
    for sentence in reversed(sentences):
        if _is_informative(sentence):
            return [sentence]
    return list(sentences[-1:])


def _with_context(sentences: Sequence[str], outcome_positions: Sequence[int]) -> list[str]:
    """Return the last two outcomes, or a short last one with a sentence before or after it.

    `outcome_positions` are the positions of the sentences that state an outcome, at least one.
    """
    last = outcome_positions[-1]
    word_count = len(sentences[last].split())
    if word_count >= _MIN_OUTCOME_WORDS:
        return [sentences[position] for position in outcome_positions[-_MAX_OUTCOMES:]]

    before = list(sentences[max(last - 1, 0) : last])
    after = list(sentences[last + 1 : last + 2])
    if _explains_better(after, before):
        return [sentences[last], *after]
    return [*before, sentences[last]]


def _explains_better(after: Sequence[str], before: Sequence[str]) -> bool:
    """Return whether a short outcome is understood by the sentence after it, not before it.

    Both hold at most one sentence. A question explains nothing. The sentence after the outcome is
    preferred if it is informative, or if the one before it is not informative either.
    """
    if not after or _is_question(after[0]):
        return False
    if _is_informative(after[0]):
        return True
    return not any(_is_informative(sentence) for sentence in before)


def _is_informative(sentence: str) -> bool:
    """Return whether a sentence is a statement with at least three content words."""
    return not _is_question(sentence) and len(content_words(sentence)) >= _MIN_CONTENT_WORDS


def _is_question(sentence: str) -> bool:
    """Return whether a sentence ends with a question mark."""
    return sentence.endswith("?")
