"""What the operating system refuses is said in words a person can act on."""

from __future__ import annotations

import errno
import os

import pytest

from simplemem.errors import Invalid, NotFound, ReadOnly, SimplememError, TooLong, Unavailable, Unreadable
from simplemem.vault.paths import explain, telling


@pytest.mark.parametrize(
    ("code", "writing", "kind", "said"),
    [
        (errno.ENOSPC, True, Unavailable, "disk is full"),
        (errno.EFBIG, True, Unavailable, "disk is full"),
        (errno.EMFILE, False, Unavailable, "too many files"),
        (errno.EROFS, True, ReadOnly, "do not allow writing"),
        (errno.EACCES, True, ReadOnly, "do not allow writing"),
        (errno.EACCES, False, Unreadable, "permission denied"),
        (errno.ENAMETOOLONG, True, TooLong, "too long"),
        (errno.ELOOP, False, Invalid, "symbolic link"),
        (errno.ENOTDIR, False, Invalid, "not a folder"),
        (errno.EISDIR, False, Unreadable, "it is a folder"),
        (errno.ENXIO, False, Unreadable, "not a regular file"),
        (errno.ENOENT, False, NotFound, "no such file"),
        (errno.EIO, True, Unavailable, os.strerror(errno.EIO)),
        (errno.EIO, False, Unreadable, os.strerror(errno.EIO)),
    ],
)
def test_every_refusal_has_a_kind_and_a_sentence(
    code: int, writing: bool, kind: type[SimplememError], said: str
) -> None:
    cause = OSError(code, os.strerror(code))
    with pytest.raises(kind, match=said) as trouble, telling("save", "a/n.md", writing=writing):
        raise cause
    assert "save 'a/n.md'" in trouble.value.message and "Errno" not in trouble.value.message
    assert trouble.value.__cause__ is cause


@pytest.mark.parametrize("number", [32, 33, 1224])
def test_a_file_that_is_open_elsewhere_on_windows_is_no_matter_of_permissions(number: int) -> None:
    cause = OSError(errno.EACCES, "Permission denied")
    cause.winerror = number  # type: ignore[attr-defined,unused-ignore]
    told = explain(cause, "save", "n.md", writing=True)
    assert isinstance(told, Unavailable) and "another program has it open" in told.message
