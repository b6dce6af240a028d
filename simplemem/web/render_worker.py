"""The process that renders Markdown for the page, so that no note can slow down the server.

`simplemem.web.rendering` starts it. A message is a length (4 bytes, big-endian) followed by that
many bytes. A request is a JSON object with `text`, `prefix` and `context`, which may be null; for a
change of a note, it has the arguments of `render_change`. Its answer is HTML in UTF-8, or
`TOO_LARGE`.

The process ends at a limit: with the signal SIGPROF after too much CPU time, with
`EXIT_OUT_OF_MEMORY` if it needs too much memory. Any other end is a crash.
"""

from __future__ import annotations

import json
import os
import signal
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, BinaryIO, Final

from simplemem.web.markdown.context import NoteContext

MAX_SECONDS: Final = 6.0  # of wall-clock time, for the server that waits
# CPU time, so that the load of the machine does not decide what is rendered.
_MAX_CPU_SECONDS: Final = 3.0
MAX_HTML_BYTES: Final = 4 * 1024 * 1024
TOO_LARGE: Final = b"\0"  # differs from all HTML, which never contains this character
EXIT_OUT_OF_MEMORY: Final = 71
_MAX_MEMORY_BYTES: Final = 1_000_000_000
_LENGTH: Final = struct.Struct(">I")
HEADER_BYTES: Final = _LENGTH.size


def pack_message(message: bytes) -> bytes:
    """Return a message with the header that is sent before it."""
    return _LENGTH.pack(len(message)) + message


def unpack_length(header: bytes) -> int:
    """Return how many bytes follow a header, which must have `HEADER_BYTES` bytes."""
    length: int = _LENGTH.unpack(header)[0]
    return length


def main() -> None:
    """Answer requests from standard input until it ends. Called once, as the process begins.

    Limits the memory of the process, and ends it at a limit.
    """
    answers = _take_standard_output()
    requests = sys.stdin.buffer
    sys.excepthook = _report_crash
    _limit_this_process()

    # Imported after standard output is safe, so that a library that prints does not break an
    # answer.
    from simplemem.web.change_html import render_change
    from simplemem.web.render import render_note

    while True:
        request = _read_message(requests)
        if request is None:
            return

        _end_after(_MAX_CPU_SECONDS)
        try:
            answer = _render_request(request, render_note, render_change)
        except MemoryError:
            os._exit(EXIT_OUT_OF_MEMORY)  # an ordinary exit may need memory, too
        _end_after(0)

        answers.write(pack_message(answer))
        answers.flush()


def _take_standard_output() -> BinaryIO:
    """Return a stream to standard output, and send whatever else is printed to standard error.

    A single `print` in a library would otherwise be read as part of an answer.
    """
    answers = os.fdopen(os.dup(1), "wb")
    try:
        os.dup2(2, 1)
    except OSError:  # the server was started without standard error
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return answers


def _report_crash(
    kind: type[BaseException], _error: BaseException, traceback: TracebackType | None
) -> None:
    """Print where this process failed, as `sys.excepthook`, without the message of the error.

    The message may quote a note.
    """
    place = "an unknown place"
    while traceback is not None:
        place = f"{traceback.tb_frame.f_code.co_filename}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    sys.stderr.write(
        f"simplemem: the process that renders notes failed: {kind.__name__} at {place}\n"
    )


def _read_message(stream: BinaryIO) -> bytes | None:
    """Return the next message without its header, or None at the end of the stream."""
    header = stream.read(HEADER_BYTES)
    if len(header) < HEADER_BYTES:
        return None

    return stream.read(unpack_length(header))


def _render_request(
    request: bytes,
    render: Callable[[str, str, NoteContext | None], str],
    render_change: Callable[..., str],
) -> bytes:
    """Return the answer to a request: HTML in UTF-8, or `TOO_LARGE` if it has more than 4 MB.

    `render` is `render.render_note`, and `render_change` is `change_html.render_change`. They are
    arguments because `main` imports them late.
    """
    arguments = json.loads(request)
    if "old" in arguments:
        html = render_change(**arguments)
    else:
        context = _read_context(arguments["context"])
        html = render(arguments["text"], arguments["prefix"], context)

    answer = html.encode("utf-8", "replace")
    if len(answer) > MAX_HTML_BYTES:
        return TOO_LARGE
    return answer


def _read_context(values: dict[str, Any] | None) -> NoteContext | None:
    """Return the context in a request, None if it has none."""
    if values is None:
        return None
    return NoteContext.from_json(values)


def _limit_this_process() -> None:
    """Limit the memory of this process, where the system can, and make it ignore Ctrl-C.

    The server ends it.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(ImportError, ValueError, OSError):  # Windows has no such limits
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MAX_MEMORY_BYTES, _MAX_MEMORY_BYTES))


def _end_after(cpu_seconds: float) -> None:
    """End this process after that much CPU time, unless called again. 0 cancels the limit.

    The signal SIGPROF ends it even within a regular expression, and even if the server was killed
    in the meantime. Windows has no such timer; there, only the limit of the server applies.
    """
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, cpu_seconds)


if __name__ == "__main__":
    main()
