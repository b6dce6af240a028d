"""Ids of places: passages and blocks of a note.

An id is the note's id and the number of the place in the note. A bit marks blocks.
"""

from __future__ import annotations

SHIFT = 20  # bits of the number in the note
BLOCK = 1 << 19  # set in the numbers of blocks
