"""How a repository differs from its last commit, and from its remote."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import pygit2
from pygit2.enums import FileStatus

from simplemem.gitrepo.committing import finish_interrupted_commit
from simplemem.gitrepo.exchange import read_blob
from simplemem.gitrepo.repository import open_repository

_STAGED: Final = (
    FileStatus.INDEX_NEW
    | FileStatus.INDEX_MODIFIED
    | FileStatus.INDEX_DELETED
    | FileStatus.INDEX_RENAMED
    | FileStatus.INDEX_TYPECHANGE
    | FileStatus.CONFLICTED
)


class UncommittedFile(NamedTuple):
    """A file that differs from that of the last commit."""

    path: str
    committed_text: bytes | None  # the text in the last commit, None if it has no such file
    is_staged: bool


def list_uncommitted(root: Path, allowed: Sequence[str]) -> list[UncommittedFile]:
    """Return the files of a vault that differ from those of the last commit, sorted by path.

    New files are among them, files that git ignores are not. Paths are those in the vault. A commit
    of ours that a crash interrupted is finished first. Raises NotFound if there is no repository,
    and Unavailable if it cannot be used.
    """
    with open_repository(root, allowed) as (repo, checkout):
        finish_interrupted_commit(repo, checkout)
        tree = None
        if not repo.head_is_unborn:
            tree = repo.head.peel(pygit2.Commit).tree

        files = []
        for path, flags in sorted(repo.status(untracked_files="all").items()):
            if not path.startswith(checkout.prefix) or flags & FileStatus.IGNORED:
                continue
            committed = None if tree is None else read_blob(repo, tree, path)
            is_staged = bool(flags & _STAGED)
            name = path.removeprefix(checkout.prefix)
            files.append(UncommittedFile(name, committed, is_staged))
    return files


def ahead_behind(root: Path, allowed: Sequence[str]) -> tuple[str, int, int] | None:
    """Return the remote, how many commits only we have, and how many only the remote has.

    The numbers are as of the last exchange: nobody is contacted. Returns None if the branch has no
    remote. Raises NotFound if there is no repository, and Unavailable if it cannot be used.
    """
    with open_repository(root, allowed) as (repo, _):
        if repo.head_is_unborn or repo.head_is_detached:
            return None
        branch = repo.branches.local[repo.head.shorthand]
        upstream = branch.upstream
        if upstream is None:
            return None
        only_ours, only_theirs = repo.ahead_behind(branch.target, upstream.target)
        return upstream.remote_name, only_ours, only_theirs
