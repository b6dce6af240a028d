"""The index follows the vault: whatever changed, by whom, and in whatever order it is noticed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from simplemem.index import sync_pass
from simplemem.index.comparison import dump
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

Write = Callable[[str, str | bytes], Path]
PLAIN = Settings.model_validate({"embed": {"provider": "none"}})


def names(store: EnhancedStore, query: str) -> list[str]:
    return [hit.name for hit in store.search(query, mode="text", limit=50).hits]


def assert_equals_rebuilt(store: EnhancedStore, folder: Path) -> None:
    """Row for row, and word for word."""
    settings = store.settings.model_copy(update={"db": folder / "rebuilt.db"})
    (folder / "rebuilt.db").unlink(missing_ok=True)
    with EnhancedStore(store.root, settings) as fresh:
        fresh.sync()
        with (
            store._parts.index.database.reading() as ours,
            fresh._parts.index.database.reading() as theirs,
        ):
            assert list(dump(ours)) == list(dump(theirs))


def test_a_scan_finds_what_came_changed_and_went(
    plain_store: EnhancedStore, write: Write, vault: Path
) -> None:
    write("a.md", "apple")
    write("b.md", "banana")
    plain_store.sync()
    write("a.md", "apricot, which is longer")
    (vault / "b.md").unlink()
    write("sub/c.md", "cherry")
    report = plain_store.sync()
    assert (report.added, report.modified, report.removed) == (["sub/c.md"], ["a.md"], ["b.md"])
    assert names(plain_store, "apple banana") == [] and names(plain_store, "apricot") == ["a"]
    assert names(plain_store, "cherry") == ["sub/c"]


def test_an_edit_that_keeps_size_and_time_is_found_while_it_is_fresh(
    plain_store: EnhancedStore, write: Write
) -> None:
    file = write("a.md", "apple")
    plain_store.sync()
    before = file.stat()
    file.write_text("grape")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    plain_store.sync()
    assert names(plain_store, "grape") == ["a"]


def test_a_fresh_note_that_is_the_same_is_checked_off_and_nothing_else_of_it_changes(
    plain_store: EnhancedStore, write: Write, tmp_path: Path
) -> None:
    def row() -> tuple[object, ...]:
        with plain_store._parts.index.database.reading() as db:
            return next(iter(db.execute("SELECT checked_ns, rev, modified, mtime_ns FROM notes")))

    file = write("a.md", "apple")
    plain_store.sync()
    before = row()
    assert plain_store.sync().changed() == set()
    assert row()[0] > before[0] and row()[1:] == before[1:]  # type: ignore[operator]
    os.utime(file, (1_700_000_000, 1_700_000_000))
    assert plain_store.sync().changed() == set()
    assert row()[3] == 1_700_000_000 * 10**9 and row()[2] != before[2]
    assert_equals_rebuilt(plain_store, tmp_path)


def test_our_own_write_that_the_watcher_hears_of_is_read_and_not_written_to_the_index_again(
    plain_store: EnhancedStore, vault: Path
) -> None:
    core, heard = plain_store._parts, list[frozenset[str]]()
    core.listeners.subscribers.append(heard.append)
    plain_store.create("a", "apple")
    before = core.index.database.connection().raw.total_changes()
    core.keeper.look_at({"a.md"})
    assert core.index.database.connection().raw.total_changes() == before
    (vault / "a.md").write_text("grape")
    core.keeper.look_at({"a.md"})
    assert names(plain_store, "grape") == ["a"] and heard == [{"a"}, {"a"}]


def test_a_renamed_note_keeps_its_vectors(store: EnhancedStore, write: Write, vault: Path) -> None:
    write("old name.md", "The harbour crane was repaired in spring.\n")
    store.sync()
    with store._parts.index.database.reading() as db:
        before = db.execute("SELECT id FROM notes").get
    (vault / "old name.md").rename(vault / "new name.md")
    report = store.sync()
    assert report.moved == [("old name.md", "new name.md")]
    with store._parts.index.database.reading() as db:
        assert db.execute("SELECT id FROM notes").get == before
    assert names(store, "crane") == ["new name"]


def test_a_vault_that_suddenly_looks_empty_is_not_believed(
    plain_store: EnhancedStore, write: Write, vault: Path
) -> None:
    for k in range(40):
        write(f"notes/n{k}.md", f"plum {k}")
    plain_store.sync()
    shutil.move(vault / "notes", vault.parent / "unmounted")
    report = plain_store.sync()
    assert report.doubted == 40 and plain_store.state().state == "partial"
    assert plain_store.state().notes == 40
    shutil.move(vault.parent / "unmounted", vault / "notes")
    plain_store.sync()
    assert plain_store.state().state == "ready"
    shutil.rmtree(vault / "notes")
    assert len(plain_store.sync(accept_deletions=True).removed) == 40


def test_one_bad_file_never_hurts_the_others(plain_store: EnhancedStore, write: Write) -> None:
    write("good.md", "pear")
    write("binary.md", b"\x00\x01\x02pear\xff\xfe")
    write("latin.md", "p\xeache pear".encode("latin-1"))
    write("deep.md", "---\na: " + "[" * 50_000 + "\n---\npear")
    write("huge.md", b"pear " * 2_000_000)
    report = plain_store.sync()
    assert {"good", "latin", "deep"} <= set(names(plain_store, "pear"))
    assert [path for path, _ in report.skipped] == ["huge.md"]
    assert "huge.md" in [row["path"] for row in plain_store.stats()["skipped"]]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_note_that_cannot_be_read_just_now_is_not_taken_for_deleted(
    plain_store: EnhancedStore, write: Write, vault: Path
) -> None:
    write("b.md", "plum")
    write("rested.md", "medlar")
    plain_store.sync()
    with (
        plain_store._parts.index.database.writing() as db
    ):  # as if it had been looked at a while after it was written
        db.execute("UPDATE notes SET checked_ns = checked_ns + 10_000_000_000").fetchall()
    write("a.md", "cherry")
    write("b.md", "plum and quince")
    hidden_reason = plain_store._parts.updater.hidden_reason

    def a_pipe_takes_its_place_before_it_is_read(path: str) -> str | None:
        if path == "rested.md" and (vault / "b.md").is_file():
            (vault / "b.md").unlink()
            os.mkfifo(vault / "b.md")
        return hidden_reason(path)

    plain_store._parts.updater.hidden_reason = a_pipe_takes_its_place_before_it_is_read
    report = plain_store.sync()
    assert [path for path, _ in report.skipped] == ["b.md"]
    assert (report.added, report.removed) == (["a.md"], []) and plain_store.sync().removed == [
        "b.md"
    ]


def test_what_obsidian_excludes_is_not_recalled_but_still_linked(vault: Path, write: Write) -> None:
    write(".obsidian/app.json", '{"userIgnoreFilters": ["archive/"]}')
    write("archive/Old.md", "quince")
    write("a.md", "[[Old]] quince")
    with EnhancedStore(vault, PLAIN) as store:
        store.sync()
        assert names(store, "quince") == ["a"] and store.inspect()["a.md"]["links"] == [
            "archive/Old.md"
        ]
        write(".obsidian/app.json", "{}")
    with EnhancedStore(vault, PLAIN) as store:
        store.sync()
        assert set(names(store, "quince")) == {"a", "archive/Old"}


def test_indexing_writes_no_note(store: EnhancedStore, write: Write, vault: Path) -> None:
    write("a.md", "\ufeff---\r\ntags:\r\n- x\r\n---\r\nbody without a last line end")
    write("b.md", "---\nbroken: [\n---\ntext\n")
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in vault.rglob("*.md")}
    store.sync(rebuild=True)
    assert {
        path: (path.read_bytes(), path.stat().st_mtime_ns) for path in vault.rglob("*.md")
    } == before


def test_an_index_replaced_in_the_middle_of_a_scan_is_not_written_by_the_ids_of_the_old_one(
    vault: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another server makes it anew, and gives the ids to other notes."""
    monkeypatch.setattr(sync_pass, "MAX_BATCH_NOTES", 2)
    for k in range(6):
        write(f"n{k}.md", f"plum {k} [[n{(k + 1) % 6}]]")
    with EnhancedStore(vault, PLAIN) as store:
        store.sync()
        for k in range(5):
            write(f"n{k}.md", f"pear {k} [[n{(k + 2) % 6}]]")
        (vault / "n5.md").unlink()
        write("a-first.md", "plum of another")
        replaced = []

        def replace_it(what: str, done: int, of: int) -> None:
            if not replaced:
                replaced.append(done)
                for file in (vault / ".simplemem").glob("index.db*"):
                    file.unlink()
                with EnhancedStore(vault, PLAIN) as other:
                    other.sync()

        store.sync(progress=replace_it)
        assert replaced and set(store.names()) == {"a-first", *(f"n{k}" for k in range(5))}
        assert [finding for finding in store.doctor() if finding.level == "error"] == []


