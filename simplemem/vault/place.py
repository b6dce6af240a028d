"""Where a folder lies: in the care of which service that carries it to other computers.

Read from the names and marks that such services leave; nothing is written to find out, and nothing is asked of a service.
Where nothing is known, the answer is "".
"""

from __future__ import annotations

import re
from pathlib import Path

_BY_NAME = (
    (re.compile(r"/Library/Mobile Documents(/|$)", re.IGNORECASE), "iCloud Drive"),
    (re.compile(r"/iCloud ?Drive(/|$)", re.IGNORECASE), "iCloud Drive"),
    (re.compile(r"/Library/CloudStorage/Dropbox[^/]*(/|$)", re.IGNORECASE), "Dropbox"),
    (re.compile(r"/Library/CloudStorage/OneDrive[^/]*(/|$)", re.IGNORECASE), "OneDrive"),
    (re.compile(r"/Library/CloudStorage/GoogleDrive[^/]*(/|$)", re.IGNORECASE), "Google Drive"),
    (re.compile(r"/Library/CloudStorage/[^/]+(/|$)", re.IGNORECASE), "a cloud drive"),
    (re.compile(r"/Dropbox( \([^/]*\))?(/|$)", re.IGNORECASE), "Dropbox"),
    (re.compile(r"/OneDrive( - [^/]*)?(/|$)", re.IGNORECASE), "OneDrive"),
    (re.compile(r"/(Google ?Drive|My Drive)(/|$)", re.IGNORECASE), "Google Drive"),
    (re.compile(r"/(Nextcloud|ownCloud)[0-9]*(/|$)", re.IGNORECASE), "Nextcloud"),
    (re.compile(r"/(pCloud ?Drive|pCloudDrive|pCloud Sync)(/|$)", re.IGNORECASE), "pCloud"),
    (re.compile(r"/MEGA( ?sync)?(/|$)", re.IGNORECASE), "MEGA"),
)
_BY_MARK = (
    (".stfolder", "Syncthing"),
    (".dropbox", "Dropbox"),
    (".dropbox.cache", "Dropbox"),
    (".owncloudsync.log", "Nextcloud"),
    (".nextcloudsync.log", "Nextcloud"),
    (".resilio-sync", "Resilio Sync"),
    (".sync", "Resilio Sync"),
    (".tmp.drivedownload", "Google Drive"),
)


def synced_by(folder: Path) -> str:
    """The service that keeps a folder the same on several computers, as far as names and marks tell."""
    for above in (folder, *folder.parents):
        for mark, service in _BY_MARK:
            # A home with a Dropbox in it has a `.dropbox` of its own, which says nothing of the folders beside it.
            if above != Path.home() and (above / mark).exists():
                return service
    return service_named(folder.as_posix())


def service_named(path: str) -> str:
    """The service whose folder a path leads through, by the name that such a folder is given."""
    for pattern, service in _BY_NAME:
        if pattern.search(path):
            return service
    return ""


def leaves_out_sidecar(folder: Path) -> bool:
    """Whether Syncthing was told to leave `.simplemem` out."""
    for above in (folder, *folder.parents):
        if (above / ".stfolder").exists():
            try:
                lines = (above / ".stignore").read_text(encoding="utf-8", errors="replace").split("\n")
            except OSError:
                return False
            return any(line.strip().removeprefix("(?d)").strip("/").endswith(".simplemem") for line in lines)
    return False
