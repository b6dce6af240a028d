"""Folders of Markdown, with the files beside: any, which is kept as it is, to the byte; basic-memory's; what Claude Code
remembers of projects; what Apple Notes or an exporter wrote, where files say when; and Notion's Markdown & CSV."""

from __future__ import annotations

import csv
import io
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from posixpath import basename, dirname, relpath
from typing import Any
from urllib.parse import quote

from simplemem.errors import SimplememError
from simplemem.importers.export import SOURCE, ExportedFile, Item, Left, each, note, wall_time
from simplemem.note.header import find_key, read_header
from simplemem.note.names import base_name
from simplemem.note.properties import set_property

_WIKILINK = re.compile(rb"(?<=\[\[)[^][|#\n]++(?=[]|#])")
_ID = re.compile(r" ?([0-9a-f]{32})(?=$|_all$|\.)")
_WRAPPER = re.compile(r"^Export-[0-9a-f-]{36}/")
_ONLINE = re.compile(
    r"(?<=\]\()https://(?:www\.)?notion\.so/(?:[^()\s/]*[-/])?([0-9a-f]{32})[^()\s]*(?=\))"
)
_PROPERTY = re.compile(r"([^:\n]{1,60}): (.*)")
_TIMES = {
    "created": "created",
    "created time": "created",
    "last edited": "modified",
    "last edited time": "modified",
}


def read(files: Mapping[str, ExportedFile]) -> Iterator[Item | Left]:
    """Every file as it is."""
    return each(files.items(), lambda path, file: [Item(path, path, file.data(), at=file.at)])


def read_basic_memory(files: Mapping[str, ExportedFile]) -> Iterator[Item | Left]:
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
        return (
            f"{file}|{said}".encode() if link.string.startswith(b"]", link.end()) else file.encode()
        )

    def made(path: str, file: ExportedFile) -> Iterator[Item]:
        data = file.data()
        yield Item(
            path, path, _WIKILINK.sub(named, data) if path.endswith(".md") else data, at=file.at
        )

    return each(files.items(), made)


def read_agent(files: Mapping[str, ExportedFile]) -> Iterator[Item | Left]:
    """`memory/*.md` below Claude Code's folder of projects, and CLAUDE.md files: a folder for each project."""

    def made(where: str, file: ExportedFile) -> Iterator[Item]:
        place = file.real.absolute() if file.real else Path("/", where)
        above, name = place.parent, place.name
        if file.problem or (
            name.endswith(".md") and (above.name == "memory" or name.startswith("CLAUDE."))
        ):
            project = (
                above.parent.name
                if above.name == "memory"
                else re.sub(r"[^A-Za-z0-9]", "-", str(above))
            )
            yield _marked(
                where, f"{project.strip('-')}/{name}", file, f"claude-code:{project}/{name}"
            )

    return each(files.items(), made)


def read_apple_notes(files: Mapping[str, ExportedFile]) -> Iterator[Item | Left]:
    """Each note as it is, with the dates of its file where it says none; other files as they are."""

    def made(path: str, file: ExportedFile) -> Iterator[Item]:
        if not path.lower().endswith(".md"):
            yield Item(path, path, file.data(), at=file.at, is_linked=True)
            return
        born = getattr(file.real and file.real.stat(), "st_birthtime", file.at)
        yield _marked(
            path,
            path,
            file,
            f"apple-notes:{path}",
            created=wall_time(born),
            modified=wall_time(file.at),
        )

    return each(files.items(), made)


def _marked(where: str, path: str, file: ExportedFile, source: str, **properties: Any) -> Item:
    """A note as it is, with where it comes from, and properties that it lacks."""
    text = file.data().decode()
    theirs = read_header(text).properties
    more = {
        key: value for key, value in properties.items() if value and find_key(theirs, key) is None
    }
    if (key := find_key(theirs, SOURCE)) is not None:
        more[f"original {SOURCE}"] = theirs[key]
    for name, value in {**more, SOURCE: source}.items():
        text = set_property(text, name, value)
    return Item(where, path, text, source, file.at)


def read_notion(files: Mapping[str, ExportedFile]) -> Iterator[Item | Left]:
    """Pages as notes, and all other files as they are. Nothing where there is neither a page nor a database."""
    every = {_WRAPPER.sub("", path): file for path, file in files.items()}
    pages = {
        said[1]: path
        for path in every
        if path.endswith(".md") and (said := _ID.search(basename(path)))
    }
    columns = defaultdict[str, set[str]](set)  # of databases, by the folders of their pages
    for path, file in every.items():
        with suppress(SimplememError, ValueError, StopIteration, csv.Error):
            if path.endswith(".csv"):
                rows = csv.reader(io.StringIO(file.data().decode("utf-8-sig")))
                columns[_bare(path.removesuffix(".csv").removesuffix("_all"))].update(next(rows))

    def made(path: str, file: ExportedFile) -> Iterator[Item]:
        if path.endswith(".md"):
            yield _notion_page(path, file.data(), pages, columns[_bare(dirname(path))])
        else:
            yield Item(path, _bare(path), file.data(), is_linked=True)

    if any(path.endswith((".md", ".csv")) for path in every):
        yield from each(every.items(), made)


def _notion_page(
    path: str, data: bytes, pages: Mapping[str, str], columns: Collection[str]
) -> Item:
    """A page: its title is the first heading, its properties are the lines below it that its database has as columns."""
    text = data.decode("utf-8-sig").replace("\r\n", "\n")
    told: dict[str, Any] = {}
    title, _, rest = text.partition("\n")
    lines = rest.lstrip("\n").split("\n") if title.startswith("# ") else []
    while lines and (said := _PROPERTY.fullmatch(lines[0])) and said[1] in columns:
        key, value = said[1].strip(), said[2].strip()
        at = _time(value) if (date := _TIMES.get(key.lower())) else None
        told |= {date: at} if date and at else {key: value}
        del lines[0]
    if tags := next((key for key in told if key.lower() == "tags"), ""):
        told["tags"] = [tag.strip() for tag in str(told.pop(tags)).split(",")]
    if told:
        text = "\n".join([title, *lines])
    here, id_ = f"/{dirname(path)}", _ID.search(basename(path))
    body = _ONLINE.sub(
        lambda url: quote(relpath(f"/{pages[url[1]]}", here)) if url[1] in pages else url[0], text
    )
    return note(path, _bare(path), body, f"notion:{id_[1] if id_ else path}", told)


def _bare(path: str) -> str:
    """A path without ids, which folders have in some exports and not in others."""
    parts = (_ID.sub("", part) for part in path.split("/"))
    return (
        "/".join(f"Untitled{part}" if part in ("", ".md") else part for part in parts)
        if path
        else ""
    )


def _time(said: str) -> str | None:
    """A date as Notion writes it, `January 5, 2026 10:00 AM (UTC)`, as notes have it."""
    for form in ("%B %d, %Y %I:%M %p", "%B %d, %Y", "%Y/%m/%d %H:%M", "%Y/%m/%d"):
        with suppress(ValueError):
            return datetime.strptime(said.partition(" (")[0], form).strftime("%Y-%m-%dT%H:%M:%S")  # noqa: DTZ007
    return None
