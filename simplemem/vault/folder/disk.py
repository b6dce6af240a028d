"""The file operations of a write: stage a text, swap it with a note, move a file, sync to the disk.

Each operation leaves either the old file or the new one. A displaced file is checked before a write
counts as done, and a file that another program may have written is never removed.
docs/internals/writing.md#steps-of-a-write has the steps of a write.
"""

from __future__ import annotations

import ctypes
import errno
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

from simplemem.errors import SimplememError, TooLong, Unavailable, Unreadable
from simplemem.note.names import Parts, parent
from simplemem.vault.folder.dir_handles import READ, WRITE_NEW, DirHandles, retry
from simplemem.vault.values import Entry, sha256

TEMP = re.compile(r"\.simplemem-(\d{1,10})-[0-9a-f]{24}(?:-old)?\.tmp")
"""The name of a staged file; the group is the number of the process that wrote it."""

MAX_FILE_BYTES = 64 << 20
SYNC = READ if sys.platform != "win32" else READ | os.O_RDWR
"""The flags to open a file that is to be synced."""

_MAX_READS = 12
_MAX_WRITE_BYTES = 1 << 20  # of one system call
_MAX_SYNC_THREADS = 8  # that many files, or fewer, are synced one after the other

# renameat2 fails with EINVAL on FUSE and many network disks, with ENOSYS on an old kernel, and with
# ENOTSUP on FAT under macOS.
_NO_SUCH_RENAME = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP})
# A hard link fails with EPERM on FAT, with EACCES on the shared storage of Android, and with EMLINK
# if the file has too many names already.
_NO_LINKS = frozenset({*_NO_SUCH_RENAME, errno.EPERM, errno.EACCES, errno.EMLINK})

if sys.platform == "win32":
    _WRITE_THROUGH = 0x8
    _IGNORE_MERGE_ERRORS = 0x2
    _kernel32 = ctypes.WinDLL("kernel32", use_last_error=True)

    def _call_kernel(name: str, *arguments: object) -> None:
        """Call a function of Windows that returns 0 for an error. Raises OSError then."""
        function = getattr(_kernel32, name)
        if not function(*arguments):
            raise ctypes.WinError(ctypes.get_last_error())

    def exchange(_: int | None, temp: str, __: int | None, name: str) -> None:
        """Swap two files; the target keeps its ACL. Halfway, the old file has its backup name.

        The names are full paths, because folders have no descriptors here.
        """
        backup = backup_name(temp)
        retry(
            lambda: _call_kernel(
                "ReplaceFileW", name, temp, backup, _IGNORE_MERGE_ERRORS, None, None
            )
        )
        retry(lambda: _call_kernel("MoveFileExW", backup, temp, _WRITE_THROUGH))

    def rename_new(_: int | None, source: str, __: int | None, name: str) -> None:
        """Rename a file. Raises FileExistsError if the new name is in use."""
        retry(lambda: _call_kernel("MoveFileExW", source, name, _WRITE_THROUGH))
