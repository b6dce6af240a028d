"""The wire: one JSON-RPC message a line, in on standard input, out on standard output. Nothing else ever reaches that
output.

The SDK's own transport has no bound on a line and no answer to a broken one, so this stands in its place with the same
two streams: messages in, messages out. A client that stops reading stops us from reading, and never makes us hold more
and more; one that has gone is not waited for.
"""

from __future__ import annotations

import asyncio
import json
import os
import select
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from concurrent.futures import wait as wait_for_futures
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import anyio
import mcp_types as types
from mcp.shared.message import SessionMessage

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

MOST_BYTES: Final = 8 * 1024 * 1024
"""The longest message that is read. A note of that size has no business in a tool call."""
_MOST_UNANSWERED, _MOST_IN_WORK = 64, 32 * 1024 * 1024
"""Requests, and bytes of requests, in work at once. Beyond it nothing more is read until one is answered."""
_GRACE = 1.2
"""Seconds that requests in work have to be answered once the input has ended."""
_LAST_ANSWERS = 0.4
"""Seconds that the last answers have to be written."""
_LOOK = 0.2
"""Seconds between two looks whether a client that keeps us waiting is still there."""
_END = 1.8
"""Seconds from the end of the input until the process ends, whatever it does. A write that has begun has longer."""


@dataclass(frozen=True, slots=True)
class Wire:
    """The two streams the SDK's server speaks over, and a way to end the conversation as if the client had."""

    messages: MemoryObjectReceiveStream[SessionMessage | Exception]
    answers: MemoryObjectSendStream[SessionMessage]
    hang_up: Callable[[], None]


@asynccontextmanager
async def stdio_wire(
    wire_in: int, wire_out: int, ending: Callable[[float], None], *, half_pairs: bool = False
) -> AsyncIterator[Wire]:
    """The wire over two descriptors. The messages end with the input, or when the client no longer reads; `ending` is
    told then, from another thread, in how many seconds all must be over. With `half_pairs` a client that sends half a
    surrogate pair, as JavaScript does, is understood, and gets it back."""
    into, messages = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    answers, outward = anyio.create_memory_object_stream[SessionMessage](0)
    refusals = answers.clone()
    in_work = _InWork()
    written = anyio.Event()
    reader = _Reader(wire_in, asyncio.get_running_loop(), into, refusals, in_work, ending, half_pairs)

    async def write() -> None:
        """Write what is sent, a line each. A thread of its own waits for a client that reads slowly."""
        thread = ThreadPoolExecutor(1, "wire-out")
        try:
            async with outward:
                async for each in outward:
                    line = _line_of(each.message, half_pairs)
                    await asyncio.get_running_loop().run_in_executor(thread, _write_all, wire_out, line)
                    if isinstance(each.message, (types.JSONRPCResponse, types.JSONRPCError)):
                        in_work.drop(each.message.id)
        except OSError:
            into.close()
        finally:
            thread.shutdown(wait=False, cancel_futures=True)
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


class _Gone(Exception):
    """The client closed its end a while ago: there is nobody to read for."""


class _InWork:
    """The requests that have not been answered, with their sizes."""

    def __init__(self) -> None:
        self._sizes: dict[Any, int] = {}
        self._changed = threading.Condition()

    def add(self, request: str | int, size: int) -> None:
        with self._changed:
            self._sizes[request] = size

    def drop(self, request: Any) -> None:
        with self._changed, suppress(TypeError):  # a number that is none was never added
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


