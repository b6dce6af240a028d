"""A folder of Markdown notes, with the files beside them: kept as they are, to the byte."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from simplemem.imports.take import SOURCE, Item, Left
from simplemem.note.header import find_key, read_header
from simplemem.note.properties import set_property

MOST_BYTES = 100_000_000  # of one file


def files(folder: Path) -> Iterator[tuple[str, Path] | Left]:
    """The files below a folder with their paths in it, in order; not hidden ones, and nothing that links lead to."""
    if folder.is_file():
        yield folder.name, folder
        return
    unread: list[OSError] = []
    for above, folders, names in os.walk(folder, onerror=unread.append):
        folders[:] = sorted(each for each in folders if not each.startswith("."))
        for name in sorted([*names, *(each for each in folders if Path(above, each).is_symlink())]):
            file = Path(above, name)
            path = file.relative_to(folder).as_posix()
            if file.is_symlink() or not file.is_file():
                yield Left(path, "it is a link, or no file at all")
            elif not name.startswith("."):
                yield path, file
    yield from (Left(os.path.relpath(each.filename, folder), f"it cannot be read: {each.strerror}") for each in unread)


def data_of(file: Path, where: str) -> bytes | Left:
    """What a file holds."""
    try:
        if file.stat().st_size > MOST_BYTES:
            return Left(where, f"it is larger than {MOST_BYTES // 1_000_000} MB")
        return file.read_bytes()
    except OSError as error:
        return Left(where, f"it cannot be read: {error.strerror}")


def read(folder: Path) -> Iterator[Item | Left]:
    """Every file as it is."""
    return contents(folder, lambda path, file, data: Item(path, path, data, at=file.stat().st_mtime))


def contents(
    folder: Path, item: Callable[[str, Path, bytes], Item | Left], wanted: Callable[[Path], bool] = lambda _: True
) -> Iterator[Item | Left]:
    """What becomes of the files of a folder that are wanted."""
    for each in files(folder):
        if isinstance(each, Left):
            yield each
        elif wanted(each[1]):
            data = data_of(each[1], each[0])
            yield data if isinstance(data, Left) else item(*each, data)


def marked(where: str, path: str, file: Path, data: bytes, source: str, **properties: Any) -> Item | Left:
    """A note as it is, with where it comes from, and properties that it lacks."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        return Left(where, f"byte {error.start} is not UTF-8 text")
    if read_header(text).problem is not None or "\0" in text:
        return Left(where, "its front matter cannot be read" if "\0" not in text else "it is no text")
    theirs = read_header(text).properties
    more = {key: value for key, value in properties.items() if find_key(theirs, key) is None}
    if (key := find_key(theirs, SOURCE)) is not None:
        more[f"original {SOURCE}"] = theirs[key]
    for key, value in {**more, SOURCE: source}.items():
        text = set_property(text, key, value)
    return Item(where, path, text, source, file.stat().st_mtime)
