"""The arguments of basic-memory's tools.

Their names, types and defaults are those of basic-memory 0.24.1. The order of the fields is the
order in the tool list.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, Protocol

from pydantic import Field

from simplemem.tools.arguments import Arguments, Object, Words, aliases

MAX_HITS: Final = 200
"""The highest page size, and the number of hits that one search looks through."""

OutputFormat = Literal["text", "json"]
EditOperation = Literal[
    "append",
    "prepend",
    "find_replace",
    "replace_section",
    "insert_before_section",
    "insert_after_section",
]
DirectorySort = Literal["title_asc", "title_desc", "updated_asc", "updated_desc"]
LineNumber = Annotated[int, Field(ge=1)]
PageNumber = Annotated[int, Field(ge=1), aliases("page", "page_number")]
PageSize = Annotated[int, Field(ge=1, le=MAX_HITS), aliases("page_size", "limit", "per_page")]


class ProjectArguments(Protocol):
    """The arguments that each tool has: the project, and the format of the answer."""

    @property
    def project(self) -> str | None:
        """The name of the project; None for the only one."""

    @property
    def project_id(self) -> str | None:
        """The id of the project, which goes before its name."""

    @property
    def output_format(self) -> OutputFormat:
        """Whether the answer is a text or JSON."""
        ...


class PageArguments(Protocol):
    """The arguments that choose a page of a list."""

    @property
    def page(self) -> int:
        """The number of the page, from 1."""
        ...

    @property
    def page_size(self) -> int:
        """How many items a page has."""
        ...


def page_slice(arguments: PageArguments) -> slice:
    """Return the slice of a list that is the page of a call. It may reach past the list's end."""
    start = (arguments.page - 1) * arguments.page_size
    return slice(start, start + arguments.page_size)


def as_list(value: object) -> list[Any]:
    """Return a list as it is, and any other value, also None, as the only item of a list."""
    if isinstance(value, list):
        return value
    return [value]


class WriteNoteArguments(Arguments):
    """The arguments of `write_note`."""

    title: str
    content: str
    directory: Annotated[str, aliases("directory", "folder", "dir", "path")]
    project: str | None = None
    workspace: str | None = None
    project_id: str | None = None
    tags: list[str] | str | None = None
    note_type: str = "note"
    metadata: Object | None = None
    overwrite: bool | None = None
    expected_checksum: str | None = None
    output_format: OutputFormat = "text"


class ReadNoteArguments(Arguments):
    """The arguments of `read_note`."""

    identifier: str
    project: str | None = None
    project_id: str | None = None
    page: PageNumber = 1
    page_size: PageSize = 10
    output_format: OutputFormat = "text"
    include_frontmatter: bool = False
    start_line: LineNumber | None = None
    end_line: LineNumber | None = None
    include_content: bool = True


class EditNoteArguments(Arguments):
    """The arguments of `edit_note`."""

    identifier: str
    operation: EditOperation
    content: str
    project: str | None = None
    workspace: str | None = None
    project_id: str | None = None
    section: str | None = None
    find_text: Annotated[str | None, aliases("find_text", "find", "old_text")] = None
    expected_replacements: int | None = None
    replace_subsections: bool | None = None
    metadata: Object | None = None
    expected_checksum: str | None = None
    output_format: OutputFormat = "text"


class SearchNotesArguments(Arguments):
    """The arguments of `search_notes`."""

    query: Annotated[str | None, aliases("query", "q", "text")] = None
    project: str | None = None
    project_id: str | None = None
    search_all_projects: bool = False
    projects: Words | None = None
    page: PageNumber = 1
    page_size: PageSize = 10
    search_type: str | None = None
    output_format: OutputFormat = "text"
    note_types: Annotated[Words | None, aliases("note_types", "types")] = None
    entity_types: Words | None = None
    categories: Words | None = None
    after_date: Annotated[str | None, aliases("after_date", "since")] = None
    metadata_filters: Object | None = None
    tags: Words | None = None
    status: str | None = None
    min_similarity: float | None = None
    valid_at: Annotated[str | None, aliases("valid_at", "as_of", "valid_on")] = None
    valid_overlaps: Annotated[str | None, aliases("valid_overlaps", "overlaps", "valid_during")] = (
        None
    )
    time_kind: Annotated[str | None, aliases("time_kind", "kind")] = None
    compact: bool = False


class BuildContextArguments(Arguments):
    """The arguments of `build_context`."""

    url: Annotated[str, aliases("url", "uri", "memory_url")]
    project: str | None = None
    project_id: str | None = None
    depth: str | int | None = 1
    timeframe: Annotated[str | None, aliases("timeframe", "since")] = "7d"
    page: PageNumber = 1
    page_size: PageSize = 10
    max_related: Annotated[int, Field(ge=1, le=MAX_HITS)] = 10
    output_format: OutputFormat = "json"
    compact: bool = False


class RecentActivityArguments(Arguments):
    """The arguments of `recent_activity`."""

    type: Annotated[str | list[str], aliases("type", "types")] = ""
    depth: int = 1
    timeframe: Annotated[str, aliases("timeframe", "since", "time_range", "lookback")] = "7d"
    page: PageNumber = 1
    page_size: PageSize = 10
    project: str | None = None
    project_id: str | None = None
    output_format: OutputFormat = "text"


class ListDirectoryArguments(Arguments):
    """The arguments of `list_directory`."""

    dir_name: Annotated[str, aliases("dir_name", "directory", "folder", "dir", "path")] = "/"
    depth: int = 1
    file_name_glob: Annotated[str | None, aliases("file_name_glob", "glob", "pattern")] = None
    sort: DirectorySort | None = None
    page: PageNumber = 1
    page_size: PageSize = 10
    output_format: OutputFormat = "text"
    project: str | None = None
    project_id: str | None = None


class DeleteNoteArguments(Arguments):
    """The arguments of `delete_note`."""

    identifier: str
    is_directory: bool = False
    project: str | None = None
    project_id: str | None = None
    output_format: OutputFormat = "text"


class MoveNoteArguments(Arguments):
    """The arguments of `move_note`."""

    identifier: str
    destination_path: Annotated[str, aliases("destination_path", "destination", "new_path")] = ""
    destination_folder: str | None = None
    is_directory: bool = False
    project: str | None = None
    project_id: str | None = None
    output_format: OutputFormat = "text"
