"""From a request for a tool to its answer: whatever happens, the model gets something it can act on."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, CallToolRequestParams, CallToolResult, TextContent
from pydantic import ValidationError

from simplemem.errors import SimplememError, Unavailable
from simplemem.faces.face import Call, Tool
from simplemem.faces.render import error_data, line
from simplemem.server.door import Door

log = logging.getLogger("simplemem.server")

Context = ServerRequestContext[Any, Any]


def tool_calls(
    tools: tuple[Tool, ...], door: Door, changed: Callable[[], Awaitable[None]] | None = None
) -> Callable[[Context, CallToolRequestParams], Awaitable[CallToolResult]]:
    """What answers `tools/call`. `changed` is called after each change that succeeded, before its answer."""
    by_name = {tool.name: tool for tool in tools}

    async def call(ctx: Context, params: CallToolRequestParams) -> CallToolResult:
        tool = by_name.get(params.name)
        if tool is None:
            if words := tools[0].manner.unknown(params.name):
                return _result(words, None, is_error=True)
            raise MCPError(INVALID_PARAMS, f"There is no tool {line(params.name, 60)!r}.")
        client = ctx.session.client_params
        who = line(f"{client.client_info.name} {client.client_info.version}", 100) if client else ""
        lane = door.write if tool.writes else door.read
        result = await lane(partial(perform, tool, door, params.arguments, who))
        if changed is not None and tool.writes and not result.is_error:
            await changed()
        if result.structured_content:
            ctx.lifespan_context["data"], result.structured_content = result.structured_content, {}
        return result

    return call


async def around(ctx: Context, call_next: CallNext) -> HandlerResult:
    """What surrounds every request. Known errors outside the tools come with a hint, unexpected ones without their
    message. The data of an answer goes past the SDK, which would copy and check it twice: of a whole graph a third of
    the call."""
    ctx = replace(ctx, lifespan_context={})
    try:
        answer = await call_next(ctx)
    except SimplememError as error:
        raise MCPError(INVALID_PARAMS, line(error.message, 400), data=error_data(error)) from None
    except (MCPError, ValidationError):
        raise
    except Exception as error:
        log.exception("%s failed", line(ctx.method, 60))
        raise MCPError(INTERNAL_ERROR, f"This failed inside simplemem ({type(error).__name__}).") from None
    if isinstance(answer, dict) and "structuredContent" in answer:
        answer["structuredContent"] = ctx.lifespan_context.get("data", {})
    return answer


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
