"""Many files are made durable together, each of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from simplemem.vault import disk, kernel
from simplemem.vault.paths import Beneath


@pytest.mark.parametrize("count", [1, 8, 9, 200])
def test_every_file_is_synced_once_and_none_is_left_open(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [f"note {number}.md" for number in range(count)]
    for path in paths:
        (tmp_path / path).write_text(path)
    synced: list[int] = []
    real = kernel.sync_file

    def counted(fd: int, *, last: bool = False) -> None:
        synced.append(os.fstat(fd).st_ino)
        real(fd, last=last)

    monkeypatch.setattr(kernel, "sync_file", counted)
    with Beneath(str(tmp_path)) as here:
        before = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0
        disk.sync_paths(here, paths)
        after = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0
    assert sorted(synced) == sorted((tmp_path / path).stat().st_ino for path in paths)
    assert after <= before + 1  # the folder


def test_a_disk_that_fails_is_told_however_many_there_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(20):
        (tmp_path / str(number)).write_text("x")

    def fails(_fd: int, *, last: bool = False) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(kernel, "sync_file", fails)
    with Beneath(str(tmp_path)) as here, pytest.raises(OSError, match="Input/output"):
        disk.sync_paths(here, [str(number) for number in range(20)])
