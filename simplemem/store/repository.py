"""What git knows of a memory, where the vault is in a repository: its commits, and what it said at one of them.

A repository that cannot answer costs only what it would have told. What is hidden from whoever asks is hidden here too.
"""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING

from simplemem.errors import NotFound, SimplememError
from simplemem.store.committing import is_in_git
from simplemem.store.core import Core

if TYPE_CHECKING:
    from simplemem.git import Commit

_COMMIT = re.compile(r"[0-9a-f]{7,64}")
_MOST_NAMES, _MOST_CHANGES = 5, 1000
_LOG = logging.getLogger(__name__)


def means_commit(core: Core, text: str) -> bool:
    """Whether a version that somebody names is one of git: no version of ours and no date looks like its ids."""
    text = text.strip().lower()
    is_id = _COMMIT.fullmatch(text) is not None and (len(text) >= 40 or not text.isdecimal())
    return is_id and core.settings.git.history and is_in_git(core.root)


def text_at_commit(core: Core, path: str, commit: str) -> tuple[str, bytes]:
    """A memory's path and bytes at a commit, under the name it had then."""
    from simplemem import git

    missing: NotFound | None = None
    for name in _names(core, path):
        try:
            then, data = git.text_at(core.root, name, commit)
        except NotFound as error:
            missing = missing or error
        else:
            if not core.vault.access.hides(then):
                return then, data
    raise missing or NotFound(f"{path!r} was not there at commit {commit[:12]}, under no name it has had.")


def commits_of(core: Core, path: str, limit: int) -> list[Commit]:
    """The commits of a memory, newest first; none when git cannot say, which is logged."""
    if not core.settings.git.history or not is_in_git(core.root):
        return []
    from simplemem import git

    try:
        for name in _names(core, path):  # a move that nobody has committed yet is known to our history alone
            if found := git.history(core.root, name, limit):
                hides = core.vault.access.hides
                return [each for each in found if not hides(each.path) and not hides(each.old_path or each.path)]
    except SimplememError as error:
        _LOG.warning("the history of git is not told: %s", error)
    return []


def _names(core: Core, path: str) -> list[str]:
    """The last names of a memory that our own history knows, as far as they may be seen; itself first."""
    known = (path, *(version.path for version in core.changes.of(path, _MOST_CHANGES)))
    return [name for name in dict.fromkeys(known) if not core.vault.access.hides(name)][:_MOST_NAMES]
