"""Notes that Apple Notes or an exporter wrote as Markdown: a file each, with pictures beside. Files say when."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from simplemem.imports.markdown import contents, marked
from simplemem.imports.take import Item, Left, wall_time


def read(folder: Path) -> Iterator[Item | Left]:
    """Each note as it is, with the dates of its file where it says none; other files as they are."""
    return contents(folder, _note)


def _note(path: str, file: Path, data: bytes) -> Item | Left:
    stat = file.stat()
    if file.suffix.lower() != ".md":
        return Item(path, path, data, at=stat.st_mtime, is_linked=True)
    born = wall_time(getattr(stat, "st_birthtime", stat.st_mtime))
    return marked(path, path, file, data, f"apple-notes:{path}", created=born, modified=wall_time(stat.st_mtime))
