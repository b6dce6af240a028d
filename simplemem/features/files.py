"""Claude's memory tool `memory_20250818`: six commands on files below `/memories`.

Answers and error messages are those of the reference implementation. A file is a note in the folder
`memories/`. If its name does not end with `.md`, the note's name has that ending in addition.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Unpack

from simplemem.errors import Conflict, Invalid, SimplememError
from simplemem.models import AuthorArgs
from simplemem.note.names import check_name, name_of
from simplemem.note.words import well_formed
from simplemem.store import Draft, EnhancedStore, Read

FOLDER: Final = "memories"
_ROOT: Final = f"/{FOLDER}"
_MAX_LINES: Final = 999_999
_MAX_DEPTH: Final = 2  # of a listing
_SNIPPET_MARGIN: Final = 2  # lines shown before and after a change
_OPTIONAL_ARGUMENTS: Final = frozenset({"view_range"})
_COMMANDS: dict[str, Callable[..., str]] = {}


def run(store: EnhancedStore, call: Mapping[str, Any], **by: Unpack[AuthorArgs]) -> str:
    """Run a command and return the tool's answer.

    Raise a SimplememError with the tool's own message if it fails. Arguments that the command does
    not take are ignored.
    """
    command = _COMMANDS.get(str(call.get("command")))
    if command is None:
        raise Invalid(
            f"Unknown command: {call.get('command')}",
            hint="There are " + ", ".join(_COMMANDS) + ".",
        )

    given = {key: value for key, value in call.items() if key != "command" and value is not None}
    parameters = command.__annotations__.keys() - {"return", "store", "by"}
    missing = sorted(parameters - given.keys() - _OPTIONAL_ARGUMENTS)
    if missing:
        raise Invalid(
            f"{call['command']} needs {', '.join(missing)}", hint="Give them, and try again."
        )
    arguments = {key: given[key] for key in parameters & given.keys()}
    return command(store, **arguments, by=by)


def _command(function: Callable[..., str]) -> Callable[..., str]:
    """Register a function as the command of its name."""
    _COMMANDS[function.__name__] = function
    return function


@_command
def view(
    store: EnhancedStore,
    path: str,
    by: AuthorArgs,  # noqa: ARG001
    view_range: list[int] | None = None,
) -> str:
    """Return the numbered lines of a file, or a listing of a folder."""
    store.extension.catch_up()
    inside = _path_inside(path)
    file = _find_file(store, inside) if inside else None
    if file is not None:
        return _view_file(store, file, path, view_range)
    return _view_folder(store, inside, path)


def _view_file(store: EnhancedStore, file: str, path: str, view_range: list[int] | None) -> str:
    lines = _read(store, file, path).text.split("\n")
    if len(lines) > _MAX_LINES:
        raise Invalid(f"File {path} exceeds maximum line limit of 999,999 lines.")

    start = 0
    end = -1
    if view_range and len(view_range) == 2:
        start = max(1, view_range[0]) - 1
        end = view_range[1]
    if end == -1:
        end = len(lines)
    numbered = _number_lines(lines[start:end], start + 1)
    return f"Here's the content of {path} with line numbers:\n{numbered}"


def _view_folder(store: EnhancedStore, inside: str, path: str) -> str:
    file_sizes = _file_sizes(store, inside)
    if inside and not file_sizes:
        raise Invalid(f"The path {path} does not exist. Please provide a valid path.")

    sizes = _sizes_to_list(file_sizes)
    lines = [
        f"Here're the files and directories up to {_MAX_DEPTH} levels deep in {path}, "
        "excluding hidden items:"
    ]
    for name in sorted(sizes, key=lambda name: name.rstrip("/").split("/")):
        shown_path = f"{path}/{name}" if name else path
        lines.append(f"{_format_size(sizes[name])}\t{shown_path}")
    return "\n".join(lines)


def _sizes_to_list(file_sizes: Mapping[str, int]) -> dict[str, int]:
    """Return the sizes of the files and folders of a listing, "" for the listed folder itself."""
    sizes = Counter({"": sum(file_sizes.values())})
    for name, size in file_sizes.items():
        parts = name.split("/")
        for depth in range(1, min(len(parts), _MAX_DEPTH + 1)):
            folder = "/".join(parts[:depth])
            sizes[f"{folder}/"] += size
        if len(parts) <= _MAX_DEPTH:
            sizes[name] = size
    return sizes


@_command
def create(store: EnhancedStore, path: str, file_text: str, by: AuthorArgs) -> str:
    """Create a file."""
    inside = _path_inside(path)
    if not inside or _exists(store, inside):
        raise Invalid(f"File {path} already exists")
    _change(store, lambda: [Draft(_note_path(inside), file_text)], by)
    return f"File created successfully at: {path}"


@_command
def str_replace(store: EnhancedStore, path: str, old_str: str, new_str: str, by: AuthorArgs) -> str:
    """Replace a text that occurs once in a file, and return the lines around it."""

    def replace_once(text: str) -> str:
        _check_occurs_once(text, old_str, path)
        return text.replace(old_str, new_str)

    old_text, new_text = _edit(store, path, replace_once, by)
    changed_line = old_text.count("\n", 0, old_text.find(old_str))
    start = max(0, changed_line - _SNIPPET_MARGIN)
    snippet = new_text.split("\n")[start : changed_line + _SNIPPET_MARGIN + 1]
    return (
        "The memory file has been edited. Here is the snippet showing the change "
        f"(with line numbers):\n{_number_lines(snippet, start + 1)}"
    )


def _check_occurs_once(text: str, old_str: str, path: str) -> None:
    count = text.count(old_str) if old_str else 0
    if count == 0:
        raise Invalid(
            f"No replacement was performed, old_str `{old_str}` did not appear verbatim in {path}."
        )
    if count > 1:
        starts = [start for start in range(len(text)) if text.startswith(old_str, start)]
        lines = ", ".join(str(text.count("\n", 0, start) + 1) for start in starts)
        raise Invalid(
            f"No replacement was performed. Multiple occurrences of old_str `{old_str}` in lines: "
            f"{lines}. Please ensure it is unique"
        )


@_command
def insert(
    store: EnhancedStore, path: str, insert_line: int, insert_text: str, by: AuthorArgs
) -> str:
    """Insert a text after a line of a file, 0 for the beginning."""

    def insert_lines(text: str) -> str:
        lines = text.removesuffix("\n").split("\n") if text else []
        if not 0 <= insert_line <= len(lines):
            raise Invalid(
                f"Invalid `insert_line` parameter: {insert_line}. "
                f"It should be within the range [0, {len(lines)}]."
            )
        lines.insert(insert_line, insert_text.rstrip("\n"))
        return "\n".join(lines).removesuffix("\n") + "\n"

    _edit(store, path, insert_lines, by)
    return f"The file {path} has been edited."


@_command
def delete(store: EnhancedStore, path: str, by: AuthorArgs) -> str:
    """Move a file, or a folder with all its files, to the trash."""
    inside = _path_inside(path)
    if not inside:
        raise Invalid("Cannot delete the /memories directory itself")
    store.extension.catch_up()
    note_paths = _note_paths(store, inside)
    if not note_paths:
        raise Invalid(f"The path {path} does not exist")

    def draft() -> list[Draft]:
        return [Draft(read.path, None, read.text) for read in store.extension.read(note_paths)]

    _change(store, draft, by)
    return f"Successfully deleted {path}"


@_command
def rename(store: EnhancedStore, old_path: str, new_path: str, by: AuthorArgs) -> str:
    """Rename or move a file, or a folder with all its files."""
    old = _path_inside(old_path)
    new = _path_inside(new_path)
    if not old:
        raise Invalid("Cannot rename the /memories directory itself")
    store.extension.catch_up()
    if not new or _exists(store, new):
        raise Invalid(f"The destination {new_path} already exists")
    if new.startswith(f"{old}/"):
        raise Invalid(f"{old_path} cannot be moved into itself")

    file = _find_file(store, old)
    if file is not None:
        store.move(name_of(file), check_name(name_of(_note_path(new))), **by)
        return f"Successfully renamed {old_path} to {new_path}"

    note_paths = _note_paths(store, old)
    if not note_paths:
        raise Invalid(f"The path {old_path} does not exist")
    old_folder = f"{FOLDER}/{old}"
    new_folder = f"{FOLDER}/{new}"
    moves = {path: new_folder + path.removeprefix(old_folder) for path in note_paths}
    with _as_tool_errors():
        store.extension.move(moves, **by)
    return f"Successfully renamed {old_path} to {new_path}"


def _path_inside(path: str) -> str:
    """Return a path relative to `/memories`, "" for that folder itself.

    Raise Invalid for a path that is not below `/memories`.
    """
    if path != _ROOT and not path.startswith(f"{_ROOT}/"):
        raise Invalid(f"Path must start with /memories, got: {path}")

    parts: list[str] = []
    for part in path[len(_ROOT) :].split("/"):
        if part == "..":
            if not parts:
                raise Invalid(f"Path {path} would escape /memories directory")
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def _note_path(inside: str) -> str:
    """Return the path of the note that a file is stored as."""
    if inside.endswith(".md"):
        return f"{FOLDER}/{inside}"
    return f"{FOLDER}/{inside}.md"


def _displayed_path(note_path: str) -> str:
    """Return the path of a file as the tool shows it, without an ending that was added."""
    inside = note_path[len(FOLDER) + 1 :]
    without_ending = inside.removesuffix(".md")
    has_own_ending = "." in without_ending.rpartition("/")[2]
    return without_ending if has_own_ending else inside


def _find_file(store: EnhancedStore, inside: str) -> str | None:
    """Return the path of the note of a file, None if there is no such file."""
    path = _note_path(inside)
    if "\0" in path or well_formed(path) != path:
        return None
    return path if store.extension.exists(path) else None


def _exists(store: EnhancedStore, inside: str) -> bool:
    """Return whether there is a file or a folder of this path."""
    return _find_file(store, inside) is not None or bool(_file_sizes(store, inside))


def _note_paths(store: EnhancedStore, inside: str) -> list[str]:
    """Return the path of the note of a file, or those of all files in a folder."""
    file = _find_file(store, inside)
    if file is not None:
        return [file]
    return [entry.path for entry in store.extension.entries_below(f"{FOLDER}/{inside}")]


def _file_sizes(store: EnhancedStore, inside: str) -> dict[str, int]:
    """Return the files in a folder, by their displayed paths in it, with their sizes."""
    folder = f"{FOLDER}/{inside}".rstrip("/")
    try:
        entries = store.extension.entries_below(folder)
    except SimplememError:  # no folder can have this name
        return {}
    start = len(inside) + 1 if inside else 0
    return {
        _displayed_path(entry.path)[start:]: entry.size
        for entry in entries
        if entry.path.endswith(".md")
    }


def _read(store: EnhancedStore, file: str, path: str) -> Read:
    """Read the note of a file. Raise Invalid if it is gone or cannot be read."""
    read = next(iter(store.extension.read([file])), None)
    if read is None:
        raise Invalid(
            f"The file {path} no longer exists (may have been deleted or renamed concurrently)."
        )
    if read.problem:
        raise Invalid(f"{path} cannot be read: {read.problem}")
    return read


def _edit(
    store: EnhancedStore, path: str, change: Callable[[str], str], by: AuthorArgs
) -> tuple[str, str]:
    """Change the current text of a file. Return the text before and after."""
    inside = _path_inside(path)
    file = _find_file(store, inside) if inside else None
    if file is None:
        if inside and not _file_sizes(store, inside):
            raise Invalid(f"The path {path} does not exist. Please provide a valid path.")
        raise Invalid(f"The path {path} is not a file.")

    texts = ("", "")

    def draft() -> list[Draft]:
        nonlocal texts
        old_text = _read(store, file, path).text
        new_text = change(old_text)
        texts = (old_text, new_text)
        return [Draft(file, new_text, old_text)] if new_text != old_text else []

    _change(store, draft, by)
    return texts


def _change(store: EnhancedStore, draft: Callable[[], list[Draft]], by: AuthorArgs) -> None:
    with _as_tool_errors():
        store.extension.change(draft, **by)


@contextmanager
def _as_tool_errors() -> Iterator[None]:
    """Raise a Conflict as an Invalid with the tool's message."""
    try:
        yield
    except Conflict as error:
        raise Invalid(
            "The file was changed by somebody else at the same moment. Please try again."
        ) from error


def _number_lines(lines: list[str], first: int) -> str:
    return "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(lines, first))


def _format_size(size: int) -> str:
    """Return a size in a unit of 1024: 512B, 1.5K."""
    if size == 0:
        return "0B"
    power = min((size.bit_length() - 1) // 10, 3)
    unit = "BKMG"[power]
    scaled = size / 1024**power
    if scaled == int(scaled):
        return f"{int(scaled)}{unit}"
    return f"{scaled:.1f}{unit}"
