"""Where a folder lies: on which kind of disk, who else may write there, and which service carries it to other
computers, by the names and marks that such services leave. Nothing is written or asked to find out; "" is for what is
not known."""

from __future__ import annotations

import os
import re
from pathlib import Path

_BY_NAME = {
    "iCloud Drive": re.compile(r"/(Library/Mobile Documents|iCloud ?Drive)(/|$)", re.IGNORECASE),
    "Dropbox": re.compile(r"/(Library/CloudStorage/Dropbox[^/]*|Dropbox( \([^/]*\))?)(/|$)", re.IGNORECASE),
    "OneDrive": re.compile(r"/(Library/CloudStorage/OneDrive[^/]*|OneDrive( - [^/]*)?)(/|$)", re.IGNORECASE),
    "Google Drive": re.compile(r"/(Library/CloudStorage/GoogleDrive[^/]*|Google ?Drive|My Drive)(/|$)", re.IGNORECASE),
    "a cloud drive": re.compile(
        r"/(Library/CloudStorage/[^/]+|pCloud ?(Drive|Sync)|MEGA( ?sync)?)(/|$)", re.IGNORECASE
    ),
    "Nextcloud": re.compile(r"/((Nextcloud|ownCloud)[0-9]*)(/|$)", re.IGNORECASE),
}
_BY_MARK = {
    ".stfolder": "Syncthing",
    ".dropbox": "Dropbox",
    ".dropbox.cache": "Dropbox",
    ".owncloudsync.log": "Nextcloud",
    ".nextcloudsync.log": "Nextcloud",
    ".sync": "Resilio Sync",
    ".tmp.drivedownload": "Google Drive",
}
# Other computers may write to these at the same time; inotify sees only what this machine does (durability.md F40).
_SHARED = frozenset((
    "9p", "afs", "ceph", "cifs", "davfs", "drvfs", "fakeowner", "glusterfs", "lustre", "nfs", "nfs4", "prl_fs", "smb3",
    "smbfs", "vboxsf", "virtiofs", "fuse.sshfs", "fuse.rclone", "fuse.s3fs", "fuse.gcsfuse", "fuse.davfs2", "fuse.ceph",
    "fuse.glusterfs", "fuse.vmhgfs-fuse",
))  # fmt: skip


def synced_by(folder: Path) -> str:
    """The service that keeps a folder the same on several computers, as far as marks and names tell."""
    for above in (folder, *folder.parents):
        for mark, service in _BY_MARK.items():
            # A home with a Dropbox in it has a `.dropbox` of its own, which says nothing of the folders beside it.
            if above != Path.home() and (above / mark).exists():
                return service
    path = folder.as_posix()
    return next((service for service, pattern in _BY_NAME.items() if pattern.search(path)), "")


def leaves_out_sidecar(folder: Path) -> bool:
    """Whether Syncthing was told to leave `.simplemem` out."""
    ignored = next((above / ".stignore" for above in (folder, *folder.parents) if (above / ".stfolder").exists()), None)
    if ignored is None or not ignored.is_file():
        return False
    lines = ignored.read_text(encoding="utf-8", errors="replace").split("\n")
    return any(line.strip().removeprefix("(?d)").strip("/").endswith(".simplemem") for line in lines)


def file_system(path: str) -> str:
    """The kind of file system a path is on, by Linux's list of mounts; "" on other systems."""
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as mounts:
            return mounted_kind(mounts.read(), os.path.realpath(path))
    except OSError:
        return ""


def mounted_kind(mountinfo: str, path: str) -> str:
    """The kind of the deepest mount that holds `path`, in Linux's list of mounts; the last made wins."""
    kind, deepest = "", -1
    for line in mountinfo.split("\n"):
        fields, _, rest = line.partition(" - ")
        point = fields.split(" ")[4] if fields.count(" ") > 3 else "?"
        point = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), point)
        if (path == point or path.startswith(point.rstrip("/") + "/")) and len(point) >= deepest:
            kind, deepest = rest.split(" ")[0], len(point)
    return kind


def is_shared(kind: str) -> bool:
    """Whether somebody who does not see this computer's locks may write to such a file system at the same time."""
    return kind in _SHARED


def is_silent(kind: str) -> bool:
    """Whether what others change on such a file system is not announced here."""
    return kind in _SHARED or kind == "fuse" or kind.startswith("fuse.")
