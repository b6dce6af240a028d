"""Serve MCP over standard input and output, from the first message to the end of the process.

The process ends within two seconds when it is idle, and within five while a note is being written.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from simplemem.errors import SimplememError
from simplemem.server.executor import StoreExecutor, finishes_within
from simplemem.server.logs import log_to_stderr

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

    from simplemem.profiles.profile import Profile
    from simplemem.store import EnhancedStore
    from simplemem.tools.tool import Tool

log = logging.getLogger("simplemem.server")

_RECOVERY_SECONDS = 1.0  # that a client waits for the recovery of an interrupted write
_WRITING_SECONDS = 3.9  # that the end of the server waits for a write in progress
_CLOSING_SECONDS = 0.7  # that the end of the server waits for the store
_END_SIGNALS = ("SIGTERM", "SIGINT", "SIGHUP")


def take_standard_streams() -> tuple[int, int]:
    """Return new file descriptors of standard input and output.

    The caller owns them. Points the old ones elsewhere: whatever prints from now on prints to
    standard error, and standard input is empty.
    """
    if sys.platform == "win32":
        import msvcrt

        for stream in (0, 1):
            msvcrt.setmode(stream, os.O_BINARY)

    input_fd = os.dup(0)
    output_fd = os.dup(1)

    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # the process has no standard error
        os.dup2(null, 1)
    os.close(null)
    return input_fd, output_fd


def import_legacy_file(profile: Profile, store: EnhancedStore, env: Mapping[str, str]) -> None:
    """Import the graph file of the server that a profile replaces, once.

    `env` is the environment, of which a variable names the file. The file is never changed. What
    was imported, each line that was skipped, and an error are logged; no error of simplemem or of
    the system is raised. Does nothing if the profile has no such file, if it was imported before,
    or if the store is read-only.
    """
    file = profile.graph_file(env)
    if file is None or not file.is_file() or store.read_only:
        return

    from simplemem.features.graph.jsonl import import_file

    try:
        result = import_file(store, file, who=profile.file_env, once=True)
    except (SimplememError, OSError) as error:
        message = "the file in %s could not be imported: %s; the next start tries again"
        log.error(message, profile.file_env, error)
        return

    if result is None:
        return
    message = "%s was imported: %d entities, %d relations"
    log.warning(message, file, result.entities, result.relations)
    for skipped in result.broken:
        log.warning("line %d of %s was skipped: %s", skipped.line, file, skipped.why)


def recover(executor: StoreExecutor, root: Path) -> None:
    """Finish the write of a server that died during it, before a client is served.

    Does nothing in a read-only vault, or unless the top folder of the vault has remains of a write,
    so that it costs a start nothing; the first scan of the store finds remains elsewhere. Opens the
    store in a new thread. Returns after a second at the latest, while that goes on. Raises nothing.
    """

    def work() -> None:
        with suppress(SimplememError, OSError):  # the first tool call gets the error
            store = executor.store()
            if not store.read_only:
                store.extension.recover()

    with suppress(OSError):
        if any(name.startswith(".simplemem-") for name in os.listdir(root)):
            finishes_within(_RECOVERY_SECONDS, work)


def serve_stdio(
    profile: Profile,
    tools: tuple[Tool, ...],
    root: Path,
    executor: StoreExecutor,
    streams: tuple[int, int],
    log_level: str,
) -> NoReturn:
    """Serve until the input ends or a signal arrives, then end the process.

    `streams` are the file descriptors of the input and the output. The exit code is 0, or 1 if the
    server failed, which is logged.
    """
    import anyio

    flush_logs = log_to_stderr(log_level)
    recover(executor, root)

    # This import loads the SDK, which takes most of the time of a start.
    from simplemem.server.calls import assemble

    server = assemble(profile, tools, executor)
    _tune_garbage_collector()
    code = 0
    try:
        anyio.run(converse, server, profile, streams)
    except BaseException:
        log.exception("the server failed")
        code = 1

    executor.close(writing=_WRITING_SECONDS, closing=_CLOSING_SECONDS)
    flush_logs()
    # Threads that read, watch or embed are not waited for: they have nothing that could be lost.
    os._exit(code)


def _tune_garbage_collector() -> None:
    """Let the garbage collector skip what is loaded now, and run rarely.

    A search creates thousands of small values, none of them in a cycle.
    """
    gc.collect(0)
    gc.freeze()
    gc.set_threshold(10_000)
    gc.enable()


async def converse(
    server: Server[Any], profile: Profile, streams: tuple[int, int], *, handle_signals: bool = True
) -> None:
    """Serve a client until there are no more messages, or a signal arrives.

    `streams` are the file descriptors of the input and the output. Profiles of graph memory
    servers announce notifications of changed lists. Without `handle_signals`, or outside the main
    thread, the signals are left to the caller. Errors of tasks that nobody awaits are logged from
    then on.
    """
    from mcp.server.lowlevel.server import NotificationOptions

    from simplemem.server.stdio_transport import stdio_transport

    loop = asyncio.get_running_loop()
    loop.set_exception_handler(_log_task_error)
    is_graph = profile.known_as is not None
    changes = NotificationOptions(tools_changed=is_graph, resources_changed=is_graph)
    async with stdio_transport(*streams) as (messages, answers, end_messages):
        if handle_signals and threading.current_thread() is threading.main_thread():
            _call_on_signals(partial(loop.call_soon_threadsafe, end_messages))
        await server.run(messages, answers, server.create_initialization_options(changes))


def _call_on_signals(end: Callable[[], object]) -> None:
    """Call `end` from now on whenever a signal arrives that ends a server."""
    for name in _END_SIGNALS:
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number is not None:
            signal.signal(number, lambda *_: end())


def _log_task_error(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log the error of a task that nobody awaits, as the exception handler of the event loop.

    Its message is not logged, because it may quote a note.
    """
    log.error("a task failed", exc_info=context.get("exception"))
