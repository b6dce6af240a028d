"""Claude's memory tool, `memory_20250818`: six commands on files below `/memories`, with the texts and failures of its
reference implementation. A file is a note of the folder `memories/`; one whose name does not end with `.md` has that
behind its name in the vault, and is shown without."""

from __future__ import annotations

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
_MOST_LINES: Final = 999_999
_COMMANDS: dict[str, Callable[..., str]] = {}


def run(store: EnhancedStore, call: Mapping[str, Any], **by: Unpack[AuthorArgs]) -> str:
    """Carry out a command: what the tool answers. SimplememError with the tool's own words where it fails."""
    command = _COMMANDS.get(str(call.get("command")))
    if command is None:
        raise Invalid(
            f"Unknown command: {call.get('command')}",
            hint="There are " + ", ".join(_COMMANDS) + ".",
        )
    given = {key: value for key, value in call.items() if key != "command" and value is not None}
    taken = command.__annotations__.keys() - {"return", "store", "by"}
    if missing := sorted(taken - given.keys() - {"view_range"}):
        raise Invalid(
            f"{call['command']} needs {', '.join(missing)}", hint="Give them, and try again."
        )
    return command(store, **{key: given[key] for key in taken & given.keys()}, by=by)


def _command(do: Callable[..., str]) -> Callable[..., str]:
    _COMMANDS[do.__name__.strip("_")] = do
    return do


@_command
def view(
    store: EnhancedStore,
    path: str,
    by: AuthorArgs,  # noqa: ARG001
    view_range: list[int] | None = None,
) -> str:
    store.extension.catch_up()
    inside = _inside(path)
    if inside and (file := _file(store, inside)) is not None:
        lines = _read(store, file, path).text.split("\n")
        if len(lines) > _MOST_LINES:
            raise Invalid(f"File {path} exceeds maximum line limit of 999,999 lines.")
        start, stop = (
            (max(1, view_range[0]) - 1, view_range[1])
            if view_range and len(view_range) == 2
            else (0, -1)
        )
        shown = _numbered(lines[start : len(lines) if stop == -1 else stop], start + 1)
        return f"Here's the content of {path} with line numbers:\n{shown}"
    below = _below(store, inside)
    if inside and not below:
        raise Invalid(f"The path {path} does not exist. Please provide a valid path.")
    sizes = {"": sum(below.values())}
    for name, size in below.items():
        parts = name.split("/")
        for depth in range(1, min(len(parts), 3)):
            folder = "/".join(parts[:depth]) + "/"
            sizes[folder] = sizes.get(folder, 0) + size
        sizes |= {name: size} if len(parts) < 3 else {}
    order = sorted(sizes, key=lambda each: each.rstrip("/").split("/"))
    listed = (f"{_size(sizes[each])}\t{path}" + (f"/{each}" if each else "") for each in order)
    header = (
        f"Here're the files and directories up to 2 levels deep in {path}, excluding hidden items:"
    )
    return "\n".join([header, *listed])


@_command
def create(store: EnhancedStore, path: str, file_text: str, by: AuthorArgs) -> str:
    inside = _inside(path)
    if not inside or _file(store, inside) is not None or _below(store, inside):
        raise Invalid(f"File {path} already exists")
    _change(store, lambda: [Draft(_stored(inside), file_text)], by)
    return f"File created successfully at: {path}"


@_command
def str_replace(store: EnhancedStore, path: str, old_str: str, new_str: str, by: AuthorArgs) -> str:
    def replaced(text: str) -> str:
        found = text.count(old_str) if old_str else 0
        if found == 0:
            words = f"No replacement was performed, old_str `{old_str}` did not appear verbatim in {path}."
            raise Invalid(words)
        if found > 1:
            at = [k for k in range(len(text)) if text.startswith(old_str, k)]
            lines = ", ".join(str(text.count("\n", 0, each) + 1) for each in at)
            words = f"No replacement was performed. Multiple occurrences of old_str `{old_str}` in lines: {lines}."
            raise Invalid(f"{words} Please ensure it is unique")
        return text.replace(old_str, new_str)

    before, after = _edit(store, path, replaced, by)
    line, lines = before.count("\n", 0, before.find(old_str)), after.split("\n")
    start = max(0, line - 2)
    done = "The memory file has been edited. Here is the snippet showing the change (with line numbers):"
    return f"{done}\n{_numbered(lines[start : line + 3], start + 1)}"


@_command
def insert(
    store: EnhancedStore, path: str, insert_line: int, insert_text: str, by: AuthorArgs
) -> str:
    def inserted(text: str) -> str:
        lines = text.removesuffix("\n").split("\n") if text else []
        if not 0 <= insert_line <= len(lines):
            words = f"Invalid `insert_line` parameter: {insert_line}. It should be within the range [0, {len(lines)}]."
            raise Invalid(words)
        lines.insert(insert_line, insert_text.rstrip("\n"))
        return "\n".join(lines).removesuffix("\n") + "\n"

    _edit(store, path, inserted, by)
    return f"The file {path} has been edited."


