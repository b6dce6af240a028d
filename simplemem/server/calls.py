"""From a request for a tool to its answer: whatever happens, the model gets something it can act on."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, CallToolRequestParams, CallToolResult, TextContent
from pydantic import ValidationError

from simplemem.errors import SimplememError, Unavailable
from simplemem.faces.arguments import read_arguments
from simplemem.faces.render import error_data, error_text, line
from simplemem.faces.tool import Call, Reply, Tool
from simplemem.server.door import Door

log = logging.getLogger("simplemem.server")

Context = ServerRequestContext[Any, Any]
T = TypeVar("T")

_BEAT = 1.0
"""Seconds between two signs of life for a client that asked for them."""


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
    """What goes wrong outside the tools is told with its way out, and what nobody thought of without its
    message."""
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
    """The client as it names itself: `claude-ai 1.2`. Both protocol generations say so, in places of their
    own."""
    client = ctx.session.client_params
    return line(f"{client.client_info.name} {client.client_info.version}", 100) if client else ""


class ToolCalls:
    """Answers `tools/call`."""

    def __init__(self, tools: tuple[Tool[Any], ...], door: Door) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._door = door

    async def __call__(self, ctx: Context, params: CallToolRequestParams) -> CallToolResult:
        tool = self._tools.get(params.name)
        if tool is None:
            raise MCPError(INVALID_PARAMS, f"There is no tool {line(params.name, 60)!r}.")
        work = partial(perform, tool, self._door, params.arguments, who_asks(ctx))
        lane = self._door.write if tool.writes else self._door.read
        return await with_signs_of_life(ctx, lane(work))


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


def perform(tool: Tool[Any], door: Door, sent: Mapping[str, Any] | None, who: str) -> CallToolResult:
    """Run a tool in this thread. Failures are answers; none of them is silent and none tells a secret."""
    try:
        arguments, passed_over = read_arguments(tool.arguments, sent, strict=tool.writes)
        reply = tool.run(Call(door.store(), who, tool.name), arguments)
    except SimplememError as error:
        return failed(error, tool.failure)
    except Exception as error:
        # Its message may quote a note or a path: the log says where it happened, the model what it may do.
        log.exception("the tool %s failed", tool.name)
        return failed(
            Unavailable(
                f"{tool.name} failed inside simplemem ({type(error).__name__}).",
                hint="This is a fault of the server, told in its log. Read the memory before you try again.",
            ),
            tool.failure,
        )
    return answered(reply, passed_over)


def answered(reply: Reply, notes: list[str]) -> CallToolResult:
    text = "\n\n".join([reply.text, *notes])
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=reply.data)


def failed(error: SimplememError, begins: str = "") -> CallToolResult:
    """A failure as a result, so that the model sees it."""
    shown = error_data(error)
    text = error_text(shown)
    return CallToolResult(
        content=[TextContent(type="text", text=begins + text.removeprefix(f"{error.code}: ") if begins else text)],
        structured_content={"error": shown},
        is_error=True,
    )
