"""The one choke point: how a vault path becomes an open folder and a name in it, never anything outside the vault. It is
walked component by component with O_NOFOLLOW (durability.md F36-F39): neither `..` nor a link nor a folder swapped for a
link leads out. At the end: who may see and change what, and what an errno means."""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
import time
import unicodedata
from collections.abc import Callable, Iterator, Sequence
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
from simplemem.note.names import is_device, name_of, private_by_rule

SIDECAR = ".simplemem"
Parts = tuple[str, ...]
_T = TypeVar("_T")

BY_PATH = (
    sys.platform == "win32"
)  # it holds no folder open: each component is looked at, then named in full
MOST_PARTS = 128  # every folder on the way is held open
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)
# O_NONBLOCK: opening a FIFO that lies there under a note's name must not wait for its writer (F37).
READ = (
    os.O_RDONLY
    | _NOFOLLOW
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_BINARY", 0)
)
OVERWRITE = os.O_RDWR | os.O_CREAT | _NOFOLLOW | getattr(os, "O_BINARY", 0)
WRITE_NEW = OVERWRITE | os.O_EXCL
_NOT_ON_WINDOWS = frozenset('<>:"|?*') | frozenset(map(chr, range(32)))
_SHORT_NAME = re.compile(r"~\d")
# Windows, while another program has a file open: access denied, a sharing or lock violation, ReplaceFileW not begun.
_PASSING = frozenset((5, 32, 33, 1224, 1175, 1176))


def check_path(path: str, *, windows: bool = sys.platform == "win32") -> Parts:
    """The components of a vault path of a note or attachment, or Invalid when it could lead elsewhere."""
    parts = tuple(path.split("/"))
    if wrong := _wrong_with(path, parts, windows):
        hint = "Give a path inside the vault, such as folder/note.md."
        raise Invalid(f"{path[:200]!r} is not a valid path in the vault: {wrong}", hint=hint)
    return parts


def _wrong_with(path: str, parts: Parts, windows: bool) -> str:
    if "\0" in path or "\\" in path:
        return "it contains a NUL or a backslash"
    if "" in parts:
        return "it is empty, is absolute or has an empty part"
    if len(parts) > MOST_PARTS:
        return "it has too many nested folders"
    if path[0] == "." or "/." in path:
        return "a part of it starts with a dot, and the vault does not include such files"
    if not is_unicode(path):
        return "it is not valid Unicode"
    if windows and any(
        part[-1] in ". " or not _NOT_ON_WINDOWS.isdisjoint(part) or is_device(part)
        for part in parts
    ):
        return "Windows does not allow a part of it as a name, or reads it as a device, a stream or another file"
    return ""


def is_path(path: str) -> bool:
    """Whether `check_path` would take it."""
    return not _wrong_with(path, tuple(path.split("/")), sys.platform == "win32")


def parent(path: str) -> Parts:
    """The folder of a vault path: () for the root."""
    return tuple(path.split("/")[:-1])


def is_unicode(text: str) -> bool:
    """Whether a name can be spelled: what is not is kept by Python as lone surrogates."""
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False


def unlimited(path: str) -> str:
    """An absolute Windows path in the form that may be long, and in which every name is itself."""
    if path.startswith(("\\\\?\\", "\\\\.\\")):
        return path
    return "\\\\?\\UNC\\" + path[2:] if path.startswith("\\\\") else "\\\\?\\" + path


def patiently(act: Callable[[], _T]) -> _T:
    """Do what another program's open file may hinder for a moment on Windows; elsewhere just do it."""
    deadline = time.monotonic() + 2 if sys.platform == "win32" else 0.0
    while True:
        try:
            return act()
        except OSError as error:
            if getattr(error, "winerror", None) not in _PASSING or time.monotonic() >= deadline:
                raise
        time.sleep(0.02)


class Folder(NamedTuple):
    """A folder held open, so that what happens to its path meanwhile does not matter."""

    path: str
    fd: int | None

    def name(self, child: str) -> str:
        """What to call a child in a system call with `dir_fd=self.fd`; a full path where folders have no handle."""
        return child if self.fd is not None else os.path.join(self.path, child)

    def open(self, child: str, flags: int) -> int:
        """Open a file in it, never through a link: where there are no handles, it is looked at first."""
        if self.fd is None and _is_link(self.name(child)):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), child)
        return patiently(
            lambda: os.open(self.name(child), flags | _NOFOLLOW, 0o666, dir_fd=self.fd)
        )

    def names(self) -> list[str]:
        """What lies in it."""
        return os.listdir(self.path if self.fd is None else self.fd)


class _Opened(NamedTuple):
    """A file that is open for a block: a write opens twenty, and `contextmanager` costs as much as the opening."""

    fd: int

    def __enter__(self) -> int:
        return self.fd

    def __exit__(self, *error: object) -> None:
        os.close(self.fd)


