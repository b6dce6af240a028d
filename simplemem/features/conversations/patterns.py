"""The words, patterns and weights by which messages are read.

`english.toml` has the words and patterns of English, and the weights, which are the same for all
languages. `markers/` has one file for each other language whose changes of subject are read. All
files are read when the module is imported.

The functions find the content words of a text, its markers, and the words that name the topic to
which it returns. They use neither vectors nor notes.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from simplemem.features.pattern_pieces import compile_pattern
from simplemem.note.words import (
    STOP_WORDS,
    STOP_WORDS_BY_LANGUAGE,
    language_of,
    without_accents,
)

_MAX_RETURN: Final = 90  # characters of a message in which a return is announced

_MARKER_NAMES: Final = (
    "shift",
    "aside",
    "greeting",
    "opening",
    "follow",
    "news",
    "back",
    "again",
    "outcome",
)
WORD: Final = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
"""A word with its apostrophes and hyphens."""


def _load_english() -> dict[str, Any]:
    """Return the contents of `english.toml`."""
    path = Path(__file__).with_name("english.toml")
    return tomllib.loads(path.read_text(encoding="utf-8"))


def _load_other_languages() -> dict[str, dict[str, Any]]:
    """Return the contents of the files in `markers/`, by the codes of their languages."""
    folder = Path(__file__).with_name("markers")
    languages = {}
    for path in sorted(folder.glob("*.toml")):
        languages[path.stem] = tomllib.loads(path.read_text(encoding="utf-8"))
    return languages


def _split_words(lists: dict[str, str]) -> dict[str, frozenset[str]]:
    """Return the words of each list, by the name of the list."""
    words_by_name = {}
    for name, text in lists.items():
        words_by_name[name] = frozenset(text.split())
    return words_by_name


def _invert_synonyms(lists: dict[str, str]) -> dict[str, str]:
    """Return for each synonym the word that replaces it when words are compared."""
    replacements = {}
    for word, synonyms in lists.items():
        for synonym in synonyms.split():
            replacements[synonym] = word
    return replacements


def _read_patterns(english: dict[str, Any]) -> dict[str, re.Pattern[str]]:
    """Return the patterns of `english.toml` by their names."""
    patterns = {}
    for name, source in english["patterns"].items():
        patterns[name] = compile_pattern(source, english["pieces"])
    return patterns


def _read_markers(
    patterns: dict[str, re.Pattern[str]], languages: dict[str, dict[str, Any]]
) -> dict[str, tuple[re.Pattern[str], ...]]:
    """Return the patterns of each marker: that of English, then one per other language.

    `patterns` are those of English. Raises KeyError if a language lacks a marker.
    """
    markers = {}
    for name in _MARKER_NAMES:
        marker_patterns = [patterns[name]]
        for language in languages.values():
            source = language["patterns"][name]
            pieces = language.get("pieces", {})
            marker_patterns.append(compile_pattern(source, pieces))
        markers[name] = tuple(marker_patterns)
    return markers


def _read_empty_words(languages: dict[str, dict[str, Any]]) -> dict[str, frozenset[str]]:
    """Return for each language the words that are not content words, without accents.

    They are its stop words and, if the language has markers, the words that are frequent in chats.
    The English ones are in `_EMPTY_WORDS`.
    """
    empty_words = {}
    for language, stop_words in STOP_WORDS_BY_LANGUAGE.items():
        words = set(stop_words)
        if language in languages:
            chat_words = languages[language]["words"]["chat"].split()
            words.update(map(without_accents, chat_words))
        empty_words[language] = frozenset(words)
    return empty_words


def _read_vague_words(languages: dict[str, dict[str, Any]]) -> dict[str, frozenset[str]]:
    """Return for each language its pronouns and other words that refer to another clause."""
    vague_words = {}
    for language, contents in languages.items():
        vague_words[language] = frozenset(contents["words"]["vague"].split())
    return vague_words


_ENGLISH: Final = _load_english()

NUMBERS: Final = _ENGLISH["numbers"]
"""The weights and limits by which the topic of a message is chosen."""

WORDS: Final = _split_words(_ENGLISH["words"])
"""The English word lists, by their names in `english.toml`."""

SYNONYMS: Final = _invert_synonyms(_ENGLISH["synonyms"])
"""English synonyms, each with the word that replaces it when words are compared."""

PATTERNS: Final = _read_patterns(_ENGLISH)
"""The English patterns, and those of a topic's note, by their names in `english.toml`."""

