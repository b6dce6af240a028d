"""The verbs of the write protocol (durability.md §3): stage, swap, carry. Each leaves the old file or the new one. What
was displaced is looked at before anything is called done, and no file that another program may have written unlinked."""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
import re
import secrets
import stat
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from simplemem.errors import SimplememError, TooLong, Unavailable, Unreadable
from simplemem.vault.paths import READ, WRITE_NEW, Beneath, Parts, parent, patiently

TEMP = re.compile(r"\.simplemem-(\d{1,10})-[0-9a-f]{24}(?:-old)?\.tmp")
MOST_BYTES = 64 << 20
_TRIES = 12
_CHUNK = 1 << 20
_FEW = 8  # files that are synced one after the other, and threads that sync more than that
SYNC = READ if sys.platform != "win32" else READ | os.O_RDWR
# renameat2 on FUSE and many network disks answers EINVAL, an old kernel ENOSYS, macOS on FAT ENOTSUP.
_NO_SUCH_RENAME = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP})
# FAT answers EPERM, Android's shared storage EACCES; EMLINK is a file with too many names already.
_NO_LINKS = frozenset({*_NO_SUCH_RENAME, errno.EPERM, errno.EACCES, errno.EMLINK})

if sys.platform == "win32":
    _WRITE_THROUGH, _IGNORE_MERGE_ERRORS = 0x8, 0x2
    _kernel32 = ctypes.WinDLL("kernel32", use_last_error=True)

    def _called(name: str, *given: object) -> None:
        if not getattr(_kernel32, name)(*given):
            raise ctypes.WinError(ctypes.get_last_error())

    def exchange(_: int | None, temp: str, __: int | None, name: str) -> None:
        """Let two files change places; the target keeps its ACL. Halfway the old file is found under its name aside."""
        patiently(
            lambda: _called(
                "ReplaceFileW", name, temp, aside(temp), _IGNORE_MERGE_ERRORS, None, None
            )
        )
        patiently(lambda: _called("MoveFileExW", aside(temp), temp, _WRITE_THROUGH))

    def rename_new(_: int | None, source: str, __: int | None, name: str) -> None:
        """Rename, never onto something: FileExistsError instead."""
        patiently(lambda: _called("MoveFileExW", source, name, _WRITE_THROUGH))
else:
    import fcntl

    _libc = ctypes.CDLL(None, use_errno=True)
    _AT_FDCWD, _NO_REPLACE, _EXCHANGE = (
        (-2, 0x4, 0x2) if sys.platform == "darwin" else (-100, 0x1, 0x2)
    )
    _rename = getattr(_libc, "renameatx_np" if sys.platform == "darwin" else "renameat2", None)
    if _rename is None and (_NUMBER := {"x86_64": 316, "aarch64": 276}.get(os.uname().machine)):
        _rename = partial(_libc.syscall, ctypes.c_long(_NUMBER))  # musl: the call by its number

    def _renamed(folder: int | None, source: str, to: int | None, target: str, flags: int) -> None:
        above, below = (ctypes.c_int(_AT_FDCWD if fd is None else fd) for fd in (folder, to))
        names = os.fsencode(source), os.fsencode(target)
        if _rename is None:
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), source, None, target)
        if _rename(above, names[0], below, names[1], ctypes.c_uint(flags)):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), source, None, target)

    def exchange(temp_folder: int | None, temp: str, folder: int | None, name: str) -> None:
        """Let two files change places in one step; no moment shows neither."""
        _renamed(temp_folder, temp, folder, name, _EXCHANGE)

    def rename_new(source_folder: int | None, source: str, folder: int | None, name: str) -> None:
        """Rename, never onto something: FileExistsError instead."""
        _renamed(source_folder, source, folder, name, _NO_REPLACE)


def copy_attributes(source: int, target: int) -> None:
    """Give the new file the old one's owner, mode and extended attributes, as far as we may."""
    if sys.platform == "win32":
        return
    old, new = os.fstat(source), os.fstat(target)
    if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
        with suppress(
            OSError
        ):  # only root may give a file away; the note stays readable either way
            os.fchown(target, old.st_uid, old.st_gid)
    if old.st_mode != os.fstat(target).st_mode:
        os.fchmod(target, old.st_mode & 0o7777)
    if sys.platform == "darwin":
        _libc.fcopyfile(
            source, target, None, ctypes.c_uint32(0x1 | 0x4)
        )  # COPYFILE_ACL, COPYFILE_XATTR
    else:
        with suppress(OSError):  # best effort: some disks carry none, some are for root alone
            for key in os.listxattr(source):
                with suppress(OSError):
                    os.setxattr(target, key, os.getxattr(source, key))


