"""When each access token was used last.

The file `token-use.json` keeps this beside the file of tokens, so that it survives a restart. Its
keys are the hashes of the tokens, which the file of tokens has, too.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from simplemem.errors import SimplememError
from simplemem.settings.files import read_bounded
from simplemem.web.tokens import Grant, write_private

log = logging.getLogger("simplemem.web")

_MAX_FILE_BYTES: Final = 1_000_000
_SECONDS_BETWEEN_WRITES: Final = 60.0


class TokenUse:
    """The last use of each token. Guards the times, and writes the file once a minute at most.

    Several servers may share the file: each keeps the latest time of a token that it knows of. Use
    it in the event loop.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / "token-use.json"
        self._times: dict[str, int] | None = None  # by hash; None before the file was read
        self._has_unsaved_use = False
        self._last_write = 0.0  # on the monotonic clock
        self._writing: asyncio.Future[None] | None = None

    def record(self, grant: Grant) -> None:
        """Record that the token of a grant is used now. Does nothing for an issued grant."""
        if not grant.sha256:
            return
        times = self._read_times()
        times[grant.sha256] = int(time.time())
        self._has_unsaved_use = True
        if time.monotonic() - self._last_write > _SECONDS_BETWEEN_WRITES:
            self._last_write = time.monotonic()
            self._writing = asyncio.get_running_loop().run_in_executor(None, self.write)

    def last_use(self, grant: Grant) -> int | None:
        """Return when the token of a grant was used last, in seconds since 1970; None for never."""
        return self._read_times().get(grant.sha256)

    def write(self) -> None:
        """Write the file if a token was used since the last time. May be called in a thread.

        Times in the file that are later stay, because another server may have written them. If the
        file cannot be written, this is only logged.
        """
        if not self._has_unsaved_use:
            return
        self._has_unsaved_use = False
        times = dict(self._times or {})
        for sha256, last_use in _read_file(self._path).items():
            times[sha256] = max(last_use, times.get(sha256, 0))
        try:
            write_private(self._path, json.dumps(times, indent=1) + "\n")
        except SimplememError as error:
            log.warning("the last use of tokens is not kept: %s", error.message)

    def _read_times(self) -> dict[str, int]:
        """Return the times by hash, from the file at the first call."""
        if self._times is None:
            self._times = _read_file(self._path)
        return self._times


def _read_file(path: Path) -> dict[str, int]:
    """Return the times in a file by hash; {} if there is none, or it is not valid."""
    with suppress(OSError, SimplememError, ValueError, RecursionError):
        content = json.loads(read_bounded(path, _MAX_FILE_BYTES))
        if isinstance(content, dict):
            return {sha256: time for sha256, time in content.items() if isinstance(time, int)}
    return {}
