"""What users state in their messages, read by the rules of `english.toml`.

The rules read only what the user states as their own: no question, condition, quotation or words of
others. In doubt they read nothing. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from simplemem.features.changes import Change, read_change
from simplemem.features.conversations.patterns import (
    PATTERNS,
    STATEMENT_RULES,
    StatementRule,
)
from simplemem.features.facts.stated import StatedFact as StatedFact
from simplemem.features.facts.stated import key_of as key_of
from simplemem.note.sentences import sentence_spans

_QUOTED: Final = re.compile(
    r"```.*?(?:```|\Z)|^[ \t]*>.*?$|\"[^\"\n]*\"|“[^”\n]*”|«[^»\n]*»", re.MULTILINE | re.DOTALL
)
_MAX_SENTENCE: Final = 500  # characters
_MAX_VALUE_WORDS: Final = 5  # of a value that becomes part of a key
_POSSESSIVES: Final = ("her", "his", "its", "their")


def stated_sentences(message: str) -> Iterator[str]:
    """Yield the sentences in which the user states something of their own, each on one line.

    They come in their order and without what they quote. Sentences of more than 500 characters are
    left out.
    """
    for sentence in unquoted_sentences(message):
        if not PATTERNS["not_stated"].search(sentence):
            yield sentence


def unquoted_sentences(message: str) -> Iterator[str]:
    """Yield the sentences of a message without what they quote, each on one line.

    They come in their order. Sentences of more than 500 characters are left out.
    """
    text = _QUOTED.sub(_blank_out, message)
    for start, stop in sentence_spans(text):
        sentence = " ".join(text[start:stop].split())
        if len(sentence) <= _MAX_SENTENCE:
            yield sentence


def _blank_out(match: re.Match[str]) -> str:
    """Return as many spaces as the match has characters, with its line breaks kept."""
    return re.sub(r"[^\n]", " ", match[0])


def stated_changes(message: str) -> dict[str, Change]:
    """Return what the user states has changed, by the sentence that states it; {} for nothing."""
    changes = {}
    for sentence in stated_sentences(message):
        change = read_change(sentence)
        if change is not None:
            changes[sentence] = change
    return changes


def read_stated_facts(message: str) -> list[StatedFact]:
    """Return the facts that the user states in a message, the last one of each key.

    They are in the order in which their keys first occur; [] if the rules read none.
    """
    reader = _FactReader()
    for sentence in stated_sentences(message):
        for rule in STATEMENT_RULES:
            for match in rule.pattern.finditer(sentence):
                reader.read(match, sentence, rule)
    return list(reader.facts.values())


class _FactReader:
    """Collects the facts of one message. Guards what "her" and "the new one" refer to."""

    def __init__(self) -> None:
        """Make a reader without facts. `facts` has the facts that were read so far, by key."""
        self.facts: dict[str, StatedFact] = {}
        self._last_person = ""  # for "her phone number is"
        self._last_credential = ""  # for "the new one is"

    def read(self, match: re.Match[str], sentence: str, rule: StatementRule) -> None:
        """Add the fact that a match of a rule states, if it has both a key and a value.

        A fact replaces an earlier one of the same key. Raises nothing.
        """
        groups = {name: text or "" for name, text in match.groupdict().items()}
        owner = self._resolve_owner(groups, rule.category)
        if owner is None:
            return

        value = groups.get("value", "").strip().rstrip(".,;:!)")
        first_words = " ".join(value.split()[:_MAX_VALUE_WORDS])
        parts = {"before": "", "noun": "", **groups, "of": owner, "start": first_words}
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

    def _resolve_owner(self, groups: Mapping[str, str], category: str) -> str | None:
        """Return what a fact is about, "" for the user, None if it is unknown who "her" is.

        Remembers who was named, for the facts that follow.
        """
        owner = groups.get("of", "")
        if category == "name":
            self._last_person = owner
            return owner

        is_pronoun = groups.get("whose", "").lower() in _POSSESSIVES
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
    if PATTERNS["credential"].search(key.replace("_", " ")):
        category = "secret"
    return StatedFact(
        key=key,
        value=value,
        category=category,
        sentence=sentence,
        decided_by=reader,
        confidence=confidence,
    )
