"""Tell small talk from statements: questions, greetings, thanks and acknowledgements state nothing.

`words/small_talk.toml` has the patterns of each language. A sentence is small talk only if patterns cover
all of it, so a greeting that is followed by a statement is a statement. Pure.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

_CourtesyKind = Literal["thanks", "greeting", "acknowledgement"]

_MAX_NAME_WORDS: Final = 3
_MAX_CHARACTERS: Final = 500  # a longer sentence is taken for a statement
_SEPARATOR: Final = r"[\s,.!;:–—-]*"
_QUESTION_MARK_AT_END: Final = re.compile(r"[?？][^\w?？]*$")
_END_OF_QUESTION: Final = "?？!. \"'”»)"
_AROUND_REST: Final = " ,.!;:–—-\"'”»)"
_WORD_CHARACTER: Final = re.compile(r"\w")
_FILE: Final = Path(__file__).with_name("words") / "small_talk.toml"


@dataclass(frozen=True)
class _Language:
    """The patterns of one language. They ignore letter case."""

    courtesies: Mapping[_CourtesyKind, re.Pattern[str]]  # in the order in which they are tried
    addressee: re.Pattern[str]
    reason: re.Pattern[str]  # what somebody is thanked for: "for your help"
    assertion: re.Pattern[str]  # a verb or pronoun that makes a statement of such a reason
    question: re.Pattern[str]  # the beginning of a question that may lack its question mark
    statement: re.Pattern[str]  # a statement in the form of a question: "Did you know that I moved"


@dataclass(frozen=True)
class _Courtesy:
    """A courtesy at the beginning of a text."""

    kind: _CourtesyKind
    end: int  # where the text behind it begins


def is_small_talk(sentence: str) -> bool:
    """Return whether a sentence is only a question, a greeting, thanks or an acknowledgement."""
    if len(sentence) > _MAX_CHARACTERS:
        return False
    plain = " ".join(sentence.replace("’", "'").split())
    return any(
        _is_question(plain, language) or _is_courtesy(plain, language) for language in _LANGUAGES
    )


def _is_question(text: str, language: _Language) -> bool:
    """Return whether a text asks something, and states nothing in the form of a question."""
    words = text.rstrip(_END_OF_QUESTION)
    if any(other.statement.fullmatch(words) for other in _LANGUAGES):
        return False

    has_question_mark = _QUESTION_MARK_AT_END.search(text) is not None
    return has_question_mark or language.question.match(words) is not None


def _is_courtesy(text: str, language: _Language) -> bool:
    """Return whether a text consists of courtesies, and at most of whom or what they are for."""
    last_courtesy = None
    rest = text
    while courtesy := _match_courtesy(rest, language):
        last_courtesy = courtesy
        rest = rest[courtesy.end :]
    if last_courtesy is None:
        return False

    rest = rest.strip(_AROUND_REST)
    if not _WORD_CHARACTER.search(rest) or language.addressee.fullmatch(rest):
        return True
    if _is_question(rest, language):
        return True
    if any(other.assertion.search(rest) for other in _LANGUAGES):
        return False

    if last_courtesy.kind == "thanks" and language.reason.fullmatch(rest):
        return True
    return last_courtesy.kind != "acknowledgement" and _may_be_name(rest)


def _may_be_name(text: str) -> bool:
    """Return whether a text may be the name of somebody who is greeted: "claude", "Anna Lee"."""
    words = text.split()
    is_capitalized = all(word[0].isupper() for word in words)
    return len(words) == 1 or (len(words) <= _MAX_NAME_WORDS and is_capitalized)


def _match_courtesy(text: str, language: _Language) -> _Courtesy | None:
    """Return the courtesy that a text begins with, None if there is none."""
    for kind, pattern in language.courtesies.items():
        match = pattern.match(text)
        if match:
            return _Courtesy(kind, match.end())

    return None


def _load_languages() -> tuple[_Language, ...]:
    languages = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    return tuple(_compile_language(sources) for sources in languages.values())


def _compile_language(sources: Mapping[str, str]) -> _Language:
    return _Language(
        courtesies={
            "thanks": _compile_courtesy(sources["thanks"]),
            "greeting": _compile_courtesy(sources["greeting"]),
            "acknowledgement": _compile_courtesy(sources["acknowledgement"]),
        },
        addressee=_compile(sources["addressee"]),
        reason=_compile(sources["tail"]),
        assertion=_compile(sources["states"]),
        question=_compile(sources["question"]),
        statement=_compile(sources["statement"]),
    )


def _compile_courtesy(source: str) -> re.Pattern[str]:
    """Return a pattern of whole words that also matches what separates them from the rest of the text."""
    return _compile(rf"(?:{source})(?!\w|'\w){_SEPARATOR}")


def _compile(source: str) -> re.Pattern[str]:
    return re.compile(source, re.IGNORECASE)


_LANGUAGES: Final = _load_languages()
