"""Remove earlier texts beyond the configured days and megabytes, and what expired in the trash."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from simplemem.note.names import parent
from simplemem.vault.folder import disk
from simplemem.vault.folder.dir_handles import DirHandles
from simplemem.vault.folder.history import (
    A_DAY,
    LAST_PRUNED,
    OBJECTS,
    OWN_TRASH,
    SHA256_DIGITS,
    History,
    Log,
    format_time,
    object_path,
)
from simplemem.vault.values import Version, last_before, versions_in

_FUTURE_USE = 1 << 60  # greater than the number of any change


class _StoredText(NamedTuple):
    """A text in `objects/`. Texts sort by their `last_use`."""

    last_use: int  # the number of the last change with this text before or after it
    sha256: str
    size: int


@dataclass
class _LogSummary:
    """What pruning needs of the log."""

    times: list[tuple[int, str]] = field(default_factory=list)  # of each change, oldest first
    last_uses: dict[str, int] = field(default_factory=dict)  # by the hash of a text
    last_group: str = ""
    deletions: list[Version] = field(default_factory=list)  # whose file is in our own trash


def prune(history: History, root: DirHandles) -> list[str]:
    """Remove the texts beyond the configured days and megabytes; return their hashes.

    Deleted files with such a text, or of that age, are removed from simplemem's own trash, too. The
    texts that were used longest ago are removed first. Days are counted back from the newest
    changes, so a vault that does not change loses nothing. The texts before the last operation
    stay, so that it can be undone. The vault's lock must be held. It is safe to interrupt this at
    any point.
    """
    history.check_displaced(root, thorough=True)
    log = _summarize_log(history.log)
    needed = set[str | None]()
    if log.times:
        last_operation = history.log.group(log.last_group)
        needed = {version.before for version in last_operation}

    last_expired = _last_expired_number(log.times, history.keep_days)
    texts = sorted(_stored_texts(root, log.last_uses), reverse=True)
    expired = _expired_texts(texts, last_expired, history.keep_bytes, needed)

    # The trash goes first: if this stops here, the texts show the next time what is left to do.
    _empty_trash(root, log.deletions, set(expired), last_expired)
    for digest in expired:
        disk.remove(root, object_path(digest))
    root.make(parent(LAST_PRUNED))
    disk.write_own_file(root, LAST_PRUNED, b"", sync=False)
    return expired


def _summarize_log(log: Log) -> _LogSummary:
    """Read the whole log, and return what pruning needs of it."""
    summary = _LogSummary()
    lines = log.whole_lines().split(b"\n")
    for version in versions_in(lines):
        number = version.number
        summary.times.append((number, version.when))
        summary.last_group = version.group
        for digest in (version.before, version.after):
            if digest:
                summary.last_uses[digest] = number
        # Obsidian's trash belongs to the user.
        if version.trash and version.trash.startswith(f"{OWN_TRASH}/"):
            summary.deletions.append(version)
    return summary


def _last_expired_number(times: Sequence[tuple[int, str]], keep_days: int) -> int:
    """Return the number of the last change before the days to keep, 0 if there is none.

    The days are counted back from the end of the newest day with changes, but not from the
    future. Returns 0 too if `keep_days` leads out of the calendar.
    """
    with suppress(ValueError, IndexError, OverflowError):
        newest_day = _trusted_newest_day(times)
        midnight = datetime.fromisoformat(newest_day)
        end_of_day = midnight.replace(tzinfo=UTC) + timedelta(days=1)
        now = datetime.now(UTC)
        newest_moment = min(end_of_day, now)
        first_kept_moment = newest_moment - timedelta(days=keep_days)
        return last_before(reversed(times), format_time(first_kept_moment))
    return 0


def _stored_texts(root: DirHandles, last_uses: Mapping[str, int]) -> Iterator[_StoredText]:
    """Yield the texts that are kept, with the number of the last change that used each.

    `last_uses` has these numbers by hash. A text that no change uses counts as the newest for a
    day, because a change with it may be in progress, then as the oldest.
    """
    for folder_name in root.names(OBJECTS):
        folder = f"{OBJECTS}/{folder_name}"
        for name in root.names(folder):
            if len(name) != SHA256_DIGITS:
                continue

            file_stat = root.stat(f"{folder}/{name}")
            age = abs(time.time() - file_stat.st_mtime)  # the clock may have been set back
            last_use = last_uses.get(name)
            if last_use is None:
                last_use = _FUTURE_USE if age <= A_DAY else -1
            yield _StoredText(last_use, name, file_stat.st_size)


def _expired_texts(
    texts: Iterable[_StoredText],
    last_expired: int,
    max_bytes: int,
    needed: set[str | None],
) -> list[str]:
    """Return the hashes of the texts to remove.

    `texts` are sorted, last used first. Those last used by change `last_expired` or an earlier one
    are too old. Of the others, those that come after `max_bytes` in total are removed, unless they
    are `needed`.
    """
    expired = list[str]()
    total = 0
    for text in texts:
        total += text.size
        is_too_old = text.last_use <= last_expired
        is_too_much = total > max_bytes and text.sha256 not in needed
        if is_too_old or is_too_much:
            expired.append(text.sha256)
    return list(dict.fromkeys(expired))


def _empty_trash(
    root: DirHandles,
    deletions: Iterable[Version],
    expired: set[str],
    last_expired: int,
) -> None:
    """Remove deleted files that expired from simplemem's trash, unless somebody changed them.

    `expired` has the hashes of the texts to remove; `last_expired` is the number of the last change
    that is too old.
    """
    for version in deletions:
        is_expired = version.before in expired or version.number <= last_expired
        if not is_expired:
            continue

        path = version.trash or ""
        with suppress(FileNotFoundError):
            if disk.hash_of(root, path) == version.before:
                disk.remove(root, path)
                root.prune(parent(path), keep=2)  # `.simplemem/trash` itself stays


def _trusted_newest_day(times: Sequence[tuple[int, str]]) -> str:
    """Return the middle one of the last three days with changes, as `2026-01-24`.

    Of only two, it is the earlier. In this way, a day under a wrong clock loses nothing. `times`
    has the number and time of each change, oldest first. Raises IndexError if there is none.
    """
    days = [when[:10] for _, when in reversed(times)]  # the newest first
    distinct_days = list(dict.fromkeys(days))
    newest_days = sorted(distinct_days[:3])
    middle = (len(newest_days) - 1) // 2
    return newest_days[middle]