@pytest.mark.parametrize("copied", [False, True])
def test_a_rename_that_two_servers_notice_at_once_loses_nothing(
    vault: Path, write: Write, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, copied: bool
) -> None:
    """The other one has given the note its new name when this one comes to forget the old one; or another new name, when
    two files have its bytes and each server sees another one of them."""
    monkeypatch.setattr(sync_pass, "MAX_BATCH_NOTES", 1)
    write("first.md", "pear")
    write("old.md", "plum")
    with EnhancedStore(vault, PLAIN) as store, EnhancedStore(vault, PLAIN) as other:
        store.sync()
        write("first.md", "another pear")
        (vault / "old.md").rename(vault / "z one.md")

        def the_other_looks(what: str, done: int, of: int) -> None:
            if done == 1 and copied:
                shutil.copy2(vault / "z one.md", vault / "z two.md")
                other._parts.keeper.look_at({"old.md", "z two.md"})
            elif done == 1:
                other.sync()

        store.sync(progress=the_other_looks)
        assert names(store, "plum") == ["z one", *(["z two"] if copied else [])]
        assert_equals_rebuilt(store, tmp_path)


@pytest.mark.parametrize("much", [False, True])
def test_a_pass_that_is_killed_leaves_no_link_that_misses_its_file(
    much: bool, vault: Path, write: Write, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The files are known after the first transaction, and what comes after a kill finds none of them new."""
    monkeypatch.setattr(sync_pass, "MAX_BATCH_NOTES", 1)
    monkeypatch.setattr(sync_pass, "_MIN_BULK_NOTES", 1 if much else 250)
    write("old.md", "[[z came]] [[went]]")
    write("went.md", "plum")
    os.utime(vault / "old.md", (1_700_000_000, 1_700_000_000))
    with EnhancedStore(vault, PLAIN) as store:
        store.sync()
        (vault / "went.md").unlink()
        write("first.md", "pear")
        write("z came.md", "cherry")

        def killed(what: str, done: int, of: int) -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            store.sync(progress=killed)
    with EnhancedStore(vault, PLAIN) as store:
        store.sync()
        assert_equals_rebuilt(store, tmp_path)
        assert [link.path for link in store._parts.index.links() if link.source == "old.md"] == [
            "z came.md",
            None,
        ]


def test_a_note_that_becomes_too_large_is_no_longer_what_another_is_a_copy_of(
    vault: Path, write: Write, tmp_path: Path
) -> None:
    settings = Settings.model_validate(
        {"embed": {"provider": "none"}, "index": {"max_note_mb": 0.002}}
    )
    write("Chapter.md", "The harbour crane was repaired in spring.\n")
    write("Chapter 2.md", "The harbour crane was repaired in spring.\n")
    with EnhancedStore(vault, settings) as store:
        store.sync()
        assert names(store, "crane") == ["Chapter"]
        write("Chapter.md", "Something else now. " * 200)
        store.sync()
        assert names(store, "crane") == ["Chapter 2"]
        assert_equals_rebuilt(store, tmp_path)


def test_a_note_made_between_two_batches_of_a_first_index_is_linked_to(
    plain_store: EnhancedStore, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files are kept in memory from one batch to the next, as long as nobody writes: not even who is told of
    progress."""
    monkeypatch.setattr(sync_pass, "MAX_BATCH_NOTES", 150)
    for k in range(300):
        write(f"n{k:03d}.md", "[[late]]")

    def told(_stage: str, done: int, _total: int) -> None:
        if done == 150:
            plain_store.create("late", "Here.")

    plain_store.sync(progress=told, embed=False)
    assert {item.source for item in plain_store._parts.index.links("late.md")} == {
        f"n{k:03d}.md" for k in range(300)
    }
