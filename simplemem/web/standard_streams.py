"""MCP over standard input and output, beside the HTTP server of the same process."""

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
    """Return whether standard input may lead to an MCP client.

    A pipe, a socket or a file may; a terminal or a null device does not.
    """
    if sys.stdin is None:
        return False
    with suppress(OSError, ValueError):
        mode = os.fstat(sys.stdin.fileno()).st_mode
        return not stat.S_ISCHR(mode)
    return False


class StandardStreams(NamedTuple):
    """The file descriptors of standard input and output."""

    input_fd: int
    output_fd: int

    async def serve(self, registry: VaultRegistry) -> bool:
        """Serve the only vault of a registry until the client disconnects.

        Waits first until the registry runs. Returns whether there was a client. An input that ends
        without a byte had none: a service manager or a container closes it at once, and the HTTP
        server has to go on.
        """
        # Imported here, because the checks at the start of a server do not need it.
        from simplemem.server.serve import converse

        await registry.is_running.wait()
        if not await self._has_input():
            return False

        [vault] = registry.vaults.values()
        view = await registry.whole_view(vault)
        descriptors = (self.input_fd, self.output_fd)
        await converse(view.server, vault.profile, descriptors, handle_signals=False)
        return True

    async def _has_input(self) -> bool:
        """Wait until the client sends something, and return True, or False if its end is closed.

        Returns True at once if the system cannot wait for this input: on Windows, or for a file.
        """
        loop = asyncio.get_running_loop()
        is_ready = asyncio.Event()
        try:
            loop.add_reader(self.input_fd, is_ready.set)
        except (NotImplementedError, PermissionError):  # Windows, and a file in place of a pipe
            return True
        await is_ready.wait()
        loop.remove_reader(self.input_fd)

        if not hasattr(select, "poll"):
            return True
        poll = select.poll()
        poll.register(self.input_fd, select.POLLIN)
        return any(events & select.POLLIN for _, events in poll.poll(0))
