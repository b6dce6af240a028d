"""The files of an export: of a zip and of zips in it, or of a folder. Each is unpacked when it is asked for."""

from __future__ import annotations

import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, NamedTuple

from simplemem.errors import Unreadable
from simplemem.imports.markdown import MOST_BYTES, data_of, files
from simplemem.imports.take import Left

_MOST_FILES, _MOST_TOGETHER, _MOST_DEPTH = 100_000, 10_000_000_000, 2


class Member(NamedTuple):
    """A file, and how its bytes are had, or why they are left out."""

    path: str
    size: int
    data: Callable[[], bytes | Left]


@contextmanager
def members(export: Path) -> Iterator[list[Member]]:
    """All files of an export. Unreadable when there are more than an export has."""
    with ExitStack() as stack:
        found, total = list[Member](), 0
        for each in _of_folder(export) if export.is_dir() else _of_zip(stack, export, export.name):
            total += each.size
            if total > _MOST_TOGETHER or len(found) >= _MOST_FILES:
                raise Unreadable(f"{export} holds more than an export does", hint="Unpack it, and import parts of it.")
            found.append(each)
        yield found


def _of_folder(export: Path) -> Iterator[Member]:
    for each in files(export):
        if isinstance(each, Left):
            yield Member(each.where, 0, partial(Left, *each))
        else:
            yield Member(each[0], each[1].stat().st_size, partial(data_of, each[1], each[0]))


def _of_zip(stack: ExitStack, file: Path | IO[bytes], name: str, depth: int = 0) -> Iterator[Member]:
    try:
        archive = stack.enter_context(_opened(file))
    except (zipfile.BadZipFile, NotImplementedError, OSError) as error:
        raise Unreadable(
            f"{name} is no zip that can be read: {error}", hint="Export it again, or unpack it."
        ) from error
    for each in archive.infolist():
        if each.filename.endswith(".zip") and depth < _MOST_DEPTH and each.file_size <= _MOST_TOGETHER:
            inner = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
            with archive.open(each) as data:
                shutil.copyfileobj(data, inner)
            yield from _of_zip(stack, inner, each.filename, depth + 1)
        elif not each.is_dir():
            yield Member(each.filename, each.file_size, partial(_unpacked, archive, each))


def _opened(file: Path | IO[bytes]) -> zipfile.ZipFile:
    with suppress(UnicodeDecodeError):
        return zipfile.ZipFile(file, metadata_encoding="utf-8")  # most names are, and not all archives say so
    return zipfile.ZipFile(file)


def _unpacked(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes | Left:
    path = member.filename
    if ".." in path.split("/") or path.startswith("/") or "\\" in path:
        return Left(path, "it leads out of the archive")
    if member.file_size > MOST_BYTES:
        return Left(path, f"it is larger than {MOST_BYTES // 1_000_000} MB")
    try:
        return archive.read(member)
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError, OSError) as error:
        return Left(path, f"it cannot be unpacked: {error}")
