"""A vault with everything beside it that must stay as it is, and with every kind of link that leads there."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

SECRET = "the-canary-sings-6f1c"
_LONG_AGO = 1_500_000_000
"""Older than every change, so that even a disk that notes the time of reading seldom notes the first one."""


class Room:
    """A folder with a vault and what is none of its business. `touched` tells what happened to the latter."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.vault = folder / "vault"
        outside = folder / "outside"
        for each in (
            self.vault / "notes",
            self.vault / ".git" / "hooks",
            outside / "deep",
            folder / "vault-evil",
        ):
            each.mkdir(parents=True)
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
        self._before = self._state()

    def make_links(self) -> None:
        """Links that lead out, in a ring, or nowhere; a pipe; a folder called like a note; one file with two names."""
        vault, outside = self.vault, self.folder / "outside"
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
        """What a look shows without reading: of files all that any use of them changes, of folders their entries."""
        state: dict[str, tuple[int, ...]] = {}
        for file in self._canaries:
            facts = os.lstat(file)
            times = (facts.st_mtime_ns, facts.st_ctime_ns, facts.st_atime_ns)
            state[str(file)] = (facts.st_ino, facts.st_mode, facts.st_nlink, facts.st_size, *times)
        for folder in self._folders:
            # A vault's own work makes and removes nothing in these, so their times of change stand still.
            facts = os.lstat(folder)
            state[str(folder)] = (facts.st_ino, facts.st_mode, facts.st_nlink, facts.st_mtime_ns)
        return state

    def touched(self) -> list[str]:
        """What is not as it was outside the vault: changed, removed, added, or only read."""
        now = self._state()
        return [path for path, facts in self._before.items() if now.get(path) != facts]

    def remove_what_is_outside(self) -> None:
        """Everything beside the vault goes."""
        for path in self.folder.iterdir():
            if path == self.vault:
                continue
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()

    def reading_shows(self) -> bool:
        """Whether this disk tells that a file was read. Uses a file of its own."""
        probe = self.vault / ".git" / "hooks" / "probe"
        probe.write_text("x")
        os.utime(probe, (_LONG_AGO, _LONG_AGO + 60))
        before = os.stat(probe).st_atime_ns
        probe.read_text()
        return os.stat(probe).st_atime_ns != before
