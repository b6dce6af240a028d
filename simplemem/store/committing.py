"""Commits of what our tools changed, made behind the answers: a write never waits for one, and never fails by one."""

from __future__ import annotations

import logging
import threading
from contextlib import suppress
from datetime import datetime
from queue import SimpleQueue

from simplemem.errors import NotFound, Unavailable
from simplemem.note.names import name_of
from simplemem.settings.model import GitSettings
from simplemem.vault.source import NoteSource

_LOG = logging.getLogger(__name__)


class Committing:
    """The commits of one vault. Nothing is imported or started while it is off."""

    def __init__(self, vault: NoteSource, settings: GitSettings) -> None:
        self._vault, self._settings = vault, settings
        self._operations: SimpleQueue[str | None] = (
            SimpleQueue()
        )  # by the id of their first version; None ends it
        self._thread = threading.Thread(target=self._run, name="simplemem-commits", daemon=True)
        self.said: list[str] = []  # which changes are left to the person, and why; each told once
        if (
            settings.commit != "off"
            and not vault.read_only
            and vault.revisions is None  # else each write is a commit already
            and vault.is_in_git()
        ):
            vault.on_written = self._operations.put
            self._thread.start()

    def state(self) -> dict[str, object]:
        """Whether changes are committed, how many wait for it, and how far the remote is from here."""
        found: dict[str, object] = {
            "commit": self._settings.commit,
            "waiting": self._operations.qsize(),
        }
        if self._vault.is_in_git():
            from simplemem.gitrepo.status import ahead_behind

            with suppress(Unavailable, NotFound):
                if (there := ahead_behind(self._vault.root, self._settings.folders)) is not None:
                    found |= dict(zip(("remote", "ahead", "behind"), there, strict=True))
        return found

    def close(self, seconds: float) -> None:
        """Commit what waits, taking no longer than so."""
        self._operations.put(None)
        if self._thread.is_alive():
            self._thread.join(seconds)

    def _run(self) -> None:
        while (operation := self._operations.get()) is not None:
            try:
                self._commit(operation)
            except Exception as error:  # noqa: BLE001  (the thread must outlive whatever it meets)
                sentence = f"a change was not committed to git; commit it yourself: {error}"
                if sentence not in self.said:
                    self.said.append(sentence)
                    _LOG.warning("%s", sentence)

    def _commit(self, operation: str) -> None:
        """Commit what an operation did to each note, with trailers that say who asked, by which tool, and why."""
        from simplemem.gitrepo.committing import Patch, commit_patches

        patches, versions = [], self._vault.history.log.group(operation)
        for version in versions if any(version.effects for version in versions) else ():
            before, after = (
                None if sha is None else self._vault.history.read_text(sha) for sha in version[9:11]
            )
            if (before is None and version.before) or (after is None and version.after):
                raise Unavailable(f"the text of {version.id} is no longer kept")
            new_path = version.new_path or version.path
            patches.append(Patch(version.path, new_path, before, after))
        if patches:
            first, more = versions[0], f" and {len(versions) - 1} more" if len(versions) > 1 else ""
            to = f" to {name_of(first.new_path)}" if first.new_path else ""
            subject = f"simplemem: {first.op} {name_of(first.path)}{to}{more}"
            trailers = {
                "Actor": first.who,
                "Tool": first.tool,
                "Reason": first.reason,
                "Version": first.group,
            }
            when = int(datetime.fromisoformat(first.when).timestamp())
            commit_patches(
                self._vault.root, patches, subject, trailers, when, self._settings.folders
            )
