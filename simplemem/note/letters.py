"""Fold letters that are written in several ways, and recognise scripts without spaces. Pure.

The index and a query fold a text alike, so that a word is found however its accents, syllables or
ligatures are written.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

# Scripts written without spaces: Thai, Lao, Khmer, Myanmar, kana and Han. Hangul is one of them,
# because its particles are attached to the noun.
_UNSPACED_CHARACTER: Final = (
    "[\u0e00-\u0e7f\u0e80-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff"
    "\u3130-\u318f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\uff66-\uff9f\U00020000-\U0003ffff]"
)
# The same as the class with `+`, but `re` skips faster to a class that stands alone.
UNSPACED_RUN: Final = re.compile(f"{_UNSPACED_CHARACTER}{_UNSPACED_CHARACTER}*")

# The Unicode categories whose characters are part of words.
_WORD_CATEGORIES: Final = frozenset(
    ("Lu", "Ll", "Lt", "Lm", "Lo", "Nd", "Nl", "No", "Mn", "Mc", "Co")
)

# What people write where a keyboard lacks a letter, and no table of the tokenizer folds.
_PLAIN_SPELLINGS: Final = """
    ß:ss ẞ:SS œ:oe Œ:OE æ:ae Æ:AE ø:o Ø:O ł:l Ł:L đ:d Đ:D ð:d Ð:D þ:th Þ:Th ı:i İ:I ё:е Ё:Е
    آ:ا أ:ا إ:ا ٱ:ا ـ: \u00ad: \u2060: \ufeff:
"""
_GREEK: Final = (
    *range(0x370, 0x400),
    *range(0x1F00, 0x2000),
)
# The points of Hebrew and the vowel signs of Arabic.
_VOWEL_SIGNS: Final = (
    *range(0x591, 0x5C8),
    *range(0x610, 0x61B),
    *range(0x64B, 0x660),
    0x670,
    *range(0x6D6, 0x6EE),
)


class _LetterTable(dict[int, str]):
    """A table for `str.translate`: folds letters and turns what is not part of a word into a space.

    The Unicode categories are those of Python. The tokenizer knows an older version of Unicode, and
    would take a recent emoji for a letter.
    """

    def __missing__(self, code: int) -> str:
        character = chr(code)
        is_part_of_word = unicodedata.category(character) in _WORD_CATEGORIES
        self[code] = character if is_part_of_word else " "
        return self[code]


def _build_letter_table() -> _LetterTable:
    """Return the table that folds letters which are often written in another way."""
    table = _LetterTable()
    for pair in _PLAIN_SPELLINGS.split():
        letter, plain = pair.split(":")
        table[ord(letter)] = plain

    for code in _GREEK:
        if chr(code).isalpha():
            table[code] = unicodedata.normalize("NFD", chr(code))[0]

    for code in _VOWEL_SIGNS:
        if unicodedata.category(chr(code)) == "Mn":
            table[code] = ""
    return table


_LETTERS: Final = _build_letter_table()


def fold_letters(text: str) -> str:
    """Return one form of a text, however its accents, syllables or ligatures are written."""
    return unicodedata.normalize("NFKC", text).translate(_LETTERS)


def is_unspaced(word: str) -> bool:
    """Return whether a word consists of characters of scripts without spaces."""
    return not word.isascii() and UNSPACED_RUN.fullmatch(word) is not None


def without_accents(text: str) -> str:
    """Return a text without combining marks and with ss for the sharp s."""
    if text.isascii():
        return text
    decomposed = unicodedata.normalize("NFD", text)
    letters = [letter for letter in decomposed if not unicodedata.combining(letter)]
    return "".join(letters).replace("ß", "ss")
