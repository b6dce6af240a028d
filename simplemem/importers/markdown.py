"""Readers for folders of Markdown notes and the files beside them.

Any folder is copied byte for byte. Others need changes: a project of basic-memory, what Claude Code
remembers about projects, the files of Apple Notes or an exporter, and Notion's Markdown & CSV.
"""

from __future__ import annotations

import csv
import io
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from posixpath import basename, dirname, relpath
from typing import Any
from urllib.parse import quote

from simplemem.errors import SimplememError
from simplemem.importers.export import (
    SOURCE,
    ExportedFile,
    Item,
    Skipped,
    convert_records,
    local_time,
    make_note,
)
from simplemem.note.header import find_key, read_header
from simplemem.note.names import base_name
from simplemem.note.properties import set_property

_LINK_TARGET = re.compile(rb"(?<=\[\[)[^][|#\n]++(?=[]|#])")

# Notion: the id at the end of a file name, the folder around an export, a link to a page on its
# website, and a line below the title with the value of a column.
_NOTION_ID = re.compile(r" ?([0-9a-f]{32})(?=$|_all(?:$|\.)|\.)")
_NOTION_WRAPPER = re.compile(r"^Export-[0-9a-f-]{36}/")
_NOTION_LINK = re.compile(
    r"(?<=\]\()https://(?:www\.)?notion\.so/(?:[^()\s/]*[-/])?([0-9a-f]{32})[^()\s]*(?=\))"
)
_NOTION_PROPERTY = re.compile(r"([^:\n]{1,60}): (.*)")
_NOTION_TIME_FORMATS = ("%B %d, %Y %I:%M %p", "%B %d, %Y", "%Y/%m/%d %H:%M", "%Y/%m/%d")
_NOTION_DATE_KEYS = {
    "created": "created",
    "created time": "created",
    "last edited": "modified",
    "last edited time": "modified",
}


def read(files: Mapping[str, ExportedFile]) -> Iterator[Item | Skipped]:
    """Yield every file as it is. A file that cannot be read is skipped."""
    return convert_records(files.items(), _copy_file)


def _copy_file(path: str, file: ExportedFile) -> Iterator[Item]:
    """Yield a file as it is. Raises Unreadable if it cannot be read."""
    yield Item(path, path, file.read(), modified_at=file.modified_at)


@dataclass(frozen=True, slots=True)
class _NoteNames:
    """The names of the notes of a basic-memory project.

    Attributes:
        file_names: The file names of notes, by their casefolded titles and permalinks.
        casefolded: All file names, casefolded.
    """

    file_names: dict[str, str]
    casefolded: set[str]

    def replace_target(self, link: re.Match[bytes]) -> bytes:
        """Return the new text for the target of a wikilink, which is a match of `_LINK_TARGET`.

        It is the file name, with the old target as its alias if the link has neither an alias nor a
        heading. A target that is a file name already, or that names no note, stays as it is.
        """
        target = link[0].decode("utf-8", "replace")
        key = target.casefold()
        file_name = self.file_names.get(key)
        if file_name is None or key in self.casefolded:
            return link[0]

        is_only_target = link.string.startswith(b"]", link.end())
        if is_only_target:
            return f"{file_name}|{target}".encode()
        return file_name.encode()


def read_basic_memory(files: Mapping[str, ExportedFile]) -> Iterator[Item | Skipped]:
    """Yield every file of a basic-memory project.

    A link to a note's title or permalink is changed to its file name, unless a file has the name
    that the link has. Every other byte stays. A file that cannot be read is skipped.
    """
    names = _collect_note_names(files)

    def convert(path: str, file: ExportedFile) -> Iterator[Item]:
        """Yield a file, with links to file names if it is a note."""
        data = file.read()
        if path.endswith(".md"):
            data = _LINK_TARGET.sub(names.replace_target, data)
        yield Item(path, path, data, modified_at=file.modified_at)

    return convert_records(files.items(), convert)


def _collect_note_names(files: Mapping[str, ExportedFile]) -> _NoteNames:
    """Return the names of all notes of a project. Notes that cannot be read are ignored.

    If several notes have the same title or permalink, the last one counts.
    """
    names = _NoteNames({}, set())
    for path, file in files.items():
        if not path.endswith(".md"):
            continue
        try:
            text = file.read().decode("utf-8", "replace")
        except SimplememError:  # it is reported when the file is converted
            continue

        properties = read_header(text).properties
        title = str(properties.get("title") or "")
        permalink = str(properties.get("permalink") or "")
        _, _, permalink_in_project = permalink.partition("/")
        file_name = base_name(path)
        for name in (title, permalink, permalink_in_project):
            names.file_names[name.casefold()] = file_name
        names.casefolded.add(file_name.casefold())
    return names


