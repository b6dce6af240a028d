"""What a reader is given, the files of an export, each read when it is asked for; and what it makes of them: notes and
other files that are to come into the vault, and what is left out, with the reason."""

from __future__ import annotations

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
from typing import IO, Any, Final, NamedTuple, TypeVar, cast

from simplemem.errors import SimplememError, Unreadable
from simplemem.features.text import clean_text
from simplemem.note.dates import parse_moment
from simplemem.note.names import legal_name
from simplemem.note.tag_changes import nearest_tag
from simplemem.note.yaml_writer import render_header

SOURCE: Final = "source"  # the property that says where a note comes from: `mem0:8f1c`
UNREADABLE: Final = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, OSError)
_MOST_BYTES, _MOST_FILES, _MOST_TOGETHER, _MOST_DEPTH = 100_000_000, 100_000, 10_000_000_000, 2
_HIDDEN = re.compile(
    r"^__MACOSX/|(?:^|/)\.(?!\.|[^/]* [0-9a-f]{32})"
)  # not a page of Notion called ".NET"
_TITLE = 60  # characters
R = TypeVar("R")


class ExportedFile(NamedTuple):
    """A file: where it lies, or how it is unpacked and its size then; or why it is not read."""

    real: Path | None = None
    unpack: Callable[[], IO[bytes]] | None = None
    size: int = 0
    problem: str = ""

    def open(self) -> IO[bytes]:
        """Open it to read. Unreadable says why it is not."""
        if self.problem:
            raise Unreadable(self.problem)
        return self.real.open("rb") if self.real else cast("Callable[[], IO[bytes]]", self.unpack)()

    def data(self, most: int = _MOST_BYTES) -> bytes:
        """All that it holds. Unreadable says why not."""
        try:
            with self.open() as file:
                if (self.real.stat().st_size if self.real else self.size) > most:
                    raise Unreadable(f"it is larger than {most // 1_000_000} MB")
                return file.read()
        except UNREADABLE as error:
            raise Unreadable(
                f"it cannot be read: {getattr(error, 'strerror', None) or error}"
            ) from error

    @property
    def at(self) -> float | None:
        """Its last change, in seconds."""
        return self.real.stat().st_mtime if self.real else None


@contextmanager
def files(export: Path, wanted: Sequence[str] = ("*",)) -> Iterator[dict[str, ExportedFile]]:
    """The files of an export by their paths in it, in order. Of a folder or a zip no hidden ones, and only those whose
    path looks like one that is wanted."""
    if export.is_file() and export.suffix.lower() != ".zip" and not zipfile.is_zipfile(export):
        yield {export.name: ExportedFile(export)}
        return
    with ExitStack() as stack:
        every, total = dict[str, ExportedFile](), 0
        try:
            for path, file in _in_folder(export) if export.is_dir() else _in_zip(stack, export):
                if (total := total + file.size) > _MOST_TOGETHER or (
                    file.size and len(every) >= _MOST_FILES
                ):
                    hint = "Unpack it, and import its parts one by one."
                    raise Unreadable(
                        f"{export} contains more files or bytes than one import can read", hint=hint
                    )
                if not _HIDDEN.search(path) and any(
                    fnmatchcase(f"/{path}", form) for form in wanted
                ):
                    every[path] = file
        except UNREADABLE as error:
            raise Unreadable(
                f"{export} cannot be read: {error}", hint="Export it again, or unpack it."
            ) from error
        yield every


def _in_folder(folder: Path) -> Iterator[tuple[str, ExportedFile]]:
    """The files below a folder, and the folders that cannot be read; nothing that links lead to."""
    unread: list[OSError] = []
    for above, folders, names in os.walk(folder, onerror=unread.append):
        folders[:] = sorted(each for each in folders if not each.startswith("."))
        for name in sorted([*names, *(each for each in folders if Path(above, each).is_symlink())]):
            file = Path(above, name)
            problem = (
                "it is a link or not a regular file"
                if file.is_symlink() or not file.is_file()
                else ""
            )
            yield file.relative_to(folder).as_posix(), ExportedFile(file, problem=problem)
    for error in unread:
        yield (
            os.path.relpath(error.filename, folder),
            ExportedFile(problem=f"it cannot be read: {error.strerror}"),
        )


