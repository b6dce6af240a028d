"""MCP over standard input and output beside the HTTP server of the same process, as Remembrances serves both."""

from __future__ import annotations

import asyncio
import os
import select
import stat
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from simplemem.web.vault_registry import VaultRegistry


def has_client() -> bool:
    """Whether standard input may lead to an MCP client: it is a pipe, a socket or a file, no terminal or null device."""
    if sys.stdin is None:
        return False
    with suppress(OSError, ValueError):
        return not stat.S_ISCHR(os.fstat(sys.stdin.fileno()).st_mode)
    return False


class StandardStreams(NamedTuple):
    """Standard input and output as descriptors, for MCP."""

    read: int
    write: int

    async def serve(self, registry: VaultRegistry) -> bool:
        """Serve the only vault of a site until the client closes its end; whether there was a client.

        An input that ends without a word had none: a service manager and a container close it at
        once, and the HTTP server goes on without it.
        """
        from simplemem.server.serve import converse

        await registry.is_running.wait()
        if not await self._has_input():
            return False
        [vault] = registry.vaults.values()
        view = await registry.whole_view(vault)
        await converse(view.server, vault.profile, (self.read, self.write), handle_signals=False)
        return True

    async def _has_input(self) -> bool:
        """Wait until the client says something, or its end is closed."""
        loop = asyncio.get_running_loop()
        is_ready = asyncio.Event()
        try:
            loop.add_reader(self.read, is_ready.set)
        except (NotImplementedError, PermissionError):  # Windows, and a file in place of a pipe
            return True
        await is_ready.wait()
        loop.remove_reader(self.read)
        if not hasattr(select, "poll"):
            return True
        poll = select.poll()
        poll.register(self.read, select.POLLIN)
        return any(events & select.POLLIN for _, events in poll.poll(0))