@_command
def delete(store: EnhancedStore, path: str, by: AuthorArgs) -> str:
    if not (inside := _inside(path)):
        raise Invalid("Cannot delete the /memories directory itself")
    store.extension.catch_up()
    if not (paths := _paths(store, inside)):
        raise Invalid(f"The path {path} does not exist")
    _change(
        store,
        lambda: [Draft(each.path, None, each.text) for each in store.extension.read(paths)],
        by,
    )
    return f"Successfully deleted {path}"


@_command
def rename(store: EnhancedStore, old_path: str, new_path: str, by: AuthorArgs) -> str:
    old, new = _inside(old_path), _inside(new_path)
    if not old:
        raise Invalid("Cannot rename the /memories directory itself")
    store.extension.catch_up()
    if not new or _file(store, new) is not None or _below(store, new):
        raise Invalid(f"The destination {new_path} already exists")
    if new.startswith(f"{old}/"):
        raise Invalid(f"{old_path} cannot be moved into itself")
    file = _file(store, old)
    if file is not None:
        store.move(name_of(file), check_name(name_of(_stored(new))), **by)
        return f"Successfully renamed {old_path} to {new_path}"
    paths = _paths(store, old)
    if not paths:
        raise Invalid(f"The path {old_path} does not exist")

    old_folder, new_folder = f"{FOLDER}/{old}", f"{FOLDER}/{new}"
    with _conflicts_in_words():
        store.extension.move(
            {path: new_folder + path.removeprefix(old_folder) for path in paths}, **by
        )
    return f"Successfully renamed {old_path} to {new_path}"


def _inside(path: str) -> str:
    """A path below `/memories`, "" for that folder itself. It never leads out of it."""
    if path != _ROOT and not path.startswith(f"{_ROOT}/"):
        raise Invalid(f"Path must start with /memories, got: {path}")
    parts: list[str] = []
    for part in path[len(_ROOT) :].split("/"):
        if part == ".." and not parts:
            raise Invalid(f"Path {path} would escape /memories directory")
        parts = parts[:-1] if part == ".." else [*parts, part] if part not in ("", ".") else parts
    return "/".join(parts)


def _stored(inside: str) -> str:
    return f"{FOLDER}/{inside}" if inside.endswith(".md") else f"{FOLDER}/{inside}.md"


def _shown(path: str) -> str:
    inside = path[len(FOLDER) + 1 :]
    bare = inside.removesuffix(".md")
    return bare if "." in bare.rpartition("/")[2] else inside


def _file(store: EnhancedStore, inside: str) -> str | None:
    path = _stored(inside)
    return (
        path
        if well_formed(path) == path and "\0" not in path and store.extension.exists(path)
        else None
    )


def _paths(store: EnhancedStore, inside: str) -> list[str]:
    """The files that a path names: itself, or all below it."""
    file = _file(store, inside)
    return (
        [each.path for each in store.extension.entries_below(f"{FOLDER}/{inside}")]
        if file is None
        else [file]
    )


def _below(store: EnhancedStore, inside: str) -> dict[str, int]:
    """The files below a folder as they are shown, with their sizes."""
    folder = f"{FOLDER}/{inside}".rstrip("/")
    try:
        entries = store.extension.entries_below(folder)
    except SimplememError:  # a name that no folder has
        return {}
    start = len(inside) + 1 if inside else 0
    return {_shown(each.path)[start:]: each.size for each in entries if each.path.endswith(".md")}


def _read(store: EnhancedStore, file: str, path: str) -> Read:
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
    """Change the text of a file, on what it says at that moment: the text before and after."""
    file = _file(store, inside) if (inside := _inside(path)) else None
    if file is None and inside and not _below(store, inside):
        raise Invalid(f"The path {path} does not exist. Please provide a valid path.")
    if file is None:
        raise Invalid(f"The path {path} is not a file.")
    texts = "", ""

    def draft() -> list[Draft]:
        nonlocal texts
        before = _read(store, file, path).text
        texts = before, change(before)
        return [Draft(file, texts[1], before)] if texts[0] != texts[1] else []

    _change(store, draft, by)
    return texts


def _change(store: EnhancedStore, draft: Callable[[], list[Draft]], by: AuthorArgs) -> None:
    with _conflicts_in_words():
        store.extension.change(draft, **by)


@contextmanager
def _conflicts_in_words() -> Iterator[None]:
    """Turn a Conflict of the block into the words that the tool has for it."""
    try:
        yield
    except Conflict as error:
        raise Invalid(
            "The file was changed by somebody else at the same moment. Please try again."
        ) from error


def _numbered(lines: list[str], first: int) -> str:
    return "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(lines, first))


def _size(size: int) -> str:
    """A size as people read it: 1.5K."""
    unit = min((size.bit_length() - 1) // 10, 3) if size else 0
    scaled = size / 1024**unit
    return (
        f"{int(scaled)}{'BKMG'[unit]}" if scaled == int(scaled) else f"{scaled:.1f}{'BKMG'[unit]}"
    )
