"""The rules that read what users say of themselves and of what must not be, by language.

Each file in `traits/` has one language:

- `common`: frequent words, by which the language of a message is told.
- `patterns`: `no_rule` matches sentences that state no rule; `polite`, requests in the form of a
  question; `strict`, what makes a rule strict; `other`, whose a rule is; `plan`, what is planned;
  `opinion`, what is thought of something.
- `signals`: what a sentence may have in it, such as a ban or a request.
- `rules`: a rule either has `if_all`, the signals that a sentence has if the whole sentence is the
  statement, or `says`, a pattern whose group of that name is the statement. With `is_state`, the
  signals say how somebody is, so the rule reads nothing of "My sister …".

Pure, but for reading the files.
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
_MAX_READ: Final = 2_000  # characters by which the language of a message is told
_WORD: Final = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")


@dataclass(frozen=True)
class WordingRule:
    """A rule that reads a statement in a fixed form, in the group `says` of its pattern."""

    section: str  # of the profile; "name" and "gone" are no sections
    pattern: re.Pattern[str]


@dataclass(frozen=True)
class SignalRule:
    """A rule that takes a whole sentence for a statement if it has all signals."""

    section: str  # of the profile
    signals: tuple[str, ...]  # their names
    is_state: bool  # whether it says how somebody is, who may be somebody other than the user


@dataclass(frozen=True)
class TraitLanguage:
    """What one language has for reading traits, as its file says."""

    common: frozenset[str]
    patterns: Mapping[str, re.Pattern[str]]
    signals: Mapping[str, re.Pattern[str]]
    wording_rules: tuple[WordingRule, ...]
    signal_rules: tuple[SignalRule, ...]

    def states_no_rule(self, sentence: str) -> bool:
        """Return whether a sentence asks, supposes, mocks, or tells what was or others believe.

        A request in the form of a question asks for a rule, so it is none of these.
        """
        if self.patterns["no_rule"].search(sentence) is None:
            return False
        return self.patterns["polite"].search(sentence) is None

    def section_of(self, sentence: str) -> str:
        """Return the section of the first rule whose signals a sentence has; "" without one.

        How somebody other than the user is, is in no section of the user's profile.
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
        """Return whose a statement is if it begins with somebody close to the user, else ""."""
        match = self.patterns["other"].search(statement)
        return match["who"].lower() if match else ""


def languages_of_message(message: str) -> list[TraitLanguage]:
    """Return the languages with the most common words in a message; English if none has any.

    Short messages may fit several. They are in the order of `trait_languages`.
    """
    words = set(_WORD.findall(message[:_MAX_READ].lower().replace("’", "'")))
    counts = [len(words & language.common) for language in trait_languages()]
    most = max(counts)
    if not most:
        return [english()]

    languages = []
    for language, count in zip(trait_languages(), counts, strict=True):
        if count == most:
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
    """Return the language with a code. Raise KeyError or re.error if its file is not complete."""
    file = _FOLDER / f"{code}.toml"
    table = tomllib.loads(file.read_text(encoding="utf-8"))
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
