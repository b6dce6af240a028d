"""The official client on our server, in both generations of the protocol."""

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
    vault: Path, mode: str, profile: str = "default", *, read_only: bool = False, **more: Any
) -> AsyncIterator[Client]:
    """The client on a server in this process: what `serve` puts together, without the wire."""
    face = built_in_profiles()[profile]
    door = StoreExecutor(lambda: open_store(vault, read_only=read_only))
    about = types.Implementation(name="protocol-test", version="1.2")
    try:
        async with Client(
            assemble(face, choose_tools(face), door), mode=mode, client_info=about, **more
        ) as client:
            yield client
    finally:
        door.close(writing=1, closing=5)


def run(body: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        with anyio.fail_after(PATIENCE * 2):
            await body()

    anyio.run(bounded)


async def until(holds: Callable[[], Awaitable[Any]]) -> Any:
    with anyio.fail_after(PATIENCE):
        while not (found := await holds()):
            await anyio.sleep(0.02)
        return found


def text_of(result: types.CallToolResult) -> str:
    return "\n".join(part.text for part in result.content if isinstance(part, types.TextContent))
