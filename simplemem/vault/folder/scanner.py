"""List the files of a vault in a folder.

A scan takes in regular files. It leaves out what begins with a dot, links (F36), and files whose
name is not a valid path.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from operator import attrgetter
from typing import NamedTuple

from simplemem.note.names import MAX_PATH_PARTS, Parts, is_path
from simplemem.vault.folder.dir_handles import DirHandles, explain
from simplemem.vault.folder.disk import TEMP
from simplemem.vault.values import Entry

_MAX_SHOWN_PATH = 200  # characters of a path in `problems`


class Scan(NamedTuple):
    """The result of a scan: the files, what could not be read and why, and our staged files.

    A staged file is left in a folder of notes if a write was interrupted.
    """

    entries: list[Entry]
    problems: dict[str, str]
    staged_files: list[str]


def scan_folder(handles: DirHandles, start: Parts = ()) -> Scan:
    """Return all regular files below a folder, sorted by path, and what could not be read.

    Files and folders that begin with a dot, and links, are left out. Files that the access rules
    hide are included: the vault leaves them out. A folder that does not exist has no files.
    """
    scan = Scan([], {}, [])
    pending = [start]
    while pending:
        parts = pending.pop()
        prefix = "/".join((*parts, ""))
        try:
            with _listing(handles, parts) as items:
                for item in items:
                    is_folder = _add_item(item, prefix, scan)
                    if is_folder:
                        pending.append((*parts, item.name))
        except FileNotFoundError:
            continue  # the folder was deleted during the scan
        except OSError as error:
            path = prefix[:-1]
            scan.problems[path] = explain(error, "list", path, writing=False).message
        handles.close_all()

    scan.entries.sort(key=attrgetter("path"))
    return scan


def list_paths(handles: DirHandles) -> list[str]:
    """Return the sorted paths that `scan_folder` would find from the root.

    No file is examined, which takes a tenth of the time. A folder that cannot be listed is left
    out.
    """
    paths: list[str] = []
    pending: list[Parts] = [()]
    while pending:
        parts = pending.pop()
        prefix = "/".join((*parts, ""))
        with suppress(OSError), _listing(handles, parts) as items:
            for item in items:
                if item.name[0] == "." or not _is_valid(prefix, item.name):
                    continue
                if item.is_dir(follow_symlinks=False):
                    pending.append((*parts, item.name))
                elif item.is_file(follow_symlinks=False):
                    paths.append(prefix + item.name)
        handles.close_all()
    return sorted(paths)


@contextmanager
def _listing(handles: DirHandles, parts: Parts) -> Iterator[Iterator[os.DirEntry[str]]]:
    """Yield an iterator over the items of a folder, which is open for the block.

    Raises OSError if the folder cannot be opened.
    """
    folder = handles.folder(parts)
    with os.scandir(folder.path if folder.fd is None else folder.fd) as items:
        yield items


def _is_valid(prefix: str, name: str) -> bool:
    """Return whether a name in a folder makes a valid path; most names need no full check.

    `prefix` is the path of the folder with a final slash, or "".
    """
    is_plain = name.isascii() and "\\" not in name and sys.platform != "win32"
    if is_plain and prefix.count("/") < MAX_PATH_PARTS:
        return True
    return is_path(prefix + name)


def _add_item(item: os.DirEntry[str], prefix: str, scan: Scan) -> bool:
    """Add a file, or what is wrong with it, to a scan.

    Return whether it is a folder to scan too. `prefix` is the path of its folder with a final
    slash, or "".
    """
    if item.name[0] == ".":
        if TEMP.fullmatch(item.name) and item.is_file(follow_symlinks=False):
            scan.staged_files.append(prefix + item.name)
        return False

    path = prefix + item.name
    try:
        is_folder = item.is_dir(follow_symlinks=False)
        file_stat = None
        if not is_folder:
            file_stat = item.stat(follow_symlinks=False)
    except FileNotFoundError:
        return False  # it was deleted during the scan
    except OSError as error:
        scan.problems[path] = explain(error, "access", path, writing=False).message
        return False

    if file_stat is not None and not stat.S_ISREG(file_stat.st_mode):
        return False
    if not _is_valid(prefix, item.name):
        scan.problems[_printable(path)] = (
            "its name is not valid in a path, or it has too many nested folders"
        )
        return False

    if file_stat is not None:
        entry = Entry(
            path,
            size=file_stat.st_size,
            mtime_ns=file_stat.st_mtime_ns,
            ctime_ns=file_stat.st_ctime_ns,
            inode=file_stat.st_ino or item.inode(),
        )
        scan.entries.append(entry)
    return is_folder


def _printable(path: str) -> str:
    """Return a path that may be shown: not too long, and with invalid bytes escaped."""
    if len(path) > _MAX_SHOWN_PATH:
        path = f"{path[:100]}...{path[-97:]}"
    return path.encode("utf-8", "backslashreplace").decode()
