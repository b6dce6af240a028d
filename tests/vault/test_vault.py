"""What can be done with the notes of a folder, and what is said when it cannot."""

from __future__ import annotations

import json
import os
import shutil
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest

from simplemem.errors import AlreadyExists, Conflict, Invalid, NotFound, TooLong
from simplemem.vault.base import VaultOptions
from simplemem.vault.folder.disk import MAX_FILE_BYTES
from simplemem.vault.folder.vault import FolderVault
from simplemem.vault.values import Access, Author, FileChange, WriteResult, sha256

CHANGE = Author("test")


@pytest.fixture
def opened(vault: Path) -> FolderVault:
    return FolderVault(vault)


def files(vault: Path) -> dict[str, bytes]:
    """All files outside our own folder."""
    found = (path for path in vault.rglob("*") if path.is_file())
    inside = ((path.relative_to(vault), path) for path in found)
    return {
        name.as_posix(): path.read_bytes() for name, path in inside if name.parts[0] != ".simplemem"
    }


def moved(
    vault: FolderVault, path: str, text: bytes, new_path: str, data: bytes | None = None
) -> WriteResult:
    return vault.carry_out([FileChange("move", path, sha256(text), new_path, data)], CHANGE)[0]


def test_a_repeated_change_has_happened(vault: Path, opened: FolderVault) -> None:
    """The answer to the first may have been lost."""
    acts: list[Callable[[], WriteResult]] = [
        lambda: opened.create("n.md", b"one", CHANGE),
        lambda: opened.replace("n.md", b"two", sha256(b"one"), CHANGE),
        lambda: moved(opened, "n.md", b"two", "m.md"),
        lambda: opened.trash("m.md", sha256(b"two"), CHANGE),
        lambda: opened.undo("v4", CHANGE)[0],
    ]
    for number, act in enumerate(acts, 1):
        first, again = act(), act()
        assert first.changed and not again.changed
        assert (again.version, again.sha256, again.entry) == (
            first.version,
            first.sha256,
            first.entry,
        )
        assert len(list(opened.history.log.backwards())) == number
    assert opened.history.content(sha256(b"one")) == b"one" and files(vault) == {"m.md": b"two"}
    for gone in (
        lambda: opened.trash("n.md", None, CHANGE),
        lambda: opened.replace("n.md", b"x", sha256(b""), CHANGE),
    ):
        with pytest.raises(NotFound):
            gone()


class TestLooking:
    def test_a_scan_lists_every_file_that_is_not_hidden(
        self, vault: Path, opened: FolderVault
    ) -> None:
        for name in [
            "b.md",
            "a/x.md",
            "a/pic.png",
            "a.md",
            ".hidden.md",
            ".git/config",
            "a/.trash/y.md",
            "é.md",
        ]:
            (vault / name).parent.mkdir(parents=True, exist_ok=True)
            (vault / name).write_bytes(name.encode())
        entries = opened.scan()
        assert [e.path for e in entries] == sorted(["a.md", "a/pic.png", "a/x.md", "b.md", "é.md"])
        found, entry = os.stat(vault / "a/x.md"), opened.entry("a/x.md")
        assert entry in entries and entry is not None and entry == opened.read("a/x.md").entry
        assert (entry.size, entry.mtime_ns, entry.inode) == (
            found.st_size,
            found.st_mtime_ns,
            found.st_ino,
        )
        assert opened.problems == {}
        assert opened.paths() == [e.path for e in entries]
        assert [e.path for e in opened.entries_below("a")] == ["a/pic.png", "a/x.md"]
        assert opened.entries_below("") == entries
        assert opened.entries_below("nowhere") == opened.entries_below("a.md") == []
        assert (
            opened.entry("nowhere.md") is None
            and opened.entry("a") is None
            and opened.entry("a.md/b") is None
        )

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no such files")
    def test_only_regular_files_that_may_be_seen_have_paths(self, vault: Path) -> None:
        (vault / "Private").mkdir()
        (vault / "folder.md").mkdir()
        for name in ("Private/diary.md", "good.md"):
            (vault / name).write_bytes(b"x")
        os.mkfifo(vault / "pipe.md")
        (vault / "link.md").symlink_to("good.md")
        (vault / "linked").symlink_to("Private")
        seeing_all = FolderVault(vault)
        assert (
            seeing_all.paths()
            == [e.path for e in seeing_all.scan()]
            == ["Private/diary.md", "good.md"]
        )
        assert FolderVault(vault, VaultOptions(access=Access(hidden=("Private/",)))).paths() == [
            "good.md"
        ]

    @pytest.mark.skipif(sys.platform != "linux", reason="other systems know no such names")
    def test_names_that_cannot_be_spelled_are_reported_not_listed(
        self, vault: Path, opened: FolderVault
    ) -> None:
        (vault / "back\\slash.md").write_bytes(b"x")
        (Path(os.fsdecode(os.fsencode(vault) + b"/latin\xe9.md"))).write_bytes(b"x")
        (vault / "good.md").write_bytes(b"x")
        assert [e.path for e in opened.scan()] == opened.paths() == ["good.md"]
        assert len(opened.problems) == 2 and all(path.isascii() for path in opened.problems)

    @pytest.mark.skipif(
        sys.platform == "win32" or os.geteuid() == 0, reason="root may look everywhere"
    )
    def test_a_folder_that_may_not_be_listed_is_a_problem_not_empty(
        self, vault: Path, opened: FolderVault
    ) -> None:
        (vault / "shut").mkdir(mode=0o000)
        assert opened.scan() == []
        assert list(opened.problems) == ["shut"]

    def test_what_is_not_there_or_too_long_is_said(self, vault: Path) -> None:
        opened = FolderVault(vault)
        for path in ("no.md", "no/such/folder.md"):
            with pytest.raises(NotFound):
                opened.read(path)
        with (vault / "huge.md").open("wb") as sparse:
            sparse.truncate(1 << 40)
        with pytest.raises(TooLong):
            opened.read("huge.md")
        with pytest.raises(TooLong):
            opened.create("long.md", bytes(MAX_FILE_BYTES + 1), CHANGE)
        assert [e.path for e in opened.scan()] == ["huge.md"]


