"""Texts, their lines, letters and words, names in code, and languages. Pure.

The index and a query split and fold a text alike, so that a word is found however it is written.
The index has the parts of a name in code, such as `getUserName`, as further words. The language of
a note is the one that its frontmatter names (`lang: de`), else the one that its stop words show. It
is "" for English and for a note whose language is not clear.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

# -- texts of messages


def format_count(number: int, thing: str, things: str = "") -> str:
    """Return a number with its noun, for a message: `1 note`, `1,200 notes`.

    `things` is the plural, if it is not formed by adding an s: `2 entities`.
    """
    if number == 1:
        return f"1 {thing}"
    plural = things or f"{thing}s"
    return f"{number:,} {plural}"


def shorten(text: str, max_characters: int) -> str:
    """Return a text on one line, cut with `…` if it has more than `max_characters`.

    It is cut between words if it can be. The `…` is not counted.
    """
    line = " ".join(text.split())
    if len(line) <= max_characters:
        return line
    whole_words = line[:max_characters].rsplit(" ", 1)[0]
    return f"{whole_words}…"


def well_formed(text: str) -> str:
    """Return a text that can be encoded: U+FFFD replaces each half of a surrogate pair.

    A careless client may send such halves. Two halves that belong together become a character.
    """
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


# -- lines

BYTE_ORDER_MARK: Final = "\ufeff"
LINE_END: Final = re.compile(r"\r\n?|\n")
_NOT_BLANK: Final = re.compile(r"\S")


def count_lines(text: str, start: int, end: int) -> int:
    """Return how many line ends are in text[start:end]. CRLF is one."""
    if text.find("\r", start, end) < 0:
        return text.count("\n", start, end)
    return sum(1 for _ in LINE_END.finditer(text, start, end))


def newline_of(text: str) -> str:
    """Return the first line end of a text (LF, CRLF or CR), or LF if it has none."""
    line_end = LINE_END.search(text)
    return line_end[0] if line_end else "\n"


def skip_blank(text: str, start: int) -> int:
    """Return the offset of the first character from `start` on that is no white space.

    It is the length of the text if there is none.
    """
    match = _NOT_BLANK.search(text, start)
    return match.start() if match else len(text)


# -- letters

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
    """A table for `str.translate` that folds letters and puts spaces between words.

    What is not part of a word becomes a space. The table fills itself. The Unicode categories are
    those of Python. The tokenizer knows an older version of Unicode, and would take a recent emoji
    for a letter.
    """

    def __missing__(self, code: int) -> str:
        """Return and keep what a character becomes that no rule folds: itself, or a space."""
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
    """Return one form of a text, however its accents, syllables or ligatures are written.

    Everything that is not part of a word becomes a space. Latin accents and letter case stay: the
    tokenizer of the index folds those.
    """
    return unicodedata.normalize("NFKC", text).translate(_LETTERS)


def is_unspaced(word: str) -> bool:
    """Return whether a word consists only of characters of scripts without spaces."""
    return not word.isascii() and UNSPACED_RUN.fullmatch(word) is not None


def without_accents(text: str) -> str:
    """Return a text without combining marks and with ss for ß; letter case stays."""
    if text.isascii():
        return text
    decomposed = unicodedata.normalize("NFD", text)
    letters = [letter for letter in decomposed if not unicodedata.combining(letter)]
    return "".join(letters).replace("ß", "ss")


# -- names in code

_MAX_NAME_CHARACTERS: Final = 60  # longer runs of letters are data
# A whole run of ASCII letters and digits with a capital behind a small letter (`getUser`), or with
# two capitals before a small letter (`HTMLParser`).
_COMPOUND_NAME: Final = re.compile(
    r"(?<![^\W_])(?=[A-Za-z0-9]*(?:[a-z0-9][A-Z]|[A-Z]{2}[a-z]))[A-Za-z0-9]+(?![^\W_])"
)
_NAME_PART: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_PLURAL_OR_UNIT: Final = re.compile(r"[A-Z]+s|\d+[A-Za-z]+")  # PDFs, 5K

# Words joined by any mark, and those joined by one that seldom stands between words of a sentence:
# `snake_case` and `path/to/file`, but neither `well-known` nor `and/or`.
_JOINED_BY_ANY_MARK: Final = re.compile(r"[^\W_][_./:\\#@+=-]+[^\W_]")
_JOINED: Final = re.compile(
    r"[^\W_][_.:\\#@+=]+[^\W_]"  # snake_case, file.py
    r"|\d[/-]+[^\W_]|[^\W_][/-]+\d"  # 2026-01, v2-beta1
    r"|/[^\W_]+/"  # path/to/file
)
_TOKEN: Final = re.compile(r"""[^\s\[\](){}<>"'`|,;]+""")
_VERSION: Final = re.compile(r"v?(?P<number>\d+(?:\.\d+)+)")
# Names with signs that the tokenizer drops, and the words that are indexed in their place.
_SIGN_NAME: Final = re.compile(r"(?<![^\W_])(?:[Cc]\+\+|C#)(?![^\W_])")
_WORDS_OF_SIGN_NAME: Final = {"c++": "cplusplus cpp", "c#": "csharp"}