def read_agent(files: Mapping[str, ExportedFile]) -> Iterator[Item | Skipped]:
    """Yield what Claude Code remembers about projects, with a folder for each project.

    These are the files `memory/*.md` below its folder of projects, and CLAUDE.md files. Other files
    are ignored, and files that cannot be read are skipped.
    """
    return convert_records(files.items(), _convert_agent_file)


def _convert_agent_file(path: str, file: ExportedFile) -> Iterator[Item]:
    """Yield a file as a note if it is one of the files of Claude Code's memory; else nothing.

    Raises Unreadable for any file with a problem, so that it is reported as skipped, and
    UnicodeDecodeError for a note that is not UTF-8.
    """
    full_path = Path("/", path)
    if file.disk_path is not None:
        full_path = file.disk_path.absolute()
    folder = full_path.parent
    name = full_path.name

    is_in_memory = folder.name == "memory"
    is_instructions = name.startswith("CLAUDE.")
    is_memory = name.endswith(".md") and (is_in_memory or is_instructions)
    if not is_memory and not file.problem:
        return

    # Claude Code names the folder of a project after the project's path.
    project = re.sub(r"[^A-Za-z0-9]", "-", str(folder))
    if is_in_memory:
        project = folder.parent.name
    project_folder = project.strip("-")
    yield _convert_note(
        path,
        f"{project_folder}/{name}",
        file,
        source=f"claude-code:{project}/{name}",
        properties={},
    )


def read_apple_notes(files: Mapping[str, ExportedFile]) -> Iterator[Item | Skipped]:
    """Yield each note, with the dates of its file if it has none, and other files as they are.

    A note that is not UTF-8 is skipped, and so is a file that cannot be read.
    """
    return convert_records(files.items(), _convert_apple_note)


def _convert_apple_note(path: str, file: ExportedFile) -> Iterator[Item]:
    """Yield a note with dates, or another file as it is.

    Raises Unreadable if it cannot be read, and UnicodeDecodeError if a note is not UTF-8.
    """
    if not path.lower().endswith(".md"):
        yield Item(path, path, file.read(), modified_at=file.modified_at, is_linked=True)
        return

    created_at = file.modified_at
    if file.disk_path is not None:
        status = file.disk_path.stat()
        # Not every system knows when a file was created.
        created_at = getattr(status, "st_birthtime", created_at)
    dates = {
        "created": local_time(created_at),
        "modified": local_time(file.modified_at),
    }
    yield _convert_note(path, path, file, f"apple-notes:{path}", dates)


def _convert_note(
    origin: str,
    path: str,
    file: ExportedFile,
    source: str,
    properties: Mapping[str, str | None],
) -> Item:
    """Return a note with its source, and with those of the properties that it does not have.

    A `source` of its own becomes `original source`. Raises UnicodeDecodeError if the file is not
    UTF-8, and Unreadable if it cannot be read.
    """
    text = file.read().decode()
    own_properties = read_header(text).properties
    new_properties: dict[str, Any] = {
        key: value
        for key, value in properties.items()
        if value and find_key(own_properties, key) is None
    }

    source_key = find_key(own_properties, SOURCE)
    if source_key is not None:
        new_properties[f"original {SOURCE}"] = own_properties[source_key]
    new_properties[SOURCE] = source

    for key, value in new_properties.items():
        text = set_property(text, key, value)
    return Item(origin, path, text, source, file.modified_at)


@dataclass(frozen=True, slots=True)
class _NotionExport:
    """The pages and databases of a Notion export.

    Attributes:
        pages: The path of each page by its id.
        columns: The columns of each database, by the folder of its pages. The folder is
            `_without_ids`.
    """

    pages: dict[str, str]
    columns: dict[str, set[str]]


def read_notion(files: Mapping[str, ExportedFile]) -> Iterator[Item | Skipped]:
    """Yield pages of Notion as notes, and other files as they are, with paths without ids.

    Yields nothing for an export that has neither a page nor a database. A page that is not UTF-8 is
    skipped, and so is a file that cannot be read.
    """
    unwrapped: dict[str, ExportedFile] = {}
    for path, file in files.items():
        new_path = _NOTION_WRAPPER.sub("", path)
        unwrapped[new_path] = file
    if not any(path.endswith((".md", ".csv")) for path in unwrapped):
        return

    pages = _pages_by_id(unwrapped)
    columns = _read_columns(unwrapped)
    export = _NotionExport(pages, columns)

    def convert(path: str, file: ExportedFile) -> Iterator[Item]:
        """Yield a page as a note, or another file as it is."""
        data = file.read()
        if path.endswith(".md"):
            yield _convert_page(path, data, export)
        else:
            new_path = _without_ids(path)
            yield Item(path, new_path, data, is_linked=True)

    yield from convert_records(unwrapped.items(), convert)


