"""Words of a text, as the index and a question both see them. Pure; the same on both sides or nothing is found. SQLite's
`unicode61` tokenizer takes a sentence of Chinese, Japanese, Thai or Korean for one word: `searchable` writes such runs
out as overlapping pairs and single characters."""

from __future__ import annotations

import importlib
import re
import threading
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

# Scripts written without spaces (Thai, Lao, Khmer, Myanmar, kana, Han) and Hangul, whose particles hang on the noun.
_UNSPACED_CLASS = (
    "[\u0e00-\u0e7f\u0e80-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"
)
_UNSPACED = re.compile(
    f"{_UNSPACED_CLASS}{_UNSPACED_CLASS}*"
)  # as `+`, but `re` skips faster to a single class

_SECTIONS = Path(__file__).with_name("small_words.txt").read_text(encoding="utf-8").split("\n[")[1:]
_SMALL_WORDS = dict(
    section.split("]\n", 1) for section in _SECTIONS
)  # that only hold a sentence together, by language
STOP_WORDS = frozenset(_SMALL_WORDS.pop("en").split())
# Words that an English text has as well: they say nothing about the language of a note.
_ALSO_ENGLISH = STOP_WORDS | frozenset(_SMALL_WORDS.pop("shared").split())

# Pairs of characters that only hold a sentence together where words have no spaces.
_UNSPACED_STOP_PAIRS = frozenset(
    """です ます した して てい いる ある こと これ それ から ため とい いう でし まし すか 我们 你们 他们 什么 怎么 时候
    这个 那个 哪里 為什 为什 我們 什麼 怎麼 時候 這個 니다 습니 입니 합니 에서 으로 는지""".split()
)


class _Letters(dict[int, str]):
    """Characters of words as they are, all others as spaces: to the tokenizer a young emoji would be a letter."""

    def __missing__(self, code: int) -> str:
        self[code] = chr(code) if unicodedata.category(chr(code)) in _OF_WORDS else " "
        return self[code]


_ASCII_WORDS = re.compile("[a-z0-9]+").findall
_OF_WORDS = {"Lu", "Ll", "Lt", "Lm", "Lo", "Nd", "Nl", "No", "Mn", "Mc", "Co"}
# What people leave out where a keyboard lacks it, and no table of the tokenizer folds.
_AS_WRITTEN_PLAINLY = dict(
    pair.split(":")
    for pair in """ß:ss ẞ:SS œ:oe Œ:OE æ:ae Æ:AE ø:o Ø:O ł:l Ł:L đ:d Đ:D ð:d Ð:D þ:th Þ:Th ı:i İ:I ё:е Ё:Е آ:ا أ:ا إ:ا
    ٱ:ا ـ: \u00ad: \u2060: \ufeff:""".split()
)
_GREEK = [*range(0x370, 0x400), *range(0x1F00, 0x2000)]
_VOWEL_SIGNS = [
    *range(0x591, 0x5C8),
    *range(0x610, 0x61B),
    *range(0x64B, 0x660),
    0x670,
    *range(0x6D6, 0x6EE),
]

_LETTERS = _Letters({ord(letter): plain for letter, plain in _AS_WRITTEN_PLAINLY.items()})
_LETTERS |= {
    code: unicodedata.normalize("NFD", chr(code))[0] for code in _GREEK if chr(code).isalpha()
}
_LETTERS |= {code: "" for code in _VOWEL_SIGNS if unicodedata.category(chr(code)) == "Mn"}


def searchable(text: str) -> str:
    """A text as the index takes it in: a run of an unspaced script as its pairs, then its single characters."""
    if text.isascii():
        return text
    return _UNSPACED.sub(
        lambda run: f" {' '.join([*map(''.join, pairwise(run[0])), *run[0]])} ", _one_form(text)
    )


def _one_form(text: str) -> str:
    """However a system or a person writes an accent, a syllable, a ligature or a sharp s, it is one and the same."""
    return unicodedata.normalize("NFKC", text).translate(_LETTERS)


