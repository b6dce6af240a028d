"""A folder of Markdown notes, with the files beside them: kept as they are, to the byte."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from simplemem.imports.take import Item, Left

MOST_BYTES = 100_000_000  # of one file


def files(folder: Path) -> Iterator[tuple[str, Path] | Left]:
    """The files below a folder with their paths in it, in order; not hidden ones, and nothing that links lead to."""
    if folder.is_file():
        yield folder.name, folder
        return
    for above, folders, names in os.walk(folder):
        folders[:] = sorted(each for each in folders if not each.startswith("."))
        for name in sorted(names):
            file = Path(above, name)
            path = file.relative_to(folder).as_posix()
            if file.is_symlink() or not file.is_file():
                yield Left(path, "it is not a file of its own but a link, or no file at all")
            elif not name.startswith("."):
                yield path, file


def text_of(file: Path, where: str) -> str | Left:
    """The text of a file."""
    try:
        return file.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        return Left(where, f"byte {error.start} is not UTF-8 text")


def read(folder: Path) -> Iterator[Item | Left]:
    """Every file as it is."""
    for each in files(folder):
        if isinstance(each, Left):
            yield each
            continue
        path, file = each
        if file.stat().st_size > MOST_BYTES:
            yield Left(path, f"it is larger than {MOST_BYTES // 1_000_000} MB")
        else:
            yield Item(path, path, file.read_bytes(), at=file.stat().st_mtime)
