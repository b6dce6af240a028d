"""What a vault stands on: the folder it lies in, the disk, and what the system allows."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from simplemem.store.core import Core
from simplemem.store.doctor.case import Case, Noticed, remark, warning
from simplemem.vault.place import file_system, is_shared, leaves_out_sidecar, synced_by

_WAL_FIXED = (3, 51, 3)  # earlier ones can lose what two processes write at the same instant (durability.md §0.6)
_LITTLE_ROOM = 200_000_000
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
        "free_bytes": shutil.disk_usage(root).free,
    }


def check_place(case: Case) -> Iterator[Noticed]:
    """A vault that something else carries to other computers. The notes are safe there; the index is better elsewhere."""
    root, index = case.vault.root, Path(case.index.path)
    if service := synced_by(root):
        inside = index.resolve().is_relative_to(root.resolve())
        yield in_folder_of(service, index_too=inside and not (service == "Syncthing" and leaves_out_sidecar(root)))
    yield from on_disks(file_system(str(root)), file_system(str(index.parent)))


def in_folder_of(service: str, *, index_too: bool) -> Noticed:
    """What a service that keeps a folder the same on several computers means for the vault in it."""
    if index_too:
        message = (
            f"the vault is in a folder of {service}, and its index with it: every change of the index is carried to the "
            "other computers, where it may meet another index"
        )
        return warning("place", "", message, f"{_ELSEWHERE} Without one, it is made anew.")
    message = f"the vault is in a folder of {service}: the lock that keeps writers apart is not seen on other computers"
    hint = "Notes changed on two computers at once come as conflict copies, which the check `conflicts` lists."
    return remark("place", "", message, hint)


def on_disks(of_vault: str, of_index: str) -> Iterator[Noticed]:
    """What the kinds of disk mean that the vault and its index are on."""
    if is_shared(of_vault):
        message = f"the vault is on a {of_vault} disk: what other computers change is looked for, and not announced"
        yield remark("place", "", message, "The lock that keeps writers apart may not hold between computers.")
    if is_shared(of_index):
        message = f"the index is on a {of_index} disk, where SQLite cannot keep several computers apart"
        yield warning("place", "", message, _ELSEWHERE)


def check_system(case: Case) -> Iterator[Noticed]:
    """What the system allows, and what it says of itself."""
    import apsw

    yield from of_sqlite(apsw.sqlite_lib_version())
    for what, folder in (("vault", case.vault.root), ("index", Path(case.index.path).parent)):
        with suppress(OSError):
            yield from of_room(what, shutil.disk_usage(folder).free)
    newest = next(iter(case.core.changes.recent(1)), None)
    yield from of_clock(newest.when if newest is not None else "", datetime.now(UTC))


def of_sqlite(version: str) -> Iterator[Noticed]:
    if tuple(int(part) for part in version.split(".")[:3]) < _WAL_FIXED:
        message = (
            f"SQLite {version}, as the package apsw brings it, can lose what two programs write at the same instant"
        )
        yield warning("system", "", message, "Bring apsw up to date: pip install -U apsw.")


def of_room(what: str, free: int) -> Iterator[Noticed]:
    if free < _LITTLE_ROOM:
        message = f"the disk of the {what} has {free / 1e6:.0f} MB left"
        yield warning("system", "", message, "Free some space before it is full.")


def of_clock(newest: str, now: datetime) -> Iterator[Noticed]:
    """Order in the history does not hang on the clock; the dates of notes do."""
    with suppress(ValueError, TypeError):
        if datetime.fromisoformat(newest) - now > _CLOCK_MAY_DIFFER:
            message = (
                f"the clock is behind the newest change in the history, {newest}: new dates of notes will be older"
            )
            yield warning("system", "", message, "Set the clock of this computer.")
