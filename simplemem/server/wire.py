"""The wire: one JSON-RPC message a line. The SDK's own has no bound on a line and no answer to a broken one. A client
that stops reading stops us from reading; one that has gone is not waited for."""

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
from typing import Any, Final

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from anyio.to_thread import run_sync
from mcp.shared.message import SessionMessage

Messages = MemoryObjectReceiveStream[SessionMessage | Exception]
Answers = MemoryObjectSendStream[SessionMessage]

MOST_BYTES: Final = (
    8 * 1024 * 1024
)  # of a message: a note of that size has no business in a tool call
_MOST_UNANSWERED = (
    64  # requests in work at once; beyond it nothing more is read until one is answered
)
_GRACE = 1.2  # seconds that requests in work have to be answered once the input has ended
_LAST_ANSWERS = 0.4  # seconds that the last answers have to be written
_HALF = re.compile("[\ud800-\udfff]")


@asynccontextmanager
async def stdio_wire(
    wire_in: int, wire_out: int
) -> AsyncIterator[tuple[Messages, Answers, Callable[[], None]]]:
    """Messages, which end a moment after the input or when they are closed; answers; and how to close."""
    loop = asyncio.get_running_loop()
    into, messages = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    answers, outward = anyio.create_memory_object_stream[SessionMessage](0)
    refusals = answers.clone()
    in_work: set[Any] = set()

    async def until_unanswered_are(most: int) -> None:
        while len(in_work) > most:
            await anyio.sleep(0.002)

    async def hand_over(message: Any) -> None:
        if isinstance(message, _Refusal):
            return await refusals.send(SessionMessage(message))
        if isinstance(message, types.JSONRPCRequest) and message.method != "subscriptions/listen":
            await until_unanswered_are(_MOST_UNANSWERED - 1)
            in_work.add(message.id)
        elif (
            isinstance(message, types.JSONRPCNotification)
            and message.method == "notifications/cancelled"
        ):
            ident = (message.params or {}).get("requestId")
            in_work.difference_update(
                [ident] if isinstance(ident, (str, int)) else []
            )  # it has no answer
        return await into.send(SessionMessage(message))

    async def finish() -> None:
        with anyio.move_on_after(_GRACE):
            await until_unanswered_are(0)
        into.close()

    def read() -> None:
        # When the loop or the other side is gone there is nobody to read for any more.
        with suppress(
            CancelledError, RuntimeError, anyio.BrokenResourceError, anyio.ClosedResourceError
        ):
            with suppress(OSError):
                for line in lines(iter(lambda: os.read(wire_in, 65536), b"")):
                    if line not in (b"", b"\r"):
                        asyncio.run_coroutine_threadsafe(hand_over(_message(line)), loop).result()
            asyncio.run_coroutine_threadsafe(finish(), loop).result()

    def watch() -> None:
        """See that the client has closed its end, though we may wait for it to read and not read ourselves."""
        asked = select.poll()
        asked.register(wire_in, getattr(select, "POLLRDHUP", 0))
        asked.poll()
        time.sleep(_GRACE)
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(into.close)

    async def write() -> None:
        with suppress(OSError):
            async for each in outward:
                # In a thread, which waits for a client that reads slowly.
                await run_sync(_write, wire_out, _line_of(each.message), abandon_on_cancel=True)
                in_work.discard(getattr(each.message, "id", None))
        outward.close()
        into.close()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(write)
        for work in (
            (read, watch) if hasattr(select, "poll") else (read,)
        ):  # Windows cannot say who has gone
            threading.Thread(target=work, name=f"wire-{work.__name__}", daemon=True).start()
        yield messages, answers, into.close
        # The last answers are on their way: let them out before the process ends.
        refusals.close()
        answers.close()
        tasks.cancel_scope.deadline = anyio.current_time() + _LAST_ANSWERS


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


class _Refusal(types.JSONRPCError):
    """Our own answer to a line that is no message."""


def _message(line: bytes | None) -> Any:
    """A line as a message, or as our refusal of it. Half a surrogate pair, as JavaScript sends it, is read as U+FFFD."""
    ident, code, why = None, types.INVALID_REQUEST, "this is not a JSON-RPC 2.0 message"
    if line is None:
        why = f"the message is longer than {MOST_BYTES // 1024 // 1024} MB"
    else:
        read = types.jsonrpc_message_adapter.validate_json
        with suppress(ValueError):
            return read(line, by_name=False)
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            code, why, found = types.PARSE_ERROR, "this line is not JSON", None
        with suppress(ValueError):
            return read(_in_utf8(found), by_name=False)
        known = found.get("id") if isinstance(found, dict) else None
        ident = known if isinstance(known, (str, int)) and not isinstance(known, bool) else None
    return _Refusal(jsonrpc="2.0", id=ident, error=types.ErrorData(code=code, message=why))


def _line_of(message: Any) -> bytes:
    try:
        line: bytes = message.model_dump_json(by_alias=True, exclude_unset=True).encode()
    except ValueError:
        line = _in_utf8(message.model_dump(by_alias=True, exclude_unset=True))
    return line + b"\n"


def _in_utf8(value: Any) -> bytes:
    """JSON with U+FFFD for each half of a surrogate pair, which UTF-8 cannot say."""
    return _HALF.sub(
        "\ufffd", json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    ).encode()


def _write(wire: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(wire, left) :]
