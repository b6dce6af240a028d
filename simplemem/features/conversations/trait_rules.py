"""The rules by which traits are read in messages: names, constraints and preferences, by language.

Each file in `traits/` is for one language:

- `common`: frequent words, by which the language of a message is recognized.
- `patterns`: `no_rule` matches sentences that state no constraint or preference; `polite`, requests
  in the form of a question; `strict`, words that make a constraint strict; `other`, a person other
  than the user to whom a statement applies; `plan`, plans; `opinion`, opinions.
- `signals`: patterns of what a sentence may contain, such as a ban or a request.
- `rules`: a rule with `if_all` takes a whole sentence for the statement if the sentence has all of
  these signals. A rule with `says` is a pattern, and its group `says` is the statement. `is_state`
  marks a rule whose signals describe a person, so that it does not apply to "My sister …".

Pure, except that the files are read once.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from simplemem.features.pattern_pieces import compile_pattern

_FOLDER: Final = Path(__file__).with_name("traits")
_CODES: Final = ("en", "es", "de", "fr")
_MAX_READ: Final = 2_000  # characters by which the language of a message is recognized
_WORD: Final = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")


@dataclass(frozen=True)
class WordingRule:
    """A rule that reads a statement in a fixed form, in the group `says` of its pattern."""

    section: str  # of the profile, or "name" for a name, or "gone" for what holds no more
    pattern: re.Pattern[str]


@dataclass(frozen=True)
class SignalRule:
    """A rule that takes a whole sentence for a statement if it has all signals."""

    section: str  # of the profile
    signals: tuple[str, ...]  # their names
    is_state: bool  # whether it describes a person, who may be somebody other than the user


@dataclass(frozen=True)
class TraitLanguage:
    """The rules of one language, as in its file."""

    common: frozenset[str]
    patterns: Mapping[str, re.Pattern[str]]
    signals: Mapping[str, re.Pattern[str]]
    wording_rules: tuple[WordingRule, ...]
    signal_rules: tuple[SignalRule, ...]

    def states_no_rule(self, sentence: str) -> bool:
        """Return whether a sentence states neither a constraint nor a preference.

        Such a sentence asks, supposes, mocks, or reports the past or what other people believe. A
        request in the form of a question ("Could you always …?") does state one.
        """
        if self.patterns["no_rule"].search(sentence) is None:
            return False
        return self.patterns["polite"].search(sentence) is None

    def section_of(self, sentence: str) -> str:
        """Return the section of the first rule whose signals a sentence has; "" if none applies.

        Rules that describe a person do not apply to a sentence about somebody other than the user.
        """
        is_of_other = self.patterns["other"].search(sentence) is not None
        for rule in self.signal_rules:
            is_about_other = rule.is_state and is_of_other
            if not is_about_other and self._has_signals(sentence, rule.signals):
                return rule.section
        return ""

    def _has_signals(self, sentence: str, names: tuple[str, ...]) -> bool:
        """Return whether a sentence has all signals with these names."""
        return all(self.signals[name].search(sentence) for name in names)

    def owner_of(self, statement: str) -> str:
        """Return the person other than the user to whom a statement applies, in lower case.

        Returns "" if it names none, so that it applies to the user.
        """
        match = self.patterns["other"].search(statement)
        return match["who"].lower() if match else ""


def languages_of_message(message: str) -> list[TraitLanguage]:
    """Return the languages with the most common words in a message; English if none has any.

    Several languages may have equally many, most often for a short message. They are in the order
    of `trait_languages`.
    """
    beginning = message[:_MAX_READ].lower().replace("’", "'")
    words = set(_WORD.findall(beginning))
    counts = [len(words & language.common) for language in trait_languages()]
    max_count = max(counts)
    if max_count == 0:
        return [english()]

    languages = []
    for language, count in zip(trait_languages(), counts, strict=True):
        if count == max_count:
            languages.append(language)
    return languages


@cache
def trait_languages() -> tuple[TraitLanguage, ...]:
    """Return the languages in the order in which they are preferred if a message fits several.

    Their files are read by the first call, so that a server starts without compiling the patterns.
    """
    return tuple(_load_language(code) for code in _CODES)


def english() -> TraitLanguage:
    """Return the English rules."""
    return trait_languages()[0]


def _load_language(code: str) -> TraitLanguage:
    """Return the language with a code, from its file.

    Raises KeyError if the file lacks a table, and re.error if a pattern is not valid.
    """
    path = _FOLDER / f"{code}.toml"
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    pieces: dict[str, str] = table["pieces"]

    patterns = {}
    for name, source in table["patterns"].items():
        patterns[name] = compile_pattern(source, pieces)
    signals = {}
    for name, source in table["signals"].items():
        signals[name] = compile_pattern(f"(?i:{source})", pieces)

    return TraitLanguage(
        common=frozenset(table["common"].split()),
        patterns=patterns,
        signals=signals,
        wording_rules=tuple(_read_wording_rules(table["rules"], pieces)),
        signal_rules=tuple(_read_signal_rules(table["rules"])),
    )


def _read_wording_rules(rules: list[dict[str, Any]], pieces: dict[str, str]) -> list[WordingRule]:
    """Return the rules of a file that have a pattern, in their order."""
    wording_rules = []
    for rule in rules:
        if "says" in rule:
            pattern = compile_pattern(rule["says"], pieces)
            wording_rules.append(WordingRule(rule["section"], pattern))
    return wording_rules


def _read_signal_rules(rules: list[dict[str, Any]]) -> list[SignalRule]:
    """Return the rules of a file that have signals, in their order."""
    signal_rules = []
    for rule in rules:
        if "if_all" in rule:
            is_state = rule.get("is_state", False)
            signal_rules.append(SignalRule(rule["section"], tuple(rule["if_all"]), is_state))
    return signal_rules