def _build_letter_kinds() -> bytes:
    """Return a table for `bytes.translate` that tells apart the kinds of letters.

    It gives A for capitals, a for small letters and digits, and a space for anything else.
    """
    table = bytearray(b" " * 256)
    for code in string.ascii_uppercase.encode():
        table[code] = ord("A")
    for code in (string.ascii_lowercase + string.digits).encode():
        table[code] = ord("a")
    return bytes(table)


_LETTER_KINDS: Final = _build_letter_kinds()


def may_contain_names(text: str) -> bool:
    """Return whether `parts_of_names` can find anything; False is certain, True is not.

    Most texts have no names in code, and the check is much faster than the search.
    """
    kinds = text.encode("utf-8", "replace").translate(_LETTER_KINDS)
    if b"aA" in kinds or b"AAa" in kinds:
        return True
    if "C#" in text:
        return True
    return "+" in text and "++" in text  # the search for one character is the faster one


def _split_names(text: str) -> list[list[str]]:
    """Return the parts of each compound name in a text, such as ["get", "User", "Name"].

    Each name counts once. Long runs of letters, and names whose parts are no words, are left out.
    """
    parts_by_name = []
    for name in dict.fromkeys(_COMPOUND_NAME.findall(text)):
        if len(name) > _MAX_NAME_CHARACTERS:
            continue
        parts: list[str] = _NAME_PART.findall(name)
        if _are_words(parts) and not _PLURAL_OR_UNIT.fullmatch(name):
            parts_by_name.append(parts)
    return parts_by_name


def _are_words(parts: list[str]) -> bool:
    """Return whether the parts of a name are words.

    They are not if there is only one part, or if a part is a single letter, as in `iPhone` and in
    random letters. A single digit may be a part.
    """
    if len(parts) < 2:
        return False
    single_characters = [part for part in parts if len(part) == 1]
    return all(map(str.isdigit, single_characters))


def sequences_in(text: str) -> list[tuple[str, ...]]:
    """Return the words of each expression in a query that is several words in the index.

    Such expressions are `path/to/file.py`, `v1.2.3` and `getUserName`; a search prefers their words
    side by side. `and/or` is one only if it is the whole query. A web address is none in a longer
    query, which only refers to it.
    """
    if not (_JOINED_BY_ANY_MARK.search(text) or may_contain_names(text)):
        return []

    tokens = _TOKEN.findall(text)
    is_alone = len(tokens) == 1
    sequences: list[tuple[str, ...]] = []
    for token in tokens:
        if is_alone or "://" not in token:
            sequences += _sequences_of_token(token, is_alone)
    return list(dict.fromkeys(sequences))


def _sequences_of_token(token: str, is_alone: bool) -> list[tuple[str, ...]]:
    """Return the sequences of words in one token of a query, in lower case.

    `is_alone` says that the token is the whole query: then any mark may join its words.
    """
    sequences: list[tuple[str, ...]] = []
    for parts in _split_names(token):
        words_of_name = tuple(map(str.lower, parts))
        sequences.append(words_of_name)

    pattern = _JOINED_BY_ANY_MARK if is_alone else _JOINED
    if not pattern.search(token):
        return sequences

    words = tuple(words_in_order(token))
    has_unspaced = any(map(is_unspaced, words))
    if len(words) > 1 and not has_unspaced:
        sequences.append(words)

    version = _VERSION.fullmatch(token.strip(".:!?").lower())
    if version:  # a note may have it with or without the v
        major, *minor = words_in_order(version["number"])
        sequences.append((major, *minor))
        sequences.append((f"v{major}", *minor))
    return sequences


def parts_of_names(text: str) -> str:
    """Return the parts of the names in a text as further words to index; "" if there are none.

    Each name has a line: `getUserName` gives "get User Name", `C++` gives "cplusplus cpp".
    """
    if not may_contain_names(text):
        return ""

    lines = [" ".join(parts) for parts in _split_names(text)]
    sign_names_in_order = map(str.lower, _SIGN_NAME.findall(text))
    sign_names = dict.fromkeys(sign_names_in_order)
    lines += [_WORDS_OF_SIGN_NAME[name] for name in sign_names]
    return "\n".join(lines)


