"""The git commits of a note: which there are, and the note's text at one of them.

Commits are only read here; `committing` makes them. libgit2 is loaded only if it is needed.
"""

from __future__ import annotations

import logging
import re
from contextlib import suppress
from typing import TYPE_CHECKING

from simplemem.errors import NotFound, SimplememError
from simplemem.note.names import name_of
from simplemem.store.committing import is_in_git
from simplemem.store.core import Core

if TYPE_CHECKING:
    from simplemem.gitrepo.history import NoteCommit
    from simplemem.gitrepo.repository import OpenRepository

_COMMIT = re.compile(r"[0-9a-f]{7,64}")
_FULL_ID = 40  # digits
_MAX_CHANGES = 1000  # that are searched for the names of a note: older names are forgotten
_MAX_NAMES = 5
_LOG = logging.getLogger(__name__)


def means_commit(core: Core, text: str) -> bool:
    """Return whether a version that somebody names is a commit of git.

    A short id with a letter is one, as no version of ours and no date looks like that. It is one
    only where commits are read: in a repository, unless `git.history` is off.
    """
    text = text.strip().lower()
    if _COMMIT.fullmatch(text) is None:
        return False
    if len(text) < _FULL_ID and text.isdecimal():
        return False
    return _has_commits(core)


def commits_of(core: Core, path: str, limit: int) -> list[NoteCommit]:
    """Return the commits of a note, newest first, as far as they may be seen.

    If git fails, there are none, and `core.git_trouble` says why.
    """
    core.git_trouble = ""
    if not _has_commits(core):
        return []

    from simplemem.gitrepo.history import read_history

    try:
        # A move that nobody has committed yet is known to our history alone.
        for name in _names(core, path):
            commits = read_history(_repository(core), name, limit)
            if commits:
                return [commit for commit in commits if not _is_hidden(core, commit)]
    except SimplememError as error:
        core.git_trouble = f"git commits are not shown: {error}"
        if error.hint:
            core.git_trouble += f". {error.hint}"
        _LOG.warning("%s", core.git_trouble)
    return []


def text_at_commit(core: Core, path: str, commit: str) -> tuple[str, bytes]:
    """Return the path and the bytes that a note had at a commit.

    Raises NotFound if the commit does not contain the note under any of its last names.
    """
    from simplemem.gitrepo.history import read_text_at

    for name in _names(core, path):
        with suppress(NotFound):
            old_path, data = read_text_at(_repository(core), name, commit)
            if not core.vault.access.hides(old_path):
                return old_path, data
    hint = "The history of a note lists its commits."
    raise NotFound(f"no commit {commit[:12]} that contains {name_of(path)}", hint=hint)


def _has_commits(core: Core) -> bool:
    """Return whether commits are read at all. It is cheap, and does not load libgit2."""
    return core.settings.git.history and (core.vault.is_branch or is_in_git(core.root))


def _repository(core: Core) -> OpenRepository:
    """Return the repository that the vault is a folder of, or a branch of."""
    from simplemem.gitrepo.repository import open_repository

    repository: OpenRepository | None = core.vault.repository()
    if repository is None:
        return open_repository(core.root, core.settings.git.folders)
    return repository


def _names(core: Core, path: str) -> list[str]:
    """Return the last visible paths of a note in our own history, its current one first."""
    paths = [path]
    paths.extend(version.path for version in core.changes.of(path, _MAX_CHANGES))
    hides = core.vault.access.hides
    visible = [name for name in dict.fromkeys(paths) if not hides(name)]
    return visible[:_MAX_NAMES]


def _is_hidden(core: Core, commit: NoteCommit) -> bool:
    """Return whether a note was in a hidden place before or after a commit."""
    hides = core.vault.access.hides
    return hides(commit.path) or hides(commit.old_path or commit.path)
