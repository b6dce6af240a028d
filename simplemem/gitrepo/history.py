"""Read the commits of a note, and its text at one of them."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from itertools import chain, islice
from typing import NamedTuple, TypeAlias

import pygit2
from pygit2.enums import DiffFind, SortMode

from simplemem.errors import NotFound, Unavailable
from simplemem.gitrepo.repository import (
    REGULAR_FILE_MODES,
    Checkout,
    RepositoryContext,
    find_file,
    one_line,
    read_text,
)
from simplemem.note.dates import format_moment

_MAX_WALK_SECONDS = 10.0  # through commits; nobody waits longer for a history
_MAX_TIMESTAMP = 253_402_300_799  # the end of the year 9999, where `datetime` ends
_COMMIT_ID = re.compile(r"[0-9a-f]{7,64}")
_VERSION_TRAILER = re.compile(r"^Simplemem-Version: (?P<id>v[0-9]{6,15})$", re.MULTILINE)


class NoteCommit(NamedTuple):
    """A commit that changed a note, with the note's texts before and after it."""

    commit: str
    path: str  # of the note after the commit, or before its deletion
    old_path: str | None  # before a move, else None
    op: str  # "create", "update", "move" or "delete"
    when: str  # UTC, by the author's clock
    who: str
    subject: str
    versions: set[str]  # if it is one of ours, the versions in our history that it contains
    # The texts; None if there is none, if it is very large, or if this clone does not have it.
    old_text: bytes | None
    new_text: bytes | None


_NamedFile: TypeAlias = tuple[str | None, pygit2.IndexEntry | None]
"""A path and the file there, each None if there is none."""


def read_history(repository: RepositoryContext, path: str, limit: int = 20) -> list[NoteCommit]:
    """Return the commits that changed a note, newest first, also under its former paths.

    At most `limit` are returned. Returns [] for a note that was never committed. Raises NotFound if
    there is no repository, and Unavailable if git is too slow or reports an error.
    """
    with repository as (repo, checkout):
        return list(islice(_commits_of(repo, checkout, path), limit))


def read_text_at(repository: RepositoryContext, path: str, commit: str) -> tuple[str, bytes]:
    """Return the path and the text that a note had at a commit.

    `commit` is the beginning of its id, of at least seven digits. The note is found under its
    former paths too. Raises NotFound if there is no repository or no such commit, if several
    commits begin with it, or if the commit does not contain the note with at most 10 MB; and
    Unavailable if git is too slow or reports an error.
    """
    with repository as (repo, checkout):
        match = _find_commit(repo, checkout, commit)
        if match is None:
            raise NotFound(f"no commit {commit[:64]!r}")

        former_paths = (change.path for change in _commits_of(repo, checkout, path))
        for name in chain([path], former_paths):
            file = find_file(match.tree, checkout.prefix + name)
            if file is None or file.mode not in REGULAR_FILE_MODES:
                continue
            data = read_text(repo, file)
            if data is not None:
                return name, data
    raise NotFound(f"commit {commit[:12]} does not contain {path!r} under any of its names")


def _find_commit(repo: pygit2.Repository, checkout: Checkout, name: str) -> pygit2.Commit | None:
    """Return the commit whose id begins with `name`; None if there is none, or several.

    In a vault that is a branch, only the commits of this branch are found.
    """
    commit_id = name.strip().lower()
    if not _COMMIT_ID.fullmatch(commit_id):
        return None

    match = None
    with suppress(ValueError):  # raised if several ids begin with it
        match = repo.get(commit_id)
    if not isinstance(match, pygit2.Commit):
        return None

    branch = repo.references.get(checkout.ref)
    if branch is None or checkout.ref == "HEAD":
        return match
    tip = branch.resolve().target
    if tip == match.id or repo.descendant_of(tip, match.id):
        return match
    return None


