"""Labels and keywords of a topic, in words of its messages. Pure.

`labels` chooses among the labels of several messages.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

from simplemem.features.conversations.patterns import (
    PATTERNS,
    WORD,
    WORDS,
    content_words,
    vague_words_of,
)

_MAX_LABEL: Final = 50  # characters
_MAX_SOURCE: Final = 1000  # characters of a message that are searched for a label
_MIN_LABEL_WORDS: Final = 2
_MAX_KEYWORDS: Final = 5
_DEFAULT_LABEL: Final = "Conversation"
_LEAD_INS: Final = ("shift", "greeting", "named")  # patterns
_CLAUSE_END: Final = re.compile(r"[.!?:;()\n→]|, | [-–—=] ")
_QUOTE: Final = re.compile(r'["“”«»„]')
_NO_LABEL_WORDS: Final = WORDS["task"] | WORDS["filler"]


def label_of(message: str) -> str:
    """Return a label of at most 50 characters for a new topic, in words of its first message.

    The label comes from the first clause with two label words, so that "help me plan" and the like
    are left out. Clauses without pronouns take precedence. If no clause has two label words, the
    label is the beginning of the message, and "Conversation" for an empty message.
    """
    clear_labels = clear_labels_of(message)
    if clear_labels:
        return clear_labels[0]

    text = _skip_lead_ins(message[:_MAX_SOURCE])
    for clause in [*_CLAUSE_END.split(text), text]:
        label = _label_in(clause)
        if label:
            return label

    source = text if text.strip() else message
    first_words = " ".join(source.split())
    return first_words[:_MAX_LABEL].strip() or _DEFAULT_LABEL


def clear_labels_of(message: str) -> list[str]:
    """Return the labels in those clauses of a message that can be understood on their own.

    A clause with a pronoun or another word that refers to another clause gives no label, such as
    "Sent it to her". The labels are in the order of the clauses; [] if there are none.
    """
    text = _skip_lead_ins(message[:_MAX_SOURCE])
    vague_words = vague_words_of(text)

    labels = []
    for clause in _CLAUSE_END.split(text):
        label = _label_in(clause)
        clause_words = WORD.findall(clause.lower())
        if label and vague_words.isdisjoint(clause_words):
            labels.append(label)
    return labels


def keywords_of(messages: Sequence[str]) -> list[str]:
    """Return the content words that most messages have, at most five, the most frequent first.

    Words with equal counts are in the order in which they first occur. A greeting or another
    lead-in of a message counts only if the message has nothing else.
    """
    message_counts = Counter[str]()
    for message in messages:
        text = _skip_lead_ins(message)
        if not text:
            text = message
        distinct_words = list(dict.fromkeys(content_words(text)))
        message_counts.update(distinct_words)

    keywords = []
    for word, _ in message_counts.most_common(_MAX_KEYWORDS):
        keywords.append(word)
    return keywords


def _skip_lead_ins(message: str) -> str:
    """Return a message without its lead-ins: changes of subject, greetings, the user's name.

    Returns "" if the message has nothing else.
    """
    end = _lead_in_end(message)
    while end:
        message = message[end:]
        end = _lead_in_end(message)
    return message


def _lead_in_end(message: str) -> int:
    """Return the offset at which the first lead-in ends, 0 if the message begins with none."""
    for name in _LEAD_INS:
        lead_in = PATTERNS[name].match(message)
        if lead_in:
            return lead_in.end()
    return 0


def _label_in(clause: str) -> str:
    """Return the label in a clause, from the first to the last label word that fits.

    It has at most 50 characters, begins with a capital letter, and has no quotation marks. Returns
    "" if the clause has fewer than two label words.
    """
    words = [word for word in WORD.finditer(clause) if _is_label_word(word[0])]
    if len(words) < _MIN_LABEL_WORDS:
        return ""

    start = words[0].start()
    max_end = start + _MAX_LABEL
    fitting_ends = [word.end() for word in words if word.end() <= max_end]
    # A first word that does not fit is cut off in its middle.
    end = fitting_ends[-1] if fitting_ends else max_end

    label = _QUOTE.sub("", clause[start:end])
    return label[:1].upper() + label[1:]


def _is_label_word(word: str) -> bool:
    """Return whether a label may begin or end with a word."""
    return bool(content_words(word)) and word.lower() not in _NO_LABEL_WORDS
