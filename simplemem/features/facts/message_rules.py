"""The rules by which `keyed_facts` reads facts with a key in messages, one file per language.

`words/messages/` has the files. They are read, and their patterns compiled, when the first sentence
is read. Pure, but for that.
"""

from __future__ import annotations

import re
import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from simplemem.features.pattern_pieces import compile_pattern

_FOLDER: Final = Path(__file__).parent / "words" / "messages"
_LANGUAGE_CODES: Final = ("en", "es")


class StatementRule(NamedTuple):
    """A rule that reads a fact in a sentence."""

    category: str
    confidence: float  # 0 if the rule only reads which credential "the new one" refers to
    key_form: str  # the key, with names of the pattern's groups in braces
    pattern: re.Pattern[str]


class MessageRules(NamedTuple):
    """The rules of one language."""

    statements: tuple[StatementRule, ...]  # in the order in which they are tried
    credential: re.Pattern[str]  # the name of one
    possessives: frozenset[str]  # "her": of a person who was named before


@lru_cache(maxsize=1)
def message_rules() -> tuple[MessageRules, ...]:
    """Return the rules of all languages, those of English first."""
    return tuple(_load(code) for code in _LANGUAGE_CODES)


def names_credential(text: str) -> bool:
    """Return whether a text names a credential, such as "password", in any language."""
    return any(rules.credential.search(text) for rules in message_rules())


def _load(code: str) -> MessageRules:
    """Return the rules of a language. Raise KeyError or re.error if its file is not complete."""
    table = tomllib.loads((_FOLDER / f"{code}.toml").read_text(encoding="utf-8"))
    pieces = table["pieces"]
    patterns = table["patterns"]
    statements = []
    for category, confidence, key_form, source in table["statements"]:
        pattern = compile_pattern(source, pieces)
        statements.append(StatementRule(category, confidence, key_form, pattern))
    return MessageRules(
        statements=tuple(statements),
        credential=compile_pattern(patterns["credential"], pieces),
        possessives=frozenset(table["possessives"].split()),
    )
