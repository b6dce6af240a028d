"""Ids of places, which are the passages and blocks of notes.

An id is `note id << SHIFT | number`; the number of a block has the bit `BLOCK`.
"""

from __future__ import annotations

SHIFT = 20  # the number of bits for the number of a place in its note
BLOCK = 1 << 19
