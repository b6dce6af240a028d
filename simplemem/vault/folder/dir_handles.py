"""Open the folders of a vault without ever leaving it, and explain errors of the system.

Each vault path passes through `DirHandles`, which opens one folder after the other with O_NOFOLLOW.
So neither `..`, nor a link, nor a folder that is replaced by a link leads out of the vault
(F36-F39). An OSError becomes the error of simplemem that says what it means for the user.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple, Self, TypeVar

from simplemem.errors import (
    Invalid,
    NotFound,
    ReadOnly,
    SimplememError,
    TooLong,
    Unavailable,
    Unreadable,
)
from simplemem.note.names import Parts

# -- errors of the operating system

# Errors of Windows while another program has a file open: a sharing violation, a lock violation,
# and a mapped file.
_OPEN_ELSEWHERE = frozenset((32, 33, 1224))


class _Meaning(NamedTuple):
    """What an OSError means for the user: the type of the error, its cause, and a hint."""

    error: type[SimplememError]
    cause: str
    hint: str


_DISK_FULL = _Meaning(
    Unavailable, "the disk is full", "Free some space and try again. Nothing was changed."
)
_TOO_MANY_FILES = _Meaning(Unavailable, "too many files are open", "Try again in a moment.")
_NOT_PERMITTED = _Meaning(
    Unreadable, "permission denied", "Check the owner and the permissions of the file."
)
_NOT_WRITABLE = _Meaning(
    ReadOnly,
    "the disk or the permissions do not allow writing",
    "Check the owner and the permissions of the folder.",
)
_FOLDER_IS_GONE = _Meaning(
    Unavailable,
    "a folder was deleted or moved meanwhile",
    "List the folder, then try again.",
)
_IN_USE = _Meaning(Unavailable, "another program has it open", "Try again in a moment.")
_MEANINGS = {
    errno.ENOSPC: _DISK_FULL,
    getattr(errno, "EDQUOT", errno.ENOSPC): _DISK_FULL,
    errno.EFBIG: _DISK_FULL,
    errno.EMFILE: _TOO_MANY_FILES,
    errno.ENFILE: _TOO_MANY_FILES,
    errno.EACCES: _NOT_PERMITTED,
    errno.EPERM: _NOT_PERMITTED,
    errno.EROFS: _NOT_WRITABLE,
    errno.ENAMETOOLONG: _Meaning(
        TooLong, "the name is too long for the disk", "Use a shorter name."
    ),
    errno.ELOOP: _Meaning(
        Invalid, "it is or leads through a symbolic link", "Name the real file instead."
    ),
    errno.ENOTDIR: _Meaning(Invalid, "a part of it is a file or a link, not a folder", ""),
    errno.EISDIR: _Meaning(Unreadable, "it is a folder", ""),
    errno.ENXIO: _Meaning(Unreadable, "it is not a regular file", ""),
    errno.ENOENT: _Meaning(NotFound, "no such file", ""),
}


@contextmanager
def translating_os_errors(doing: str, path: str, *, writing: bool = False) -> Iterator[None]:
    """Turn an OSError of a block into the error of simplemem that explains it.

    `doing` is a verb for the message, such as "read". With `writing`, the block writes, and a
    missing folder or permission is explained accordingly. Other exceptions pass through.
    """
    try:
        yield
    except OSError as error:
        raise explain(error, doing, path, writing=writing) from error


def explain(error: OSError, doing: str, path: str, *, writing: bool) -> SimplememError:
    """Return the error that says what `error` means for the user. Raises nothing itself.

    `doing` is what was tried at `path`: a verb, such as "read". With `writing`, it was a write.
    """
    meaning = _meaning_of(error, writing=writing)
    message = f"could not {doing} {path!r}: {meaning.cause}"
    return meaning.error(message, hint=meaning.hint)


def _meaning_of(error: OSError, *, writing: bool) -> _Meaning:
    """Return what an OSError means, for a read or a write. An unknown one means a failing disk."""
    code = error.errno
    if getattr(error, "winerror", None) in _OPEN_ELSEWHERE:
        return _IN_USE
    if writing and code == errno.ENOENT:  # a note that does not exist has an error of its own
        return _FOLDER_IS_GONE
    if writing and code in (errno.EACCES, errno.EPERM):
        return _NOT_WRITABLE
    if code in _MEANINGS:
        return _MEANINGS[code]

    # A file that the disk cannot read is one bad file, and the others are fine. A write that failed
    # may have failed anywhere.
    kind = Unavailable if writing else Unreadable
    cause = error.strerror or str(error)
    return _Meaning(kind, cause, "Check the disk, which may be failing.")


# -- handles of folders

OWN_FOLDER = ".simplemem"
"""The folder in a vault for the files of simplemem itself."""

_T = TypeVar("_T")

# Windows has no handles for folders: each component is checked, and then named by its full path.
BY_PATH = sys.platform == "win32"

_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)
# With O_NONBLOCK, a FIFO in the place of a note does not block until somebody writes to it (F37).
READ = (
    os.O_RDONLY
    | _NOFOLLOW
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_BINARY", 0)
)
OVERWRITE = os.O_RDWR | os.O_CREAT | _NOFOLLOW | getattr(os, "O_BINARY", 0)
WRITE_NEW = OVERWRITE | os.O_EXCL
_NEW_FILE_MODE = 0o666

_NAME_SURROGATE_TAG = 0x20000000  # the bit of a reparse point of Windows that leads elsewhere

# Errors of Windows while another program has a file open: access denied, a sharing violation, a
# lock violation, a mapped file, and two for a ReplaceFileW that did not begin.
_TEMPORARY_ERRORS = frozenset((5, 32, 33, 1224, 1175, 1176))
_RETRY_FOR_SECONDS = 2
_RETRY_PAUSE_SECONDS = 0.02


def as_long_path(path: str) -> str:
    """Return an absolute Windows path in the form that may be long and is taken literally.

    A path in this form stays as it is. For Windows only.
    """
    if path.startswith(("\\\\?\\", "\\\\.\\")):
        return path
    if path.startswith("\\\\"):
        return "\\\\?\\UNC\\" + path[2:]
    return "\\\\?\\" + path


def retry(action: Callable[[], _T]) -> _T:
    """Return the result of an action; its errors pass through.

    On Windows, an action that fails because another program has a file open is repeated for two
    seconds. Elsewhere, it is called once.
    """
    deadline = time.monotonic() + _RETRY_FOR_SECONDS if sys.platform == "win32" else 0.0
    while True:
        try:
            return action()
        except OSError as error:
            is_temporary = getattr(error, "winerror", None) in _TEMPORARY_ERRORS
            if not is_temporary or time.monotonic() >= deadline:
                raise
        time.sleep(_RETRY_PAUSE_SECONDS)


class Folder(NamedTuple):
    """An open folder. Its descriptor stays valid if its path is moved or replaced meanwhile.

    `fd` is None on Windows, which has no descriptors of folders.
    """

    path: str
    fd: int | None

    def name(self, child: str) -> str:
        """Return the name of a child for a system call with `dir_fd=self.fd`.

        It is a full path if folders have no descriptors.
        """
        if self.fd is None:
            return os.path.join(self.path, child)
        return child

    def open(self, child: str, flags: int) -> int:
        """Open a file of the folder, but never through a link; return its descriptor.

        `flags` are those of `os.open`. Raises OSError, with ELOOP for a link. If folders have no
        descriptors, a link is only found by a check before.
        """
        if self.fd is None and _is_link(self.name(child)):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), child)
        return retry(
            lambda: os.open(self.name(child), flags | _NOFOLLOW, _NEW_FILE_MODE, dir_fd=self.fd)
        )

    def names(self) -> list[str]:
        """Return the names of all files and folders in it."""
        return os.listdir(self.path if self.fd is None else self.fd)


class _Opened(NamedTuple):
    """A file that is open for a block.

    A class, because a function with `contextmanager` costs as much as to open a file, and a write
    opens twenty.
    """

    fd: int

    def __enter__(self) -> int:
        return self.fd

    def __exit__(self, *error: object) -> None:
        os.close(self.fd)


class DirHandles:
    """The open folders under one root.

    A folder is opened when it is first used, and stays open until `close_all` or the end of the
    block. `made` lists the folders that `make` created, because their names have to be synced.
    """

    def __init__(self, root: str) -> None:
        """Begin with no open folder. `root` is an absolute path, which need not exist yet."""
        self.root = as_long_path(root) if sys.platform == "win32" else root
        self.made: list[Parts] = []
        self._by_path = BY_PATH
        self._folders: dict[Parts, Folder] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close_all()

    def close_all(self) -> None:
        """Close all folders; they are opened again when they are needed.

        An operation on many notes calls this after each of them, to limit the open folders.
        """
        while self._folders:
            _, folder = self._folders.popitem()
            if folder.fd is not None:
                os.close(folder.fd)

    def folder(self, parts: Parts) -> Folder:
        """Return the folder with these components. It is opened without following any link.

        () is the root. Raises Unavailable if there is no root, OSError if the folder does not exist
        or a link is in its place, and Invalid for a component such as "..".
        """
        folder = self._folders.get(parts)
        if folder is None:
            if parts:
                outer = self.folder(parts[:-1])
                folder = self._open_child(outer, parts[-1])
            else:
                folder = self._open_root()
            self._folders[parts] = folder
        return folder

    def locate(self, path: str) -> tuple[Folder, str]:
        """Return the open folder of a path, and the name in it, which need not exist.

        The path may lead to simplemem's own folders, but never out of the root: that is Invalid.
        Raises OSError if the folder does not exist or a link is in its place, and Unavailable if
        there is no root.
        """
        *parts, name = path.split("/")
        return self.folder(tuple(parts)), _checked(name)

    def locate_both(self, source: str, target: str) -> tuple[int | None, str, int | None, str]:
        """Return the folder descriptors and names of two paths, for a system call on two files.

        They are the descriptor and name of `source`, then those of `target`. A descriptor is None
        where folders have none; the name is then a full path. Raises as `locate` does.
        """
        source_folder, old_name = self.locate(source)
        target_folder, new_name = self.locate(target)
        return (
            source_folder.fd,
            source_folder.name(old_name),
            target_folder.fd,
            target_folder.name(new_name),
        )

    def stat(self, path: str) -> os.stat_result:
        """Return the stat of what is at a path; of a link, the link's own.

        Raises OSError if there is nothing, and what `locate` raises.
        """
        folder, name = self.locate(path)
        return os.stat(folder.name(name), dir_fd=folder.fd, follow_symlinks=False)

    def names(self, path: str) -> list[str]:
        """Return the sorted names in one of simplemem's own folders; none if it does not exist.

        `path` is that from the root on.
        """
        parts = tuple(path.split("/"))
        try:
            names = self.folder(parts).names()
        except FileNotFoundError:
            return []
        return sorted(names)

    def opened(self, path: str, flags: int) -> _Opened:
        """Open a file for a `with` block, which gets its descriptor and closes it at the end.

        `flags` are those of `os.open`; a link is never followed. Raises OSError, and Invalid for a
        path that leads out of the root.
        """
        folder, name = self.locate(path)
        return _Opened(folder.open(name, flags))

    def make(self, parts: Parts) -> None:
        """Create a folder, and the missing folders above it; add them to `made`.

        A folder that exists is no error. Raises OSError if a file or a link is in its place.
        """
        for path in self.missing(parts):
            folder, name = self.locate(path)
            with suppress(FileExistsError):
                os.mkdir(folder.name(name), dir_fd=folder.fd)
                self.made.append(tuple(path.split("/")))

    def missing(self, parts: Parts) -> list[str]:
        """Return the paths of the folders that `make` would create, outermost first.

        Creates none. Raises OSError if a file or a link is in the place of one.
        """
        try:
            self.folder(parts)
        except FileNotFoundError:
            return [*self.missing(parts[:-1]), "/".join(parts)]
        return []

    def prune(self, parts: Parts, *, keep: int) -> None:
        """Remove a folder if it is empty, then those above it, except the outermost `keep`.

        Stops at the first folder that is not empty or cannot be removed; this is no error.
        """
        for depth in range(len(parts), keep, -1):
            # Windows does not remove a folder that is open, and elsewhere a removed one stays open.
            self.close_all()
            try:
                folder, name = self.locate("/".join(parts[:depth]))
                os.rmdir(folder.name(name), dir_fd=folder.fd)
            except FileNotFoundError:
                continue  # those above may still be there, and empty
            except OSError:  # it is not empty, or belongs to the system
                return

    def _open_root(self) -> Folder:
        """Open the root.

        Raises Unavailable if there is no folder, as on a disk that was removed.
        """
        try:
            if not self._by_path:
                return Folder(self.root, os.open(self.root, _FOLDER))
            if not stat.S_ISDIR(os.stat(self.root).st_mode):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), self.root)
            return Folder(self.root, None)
        except (FileNotFoundError, NotADirectoryError) as error:
            hint = "If it is on a removable disk, connect the disk and try again."
            raise Unavailable(f"no folder at {self.root!r}", hint=hint) from error

    def _open_child(self, outer: Folder, name: str) -> Folder:
        """Open a folder within an open one, but never through a link. Raises OSError."""
        path = f"{outer.path}{os.sep}{_checked(name)}"
        if outer.fd is not None:
            return Folder(path, os.open(name, _FOLDER | _NOFOLLOW, dir_fd=outer.fd))

        is_folder = stat.S_ISDIR(os.lstat(path).st_mode)
        if not is_folder or _is_link(path):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        return Folder(path, None)


def _is_link(path: str) -> bool:
    """Return whether a path is a symbolic link, or a junction of Windows.

    False if there is nothing. For `stat`, a junction is no link, but it leads elsewhere too, and a
    bit of its tag says so. A file that OneDrive has not downloaded yet has a tag without this bit.
    """
    try:
        file_stat = os.lstat(path)
    except FileNotFoundError:
        return False
    tag = getattr(file_stat, "st_reparse_tag", 0)
    return stat.S_ISLNK(file_stat.st_mode) or bool(tag & _NAME_SURROGATE_TAG)


def _checked(name: str) -> str:
    """Return a name that leads to a child of its folder. Raises Invalid for any other name.

    This is the last line of defence: a path from a journal or a log was never checked before.
    """
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise _invalid_name(name)
    if os.sep == "\\" and ("\\" in name or ":" in name):
        raise _invalid_name(name)
    return name


def _invalid_name(name: str) -> Invalid:
    """Return the error for a name that does not lead to a child of its folder."""
    return Invalid(f"{name[:80]!r} is not a valid name of a file or folder")
