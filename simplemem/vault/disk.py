"""The verbs of the write protocol (durability.md §3): stage, swap, carry. Each leaves the old file or the new one.

A new text is staged in a file of ours in the note's own folder and synced; then it changes places with the note, and
what was displaced is looked at before anything is called done. Where the disk has no exchange, a hard link (or a copy)
of the old file is made first. Nothing here unlinks a file that another program may have written.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import stat
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple

from simplemem.errors import SimplememError, TooLong, Unavailable, Unreadable
from simplemem.vault import kernel
from simplemem.vault.paths import READ, WRITE_NEW, Beneath, Parts, parent

TEMP = re.compile(r"\.simplemem-(\d{1,10})-[0-9a-f]{24}(?:-old)?\.tmp")
MOST_BYTES = 64 << 20
_TRIES = 12
_CHUNK = 1 << 20
_FEW = 8  # files that are synced one after the other, and threads that sync more than that
_HELD_OPEN = 64
_SYNC = READ if sys.platform != "win32" else READ | os.O_RDWR


class Entry(NamedTuple):
    """One regular file as the disk shows it. `path` is spelled as the disk spells it, with `/`."""

    path: str
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


class Intruded(Exception):
    """Somebody else changed the file between our look and our move; it is back as they left it. An event, not a failure:
    `writing.py` makes a Conflict of it.
    """

    def __init__(self, path: str, found: str | None, data: bytes | None = None) -> None:
        super().__init__(path)
        self.path = path
        self.found = found
        self.data = data  # what they saved, where it was seen


def sha256(data: bytes) -> str:
    """The identity of a text."""
    return hashlib.sha256(data).hexdigest()


def read_file(here: Beneath, path: str, limit: int = MOST_BYTES) -> tuple[bytes, os.stat_result]:
    """All bytes of a regular file, and the stat they belong to: read again while somebody writes into it (F30)."""
    with here.opened(path, READ) as fd:
        for attempt in range(_TRIES):
            before = os.fstat(fd)
            if not stat.S_ISREG(before.st_mode):
                raise Unreadable(f"{path!r} is not a regular file.")
            if before.st_size > limit:
                raise TooLong(f"{path!r} has {before.st_size:,} bytes; at most {limit:,} are read.")
            data = _read_all(fd, before.st_size)
            after = os.fstat(fd)
            if len(data) == after.st_size and _stamp(before) == _stamp(after):
                break
            time.sleep(0.001 * (attempt + 1))
            os.lseek(fd, 0, os.SEEK_SET)
        # A file that never rests is given as last seen: the hash guards whoever wants to change it.
        return data, after


def look(here: Beneath, path: str) -> os.stat_result | None:
    """The stat of a regular file, None for anything else; links are not followed."""
    found = here.stat(path)
    return found if stat.S_ISREG(found.st_mode) else None


def entry_of(path: str, found: os.stat_result) -> Entry:
    """The entry that a stat makes."""
    return Entry(path, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)


def entry_at(here: Beneath, path: str) -> Entry | None:
    """The entry of one regular file, None when there is none."""
    try:
        found = look(here, path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return entry_of(path, found) if found is not None else None


def hash_of(here: Beneath, path: str) -> str | None:
    """The hash of what lies at a path, None when nothing does."""
    try:
        return sha256(read_file(here, path)[0])
    except FileNotFoundError:
        return None


def stage(here: Beneath, folder: Parts, data: bytes, *, like: str | None, sync: bool, hold: bool) -> tuple[str, int]:
    """Write `data` to a new file of ours in `folder`: its path, and a descriptor that marks it as in use (-1: none).

    `like` names the note whose owner, mode and attributes it gets. `hold` keeps the file locked until the descriptor
    is closed, so that nobody sweeps it away: a pid would not tell, two containers may share a vault.
    """
    name = f".simplemem-{os.getpid()}-{secrets.token_hex(12)}.tmp"
    path, fd = "/".join((*folder, name)), here.folder(folder).open(name, WRITE_NEW)
    try:
        if hold:
            kernel.try_lock(fd)
        _fill(here, fd, data, like=like, sync=sync)
    except BaseException:
        os.close(fd)
        remove(here, path)
        raise
    if hold and sys.platform != "win32":  # Windows renames no open file
        return path, fd
    os.close(fd)
    return path, -1


def swap(here: Beneath, temp: str, path: str, *, expected: str, ours: str) -> None:
    """Put our `temp` in the place of `path`. What was there is afterwards found at `temp`, and is `expected`.

    If it is not, somebody saved in that moment: theirs goes back, and Intruded tells. Should they save once more
    while it goes back, the later save wins the place and the earlier one is left at `temp` for the caller to keep.
    """
    try:
        _exchange(here, temp, path)
    except FileNotFoundError as error:
        if _exists(here, temp):
            raise Intruded(path, None) from error
        raise
    try:
        data = read_file(here, temp)[0]
    except (OSError, SimplememError):  # a link, a folder, a failing disk: it is not what we expected
        _exchange(here, temp, path)
        raise
    found = sha256(data)
    if found == expected:
        return
    _exchange(here, temp, path)
    if hash_of(here, temp) != ours:
        _exchange(here, temp, path)
    raise Intruded(path, found, data)


def carry(here: Beneath, source: str, target: str) -> None:
    """Move a file to where nothing is: FileExistsError otherwise. Across a mount point it is copied."""
    try:
        _rename_new(here, source, target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _carry_across(here, source, target)


def rename_over(here: Beneath, source: str, target: str) -> None:
    """Put a file of ours in the place of another of ours: whatever was there goes."""
    above, old, folder, new = here.spots(source, target)
    kernel.patiently(lambda: os.replace(old, new, src_dir_fd=above, dst_dir_fd=folder))


def same_file(here: Beneath, one: str, other: str) -> bool:
    """Whether two paths name one file (two links, or a disk that ignores case)."""
    try:
        a, b = here.stat(one), here.stat(other)
    except FileNotFoundError:
        return False
    return (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino)


def leftovers(temp: str) -> tuple[str, str]:
    """The names a staged file may have left: its own, and the old file's while a disk without exchange swaps."""
    return temp, _aside(temp)


