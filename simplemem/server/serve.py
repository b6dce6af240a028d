"""One server process over standard input and output, from its first message to its end: two seconds when idle, five when
a note is being written. Its log tells a failure by its kind and place, never by its message, which may quote a note."""

from __future__ import annotations

import asyncio
import gc
import logging
import logging.handlers
import os
import queue
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from simplemem.errors import SimplememError

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

    from simplemem.profiles.profile import Profile
    from simplemem.store import EnhancedStore
    from simplemem.tools.tool import Tool

log = logging.getLogger("simplemem.server")

T = TypeVar("T")
Beside = Callable[["Door"], Callable[[], None]]
"""Starts what runs beside a store once it is open, and returns what ends that."""
_SWEEPING = 1.0  # seconds that a client waits for that at most


class Door:
    """The one store of this process, opened by whoever needs it first. Reads run beside each other, writes one after
    another: one that was cancelled before its turn never happens, one begun is finished."""

    def __init__(
        self,
        opening: Callable[[], EnhancedStore],
        beside: Beside | None = None,
        *,
        private_folders: Collection[str] = (),
    ) -> None:
        self._beside = beside
        self._end_beside: Callable[[], None] = lambda: None
        self.tools: Collection[Tool] = ()  # that a model is shown
        self.private_folders = (
            private_folders  # of this machine, which no error names to a caller elsewhere
        )
        self._opening = opening
        self._opening_now = threading.Lock()
        self._store: EnhancedStore | None = None
        self._is_started = False
        self._tending = threading.Lock()
        self._first, self._readers, self._writer = _lanes()
        self._latest: Future[Any] | None = None  # of what the first is asked
        self._in_work: set[Future[Any]] = set()
        self._listeners: list[Callable[[frozenset[str]], None]] = []

    def store(self) -> EnhancedStore:
        """The store, opened now if nobody has yet. Call it in a thread: it may wait for other processes."""
        with self._opening_now:
            return self._opened()

    def _opened(self) -> EnhancedStore:
        """The same, for whoever holds the lock."""
        if self._store is None:
            self._store = self._opening()
            self._store.extension.expect_more()
            for listener in self._listeners:
                self._store.on_change(listener)
        return self._store

    def on_change(self, listener: Callable[[frozenset[str]], None]) -> None:
        """Be told the names of memories that changed, also after the store has rested. Call it in a thread."""
        with self._opening_now:
            self._opened().on_change(listener)
            self._listeners.append(listener)

    async def is_open(self) -> bool:
        """Whether the store can be used. Opens it if nobody has yet, and waits for nothing else."""
        if self._store is None:
            with suppress(SimplememError, OSError):
                await self.run(self.store)
        return self._store is not None

    def tend(self) -> None:
        """Update the index and keep it so, in the background. Once is enough; never waits."""
        tending = self._tending

        def work() -> None:
            try:
                self.start()
                if self._beside is not None:
                    self._end_beside = self._beside(self)
            except Exception as error:
                if isinstance(error, SimplememError):
                    log.error("the vault cannot be opened: %s. %s", error.message, error.hint)
                else:
                    log.exception("the vault cannot be opened")
                tending.release()  # a call of a tool tries again, and gets the whole error

        if tending.acquire(blocking=False):
            threading.Thread(target=work, name="tend", daemon=True).start()

    def start(self) -> None:
        """Have the store update its index in the background from now on. Call it in a thread, as `store`."""
        with self._opening_now:
            store = self._opened()
            if not self._is_started:
                store.start()
                self._is_started = True

    async def run(self, work: Callable[[], T], *, writes: bool = False) -> T:
        """Do something in a thread, when its turn comes if it writes. Whoever is cancelled does not wait for it."""

        def started() -> T:
            with suppress(Exception):  # what the work then meets is told to whoever asked for it
                self.start()  # a question waits for the background
            return work()

        asked = self._in_lane(self._writer, started) if writes else self.read(started)
        try:
            done = await asyncio.wrap_future(asked)
        except SimplememError as error:
            error.withhold_folders(self.private_folders)
            raise
        self.tend()
        return done

    def read(self, work: Callable[[], T]) -> Future[T]:
        """Begin to read something in a thread, beside whatever else is read."""
        is_first = self._latest is None or self._latest.done()
        asked = self._in_lane(self._first if is_first else self._readers, work)
        if (
            is_first
        ):  # who asks one thing after the other meets the thread whose connection knows the most
            self._latest = asked
        return asked

    def _in_lane(self, lane: ThreadPoolExecutor, work: Callable[[], T]) -> Future[T]:
        """Begin work in one of the lanes; the store does not rest before it is done."""
        asked = lane.submit(work)
        self._in_work.add(asked)
        asked.add_done_callback(self._in_work.discard)
        return asked

    @property
    def has_store(self) -> bool:
        """Whether the store is open now."""
        return self._store is not None

    async def rest(self) -> None:
        """Close the store and end its threads, if nothing is in work. The next call opens it again.

        Listeners stay, and hear what a scan finds that changed in the meantime.
        """
        if self._in_work or self._store is None or not self._opening_now.acquire(blocking=False):
            return

        # From here on a call that comes waits in its thread until the lock is free.
        store = self._store
        lanes = (self._first, self._readers, self._writer)
        self._store = None
        self._is_started = False
        self._latest = None
        self._tending = threading.Lock()
        self._first, self._readers, self._writer = _lanes()

        def close() -> None:
            try:
                store.close()
            finally:
                self._opening_now.release()

        closing = threading.Thread(target=close, name="rest", daemon=True)
        closing.start()
        for lane in lanes:
            lane.shutdown(wait=False)
        while closing.is_alive():
            await asyncio.sleep(0.05)

    def close(self, *, writing: float, closing: float) -> None:
        """Begin nothing more; let a write that has begun finish, within `writing` seconds, and the store close."""
        self._end_beside()
        for lane in (self._first, self._readers):
            lane.shutdown(wait=False, cancel_futures=True)
        if (
            within(writing, partial(self._writer.shutdown, cancel_futures=True))
            and self._store is not None
        ):
            within(closing, self._store.close)


