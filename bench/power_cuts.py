"""The power is cut at random moments: a file system on an image loses what was not synced, and what was answered must
stay.

    python bench/power_cuts.py [--cuts 25] [--seed 1] [--careless]

Needs Linux, root, mkfs.ext4 and a free loop device; it says so and ends with 0 where one is missing. The vault lies on
an ext4 image that writes nothing by itself for minutes. A child changes it as that of crash.py does; at some moment it
is stopped and the image is copied, which is what a power cut would leave. The copy is mounted as after a restart (the
file system replays its journal), looked at by the same rules, and the work goes on there. `--careless` writes without
syncing, to show that this would be seen. Exits with 1 when a cut did harm.
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

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.crash import SETTINGS, endings
from simplemem.settings.loading import load_settings

CARELESS = load_settings({"embed.provider": "none", "write.durability": "fast"})
MEGABYTES = 24
NEW_MOUNTS, PRIVATE = 0x20000, 0x4000 | 0x40000


def what_is_missing() -> str:
    """Why this cannot be done here, or nothing."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "Linux and root are needed"
    if shutil.which("mkfs.ext4") is None or shutil.which("mount") is None:
        return "mkfs.ext4 and mount are needed"
    if subprocess.run(["losetup", "-f"], capture_output=True, check=False).returncode:
        return "there is no loop device"
    libc = ctypes.CDLL(None)
    if libc.unshare(NEW_MOUNTS) or libc.mount(None, b"/", None, ctypes.c_ulong(PRIVATE), None):
        return "mounts of its own are not allowed here"
    return ""


def shell(*words: object) -> None:
    subprocess.run([str(word) for word in words], check=True, stdout=subprocess.DEVNULL)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--cuts", type=int, default=25)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--careless", action="store_true", help="do not sync, to see that it would be seen"
    )
    given = parser.parse_args()
    if missing := what_is_missing():
        print(f"No power can be cut here: {missing}.")
        return 0
    with tempfile.TemporaryDirectory(
        prefix="simplemem-power-", ignore_cleanup_errors=True
    ) as folder:
        room = Path(folder)
        shell("mount", "-t", "tmpfs", "-o", f"size={3 * MEGABYTES}m", "tmpfs", room)
        image, root = room / "disk.img", room / "disk"
        root.mkdir()
        with image.open("wb") as file:
            file.truncate(MEGABYTES << 20)
        shell("mkfs.ext4", "-q", "-F", image)
        shell("mount", "-o", "loop,commit=300", image, root)
        (root / "vault").mkdir()

        def cut_soon(pid: int, share: float) -> None:
            """Stop the child and copy the image: what the disk has at this moment."""
            time.sleep(share * 0.4)
            os.kill(pid, signal.SIGSTOP)
            os.waitpid(pid, os.WUNTRACED)
            shutil.copyfile(image, image.with_suffix(".cut"))
            os.kill(pid, signal.SIGKILL)

        def start_again() -> None:
            shell("umount", root)
            image.with_suffix(".cut").replace(image)
            shell("mount", "-o", "loop,commit=300", image, root)

        settings = CARELESS if given.careless else SETTINGS
        counted = endings(
            root / "vault", given.cuts, given.seed, cut_soon, settings=settings, between=start_again
        )
        shell("umount", root)
        shell("umount", room)
    print(
        f"{counted['rounds']} power cuts with seed {given.seed}, {counted['answered']} answered changes"
    )
    print("a cut did harm" if counted["wrong"] else "nothing was lost or torn")
    return 1 if counted["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
