"""What there is one of for each store, for all who ask: it remembers what it has read."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from simplemem.store.store import EnhancedStore

T = TypeVar("T")


class OneEach(Generic[T]):
    """Made when it is first asked for, and let go with its store. Any thread may ask."""

    def __init__(self, make: Callable[[EnhancedStore], T]) -> None:
        self._make = make
        self._made: WeakKeyDictionary[EnhancedStore, T] = WeakKeyDictionary()
        self._guard = threading.Lock()

    def of(self, store: EnhancedStore) -> T:
        with self._guard:
            found = self._made.get(store)
            if found is None:
                found = self._made[store] = self._make(store)
            return found
