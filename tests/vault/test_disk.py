"""What kind of disk a folder is on, who else may write to it, and whether that is announced here."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from simplemem.vault.disk import file_system, is_shared, is_silent, mounted_kind


@pytest.mark.parametrize(
    ("kinds", "shared"),
    [
        ("nfs4 cifs fuse.sshfs 9p remote smbfs virtiofs", True),
        ("ext4 btrfs apfs fuseblk overlay tmpfs fuse.gocryptfs", False),
    ],
)
def test_disks_that_others_write_to_are_told_apart(kinds: str, shared: bool) -> None:
    assert [is_shared(kind) for kind in kinds.split()] == [shared] * 7
    assert not is_shared("")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists its mounts here")
def test_the_kind_of_a_disk_is_what_the_system_says(tmp_path: Path) -> None:
    mounts = Path("/proc/self/mounts").read_text()
    assert f" {file_system(str(tmp_path))} " in mounts
    assert file_system("/proc/self") == "proc"


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "fuse", "9p"])
def test_a_shared_disk_is_recognised_among_the_mounts(kind: str) -> None:
    mounts = (
        "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
        "30 22 0:40 / /home/ida/My\\040Disk rw,relatime shared:5 - ext4 /dev/sdb1 rw\n"
        f"31 30 0:41 / /home/ida/My\\040Disk/vault rw,relatime master:2 shared:9 - {kind} server:/notes rw\n"
    )
    assert mounted_kind(mounts, "/home/ida/My Disk/vault/logs") == kind
    assert mounted_kind("\n".join(reversed(mounts.split("\n"))), "/home/ida/My Disk/vault") == kind
    assert mounted_kind(mounts, "/home/ida/My Disk/vault two") == "ext4"
    assert is_silent(kind) and not is_silent("ext4")
