"""One server process, from its first message to its end. The end is prompt: two seconds when idle, five
when a note is being written.

The garbage collector rests while the SDK is imported (a twentieth of the start), and what it would find is
put aside for good.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simplemem.faces.tool import Tool
    from simplemem.server.door import Door
    from simplemem.store import EnhancedStore

log = logging.getLogger("simplemem.server")

_SIGNAL_END = 1.1
_WRITING_END = 3.9
_CLOSING = 0.7
_CLEARING = 1.0
"""Seconds that a client waits at most for what a dead server left to be cleared."""
_UNASKED = 2.0
"""Seconds after which a client that never asks for the tools has a memory all the same."""


def serve_stdio(
    tools: tuple[Tool[Any], ...],
    instructions: str,
    root: Path,
    opening: Callable[[], EnhancedStore],
    wire: tuple[int, int],
    *,
    log_level: str,
    known_as: tuple[str, str] | None = None,
) -> int:
    """Serve until the input ends or a signal says so. Does not return: the process ends here, with the
    exit code 0. `known_as` is the name and version of a graph memory server in whose place this one stands."""
    import anyio

    from simplemem.server.assemble import assemble
    from simplemem.server.door import Door
    from simplemem.server.logs import last_words, log_to_stderr

    handler = log_to_stderr(log_level)
    door = Door(root, opening)
    door.clear_up(_CLEARING)
    if known_as is not None:
        from simplemem.server.graph_server import assemble_graph_server

        server = assemble_graph_server(tools, door, known_as)
    else:
        server = assemble(tools, door, instructions)
    gc.collect(0)
    gc.freeze()
    gc.enable()
    code = 0
    try:
        anyio.run(_converse, server, door, wire, known_as is not None)
    except BaseException:
        log.exception("the server ended")
        code = 1
    door.close(writing=_WRITING_END, closing=_CLOSING)
    last_words(handler)
    os._exit(code)  # threads that read, watch or embed are not waited for: they hold nothing that could be lost


async def _converse(server: Any, door: Door, wire: tuple[int, int], for_graphs: bool) -> None:
    from simplemem.server.logs import hear_of_lost_tasks
    from simplemem.server.stdio import stdio_wire

    loop = asyncio.get_running_loop()
    loop.set_exception_handler(hear_of_lost_tasks)
    ending = _ending(door)
    async with stdio_wire(*wire, ending, halves=for_graphs) as line:

        def hang_up() -> None:
            ending(_SIGNAL_END)
            line.hang_up()

        for name in ("SIGTERM", "SIGINT", "SIGHUP"):
            if hasattr(signal, name):
                _on_signal(loop, getattr(signal, name), hang_up)
        loop.call_later(_UNASKED, door.tend)
        await server.run(line.messages, line.answers, _introduced(server, for_graphs))
        ending(_SIGNAL_END)


def _introduced(server: Any, for_graphs: bool) -> Any:
    """What the handshake says of the server. The graph memory servers promise word of changed lists."""
    if not for_graphs:
        return server.create_initialization_options()
    from mcp.server.lowlevel.server import NotificationOptions

    return server.create_initialization_options(NotificationOptions(tools_changed=True, resources_changed=True))


def _on_signal(loop: asyncio.AbstractEventLoop, number: int, hang_up: Callable[[], None]) -> None:
    try:
        loop.add_signal_handler(number, hang_up)
    except NotImplementedError:  # Windows
        signal.signal(number, lambda *_: loop.call_soon_threadsafe(hang_up))


def _ending(door: Door) -> Callable[[float], None]:
    """Sees to it that the process ends so many seconds after it was first said to, whatever still waits for
    something; a write that has begun has longer. May be called from any thread."""
    begun = threading.Lock()

    def end_anyway(seconds: float) -> None:
        began = time.monotonic()
        time.sleep(seconds)
        while door.is_writing() and time.monotonic() - began < _WRITING_END:
            time.sleep(0.02)
        os._exit(0)

    def end(seconds: float) -> None:
        if begun.acquire(blocking=False):
            threading.Thread(target=end_anyway, args=(seconds,), name="end", daemon=True).start()

    return end
