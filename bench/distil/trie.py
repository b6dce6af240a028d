"""Build the trie of pieces that `simplemem.providers.piece_vocabulary` reads."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_END = 0
_CODES = 257  # the end of a piece, and 256 bytes
_FREE = -1


def build_trie(pieces: Sequence[bytes]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the arrays `children` and `parents` of a double array; see `PieceVocabulary`.

    The number of a piece is its index. No piece is empty, and none stands twice.
    """
    tree = _tree_of(pieces)
    builder = _Builder(sum(map(len, pieces)) + _CODES)
    # Breadth first; nodes with many children first, because they are hardest to place.
    pending = [(0, tree)]
    while pending:
        node, branch = pending.pop()
        first = builder.place(node, sorted(branch))
        for code, below in branch.items():
            child = first + code
            if isinstance(below, int):
                builder.children[child] = below
            else:
                pending.append((child, below))
    return builder.arrays()


Tree = dict[int, "Tree | int"]
"""The tree below a node, by code; the number of the piece for the code of the end."""


def _tree_of(pieces: Sequence[bytes]) -> Tree:
    """Return the tree of all pieces."""
    root: Tree = {}
    for number, piece in enumerate(pieces):
        branch = root
        for byte in piece:
            below = branch.setdefault(byte + 1, {})
            assert isinstance(below, dict)  # only the end has a number
            branch = below
        branch[_END] = number
    return root


class _Builder:
    """The arrays, with room for the nodes that are placed."""

    def __init__(self, size: int) -> None:
        self.children = np.zeros(size, np.int32)
        self._parents = np.full(size, _FREE, np.int32)
        self._parents[0] = 0
        self._search_start = 1
        self._last = 0

    def place(self, node: int, codes: Sequence[int]) -> int:
        """Find room for the children of a node, take it, and return where code 0 would be."""
        first = self._find_room(codes)
        self.children[node] = first
        for code in codes:
            self._parents[first + code] = node
            self._last = max(self._last, first + code)
        return first

    def _find_room(self, codes: Sequence[int]) -> int:
        """Return the least offset at which the places for all codes are free.

        Regions that are nearly full are not searched again.
        """
        start = max(self._search_start, codes[0] + 1)
        window = 4_096
        while True:
            slots = np.flatnonzero(self._parents[start : start + window] == _FREE) + start
            candidates = slots - codes[0]
            candidates = candidates[candidates > 0]
            for code in codes[1:]:
                candidates = candidates[self._parents[candidates + code] == _FREE]
                if not len(candidates):
                    break
            if len(candidates):
                if len(slots) < window // 20 and start == self._search_start:
                    self._search_start = start + window // 2
                return int(candidates[0])
            if start == self._search_start and len(slots) < window // 20:
                self._search_start = start + window // 2
            start += window

    def arrays(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the arrays, with room at their end for any code of the last node."""
        size = self._last + 1 + _CODES
        return self.children[:size], self._parents[:size]
