"""What users state in their messages: its sentences, its facts with a key, and what has changed.

A message is split, and each of its sentences is judged, once. The rules of `message_rules` read
only what users state as their own: no question, condition, quotation or words of others. In doubt
they read nothing. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

from simplemem.features.changes import Change, read_change
from simplemem.features.facts.message_rules import (
    MessageRules,
    StatementRule,
    message_rules,
    names_credential,
)
from simplemem.features.facts.stated import StatedFact, key_of
from simplemem.features.facts.unstated import is_own
from simplemem.note.sentences import sentence_spans

_QUOTED: Final = re.compile(
    r"```.*?(?:```|\Z)|^[ \t]*>.*?$|\"[^\"\n]*\"|“[^”\n]*”|«[^»\n]*»", re.MULTILINE | re.DOTALL
)
_MAX_SENTENCE: Final = 500  # characters
_MAX_VALUE_WORDS: Final = 5  # of a value that becomes part of a key
_MAX_KEPT: Final = 32  # messages whose readings are kept: one exchange asks for its own repeatedly


@dataclass(frozen=True)
class MessageReading:
    """What a message states. Each part is read when it is first asked for."""

    message: str

    @cached_property
    def sentences(self) -> Sequence[str]:
        """The sentences without what they quote, each on one line, in their order.

        Sentences of more than 500 characters are left out.
        """
        return tuple(_unquoted_sentences(self.message))

    @cached_property
    def stated(self) -> Sequence[str]:
        """The sentences in which the user states something of their own, in their order."""
        return tuple(sentence for sentence in self.sentences if is_own(sentence))

    @cached_property
    def changes(self) -> Mapping[str, Change]:
        """What the user states has changed, by the sentence that states it."""
        changes = {}
        for sentence in self.stated:
            change = read_change(sentence)
            if change is not None:
                changes[sentence] = change
        return changes

    @cached_property
    def facts(self) -> Sequence[StatedFact]:
        """The facts that the user states, the last one of each key.

        They are in the order in which their keys first occur.
        """
        reader = _FactReader()
        for sentence in self.stated:
            for rules in message_rules():
                reader.read_sentence(sentence, rules)
        return tuple(reader.facts.values())


@lru_cache(maxsize=_MAX_KEPT)
def read_message(message: str) -> MessageReading:
    """Return what a message states. The same message gives the same reading while it is kept."""
    return MessageReading(message)


def _unquoted_sentences(message: str) -> Iterator[str]:
    """Yield the sentences of a message as `MessageReading.sentences` has them."""
    text = _QUOTED.sub(_blank_out, message)
    for start, stop in sentence_spans(text):
        sentence = " ".join(text[start:stop].split())
        if len(sentence) <= _MAX_SENTENCE:
            yield sentence


def _blank_out(match: re.Match[str]) -> str:
    """Return as many spaces as the match has characters, with its line breaks kept."""
    return re.sub(r"[^\n]", " ", match[0])


class _FactReader:
    """Collects the facts of one message. Guards what "her" and "the new one" refer to."""

    def __init__(self) -> None:
        """Make a reader without facts. `facts` has the facts that were read so far, by key."""
        self.facts: dict[str, StatedFact] = {}
        self._last_person = ""  # for "her phone number is"
        self._last_credential = ""  # for "the new one is"

    def read_sentence(self, sentence: str, rules: MessageRules) -> None:
        """Add the facts that a sentence states by the rules of one language."""
        for rule in rules.statements:
            for match in rule.pattern.finditer(sentence):
                groups = {name: text or "" for name, text in match.groupdict().items()}
                owner = self._resolve_owner(groups, rule.category, rules)
                if owner is not None:
                    self._add({**groups, "of": owner}, sentence, rule)

    def _add(self, groups: Mapping[str, str], sentence: str, rule: StatementRule) -> None:
        """Add the fact that a rule's groups state, if it has both a key and a value.

        A fact replaces an earlier one of the same key. Raises nothing.
        """
        value = groups.get("value", "").strip().rstrip(".,;:!)")
        first_words = " ".join(value.split()[:_MAX_VALUE_WORDS])
        parts = {"before": "", "noun": "", **groups, "start": first_words}
        name = rule.key_form.format_map(parts)
        if rule.category == "secret":
            name = name or self._last_credential
            self._last_credential = name

        key = key_of(name)
        if key and value:
            self.facts[key] = StatedFact(
                key=key,
                value=value,
                category=rule.category,
                sentence=sentence,
                decided_by=f"rule:{rule.category}",
                confidence=rule.confidence,
            )

    def _resolve_owner(
        self, groups: Mapping[str, str], category: str, rules: MessageRules
    ) -> str | None:
        """Return what a fact is about, "" for the user, None if it is unknown who "her" is.

        Remembers who was named, for the facts that follow.
        """
        owner = groups.get("of", "")
        if category == "name":
            self._last_person = owner
            return owner

        is_pronoun = groups.get("whose", "").lower() in rules.possessives
        if is_pronoun and not owner:
            return self._last_person or None
        return owner


def make_fact(reader: str, name: str, value: str, sentence: str, confidence: float) -> StatedFact:
    """Return a fact that an agent or a model read in a sentence.

    `reader` is "agent" or the method of a model. The category is "secret" if the name is that of a
    credential, else the part of `reader` before a colon. The key is "" if the name has no words
    that tell it from others; the caller checks that.
    """
    key = key_of(name)
    category, _, _ = reader.partition(":")
    if names_credential(key.replace("_", " ")):
        category = "secret"
    return StatedFact(
        key=key,
        value=value,
        category=category,
        sentence=sentence,
        decided_by=reader,
        confidence=confidence,
    )
