"""The verbs of the write protocol, on disks that can everything and on disks that lack calls."""

from __future__ import annotations

import errno
import os
import stat
import sys
from pathlib import Path

import pytest
from limited_disk import LIMITED_DISKS, limit_disk

from simplemem.errors import Conflict, Invalid, ReadOnly, SimplememError, Unavailable, Unreadable
from simplemem.vault.folder import disk
from simplemem.vault.folder.dir_handles import DirHandles, translating_os_errors
from simplemem.vault.folder.disk import ConcurrentWrite
from simplemem.vault.folder.vault import FolderVault
from simplemem.vault.values import Author, FileChange, sha256

CHANGE = Author("test")


@pytest.fixture(params=LIMITED_DISKS)
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The kind of disk: one that can everything, and three that lack calls."""
    limit_disk(monkeypatch, request.param)
    return str(request.param)


def fails(_fd: int, *, last: bool = False) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def staged(here: DirHandles, data: bytes) -> str:
    return disk.stage(here, (), data, like=None, sync=False)


def test_a_swap_puts_the_new_in_place_and_the_old_where_the_new_was(vault: Path, kind: str) -> None:
    (vault / "n.md").write_bytes(b"old")
    old = os.stat(vault / "n.md").st_ino
    with DirHandles(str(vault)) as here:
        temp = staged(here, b"new")
        disk.swap(here, temp, "n.md", expected=sha256(b"old"), replacement=sha256(b"new"))
    assert (vault / "n.md").read_bytes() == b"new" and (vault / temp).read_bytes() == b"old"
    assert kind == "neither" or os.stat(vault / temp).st_ino == old, (
        "an editor may have that very file open"
    )
    assert sorted(os.listdir(vault)) == sorted([temp, "n.md"])


def test_what_somebody_saved_in_between_goes_back(vault: Path, kind: str) -> None:
    (vault / "n.md").write_bytes(b"theirs")
    with DirHandles(str(vault)) as here:
        temp = staged(here, b"new")
        with pytest.raises(ConcurrentWrite) as event:
            disk.swap(here, temp, "n.md", expected=sha256(b"old"), replacement=sha256(b"new"))
    assert event.value.digest == sha256(b"theirs")
    assert (vault / "n.md").read_bytes() == b"theirs" and (vault / temp).read_bytes() == b"new"


def test_of_two_saves_in_between_the_later_stays_and_the_earlier_is_left_to_be_kept(
    vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (vault / "n.md").write_bytes(b"first save")
    real, calls = disk.exchange, []

    def exchange(*names: object) -> None:
        if len(calls) == 1:  # an editor saves by rename, just before theirs would go back
            (vault / "n.md~").write_bytes(b"second save")
            os.replace(vault / "n.md~", vault / "n.md")
        calls.append(names)
        real(*names)  # type: ignore[arg-type]

    monkeypatch.setattr(disk, "exchange", exchange)
    with DirHandles(str(vault)) as here:
        temp = staged(here, b"new")
        with pytest.raises(ConcurrentWrite):
            disk.swap(here, temp, "n.md", expected=sha256(b"old"), replacement=sha256(b"new"))
    assert (vault / "n.md").read_bytes() == b"second save" and (
        vault / temp
    ).read_bytes() == b"first save"


def test_a_move_never_lands_on_something(vault: Path, kind: str) -> None:
    (vault / "a.md").write_bytes(b"a")
    (vault / "b.md").write_bytes(b"b")
    with DirHandles(str(vault)) as here:
        with pytest.raises(FileExistsError):
            disk.move_file(here, "a.md", "b.md")
        disk.move_file(here, "a.md", "c.md")
    assert {name: (vault / name).read_bytes() for name in os.listdir(vault)} == {
        "b.md": b"b",
        "c.md": b"a",
    }


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="needs a second disk")
def test_a_move_crosses_to_another_disk(vault: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A folder of the vault may be a mount of its own: the kernel then refuses to rename, whatever the disks are.
    (vault / "a.md").write_bytes(b"a")
    os.chmod(vault / "a.md", 0o640)
    real = disk.rename_new

    def rename_new(folder: int | None, source: str, to: int | None, target: str) -> None:
        if not source.startswith(".simplemem-"):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        real(folder, source, to, target)

    monkeypatch.setattr(disk, "rename_new", rename_new)
    (vault / "mount").mkdir()
    with DirHandles(str(vault)) as here:
        disk.move_file(here, "a.md", "mount/a.md")
    assert (vault / "mount/a.md").read_bytes() == b"a" and os.listdir(vault) == ["mount"]
    assert stat.S_IMODE(os.stat(vault / "mount/a.md").st_mode) == 0o640


@pytest.mark.skipif(sys.platform == "win32", reason="modes are another thing there")
def test_mode_and_attributes_of_a_note_are_kept(vault: Path, kind: str) -> None:
    note = vault / "n.md"
    note.write_bytes(b"old")
    os.chmod(note, 0o604)
    attributes = True
    try:
        os.setxattr(note, "user.colour", b"red")
    except (OSError, AttributeError):
        attributes = False
    opened = FolderVault(vault)
    opened.replace("n.md", b"new", sha256(b"old"), CHANGE)
    assert stat.S_IMODE(note.stat().st_mode) == 0o604
    assert not attributes or os.getxattr(note, "user.colour") == b"red"
    opened.carry_out([FileChange("move", "n.md", sha256(b"new"), "m.md", b"newer")], CHANGE)
    assert stat.S_IMODE((vault / "m.md").stat().st_mode) == 0o604
    if os.geteuid() == 0:
        os.chown(vault / "m.md", 1234, 1234)
        opened.replace("m.md", b"newest", sha256(b"newer"), CHANGE)
        assert (vault / "m.md").stat().st_uid == 1234


def test_a_file_outside_that_shares_its_bytes_by_a_hard_link_is_untouched(
    vault: Path, kind: str
) -> None:
    outside = vault.with_name("outside.md")
    outside.write_bytes(b"old")
    os.link(outside, vault / "n.md")
    opened = FolderVault(vault)
    assert opened.read("n.md").data == b"old"
    written = opened.replace("n.md", b"new", sha256(b"old"), CHANGE)
    outside.write_bytes(b"edited outside")
    assert (vault / "n.md").read_bytes() == b"new"
    opened.recover()
    opened.undo(written.version, CHANGE)
    assert (vault / "n.md").read_bytes() == b"old" and outside.read_bytes() == b"edited outside"


def test_files_of_others_beside_a_note_are_untouched(vault: Path) -> None:
    strangers = {
        "note.tmp": b"1",
        ".note.md.swp": b"2",
        "note.md~": b"3",
        "4913": b"4",
        ".simplemem-notes.tmp": b"5",
    }
    for name, data in strangers.items():
        (vault / name).write_bytes(data)
    opened = FolderVault(vault)
    made = opened.create("note.md", b"one", CHANGE)
    opened.replace("note.md", b"two", made.sha256 or "", CHANGE)
    opened.recover()
    assert {name: (vault / name).read_bytes() for name in strangers} == strangers


@pytest.mark.skipif(
    sys.platform == "win32" or os.geteuid() == 0, reason="root may write everywhere"
)
def test_a_vault_that_cannot_be_written_is_read(vault: Path) -> None:
    (vault / "n.md").write_bytes(b"old")
    os.chmod(vault, 0o555)
    opened = FolderVault(vault)
    assert opened.read("n.md").data == b"old" and opened.recover()[0] == 0
    with pytest.raises(ReadOnly):
        opened.replace("n.md", b"x", sha256(b"old"), CHANGE)
    os.chmod(vault, 0o755)


def test_a_swap_that_met_something_odd_puts_it_back(vault: Path) -> None:
    (vault / "n.md").write_bytes(b"old")
    opened = FolderVault(vault)
    real = disk.exchange

    def exchange(*names: object) -> None:
        if not (vault / "n.md").is_symlink() and (vault / "n.md").read_bytes() == b"old":
            os.unlink(vault / "n.md")
            os.symlink("/etc/hostname", vault / "n.md")
        real(*names)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(disk, "exchange", exchange)
        with pytest.raises((Conflict, Exception)):
            opened.replace("n.md", b"new", sha256(b"old"), CHANGE)
    assert (vault / "n.md").is_symlink(), "the link somebody made is back in its place"
    assert [name for name in os.listdir(vault) if name != ".simplemem"] == ["n.md"]


def test_a_file_that_is_no_note_is_put_in_place_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "picture.html"
    file.write_bytes(b"old")
    disk.write_file(file, b"new")
    assert file.read_bytes() == b"new"

    monkeypatch.setattr(disk, "sync_file", fails)
    with pytest.raises(OSError):
        disk.write_file(file, b"newer")
    assert file.read_bytes() == b"new" and os.listdir(tmp_path) == ["picture.html"]


@pytest.mark.parametrize("count", [8, 200])
def test_every_file_is_synced_once_and_a_disk_that_fails_is_told(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [f"note {number}.md" for number in range(count)]
    for path in paths:
        (tmp_path / path).write_text(path)
    synced: list[int] = []
    monkeypatch.setattr(
        disk, "sync_file", lambda fd, last=False: synced.append(os.fstat(fd).st_ino)
    )
    disk.sync_paths(str(tmp_path), paths)
    assert sorted(synced) == sorted((tmp_path / path).stat().st_ino for path in paths)
    monkeypatch.setattr(disk, "sync_file", fails)
    with pytest.raises(OSError, match="No space"):
        disk.sync_paths(str(tmp_path), paths)


@pytest.mark.parametrize(
    ("code", "writing", "kind", "said"),
    [
        (errno.ENOSPC, True, Unavailable, "disk is full"),
        (errno.EMFILE, False, Unavailable, "too many files"),
        (errno.EACCES, True, ReadOnly, "do not allow writing"),
        (errno.EACCES, False, Unreadable, "permission denied"),
        (errno.ELOOP, False, Invalid, "symbolic link"),
        (errno.EIO, True, Unavailable, os.strerror(errno.EIO)),
        (errno.EIO, False, Unreadable, os.strerror(errno.EIO)),
    ],
)
def test_every_refusal_of_the_system_has_a_kind_and_a_sentence(
    code: int, writing: bool, kind: type[SimplememError], said: str
) -> None:
    cause = OSError(code, os.strerror(code))
    with (
        pytest.raises(kind, match=said) as trouble,
        translating_os_errors("save", "a/n.md", writing=writing),
    ):
        raise cause
    assert "save 'a/n.md'" in trouble.value.message and "Errno" not in trouble.value.message
    assert trouble.value.__cause__ is cause
