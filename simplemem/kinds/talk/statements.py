"""What a person states, by rules: a credential, a number, a name, an acronym, a decision, a task. Only what somebody says
of their own counts: no question, condition, quotation or word of others. A rule that is in doubt says nothing. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Final, NamedTuple

from simplemem.kinds.talk.cues import PATTERNS, rules, words
from simplemem.note.passages import sentence_spans

_QUOTED: Final = re.compile(r"```.*?(?:```|\Z)|^[ \t]*>.*?$|\"[^\"\n]*\"|“[^”\n]*”|«[^»\n]*»", re.MULTILINE | re.DOTALL)
_MOST_SENTENCE: Final = 500
_MOST_KEY: Final = 80
_RULES: Final = rules("statements")
_OTHERS: Final = ("her", "his", "its", "their")
_IN_EVERY_KEY: Final = words("key")


class Statement(NamedTuple):
    """What a sentence states. `decided_by` names the rule, the agent or the model that read it."""

    key: str
    value: str
    category: str
    sentence: str
    decided_by: str
    confidence: float

    @property
    def secret(self) -> bool:
        return self.category == "secret"


def stated(message: str) -> Iterator[str]:
    """The sentences in which a person states something of their own."""
    text = _QUOTED.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), message)
    for start, stop in sentence_spans(text):
        sentence = " ".join(text[start:stop].split())
        if len(sentence) <= _MOST_SENTENCE and not PATTERNS["not_stated"].search(sentence):
            yield sentence


def statements(message: str) -> list[Statement]:
    """The facts in a user's message."""
    found: dict[str, Statement] = {}
    subject = credential = ""  # of whom and of what was told last, for "her phone number is" and "the new one is"
    for sentence in stated(message):
        for category, confidence, about, rule in _RULES:
            for match in rule.finditer(sentence):
                said = defaultdict(str, {name: text for name, text in match.groupdict().items() if text})
                value = said["value"].strip().rstrip(".,;:!)")
                said["start"] = " ".join(value.split()[:5])
                if category == "name":
                    subject = said["of"]
                elif said["whose"].lower() in _OTHERS:
                    said["of"] = said["of"] or subject
                    if not said["of"]:
                        continue
                name = about.format_map(said)
                if category == "secret":
                    name = credential = name or credential
                if (key := key_of(name)) and value and _is_possible(category, value):
                    found[key] = Statement(key, value, category, sentence, f"rule:{category}", confidence)
    return list(found.values())


def _is_possible(category: str, value: str) -> bool:
    """Whether a value can be what it is said to be: a credential has a digit, or is written as no word is."""
    digits = sum(each.isdigit() for each in value)
    if category == "secret":
        return "%" not in value and (digits > 0 or (value[1:] != value[1:].lower() and value != value.upper()))
    return category != "number" or digits > 3


def category_of(key: str, otherwise: str) -> str:
    """The category of a key that no rule read: what opens something is for nobody else."""
    return "secret" if PATTERNS["credential"].search(key.replace("_", " ")) else otherwise


def key_of(text: str) -> str:
    """A key in snake case, without words that every key could have."""
    said = re.findall(r"\w+", re.sub(r"['’]s\b", "", text.lower()).replace("_", " "))
    return "_".join(word for word in said if word not in _IN_EVERY_KEY)[:_MOST_KEY].strip("_")