def _split(text: str) -> list[str]:
    """The words of a text in small letters, split where the index's tokenizer does."""
    return _ASCII_WORDS(text.lower()) if text.isascii() else _one_form(text).lower().split()


def stretches(text: str) -> list[list[str]]:
    """The words of a phrase, in stretches that stand side by side in a `searchable` text that holds it."""
    words = _split(text)
    if text.isascii() or not any(map(_UNSPACED.search, words)):
        return [words] if words else []
    found: list[list[str]] = [[]]
    for word in words:
        last = 0
        for run in _UNSPACED.finditer(word):
            found[-1] += [word[last : run.start()]] if run.start() > last else []
            found[-1] += list(map("".join, pairwise(run[0]))) or [run[0]]
            found.append([])  # behind its pairs come its single characters
            last = run.end()
        found[-1] += [word[last:]] if last < len(word) else []
    return [stretch for stretch in found if stretch]


def counted(number: int, thing: str, things: str = "") -> str:
    """`1 note`, `1,200 notes`, `2 entities`."""
    return f"{number:,} {thing if number == 1 else things or thing + 's'}"


def shortened(text: str, most: int) -> str:
    """A text on one line, cut at a word when it is long."""
    shown = " ".join(text.split())
    return shown if len(shown) <= most else f"{shown[:most].rsplit(' ', 1)[0]}…"


def well_formed(text: str) -> str:
    """A text that can be written down: half a character, as a careless program may send it, becomes a sign."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def is_unspaced(word: str) -> bool:
    """Whether it is of a script without spaces."""
    return not word.isascii() and _UNSPACED.fullmatch(word) is not None


def words_in_order(text: str) -> list[str]:
    """The words of a question as they follow each other."""
    return (
        _split(text)
        if text.isascii()
        else [word for stretch in stretches(text) for word in stretch]
    )


def words_of(text: str) -> list[str]:
    """The words of a question, in order and once each."""
    return list(dict.fromkeys(words_in_order(text)))


_BETWEEN_LETTERS = re.compile(r"(?<=\D) | (?=\D)")


def words_key(name: str) -> str:
    """What two names share that differ in case, accents, punctuation or hyphens alone: `Style Settings` and
    `style-settings`, `Quick Add` and `QuickAdd`. Numbers stay apart: 1.1 is not 11. "" for a name without words."""
    words = [
        word for word in words_in_order(name) if any(map(str.isalnum, word))
    ]  # an emoji may leave a mark
    return _BETWEEN_LETTERS.sub("", _plain(" ".join(words)))


def neighbouring_words(words: list[str]) -> list[tuple[str, str]]:
    """Words that stand side by side, once each; two words that only hold a sentence together are no pair."""
    return [pair for pair in dict.fromkeys(pairwise(words)) if not STOP_WORDS.issuperset(pair)]


def content_words(words: list[str]) -> list[str]:
    """Without the words that only hold a sentence together; all of them when nothing else is there."""
    return [
        word for word in words if word not in STOP_WORDS and word not in _UNSPACED_STOP_PAIRS
    ] or words


def without_stop_words(text: str) -> str:
    """A text for the embedder: stop words carry no meaning in a mean of word vectors (retrieval.md §2)."""
    return " ".join([word for word in text.split() if word.lower() not in STOP_WORDS])


def count_tokens(text: str) -> int:
    """About how many tokens a model reads: four for three words, one for each unspaced character (an estimate)."""
    unspaced = 0 if text.isascii() else sum(map(len, _UNSPACED.findall(text)))
    by_words, by_length = (len(text.split()) * 4 + 2) // 3, (len(text) - unspaced) // 4
    return max(by_words, by_length) + unspaced


_LONGEST = 60  # letters; longer runs are data, not names
_KINDS = bytes.maketrans(
    bytes(range(256)),
    bytes(
        65 if 65 <= code <= 90 else 97 if 97 <= code <= 122 or 48 <= code <= 57 else 32
        for code in range(256)
    ),
)
_NAME = re.compile(
    r"(?<![^\W_])(?=[A-Za-z0-9]*(?:[a-z0-9][A-Z]|[A-Z]{2}[a-z]))[A-Za-z0-9]+(?![^\W_])"
)
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_NO_PARTS = re.compile(r"[A-Z]+s|\d+[A-Za-z]+")  # PDFs, 5K
_AT_ALL_JOINED = re.compile(r"[^\W_][_./:\\#@+=-]+[^\W_]")
_JOINED = re.compile(
    r"[^\W_][_.:\\#@+=]+[^\W_]|\d[/-]+[^\W_]|[^\W_][/-]+\d|/[^\W_]+/|(?<![^\W_])[^\W_]++/[^\W_]++/"
)
_TOKEN = re.compile(r"""[^\s\[\](){}<>"'`|,;]+""")
_VERSION = re.compile(r"v?(\d+(?:\.\d+)+)")
_SIGNED = {"c++": "cplusplus cpp", "c#": "csharp"}
_SIGNED_NAME = re.compile(r"(?<![^\W_])(?:[Cc]\+\+|C#)(?![^\W_])")


