"""The one store of a server process: opened once, by whoever needs it first, kept in step in the
background, closed at the end.

The handshake never waits for it. Work is begun in threads of its own: reads beside each other, writes one
after another, so that a write which was cancelled before its turn never happens, and one that has begun is
finished.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from simplemem.errors import SimplememError
from simplemem.server.presence import Presence

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore

log = logging.getLogger("simplemem.server")

T = TypeVar("T")
_READERS = 4


class Door:
    """The way to the store."""

    def __init__(self, root: Path, opening: Callable[[], EnhancedStore]) -> None:
        self._opening = opening
        self._presence = Presence(root)
        self._opening_now = threading.Lock()
        self._guard = threading.Lock()
        """Of the fields below; never held while anything is waited for, so that the event loop may take it."""
        self._store: EnhancedStore | None = None
        self._tending = False
        self._listener: Callable[[frozenset[str]], None] | None = None
        self._readers = ThreadPoolExecutor(_READERS, "read")
        self._writer = ThreadPoolExecutor(1, "write")
        self._writing = threading.Lock()

    def store(self) -> EnhancedStore:
        """The store, opened now if nobody has yet. Call it in a thread: it may wait for other processes."""
        with self._opening_now:
            if self._store is None:
                store = self._opening()
                store.bench.expect_more()
                with self._guard:
                    self._store = store
                    listener = self._listener
                if listener is not None:
                    store.on_change(listener)
            return self._store

    def tend(self) -> None:
        """Bring the index in step and keep it so, in the background. Once is enough; never waits."""
        with self._guard:
            begun, self._tending = self._tending, True
        if not begun:
            threading.Thread(target=self._tend, name="tend", daemon=True).start()

    def _tend(self) -> None:
        try:
            self.store().start()
            return
        except SimplememError as error:
            # A call of a tool tries again, and gets the whole error.
            log.error("the vault cannot be opened: %s", error.code)
        except Exception:
            log.exception("the vault cannot be opened")
        with self._guard:
            self._tending = False

    def on_change(self, listener: Callable[[frozenset[str]], None]) -> None:
        """Tell `listener` the names of memories that changed, from a thread of the store's. Once."""
        with self._guard:
            self._listener = listener
            store = self._store
        if store is not None:
            store.on_change(listener)

    async def read(self, work: Callable[[], T]) -> T:
        """Do something that only reads. Whoever is cancelled does not wait for it."""
        found = await asyncio.get_running_loop().run_in_executor(self._readers, work)
        self.tend()
        return found

    async def write(self, work: Callable[[], T]) -> T:
        """Do something that writes, when its turn comes."""

        def alone() -> T:
            with self._writing:
                with suppress(SimplememError):  # the work meets the same failure, and tells it
                    if not self.store().read_only:
                        self._presence.announce()
                return work()

        done = await asyncio.get_running_loop().run_in_executor(self._writer, alone)
        self.tend()
        return done

    def is_writing(self) -> bool:
        return self._writing.locked()

    def close(self, *, writing: float, closing: float) -> None:
        """Begin nothing more; let a write that has begun finish, within `writing` seconds, and the store
        close."""
        self._readers.shutdown(wait=False, cancel_futures=True)
        self._writer.shutdown(wait=False, cancel_futures=True)
        if self._writing.acquire(timeout=writing):
            self._presence.withdraw()
            if self._store is not None:
                ending = threading.Thread(target=self._store.close, name="close", daemon=True)
                ending.start()
                ending.join(closing)

    def clear_up(self, seconds: float) -> None:
        """If a server before us died at its work, clear what it left, waiting for that no longer than so."""
        left = self._presence.left_by_the_dead()
        if left:
            clearing = threading.Thread(target=self._clear_up, args=(left,), name="clear-up", daemon=True)
            clearing.start()
            clearing.join(seconds)

    def _clear_up(self, left: list[str]) -> None:
        try:
            store = self.store()
            if not store.read_only:
                store.bench.recover()
                self._presence.clear(left)
        except (SimplememError, OSError) as error:
            log.warning("what a server left that died could not be cleared yet: %s", type(error).__name__)
