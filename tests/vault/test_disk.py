"""The verbs of the write protocol, on disks that can everything and on disks that lack calls."""

from __future__ import annotations

import errno
import os
import resource
import signal
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from lacking import LACKS, lack

from simplemem.errors import Conflict, ReadOnly, Unavailable
from simplemem.vault import disk
from simplemem.vault.disk import Intruded, sha256
from simplemem.vault.paths import Beneath
from simplemem.vault.vault import Change, Vault

CHANGE = Change("test")


@pytest.fixture(params=LACKS)
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The kind of disk: one that can everything, and three that lack calls."""
    lack(monkeypatch, request.param)
    return str(request.param)


def staged(here: Beneath, data: bytes) -> str:
    path, _ = disk.stage(here, (), data, like=None, sync=False, hold=False)
    return path


def test_a_swap_puts_the_new_in_place_and_the_old_where_the_new_was(vault: Path, kind: str) -> None:
    (vault / "n.md").write_bytes(b"old")
    old = os.stat(vault / "n.md").st_ino
    with Beneath(str(vault)) as here:
        temp = staged(here, b"new")
        disk.swap(here, temp, "n.md", expected=sha256(b"old"), ours=sha256(b"new"))
    assert (vault / "n.md").read_bytes() == b"new" and (vault / temp).read_bytes() == b"old"
    assert kind == "neither" or os.stat(vault / temp).st_ino == old, "an editor may have that very file open"
    assert sorted(os.listdir(vault)) == sorted([temp, "n.md"])


def test_what_somebody_saved_in_between_goes_back(vault: Path, kind: str) -> None:
    (vault / "n.md").write_bytes(b"theirs")
    with Beneath(str(vault)) as here:
        temp = staged(here, b"new")
        with pytest.raises(Intruded) as event:
            disk.swap(here, temp, "n.md", expected=sha256(b"old"), ours=sha256(b"new"))
    assert event.value.found == sha256(b"theirs")
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
    with Beneath(str(vault)) as here:
        temp = staged(here, b"new")
        with pytest.raises(Intruded):
            disk.swap(here, temp, "n.md", expected=sha256(b"old"), ours=sha256(b"new"))
    assert (vault / "n.md").read_bytes() == b"second save" and (vault / temp).read_bytes() == b"first save"


def test_a_note_that_went_is_not_made_again_by_a_swap(vault: Path, kind: str) -> None:
    with Beneath(str(vault)) as here:
        temp = staged(here, b"new")
        with pytest.raises(Intruded) as event:
            disk.swap(here, temp, "n.md", expected=sha256(b"old"), ours=sha256(b"new"))
    assert event.value.found is None and os.listdir(vault) == [temp]


def test_carry_never_lands_on_something(vault: Path, kind: str) -> None:
    (vault / "a.md").write_bytes(b"a")
    (vault / "b.md").write_bytes(b"b")
    with Beneath(str(vault)) as here:
        with pytest.raises(FileExistsError):
            disk.carry(here, "a.md", "b.md")
        disk.carry(here, "a.md", "c.md")
    assert {name: (vault / name).read_bytes() for name in os.listdir(vault)} == {"b.md": b"b", "c.md": b"a"}


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="needs a second disk")
def test_carry_crosses_to_another_disk(vault: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    with Beneath(str(vault)) as here:
        disk.carry(here, "a.md", "mount/a.md")
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
    opened = Vault(vault)
    opened.replace("n.md", b"new", sha256(b"old"), CHANGE)
    assert stat.S_IMODE(note.stat().st_mode) == 0o604
    assert not attributes or os.getxattr(note, "user.colour") == b"red"
    opened.move("n.md", "m.md", CHANGE, data=b"newer")
    assert stat.S_IMODE((vault / "m.md").stat().st_mode) == 0o604
    if os.geteuid() == 0:
        os.chown(vault / "m.md", 1234, 1234)
        opened.replace("m.md", b"newest", sha256(b"newer"), CHANGE)
        assert (vault / "m.md").stat().st_uid == 1234


def test_a_new_note_gets_the_usual_mode(vault: Path) -> None:
    mask = os.umask(0o027)
    try:
        Vault(vault).create("n.md", b"x", CHANGE)
    finally:
        os.umask(mask)
    assert stat.S_IMODE((vault / "n.md").stat().st_mode) == 0o640


def test_a_write_protected_note_stays_as_it_is(vault: Path) -> None:
    (vault / "n.md").write_bytes(b"old")
    os.chmod(vault / "n.md", 0o444)
    with pytest.raises(ReadOnly):
        Vault(vault).replace("n.md", b"new", sha256(b"old"), CHANGE)
    assert (vault / "n.md").read_bytes() == b"old"


def test_a_file_outside_that_shares_its_bytes_by_a_hard_link_is_untouched(vault: Path, kind: str) -> None:
    outside = vault.with_name("outside.md")
    outside.write_bytes(b"old")
    os.link(outside, vault / "n.md")
    opened = Vault(vault)
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
    opened = Vault(vault)
    made = opened.create("note.md", b"one", CHANGE)
    opened.replace("note.md", b"two", made.sha256 or "", CHANGE)
    opened.recover()
    assert {name: (vault / name).read_bytes() for name in strangers} == strangers


def in_child(action: Callable[[], None]) -> int:
    """Run in a child that may ruin its own limits; 0 when it ended well."""
    pid = os.fork()
    if pid == 0:
        try:
            action()
        except BaseException as error:
            print(repr(error), file=sys.stderr)
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.skipif(sys.platform == "win32", reason="forks")
class TestScarcity:
    def test_no_room_is_said_and_nothing_is_left(self, vault: Path) -> None:
        opened = Vault(vault)
        opened.create("n.md", b"old", CHANGE)

        def act() -> None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
            with pytest.raises(Unavailable) as trouble:
                opened.replace("n.md", b"x" * 100_000, sha256(b"old"), CHANGE)
            assert "full" in trouble.value.message and trouble.value.hint
            assert opened.read("n.md").data == b"old"

        assert in_child(act) == 0
        assert [name for name in os.listdir(vault) if name != ".simplemem"] == ["n.md"]

    def test_no_descriptors_is_said_and_passes(self, vault: Path) -> None:
        opened = Vault(vault)
        opened.create("a/n.md", b"old", CHANGE)

        def act() -> None:
            free = max(int(name) for name in os.listdir("/proc/self/fd")) if sys.platform == "linux" else 20
            for room in range(free + 1, free + 30):
                resource.setrlimit(resource.RLIMIT_NOFILE, (room, 4096))
                try:
                    opened.replace("a/n.md", b"new", sha256(b"old"), CHANGE)
                except Unavailable:
                    assert (vault / "a/n.md").read_bytes() == b"old"
                else:
                    break
            resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 4096))
            assert opened.recover() == []
            assert opened.read("a/n.md").data == b"new"

        assert in_child(act) == 0
        assert os.listdir(vault / "a") == ["n.md"]

    def test_a_vault_that_cannot_be_written_is_read(self, vault: Path) -> None:
        (vault / "n.md").write_bytes(b"old")

        def act() -> None:
            if os.geteuid() == 0:
                os.chmod(vault.parent, 0o755)
                for above in vault.parents:
                    if above.stat().st_uid == 0 and not above.stat().st_mode & 0o001:
                        os._exit(0)  # nobody cannot even come here
                os.setgid(65534)
                os.setuid(65534)
            opened = Vault(vault)
            assert [entry.path for entry in opened.scan()] == ["n.md"]
            assert opened.read("n.md").data == b"old" and opened.recover() == []
            for write in (
                lambda: opened.create("m.md", b"x", CHANGE),
                lambda: opened.replace("n.md", b"x", sha256(b"old"), CHANGE),
                lambda: opened.move("n.md", "m.md", CHANGE),
                lambda: opened.trash("n.md", None, CHANGE),
                lambda: opened.undo("v1", CHANGE),
            ):
                with pytest.raises(ReadOnly):
                    write()

        os.chmod(vault, 0o555)
        try:
            assert in_child(act) == 0
        finally:
            os.chmod(vault, 0o755)
        assert os.listdir(vault) == ["n.md"]


def test_a_swap_that_met_something_odd_puts_it_back(vault: Path) -> None:
    (vault / "n.md").write_bytes(b"old")
    opened = Vault(vault)
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

    def fail(fd: int, *, last: bool = False) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(disk, "sync_file", fail)
    with pytest.raises(OSError):
        disk.write_file(file, b"newer")
    assert file.read_bytes() == b"new" and os.listdir(tmp_path) == ["picture.html"]


@pytest.mark.parametrize("count", [1, 8, 9, 200])
def test_every_file_is_synced_once_and_none_is_left_open(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [f"note {number}.md" for number in range(count)]
    for path in paths:
        (tmp_path / path).write_text(path)
    synced: list[int] = []
    real = disk.sync_file

    def counted(fd: int, *, last: bool = False) -> None:
        synced.append(os.fstat(fd).st_ino)
        real(fd, last=last)

    monkeypatch.setattr(disk, "sync_file", counted)
    with Beneath(str(tmp_path)) as here:
        before = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0
        disk.sync_paths(here, paths)
        after = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0
    assert sorted(synced) == sorted((tmp_path / path).stat().st_ino for path in paths)
    assert after <= before + 1  # the folder


def test_a_disk_that_fails_is_told_however_many_there_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(20):
        (tmp_path / str(number)).write_text("x")

    def fails(_fd: int, *, last: bool = False) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(disk, "sync_file", fails)
    with Beneath(str(tmp_path)) as here, pytest.raises(OSError, match="Input/output"):
        disk.sync_paths(here, [str(number) for number in range(20)])
