"""What a text states: the one reader for messages, statements and documents.

It puts together what the modules of this feature read. `unstated` judges which sentences state
something of their author's own, `keyed_facts` reads facts with a key, `reading` the slot of one
statement, and `features.changes` what a sentence says has changed. Each part is read when it is
first asked for. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

from simplemem.features.changes import Change, changes_in, read_change
from simplemem.features.facts.keyed_facts import read_keyed_facts
from simplemem.features.facts.stated import StatedFact
from simplemem.features.facts.statements import own_statements_in, statements_in
from simplemem.features.facts.unstated import is_own, stated_sentences
from simplemem.note.sentences import sentence_spans

_QUOTED: Final = re.compile(
    r"```.*?(?:```|\Z)|^[ \t]*>.*?$|\"[^\"\n]*\"|“[^”\n]*”|«[^»\n]*»", re.MULTILINE | re.DOTALL
)
_MAX_SENTENCE: Final = 500  # characters
_MAX_KEPT: Final = 32  # texts whose readings are kept: one exchange asks for its own repeatedly
_MAX_KEPT_CHARACTERS: Final = 10_000  # of such a text


@dataclass(frozen=True)
class TextReading:
    """What a text states. A message has sentences, a short text statements."""

    text: str

    @cached_property
    def sentences(self) -> Sequence[str]:
        """The sentences without what they quote, each on one line, in their order.

        Sentences of more than 500 characters are left out.
        """
        return tuple(_unquoted_sentences(self.text))

    @cached_property
    def stated(self) -> Sequence[str]:
        """The sentences in which the author states something of their own, in their order."""
        return tuple(sentence for sentence in self.sentences if is_own(sentence))

    @cached_property
    def changes(self) -> Mapping[str, Change]:
        """What the author states has changed, by the sentence that states it."""
        changes = {}
        for sentence in self.stated:
            change = read_change(sentence)
            if change is not None:
                changes[sentence] = change
        return changes

    @cached_property
    def facts(self) -> Sequence[StatedFact]:
        """The facts with a key that the author states, the last one of each key.

        They are in the order in which their keys first occur.
        """
        return tuple(read_keyed_facts(self.stated))

    @cached_property
    def statements(self) -> Sequence[str] | None:
        """The sentences of a short text to remember, in their order: those that state something.

        It is None for a text that is a document: it has more than 400 characters, no statement or
        more than 5.
        """
        sentences = statements_in(self.text)
        return None if sentences is None else stated_sentences(sentences)

    @cached_property
    def own_statements(self) -> Sequence[str]:
        """The sentences of a document in which the author states a slot or a liking of their own.

        Code, quotations, headings and tables are skipped.
        """
        return tuple(own_statements_in(self.text))

    @cached_property
    def sentences_of_change(self) -> Sequence[str]:
        """The sentences of a document that state a change, whoever states it."""
        return tuple(sentence for sentence, _ in changes_in(self.text))


def read_text(text: str) -> TextReading:
    """Return what a text states. The same text gives the same reading while it is kept.

    That is for the last 32 texts of up to 10,000 characters.
    """
    return _kept_reading(text) if len(text) <= _MAX_KEPT_CHARACTERS else TextReading(text)


@lru_cache(maxsize=_MAX_KEPT)
def _kept_reading(text: str) -> TextReading:
    """Return what a text states."""
    return TextReading(text)


def _unquoted_sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text as `TextReading.sentences` has them."""
    unquoted = _QUOTED.sub(_blank_out, text)
    for start, stop in sentence_spans(unquoted):
        sentence = " ".join(unquoted[start:stop].split())
        if len(sentence) <= _MAX_SENTENCE:
            yield sentence


def _blank_out(match: re.Match[str]) -> str:
    """Return as many spaces as the match has characters, with its line breaks kept."""
    return re.sub(r"[^\n]", " ", match[0])
