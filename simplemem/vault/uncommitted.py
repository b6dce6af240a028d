"""What waits to be committed: a small file in `.simplemem/git/queue` for each change of ours, named by its version.

It is put there just before the change is made, and taken away once its commit is in the branch, so that a server that
dies anywhere between the two leaves it to the next.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from simplemem.errors import Unavailable
from simplemem.vault import disk
from simplemem.vault.lock import Leadership
from simplemem.vault.log import Version, number_of
from simplemem.vault.paths import OVERWRITE, SIDECAR, Beneath

_QUEUE = f"{SIDECAR}/git/queue"
_MOST_BYTES = 100_000
_A_MINUTE = 60.0


@dataclass(frozen=True, slots=True)
class Mark:
    """What was written down of a change before it was made. An old one that the log does not have was never made."""

    data: bytes
    is_old: bool

    def is_of(self, version: Version) -> bool:
        return self.data == _told_apart(version)


class Uncommitted:
    """The changes of one vault that wait. Any thread and process may add; who takes holds the lock."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def add(self, version: Version) -> None:
        """A change is about to be made. What is written tells it from another that may get its number if it fails."""
        with self._beneath() as here:
            here.make(tuple(_QUEUE.split("/")))
            folder, name = here.spot(f"{_QUEUE}/{version.group}")
            fd = folder.open(name, OVERWRITE)
            try:
                os.ftruncate(fd, 0)
                disk.write_all(fd, _told_apart(version))
            finally:
                os.close(fd)

    def count(self) -> int:
        """How many changes wait."""
        return len(self._names())

    def waiting(self) -> dict[str, Mark]:
        """The changes that wait, in their order, with what is known of each."""
        found: dict[str, Mark] = {}
        for name in self._names():
            with suppress(FileNotFoundError), self._beneath() as here:
                data, stat = disk.read_file(here, f"{_QUEUE}/{name}", _MOST_BYTES)
                found[name] = Mark(data, time.time() - stat.st_mtime > _A_MINUTE)
        return found

    def _names(self) -> list[str]:
        with self._beneath() as here:
            try:
                names = here.folder(tuple(_QUEUE.split("/"))).names()
            except (FileNotFoundError, NotADirectoryError):
                return []
        return sorted((name for name in names if name[:1] == "v" and name[1:].isdecimal()), key=number_of)

    def done(self, versions: Iterable[str]) -> None:
        with self._beneath() as here, suppress(FileNotFoundError):
            for version in versions:
                disk.remove(here, f"{_QUEUE}/{version}")

    def _beneath(self) -> Beneath:
        return Beneath(str(self._root))


@contextmanager
def taking_turns(git_dir: str, seconds: float) -> Iterator[bool]:
    """Hold a lock of ours in a git directory for a block, so that one process at a time makes commits, of whichever vault
    in the repository; False if somebody else has it for so long. Unavailable when nothing can be written there."""
    if not os.access(git_dir, os.W_OK):
        raise Unavailable(f"The repository cannot be written: {git_dir}.")
    lock = Leadership(Path(git_dir) / "simplemem.lock")
    deadline = time.monotonic() + seconds
    while not (held := lock.held()) and time.monotonic() < deadline:
        time.sleep(0.02)
    try:
        yield held
    finally:
        lock.resign()


def _told_apart(version: Version) -> bytes:
    return f"{version.when}\n{version.path}\n".encode()
