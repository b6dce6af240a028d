"""The program: `simplemem` or `python -m simplemem`. Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted."""

from __future__ import annotations

import gc
import os
import sys


def main() -> int:
    """Run the command line and say how it ended."""
    # One search is a small product of a matrix and a vector: threads for it cost many times what they give.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    # Else Pydantic looks for plugins in the metadata of every package that is installed: a tenth of a short command.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    if sys.argv[1:2] == ["serve"]:
        # A client waits for its server: nothing of the command line is loaded on the way there.
        from simplemem.cli.serve import serve_main

        return serve_main(sys.argv[2:])
    _prepare(sys.stdout)
    _prepare(sys.stderr)
    try:
        from simplemem.cli.local import run_on_server

        code = run_on_server(sys.argv[1:])
        if code is not None:
            return _flushed(code)

        # Importing makes much and drops little: to look for circles every 700 values was a tenth of a search.
        gc.set_threshold(50_000)
        from simplemem.cli.app import app

        app(prog_name="simplemem")
    except KeyboardInterrupt:
        return 130
    except SystemExit as end:
        return _flushed(end.code if isinstance(end.code, int) else 0 if end.code is None else 1)
    return _flushed(0)


def _prepare(stream: object) -> None:
    """Text in pipes is UTF-8 on every system, and what no encoding can say (a lone surrogate) is escaped."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        encoding = None if getattr(stream, "isatty", bool)() else "utf-8"
        reconfigure(encoding=encoding, errors="backslashreplace")


def _flushed(code: int) -> int:
    """The exit code, once what was printed is out. A reader that went away (`| head`) needs no words."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes once more at exit; let it find somewhere to put what is left.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return code or 1
    return code


if __name__ == "__main__":
    sys.exit(main())
