"""Taking turns: who writes to the index next, among the threads of one process."""

from __future__ import annotations

import threading
from collections import deque


class Turns:
    """Writers of this process one after another, in the order they came: whoever writes much, as a first scan does,
    hands over to one who waits. SQLite's own waiting only looks now and then, and would miss the moment."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._held = False
        self._waiting: deque[threading.Lock] = deque()

    def __enter__(self) -> None:
        with self._guard:
            if not self._held:
                self._held = True
                return
            mine = threading.Lock()
            mine.acquire()
            self._waiting.append(mine)
        mine.acquire()

    def __exit__(self, *_: object) -> None:
        with self._guard:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._held = False
