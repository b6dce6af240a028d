"""A vault with files beside it that must not be touched, and with links of all kinds to them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

SECRET = "the-canary-sings-6f1c"
# Older than every change: then even a file system that rarely updates the time of reading
# (relatime) updates it at the first read.
_LONG_AGO = 1_500_000_000


class Room:
    """A folder with a vault and files beside it. `touched` compares these with their first state."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.vault = folder / "vault"
        outside = folder / "outside"
        for new_folder in (
            self.vault / "notes",
            self.vault / ".git" / "hooks",
            outside / "deep",
            folder / "vault-evil",
        ):
            new_folder.mkdir(parents=True)
        self._canaries = [
            folder / "canary.md",
            folder / "canary",
            outside / "canary.md",
            outside / "deep" / "canary.md",
            folder / "vault-evil" / "canary.md",
            self.vault / ".git" / "config",
        ]
        for canary in self._canaries:
            canary.write_text(f"{SECRET} {canary.name}\n")
        (self.vault / "n.md").write_text(
            "---\ntags: [todo]\n---\nA note about [[notes/other]] harbours.\n"
        )
        (self.vault / "notes" / "other.md").write_text("Another, about kites.\n")
        self.make_links()
        for canary in self._canaries:
            os.utime(canary, (_LONG_AGO, _LONG_AGO + 60))
        self._folders = [
            folder,
            outside,
            outside / "deep",
            folder / "vault-evil",
            self.vault / ".git",
        ]
        self._initial_state = self._state()

    def make_links(self) -> None:
        """Create links out of the vault, in a circle or to nothing, a pipe, and a folder `folder.md`."""
        vault = self.vault
        outside = self.folder / "outside"
        (vault / "link-out").symlink_to("../outside")
        (vault / "link-absolute").symlink_to(outside)
        (vault / "link-evil").symlink_to("../vault-evil")
        (vault / "link-to-parent").symlink_to("..")
        (vault / "link-to-proc").symlink_to("/proc")
        (vault / "link-file.md").symlink_to("../outside/canary.md")
        (vault / "loop.md").symlink_to("loop.md")
        (vault / "loop").symlink_to("loop")
        (vault / "dangling.md").symlink_to("../outside/not-there.md")
        os.mkfifo(vault / "pipe.md")
        (vault / "folder.md").mkdir()

    def _state(self) -> dict[str, tuple[int, ...]]:
        """Return the attributes of the files and the folders that any use changes."""
        state: dict[str, tuple[int, ...]] = {}
        for file in self._canaries:
            status = os.lstat(file)
            times = (status.st_mtime_ns, status.st_ctime_ns, status.st_atime_ns)
            identity = (status.st_ino, status.st_mode, status.st_nlink, status.st_size)
            state[str(file)] = (*identity, *times)
        for folder in self._folders:
            # simplemem creates and removes nothing in these folders, so their times do not change.
            status = os.lstat(folder)
            identity = (status.st_ino, status.st_mode, status.st_nlink)
            state[str(folder)] = (*identity, status.st_mtime_ns)
        return state

    def touched(self) -> list[str]:
        """Return the paths outside the vault that were changed, removed, added to, or only read."""
        state = self._state()
        return [path for path, initial in self._initial_state.items() if state.get(path) != initial]

    def remove_what_is_outside(self) -> None:
        """Delete everything beside the vault."""
        for path in self.folder.iterdir():
            if path == self.vault:
                continue
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()

    def reading_shows(self) -> bool:
        """Return whether this file system records that a file was read. Uses a file of its own."""
        probe = self.vault / ".git" / "hooks" / "probe"
        probe.write_text("x")
        os.utime(probe, (_LONG_AGO, _LONG_AGO + 60))
        initial_time = os.stat(probe).st_atime_ns
        probe.read_text()
        return os.stat(probe).st_atime_ns != initial_time
