"""The wire: one JSON-RPC message a line, in on standard input, out on standard output. Nothing else ever
reaches that output.

The SDK's own transport has no bound on a line and no answer to a broken one, so this stands in its place
with the same two streams: messages in, messages out. A client that stops reading stops us from reading,
and never makes us hold more and more; one that has gone is not waited for.
"""

from __future__ import annotations

import asyncio
import json
import os
import select
import threading
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import CancelledError, ThreadPoolExecutor
from concurrent.futures import wait as wait_for_futures
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)

from simplemem.server.lines import MOST_BYTES, Lines, TooLong

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

_CHUNK = 65536
_MOST_UNANSWERED = 64
_MOST_IN_WORK = 32 * 1024 * 1024
"""Requests, and bytes of requests, in work at once. Beyond it nothing more is read until one is answered."""
_GRACE = 1.2
"""Seconds that requests in work have to be answered once the input has ended."""
_LAST_ANSWERS = 0.4
"""Seconds that the last answers have to be written."""
_LOOK = 0.2
"""Seconds between two looks whether a client that keeps us waiting is still there."""
_END = 1.8
"""Seconds from the end of the input until the process ends, whatever it does. A write that has begun has
longer."""


class _Gone(Exception):
    """The client closed its end a while ago: there is nobody to read for."""


class _Unanswered:
    """The requests that have not been answered, so that reading waits when there are too many."""

    def __init__(self) -> None:
        self._sizes: dict[str | int, int] = {}
        self._changed = threading.Condition()

    def add(self, request: str | int, size: int) -> None:
        with self._changed:
            self._sizes[request] = size

    def drop(self, request: Any) -> None:
        if not isinstance(request, (str, int)):
            return
        with self._changed:
            self._sizes.pop(request, None)
            self._changed.notify_all()

    def has_room(self, seconds: float) -> bool:
        """Whether one more may be begun, waiting so long for it."""
        with self._changed:
            return self._changed.wait_for(
                lambda: len(self._sizes) < _MOST_UNANSWERED and sum(self._sizes.values()) < _MOST_IN_WORK, seconds
            )

    def wait_for_none(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._sizes, seconds)


@dataclass(frozen=True, slots=True)
class Wire:
    """The two streams the SDK's server speaks over, and a way to end the conversation as if the client
    had."""

    messages: MemoryObjectReceiveStream[SessionMessage | Exception]
    answers: MemoryObjectSendStream[SessionMessage]
    hang_up: Callable[[], None]


@asynccontextmanager
async def stdio_wire(
    wire_in: int, wire_out: int, ending: Callable[[float], None], *, halves: bool = False
) -> AsyncIterator[Wire]:
    """The wire over two descriptors. The messages end with the input, or when the client no longer reads;
    `ending` is told then, from another thread, in how many seconds all must be over. With `halves` a client
    that sends half a surrogate pair, as JavaScript does, is understood, and gets it back."""
    into, messages = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    answers, outward = anyio.create_memory_object_stream[SessionMessage](0)
    refusals = answers.clone()
    unanswered = _Unanswered()
    written = anyio.Event()
    reader = _Reader(wire_in, asyncio.get_running_loop(), into, refusals, unanswered, ending, halves)

    async def write() -> None:
        try:
            await _write(wire_out, outward, unanswered, halves)
        except OSError:
            into.close()
        finally:
            written.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(write)
        threading.Thread(target=reader.run, name="wire-in", daemon=True).start()
        try:
            yield Wire(messages, answers, into.close)
        finally:
            # The last answers are on their way: let them out before the process ends.
            refusals.close()
            answers.close()
            with anyio.move_on_after(_LAST_ANSWERS, shield=True):
                await written.wait()
            tasks.cancel_scope.cancel()