def _lanes() -> tuple[ThreadPoolExecutor, ThreadPoolExecutor, ThreadPoolExecutor]:
    """The threads of a door: one that reads, more that read, and one that writes. They start when they are needed."""
    return (
        ThreadPoolExecutor(1, "read"),
        ThreadPoolExecutor(3, "read"),
        ThreadPoolExecutor(1, "write"),
    )


def within(seconds: float, work: Callable[[], object]) -> bool:
    """Whether the work is done within so many seconds; beyond them nobody waits for it."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(seconds)
    return not thread.is_alive()


def take_standard_streams() -> tuple[int, int]:
    """Standard input and output as descriptors of our own: whatever prints from now on, prints to stderr."""
    if sys.platform == "win32":
        import msvcrt

        for stream in (0, 1):
            msvcrt.setmode(stream, os.O_BINARY)
    wire_in, wire_out = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    try:
        os.dup2(2, 1)
    except OSError:
        os.dup2(nothing, 1)
    os.close(nothing)
    return wire_in, wire_out


def take_over(profile: Profile, store: EnhancedStore, env: Mapping[str, str]) -> None:
    """Bring the graph file of the server whose place a profile takes into the vault, once; it is never written."""
    file = profile.graph_file(env)
    if file is None or not file.is_file() or store.read_only:
        return
    from simplemem.features.graph.jsonl import import_file

    try:
        if (done := import_file(store, file, who=profile.file_env, once=True)) is not None:
            log.warning(
                "%s was imported: %d entities, %d relations", file, done.entities, done.relations
            )
            for broken in done.broken:
                log.warning("line %d of %s was skipped: %s", broken.line, file, broken.why)
    except (SimplememError, OSError) as error:
        log.error(
            "the file in %s could not be imported: %s; the next start tries again",
            profile.file_env,
            error,
        )


class _Line(logging.Formatter):
    """One record, one line; control characters are shown, not obeyed."""

    def format(self, record: logging.LogRecord) -> str:
        when = self.formatTime(record, "%Y-%m-%dT%H:%M:%S")
        line = f"{when} {record.levelname.lower()} {record.name}: {record.getMessage()}"
        if record.exc_info and (error := record.exc_info[1]) is not None:
            places = reversed(traceback.extract_tb(error.__traceback__)[-8:])  # nearest first
            path = " < ".join(
                f"{os.path.basename(each.filename)}:{each.lineno} {each.name}" for each in places
            )
            line += f" [{type(error).__name__}{' at ' if path else ''}{path}]"
        return "".join(c if c.isprintable() else repr(c)[1:-1] for c in line)


def log_to_stderr(level: str) -> Callable[[], object]:
    """Send every log, and what nobody catches, to stderr; what is returned gives it a moment to be read at the end.

    The level is that of simplemem's own loggers, which never write the text of a note or a key. Libraries
    log whole messages and requests below WARNING, so they are never heard below it.
    """
    lines: queue.Queue[Any] = queue.Queue(1000)  # more than that a slow reader loses
    handler = logging.handlers.QueueHandler(lines)
    handler.setFormatter(_Line())
    logging.raiseExceptions = (
        False  # else a full queue would be told on the stderr that nobody reads
    )
    writer = logging.handlers.QueueListener(lines, logging.StreamHandler(sys.stderr))
    writer.start()
    root = logging.getLogger()
    root.handlers[:] = [handler]
    own = logging.getLogger("simplemem")
    own.setLevel(level.upper())
    root.setLevel(max(logging.WARNING, own.level))
    logging.captureWarnings(True)
    threading.excepthook = lambda args: log.error(
        "the thread %s failed", args.thread and args.thread.name, exc_info=args.exc_value
    )
    sys.unraisablehook = lambda args: log.error("cleanup failed", exc_info=args.exc_value)
    sys.excepthook = lambda _kind, error, _trace: log.error("the server failed", exc_info=error)
    return partial(within, 0.2, writer.stop)


def sweep(door: Door, root: Path) -> None:
    """If a server died in a write, clear what it left before a client is greeted. It is looked for at the vault's top
    alone, since that costs no start anything; the first scan finds the rest."""

    def recover() -> None:
        with suppress(SimplememError, OSError):  # the first call of a tool is told
            if not (store := door.store()).read_only:
                store.extension.recover()

    with suppress(OSError):
        if any(name.startswith(".simplemem-") for name in os.listdir(root)):
            within(_SWEEPING, recover)


def serve_stdio(
    profile: Profile,
    tools: tuple[Tool, ...],
    root: Path,
    door: Door,
    wire: tuple[int, int],
    log_level: str,
) -> NoReturn:
    """Serve until the input ends or a signal says so; then the process ends here, with the exit code 0."""
    import anyio

    last_words = log_to_stderr(log_level)
    sweep(door, root)
    from simplemem.server.calls import assemble

    server = assemble(profile, tools, door)
    gc.collect(0)
    gc.freeze()
    gc.set_threshold(10_000)  # a search makes thousands of small values, and none in a circle
    gc.enable()
    code = 0
    try:
        anyio.run(converse, server, profile, wire)
    except BaseException:
        log.exception("the server failed")
        code = 1
    door.close(writing=3.9, closing=0.7)
    last_words()
    os._exit(
        code
    )  # threads that read, watch or embed are not waited for: they hold nothing that could be lost


async def converse(
    server: Server[Any], profile: Profile, wire: tuple[int, int], *, handle_signals: bool = True
) -> None:
    """Serve until there are no more messages, or a signal. The graph memory servers promise word of changed lists.

    Without `handle_signals` the signals are left to the caller.
    """
    from mcp.server.lowlevel.server import NotificationOptions

    from simplemem.server.wire import stdio_wire

    loop = asyncio.get_running_loop()
    # By itself the loop would print a task that failed unheard, with its exception.
    loop.set_exception_handler(
        lambda _, what: log.error("a task failed", exc_info=what.get("exception"))
    )
    is_graph = profile.known_as is not None
    changes = NotificationOptions(tools_changed=is_graph, resources_changed=is_graph)
    async with stdio_wire(*wire) as (messages, answers, close):
        if handle_signals and threading.current_thread() is threading.main_thread():
            for number in (
                getattr(signal, name)
                for name in ("SIGTERM", "SIGINT", "SIGHUP")
                if hasattr(signal, name)
            ):
                signal.signal(number, lambda *_: loop.call_soon_threadsafe(close))
        await server.run(messages, answers, server.create_initialization_options(changes))
