"""Commit what our tools changed, without what the user has staged or edited.

`commit_patches` is for a whole commit of ours. The other functions are the steps of a commit, which
a merge with a remote (`exchange.py`) takes too: lock the index, write a tree, advance the branch.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, TypeAlias

import pygit2
from pygit2.enums import FileMode, RepositoryState
from pygit2.ffi import C

from simplemem.errors import Unavailable
from simplemem.gitrepo.repository import (
    Checkout,
    find_file,
    one_line,
    open_repository,
    read_pointer,
    retry,
    user_signature,
)

_MAX_SUBJECT = 110
_ASSUME_UNCHANGED = 0x8000  # in the flags of an index entry
_SKIP_WORKTREE = 0x4000  # in its extended flags
_COMMIT_ID = re.compile(r"[0-9a-f]{7,64}")
_NO_OBJECT = pygit2.Oid(hex="0" * 40)

TreeEntries: TypeAlias = dict[str, pygit2.IndexEntry | None]
"""Entries by their path in the repository; None for a file that is deleted."""


class Patch(NamedTuple):
    """A change of a note, by its paths in the vault and its texts.

    A text is None where there is no note before or after the change.
    """

    path: str
    new_path: str  # equal to `path` unless the note was moved
    old_text: bytes | None
    new_text: bytes | None


def commit_patches(
    root: Path,
    patches: Sequence[Patch],
    subject: str,
    trailers: Mapping[str, str],
    when: int,
    allowed: Sequence[str] = (),
) -> None:
    """Commit changes of notes to the branch that is checked out, all or none.

    `subject` is the first line of the message; `trailers` become its lines "Simplemem-<key>:
    <value>". `when` is the author's time, in seconds since 1970. `allowed` is as in
    `open_repository`. Nothing is committed if the last commit has the changes already, and no note
    that git ignores. Files in the working tree are never touched, and what the user has staged or
    edited is never committed. Raises Unavailable if that is in the way, or if the repository cannot
    be used, and NotFound if there is none.
    """
    message = _compose_message(subject, trailers)
    with open_repository(root, allowed) as (repo, checkout), lock_index(repo, checkout) as index:
        finish_interrupted_commit(repo, checkout)
        state = repo.state()
        if state != RepositoryState.NONE:
            operation = state.name.lower().replace("_", " ")
            raise Unavailable(f"a {operation} is in progress in the repository")
        branch = repo.lookup_reference("HEAD").target
        if not isinstance(branch, str) or repo.head_is_unborn:
            raise Unavailable("no branch with a commit is checked out")

        draft = _CommitDraft(repo, checkout, index)
        for patch in patches:
            draft.apply(patch)
        changed_files = draft.changed()
        if not changed_files:
            return

        tree = write_tree(repo, index, draft.last_commit.tree, changed_files)
        committer = _committer(repo)
        author = pygit2.Signature(committer.name, committer.email, when, 0)
        parents = [draft.last_commit.id]
        new_commit = repo.create_commit(None, author, committer, message, tree, parents)
        advance_branch(repo, checkout, index, branch, new_commit)


def _compose_message(subject: str, trailers: Mapping[str, str]) -> str:
    """Return a commit message: the subject on one line, and the trailers that are not empty.

    The subject is cut to its limit. A trailer is a line "Simplemem-<key>: <value>".
    """
    lines = [one_line(subject, _MAX_SUBJECT), ""]
    for key, value in trailers.items():
        line = one_line(value)
        if line:
            lines.append(f"Simplemem-{key}: {line}")
    return "".join(f"{line}\n" for line in lines)


class _CommitDraft:
    """Collects the files that a commit will change, on top of the last commit.

    `index` is the copy of the user's index; only read here.
    """

    def __init__(self, repo: pygit2.Repository, checkout: Checkout, index: pygit2.Index) -> None:
        self._repo = repo
        self._checkout = checkout
        self._index = index
        self.last_commit = repo.head.peel(pygit2.Commit)
        self._files: TreeEntries = {}

    def changed(self) -> TreeEntries:
        """Return the files that differ from those of the last commit, None for deleted ones.

        Raises Unavailable if the user has staged a change of one of the files.
        """
        changed: TreeEntries = {}
        for path, file in self._files.items():
            committed_file = find_file(self.last_commit.tree, path)
            staged_file = None
            with suppress(KeyError):
                staged_file = self._index[path]
            is_staged_by_user = staged_file not in (committed_file, file)
            if is_staged_by_user:
                raise Unavailable(f"{path!r} has staged changes")
            if file != committed_file:
                changed[path] = file
        return changed

    def apply(self, patch: Patch) -> None:
        """Add a change of a note, after those that were added before. Writes no commit.

        A move to a path that git ignores counts as a deletion, one from such a path as a creation.
        A change between ignored paths adds nothing. Raises Unavailable if the user has changes of
        the note that are not committed, or if git could not commit it unchanged.
        """
        path = self._checkout.prefix + patch.path
        target = self._checkout.prefix + patch.new_path
        old_text = patch.old_text
        new_text = patch.new_text
        is_path_ignored = self._is_ignored(path)
        is_target_ignored = self._is_ignored(target)
        if is_path_ignored and is_target_ignored:
            return
        if is_target_ignored:
            target = path
            new_text = None
        elif is_path_ignored:
            path = target
            old_text = None

        old_id = self._store_text(path, old_text)
        new_id = self._store_text(target, new_text)
        self._put(path, target, old_id, new_id)

    def _put(
        self,
        path: str,
        target: str,
        old_id: pygit2.Oid | None,
        new_id: pygit2.Oid | None,
    ) -> None:
        """Replace a committed file with one at `target`, or only remove it if there is no new text.

        `old_id` and `new_id` are the ids of the texts before and after the change. If they are
        equal, the note was only moved, and keeps its committed text, whatever that is. Otherwise
        raises Unavailable if the committed text is neither of the two: the user has changes that
        are not committed.
        """
        last_file = self._files.get(path, find_file(self.last_commit.tree, path))
        last_id = None
        mode = FileMode.BLOB
        if last_file is not None:
            last_id = last_file.id
            mode = last_file.mode

        if last_id is not None and old_id == new_id:
            # The note was only moved: it keeps the committed text, whatever the user has edited.
            new_id = last_id
        elif last_id not in (old_id, new_id):
            raise Unavailable(f"{path!r} has changes that you have not committed")

        self._files[path] = None
        self._files[target] = None
        if new_id is not None:
            self._files[target] = pygit2.IndexEntry(target, new_id, mode)

    def _is_ignored(self, path: str) -> bool:
        """Return whether git is configured to ignore a note that it does not track yet.

        Raises Unavailable if simplemem could not commit the note as git would: it has a filter or
        an encoding, git is configured not to look for its changes, or a file with rules for it may
        lead out of the repository.
        """
        self._check_rule_files(path)
        if self._repo.path_is_ignored(path) and path not in self._index:
            return True

        filter_name = self._repo.get_attr(path, "filter")
        encoding = self._repo.get_attr(path, "working-tree-encoding")
        if filter_name not in (None, False) or encoding:
            # Without the filter, the repository would get a text that is to be encrypted, say.
            raise Unavailable(f"{path!r} has a git filter, and simplemem does not run filters")
        if self._is_marked_unchanged(path):
            raise Unavailable(f"{path!r} is marked assume-unchanged or skip-worktree in git")
        return False

    def _check_rule_files(self, path: str) -> None:
        """Raise Unavailable if a file with git's rules for a path is not a regular file.

        A link could lead out of the repository.
        """
        rule_files = []
        top = self._checkout.top
        for folder in (top / path).parents:
            if folder.is_relative_to(top):
                rule_files += [folder / ".gitignore", folder / ".gitattributes"]
        info = self._checkout.common / "info"
        rule_files += [info / "exclude", info / "attributes"]

        for file in rule_files:
            if os.path.lexists(file) and not file.is_file():
                raise Unavailable(f"{file}, which applies to {path!r}, is not a regular file")

    def _is_marked_unchanged(self, path: str) -> bool:
        """Return whether git is configured not to look for changes of a file."""
        index = self._index._index  # noqa: SLF001  (pygit2 does not show the flags of an entry)
        entry = C.git_index_get_bypath(index, os.fsencode(path), 0)
        if not entry:
            return False
        is_assumed_unchanged = entry.flags & _ASSUME_UNCHANGED
        is_skipped = entry.flags_extended & _SKIP_WORKTREE
        return bool(is_assumed_unchanged or is_skipped)

    def _store_text(self, path: str, text: bytes | None) -> pygit2.Oid | None:
        """Store a text in the repository and return its id; None for no text.

        A text without null bytes gets the line ends that the attributes of its path ask for.
        """
        if text is None:
            return None
        if text and b"\0" not in text:
            line_end_filter = self._repo.load_filter_list(path)
            if line_end_filter is not None:
                text = line_end_filter.apply_to_buffer(text)
        return self._repo.create_blob(text)


@contextmanager
def lock_index(repo: pygit2.Repository, checkout: Checkout) -> Iterator[pygit2.Index]:
    """Lock the user's index, as git does, and yield a copy of it; unlock it at the end.

    Meanwhile no other git changes or commits the index. A change of the copy has no effect until
    `replace_index`. Raises Unavailable if another git keeps the lock for more than two seconds.
    """
    len(repo.index)  # raises an error if libgit2 cannot read the index
    lock = checkout.git_dir / "index.lock"
    try:
        retry(lambda: lock.open("xb").close(), FileExistsError)
    except FileExistsError as error:
        raise Unavailable(
            "another git process is running in the repository",
            hint=f"If none is running, remove {lock}.",
        ) from error

    copy = _index_copy(checkout)
    try:
        users_index = checkout.git_dir / "index"
        if users_index.exists():
            shutil.copy2(users_index, copy)
        yield pygit2.Index(str(copy))
    finally:
        copy.unlink(missing_ok=True)
        lock.unlink(missing_ok=True)


def _index_copy(checkout: Checkout) -> Path:
    """Return the path of our copy of the index, beside the index itself."""
    return checkout.git_dir / "index.simplemem"


def write_tree(
    repo: pygit2.Repository,
    index: pygit2.Index,
    tree: pygit2.Tree,
    files: TreeEntries,
) -> pygit2.Oid:
    """Write a copy of `tree` with some files replaced into the repository; return its id.

    `files` has None for a file that is deleted. The files are replaced in `index` too, in memory
    only. No branch is moved.
    """
    tree_index = pygit2.Index()
    tree_index.read_tree(tree)
    for target in (index, tree_index):
        for path in files:
            if path in target:  # also if it is replaced: a deleted file makes room for a folder
                target.remove(path)
        for file in files.values():
            if file is not None:
                target.add(file)
    return tree_index.write_tree(repo)


def advance_branch(
    repo: pygit2.Repository,
    checkout: Checkout,
    index: pygit2.Index,
    branch: str,
    commit: pygit2.Oid,
) -> None:
    """Replace the user's index, then let their branch point to a commit.

    `index` is the copy that `lock_index` yields, `branch` the full name of the reference. The
    working tree stays as it is. After a crash between the two steps, our change is staged, until
    `finish_interrupted_commit` moves the branch. Raises Unavailable if the branch is locked.
    """
    mark = _interrupted_mark(checkout)
    mark.write_text(f"{repo.head.target} {commit}")
    replace_index(index, checkout)

    committer = _committer(repo)
    repo.set_ident(committer.name, committer.email)
    pygit2.settings.enable_fsync_gitdir(True)
    try:
        retry(lambda: repo.references[branch].set_target(commit, "simplemem"), OSError)
    except OSError as error:
        hint = "If no other git process is running, remove the file that ends with .lock."
        raise Unavailable(f"the branch cannot be updated: {error}", hint=hint) from error
    mark.unlink()


def replace_index(index: pygit2.Index, checkout: Checkout) -> None:
    """Replace the user's index, which must be locked, with `index`, our copy of it.

    Call this before the branch is moved. A crash between the two then leaves our change staged. In
    the other order, the opposite of our change would be staged.
    """
    index.write()
    copy = _index_copy(checkout)
    users_index = checkout.git_dir / "index"
    if users_index.exists():
        # git takes a file as possibly changed if it is not older than the index.
        shutil.copystat(users_index, copy)
    copy.replace(users_index)


def finish_interrupted_commit(repo: pygit2.Repository, checkout: Checkout) -> None:
    """Finish a commit that a crash interrupted after the user's index was replaced.

    Does nothing if there is none. The branch is moved only if it still points to the commit before,
    and our change is still staged. The mark of the interruption is removed in any case.
    """
    mark = _interrupted_mark(checkout)
    old_id, _, new_id = read_pointer(mark).partition(" ")
    old_commit = _commit_with_id(repo, old_id)
    new_commit = _commit_with_id(repo, new_id)

    is_interrupted = (
        not repo.head_is_unborn
        and str(repo.head.target) == old_id
        and old_commit is not None
        and new_commit is not None
        and _is_staged(repo.index, old_commit.tree, new_commit.tree)
    )
    if is_interrupted:
        branch = str(repo.references["HEAD"].target)
        repo.references[branch].set_target(new_id, "simplemem")
    mark.unlink(missing_ok=True)


def _interrupted_mark(checkout: Checkout) -> Path:
    """Return the path of a file that exists while the index is replaced and the branch moved.

    It has the ids of the commits to which the branch points before and after.
    """
    return checkout.git_dir / "simplemem.commit"


def _commit_with_id(repo: pygit2.Repository, commit_id: str) -> pygit2.Commit | None:
    """Return the commit with an id; None if the text is no id, or none of a commit here."""
    if not _COMMIT_ID.fullmatch(commit_id):
        return None
    match = repo.get(commit_id)
    if isinstance(match, pygit2.Commit):
        return match
    return None


def _is_staged(index: pygit2.Index, old_tree: pygit2.Tree, new_tree: pygit2.Tree) -> bool:
    """Return whether the index has the new version of all files that differ between two trees."""
    for delta in old_tree.diff_to_tree(new_tree).deltas:
        path = delta.new_file.path
        staged_id = _NO_OBJECT
        if path in index:
            staged_id = index[path].id
        if staged_id != delta.new_file.id:
            return False
    return True


def _committer(repo: pygit2.Repository) -> pygit2.Signature:
    """Return the user as git knows them, else simplemem."""
    return user_signature(repo) or pygit2.Signature("simplemem", "simplemem@localhost")
