"""For every operation: dying before each call that changes the disk leaves the old or the new notes, nothing else."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import crash_harness as harness
import pytest
from crash_cases import CASES, CHANGE, OLD, Case, Files, files_and_folders, make, notes, staged
from limited_disk import limit_disk

from simplemem.errors import SimplememError
from simplemem.vault.folder import disk
from simplemem.vault.folder.vault import FolderVault
from simplemem.vault.values import sha256

if sys.platform == "win32":
    pytest.skip("the harness forks", allow_module_level=True)


def check_history(vault: FolderVault, files: Files) -> None:
    """Replayed from its start, the log gives the notes that are there, and every text it speaks of is kept."""
    state: dict[str, str] = {}
    seen = []
    for version in reversed(list(vault.history.log.backwards())):
        seen.append(version.id)
        if version.op != "recovered":
            assert state.get(version.path) == version.before, version
            state.pop(version.path, None)
            if version.after:
                state[version.new_path or version.path] = version.after
        for sha in (version.before, version.after):
            assert sha is None or vault.history.content(sha) is not None, version
    assert seen == sorted(set(seen)) and state == {
        path: sha256(data) for path, data in files.items()
    }


def check_recovered(root: Path, old: Files, new: Files) -> Files:
    """After a fresh start all notes are as before or as after, nothing else lies about, and writing goes on."""
    vault = FolderVault(root)
    vault.recover()
    there = notes(root)
    assert there in (old, new) and not staged(root)
    needed = {
        parent.as_posix() for files in (old, new) for path in files for parent in Path(path).parents
    }
    _, folders = files_and_folders(root)
    assert folders <= needed
    if there == old:
        assert folders <= {p.as_posix() for path in {*OLD, *old} for p in Path(path).parents}
    check_history(vault, there)
    assert vault.recover()[0] == 0
    assert vault.replace("d.md", b"life goes on\n", sha256(OLD["d.md"]), CHANGE).changed
    ids = [version.id for version in vault.history.log.backwards()]
    assert len(set(ids)) == len(ids)
    return there


def each_point(room: Path, case: Case, *, how: Any = "die") -> list[Files]:
    """Die at every call; the state each death led to."""
    make(room / "first", case)
    old = notes(room / "first")
    work = copy(room, "first", "work")
    whole = harness.run(lambda: case.run(FolderVault(work)))
    assert whole.error is None and notes(work) == case.new and len(whole.calls) > 5
    outcomes = []
    for at, call in enumerate(whole.calls, 1):
        if how == "half" and call != "write":
            continue
        copy(room, "first", "work")
        ended = harness.run(lambda: case.run(FolderVault(work)), at=at, how=how)
        assert ended.died
        whole_texts = {*old.values(), *case.new.values()}
        torn = {path for path, data in notes(work).items() if data not in whole_texts}
        assert not torn and len(notes(work)) >= min(len(old), len(case.new)), (at, call)
        outcomes.append(check_recovered(work, old, case.new))
    return outcomes


_ALWAYS = {"create", "move with rewrites", "trash"}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name in _ALWAYS else pytest.mark.slow) for name in CASES],
)
def test_dying_before_any_call_leaves_old_or_new(room: Path, name: str) -> None:
    outcomes = each_point(room, CASES[name])
    assert CASES[name].new in outcomes, "some death comes late enough for the change to stand"
    assert outcomes[0] != CASES[name].new, "the first death comes too early for it"


@pytest.mark.slow
@pytest.mark.parametrize("disk", ["links", "neither"])
@pytest.mark.parametrize(
    "name",
    [
        "create in new folders",
        "replace",
        "move",
        "move to another case",
        "move with rewrites",
        "trash",
    ],
)
def test_dying_on_a_disk_that_lacks_calls_leaves_old_or_new(
    room: Path, name: str, disk: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit_disk(monkeypatch, disk)
    outcomes = each_point(room, CASES[name])
    assert CASES[name].new in outcomes


@pytest.mark.parametrize("name", ["create", "replace", "move with rewrites"])
def test_dying_in_the_middle_of_a_write_leaves_old_or_new(room: Path, name: str) -> None:
    each_point(room, CASES[name], how="half")


@pytest.mark.parametrize("disk", ["exchange", pytest.param("links", marks=pytest.mark.slow)])
def test_a_recovery_that_dies_is_taken_up_by_the_next(
    room: Path, disk: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = CASES["move with rewrites"]
    limit_disk(monkeypatch, disk)
    make(room / "first", case)
    calls = count(copy(room, "first", "count"), case)
    swaps = [
        at
        for at, call in enumerate(calls, 1)
        if call in ("exchange", "rename_new", "replace", "link")
    ]
    for at in (swaps[len(swaps) // 2], len(calls) - 12, len(calls) - 2):
        broken = copy(room, "first", "broken")
        assert harness.run(lambda root=broken: case.run(FolderVault(root)), at=at).died
        counted = copy(room, "broken", "count")
        whole = harness.run(lambda root=counted: FolderVault(root).recover())
        assert whole.error is None
        for point in range(1, len(whole.calls) + 1):
            work = copy(room, "broken", "work")
            assert harness.run(lambda root=work: FolderVault(root).recover(), at=point).died
            check_recovered(work, OLD, case.new)


@pytest.mark.parametrize("name", ["replace", "move with rewrites"])
def test_an_exchange_that_stops_halfway_is_undone_by_the_next_start(room: Path, name: str) -> None:
    """ReplaceFileW can: the note has its backup name already, and nothing has taken its place."""
    case = CASES[name]
    make(room / "work", case)

    def halfway(temp_folder: int, temp: str, folder: int, note: str) -> None:
        os.rename(
            note, temp.removesuffix(".tmp") + "-old.tmp", src_dir_fd=folder, dst_dir_fd=temp_folder
        )
        os.kill(os.getpid(), signal.SIGKILL)

    def act() -> None:
        disk.exchange = halfway  # type: ignore[assignment]
        case.run(FolderVault(room / "work"))

    assert harness.run(act).died and notes(room / "work") not in (OLD, case.new)
    check_recovered(room / "work", OLD, case.new)


@pytest.mark.parametrize("odd", ["link", "folder", "pipe", "nobody may read it"])
def test_what_takes_a_notes_place_after_a_crash_does_not_stop_later_writes(
    room: Path, odd: str
) -> None:
    case = CASES["move with rewrites"]
    make(room / "first", case)
    for at, call in enumerate(count(copy(room, "first", "count"), case), 1):
        if call not in ("exchange", "rename_new"):
            continue
        work = copy(room, "first", "work")
        assert harness.run(lambda root=work: case.run(FolderVault(root)), at=at).died
        note = work / "deep/b.md"
        note.unlink()
        if odd == "link":
            note.symlink_to("/nowhere")
        elif odd == "folder":
            note.mkdir()
        elif odd == "pipe":
            os.mkfifo(note)
        else:
            note.write_bytes(b"theirs")
            note.chmod(0)
        vault = FolderVault(work)
        vault.create("later.md", b"life goes on\n", CHANGE)
        assert os.path.lexists(note) and vault.recover()[0] == 0


@pytest.mark.parametrize(
    ("name", "code", "disk"),
    [
        ("replace", errno.EIO, "exchange"),
        pytest.param("replace", errno.EMFILE, "exchange", marks=pytest.mark.slow),
        pytest.param("replace", errno.ENOSPC, "exchange", marks=pytest.mark.slow),
        pytest.param("create in new folders", errno.ENOSPC, "exchange", marks=pytest.mark.slow),
        ("move with rewrites", errno.ENOSPC, "exchange"),
        ("trash", errno.ENOSPC, "exchange"),
        pytest.param("replace", errno.EIO, "links", marks=pytest.mark.slow),
        pytest.param("replace", errno.ENOSPC, "neither", marks=pytest.mark.slow),
        pytest.param("move with rewrites", errno.EIO, "links", marks=pytest.mark.slow),
        pytest.param("move with rewrites", errno.ENOSPC, "neither", marks=pytest.mark.slow),
        pytest.param("create with a rewrite", errno.EIO, "links", marks=pytest.mark.slow),
        pytest.param("trash", errno.EIO, "links", marks=pytest.mark.slow),
    ],
)
def test_a_call_that_fails_leaves_the_notes_as_they_were(
    room: Path, name: str, code: int, disk: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = CASES[name]
    limit_disk(monkeypatch, disk)
    make(room / "first", case)
    calls = count(copy(room, "first", "count"), case)
    for at, call in enumerate(calls, 1):
        work = copy(room, "first", "work")
        ended = harness.run(
            lambda root=work: case.run(FolderVault(root)), at=at, how="fail", errno=code
        )
        assert not ended.died
        there = notes(work)
        if ended.error is None:
            assert there == case.new, (at, call)
        else:
            assert isinstance(ended.error, SimplememError), (at, call, repr(ended.error))
            assert ended.error.message and "Errno" not in ended.error.message
            # A sync that fails after the exchange: the note is new, and nobody was told that it is safe.
            assert there == OLD or (call == "fsync" and there == case.new), (at, call)
        if ended.error is not None and call != "unlink":
            assert not staged(work), (at, call)
        check_recovered(work, OLD, case.new)


def test_a_failed_sync_is_not_tried_again(room: Path) -> None:
    case = CASES["replace"]
    make(room / "first", case)
    calls = count(copy(room, "first", "count"), case)
    first = calls.index("fsync") + 1
    work = copy(room, "first", "work")
    ended = harness.run(lambda: case.run(FolderVault(work)), at=first, how="fail", errno=errno.EIO)
    assert ended.error is not None and ended.calls.count("fsync") == 1
    assert "exchange" not in ended.calls, (
        "bytes that may not be on the disk never take a note's place"
    )


def test_the_text_is_durable_before_it_takes_the_place_and_the_place_before_the_answer(
    room: Path,
) -> None:
    case = CASES["replace"]
    make(room / "first", case)
    calls = count(copy(room, "first", "count"), case)
    swap = calls.index("exchange")
    staged = calls.index("fsync")
    assert "open" in calls[:staged] and calls[staged - 1] == "write" and staged < swap
    after = calls[swap:]
    assert after.count("fsync") >= 3, (
        "the log, the note's folder and the folder of what was displaced"
    )
    last_rename = max(k for k, call in enumerate(after) if call in ("exchange", "rename_new"))
    assert all(k > last_rename for k, call in enumerate(after) if call == "fsync"), (
        "one commit holds them all"
    )


def count(root: Path, case: Case) -> list[str]:
    """The calls of an operation that nothing disturbs."""
    whole = harness.run(lambda: case.run(FolderVault(root)))
    assert whole.error is None and notes(root) == case.new
    return whole.calls


def copy(room: Path, source: str, target: str) -> Path:
    """A copy in which two names of one file are two names of one file."""
    shutil.rmtree(room / target, ignore_errors=True)
    subprocess.run(["cp", "-a", room / source, room / target], check=True)
    return room / target
