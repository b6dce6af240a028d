"""Runs the work of a server on its store in threads: reads in parallel, writes one by one."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar

from simplemem.errors import SimplememError

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore
    from simplemem.tools.tool import Tool

log = logging.getLogger("simplemem.server")

T = TypeVar("T")
Companion: TypeAlias = "Callable[[StoreExecutor], Callable[[], None]]"
"""Starts a service beside a store that is open, and returns the function that ends it."""
_SECONDS_BETWEEN_CHECKS: Final = 0.05  # while the store closes


class _Threads(NamedTuple):
    """The pools of threads that work on a store."""

    first_reader: ThreadPoolExecutor  # one thread, which reads as long as it is free
    readers: ThreadPoolExecutor  # three more, for reads at the same time
    writer: ThreadPoolExecutor  # one thread, so that writes run one by one


class StoreExecutor:
    """The store of a server, and the threads that work on it.

    `private_folders` are folders of this machine, which no error may name to a caller on another
    machine. `companion` starts a service beside the store (`start_indexing`).

    Guards the store, which the first work that needs it opens, and the threads. A write that is
    cancelled before its turn never happens; one that has begun is finished. Opening the store can
    raise Unavailable, or another error of simplemem for wrong settings.
    """

    def __init__(
        self,
        open_store: Callable[[], EnhancedStore],
        companion: Companion | None = None,
        *,
        private_folders: Collection[str] = (),
    ) -> None:
        self.tools: Collection[Tool] = ()  # the tools that the client sees
        self.private_folders = private_folders
        self._open_store = open_store
        self._companion = companion
        self._end_companion: Callable[[], None] = lambda: None
        self._opening_lock = threading.Lock()
        self._store: EnhancedStore | None = None
        self._is_started = False
        self._indexing_lock = threading.Lock()  # held since `start_indexing`
        self._threads = _new_threads()
        self._latest_first_read: Future[Any] | None = None
        self._in_progress: set[Future[Any]] = set()
        self._listeners: list[Callable[[frozenset[str]], None]] = []

    def store(self) -> EnhancedStore:
        """Return the store, and open it if it is closed.

        Call it in a thread: it may wait for other processes. Raises Unavailable or another
        SimplememError if the store cannot be opened.
        """
        with self._opening_lock:
            return self._opened_store()

    def _opened_store(self) -> EnhancedStore:
        """Return the store, and open it if it is closed. The caller holds the lock."""
        if self._store is None:
            self._store = self._open_store()
            self._store.extension.expect_more()
            for listener in self._listeners:
                self._store.on_change(listener)
        return self._store

    def on_change(self, listener: Callable[[frozenset[str]], None]) -> None:
        """Call `listener` with the names of changed notes from now on.

        The listener is kept when the store is closed and opened again. It is called in a thread of
        the store. Call this in a thread, as `store`, whose errors it raises.
        """
        with self._opening_lock:
            self._opened_store().on_change(listener)
            self._listeners.append(listener)

    async def is_open(self) -> bool:
        """Return whether the store can be used. Opens it if it is closed.

        Returns False if opening it raises SimplememError or OSError.
        """
        if self._store is None:
            with suppress(SimplememError, OSError):
                await self.run(self.store)
        return self._store is not None

    def start_indexing(self) -> None:
        """Start a thread that begins to update the index and starts the companion; return at once.

        Does nothing if this was done since the store was opened. An error is logged, and raised
        nowhere; the next call tries again.
        """
        indexing_lock = self._indexing_lock

        def start() -> None:
            # Imported late: a server lists its tools without it.
            from simplemem.features.proposals.following import follow_ticked_boxes

            try:
                self.start()
                follow_ticked_boxes(self.store())
                if self._companion is not None:
                    self._end_companion = self._companion(self)
            except Exception as error:
                if isinstance(error, SimplememError):
                    log.error("the vault cannot be opened: %s. %s", error.message, error.hint)
                else:
                    log.exception("the vault cannot be opened")
                indexing_lock.release()  # the next tool call tries again, and gets the error

        if indexing_lock.acquire(blocking=False):
            threading.Thread(target=start, name="indexing", daemon=True).start()

    def start(self) -> None:
        """Open the store, and make it update its index in the background, unless it does already.

        Unlike `start_indexing`, it waits until the store is open, and starts no companion. Call it
        in a thread, as `store`, whose errors it raises.
        """
        with self._opening_lock:
            store = self._opened_store()
            if not self._is_started:
                store.start()
                self._is_started = True

    async def run(self, work: Callable[[], T], *, writes: bool = False) -> T:
        """Return the result of `work`, which runs in a thread, and then start indexing.

        With `writes`, the work waits for its turn, as one write runs at a time. A caller that is
        cancelled does not wait for the work. Raises the errors of the work; those of simplemem name
        no private folder.
        """

        def work_on_started_store() -> T:
            # The work raises the error again if the store cannot be opened.
            with suppress(Exception):
                self.start()  # a search waits for the background thread
            return work()

        if writes:
            future = self._submit(self._threads.writer, work_on_started_store)
        else:
            future = self.read(work_on_started_store)
        try:
            result = await asyncio.wrap_future(future)
        except SimplememError as error:
            error.withhold_folders(self.private_folders)
            raise

        self.start_indexing()
        return result

    def read(self, work: Callable[[], T]) -> Future[T]:
        """Start work that only reads in a thread, and return its future.

        Consecutive work runs in the same thread, because the SQLite connection of that thread has a
        warm cache. The future raises the errors of the work, which may name private folders.
        """
        is_first_free = self._latest_first_read is None or self._latest_first_read.done()
        if not is_first_free:
            return self._submit(self._threads.readers, work)

        future = self._submit(self._threads.first_reader, work)
        self._latest_first_read = future
        return future

    def _submit(self, pool: ThreadPoolExecutor, work: Callable[[], T]) -> Future[T]:
        """Start work in a pool of threads, and return its future.

        `rest` does not close the store until the work is done.
        """
        future = pool.submit(work)
        self._in_progress.add(future)
        future.add_done_callback(self._in_progress.discard)
        return future

    @property
    def has_store(self) -> bool:
        """Whether the store is open."""
        return self._store is not None

    async def rest(self) -> None:
        """Close the store and end its threads, unless it is closed or work is in progress.

        The next work opens it again. Listeners are kept. When the store is open again, they get
        the changes that its scan finds. Returns when the store is closed. Call it only
        without a companion, which would be started again beside the first one.
        """
        if self._in_progress or self._store is None:
            return
        if not self._opening_lock.acquire(blocking=False):
            return

        # From here on, new work waits in its thread until the lock is free.
        store = self._store
        old_threads = self._threads
        self._store = None
        self._is_started = False
        self._latest_first_read = None
        self._indexing_lock = threading.Lock()
        self._threads = _new_threads()

        def close() -> None:
            try:
                store.close()
            finally:
                self._opening_lock.release()

        closing = threading.Thread(target=close, name="rest", daemon=True)
        closing.start()
        for pool in old_threads:
            pool.shutdown(wait=False)
        while closing.is_alive():
            await asyncio.sleep(_SECONDS_BETWEEN_CHECKS)

    def close(self, *, writing: float, closing: float) -> None:
        """End the companion, wait for a write in progress, and close the store.

        Work that has not begun is cancelled, and no more can be started. If the write takes longer
        than `writing` seconds, the store is left open. If closing takes longer than `closing`
        seconds, it goes on in its thread. Call it once, at the end.
        """
        self._end_companion()
        for pool in (self._threads.first_reader, self._threads.readers):
            pool.shutdown(wait=False, cancel_futures=True)

        end_writes = partial(self._threads.writer.shutdown, cancel_futures=True)
        is_written = finishes_within(writing, end_writes)
        if is_written and self._store is not None:
            finishes_within(closing, self._store.close)


def _new_threads() -> _Threads:
    """Return new pools of threads, each of which starts its threads when they are needed."""
    return _Threads(
        first_reader=ThreadPoolExecutor(1, "read"),
        readers=ThreadPoolExecutor(3, "read"),
        writer=ThreadPoolExecutor(1, "write"),
    )


def finishes_within(seconds: float, work: Callable[[], object]) -> bool:
    """Run work in a thread, and return whether it is done after at most so many seconds.

    If not, it goes on in its thread. Work that raises is done; its error is not raised here, but
    goes to `threading.excepthook`.
    """
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(seconds)
    return not thread.is_alive()
