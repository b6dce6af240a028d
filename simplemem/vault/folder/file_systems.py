"""The type of the disk that a path is on, and the types that several computers share."""

from __future__ import annotations

import os
from contextlib import suppress

# Other computers may write to these at the same time; inotify reports only what this machine does
# (F40).
SHARED = frozenset(
    {
        "9p",
        "afs",
        "ceph",
        "cifs",
        "davfs",
        "drvfs",
        "fuse.davfs2",
        "fuse.gcsfuse",
        "fuse.rclone",
        "fuse.s3fs",
        "fuse.sshfs",
        "fuse.vmhgfs-fuse",
        "glusterfs",
        "lustre",
        "nfs",
        "nfs4",
        "smb3",
        "smbfs",
        "vboxsf",
        "virtiofs",
    }
)


def file_system(path: str) -> str:
    """Return the type of the disk that a path is on, by Linux's list of mounts.

    Returns "" if it is not known, as on other systems. Never raises.
    """
    with (
        suppress(OSError),
        open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as mounts,
    ):
        device = os.stat(path).st_dev
        device_number = f"{os.major(device)}:{os.minor(device)}"
        for line in mounts:
            if line.split(" ", 3)[2] == device_number:
                _, _, after_separator = line.partition(" - ")
                return after_separator.partition(" ")[0]
    return ""
