"""Renders notes as HTML in worker processes with limits on time and size, and caches the results.

Rendering is Python code, and its time may grow with the square of a note's length. In a thread it
would keep the interpreter lock from the event loop, so it happens in another process
(`simplemem.web.render_worker`).
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import signal
import sys
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import simplemem
from simplemem.web import render_worker
from simplemem.web.change_texts import cut_texts
from simplemem.web.markdown.context import NoteContext
from simplemem.web.markdown.parts import MAX_CHARACTERS
from simplemem.web.render_worker import (
    EXIT_OUT_OF_MEMORY,
    HEADER_BYTES,
    MAX_HTML_BYTES,
    MAX_SECONDS,
    TOO_LARGE,
    pack_message,
    unpack_length,
)
from simplemem.web.templating import render_template

log = logging.getLogger("simplemem.web")

_MAX_WORKERS: Final = 2
_MAX_WAIT_SECONDS: Final = 5.0  # that a view waits for a free worker
# After a failure that may have had another cause than the note, until the note is rendered again.
_RETRY_SECONDS: Final = 60.0
_START_SECONDS: Final = 20.0  # that a new worker may need to start; on an idle machine about one
_IDLE_SECONDS: Final = 300.0  # after which an unused worker ends
_EXIT_SECONDS: Final = 1.0  # that a worker has to end after it has closed its output
_MAX_CACHED_BYTES: Final = 16 * 1024 * 1024
# The variables of the environment that a worker gets. They contain no keys and no passwords.
_ENVIRONMENT: Final = ("PATH", "LANG", "LC_ALL", "PYTHONHOME", "SYSTEMROOT")


class _LimitExceeded(Exception):
    """A note takes more CPU time, memory or space than a worker may use."""


class _WorkerFailed(Exception):
    """A worker ended without an answer, or answered something that is not valid."""


class Renderer:
    """Renders notes in worker processes, and caches the latest results.

    Guards the idle workers, which it starts as needed, the cache, and the renderings in progress.
    All methods must be called in one event loop.
    """

    def __init__(self, max_cached_bytes: int = _MAX_CACHED_BYTES) -> None:
        self._idle: list[_Worker] = []
        self._free = asyncio.Semaphore(_MAX_WORKERS)
        self._cache = _Cache(max_cached_bytes)
        self._running: dict[bytes, asyncio.Task[str]] = {}

    async def render(self, text: str, prefix: str, context: NoteContext | None = None) -> str:
        """Return the HTML of a note's body; if it cannot be rendered, its source and the reason.

        `prefix` is that of the vault, for links. The context says where they lead and what is
        embedded; see `render.render_note`. If several requests need the same HTML at a time, it is
        rendered once. Raises no error of a rendering.
        """
        request: dict[str, object] = {
            "text": text[:MAX_CHARACTERS],
            "prefix": prefix,
            "context": None,
        }
        if context is not None:
            request["context"] = context.as_json()
        return await self._answer(text, json.dumps(request).encode())

    async def render_change(self, old: str, new: str, prefix: str, layout: str) -> str:
        """Return the HTML of what a change did to a note; see `change_html.render_change`.

        If it cannot be rendered, returns the source of the new text and the reason. Raises no error
        of a rendering.
        """
        old_part, new_part, is_cut = cut_texts(old, new)
        request = {
            "old": old_part,
            "new": new_part,
            "is_cut": is_cut,
            "prefix": prefix,
            "layout": layout,
        }
        return await self._answer(new, json.dumps(request).encode())

    async def _answer(self, text: str, request: bytes) -> str:
        """Return the HTML that a worker answers to a request, or one from the cache.

        `text` is what is shown if the request fails.
        """
        key = hashlib.sha256(request).digest()
        cached = self._cache.get(key)
        if cached is not None:
            return cached

        task = self._running.get(key)
        if task is None:
            task = asyncio.create_task(self._render(key, text, request))
            self._running[key] = task
            task.add_done_callback(lambda _: self._running.pop(key))

        try:
            # Shielded, because other clients may wait for the same rendering.
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if not task.cancelled():
                raise
            return _escape_source(text, "The server is shutting down")

    async def close(self) -> None:
        """Cancel all rendering, and kill all workers. Those that wait get the source."""
        running = list(self._running.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

        while self._idle:
            await self._idle.pop().kill()

    async def _render(self, key: bytes, text: str, request: bytes) -> str:
        """Send a worker the request to render a note when one is free, and cache the result.

        Returns the HTML; if the note cannot be rendered, its source and the reason. The result is
        cached: only for a minute if it may differ the next time, and not at all if the server is
        busy or can start no worker.
        """
        try:
            async with asyncio.timeout(_MAX_WAIT_SECONDS):
                await self._free.acquire()
        except TimeoutError:
            return _escape_source(text, "The server is busy rendering other notes")

        is_final = False  # whether the next attempt would have the same result
        try:
            html = await self._render_in_worker(request)
            is_final = True
        except _LimitExceeded:
            html = _escape_source(text, "This note takes too much time or space to render")
            is_final = True
        except TimeoutError:  # another load of the machine may give another result
            reason = "This note takes too much time or space to render at the moment"
            html = _escape_source(text, reason)
        except _WorkerFailed:
            html = _escape_source(text, "The process that renders notes failed")
        except OSError as error:
            log.warning("no process could be started to render a note: %s", type(error).__name__)
            return _escape_source(text, "The server could not start the process that renders notes")
        finally:
            self._free.release()

        self._cache.put(key, html)
        if not is_final:
            asyncio.get_running_loop().call_later(_RETRY_SECONDS, self._cache.drop, key)
        return html

    async def _render_in_worker(self, request: bytes) -> str:
        """Return the HTML that a worker makes of a note.

        Raises _LimitExceeded, _WorkerFailed, TimeoutError after too much wall-clock time, and
        OSError if no worker can be started.
        """
        worker = self._take_idle_worker()
        if worker is not None:
            try:
                return await self._ask(worker, request, MAX_SECONDS)
            except _WorkerFailed:
                # An earlier note may have broken it, or it was killed while it was idle.
                log.debug("a new process renders the note")

        worker = await _Worker.start()
        return await self._ask(worker, request, _START_SECONDS + MAX_SECONDS)

    async def _ask(self, worker: _Worker, request: bytes, seconds: float) -> str:
        """Return a worker's answer, and keep the worker for the next note.

        If it does not answer, kills it and raises TimeoutError after that many seconds,
        _LimitExceeded if it ended at a limit, or _WorkerFailed, which is also logged. Raises
        _LimitExceeded also for an answer that would be too large.
        """
        is_usable = False
        try:
            async with asyncio.timeout(seconds):
                html = await worker.ask(request)
            is_usable = True
        except _WorkerFailed as error:
            log.error("the process that renders notes failed: %s", error)
            raise
        finally:
            if is_usable:
                worker.start_idle_timer(lambda: self._retire(worker))
                self._idle.append(worker)
            else:
                await worker.kill()

        if html is None:
            raise _LimitExceeded
        return html

    def _take_idle_worker(self) -> _Worker | None:
        """Take an idle worker whose process is alive, and return it, or None if there is none."""
        while self._idle:
            worker = self._idle.pop()
            worker.cancel_idle_timer()
            if worker.is_alive:
                return worker

        return None

    def _retire(self, worker: _Worker) -> None:
        """End a worker, unless it is in use. Its process ends when its input does."""
        if worker in self._idle:
            self._idle.remove(worker)
            worker.close_input()


class _Worker:
    """A process that renders one note at a time."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._idle_timer: asyncio.TimerHandle | None = None

    @classmethod
    async def start(cls) -> _Worker:
        """Start a process. Raises OSError if the system refuses one."""
        environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
        environment["PYTHONPATH"] = os.pathsep.join(_find_import_folders())
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-m",
            render_worker.__name__,
            env=environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        return cls(process)

    @property
    def is_alive(self) -> bool:
        """Whether the process has not ended."""
        return self._process.returncode is None

    async def ask(self, request: bytes) -> str | None:
        """Send a request and return the answer: HTML, or None if it would be too large.

        Raises _LimitExceeded if the process ends at a limit, _WorkerFailed if it ends otherwise, or
        if its answer is too long or not UTF-8.
        """
        requests = self._process.stdin
        answers = self._process.stdout
        assert requests is not None
        assert answers is not None

        try:
            requests.write(pack_message(request))
            await requests.drain()

            length = unpack_length(await answers.readexactly(HEADER_BYTES))
            if length > MAX_HTML_BYTES:  # the rest would be read as the answer for the next note
                raise _WorkerFailed(f"it announced an answer of {length} bytes")

            answer = await answers.readexactly(length)
        except (asyncio.IncompleteReadError, ConnectionError):
            raise await self._describe_end() from None

        if answer == TOO_LARGE:
            return None

        try:
            return answer.decode()
        except UnicodeDecodeError:
            raise _WorkerFailed("its answer is not UTF-8") from None

    async def _describe_end(self) -> _LimitExceeded | _WorkerFailed:
        """Return the error that tells why the process has ended, after waiting a second for it."""
        try:
            async with asyncio.timeout(_EXIT_SECONDS):
                code = await self._process.wait()
        except TimeoutError:
            return _WorkerFailed("it closed its output")

        has_cpu_limit = hasattr(signal, "SIGPROF")
        if code == EXIT_OUT_OF_MEMORY or (has_cpu_limit and code == -signal.SIGPROF):
            return _LimitExceeded()

        if code < 0:
            return _WorkerFailed(f"it was ended by signal {-code}")
        return _WorkerFailed(f"it ended with exit code {code}")

    def start_idle_timer(self, end: Callable[[], None]) -> None:
        """Call `end` in five minutes, unless the timer is cancelled before."""
        self._idle_timer = asyncio.get_running_loop().call_later(_IDLE_SECONDS, end)

    def cancel_idle_timer(self) -> None:
        """Cancel the timer that `start_idle_timer` started. Does nothing if there is none."""
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None

    def close_input(self) -> None:
        """End the input of the process, which then ends by itself."""
        if self._process.stdin is not None:
            self._process.stdin.close()

    async def kill(self) -> None:
        """Kill the process, if it has not ended, and wait for its end."""
        self.cancel_idle_timer()
        self.close_input()
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()


