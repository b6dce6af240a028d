"""The git commits of a note: which there are, and the note's text at one of them.

Commits are only read here; `committing` makes them. libgit2 is loaded only if it is needed.
"""

from __future__ import annotations

import logging
import re
from contextlib import suppress
from typing import TYPE_CHECKING

from simplemem.errors import Hint, HintSentence, NotFound, SimplememError
from simplemem.index.changes import ChangeTable
from simplemem.note.names import name_of
from simplemem.settings.model import GitSettings
from simplemem.vault.source import NoteSource

if TYPE_CHECKING:
    from simplemem.gitrepo.history import NoteCommit
    from simplemem.gitrepo.repository import RepositoryContext

_COMMIT = re.compile(r"[0-9a-f]{7,64}")
_FULL_ID = 40  # digits
_MAX_CHANGES = 1000  # latest changes of a note that are searched for its former paths
_MAX_PATHS = 5
_LOG = logging.getLogger(__name__)


class GitHistory:
    """The git commits of the notes of a vault, as far as the access rules show them.

    Guards `trouble`: why `commits_of` returned no commits the last time, "" if git did not fail.
    """

    def __init__(self, vault: NoteSource, changes: ChangeTable, settings: GitSettings) -> None:
        self._vault = vault
        self._access = vault.access
        self._changes = changes
        self._settings = settings
        self.trouble = ""  # why the commits asked for last are missing; "" if they are not

    def means_commit(self, text: str) -> bool:
        """Return whether a text has the form of a commit's id, full or shortened.

        It has if it consists of 7 to 64 hexadecimal digits and, if it is shorter than 40, has a
        letter among them, because no version and no date looks like that. Does not check whether
        the commit exists. Returns False if commits are not read: outside a repository, or if
        `git.history` is off.
        """
        text = text.strip().lower()
        if _COMMIT.fullmatch(text) is None:
            return False
        if len(text) < _FULL_ID and text.isdecimal():
            return False
        return self._reads_commits()

    def commits_of(self, path: str, limit: int) -> list[NoteCommit]:
        """Return the commits of a note, newest first, without those of hidden places.

        At most `limit` are read before the hidden ones are left out. If the current path of the
        note has no commits, those of its former paths in the change log are tried. Returns [] if
        commits are not read, or if git fails; then `self.trouble` says why, and a warning is
        logged.
        """
        self.trouble = ""
        if not self._reads_commits():
            return []

        from simplemem.gitrepo.history import read_history

        try:
            # If a move was not committed yet, only the change log knows the former path.
            for former_path in self._visible_paths(path):
                commits = read_history(self._repository(), former_path, limit)
                if commits:
                    return [commit for commit in commits if not self._is_hidden(commit)]
        except SimplememError as error:
            self.trouble = f"git commits are not shown: {error}"
            if error.hint:
                self.trouble += f". {error.hint}"
            _LOG.warning("%s", self.trouble)
        return []

    def text_at_commit(self, path: str, commit: str) -> tuple[str, bytes]:
        """Return the path and the bytes that a note had at a commit.

        The note is looked for under its current path and its former ones. Raises NotFound if no
        such commit contains it, or if it was in a hidden place then, and Unavailable if git fails.
        """
        from simplemem.gitrepo.history import read_text_at

        for former_path in self._visible_paths(path):
            with suppress(NotFound):
                old_path, data = read_text_at(self._repository(), former_path, commit)
                if not self._access.hides(old_path):
                    return old_path, data
        hint = HintSentence("list_commits", "The history of a note lists its commits.")
        raise NotFound(f"no commit {commit[:12]} that contains {name_of(path)}", hint=Hint(hint))

    def _reads_commits(self) -> bool:
        """Return whether commits are read at all. Fast; does not load libgit2."""
        return self._settings.history and self._vault.is_in_git()

    def _repository(self) -> RepositoryContext:
        """Return a context that opens the repository with the history of the notes.

        Entering it raises NotFound if there is none, and Unavailable if it cannot be used.
        """
        return self._vault.git_repository(self._settings.folders)

    def _visible_paths(self, path: str) -> list[str]:
        """Return the current path of a note and its former ones in the change log, newest first.

        Hidden paths are left out. At most five are returned.
        """
        paths = [path]
        paths.extend(version.path for version in self._changes.of(path, _MAX_CHANGES))
        hides = self._access.hides
        visible = [former_path for former_path in dict.fromkeys(paths) if not hides(former_path)]
        return visible[:_MAX_PATHS]

    def _is_hidden(self, commit: NoteCommit) -> bool:
        """Return whether a note was in a hidden place before or after a commit."""
        hides = self._access.hides
        return hides(commit.path) or hides(commit.old_path or commit.path)
