"""A merge of a conflict copy changes one file and takes another away: a crash leaves both as they were, or both done."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import crash_harness as harness
import pytest
from crash_cases import notes

from simplemem.config import load_settings
from simplemem.index.database import Database
from simplemem.store import EnhancedStore

if sys.platform == "win32":
    pytest.skip("the harness forks", allow_module_level=True)

SETTINGS = load_settings({"embed.provider": "none"})
COPY = "deep/tea.sync-conflict-20260101-120000-ABCDEFG"
TEXT = "Oolong.\n\nSencha.\n\nMatcha.\n"


def make(root: Path) -> None:
    (root / "deep").mkdir(parents=True)
    (root / "deep/tea.md").write_text(TEXT + "\nWater.\n")
    (root / f"{COPY}.md").write_text(TEXT + "\nMilk, [[tea]].\n")
    with EnhancedStore(root, SETTINGS) as store:
        store.sync(embed=False)


def merge(root: Path) -> Any:
    with EnhancedStore(root, SETTINGS) as store:
        (found,) = store.conflict_merges()
        return store.merge_conflict(found, keep="marked")


def test_dying_before_any_call_leaves_note_and_copy_both_old_or_both_merged(room: Path) -> None:
    make(room / "first")
    old, work = notes(room / "first"), room / "work"
    shutil.copytree(room / "first", work)
    whole = harness.run(lambda: merge(work), also=[(Database, "writing")])
    new = notes(work)
    assert whole.error is None
    assert set(new) == {"deep/tea.md"}
    states = []
    for at, call in enumerate(whole.calls, 1):
        shutil.rmtree(work)
        shutil.copytree(room / "first", work)
        ended = harness.run(lambda: merge(work), at=at, also=[(Database, "writing")])
        assert ended.died or at > len(ended.calls) >= len(whole.calls) - 3, (at, call)
        with EnhancedStore(work, SETTINGS) as store:
            store.sync(embed=False)
            states.append(notes(work))
            assert states[-1] in (old, new), (at, call)
            assert len(store.conflict_copies()) == (states[-1] == old), (at, call)
            if states[-1] == new and states.count(new) in (1, 10):
                assert not [finding for finding in store.doctor() if finding.level == "error"], (at, call)
                store.undo(store.history(limit=1)[0].version)
                assert notes(work) == old, (at, call)
    assert states[0] == old
    assert new in states
