"""What the doctor says of the folder, the disk and the limits under a vault."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from simplemem.config import Settings
from simplemem.memory import Finding
from simplemem.store import EnhancedStore
from simplemem.store.doctor.case import Noticed
from simplemem.store.doctor.system import of_room, of_sqlite, on_disks


def of(root: Path, check: str, **settings: object) -> list[Finding]:
    root.mkdir(parents=True, exist_ok=True)
    with EnhancedStore(root, Settings.model_validate({"embed": {"provider": "none"}, **settings})) as store:
        store.sync()
        return list(store.doctor(only=[check]))


@pytest.mark.parametrize(
    ("folder", "service"),
    [
        ("Dropbox/notes", "Dropbox"),
        ("Dropbox (Personal)/notes", "Dropbox"),
        ("OneDrive - Example Ltd/notes", "OneDrive"),
        ("Library/Mobile Documents/iCloud~md~obsidian/Documents/notes", "iCloud Drive"),
        ("Library/CloudStorage/GoogleDrive-ada@example.org/My Drive/notes", "Google Drive"),
        ("Nextcloud/notes", "Nextcloud"),
    ],
)
def test_an_index_in_a_synced_folder_is_warned_of(tmp_path: Path, folder: str, service: str) -> None:
    (finding,) = of(tmp_path / folder, "place")
    assert finding.level == "warning"
    assert f"a folder of {service}, and its index with it" in finding.message
    assert "--db" in finding.hint


def test_an_index_elsewhere_leaves_only_a_word_on_the_lock(tmp_path: Path) -> None:
    (finding,) = of(tmp_path / "Dropbox/notes", "place", db=str(tmp_path / "cache/notes.db"))
    assert finding.level == "note"
    assert "the lock" in finding.message and "conflict copies" in finding.hint


def test_a_folder_of_syncthing_is_known_by_its_mark(tmp_path: Path) -> None:
    (tmp_path / "shared/.stfolder").mkdir(parents=True)
    (finding,) = of(tmp_path / "shared/notes", "place")
    assert "Syncthing" in finding.message and finding.level == "warning"
    (tmp_path / "shared/.stignore").write_text("(?d).DS_Store\n.simplemem\n")
    (finding,) = of(tmp_path / "shared/notes", "place")
    assert finding.level == "note"


@pytest.mark.parametrize("folder", ["notes", "Dropboxes/notes", "My Drives", "Documents/OneDriver"])
def test_a_folder_of_nobody_is_no_finding(tmp_path: Path, folder: str) -> None:
    assert of(tmp_path / folder, "place") == []


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "fuse.sshfs", "9p", "remote"])
def test_a_disk_that_other_computers_write_to_is_told(kind: str) -> None:
    vault, index = (noticed.finding for noticed in on_disks(kind, kind))
    assert (vault.level, index.level) == ("note", "warning")
    assert f"the vault is on a {kind} disk" in vault.message and f"the index is on a {kind} disk" in index.message
    assert [noticed.finding.level for noticed in on_disks(kind, "ext4")] == ["note"]
    assert list(on_disks("ext4", "apfs")) == []


def test_a_system_in_order_is_no_finding(tmp_path: Path) -> None:
    assert of(tmp_path / "notes", "system") == []


def test_a_clock_behind_the_history_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "notes"
    root.mkdir()
    with EnhancedStore(root, Settings.model_validate({"embed": {"provider": "none"}})) as store:
        store.create("a", "plum")
    log = root / ".simplemem/history/log.jsonl"
    year = datetime.now(UTC).year
    log.write_text(log.read_text().replace(f'"when":"{year}', f'"when":"{year + 1}'))
    (finding,) = of(root, "system")
    assert (finding.level, finding.hint) == ("warning", "Set the clock of this computer.")


def told(noticed: Iterator[Noticed]) -> str:
    """What is said, and what to do."""
    return " ".join(f"{each.finding.message}. {each.finding.hint}" for each in noticed)


def test_a_disk_that_is_nearly_full_is_told() -> None:
    assert "the disk of the vault has 20 MB left" in told(of_room("vault", 20_000_000))
    assert told(of_room("vault", 20_000_000_000)) == ""


def test_an_old_sqlite_is_told_with_whose_it_is() -> None:
    assert "SQLite 3.51.2, as the package apsw brings it" in told(of_sqlite("3.51.2"))
    assert told(of_sqlite("3.51.3")) == told(of_sqlite("4.0.0")) == ""