def sync_file(fd: int, *, last: bool = False) -> None:
    """Wait until the file's bytes are on the disk; `last` says that a write is answered after this."""
    if sys.platform == "darwin":
        # There fsync leaves them in the drive's cache, which a power cut may write in any order. A barrier keeps the
        # order, enough until the end; F_FULLFSYNC then empties the cache. Shares and foreign disks know neither.
        with suppress(OSError):
            fcntl.fcntl(fd, fcntl.F_FULLFSYNC if last else getattr(fcntl, "F_BARRIERFSYNC", 85))
            return
    os.fsync(fd)


class Entry(NamedTuple):
    """One regular file as the disk shows it. `path` is spelled as the disk spells it, with `/`."""

    path: str
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


def sha256(data: bytes) -> str:
    """The identity of a text."""
    return hashlib.sha256(data).hexdigest()


def read_file(here: Beneath, path: str, limit: int = MOST_BYTES) -> tuple[bytes, os.stat_result]:
    """All bytes of a regular file, and the stat they belong to: read again while somebody writes into it (F30)."""
    with here.opened(path, READ) as fd:
        for attempt in range(_TRIES):
            before = os.fstat(fd)
            if not stat.S_ISREG(before.st_mode):
                raise Unreadable(f"{path!r} is not a regular file")
            if before.st_size > limit:
                raise TooLong(f"{path!r} has {before.st_size:,} bytes; the limit is {limit:,}")
            data = read_at(fd, 0, before.st_size)
            after = os.fstat(fd)
            if len(data) == after.st_size and entry_of("", before) == entry_of("", after):
                break
            time.sleep(0.001 * (attempt + 1))
        # A file that never rests is given as last seen: the hash guards whoever wants to change it.
        return data, after


def read_at(fd: int, start: int, most: int) -> bytes:
    """What stands in an open file from `start` on, up to so many bytes."""
    data = b""
    if most > 0:
        os.lseek(fd, start, os.SEEK_SET)
    while len(data) < most and (piece := os.read(fd, most - len(data))):
        data = data + piece if data else piece
    return data


def entry_of(path: str, found: os.stat_result) -> Entry:
    """The entry that a stat makes."""
    return Entry(path, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)


def entry_at(here: Beneath, path: str) -> Entry | None:
    """The entry of one regular file, None when there is none."""
    try:
        found = here.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return entry_of(path, found) if stat.S_ISREG(found.st_mode) else None


def hash_of(here: Beneath, path: str) -> str | None:
    """The hash of what lies at a path, None when nothing does."""
    try:
        return sha256(read_file(here, path)[0])
    except (FileNotFoundError, NotADirectoryError):
        return None


class Intruded(Exception):
    """Somebody else changed the file between our look and our move; it is back as they left it. `data` is theirs."""

    def __init__(self, path: str, found: str | None, data: bytes | None = None) -> None:
        super().__init__(path)
        self.path, self.found, self.data = path, found, data


def stage(
    here: Beneath,
    folder: Parts,
    data: bytes,
    *,
    like: str | None,
    sync: bool,
    at: float | None = None,
) -> str:
    """Write `data` to a new file of ours in `folder`: its path. `like` names the note whose mode and so on it gets, `at`
    is when it was changed last, in seconds, if that is not now."""
    path = "/".join((*folder, f".simplemem-{os.getpid()}-{secrets.token_hex(12)}.tmp"))
    try:
        with here.opened(path, WRITE_NEW) as fd:
            if like is not None:
                with here.opened(like, READ) as source:
                    copy_attributes(source, fd)
            write_all(fd, data)
            if at is not None and os.utime in os.supports_fd:
                os.utime(fd, (at, at))
            if sync:
                sync_file(fd)
    except BaseException:
        remove(here, path)
        raise
    return path


@contextmanager
def staged(
    here: Beneath, path: str, data: bytes, *, like: str | None = None, sync: bool = True
) -> Iterator[str]:
    """A staged file for whoever puts it in the place of `path`; should that fail, it goes."""
    temp = stage(here, parent(path), data, like=like, sync=sync)
    try:
        yield temp
    except BaseException:
        remove(here, temp)
        raise


def swap(here: Beneath, temp: str, path: str, *, expected: str, ours: str) -> None:
    """Let our `temp` and `path` change places. If what was there is not `expected`, somebody saved just then: it goes
    back, and Intruded tells. Should they save once more meanwhile, the earlier save is left at `temp`."""
    try:
        _trade(here, temp, path)
    except FileNotFoundError as error:
        if entry_at(here, temp) is not None:
            raise Intruded(path, None) from error
        raise
    try:
        data = read_file(here, temp)[0]
    except (
        OSError,
        SimplememError,
    ):  # a link, a folder, a failing disk: it is not what we expected
        _trade(here, temp, path)
        raise
    found = sha256(data)
    if found == expected:
        return
    _trade(here, temp, path)
    if hash_of(here, temp) != ours:
        _trade(here, temp, path)
    raise Intruded(path, found, data)