def may_hold_names(text: str) -> bool:
    """Whether there can be anything for `parts_of_names`: a quick look, since most texts have none."""
    kinds = text.encode("utf-8", "replace").translate(_KINDS)
    return b"aA" in kinds or b"AAa" in kinds or "C#" in text or ("+" in text and "++" in text)


def _parted(text: str) -> list[list[str]]:
    """The parts of every name in a text, once each; a run of random letters and iPhone have none."""
    names = (
        (name, _PART.findall(name))
        for name in dict.fromkeys(_NAME.findall(text))
        if len(name) <= _LONGEST
    )
    return [
        parts
        for name, parts in names
        if len(parts) > 1
        and all(len(part) > 1 or part.isdigit() for part in parts)
        and not _NO_PARTS.fullmatch(name)
    ]


def sequences_in(text: str) -> list[tuple[str, ...]]:
    """What is one in a question, several words to the index: `path/to.py`, `v1.2.3`, `getUserName`; and/or alone."""
    if not (_AT_ALL_JOINED.search(text) or may_hold_names(text)):
        return []
    tokens = _TOKEN.findall(text)
    found: list[tuple[str, ...]] = []
    for token in tokens:
        if "://" in token and len(tokens) > 1:
            continue  # an address that a text refers to
        found += [tuple(map(str.lower, parts)) for parts in _parted(token)]
        if not (_JOINED.search(token) if len(tokens) > 1 else _AT_ALL_JOINED.search(token)):
            continue
        words = tuple(words_in_order(token))
        if len(words) > 1 and not any(map(is_unspaced, words)):
            found.append(words)
        if version := _VERSION.fullmatch(token.strip(".:!?").lower()):
            first, *rest = words_in_order(version[1])
            found += [(first, *rest), (f"v{first}", *rest)]
    return list(dict.fromkeys(found))


def parts_of_names(text: str) -> str:
    """The parts of the names in a text as further words, "" where there are none."""
    if not may_hold_names(text):
        return ""
    signed = dict.fromkeys(name.lower() for name in _SIGNED_NAME.findall(text))
    return "\n".join([*map(" ".join, _parted(text)), *(_SIGNED[name] for name in signed)])


# A note says its language itself (`lang: de`), or it shows in its small words. English and what cannot be told are "".

LANGUAGES = tuple(_SMALL_WORDS)
# Letters that make one small word enough.
_TELLING_LETTERS = {"de": "äöüß", "es": "ñ¿¡", "fr": "œçêèà", "it": "òìùè", "nl": "ĳ", "pt": "ãõ"}

