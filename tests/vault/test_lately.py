"""What changed since one last asked is known without a walk, and where it is not known that is said."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from simplemem.vault.watch import RecentChanges

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the kernel's list is Linux's")


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    root = tmp_path / "vault"
    (root / "folder").mkdir(parents=True)
    (root / "folder" / "a.md").write_text("a")
    return root


@pytest.fixture
def lately(vault: Path) -> Iterator[RecentChanges]:
    made = RecentChanges(vault)
    made.begin()
    yield made
    made.end()


def test_nothing_changed_is_an_answer(lately: RecentChanges) -> None:
    assert lately.paths() == set()


def test_a_file_is_told_at_once_and_once(lately: RecentChanges, vault: Path) -> None:
    (vault / "folder" / "a.md").write_text("other")
    assert lately.paths() == {"folder/a.md"}
    assert lately.paths() == set()


def test_a_file_that_is_still_being_written_is_told(lately: RecentChanges, vault: Path) -> None:
    with (vault / "folder" / "a.md").open("ab", buffering=0) as file:
        file.write(b"more")
        assert lately.paths() == {"folder/a.md"}


def test_a_save_by_renaming_is_told_under_the_name_it_gets(lately: RecentChanges, vault: Path) -> None:
    (vault / "folder" / ".a.md.swp").write_text("other")
    os.replace(vault / "folder" / ".a.md.swp", vault / "folder" / "a.md")
    assert lately.paths() == {"folder/a.md"}


def test_a_new_folder_stands_for_all_that_is_in_it_and_is_listened_to(lately: RecentChanges, vault: Path) -> None:
    (vault / "new" / "deep").mkdir(parents=True)
    (vault / "new" / "deep" / "b.md").write_text("b")
    assert "new" in (lately.paths() or ())
    (vault / "new" / "deep" / "b.md").write_text("again")
    assert lately.paths() == {"new/deep/b.md"}


def test_a_renamed_folder_is_told_by_both_names(lately: RecentChanges, vault: Path) -> None:
    (vault / "folder").rename(vault / "other")
    (vault / "other" / "a.md").write_text("changed under its new name")
    assert {"folder", "other"} <= (lately.paths() or set())


def test_our_own_folder_says_nothing(lately: RecentChanges, vault: Path) -> None:
    (vault / ".simplemem").mkdir()
    (vault / ".simplemem" / "lock").write_text("1")
    assert lately.paths() == set()


def test_very_many_changes_are_not_known_one_by_one(lately: RecentChanges, vault: Path) -> None:
    for number in range(1_100):
        (vault / f"{number}.md").touch()
    assert lately.paths() is None


def test_a_vault_that_was_replaced_is_not_known(lately: RecentChanges, vault: Path) -> None:
    shutil.copytree(vault, vault.with_name("copy"))
    vault.rename(vault.with_name("old"))
    vault.with_name("copy").rename(vault)
    assert lately.paths() is None


def test_before_it_has_begun_and_after_it_ended_nothing_is_known(vault: Path) -> None:
    lately = RecentChanges(vault)
    assert lately.paths() is None
    lately.begin()
    assert lately.paths() == set()
    lately.end()
    assert lately.paths() is None