else:
    import fcntl

    _libc = ctypes.CDLL(None, use_errno=True)

    if sys.platform == "darwin":
        _AT_FDCWD = -2
        _NO_REPLACE = 0x4
        _EXCHANGE = 0x2
        _rename = getattr(_libc, "renameatx_np", None)
    else:
        _AT_FDCWD = -100
        _NO_REPLACE = 0x1
        _EXCHANGE = 0x2
        _rename = getattr(_libc, "renameat2", None)

    if _rename is None:
        # musl has no function for this call, so it is made by its number.
        _call_numbers = {"x86_64": 316, "aarch64": 276}
        _call_number = _call_numbers.get(os.uname().machine)
        if _call_number:
            _rename = partial(_libc.syscall, ctypes.c_long(_call_number))

    def _rename_with(
        source_folder: int | None,
        source: str,
        folder: int | None,
        name: str,
        flags: int,
    ) -> None:
        """Call renameat2, or renameatx_np on macOS, with flags. Raises OSError if it fails.

        It has the code ENOSYS if the system has no such call. A folder is a descriptor, or None for
        the current one.
        """
        if _rename is None:
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), source, None, name)

        result = _rename(
            ctypes.c_int(_AT_FDCWD if source_folder is None else source_folder),
            os.fsencode(source),
            ctypes.c_int(_AT_FDCWD if folder is None else folder),
            os.fsencode(name),
            ctypes.c_uint(flags),
        )
        if result:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), source, None, name)

    def exchange(temp_folder: int | None, temp: str, folder: int | None, name: str) -> None:
        """Swap two files in one step: at every moment, both names exist.

        Raises OSError, with a code of `_NO_SUCH_RENAME` if the system or the disk cannot.
        """
        _rename_with(temp_folder, temp, folder, name, _EXCHANGE)

    def rename_new(source_folder: int | None, source: str, folder: int | None, name: str) -> None:
        """Rename a file. Raises FileExistsError if the new name is in use.

        Raises OSError with a code of `_NO_SUCH_RENAME` if the system or the disk cannot.
        """
        _rename_with(source_folder, source, folder, name, _NO_REPLACE)


def copy_attributes(source: int, target: int) -> None:
    """Give an open file the owner, mode and extended attributes of another.

    `source` and `target` are descriptors. An owner or attribute that may not be set is left out.
    On Windows, this does nothing: the swap keeps them. Raises OSError if the mode cannot be set.
    """
    if sys.platform == "win32":
        return

    old = os.fstat(source)
    new = os.fstat(target)
    if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
        # Only root may change the owner. The note can be read either way.
        with suppress(OSError):
            os.fchown(target, old.st_uid, old.st_gid)
    if old.st_mode != os.fstat(target).st_mode:  # read again: fchown may clear bits of the mode
        os.fchmod(target, old.st_mode & 0o7777)

    if sys.platform == "darwin":
        acl_and_attributes = 0x1 | 0x4  # COPYFILE_ACL, COPYFILE_XATTR
        _libc.fcopyfile(source, target, None, ctypes.c_uint32(acl_and_attributes))
    else:
        # Some disks have no extended attributes, and some attributes are for root alone.
        with suppress(OSError):
            for name in os.listxattr(source):
                with suppress(OSError):
                    os.setxattr(target, name, os.getxattr(source, name))


def sync_file(fd: int, *, last: bool = False) -> None:
    """Wait until the bytes of an open file are on the disk.

    With `last`, the write is reported to the user after this, so even the cache of the drive is
    emptied. Raises OSError.
    """
    if sys.platform == "darwin":
        # On macOS, fsync leaves the bytes in the cache of the drive, which a power cut may write in
        # any order. A barrier keeps the order, which is enough until the last sync; F_FULLFSYNC
        # then empties the cache. Shares and foreign disks support neither.
        barrier = getattr(fcntl, "F_BARRIERFSYNC", 85)
        with suppress(OSError):
            fcntl.fcntl(fd, fcntl.F_FULLFSYNC if last else barrier)
            return
    os.fsync(fd)


def read_file(
    root: DirHandles, path: str, limit: int = MAX_FILE_BYTES
) -> tuple[bytes, os.stat_result]:
    """Return the bytes of a regular file, and the stat that belongs to them.

    If another program writes to the file, it is read again (F30). A file that never rests is
    returned as it was last seen: its hash protects a write that is based on it. Raises Unreadable
    for a folder or a device, TooLong for more than `limit` bytes, and OSError if it cannot be
    opened, such as for a missing file or a link.
    """
    with root.opened(path, READ) as fd:
        for attempt in range(1, _MAX_READS + 1):
            first_stat = os.fstat(fd)
            size = first_stat.st_size
            if not stat.S_ISREG(first_stat.st_mode):
                raise Unreadable(f"{path!r} is not a regular file")
            if size > limit:
                raise TooLong(f"{path!r} has {size:,} bytes; the limit is {limit:,}")

            data = read_at(fd, 0, size)
            last_stat = os.fstat(fd)
            is_complete = len(data) == last_stat.st_size
            # Entries have the size, the times and the inode, and not the time of the last read.
            if is_complete and entry_of("", first_stat) == entry_of("", last_stat):
                break
            time.sleep(0.001 * attempt)
        return data, last_stat


