"""How often an entry was read, and when last: kept in `.simplemem/state/access.jsonl`, never in a note.

A line is added for every answer, under a lock of the file's own that is held no longer than that takes; several processes
count together. When a process first counts, a file that has grown is written anew with a line an entry. What stands here is
derived from nothing and is never rebuilt; a line that a power cut tore is passed over.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from simplemem.errors import SimplememError
from simplemem.vault import kernel
from simplemem.vault.lock import make_sidecar
from simplemem.vault.paths import SIDECAR, Beneath, Folder

_FOLDER: Final = (SIDECAR, "state")
_FILE: Final = "access.jsonl"
_FRESH: Final = "access.jsonl.new"
_LOCK: Final = "access.lock"
_LARGE: Final = 256 * 1024  # bytes, from which a file is written anew
_PATIENCE: Final = 0.25  # seconds; a count that finds no turn goes with the next
_BINARY: Final = getattr(os, "O_BINARY", 0)


@dataclass(frozen=True, slots=True)
class Read:
    """How often something was read, and when last (UTC); "" for never."""

    count: int = 0
    last: str = ""


NEVER: Final = Read()


class Access:
    """The counts of one vault. Any thread may count; where nothing can be written, they are this process's alone."""

    def __init__(self, root: Path, *, read_only: bool = False) -> None:
        self._root = str(root)
        self._read_only = read_only
        self._guard = threading.Lock()
        self._counts: dict[str, Read] = {}
        self._seen: tuple[int, int, int] | None = None  # the file that was read, and up to where
        self._pending: list[bytes] = []
        self._compacted = False

    def all(self) -> Mapping[str, Read]:
        """Every count there is, of all processes."""
        with self._guard:
            self._follow()
            counts = dict(self._counts)
            for line in self._pending:
                _add(counts, line)
            return counts

    def count(self, ids: Collection[str], when: str = "") -> None:
        """Note that these were read just now."""
        if not ids:
            return
        moment = when or time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        line = json.dumps({"at": moment, "ids": list(ids)}, separators=(",", ":")).encode() + b"\n"
        with self._guard:
            self._pending.append(line)
            if self._read_only:
                return
            with suppress(OSError, SimplememError), self._locked() as folder:
                if folder is not None:
                    self._append(folder, b"".join(self._pending))
                    self._pending.clear()
                    self._compact_once(folder)

    # -- the file

    def _append(self, folder: Folder, lines: bytes) -> None:
        fd = folder.open(_FILE, os.O_RDWR | os.O_CREAT | os.O_APPEND | _BINARY)
        try:
            size = os.fstat(fd).st_size
            if size and _is_torn(fd, size):
                lines = b"\n" + lines
            os.write(fd, lines)
        finally:
            os.close(fd)

    def _follow(self) -> None:
        """Take in what was added since this was last asked."""
        try:
            with Beneath(self._root) as here:
                fd = here.folder(_FOLDER).open(_FILE, os.O_RDONLY | _BINARY)
        except (OSError, SimplememError):
            self._counts, self._seen = {}, None
            return
        try:
            stat = os.fstat(fd)
            if self._seen is None or self._seen[:2] != (stat.st_dev, stat.st_ino) or self._seen[2] > stat.st_size:
                self._counts, self._seen = {}, (stat.st_dev, stat.st_ino, 0)
            at = self._seen[2]
            if stat.st_size > at:
                os.lseek(fd, at, os.SEEK_SET)
                data = _read_all(fd)
                whole = data[: data.rfind(b"\n") + 1]  # what is being written just now is for the next time
                for line in whole.split(b"\n"):
                    _add(self._counts, line)
                self._seen = (*self._seen[:2], at + len(whole))
        finally:
            os.close(fd)

    def _compact_once(self, folder: Folder) -> None:
        """Write a file anew that has grown: a line an entry. Under the lock, so that no line is lost."""
        if self._compacted:
            return
        self._compacted = True
        self._follow()
        if self._seen is None or self._seen[2] < _LARGE:
            return
        lines = [
            json.dumps({"at": read.last, "ids": [id_], "n": read.count}, separators=(",", ":"))
            for id_, read in self._counts.items()
        ]
        fd = folder.open(_FRESH, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _BINARY)
        try:
            with os.fdopen(os.dup(fd), "wb") as file:
                file.write("".join(f"{line}\n" for line in lines).encode())
            kernel.sync_file(fd)
        finally:
            os.close(fd)
        kernel.patiently(
            lambda: os.replace(folder.name(_FRESH), folder.name(_FILE), src_dir_fd=folder.fd, dst_dir_fd=folder.fd)
        )
        self._seen = None

    @contextmanager
    def _locked(self) -> Iterator[Folder | None]:
        """The folder, with the file's lock; None when it is not to be had soon."""
        with Beneath(self._root) as here:
            make_sidecar(here)
            here.make(_FOLDER)
            folder = here.folder(_FOLDER)
            fd = folder.open(_LOCK, os.O_RDWR | os.O_CREAT)
            try:
                ends = time.monotonic() + _PATIENCE
                while not (taken := kernel.try_lock(fd)) and time.monotonic() < ends:
                    time.sleep(0.002)
                try:
                    yield folder if taken else None
                finally:
                    if taken:
                        kernel.unlock(fd)
            finally:
                os.close(fd)


def _is_torn(fd: int, size: int) -> bool:
    """Whether the last line lacks its end."""
    os.lseek(fd, size - 1, os.SEEK_SET)
    return os.read(fd, 1) != b"\n"


def _read_all(fd: int) -> bytes:
    parts = []
    while part := os.read(fd, 1 << 20):
        parts.append(part)
    return b"".join(parts)


def _add(counts: dict[str, Read], line: bytes) -> None:
    """Take in one line. What is not one of ours is passed over."""
    if not line.strip():
        return
    try:
        said = json.loads(line)
        ids, when, times = said["ids"], said["at"], said.get("n", 1)
    except (ValueError, KeyError, TypeError, RecursionError):
        return
    if not isinstance(ids, list) or not isinstance(when, str) or not isinstance(times, int) or not 0 < times < 1 << 53:
        return
    for id_ in ids:
        if isinstance(id_, str):
            known = counts.get(id_, NEVER)
            counts[id_] = Read(known.count + times, max(known.last, when))
