"""What SQLite reports, told as failures of ours: an index that is damaged, busy, or finds no room on its disk."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

import apsw

from simplemem.errors import Unavailable

SqliteError = apsw.Error  # whatever SQLite itself reports


class Damaged(Exception):
    """The file is not a usable index. `Database.discard` and a rebuild are the way out."""


class Replaced(Exception):
    """Another file took the place of the index in the middle of something that stands on the old one. Begin again."""


# What the disk refuses to take says nothing about the file: it is only damaged when it cannot be read.
_NOT_TAKEN = {
    apsw.SQLITE_IOERR_WRITE, apsw.SQLITE_IOERR_FSYNC, apsw.SQLITE_IOERR_DIR_FSYNC, apsw.SQLITE_IOERR_TRUNCATE,
    apsw.SQLITE_IOERR_LOCK, apsw.SQLITE_IOERR_RDLOCK, apsw.SQLITE_IOERR_UNLOCK, apsw.SQLITE_IOERR_NOMEM,
    apsw.SQLITE_IOERR_SHMOPEN, apsw.SQLITE_IOERR_SHMSIZE, apsw.SQLITE_IOERR_SHMLOCK, apsw.SQLITE_IOERR_SHMMAP,
}  # fmt: skip


@contextmanager
def speaking_plainly() -> Iterator[None]:
    """SQLite's failures as ours: a busy index is Unavailable, a damaged one Damaged, and a lack of room is not its fault."""
    try:
        yield
    except apsw.IOError as error:
        if getattr(error, "extendedresult", 0) in _NOT_TAKEN:
            raise _not_written(f"the disk does not take what is written ({error})") from error
        raise Damaged(str(error)) from error
    except apsw.CantOpenError as error:
        if _lacks_descriptors():
            raise Unavailable("the index cannot be opened: too many files are open", hint="Try again.") from error
        raise Damaged(str(error)) from error
    except (apsw.CorruptError, apsw.NotADBError) as error:
        raise Damaged(str(error)) from error
    except apsw.SQLError as error:
        # A file that was emptied has none of our tables; one whose pages were mixed up has none of FTS5's.
        if "no such" in str(error) or "fts5 file format" in str(error):
            raise Damaged(str(error)) from error
        raise
    except apsw.BusyError as error:
        raise Unavailable("the index is busy", hint="Another process is writing to it; try again.") from error
    except apsw.FullError as error:
        raise _not_written("the disk is full") from error


def _not_written(why: str) -> Unavailable:
    return Unavailable(f"{why}; the index could not be written", hint="Free some space; notes are safe without it.")


def _lacks_descriptors() -> bool:
    """Whether as many files as SQLite needs could not be opened now."""
    held: list[int] = []
    try:
        held.extend(os.dup(2) for _ in range(5))
    except OSError as error:
        return error.errno in (errno.EMFILE, errno.ENFILE)
    finally:
        for fd in held:
            os.close(fd)
    return False