def remove(here: Beneath, path: str) -> None:
    """Unlink a file that is ours alone. No error when it is gone."""
    folder, name = here.spot(path)
    with suppress(FileNotFoundError):
        kernel.patiently(lambda: os.unlink(folder.name(name), dir_fd=folder.fd))


def sync_folder(here: Beneath, parts: Parts) -> None:
    """Make the names in a folder durable. Windows writes them through by itself."""
    folder = here.folder(parts)
    if folder.fd is not None:
        kernel.sync_file(folder.fd)
    elif sys.platform != "win32":
        fd = os.open(folder.path, os.O_RDONLY)
        try:
            kernel.sync_file(fd)
        finally:
            os.close(fd)


def sync_path(here: Beneath, path: str, *, last: bool = False) -> None:
    """Make the bytes of one file of ours durable; `last` says that a write is answered after this."""
    with here.opened(path, _SYNC) as fd:
        kernel.sync_file(fd, last=last)


def sync_paths(here: Beneath, paths: Sequence[str]) -> None:
    """Make the bytes of files of ours durable. Many are waited for at once: a file system with a journal writes that once
    for all who wait, which for hundreds of files is a twentieth of the time."""
    if len(paths) <= _FEW:
        for path in paths:
            sync_path(here, path)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(_FEW) as threads:
        for first in range(0, len(paths), _HELD_OPEN):
            with ExitStack() as held:
                fds = [held.enter_context(here.opened(path, _SYNC)) for path in paths[first : first + _HELD_OPEN]]
                list(threads.map(kernel.sync_file, fds))


