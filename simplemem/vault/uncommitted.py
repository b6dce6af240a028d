"""What waits to be committed: a small file in `.simplemem/git/queue` for each change of ours, named by its version.

It is put there just before the change is made, and taken away once its commit is in the branch, so that a server that
dies anywhere between the two leaves it to the next. Beside it lies which entries of the person's index are set by us,
while they are.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from simplemem.vault import atomic
from simplemem.vault.leader import Leadership
from simplemem.vault.log import Version, number_of
from simplemem.vault.paths import OVERWRITE, READ, SIDECAR, WRITE_NEW, Beneath
from simplemem.vault.staging import Entry

_FOLDER = f"{SIDECAR}/git"
_QUEUE = f"{_FOLDER}/queue"
_MOST_BYTES = 100_000
_A_MINUTE = 60.0
_SET = f"{_FOLDER}/index.json"


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
                atomic.write_all(fd, _told_apart(version))
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
                data, stat = atomic.read_file(here, f"{_QUEUE}/{name}", _MOST_BYTES)
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
                atomic.remove(here, f"{_QUEUE}/{version}")

    def remember(self, entries: Mapping[str, Entry | None]) -> None:
        """Write down which entries of the index are set by us, until the branch has moved; nothing forgets them."""
        known = {path: None if entry is None else [entry.mode, entry.oid] for path, entry in entries.items()}
        with self._beneath() as here:
            here.make(tuple(_FOLDER.split("/")))
            atomic.remove(here, f"{_SET}.new")
            if not known:
                atomic.remove(here, _SET)
                return
            folder, name = here.spot(f"{_SET}.new")
            fd = folder.open(name, WRITE_NEW)
            try:
                atomic.write_all(fd, json.dumps(known).encode())
            finally:
                os.close(fd)
            atomic.rename_over(here, f"{_SET}.new", _SET)

    def remembered(self) -> dict[str, Entry | None]:
        """What `remember` wrote; nothing when there is none, or nothing that can be read."""
        try:
            with self._beneath() as here:
                folder, name = here.spot(_SET)
                fd = folder.open(name, READ)
            with os.fdopen(fd, "rb") as opened:
                known = json.loads(opened.read(4_000_000))
            return {
                path: None if entry is None else Entry(str(entry[0]), str(entry[1])) for path, entry in known.items()
            }
        except (OSError, ValueError, AttributeError, TypeError, IndexError, KeyError):
            return {}

    def _beneath(self) -> Beneath:
        return Beneath(str(self._root))


@contextmanager
def taking_turns(git_dir: str, seconds: float) -> Iterator[bool]:
    """Hold a lock of ours in a git directory for a block, so that one process at a time makes commits, of whichever vault
    in the repository; False if somebody else has it for so long."""
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
