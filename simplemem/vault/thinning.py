"""What of the past need not be kept any longer goes: texts beyond the days and megabytes of the settings, oldest first.

Age is counted back from the newest change, in the order of the log: a vault that rested for a year loses nothing, nor
does one whose clock was wrong for a day. It may be stopped at any point and begun again. The log itself stays."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from simplemem.vault import disk
from simplemem.vault.history import A_DAY, OBJECTS, OWN_TRASH, THINNED, History, last_before, place_of, versions_in
from simplemem.vault.paths import Beneath, parent


def thin(history: History, here: Beneath) -> list[str]:
    """Drop it, with the vault's lock held; the hashes that went, newest first."""
    history.settle(here, thorough=True)
    times: list[tuple[int, str]] = []  # number and time of each change, oldest first
    last_use: dict[str, int] = {}  # of each text, the last change it was part of
    step, needed = "", set[str | None]()  # the last operation, and the texts that undo it
    deleted: list[tuple[int, str | None, str]] = []  # number, text and place of each file in our trash
    for version in versions_in(history.log.whole_lines()):
        times.append((version.number, version.when))
        step, needed = version.group, (needed if version.group == step else set()) | {version.before}
        last_use |= {sha: version.number for sha in (version.before, version.after) if sha}
        if version.trash and version.trash.startswith(f"{OWN_TRASH}/"):  # Obsidian's is not ours to empty
            deleted.append((version.number, version.before, version.trash))
    edge = _edge(times, history.keep_days)
    cut = last_before(reversed(times), edge) if edge is not None else 0
    dropped, total = dict[str, None](), 0
    for used, sha, size in sorted(_texts(here, last_use), reverse=True):
        total += size
        if used <= cut or (total > history.keep_bytes and sha not in needed):
            dropped[sha] = None
    # The trash goes first: should this stop here, the text still tells the next time that there is something to do.
    for number, before, trash in deleted:
        with suppress(FileNotFoundError):
            if (before in dropped or number <= cut) and disk.hash_of(here, trash) == before:
                disk.remove(here, trash)
                here.prune(parent(trash), keep=2)
    for sha in dropped:
        disk.remove(here, place_of(sha))
    here.make(parent(THINNED))
    disk.put(here, THINNED, str(history.log.size()).encode(), sync=False)
    return list(dropped)


def _edge(times: Sequence[tuple[int, str]], keep_days: int) -> str | None:
    """The moment before which texts are too old. Of the last three days with changes the one in the middle is believed,
    so that one day under a wrong clock moves nothing."""
    days = list(dict.fromkeys(when[:10] for _, when in reversed(times)))[:3]
    try:
        newest = datetime.fromisoformat(sorted(days)[(len(days) - 1) // 2]).replace(tzinfo=UTC)
        edge = min(newest + timedelta(days=1), datetime.now(UTC)) - timedelta(days=keep_days)
    except (IndexError, ValueError, OverflowError):
        return None
    return edge.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _texts(here: Beneath, last_use: dict[str, int]) -> Iterator[tuple[int, str, int]]:
    """The texts that are kept: number of their last use, hash, size. One that no change names may be needed by whoever
    put it there a moment ago; after a day it is as old as can be."""
    for drawer in here.names(OBJECTS):
        for name in here.names(f"{OBJECTS}/{drawer}"):
            path = f"{OBJECTS}/{drawer}/{name}"
            if disk.TEMP.fullmatch(name):
                disk.remove(here, path)
            elif len(name) == 64:
                found = here.stat(path)
                is_new = abs(time.time() - found.st_mtime) <= A_DAY
                yield last_use.get(name, 1 << 60 if is_new else -1), name, found.st_size