def put(here: Beneath, path: str, data: bytes, *, sync: bool) -> None:
    """Give a file of ours its bytes, in one step: whatever was there goes."""
    temp, _ = stage(here, parent(path), data, like=None, sync=sync, hold=False)
    try:
        rename_over(here, temp, path)
    except BaseException:
        remove(here, temp)
        raise


def write_file(path: Path, data: bytes) -> None:
    """Put a file that is no note in place, whole: whoever interrupts this has the old one, or none."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        with open(os.open(beside, WRITE_NEW, 0o666), "wb") as file:
            file.write(data)
            file.flush()
            kernel.sync_file(file.fileno())
        kernel.patiently(lambda: os.replace(beside, path))
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def write_all(fd: int, data: bytes) -> None:
    """Write every byte; the kernel may take fewer at a time."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view[:_CHUNK]) :]


def _fill(here: Beneath, fd: int, data: bytes, *, like: str | None, sync: bool) -> None:
    if like is not None:
        with here.opened(like, READ) as source:
            kernel.copy_attributes(source, fd)
    write_all(fd, data)
    if sync:
        kernel.sync_file(fd)


def _read_all(fd: int, expected: int) -> bytes:
    data = os.read(fd, expected + 1)
    if len(data) == expected:
        return data
    pieces = [data]
    while data and sum(map(len, pieces)) <= MOST_BYTES:
        data = os.read(fd, _CHUNK)
        pieces.append(data)
    return b"".join(pieces)


def _stamp(found: os.stat_result) -> tuple[int, int, int]:
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _exists(here: Beneath, path: str) -> bool:
    try:
        here.stat(path)
    except FileNotFoundError:
        return False
    return True


def _aside(temp: str) -> str:
    return temp.removesuffix(".tmp") + "-old.tmp"


def _exchange(here: Beneath, temp: str, path: str) -> None:
    try:
        return kernel.exchange(*here.spots(temp, path))
    except OSError as error:
        if error.errno not in kernel.CANNOT_RENAME_SO:
            raise
    # FUSE and some network disks: a second name for the old file first, so that the rename over it loses nothing.
    _duplicate(here, path, _aside(temp))
    rename_over(here, temp, path)
    return rename_over(here, _aside(temp), temp)


def _rename_new(here: Beneath, source: str, target: str) -> None:
    try:
        return kernel.rename_new(*here.spots(source, target))
    except OSError as error:
        if error.errno not in kernel.CANNOT_RENAME_SO:
            raise
    try:
        _link(here, source, target)
    except OSError as error:
        if error.errno not in kernel.CANNOT_LINK or error.errno == errno.EXDEV:
            raise
    else:
        return remove(here, source)
    # Neither call: the vault's lock keeps our own kind away between the look and the rename.
    if _exists(here, target):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)
    return rename_over(here, source, target)


def _link(here: Beneath, source: str, target: str) -> None:
    above, old, folder, new = here.spots(source, target)
    os.link(old, new, src_dir_fd=above, dst_dir_fd=folder, follow_symlinks=False)


def _duplicate(here: Beneath, source: str, target: str) -> None:
    try:
        return _link(here, source, target)
    except OSError as error:
        if error.errno not in kernel.CANNOT_LINK:
            raise
    data, _ = read_file(here, source)
    with here.opened(target, WRITE_NEW) as fd:
        return _fill(here, fd, data, like=source, sync=True)


def _carry_across(here: Beneath, source: str, target: str) -> None:
    data, _ = read_file(here, source)
    temp, _ = stage(here, parent(target), data, like=source, sync=True, hold=False)
    try:
        _rename_new(here, temp, target)
    except BaseException:
        remove(here, temp)
        raise
    if hash_of(here, source) != sha256(data):
        raise Unavailable(f"{source!r} changed while it was copied to another disk.", hint="It stands at both places.")
    remove(here, source)
