"""A branch as a vault. What is there is its newest commit; a write is a commit on top of the one it was checked against, or
it is checked again. No working tree is touched: each server has a folder of its own, for what only it needs."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import pygit2

from simplemem.errors import Unavailable
from simplemem.gitrepo.repository import REGULAR_FILE_MODES, Checkout, OpenRepository
from simplemem.gitrepo.user_git import PushRejected
from simplemem.note.paths import MAX_PATH_PARTS, check_path, is_path
from simplemem.obsidian.settings import CONVENTION_FILES
from simplemem.vault.branch.log import BranchHistory, BranchLog, message_of
from simplemem.vault.branch.repository import Branch, at, bounded, shown
from simplemem.vault.folder.dir_handles import DirHandles
from simplemem.vault.folder.disk import Entry, sha256
from simplemem.vault.folder.history import Version
from simplemem.vault.folder.lock import FileLock
from simplemem.vault.folder.vault import File, Vault
from simplemem.vault.folder.writer import (
    Change,
    FileChange,
    Operation,
    WriteResult,
    already_exists,
    no_such_file,
)

_TRIES = 50
_AWAY = (Unavailable, OSError, pygit2.GitError)
_STEP, _STEP_AWAY = 0.25, 2.0  # seconds between two looks at the branch, here and elsewhere
_WHICH_BLOB = (1 << 29) - 1  # nanoseconds: half a second tells the texts of one second apart


class _Draft(Operation):
    """Wishes that become one commit, on top of the newest as it is now."""

    def __init__(self, vault: BranchVault, here: DirHandles, wishes: Sequence[FileChange]) -> None:
        super().__init__(vault, here, wishes)
        self._branch, self._parent = vault.branch, vault.log.follow()
        self._entry_of, self._commit = vault.entry_in, ""

    def _text(self, path: str) -> bytes | None:
        blob = self._branch.file(self._parent, path)
        return None if blob is None else blob.data

    def _names(self, folder: str) -> list[str]:
        found = at(self._branch.tree(self._parent), folder.rstrip("/"))
        return [each.name or "" for each in found] if isinstance(found, pygit2.Tree) else []

    def _entry(self, path: str) -> Entry | None:
        return self._entry_of(self._commit or self._parent, path)

    def _check_writable(self, path: str) -> None:
        """A branch protects no file."""

    def _in_trash(self, path: str, number: int) -> None:
        """The repository has the text."""

    def _make(self, versions: Sequence[Version]) -> None:
        files: dict[str, bytes | None] = {}
        for wish in self._wishes:
            files |= {wish.path: None} if wish.gone or wish.new_path else {}
        for wish in self._wishes:
            if (
                wish.new_path
                and wish.target not in files
                and at(self._branch.tree(self._parent), wish.target)
            ):
                raise already_exists(
                    wish.target
                )  # where an undo goes back to may be another note by now
            if not wish.gone:
                files[wish.target] = self._texts[wish.path][0] if wish.data is None else wish.data
        self._commit = self._branch.commit(self._parent, files, message_of(versions))


class BranchVault(Vault):
    """A branch as a vault; `root` is the folder of this server."""

    is_branch = True

    def __init__(self, root: Path, repository: str, name: str, **given: Any) -> None:
        super().__init__(root, **given)
        self.place = f"{shown(repository)}, branch {name}"
        self.branch = Branch(repository, name, self.own_folder() / "branch")
        self._lock = FileLock(
            str(self.branch.path), "simplemem.lock"
        )  # of all servers of this machine
        kept = self.history
        self.log = BranchLog(str(self.root), self.branch, kind=kept.log.kind)
        days, megabytes = kept.keep_days, kept.keep_bytes // 1_000_000
        self.history = BranchHistory(
            str(self.root), keep_days=days, keep_mb=megabytes, kind=kept.log.kind
        )
        self.history.log = self.log

    def newest(self) -> str:
        return self.log.follow()

    def repository(self) -> OpenRepository:
        """As the functions that read git's history take it."""
        path = self.branch.path
        return nullcontext((self.branch.repo, Checkout(path, path, path, "", self.branch.ref)))

    def reach(self, commit: str) -> bool:
        """Whether a commit is in the branch as it is here, or once it was fetched."""
        return self.branch.is_before(commit, self.newest()) or (
            self.branch.fetch() and self.branch.is_before(commit, self.newest())
        )

    def is_before(self, commit: str, other: str) -> bool:
        return self.branch.is_before(commit, other)

    def changed(self, since: str, until: str) -> set[str] | None:
        """The files that differ between two commits; None for all: it is another history, or Obsidian's settings are."""
        if not self.reach(since):
            return None
        found = self.branch.changed_files(since, until)
        return set(filter(is_path, found)) if found.isdisjoint(CONVENTION_FILES) else None

    def scan(self) -> list[Entry]:
        return self.entries_below("")

    def paths(self) -> list[str]:
        return [entry.path for entry in self.scan()]

    def entries_below(self, folder: str) -> list[Entry]:
        tree, problems = at(self.branch.tree(self.newest()), folder), dict[str, str]()
        prefix = f"{'/'.join(check_path(folder))}/" if folder else ""
        found = (
            list(self._entries(tree, prefix, problems, bounded()))
            if isinstance(tree, pygit2.Tree)
            else []
        )
        if not folder:
            self.problems = {
                path: why for path, why in problems.items() if not self.access.hides(path)
            }
        return sorted(
            (each for each in found if not self.access.hides(each.path)), key=lambda each: each.path
        )

    def _entries(
        self, tree: pygit2.Tree, prefix: str, problems: dict[str, str], turns: Iterator[None]
    ) -> Iterator[Entry]:
        for each in tree:
            next(turns)
            name = (each.raw_name or b".").decode("utf-8", "surrogateescape")
            path = prefix + name
            if name[0] == ".":
                continue
            if isinstance(each, pygit2.Tree) and path.count("/") < MAX_PATH_PARTS:
                yield from self._entries(each, f"{path}/", problems, turns)
            elif each.filemode in REGULAR_FILE_MODES and is_path(path):
                yield self._entry_of(path, each)
            elif each.filemode in REGULAR_FILE_MODES:
                problems[path.encode("utf-8", "backslashreplace").decode()] = (
                    "its name is not valid in a path"
                )

    def entry(self, path: str) -> Entry | None:
        check_path(path)
        return None if self.access.hides(path) else self.entry_in(self.newest(), path)

    def entry_in(self, commit: str, path: str) -> Entry | None:
        blob = self.branch.file(commit, path)
        return None if blob is None else self._entry_of(path, blob)

    def _entry_of(self, path: str, blob: pygit2.Object) -> Entry:
        """The same for every server, so that what one has indexed is up to date for the others."""
        _, size = self.branch.repo.odb.read_header(blob.id)
        when = self.log.dates.get(path, 0) * 1_000_000_000 + (
            int(str(blob.id)[:8], 16) & _WHICH_BLOB
        )
        return Entry(path, size, when, when, 0)

    @contextmanager
    def reading(self) -> Iterator[Callable[[str], File]]:
        commit = self.newest()

        def read(path: str) -> File:
            check_path(path)
            blob = None if self.access.hides(path) else self.branch.file(commit, path)
            if blob is None:
                raise no_such_file(path)
            return File(path, blob.data, sha256(blob.data), self._entry_of(path, blob))

        yield read

    def _carried_out(self, wishes: Sequence[FileChange], change: Change) -> list[WriteResult]:
        for number in range(_TRIES):
            with suppress(PushRejected), self._beneath() as here:
                return _Draft(self, here, wishes).carry_out(change)
            self.branch.fetch()
            time.sleep(random.uniform(0, 0.01 * min(number, 10)))  # noqa: S311
        raise Unavailable(
            "other writers keep committing to the branch", hint="Try again in a moment."
        )

    def recover(self) -> tuple[int, list[Entry]]:
        with suppress(Unavailable):  # what is here is served
            self.branch.fetch()
        return 0, []

    def finish_interrupted(self) -> None:
        """A commit is whole."""

    def watch(self, **_: Any) -> Following:
        return Following(self)


class Following:
    """What was committed since this was last asked."""

    poll_seconds = 0.0

    def __init__(self, vault: BranchVault) -> None:
        self._vault, self._rung = vault, threading.Event()
        self._seen, self._fetched_at = "", time.monotonic()
        with suppress(*_AWAY):
            self._seen = vault.newest()

    def ring(self) -> None:
        """End a wait, or the next one."""
        self._rung.set()

    def close(self) -> None:
        """Nothing is open."""

    def paths(self, seconds: float) -> set[str]:
        """The files that were changed by now; else what is within so many seconds."""
        until, step = time.monotonic() + seconds, _STEP_AWAY if self._vault.branch.url else _STEP
        while True:
            with suppress(*_AWAY):  # it is asked again
                if time.monotonic() - self._fetched_at > _STEP_AWAY:
                    self._fetched_at = time.monotonic()
                    self._vault.branch.fetch()
                if (newest := self._vault.newest()) != self._seen:
                    seen, self._seen = self._seen, newest
                    return self._vault.changed(seen, newest) or {""}
            left = until - time.monotonic()
            if left <= 0 or self._rung.wait(min(left, step)):
                self._rung.clear()
                return set()