def read_at(fd: int, start: int, size: int) -> bytes:
    """Return up to `size` bytes of an open file, from the offset `start` on.

    Fewer are returned only at the end of the file.
    """
    data = b""
    if size > 0:
        os.lseek(fd, start, os.SEEK_SET)
    while len(data) < size:
        piece = os.read(fd, size - len(data))
        if not piece:
            break
        data += piece
    return data


def entry_of(path: str, file_stat: os.stat_result) -> Entry:
    """Return the entry of a file whose stat is known."""
    return Entry(
        path,
        file_stat.st_size,
        file_stat.st_mtime_ns,
        file_stat.st_ctime_ns,
        file_stat.st_ino,
    )


def entry_at(root: DirHandles, path: str) -> Entry | None:
    """Return the entry of a regular file, None if there is none.

    None also for a link or a folder. Raises other errors of the disk as OSError.
    """
    try:
        file_stat = root.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not stat.S_ISREG(file_stat.st_mode):
        return None
    return entry_of(path, file_stat)


def hash_of(root: DirHandles, path: str) -> str | None:
    """Return the SHA-256 hash of the file at a path, None if there is none.

    Raises as `read_file` does for what is there but cannot be read.
    """
    try:
        data, _ = read_file(root, path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return sha256(data)


class ConcurrentWrite(Exception):
    """Another program changed or removed a file just before it was moved or swapped.

    The text of that program is in place. `digest` and `data` are its hash and its bytes: None if
    the file is gone, or if they need not be kept.
    """

    def __init__(self, path: str, digest: str | None, data: bytes | None = None) -> None:
        super().__init__(path)
        self.path = path
        self.digest = digest
        self.data = data


def stage(
    root: DirHandles,
    folder: Parts,
    data: bytes,
    *,
    like: str | None,
    sync: bool,
    at: float | None = None,
) -> str:
    """Write `data` to a new staged file in a folder; return its path from the root on.

    The folder must exist. The file gets the attributes of the note `like`, and the modification
    time `at` in seconds, if these are not None; Windows ignores `at`. With `sync`, it is on the
    disk afterwards. If anything fails, the file is removed and the error raised.
    """
    name = f".simplemem-{os.getpid()}-{secrets.token_hex(12)}.tmp"
    path = "/".join((*folder, name))
    try:
        with root.opened(path, WRITE_NEW) as fd:
            if like is not None:
                with root.opened(like, READ) as source:
                    copy_attributes(source, fd)
            write_all(fd, data)
            if at is not None and os.utime in os.supports_fd:
                os.utime(fd, (at, at))
            if sync:
                sync_file(fd)
    except BaseException:
        remove(root, path)
        raise
    return path


@contextmanager
def staged(
    root: DirHandles,
    path: str,
    data: bytes,
    *,
    like: str | None = None,
    sync: bool = True,
) -> Iterator[str]:
    """Stage a file for a block that puts it in place at `path`; yield the path of the file.

    The file is beside `path`. If the block fails, it is removed; otherwise the block has moved it.
    """
    temp = stage(root, parent(path), data, like=like, sync=sync)
    try:
        yield temp
    except BaseException:
        remove(root, temp)
        raise


def swap(root: DirHandles, temp: str, path: str, *, expected: str, replacement: str) -> None:
    """Swap the staged file `temp` with the file at `path`, whose hash must be `expected`.

    `replacement` is the hash of the staged file. Afterwards, the old file is at `temp`. Raises
    ConcurrentWrite if there is no file at `path` any more, or if another program saved it just
    before: its text is then at `path` again. If the program saved twice, the later text is at
    `path`, and the earlier one is left at `temp`. Raises OSError, Unreadable or TooLong if what was
    at `path` cannot be read; it is back there then.
    """
    try:
        _swap_files(root, temp, path)
    except FileNotFoundError as error:
        if entry_at(root, temp) is not None:
            raise ConcurrentWrite(path, None) from error
        raise

    try:
        data, _ = read_file(root, temp)
    except (OSError, SimplememError):
        # A link, a folder or a failing disk: it is not the expected file, so it goes back.
        _swap_files(root, temp, path)
        raise
    digest = sha256(data)
    if digest == expected:
        return

    _swap_files(root, temp, path)  # the text of the other program goes back
    if hash_of(root, temp) != replacement:
        # It was not our text that this took away, but a later save, which has to stay.
        _swap_files(root, temp, path)
    raise ConcurrentWrite(path, digest, data)


def move_file(root: DirHandles, source: str, target: str) -> None:
    """Move a file within a vault, or copy it to another disk and remove it.

    Never overwrites: raises FileExistsError if the target exists. Raises FileNotFoundError if there
    is no source, other errors of the disk as OSError, and Unavailable if the file changed while it
    was copied; it is then in both places.
    """
    try:
        _move_new(root, source, target)
        return
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
    _move_to_other_disk(root, source, target)


def _move_to_other_disk(root: DirHandles, source: str, target: str) -> None:
    """Copy a file to its target on another disk, and remove the source if it did not change.

    Raises FileExistsError if the target exists, and Unavailable if the file changed meanwhile.
    """
    data, _ = read_file(root, source)
    with staged(root, target, data, like=source) as temp:
        _move_new(root, temp, target)

    if hash_of(root, source) != sha256(data):
        hint = "The file now exists in both places."
        message = f"{source!r} changed while it was copied to another disk"
        raise Unavailable(message, hint=hint)
    remove(root, source)


def write_own_file(root: DirHandles, path: str, data: bytes, *, sync: bool) -> None:
    """Write a file of simplemem's own in one step. An existing file is replaced.

    With `sync`, its bytes are on the disk before it is in place. The folder must exist.
    """
    with staged(root, path, data, sync=sync) as temp:
        rename_over(root, temp, path)


def write_file(path: Path, data: bytes) -> None:
    """Write a file that is no note, synced and in one step; replace one that exists.

    If it is interrupted, the old file stays, or there is none. The folder must exist.
    """
    folder = os.path.abspath(path.parent)
    with DirHandles(folder) as root:
        write_own_file(root, path.name, data, sync=True)


def change_file(path: Path, old_data: bytes | None, data: bytes, keep: str) -> None:
    """Write a file that is no note, in place of the one with the bytes `old_data`.

    If `old_data` is None, there must be no file. The new file gets the attributes of the old one,
    which stays beside it under the name `keep`, or is removed if that is "". Raises ConcurrentWrite
    if the file has other bytes by now, FileExistsError if there is one by now, and
    FileNotFoundError or ConcurrentWrite if it is gone.
    """
    folder = os.path.abspath(path.parent)
    name = path.name
    with DirHandles(folder) as root:
        if old_data is None:
            with staged(root, name, data) as temp:
                _move_new(root, temp, name)
            return

        with staged(root, name, data, like=name) as temp:
            swap(
                root,
                temp,
                name,
                expected=sha256(old_data),
                replacement=sha256(data),
            )
        if keep:
            rename_over(root, temp, keep)
        else:
            remove(root, temp)


def _swap_files(root: DirHandles, temp: str, path: str) -> None:
    """Swap two files without looking at their texts.

    On a disk without an exchange, the old file has a backup name meanwhile.
    """
    try:
        exchange(*root.locate_both(temp, path))
        return
    except OSError as error:
        if error.errno not in _NO_SUCH_RENAME:
            raise

    # FUSE and some network disks: the old file gets a second name, so that the rename over its
    # first one loses nothing. Without hard links, it is copied.
    backup = backup_name(temp)
    if not _link(root, path, backup):
        data, _ = read_file(root, path)
        with staged(root, backup, data, like=path) as copy:
            rename_over(root, copy, backup)
    rename_over(root, temp, path)
    rename_over(root, backup, temp)


def _move_new(root: DirHandles, source: str, target: str) -> None:
    """Move a file within a disk. Raises FileExistsError if the target exists.

    On another disk, raises OSError with the code EXDEV.
    """
    try:
        rename_new(*root.locate_both(source, target))
        return
    except OSError as error:
        if error.errno not in _NO_SUCH_RENAME:
            raise

    if _link(root, source, target):
        remove(root, source)
        return
    # The disk has neither call. Between the check and the rename, the vault's lock keeps other
    # processes of simplemem away.
    with suppress(FileNotFoundError):
        root.stat(target)  # raises FileNotFoundError if the target is free
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)
    rename_over(root, source, target)


