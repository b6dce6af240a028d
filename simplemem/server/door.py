"""The one store of a server process: opened by whoever needs it first, indexed in the background, closed at the end.
Reads run beside each other, writes one after another: one that was cancelled before its turn never happens, one begun
is finished."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore

log = logging.getLogger("simplemem.server")

T = TypeVar("T")
_READERS = 4


class Door:
    """The way to the store."""

    def __init__(self, opening: Callable[[], EnhancedStore]) -> None:
        self._opening = opening
        self._opening_now = threading.Lock()
        self._store: EnhancedStore | None = None
        self._tending = threading.Lock()
        self._readers = ThreadPoolExecutor(_READERS, "read")
        self._writer = ThreadPoolExecutor(1, "write")

    def store(self) -> EnhancedStore:
        """The store, opened now if nobody has yet. Call it in a thread: it may wait for other processes."""
        with self._opening_now:
            if self._store is None:
                self._store = self._opening()
                self._store.bench.expect_more()
            return self._store

    def tend(self) -> None:
        """Update the index and keep it so, in the background. Once is enough; never waits."""

        def work() -> None:
            try:
                self.store().start()
            except Exception:
                log.exception("the vault cannot be opened")
                self._tending.release()  # a call of a tool tries again, and gets the whole error

        if self._tending.acquire(blocking=False):
            threading.Thread(target=work, name="tend", daemon=True).start()

    async def read(self, work: Callable[[], T]) -> T:
        """Do something that only reads. Whoever is cancelled does not wait for it."""
        return await self._done(self._readers, work)

    async def write(self, work: Callable[[], T]) -> T:
        """Do something that writes, when its turn comes."""
        return await self._done(self._writer, work)

    async def _done(self, lane: ThreadPoolExecutor, work: Callable[[], T]) -> T:
        done = await asyncio.get_running_loop().run_in_executor(lane, work)
        self.tend()
        return done

    def close(self, *, writing: float, closing: float) -> None:
        """Begin nothing more; let a write that has begun finish, within `writing` seconds, and the store close."""
        self._readers.shutdown(wait=False, cancel_futures=True)
        if within(writing, partial(self._writer.shutdown, cancel_futures=True)) and self._store is not None:
            within(closing, self._store.close)


def within(seconds: float, work: Callable[[], object]) -> bool:
    """Whether the work is done within so many seconds; beyond them nobody waits for it."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(seconds)
    return not thread.is_alive()
