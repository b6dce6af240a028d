"""What waits to be committed: an empty file in `.simplemem/git/queue` for each change of ours, named by its version.

A name is put there before the write is answered, and taken away once its commit is in the branch, so that a server that
dies between the two leaves it to the next. Beside it lies which entries of the person's index we have set, while we do.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from simplemem.vault import atomic
from simplemem.vault.leader import Leadership
from simplemem.vault.paths import OVERWRITE, READ, SIDECAR, WRITE_NEW, Beneath
from simplemem.vault.staging import Entry

_FOLDER = f"{SIDECAR}/git"
_QUEUE = f"{_FOLDER}/queue"
_SET = f"{_FOLDER}/index.json"


class Uncommitted:
    """The changes of one vault that wait. Any thread and process may add; who takes holds the lock."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def add(self, version: str) -> None:
        with self._beneath() as here:
            here.make(tuple(_QUEUE.split("/")))
            folder, name = here.spot(f"{_QUEUE}/{version}")
            os.close(folder.open(name, OVERWRITE))

    def waiting(self) -> list[str]:
        """The changes that wait, in their order."""
        with self._beneath() as here:
            try:
                names = here.folder(tuple(_QUEUE.split("/"))).names()
            except (FileNotFoundError, NotADirectoryError):
                return []
        return sorted((name for name in names if name[:1] == "v" and name[1:].isdecimal()), key=lambda n: int(n[1:]))

    def done(self, versions: Iterable[str]) -> None:
        with self._beneath() as here, suppress(FileNotFoundError):
            for version in versions:
                atomic.remove(here, f"{_QUEUE}/{version}")

    @contextmanager
    def lock(self, seconds: float) -> Iterator[bool]:
        """Hold the lock for a block, so that one process at a time makes commits; False if somebody else has it."""
        with self._beneath() as here:
            here.make(tuple(_FOLDER.split("/")))
        lock = Leadership(self._root / _FOLDER / "lock")
        deadline = time.monotonic() + seconds
        while not (held := lock.held()) and time.monotonic() < deadline:
            time.sleep(0.02)
        try:
            yield held
        finally:
            lock.resign()

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
