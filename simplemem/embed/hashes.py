"""By what a vector is known again: the hash of the text it was made of, in the index and in the cache alike."""

from __future__ import annotations

import hashlib


def hash_of(text: str) -> bytes:
    """What tells whether a vector still fits its text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16]