class TestCreating:
    @pytest.mark.parametrize(
        ("there", "wanted"),
        [
            ("note.md", "note.md"),
            ("Note.md", "nOTE.md"),
            ("Folder/n.md", "folder/N.md"),
            ("caf\u00e9.md", "cafe\u0301.md"),
            ("STRASSE.md", "stra\u00dfe.md"),
        ],
    )
    def test_what_differs_only_in_case_or_accents_is_there_already(
        self, vault: Path, opened: FolderVault, there: str, wanted: str
    ) -> None:
        opened.create(there, b"first", CHANGE)
        for write in (
            lambda: opened.create(wanted, b"second", CHANGE),
            lambda: moved(opened, "other.md", b"other", wanted),
        ):
            (vault / "other.md").write_bytes(b"other")
            with pytest.raises(AlreadyExists) as trouble:
                write()
            assert unicodedata.normalize(
                "NFC", trouble.value.details["path"]
            ) == unicodedata.normalize("NFC", there)
            assert files(vault) == {there: b"first", "other.md": b"other"}


class TestReplacing:
    def test_a_conflict_says_what_is_there_and_how_it_differs(
        self, vault: Path, opened: FolderVault
    ) -> None:
        text = b"".join(b"line %d\n" % k for k in range(100))
        opened.create("n.md", text, CHANGE)
        theirs = text.replace(b"line 50\n", b"line fifty\n")
        (vault / "n.md").write_bytes(theirs)
        with pytest.raises(Conflict) as trouble:
            opened.replace("n.md", b"ours", sha256(text), CHANGE)
        details = trouble.value.details
        assert details["current_sha256"] == sha256(theirs)
        assert "-line 50\n" in details["diff"] and "+line fifty\n" in details["diff"]
        assert "line 10\n" not in details["diff"] and "the text you had" in details["diff"]
        with pytest.raises(Conflict) as trouble:
            opened.replace("n.md", text + b"more\n", sha256(b"never seen"), CHANGE)
        assert (
            "the text you want" in trouble.value.details["diff"]
            and "-more\n" in trouble.value.details["diff"]
        )
        assert files(vault) == {"n.md": theirs}


