"""Split words of any language into pieces that have vectors.

The pieces are those of the multilingual tokenizer XLM-R, in lower case. docs/model-card.md
describes how they were chosen.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from numpy.typing import NDArray

# A word is a run of letters and digits. Vowel signs and accents, such as those of Hebrew, Arabic,
# Hindi and Thai, belong to the word, although they are no letters. So does an apostrophe within it.
_MARKS: Final = (
    "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u0900-\u0903\u093a-\u094f\u0962\u0963\u0e31\u0e34-\u0e3a\u0e47-\u0e4e"
)
_WORD: Final = re.compile(rf"[^\W_](?:[\w{_MARKS}]|['’](?=\w))*")
_ROOT: Final = 0  # the first node of the trie
_END: Final = 0  # the code of the end of a piece in the trie; a byte has the code byte + 1
_NO_PIECE: Final = -1
# Scores are thousandths of a logarithm of probability: most pieces have between -9,000 and -14,000.
_UNREACHED: Final = -1_000_000_000
_NO_START: Final = -2_000  # for leaving out the space before a word: its first piece has none
_UNKNOWN: Final = -25_000  # for leaving out any other byte, because no piece covers it
_MAX_CACHED_WORDS: Final = 30_000


class PieceVocabulary:
    """Splits words into their most probable pieces. The pieces of the last words are remembered.

    The pieces are in a trie of bytes, in lower case. A space before a piece says that it begins a
    word. A piece has a number, and `scores` has its logarithm of probability in thousandths.

    The trie is a double array. A node is an index of both arrays. Its child for a code is the node
    `children[node] + code`, if `parents` of that node is `node`; otherwise it has no such child.
    If a piece ends at a node, the node has a child for `_END`, and `children` of this child is the
    number of the piece.
    """

    def __init__(self, children: NDArray[Any], parents: NDArray[Any], scores: NDArray[Any]) -> None:
        """Keep the arrays, which are described at the class, without copying them."""
        # An element of a memoryview is a plain int, which Python reads faster than one of numpy.
        self._children = children.data
        self._parents = parents.data
        self._scores = scores.data
        cached = lru_cache(maxsize=_MAX_CACHED_WORDS)
        self._pieces = cached(self._split)

    def pieces_of(self, text: str) -> list[int]:
        """Return the numbers of the pieces of a text, in their order.

        White space, punctuation and characters that no piece has are left out, so the list may be
        empty. The text may be in upper case.
        """
        if text.isalnum():
            return list(self._pieces(text))  # one word, as most texts are
        words = _WORD.findall(text)
        return list(chain.from_iterable(map(self._pieces, words)))

    def has(self, word: str) -> bool:
        """Return whether a word in lower case is one piece, as frequent words are."""
        return self._piece_of(f" {word}".encode()) != _NO_PIECE

    def _split(self, word: str) -> tuple[int, ...]:
        """Return the numbers of the most probable pieces of a word."""
        plain = unicodedata.normalize("NFKC", word).lower()
        text = f" {plain}".encode()
        whole = self._piece_of(text)
        if whole != _NO_PIECE:
            return (whole,)

        starts, pieces = self._best_last_pieces(text)
        numbers = []
        end = len(text)
        while end > 0:
            if pieces[end] != _NO_PIECE:
                numbers.append(pieces[end])
            end = starts[end]
        return tuple(reversed(numbers))

    def _piece_of(self, text: bytes) -> int:
        """Return the number of the piece that is exactly this text, or `_NO_PIECE`."""
        children = self._children
        parents = self._parents
        node = _ROOT
        for byte in text:
            child = children[node] + byte + 1
            if parents[child] != node:
                return _NO_PIECE
            node = child
        leaf = children[node] + _END
        return children[leaf] if parents[leaf] == node else _NO_PIECE

    def _best_last_pieces(self, text: bytes) -> tuple[list[int], list[int]]:
        """Return the last piece of the most probable way to split each beginning of a text.

        Both lists have an element for each length of a beginning, from 0 on: the position at which
        the last piece starts, and its number. The number is `_NO_PIECE` if the last byte is left
        out. This is Viterbi's algorithm.
        """
        # The trie is walked here, not in a function, because this is slow for each new word.
        children = self._children
        parents = self._parents
        piece_scores = self._scores
        size = len(text)
        scores = [_UNREACHED] * (size + 1)
        scores[0] = 0
        starts = [0] * (size + 1)
        pieces = [_NO_PIECE] * (size + 1)
        for start in range(size):
            score = scores[start]
            if score == _UNREACHED:
                continue

            end = start + 1
            left_out = score + (_UNKNOWN if start else _NO_START)
            if left_out > scores[end]:
                scores[end] = left_out
                starts[end] = start
                pieces[end] = _NO_PIECE

            node = _ROOT
            for end in range(start + 1, size + 1):
                child = children[node] + text[end - 1] + 1
                if parents[child] != node:
                    break
                node = child
                leaf = children[node] + _END
                if parents[leaf] != node:
                    continue
                piece = children[leaf]
                total = score + piece_scores[piece]
                if total > scores[end]:
                    scores[end] = total
                    starts[end] = start
                    pieces[end] = piece
        return starts, pieces
