"""Folders of Markdown, with the files beside: any, which is kept as it is, to the byte; basic-memory's; what Claude Code
remembers of projects; and what Apple Notes or an exporter wrote, where files say when."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from simplemem.errors import SimplememError
from simplemem.imports.export import SOURCE, File, Item, Left, each, wall_time
from simplemem.note.header import find_key, read_header
from simplemem.note.names import base_name
from simplemem.note.properties import set_property

_WIKILINK = re.compile(rb"(?<=\[\[)[^][|#\n]++(?=[]|#])")


def read(files: Mapping[str, File]) -> Iterator[Item | Left]:
    """Every file as it is."""
    return each(files.items(), lambda path, file: [Item(path, path, file.data(), at=file.at)])


def read_basic_memory(files: Mapping[str, File]) -> Iterator[Item | Left]:
    """Every file as it is, but for links by title or permalink that no file answers to: they name the file."""
    stems, called = set[str](), dict[str, str]()
    for path, file in files.items():
        with suppress(SimplememError):
            if path.endswith(".md"):
                told = read_header(file.data().decode("utf-8", "replace")).properties
                title, permalink = str(told.get("title") or ""), str(told.get("permalink") or "")
                names = (title, permalink, permalink.partition("/")[2])
                called |= dict.fromkeys(map(str.casefold, names), base_name(path))
                stems.add(base_name(path).casefold())

    def named(link: re.Match[bytes]) -> bytes:
        file = called.get((said := link[0].decode("utf-8", "replace")).casefold())
        if file is None or said.casefold() in stems:
            return link[0]
        return f"{file}|{said}".encode() if link.string.startswith(b"]", link.end()) else file.encode()

    def made(path: str, file: File) -> Iterator[Item]:
        data = file.data()
        yield Item(path, path, _WIKILINK.sub(named, data) if path.endswith(".md") else data, at=file.at)

    return each(files.items(), made)


def read_agent(files: Mapping[str, File]) -> Iterator[Item | Left]:
    """`memory/*.md` below Claude Code's folder of projects, and CLAUDE.md files: a folder for each project."""

    def made(where: str, file: File) -> Iterator[Item]:
        place = file.real.absolute() if file.real else Path("/", where)
        above, name = place.parent, place.name
        if file.problem or (name.endswith(".md") and (above.name == "memory" or name.startswith("CLAUDE."))):
            project = above.parent.name if above.name == "memory" else re.sub(r"[^A-Za-z0-9]", "-", str(above))
            yield _marked(where, f"{project.strip('-')}/{name}", file, f"claude-code:{project}/{name}")

    return each(files.items(), made)


def read_apple_notes(files: Mapping[str, File]) -> Iterator[Item | Left]:
    """Each note as it is, with the dates of its file where it says none; other files as they are."""

    def made(path: str, file: File) -> Iterator[Item]:
        if not path.lower().endswith(".md"):
            yield Item(path, path, file.data(), at=file.at, is_linked=True)
            return
        born = getattr(file.real and file.real.stat(), "st_birthtime", file.at)
        yield _marked(path, path, file, f"apple-notes:{path}", created=wall_time(born), modified=wall_time(file.at))

    return each(files.items(), made)


def _marked(where: str, path: str, file: File, source: str, **properties: Any) -> Item:
    """A note as it is, with where it comes from, and properties that it lacks."""
    text = file.data().decode()
    theirs = read_header(text).properties
    more = {key: value for key, value in properties.items() if value and find_key(theirs, key) is None}
    if (key := find_key(theirs, SOURCE)) is not None:
        more[f"original {SOURCE}"] = theirs[key]
    for name, value in {**more, SOURCE: source}.items():
        text = set_property(text, name, value)
    return Item(where, path, text, source, file.at)
