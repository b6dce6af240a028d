"""Facts with a key in the sentences of a text, by the rules of `message_rules`. Pure.

The caller passes only sentences in which the author states something of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from simplemem.features.facts.message_rules import (
    MessageRules,
    StatementRule,
    message_rules,
    names_credential,
)
from simplemem.features.facts.stated import StatedFact, key_of

_MAX_VALUE_WORDS: Final = 5  # of a value that becomes part of a key


def read_keyed_facts(sentences: Iterable[str]) -> list[StatedFact]:
    """Return the facts that the sentences of one text state, the last one of each key.

    They are in the order in which their keys first occur.
    """
    reader = _FactReader()
    for sentence in sentences:
        for rules in message_rules():
            reader.read_sentence(sentence, rules)
    return list(reader.facts.values())


class _FactReader:
    """Collects the facts of one text. Guards what "her" and "the new one" refer to."""

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
