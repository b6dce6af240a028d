"""Every file of the vault as the disk shows it: one walk, a stat a file, no content read.

Dot-folders and dot-files are not the vault's (obsidian.md §5), and links are not followed (durability.md F36). What
cannot be looked into is reported as a problem: it is not empty and not deleted (F10)."""

from __future__ import annotations

import os
import stat
import sys
from dataclasses import dataclass, field
from operator import attrgetter

from simplemem.vault.disk import TEMP, Entry
from simplemem.vault.paths import MOST_PARTS, Beneath, Parts, explain, is_path


@dataclass(frozen=True, slots=True)
class ScanProblem:
    """A file or folder that was left out of a scan, and why. Nothing below it may be taken for deleted."""

    path: str
    reason: str
    folder: bool


@dataclass(frozen=True, slots=True)
class Scan:
    """What a walk found: entries by path, what it could not see, and files that an interrupted write of ours left."""

    entries: list[Entry] = field(default_factory=list)
    problems: list[ScanProblem] = field(default_factory=list)
    strays: list[str] = field(default_factory=list)


def walk(here: Beneath, start: Parts = ()) -> Scan:
    """All regular files below a folder, without recursion."""
    scan = Scan()
    waiting = [start]
    while waiting:
        parts = waiting.pop()
        prefix = "/".join((*parts, ""))
        try:
            folder = here.folder(parts)
            with os.scandir(folder.path if folder.fd is None else folder.fd) as found:
                for item in found:
                    if item.name[0] == ".":
                        if TEMP.fullmatch(item.name) and item.is_file(follow_symlinks=False):
                            scan.strays.append(prefix + item.name)
                    elif _look(item, prefix, scan):
                        waiting.append((*parts, item.name))
        except FileNotFoundError:
            continue  # it went while we walked
        except OSError as error:
            scan.problems.append(_refused(error, "list", prefix[:-1], folder=True))
        here.rest()
    scan.entries.sort(key=attrgetter("path"))
    return scan


def _look(item: os.DirEntry[str], prefix: str, scan: Scan) -> bool:
    """Take a file in; say whether it is a folder to walk into."""
    path, name = prefix + item.name, item.name
    try:
        is_folder = item.is_dir(follow_symlinks=False)
        if not is_folder and not item.is_file(follow_symlinks=False):
            return False
        is_plain = (name.isascii() and "\\" not in name and sys.platform != "win32") or is_path(name)
        if not is_plain or prefix.count("/") >= MOST_PARTS:
            shown = (path if len(path) <= 200 else f"{path[:100]}...{path[-97:]}").encode("utf-8", "backslashreplace")
            why = (
                "It lies in too many folders, one in the other."
                if is_plain
                else "Its name cannot be spelled in a path."
            )
            scan.problems.append(ScanProblem(shown.decode(), why, is_folder))
            return False
        found = item.stat(follow_symlinks=False) if not is_folder else None
    except FileNotFoundError:
        return False
    except OSError as error:
        scan.problems.append(_refused(error, "look at", path, folder=False))
        return False
    if found is not None and stat.S_ISREG(found.st_mode):
        times = found.st_mtime_ns, found.st_ctime_ns
        scan.entries.append(Entry(path, found.st_size, *times, found.st_ino or item.inode()))
    return is_folder


def _refused(error: OSError, doing: str, path: str, *, folder: bool) -> ScanProblem:
    return ScanProblem(path, explain(error, doing, path, writing=False).message, folder)
