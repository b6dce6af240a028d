"""The wire: one JSON-RPC message a line, in on standard input, out on standard output. Nothing else ever
reaches that output.

The SDK's own transport has no bound on a line and no answer to a broken one, so this stands in its place
with the same two streams: messages in, messages out. A client that stops reading stops us from reading,
and never makes us hold more and more.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import CancelledError, ThreadPoolExecutor
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
_MOST_UNANSWERED = 256
"""Requests in work at once. Beyond it nothing more is read until one is answered."""
_GRACE = 0.8
"""Seconds that requests in work have to be answered once the input has ended."""


class _Unanswered:
    """The requests that have not been answered, so that reading waits when there are too many."""

    def __init__(self) -> None:
        self._ids: set[str | int] = set()
        self._changed = threading.Condition()

    def add(self, request: str | int) -> None:
        with self._changed:
            self._changed.wait_for(lambda: len(self._ids) < _MOST_UNANSWERED)
            self._ids.add(request)

    def drop(self, request: Any) -> None:
        if not isinstance(request, (str, int)):
            return
        with self._changed:
            self._ids.discard(request)
            self._changed.notify_all()

    def wait_for_none(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._ids, seconds)


@dataclass(frozen=True, slots=True)
class Wire:
    """The two streams the SDK's server speaks over, and a way to end the conversation as if the client
    had."""

    messages: MemoryObjectReceiveStream[SessionMessage | Exception]
    answers: MemoryObjectSendStream[SessionMessage]
    hang_up: Callable[[], None]


@asynccontextmanager
async def stdio_wire(wire_in: int, wire_out: int) -> AsyncIterator[Wire]:
    """The wire over two descriptors. The messages end with the input, or when the client no longer reads."""
    into, messages = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    answers, outward = anyio.create_memory_object_stream[SessionMessage](0)
    refusals = answers.clone()
    unanswered = _Unanswered()
    written = anyio.Event()
    loop = asyncio.get_running_loop()
    reader = threading.Thread(
        target=_read, args=(wire_in, loop, into, refusals, unanswered), name="wire-in", daemon=True
    )

    async def write() -> None:
        try:
            await _write(wire_out, outward, unanswered)
        except OSError:
            into.close()
        finally:
            written.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(write)
        reader.start()
        try:
            yield Wire(messages, answers, into.close)
        finally:
            # The last answers are on their way: let them out before the process ends.
            refusals.close()
            answers.close()
            with anyio.move_on_after(_GRACE, shield=True):
                await written.wait()
            tasks.cancel_scope.cancel()


def _read(
    wire: int,
    loop: asyncio.AbstractEventLoop,
    messages: MemoryObjectSendStream[SessionMessage | Exception],
    refusals: MemoryObjectSendStream[SessionMessage],
    unanswered: _Unanswered,
) -> None:
    """Read until the input ends. Runs in a thread of its own; each message is handed over before the next
    is read."""

    def hand_over(stream: MemoryObjectSendStream[Any], message: JSONRPCMessage) -> None:
        asyncio.run_coroutine_threadsafe(stream.send(SessionMessage(message)), loop).result()

    lines = Lines()
    # When the loop or the other side is gone there is nobody to read for any more.
    with suppress(CancelledError, RuntimeError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        while chunk := _chunk(wire):
            for line in lines.feed(chunk):
                if line == b"" or line == b"\r":
                    continue
                message = _understood(line)
                if isinstance(message, _Refusal):
                    hand_over(refusals, message)
                    continue
                if isinstance(message, JSONRPCRequest) and message.method != "subscriptions/listen":
                    unanswered.add(message.id)
                elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
                    unanswered.drop((message.params or {}).get("requestId"))  # a cancelled request has no answer
                hand_over(messages, message)
        unanswered.wait_for_none(_GRACE)
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(messages.close)


def _chunk(wire: int) -> bytes:
    try:
        return os.read(wire, _CHUNK)
    except OSError:
        return b""


class _Refusal(JSONRPCError):  # noqa: N818 (a message, no exception)
    """Our own answer to a line that is no message."""


def _understood(line: bytes | TooLong) -> JSONRPCMessage:
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
    ident = found.get("id") if isinstance(found, dict) else None
    known = ident if isinstance(ident, (str, int)) and not isinstance(ident, bool) else None
    return _refusal(known, INVALID_REQUEST, "this is not a JSON-RPC 2.0 message")


def _refusal(ident: str | int | None, code: int, message: str) -> _Refusal:
    return _Refusal(jsonrpc="2.0", id=ident, error=ErrorData(code=code, message=message))


async def _write(
    wire: int,
    messages: MemoryObjectReceiveStream[SessionMessage],
    unanswered: _Unanswered,
) -> None:
    """Write what is sent, a line each. A thread of its own waits for a client that reads slowly."""
    loop = asyncio.get_running_loop()
    thread = ThreadPoolExecutor(1, "wire-out")
    try:
        async with messages:
            async for each in messages:
                message = each.message
                await loop.run_in_executor(thread, _write_all, wire, _line_of(message))
                if isinstance(message, (JSONRPCResponse, JSONRPCError)):
                    unanswered.drop(message.id)
    finally:
        thread.shutdown(wait=False, cancel_futures=True)


def _line_of(message: Any) -> bytes:
    """A message as one line. What JSON cannot say (half a surrogate pair in a file's name) is an error,
    not our end."""
    try:
        return _json(message)
    except ValueError:
        ident = getattr(message, "id", None)
        return _json(_refusal(ident, INTERNAL_ERROR, "the answer holds text that is not valid Unicode"))


def _json(message: Any) -> bytes:
    text: str = message.model_dump_json(by_alias=True, exclude_unset=True)
    return text.encode() + b"\n"


def _write_all(wire: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(wire, left) :]
