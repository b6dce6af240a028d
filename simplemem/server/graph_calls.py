"""From a request for a tool of a graph memory server to its answer, in that server's manner: whatever is wrong with a
call is a result that says so in its words, and nothing has changed."""

from __future__ import annotations

import gc
import logging
from collections.abc import Mapping
from contextvars import ContextVar
from functools import partial
from typing import Any, Final

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp_types import CallToolRequestParams, CallToolResult, TextContent

from simplemem.errors import SimplememError
from simplemem.faces.contract import ContractTool, Given, Refused
from simplemem.faces.fitted import Unfit, fitted
from simplemem.faces.tool import Call, Tool
from simplemem.server.calls import perform, who_asks, with_signs_of_life
from simplemem.server.door import Door
from simplemem.server.graph_resource import GraphResource

log = logging.getLogger("simplemem.server")

Context = ServerRequestContext[Any, Any]
_ASIDE: Final[ContextVar[list[dict[str, Any]] | None]] = ContextVar("aside", default=None)


async def keep_data_as_it_is(ctx: Context, call_next: CallNext) -> HandlerResult:
    """The data of an answer goes past the SDK, which would copy and check it piece by piece, twice: of a whole graph that
    was a third of the call. It sees that there is some, and decides whether the client's version of the protocol has it."""
    aside: list[dict[str, Any]] = []
    token = _ASIDE.set(aside)
    try:
        answer = await call_next(ctx)
    finally:
        _ASIDE.reset(token)
    if aside and isinstance(answer, dict) and "structuredContent" in answer:
        answer["structuredContent"] = aside[0]
    return answer


def _put_aside(result: CallToolResult) -> None:
    aside = _ASIDE.get()
    if aside is not None and result.structured_content:
        aside.append(result.structured_content)
        result.structured_content = {}


class GraphCalls:
    """Answers `tools/call`."""

    def __init__(self, tools: tuple[Tool[Any], ...], door: Door, resource: GraphResource) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._door = door
        self._resource = resource
        self._has_read = False

    async def __call__(self, ctx: Context, params: CallToolRequestParams) -> CallToolResult:
        tool = self._tools.get(params.name)
        if tool is None:
            return failed(f"MCP error -32602: Tool {params.name} not found")
        if isinstance(tool, ContractTool):
            work = partial(perform_contract, tool, self._door, params.arguments, who_asks(ctx))
        else:  # a toolset of ours that was added to the profile
            work = partial(perform, tool, self._door, params.arguments, who_asks(ctx))
        lane = self._door.write if tool.writes else self._door.read
        result = await with_signs_of_life(ctx, lane(work))
        if tool.writes and not result.is_error:
            await self._resource.tell()  # before the answer, once for each change
        if not self._has_read:
            self._has_read = True
            gc.collect(1)
            gc.freeze()  # the graph stays for good, and is large: Python need not look through it again and again
        _put_aside(result)
        return result


def perform_contract(tool: ContractTool, door: Door, sent: Mapping[str, Any] | None, who: str) -> CallToolResult:
    """Run a tool in this thread. Failures are answers."""
    try:
        given = fitted(tool.input, sent or {})
        reply = tool.run(Call(door.store(), who, tool.name), Given.model_construct(given=given))
    except Unfit as error:
        invalid = f"Input validation error: Invalid arguments for tool {tool.name}"
        return failed(f"MCP error -32602: {invalid}: {error}")
    except Refused as error:
        return failed(str(error))
    except SimplememError as error:
        return failed(said(error))
    except Exception as error:
        # Its message may quote a note: the log says where it happened, the model that it did.
        log.exception("the tool %s failed", tool.name)
        return failed(f"{tool.name} failed inside simplemem ({type(error).__name__}), which its log tells of.")
    return CallToolResult(content=[TextContent(type="text", text=reply.text)], structured_content=reply.data)


def said(error: SimplememError) -> str:
    """A failure in words. Of an entity that is not there they are those that clients know, and no more."""
    from simplemem.kinds.graph.values import NoSuchEntity

    return error.message if isinstance(error, NoSuchEntity) or not error.hint else f"{error.message} {error.hint}"


def failed(words: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=words)], is_error=True)
