"""Claude's memory tool `memory_20250818`: six commands on files below `/memories`.

Answers and error messages are those of the reference implementation. A file is a note in the folder
`memories/`. If its name does not end with `.md`, the note's name has that ending in addition. Each
command returns the tool's answer, and raises Invalid for a path that is not below `/memories`.
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
_MAX_DEPTH: Final = 2  # levels of folders that a listing shows
_SNIPPET_MARGIN: Final = 2  # lines shown before and after a change
_OPTIONAL_ARGUMENTS: Final = frozenset({"view_range"})
_OTHER_PARAMETERS: Final = frozenset({"store", "by", "return"})  # of the functions of commands
_COMMANDS: dict[str, Callable[..., str]] = {}


def run(store: EnhancedStore, call: Mapping[str, Any], **by: Unpack[AuthorArgs]) -> str:
    """Run a command of the memory tool and return the tool's answer.

    `call` has the name of the `command` and its arguments. Arguments that the command does not take
    are ignored. `by` says who makes the change. Raise Invalid, with the tool's own message, if
    there is no such command, an argument is missing, or the command refuses. Raise another
    SimplememError if the vault refuses, such as ReadOnly or TooLong.
    """
    name = str(call.get("command"))
    command = _COMMANDS.get(name)
    if command is None:
        command_names = ", ".join(_COMMANDS)
        raise Invalid(f"Unknown command: {name}", hint=f"There are {command_names}.")

    arguments: dict[str, Any] = {}
    missing: list[str] = []
    for parameter in sorted(command.__annotations__.keys() - _OTHER_PARAMETERS):
        value = call.get(parameter)
        if value is not None:
            arguments[parameter] = value
        elif parameter not in _OPTIONAL_ARGUMENTS:
            missing.append(parameter)
    if missing:
        raise Invalid(f"{name} needs {', '.join(missing)}", hint="Give them, and try again.")
    return command(store, **arguments, by=by)


def _command(function: Callable[..., str]) -> Callable[..., str]:
    """Register a function as the command of its name; used as a decorator."""
    _COMMANDS[function.__name__] = function
    return function


@_command
def view(
    store: EnhancedStore,
    path: str,
    by: AuthorArgs,  # noqa: ARG001
    view_range: list[int] | None = None,
) -> str:
    """Return the numbered lines of a file, or a listing of a folder.

    `view_range` is the first and the last line of a file, with -1 for its end. It is ignored if it
    has not exactly two numbers. Raise Invalid if there is no such file or folder, or the file
    cannot be read or has more than 999,999 lines.
    """
    store.extension.catch_up()
    inside = _path_inside(path)
    note_path = _find_file(store, inside) if inside else None
    if note_path is not None:
        return _view_file(store, note_path, path, view_range)
    return _view_folder(store, inside, path)


def _view_file(
    store: EnhancedStore,
    note_path: str,
    path: str,
    view_range: list[int] | None,
) -> str:
    """Return the answer of `view` for a file: a heading, and its numbered lines.

    `note_path` is that of its note, and `path` the one in the tool's call, for the heading. Lines
    of `view_range` that do not exist are left out. Raise Invalid if the file cannot be read or has
    more than 999,999 lines.
    """
    lines = _read(store, note_path, path).text.split("\n")
    if len(lines) > _MAX_LINES:
        raise Invalid(f"File {path} exceeds maximum line limit of 999,999 lines.")

    first = 1
    last = -1
    if view_range and len(view_range) == 2:
        first = max(1, view_range[0])
        last = view_range[1]
    if last == -1:
        last = len(lines)

    numbered = _number_lines(lines[first - 1 : last], first)
    return f"Here's the content of {path} with line numbers:\n{numbered}"


def _view_folder(store: EnhancedStore, inside: str, path: str) -> str:
    """Return the answer of `view` for a folder: a heading, and a line for each file and folder.

    A line has the size and the path. `inside` is the folder relative to `/memories`, and `path` is
    the one in the tool's call. Raise Invalid if no file is in the folder, except for `/memories`
    itself.
    """
    file_sizes = _file_sizes(store, inside)
    if inside and not file_sizes:
        raise Invalid(f"The path {path} does not exist. Please provide a valid path.")

    lines = [
        f"Here're the files and directories up to {_MAX_DEPTH} levels deep in {path}, "
        "excluding hidden items:"
    ]
    sizes = _sizes_to_list(file_sizes)
    for name in sorted(sizes, key=_listing_order):
        listed_path = f"{path}/{name}" if name else path
        lines.append(f"{_format_size(sizes[name])}\t{listed_path}")
    return "\n".join(lines)


def _listing_order(name: str) -> list[str]:
    """Return a sort key for the names of a listing: a folder comes right before its content."""
    return name.rstrip("/").split("/")


def _sizes_to_list(file_sizes: Mapping[str, int]) -> dict[str, int]:
    """Return the sizes of the files and folders of a listing by name, two levels deep.

    `file_sizes` has all files by their paths in the listed folder. The name of a subfolder ends
    with a slash; that of the listed folder itself is "". A folder's size is the sum of its files.
    """
    total_size = sum(file_sizes.values())
    sizes = Counter({"": total_size})
    for name, size in file_sizes.items():
        parts = name.split("/")
        folder_depth = min(len(parts) - 1, _MAX_DEPTH)
        for depth in range(1, folder_depth + 1):
            folder = "/".join(parts[:depth])
            sizes[f"{folder}/"] += size
        if len(parts) <= _MAX_DEPTH:
            sizes[name] = size
    return sizes


@_command
def create(store: EnhancedStore, path: str, file_text: str, by: AuthorArgs) -> str:
    """Create a file with a text, and return the tool's answer.

    Raise Invalid if there is a file or folder of its path, TooLong, or ReadOnly.
    """
    inside = _path_inside(path)
    if not inside or _exists(store, inside):
        raise Invalid(f"File {path} already exists")

    def draft() -> list[Draft]:
        return [Draft(_note_path(inside), file_text)]

    _change(store, draft, by)
    return f"File created successfully at: {path}"


@_command
def str_replace(
    store: EnhancedStore,
    path: str,
    old_str: str,
    new_str: str,
    by: AuthorArgs,
) -> str:
    """Replace `old_str`, which occurs once in a file, and return the lines around it.

    Raise Invalid if there is no such file, or the text does not occur in it or more than once.
    Raise TooLong and ReadOnly.
    """

    def replace_once(text: str) -> str:
        _check_occurs_once(text, old_str, path)
        return text.replace(old_str, new_str)

    old_text, new_text = _edit(store, path, replace_once, by)

    changed_line = old_text.count("\n", 0, old_text.find(old_str))
    start = max(0, changed_line - _SNIPPET_MARGIN)
    stop = changed_line + _SNIPPET_MARGIN + 1
    snippet_lines = new_text.split("\n")[start:stop]
    snippet = _number_lines(snippet_lines, start + 1)
    return (
        "The memory file has been edited. Here is the snippet showing the change "
        f"(with line numbers):\n{snippet}"
    )


def _check_occurs_once(text: str, old_str: str, path: str) -> None:
    """Raise Invalid if a text does not contain `old_str`, or contains it more than once.

    `path` names the file in the message.
    """
    count = text.count(old_str) if old_str else 0
    if count == 0:
        raise Invalid(
            f"No replacement was performed, old_str `{old_str}` did not appear verbatim in {path}."
        )
    if count == 1:
        return

    line_numbers: list[str] = []
    for start in range(len(text)):
        if text.startswith(old_str, start):
            line = text.count("\n", 0, start) + 1
            line_numbers.append(str(line))
    lines = ", ".join(line_numbers)
    raise Invalid(
        f"No replacement was performed. Multiple occurrences of old_str `{old_str}` in lines: "
        f"{lines}. Please ensure it is unique"
    )


@_command
def insert(
    store: EnhancedStore,
    path: str,
    insert_line: int,
    insert_text: str,
    by: AuthorArgs,
) -> str:
    """Insert a text after a line of a file, and return the tool's answer.

    `insert_line` is the number of that line, 0 for the beginning. Raise Invalid if there is no such
    file or line, TooLong, and ReadOnly.
    """

    def insert_lines(text: str) -> str:
        """Return the text with the inserted one. Raise Invalid if it has no such line."""
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
    """Move a file, or a folder with all its files, to the trash, and return the tool's answer.

    Raise Invalid for `/memories` itself, or if there is no such file or folder, and ReadOnly.
    """
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
    """Rename or move a file, or a folder with all its files, and return the tool's answer.

    Links to the files follow. Raise Invalid if the new path is taken or inside the old one, or
    there is no file or folder of the old one, and ReadOnly.
    """
    old = _path_inside(old_path)
    new = _path_inside(new_path)
    if not old:
        raise Invalid("Cannot rename the /memories directory itself")
    store.extension.catch_up()
    if not new or _exists(store, new):
        raise Invalid(f"The destination {new_path} already exists")
    if new.startswith(f"{old}/"):
        raise Invalid(f"{old_path} cannot be moved into itself")

    note_path = _find_file(store, old)
    if note_path is not None:
        new_name = check_name(name_of(_note_path(new)))
        store.move(name_of(note_path), new_name, **by)
        return f"Successfully renamed {old_path} to {new_path}"

    note_paths = _note_paths(store, old)
    if not note_paths:
        raise Invalid(f"The path {old_path} does not exist")
    old_folder = f"{FOLDER}/{old}"
    new_folder = f"{FOLDER}/{new}"
    new_paths = {path: new_folder + path.removeprefix(old_folder) for path in note_paths}
    with _as_tool_errors():
        store.extension.move(new_paths, **by)
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
    """Return the path of the note that a file is stored as.

    `inside` is the file's path relative to `/memories`, as `_path_inside` returns it.
    """
    if inside.endswith(".md"):
        return f"{FOLDER}/{inside}"
    return f"{FOLDER}/{inside}.md"


def _displayed_path(note_path: str) -> str:
    """Return the path of a note's file relative to `/memories`, without an added ending.

    It is the inverse of `_note_path`, except that a file `a` is displayed as `a.md`.
    """
    inside = note_path[len(FOLDER) + 1 :]
    without_ending = inside.removesuffix(".md")
    has_own_ending = "." in without_ending.rpartition("/")[2]
    return without_ending if has_own_ending else inside


def _find_file(store: EnhancedStore, inside: str) -> str | None:
    """Return the path of the note of a file, None if there is no such file.

    Here and below, `inside` is the path of a file or folder relative to `/memories`.
    """
    note_path = _note_path(inside)
    if "\0" in note_path or well_formed(note_path) != note_path:
        return None
    if not store.extension.exists(note_path):
        return None
    return note_path


def _exists(store: EnhancedStore, inside: str) -> bool:
    """Return whether there is a file or a folder of this path."""
    return _find_file(store, inside) is not None or bool(_file_sizes(store, inside))


def _note_paths(store: EnhancedStore, inside: str) -> list[str]:
    """Return the path of the note of a file, or those of all files in a folder.

    There are none if there is no such file or folder.
    """
    note_path = _find_file(store, inside)
    if note_path is not None:
        return [note_path]
    return [entry.path for entry in store.extension.entries_below(f"{FOLDER}/{inside}")]


def _file_sizes(store: EnhancedStore, inside: str) -> dict[str, int]:
    """Return the sizes in bytes of all files below a folder, by their displayed paths in it.

    It is empty if there is no such folder.
    """
    folder = f"{FOLDER}/{inside}".rstrip("/")
    try:
        entries = store.extension.entries_below(folder)
    except SimplememError:  # no folder can have this name
        return {}

    start = len(inside) + 1 if inside else 0
    sizes: dict[str, int] = {}
    for entry in entries:
        if entry.path.endswith(".md"):
            path_in_folder = _displayed_path(entry.path)[start:]
            sizes[path_in_folder] = entry.size
    return sizes


def _read(store: EnhancedStore, note_path: str, path: str) -> Read:
    """Return the note of a file as it is on the disk.

    Raise Invalid if it does not exist or has a problem. `path` names the file in the message.
    """
    read = next(iter(store.extension.read([note_path])), None)
    if read is None:
        raise Invalid(
            f"The file {path} no longer exists (may have been deleted or renamed concurrently)."
        )
    if read.problem:
        raise Invalid(f"{path} cannot be read: {read.problem}")
    return read


def _edit(
    store: EnhancedStore,
    path: str,
    change: Callable[[str], str],
    by: AuthorArgs,
) -> tuple[str, str]:
    """Change the text of a file by a function. Return the old text and the new one.

    `change` gets the current text and returns the new one. It is called again if the file is saved
    meanwhile. Raise Invalid if there is no such file, what `change` raises, TooLong, and ReadOnly.
    """
    inside = _path_inside(path)
    note_path = _find_file(store, inside) if inside else None
    if note_path is None:
        if inside and not _file_sizes(store, inside):
            raise Invalid(f"The path {path} does not exist. Please provide a valid path.")
        raise Invalid(f"The path {path} is not a file.")

    texts = ("", "")

    def draft() -> list[Draft]:
        """Read the file, and return the draft of its change; none if nothing changes."""
        nonlocal texts
        old_text = _read(store, note_path, path).text
        new_text = change(old_text)
        texts = (old_text, new_text)
        if new_text == old_text:
            return []
        return [Draft(note_path, new_text, old_text)]

    _change(store, draft, by)
    return texts


def _change(store: EnhancedStore, draft: Callable[[], list[Draft]], by: AuthorArgs) -> None:
    """Write the drafts that a function returns.

    The function is called while the vault is locked, and again if a file is saved meanwhile. Raise
    Invalid if somebody else keeps changing the file, what the function raises, and ReadOnly.
    """
    with _as_tool_errors():
        store.extension.change(draft, **by)


@contextmanager
def _as_tool_errors() -> Iterator[None]:
    """Turn a Conflict that the block raises into an Invalid with the tool's message."""
    try:
        yield
    except Conflict as error:
        raise Invalid(
            "The file was changed by somebody else at the same moment. Please try again."
        ) from error


def _number_lines(lines: list[str], first: int) -> str:
    """Return lines as a text, each behind its number; `first` is that of the first one."""
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
