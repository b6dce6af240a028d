"""What of the past need not be kept any longer: texts last part of a change long ago, and the oldest beyond so many bytes.

Age is counted back from the newest change, not from the clock, and in the order of the log: a vault that rested for a year
loses nothing, and a clock that was wrong for a day does not either. The log itself stays: what was done remains known.
Everything here may be stopped at any point and begun again. Whoever calls holds the vault's lock.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from simplemem.vault import disk
from simplemem.vault.log import Log, Version, versions_in
from simplemem.vault.paths import SIDECAR, Beneath, parent

OBJECTS = f"{SIDECAR}/history/objects"
TRASH = f"{SIDECAR}/trash"
_A_DAY = 86_400.0
_NEWEST = 1 << 60


@dataclass(slots=True)
class _Uses:
    """What the log says of texts: which change each was last part of, and which deletes put a file into a trash."""

    times: list[tuple[int, str]] = field(default_factory=list)  # number and time of each change, oldest first
    last: dict[str, int] = field(default_factory=dict)
    newest: list[Version] = field(default_factory=list)  # the last operation
    deleted: list[Version] = field(default_factory=list)


def thin(here: Beneath, log: Log, *, keep_days: int, keep_bytes: int) -> list[str]:
    """Drop what need not be kept; the hashes of it, newest first."""
    uses = _uses(versions_in(log.whole_lines()))
    edge = _edge(uses.times, keep_days)
    cut = last_before(reversed(uses.times), edge) if edge is not None else 0
    needed = {version.before for version in uses.newest}
    dropped, total = list[str](), 0
    for used, sha, size in sorted(_texts(here, uses.last), reverse=True):
        total += size
        if used <= cut or (total > keep_bytes and sha not in needed):
            dropped.append(sha)
    # The trash goes first: should this stop here, the text still tells the next time that there is something to do.
    gone = set(dropped)
    for version in uses.deleted:
        if version.before in gone or version.number <= cut:
            _empty(here, version)
    for sha in dropped:
        disk.remove(here, place_of(sha))
    return dropped


def last_before(times: Iterable[tuple[int, str]], when: str) -> int:
    """The number of the last change before a moment (UTC, spelled as in the log), given number and time of each change,
    newest first; 0 when there is none.

    The order is the log's, and a clock may have been wrong for a while. So the log is cut where the fewest changes
    stand on the wrong side by their time; where that is undecided, as late as it can be.
    """
    cut, score, best = 0, 0, 0
    for place, (number, at) in enumerate(times):
        if not place:
            cut = number
        score += 1 if at < when else -1
        if score < best:
            best, cut = score, number - 1
    return cut


def place_of(sha: str) -> str:
    """Where a text is kept, by its hash."""
    return f"{OBJECTS}/{sha[:2]}/{sha}"


def names_in(here: Beneath, folder: str) -> list[str]:
    """The names in a folder of ours, none when it is not there."""
    try:
        return sorted(here.folder(tuple(folder.split("/"))).names())
    except FileNotFoundError:
        return []


def _uses(versions: Iterable[Version]) -> _Uses:
    uses = _Uses()
    for version in versions:
        uses.times.append((version.number, version.when))
        if uses.newest and uses.newest[0].group != version.group:
            uses.newest = []
        uses.newest.append(version)
        for sha in filter(None, (version.before, version.after)):
            uses.last[sha] = version.number
        if version.trash:
            uses.deleted.append(version)
    return uses


def _edge(times: Sequence[tuple[int, str]], keep_days: int) -> str | None:
    """The moment before which texts are too old. Of the last three days with changes the one in the middle is believed,
    so that one day under a wrong clock moves nothing."""
    days: list[str] = []
    for _, when in reversed(times):
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


def _texts(here: Beneath, last: dict[str, int]) -> list[tuple[int, str, int]]:
    """The texts that are kept: number of their last use, hash, size. One that no change names may be needed by whoever put
    it there a moment ago; after a day it is as old as can be."""
    found = []
    for drawer in names_in(here, OBJECTS):
        folder = here.folder((*OBJECTS.split("/"), drawer))
        for name in folder.names():
            seen = os.stat(folder.name(name), dir_fd=folder.fd, follow_symlinks=False)
            if disk.TEMP.fullmatch(name):
                disk.remove(here, f"{OBJECTS}/{drawer}/{name}")
            elif len(name) == 64:
                is_new = abs(time.time() - seen.st_mtime) <= _A_DAY
                found.append((last.get(name, _NEWEST if is_new else -1), name, seen.st_size))
    return found


def _empty(here: Beneath, version: Version) -> None:
    """Take a deleted file out of our trash, if it is still what was deleted. Obsidian's own trash is not ours to empty."""
    trash = version.trash or ""
    if trash.startswith(f"{TRASH}/"):
        with suppress(FileNotFoundError):
            if disk.hash_of(here, trash) == version.before:
                disk.remove(here, trash)
                here.prune(parent(trash), keep=2)
