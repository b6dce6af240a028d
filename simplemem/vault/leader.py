"""Which of several servers on a vault looks after it: the one that holds the file `index.leader` beside the index.

A kernel lock again, so that it is free the moment its holder dies. Leading is a convenience, never a right to write.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from simplemem.errors import SimplememError
from simplemem.vault import kernel
from simplemem.vault.paths import Beneath


class Leadership:
    """Tried for now and then; held until `resign` or the end of the process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = -1

    def held(self) -> bool:
        """Whether we lead, taking the lead if nobody has it."""
        if self._fd >= 0:
            if self._is_in_place():
                return True
            self.resign()
        try:
            with Beneath(str(self._path.parent)) as here:
                folder, name = here.spot(self._path.name)
                fd = folder.open(name, os.O_RDWR | os.O_CREAT)
        except (OSError, SimplememError):  # the folder is not there just now, or a link lies in the file's place
            return False
        with suppress(OSError):
            if kernel.try_lock(fd):
                self._fd = fd
                return self._is_in_place()
        os.close(fd)
        return False

    def _is_in_place(self) -> bool:
        """Somebody may have thrown the folder away meanwhile; then what we hold is no lead."""
        try:
            there, ours = os.stat(self._path), os.fstat(self._fd)
        except OSError:
            return False
        return (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)

    def resign(self) -> None:
        if self._fd >= 0:
            with suppress(OSError):
                kernel.unlock(self._fd)
            os.close(self._fd)
            self._fd = -1
