"""Values of the segment format, for its readers and writers.

docs/internals/term-index.md describes the format.
"""

from __future__ import annotations

from typing import NamedTuple

TITLE = 0  # the first ordinal of a note
SUMMARY = 1  # the second
FIRST_BLOCK = 2  # and the ordinals from here on
MAX_COUNT = 255  # of one posting; a term that occurs more often in an ordinal has several postings


class Sizes(NamedTuple):
    """How many notes and blocks there are, and how many tokens these have.

    `words` is the number of all tokens of the notes, extra ones too. `block_words` is that of the
    blocks, where the tokens of its note's title count once more in each block.
    """

    notes: int
    words: int
    blocks: int
    block_words: int


class PackedSegment(NamedTuple):
    """A segment as it is stored in one row: its sizes, and its notes and terms as bytes."""

    sizes: Sizes
    documents: bytes
    terms: bytes


# BM25 as FTS5 computes it (docs/search.md).
TITLE_WEIGHT = 10.0
BODY_WEIGHT = 1.0
K1 = 1.2
B = 0.75
MIN_IDF = 1e-6