# -- languages


def _read_stop_words() -> dict[str, list[str]]:
    """Return the sections of `stop_words.txt`: the words by the name of the section."""
    text = Path(__file__).with_name("stop_words.txt").read_text(encoding="utf-8")
    sections = {}
    for section in text.split("\n[")[1:]:
        name, words = section.split("]\n", 1)
        sections[name] = words.split()
    return sections


_SECTIONS: Final = _read_stop_words()

# Words that only hold a sentence together, such as `the`.
STOP_WORDS: Final = frozenset(_SECTIONS.pop("en"))

# Words that an English text has as well, so that they do not tell the language of a note.
_ALSO_ENGLISH: Final = STOP_WORDS | frozenset(_SECTIONS.pop("shared"))

# The other sections are those of the languages besides English.
LANGUAGES: Final = tuple(_SECTIONS)

# Letters that show a language: with one of them, a single stop word is enough.
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
_MIN_SCORE: Final = 2  # stop words, a letter of the language counting as one
# If fewer of the sample's words are stop words, its language is not clear. Even a text of lists and
# names has about this many.
_MIN_STOP_WORD_SHARE: Final = 0.08


def _find_languages_of_words() -> dict[str, tuple[str, ...]]:
    """Return the languages of each stop word, in all its spellings.

    Words that English has as well are left out.
    """
    languages: dict[str, tuple[str, ...]] = {}
    for language, words in _SECTIONS.items():
        for spelling in _spellings_of(words) - _ALSO_ENGLISH:
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


_LAST_LATIN_LETTER: Final = "\u024f"

# Stop words that no other language has which is written in Latin letters. Others, such as "do",
# "has" and "in", are words of Polish, Spanish or Italian too.
_ONLY_ENGLISH: Final = frozenset(
    "about after again any are because before being between both could did does doing down during"
    " each few from further having how into its itself just more most myself now once only other"
    " should some that the their them there these they this those through too until very were what"
    " when where which while who whom whose why with would you your yours".split()
)
_LANGUAGES_OF_WORD: Final = _find_languages_of_words()

# Without accents. There is no entry for English: its stop words are STOP_WORDS.
STOP_WORDS_BY_LANGUAGE: Final = {
    language: frozenset(map(without_accents, words)) for language, words in _SECTIONS.items()
}


def language_of(text: str, declared: str | None = None) -> str:
    """Return the language of a note: one of LANGUAGES, or "" for English or an unclear one.

    `declared` is what the frontmatter names, such as `de-AT`. If there is any, it decides, and one
    that is not supported gives "".
    """
    if declared:
        code = declared.strip().casefold()[:2]
        return code if code in LANGUAGES else ""

    sample = _sample(text).lower()
    words_with_repeats = sample.split()
    if _LANGUAGES_OF_WORD.keys().isdisjoint(words_with_repeats):
        return ""

    words = set(words_with_repeats)
    stop_words = _LANGUAGES_OF_WORD.keys() & words
    if len(stop_words) < _MIN_STOP_WORD_SHARE * len(words):
        return ""

    scores = _score_languages(sample, words, stop_words)
    best = max(LANGUAGES, key=lambda language: scores[language])
    best_score = scores[best]
    english_score = len(STOP_WORDS & words)
    if best_score < _MIN_SCORE or best_score <= english_score:
        return ""
    return best


def may_be_english(text: str) -> bool:
    """Return whether a text is English or unclear: no other language or script shows."""
    if any(letter > _LAST_LATIN_LETTER and letter.isalpha() for letter in text):
        return False
    return language_of(text) == ""


def is_english_question(question: str) -> bool:
    """Return whether a question is English: it has a word that English questions have.

    A few short ones lack such a word, and are taken for questions in another language.
    """
    return may_be_english(question) and not _ONLY_ENGLISH.isdisjoint(split_words(question))


def _sample(text: str) -> str:
    """Return the beginning and the middle of a long text, which show its language well enough."""
    if len(text) <= 2 * _SAMPLE_CHARACTERS:
        return text
    beginning = text[:_SAMPLE_CHARACTERS]
    middle_start = len(text) // 2
    middle = text[middle_start : middle_start + _SAMPLE_CHARACTERS]
    return f"{beginning} {middle}"


def _score_languages(
    sample: str,
    words: set[str],
    stop_words: set[str],
) -> Counter[str]:
    """Return how many signs of each language a sample in lower case has.

    Signs are stop words, an elision and a letter of the language. `words` are those of the sample,
    `stop_words` those of them that are stop words of any language but English.
    """
    scores: Counter[str] = Counter()
    for word in stop_words:
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

    The language is the one with the most stop words in the query. Several with equally many count
    together. The result is empty if the query has none of their stop words, or more English ones.
    `words` are in lower case.
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


