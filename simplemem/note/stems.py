"""Words by their stem in the language of their note, as further words beside them: Häuser is also `haus` of German.

A stem carries a private character that says its language, so it is never taken for a word, nor for a stem of another
language. The mark alone stands in every note that has stems: by it the index knows which languages it holds.
"""

from __future__ import annotations

import importlib
import threading
from functools import cache, lru_cache
from typing import Any

from simplemem.note.language import LANGUAGES, is_small_word
from simplemem.note.words import spaced_words

MARKS = {language: chr(0xE001 + place) for place, language in enumerate(LANGUAGES)}
_NAMES = {"de": "German", "es": "Spanish", "fr": "French", "it": "Italian", "nl": "Dutch", "pt": "Portuguese"}
_ONE_AT_A_TIME = threading.Lock()  # a stemmer keeps the word it works on


def stems_of(text: str, language: str) -> str:
    """The stems of a text's words in their order, without those of words that only hold it together."""
    return " ".join(stem(word, language) for word in spaced_words(text) if not is_small_word(word, language))


@lru_cache(maxsize=20_000)
def stem(word: str, language: str) -> str:
    """The marked stem of a word in small letters. The mark comes last, where no ending can be taken off it again."""
    with _ONE_AT_A_TIME:
        return str(_stemmer(language).stemWord(word)) + MARKS[language]


@cache
def _stemmer(language: str) -> Any:
    name = _NAMES[language]
    return getattr(importlib.import_module(f"snowballstemmer.{name.lower()}_stemmer"), f"{name}Stemmer")()
