"""The official client of a server, in both revisions of the protocol."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client

from simplemem.profiles.registry import built_in_profiles, choose_tools
from simplemem.server.calls import assemble
from simplemem.server.executor import StoreExecutor
from simplemem.store import open_store

PATIENCE = 20.0
LEGACY, MODERN = "legacy", "2026-07-28"
both = pytest.mark.parametrize("mode", [LEGACY, MODERN])


@asynccontextmanager
async def connected(
    vault: Path,
    mode: str,
    profile: str = "default",
    *,
    read_only: bool = False,
    tools: str = "",
    **options: Any,
) -> AsyncIterator[Client]:
    """Yield a client of a server in this process, without a transport. `options` are its own.

    `tools` are tool groups that the server adds or removes.
    """
    chosen = built_in_profiles()[profile]
    executor = StoreExecutor(lambda: open_store(vault, read_only=read_only))
    server = assemble(chosen, choose_tools(chosen, tools), executor)
    client_info = types.Implementation(name="protocol-test", version="1.2")
    try:
        async with Client(server, mode=mode, client_info=client_info, **options) as client:
            yield client
    finally:
        executor.close(writing=1, closing=5)


def run(body: Callable[[], Awaitable[None]]) -> None:
    """Run a test in an event loop. Raises TimeoutError if it takes too long."""

    async def bounded() -> None:
        with anyio.fail_after(PATIENCE * 2):
            await body()

    anyio.run(bounded)


async def until(condition: Callable[[], Awaitable[Any]]) -> Any:
    """Wait until a condition is true, and return its value. Raises TimeoutError after a while."""
    with anyio.fail_after(PATIENCE):
        while True:
            value = await condition()
            if value:
                return value
            await anyio.sleep(0.02)


def text_of(result: types.CallToolResult) -> str:
    """Return the text of the result of a tool call."""
    return "\n".join(part.text for part in result.content if isinstance(part, types.TextContent))
