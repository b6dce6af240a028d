"""The terminal of this process: its description for a server, its pager, and printing to it.

Only the standard library is imported, and as little of it as possible: see `local.py`.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # as in `typing`, whose import would take a fifth of the time of a command
if TYPE_CHECKING:
    from typing import Any

TERMINAL_OVERRIDES = (
    "FORCE_COLOR",
    "TTY_COMPATIBLE",
    "TTY_INTERACTIVE",
    "JUPYTER_COLUMNS",
    "JUPYTER_LINES",
)
"""Variables that make Rich treat a stream as a terminal, or as none, whatever it is."""

PIECE_KINDS = frozenset({"out", "out-bytes", "err", "err-bytes", "page"})
"""The kinds of pieces that `print_piece` accepts."""

# These variables change how an answer is printed.
_PRINTING_VARIABLES = ("COLUMNS", "LINES", "NO_COLOR", "TERM", "COLORTERM")
_DUMB_TERMINALS = ("dumb", "unknown", "")  # values of TERM


def describe_terminal() -> dict[str, Any] | None:
    """Return what a server must know of the standard streams to answer as this process would.

    `out`, `err` and `in` are whether these streams are terminals, `size` is as in
    `_measure_terminal`, and `environment` has the variables that change how an answer is printed.

    Returns None if only this process can print to them: a stream is closed, or a terminal has no
    colours or another encoding than UTF-8.
    """
    streams = {"out": sys.stdout, "err": sys.stderr, "in": sys.stdin}
    try:
        are_terminals = {name: stream.isatty() for name, stream in streams.items()}
    except (AttributeError, ValueError):  # a stream is missing or closed
        return None

    if are_terminals["out"] or are_terminals["err"]:
        is_dumb = os.environ.get("TERM", "").lower() in _DUMB_TERMINALS
        encodings = {(stream.encoding or "").lower() for stream in (sys.stdout, sys.stderr)}
        if is_dumb or encodings != {"utf-8"}:
            return None

    environment = {name: os.environ[name] for name in _PRINTING_VARIABLES if name in os.environ}
    return {**are_terminals, "size": _measure_terminal(), "environment": environment}


def _measure_terminal() -> list[int] | None:
    """Return the columns and lines of the first standard stream that is a terminal, or None."""
    for descriptor in range(3):
        try:
            return list(os.get_terminal_size(descriptor))
        except OSError:
            continue
    return None


def print_piece(kind: str, text: str) -> None:
    """Print a piece of an answer to the stream of this process to which the command printed it.

    `kind` is one of PIECE_KINDS: the stream, with `-bytes` for bytes that are encoded in `text` by
    `surrogateescape`, or `page` for the pager.
    """
    if kind == "page":
        show_in_pager(text)
        return

    stream_name, _, is_bytes = kind.partition("-")
    stream = sys.stderr if stream_name == "err" else sys.stdout
    if is_bytes:
        stream.flush()
        stream.buffer.write(text.encode("utf-8", "surrogateescape"))
        stream.buffer.flush()
    else:
        stream.write(text)
    if stream_name == "err":
        stream.flush()


def show_in_pager(text: str) -> None:
    """Show a text in the pager of this process. Sets the options of `less` unless the user has.

    Returns when the user leaves the pager. Without a pager or a terminal, the text is printed.
    """
    import pydoc

    os.environ.setdefault("LESS", "-FRX")  # as git sets it: colours, and no clearing of the screen
    pydoc.pager(text)
