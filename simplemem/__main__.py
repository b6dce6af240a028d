"""The program: `simplemem` or `python -m simplemem`.

Exit codes: 0 success, 1 failure, 2 wrong usage, 130 interrupted.
"""

from __future__ import annotations

import gc
import os
import sys

TYPE_CHECKING = False  # as in `typing`, whose import would take a fifth of the time of a command
if TYPE_CHECKING:
    from typing import TextIO

# Importing creates many objects and drops few. Searching for cycles every 700 objects, which is
# Python's default, took a tenth of a search.
_GC_THRESHOLD = 50_000


def main() -> int:
    """Run the command line, and return the exit code. Sets environment variables of libraries.

    `serve` does not return: it ends the process itself.
    """
    _limit_libraries()
    if sys.argv[1:2] == ["serve"]:
        if sys.argv[2:] in (["--help"], ["-h"]):
            return _print_help_of_serve()

        # A client waits for its server, so no other command is imported.
        from simplemem.cli.serve import serve_main

        serve_main(sys.argv[2:])

    _set_encoding(sys.stdout)
    _set_encoding(sys.stderr)
    try:
        exit_code = _run_command()
    except KeyboardInterrupt:
        return 130
    except SystemExit as error:
        exit_code = _exit_code_of(error)
    return _flush(exit_code)


def _print_help_of_serve() -> int:
    """Print the help of `serve`, and return the exit code.

    `docs/generate_reference.py` has written it into a file: to import Typer and to ask it for the
    help takes five times as long.
    """
    path = os.path.join(os.path.dirname(__file__), "cli", "serve_help.txt")
    with open(path, encoding="utf-8") as file:
        sys.stdout.write(file.read())
    return _flush(0)


def _limit_libraries() -> None:
    """Set what libraries read from the environment, unless the user has set it."""
    # A search multiplies a small matrix by a vector: threads cost more than they save.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    # Otherwise pydantic looks for plug-ins in the metadata of all installed packages, which takes a
    # tenth of the time of a short command.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")


def _run_command() -> int:
    """Run the command on a running server, or else here, and return the exit code.

    If it runs here, raises SystemExit with the exit code instead, as Typer does.
    """
    from simplemem.cli.local import run_on_server

    exit_code = run_on_server(sys.argv[1:])
    if exit_code is not None:
        return exit_code

    gc.set_threshold(_GC_THRESHOLD)
    from simplemem.cli.app import app

    app(prog_name="simplemem")
    return 0


def _exit_code_of(error: SystemExit) -> int:
    """Return the exit code that Python would use: 0 for None, 1 for a message."""
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        return error.code
    return 1


def _set_encoding(stream: TextIO) -> None:
    """Make a stream UTF-8 unless it is a terminal, and escape what its encoding lacks.

    A stream that cannot be reconfigured is left as it is.
    """
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is None:
        return

    encoding: str | None = "utf-8"
    if stream.isatty():
        encoding = None
    reconfigure(encoding=encoding, errors="backslashreplace")


def _flush(exit_code: int) -> int:
    """Flush stdout, and return the exit code: 1 instead of 0 if the reader has gone (`| head`)."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes again at exit. What is left then goes to the null device.
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        return exit_code or 1
    return exit_code


if __name__ == "__main__":
    sys.exit(main())
