"""Import simplemem once, and fork a program for each order of `processes.py`."""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import runpy
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any

# As simplemem.__main__ sets them before its first import.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

_IMPORTED = [
    "anyio._backends._asyncio",
    "jwt",
    "numpy",
    "simplemem.cli.app",
    "simplemem.cli.local",
    "simplemem.cli.serve",
    "simplemem.cli.served",
    "simplemem.cli.server_start",
    "simplemem.tools.core",
    "simplemem.web.oauth",
    "simplemem.web.serve",
    "simplemem.server.local",
    "simplemem.server.serve",
    "simplemem.server.calls",
    "simplemem.server.resources",
    "simplemem.store",
    "uvicorn.lifespan.on",
]


def main(channel: socket.socket) -> None:
    """Fork a program for each order. Returns in each of these programs, ready to be run."""
    sys.path[0] = ""
    for name in _IMPORTED:
        importlib.import_module(name)
    _make_models()
    gc.collect()
    gc.freeze()
    while True:
        message, descriptors, _, _ = socket.recv_fds(channel, 1 << 20, 3)
        if not message:
            os._exit(0)
        # The program is an orphan at once, and so a child of the test's process, which adopts orphans meanwhile.
        between = os.fork()
        if between == 0:
            program = os.fork()
            if program == 0:
                channel.close()
                _become(json.loads(message), descriptors)
                return
            channel.send(str(program).encode())
            os._exit(0)
        for descriptor in descriptors:
            os.close(descriptor)
        os.waitpid(between, 0)
        channel.send(b"adopted")


def _make_models() -> None:
    """The models of the settings and of the tools, which are made when they are first used."""
    from simplemem.profiles.registry import built_in_profiles, choose_tools
    from simplemem.settings.model import Settings

    Settings()
    for profile in built_in_profiles().values():
        for tool in choose_tools(profile):
            tool.listing()
            _ = tool.model


def _become(order: dict[str, Any], descriptors: list[int]) -> None:
    while os.getppid() != order["parent"]:
        time.sleep(0.001)
    for standard, descriptor in enumerate(descriptors):
        os.dup2(descriptor, standard)
    for descriptor in descriptors:
        if descriptor > 2:
            os.close(descriptor)
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["env"])
    sys.argv = ["simplemem", *order["arguments"]]
    if order["command_line_used"]:
        # What it imports is in memory all the same, so that to import it once more is cheap.
        del sys.modules["simplemem.cli.app"]
        atexit.register(_say_whether_used, Path(order["command_line_used"]))
    text: dict[str, Any] = {"encoding": sys.stdout.encoding, "closefd": False}
    sys.stdin = sys.__stdin__ = open(0, errors=sys.stdin.errors, **text)  # noqa: SIM115
    sys.stdout = sys.__stdout__ = open(  # noqa: SIM115
        1, "w", buffering=1 if os.isatty(1) else -1, errors=sys.stdout.errors, **text
    )
    sys.stderr = sys.__stderr__ = open(2, "w", buffering=1, errors="backslashreplace", **text)  # noqa: SIM115


def _say_whether_used(file: Path) -> None:
    file.write_text("yes" if "simplemem.cli.app" in sys.modules else "no")


def _end(code: int) -> None:
    """As Python ends, but without taking apart what was imported, which would copy every page of it."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        return  # as Python says it
    os._exit(code)


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
    try:
        runpy.run_module("simplemem", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if isinstance(end.code, int):
            _end(end.code)
        raise
