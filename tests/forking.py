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
    "encodings.idna",
    "encodings.utf_8_sig",
    "frontmatter",
    "jinja2",
    "jwt",
    "mmap",
    "numpy",
    "numpy.ma",
    "resource",
    "rich.console",
    "rich.table",
    "simplemem.cli.app",
    "simplemem.cli.command",
    "simplemem.cli.local",
    "simplemem.cli.output",
    "simplemem.cli.serve",
    "simplemem.cli.served",
    "simplemem.cli.server_start",
    "simplemem.features.graph.note_graph_service",
    "simplemem.features.proposals.service",
    "simplemem.features.review.inbox",
    "simplemem.features.review.service",
    "simplemem.index.terms.integrity",
    "simplemem.index.terms.merging",
    "simplemem.index.terms.reader",
    "simplemem.index.terms.similar",
    "simplemem.note.instructions",
    "simplemem.note.invisible",
    "simplemem.note.name_matching",
    "simplemem.note.word_diff",
    "simplemem.search.spelling",
    "simplemem.search.times",
    "simplemem.server.calls",
    "simplemem.server.local",
    "simplemem.server.resources",
    "simplemem.server.serve",
    "simplemem.server.stdio_transport",
    "simplemem.store",
    "simplemem.tools.core",
    "simplemem.web.oauth",
    "simplemem.web.serve",
    "simsimd",
    "uvicorn.lifespan.on",
    "yaml",
]

_SECONDS_TO_ADOPT = 60


def main(channel: socket.socket) -> None:
    """Fork a program per order, until the channel is closed.

    Returns only in the programs, each of which then has the arguments, the environment and the
    streams of its order.
    """
    sys.path[0] = ""
    for name in _IMPORTED:
        importlib.import_module(name)
    _make_models()
    _compile_templates()
    gc.collect()
    gc.freeze()

    while True:
        message, descriptors, _, _ = socket.recv_fds(channel, 1 << 20, 3)
        if not message:
            os._exit(0)

        # The intermediate process exits at once, so the process of the tests, which adopts orphans
        # meanwhile, becomes the parent of the program.
        intermediate = os.fork()
        if intermediate == 0:
            program = os.fork()
            if program == 0:
                channel.close()
                _set_up_program(json.loads(message), descriptors)
                return
            channel.send(str(program).encode())
            os._exit(0)

        for descriptor in descriptors:
            os.close(descriptor)
        os.waitpid(intermediate, 0)
        channel.send(b"adopted")


def _make_models() -> None:
    """Build the models of the settings and of the tools, which are otherwise built on first use."""
    from simplemem.profiles.registry import built_in_profiles, choose_tools
    from simplemem.settings.model import Settings

    Settings()
    for profile in built_in_profiles().values():
        for tool in choose_tools(profile):
            tool.listing()
            _ = tool.model


def _compile_templates() -> None:
    """Compile the templates of the web pages, which a server otherwise does in the background."""
    from simplemem.web.templating import compile_templates

    compile_templates()


def _set_up_program(order: dict[str, Any], descriptors: list[int]) -> None:
    """Give this process the streams, the folder, the environment and the arguments of an order."""
    end = time.monotonic() + _SECONDS_TO_ADOPT
    while os.getppid() != order["parent"]:
        if time.monotonic() > end:
            os._exit(70)  # rather than wait forever, as the tests would then do
        time.sleep(0.001)

    for standard, descriptor in enumerate(descriptors):
        os.dup2(descriptor, standard)
    for descriptor in descriptors:
        if descriptor > 2:
            os.close(descriptor)

    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["env"])
    sys.path[1:1] = filter(None, order["env"].get("PYTHONPATH", "").split(os.pathsep))
    sys.argv = ["simplemem", *order["arguments"]]
    if order["command_line_used"]:
        # The modules below it stay in memory, so importing it again is cheap.
        del sys.modules["simplemem.cli.app"]
        atexit.register(_report_command_line_used, Path(order["command_line_used"]))

    text: dict[str, Any] = {"encoding": sys.stdout.encoding, "closefd": False}
    sys.stdin = sys.__stdin__ = open(0, errors=sys.stdin.errors, **text)  # noqa: SIM115
    sys.stdout = sys.__stdout__ = open(  # noqa: SIM115
        1, "w", buffering=1 if os.isatty(1) else -1, errors=sys.stdout.errors, **text
    )
    sys.stderr = sys.__stderr__ = open(2, "w", buffering=1, errors="backslashreplace", **text)  # noqa: SIM115


def _report_command_line_used(file: Path) -> None:
    """Write whether the command line was imported: "yes" or "no"."""
    file.write_text("yes" if "simplemem.cli.app" in sys.modules else "no")


def _end(code: int) -> None:
    """Exit as Python does, but leave the modules as they are.

    To destroy them would copy every page of memory that is shared with the parent.
    """
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        return  # Python itself reports the error
    os._exit(code)


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
    try:
        runpy.run_module("simplemem", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if isinstance(end.code, int):
            _end(end.code)
        raise
