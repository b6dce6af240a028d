"""Turn an OSError into the error of simplemem that says what it means for the user."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from simplemem.errors import (
    Invalid,
    NotFound,
    ReadOnly,
    SimplememError,
    TooLong,
    Unavailable,
    Unreadable,
)

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
    """Turn an OSError of a block into an error of simplemem:

    `with translating_os_errors("read", path):`.
    """
    try:
        yield
    except OSError as error:
        raise explain(error, doing, path, writing=writing) from error


def explain(error: OSError, doing: str, path: str, *, writing: bool) -> SimplememError:
    """Return the error that says what `error` means for a user who wanted to `doing` `path`."""
    meaning = _meaning_of(error, writing=writing)
    message = f"could not {doing} {path!r}: {meaning.cause}"
    return meaning.error(message, hint=meaning.hint)


def _meaning_of(error: OSError, *, writing: bool) -> _Meaning:
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
