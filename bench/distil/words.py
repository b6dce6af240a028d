"""Frequent words of five languages, from the package `pyspellchecker` (MIT licence).

Its authors counted them in subtitles of films. Such a word gets a vector of its own, because the
sum of the vectors of its pieces says less about what it means.
"""

from __future__ import annotations

import gzip
import json
import unicodedata
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final, NamedTuple

WORDS: Final = {"es": 6_000, "fr": 6_000, "pt": 6_000, "de": 5_000, "it": 5_000}
"""How many words of each language are looked at, of those that are no piece.

English is left out, because WordLlama knows its words. With twice as many words and with Dutch, no
language gained (docs/decisions.md)."""


class Word(NamedTuple):
    """A word in lower case, and its share of all words of the language."""

    text: str
    share: float


def read_words(folder: Path, known: Collection[str]) -> list[Word]:
    """Return the most frequent words that are not known, each once, most frequent first.

    A word of two languages has the share of the first of them. `folder` is that of the files
    `LANGUAGE.json.gz` in `pyspellchecker`.
    """
    words: dict[str, Word] = {}
    for language, most in WORDS.items():
        for number, word in enumerate(_unknown_words(folder, language, known)):
            if number == most:
                break
            words.setdefault(word.text, word)
    return sorted(words.values(), key=lambda word: (-word.share, word.text))


def _unknown_words(folder: Path, language: str, known: Collection[str]) -> Iterator[Word]:
    """Yield the words of a language that are not known, most frequent first."""
    with gzip.open(folder / f"{language}.json.gz", "rt", encoding="utf-8") as file:
        counts: dict[str, int] = json.load(file)

    total = sum(counts.values())
    for spelling in sorted(counts, key=lambda text: (-counts[text], text)):
        text = unicodedata.normalize("NFKC", spelling).lower()
        is_word = text.replace("'", "").isalpha()
        if is_word and text not in known:
            yield Word(text, counts[spelling] / total)
