"""The person's own index of their repository: looked at before a commit of ours, and brought in step with it.

What they have staged is never touched. What they have not must not look, after our commit, as if they meant to take it
back: so the entries of our notes are set as the branch moves. The new index is written beside the old one, takes git's own
lock, as git does it, and then the place of the old one. Nothing here makes a commit.
"""

from __future__ import annotations

import errno
import filecmp
import os
import shutil
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from simplemem.errors import Unavailable
from simplemem.vault.repository import Git

_AT_ONCE = 200  # paths on a command line
LOCK, OURS = "index.lock", "index.simplemem"


@dataclass(frozen=True, slots=True)
class Entry:
    """A file as a tree or the index has it."""

    mode: str
    oid: str


class Busy(Unavailable):
    """Another git is at work in the repository: to be tried again in a moment."""


def in_commit(git: Git, commit: str | None, paths: Sequence[str]) -> dict[str, Entry]:
    """The files of a commit at these paths."""
    found: dict[str, Entry] = {}
    for some in _portions(paths if commit else ()):
        listed = git.apart("ls-tree", "-z", "--full-tree", commit or "", "--", *some)
        for row in listed.split(b"\0")[:-1]:
            about, _, name = row.partition(b"\t")
            mode, _, oid = about.decode("ascii").split()
            found[os.fsdecode(name)] = Entry(mode, oid)
    return found


def in_index(git: Git, paths: Sequence[str], file: Path | None = None) -> dict[str, Entry | None]:
    """What the person's index, or a copy of it, has at these paths. None is a conflict that they have yet to settle."""
    found: dict[str, Entry | None] = {}
    at = {} if file is None else {"GIT_INDEX_FILE": str(file)}
    for some in _portions(paths):
        listed = git.inside("ls-files", "--stage", "-z", "--", *some, env=at)
        for row in listed.split(b"\0")[:-1]:
            about, _, name = row.partition(b"\t")
            mode, oid, stage = about.decode("ascii").split()
            found[os.fsdecode(name)] = Entry(mode, oid) if stage == "0" else None
    return found


def set_aside(git: Git, paths: Sequence[str]) -> set[str]:
    """Those of these paths that a person has told git not to look at (`git update-index --skip-worktree` or
    `--assume-unchanged`), or has left out of a sparse checkout."""
    found: set[str] = set()
    for some in _portions(paths):
        for row in git.inside("ls-files", "-v", "-z", "--", *some).split(b"\0")[:-1]:
            tag, _, name = row.partition(b" ")
            if tag.islower() or tag == b"S":
                found.add(os.fsdecode(name))
    return found


def spell(entries: Mapping[str, Entry | None], width: int) -> bytes:
    """Entries as `git update-index --index-info` takes them; None takes one out."""
    gone = [f"0 {'0' * width}\t{path}" for path, entry in entries.items() if entry is None]
    there = [f"{entry.mode} {entry.oid}\t{path}" for path, entry in entries.items() if entry is not None]
    return b"".join(os.fsencode(row) + b"\0" for row in gone + there)


def set_entries(
    git: Git, entries: Mapping[str, Entry | None], expected: Mapping[str, Entry | None], width: int
) -> None:
    """Set entries of the person's index, leaving all others as they are. Busy when another git holds it, or has staged
    one of them since it was looked at."""
    hold(git, entries, expected, width)
    put_in_place(Path(git.repository.git_dir))


def hold(git: Git, entries: Mapping[str, Entry | None], expected: Mapping[str, Entry | None], width: int) -> None:
    """Take git's lock of the index, with the new index in it: from here on no other git changes it. What follows is
    `put_in_place`, or that the lock is taken away."""
    folder = Path(git.repository.git_dir)
    index, lock, ours = folder / "index", folder / LOCK, folder / OURS
    check_lock(folder)
    copy = git.own / "their-index"
    before = _stamp(index)
    copy.unlink(missing_ok=True)
    if before is not None:
        shutil.copy2(index, copy)  # with its time: by that git tells what was edited in the moment it was staged
    there = in_index(git, list(entries), file=copy)
    if {path: there.get(path, "none") for path in entries} != {path: expected.get(path, "none") for path in entries}:
        raise _busy(lock)
    at = {"GIT_INDEX_FILE": str(copy)}
    git.inside("update-index", "--replace", "-z", "--index-info", stdin=spell(entries, width), env=at)
    write_anew(ours, copy.read_bytes(), like=index)
    try:
        _take(lock, ours)
    except FileExistsError as error:
        raise _busy(lock) from error
    if _stamp(index) != before:
        lock.unlink()
        raise _busy(lock)


def put_in_place(folder: Path) -> None:
    """Let the index that is held in the lock take the place of the person's."""
    os.replace(folder / LOCK, folder / "index")
    (folder / OURS).unlink(missing_ok=True)


def is_ours(folder: Path) -> bool:
    """Whether the lock that is there is the file we made, or where the disk has no hard links, says the same."""
    lock, ours = folder / LOCK, folder / OURS
    try:
        if stat.S_ISREG(os.lstat(lock).st_mode) and stat.S_ISREG(os.lstat(ours).st_mode):
            return os.path.samefile(lock, ours) or (
                os.stat(ours).st_size > 0 and filecmp.cmp(lock, ours, shallow=False)
            )
    except OSError:
        pass
    return False


def check_lock(folder: Path) -> None:
    """Busy when another git holds the index."""
    lock = folder / LOCK
    if os.path.lexists(lock):
        raise _busy(lock)


def _take(lock: Path, ours: Path) -> None:
    """git's lock, and our index in it, in one call; in two where the disk has no hard links."""
    try:
        os.link(ours, lock)
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno in (errno.EIO, errno.ENOSPC):
            raise
        data = ours.read_bytes()
        with lock.open("xb") as opened:
            opened.write(data)


def write_anew(file: Path, data: bytes, *, like: Path | None = None) -> None:
    """Write a file of ours and have it on the disk; never through a link."""
    file.unlink(missing_ok=True)
    with file.open("xb") as opened:
        opened.write(data)
        opened.flush()
        os.fsync(opened.fileno())
    with suppress(FileNotFoundError):
        if like is not None:
            shutil.copymode(like, file)


def _stamp(file: Path) -> tuple[int, int, int] | None:
    try:
        found = file.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _busy(lock: Path) -> Busy:
    return Busy("Another git is at work in the repository.", hint=f"If none is, remove {lock}.")


def _portions(paths: Sequence[str]) -> list[Sequence[str]]:
    return [paths[at : at + _AT_ONCE] for at in range(0, len(paths), _AT_ONCE)]
