"""`recent_activity` and `list_directory` of basic-memory.

They raise Invalid for a type, a timeframe or a depth that they do not know. A directory that does
not exist is empty. Neither counts as reading a note.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import islice
from typing import Final

from simplemem.errors import Invalid
from simplemem.models import Filter, Listed
from simplemem.profiles.basic_memory import texts
from simplemem.profiles.basic_memory.adapter import basic_memory_tool
from simplemem.profiles.basic_memory.answers import DirectoryNode, DirectoryPage, RecentRow
from simplemem.profiles.basic_memory.arguments import (
    DirectorySort,
    ListDirectoryArguments,
    RecentActivityArguments,
    as_list,
    page_slice,
)
from simplemem.profiles.basic_memory.project import ROW_TYPES, Project, Result
from simplemem.profiles.basic_memory.timeframe import read_timeframe
from simplemem.tools.arguments import from_json
from simplemem.tools.tool import Data, Reply

_MAX_RECENT_NOTES: Final = 1000
_MAX_DEPTH: Final = 10


# --- recent_activity


@basic_memory_tool("Recent Activity")
def recent_activity(project: Project, arguments: RecentActivityArguments) -> Reply[Result]:
    """What changed of late, newest first: timeframe is "7d", "24h", "2 days ago", "last week"
    or a date; type is entity (notes), observation or relation, or several.
    """
    row_types = _row_types(arguments)
    timeframe = read_timeframe(project.store, arguments.timeframe)

    page = page_slice(arguments)
    recent_rows = _recent_rows(project, row_types, timeframe.since)
    one_more = page.stop + 1  # shows whether there are more pages
    first_rows = list(islice(recent_rows, one_more))
    rows = first_rows[page]

    answer = [RecentRow.of(row) for row in rows]
    if not rows:
        nothing = texts.no_recent_activity(project.name, timeframe.label)
        return project.reply(nothing, answer)

    has_more = len(first_rows) > page.stop
    summary = _summary_of(len(rows), arguments.page, has_more=has_more)
    text = texts.recent_activity(rows, project.name, timeframe.label, summary)
    return project.reply(text, answer)


def _summary_of(count: int, page: int, *, has_more: bool) -> str:
    """Return the last sentence of a page of recent rows: how many it has, and the next page.

    `count` is the number of rows on this page, and `page` its number, from 1.
    """
    if not has_more:
        return f"{count} items found."
    next_page = page + 1
    return f"Showing {count} items (page {page}). Use page={next_page} to see more."


def _recent_rows(project: Project, row_types: Collection[str], since: str) -> Iterator[Data]:
    """Yield the rows of these types of the notes that changed since a time, newest first.

    Only the 1,000 notes that changed last are read. `since` is a text such as `7 days ago`.
    """
    recent = Filter(since=since)
    page = project.store.list(filter=recent, limit=_MAX_RECENT_NOTES)
    for listed in page.items:
        note = project.store.read(listed.name)
        yield from project.rows(note, row_types)


def _row_types(arguments: RecentActivityArguments) -> set[str]:
    """Return the types of rows that a call lists; "entity" if it names none.

    Raises Invalid for an unknown type.
    """
    sent_type = from_json(arguments.type)
    sent = as_list(sent_type)
    row_types = {str(name).lower() for name in sent if name}
    if not row_types:
        row_types = {"entity"}
    invalid_types = row_types - set(ROW_TYPES)
    if invalid_types:
        raise Invalid(f"Invalid type: {min(invalid_types)}. Valid types are: {list(ROW_TYPES)}")
    return row_types


# --- list_directory


@dataclass(frozen=True)
class DirectoryContents:
    """The folders and notes of a directory, within the depth of a call and matching its pattern.

    Attributes:
        folders: Paths from the root of the project, with a slash before them, sorted by name.
        notes: Names of notes, in the order that the call asks for.
    """

    folders: list[str]
    notes: list[str]


@basic_memory_tool("List Directory")
def list_directory(project: Project, arguments: ListDirectoryArguments) -> Reply[Result]:
    """The notes and folders of a directory, down to a depth of at most 10; file_name_glob
    (*.md, *meeting*) narrows them.
    """
    if not 1 <= arguments.depth <= _MAX_DEPTH:
        raise Invalid(f"depth must be between 1 and {_MAX_DEPTH}, got {arguments.depth}")

    contents = _directory_contents(project, arguments)
    total = len(contents.folders) + len(contents.notes)
    page = page_slice(arguments)
    rows = _rows_of_page(project, contents, page)
    nodes = [DirectoryNode.of(row) for row in rows]
    has_more = total > page.stop
    answer = DirectoryPage(
        nodes=nodes,
        page=arguments.page,
        page_size=arguments.page_size,
        total=total,
        has_more=has_more,
    )
    if total == 0:
        return project.reply(texts.empty_directory(arguments), answer)
    text = texts.directory_page(rows, arguments, total, has_more=has_more)
    return project.reply(text, answer)


def _rows_of_page(project: Project, contents: DirectoryContents, page: slice) -> list[Data]:
    """Return the rows of a page of a directory, whose folders come before its notes."""
    rows = [_folder_row(path) for path in contents.folders[page]]

    folder_count = len(contents.folders)
    first_note = max(0, page.start - folder_count)
    end_note = max(0, page.stop - folder_count)
    note_names = contents.notes[first_note:end_note]
    for name in note_names:
        note = project.store.read(name)
        row = project.row(note)
        row["type"] = "file"
        rows.append(row)
    return rows


def _folder_row(path: str) -> Data:
    """Return the folder at a path as a row of an answer. Its `children` are empty."""
    return {
        "type": "directory",
        "name": _last_part(path),
        "directory_path": path,
        "children": [],
    }


def _directory_contents(project: Project, arguments: ListDirectoryArguments) -> DirectoryContents:
    """Return what the directory of a call contains, down to its depth and matching its pattern.

    It is empty for a directory that does not exist. A pattern is matched with names alone, and
    capitals count.
    """
    directory = arguments.dir_name.removeprefix("./").strip("/")
    start = f"{directory}/" if directory else ""
    pattern = arguments.file_name_glob or "*"

    folders: set[str] = set()
    notes: list[Listed] = []
    for note in _notes_below(project, start):
        path = note.path.removeprefix(start)
        parts = path.split("/")
        file_name = parts.pop()
        parents = parts
        folders |= _folders_above(parents, arguments.depth)
        if len(parents) < arguments.depth and fnmatchcase(file_name, pattern):
            notes.append(note)

    folder_paths = [
        f"/{start}{folder}" for folder in folders if fnmatchcase(_last_part(folder), pattern)
    ]
    folder_paths.sort(key=_folder_order)

    sorted_notes = _sorted_notes(notes, arguments.sort)
    note_names = [note.name for note in sorted_notes]
    return DirectoryContents(folder_paths, note_names)


def _folder_order(path: str) -> tuple[str, str]:
    """Return the sort key of a folder: its name, then its path."""
    return _last_part(path), path


def _notes_below(project: Project, start: str) -> list[Listed]:
    """Return all notes whose paths begin with `start`, in exactly this spelling.

    `start` is a directory with a slash, or "" for the whole project.
    """
    notes = project.store.extension.list_all(Filter(prefix=start))
    return [note for note in notes if note.path.startswith(start)]


def _folders_above(parents: list[str], max_depth: int) -> set[str]:
    """Return the paths of the folders above a note, as far as `max_depth` folders down.

    `parents` are the names of these folders, the outermost first. `["a", "b"]` gives `a` and `a/b`.
    """
    folders = set()
    path = ""
    for name in parents[:max_depth]:
        path = f"{path}/{name}" if path else name
        folders.add(path)
    return folders


def _sorted_notes(notes: list[Listed], sort: DirectorySort | None) -> list[Listed]:
    """Return notes in the order `sort` of a call; without it, by the name of the file."""
    order: str = sort or "name_asc"
    field, _, direction = order.partition("_")
    is_descending = direction == "desc"
    return sorted(
        notes,
        key=_SORT_KEYS[field],
        reverse=is_descending,
    )


def _last_part(path: str) -> str:
    """Return the part of a path after its last slash."""
    return path.rpartition("/")[2]


_SORT_KEYS: Final[dict[str, Callable[[Listed], str]]] = {
    "title": lambda note: note.title.casefold(),
    "updated": lambda note: note.modified,
    "name": lambda note: _last_part(note.path).casefold(),
}
"""The sort key of a note for each order of `DirectorySort`, without its direction."""