class TestTrashAndUndo:
    @pytest.mark.parametrize("trash", ["own", "obsidian"])
    def test_a_deleted_note_comes_back_as_it_was(self, vault: Path, trash: str) -> None:
        opened = FolderVault(vault, VaultOptions(trash=trash))  # type: ignore[arg-type]
        (vault / "a").mkdir()
        (vault / "a/n.md").write_bytes(b"text")
        os.utime(vault / "a/n.md", (1_000_000_000, 1_000_000_000))
        written = opened.trash("a/n.md", sha256(b"text"), CHANGE)
        assert written.sha256 is None and written.entry is None and opened.scan() == []
        place = opened.history.log.find(written.version).trash
        assert place is not None and (vault / place).read_bytes() == b"text"
        assert place == (
            ".trash/a/n.md" if trash == "obsidian" else f".simplemem/trash/{written.version}/a/n.md"
        )
        opened.undo(written.version, CHANGE)
        assert (vault / "a/n.md").read_bytes() == b"text" and not (vault / place).exists()
        assert (vault / "a/n.md").stat().st_mtime == 1_000_000_000

    def test_obsidians_trash_numbers_what_clashes(self, vault: Path) -> None:
        opened = FolderVault(vault, VaultOptions(trash="obsidian"))
        for text in (b"one", b"two", b"three"):
            opened.create("a/n.v1.md", text, CHANGE)
            opened.trash("a/n.v1.md", None, CHANGE)
        assert files(vault) == {
            ".trash/a/n.v1.md": b"one",
            ".trash/a/n.v1 2.md": b"two",
            ".trash/a/n.v1 3.md": b"three",
        }

    @pytest.mark.parametrize("trash", ["own", "obsidian"])
    def test_an_emptied_or_edited_trash_loses_nothing(self, vault: Path, trash: str) -> None:
        opened = FolderVault(vault, VaultOptions(trash=trash))  # type: ignore[arg-type]
        opened.create("n.md", b"text", CHANGE)
        for ruin in (
            shutil.rmtree,
            lambda folder: next(p for p in folder.rglob("n.md")).write_bytes(b"edited"),
        ):
            written = opened.trash("n.md", None, CHANGE)
            ruin(vault / (".trash" if trash == "obsidian" else ".simplemem/trash"))
            opened.undo(written.version, CHANGE)
            assert (vault / "n.md").read_bytes() == b"text"

    def test_every_change_can_be_undone_and_the_undo_too(
        self, vault: Path, opened: FolderVault
    ) -> None:
        opened.create("a.md", b"one", CHANGE)
        states, versions = [files(vault)], []
        for change in (
            lambda: opened.replace("a.md", b"two", sha256(b"one"), CHANGE),
            lambda: moved(opened, "a.md", b"two", "b/c.md"),
            lambda: moved(opened, "b/c.md", b"two", "d.md", b"three"),
            lambda: opened.trash("d.md", None, CHANGE),
            lambda: opened.create("d.md", b"four", CHANGE),
        ):
            versions.append(change().version)
            states.append(files(vault))
        for version, state in zip(versions[::-1], states[-2::-1], strict=True):
            undone = opened.undo(version, CHANGE)
            assert files(vault) == state and all(w.changed for w in undone)
            redone = opened.undo(undone[0].version, CHANGE)
            assert files(vault) == states[states.index(state) + 1]
            opened.undo(redone[0].version, CHANGE)
            assert files(vault) == state
        assert {v.op for v in list(opened.history.log.backwards())[:15]} == {"undo"}

    def test_a_note_that_has_moved_on_is_not_taken_back(
        self, vault: Path, opened: FolderVault
    ) -> None:
        made = opened.create("a.md", b"one", CHANGE)
        changed = opened.replace("a.md", b"two", sha256(b"one"), CHANGE)
        (vault / "a.md").write_bytes(b"by hand")
        for version in (made.version, changed.version):
            with pytest.raises(Conflict) as trouble:
                opened.undo(version, CHANGE)
            assert trouble.value.details["current_sha256"] == sha256(b"by hand")
        (vault / "a.md").unlink()
        with pytest.raises(Conflict) as trouble:
            opened.undo(changed.version, CHANGE)
        assert trouble.value.details["current_sha256"] is None
        assert files(vault) == {}

    def test_an_undone_move_names_the_path_that_is_in_use_again(
        self, vault: Path, opened: FolderVault
    ) -> None:
        opened.create("a.md", b"text", CHANGE)
        opened.create("links.md", b"[[a]]", CHANGE)
        move = FileChange("move", "a.md", sha256(b"text"), "b.md")
        rewrite = FileChange.update("links.md", sha256(b"[[a]]"), b"[[b]]")
        written = opened.carry_out([move, rewrite], CHANGE)
        (vault / "a.md").write_bytes(b"by hand")
        before = files(vault)
        with pytest.raises(AlreadyExists) as trouble:
            opened.undo(written[0].version, CHANGE)
        assert trouble.value.details["path"] == "a.md"
        assert files(vault) == before


