"""Notion's export as Markdown and CSV, a zip (or zips in a zip) or its folder: pages without the id in their names, links
led to where pages are now, and what a database says of a page as its properties."""

from __future__ import annotations

import csv
import io
import re
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path, PurePosixPath
from urllib.parse import quote, unquote

from simplemem.errors import Unreadable
from simplemem.imports.markdown import MOST_BYTES, files
from simplemem.imports.take import Item, Left, note
from simplemem.note.names import compare_key, legal_name

_ID = re.compile(r" ?([0-9a-f]{32})(?=$|_all$|\.)")
_LINK = re.compile(r"(?<=\]\()([^()\s]++(?:\([^()\s]*+\)[^()\s]*+)*+)(?=\))")
_PROPERTY = re.compile(r"([^:\n]{1,60}): (.*)")
_MOST_FILES, _MOST_TOGETHER = 100_000, 10_000_000_000
_TIMES = {"created": "created", "created time": "created", "last edited": "modified", "last edited time": "modified"}


def read(export: Path) -> Iterator[Item | Left]:
    """Pages as notes, and all other files as they are."""
    found: dict[str, bytes] = {}
    for each in _folder(export) if export.is_dir() else _zip(export.read_bytes(), export.name):
        if isinstance(each, Left):
            yield each
        else:
            found[each[0]] = each[1]
    places = _places(found)
    columns = {
        path[: -len(ending)]: _columns(data)
        for path, data in found.items()
        for ending in (".csv",)
        if path.endswith(ending)
    }
    for path, data in found.items():
        if not path.endswith(".md"):
            yield Item(path, places[path], data)
            continue
        try:
            text = data.decode("utf-8-sig").replace("\r\n", "\n")
        except UnicodeDecodeError as error:
            yield Left(path, f"byte {error.start} is not UTF-8 text")
            continue
        yield _page(path, text, places, columns.get(path.rpartition("/")[0], frozenset()))


def _page(path: str, text: str, places: Mapping[str, str], columns: frozenset[str]) -> Item:
    """A page: its title is the first heading, its properties are the lines below it that its database has as columns."""
    told: dict[str, object] = {}
    title, _, rest = text.partition("\n")
    lines = rest.lstrip("\n").split("\n") if title.startswith("# ") else []
    while lines and (said := _PROPERTY.fullmatch(lines[0])) and said[1] in columns:
        key, value = said[1].strip(), said[2].strip()
        told[_TIMES.get(key.lower(), key)] = _time(value) if key.lower() in _TIMES else value
        del lines[0]
    if tags := next((key for key in told if key.lower() == "tags"), ""):
        told["tags"] = [each.strip() for each in str(told.pop(tags)).split(",")]
    if told:
        text = "\n".join([title, *lines])
    called = _ID.search(path.rpartition("/")[2])
    body = _LINK.sub(lambda link: _led(link[0], path, places), text)
    return note(path, places[path], body, f"notion:{called[1]}" if called else "", **told)


def _led(target: str, source: str, places: Mapping[str, str]) -> str:
    """A link of a page to another file of the export, as it must be where both are now."""
    plain, mark, heading = target.partition("#")
    parts = list(PurePosixPath(source).parent.parts)
    for part in unquote(plain).split("/"):
        if part == "..":
            del parts[-1:]
        elif part != ".":
            parts.append(part)
    if (there := places.get("/".join(parts))) is None:
        return target
    here = PurePosixPath(places[source]).parent.parts
    common = next((k for k, (one, other) in enumerate(zip(here, there.split("/"), strict=False)) if one != other), None)
    common = min(len(here), len(there.split("/"))) if common is None else common
    return quote("/".join([*[".."] * (len(here) - common), *there.split("/")[common:]])) + mark + heading


def _places(found: Mapping[str, bytes]) -> dict[str, str]:
    """Where each file goes: its path without ids, with a number where two would be the same."""
    folders: dict[str, str] = {"": ""}
    taken: set[str] = set()

    def free(above: str, name: str) -> str:
        stem, dot, ending = name.rpartition(".") if "." in name else (name, "", "")
        stem = legal_name(_ID.sub("", stem).strip() or "Untitled")
        numbers = (f"{stem} {k}" if k > 1 else stem for k in range(1, 100_000))
        path = next(each for n in numbers if compare_key(each := f"{above}{n}{dot}{ending}") not in taken)
        taken.add(compare_key(path))
        return path

    def folder(path: str) -> str:
        if path not in folders:
            above, _, name = path.rpartition("/")
            page = places.get(f"{path}.md")  # the folder of a page is called as the page is
            folders[path] = f"{page.removesuffix('.md') if page else free(folder(above), name)}/"
        return folders[path]

    places: dict[str, str] = {}
    for path in sorted(found, key=lambda each: (each.count("/"), not each.endswith(".md"), each)):
        above, _, name = path.rpartition("/")
        places[path] = free(folder(above), name)
    return places


def _columns(data: bytes) -> frozenset[str]:
    """The columns of a database."""
    with suppress(UnicodeDecodeError, StopIteration, csv.Error):
        return frozenset(next(csv.reader(io.StringIO(data.decode("utf-8-sig")))))
    return frozenset()


def _time(said: str) -> str:
    """A date as Notion writes it, `January 5, 2026 10:00 AM`, as notes have it."""
    for form in ("%B %d, %Y %I:%M %p", "%B %d, %Y", "%Y/%m/%d %H:%M", "%Y/%m/%d"):
        with suppress(ValueError):
            return datetime.strptime(said, form).strftime("%Y-%m-%dT%H:%M:%S")  # noqa: DTZ007
    return said


def _folder(export: Path) -> Iterator[tuple[str, bytes] | Left]:
    for each in files(export):
        yield each if isinstance(each, Left) else (each[0], each[1].read_bytes())


def _zip(data: bytes, name: str, depth: int = 0) -> Iterator[tuple[str, bytes] | Left]:
    """The files of an archive, and of those in it."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            every = [each for each in archive.infolist() if not each.is_dir()]
            if len(every) > _MOST_FILES or sum(each.file_size for each in every) > _MOST_TOGETHER:
                raise Unreadable(f"{name} holds more than an export does", hint="Unpack it, and import the folder.")
            for each in every:
                path = each.filename
                if path.endswith(".zip") and depth < 2:
                    yield from _zip(archive.read(each), path, depth + 1)
                elif ".." in path.split("/") or path.startswith("/") or "\\" in path or each.file_size > MOST_BYTES:
                    yield Left(path, "it leads out of the archive, or is too large")
                else:
                    yield path, archive.read(each)
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError, OSError) as error:
        raise Unreadable(
            f"{name} is no zip that can be read: {error}", hint="Export it again, or unpack it."
        ) from error
