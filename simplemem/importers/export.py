"""The files of an export, and what a reader makes of them.

A reader gets the files by their paths in the export and reads each when it needs it. It yields an
`Item` for each note or other file to import, and a `Skipped` with a reason for what it leaves out.
"""

from __future__ import annotations

import lzma
import os
import re
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import IO, Any, Final, NamedTuple, TypeVar

from simplemem.errors import SimplememError, Unreadable
from simplemem.features.text import clean_text
from simplemem.note.dates import parse_moment
from simplemem.note.names import legal_name
from simplemem.note.tag_changes import nearest_tag
from simplemem.note.yaml_writer import render_header

SOURCE: Final = "source"
"""The property that says where a note comes from, such as `mem0:8f1c`."""

UNREADABLE: Final = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    RuntimeError,
    OSError,
)
"""The errors of reading a broken file or archive."""

_MAX_FILE_BYTES = 100_000_000  # of one file
_MAX_FILES = 100_000  # of an archive
_MAX_TOTAL_BYTES = 10_000_000_000  # of an archive, unpacked
_MAX_ZIP_DEPTH = 2
_MAX_TITLE = 60  # characters
_YEAR_3000 = 32_503_680_000  # seconds since 1970
# A page of Notion called ".NET", whose name ends with an id, is not hidden.
_HIDDEN = re.compile(r"^__MACOSX/|(?:^|/)\.(?!\.|[^/]* [0-9a-f]{32})")
R = TypeVar("R")  # a record of an export


class ExportedFile(NamedTuple):
    """A file of an export: one on disk, one in an archive, or one that cannot be read.

    Attributes:
        disk_path: Where the file is on disk; None for a file in an archive.
        unpack: Opens the file in its archive; None for a file on disk.
        unpacked_bytes: The size of a file in an archive; 0 for a file on disk.
        problem: Why the file cannot be read, or "".
    """

    disk_path: Path | None = None
    unpack: Callable[[], IO[bytes]] | None = None
    unpacked_bytes: int = 0
    problem: str = ""

    def open(self) -> IO[bytes]:
        """Open the file for reading.

        Raises Unreadable if it has a `problem`, and the errors of UNREADABLE.
        """
        if self.problem:
            raise Unreadable(self.problem)
        if self.disk_path is not None:
            return self.disk_path.open("rb")
        assert self.unpack is not None  # a file has either a path or an archive
        return self.unpack()

    def read(self, max_bytes: int = _MAX_FILE_BYTES) -> bytes:
        """Return the data of the file.

        Raises Unreadable if it cannot be read or is larger than `max_bytes`, 100 MB by default.
        """
        try:
            with self.open() as file:
                if self._size() > max_bytes:
                    raise Unreadable(f"it is larger than {max_bytes // 1_000_000} MB")
                return file.read()
        except UNREADABLE as error:
            reason = getattr(error, "strerror", None) or error
            raise Unreadable(f"it cannot be read: {reason}") from error

    def _size(self) -> int:
        """Return the number of bytes that the file has, unpacked. Raises OSError if it is gone."""
        if self.disk_path is not None:
            return self.disk_path.stat().st_size
        return self.unpacked_bytes

    @property
    def modified_at(self) -> float | None:
        """The time of the last change in seconds since 1970; None for a file in an archive.

        Raises OSError if the file does not exist.
        """
        if self.disk_path is None:
            return None
        return self.disk_path.stat().st_mtime


@contextmanager
def open_export(
    export: Path, patterns: Sequence[str] = ("*",)
) -> Iterator[dict[str, ExportedFile]]:
    """Yield the files of an export by their paths in it. They can be read within the block.

    An export is a folder, a zip or another single file. Of a folder or a zip, only files that are
    not hidden and whose path, after a slash, matches one of the patterns are returned: `*/a.json`
    also matches `a.json`. Raises Unreadable if the export cannot be read, or if a zip contains more
    than 100,000 such files or 10 GB.
    """
    if _is_single_file(export):
        yield {export.name: ExportedFile(export)}
        return

    with ExitStack() as stack:
        try:
            if export.is_dir():
                files = _in_folder(export)
            else:
                files = _Archives(export, stack).files(export)
            selected = _select_files(export, files, patterns)
        except UNREADABLE as error:
            raise Unreadable(
                f"{export} cannot be read: {error}",
                hint="Export it again, or unpack it.",
            ) from error
        yield selected


def _is_single_file(export: Path) -> bool:
    """Return whether an export is neither a folder nor a zip, of any name."""
    if not export.is_file() or export.suffix.lower() == ".zip":
        return False
    return not zipfile.is_zipfile(export)


