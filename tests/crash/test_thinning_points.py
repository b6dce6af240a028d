"""Thinning the history may stop before any call: no note changes, nothing needed goes, and the next time finishes it."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import crash_harness as harness
import pytest

from simplemem.vault.base import VaultOptions
from simplemem.vault.folder.vault import FolderVault
from simplemem.vault.values import Author, sha256

if sys.platform == "win32":
    pytest.skip("the harness forks", allow_module_level=True)

CHANGE = Author("test")
TEXTS = [b"one", b"two", b"three", b"four", b"five"]
DAYS = [
    "2020-01-01",
    "2020-01-01",
    "2020-01-02",
    "2020-03-01",
    "2020-03-02",
    "2020-03-03",
    "2020-03-04",
]


def made(root: Path) -> None:
    """A vault with a deletion and a text of long ago, and changes of last week."""
    root.mkdir()
    vault = FolderVault(root, VaultOptions(durable=False))
    vault.create("gone.md", b"gone", CHANGE)
    vault.trash("gone.md", None, CHANGE)
    vault.create("n.md", TEXTS[0], CHANGE)
    for number in range(1, len(TEXTS)):
        vault.replace("n.md", TEXTS[number], sha256(TEXTS[number - 1]), CHANGE)
    log = root / ".simplemem/history/log.jsonl"
    lines = [
        json.loads(line) | {"when": f"{day}T00:00:00.000Z"}
        for line, day in zip(log.read_text().split("\n"), [*DAYS, None], strict=True)
        if day
    ]
    log.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
    for kept in (root / ".simplemem/history/objects").rglob("*"):
        os.utime(kept, (1_500_000_000, 1_500_000_000))


def kept(root: Path) -> set[str]:
    objects = {
        path.name for path in (root / ".simplemem/history/objects").rglob("*") if path.is_file()
    }
    return objects | {
        path.name for path in (root / ".simplemem/trash").rglob("*") if path.is_file()
    }


def test_thinning_that_dies_loses_nothing_needed_and_is_finished_by_the_next(room: Path) -> None:
    made(room / "first")

    def thinned(root: Path) -> list[str]:
        return FolderVault(root, VaultOptions(durable=False)).prune_history()

    shutil.copytree(room / "first", room / "whole")
    whole = harness.run(lambda: thinned(room / "whole"))
    assert whole.error is None and whole.value == [sha256(b"gone")] and len(whole.calls) > 4
    left = kept(room / "whole")
    assert left == {sha256(text) for text in TEXTS}
    for at in range(1, len(whole.calls) + 1):
        work = room / "work"
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(room / "first", work)
        assert harness.run(lambda root=work: thinned(root), at=at).died  # type: ignore[misc]
        assert left <= kept(work) and (work / "n.md").read_bytes() == TEXTS[-1]
        thinned(work)
        assert kept(work) == left, (at, whole.calls[at - 1])
        vault = FolderVault(work, VaultOptions(durable=False))
        vault.undo("v7", CHANGE)
        assert (work / "n.md").read_bytes() == TEXTS[-2]
