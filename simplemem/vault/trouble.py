"""What the operating system refused, said so that a person can act on it.

One table from errno to the errors of `errors.py`. Nothing is retried here and nothing is hidden: the OSError stays
as the cause.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from simplemem.errors import Invalid, NotFound, ReadOnly, SimplememError, TooLong, Unavailable, Unreadable

Meaning = tuple[type[SimplememError], str, str]  # the kind of error, what is wrong, what to do

_FULL: Meaning = (Unavailable, "the disk is full.", "Free some space; nothing was changed.")
_TOO_MANY: Meaning = (Unavailable, "too many files are open.", "Try again in a moment.")
_ELSEWHERE: Meaning = (Unavailable, "another program has it open.", "Close it there, or try again in a moment.")
_NOT_WRITABLE: Meaning = (ReadOnly, "the disk or the permissions do not allow writing.", "")
_NOT_READABLE: Meaning = (Unreadable, "permission denied.", "Check who owns the file and its mode.")
_MEANINGS: dict[int, Meaning] = {
    errno.ENOSPC: _FULL,
    getattr(errno, "EDQUOT", errno.ENOSPC): _FULL,
    errno.EFBIG: _FULL,
    errno.EMFILE: _TOO_MANY,
    errno.ENFILE: _TOO_MANY,
    errno.EROFS: _NOT_WRITABLE,
    errno.EACCES: _NOT_READABLE,
    errno.EPERM: _NOT_READABLE,
    errno.ENAMETOOLONG: (TooLong, "the name is too long for the disk.", "Use a shorter name."),
    errno.ELOOP: (Invalid, "it is or leads through a symbolic link.", "Name the real file instead."),
    errno.ENOTDIR: (Invalid, "a part of it is a file or a link, not a folder.", ""),
    errno.EISDIR: (Unreadable, "it is a folder.", ""),
    errno.ENXIO: (Unreadable, "it is not a regular file.", ""),
    errno.ENOENT: (NotFound, "there is no such file.", ""),
}
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
    # A file that the disk cannot give is one bad file, and hurts no other; a write that failed may have failed anywhere.
    unknown = (
        Unavailable if writing else Unreadable,
        f"{error.strerror or error}.",
        "The disk may be failing: check it.",
    )
    meaning = _MEANINGS.get(error.errno or 0, unknown)
    if getattr(error, "winerror", None) in _OPEN_ELSEWHERE:
        meaning = _ELSEWHERE
    elif meaning is _NOT_READABLE and writing:
        meaning = _NOT_WRITABLE
    kind, what, hint = meaning
    return kind(f"Could not {doing} {path!r}: {what}", hint=hint)
