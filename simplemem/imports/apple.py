"""Notes that Apple Notes or an exporter wrote as Markdown: a file each, with pictures beside. Files say when."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from simplemem.imports.markdown import files, text_of
from simplemem.imports.take import SOURCE, Item, Left, wall_time
from simplemem.note.header import find_key, read_header
from simplemem.note.properties import set_property


def read(folder: Path) -> Iterator[Item | Left]:
    """Each note as it is, with the dates of its file where it says none; other files as they are."""
    for each in files(folder):
        if isinstance(each, Left):
            yield each
            continue
        path, file = each
        if file.suffix.lower() != ".md":
            yield Item(path, path, file.read_bytes(), at=file.stat().st_mtime)
            continue
        text, stat = text_of(file, path), file.stat()
        if isinstance(text, Left) or read_header(text).problem is not None:
            yield text if isinstance(text, Left) else Left(path, "its front matter cannot be read")
            continue
        source, born = f"apple-notes:{path}", getattr(stat, "st_birthtime", stat.st_mtime)
        told = {"created": wall_time(born), "modified": wall_time(stat.st_mtime), SOURCE: source}
        for key, value in told.items():
            if find_key(read_header(text).properties, key) is None:
                text = set_property(text, key, value)
        yield Item(path, path, text, source, stat.st_mtime)
