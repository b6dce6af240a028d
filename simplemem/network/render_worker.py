"""The process that renders Markdown for the page, so that no note can hold up the server.

`simplemem.network.rendering` starts it. A request and its answer are each a length (4 bytes, big-endian) and so many
bytes: a JSON object with `text` and `prefix` one way, HTML in UTF-8 or `TOO_LARGE` the other.
"""

from __future__ import annotations

import json
import signal
import struct
import sys
from contextlib import suppress
from typing import BinaryIO, Final

from simplemem.network.render import rendered

MAX_SECONDS: Final = 6.0  # by the clock, for the server that waits
_MAX_CPU_SECONDS: Final = 3.0  # so that a busy machine does not change what is rendered
MAX_HTML_BYTES: Final = 4 * 1024 * 1024
TOO_LARGE: Final = b"\0"  # no HTML, which has no such character
_MAX_MEMORY: Final = 1_000_000_000
_LENGTH: Final = struct.Struct(">I")


def pack(message: bytes) -> bytes:
    """Return a message as it is sent: its length, then its bytes."""
    return _LENGTH.pack(len(message)) + message


def length_of(header: bytes) -> int:
    """Return how many bytes follow a message's header."""
    length: int = _LENGTH.unpack(header)[0]
    return length


HEADER_BYTES: Final = _LENGTH.size


def main() -> None:
    """Answer requests from standard input until it ends."""
    _limit_this_process()
    requests = sys.stdin.buffer
    answers = sys.stdout.buffer

    while (request := _read_message(requests)) is not None:
        _end_after(_MAX_CPU_SECONDS)
        html = _render(json.loads(request))
        _end_after(0)
        answers.write(pack(html))
        answers.flush()


def _read_message(stream: BinaryIO) -> bytes | None:
    header = stream.read(HEADER_BYTES)
    if len(header) < HEADER_BYTES:
        return None

    return stream.read(length_of(header))


def _render(request: dict[str, str]) -> bytes:
    html = rendered(request["text"], request["prefix"]).encode("utf-8", "replace")
    return html if len(html) <= MAX_HTML_BYTES else TOO_LARGE


def _limit_this_process() -> None:
    """Bound the memory, and leave Ctrl-C to the server."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(ImportError, ValueError, OSError):  # Windows has no such limits
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MAX_MEMORY, _MAX_MEMORY))


def _end_after(cpu_seconds: float) -> None:
    """End this process after so much CPU time, unless called again; 0 calls it off.

    The signal ends it even within a regular expression, and even if the server was killed in the meantime. Windows has
    no such timer: there the server's own limit applies.
    """
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, cpu_seconds)


if __name__ == "__main__":
    main()
