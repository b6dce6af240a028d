"""The label of a topic, made of the words of its first exchanges. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from simplemem.features.conversations.message_labels import clear_labels_of, label_of
from simplemem.features.conversations.patterns import content_words

_MAX_EXCHANGES: Final = 4  # the first ones, of which a label is made
_MAX_LISTED_WORDS: Final = 3  # of a label that is a list
_MIN_CLAUSE_STEMS: Final = 2
_WEIGHT_PER_STEM: Final = 0.5  # of a clause
_MAX_WEIGHED_STEMS: Final = 5  # that add to the weight of a clause
_MAX_USES: Final = 2  # texts that count for one stem
_WEIGHT_PER_MESSAGE_BEFORE: Final = -1.0  # of a clause
_STEM_LENGTH: Final = 5  # letters; the endings of longer words differ
_WORD: Final = re.compile(r"[^\W_]{3,}")
_NUMBER: Final = re.compile(r"\d+")

MessageAndAnswer = tuple[str, str]
"""The texts of an exchange. The answer is "" if there is none."""


class _Clause(NamedTuple):
    """A clause that may be the label of a topic."""

    label: str
    weight: float


def label_of_exchanges(exchanges: Sequence[MessageAndAnswer]) -> str:
    """Return the label of a topic, made of its first four exchanges; later ones do not change it.

    It is the clause of a message that weighs most (`_weigh_clauses`). If no clause can be
    understood on its own, it lists the words that several texts share. If they share fewer than two
    words, it is what `label_of` returns for the first message. Raises IndexError without exchanges.
    """
    first_exchanges = exchanges[:_MAX_EXCHANGES]
    clauses = _weigh_clauses(first_exchanges)
    best = max(clauses, key=lambda clause: clause.weight, default=None)
    if best is not None:
        return best.label

    shared_words = _shared_words(first_exchanges)
    if len(shared_words) > 1:
        label = ", ".join(shared_words[:_MAX_LISTED_WORDS])
        return label[:1].upper() + label[1:]

    first_message, _ = exchanges[0]
    return label_of(first_message)


def _weigh_clauses(exchanges: Sequence[MessageAndAnswer]) -> list[_Clause]:
    """Return the clauses of messages that can be understood on their own, with their weights.

    Clauses with fewer than two words that are no numbers are left out.
    """
    clauses = []
    for position, (message, _) in enumerate(exchanges):
        labels = clear_labels_of(message)
        if not labels:
            continue

        uses = _count_uses(exchanges, position)
        for label in labels:
            stems = {stem for stem in _stems(label) if not _NUMBER.fullmatch(stem)}
            if len(stems) >= _MIN_CLAUSE_STEMS:
                weight = _weigh(stems, uses, position)
                clauses.append(_Clause(label, weight))
    return clauses


def _weigh(stems: set[str], uses: Mapping[str, int], position: int) -> float:
    """Return the weight of a clause with these stems, in the message at a position.

    A clause weighs more the more stems it has, and much more if other texts have them too: up to
    two texts count for each stem. A clause of a later message weighs less, so that a label does not
    change without need. `uses` has the number of other texts with each stem.
    """
    use_count = sum(min(uses[stem], _MAX_USES) for stem in stems)
    stem_count = min(len(stems), _MAX_WEIGHED_STEMS)

    weight = use_count + _WEIGHT_PER_STEM * stem_count
    return weight + _WEIGHT_PER_MESSAGE_BEFORE * position


def _count_uses(exchanges: Sequence[MessageAndAnswer], position: int) -> Counter[str]:
    """Return how many texts have each stem, without the message at a position."""
    uses = Counter[str]()
    for index, (message, answer) in enumerate(exchanges):
        uses.update(_stems(answer))
        if index != position:
            uses.update(_stems(message))
    return uses


def _stems(text: str) -> set[str]:
    """Return the content words of a text, each cut to the letters that its other forms share."""
    return {word[:_STEM_LENGTH] for word in content_words(text)}


def _shared_words(exchanges: Sequence[MessageAndAnswer]) -> list[str]:
    """Return the words that more than one text has, the most frequent first.

    They are spelled as in the first text that has them. One of the texts must be a message, and
    numbers are left out.
    """
    spellings = _spellings_of(exchanges)
    text_counts = Counter[str]()
    message_words = set[str]()
    for message, answer in exchanges:
        words = set(content_words(message))
        message_words.update(words)
        text_counts.update(words)
        text_counts.update(set(content_words(answer)))

    shared_words = []
    for word, count in sorted(text_counts.items(), key=_sort_key):
        is_listed = word in message_words and word in spellings
        if count > 1 and is_listed and not _NUMBER.fullmatch(word):
            shared_words.append(spellings[word])
    return shared_words


def _spellings_of(exchanges: Sequence[MessageAndAnswer]) -> dict[str, str]:
    """Return the first spelling of each word of at least three letters, by the word in lower case.

    Words with a hyphen or an apostrophe are read as two.
    """
    spellings: dict[str, str] = {}
    for exchange in exchanges:
        for text in exchange:
            for spelling in _WORD.findall(text):
                spellings.setdefault(spelling.lower(), spelling)
    return spellings


def _sort_key(item: tuple[str, int]) -> tuple[int, int, str]:
    """Return a key that sorts words with their counts: large counts first, then long words."""
    word, count = item
    return -count, -len(word), word
