"""Tell small talk from statements. Questions, greetings, thanks and acknowledgements state nothing.

`words/small_talk.toml` has the patterns of each language. A sentence is small talk only if patterns
cover all of it, so a greeting that is followed by a statement is a statement. Pure, but for
reading that file when the first sentence is judged.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
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
class CourtesyLanguage:
    """The patterns of courtesies and questions in one language. They ignore letter case."""

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
    """Return whether a sentence is only a question, a greeting, thanks or an acknowledgement.

    A sentence of more than 500 characters is not. Nothing is raised, whatever the text is.
    """
    if len(sentence) > _MAX_CHARACTERS:
        return False
    plain = " ".join(sentence.replace("’", "'").split())
    for language in courtesy_languages():
        if _is_question(plain, language) or _is_courtesy(plain, language):
            return True
    return False


def _is_question(text: str, language: CourtesyLanguage) -> bool:
    """Return whether a text asks something, and states nothing in the form of a question."""
    words = text.rstrip(_END_OF_QUESTION)
    if _is_statement_in_any_language(words):
        return False
    if _QUESTION_MARK_AT_END.search(text):
        return True
    return language.question.match(words) is not None


def _is_courtesy(text: str, language: CourtesyLanguage) -> bool:
    """Return whether a text is courtesies, perhaps with whom they address or what they are for.

    A question may follow them. A text without a courtesy is none.
    """
    last_kind: _CourtesyKind | None = None
    rest = text
    courtesy = _match_courtesy(rest, language)
    while courtesy is not None:
        last_kind = courtesy.kind
        rest = rest[courtesy.end :]
        courtesy = _match_courtesy(rest, language)
    if last_kind is None:
        return False

    rest = rest.strip(_AROUND_REST)
    if not _WORD_CHARACTER.search(rest):
        return True
    return _completes_courtesy(rest, last_kind, language)


def _completes_courtesy(rest: str, kind: _CourtesyKind, language: CourtesyLanguage) -> bool:
    """Return whether a text behind courtesies belongs to them or asks, but states nothing.

    `kind` is that of the last of these courtesies.
    """
    if language.addressee.fullmatch(rest) or _is_question(rest, language):
        return True
    if _asserts_in_any_language(rest):
        return False
    if kind == "thanks" and language.reason.fullmatch(rest):
        return True
    return kind != "acknowledgement" and _may_be_name(rest)


def _is_statement_in_any_language(words: str) -> bool:
    """Return whether words state something in the form of a question: "Did you know that …"."""
    return any(language.statement.fullmatch(words) for language in courtesy_languages())


def _asserts_in_any_language(text: str) -> bool:
    """Return whether a text has a verb or pronoun by which it states something."""
    return any(language.assertion.search(text) for language in courtesy_languages())


def _may_be_name(text: str) -> bool:
    """Return whether a text may be the name of somebody who is greeted: "claude", "Anna Lee"."""
    words = text.split()
    if len(words) == 1:
        return True
    return len(words) <= _MAX_NAME_WORDS and all(word[0].isupper() for word in words)


def _match_courtesy(text: str, language: CourtesyLanguage) -> _Courtesy | None:
    """Return the courtesy that a text begins with, None if there is none."""
    for kind, pattern in language.courtesies.items():
        match = pattern.match(text)
        if match is not None:
            return _Courtesy(kind, match.end())

    return None


@cache
def courtesy_languages() -> tuple[CourtesyLanguage, ...]:
    """Return the languages in the file, in their order. The first call reads it."""
    languages = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    return tuple(_compile_language(sources) for sources in languages.values())


def _compile_language(sources: Mapping[str, str]) -> CourtesyLanguage:
    """Return the patterns of a language from its table in the file."""
    return CourtesyLanguage(
        courtesies={
            "thanks": _compile_courtesy(sources["thanks"]),
            "greeting": _compile_courtesy(sources["greeting"]),
            "acknowledgement": _compile_courtesy(sources["acknowledgement"]),
        },
        addressee=_compile(sources["addressee"]),
        reason=_compile(sources["reason"]),
        assertion=_compile(sources["assertion"]),
        question=_compile(sources["question"]),
        statement=_compile(sources["statement"]),
    )


def _compile_courtesy(source: str) -> re.Pattern[str]:
    """Return a pattern of whole words and of what separates them from the rest of the text."""
    return _compile(rf"(?:{source})(?!\w|'\w){_SEPARATOR}")


def _compile(source: str) -> re.Pattern[str]:
    """Return a pattern that ignores letter case."""
    return re.compile(source, re.IGNORECASE)
