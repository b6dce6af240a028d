"""The values that a source of notes takes and returns."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from simplemem.vault.versions import Op


def sha256(data: bytes) -> str:
    """Return the SHA-256 hash by which a text is identified."""
    return hashlib.sha256(data).hexdigest()


class Entry(NamedTuple):
    """A file as a source lists it. `path` has the spelling of the source, and `/`."""

    path: str
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


class File(NamedTuple):
    """A note or attachment as it was read."""

    path: str
    data: bytes
    sha256: str
    entry: Entry


class Author(NamedTuple):
    """Who requests a write, with which tool, and why. The history keeps it."""

    tool: str
    who: str = ""
    reason: str = ""


class WriteResult(NamedTuple):
    """The result of a write for one note.

    `changed` is False if the note was already what it was to become.
    """

    path: str
    sha256: str | None
    previous_sha256: str | None
    version: str
    entry: Entry | None
    changed: bool


@dataclass(frozen=True)
class FileChange:
    """What one note shall become.

    Without `before`, the note must not exist. Without `data`, it keeps its text.
    """

    op: Op
    path: str
    before: str | None = None  # the hash that the file must have
    new_path: str | None = None
    data: bytes | None = None
    gone: bool = False  # the note is to be deleted
    trash: str | None = None  # the file in the trash that is restored
    at: float | None = None  # the modification time in seconds, if it is not now

    @staticmethod
    def update(path: str, before: str | None, data: bytes | None) -> FileChange:
        """Return the wish for new bytes in the file whose hash is `before`.

        Without `before`, the file is created. Without `data`, it goes to the trash.
        """
        if data is None:
            return FileChange("delete", path, before=before, gone=True)
        if before is None:
            return FileChange("create", path, data=data)
        return FileChange("update", path, before=before, data=data)

    @cached_property
    def after(self) -> str | None:
        """The hash of the note's bytes afterwards, None if it is deleted."""
        if self.gone:
            return None
        if self.data is None:
            return self.before
        return sha256(self.data)

    @property
    def target(self) -> str:
        """The path of the note afterwards."""
        return self.path if self.new_path is None else self.new_path