_SAMPLE = 300  # characters from the beginning, and as many from the middle
_LEAST = 2  # different small words
_SHARE = 0.08  # of the sample's different words; a text of lists and names has about this many


def _plain(word: str) -> str:
    if word.isascii():
        return word
    return "".join(
        c for c in unicodedata.normalize("NFD", word) if not unicodedata.combining(c)
    ).replace("ß", "ss")


_STOP = {
    language: frozenset(map(_plain, words.split())) for language, words in _SMALL_WORDS.items()
}
_TELLING: dict[str, tuple[str, ...]] = {}  # a small word no English text has, and whose it may be
for _language, _words in _SMALL_WORDS.items():
    for _word in {
        form for word in _words.split() for form in (word, _plain(word), word.replace("'", "’"))
    }:
        if _word not in _ALSO_ENGLISH:
            _TELLING[_word] = (*_TELLING.get(_word, ()), _language)


def language_of(text: str, told: str | None = None) -> str:
    """The language of a note, one of LANGUAGES or "". What the note says itself is believed."""
    if told:
        code = told.strip().casefold()[:2]  # de, de-AT, pt_BR
        return code if code in LANGUAGES else ""
    middle = len(text) // 2
    sample = (
        text if len(text) <= 2 * _SAMPLE else f"{text[:_SAMPLE]} {text[middle : middle + _SAMPLE]}"
    )
    in_order = sample.lower().split()
    if _TELLING.keys().isdisjoint(in_order):
        return ""
    words = set(in_order)
    known = _TELLING.keys() & words
    if len(known) < _SHARE * len(words):
        return ""
    found = Counter(language for word in known for language in _TELLING[word])
    if any(word.startswith(("l'", "d'", "l’", "d’")) for word in words):
        found.update(("fr", "it"))
    if not sample.isascii():
        letters = frozenset(sample.lower())
        found.update(
            language
            for language, telling in _TELLING_LETTERS.items()
            if not letters.isdisjoint(telling)
        )
    best = max(LANGUAGES, key=lambda language: found[language])
    return best if found[best] >= _LEAST and found[best] > len(STOP_WORDS & words) else ""


def holding_together(words: Iterable[str], languages: Collection[str]) -> frozenset[str]:
    """Those words of a question that only hold it together, when it is in one of the vault's `languages`."""
    plain = {word: _plain(word) for word in words}
    found = Counter(
        language for word in plain for language in _TELLING.get(word, ()) if language in languages
    )
    most = max(found.values(), default=0)
    if not most or sum(word in STOP_WORDS for word in plain) > most:
        return frozenset()
    small = frozenset().union(
        *(_STOP[language] for language, count in found.items() if count == most)
    )
    return frozenset(word for word, form in plain.items() if form in small)


MARKS = {language: chr(0xE001 + place) for place, language in enumerate(LANGUAGES)}
_STEMMERS = {"": "English", "de": "German", "es": "Spanish", "fr": "French", "it": "Italian"}
_STEMMERS |= {"nl": "Dutch", "pt": "Portuguese"}
_ONE_AT_A_TIME = threading.Lock()  # a stemmer keeps the word it works on


def stems_of(text: str, language: str) -> str:
    """The stems of a text's words of letters alone, in order, without those that only hold it together."""
    words = (word for word in _split(text) if word.isalpha() and not _UNSPACED.search(word))
    return " ".join(stem(word, language) for word in words if _plain(word) not in _STOP[language])


@lru_cache(maxsize=20_000)
def stem(word: str, language: str) -> str:
    """The marked stem of a word in small letters. The mark comes last, where no ending can be taken off it again."""
    with _ONE_AT_A_TIME:
        return str(_stemmer(language).stemWord(word)) + MARKS.get(language, "")


@cache
def _stemmer(language: str) -> Any:
    name = _STEMMERS[language]
    return getattr(
        importlib.import_module(f"snowballstemmer.{name.lower()}_stemmer"), f"{name}Stemmer"
    )()
