"""The one store of a server process: opened once, by whoever needs it first, indexed in the background, closed at the
end.

The handshake never waits for it. Reads run beside each other, writes one after another, so that a write which was
cancelled before its turn never happens, and one that has begun is finished.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from simplemem.errors import SimplememError

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore

log = logging.getLogger("simplemem.server")

T = TypeVar("T")
_READERS = 4


class Door:
    """The way to the store."""

    def __init__(self, root: Path, opening: Callable[[], EnhancedStore]) -> None:
        self._root = root
        self._opening = opening
        self._opening_now = threading.Lock()
        self._store: EnhancedStore | None = None
        self._tending = threading.Lock()
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
                self._store = store
                if self._listener is not None:
                    store.on_change(self._listener)
            return self._store

    def tend(self) -> None:
        """Update the index and keep it so, in the background. Once is enough; never waits."""
        if self._tending.acquire(blocking=False):
            threading.Thread(target=self._tend, name="tend", daemon=True).start()

    def _tend(self) -> None:
        try:
            self.store().start()
        except Exception:
            log.exception("the vault cannot be opened")
            self._tending.release()  # a call of a tool tries again, and gets the whole error

    def on_change(self, listener: Callable[[frozenset[str]], None]) -> None:
        """Tell `listener` the names of memories that changed, from a thread of the store's. Once; never waits."""
        self._listener = listener
        if self._store is not None:
            self._store.on_change(listener)

    async def read(self, work: Callable[[], T]) -> T:
        """Do something that only reads. Whoever is cancelled does not wait for it."""
        return await self._do(self._readers, work)

    async def write(self, work: Callable[[], T]) -> T:
        """Do something that writes, when its turn comes."""

        def alone() -> T:
            with self._writing:
                return work()

        return await self._do(self._writer, alone)

    async def _do(self, lane: ThreadPoolExecutor, work: Callable[[], T]) -> T:
        done = await asyncio.get_running_loop().run_in_executor(lane, work)
        self.tend()
        return done

    def close(self, *, writing: float, closing: float) -> None:
        """Begin nothing more; let a write that has begun finish, within `writing` seconds, and the store close."""
        self._readers.shutdown(wait=False, cancel_futures=True)
        self._writer.shutdown(wait=False, cancel_futures=True)
        if self._writing.acquire(timeout=writing) and self._store is not None:
            ending = threading.Thread(target=self._store.close, name="close", daemon=True)
            ending.start()
            ending.join(closing)

    def sweep(self, seconds: float) -> None:
        """If a server died in a write, clear what it left, waiting no longer than that. Its temporary files are looked for
        at the top of the vault alone, since that costs no start anything; the first scan finds the others."""

        def recover() -> None:
            with suppress(SimplememError, OSError):  # the first call of a tool is told
                if not (store := self.store()).read_only:
                    store.bench.recover()

        with suppress(OSError):
            if any(name.startswith(".simplemem-") for name in os.listdir(self._root)):
                sweeping = threading.Thread(target=recover, name="sweep", daemon=True)
                sweeping.start()
                sweeping.join(seconds)
