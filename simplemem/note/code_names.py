"""Names in code, such as `getUserName` and `path/to/file`, and their parts. Pure.

The index has the parts of a name as further words. A query that contains a name also looks for
its parts as a sequence of words.
"""

from __future__ import annotations

import re
import string
from typing import Final

from simplemem.note.letters import is_unspaced
from simplemem.note.words import words_in_order

_MAX_NAME_CHARACTERS: Final = 60  # longer runs of letters are data
_COMPOUND_NAME: Final = re.compile(
    r"(?<![^\W_])(?=[A-Za-z0-9]*(?:[a-z0-9][A-Z]|[A-Z]{2}[a-z]))[A-Za-z0-9]+(?![^\W_])"
)
_NAME_PART: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_PLURAL_OR_UNIT: Final = re.compile(r"[A-Z]+s|\d+[A-Za-z]+")  # PDFs, 5K

# Words joined by any mark, and those joined by one that seldom stands between words of a sentence:
# `snake_case` and `path/to/file`, but neither `well-known` nor `and/or`.
_JOINED_BY_ANY_MARK: Final = re.compile(r"[^\W_][_./:\\#@+=-]+[^\W_]")
_JOINED: Final = re.compile(
    r"[^\W_][_.:\\#@+=]+[^\W_]|\d[/-]+[^\W_]|[^\W_][/-]+\d|/[^\W_]+/"
    r"|(?<![^\W_])[^\W_]++/[^\W_]++/"
)
_TOKEN: Final = re.compile(r"""[^\s\[\](){}<>"'`|,;]+""")
_VERSION: Final = re.compile(r"v?(?P<number>\d+(?:\.\d+)+)")
_SIGN_NAME: Final = re.compile(r"(?<![^\W_])(?:[Cc]\+\+|C#)(?![^\W_])")
_WORDS_OF_SIGN_NAME: Final = {"c++": "cplusplus cpp", "c#": "csharp"}


def _build_letter_kinds() -> bytes:
    """Return a table for `bytes.translate`: A for capitals, a for small letters and digits."""
    table = bytearray(b" " * 256)
    for code in string.ascii_uppercase.encode():
        table[code] = ord("A")
    for code in (string.ascii_lowercase + string.digits).encode():
        table[code] = ord("a")
    return bytes(table)


_LETTER_KINDS: Final = _build_letter_kinds()


def may_contain_names(text: str) -> bool:
    """Return whether `parts_of_names` can find anything. Most texts have no names in code.

    The check is much faster than the search.
    """
    kinds = text.encode("utf-8", "replace").translate(_LETTER_KINDS)
    if b"aA" in kinds or b"AAa" in kinds:
        return True
    if "C#" in text:
        return True
    return "+" in text and "++" in text  # the search for one character is the faster one


def _split_names(text: str) -> list[list[str]]:
    """Return the parts of each compound name in a text, with each name once."""
    parts_by_name = []
    for name in dict.fromkeys(_COMPOUND_NAME.findall(text)):
        if len(name) > _MAX_NAME_CHARACTERS:
            continue
        parts: list[str] = _NAME_PART.findall(name)
        if _are_words(parts) and not _PLURAL_OR_UNIT.fullmatch(name):
            parts_by_name.append(parts)
    return parts_by_name


def _are_words(parts: list[str]) -> bool:
    """Return whether the parts of a name are words; those of random letters or `iPhone` are not."""
    if len(parts) < 2:
        return False
    single_characters = [part for part in parts if len(part) == 1]
    return all(map(str.isdigit, single_characters))


def sequences_in(text: str) -> list[tuple[str, ...]]:
    """Return the words of each part of a query that is one expression but several indexed words.

    Such expressions are `path/to/file.py`, `v1.2.3` and `getUserName`. `and/or` is one only if it
    is the whole query. A web address is none in a longer query, which only refers to it.
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
    """Return the sequences of words in one token of a query."""
    sequences = [tuple(map(str.lower, parts)) for parts in _split_names(token)]
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
    """Return the parts of the names in a text as further words to index; "" if there are none."""
    if not may_contain_names(text):
        return ""

    lines = list(map(" ".join, _split_names(text)))
    sign_names = dict.fromkeys(map(str.lower, _SIGN_NAME.findall(text)))
    lines += [_WORDS_OF_SIGN_NAME[name] for name in sign_names]
    return "\n".join(lines)
