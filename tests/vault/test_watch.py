"""Hints about changed paths, from a real watch on a real folder. Conditions are waited for, never timed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest
from waiting import eventually

from simplemem.vault.folder import file_systems, listeners, watcher
from simplemem.vault.folder.watcher import FolderWatcher
from simplemem.vault.source import EVERYTHING

DEADLINE = 30.0  # generous: a busy machine is not a failure
ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="asks the kernel of Linux")


class Heard:
    """What a watch has told."""

    def __init__(self, root: Path, *, poll: bool = False) -> None:
        self.warnings: list[str] = []
        self.watch = FolderWatcher(root, poll=poll, poll_seconds=0.05, warn=self.warnings.append)
        self.paths: set[str] = set()
        self.close = self.watch.close

    def wait_for(self, *paths: str) -> None:
        """Until every one of the paths was told, by itself or by a folder above it."""

        def is_covered(path: str) -> bool:
            parts = path.split("/")
            return any("/".join(parts[:n]) in self.paths for n in range(len(parts) + 1))

        assert eventually(lambda: self.listen(0.05) or all(map(is_covered, paths)), DEADLINE), (
            set(paths) - self.paths
        )

    def listen(self, seconds: float) -> None:
        self.paths |= self.watch.paths(seconds)

    def is_told_alone(self, root: Path, name: str) -> bool:
        """Whether a write to `name` is told of by its own path, as it is once the watching has begun again."""
        self.paths.clear()
        (root / name).write_text(str(time.monotonic_ns()))
        return eventually(lambda: self.listen(0.05) or name in self.paths, 1.0)


@pytest.fixture
def heard(vault: Path) -> Iterator[Heard]:
    with closing(Heard(vault)) as heard:
        yield heard
    assert heard.warnings == []


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    root = tmp_path / "vault"
    for folder in ("logs", ".obsidian", ".simplemem", ".git"):
        (root / folder).mkdir(parents=True)
    (root / "note.md").write_text("one\n")
    (root / "logs" / "flight.md").write_text("up\n")
    return root


def in_place(vault: Path) -> None:
    with (vault / "note.md").open("a") as note:
        note.write("two\n")


def by_renaming(vault: Path) -> None:
    (vault / ".note.tmp").write_text("up and away\n")
    os.replace(vault / ".note.tmp", vault / "note.md")


def as_vim_does(vault: Path) -> None:
    os.rename(vault / "note.md", vault / "note.md~")
    (vault / "note.md").write_text("rewritten\n")
    os.remove(vault / "note.md~")


@pytest.mark.parametrize("save", [in_place, by_renaming, as_vim_does])
def test_a_saved_note_is_reported(vault: Path, heard: Heard, save: Callable[[Path], None]) -> None:
    save(vault)
    heard.wait_for("note.md")
    assert heard.paths <= {"note.md", "note.md~"}


def test_a_renamed_folder_is_reported_at_both_ends(vault: Path, heard: Heard) -> None:
    os.rename(vault / "logs", vault / "journal")
    heard.wait_for("logs/flight.md", "journal/flight.md")
    heard.paths.clear()
    (vault / "journal" / "flight.md").write_text("still followed\n")
    heard.wait_for("journal/flight.md")


def test_a_new_folder_full_of_notes_is_reported(vault: Path, heard: Heard) -> None:
    """The system starts to watch a new folder a moment late: what came first must not get lost."""
    for number in range(20):
        deep = vault / f"new {number}" / "deeper" / "deepest"
        deep.mkdir(parents=True)
        (deep / "note.md").write_text("early\n")
    heard.wait_for(*(f"new {number}/deeper/deepest/note.md" for number in range(20)))
    for number in (0, 19):
        assert eventually(
            lambda at=number: heard.is_told_alone(vault, f"new {at}/deeper/deepest/late.md")
        )


def test_hidden_folders_are_passed_over(vault: Path, heard: Heard) -> None:
    (vault / "logs" / ".hidden").mkdir()
    for name in (
        ".simplemem/index.db",
        ".git/index",
        ".obsidian/workspace.json",
        "logs/.hidden/a.md",
        "last.md",
    ):
        (vault / name).write_text("x")
    heard.wait_for("last.md")
    assert heard.paths == {"last.md"}


def test_the_files_of_conventions_are_reported_also_when_their_folder_arrives(
    vault: Path, heard: Heard
) -> None:
    (vault / ".obsidian" / "templates.json").write_text("{}")
    heard.wait_for(".obsidian/templates.json")
    assert heard.paths == {".obsidian/templates.json"}
    shutil.rmtree(vault / ".obsidian")
    made = vault.parent / "made"
    made.mkdir()
    (made / "app.json").write_text("{}")
    made.rename(vault / ".obsidian")
    heard.wait_for(".obsidian/app.json")


@pytest.mark.parametrize(
    "how", ["comes back later", "is made anew at once", "is replaced by another"]
)
def test_a_root_that_goes_is_watched_when_one_is_there_again(
    vault: Path, heard: Heard, how: str
) -> None:
    """A folder made anew often gets the very inode number of the old one."""
    other = vault.parent / "other"
    other.mkdir()
    if how == "is replaced by another":
        os.rename(vault, vault.parent / "old")
        os.rename(other, vault)
    else:
        shutil.rmtree(vault)
        if how == "comes back later":
            heard.wait_for(EVERYTHING)
        vault.mkdir()
    heard.wait_for("note.md", "logs/flight.md")
    # From here on a single change is a single hint again.
    assert eventually(lambda: heard.is_told_alone(vault, "alone.md"))


_UNDER_A_LIMIT = """
    import sys, time
    from pathlib import Path
    from simplemem.vault.source import EVERYTHING
    from simplemem.vault.folder.watcher import FolderWatcher

    Path("/proc/sys/user/max_inotify_watches").write_text(sys.argv[2])
    root, told, warnings = Path(sys.argv[1]), set(), []
    watch = FolderWatcher(root, poll_seconds=0.05, warn=warnings.append)
    began = watch.polling
    for number in range(8):
        (root / f"folder {number}").mkdir()
    deadline = time.monotonic() + 30
    while not watch.polling and time.monotonic() < deadline:
        watch.paths(0.1)
    while EVERYTHING not in told and time.monotonic() < deadline:
        told |= watch.paths(0.1)
    print(began, len(warnings), EVERYTHING in told, "limit" in warnings[0])
