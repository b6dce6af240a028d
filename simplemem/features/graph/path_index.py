"""An index of paths: which files have a key, such as a name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from collections.abc import Set as AbstractSet
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class PathIndex(Generic[K]):
    """Guards sets of paths by their keys. A path can have several keys. Not thread-safe."""

    def __init__(self) -> None:
        """Create the index without any paths."""
        self._paths = defaultdict[K, set[str]](set)

    def paths(self, key: K) -> AbstractSet[str]:
        """Return the paths that have a key, possibly none. A later `add` or `remove` changes it."""
        return self._paths.get(key, frozenset())

    def add(self, key: K, path: str) -> None:
        """Give a path a key. Nothing changes if the path has the key already."""
        self._paths[key].add(path)

    def remove(self, key: K, path: str) -> None:
        """Take a key from a path. Nothing changes if the path does not have the key."""
        paths = self._paths.get(key)
        if paths is None:
            return
        paths.discard(path)
        if not paths:
            del self._paths[key]