def _pages_by_id(paths: Iterable[str]) -> dict[str, str]:
    """Return the paths of all pages that have an id in their name, by this id."""
    pages: dict[str, str] = {}
    for path in paths:
        page_id = _id_of(path)
        if page_id and path.endswith(".md"):
            pages[page_id] = path
    return pages


def _id_of(path: str) -> str:
    """Return the id at the end of a file's name, "" without one."""
    match = _NOTION_ID.search(basename(path))
    return match[1] if match else ""


def _read_columns(files: Mapping[str, ExportedFile]) -> dict[str, set[str]]:
    """Return the columns of all databases, by the folder of their pages without ids.

    A database that cannot be read, or that is empty, is ignored.
    """
    columns: dict[str, set[str]] = defaultdict(set)
    for path, file in files.items():
        if not path.endswith(".csv"):
            continue

        # An export has two files for a database, and one of them ends with `_all.csv`.
        database = path.removesuffix(".csv").removesuffix("_all")
        folder = _without_ids(database)
        with suppress(SimplememError, ValueError, StopIteration, csv.Error):
            data = file.read()
            text = data.decode("utf-8-sig")
            rows = csv.reader(io.StringIO(text))
            first_row = next(rows)
            columns[folder].update(first_row)
    return columns


def _convert_page(path: str, data: bytes, export: _NotionExport) -> Item:
    """Return a page as a note, whose links to other pages are relative.

    The lines below its title that name columns of its database become properties. Raises
    UnicodeDecodeError if the page is not UTF-8.
    """
    text = data.decode("utf-8-sig")
    page = text.replace("\r\n", "\n")
    folder = dirname(path)
    database = _without_ids(folder)
    columns = export.columns.get(database, ())
    properties, body = _split_properties(page, columns)

    def make_relative(link: re.Match[str]) -> str:
        """Return the relative address of a page; the same address if the export lacks the page."""
        target = export.pages.get(link[1])
        if target is None:
            return link[0]
        return quote(relpath(f"/{target}", f"/{folder}"))

    body = _NOTION_LINK.sub(make_relative, body)
    page_id = _id_of(path) or path
    source = f"notion:{page_id}"
    return make_note(path, _without_ids(path), body, source, properties)


def _split_properties(page: str, columns: Collection[str]) -> tuple[dict[str, Any], str]:
    """Return the properties of a page, and the page without their lines.

    They are the lines directly below the title that begin with the name of a column. `{}` and the
    same page if there is none.
    """
    title, _, rest = page.partition("\n")
    if not title.startswith("# "):
        return {}, page

    properties: dict[str, Any] = {}
    lines = rest.lstrip("\n").split("\n")
    property_lines = 0
    for line in lines:
        match = _NOTION_PROPERTY.fullmatch(line)
        if match is None or match[1] not in columns:
            break
        column = match[1].strip()
        text = match[2].strip()
        key, value = _read_property(column, text)
        properties[key] = value
        property_lines += 1
    if not properties:
        return {}, page

    _split_tags(properties)
    return properties, "\n".join([title, *lines[property_lines:]])


def _read_property(column: str, value: str) -> tuple[str, str]:
    """Return the key and the value of a note's property for a value in a column of Notion.

    A date of the page becomes `created` or `modified`; any other column keeps its name.
    """
    date_key = _NOTION_DATE_KEYS.get(column.lower())
    if date_key is None:
        return column, value
    time = _parse_notion_time(value)
    if time is None:
        return column, value
    return date_key, time


def _split_tags(properties: dict[str, Any]) -> None:
    """Change the properties: replace the text of tags, in whatever case, by a list in `tags`.

    Only the first property of that name is changed.
    """
    for key in properties:
        if key.lower() == "tags":
            tags = str(properties.pop(key)).split(",")
            properties["tags"] = [tag.strip() for tag in tags]
            return


def _without_ids(path: str) -> str:
    """Return a path without the ids that Notion adds to names.

    A part that is nothing but an id becomes "Untitled". Some exports have no ids in folders, so
    paths of pages and databases are compared in this form.
    """
    if not path:
        return ""
    parts = []
    for part in path.split("/"):
        name = _NOTION_ID.sub("", part)
        if name in ("", ".md"):
            name = f"Untitled{name}"
        parts.append(name)
    return "/".join(parts)


def _parse_notion_time(text: str) -> str | None:
    """Return a date such as `January 5, 2026 10:00 AM (UTC)` as notes have it; else None.

    A time zone in parentheses is ignored.
    """
    text, _, _ = text.partition(" (")
    for time_format in _NOTION_TIME_FORMATS:
        with suppress(ValueError):
            time = datetime.strptime(text, time_format)  # noqa: DTZ007
            return time.strftime("%Y-%m-%dT%H:%M:%S")
    return None
