"""A server of the SDK put together: identity, instructions, tools, resources, prompts. The transport is
somebody else's."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp_types import ListToolsResult, PaginatedRequestParams
from mcp_types import Tool as ShownTool

from simplemem.faces.tool import Tool
from simplemem.server.calls import ToolCalls, read_string_arguments, tell_failures_plainly
from simplemem.server.door import Door
from simplemem.server.prompts import Prompts
from simplemem.server.resources import Resources
from simplemem.version import __version__

Context = ServerRequestContext[Any, Any]

_AFTER_THE_LIST = 0.05
"""Seconds between the answer to `tools/list` and the heavy work: the client has its list first."""
_FOR_A_WHILE = CacheHint(ttl_ms=300_000, scope="private")


def assemble(tools: tuple[Tool[Any], ...], door: Door, instructions: str) -> Server[Any]:
    """A server for these tools on that store."""
    resources, prompts = Resources(door), Prompts(door)
    server: Server[Any] = Server(
        "simplemem",
        version=__version__,
        title="simplemem",
        description="Memories as Markdown notes, searched by words, meaning and links.",
        instructions=instructions,
        cache_hints={
            "tools/list": _FOR_A_WHILE,
            "prompts/list": _FOR_A_WHILE,
            "resources/templates/list": _FOR_A_WHILE,
        },
        on_list_tools=list_of(tools, door),
        on_call_tool=ToolCalls(tools, door),
        on_list_resources=resources.shown,
        on_list_resource_templates=resources.templates,
        on_read_resource=resources.read,
        on_subscribe_resource=resources.subscribe,
        on_unsubscribe_resource=resources.unsubscribe,
        on_subscriptions_listen=resources.listen,
        on_list_prompts=prompts.shown,
        on_get_prompt=prompts.get,
        on_completion=prompts.complete,
    )
    server.middleware += [tell_failures_plainly, read_string_arguments]
    return server


def list_of(
    tools: tuple[Tool[Any], ...], door: Door
) -> Callable[[Context, PaginatedRequestParams | None], Awaitable[ListToolsResult]]:
    async def list_tools(_ctx: Context, _params: PaginatedRequestParams | None) -> ListToolsResult:
        asyncio.get_running_loop().call_later(_AFTER_THE_LIST, door.tend)
        return ListToolsResult(tools=[ShownTool.model_validate(tool.listing()) for tool in tools])

    return list_tools
