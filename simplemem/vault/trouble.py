"""What the operating system refused, said so that a person can act on it.

One table from errno to the errors of `errors.py`. Nothing is retried here and nothing is hidden: the OSError stays
as the cause.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from simplemem.errors import Invalid, NotFound, ReadOnly, SimplememError, TooLong, Unavailable, Unreadable

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG} if hasattr(errno, "EDQUOT") else {errno.ENOSPC, errno.EFBIG}
_NOT_ALLOWED = {errno.EACCES, errno.EPERM}
_OPEN_ELSEWHERE = {32, 33, 1224}  # Windows: a sharing or lock violation, or mapped into another program's memory


@contextmanager
def telling(doing: str, path: str, *, writing: bool = False) -> Iterator[None]:
    """Turn an OSError of the block into one of ours: `with telling("read", path):`."""
    try:
        yield
    except OSError as error:
        raise explain(error, doing, path, writing=writing) from error


def explain(error: OSError, doing: str, path: str, *, writing: bool) -> SimplememError:
    """The error of ours that says what `error` means for somebody who wanted to `doing` `path`."""
    what = f"Could not {doing} {path!r}"
    code = error.errno
    if code in _NO_ROOM:
        return Unavailable(f"{what}: the disk is full.", hint="Free some space; nothing was changed.")
    if code in (errno.EMFILE, errno.ENFILE):
        return Unavailable(f"{what}: too many files are open.", hint="Try again in a moment.")
    if getattr(error, "winerror", None) in _OPEN_ELSEWHERE:
        return Unavailable(f"{what}: another program has it open.", hint="Close it there, or try again in a moment.")
    if code == errno.EROFS or (writing and code in _NOT_ALLOWED):
        return ReadOnly(f"{what}: the disk or the permissions do not allow writing.")
    if code in _NOT_ALLOWED:
        return Unreadable(f"{what}: permission denied.", hint="Check who owns the file and its mode.")
    if code == errno.ENAMETOOLONG:
        return TooLong(f"{what}: the name is too long for the disk.", hint="Use a shorter name.")
    if code == errno.ELOOP:
        return Invalid(f"{what}: it is or leads through a symbolic link.", hint="Name the real file instead.")
    if code == errno.ENOTDIR:
        return Invalid(f"{what}: a part of it is a file or a link, not a folder.")
    if code == errno.EISDIR:
        return Unreadable(f"{what}: it is a folder.")
    if code == errno.ENXIO:
        return Unreadable(f"{what}: it is not a regular file.")
    if code == errno.ENOENT:
        return NotFound(f"{what}: there is no such file.")
    # A file that the disk cannot give is one bad file, and hurts no other; a write that failed may have failed anywhere.
    kind = Unavailable if writing else Unreadable
    return kind(f"{what}: {error.strerror or error}.", hint="The disk may be failing: check it.")
