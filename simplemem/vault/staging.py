"""The person's own index of their repository: looked at before a commit of ours, and brought in step with it.

What they have staged is never touched. What they have not must not look, after our commit, as if they meant to take it
back: so the entries of our notes are set just before the branch moves. The new index is written beside the old one and
takes git's own lock for the two calls that put it in place. Nothing here makes a commit.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from simplemem.errors import Unavailable
from simplemem.vault.repository import Git

_AT_ONCE = 200  # paths on a command line
_OURS = "index.simplemem"


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
    folder = Path(git.repository.git_dir)
    index, lock, ours = folder / "index", folder / "index.lock", folder / _OURS
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
    try:
        _write(ours, copy.read_bytes(), like=index)
        try:
            _take(lock, ours)
        except FileExistsError as error:
            raise _busy(lock) from error
        if _stamp(index) != before:
            lock.unlink()
            raise _busy(lock)
        os.replace(lock, index)
    finally:
        ours.unlink(missing_ok=True)


def check_lock(folder: Path) -> None:
    """Busy when another git holds the index. A lock that is the very file we made is ours, from before we were killed."""
    lock, ours = folder / "index.lock", folder / _OURS
    with suppress(OSError):
        if os.path.samefile(lock, ours):
            lock.unlink()
    ours.unlink(missing_ok=True)
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


def _write(file: Path, data: bytes, *, like: Path) -> None:
    file.unlink(missing_ok=True)
    with file.open("xb") as opened:  # never through a link
        opened.write(data)
        opened.flush()
        os.fsync(opened.fileno())
    with suppress(FileNotFoundError):
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
