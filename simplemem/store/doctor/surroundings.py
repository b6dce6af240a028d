"""What a vault stands on: the folder it lies in, the disk, and what the system allows."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from simplemem.memory import Finding
from simplemem.store.core import Core
from simplemem.store.doctor.case import Case, Noticed
from simplemem.vault.paths import SIDECAR
from simplemem.vault.place import file_system, is_shared, leaves_out_sidecar, synced_by

_WAL_FIXED = (3, 51, 3)  # earlier ones can lose what two processes write at the same instant (durability.md §0.6)
_LITTLE_ROOM = 200_000_000
_FEW_FILES = 256
_CLOCK_MAY_DIFFER = timedelta(minutes=5)
_ELSEWHERE = "Put it on this computer alone: `--db` when serving, or $SIMPLEMEM_DB for every command."


def facts(core: Core) -> dict[str, Any]:
    """All of it as it is, whether or not anything is wrong with it."""
    import apsw

    root, index = core.vault.root, Path(core.index.path)
    return {
        "sqlite": apsw.sqlite_lib_version(),
        "sqlite_of": f"apsw {apsw.apsw_version()}",
        "vault_on": file_system(str(root)),
        "index_on": file_system(str(index.parent)),
        "synced_by": synced_by(root),
        "case_counts": not _is_there(root / SIDECAR.upper()) if _is_there(root / SIDECAR) else None,
        "free_bytes": shutil.disk_usage(root).free,
        "watches_allowed": _limit("max_user_watches"),
        "watchers": _watchers() if sys.platform == "linux" else None,
        "watchers_allowed": _limit("max_user_instances"),
    }


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return False


def check_place(case: Case) -> Iterator[Noticed]:
    """A vault that something else carries to other computers. The notes are safe there; the index is better elsewhere."""
    root, index = case.vault.root, Path(case.index.path)
    service = synced_by(root)
    if service:
        carried = _is_inside(index, root) and not (service == "Syncthing" and leaves_out_sidecar(root))
        yield in_folder_of(service, index_too=carried)
    yield from on_disks(file_system(str(root)), file_system(str(index.parent)))


def in_folder_of(service: str, *, index_too: bool) -> Noticed:
    """What a service that keeps a folder the same on several computers means for the vault in it."""
    if index_too:
        message = (
            f"the vault is in a folder of {service}, and its index with it: every change of the index is carried to the "
            "other computers, where it may meet another index"
        )
        return _noticed("place", "warning", message, f"{_ELSEWHERE} Without one, it is made anew.")
    message = f"the vault is in a folder of {service}: the lock that keeps writers apart is not seen on other computers"
    hint = "Notes changed on two computers at once come as conflict copies, which the check `conflicts` lists."
    return _noticed("place", "note", message, hint)


def on_disks(of_vault: str, of_index: str) -> Iterator[Noticed]:
    """What the kinds of disk mean that the vault and its index are on."""
    if is_shared(of_vault):
        message = f"the vault is on a {of_vault} disk: what other computers change is looked for, and not announced"
        yield _noticed("place", "note", message, "The lock that keeps writers apart may not hold between computers.")
    if is_shared(of_index):
        message = f"the index is on a {of_index} disk, where SQLite cannot keep several computers apart"
        yield _noticed("place", "warning", message, _ELSEWHERE)


def _is_inside(path: Path, folder: Path) -> bool:
    return path.resolve().is_relative_to(folder.resolve())


def _noticed(check: str, level: Literal["warning", "note"], message: str, hint: str, path: str = "") -> Noticed:
    return Noticed(Finding(check, level, path, message, hint))


def check_system(case: Case) -> Iterator[Noticed]:
    """What the system allows, and what it says of itself."""
    import apsw

    yield from of_sqlite(apsw.sqlite_lib_version())
    for what, folder in (("vault", case.vault.root), ("index", Path(case.index.path).parent)):
        with suppress(OSError):
            yield from of_room(what, shutil.disk_usage(folder).free)
    yield from of_clock(next((change.when for change in reversed(case.changes)), ""), datetime.now(UTC))
    yield from _of_times(case)
    if sys.platform != "win32":
        import resource

        yield from of_open_files(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    if sys.platform == "linux" and case.settings.index.watch == "auto":
        folders = 1 + len({path[:at] for path in case.entries for at, char in enumerate(path) if char == "/"})
        yield from of_watches(folders, _limit("max_user_watches"), _watchers(), _limit("max_user_instances"))


def of_sqlite(version: str) -> Iterator[Noticed]:
    if tuple(int(part) for part in version.split(".")[:3]) < _WAL_FIXED:
        message = (
            f"SQLite {version}, as the package apsw brings it, can lose what two programs write at the same instant"
        )
        yield _noticed("system", "warning", message, "Bring apsw up to date: pip install -U apsw.")


def of_room(what: str, free: int) -> Iterator[Noticed]:
    if free < _LITTLE_ROOM:
        message = f"the disk of the {what} has {free / 1e6:.0f} MB left"
        yield _noticed("system", "warning", message, "Free some space before it is full.")


def of_clock(newest: str, now: datetime) -> Iterator[Noticed]:
    """Order in the history does not hang on the clock; the dates of notes do."""
    try:
        ahead = datetime.fromisoformat(newest) - now
    except (ValueError, TypeError):
        return
    if ahead > _CLOCK_MAY_DIFFER:
        message = f"the clock is behind the newest change in the history, {newest}: new dates of notes will be older"
        yield _noticed("system", "warning", message, "Set the clock of this computer.")


def _of_times(case: Case) -> Iterator[Noticed]:
    tomorrow = (time.time() + 86_400) * 1e9
    late = [path for path, entry in case.entries.items() if entry.mtime_ns > tomorrow]
    if late:
        files = f"{len(late)} files were" if len(late) > 1 else "it was"
        message = f"{files} changed in the future, as the disk says: what is newest comes first wherever dates count"
        yield _noticed("system", "note", message, "Such times are those of another clock.", late[0])


def of_open_files(allowed: int) -> Iterator[Noticed]:
    if 0 <= allowed < _FEW_FILES:  # less than nothing is no limit
        message = f"a program may have {allowed} files open here, which is few for a server"
        yield _noticed("system", "note", message, "Raise it: ulimit -n 1024.")


def of_watches(folders: int, allowed: int | None, used: int, instances: int | None) -> Iterator[Noticed]:
    """Linux watches folder by folder, and lets a user have no more of them, and no more watchers, than it says. A server
    that may not watch looks through the vault every while instead."""
    if allowed is not None and folders > allowed:
        message = (
            f"the vault has {folders:,} folders, and {allowed:,} may be watched: changes are looked for every while"
        )
        hint = f"sudo sysctl fs.inotify.max_user_watches={max(524_288, 2 * folders)}"
        yield _noticed("system", "note", message, hint)
    if instances is not None and used >= instances:
        message = (
            f"{used} watchers of this user are at work, and {instances} may be: another server could watch nothing"
        )
        yield _noticed("system", "note", message, "sudo sysctl fs.inotify.max_user_instances=1024")


def _limit(name: str) -> int | None:
    try:
        return int(Path(f"/proc/sys/fs/inotify/{name}").read_text())
    except (OSError, ValueError):
        return None


def _watchers() -> int:
    """How many inotify instances the programs of this user hold."""
    found = 0
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended meanwhile
            if process.stat().st_uid == os.getuid():
                found += sum(_is_watcher(fd) for fd in list(process.joinpath("fd").iterdir()))
    return found


def _is_watcher(fd: Path) -> bool:
    try:
        return os.readlink(fd) == "anon_inode:inotify"
    except OSError:  # it was closed while we looked
        return False