class _Reader:
    """Reads until the input ends, in a thread of its own. Each message is handed over before the next is
    read."""

    def __init__(
        self,
        wire: int,
        loop: asyncio.AbstractEventLoop,
        messages: MemoryObjectSendStream[SessionMessage | Exception],
        refusals: MemoryObjectSendStream[SessionMessage],
        unanswered: _Unanswered,
        ending: Callable[[float], None],
        halves: bool,
    ) -> None:
        self._halves = halves
        self._wire = wire
        self._loop = loop
        self._messages = messages
        self._refusals = refusals
        self._unanswered = unanswered
        self._ending = ending
        self._closed_at: float | None = None

    def run(self) -> None:
        # When the loop or the other side is gone there is nobody to read for any more.
        with suppress(_Gone, CancelledError, RuntimeError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            self._read()
            self._ending(_END)
            self._unanswered.wait_for_none(_GRACE)
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._messages.close)

    def _read(self) -> None:
        lines = Lines()
        while chunk := _chunk(self._wire):
            for line in lines.feed(chunk):
                if line != b"" and line != b"\r":
                    self._take(line)

    def _take(self, line: bytes | TooLong) -> None:
        self._look_whether_gone()
        message = _understood(line, self._halves)
        if isinstance(message, _Refusal):
            self._hand_over(self._refusals, message)
            return
        if isinstance(message, JSONRPCRequest) and message.method != "subscriptions/listen":
            while not self._unanswered.has_room(_LOOK):
                self._look_whether_gone()
            self._unanswered.add(message.id, 0 if isinstance(line, TooLong) else len(line))
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            self._unanswered.drop((message.params or {}).get("requestId"))  # a cancelled request has no answer
        self._hand_over(self._messages, message)

    def _hand_over(self, stream: MemoryObjectSendStream[Any], message: JSONRPCMessage) -> None:
        handing = asyncio.run_coroutine_threadsafe(stream.send(SessionMessage(message)), self._loop)
        while not wait_for_futures([handing], _LOOK).done:
            self._look_whether_gone()
        handing.result()

    def _look_whether_gone(self) -> None:
        """A client that has closed its end is served for a grace yet: what it sent may not all be read."""
        if _has_closed(self._wire):
            if self._closed_at is None:
                self._closed_at = time.monotonic()
                self._ending(_END)
            elif time.monotonic() - self._closed_at > _GRACE:
                raise _Gone


def _has_closed(wire: int) -> bool:
    """Whether nobody can write to this input any more, though bytes may be left in it. Windows cannot
    say."""
    if not hasattr(select, "poll"):
        return False
    asked = select.poll()
    asked.register(wire, getattr(select, "POLLRDHUP", 0))
    return bool(asked.poll(0))


def _chunk(wire: int) -> bytes:
    try:
        return os.read(wire, _CHUNK)
    except OSError:
        return b""


class _Refusal(JSONRPCError):
    """Our own answer to a line that is no message."""


def _understood(line: bytes | TooLong, halves: bool) -> JSONRPCMessage:
    """A line as a message, or as our refusal about it."""
    if isinstance(line, TooLong):
        return _refusal(None, INVALID_REQUEST, f"the message is longer than {MOST_BYTES // 1024 // 1024} MB")
    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        pass
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return _refusal(None, PARSE_ERROR, "this line is not JSON")
    if halves and b"\\ud" in line.lower():
        with suppress(ValueError):
            return jsonrpc_message_adapter.validate_python(found, by_name=False)
    ident = found.get("id") if isinstance(found, dict) else None
    known = ident if isinstance(ident, (str, int)) and not isinstance(ident, bool) else None
    return _refusal(known, INVALID_REQUEST, "this is not a JSON-RPC 2.0 message")


def _refusal(ident: str | int | None, code: int, message: str) -> _Refusal:
    return _Refusal(jsonrpc="2.0", id=ident, error=ErrorData(code=code, message=message))


async def _write(
    wire: int,
    messages: MemoryObjectReceiveStream[SessionMessage],
    unanswered: _Unanswered,
    halves: bool,
) -> None:
    """Write what is sent, a line each. A thread of its own waits for a client that reads slowly."""
    loop = asyncio.get_running_loop()
    thread = ThreadPoolExecutor(1, "wire-out")
    try:
        async with messages:
            async for each in messages:
                message = each.message
                await loop.run_in_executor(thread, _write_all, wire, _line_of(message, halves))
                if isinstance(message, (JSONRPCResponse, JSONRPCError)):
                    unanswered.drop(message.id)
    finally:
        thread.shutdown(wait=False, cancel_futures=True)


def _line_of(message: Any, halves: bool) -> bytes:
    """A message as one line. What UTF-8 cannot say (half a surrogate pair in a file's name) is an error, not
    our end: few clients can read it escaped, except those that expect it."""
    try:
        return _json(message)
    except ValueError:
        if halves:
            return json.dumps(message.model_dump(by_alias=True, exclude_unset=True)).encode() + b"\n"
        error = {"code": INTERNAL_ERROR, "message": "the answer holds text that is not valid Unicode"}
        # The request's own number may be that text: escaped it goes back as it came.
        return json.dumps({"jsonrpc": "2.0", "id": getattr(message, "id", None), "error": error}).encode() + b"\n"


def _json(message: Any) -> bytes:
    text: str = message.model_dump_json(by_alias=True, exclude_unset=True)
    return text.encode() + b"\n"


def _write_all(wire: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(wire, left) :]
