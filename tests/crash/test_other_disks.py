"""Disks that treat names as a Mac or Windows does, or lack calls: every operation, and dying in the middle of it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import crash_harness as harness
import pytest
from crash_cases import CASES, CHANGE, Case, make, notes
from other_disk import DiskTraits, can_mount, on_disk
from test_crash_points import check_recovered

from simplemem.vault.folder.vault import FolderVault
from simplemem.vault.values import FileChange, sha256

pytestmark = pytest.mark.skipif(not can_mount(), reason="needs Linux, root and /dev/fuse")

DISKS = {
    "a Mac's": DiskTraits(folds_case=True),
    "an old Mac's": DiskTraits(folds_case=True, lists_decomposed=True),
    "a memory stick": DiskTraits(folds_case=True, supports_flags=False),
    "a plain network disk": DiskTraits(supports_flags=False),
}
FOLDING = [name for name, traits in DISKS.items() if traits.folds_case]


@pytest.fixture
def disk(tmp_path: Path) -> Callable[[str, Callable[[Path], Any]], Any]:
    def run(name: str, action: Callable[[Path], Any]) -> Any:
        place = tmp_path / "disk"
        place.mkdir()
        return on_disk(place, DISKS[name], lambda: action(place))

    return run


Run = Callable[[str, Callable[[Path], Any]], Any]


@pytest.mark.parametrize("name", DISKS)
def test_every_operation_does_there_what_it_does_elsewhere(disk: Run, name: str) -> None:
    def act(place: Path) -> None:
        for number, case in enumerate(CASES.values()):
            make(place / str(number), case)
            before = notes(place / str(number))
            vault = FolderVault(place / str(number))
            case.run(vault)
            assert notes(vault.root) == case.new and vault.recover()[0] == 0
            vault.undo(next(vault.history.log.backwards()).id, CHANGE)
            assert notes(vault.root) == before

    disk(name, act)


@pytest.mark.parametrize("name", FOLDING)
def test_a_note_can_be_respelled(disk: Run, name: str) -> None:
    def act(place: Path) -> None:
        vault = FolderVault(place)
        vault.create("a/note.md", b"one", CHANGE)
        vault.carry_out([FileChange("move", "a/note.md", sha256(b"one"), "a/Note.md")], CHANGE)
        assert os.listdir(place / "a") == ["Note.md"]
        vault.carry_out(
            [FileChange("move", "a/Note.md", sha256(b"one"), "a/NOTE.md", b"two")], CHANGE
        )
        assert os.listdir(place / "a") == ["NOTE.md"] and vault.read("a/NOTE.md").data == b"two"
        assert [version.op for version in vault.history.log.backwards()] == [
            "move",
            "move",
            "create",
        ]
        vault.undo(next(vault.history.log.backwards()).id, CHANGE)
        assert os.listdir(place / "a") == ["Note.md"] and vault.read("a/Note.md").data == b"one"

    disk(name, act)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "operation"),
    [
        ("a Mac's", "move to another case"),
        ("a memory stick", "move to another case"),
        ("a memory stick", "replace"),
    ],
)
def test_dying_there_leaves_old_or_new(disk: Run, name: str, operation: str) -> None:
    case: Case = CASES[operation]

    def act(place: Path) -> None:
        make(place / "first", case)
        old = notes(place / "first")
        shutil.copytree(place / "first", place / "work")
        whole = harness.run(lambda: case.run(FolderVault(place / "work")))
        assert whole.error is None and notes(place / "work") == case.new
        outcomes = []
        for at in range(1, len(whole.calls) + 1):
            shutil.rmtree(place / "work")
            shutil.copytree(place / "first", place / "work")
            assert harness.run(lambda: case.run(FolderVault(place / "work")), at=at).died
            outcomes.append(check_recovered(place / "work", old, case.new))
        assert outcomes[0] == old and case.new in outcomes

    disk(name, act)