def _select_files(
    export: Path,
    files: Iterable[tuple[str, ExportedFile]],
    patterns: Sequence[str],
) -> dict[str, ExportedFile]:
    """Return the files that are not hidden and whose path matches a pattern, by path.

    A pattern of `fnmatch` is for the path after a slash: `*/a.json` also matches `a.json` itself.
    `export` names the export in an error. Raises Unreadable if an archive has more than 100,000
    such files, or more than 10 GB in all files; files on disk are not limited.
    """
    selected: dict[str, ExportedFile] = {}
    total_bytes = 0
    for path, file in files:
        total_bytes += file.unpacked_bytes
        is_one_too_many = file.unpacked_bytes > 0 and len(selected) >= _MAX_FILES
        if total_bytes > _MAX_TOTAL_BYTES or is_one_too_many:
            raise _too_large(export)

        is_match = any(fnmatchcase(f"/{path}", pattern) for pattern in patterns)
        if is_match and not _HIDDEN.search(path):
            selected[path] = file
    return selected


def _too_large(export: Path) -> Unreadable:
    """Return the error for an export with too many files or bytes."""
    return Unreadable(
        f"{export} contains more files or bytes than one import can read",
        hint="Unpack it, and import its parts one by one.",
    )


def _in_folder(folder: Path) -> Iterator[tuple[str, ExportedFile]]:
    """Yield the files below a folder with their paths in it, then folders that cannot be read.

    Links are not followed: they are yielded as files with a problem. So are folders that cannot be
    read. The files in a folder are sorted by name.
    """
    errors: list[OSError] = []
    for parent, folder_names, file_names in os.walk(folder, onerror=errors.append):
        # os.walk reads the folders that remain in its list: hidden ones are removed from it.
        folder_names[:] = sorted(name for name in folder_names if not name.startswith("."))
        linked_folders = [name for name in folder_names if Path(parent, name).is_symlink()]
        names = [*file_names, *linked_folders]
        for name in sorted(names):
            file = Path(parent, name)
            path = file.relative_to(folder).as_posix()
            problem = ""
            if file.is_symlink() or not file.is_file():
                problem = "it is a link or not a regular file"
            yield path, ExportedFile(file, problem=problem)

    for error in errors:
        path = os.path.relpath(error.filename, folder)
        problem = f"it cannot be read: {error.strerror}"
        yield path, ExportedFile(problem=problem)


