"""What kind of disk a folder is on, who else may write to it, and which service carries it to other computers."""

from __future__ import annotations

from pathlib import Path

import pytest

from simplemem.vault.place import (
    is_silent,
    leaves_out_sidecar,
    mounted_kind,
    synced_by,
)


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


def test_a_synced_folder_is_known_by_its_name() -> None:
    assert synced_by(Path("/home/ida/notes")) == ""
    assert synced_by(Path("/C:/Users/Ida/OneDrive/notes")) == "OneDrive"
    assert synced_by(Path("/Users/ida/Library/Mobile Documents/com~apple~CloudDocs/notes")) == "iCloud Drive"


def test_a_mark_in_a_home_says_nothing_of_the_folders_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    (tmp_path / ".dropbox").mkdir()
    (tmp_path / "notes").mkdir()
    assert synced_by(tmp_path / "notes") == ""
    (tmp_path / "notes/.dropbox").write_text("")
    assert synced_by(tmp_path / "notes") == "Dropbox"


@pytest.mark.parametrize(
    ("ignored", "left_out"), [(".simplemem\n", True), ("(?d)/.simplemem/\n", True), ("*.png\n", False), ("", False)]
)
def test_syncthing_may_be_told_to_leave_our_folder_out(tmp_path: Path, ignored: str, left_out: bool) -> None:
    (tmp_path / ".stfolder").mkdir()
    (tmp_path / ".stignore").write_text(ignored)
    assert leaves_out_sidecar(tmp_path / "notes") is left_out
