"""Notion's export as Markdown and CSV, a zip (or zips in a zip) or its folder: pages without the id in their names, links
led to where pages are now, and what a database says of a page as its properties."""

from __future__ import annotations

import csv
import io
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from posixpath import basename, dirname, relpath
from typing import Any
from urllib.parse import quote

from simplemem.errors import SimplememError
from simplemem.imports.export import File, Item, Left, each, note

_ID = re.compile(r" ?([0-9a-f]{32})(?=$|_all$|\.)")
_WRAPPER = re.compile(r"^Export-[0-9a-f-]{36}/")
_ONLINE = re.compile(r"(?<=\]\()https://(?:www\.)?notion\.so/(?:[^()\s/]*[-/])?([0-9a-f]{32})[^()\s]*(?=\))")
_PROPERTY = re.compile(r"([^:\n]{1,60}): (.*)")
_TIMES = {"created": "created", "created time": "created", "last edited": "modified", "last edited time": "modified"}


def read(files: Mapping[str, File]) -> Iterator[Item | Left]:
    """Pages as notes, and all other files as they are. Nothing where there is neither a page nor a database."""
    every = {_WRAPPER.sub("", path): file for path, file in files.items()}
    pages = {said[1]: path for path in every if path.endswith(".md") and (said := _ID.search(basename(path)))}
    columns = defaultdict[str, set[str]](set)  # of databases, by the folders of their pages
    for path, file in every.items():
        with suppress(SimplememError, ValueError, StopIteration, csv.Error):
            if path.endswith(".csv"):
                rows = csv.reader(io.StringIO(file.data().decode("utf-8-sig")))
                columns[_bare(path.removesuffix(".csv").removesuffix("_all"))].update(next(rows))

    def made(path: str, file: File) -> Iterator[Item]:
        if path.endswith(".md"):
            yield _page(path, file.data(), pages, columns[_bare(dirname(path))])
        else:
            yield Item(path, _bare(path), file.data(), is_linked=True)

    if any(path.endswith((".md", ".csv")) for path in every):
        yield from each(every.items(), made)


def _page(path: str, data: bytes, pages: Mapping[str, str], columns: Collection[str]) -> Item:
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
    body = _ONLINE.sub(lambda url: quote(relpath(f"/{pages[url[1]]}", here)) if url[1] in pages else url[0], text)
    return note(path, _bare(path), body, f"notion:{id_[1] if id_ else path}", told)


def _bare(path: str) -> str:
    """A path without ids, which folders have in some exports and not in others."""
    parts = (_ID.sub("", part) for part in path.split("/"))
    return "/".join(f"Untitled{part}" if part in ("", ".md") else part for part in parts) if path else ""


def _time(said: str) -> str | None:
    """A date as Notion writes it, `January 5, 2026 10:00 AM (UTC)`, as notes have it."""
    for form in ("%B %d, %Y %I:%M %p", "%B %d, %Y", "%Y/%m/%d %H:%M", "%Y/%m/%d"):
        with suppress(ValueError):
            return datetime.strptime(said.partition(" (")[0], form).strftime("%Y-%m-%dT%H:%M:%S")  # noqa: DTZ007
    return None
