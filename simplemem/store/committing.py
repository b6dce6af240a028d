"""Commit to git what simplemem changed, in a thread of its own.

A write never waits for its commit, and never fails because of it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from queue import SimpleQueue
from typing import TYPE_CHECKING

from simplemem.errors import NotFound, Unavailable
from simplemem.note.names import name_of
from simplemem.settings.model import GitSettings
from simplemem.vault.source import NoteSource
from simplemem.vault.values import Version

if TYPE_CHECKING:
    from simplemem.gitrepo.committing import Patch

_LOG = logging.getLogger(__name__)


class Committing:
    """Commits the operations of one vault, one after the other, if the settings ask for it.

    Guards the operations that wait, by the id of their first version, and `failures`: the sentences
    on commits that failed. While it is off, no thread is started and libgit2 is not imported.
    """

    def __init__(self, vault: NoteSource, settings: GitSettings) -> None:
        """Start the thread and have the vault report its writes to it, unless committing is off.

        It is off by the setting `git.commit`, for a read-only vault, for one that is a branch, and
        outside a git repository.
        """
        self._vault = vault
        self._settings = settings
        self._operations: SimpleQueue[str | None] = SimpleQueue()  # None ends the thread
        self._thread = threading.Thread(target=self._run, name="simplemem-commits", daemon=True)
        self.failures: list[str] = []  # sentences on changes that the user has to commit

        is_on = settings.commit != "off" and not vault.read_only
        is_folder = vault.revisions is None  # else each write is a commit already
        if is_on and is_folder and vault.is_in_git():
            vault.on_written = self._operations.put
            self._thread.start()

    def state(self) -> dict[str, object]:
        """Return the setting `commit`, and how many operations are `waiting` to be committed.

        If the branch has a `remote`, there is its name too, and `ahead` and `behind`: how many
        commits only we and only the remote have, as of the last exchange. If git cannot be used,
        these are absent. Contacts nobody.
        """
        state: dict[str, object] = {
            "commit": self._settings.commit,
            "waiting": self._operations.qsize(),
        }
        if self._vault.is_in_git():
            from simplemem.gitrepo.status import ahead_behind

            with suppress(Unavailable, NotFound):
                counts = ahead_behind(self._vault.root, self._settings.folders)
                if counts is not None:
                    state["remote"], state["ahead"], state["behind"] = counts
        return state

    def close(self, seconds: float) -> None:
        """End the thread once the waiting operations are committed; wait for that up to `seconds`.

        If it takes longer, the thread goes on until the process ends, and the rest is not
        committed.
        """
        self._operations.put(None)
        if self._thread.is_alive():
            self._thread.join(seconds)

    def _run(self) -> None:
        """Commit the queued operations, one by one, until None is queued. Never raises."""
        while True:
            operation = self._operations.get()
            if operation is None:
                return
            try:
                self._commit(operation)
            except Exception as error:  # noqa: BLE001  (the thread must outlive whatever it meets)
                self._record_failure(error)

    def _record_failure(self, error: Exception) -> None:
        """Add a failure to `failures` and log a warning, unless it was recorded before."""
        sentence = f"a change was not committed to git; commit it yourself: {error}"
        if sentence not in self.failures:
            self.failures.append(sentence)
            _LOG.warning("%s", sentence)

    def _commit(self, operation: str) -> None:
        """Commit an operation, with trailers that say who asked for it, with which tool, and why.

        `operation` is the id of its first version. Does nothing if it only recorded texts that were
        found after a crash. Raises Unavailable if one of its texts is no longer kept, or git does
        not allow the commit, and NotFound if there is no repository.
        """
        from simplemem.gitrepo.committing import commit_patches

        versions = self._vault.history.log.group(operation)
        if not any(version.effects for version in versions):
            return

        patches = [self._patch_of(version) for version in versions]
        first = versions[0]
        trailers = {
            "Actor": first.who,
            "Tool": first.tool,
            "Reason": first.reason,
            "Version": first.group,
        }
        when = int(datetime.fromisoformat(first.when).timestamp())
        folders = self._settings.folders
        commit_patches(self._vault.root, patches, _subject_of(versions), trailers, when, folders)

    def _patch_of(self, version: Version) -> Patch:
        """Return the texts and paths of a note before and after a change.

        Raises Unavailable if the history no longer keeps one of the texts.
        """
        from simplemem.gitrepo.committing import Patch

        old_text = self._read_text(version, version.before)
        new_text = self._read_text(version, version.after)
        return Patch(version.path, version.new_path or version.path, old_text, new_text)

    def _read_text(self, version: Version, sha256: str | None) -> bytes | None:
        """Return the text of a change that has this hash; None if the hash is None.

        A hash is None where there was no note. Raises Unavailable if the history no longer keeps
        the text.
        """
        if sha256 is None:
            return None
        text = self._vault.history.read_text(sha256)
        if text is None:
            raise Unavailable(f"the text of {version.id} is no longer kept")
        return text


def _subject_of(versions: Sequence[Version]) -> str:
    """Return the subject of a commit, such as "simplemem: move Kite to craft/Kite and 1 more".

    It describes the first of `versions`, of which there is at least one, and counts the others.
    """
    first = versions[0]
    subject = f"simplemem: {first.op} {name_of(first.path)}"
    if first.new_path:
        subject += f" to {name_of(first.new_path)}"
    if len(versions) > 1:
        subject += f" and {len(versions) - 1} more"
    return subject