def _link(root: DirHandles, source: str, target: str) -> bool:
    """Give a file a second name; return False if the disk cannot. Other errors are raised."""
    source_folder, old_name, folder, new_name = root.locate_both(source, target)
    try:
        os.link(
            old_name,
            new_name,
            src_dir_fd=source_folder,
            dst_dir_fd=folder,
            follow_symlinks=False,
        )
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        return False
    return True


def rename_over(root: DirHandles, source: str, target: str) -> None:
    """Rename a file; an existing target is replaced without a check.

    The target must be free, a file of simplemem's own, or a file that has another name too.
    """
    source_folder, old_name, folder, new_name = root.locate_both(source, target)
    retry(
        lambda: os.replace(
            old_name,
            new_name,
            src_dir_fd=source_folder,
            dst_dir_fd=folder,
        )
    )


def backup_name(temp: str) -> str:
    """Return the path of the old file while a disk without an exchange swaps it with `temp`.

    It is beside the staged file `temp`.
    """
    return temp.removesuffix(".tmp") + "-old.tmp"


def remove(root: DirHandles, path: str) -> None:
    """Remove a file of simplemem's own. A file that does not exist is no error.

    Its folder must exist. Raises OSError.
    """
    folder, name = root.locate(path)
    with suppress(FileNotFoundError):
        retry(lambda: os.unlink(folder.name(name), dir_fd=folder.fd))


