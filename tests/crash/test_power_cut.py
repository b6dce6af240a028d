"""A power cut at any moment of any operation: old or new notes, nothing torn, and what was answered stays.

The disk is worked out call by call (`power_cut.py`), so no device is cut and no root is needed.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import power_cut
import pytest
from crash_cases import CASES, CHANGE, OLD, Case, make, notes
from limited_disk import limit_disk

from simplemem.vault.folder import disk
from simplemem.vault.folder.journal import Journal
from simplemem.vault.folder.vault import FolderVault

if sys.platform != "linux":
    pytest.skip("open files are told by /proc", allow_module_level=True)


def make_by_hand(root: Path, _: Case) -> None:
    """The notes as somebody brings them, who has never used simplemem: its own folders come with the first change."""
    for path, data in OLD.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)


def check_each_cut(room: Path, case: Case, making: Any = make) -> None:
    """Cut the power at every moment, and start again on each disk that may leave."""
    first, work, found = room / "first", room / "work", room / "found"
    making(first, case)
    old = notes(first)
    shutil.copytree(first, work)
    before = power_cut.disk_at(work)
    events = power_cut.record(work, lambda: case.run(FolderVault(work)))
    assert notes(work) == case.new
    states = []
    for at, image in power_cut.cuts(before, events):
        found.mkdir()
        image.write_out(found)
        vault = FolderVault(found)
        said = vault.recover()
        states.append(notes(found))
        assert states[-1] in (old, case.new), (at, events[max(at - 3, 0) : at + 1], said)
        if at == len(events):
            assert states[-1] == case.new, "what was answered is there"
            vault.undo(next(vault.history.log.backwards()).id, CHANGE)
            assert notes(found) == old, "and so is what it took the place of"
        vault.create("after the cut.md", b"life goes on\n", CHANGE)
        shutil.rmtree(found)
    assert states[0] == old and len(states) > 10


@pytest.mark.parametrize("name", CASES)
def test_a_cut_at_any_moment_leaves_old_or_new_and_keeps_what_was_answered(
    room: Path, name: str
) -> None:
    check_each_cut(room, CASES[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["create", "replace", "move with rewrites", "trash"])
def test_so_it_does_in_a_vault_that_simplemem_has_never_seen(room: Path, name: str) -> None:
    check_each_cut(room, CASES[name], making=make_by_hand)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["create in new folders", "replace", "move", "move with rewrites", "trash"]
)
def test_so_it_does_on_a_disk_that_lacks_calls(
    room: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit_disk(monkeypatch, "links")
    check_each_cut(room, CASES[name])


@pytest.mark.parametrize("forgotten", ["file", "folder"])
def test_a_forgotten_sync_would_be_seen(
    room: Path, monkeypatch: pytest.MonkeyPatch, forgotten: str
) -> None:
    if forgotten == "file":
        monkeypatch.setattr(disk, "sync_file", lambda fd, last=False: None)
    else:
        monkeypatch.setattr(Journal, "_sync_folders", lambda *_: None)
    with pytest.raises(AssertionError):
        check_each_cut(room, CASES["replace"])
