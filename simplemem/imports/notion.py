"""Notion's export as Markdown and CSV, a zip (or zips in a zip) or its folder: pages without the id in their names, links
led to where pages are now, and what a database says of a page as its properties."""

from __future__ import annotations

import csv
import io
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from posixpath import relpath
from typing import Any
from urllib.parse import quote

from simplemem.errors import Unreadable
from simplemem.imports.archive import members
from simplemem.imports.take import Item, Left, note

_ID = re.compile(r" ?([0-9a-f]{32})(?=$|_all$|\.)")
_HIDDEN = re.compile(r"^__MACOSX/|(?:^|/)\.(?!\.|[^/]*[0-9a-f]{32})")  # not a page whose title begins with a dot
_WRAPPER = re.compile(r"^Export-[0-9a-f-]{36}/")
_ONLINE = re.compile(r"(?<=\]\()https://(?:www\.)?notion\.so/(?:[^()\s/]*[-/])?([0-9a-f]{32})[^()\s]*(?=\))")
_PROPERTY = re.compile(r"([^:\n]{1,60}): (.*)")
_TIMES = {"created": "created", "created time": "created", "last edited": "modified", "last edited time": "modified"}


def read(export: Path) -> Iterator[Item | Left]:
    """Pages as notes, and all other files as they are."""
    with members(export) as every:
        found = {_WRAPPER.sub("", each.path): each.data for each in every}
        found = {path: data for path, data in found.items() if not _HIDDEN.search(path)}
        if not any(path.endswith((".md", ".csv")) for path in found):
            raise Unreadable(f"{export} has no pages", hint="Export from Notion as Markdown & CSV.")
        yield from _items(found)


def _items(found: Mapping[str, Callable[[], bytes | Left]]) -> Iterator[Item | Left]:
    columns = defaultdict[str, set[str]](set)
    pages = {said[1]: path for path in found if path.endswith(".md") and (said := _ID.search(path.rpartition("/")[2]))}
    for path in found:
        if path.endswith(".csv"):
            columns[_bare(path.removesuffix(".csv").removesuffix("_all"))].update(_columns(found[path]()))
    for path, unpack in found.items():
        if isinstance(data := unpack(), Left):
            yield data
        elif path.endswith(".md"):
            yield _page(path, data, pages, columns.get(_bare(path.rpartition("/")[0]), ()))
        else:
            yield Item(path, _bare(path), data, is_linked=True)


def _page(path: str, data: bytes, pages: Mapping[str, str], columns: Collection[str]) -> Item | Left:
    """A page: its title is the first heading, its properties are the lines below it that its database has as columns."""
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        return Left(path, f"byte {error.start} is not UTF-8 text")
    told: dict[str, Any] = {}
    title, _, rest = text.partition("\n")
    lines = rest.lstrip("\n").split("\n") if title.startswith("# ") else []
    while lines and (said := _PROPERTY.fullmatch(lines[0])) and said[1] in columns:
        key, value = said[1].strip(), said[2].strip()
        at = _time(value) if (date := _TIMES.get(key.lower())) else None
        told |= {date: at} if date and at else {key: value}
        del lines[0]
    if tags := next((key for key in told if key.lower() == "tags"), ""):
        told["tags"] = [each.strip() for each in str(told.pop(tags)).split(",")]
    if told:
        text = "\n".join([title, *lines])
    called = _ID.search(path.rpartition("/")[2])
    here = f"/{path.rpartition('/')[0]}"
    body = _ONLINE.sub(lambda url: quote(relpath(f"/{pages[url[1]]}", here)) if url[1] in pages else url[0], text)
    return note(path, _bare(path), body, f"notion:{called[1] if called else path}", told)


def _bare(path: str) -> str:
    """A path without ids, which folders have in some exports and not in others."""
    parts = (_ID.sub("", part) for part in path.split("/"))
    return "/".join(f"Untitled{part}" if part in ("", ".md") else part for part in parts) if path else ""


def _columns(data: bytes | Left) -> Collection[str]:
    """The columns of a database."""
    with suppress(UnicodeDecodeError, StopIteration, csv.Error):
        return set(next(csv.reader(io.StringIO(data.decode("utf-8-sig"))))) if isinstance(data, bytes) else set()
    return set()


def _time(said: str) -> str | None:
    """A date as Notion writes it, `January 5, 2026 10:00 AM (UTC)`, as notes have it."""
    for form in ("%B %d, %Y %I:%M %p", "%B %d, %Y", "%Y/%m/%d %H:%M", "%Y/%m/%d"):
        with suppress(ValueError):
            return datetime.strptime(said.partition(" (")[0], form).strftime("%Y-%m-%dT%H:%M:%S")  # noqa: DTZ007
    return None
