"""The power is cut at random moments: acknowledged changes must stay.

    python bench/power_cuts.py [--cuts 25] [--seed 1] [--careless]

Needs Linux, root, mkfs.ext4 and a free loop device; where one is missing, it says so and ends with
0.

The vault lies on an ext4 image that is not written back for minutes unless somebody syncs. A child
changes the vault as that of crash.py does. At a random moment it is stopped and the image is
copied: that is what a power cut would leave. The copy is mounted as after a restart (the file
system replays its journal) and checked by the rules of crash.py, and the work continues there.
`--careless` writes without syncing, to show that the check would notice. Exits with 1 if a cut did
harm.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.crash import SETTINGS, endings
from simplemem.settings.loading import load_settings

CARELESS: Final = load_settings({"embed.provider": "none", "write.durability": "fast"})
MEGABYTES: Final = 24

# Constants of Linux: CLONE_NEWNS for unshare(2); MS_REC and MS_PRIVATE for mount(2).
_NEW_MOUNT_NAMESPACE: Final = 0x20000
_RECURSIVE_PRIVATE: Final = 0x4000 | 0x40000


def main() -> int:
    """Cut the power so many times. Return the exit code: 1 if a cut did harm."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--cuts", type=int, default=25)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--careless", action="store_true", help="do not sync, to show that harm is noticed"
    )
    options = parser.parse_args()

    obstacle = find_obstacle()
    if obstacle:
        print(f"No power can be cut here: {obstacle}.")
        return 0

    with tempfile.TemporaryDirectory(
        prefix="simplemem-power-", ignore_cleanup_errors=True
    ) as folder:
        root = Path(folder)
        run("mount", "-t", "tmpfs", "-o", f"size={3 * MEGABYTES}m", "tmpfs", root)
        disk = Disk(root)
        disk.create()
        vault = disk.folder / "vault"
        vault.mkdir()
        counts = endings(
            vault,
            options.cuts,
            options.seed,
            disk.cut_power,
            settings=CARELESS if options.careless else SETTINGS,
            between=disk.restart,
        )
        disk.unmount()
        run("umount", root)

    print(
        f"{counts['rounds']} power cuts with seed {options.seed}, "
        f"{counts['answered']} answered changes"
    )
    print("a cut did harm" if counts["wrong"] else "nothing was lost or torn")
    return 1 if counts["wrong"] else 0


def find_obstacle() -> str:
    """Return why power cuts are impossible here, or an empty text.

    Gives this process a mount namespace of its own, so that its mounts end with it.
    """
    if sys.platform != "linux" or os.geteuid() != 0:
        return "Linux and root are needed"
    if shutil.which("mkfs.ext4") is None or shutil.which("mount") is None:
        return "mkfs.ext4 and mount are needed"
    if subprocess.run(["losetup", "-f"], capture_output=True, check=False).returncode:
        return "there is no loop device"

    libc = ctypes.CDLL(None)
    flags = ctypes.c_ulong(_RECURSIVE_PRIVATE)
    if libc.unshare(_NEW_MOUNT_NAMESPACE) or libc.mount(None, b"/", None, flags, None):
        return "mounts of its own are not allowed here"
    return ""


class Disk:
    """An ext4 file system on an image. Guards the image, and its copy at the last power cut."""

    def __init__(self, root: Path) -> None:
        self.folder = root / "disk"
        self._image = root / "disk.img"
        self._copy = root / "disk.cut"

    def create(self) -> None:
        """Make the image, its file system and the folder on which it is mounted."""
        self.folder.mkdir()
        with self._image.open("wb") as file:
            file.truncate(MEGABYTES << 20)
        run("mkfs.ext4", "-q", "-F", self._image)
        self._mount()

    def cut_power(self, pid: int, share: float) -> None:
        """Stop a child after up to 0.4 s, copy what the disk has at this moment, and kill it."""
        time.sleep(share * 0.4)
        os.kill(pid, signal.SIGSTOP)
        os.waitpid(pid, os.WUNTRACED)
        shutil.copyfile(self._image, self._copy)
        os.kill(pid, signal.SIGKILL)

    def restart(self) -> None:
        """Mount the copy in place of the image."""
        self.unmount()
        self._copy.replace(self._image)
        self._mount()

    def unmount(self) -> None:
        """Detach the file system from its folder."""
        run("umount", self.folder)

    def _mount(self) -> None:
        run("mount", "-o", "loop,commit=300", self._image, self.folder)


def run(*words: object) -> None:
    """Run a program without its output.

    Raises:
        subprocess.CalledProcessError: It failed.
    """
    subprocess.run([str(word) for word in words], check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    sys.exit(main())
