"""Notes as HTML without holding up the server: worker processes with limits on time and size, and a cache.

Rendering is Python code whose time may grow with the square of a note's length. A thread would keep the interpreter
lock from the event loop, so it happens in another process (`simplemem.network.render_worker`).
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import sys
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from html import escape
from typing import Final

from simplemem.network import render_worker
from simplemem.network.render import MAX_CHARACTERS, REST_LEFT_OUT
from simplemem.network.render_worker import HEADER_BYTES, MAX_HTML_BYTES, MAX_SECONDS, TOO_LARGE, length_of, pack

log = logging.getLogger("simplemem.network")

_MAX_WORKERS: Final = 2
_MAX_WAIT: Final = 5.0  # seconds that a view waits for a free worker
_RETRY_SECONDS: Final = 60.0  # after which a note that was too slow on a busy machine may be tried again
_IDLE_SECONDS: Final = 300.0  # after which an unused worker ends
_MAX_CACHED_BYTES: Final = 16 * 1024 * 1024
_ENVIRONMENT: Final = ("PATH", "LANG", "LC_ALL", "PYTHONHOME", "SYSTEMROOT")  # no key, no password


class Renderer:
    """Renders notes in worker processes, which it starts when they are needed, and keeps the latest results.

    All methods belong to one event loop.
    """

    def __init__(self) -> None:
        self._idle: list[_Worker] = []
        self._free = asyncio.Semaphore(_MAX_WORKERS)
        self._cache = _Cache(_MAX_CACHED_BYTES)
        self._running: dict[bytes, asyncio.Task[str]] = {}

    async def html(self, text: str, prefix: str) -> str:
        """Return the HTML of a note's body; its text as written if rendering takes too much time or space.

        Several views of one note at once share one rendering.
        """
        key = hashlib.sha256(f"{prefix}\0{text}".encode("utf-8", "surrogatepass")).digest()
        cached = self._cache.get(key)
        if cached is not None:
            return cached

        task = self._running.get(key)
        if task is None:
            task = asyncio.create_task(self._render(key, text, prefix))
            self._running[key] = task
            task.add_done_callback(lambda _: self._running.pop(key))
        return await asyncio.shield(task)  # a client that leaves ends nobody else's view

    async def _render(self, key: bytes, text: str, prefix: str) -> str:
        try:
            async with asyncio.timeout(_MAX_WAIT):
                await self._free.acquire()
        except TimeoutError:
            return _as_written(text, "The server is busy rendering other notes")

        is_final = True
        try:
            html = await self._render_in_worker(text, prefix)
        except TimeoutError:
            html = None
            is_final = False
        except OSError as error:
            log.warning("no process could be started to render a note: %s", type(error).__name__)
            return _as_written(text, "The server could not start the process that renders notes")
        finally:
            self._free.release()

        if html is None:
            html = _as_written(text, "This note takes too much time or space to render")
        self._cache.put(key, html)
        if not is_final:
            asyncio.get_running_loop().call_later(_RETRY_SECONDS, self._cache.drop, key)
        return html

    async def _render_in_worker(self, text: str, prefix: str) -> str | None:
        """Return what a worker makes of a note, or None if it exceeds a limit of CPU time, memory or size.

        TimeoutError if it takes too long by the clock, OSError if no worker can be started.
        """
        worker = await self._take_worker()
        request = json.dumps({"text": text[: MAX_CHARACTERS + 1], "prefix": prefix}).encode()
        answer = None
        try:
            async with asyncio.timeout(MAX_SECONDS):
                answer = await worker.ask(request)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the process ended at one of its own limits
        finally:
            if answer is None:
                await worker.end()
            else:
                worker.rest(lambda: self._retire(worker))
                self._idle.append(worker)
        if answer is None or answer == TOO_LARGE:
            return None
        return answer.decode()

    async def _take_worker(self) -> _Worker:
        while self._idle:
            worker = self._idle.pop()
            worker.wake()
            if worker.is_alive:
                return worker

        return await _Worker.start()

    async def close(self) -> None:
        """End all workers that have nothing to do."""
        while self._idle:
            await self._idle.pop().end()

    def _retire(self, worker: _Worker) -> None:
        """End a worker that nobody has needed for a while. Its process ends with its input."""
        if worker in self._idle:
            self._idle.remove(worker)
            worker.close_input()


class _Worker:
    """One process that renders a note at a time."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._timer: asyncio.TimerHandle | None = None

    @classmethod
    async def start(cls) -> _Worker:
        """Start a process. OSError if the system refuses one."""
        environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-m",
            render_worker.__name__,
            env=environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        return cls(process)

    @property
    def is_alive(self) -> bool:
        return self._process.returncode is None

    async def ask(self, request: bytes) -> bytes:
        """Send a request and return the answer. IncompleteReadError or ConnectionError if the process ends."""
        requests = self._process.stdin
        answers = self._process.stdout
        assert requests is not None
        assert answers is not None

        requests.write(pack(request))
        await requests.drain()

        length = length_of(await answers.readexactly(HEADER_BYTES))
        return await answers.readexactly(min(length, MAX_HTML_BYTES))

    def rest(self, when_unused: Callable[[], None]) -> None:
        """Call back once the worker has not been woken for a while."""
        self._timer = asyncio.get_running_loop().call_later(_IDLE_SECONDS, when_unused)

    def wake(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def close_input(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()

    async def end(self) -> None:
        """Kill the process and wait for its end."""
        self.wake()
        self.close_input()
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()


class _Cache:
    """The HTML of the notes that were viewed last, by hash, up to a number of bytes."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._pages: OrderedDict[bytes, str] = OrderedDict()

    def get(self, key: bytes) -> str | None:
        html = self._pages.get(key)
        if html is not None:
            self._pages.move_to_end(key)
        return html

    def put(self, key: bytes, html: str) -> None:
        self.drop(key)
        self._pages[key] = html
        self._bytes += len(html)
        while self._bytes > self._max_bytes:
            _, oldest = self._pages.popitem(last=False)
            self._bytes -= len(oldest)

    def drop(self, key: bytes) -> None:
        html = self._pages.pop(key, "")
        self._bytes -= len(html)


def _as_written(text: str, reason: str) -> str:
    """Return a note's text as it stands in the file, with the reason why it is not rendered."""
    shown = escape(text[:MAX_CHARACTERS])
    rest = REST_LEFT_OUT if len(text) > MAX_CHARACTERS else ""
    return f'<p class="said">{reason}, so its text is shown as written.</p><pre>{shown}</pre>{rest}'
