"""Exchange a vault with other machines through the remote of its git repository.

The changes of this machine are committed, those of other machines are merged note by note, and the
result is pushed. A merge is one operation of the history. If a note cannot be merged, the text of
the other machine is put beside it, as a conflict copy.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Unpack

from simplemem.errors import Conflict, SimplememError, Unavailable
from simplemem.gitrepo.committing import Patch, commit_patches
from simplemem.gitrepo.exchange import Exchange, open_exchange
from simplemem.gitrepo.status import list_uncommitted
from simplemem.gitrepo.user_git import PushRejected
from simplemem.index.service import IndexService
from simplemem.models import AuthorArgs, Synced
from simplemem.note.dates import now
from simplemem.note.names import is_path, name_of
from simplemem.note.note import read_note
from simplemem.note.words import format_count
from simplemem.obsidian.link_edits import Moves, rewrite_links
from simplemem.store.edits import encoded
from simplemem.store.link_rewrites import LinkRewriter
from simplemem.store.remote_merge import Files, RemoteMerge
from simplemem.store.vault_index import (
    NoteReader,
    NoteWriter,
    ObsidianSettingsCache,
    author_of_call,
)
from simplemem.vault.folder.dir_handles import OWN_FOLDER
from simplemem.vault.folder.lock import FileLock
from simplemem.vault.source import NoteSource
from simplemem.vault.values import FileChange, sha256

_MAX_TRIES = 5  # while others push first
_STOP_SECONDS = 5.0  # that an exchange under way has when the server ends

_LOG = logging.getLogger(__name__)


class _Committed(NamedTuple):
    """How many files were committed, and which are left to the user, who has staged them."""

    file_count: int
    staged_paths: tuple[str, ...]


class RemoteSync:
    """Exchanges one vault with its remote. Guards no state of its own."""

    def __init__(
        self,
        vault: NoteSource,
        index: IndexService,
        *,
        reader: NoteReader,
        obsidian: ObsidianSettingsCache,
        writer: NoteWriter,
        links: LinkRewriter,
        catch_up: Callable[[], None],
        trusted_folders: Sequence[str],
    ) -> None:
        self._vault = vault
        self._access = vault.access
        self._index = index
        self._reader = reader
        self._obsidian = obsidian
        self._writer = writer
        self._links = links
        self._catch_up = catch_up
        self._trusted_folders = trusted_folders

    def sync(self, **by: Unpack[AuthorArgs]) -> Synced:
        """Commit the notes' changes, fetch, merge and push; return what was exchanged.

        Indexes what was saved first. Files that the user has staged are not committed; the result
        lists them as `waiting`. If another writer is faster, starts again, for five tries in all.
        Raises NotFound outside a git repository, Unavailable, with a reason, if nothing could be
        exchanged, and ReadOnly.
        """
        self._writer.check_writable()
        committed_count = 0
        for _ in range(_MAX_TRIES):
            self._catch_up()
            committed = self._commit_local_changes()
            committed_count += committed.file_count
            with suppress(PushRejected, Conflict):
                return self._exchange(by, _Committed(committed_count, committed.staged_paths))
        raise Unavailable(
            f"other writers pushed first {_MAX_TRIES} times in a row", hint="Try again in a moment."
        )

    def _commit_local_changes(self) -> _Committed:
        """Commit the changes of notes and attachments that the user has not staged.

        Returns how many files were committed, and which are staged. Hidden files are left alone.
        """
        root = self._vault.root
        folders = self._trusted_folders
        with self._writer.lock():
            patches = []
            staged_paths = []
            for file in list_uncommitted(root, folders):
                if not is_path(file.path) or self._access.hides(file.path):
                    continue
                is_deleted = self._reader.entry(file.path) is None
                if is_deleted and file.committed_text is None:
                    continue  # it was never committed, and is gone again
                if file.is_staged:
                    staged_paths.append(file.path)
                else:
                    text = self._reader.bytes_of(file.path)
                    patches.append(Patch(file.path, file.path, file.committed_text, text))

            if patches:
                subject = f"simplemem: {format_count(len(patches), 'change')} here"
                commit_patches(root, patches, subject, {}, int(now().timestamp()), folders)
        return _Committed(len(patches), tuple(staged_paths))

    def _exchange(self, by: AuthorArgs, committed: _Committed) -> Synced:
        """Fetch, merge, write the merged notes and push, once; return what was exchanged.

        Raises PushRejected or Conflict if another writer was faster, here or at the remote; and
        Unavailable if the remote cannot be reached, shares no commit with this history, or changed
        a file that is staged here.
        """
        with open_exchange(self._vault.root, self._trusted_folders) as exchange:
            exchange.fetch()
            base = exchange.base
            if exchange.theirs is None or base == exchange.theirs:
                return _push_only(exchange, committed)
            if base is None:
                raise Unavailable(
                    f"the history of {exchange.remote} has no commit in common"
                    " with the local history"
                )

            merge = RemoteMerge(exchange, base, exchange.theirs)
            self._follow_moves(exchange, merge.files, merge.moves)
            _drop_unchanged(exchange, merge.files)
            with self._writer.lock():
                if exchange.repo.head.target != exchange.ours.id:
                    raise PushRejected  # somebody committed here meanwhile: `sync` starts again
                version = self._write_merge(exchange, merge.files, committed.staged_paths, by)
                commit_id = exchange.commit_merge(merge.files)

            is_pushed = commit_id != exchange.theirs.id
            if is_pushed:
                exchange.push(commit_id)
            else:
                exchange.move_tracking_branch(commit_id)
            return Synced(
                remote=exchange.remote,
                committed=committed.file_count,
                changed=tuple(sorted(merge.files)),
                copies=tuple(name_of(path) for path in merge.copies),
                waiting=committed.staged_paths,
                pushed=is_pushed,
                version=version,
            )

    def _follow_moves(self, exchange: Exchange, files: Files, moves: Mapping[str, str]) -> None:
        """Rewrite the links in `files` to what moved on one side, as the other side may have them.

        Adds notes to `files` that may have such links and that the remote did not change.
        """
        for old_path, new_path in moves.items():
            # Notes that the remote did not change may have such links too.
            for path in self._index.sources_that_could_mean([old_path, new_path]):
                text = exchange.text_in_last_commit(path)
                if text is not None:
                    files.setdefault(path, text)
            self._rewrite_links(files, old_path, new_path)

    def _rewrite_links(self, files: Files, old_path: str, new_path: str) -> None:
        """Rewrite the links to a file that moved, in the texts of `files`, in place."""
        moves = Moves({old_path: new_path})
        # The index may have the file at either path.
        files_before = self._links.named_after(Moves({new_path: old_path}))
        files_after = self._links.named_after(moves)
        link_format = self._obsidian.current.link_format

        for path, data in list(files.items()):
            if data is None or not path.endswith(".md"):
                continue
            note = read_note(data)
            if note.problem:
                continue  # it cannot be rewritten
            text = rewrite_links(note, path, moves, files_before, files_after, link_format)
            if text != note.text:
                files[path] = encoded(text)

    def _write_merge(
        self,
        exchange: Exchange,
        files: Files,
        staged_paths: Collection[str],
        by: AuthorArgs,
    ) -> str:
        """Write the merged files under the vault's lock, which the caller holds, and index them.

        Returns the version, "" if nothing changes. Raises Conflict if a note was saved during the
        merge, and Unavailable if the user has staged it.
        """
        changes = self._file_changes(exchange, files, staged_paths)
        if not changes or exchange.theirs is None:
            return ""
        reason = f"merge of {str(exchange.theirs.id)[:10]} from {exchange.remote}"
        author = author_of_call({"reason": reason, **by}, "sync")
        written, _ = self._writer.apply_changes(changes, author)
        return written[0].version

    def _file_changes(
        self,
        exchange: Exchange,
        files: Files,
        staged_paths: Collection[str],
    ) -> list[FileChange]:
        """Return the changes that make files of the vault what the merge says.

        There is none for a file that the vault has already. Raises what `_write_merge` raises.
        """
        changes = []
        for path, data in files.items():
            if path in staged_paths:
                hint = "Commit it, or unstage it with `git restore --staged`."
                raise Unavailable(
                    f"{path} is staged here, and the remote changed it too", hint=hint
                )

            current = self._reader.bytes_of(path)
            if current == data:
                continue
            current_sha256 = None if current is None else sha256(current)
            if current != exchange.text_in_last_commit(path):
                raise Conflict(f"{path} was saved during the merge", current_sha256=current_sha256)
            changes.append(FileChange.update(path, current_sha256, data))
        return changes


def _drop_unchanged(exchange: Exchange, files: Files) -> None:
    """Remove the files from `files` that are as our last commit has them."""
    unchanged = [
        path
        for path, data in files.items()
        if data is not None and data == exchange.text_in_last_commit(path)
    ]
    for path in unchanged:
        del files[path]


def _push_only(exchange: Exchange, committed: _Committed) -> Synced:
    """Push our commits, if there are any, to a remote that has no new ones.

    Returns what was exchanged: no note was merged. Raises PushRejected if another writer was
    faster.
    """
    has_commits = exchange.theirs != exchange.ours
    if has_commits:
        exchange.push(exchange.ours.id)
    return Synced(
        remote=exchange.remote,
        committed=committed.file_count,
        changed=(),
        copies=(),
        waiting=committed.staged_paths,
        pushed=has_commits,
        version="",
    )


class BackgroundSync:
    """A thread that exchanges a vault every few minutes, in one server of the vault at a time.

    It exchanges all notes, also those that the server's clients may not see.
    """

    def __init__(self, root: Path, minutes: float, sync: Callable[[], object]) -> None:
        """Start the thread. `sync` exchanges once; what it raises is logged."""
        self._seconds = 60 * minutes
        self._sync = sync
        self._is_ended = threading.Event()
        self._turn = FileLock(str(root), f"{OWN_FOLDER}/sync.lock")
        self._thread = threading.Thread(target=self._run, name="simplemem-sync", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """End the thread. Waits a few seconds for an exchange that is under way."""
        self._is_ended.set()
        self._thread.join(_STOP_SECONDS)

    def _run(self) -> None:
        """Exchange at each interval until `end` is called, while this process has the turn."""
        try:
            while not self._is_ended.wait(self._seconds):
                if self._turn.acquire_or_keep():
                    self._sync_once()
        finally:
            self._turn.release()

    def _sync_once(self) -> None:
        """Exchange once. A failure is logged."""
        try:
            self._sync()
        except (SimplememError, OSError) as error:
            _LOG.warning("changes were not exchanged with the remote: %s", error)
        except Exception:  # noqa: BLE001  (the thread must outlive whatever it meets)
            _LOG.exception(
                "changes were not exchanged with the remote because of an unexpected error"
            )
