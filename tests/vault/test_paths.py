"""No path, link or race leads out of the vault: reading or writing, nothing outside is touched."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from limited_disk import limit_disk

from simplemem.errors import Invalid, NotFound, SimplememError, TooLong, Unavailable, Unreadable
from simplemem.note.names import MAX_PATH_PARTS, check_path, is_path
from simplemem.vault.base import VaultOptions
from simplemem.vault.folder.dir_handles import DirHandles
from simplemem.vault.folder.vault import FolderVault
from simplemem.vault.values import Author, FileChange, sha256

CHANGE = Author("test")
SECRET = b"nobody's business\n"

REFUSED = [
    "", "/", "//", ".", "..", "./a.md", "../secret.md", "../../secret.md", "a/../secret.md", "a/../../secret.md",
    "a/b/../../../secret.md", "a/..", "a/.", "a/./b.md", "a//b.md", "a/", "/a.md", "/etc/passwd", "//host/share/a.md",
    "///a.md", "\\\\host\\share\\a.md", "\\\\?\\C:\\a.md", "C:\\a.md", "..\\secret.md", "a\\..\\..\\secret.md",
    "a\\b.md", "..%5c..%5csecret.md\0", "a.md\0", "\0", "a\0/../secret.md", "../secret.md\0.md", ".hidden.md",
    ".git/config", ".obsidian/app.json", ".simplemem/lock", ".simplemem/history/log.jsonl", ".trash/a.md",
    "a/.git/hooks/pre-commit", "a/.b/c.md", "...", ".../secret.md", "....//secret.md", "..;/secret.md",
    "..\u2215secret.md", "..\u2044secret.md", ".\u200b./secret.md", "..\n/secret.md", "../\u202esecret.md",
    ".. /secret.md", "..\t/secret.md", "\ud800.md", "a/\udcff.md", "../vault-evil/secret.md", "/proc/self/environ",
    "/proc/self/root/etc/passwd", "/dev/stdin",
]  # fmt: skip
# Odd, but only names: whatever is done with them stays inside.
HARMLESS = [
    "~", "~/a.md", "~root/a.md", "%2e%2e/secret.md", "%2e%2e%2fsecret.md", "a..b/c.md", "a/b..", "a...md",
    "file:secret.md", "C:/secret.md", "$HOME/a.md", "`id`.md", "-rf.md", "--", "a\n.md", "\u202ea.md",
    "\uff0e\uff0e/secret.md", "\u2025/secret.md", "a:b.md", "con.md", "*?.md", "a.md ",
]  # fmt: skip


@pytest.fixture(params=["exchange", "by path"], ids=["held folders", "by path"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    limit_disk(monkeypatch, request.param)
    return str(request.param)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    (tmp_path / "secret.md").write_bytes(SECRET)
    (tmp_path / "vault-evil").mkdir()
    (tmp_path / "vault-evil" / "secret.md").write_bytes(SECRET)
    return tmp_path


def everything(folder: Path) -> dict[str, bytes]:
    """All files beside the vault, byte for byte."""
    files = (
        path
        for path in folder.rglob("*")
        if path.is_file() and "vault" not in path.relative_to(folder).parts
    )
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def attempt_everything(vault: FolderVault, path: str) -> list[bytes]:
    """Read and change in every way there is; the bytes that came back."""
    seen = []
    for act in (
        lambda: seen.append(vault.read(path).data),
        lambda: vault.entry(path),
        lambda: vault.entries_below(path),
        lambda: vault.create(path, b"in\n", CHANGE),
        lambda: vault.replace(path, b"over\n", sha256(SECRET), CHANGE),
        lambda: vault.carry_out([FileChange("move", path, sha256(SECRET), "moved.md")], CHANGE),
        lambda: vault.carry_out([FileChange("move", "a.md", sha256(b"a\n"), path)], CHANGE),
        lambda: vault.trash(path, None, CHANGE),
    ):
        with contextlib.suppress(SimplememError):
            act()
    return seen


def test_what_could_lead_elsewhere_is_refused(vault: Path, outside: Path, kind: str) -> None:
    (vault / "a.md").write_bytes(b"a\n")
    before, opened = everything(outside), FolderVault(vault)
    assert len(REFUSED) + len(HARMLESS) >= 60
    for path in REFUSED:
        with pytest.raises((Invalid, TooLong)):
            opened.read(path)
        with pytest.raises((Invalid, TooLong)):
            opened.create(path, b"x", CHANGE)
        with pytest.raises((Invalid, TooLong)):
            opened.carry_out([FileChange("move", "a.md", sha256(b"a\n"), path)], CHANGE)
        attempt_everything(opened, path)
    assert everything(outside) == before
    assert [entry.path for entry in opened.scan()] == ["a.md"]


def test_odd_names_stay_inside(vault: Path, outside: Path, kind: str) -> None:
    before, opened = everything(outside), FolderVault(vault)
    for path in HARMLESS:
        assert SECRET not in attempt_everything(opened, path)
        assert everything(outside) == before
    assert {path.name for path in outside.iterdir()} >= {"secret.md", "vault", "vault-evil"}


@given(st.text(st.sampled_from("./\\\0%aA~ :\u2215\uff0e\ud800"), max_size=12))
def test_an_accepted_path_always_stays_below(path: str) -> None:
    if not is_path(path):
        return
    joined = os.path.normpath(os.path.join("/vault", path))
    assert joined.startswith("/vault/")
    assert not any(part.startswith(".") or not part for part in check_path(path))


WINDOWS = [
    "C:/a.md",
    "a.md:stream",
    "NUL",
    "nul.md",
    "x/COM1.txt",
    "com¹.md",
    "CONIN$",
    "a. ",
    "dots./a.md",
    "aux ",
]


@pytest.mark.parametrize("path", [*WINDOWS, "why?.md", "a|b.md", 'say "x".md', "tab\there.md"])
def test_windows_has_more_ways_out(path: str) -> None:
    with pytest.raises(Invalid):
        check_path(path, windows=True)
    assert check_path("con/consul.md".replace("con/", "c/"), windows=True)


def test_very_long_and_very_deep_paths_are_refused_not_stumbled_over(
    vault: Path, kind: str
) -> None:
    opened = FolderVault(vault)
    with pytest.raises(TooLong):
        opened.create("x" * 400 + ".md", b"x", CHANGE)
    with pytest.raises(Invalid):
        opened.read("a/" * 5000 + "b.md")
    deep = "/".join(["d"] * (MAX_PATH_PARTS - 1)) + "/n.md"
    if kind != "by path" and sys.platform != "win32":
        opened.create(deep, b"down here\n", CHANGE)
        assert opened.read(deep).data == b"down here\n"
        assert [entry.path for entry in opened.scan()] == [deep]


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
class TestLinks:
    def test_a_link_that_leads_out_is_neither_read_nor_written(
        self, vault: Path, outside: Path, kind: str
    ) -> None:
        (vault / "a.md").write_bytes(b"a\n")
        (vault / "file.md").symlink_to(outside / "secret.md")
        (vault / "relative.md").symlink_to("../secret.md")
        (vault / "folder").symlink_to(outside)
        (vault / "evil").symlink_to("../vault-evil")
        before, opened = everything(outside), FolderVault(vault)
        for path in (
            "file.md",
            "relative.md",
            "folder/secret.md",
            "evil/secret.md",
            "folder/new.md",
            "evil/x/y.md",
        ):
            assert SECRET not in attempt_everything(opened, path), path
            assert everything(outside) == before, path
        assert [e.path for e in opened.scan()] == ["moved.md"] or [
            e.path for e in opened.scan()
        ] == ["a.md"]

    def test_a_link_to_a_note_inside_is_neither_read_nor_listed_nor_written_through(
        self, vault: Path, kind: str
    ) -> None:
        (vault / "real").mkdir()
        (vault / "real/n.md").write_bytes(b"real\n")
        (vault / "link.md").symlink_to("real/n.md")
        (vault / "one.md").symlink_to("two.md")
        (vault / "two.md").symlink_to("one.md")
        (vault / "folder").symlink_to("real")
        opened = FolderVault(vault)
        for path in ("link.md", "one.md"):
            with pytest.raises(Invalid):
                opened.read(path)
        with pytest.raises(NotFound):
            opened.read("folder/n.md")
        assert [entry.path for entry in opened.scan()] == ["real/n.md"]
        for path in ("link.md", "folder/n.md"):
            with pytest.raises(Invalid):
                opened.replace(path, b"new\n", sha256(b"real\n"), CHANGE)
            with pytest.raises(Invalid):
                opened.create(path.replace("n.md", "new.md"), b"new\n", CHANGE)
        assert (vault / "real/n.md").read_bytes() == b"real\n" and (vault / "link.md").is_symlink()

    def test_our_own_folder_is_never_a_link(self, vault: Path, outside: Path, kind: str) -> None:
        (vault / ".simplemem").symlink_to(outside)
        before, opened = everything(outside), FolderVault(vault)
        with pytest.raises(SimplememError):
            opened.create("a.md", b"a\n", CHANGE)
        assert everything(outside) == before and not (vault / "a.md").exists()

    def test_what_is_no_regular_file_is_refused_without_waiting(
        self, vault: Path, kind: str
    ) -> None:
        os.mkfifo(vault / "pipe.md")
        (vault / "folder.md").mkdir()
        opened = FolderVault(vault)
        for path in ("pipe.md", "folder.md"):
            with pytest.raises(Unreadable):
                opened.read(path)
            assert opened.entry(path) is None
        assert opened.scan() == []

    def test_a_folder_swapped_for_a_link_at_any_moment_leads_nowhere(
        self, vault: Path, outside: Path
    ) -> None:
        (outside / "other").mkdir()
        for folder in (vault / "d", outside / "other"):
            folder.mkdir(exist_ok=True)
        (vault / "d/n.md").write_bytes(b"inside\n")
        (outside / "other/n.md").write_bytes(SECRET)
        done = threading.Event()

        def flip() -> None:
            while not done.is_set():
                os.rename(vault / "d", vault / "kept")
                os.symlink(outside / "other", vault / "d")
                os.unlink(vault / "d")
                os.rename(vault / "kept", vault / "d")

        flipper = threading.Thread(target=flip)
        flipper.start()
        opened, seen, end = (
            FolderVault(vault, VaultOptions(durable=False)),
            0,
            time.monotonic() + 1.0,
        )
        try:
            while time.monotonic() < end or (not seen and time.monotonic() < end + 30):
                with contextlib.suppress(SimplememError):
                    assert opened.read("d/n.md").data != SECRET
                    seen += 1
                with contextlib.suppress(SimplememError):
                    there = opened.read("d/n.md")
                    opened.replace("d/n.md", b"inside %d\n" % seen, there.sha256, CHANGE)
        finally:
            done.set()
            flipper.join()
        assert seen > 0, "the race left time for reading"
        assert everything(outside)["other/n.md"] == SECRET
        assert os.listdir(outside / "other") == ["n.md"]


def test_a_vault_that_goes_away_is_missed_and_found_again(vault: Path, kind: str) -> None:
    (vault / "a.md").write_bytes(b"a\n")
    opened = FolderVault(vault)
    vault.rename(vault.with_name("away"))
    for ask in (
        lambda: opened.read("a.md"),
        opened.scan,
        lambda: opened.create("b.md", b"", CHANGE),
    ):
        with pytest.raises(Unavailable):
            ask()
    assert not vault.exists(), "nothing is made where the vault was"
    vault.with_name("away").rename(vault)
    assert opened.read("a.md").data == b"a\n"
    with pytest.raises(Unavailable):
        FolderVault(vault / "a.md")


def test_folders_are_closed_again(vault: Path) -> None:
    if not Path("/proc/self/fd").exists():
        pytest.skip("no list of open files here")
    opened = FolderVault(vault)
    for number in range(5):
        opened.create(f"a/b/c/d/e/f/{number}.md", b"x", CHANGE)
        with pytest.raises(SimplememError):
            opened.read("a/b/c/d/e/f/g/h/i.md")
    before = len(os.listdir("/proc/self/fd"))
    for number in range(5, 10):
        opened.create(f"a/b/c/d/e/f/{number}.md", b"x", CHANGE)
        opened.read(f"a/b/c/d/e/f/{number}.md")
        with pytest.raises(SimplememError):
            opened.read("a/b/c/d/e/f/g/h/i.md")
        opened.scan()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_name_that_never_passed_the_check_does_not_climb_either(vault: Path) -> None:
    with DirHandles(str(vault)) as here:
        for path in ("../x", "a/../../x", "/x", "", ".simplemem/../../x"):
            with pytest.raises((Invalid, FileNotFoundError)):
                here.locate(path)
