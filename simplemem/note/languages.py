"""The stop words of seven languages, and which of these a note or a query is in. Pure.

The language of a note is the one that its frontmatter names (`lang: de`), else the one that its
small words show. It is "" for English and for a note whose language is not clear.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Final

from simplemem.note.letters import without_accents


def _read_small_words() -> dict[str, str]:
    """Return the sections of `small_words.txt`: the name of each, and its words."""
    text = Path(__file__).with_name("small_words.txt").read_text(encoding="utf-8")
    sections = {}
    for section in text.split("\n[")[1:]:
        name, words = section.split("]\n", 1)
        sections[name] = words
    return sections


# Words that only hold a sentence together, such as `the`, by language.
_SMALL_WORDS: Final = _read_small_words()
STOP_WORDS: Final = frozenset(_SMALL_WORDS.pop("en").split())

# Words that an English text has as well, so that they do not tell the language of a note.
_ALSO_ENGLISH: Final = STOP_WORDS | frozenset(_SMALL_WORDS.pop("shared").split())


LANGUAGES: Final = tuple(_SMALL_WORDS)

# Letters that show a language: with one of them, a single small word is enough.
_LETTERS_OF_LANGUAGE: Final = {
    "de": "äöüß",
    "es": "ñ¿¡",
    "fr": "œçêèà",
    "it": "òìùè",
    "nl": "ĳ",
    "pt": "ãõ",
}
_ELISIONS: Final = ("l'", "d'", "l’", "d’")  # of French and Italian

_SAMPLE_CHARACTERS: Final = 300  # from the beginning, and as many from the middle
_MIN_SCORE: Final = 2  # small words, a letter of the language counting as one
# The share of the sample's words that are small; a text of lists and names has about this many.
_MIN_SMALL_SHARE: Final = 0.08


def _index_small_words() -> dict[str, tuple[str, ...]]:
    """Return the languages of each small word, in all its spellings, but for English words."""
    languages: dict[str, tuple[str, ...]] = {}
    for language, words in _SMALL_WORDS.items():
        for spelling in _spellings_of(words.split()) - _ALSO_ENGLISH:
            previous = languages.get(spelling, ())
            languages[spelling] = (*previous, language)
    return languages


def _spellings_of(words: list[str]) -> set[str]:
    """Return the words, the words without accents, and those with a typographic apostrophe."""
    spellings = set(words)
    for word in words:
        spellings.add(without_accents(word))
        spellings.add(word.replace("'", "’"))
    return spellings


_LANGUAGES_OF_WORD: Final = _index_small_words()
STOP_WORDS_BY_LANGUAGE: Final = {
    language: frozenset(map(without_accents, words.split()))
    for language, words in _SMALL_WORDS.items()
}


def language_of(text: str, declared: str | None = None) -> str:
    """Return the language of a note: one of LANGUAGES, or "" for English or an unclear one.

    `declared` is what the frontmatter names, such as `de-AT`. If there is any, it decides.
    """
    if declared:
        code = declared.strip().casefold()[:2]
        return code if code in LANGUAGES else ""

    sample = _sample(text).lower()
    words_with_repeats = sample.split()
    if _LANGUAGES_OF_WORD.keys().isdisjoint(words_with_repeats):
        return ""

    words = set(words_with_repeats)
    small_words = _LANGUAGES_OF_WORD.keys() & words
    if len(small_words) < _MIN_SMALL_SHARE * len(words):
        return ""

    scores = _score_languages(sample, words, small_words)
    best = max(LANGUAGES, key=lambda language: scores[language])
    best_score = scores[best]
    english_score = len(STOP_WORDS & words)
    if best_score < _MIN_SCORE or best_score <= english_score:
        return ""
    return best


def _sample(text: str) -> str:
    """Return the beginning and the middle of a long text, which show its language well enough."""
    if len(text) <= 2 * _SAMPLE_CHARACTERS:
        return text
    beginning = text[:_SAMPLE_CHARACTERS]
    middle_start = len(text) // 2
    middle = text[middle_start : middle_start + _SAMPLE_CHARACTERS]
    return f"{beginning} {middle}"


def _score_languages(sample: str, words: set[str], small_words: set[str]) -> Counter[str]:
    """Return how many signs of each language a sample in lower case has."""
    scores: Counter[str] = Counter()
    for word in small_words:
        scores.update(_LANGUAGES_OF_WORD[word])

    if any(word.startswith(_ELISIONS) for word in words):
        scores.update(("fr", "it"))

    if not sample.isascii():
        letters = frozenset(sample)
        for language, letters_of_language in _LETTERS_OF_LANGUAGE.items():
            if not letters.isdisjoint(letters_of_language):
                scores[language] += 1
    return scores


def find_stop_words(words: Iterable[str], languages: Collection[str]) -> frozenset[str]:
    """Return the stop words of a query, if the query is in one of the `languages`.

    The language is the one that most words of the query belong to. If more of them are English stop
    words, or none belongs to any of the languages, the result is empty.
    """
    plain_words = {word: without_accents(word) for word in words}
    scores: Counter[str] = Counter()
    for word in plain_words:
        for language in _LANGUAGES_OF_WORD.get(word, ()):
            if language in languages:
                scores[language] += 1

    best_score = max(scores.values(), default=0)
    english_score = len(STOP_WORDS.intersection(plain_words))
    if best_score == 0 or english_score > best_score:
        return frozenset()

    stop_words: set[str] = set()
    for language, score in scores.items():
        if score == best_score:
            stop_words |= STOP_WORDS_BY_LANGUAGE[language]
    return frozenset(word for word, plain in plain_words.items() if plain in stop_words)
