"""The label and the summary of a topic, in words that were said in it. Pure.

A label names what the topic is about. A summary quotes how it ended, as far as that was said.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from simplemem.features.conversations.patterns import (
    clear_labels_of,
    content_words,
    label_of,
    states_outcome,
)

_MAX_REFINING: Final = 4  # exchanges of a topic whose label may still change
_MAX_WORDS: Final = 3  # of a label that is a list
_MIN_LABEL: Final = 2  # content words of a clause
_PER_WORD: Final = 0.5  # what a clause weighs for each content word
_MAX_WEIGHED: Final = 5  # content words that add to the weight of a clause
_MAX_USES: Final = 2  # texts that count for one word
_LATER: Final = 1.0  # how much a clause weighs less for each message before it
_MAX_OUTCOMES: Final = 2  # sentences of a summary
_MIN_OUTCOME: Final = 4  # words of an outcome that is understood without another sentence
_MIN_STATEMENT: Final = 3  # content words of a sentence that says something
_STEM: Final = 5  # letters of a word that is compared
_WORD: Final = re.compile(r"[^\W_]{3,}")
_IS_NUMBER: Final = re.compile(r"\d+")

Exchange = tuple[str, str]
"""A message and its answer."""


class _Clause(NamedTuple):
    """A clause that may be the label of a topic."""

    label: str
    weight: float


def label_of_exchanges(exchanges: Sequence[Exchange]) -> str:
    """Return the label of a topic, made of its first exchanges; the later ones change it no more.

    It is the clause of a message that weighs most (`_weigh_clauses`). Without a clause that can be
    understood on its own, it is the list of the words that several texts have in common, and else
    whatever `label_of` makes of the first message. Raises IndexError without exchanges.
    """
    first_exchanges = exchanges[:_MAX_REFINING]
    clauses = _weigh_clauses(first_exchanges)
    best = max(clauses, key=lambda clause: clause.weight, default=None)
    if best is not None:
        return best.label

    shared_words = _shared_words(first_exchanges)
    if len(shared_words) > 1:
        label = ", ".join(shared_words[:_MAX_WORDS])
        return label[:1].upper() + label[1:]
    first_message, _ = exchanges[0]
    return label_of(first_message)


def _weigh_clauses(exchanges: Sequence[Exchange]) -> list[_Clause]:
    """Return the clauses of messages that can be understood on their own, with their weights.

    A clause weighs more the more words it has, and much more if other texts take them up: up to two
    texts count for each word. One of a later message weighs less, so that a label does not change
    without need. Clauses with fewer than two words that are no numbers are left out.
    """
    clauses = []
    for position, (message, _) in enumerate(exchanges):
        labels = clear_labels_of(message)
        uses = _count_uses(exchanges, position) if labels else Counter[str]()
        for label in labels:
            stems = {stem for stem in _stems(label) if not _IS_NUMBER.fullmatch(stem)}
            if len(stems) >= _MIN_LABEL:
                use_count = sum(min(uses[stem], _MAX_USES) for stem in stems)
                word_count = min(len(stems), _MAX_WEIGHED)
                weight = use_count + _PER_WORD * word_count - _LATER * position
                clauses.append(_Clause(label, weight))
    return clauses


def _count_uses(exchanges: Sequence[Exchange], position: int) -> Counter[str]:
    """Return in how many texts each stem is, without the message at a position."""
    uses = Counter[str]()
    for index, (message, answer) in enumerate(exchanges):
        uses.update(_stems(answer))
        if index != position:
            uses.update(_stems(message))
    return uses


def _stems(text: str) -> set[str]:
    """Return the beginnings of the content words of a text, which other forms of them share."""
    return {word[:_STEM] for word in content_words(text)}


def _shared_words(exchanges: Sequence[Exchange]) -> list[str]:
    """Return the words that more than one text has, as they are written, most frequent first.

    One of the texts must be a message.
    """
    counts = Counter[str]()
    spellings: dict[str, str] = {}
    message_words = set[str]()
    for message, answer in exchanges:
        message_words.update(content_words(message))
        for text in (message, answer):
            counts.update(set(content_words(text)))
            for word in _WORD.findall(text):
                spellings.setdefault(word.lower(), word)

    shared_words = []
    for word, count in sorted(counts.items(), key=_by_count_and_word):
        is_said = word in message_words and word in spellings
        if count > 1 and is_said and not _IS_NUMBER.fullmatch(word):
            shared_words.append(spellings[word])
    return shared_words


def _by_count_and_word(item: tuple[str, int]) -> tuple[int, int, str]:
    """Return a key that sorts the largest counts first, and then the longest words."""
    word, count = item
    return -count, -len(word), word


def choose_outcome(sentences: Sequence[str]) -> list[str]:
    """Return the sentences that say how a conversation ended, at most two, in their order.

    `sentences` are those of the user. The last ones that state a decision or a result are chosen;
    a short one, such as "Done.", is given with the sentence beside it. If none does, it is the last
    one that is no question and says something, and else the last one of all. Returns [] for no
    sentences.
    """
    outcomes = []
    for index, sentence in enumerate(sentences):
        if not sentence.endswith("?") and states_outcome(sentence):
            outcomes.append(index)

    if outcomes:
        return _with_context(sentences, outcomes)
    for sentence in reversed(sentences):
        if _says_something(sentence):
            return [sentence]
    return list(sentences[-1:])


def _with_context(sentences: Sequence[str], outcomes: Sequence[int]) -> list[str]:
    """Return the last outcomes; a short last one with the sentence behind or before it.

    `outcomes` are the positions of the sentences that state one, at least one. The sentence before
    it is given if it says something and the one behind it does not.
    """
    last = outcomes[-1]
    is_short = len(sentences[last].split()) < _MIN_OUTCOME
    if not is_short:
        return [sentences[index] for index in outcomes[-_MAX_OUTCOMES:]]

    after = sentences[last + 1 : last + 2]
    before = sentences[max(last - 1, 0) : last]
    can_follow = bool(after) and not after[0].endswith("?")
    if can_follow and (_says_something(after[0]) or not any(map(_says_something, before))):
        return [sentences[last], *after]
    return [*before, sentences[last]]


def _says_something(sentence: str) -> bool:
    """Return whether a sentence is no question and has some content words."""
    return not sentence.endswith("?") and len(content_words(sentence)) >= _MIN_STATEMENT
