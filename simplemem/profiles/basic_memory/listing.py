"""`recent_activity` and `list_directory` of basic-memory."""

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
    first_rows = list(islice(recent_rows, page.stop + 1))
    rows = first_rows[page]

    answer = [RecentRow.of(row) for row in rows]
    if not rows:
        return project.reply(texts.no_recent_activity(project.name, timeframe.label), answer)

    summary = f"{len(rows)} items found."
    if len(first_rows) > page.stop:
        summary = (
            f"Showing {len(rows)} items (page {arguments.page}). "
            f"Use page={arguments.page + 1} to see more."
        )
    text = texts.recent_activity(rows, project.name, timeframe.label, summary)
    return project.reply(text, answer)


def _recent_rows(project: Project, row_types: Collection[str], since: str) -> Iterator[Data]:
    """Yield the rows of these types of the notes that changed since a time, newest first."""
    recent = Filter(since=since)
    page = project.store.list(filter=recent, limit=_MAX_RECENT_NOTES)
    for listed in page.items:
        note = project.store.read(listed.name)
        yield from project.rows(note, row_types)


def _row_types(arguments: RecentActivityArguments) -> set[str]:
    """Return the types of rows that a call lists. Raise Invalid for an unknown type."""
    sent = as_list(from_json(arguments.type))
    row_types = {str(name).lower() for name in sent if name} or {"entity"}
    invalid_types = row_types - set(ROW_TYPES)
    if invalid_types:
        raise Invalid(f"Invalid type: {min(invalid_types)}. Valid types are: {list(ROW_TYPES)}")
    return row_types


# --- list_directory


@dataclass(frozen=True)
class DirectoryContents:
    """The folders and notes of a directory, within the depth of a call and matching its pattern."""

    folders: list[str]
    """Paths from the root of the project, sorted by name."""
    notes: list[str]
    """Names of notes, in the order that the call asks for."""


@basic_memory_tool("List Directory")
def list_directory(project: Project, arguments: ListDirectoryArguments) -> Reply[Result]:
    """The notes and folders of a directory, down to a depth of at most 10; file_name_glob
    (*.md, *meeting*) narrows them.
    """
    if not 1 <= arguments.depth <= _MAX_DEPTH:
        raise Invalid(f"depth must be between 1 and {_MAX_DEPTH}, got {arguments.depth}")

    contents = _directory_contents(project, arguments)
    folder_count = len(contents.folders)
    total = folder_count + len(contents.notes)

    # Folders come before notes.
    page = page_slice(arguments)
    rows = [_folder_row(path) for path in contents.folders[page]]
    first_note = max(0, page.start - folder_count)
    end_note = max(0, page.stop - folder_count)
    for name in contents.notes[first_note:end_note]:
        note = project.store.read(name)
        row = project.row(note)
        rows.append(row | {"type": "file"})

    has_more = total > page.stop
    answer = DirectoryPage(
        nodes=[DirectoryNode.of(row) for row in rows],
        page=arguments.page,
        page_size=arguments.page_size,
        total=total,
        has_more=has_more,
    )
    if total == 0:
        return project.reply(texts.empty_directory(arguments), answer)
    return project.reply(texts.directory_page(rows, arguments, total, has_more=has_more), answer)


def _folder_row(path: str) -> Data:
    """Return a folder as a row of an answer."""
    return {
        "type": "directory",
        "name": _last_part(path),
        "directory_path": path,
        "children": [],
    }


def _directory_contents(project: Project, arguments: ListDirectoryArguments) -> DirectoryContents:
    """Return what the directory of a call contains, down to its depth and matching its pattern."""
    directory = arguments.dir_name.removeprefix("./").strip("/")
    start = f"{directory}/" if directory else ""
    pattern = arguments.file_name_glob or "*"

    folders: set[str] = set()
    notes: list[Listed] = []
    for note in _notes_below(project, start):
        parts = note.path.removeprefix(start).split("/")
        file_name = parts[-1]
        parents = parts[:-1]
        folders |= _folders_above(parents, arguments.depth)
        if len(parents) < arguments.depth and fnmatchcase(file_name, pattern):
            notes.append(note)

    matching_folders = [folder for folder in folders if fnmatchcase(_last_part(folder), pattern)]
    folder_paths = [f"/{start}{folder}" for folder in matching_folders]
    folder_paths.sort(key=lambda path: (_last_part(path), path))
    sorted_notes = _sorted_notes(notes, arguments.sort)
    return DirectoryContents(
        folders=folder_paths,
        notes=[note.name for note in sorted_notes],
    )


def _notes_below(project: Project, start: str) -> list[Listed]:
    """Return all notes whose paths begin with a directory, in exactly this spelling."""
    notes = project.store.extension.list_all(Filter(prefix=start))
    return [note for note in notes if note.path.startswith(start)]


def _folders_above(parents: list[str], max_depth: int) -> set[str]:
    """Return the paths of the folders above a note, from the directory down to `max_depth`."""
    depth = min(len(parents), max_depth)
    return {"/".join(parents[:level]) for level in range(1, depth + 1)}


def _sorted_notes(notes: list[Listed], sort: DirectorySort | None) -> list[Listed]:
    """Return notes in the order of a call; without `sort`, by the name of the file."""
    keys: dict[str, Callable[[Listed], str]] = {
        "title": lambda note: note.title.casefold(),
        "updated": lambda note: note.modified,
        "name": lambda note: _last_part(note.path).casefold(),
    }
    key, _, direction = (sort or "name_asc").partition("_")
    return sorted(notes, key=keys[key], reverse=direction == "desc")


def _last_part(path: str) -> str:
    """Return the name of a file or folder at a path."""
    return path.rpartition("/")[2]