class Beneath:
    """The folders beneath one root that an operation has open. Closing it closes them all."""

    def __init__(self, root: str) -> None:
        self.root = unlimited(root) if sys.platform == "win32" else root
        self._by_path = BY_PATH
        self._open: dict[Parts, Folder] = {}
        self.made: list[Parts] = []  # the folders that were made, for whoever makes names durable

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.rest()

    def rest(self) -> None:
        """Close all folders; they are opened again when asked for. An operation on many notes rests between them."""
        while self._open:
            _, folder = self._open.popitem()
            if folder.fd is not None:
                os.close(folder.fd)

    def folder(self, parts: Parts) -> Folder:
        """The folder of these components, opened without following a link anywhere."""
        known = self._open.get(parts)
        if known is None:
            known = self._step(self.folder(parts[:-1]), parts[-1]) if parts else self._root()
            self._open[parts] = known
        return known

    def spot(self, path: str) -> tuple[Folder, str]:
        """The folder of a path, and the name in it. Our own folders may be named here, climbing out never."""
        *parts, name = path.split("/")
        return self.folder(tuple(parts)), _checked(name)

    def spots(self, source: str, target: str) -> tuple[int | None, str, int | None, str]:
        """Two paths as system calls on two files want them."""
        (above, old), (folder, new) = self.spot(source), self.spot(target)
        return above.fd, above.name(old), folder.fd, folder.name(new)

    def stat(self, path: str) -> os.stat_result:
        """The stat of what lies at a path itself, be it a link."""
        folder, name = self.spot(path)
        return os.stat(folder.name(name), dir_fd=folder.fd, follow_symlinks=False)

    def names(self, path: str) -> list[str]:
        """What lies in a folder of ours, in order; nothing when it is not there."""
        try:
            return sorted(self.folder(tuple(path.split("/"))).names())
        except FileNotFoundError:
            return []

    def opened(self, path: str, flags: int) -> _Opened:
        """A file, open for a block."""
        folder, name = self.spot(path)
        return _Opened(folder.open(name, flags))

    def make(self, parts: Parts) -> None:
        """Make the folder and what is missing above it."""
        for path in self.missing(parts):
            folder, name = self.spot(path)
            with suppress(FileExistsError):
                os.mkdir(folder.name(name), dir_fd=folder.fd)
                self.made.append(tuple(path.split("/")))

    def missing(self, parts: Parts) -> list[str]:
        """The folders `make` would have to make, outermost first."""
        try:
            self.folder(parts)
        except FileNotFoundError:
            return [*self.missing(parts[:-1]), "/".join(parts)]
        return []

    def prune(self, parts: Parts, *, keep: int) -> None:
        """Remove a folder that has become empty, and those above it, but not the outermost `keep`."""
        for depth in range(len(parts), keep, -1):
            self.rest()  # Windows removes no open folder, and no other system finds what it has removed
            try:
                above, name = self.spot("/".join(parts[:depth]))
                os.rmdir(above.name(name), dir_fd=above.fd)
            except FileNotFoundError:
                continue
            except OSError:  # something lies in it, or it is the system's: it stays
                return

    def _root(self) -> Folder:
        try:
            if self._by_path and not stat.S_ISDIR(os.stat(self.root).st_mode):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), self.root)
            return Folder(self.root, None if self._by_path else os.open(self.root, _FOLDER))
        except (FileNotFoundError, NotADirectoryError) as error:
            hint = "If it is on a removable disk, connect the disk and try again."
            raise Unavailable(f"no folder at {self.root!r}", hint=hint) from error

    def _step(self, above: Folder, part: str) -> Folder:
        path = f"{above.path}{os.sep}{_checked(part)}"
        if above.fd is not None:
            return Folder(path, os.open(part, _FOLDER | _NOFOLLOW, dir_fd=above.fd))
        if not stat.S_ISDIR(os.lstat(path).st_mode) or _is_link(path):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        return Folder(path, None)


def _is_link(path: str) -> bool:
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return False
    # A junction is no symbolic link to `stat`, but leads elsewhere just the same: the bit says so. A file that OneDrive
    # has not fetched yet is a reparse point without that bit.
    return stat.S_ISLNK(found.st_mode) or bool(getattr(found, "st_reparse_tag", 0) & 0x20000000)


def _checked(name: str) -> str:
    # The last line of defence: a path that never passed `check_path` (a journal, a log) climbs out neither.
    if (
        name in ("", ".", "..")
        or "/" in name
        or "\0" in name
        or (os.sep == "\\" and ("\\" in name or ":" in name))
    ):
        raise Invalid(f"{name[:80]!r} is not a valid name of a file or folder")
    return name


