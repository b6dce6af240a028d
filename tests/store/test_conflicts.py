"""Conflict copies are merged into their notes by the text both began as, as one change that can be taken back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simplemem.errors import Conflict, NotFound
from simplemem.models import ConflictMerge
from simplemem.store import EnhancedStore

Write = Callable[[str, str | bytes], Path]
LINES = [f"line {k} of a note about a kite" for k in range(1, 9)]
TEXT = "\n".join(LINES) + "\n"
COPY = "Kite.sync-conflict-20260101-120000-ABCDEFG"


def changed(text: str, *lines: int) -> str:
    for line in lines:
        text = text.replace(f"line {line} ", f"LINE {line} ")
    return text


def only(store: EnhancedStore, name: str = COPY) -> ConflictMerge:
    (found,) = store.conflict_merges(name)
    return found


@pytest.fixture
def parted(plain_store: EnhancedStore, write: Write) -> EnhancedStore:
    """A note that an agent has changed here, and a copy that came from elsewhere with another change."""
    write("Kite.md", TEXT)
    write("Ida.md", "See [[Kite]].\n")
    plain_store.sync()
    plain_store.update("Kite", edits=[{"old": "line 2 ", "new": "LINE 2 "}])
    write(f"{COPY}.md", changed(TEXT, 7).replace(f"{LINES[4]}\n", ""))
    plain_store.sync()
    return plain_store


def test_a_merge_takes_the_changes_and_the_deletions_of_both(
    parted: EnhancedStore, vault: Path
) -> None:
    found = only(parted)
    assert found.clean
    assert found.base == "the version before v000001"
    assert f"-{LINES[4]}" in found.diff
    before = {path.name: path.read_bytes() for path in vault.glob("*.md")}
    merged = parted.merge_conflict(found, who="a test")
    assert (vault / "Kite.md").read_text() == changed(TEXT, 2, 7).replace(f"{LINES[4]}\n", "")
    assert not (vault / f"{COPY}.md").exists()
    assert merged.changed
    assert parted.conflict_copies() == ()
    assert parted.search("LINE 7").hits[0].name == "Kite"
    assert {(entry.op, entry.who) for entry in parted.history(limit=2)} == {
        ("update", "a test"),
        ("delete", "a test"),
    }
    parted.undo(merged.version)
    assert {path.name: path.read_bytes() for path in vault.glob("*.md")} == before
    assert [copy.name for copy in parted.conflict_copies()] == [COPY]


def test_a_copy_that_is_an_earlier_version_of_the_note_has_nothing_new(
    plain_store: EnhancedStore, write: Write, vault: Path
) -> None:
    write("Kite.md", TEXT)
    plain_store.sync()
    plain_store.update("Kite", edits=[{"old": f"{LINES[1]}\n", "new": ""}])
    write(f"{COPY}.md", TEXT)
    plain_store.sync()
    found = only(plain_store)
    assert (found.clean, found.diff) == (True, "")
    plain_store.merge_conflict(found)
    assert (vault / "Kite.md").read_text() == TEXT.replace(f"{LINES[1]}\n", "") and not (
        vault / f"{COPY}.md"
    ).exists()


def test_without_a_history_every_line_is_kept_and_what_differs_is_marked(
    plain_store: EnhancedStore, write: Write, vault: Path
) -> None:
    write("Kite.md", TEXT.replace(f"{LINES[4]}\n", ""))
    write(f"{COPY}.md", TEXT.replace(f"{LINES[1]}\n", ""))
    plain_store.sync()
    assert (only(plain_store).base, only(plain_store).text) == ("", TEXT)
    write(f"{COPY}.md", changed(TEXT, 8))
    found = only(plain_store)
    assert found.conflicts == 1
    with pytest.raises(Conflict):
        plain_store.merge_conflict(found)
    assert (vault / f"{COPY}.md").exists()
    plain_store.merge_conflict(found, keep="marked")
    marked = f"<<<<<<< Kite.md\n{LINES[7]}\n=======\n{changed(LINES[7], 8)}\n>>>>>>> {COPY}.md\n"
    assert (vault / "Kite.md").read_text() == TEXT.replace(f"{LINES[7]}\n", marked)


@pytest.mark.parametrize("keep", ["note", "copy"])
def test_one_of_the_two_can_be_kept_whole(parted: EnhancedStore, vault: Path, keep: str) -> None:
    texts = {"note": (vault / "Kite.md").read_bytes(), "copy": (vault / f"{COPY}.md").read_bytes()}
    parted.merge_conflict(only(parted), keep=keep)  # type: ignore[arg-type]
    assert (vault / "Kite.md").read_bytes() == texts[keep]
    assert not (vault / f"{COPY}.md").exists()


@pytest.mark.parametrize("which", ["Kite.md", f"{COPY}.md"])
@pytest.mark.parametrize("keep", ["merge", "note", "copy"])
def test_what_changed_after_the_look_is_not_merged(
    parted: EnhancedStore, write: Write, vault: Path, which: str, keep: str
) -> None:
    found = only(parted)
    write(which, TEXT + "A third change.\n")
    before = {path.name: path.read_bytes() for path in vault.glob("*.md")}
    with pytest.raises(Conflict):
        parted.merge_conflict(found, keep=keep)  # type: ignore[arg-type]
    assert {path.name: path.read_bytes() for path in vault.glob("*.md")} == before


def test_a_copy_is_found_by_its_name_and_all_by_the_name_of_their_note(
    parted: EnhancedStore, write: Write
) -> None:
    write("Kite (Ada's conflicted copy 2026-01-01).md", TEXT)
    parted.sync()
    assert [found.copy.name for found in parted.conflict_merges("Kite")] == [
        "Kite (Ada's conflicted copy 2026-01-01)",
        COPY,
    ]
    assert only(parted, f"{COPY}.md").copy.name == COPY
    with pytest.raises(NotFound):
        parted.conflict_merges("Ida")


def test_in_a_repository_the_version_both_began_as_may_be_a_commit(
    git: Any, vault: Path, write: Write, plain_store: EnhancedStore
) -> None:
    write("Kite.md", TEXT)
    commit = git.commit("Begin", at="2026-01-05T10:00:00+0000")
    write("Kite.md", changed(TEXT, 2))
    write(f"{COPY}.md", changed(TEXT, 7))
    plain_store.sync()
    found = only(plain_store)
    assert found.base == f"commit {commit[:10]}"
    assert found.text == changed(TEXT, 2, 7)
