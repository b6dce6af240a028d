"""Which service carries a folder to other computers."""

from __future__ import annotations

from pathlib import Path

import pytest

from simplemem.vault.place import leaves_out_sidecar, service_named, synced_by


def test_a_link_into_a_synced_folder_is_no_name_of_one() -> None:
    assert service_named("/home/ida/notes") == ""
    assert service_named("C:/Users/Ida/OneDrive/notes") == "OneDrive"
    assert service_named("/Users/ida/Library/Mobile Documents/com~apple~CloudDocs/notes") == "iCloud Drive"


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
