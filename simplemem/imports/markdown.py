"""Folders of Markdown, with the files beside: any, which is kept as it is, to the byte; basic-memory's; what Claude Code
remembers of projects; and what Apple Notes or an exporter wrote, where files say when."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from simplemem.errors import SimplememError
from simplemem.imports.take import SOURCE, Item, Left, bytes_of, wall_time
from simplemem.note.header import find_key, read_header
from simplemem.note.names import base_name
from simplemem.note.properties import set_property

MOST_BYTES = 100_000_000  # of one file
_WIKILINK = re.compile(rb"(?<=\[\[)[^][|#\n]++(?=[]|#])")


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


def _contents(
    folder: Path, item: Callable[[str, Path, bytes], Item | Left], wanted: Callable[[Path], bool] = lambda _: True
) -> Iterator[Item | Left]:
    """What becomes of the files of a folder that are wanted."""
    for each in files(folder):
        if isinstance(each, Left):
            yield each
        elif wanted(each[1]):
            data = data_of(each[1], each[0])
            yield data if isinstance(data, Left) else item(*each, data)


def _marked(where: str, path: str, file: Path, data: bytes, source: str, **properties: Any) -> Item | Left:
    """A note as it is, with where it comes from, and properties that it lacks."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        return Left(where, f"byte {error.start} is not UTF-8 text")
    theirs = read_header(text).properties
    more = {key: value for key, value in properties.items() if find_key(theirs, key) is None}
    if (key := find_key(theirs, SOURCE)) is not None:
        more[f"original {SOURCE}"] = theirs[key]
    try:
        for key, value in {**more, SOURCE: source}.items():
            text = set_property(text, key, value)
    except SimplememError as refused:
        return Left(where, refused.message)
    return Item(where, path, text, source, file.stat().st_mtime)


def read(folder: Path) -> Iterator[Item | Left]:
    """Every file as it is."""
    return _contents(folder, lambda path, file, data: Item(path, path, data, at=file.stat().st_mtime))


def read_basic_memory(folder: Path) -> Iterator[Item | Left]:
    """Every file as it is, but for links by title or permalink that no file answers to: they name the file."""
    notes = [each for each in read(folder) if isinstance(each, Item) and each.path.endswith(".md")]
    stems, called = {base_name(note.path).casefold() for note in notes}, dict[str, str]()
    for note in notes:
        told = read_header(bytes_of(note.data).decode("utf-8", "replace")).properties
        title, permalink = str(told.get("title") or ""), str(told.get("permalink") or "")
        called |= dict.fromkeys(
            map(str.casefold, (title, permalink, permalink.partition("/")[2])), base_name(note.path)
        )

    def named(link: re.Match[bytes]) -> bytes:
        file = called.get((said := link[0].decode("utf-8", "replace")).casefold())
        if file is None or said.casefold() in stems:
            return link[0]
        return f"{file}|{said}".encode() if link.string.startswith(b"]", link.end()) else file.encode()

    def item(path: str, file: Path, data: bytes) -> Item:
        return Item(path, path, _WIKILINK.sub(named, data) if file.suffix == ".md" else data, at=file.stat().st_mtime)

    return _contents(folder, item)


def read_agent(folder: Path) -> Iterator[Item | Left]:
    """`memory/*.md` below Claude Code's folder of projects, and CLAUDE.md files: a folder for each project."""

    def item(where: str, file: Path, data: bytes) -> Item | Left:
        above = file.absolute().parent
        project = above.parent.name if above.name == "memory" else re.sub(r"[^A-Za-z0-9]", "-", str(above))
        return _marked(where, f"{project.strip('-')}/{file.name}", file, data, f"claude-code:{project}/{file.name}")

    def is_wanted(file: Path) -> bool:
        return file.suffix == ".md" and (file.absolute().parent.name == "memory" or file.name.startswith("CLAUDE."))

    return _contents(folder, item, is_wanted)


def read_apple_notes(folder: Path) -> Iterator[Item | Left]:
    """Each note as it is, with the dates of its file where it says none; other files as they are."""

    def item(path: str, file: Path, data: bytes) -> Item | Left:
        stat = file.stat()
        if file.suffix.lower() != ".md":
            return Item(path, path, data, at=stat.st_mtime, is_linked=True)
        born = wall_time(getattr(stat, "st_birthtime", stat.st_mtime))
        return _marked(path, path, file, data, f"apple-notes:{path}", created=born, modified=wall_time(stat.st_mtime))

    return _contents(folder, item)