"""


@pytest.mark.skipif(
    shutil.which("unshare") is None
    or subprocess.run(["unshare", "-Ur", "true"], capture_output=True, check=False).returncode != 0,
    reason="needs a user namespace of its own, where the limit may be lowered",
)
@pytest.mark.parametrize("limit", ["2", "9"])
def test_the_limit_of_watched_folders_falls_back_with_one_warning(vault: Path, limit: str) -> None:
    command = [
        "unshare",
        "-Ur",
        sys.executable,
        "-c",
        textwrap.dedent(_UNDER_A_LIMIT),
        str(vault),
        limit,
    ]
    here = Path(__file__).parents[2]
    run = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=here, timeout=120
    )
    assert run.stdout.split() == [str(limit == "2"), "1", "True", "True"], run.stderr


@ON_LINUX
def test_a_link_to_a_folder_outside_is_not_walked_into(vault: Path) -> None:
    """Otherwise a link to `/` in a vault would have the whole disk watched."""
    outside = vault.parent / "outside"
    (outside / "deep").mkdir(parents=True)
    (vault / "way").symlink_to(outside)
    before = watched_folders()
    with closing(Heard(vault)) as heard:
        (vault / "later").symlink_to(outside)
        (vault / "everything").symlink_to("/")
        heard.wait_for("everything")
        (outside / "deep" / "a.md").write_text("x")
        (outside / "b.md").write_text("x")
        (vault / "last.md").write_text("x")
        heard.wait_for("last.md")
        assert watched_folders() - before == 3  # the vault, logs and .obsidian
    assert heard.paths == {"later", "everything", "last.md"}


def watched_folders() -> int:
    """How many folders this process listens to, by its own account to the kernel."""
    accounts = Path("/proc/self/fdinfo").iterdir()
    return sum(account.read_text().count("inotify wd:") for account in accounts if account.exists())


@ON_LINUX
def test_when_the_kernel_has_thrown_events_away_everything_is_looked_at(
    vault: Path, heard: Heard
) -> None:
    """The reader of the events was busy for too long; a folder created meanwhile is watched all the same."""
    room = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    if room > 200_000:
        pytest.skip("the queue is too long to fill it")
    for _ in range(room // 3):  # each is three or four events
        (vault / "flood.md").write_text("x")
        (vault / "flood.md").unlink()
    (vault / "unheard").mkdir()
    (vault / "unheard" / "a.md").write_text("x")
    heard.wait_for(EVERYTHING)
    assert eventually(lambda: heard.is_told_alone(vault, "unheard/b.md"))


def test_a_ring_ends_a_wait_and_nothing_is_lost_by_it(vault: Path, heard: Heard) -> None:
    threading.Timer(0.1, heard.watch.wake).start()
    heard.listen(1.0)
    assert heard.paths == set()
    (vault / "note.md").write_text("two\n")
    heard.watch.wake()
    heard.wait_for("note.md")


def test_where_nothing_is_told_of_everything_may_have_changed_now_and_then(vault: Path) -> None:
    with closing(Heard(vault, poll=True)) as heard:
        for _ in range(2):
            heard.paths.clear()
            heard.wait_for(EVERYTHING)
        shutil.rmtree(vault)
        eventually(lambda: heard.watch.paths(0.1) == set())
        vault.mkdir()
        heard.paths.clear()
        heard.wait_for(EVERYTHING)
    assert heard.warnings == []


def test_watchfiles_tells_the_same_where_the_system_is_not_linux(
    vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """macOS does not report that it dropped events: a while after any event, the vault is scanned."""
    monkeypatch.setattr(watcher, "sys", SimpleNamespace(platform="darwin"))
    with closing(Heard(vault)) as heard:
        (vault / "note.md").write_text("two\n")
        (vault / ".git" / "index").write_text("x")
        (vault / ".obsidian" / "app.json").write_text("{}")
        (vault / "logs" / "flight.md").rename(vault / "logs" / "landing.md")
        heard.wait_for("note.md", ".obsidian/app.json", "logs/flight.md", "logs/landing.md")
        assert EVERYTHING not in heard.paths and ".git/index" not in heard.paths
        shutil.rmtree(vault)
        heard.wait_for(EVERYTHING)
        vault.mkdir()
        monkeypatch.setattr(listeners, "_RECHECK_SECONDS", 0.5)
        assert eventually(lambda: heard.is_told_alone(vault, "anew.md"))
        heard.wait_for(EVERYTHING)


@ON_LINUX
def test_a_disk_that_others_write_to_is_recognised_and_looked_through(
    vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (
        file_systems.file_system("/proc/self") == "proc"
        and file_systems.file_system("/nowhere") == ""
    )
    for kind in ("nfs4", "fuse", "fuse.of-somebody"):
        monkeypatch.setattr(watcher, "file_system", lambda _, kind=kind: kind)
        with closing(Heard(vault)) as heard:
            heard.wait_for(EVERYTHING)
        assert heard.watch.polling and f"a disk of type {kind}" in heard.warnings[0]


@ON_LINUX
def test_a_change_is_known_at_once_and_once(vault: Path, heard: Heard) -> None:
    assert heard.watch.paths(0) == set()
    (vault / "note.md").write_text("other")
    assert heard.watch.paths(0) == {"note.md"}
    with (vault / "note.md").open("ab", buffering=0) as file:
        file.write(b"still being written")
        assert heard.watch.paths(0) == {"note.md"}
    assert heard.watch.paths(0) == {"note.md"}, "and once more when it is closed"
    (vault / ".simplemem" / "lock").write_text("1")
    assert heard.watch.paths(0) == set()


@ON_LINUX
def test_folders_stand_for_what_is_in_them_and_are_listened_to(vault: Path, heard: Heard) -> None:
    (vault / "new" / "deep").mkdir(parents=True)
    (vault / "new" / "deep" / "b.md").write_text("b")
    assert "new" in heard.watch.paths(0)
    (vault / "new" / "deep" / "b.md").write_text("again")
    assert heard.watch.paths(0) == {"new/deep/b.md"}
    (vault / "logs").rename(vault / "other")
    (vault / "other" / "flight.md").write_text("changed under its new name")
    assert {"logs", "other"} <= (heard.watch.paths(0) or set())
