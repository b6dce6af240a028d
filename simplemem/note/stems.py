"""Reduce words to their stems. Pure.

The stems of a language other than English end with a mark of that language, so that a stem of one
language never equals a word or stem of another.
"""

from __future__ import annotations

import importlib
import threading
from functools import cache, lru_cache
from typing import Any, Final

from simplemem.note.words import (
    LANGUAGES,
    STOP_WORDS_BY_LANGUAGE,
    UNSPACED_RUN,
    split_words,
    without_accents,
)

# The character, from a private area of Unicode, that is appended to the stems of each language.
MARKS: Final = {language: chr(0xE001 + number) for number, language in enumerate(LANGUAGES)}

_STEMMER_NAMES: Final = {
    "": "English",
    "de": "German",
    "es": "Spanish",
    "fr": "French",
    "it": "Italian",
    "nl": "Dutch",
    "pt": "Portuguese",
}
_STEMMER_LOCK: Final = threading.Lock()  # a stemmer keeps the word that it works on in itself


def stems_of(text: str, language: str) -> str:
    """Return the stems of the words of a text in their order, separated by spaces.

    `language` is one of LANGUAGES, not "" for English: the tokenizer of the index reduces English
    words itself. Stop words of the language, and words with other characters than letters, are left
    out.
    """
    stems = []
    for word in split_words(text):
        if not word.isalpha() or UNSPACED_RUN.search(word):
            continue
        if without_accents(word) not in STOP_WORDS_BY_LANGUAGE[language]:
            stems.append(stem(word, language))
    return " ".join(stems)


@lru_cache(maxsize=20_000)
def stem(word: str, language: str) -> str:
    """Return the stem of a word in lower case, followed by the mark of its language.

    `language` is one of LANGUAGES, or "" for English, which has no mark. The mark comes last, so
    that the tokenizer of the index takes no further ending off.
    """
    with _STEMMER_LOCK:
        bare_stem = str(_stemmer(language).stemWord(word))
    return bare_stem + MARKS.get(language, "")


@cache
def _stemmer(language: str) -> Any:
    """Return the stemmer of a language. The import of its module takes time, so it is late."""
    name = _STEMMER_NAMES[language]
    module = importlib.import_module(f"snowballstemmer.{name.lower()}_stemmer")
    return getattr(module, f"{name}Stemmer")()
