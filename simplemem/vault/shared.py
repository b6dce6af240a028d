"""What several servers on one vault share beside its notes: who of them leads, and files of lines they all add to."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from simplemem.errors import SimplememError
from simplemem.vault import disk
from simplemem.vault.paths import OVERWRITE, READ, SIDECAR, Beneath, parent, telling
from simplemem.vault.vault import FileLock, make_sidecar


class Leadership:
    """Which of several servers on an index looks after it: the one that holds the file `index.leader` beside it. Tried
    for now and then; held until `resign` or the end of the process. Leading is no right to write."""

    def __init__(self, path: Path) -> None:
        self._file = FileLock(str(path.parent), path.name)
        self.resign = self._file.give_back

    def held(self) -> bool:
        """Whether we lead, taking the lead if nobody has it."""
        if self._file.is_held():
            return True
        self.resign()
        try:
            return self._file.take()
        except (OSError, SimplememError):  # the folder is not there just now, or a link lies in the file's place
            return False


class SideFile:
    """A file under `.simplemem/` beside the index, `state/access.jsonl` say: lines of several processes, or a whole
    file put in place at once. Its own lock is held no longer than a line takes."""

    def __init__(self, root: str, name: str) -> None:
        self._root = root
        self._path = f"{SIDECAR}/{name}"
        self._lock = FileLock(root, f"{SIDECAR}/{name.rsplit('.', 1)[0]}.lock")
        self._seen = (0, 0, 0)  # which file was read, and how far

    @contextmanager
    def held(self, patience: float) -> Iterator[bool]:
        """Hold the lock of this file, if it is to be had in so many seconds: whether it was."""
        ends = time.monotonic() + patience
        while not (taken := self._lock.take()) and time.monotonic() < ends:
            time.sleep(0.002)
        try:
            yield taken
        finally:
            self._lock.give_back()

    def append(self, lines: bytes, *, sync: bool = False) -> None:
        """Add whole lines, also behind one that a power cut tore. The lock is held."""
        with self._writing() as here, here.opened(self._path, OVERWRITE | os.O_APPEND) as fd:
            disk.append_lines(fd, lines)
            if sync:
                disk.sync_file(fd)

    def follow(self) -> tuple[bytes, bool]:
        """The whole lines behind what was read last, and whether the file is another, and these all its lines."""
        *was, offset = self._seen
        try:
            with Beneath(self._root) as here, here.opened(self._path, READ) as fd:
                stat = os.fstat(fd)
                is_another = was != [stat.st_dev, stat.st_ino] or offset > stat.st_size
                offset = 0 if is_another else offset
                data = disk.read_at(fd, offset, stat.st_size - offset)
        except (OSError, SimplememError):
            is_another, self._seen = self._seen != (0, 0, 0), (0, 0, 0)
            return b"", is_another
        whole = data[: data.rfind(b"\n") + 1]  # what is being written just now is for the next time
        self._seen = stat.st_dev, stat.st_ino, offset + len(whole)
        return whole, is_another

    def replace(self, data: bytes) -> Path:
        """Put a whole file in place; its path."""
        with self._writing() as here:
            disk.put(here, self._path, data, sync=True)
        return Path(self._root, *self._path.split("/"))

    @contextmanager
    def _writing(self) -> Iterator[Beneath]:
        with Beneath(self._root) as here, telling("write", self._path, writing=True):
            make_sidecar(here, parent(self._path))
            yield here