@dataclass(slots=True)
class _Reader:
    """Reads until the input ends, in a thread of its own. Each message is handed over before the next is read."""

    wire: int
    loop: asyncio.AbstractEventLoop
    messages: MemoryObjectSendStream[SessionMessage | Exception]
    refusals: MemoryObjectSendStream[SessionMessage]
    in_work: _InWork
    ending: Callable[[float], None]
    half_pairs: bool
    closed_at: float | None = None

    def run(self) -> None:
        # When the loop or the other side is gone there is nobody to read for any more.
        with suppress(_Gone, CancelledError, RuntimeError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            for line in lines(iter(lambda: _chunk(self.wire), b"")):
                if line not in (b"", b"\r"):
                    self.take(line)
            self.ending(_END)
            self.in_work.wait_for_none(_GRACE)
        with suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self.messages.close)

    def take(self, line: bytes | None) -> None:
        self.look_whether_gone()
        message = _message(line, self.half_pairs)
        if isinstance(message, _Refusal):
            return self.hand_over(self.refusals, message)
        if isinstance(message, types.JSONRPCRequest) and message.method != "subscriptions/listen":
            while not self.in_work.has_room(_LOOK):
                self.look_whether_gone()
            self.in_work.add(message.id, len(line or b""))
        elif isinstance(message, types.JSONRPCNotification) and message.method == "notifications/cancelled":
            self.in_work.drop((message.params or {}).get("requestId"))  # a cancelled request has no answer
        return self.hand_over(self.messages, message)

    def hand_over(self, stream: MemoryObjectSendStream[Any], message: Any) -> None:
        handing = asyncio.run_coroutine_threadsafe(stream.send(SessionMessage(message)), self.loop)
        while not wait_for_futures([handing], _LOOK).done:
            self.look_whether_gone()
        handing.result()

    def look_whether_gone(self) -> None:
        """A client that has closed its end is served for a grace yet: what it sent may not all be read."""
        if _has_closed(self.wire):
            if self.closed_at is None:
                self.closed_at = time.monotonic()
                self.ending(_END)
            elif time.monotonic() - self.closed_at > _GRACE:
                raise _Gone


def _has_closed(wire: int) -> bool:
    """Whether nobody can write to this input any more, though bytes may be left in it. Windows cannot say."""
    if not hasattr(select, "poll"):
        return False
    asked = select.poll()
    asked.register(wire, getattr(select, "POLLRDHUP", 0))
    return bool(asked.poll(0))


def _chunk(wire: int) -> bytes:
    try:
        return os.read(wire, 65536)
    except OSError:
        return b""


def lines(chunks: Iterator[bytes], most: int = MOST_BYTES) -> Iterator[bytes | None]:
    """Lines out of chunks of bytes. One beyond the bound is never held: None stands in its place."""
    held: list[bytes] = []
    size = 0
    for chunk in chunks:
        *ends, rest = chunk.split(b"\n")
        for part in ends:
            yield b"".join([*held, part]) if size + len(part) <= most else None
            held, size = [], 0
        size += len(rest)
        held = [*held, rest] if size <= most else []


# --- messages


class _Refusal(types.JSONRPCError):
    """Our own answer to a line that is no message."""


def _message(line: bytes | None, half_pairs: bool) -> Any:
    """A line as a message, or as our refusal about it."""
    if line is None:
        return _refusal(None, types.INVALID_REQUEST, f"the message is longer than {MOST_BYTES // 1024 // 1024} MB")
    with suppress(ValueError):
        return types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return _refusal(None, types.PARSE_ERROR, "this line is not JSON")
    if half_pairs and b"\\ud" in line.lower():
        with suppress(ValueError):
            return types.jsonrpc_message_adapter.validate_python(found, by_name=False)
    ident = found.get("id") if isinstance(found, dict) else None
    known = ident if isinstance(ident, (str, int)) and not isinstance(ident, bool) else None
    return _refusal(known, types.INVALID_REQUEST, "this is not a JSON-RPC 2.0 message")


def _refusal(ident: str | int | None, code: int, message: str) -> _Refusal:
    return _Refusal(jsonrpc="2.0", id=ident, error=types.ErrorData(code=code, message=message))


def _line_of(message: Any, half_pairs: bool) -> bytes:
    """A message as one line. Half a surrogate pair, which UTF-8 cannot say, goes escaped to those that expect it; few other
    clients can read that, and get a question mark."""
    try:
        line: bytes = message.model_dump_json(by_alias=True, exclude_unset=True).encode()
    except ValueError:
        text = json.dumps(
            message.model_dump(by_alias=True, exclude_unset=True), ensure_ascii=half_pairs, separators=(",", ":")
        )
        line = text.encode("utf-8", "replace")
    return line + b"\n"


def _write_all(wire: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(wire, left) :]
