"""MCP over two file descriptors, such as standard input and output: one JSON-RPC message per line.

The SDK's own transport has no limit for a line and no answer to a broken one. This one reads no
further while its client does not read, and does not wait for a client that has gone.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import select
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import asynccontextmanager, suppress
from typing import Final, TypeAlias

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from anyio.to_thread import run_sync
from mcp.shared.message import SessionMessage

Messages: TypeAlias = MemoryObjectReceiveStream[SessionMessage | Exception]
Answers: TypeAlias = MemoryObjectSendStream[SessionMessage]

MAX_MESSAGE_BYTES: Final = 8 * 1024 * 1024
_MAX_UNANSWERED: Final = 64  # requests in progress; the next is read when one is answered
_POLL_SECONDS: Final = 0.002  # between two checks how many requests are in progress
_GRACE_SECONDS: Final = 1.2  # that requests in progress have after the end of the input
_LAST_ANSWERS_SECONDS: Final = 0.4  # that the last answers have to be written
_CHUNK_BYTES: Final = 65536
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


@asynccontextmanager
async def stdio_transport(
    input_fd: int, output_fd: int
) -> AsyncIterator[tuple[Messages, Answers, Callable[[], None]]]:
    """Yield the messages of a client, a stream for answers, and a function to end the messages.

    Enter it, and call the function, in the event loop only. The messages also end when the input
    has ended and all requests are answered, 1.2 seconds after its end at the latest, or when the
    client has closed its side, which raises nothing. At the end of the context, answers that are
    on their way have 0.4 seconds to be written. Lines that are not messages are answered with an
    error.
    """
    transport = _StdioTransport(input_fd, output_fd)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(transport.write_answers)
        transport.start_threads()
        yield transport.messages, transport.answers, transport.end_messages

        transport.end_answers()
        tasks.cancel_scope.deadline = anyio.current_time() + _LAST_ANSWERS_SECONDS


class _StdioTransport:
    """The streams between a client and the server, and the threads that fill them.

    Guards the ids of the requests that have no answer yet. They are used in the event loop only.
    """

    def __init__(self, input_fd: int, output_fd: int) -> None:
        self._input_fd = input_fd
        self._output_fd = output_fd
        self._loop = asyncio.get_running_loop()
        self._unanswered: set[str | int] = set()

        received = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        self._received, self.messages = received
        answers = anyio.create_memory_object_stream[SessionMessage](0)
        self.answers, self._outgoing = answers
        self._refusals = self.answers.clone()

    def start_threads(self) -> None:
        """Start the thread that reads messages, and the one that waits for the client to go.

        Windows cannot report that a client has gone.
        """
        threading.Thread(target=self._read, name="stdio-read", daemon=True).start()
        if hasattr(select, "poll"):  # not on Windows
            threading.Thread(target=self._wait_for_hangup, name="stdio-hangup", daemon=True).start()

    def end_messages(self) -> None:
        """End the messages, as if the input had ended. Call it in the event loop."""
        self._received.close()

    def end_answers(self) -> None:
        """Accept no more answers or refusals. Those that were accepted are still written."""
        self._refusals.close()
        self.answers.close()

    async def write_answers(self) -> None:
        """Write answers until there are no more, or the client has gone; then end the messages.

        Raises nothing if the client has gone.
        """
        with suppress(OSError):
            async for answer in self._outgoing:
                line = encode_message(answer.message)
                # In a thread, which waits for a client that reads slowly.
                await run_sync(_write_all, self._output_fd, line, abandon_on_cancel=True)
                self._unanswered.discard(getattr(answer.message, "id", None))
        self._outgoing.close()
        self._received.close()

    def _read(self) -> None:
        """Read messages until the input ends. Runs in a thread of its own, and raises nothing."""
        chunks = iter(lambda: os.read(self._input_fd, _CHUNK_BYTES), b"")
        # After the end of the loop or of the server, nobody needs the messages any more.
        with suppress(
            CancelledError, RuntimeError, anyio.BrokenResourceError, anyio.ClosedResourceError
        ):
            with suppress(OSError):
                for line in split_lines(chunks):
                    if line in (b"", b"\r"):
                        continue
                    passing = self._pass_on(_parse_message(line))
                    asyncio.run_coroutine_threadsafe(passing, self._loop).result()
            asyncio.run_coroutine_threadsafe(self._finish(), self._loop).result()

    def _wait_for_hangup(self) -> None:
        """End the messages a moment after the client has closed its side.

        Runs in a thread of its own, because the thread that reads may be waiting for the client to
        read.
        """
        hangup = select.poll()
        hangup.register(self._input_fd, getattr(select, "POLLRDHUP", 0))
        hangup.poll()
        time.sleep(_GRACE_SECONDS)
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._received.close)

    async def _pass_on(self, message: types.JSONRPCMessage | _Refusal) -> None:
        """Pass a message to the server, or a refusal to the client.

        Waits while 64 requests are in progress. A subscription is not counted, because it has no
        answer until it ends. Raises anyio's ClosedResourceError or BrokenResourceError if the
        server or the client takes no more.
        """
        if isinstance(message, _Refusal):
            await self._refusals.send(SessionMessage(message))
            return

        if isinstance(message, types.JSONRPCRequest):
            if message.method != "subscriptions/listen":
                await self._wait_until_unanswered(_MAX_UNANSWERED - 1)
                self._unanswered.add(message.id)
        elif isinstance(message, types.JSONRPCNotification):
            self._forget_cancelled(message)
        await self._received.send(SessionMessage(message))

    def _forget_cancelled(self, notification: types.JSONRPCNotification) -> None:
        """Stop counting a request if a notification cancels it: it gets no answer."""
        if notification.method != "notifications/cancelled":
            return
        request_id = (notification.params or {}).get("requestId")
        if isinstance(request_id, (str, int)):
            self._unanswered.discard(request_id)

    async def _wait_until_unanswered(self, max_requests: int) -> None:
        """Wait until at most `max_requests` requests are in progress. It may wait forever."""
        while len(self._unanswered) > max_requests:
            await anyio.sleep(_POLL_SECONDS)

    async def _finish(self) -> None:
        """End the messages when all requests are answered, after 1.2 seconds at the latest."""
        with anyio.move_on_after(_GRACE_SECONDS):
            await self._wait_until_unanswered(0)
        self._received.close()


def split_lines(
    chunks: Iterator[bytes], max_bytes: int = MAX_MESSAGE_BYTES
) -> Iterator[bytes | None]:
    """Yield the lines of a stream without their ends, or None in place of each that is too long.

    `chunks` are the parts of the stream as they arrive. At most `max_bytes` of a line are kept in
    memory. A last line without an end is not yielded.
    """
    parts: list[bytes] = []  # of a line that has not ended, unless it is too long
    size = 0  # of this line so far
    for chunk in chunks:
        *line_ends, beginning = chunk.split(b"\n")
        for line_end in line_ends:
            if size + len(line_end) > max_bytes:
                yield None
            else:
                yield b"".join([*parts, line_end])
            parts = []
            size = 0

        size += len(beginning)
        if size <= max_bytes:
            parts.append(beginning)
        else:
            parts = []


class _Refusal(types.JSONRPCError):
    """The answer to a line that is not a message."""


def _parse_message(line: bytes | None) -> types.JSONRPCMessage | _Refusal:
    """Return the message in a line, or the answer that refuses it. None stands for a long line.

    A lone surrogate, as JavaScript writes it for half a character, is read as U+FFFD.
    """
    if line is None:
        max_megabytes = MAX_MESSAGE_BYTES // 1024 // 1024
        message = f"the message is longer than {max_megabytes} MB"
        return _refuse(types.INVALID_REQUEST, message)

    parse = types.jsonrpc_message_adapter.validate_json
    with suppress(ValueError):
        return parse(line, by_name=False)

    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return _refuse(types.PARSE_ERROR, "this line is not JSON")
    with suppress(ValueError):
        return parse(_encode_json(value), by_name=False)

    message = "this is not a JSON-RPC 2.0 message"
    return _refuse(types.INVALID_REQUEST, message, _id_of(value))


def _refuse(code: int, message: str, request_id: str | int | None = None) -> _Refusal:
    """Return the answer that refuses a line: an error of JSON-RPC with this code and message.

    `request_id` is the id in the line, None if it has none.
    """
    error = types.ErrorData(code=code, message=message)
    return _Refusal(jsonrpc="2.0", id=request_id, error=error)


def _id_of(value: object) -> str | int | None:
    """Return the id in a JSON value that is not a message, or None if it has no valid one."""
    if not isinstance(value, dict):
        return None
    request_id = value.get("id")
    if isinstance(request_id, (str, int)) and not isinstance(request_id, bool):
        return request_id
    return None


def encode_message(message: types.JSONRPCMessage) -> bytes:
    """Return a message as a line of JSON.

    U+FFFD replaces each lone surrogate, which UTF-8 cannot express.
    """
    try:
        line = message.model_dump_json(by_alias=True, exclude_unset=True).encode()
    except ValueError:
        line = _encode_json(message.model_dump(by_alias=True, exclude_unset=True))
    return line + b"\n"


def _encode_json(value: object) -> bytes:
    """Return a JSON value in UTF-8, with U+FFFD in place of each lone surrogate."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return _SURROGATE.sub("\ufffd", text).encode()


def _write_all(output_fd: int, data: bytes) -> None:
    """Write all of `data`, waiting for a slow reader. Raises OSError if the reader has gone."""
    unwritten = memoryview(data)
    while unwritten:
        written = os.write(output_fd, unwritten)
        unwritten = unwritten[written:]
