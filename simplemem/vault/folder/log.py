"""The log of all changes: a file with one line per change.

The order of the changes is the order of the lines, never that of a clock (F12).
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from simplemem.note.names import parent
from simplemem.vault.folder import disk
from simplemem.vault.folder.dir_handles import OVERWRITE, OWN_FOLDER, READ, DirHandles
from simplemem.vault.os_errors import translating_os_errors
from simplemem.vault.versions import (
    Kind,
    Version,
    format_line,
    format_version,
    no_version,
    number_of,
    versions_in,
)

LOG = f"{OWN_FOLDER}/history/log.jsonl"
_TAIL_BYTES = 1 << 13  # of the log are read first: most callers need only the last few changes


class Log:
    """The log of all changes. Reading needs no lock; whoever appends must hold the vault's.

    `kind` says who makes the changes of this process.
    """

    def __init__(self, root: str, *, kind: Kind = "agent") -> None:
        self.root = root
        self.kind = kind

    def whole_lines(self, start: int = 0) -> bytes:
        """Return the bytes from `start` to the end of the last complete line."""
        with self._opened() as (fd, size):
            data = disk.read_at(fd, start, size - start)
        end = data.rfind(b"\n") + 1
        return data[:end]

    def backwards(self, mark: bytes = b"", root: DirHandles | None = None) -> Iterator[Version]:
        """Yield the changes whose lines contain `mark`, newest first.

        `root` is the vault's root, if the caller has it open.
        """
        with self._opened(root) as (fd, size):
            start = max(size - _TAIL_BYTES, 0)
            tail = disk.read_at(fd, start, size - start)
            cut_line, *lines = tail.split(b"\n")
            yield from _newest_first(lines, mark)

            # The first line of the tail may have begun before it.
            head = disk.read_at(fd, 0, start)
            lines = (head + cut_line).split(b"\n")
            yield from _newest_first(lines, mark)

    def of(self, path: str) -> Iterator[Version]:
        """Yield the changes that name a path, newest first."""
        mark = json.dumps(path).encode()
        for version in self.backwards(mark):
            if path in (version.path, version.new_path):
                yield version

    def find(self, version: str) -> Version:
        """Return the change with an id, written in any way. Raises NotFound."""
        match = self.with_id(format_version(number_of(version)))
        if match is None:
            raise no_version(version)
        return match

    def with_id(self, version_id: str) -> Version | None:
        """Return the change with exactly this id, None if the log has none."""
        for version in self.backwards(version_id.encode()):
            if version.id == version_id:
                return version
        return None

    def group(self, group: str) -> list[Version]:
        """Return all changes of an operation, in order. `group` is the id of the first."""
        first = number_of(group)
        versions = self.since(first)
        return [version for version in versions if version.group == group]

    def since(self, number: int) -> list[Version]:
        """Return the changes from a number on, oldest first."""
        versions = []
        for version in self.backwards():
            if version.number < number:
                break
            versions.append(version)
        versions.reverse()
        return versions

    def next_number(self, root: DirHandles | None = None) -> int:
        """Return the number that follows the last change in the log."""
        newest = next(self.backwards(root=root), None)
        if newest is None:
            return 1
        return newest.number + 1

    @contextmanager
    def _opened(self, root: DirHandles | None = None) -> Iterator[tuple[int, int]]:
        """Yield the descriptor of the log and its size, which is 0 if there is no regular file.

        The size of a pipe is 0 too: reading it would block.
        """
        with ExitStack() as stack, translating_os_errors("read", LOG):
            fd = -1
            size = 0
            with suppress(FileNotFoundError):
                if root is None:
                    root = stack.enter_context(DirHandles(self.root))
                fd = stack.enter_context(root.opened(LOG, READ))
                file_stat = os.fstat(fd)
                if stat.S_ISREG(file_stat.st_mode):
                    size = file_stat.st_size
            yield fd, size

    def refresh(self) -> bool:
        """Fetch changes from elsewhere, if the log has a remote; return whether there were any."""
        return False

    def new_versions(
        self,
        steps: Sequence[Mapping[str, str | None]],
        *,
        first: int,
        tool: str,
        who: str,
        reason: str,
    ) -> list[Version]:
        """Return the changes of one operation, numbered from `first`; they are not logged yet.

        Each step has the fields `path` and `op`, and what it has of `new_path`, `before`, `after`
        and `trash`.
        """
        # Secrets are hidden: the log is never pruned, and git may contain it too.
        author = _without_secrets(who)
        purpose = _without_secrets(reason)
        common: dict[str, Any] = {
            "group": format_version(first),
            "when": format_time(datetime.now(UTC)),
            "kind": self.kind,
            "tool": tool[:100],
            "who": author[:200],
            "reason": purpose[:1000],
            "new_path": None,
            "before": None,
            "after": None,
        }

        versions = []
        for number, step in enumerate(steps, first):
            fields = {**common, **step, "id": format_version(number)}
            versions.append(Version(**fields))
        return versions

    def append(self, root: DirHandles, versions: Sequence[Version]) -> None:
        """Add lines to the log, all or none. A half line that a crash left is closed off first."""
        lines = b"".join(map(format_line, versions))
        root.make(parent(LOG))
        with root.opened(LOG, OVERWRITE | os.O_APPEND) as fd:
            disk.append_lines(fd, lines)


@lru_cache(64)
def _without_secrets(text: str) -> str:
    """Return a text in which secrets, such as API keys, are masked."""
    if not text:
        return text
    from simplemem.note.secrets import find_secrets  # imported late: its patterns take a moment

    for secret in reversed(find_secrets(text)):
        text = text[: secret.start] + secret.shown + text[secret.end :]
    return text


def format_time(moment: datetime) -> str:
    """Return a moment in UTC as the log writes it."""
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _newest_first(lines: Sequence[bytes], mark: bytes) -> Iterator[Version]:
    """Yield the changes in those lines that contain `mark`, from the last line to the first."""
    marked_lines = (line for line in reversed(lines) if mark in line)
    return versions_in(marked_lines)
