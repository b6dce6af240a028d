"""A file under `.simplemem/` beside the index: lines of several processes, or a whole file put in place at once.

Its own lock is held no longer than a line takes; nothing here touches a note, and no link is followed out of the vault.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from simplemem.errors import SimplememError
from simplemem.vault import disk, kernel
from simplemem.vault.kernel import telling
from simplemem.vault.lock import make_sidecar
from simplemem.vault.paths import OVERWRITE, READ, SIDECAR, Beneath, parent

_LOOK = 0.002  # seconds


class Extent(NamedTuple):
    """How far a file was read, and which file that was."""

    device: int
    inode: int
    offset: int


class SideFile:
    """One file, `state/access.jsonl` say."""

    def __init__(self, root: str, name: str) -> None:
        self._root = root
        self._path, self._lock = f"{SIDECAR}/{name}", f"{SIDECAR}/{name.rsplit('.', 1)[0]}.lock"

    @contextmanager
    def held(self, patience: float) -> Iterator[bool]:
        """Hold the lock of this file, if it is to be had in so many seconds: whether it was."""
        with self._made() as here, here.opened(self._lock, OVERWRITE) as fd:
            ends = time.monotonic() + patience
            while not (taken := kernel.try_lock(fd)) and time.monotonic() < ends:
                time.sleep(_LOOK)
            try:
                yield taken
            finally:
                if taken:
                    kernel.unlock(fd)

    def append(self, lines: bytes, *, sync: bool = False) -> None:
        """Add whole lines, also behind one that a power cut tore. The lock is held."""
        with self._writing() as here, here.opened(self._path, OVERWRITE | os.O_APPEND) as fd:
            size = os.fstat(fd).st_size
            if size and os.lseek(fd, size - 1, os.SEEK_SET) >= 0 and os.read(fd, 1) != b"\n":
                lines = b"\n" + lines
            disk.write_all(fd, lines)
            if sync:
                kernel.sync_file(fd)

    def read(self, since: Extent | None) -> tuple[bytes, Extent | None, bool]:
        """The whole lines behind what was read, how far that is, and whether the file is another by now: then
        the lines are all there are."""
        try:
            with Beneath(self._root) as here, here.opened(self._path, READ) as fd:
                stat = os.fstat(fd)
                is_same = since is not None and since[:2] == (stat.st_dev, stat.st_ino) and since.offset <= stat.st_size
                offset = since.offset if since is not None and is_same else 0
                with open(fd, "rb", closefd=False) as file:
                    file.seek(offset)
                    data = file.read()
        except (OSError, SimplememError):
            return b"", None, since is not None
        whole = data[: data.rfind(b"\n") + 1]  # what is being written just now is for the next time
        return whole, Extent(stat.st_dev, stat.st_ino, offset + len(whole)), not is_same

    def replace(self, data: bytes) -> Path:
        """Put a whole file in place; its path."""
        with self._writing() as here:
            disk.put(here, self._path, data, sync=True)
        return Path(self._root, *self._path.split("/"))

    @contextmanager
    def _writing(self) -> Iterator[Beneath]:
        with telling("write", self._path, writing=True), self._made() as here:
            yield here

    @contextmanager
    def _made(self) -> Iterator[Beneath]:
        with Beneath(self._root) as here:
            make_sidecar(here)
            here.make(parent(self._path))
            yield here
