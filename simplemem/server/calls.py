"""From a request for a tool to its answer: whatever happens, the model gets something it can act on."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, CallToolRequestParams, CallToolResult, TextContent
from pydantic import ValidationError

from simplemem.errors import SimplememError, Unavailable
from simplemem.faces.face import Call, Manner, Tool
from simplemem.faces.render import error_data, line
from simplemem.server.door import Door

log = logging.getLogger("simplemem.server")

Context = ServerRequestContext[Any, Any]
T = TypeVar("T")

_BEAT = 1.0
"""Seconds between two signs of life for a client that asked for them."""


class ToolCalls:
    """Answers `tools/call`. `changed` is called after each change that succeeded, before its answer."""

    def __init__(
        self, tools: tuple[Tool, ...], door: Door, manner: Manner, changed: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._door = door
        self._manner = manner
        self._changed = changed
        self._data: dict[int, dict[str, Any]] = {}
        self._is_warm = changed is None  # only a graph is read whole by the first call

    async def __call__(self, ctx: Context, params: CallToolRequestParams) -> CallToolResult:
        tool = self._tools.get(params.name)
        if tool is None:
            if words := self._manner.unknown(params.name):
                return _result(words, None, is_error=True)
            raise MCPError(INVALID_PARAMS, f"There is no tool {line(params.name, 60)!r}.")
        work = partial(perform, tool, self._door, params.arguments, who_asks(ctx))
        lane = self._door.write if tool.writes else self._door.read
        result = await with_signs_of_life(ctx, lane(work))
        if tool.writes and not result.is_error and self._changed is not None:
            await self._changed()
        if not self._is_warm:
            self._is_warm = True
            gc.collect(1)
            gc.freeze()  # the graph stays for good, and is large: Python need not look through it again and again
        if result.structured_content:
            self._data[id(ctx.session)] = result.structured_content
            result.structured_content = {}
        return result

    async def past_the_sdk(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """The data of an answer goes past the SDK, which would copy and check it piece by piece, twice: of a whole graph
        that was a third of the call. It sees that there is some, and decides whether the client's version has it."""
        try:
            answer = await call_next(ctx)
        finally:
            data = self._data.pop(id(ctx.session), None)
        if data is not None and isinstance(answer, dict) and "structuredContent" in answer:
            answer["structuredContent"] = data
        return answer


async def read_string_arguments(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Some models send the whole of `arguments` as a string of JSON: read it as what it is."""
    params = ctx.params
    if ctx.method == "tools/call" and params is not None and isinstance(params.get("arguments"), str):
        with suppress(ValueError, RecursionError):
            read = json.loads(params["arguments"] or "{}")
            if isinstance(read, dict):
                ctx = replace(ctx, params={**params, "arguments": read})
    return await call_next(ctx)


async def tell_failures_plainly(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Known errors outside the tools come with a hint; unexpected ones without their message."""
    try:
        return await call_next(ctx)
    except SimplememError as error:
        raise MCPError(INVALID_PARAMS, line(error.message, 400), data=error_data(error)) from None
    except (MCPError, ValidationError):
        raise
    except Exception as error:
        log.exception("%s failed", line(ctx.method, 60))
        raise MCPError(INTERNAL_ERROR, f"This failed inside simplemem ({type(error).__name__}).") from None


def who_asks(ctx: Context) -> str:
    """The client as it names itself: `claude-ai 1.2`. Both protocol generations say so, in places of their own."""
    client = ctx.session.client_params
    return line(f"{client.client_info.name} {client.client_info.version}", 100) if client else ""


async def with_signs_of_life(ctx: Context, work: Awaitable[T]) -> T:
    """Wait for some work, and send progress each second while it lasts when the client asked for that."""
    token = ctx.meta.get("progress_token") if ctx.meta else None
    if token is None:
        return await work
    doing = asyncio.ensure_future(work)
    beats = 0
    try:
        while True:
            done, _ = await asyncio.wait({doing}, timeout=_BEAT)
            if done:
                return doing.result()
            beats += 1
            await ctx.session.send_progress_notification(
                token, beats, message="still at work", related_request_id=str(ctx.request_id)
            )
    finally:
        doing.cancel()


def perform(tool: Tool, door: Door, sent: Mapping[str, Any] | None, who: str) -> CallToolResult:
    """Run a tool in this thread. Failures are answers; none of them is silent and none tells a secret."""
    try:
        arguments, notes = tool.manner.read(tool, sent)
        reply = tool.manner.perform(tool, Call(door.store(), who, tool.name), arguments)
        return _result("\n\n".join([reply.text, *notes]), reply.data(), is_error=False)
    except SimplememError as error:
        failure = error
    except Exception as error:
        # Its message may quote a note or a path: the log says where it happened, the model what it may do.
        log.exception("the tool %s failed", tool.name)
        failure = Unavailable(
            f"{tool.name} failed inside simplemem ({type(error).__name__}).",
            hint="This is a fault of the server, told in its log. Read the memory before you try again.",
        )
    return _result(*tool.manner.failed(failure), is_error=True)


def _result(text: str, data: dict[str, Any] | None, *, is_error: bool) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=data, is_error=is_error)