class Access(NamedTuple):
    """Which paths are hidden, which alone are not, which are not to be changed, and whether a note may go."""

    hidden: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()
    no_delete: bool = False
    only: tuple[str, ...] = ()

    @property
    def is_partial(self) -> bool:
        """Whether there may be notes that are not seen."""
        return bool(self.hidden or self.only)

    def hides(self, path: str) -> bool:
        """Whether nothing may be seen of this file."""
        if self._is_outside(path):
            return True
        if not self.hidden:
            return False
        # Windows knows `Private` as `PRIVAT~1` too: where something is hidden, such a name is not believed.
        return private_by_rule(path, self.hidden) or (
            sys.platform == "win32" and bool(_SHORT_NAME.search(path))
        )

    def _is_outside(self, path: str) -> bool:
        """Whether only some folders may be seen, and this file is in none of them."""
        return bool(self.only) and not any(_lies_in(path, place) for place in self.only)

    def check(self, path: str, *, asked: bool) -> None:
        """ReadOnly when this path may not be changed. A hidden one is named only when it was asked for by name."""
        where = f"{name_of(path)!r}" if asked else "a note that this would change"
        if self._is_outside(path):
            allowed = _list_places(self.only)
            hint = "Only notes there can be read here. Choose a name there, or ask the user."
            raise ReadOnly(f"{where} is outside {allowed}, and nothing was changed", hint=hint)
        if self.hides(path):
            raise ReadOnly(f"{where} is hidden here, and nothing was changed", hint=_ELSEWHERE)
        if not self.may_change(path):
            raise ReadOnly(
                f"{name_of(path)!r} is read-only here, and nothing was changed", hint=_ELSEWHERE
            )

    def may_change(self, path: str) -> bool:
        """Whether this path, which is not hidden, may be changed."""
        return not (self.read_only and private_by_rule(path, self.read_only))

    def check_gone(
        self, path: str, *, instead: str = "Tag it instead, for example as archived, or move it."
    ) -> None:
        """ReadOnly when no note may be deleted, nor its text replaced unread."""
        if self.no_delete:
            raise ReadOnly(
                f"deleting is not allowed here, and {name_of(path)!r} was not changed", hint=instead
            )


def _list_places(places: Sequence[str]) -> str:
    """Return the first three places, and how many more there are."""
    more = len(places) - 3
    return ", ".join(places[:3]) + (f" and {more} more" if more > 0 else "")


def _lies_in(path: str, place: str) -> bool:
    """Whether a file is of a place: `folder/` with all below, `folder/*` without its folders, `note.md` alone, or what
    is called so, note or folder. To the letter."""
    path, place = unicodedata.normalize("NFC", path), unicodedata.normalize("NFC", place)
    if place.endswith("/*"):
        return path.rpartition("/")[0] == place[:-2]
    if place.endswith(".md"):
        return path == place
    return path in (place, f"{place}.md") or path.startswith(
        place if place.endswith("/") else f"{place}/"
    )


_ELSEWHERE = "The [access] settings forbid it. Choose another folder, or ask the user."

_FULL = (Unavailable, "the disk is full", "Free some space and try again. Nothing was changed.")
_TOO_MANY = (Unavailable, "too many files are open", "Try again in a moment.")
_REFUSED = (Unreadable, "permission denied", "Check the owner and the permissions of the file.")
_MEANINGS: dict[int | None, tuple[type[SimplememError], str, str]] = {
    **dict.fromkeys((errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC), errno.EFBIG), _FULL),
    **dict.fromkeys((errno.EMFILE, errno.ENFILE), _TOO_MANY),
    **dict.fromkeys((errno.EACCES, errno.EPERM), _REFUSED),
    errno.EROFS: (
        ReadOnly,
        "the disk or the permissions do not allow writing",
        "Check the owner and the permissions of the folder.",
    ),
    errno.ENAMETOOLONG: (TooLong, "the name is too long for the disk", "Use a shorter name."),
    errno.ELOOP: (Invalid, "it is or leads through a symbolic link", "Name the real file instead."),
    errno.ENOTDIR: (Invalid, "a part of it is a file or a link, not a folder", ""),
    errno.EISDIR: (Unreadable, "it is a folder", ""),
    errno.ENXIO: (Unreadable, "it is not a regular file", ""),
    errno.ENOENT: (NotFound, "no such file", ""),
}
_OPEN_ELSEWHERE = {
    32,
    33,
    1224,
}  # Windows: a sharing or lock violation, or mapped into another program's memory


@contextmanager
def telling(doing: str, path: str, *, writing: bool = False) -> Iterator[None]:
    """Turn an OSError of the block into one of ours: `with telling("read", path):`."""
    try:
        yield
    except OSError as error:
        raise explain(error, doing, path, writing=writing) from error


def explain(error: OSError, doing: str, path: str, *, writing: bool) -> SimplememError:
    """The error of ours that says what `error` means for somebody who wanted to `doing` `path`."""
    code = errno.EROFS if writing and error.errno in (errno.EACCES, errno.EPERM) else error.errno
    # A file that the disk cannot give is one bad file, and hurts no other; a write that failed may have failed anywhere.
    failing = (
        Unavailable if writing else Unreadable,
        error.strerror or str(error),
        "Check the disk, which may be failing.",
    )
    kind, what, hint = _MEANINGS.get(code, failing)
    if writing and code == errno.ENOENT:  # a note that is not there is said elsewhere
        kind, what, hint = (
            Unavailable,
            "a folder was deleted or moved meanwhile",
            "List the folder, then try again.",
        )
    if getattr(error, "winerror", None) in _OPEN_ELSEWHERE:
        kind, what, hint = Unavailable, "another program has it open", "Try again in a moment."
    return kind(f"could not {doing} {path!r}: {what}", hint=hint)
