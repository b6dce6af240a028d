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
from functools import partial
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
        if self._tending.acquire(blocking=False):
            threading.Thread(target=self._tend, name="tend", daemon=True).start()

    def _tend(self) -> None:
        try:
            self.store().start()
        except Exception:
            log.exception("the vault cannot be opened")
            self._tending.release()  # a call of a tool tries again, and gets the whole error

    async def read(self, work: Callable[[], T]) -> T:
        """Do something that only reads. Whoever is cancelled does not wait for it."""
        done = await asyncio.get_running_loop().run_in_executor(self._readers, work)
        self.tend()
        return done

    async def write(self, work: Callable[[], T]) -> T:
        """Do something that writes, when its turn comes."""
        done = await asyncio.get_running_loop().run_in_executor(self._writer, work)
        self.tend()
        return done

    def close(self, *, writing: float, closing: float) -> None:
        """Begin nothing more; let a write that has begun finish, within `writing` seconds, and the store close."""
        self._readers.shutdown(wait=False, cancel_futures=True)
        is_written = _within(writing, partial(self._writer.shutdown, cancel_futures=True))
        if is_written and self._store is not None:
            _within(closing, self._store.close)

    def sweep(self, seconds: float) -> None:
        """If a server died in a write, clear what it left, waiting no longer than that. Its temporary files are looked for
        at the top of the vault alone, since that costs no start anything; the first scan finds the others."""

        def recover() -> None:
            with suppress(SimplememError, OSError):  # the first call of a tool is told
                if not (store := self.store()).read_only:
                    store.bench.recover()

        with suppress(OSError):
            if any(name.startswith(".simplemem-") for name in os.listdir(self._root)):
                _within(seconds, recover)


def _within(seconds: float, work: Callable[[], object]) -> bool:
    """Whether the work is done within so many seconds; beyond them nobody waits for it."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(seconds)
    return not thread.is_alive()
