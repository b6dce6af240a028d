"""One thread of one process holds a vault at a time; who waits too long is told by whom."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from simplemem.errors import Unavailable
from simplemem.vault.folder.lock import FileLock
from simplemem.vault.folder.vault import FolderVault
from simplemem.vault.values import Author

HOLD = """
import sys, time
from pathlib import Path
from simplemem.vault.folder.vault import FolderVault
with FolderVault(Path(sys.argv[1])).lock():
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(vault: Path) -> subprocess.Popen[str]:
    """Another process that holds the vault."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(vault)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def test_it_may_be_taken_again_by_the_thread_that_holds_it(vault: Path) -> None:
    opened = FolderVault(vault)
    with opened.lock(), opened.lock(0), opened.lock():
        opened.create("n.md", b"x", Author("test"))
    with opened.lock(0):
        pass


def test_who_waits_too_long_is_told_the_holder(vault: Path, holder: subprocess.Popen[str]) -> None:
    opened = FolderVault(vault)
    with pytest.raises(Unavailable) as trouble, opened.lock(0.05):
        pass
    assert str(holder.pid) in trouble.value.message
    with pytest.raises(Unavailable) as trouble, opened.lock(0):
        pass
    assert opened.scan() == [], "looking needs no lock"


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_holder_that_stands_still_is_never_robbed(
    vault: Path, holder: subprocess.Popen[str]
) -> None:
    os.kill(holder.pid, signal.SIGSTOP)
    try:
        with pytest.raises(Unavailable), FolderVault(vault).lock(0.1):
            pass
    finally:
        os.kill(holder.pid, signal.SIGCONT)
    with pytest.raises(Unavailable), FolderVault(vault).lock(0):
        pass


def test_a_holder_that_dies_frees_it(vault: Path, holder: subprocess.Popen[str]) -> None:
    holder.kill()
    with FolderVault(vault).lock():
        pass


def test_the_folder_for_what_is_ours_is_made_with_its_gitignore(vault: Path) -> None:
    opened = FolderVault(vault)
    assert not (vault / ".simplemem").exists(), "opening and looking make nothing"
    with opened.lock():
        assert (vault / ".simplemem/.gitignore").read_text() == "*\n"
    (vault / ".simplemem/.gitignore").write_text("!mine\n")
    assert opened.own_folder() == vault / ".simplemem"
    with opened.lock():
        assert (vault / ".simplemem/.gitignore").read_text() == "!mine\n", (
            "what a person wrote there stays"
        )


def test_a_folder_thrown_away_meanwhile_is_made_again(vault: Path) -> None:
    opened = FolderVault(vault)
    opened.create("a.md", b"x", Author("test"))
    shutil.rmtree(vault / ".simplemem")
    opened.create("b.md", b"x", Author("test"))
    with opened.lock(), pytest.raises(Unavailable), FolderVault(vault).lock(0):
        pass


def test_one_of_several_leads_and_the_next_takes_over(vault: Path) -> None:
    one, other = FileLock(str(vault), "index.leader"), FileLock(str(vault), "index.leader")
    assert one.acquire_or_keep() and not other.acquire_or_keep()
    (vault / "index.leader").unlink()
    assert other.acquire_or_keep(), "the file that the first holds is not the one that is there"
    assert not one.acquire_or_keep()
    other.release()
    assert one.acquire_or_keep()
    one.release()