def _commits_of(repo: pygit2.Repository, checkout: Checkout, path: str) -> Iterator[NoteCommit]:
    """Yield the commits that changed a file, newest first.

    Follows the file to its former paths. A merge counts only if the file differs from that of each
    parent. Raises Unavailable after ten seconds.
    """
    tip = _tip_of(repo, checkout)
    if tip is None:
        return

    name = checkout.prefix + path
    deadline = time.monotonic() + _MAX_WALK_SECONDS
    for commit in repo.walk(tip, SortMode.TOPOLOGICAL | SortMode.TIME):
        if time.monotonic() > deadline:
            raise _too_slow()
        parents = _parents_of(repo, commit)
        new_file = find_file(commit.tree, name)
        # The first commit has no parent, so before it there was no file.
        old_files = [find_file(parent.tree, name) for parent in parents] or [None]
        if new_file in old_files:
            continue

        old_file = old_files[0]
        old_name = None
        if new_file is not None and old_file is None and parents:
            old_name = _renamed_from(commit, parents[0], name, checkout.prefix)
            if old_name is not None:
                old_file = find_file(parents[0].tree, old_name)
        yield _describe(repo, checkout, commit, (old_name, old_file), (name, new_file))
        name = old_name or name


def _tip_of(repo: pygit2.Repository, checkout: Checkout) -> pygit2.Oid | str | None:
    """Return the id of the newest commit of the branch; None if it has none yet."""
    branch = repo.references.get(checkout.ref)
    if branch is None:
        return None
    if checkout.ref == "HEAD" and repo.head_is_unborn:
        return None
    return branch.resolve().target


def _too_slow() -> Unavailable:
    """Return the error for a walk through the commits that takes too long."""
    return Unavailable(
        f"git did not answer within {_MAX_WALK_SECONDS:g} s",
        hint="To leave git commits out of the history, set git.history = false.",
    )


def _parents_of(repo: pygit2.Repository, commit: pygit2.Commit) -> list[pygit2.Commit]:
    """Return the parents of a commit that the repository has; a shallow clone lacks some."""
    objects: list[object] = [repo.get(parent_id) for parent_id in commit.parent_ids]
    return [parent for parent in objects if isinstance(parent, pygit2.Commit)]


def _renamed_from(
    commit: pygit2.Commit,
    parent: pygit2.Commit,
    name: str,
    prefix: str,
) -> str | None:
    """Return the former name of a file that a commit renamed; None if it did not.

    Names are paths in the repository. `prefix` is the folder of the vault: a file that came from
    outside it has no former name.
    """
    diff = parent.tree.diff_to_tree(commit.tree)
    diff.find_similar(flags=DiffFind.FIND_RENAMES)
    for delta in diff.deltas:
        old_name = str(delta.old_file.path)
        is_rename = delta.status_char() == "R" and delta.new_file.path == name
        if is_rename and old_name.startswith(prefix):
            return old_name
    return None


def _describe(
    repo: pygit2.Repository,
    checkout: Checkout,
    commit: pygit2.Commit,
    old: _NamedFile,
    new: tuple[str, pygit2.IndexEntry | None],
) -> NoteCommit:
    """Return what a commit did to a file.

    `old` and `new` are its path in the repository and the file there, before and after the commit.
    The old path is None unless the commit renamed the file; a file is None where there is none.
    """
    old_name, old_file = old
    new_name, new_file = new
    old_path = None
    if old_name is not None:
        old_path = old_name.removeprefix(checkout.prefix)
    timestamp = max(0, min(commit.author.time, _MAX_TIMESTAMP))
    moment = datetime.fromtimestamp(timestamp, UTC)
    subject, _, _ = commit.message.partition("\n")
    return NoteCommit(
        commit=str(commit.id),
        path=new_name.removeprefix(checkout.prefix),
        old_path=old_path,
        op=_operation(old_name, old_file, new_file),
        when=format_moment(moment),
        who=one_line(commit.author.name),
        subject=one_line(subject),
        versions=set(_VERSION_TRAILER.findall(commit.message)),
        old_text=read_text(repo, old_file),
        new_text=read_text(repo, new_file),
    )


def _operation(
    old_name: str | None,
    old_file: pygit2.IndexEntry | None,
    new_file: pygit2.IndexEntry | None,
) -> str:
    """Return "move", "create", "delete" or "update" for the files before and after a commit."""
    if old_name is not None:
        return "move"
    if old_file is None:
        return "create"
    if new_file is None:
        return "delete"
    return "update"
