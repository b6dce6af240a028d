"""Split words of any language into pieces that have vectors.

The pieces are those of the multilingual tokenizer XLM-R, in lower case. docs/model-card.md
describes how they were chosen.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from numpy.typing import NDArray

# A word is a run of letters and digits. The vowel signs and accents of Hebrew, Arabic, Hindi and
# Thai belong to the word, although they are no letters; an apostrophe does within a word.
_MARKS: Final = (
    "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u0900-\u0903\u093a-\u094f\u0962\u0963\u0e31\u0e34-\u0e3a\u0e47-\u0e4e"
)
_WORD: Final = re.compile(rf"[^\W_](?:[\w{_MARKS}]|['’](?=\w))*")
_ROOT: Final = 0
_END: Final = 0  # the code of the end of a piece in the trie; that of a byte is one more than it
_UNREACHED: Final = -1_000_000_000
# Scores are thousandths of a logarithm of probability: most pieces have between -9,000 and -14,000.
_NO_START: Final = -2_000  # for a word whose first piece does not begin words
_UNKNOWN: Final = -25_000  # for a byte that no piece covers
_NO_PIECE: Final = -1
_MAX_CACHED_WORDS: Final = 20_000


class PieceVocabulary:
    """Splits words into their most probable pieces. The pieces of the last words are remembered.

    The pieces are in a trie of bytes, as a double array: the child of a node for a code is at
    `children[node] + code`, if the node there has it as its `parents`. The child for `_END` says
    that a piece ends at the node, and has its number in `children`. A space stands for the
    beginning of a word.
    """

    def __init__(self, children: NDArray[Any], parents: NDArray[Any], scores: NDArray[Any]) -> None:
        # An element of a memoryview is a plain int, which Python reads faster than one of numpy.
        self._children = children.data
        self._parents = parents.data
        self._scores = scores.data
        cached = lru_cache(maxsize=_MAX_CACHED_WORDS)
        self._pieces = cached(self._split)

    def pieces_of(self, text: str) -> array[int]:
        """Return the numbers of the pieces of a text, in their order.

        Marks, and letters that no piece has, are left out.
        """
        numbers = array("i")
        for word in _WORD.findall(text):
            numbers.extend(self._pieces(word))
        return numbers

    def _split(self, word: str) -> array[int]:
        """Return the numbers of the most probable pieces of a word."""
        plain = unicodedata.normalize("NFKC", word).lower()
        text = f" {plain}".encode()
        ways = self._best_ways(text)

        numbers = array("i")
        end = len(text)
        while end > 0:
            start, piece = ways[end]
            if piece != _NO_PIECE:
                numbers.append(piece)
            end = start
        numbers.reverse()
        return numbers

    def _best_ways(self, text: bytes) -> Sequence[tuple[int, int]]:
        """Return for each end in the text the start and the number of the best last piece there.

        The number is `_NO_PIECE` for a byte that is left out. This is Viterbi's algorithm.
        """
        size = len(text)
        scores = [_UNREACHED] * (size + 1)
        scores[0] = 0
        ways = [(0, _NO_PIECE)] * (size + 1)
        for start in range(size):
            score = scores[start]
            if score == _UNREACHED:
                continue

            left_out = score + (_UNKNOWN if start else _NO_START)
            if left_out > scores[start + 1]:
                scores[start + 1] = left_out
                ways[start + 1] = (start, _NO_PIECE)
            for end, piece in self._pieces_at(text, start):
                total = score + self._scores[piece]
                if total > scores[end]:
                    scores[end] = total
                    ways[end] = (start, piece)
        return ways

    def _pieces_at(self, text: bytes, start: int) -> list[tuple[int, int]]:
        """Return the end and the number of each piece that the text has at a start."""
        children = self._children
        parents = self._parents
        found = []
        node = _ROOT
        for position in range(start, len(text)):
            child = children[node] + text[position] + 1
            if parents[child] != node:
                break
            node = child
            leaf = children[node] + _END
            if parents[leaf] == node:
                found.append((position + 1, children[leaf]))
        return found
