"""Split texts into words, the same way for the index and for a query. Pure.

A word is found only if both sides split, fold and stem it alike. The tokenizer of SQLite,
`unicode61`, takes a sentence of Chinese, Japanese, Thai or Korean for one word; `searchable` writes
such a run as overlapping pairs and single characters.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

from simplemem.note.languages import STOP_WORDS
from simplemem.note.letters import UNSPACED_RUN, fold_letters, without_accents

# Pairs of characters that only hold a sentence together in languages without spaces.
_UNSPACED_STOP_PAIRS: Final = frozenset(
    """
    です ます した して てい いる ある こと これ それ から ため とい いう でし まし すか
    我们 你们 他们 什么 怎么 时候 这个 那个 哪里 為什 为什 我們 什麼 怎麼 時候 這個
    니다 습니 입니 합니 에서 으로 는지
    """.split()
)

_SPACE_BESIDE_LETTER: Final = re.compile(r"(?<=\D) | (?=\D)")
_find_ascii_words: Final = re.compile("[a-z0-9]+").findall


def searchable(text: str) -> str:
    """Return a text as it is indexed.

    Letters are folded. A run of an unspaced script becomes its pairs of neighbouring characters,
    then its single characters.
    """
    if text.isascii():
        return text
    return UNSPACED_RUN.sub(_spell_out_run, fold_letters(text))


def _spell_out_run(run: re.Match[str]) -> str:
    """Return the pairs and the characters of a run, separated by spaces."""
    characters = run[0]
    words = [*_pairs(characters), *characters]
    return f" {' '.join(words)} "


def _pairs(characters: str) -> list[str]:
    """Return each pair of neighbouring characters."""
    return list(map("".join, pairwise(characters)))


def split_words(text: str) -> list[str]:
    """Return the words of a text in lower case, split where the tokenizer of the index splits."""
    if text.isascii():
        return _find_ascii_words(text.lower())
    return fold_letters(text).lower().split()


def phrase_segments(text: str) -> list[list[str]]:
    """Return the words of a phrase in segments.

    In the `searchable` form of a text that contains the phrase, the words of a segment are
    neighbours. A run of an unspaced script ends a segment, because its single characters follow its
    pairs there.
    """
    words = split_words(text)
    if not words:
        return []
    if text.isascii() or not any(map(UNSPACED_RUN.search, words)):
        return [words]

    segments: list[list[str]] = [[]]
    for word in words:
        _append_word(segments, word)
    return [segment for segment in segments if segment]


def _append_word(segments: list[list[str]], word: str) -> None:
    """Append a word to the last segment; begin a new segment behind each of its unspaced runs."""
    copied_until = 0
    for run in UNSPACED_RUN.finditer(word):
        spaced = word[copied_until : run.start()]
        if spaced:
            segments[-1].append(spaced)
        characters = run[0]
        segments[-1] += _pairs(characters) or [characters]
        segments.append([])
        copied_until = run.end()

    rest = word[copied_until:]
    if rest:
        segments[-1].append(rest)


def words_in_order(text: str) -> list[str]:
    """Return the words of a query in their order, repeated ones included."""
    if text.isascii():
        return split_words(text)
    return [word for segment in phrase_segments(text) for word in segment]


def unique_words(text: str) -> list[str]:
    """Return the words of a text in their order, each of them once."""
    return list(dict.fromkeys(words_in_order(text)))


def words_key(name: str) -> str:
    """Return a key that names share which differ only in case, accents, punctuation or hyphens.

    `Style Settings` and `style-settings` share one, as do `Quick Add` and `QuickAdd`. Spaces
    between digits stay: `1.1` and `11` differ. The key is "" for a name without words.
    """
    words = words_in_order(name)
    # An emoji may leave a mark that is neither a letter nor a digit.
    words = [word for word in words if any(map(str.isalnum, word))]
    return _SPACE_BESIDE_LETTER.sub("", without_accents(" ".join(words)))


def neighbouring_words(words: list[str]) -> list[tuple[str, str]]:
    """Return each pair of neighbouring words once, but no pair of two stop words."""
    pairs = dict.fromkeys(pairwise(words))
    return [pair for pair in pairs if not STOP_WORDS.issuperset(pair)]


def content_words(words: list[str]) -> list[str]:
    """Return the words without stop words, or all of them if nothing else is left."""
    content = [
        word for word in words if word not in STOP_WORDS and word not in _UNSPACED_STOP_PAIRS
    ]
    return content or words


def without_stop_words(text: str) -> str:
    """Return a text for the embedder: stop words add nothing to a mean of word vectors."""
    return " ".join([word for word in text.split() if word.lower() not in STOP_WORDS])


def count_tokens(text: str) -> int:
    """Return an estimate of how many tokens a model reads.

    The estimate is four tokens for three words, but at least one for four characters, and one for
    each character of an unspaced script.
    """
    unspaced = 0
    if not text.isascii():
        unspaced = sum(map(len, UNSPACED_RUN.findall(text)))
    by_words = (len(text.split()) * 4 + 2) // 3
    by_length = (len(text) - unspaced) // 4
    return max(by_words, by_length) + unspaced