# -- words

# Stop words of languages without spaces, as pairs of characters.
_UNSPACED_STOP_PAIRS: Final = frozenset(
    """
    です ます した して てい いる ある こと これ それ から ため とい いう でし まし すか
    我们 你们 他们 什么 怎么 时候 这个 那个 哪里 為什 为什 我們 什麼 怎麼 時候 這個
    니다 습니 입니 합니 에서 으로 는지
    """.split()
)

_SPACED_DIGITS: Final = re.compile(r"\d \d")
_SPACE_BESIDE_LETTER: Final = re.compile(r"(?<=\D) | (?=\D)")
_find_ascii_words: Final = re.compile("[a-z0-9]+").findall


def searchable(text: str) -> str:
    """Return a text as it is indexed: the words that the tokenizer of the index finds.

    Letters are folded. A run of an unspaced script becomes its pairs of neighbouring characters,
    then its single characters. A text in ASCII stays as it is.
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
    """Return each pair of neighbouring characters; none for a single character."""
    return list(map("".join, pairwise(characters)))


def split_words(text: str) -> list[str]:
    """Return the words of a text in lower case, split where the tokenizer of the index splits.

    A run of an unspaced script is one word. Words repeat as in the text.
    """
    if text.isascii():
        return _find_ascii_words(text.lower())
    return fold_letters(text).lower().split()


def phrase_segments(text: str) -> list[list[str]]:
    """Return the words of a phrase in lower case, in segments of neighbouring words.

    In the `searchable` form of a text that contains the phrase, the words of a segment are
    neighbours. A run of an unspaced script, as its pairs of characters, ends a segment, because its
    single characters follow its pairs there. Returns [] for a phrase without words.
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
    """Return the words of a query in lower case and in their order, repeated ones included.

    A run of an unspaced script gives its pairs of neighbouring characters.
    """
    if text.isascii():
        return split_words(text)
    return [word for segment in phrase_segments(text) for word in segment]


def unique_words(text: str) -> list[str]:
    """Return the words of a text, as `words_in_order` does, but each of them once."""
    return list(dict.fromkeys(words_in_order(text)))


def words_key(name: str) -> str:
    """Return a key that names share which differ only in case, accents, punctuation or hyphens.

    `Style Settings` and `style-settings` share one, as do `Quick Add` and `QuickAdd`. Spaces
    between digits stay: `1.1` and `11` differ. The key is "" for a name without words.
    """
    return key_of_words(words_in_order(name))


def key_of_words(words: Sequence[str]) -> str:
    """Return the `words_key` of a name with these words, which are in lower case."""
    joined = "".join(words)
    is_plain = joined.isascii() and joined.isalnum()
    if is_plain and not _SPACED_DIGITS.search(" ".join(words)):
        return joined  # so it is for most names, and faster

    # An emoji may leave a mark that is neither a letter nor a digit.
    written_words = [word for word in words if any(map(str.isalnum, word))]
    plain = without_accents(" ".join(written_words))
    return _SPACE_BESIDE_LETTER.sub("", plain)


def neighbouring_words(words: list[str]) -> list[tuple[str, str]]:
    """Return each pair of neighbouring words once, in order, but no pair of two stop words.

    Only English stop words count.
    """
    pairs = dict.fromkeys(pairwise(words))
    return [pair for pair in pairs if not STOP_WORDS.issuperset(pair)]


def content_words(words: list[str]) -> list[str]:
    """Return the words without English and Japanese, Chinese and Korean stop words.

    If nothing else is left, all words are returned. The words must be in lower case.
    """
    content = [
        word for word in words if word not in STOP_WORDS and word not in _UNSPACED_STOP_PAIRS
    ]
    return content or words


def without_stop_words(text: str) -> str:
    """Return a text without English stop words, for an embedder that averages word vectors.

    Words are what is between white space, compared without case: a stop word with punctuation
    ("it?") stays. Other words stay as they are, with one space between them. May return "".
    """
    words = [word for word in text.split() if word.lower() not in STOP_WORDS]
    return " ".join(words)


def count_tokens(text: str) -> int:
    """Return an estimate of how many tokens a model reads.

    The estimate is four tokens for three words, but at least one for four characters, and one for
    each character of an unspaced script.
    """
    unspaced = 0
    if not text.isascii():
        runs = UNSPACED_RUN.findall(text)
        unspaced = sum(map(len, runs))

    word_count = len(text.split())
    by_words = (word_count * 4 + 2) // 3
    by_length = (len(text) - unspaced) // 4
    return max(by_words, by_length) + unspaced
