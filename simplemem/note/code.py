"""Names as programs write them, by their parts: `getUserName` is also get, user and name; C++ is not C. Pure."""

from __future__ import annotations

import re

from simplemem.note.words import is_unspaced, words_in_order

_LONGEST = 60  # letters; longer runs are data, not names
_KINDS = bytes.maketrans(
    bytes(range(256)),
    bytes(65 if 65 <= code <= 90 else 97 if 97 <= code <= 122 or 48 <= code <= 57 else 32 for code in range(256)),
)
_NAME = re.compile(r"(?<![^\W_])(?=[A-Za-z0-9]*(?:[a-z0-9][A-Z]|[A-Z]{2}[a-z]))[A-Za-z0-9]+(?![^\W_])")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_NO_PARTS = re.compile(r"[A-Z]+s|\d+[A-Za-z]+")  # PDFs, 5K
_AT_ALL_JOINED = re.compile(r"[^\W_][_./:\\#@+=-]+[^\W_]")
_JOINED = re.compile(r"[^\W_][_.:\\#@+=]+[^\W_]|\d[/-]+[^\W_]|[^\W_][/-]+\d|/[^\W_]+/|(?<![^\W_])[^\W_]++/[^\W_]++/")
_TOKEN = re.compile(r"""[^\s\[\](){}<>"'`|,;]+""")
_VERSION = re.compile(r"v?(\d+(?:\.\d+)+)")
_SIGNED = {"c++": "cplusplus cpp", "c#": "csharp"}
_SIGNED_NAME = re.compile(r"(?<![^\W_])(?:[Cc]\+\+|C#)(?![^\W_])")


def may_hold_names(text: str) -> bool:
    """Whether there can be anything for `parts_of_names`: a quick look, since most texts have none."""
    kinds = text.encode("utf-8", "replace").translate(_KINDS)
    return b"aA" in kinds or b"AAa" in kinds or "C#" in text or ("+" in text and "++" in text)


def _parted(text: str) -> list[list[str]]:
    """The parts of every name in a text, once each."""
    names = ((name, _PART.findall(name)) for name in dict.fromkeys(_NAME.findall(text)) if len(name) <= _LONGEST)
    return [parts for name, parts in names if _are_words(parts) and not _NO_PARTS.fullmatch(name)]


def _are_words(parts: list[str]) -> bool:
    """Whether a name is made of words, and is not a run of random letters or a name with a sign before it (iPhone)."""
    return len(parts) > 1 and all(len(part) > 1 or part.isdigit() for part in parts)


def sequences_in(text: str) -> list[tuple[str, ...]]:
    """What is written as one in a question and is several words to the index: `path/to/file.py`, `v1.2.3`, `snake_case`,
    `getUserName`. A version is asked for with its `v` and without. Words of prose that are only joined (well-known,
    and/or) are one when they are the whole question: among others they rank well enough as neighbours."""
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
