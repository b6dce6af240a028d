"""Bytes as they arrive, cut into lines, with a bound on how long a line may be. Pure.

A line beyond the bound is never held: its bytes are dropped as they come, and one `TOO_LONG` stands in its
place.
"""

from __future__ import annotations

from typing import Final

MOST_BYTES: Final = 8 * 1024 * 1024
"""The longest message that is read. A note of that size has no business in a tool call."""


class TooLong:
    """Stands where a line was too long to keep."""


TOO_LONG: Final = TooLong()


class Lines:
    """Lines out of chunks of bytes. `feed` gives the lines that a chunk completes."""

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._most = most
        self._parts: list[bytes] = []
        self._held = 0
        self._dropping = False

    def feed(self, chunk: bytes) -> list[bytes | TooLong]:
        complete: list[bytes | TooLong] = []
        *ends, rest = chunk.split(b"\n")
        for part in ends:
            self._hold(part)
            complete.append(self._taken())
        self._hold(rest)
        return complete

    def _hold(self, part: bytes) -> None:
        if self._dropping or not part:
            return
        if self._held + len(part) > self._most:
            self._parts, self._held, self._dropping = [], 0, True
        else:
            self._parts.append(part)
            self._held += len(part)

    def _taken(self) -> bytes | TooLong:
        line = TOO_LONG if self._dropping else b"".join(self._parts)
        self._parts, self._held, self._dropping = [], 0, False
        return line
