"""Texts that callers were given not long ago."""

from __future__ import annotations

import threading


class TextsReadLately:
    """Texts that were given out, by hash, so that a conflict can show what changed since. As many as fit."""

    _MOST_BYTES = 8_000_000

    def __init__(self) -> None:
        self._texts: dict[str, bytes] = {}
        self._bytes = 0
        self._lock = threading.Lock()

    def keep(self, sha256: str, data: bytes) -> None:
        with self._lock:
            self._bytes += len(data) - len(self._texts.pop(sha256, b""))
            self._texts[sha256] = data
            while self._bytes > self._MOST_BYTES:
                oldest = next(iter(self._texts))
                self._bytes -= len(self._texts.pop(oldest))

    def get(self, sha256: str) -> bytes | None:
        with self._lock:
            return self._texts.get(sha256)
