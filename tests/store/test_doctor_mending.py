"""What the doctor mends: all of it or nothing, as one change that one undo takes back to the byte."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from simplemem.config import Settings
from simplemem.errors import Conflict, ReadOnly
from simplemem.memory import Finding
from simplemem.store import EnhancedStore

Write = Callable[[str, str | bytes], Path]
Files = dict[str, bytes]


def files(vault: Path) -> Files:
    """Every file of the vault that is not ours."""
    found = {path.relative_to(vault).as_posix(): path for path in vault.rglob("*") if path.is_file()}
    return {path: file.read_bytes() for path, file in found.items() if not path.startswith(".simplemem")}


def mend(store: EnhancedStore, *only: str) -> Files:
    """Mend; say what the files are then, and that one undo gives back what was there."""
    store.sync()
    before = files(store.root)
    mending = store.plan_mending(only=only)
    assert files(store.root) == before
    done = store.mend(mending, who="tests")
    after = files(store.root)
    assert list(store.doctor(only=["index"])) == []
    if done.version:
        group = store._core.vault.history.log.group(done.version)
        assert [version.id for version in list(store._core.vault.history.log.backwards())[: len(group)]] == [
            v.id for v in group[::-1]
        ]
        assert {(version.tool, version.who) for version in group} == {("doctor", "tests")}
        undone = store.undo(done.version)
        if len(group) > 1 and group[0].new_path is None:
            assert f" and {len(group) - 1} more change" in undone.what
        assert files(store.root) == before
        assert list(store.doctor(only=["index"])) == []
    return after


def of(store: EnhancedStore, check: str) -> list[Finding]:
    store.sync()
    return list(store.doctor(only=[check]))


def test_the_whole_difference_is_shown_before(plain_store: EnhancedStore, write: Write) -> None:
    lines = [f"line {number}" for number in range(5_000)]
    lines[1] = lines[4_990] = "[[team/Ada]]"
    write("people/Ada.md", "Ada")
    write("long.md", "\n".join(lines))
    plain_store.sync()
    (change,) = plain_store.plan_mending().changes
    assert change.diff.count("-[[team/Ada]]\n+[[people/Ada]]\n") == 2
    assert "@@ -1,5 +1,5 @@\n line 0\n-[[team/Ada]]" in change.diff
    assert "@@ -4988,7 +4988,7 @@" in change.diff
    assert change.what == ("[[team/Ada]] leads to people/Ada",)


def test_folders_that_would_become_one_are_told_and_left(plain_store: EnhancedStore, write: Write) -> None:
    write("Notes/a.md", "")
    write("notes/b.md", "")
    if not (plain_store.root / "Notes/a.md").exists() or (plain_store.root / "Notes/b.md").exists():
        pytest.skip("this disk takes both names for one")
    (finding,) = of(plain_store, "names")
    assert (finding.path, finding.fix) == ("notes", "")


def test_a_conflict_copy_with_the_very_text_of_its_note_goes_to_the_trash(
    plain_store: EnhancedStore, write: Write
) -> None:
    write("a.md", "plum\n")
    write("a.sync-conflict-20260101-120000-ABCDEFG.md", "plum\n")
    write("b.md", "pear\n")
    write("b.sync-conflict-20260101-120000-ABCDEFG.md", "another pear\n")
    same, other = of(plain_store, "conflicts")
    assert (same.level, bool(same.fix)) == ("warning", True)
    assert (other.level, bool(other.fix)) == ("warning", False)
    assert sorted(mend(plain_store)) == ["a.md", "b.md", "b.sync-conflict-20260101-120000-ABCDEFG.md"]


def test_what_lies_about_is_named_and_left_alone_for_a_day(plain_store: EnhancedStore, write: Write) -> None:
    write("draft.tmp", "half")
    write("download.zip.crdownload", "half")
    write("notes.txt~", "older")
    write("a.md", "![[kept.tmp]]")
    write("kept.tmp", "linked")
    findings = of(plain_store, "strays")
    assert [finding.path for finding in findings] == ["download.zip.crdownload", "draft.tmp", "notes.txt~"]
    assert all("rested for a day" in finding.hint and not finding.fix for finding in findings)
    assert plain_store.plan_mending().is_empty


def test_what_has_rested_goes_to_the_trash(
    plain_store: EnhancedStore, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("a.md", "plum\n")
    write("draft.tmp", "half")
    write("sub/download.zip.crdownload", b"\x00half")
    now = time.time()
    monkeypatch.setattr("simplemem.store.doctor.files.time.time", lambda: now + 2 * 86_400)
    assert sorted(mend(plain_store)) == ["a.md"]


def test_a_note_that_changed_since_it_was_shown_stops_all_of_it(plain_store: EnhancedStore, write: Write) -> None:
    write("people/Ada.md", "Ada")
    write("a.md", "[[team/Ada]]\n")
    write("b.md", "[[team/Ada]] plum\n")
    plain_store.sync()
    mending = plain_store.plan_mending()
    assert len(mending.wishes) == 2
    write("b.md", "[[team/Ada]] plum\nand more\n")
    before = files(plain_store.root)
    with pytest.raises(Conflict):
        plain_store.mend(mending)
    assert files(plain_store.root) == before
    assert plain_store.history() == ()


def test_an_index_that_is_wrong_is_made_anew_and_no_note_touched(plain_store: EnhancedStore, write: Write) -> None:
    write("a.md", "plum")
    plain_store.sync()
    with plain_store._core.index.database.writing() as db:
        db.execute("UPDATE notes SET title = 'Other'").fetchall()
    before = files(plain_store.root)
    done = plain_store.mend(plain_store.plan_mending())
    assert (done.index_made_anew, done.version, done.changed) == (True, "", ())
    assert files(plain_store.root) == before
    assert plain_store.doctor() == ()


def test_a_damaged_index_is_made_anew(plain_store: EnhancedStore, write: Write) -> None:
    write("a.md", "plum")
    plain_store.sync()
    with plain_store._core.index.database.writing() as db:
        db.execute("DELETE FROM note_text_data WHERE id > 10").fetchall()
    mending = plain_store.plan_mending()
    assert "damaged" in mending.findings[0].message
    assert plain_store.mend(mending).index_made_anew
    assert plain_store.doctor() == ()


def test_a_vault_that_may_not_be_written_is_looked_at_and_not_mended(vault: Path, write: Write) -> None:
    write("people/Ada.md", "Ada")
    write("a.md", "[[team/Ada]]\n")
    settings = Settings.model_validate({"embed": {"provider": "none"}})
    with EnhancedStore(vault, settings, read_only=True) as store:
        store.sync()
        before = files(vault)
        mending = store.plan_mending()
        assert [finding.fix for finding in mending.findings] == ["lead [[team/Ada]] to people/Ada"]
        with pytest.raises(ReadOnly):
            store.mend(mending)
        assert files(vault) == before


def test_another_server_on_the_vault_sees_what_was_mended(plain_store: EnhancedStore, write: Write) -> None:
    write("people/Ada.md", "Ada")
    write("a.md", "[[team/Ada]] quokka\n")
    plain_store.sync()
    with EnhancedStore(plain_store.root, plain_store.settings) as other:
        other.start()
        other.wait_until_settled()
        plain_store.mend(plain_store.plan_mending())
        assert [link.target for link in other.read("a").links] == ["people/Ada"]
        assert other.doctor() == ()


def test_mending_twice_finds_nothing_the_second_time(plain_store: EnhancedStore, write: Write) -> None:
    write("people/Ada.md", "Ada")
    write("a.md", "[[team/Ada]]\n")
    plain_store.sync()
    first = plain_store.plan_mending(only=["links"])
    plain_store.mend(first)
    plain_store.mend(plain_store.plan_mending())
    assert plain_store.plan_mending().is_empty
    assert plain_store.doctor() == ()
