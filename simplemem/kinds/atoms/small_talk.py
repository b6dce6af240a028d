"""Tell small talk from statements: questions, greetings, thanks and acknowledgements state nothing.

The patterns stand in `words/small_talk.toml`, by language. What no pattern covers whole is a statement, so a
greeting or a thank-you with a statement behind it is kept. Pure.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Final, NamedTuple

_MAX_NAME_WORDS: Final = 3
_MAX_LENGTH: Final = 500  # characters; who says more says something
_COURTESIES: Final = ("thanks", "greeting", "acknowledgement")
_SEPARATOR: Final = r"[\s,.!;:–—-]*"
_FILE: Final = Path(__file__).with_name("words") / "small_talk.toml"


class _Patterns(NamedTuple):
    """The patterns of one language."""

    greeting: re.Pattern[str]
    thanks: re.Pattern[str]
    acknowledgement: re.Pattern[str]
    addressee: re.Pattern[str]
    tail: re.Pattern[str]  # what somebody is thanked for
    states: re.Pattern[str]  # a verb or person by which such a tail states something
    question: re.Pattern[str]  # how a question begins that may lack its mark
    statement: re.Pattern[str]  # a statement that is put as a question


def _load_patterns() -> tuple[_Patterns, ...]:
    languages = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    return tuple(_read_language(sources) for sources in languages.values())


def _read_language(sources: dict[str, str]) -> _Patterns:
    """Compile the patterns of one language; a courtesy ends with its word, and takes what separates it from the rest."""
    whole = {kind: rf"(?:{sources[kind]})(?!\w|'\w){_SEPARATOR}" for kind in _COURTESIES}
    return _Patterns(**{name: re.compile(source) for name, source in {**sources, **whole}.items()})


_LANGUAGES: Final = _load_patterns()


def is_small_talk(sentence: str) -> bool:
    """Return whether a sentence is only a question, a greeting, thanks or an acknowledgement."""
    if len(sentence) > _MAX_LENGTH:
        return False
    plain = " ".join(sentence.replace("’", "'").split())
    return any(_is_question(plain.lower(), each) or _is_courtesy(plain, each) for each in _LANGUAGES)


def _is_question(plain: str, language: _Patterns) -> bool:
    """Return whether a sentence asks something and states nothing by the way."""
    ends_as_question = re.search(r"[?？][^\w?？]*$", plain) is not None
    words = plain.rstrip("?？!. \"'”»)")
    if any(each.statement.fullmatch(words) for each in _LANGUAGES):
        return False

    return ends_as_question or language.question.match(words) is not None


def _is_courtesy(plain: str, language: _Patterns) -> bool:
    """Return whether a sentence consists of courtesies, and at most of whom or what they are for."""
    rest = plain
    last = ""
    while found := _match_courtesy(rest, language):
        last, end = found
        rest = rest[end:]

    rest = rest.strip(" ,.!;:–—-\"'”»)")
    if not last:
        return False
    if not re.search(r"\w", rest) or language.addressee.fullmatch(rest.lower()):
        return True
    if _is_question(rest.lower(), language):
        return True
    if any(each.states.search(rest.lower()) for each in _LANGUAGES):
        return False

    if last == "thanks" and language.tail.fullmatch(rest.lower()):
        return True
    return last != "acknowledgement" and _is_name(rest)


def _is_name(text: str) -> bool:
    """Return whether a text may be the name of whom somebody greets: "claude", "Anna Lee"."""
    words = text.split()
    return len(words) == 1 or (len(words) <= _MAX_NAME_WORDS and all(word[0].isupper() for word in words))


def _match_courtesy(text: str, language: _Patterns) -> tuple[str, int] | None:
    """Return the kind of the courtesy that a text begins with, and where what follows begins."""
    for kind in _COURTESIES:
        pattern: re.Pattern[str] = getattr(language, kind)
        found = pattern.match(text.lower())
        if found:
            return kind, found.end()

    return None