class TestRecovering:
    def test_strays_of_ours_are_cleared_and_their_text_is_kept(
        self, vault: Path, opened: FolderVault
    ) -> None:
        opened.create("a/n.md", b"text", CHANGE)
        strays = {
            f"a/.simplemem-99999-{'0' * 24}.tmp": b"a text found nowhere else",
            f".simplemem-1-{'1' * 24}.tmp": b"text",
            f".simplemem-2-{'2' * 24}.tmp": b"",
        }
        for name, data in strays.items():
            (vault / name).write_bytes(data)
        (vault / ".simplemem-mine.tmp").write_bytes(b"somebody else's file")
        assert opened.recover()[0] == 3
        assert files(vault) == {"a/n.md": b"text", ".simplemem-mine.tmp": b"somebody else's file"}
        [found] = [v for v in list(opened.history.log.backwards()) if v.op == "recovered"]
        assert opened.history.content(found.after or "") == b"a text found nowhere else"
        with pytest.raises(Invalid):
            opened.undo(found.version if hasattr(found, "version") else found.id, CHANGE)

    def test_a_plan_from_elsewhere_cannot_reach_hidden_files(
        self, vault: Path, opened: FolderVault
    ) -> None:
        opened.create("n.md", b"x", CHANGE)
        evil = f".simplemem-1-{'1' * 24}.tmp"
        (vault / ".git/hooks").mkdir(parents=True)
        for path, temp in (
            (".git/hooks/pre-commit", evil),
            ("ok.md", ".git/config"),
            ("../out.md", evil),
            ("o.md", "n.md"),
        ):
            (vault / evil).write_bytes(b"#!/bin/sh\n")
            version = {
                "id": "v000009",
                "group": "v000009",
                "path": path,
                "when": "",
                "op": "create",
            }
            version |= {
                "after": sha256(b"#!/bin/sh\n"),
                "temp": temp,
                "who": "",
                "tool": "",
                "reason": "",
            }
            plan = json.dumps({"folders": [], "steps": [version]}).encode()
            (vault / ".simplemem/journal/plan").write_bytes(
                sha256(plan).encode() + b"\n" + plan + b"\n"
            )
            opened.recover()
            assert files(vault) == {"n.md": b"x"} and os.listdir(vault / ".git/hooks") == []
        assert not vault.with_name("out.md").exists()

    @pytest.mark.parametrize("logged", [False, True])
    def test_a_plan_that_a_power_cut_brought_back_is_not_carried_out_again(
        self, vault: Path, opened: FolderVault, logged: bool
    ) -> None:
        opened.create("a.md", b"x", CHANGE)
        if logged:  # it was carried out, and undone by hand and a later write
            move = opened.history.log.find(moved(opened, "a.md", b"x", "b.md").version)
            opened.trash("b.md", None, CHANGE)
            opened.create("a.md", b"x", CHANGE)
        else:  # it was given up, and its number was used again
            number = opened.create("c.md", b"y", CHANGE).version
            move = opened.history.log.find(number)._replace(
                path="a.md", new_path="b.md", op="move", before=sha256(b"x")
            )
            move = move._replace(after=move.before)
        line = json.dumps({"folders": [], "steps": [move._asdict() | {"temp": None}]}).encode()
        (vault / ".simplemem/journal/plan").write_bytes(
            sha256(line).encode() + b"\n" + line + b"\n"
        )
        before = files(vault)
        opened.recover()
        assert files(vault) == before

    @pytest.mark.parametrize(
        "plan", [b"", b"\0" * 4096, b"{", b"[" * 100_000, b"null\n", b"\xff\n{}\n"]
    )
    def test_a_damaged_plan_is_no_plan(self, vault: Path, opened: FolderVault, plan: bytes) -> None:
        opened.create("n.md", b"x", CHANGE)
        (vault / ".simplemem/journal/plan").write_bytes(plan)
        assert opened.recover()[0] == 0
        assert opened.replace("n.md", b"y", sha256(b"x"), CHANGE).changed