def sync_paths(root_path: str, paths: Sequence[str]) -> None:
    """Sync files, given by their paths below a root, to the disk. Raises OSError if one fails.

    Many files are synced in threads: the journal of the disk is written once for all that wait.
    """
    if len(paths) <= _MAX_SYNC_THREADS:
        for path in paths:
            _sync_path(root_path, path)
        return

    from concurrent.futures import ThreadPoolExecutor  # imported late: few writes need it

    with ThreadPoolExecutor(_MAX_SYNC_THREADS) as executor:
        results = executor.map(partial(_sync_path, root_path), paths)
        for _ in results:  # an error of a thread is raised here
            pass


def _sync_path(root_path: str, path: str) -> None:
    """Sync one file below a root to the disk."""
    with DirHandles(root_path) as root, root.opened(path, SYNC) as fd:
        sync_file(fd)


def append_lines(fd: int, lines: bytes) -> None:
    """Append whole lines to an open file, all or none; first close a line that a crash cut off.

    `lines` have their line ends. Raises OSError, with the file as it was, if the disk is full.
    """
    size = os.lseek(fd, 0, os.SEEK_END)
    if size:
        last_byte = read_at(fd, size - 1, 1)
        if last_byte != b"\n":
            lines = b"\n" + lines

    try:
        write_all(fd, lines)
    except OSError:
        os.ftruncate(fd, size)
        raise


def write_all(fd: int, data: bytes) -> None:
    """Write every byte, in as many system calls as it takes."""
    rest = memoryview(data)
    while rest:
        count = os.write(fd, rest[:_MAX_WRITE_BYTES])
        rest = rest[count:]