_OTHER_LANGUAGES: Final = _load_other_languages()
MARKERS: Final = _read_markers(PATTERNS, _OTHER_LANGUAGES)
"""The patterns of each marker, one per language.

A marker is what a message begins with, such as "by the way", except for "outcome", which may be
anywhere in a sentence.
"""

_OTHER_VAGUE_WORDS: Final = _read_vague_words(_OTHER_LANGUAGES)
_OTHER_EMPTY_WORDS: Final = _read_empty_words(_OTHER_LANGUAGES)
_EMPTY_WORDS: Final = STOP_WORDS | WORDS["chat"]


@lru_cache(maxsize=1024)
def content_words(text: str) -> tuple[str, ...]:
    """Return the words that say what a text is about, in lower case and in their order.

    Stop words and words that are frequent in chats are left out: those of English, and those of the
    text's language. A repeated word is repeated.
    """
    all_words = WORD.findall(text.lower())
    language = language_of(text) or _guess_language(all_words)
    empty_words = _OTHER_EMPTY_WORDS.get(language, frozenset())

    words = []
    for spelling in all_words:
        word = spelling.replace("’", "'")
        if _is_content_word(word) and without_accents(word) not in empty_words:
            words.append(word)
    return tuple(words)


def _guess_language(words: Sequence[str]) -> str:
    """Return the language that has most of some words as stop words, for texts that are short.

    Only languages with markers are compared. Returns "" if none of them has more of the words than
    English. `words` are in lower case.
    """
    plain_words = set(map(without_accents, words))
    best_language = ""
    best_count = len(plain_words & STOP_WORDS)
    for language in _OTHER_LANGUAGES:
        count = len(plain_words & STOP_WORDS_BY_LANGUAGE[language])
        if count > best_count:
            best_language = language
            best_count = count
    return best_language


def _is_content_word(word: str) -> bool:
    """Return whether an English word in lower case says what a text is about.

    A word with an apostrophe does not if the part before it does not, as in "it's".
    """
    if len(word) < 2 or word in _EMPTY_WORDS:
        return False
    base, _, _ = word.partition("'")
    return base not in _EMPTY_WORDS


def read_return(message: str) -> tuple[str, ...] | None:
    """Return the content words that name the topic to which a message returns.

    For "Back to the rain gauge: …" they are "rain" and "gauge". Returns () if the message returns
    to something without naming it ("Back to that."), and None if it does not begin with a return.
    "OK, so" and the like may precede the return, a greeting may not. Only the first 90 characters
    are read.
    """
    head = message[:_MAX_RETURN]
    for pattern in (*MARKERS["back"], *MARKERS["again"]):
        announcement = pattern.match(head)
        if announcement is not None:
            return content_words(announcement[1])
    return None


def states_outcome(sentence: str) -> bool:
    """Return whether a sentence says what was decided, done or found out, in any language."""
    return any(pattern.search(sentence) for pattern in MARKERS["outcome"])


def has_marker(name: str, text: str) -> bool:
    """Return whether a text begins with the marker `name` in any language.

    Raises KeyError if there is no such marker.
    """
    return any(pattern.match(text) for pattern in MARKERS[name])


def vague_words_of(text: str) -> frozenset[str]:
    """Return the words that refer to another clause, in English and in the language of a text."""
    return WORDS["vague"] | _OTHER_VAGUE_WORDS.get(language_of(text), frozenset())
