"""Build the trie of pieces that `simplemem.providers.piece_vocabulary` reads."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_END = 0  # the code of the end of a piece; a byte has the code byte + 1
_CODES = 257  # the end of a piece, and 256 bytes
_FREE = -1  # in `parents`, for an index that is no node
_WINDOW = 4_096  # the number of indexes that are searched at once
_MIN_FREE = _WINDOW // 20  # a window with fewer free indexes is nearly full


def build_trie(pieces: Sequence[bytes]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the arrays `children` and `parents` of a double array; see `PieceVocabulary`.

    The number of a piece is its index. There must be at least one piece, none may be empty, and
    none may occur twice.
    """
    builder = _Builder()
    pending = [(0, _tree_of(pieces))]  # nodes whose children have no place, with their trees
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
"""The children of a node by their codes: the tree below the child, or for `_END` the number of the
piece that ends at the node."""


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
    """Places nodes in the two arrays, which grow as needed. The root is the node 0."""

    def __init__(self) -> None:
        self.children = np.zeros(1, np.int32)
        self._parents = np.zeros(1, np.int32)
        self._search_start = 1  # all before it are taken, or in nearly full windows
        self._last = 0  # the last index that is taken

    def place(self, node: int, codes: Sequence[int]) -> int:
        """Take room for the children of a node, and return its value in `children`.

        `codes` are those of its children, in ascending order. The child of a code is placed at the
        returned value plus the code.
        """
        first = self._find_room(codes)
        self.children[node] = first
        for code in codes:
            self._parents[first + code] = node
            self._last = max(self._last, first + code)
        return first

    def _find_room(self, codes: Sequence[int]) -> int:
        """Return the least value above 0 for which the indexes of all codes are free.

        Windows that are nearly full are not searched again, so a smaller value may exist there.
        """
        start = max(self._search_start, codes[0] + 1)
        while True:
            self._grow(start + _WINDOW + _CODES)
            free = np.flatnonzero(self._parents[start : start + _WINDOW] == _FREE) + start
            if len(free) < _MIN_FREE and start == self._search_start:
                self._search_start = start + _WINDOW // 2

            candidates = free - codes[0]
            candidates = candidates[candidates > 0]
            for code in codes[1:]:
                candidates = candidates[self._parents[candidates + code] == _FREE]
            if len(candidates):
                return int(candidates[0])
            start += _WINDOW

    def _grow(self, size: int) -> None:
        """Make the arrays at least this large."""
        missing = size - len(self._parents)
        if missing > 0:
            added = max(missing, len(self._parents))
            self.children = np.append(self.children, np.zeros(added, np.int32))
            self._parents = np.append(self._parents, np.full(added, _FREE, np.int32))

    def arrays(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the arrays, with room at their end for any code of the last node."""
        size = self._last + 1 + _CODES
        self._grow(size)
        return self.children[:size], self._parents[:size]