class _Archives:
    """The zip of an export and the zips in it, which stay open until a stack is closed.

    Guards how many bytes of inner zips were unpacked into temporary files.
    """

    def __init__(self, export: Path, stack: ExitStack) -> None:
        """Prepare to open the zips of an export, which the stack closes."""
        self._export = export
        self._stack = stack
        self._unpacked_bytes = 0

    def files(self, file: Path | IO[bytes], depth: int = 0) -> Iterator[tuple[str, ExportedFile]]:
        """Yield the files of a zip, and those of the zips in it, with their paths in their zip.

        `depth` is how many zips are around this one. With 2, the zips in it are not opened, but
        yielded as files. Raises Unreadable if the inner zips have more than 10 GB, and an error of
        UNREADABLE if one of them is broken.
        """
        archive = self._stack.enter_context(_open_zip(file))
        for entry in archive.infolist():
            path = entry.filename
            if path.endswith(".zip") and depth < _MAX_ZIP_DEPTH:
                inner_zip = self._unpack_zip(archive, entry)
                yield from self.files(inner_zip, depth + 1)
            elif not entry.is_dir():
                problem = ""
                if ".." in path.split("/") or path.startswith("/") or "\\" in path:
                    problem = "its path leads out of the archive"
                unpack = partial(archive.open, entry)
                yield path, ExportedFile(None, unpack, entry.file_size, problem)

    def _unpack_zip(self, archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> IO[bytes]:
        """Unpack a zip in an archive into a temporary file, and return the file.

        Raises Unreadable if that makes more than 10 GB, before anything of it is unpacked.
        """
        # A few megabytes can unpack to zips that fill the disk.
        self._unpacked_bytes += entry.file_size
        if self._unpacked_bytes > _MAX_TOTAL_BYTES:
            raise _too_large(self._export)

        inner_zip = self._stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
        with archive.open(entry) as data:
            shutil.copyfileobj(data, inner_zip)
        return inner_zip


def _open_zip(file: Path | IO[bytes]) -> zipfile.ZipFile:
    """Open a zip. Its names are read as UTF-8 if all of them are valid UTF-8.

    Raises BadZipFile if it is not a zip, and OSError if it cannot be read.
    """
    # Not every archive says that its names are UTF-8.
    with suppress(UnicodeDecodeError):
        return zipfile.ZipFile(file, metadata_encoding="utf-8")
    return zipfile.ZipFile(file)


class Item(NamedTuple):
    """A note or another file to import.

    Attributes:
        origin: Where the item is in the export: a path, or the number of a record.
        path: The path of the new file, below the folder of the import.
        data: The text of a note, or the bytes of another file.
        source: The value of the note's `source` property, by which a later import recognises the
            note; "" for a file that is recognised by its path.
        modified_at: The time of the last change in seconds; None for the time of the import.
        is_linked: Whether the file may get another name. Relative links to its `origin` in other
            items are redirected to its new path.
        update: Returns the new text of the note that an earlier import made, from its current text.
            Without it, a note that has been edited since stays as it is.
    """

    origin: str
    path: str
    data: str | bytes
    source: str = ""
    modified_at: float | None = None
    is_linked: bool = False
    update: Callable[[str], str] | None = None


class Skipped(NamedTuple):
    """A part of an export that is not imported: where it is in the export, and the reason."""

    origin: str
    reason: str


def convert_records(
    records: Iterable[tuple[str, R]], convert: Callable[[str, R], Iterable[Item]]
) -> Iterator[Item | Skipped]:
    """Yield the items that `convert` makes of each record.

    `records` pairs each record with its origin, and `convert` gets both. If it raises a
    SimplememError, or an error that a record of an unexpected form causes (such as KeyError), the
    rest of the record becomes a `Skipped` with the error's message. Errors of `records` itself are
    raised.
    """
    for origin, record in records:
        try:
            yield from convert(origin, record)
        except SimplememError as error:
            yield Skipped(origin, error.message)
        except UnicodeDecodeError as error:
            yield Skipped(origin, f"it is not UTF-8 (byte {error.start})")
        except (OSError, AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
            yield Skipped(origin, f"it does not have the expected format: {error}")


def make_note(
    origin: str, path: str, body: str, source: str, properties: Mapping[str, Any]
) -> Item:
    """Return a note as an item, with these properties and `source` in its frontmatter.

    `origin` and `path` become those of the item. Properties without a value are left out, tags
    become legal, and empty lines around the body are removed. The note's time is `modified`, else
    `created`, else None. Raises Invalid if the text contains a character, or a property a value,
    that a note cannot contain.
    """
    header = _header_properties(properties, source)
    text = render_header(header)
    if body.strip():
        lines = body.strip("\n")
        text += f"\n{lines}\n"
    text = clean_text(text, "text", len(text), "")

    time_text = header.get("modified") or header.get("created")
    modified_at = None
    if time_text:
        time = parse_moment(str(time_text))
        modified_at = time.timestamp() if time else None
    return Item(origin, path, text, source, modified_at)


def _header_properties(properties: Mapping[str, Any], source: str) -> dict[str, Any]:
    """Return the properties of a note's frontmatter, without those that have no value.

    `source` is the last one. A property that is called so too, in any case, gets `original` before
    its name.
    """
    header: dict[str, Any] = {}
    for key, value in properties.items():
        name = key
        if key.lower() == SOURCE:
            name = f"original {key}"
        header[name] = value
    header["tags"] = _legal_tags(header.get("tags") or ())
    header[SOURCE] = source
    return {key: value for key, value in header.items() if value not in (None, "", [])}


def _legal_tags(tags: Iterable[str]) -> list[str]:
    """Return each tag once, in the nearest form that is legal. Blank tags are left out."""
    legal_tags = [nearest_tag(tag) for tag in tags if tag.strip()]
    return list(dict.fromkeys(legal_tags))


def title_of(text: str) -> str:
    """Return the beginning of a text's first line as a legal name, "Untitled" for a blank text.

    Blank lines and number signs before it are left out. It has at most 60 characters.
    """
    for line in text.split("\n"):
        title = line.lstrip("# \t").strip()
        if title:
            return legal_name(title[:_MAX_TITLE])
    return legal_name("")


def read_time(value: object) -> datetime | None:
    """Return the time that an export states, in UTC: ISO 8601, or seconds since 1970.

    It is None for any other value, for a number from the year 3000 on, and for the years 1 and
    9999. A text without an offset is in local time.
    """
    if isinstance(value, (int, float)) and 0 < value < _YEAR_3000:
        return datetime.fromtimestamp(value, UTC)
    if not isinstance(value, str):
        return None

    time = parse_moment(value)
    if time is None or not 1 < time.year < 9999:
        return None
    return time


def local_time(value: object) -> str | None:
    """Return the time that an export states as a note has it: local, without a time zone.

    It is None for the values for which `read_time` returns None.
    """
    time = read_time(value)
    if time is None:
        return None
    return time.astimezone().strftime("%Y-%m-%dT%H:%M:%S")