def _in_zip(
    stack: ExitStack, file: Path | IO[bytes], depth: int = 0
) -> Iterator[tuple[str, ExportedFile]]:
    archive = stack.enter_context(_opened(file))
    for each in archive.infolist():
        path = each.filename
        if path.endswith(".zip") and depth < _MOST_DEPTH and each.file_size <= _MOST_TOGETHER:
            inner = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
            with archive.open(each) as data:
                shutil.copyfileobj(data, inner)
            yield from _in_zip(stack, inner, depth + 1)
        elif not each.is_dir():
            leads_out = ".." in path.split("/") or path.startswith("/") or "\\" in path
            problem = "its path leads out of the archive" if leads_out else ""
            yield path, ExportedFile(None, partial(archive.open, each), each.file_size, problem)


def _opened(file: Path | IO[bytes]) -> zipfile.ZipFile:
    with suppress(UnicodeDecodeError):
        return zipfile.ZipFile(
            file, metadata_encoding="utf-8"
        )  # most names are, and not all archives say so
    return zipfile.ZipFile(file)


class Item(NamedTuple):
    """A note or another file to be made: where it stands in what is read, its path below the folder, what it holds, by
    which `source` it is known again, and when it was changed last, in seconds. One that `is_linked` may get another
    name: links to it, relative to where notes stood, are led to where it lands. `grown` makes of the note, as it is
    here now, what it shall be; without it, one that somebody edited stays as it is."""

    where: str
    path: str
    data: str | bytes
    source: str = ""
    at: float | None = None
    is_linked: bool = False
    grown: Callable[[str], str] | None = None


class Left(NamedTuple):
    """Something that is left out, and why."""

    where: str
    why: str


def each(
    records: Iterable[tuple[str, R]], made: Callable[[str, R], Iterable[Item]]
) -> Iterator[Item | Left]:
    """What is made of records, each with where it stands. A broken one is left out, and the rest goes on."""
    for where, record in records:
        try:
            yield from made(where, record)
        except SimplememError as refused:
            yield Left(where, refused.message)
        except UnicodeDecodeError as error:
            yield Left(where, f"it is not UTF-8 (byte {error.start})")
        except (OSError, AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
            yield Left(where, f"it does not have the expected format: {error}")


def note(where: str, path: str, body: str, source: str, properties: Mapping[str, Any]) -> Item:
    """A note with a header of these properties; those without a value are left out."""
    told = {
        f"original {key}" if key.lower() == SOURCE else key: value
        for key, value in properties.items()
    }
    tags = list(dict.fromkeys(nearest_tag(tag) for tag in told.get("tags") or () if tag.strip()))
    told |= {"tags": tags, SOURCE: source}
    told = {key: value for key, value in told.items() if value not in (None, "", [])}
    text = render_header(told) + (f"\n{body.strip(chr(10))}\n" if body.strip() else "")
    at = parse_moment(str(told.get("modified") or told.get("created") or ""))
    return Item(
        where, path, clean_text(text, "text", len(text), ""), source, at.timestamp() if at else None
    )


def title_of(text: str) -> str:
    """What a text without a title is called: how it begins."""
    lines = (line.lstrip("# \t").strip() for line in text.split("\n"))
    return legal_name(next(filter(None, lines), "")[:_TITLE])


def moment(said: Any) -> datetime | None:
    """The moment that a text in ISO 8601 says, or a number of seconds since 1970."""
    if isinstance(said, (int, float)) and 0 < said < 32_503_680_000:  # the year 3000
        return datetime.fromtimestamp(said, UTC)
    at = parse_moment(said) if isinstance(said, str) else None
    return at if at and 1 < at.year < 9999 else None


def wall_time(said: Any) -> str | None:
    """A time as notes have it, on the wall here."""
    at = moment(said)
    return at.astimezone().strftime("%Y-%m-%dT%H:%M:%S") if at else None