def _find_import_folders() -> list[str]:
    """Return the folders from which a worker imports: those of this process but the current.

    The current folder is often the vault, and a `json.py` in it must not be executed. The folder of
    this package is always among them.
    """
    package_folder = str(Path(simplemem.__file__).resolve().parent.parent)
    try:
        current = os.path.realpath(os.getcwd())
    except OSError:  # it was deleted
        current = ""

    folders = []
    for folder in sys.path:
        resolved = os.path.realpath(folder)
        is_current = not os.path.isabs(folder) or resolved == current
        # This package may run from its own repository, which is the current folder then.
        if resolved == package_folder or not is_current:
            folders.append(folder)

    if package_folder not in map(os.path.realpath, folders):
        folders.append(package_folder)
    return folders


class _Cache:
    """The HTML of the notes that were viewed last, by the hash of the request to render them.

    Guards the number of their bytes, which stays below a limit.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._pages: OrderedDict[bytes, str] = OrderedDict()

    def get(self, key: bytes) -> str | None:
        """Return the HTML for a hash, or None. The HTML counts as viewed last from now on."""
        html = self._pages.get(key)
        if html is not None:
            self._pages.move_to_end(key)
        return html

    def put(self, key: bytes, html: str) -> None:
        """Keep the HTML for a hash, and drop what was viewed least recently beyond the limit.

        HTML that is larger than the limit is not kept.
        """
        self.drop(key)
        self._pages[key] = html
        self._bytes += sys.getsizeof(html)
        while self._bytes > self._max_bytes:
            _, oldest = self._pages.popitem(last=False)
            self._bytes -= sys.getsizeof(oldest)

    def drop(self, key: bytes) -> None:
        """Forget the HTML for a hash. Does nothing if there is none."""
        html = self._pages.pop(key, None)
        if html is not None:
            self._bytes -= sys.getsizeof(html)


def _escape_source(text: str, reason: str) -> str:
    """Return a note's source as HTML, with the reason why it is not rendered.

    The source is cut to 450,000 characters.
    """
    return render_template("source.html", source=text[:MAX_CHARACTERS], reason=reason)
