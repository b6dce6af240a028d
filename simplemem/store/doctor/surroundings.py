"""What a vault stands on: the folder it lies in, the disk, and what the system allows."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from simplemem.memory import Finding
from simplemem.store.doctor.case import Case, Noticed
from simplemem.vault.place import file_system, is_shared, leaves_out_sidecar, synced_by

_WAL_FIXED = (3, 51, 3)  # earlier ones can lose what two processes write at the same instant (durability.md §0.6)
_LITTLE_ROOM = 200_000_000
_FEW_FILES = 256
_CLOCK_MAY_DIFFER = timedelta(minutes=5)
_ELSEWHERE = "Put it on this computer alone: `--db` when serving, or $SIMPLEMEM_DB for every command."


def check_place(case: Case) -> Iterator[Noticed]:
    """A vault that something else carries to other computers. The notes are safe there; the index is better elsewhere."""
    root, index = case.vault.root, Path(case.index.path)
    service = synced_by(root)
    if service and _is_inside(index, root) and not (service == "Syncthing" and leaves_out_sidecar(root)):
        message = (
            f"the vault is in a folder of {service}, and its index with it: every change of the index is carried to the "
            "other computers, where it may meet another index"
        )
        yield Noticed(Finding("place", "warning", "", message, f"{_ELSEWHERE} An index that lies about is made anew."))
    elif service:
        message = (
            f"the vault is in a folder of {service}: the lock that keeps writers apart is not seen on other computers"
        )
        hint = "Notes changed on two computers at once come as conflict copies, which this command lists."
        yield Noticed(Finding("place", "note", "", message, hint))
    kind = file_system(str(root))
    if is_shared(kind):
        message = f"the vault is on a {kind} disk: changes made by other computers are looked for and not announced"
        hint = "Simplemem looks through it every index.scan_minutes; the lock may not hold between computers."
        yield Noticed(Finding("place", "note", "", message, hint))
    beneath = file_system(str(index.parent))
    if is_shared(beneath):
        message = f"the index is on a {beneath} disk, where SQLite cannot keep several computers apart"
        yield Noticed(Finding("place", "warning", "", message, _ELSEWHERE))


def _is_inside(path: Path, folder: Path) -> bool:
    return path.resolve().is_relative_to(folder.resolve())


def check_system(case: Case) -> Iterator[Noticed]:
    yield from _sqlite()
    yield from _room(case)
    yield from _clock(case)
    yield from _open_files()
    if case.settings.index.watch:
        yield from _watches(case)


def _sqlite() -> Iterator[Noticed]:
    import apsw

    version = apsw.sqlite_lib_version()
    if tuple(int(part) for part in version.split(".")[:3]) < _WAL_FIXED:
        message = (
            f"SQLite {version}, as the package apsw brings it, can lose what two programs write at the same instant"
        )
        yield Noticed(Finding("system", "warning", "", message, "Bring apsw up to date: pip install -U apsw."))


def _room(case: Case) -> Iterator[Noticed]:
    for what, folder in (("vault", case.vault.root), ("index", Path(case.index.path).parent)):
        try:
            free = shutil.disk_usage(folder).free
        except OSError:
            continue
        if free < _LITTLE_ROOM:
            message = f"the disk of the {what} has {free / 1e6:.0f} MB left"
            yield Noticed(Finding("system", "warning", "", message, "Free some space before it is full."))


def _clock(case: Case) -> Iterator[Noticed]:
    """Order in the history does not hang on the clock; the dates of notes do."""
    newest = next((change.when for change in reversed(case.changes)), "")
    try:
        ahead = datetime.fromisoformat(newest) - datetime.now(UTC)
    except (ValueError, TypeError):
        ahead = timedelta(0)
    if ahead > _CLOCK_MAY_DIFFER:
        message = f"the clock is behind the newest change in the history, {newest}: new dates of notes will be older"
        yield Noticed(Finding("system", "warning", "", message, "Set the clock of this computer."))
    tomorrow = (time.time() + 86_400) * 1e9
    late = [path for path, entry in case.entries.items() if entry.mtime_ns > tomorrow]
    if late:
        message = (
            f"{len(late)} files were changed in the future, as the disk says: they come first wherever dates count"
        )
        yield Noticed(Finding("system", "note", late[0], message, "Their times are those of another clock."))


def _open_files() -> Iterator[Noticed]:
    if sys.platform == "win32":
        return
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= soft < _FEW_FILES:
        message = f"a program may have {soft} files open here, which is few for several servers"
        yield Noticed(Finding("system", "warning", "", message, "Raise it: ulimit -n 1024."))


def _watches(case: Case) -> Iterator[Noticed]:
    """Linux watches folder by folder, and no more of them than it allows a user."""
    folders = 1 + len({path[:at] for path in case.entries for at, char in enumerate(path) if char == "/"})
    allowed = _limit("max_user_watches")
    if allowed is not None and folders > allowed:
        message = (
            f"the vault has {folders:,} folders, and {allowed:,} may be watched: changes are looked for every while"
        )
        hint = f"sudo sysctl fs.inotify.max_user_watches={max(524_288, 2 * folders)}"
        yield Noticed(Finding("system", "warning", "", message, hint))
    instances = _limit("max_user_instances")
    if instances is not None and (used := _watchers()) >= instances:
        message = f"{used} programs watch folders, and no more than {instances} may"
        yield Noticed(Finding("system", "warning", "", message, "sudo sysctl fs.inotify.max_user_instances=1024"))


def _limit(name: str) -> int | None:
    try:
        return int(Path(f"/proc/sys/fs/inotify/{name}").read_text())
    except (OSError, ValueError):
        return None


def _watchers() -> int:
    """How many inotify instances the programs of this user hold."""
    import os

    found = 0
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if process.stat().st_uid != os.getuid():
                continue
            names = [os.readlink(fd) for fd in process.joinpath("fd").iterdir()]
        except OSError:
            continue
        found += names.count("anon_inode:inotify")
    return found
