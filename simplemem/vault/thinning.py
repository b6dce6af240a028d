"""What of the past need not be kept any longer: texts last part of a change long ago, and the oldest beyond so many bytes.

Age is counted back from the newest change, not from the clock, and in the order of the log: a vault that rested for a year
loses nothing, and a clock that was wrong for a day does not either. The log itself stays: what was done remains known.
Everything here may be stopped at any point and begun again. Whoever calls holds the vault's lock.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from simplemem.vault import disk
from simplemem.vault.log import Log, Version
from simplemem.vault.paths import SIDECAR, Beneath, parent

OBJECTS = f"{SIDECAR}/history/objects"
TRASH = f"{SIDECAR}/trash"
_A_DAY = 86_400.0


@dataclass(slots=True)
class _Uses:
    """When texts were last part of a change: the change's number for those in the time that is kept."""

    numbers: dict[str, int] = field(default_factory=dict)
    old: set[str] = field(default_factory=set)
    newest: set[str] = field(default_factory=set)  # what the last operation took away
    deleted: list[Version] = field(default_factory=list)
    cut: int = 0  # the last change that is too old


def thin(here: Beneath, log: Log, *, keep_days: int, keep_bytes: int) -> list[str]:
    """Drop what need not be kept; the hashes of it, newest first."""
    uses = _uses(log, keep_days)
    dropped, total = list[str](), 0
    for _, sha, size in sorted(_texts(here, uses), reverse=True):
        total += size
        if sha in uses.old or (total > keep_bytes and sha not in uses.newest):
            dropped.append(sha)
    # The trash goes first: should this stop here, the text still tells the next time that there is something to do.
    gone = set(dropped)
    for version in uses.deleted:
        if version.before in gone or version.number <= uses.cut:
            _empty(here, version)
    for sha in dropped:
        disk.remove(here, place_of(sha))
    return dropped


def place_of(sha: str) -> str:
    """Where a text is kept, by its hash."""
    return f"{OBJECTS}/{sha[:2]}/{sha}"


def names_in(here: Beneath, folder: str) -> list[str]:
    """The names in a folder of ours, none when it is not there."""
    try:
        return sorted(here.folder(tuple(folder.split("/"))).names())
    except FileNotFoundError:
        return []


def _uses(log: Log, keep_days: int) -> _Uses:
    uses = _Uses()
    if (edge := _edge(log, keep_days)) is not None:
        uses.cut = log.last_before(edge)
    newest = ""
    for version in log.backwards():
        if version.number <= uses.cut:
            break
        newest = newest or version.group
        if version.group == newest and version.before:
            uses.newest.add(version.before)
        for sha in filter(None, (version.before, version.after)):
            uses.numbers.setdefault(sha, version.number)
        if version.trash:
            uses.deleted.append(version)
    if uses.cut:
        hashes, deleted = log.uses_until(uses.cut)
        uses.old = hashes - uses.numbers.keys()
        uses.deleted += deleted
    return uses


def _edge(log: Log, keep_days: int) -> str | None:
    """The moment before which texts are too old. Of the last three days with changes the one in the middle is believed,
    so that one day under a wrong clock moves nothing."""
    days: list[str] = []
    for _, when in log.times():
        if when[:10] not in days:
            days.append(when[:10])
        if len(days) == 3:
            break
    if not days:
        return None
    try:
        newest = datetime.fromisoformat(sorted(days)[(len(days) - 1) // 2]).replace(tzinfo=UTC)
        edge = min(newest + timedelta(days=1), datetime.now(UTC)) - timedelta(days=keep_days)
    except (ValueError, OverflowError):
        return None
    return edge.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _texts(here: Beneath, uses: _Uses) -> list[tuple[int, str, int]]:
    """The texts that are kept: order of their last use, hash, size. One that no change names may be needed by whoever put
    it there a moment ago; after a day it is as old as can be."""
    found = []
    for drawer in names_in(here, OBJECTS):
        folder = here.folder((*OBJECTS.split("/"), drawer))
        for name in folder.names():
            seen = os.stat(folder.name(name), dir_fd=folder.fd, follow_symlinks=False)
            if disk.TEMP.fullmatch(name):
                disk.remove(here, f"{OBJECTS}/{drawer}/{name}")
            elif len(name) == 64:
                if name not in uses.numbers and abs(time.time() - seen.st_mtime) > _A_DAY:
                    uses.old.add(name)
                found.append((uses.numbers.get(name, 0 if name in uses.old else 1 << 60), name, seen.st_size))
    return found


def _empty(here: Beneath, version: Version) -> None:
    """Take a deleted file out of our trash, if it is still what was deleted. Obsidian's own trash is not ours to empty."""
    trash = version.trash or ""
    if trash.startswith(f"{TRASH}/"):
        with suppress(FileNotFoundError):
            if disk.hash_of(here, trash) == version.before:
                disk.remove(here, trash)
                here.prune(parent(trash), keep=2)
