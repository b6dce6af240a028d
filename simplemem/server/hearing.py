"""Word of changed memories, brought from the store's threads to the event loop of whoever tells subscribers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from simplemem.server.door import Door


class Hearing:
    """Calls `note` in the event loop with the names of memories that changed, once it was begun."""

    def __init__(self, door: Door, note: Callable[[frozenset[str]], None]) -> None:
        self._door = door
        self._note = note
        self._loop: asyncio.AbstractEventLoop | None = None

    def begin(self) -> None:
        """Hear of changes from now on. Needs a running loop. A second time it does nothing."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._door.on_change(self._hear)
            self._door.tend()

    def _hear(self, names: frozenset[str]) -> None:
        """In a thread of the store's."""
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop has ended: there is nobody left to tell
                self._loop.call_soon_threadsafe(self._note, names)
