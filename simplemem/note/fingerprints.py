"""Short values that tell whether two texts are the same. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

_ADDRESS_OR_TAG = re.compile(r"\]\([^()\n]*\)|<[^<>\n]*>|(?<![a-z])[a-z]++://\S+")
_BLANK = re.compile(r"\s")
_MAX_PIECE_CHARACTERS = 100_000  # a list of all words of a long text would take much memory


def text_hash(text: str) -> bytes:
    """Return 16 bytes that tell whether a text is still the one that a vector was computed from."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16]


def text_key(text: str) -> int | None:
    """Return a number that is equal for two blocks that read the same, or None without words.

    Addresses, HTML tags and white space make no difference. The number has 64 bits and a sign.
    """
    if "](" in text or "<" in text or "://" in text:
        text = _ADDRESS_OR_TAG.sub(" ", text)

    digest = hashlib.blake2b(digest_size=8)
    has_word = False
    separator = ""
    for piece in _pieces(text):
        words = " ".join(piece.split())
        if words:
            digest.update((separator + words).encode("utf-8", "surrogatepass"))
            separator = " "
            has_word = has_word or any(map(str.isalnum, words))
    if not has_word:
        return None
    return int.from_bytes(digest.digest(), "big", signed=True)


def _pieces(text: str) -> Iterator[str]:
    """Yield a text in pieces that end at white space, as far as it has any."""
    start = 0
    while len(text) - start > _MAX_PIECE_CHARACTERS:
        blank = _BLANK.search(text, start + _MAX_PIECE_CHARACTERS)
        if blank is None:
            break
        yield text[start : blank.start()]
        start = blank.start()
    yield text[start:]
