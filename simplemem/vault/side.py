"""A file under `.simplemem/` beside the index: lines of several processes, or a whole file put in place at once.

Its own lock is held no longer than a line takes; nothing here touches a note, and no link is followed out of the vault.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from simplemem.errors import SimplememError
from simplemem.vault import kernel
from simplemem.vault.disk import write_all
from simplemem.vault.lock import make_sidecar
from simplemem.vault.paths import SIDECAR, Beneath, Folder
from simplemem.vault.trouble import telling

_BINARY: Final = getattr(os, "O_BINARY", 0)
_LOOK: Final = 0.002


class Extent(NamedTuple):
    """How far a file was read, and which file that was."""

    device: int
    inode: int
    offset: int


class SideFile:
    """One file, `state/access.jsonl` say."""

    def __init__(self, root: str, name: str) -> None:
        self._root = root
        *folders, self._name = name.split("/")
        self._folder = (SIDECAR, *folders)
        self._shown = f"{SIDECAR}/{name}"

    @contextmanager
    def held(self, patience: float) -> Iterator[bool]:
        """Hold the lock of this file, if it is to be had in so many seconds: whether it was."""
        with self._made() as folder:
            fd = folder.open(f"{self._name.rsplit('.', 1)[0]}.lock", os.O_RDWR | os.O_CREAT)
            try:
                ends = time.monotonic() + patience
                while not (taken := kernel.try_lock(fd)) and time.monotonic() < ends:
                    time.sleep(_LOOK)
                try:
                    yield taken
                finally:
                    if taken:
                        kernel.unlock(fd)
            finally:
                os.close(fd)

    def append(self, lines: bytes, *, sync: bool = False) -> None:
        """Add whole lines, also behind one that a power cut tore. The lock is held."""
        with self._made() as folder, telling("write", self._shown, writing=True):
            fd = folder.open(self._name, os.O_RDWR | os.O_CREAT | os.O_APPEND | _BINARY)
            try:
                size = os.fstat(fd).st_size
                if size and os.lseek(fd, size - 1, os.SEEK_SET) >= 0 and os.read(fd, 1) != b"\n":
                    lines = b"\n" + lines
                write_all(fd, lines)
                if sync:
                    kernel.sync_file(fd)
            finally:
                os.close(fd)

    def read(self, since: Extent | None) -> tuple[bytes, Extent | None, bool]:
        """The whole lines behind what was read, how far that is, and whether the file is another by now: then
        the lines are all there are."""
        try:
            with Beneath(self._root) as here:
                fd = here.folder(self._folder).open(self._name, os.O_RDONLY | _BINARY)
        except (OSError, SimplememError):
            return b"", None, since is not None
        with os.fdopen(fd, "rb") as file:
            stat = os.fstat(fd)
            is_same = since is not None and since[:2] == (stat.st_dev, stat.st_ino) and since.offset <= stat.st_size
            offset = since.offset if since is not None and is_same else 0
            file.seek(offset)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]  # what is being written just now is for the next time
        return whole, Extent(stat.st_dev, stat.st_ino, offset + len(whole)), not is_same

    def replace(self, data: bytes) -> Path:
        """Put a whole file in place; its path."""
        with self._made() as folder, telling("write", self._shown, writing=True):
            fresh = f"{self._name}.new"
            with os.fdopen(folder.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _BINARY), "wb") as file:
                file.write(data)
                file.flush()
                kernel.sync_file(file.fileno())
            kernel.patiently(
                lambda: os.replace(
                    folder.name(fresh), folder.name(self._name), src_dir_fd=folder.fd, dst_dir_fd=folder.fd
                )
            )
        return Path(self._root, *self._folder, self._name)

    @contextmanager
    def _made(self) -> Iterator[Folder]:
        with Beneath(self._root) as here:
            make_sidecar(here)
            here.make(self._folder)
            yield here.folder(self._folder)