def carry(here: Beneath, source: str, target: str) -> None:
    """Move a file to where nothing is: FileExistsError otherwise. Across a mount point it is copied."""
    try:
        return _move_new(here, source, target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
    data, _ = read_file(here, source)
    with staged(here, target, data, like=source) as temp:
        _move_new(here, temp, target)
    if hash_of(here, source) != sha256(data):
        raise Unavailable(
            f"{source!r} changed while it was copied to another disk",
            hint="The file now exists in both places.",
        )
    return remove(here, source)


def put(here: Beneath, path: str, data: bytes, *, sync: bool) -> None:
    """Give a file of ours its bytes, in one step: whatever was there goes."""
    with staged(here, path, data, sync=sync) as temp:
        rename_over(here, temp, path)


def write_file(path: Path, data: bytes) -> None:
    """Put a file that is no note in place, whole: whoever interrupts this has the old one, or none."""
    with Beneath(os.path.abspath(path.parent)) as here:
        put(here, path.name, data, sync=True)


def change_file(path: Path, before: bytes | None, data: bytes, keep: str) -> None:
    """Put a file that is no note in the place of the one that says `before` (None: of none), with its mode and all. That
    one stays beside it under the name `keep`, if there is one. Intruded or FileExistsError: it says something else now."""
    with Beneath(os.path.abspath(path.parent)) as here:
        with staged(here, path.name, data, like=path.name if before is not None else None) as temp:
            if before is None:
                return _move_new(here, temp, path.name)
            swap(here, temp, path.name, expected=sha256(before), ours=sha256(data))
        return rename_over(here, temp, keep) if keep else remove(here, temp)


def _trade(here: Beneath, temp: str, path: str) -> None:
    try:
        return exchange(*here.spots(temp, path))
    except OSError as error:
        if error.errno not in _NO_SUCH_RENAME:
            raise
    # FUSE and some network disks: a second name for the old file first, so that the rename over it loses nothing.
    old = aside(temp)
    if not _link(here, path, old):
        with staged(here, old, read_file(here, path)[0], like=path) as copied:
            rename_over(here, copied, old)
    rename_over(here, temp, path)
    return rename_over(here, old, temp)


def _move_new(here: Beneath, source: str, target: str) -> None:
    try:
        return rename_new(*here.spots(source, target))
    except OSError as error:
        if error.errno not in _NO_SUCH_RENAME:
            raise
    if _link(here, source, target):
        return remove(here, source)
    # Neither call: the vault's lock keeps our own kind away between the look and the rename.
    with suppress(FileNotFoundError):
        here.stat(target)
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)
    return rename_over(here, source, target)


def _link(here: Beneath, source: str, target: str) -> bool:
    """Give a file a second name; whether the disk can."""
    above, old, folder, new = here.spots(source, target)
    try:
        os.link(old, new, src_dir_fd=above, dst_dir_fd=folder, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        return False
    return True


def rename_over(here: Beneath, source: str, target: str) -> None:
    """Put a file of ours in the place of another of ours: whatever was there goes."""
    above, old, folder, new = here.spots(source, target)
    patiently(lambda: os.replace(old, new, src_dir_fd=above, dst_dir_fd=folder))


def aside(temp: str) -> str:
    """The name that the old file has beside a staged one, while a disk without exchange swaps them."""
    return temp.removesuffix(".tmp") + "-old.tmp"


def remove(here: Beneath, path: str) -> None:
    """Unlink a file that is ours alone. No error when it is gone."""
    folder, name = here.spot(path)
    with suppress(FileNotFoundError):
        patiently(lambda: os.unlink(folder.name(name), dir_fd=folder.fd))


def sync_paths(root: str, paths: Sequence[str]) -> None:
    """Make files of ours durable. Many are waited for at once: a disk's journal is written once for all who wait."""

    def sync(path: str) -> None:
        with Beneath(root) as here, here.opened(path, SYNC) as fd:
            sync_file(fd)

    if len(paths) <= _FEW:
        list(map(sync, paths))
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(_FEW) as threads:
        list(threads.map(sync, paths))


def append_lines(fd: int, lines: bytes) -> None:
    """Add whole lines to an open file, all or none, also behind one that a crash tore."""
    size = os.lseek(fd, 0, os.SEEK_END)
    if size and read_at(fd, size - 1, 1) != b"\n":
        lines = b"\n" + lines
    try:
        write_all(fd, lines)
    except OSError:
        os.ftruncate(fd, size)
        raise


def write_all(fd: int, data: bytes) -> None:
    """Write every byte; the kernel may take fewer at a time."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view[:_CHUNK]) :]
