"""A branch of a bare git repository: its newest commit, the files of a commit, and new commits.

A new commit is put on the branch only if its parent is the newest commit. If the repository is on
another computer, a copy of the branch is kept in a local folder, and the user's own git fetches and
pushes it.
"""

from __future__ import annotations

import hashlib
import re
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import lru_cache, partial
from itertools import repeat
from pathlib import Path

import pygit2
from pygit2.enums import FileMode, RepositoryOpenFlag

from simplemem.errors import Unavailable
from simplemem.gitrepo.repository import REGULAR_FILE_MODES, retry, user_signature
from simplemem.gitrepo.user_git import ADDRESS, PushRejected, run_git
from simplemem.note.names import MAX_PATH_PARTS
from simplemem.vault.base import already_exists

# An entry of a tree object, by the length of an object id in bytes.
_TREE_ENTRY = {
    size: re.compile(rb"(?P<mode>\d+) (?P<name>[^\0]+)\0(?P<id>.{%d})" % size, re.DOTALL)
    for size in (20, 32)
}
_VERSION_TRAILER = b"\nSimplemem-Version: "  # only our own commits have it in their message
_MAX_LOCK_SECONDS = 10.0  # git writes into a lock within moments of creating it
_NO_COMMIT = ""
_LOCK_HINT = "If no other git process is running, remove the file that ends with .lock."
_MAX_ENTRIES = 2_000_000  # files and folders of a branch

_PathParts = tuple[str, ...]
_Blobs = Mapping[_PathParts, pygit2.Oid | None]  # None for a file to be deleted


class Branch:
    """One branch of a bare repository. Any thread may use it.

    `path` is the folder of the repository: for one on another computer, the copy here. `url` is the
    address of the remote, "" for a repository on this computer. Commits are named by their ids; ""
    is the state before the first.
    """

    def __init__(self, repository: str, name: str, copy: Path) -> None:
        """Open the branch `name` of a repository. The branch need not exist yet.

        `repository` is a path, or an address. For an address, a copy is kept in a folder whose path
        is `copy` with a hash of the address and `.git` added, and the branch is fetched if there is
        a connection. Raises Unavailable if there is no repository at a path, or if it has a working
        tree.
        """
        is_address = ADDRESS.fullmatch(repository) is not None
        self.url = repository if is_address else ""
        self.ref = f"refs/heads/{name}"
        self._shown_address = redact_address(repository)
        self._local = threading.local()

        if self.url:
            address = self._shown_address.encode()
            digest = hashlib.sha256(address).hexdigest()
            self.path = copy.with_name(f"{copy.name}-{digest[:8]}.git")
            if not self.path.exists():
                pygit2.init_repository(str(self.path), bare=True)
        else:
            self.path = Path(repository).expanduser()

        if not self.repo.is_bare:
            raise Unavailable(
                f"{self.path} is a repository with a working tree",
                hint=(
                    "Use a bare repository: create one with `git clone --bare` or "
                    "`git init --bare`."
                ),
            )
        pygit2.settings.enable_fsync_gitdir(True)
        if self.url:
            with suppress(Unavailable):  # without a connection, the copy is served
                self.fetch()

    @property
    def repo(self) -> pygit2.Repository:
        """The repository, which each thread opens for itself. Raises Unavailable if it cannot."""
        repo: pygit2.Repository | None = getattr(self._local, "repo", None)
        if repo is not None:
            return repo

        try:
            repo = pygit2.Repository(str(self.path), RepositoryOpenFlag.NO_SEARCH)
        except pygit2.GitError as error:
            hint = "`git init --bare PATH` creates one."
            raise Unavailable(f"no repository at {self.path} ({error})", hint=hint) from error
        self._local.repo = repo
        return repo

    def newest(self) -> str:
        """Return the newest commit that is here, "" before the first. Fetches nothing.

        Raises Unavailable if the disk is gone.
        """
        reference, newest = self._read_reference()
        # Without this check, a disk that is not connected would look like a branch without notes.
        if reference is None and not (self.path / "HEAD").exists():
            raise Unavailable(
                f"the repository {self._shown_address} is not reachable",
                hint="Check that its disk is connected. simplemem tries again.",
            )
        return newest

    def _read_reference(self) -> tuple[pygit2.Reference | None, str]:
        """Return the reference of the branch and its newest commit; None and "" without one."""
        reference = self.repo.references.get(self.ref)
        if reference is None:
            return None, _NO_COMMIT
        return reference, str(reference.target)

    def _set_reference(self, reference: pygit2.Reference | None, commit: str) -> None:
        """Let the branch point to a commit, unless its reference has changed since it was read.

        `reference` comes from `_read_reference`. Raises an error of pygit2 if it has changed, and
        OSError if it is locked.
        """
        if reference is None:
            self.repo.references.create(self.ref, commit)
        else:
            reference.set_target(commit, "simplemem")

    def tree(self, commit: str) -> pygit2.Tree | None:
        """Return the tree of a commit; None for "". The repository must have the commit."""
        if not commit:
            return None
        return self.repo[commit].peel(pygit2.Tree)

    def file(self, commit: str, path: str) -> pygit2.Blob | None:
        """Return the blob of a regular file in a commit; None for anything else.

        The repository must have the commit; "" has no files.
        """
        entry = at(self.tree(commit), path)
        if isinstance(entry, pygit2.Blob) and entry.filemode in REGULAR_FILE_MODES:
            return entry
        return None

    @lru_cache(maxsize=8)  # noqa: B019  (a branch lives as long as the process)
    def changed_files(self, since: str, until: str) -> frozenset[str]:
        """Return the paths of the files that differ between two commits; "" is one without files.

        The repository must have both. Hidden files are among them; files in more nested folders
        than a path may have are not. A moved file counts with both paths. Raises Unavailable if
        more files and folders differ than a branch may have.
        """
        old_id = self._tree_id(since)
        new_id = self._tree_id(until)
        return frozenset(_changed_paths(self.repo, old_id, new_id, bounded()))

    def _tree_id(self, commit: str) -> pygit2.Oid | None:
        """Return the id of the tree of a commit; None for ""."""
        tree = self.tree(commit)
        return None if tree is None else tree.id

    def holds(self, commit: str) -> bool:
        """Return whether the repository has a commit."""
        with suppress(ValueError, KeyError):
            return isinstance(self.repo.get(commit), pygit2.Commit)
        return False

    def is_before(self, commit: str, other: str) -> bool:
        """Return whether a commit is the other commit or one of its ancestors.

        "" is before every commit. False if the repository lacks one of them.
        """
        if commit in (other, _NO_COMMIT):
            return True
        if not self.holds(commit) or not self.holds(other):
            return False
        return self.repo.descendant_of(other, commit)

    def fetch(self) -> bool:
        """Fetch the branch from the other computer; return whether another commit is newest now.

        The copy follows the remote even if somebody removed commits there, but not if the branch
        is gone. Does nothing if the repository is on this computer. Raises Unavailable if the
        network fails or another git keeps the copy locked.
        """
        if not self.url:
            return False

        old_newest = self.newest()
        remote_newest = self._newest_at_remote()
        if remote_newest not in ("", old_newest):
            self._fetch_commits()
            reference, newest = self._read_reference()
            if self.holds(remote_newest) and self._is_to_be_followed(newest, remote_newest):
                self._follow_remote(reference, remote_newest)
        return self.newest() != old_newest

    def _fetch_commits(self) -> None:
        """Fetch the commits of the remote branch, without moving the branch here."""
        # Without a limit, git would store each commit of another server as a pack of its own.
        unpack_limit = ["-c", "fetch.unpackLimit=100"]
        self._git(*unpack_limit, "fetch", "--quiet", "--no-tags", "--", self.url, self.ref)

    def _is_to_be_followed(self, newest: str, remote_newest: str) -> bool:
        """Return whether the branch here is to point to `remote_newest`.

        `newest` is the newest commit here. True if `remote_newest` descends from it. Otherwise asks
        the remote again. If `remote_newest` is still the newest there, somebody has removed our
        commit (True); if not, we have pushed ours since (False). Raises Unavailable if the network
        fails.
        """
        if self.is_before(newest, remote_newest):
            return True
        return self._newest_at_remote() == remote_newest

    def _follow_remote(self, reference: pygit2.Reference | None, commit: str) -> None:
        """Let the branch here point to a fetched commit, unless it was moved meanwhile.

        Raises Unavailable if the branch is locked.
        """
        try:
            # pygit2 raises these if another thread or process has moved the branch meanwhile.
            with suppress(pygit2.GitError, pygit2.AlreadyExistsError):
                retry(partial(self._set_reference, reference, commit), OSError)
        except OSError as error:
            raise self._locked(error) from error

    def _newest_at_remote(self) -> str:
        """Return the newest commit of the branch at the remote, "" if it has none.

        Raises Unavailable if the network fails.
        """
        answer = self._git("ls-remote", "--heads", "--", self.url, self.ref)
        commit, _, _ = answer.partition("\t")
        return commit

    def commit(self, parent: str, files: Mapping[str, bytes | None], message: str) -> str:
        """Commit files as a child of a commit, put it on the branch, and return the new commit.

        `files` has the new bytes by path, None for a deleted file. All other files are those of
        the parent, which is "" for the first commit. Raises PushRejected if the parent is no longer
        the newest commit, AlreadyExists if a folder is in the place of a file or a file in that of
        a folder, and Unavailable if the branch cannot be updated or the remote cannot be reached.
        """
        repo = self.repo
        blobs: dict[_PathParts, pygit2.Oid | None] = {}
        for path, data in files.items():
            parts = tuple(path.split("/"))
            blobs[parts] = None if data is None else repo.create_blob(data)

        tree = _write_tree(repo, self.tree(parent), blobs)
        if tree is None:
            tree = repo.TreeBuilder().write()
        author = user_signature(repo) or pygit2.Signature("simplemem", "simplemem@localhost")
        parents: list[str | pygit2.Oid] = [parent] if parent else []
        commit_id = repo.create_commit(None, author, author, message, tree, parents)
        commit = str(commit_id)
        self._advance(parent, commit)
        return commit

    def _advance(self, parent: str, commit: str) -> None:
        """Let the branch point to a new commit, at the remote first.

        A lock of git that a killed server left is removed. Raises PushRejected if `parent` is no
        longer the newest commit, and Unavailable if the branch stays locked or the remote cannot be
        reached.
        """
        if self.url:
            self._push(parent, commit)

        set_branch = partial(self._set_branch, parent, commit)
        try:
            try:
                retry(set_branch, OSError)
            except OSError:
                if not self._remove_stale_lock():
                    raise
                retry(set_branch, OSError)
        except (pygit2.GitError, pygit2.AlreadyExistsError, OSError) as error:
            if self.url:
                return  # the push has succeeded; the next fetch gets the commit
            if self.newest() != parent:
                raise PushRejected from error
            raise self._locked(error) from error

    def _set_branch(self, parent: str, commit: str) -> None:
        """Let the local branch point to a new commit if its parent is the newest.

        Raises PushRejected if it is not, and what `_set_reference` raises. For a copy of a remote,
        the push has checked this. The reference is read at each call, because another git may move
        the branch between two tries.
        """
        reference, newest = self._read_reference()
        if newest != parent and not self.url:
            raise PushRejected
        has_commit = reference is not None and self.is_before(commit, newest)
        if not has_commit:  # else another thread has fetched it
            self._set_reference(reference, commit)

    def _remove_stale_lock(self) -> bool:
        """Remove git's lock of the branch if a killed server left it; return True if removed.

        A server left it if it names a commit of ours, or is empty and older than 10 s. The lock of
        another git program stays. The vault's lock must be held: no running server has git's lock
        then.
        """
        lock = self.path / f"{self.ref}.lock"
        with suppress(OSError, ValueError):
            commit_id = lock.read_text("ascii").strip()
            age = time.time() - lock.stat().st_mtime
            if self._is_stale(commit_id, age):
                lock.unlink()
                return True
        return False

    def _is_stale(self, commit_id: str, age: float) -> bool:
        """Return whether a killed server left a lock.

        Such a lock names a commit of ours, or is empty and old. `commit_id` is the content of the
        lock file, `age` its age in seconds.
        """
        if not commit_id:
            return age > _MAX_LOCK_SECONDS
        commit = self.repo.get(commit_id)
        return isinstance(commit, pygit2.Commit) and _VERSION_TRAILER in commit.raw_message

    def _push(self, parent: str, commit: str) -> None:
        """Push a commit to the remote, and fetch if that fails.

        Raises PushRejected if somebody else pushed first, and Unavailable if the remote refuses the
        commit or cannot be reached.
        """
        refspec = f"{commit}:{self.ref}"
        try:
            self._git("push", "--quiet", "--", self.url, refspec)
        except Unavailable as error:
            self._fetch_after_failed_push(error)
            newest = self.newest()
            if self.is_before(commit, newest):
                return  # only the answer was lost
            is_locked = "lock" in str(error)  # another push was in progress at the remote
            if newest == parent and not is_locked:
                raise  # nobody pushed first: the remote refuses the commit
            raise PushRejected from error

    def _fetch_after_failed_push(self, push_error: Unavailable) -> None:
        """Fetch, to see whether a push that failed reached the remote after all.

        Raises Unavailable, with a hint to look before repeating the change, if that fails too.
        """
        try:
            self.fetch()
        except Unavailable:
            raise Unavailable(
                f"{push_error}; the change may still have reached the branch",
                hint="Read the note again before you repeat the change, so that nothing is "
                "appended twice.",
            ) from push_error

    def _locked(self, error: Exception) -> Unavailable:
        """Return the error for a branch that another git keeps locked."""
        return Unavailable(f"the branch cannot be updated: {error}", hint=_LOCK_HINT)

    def _git(self, *arguments: str) -> str:
        """Run the user's git in the folder of the copy; return what it prints.

        Raises Unavailable if it fails.
        """
        return run_git(self.path, self.path, self._shown_address, *arguments)


def redact_address(repository: str) -> str:
    """Return an address without the user name and the password between `//` and `@`.

    An address such as `git@host:repo` stays as it is.
    """
    return re.sub("//[^/]*@", "//", repository)


def at(tree: pygit2.Tree | None, path: str) -> pygit2.Object | None:
    """Return what a tree has at a path: a file or folder; None if there is nothing.

    The path "" is the tree itself.
    """
    if tree is None or not path:
        return tree
    with suppress(KeyError, ValueError):  # also for a path below a file
        return tree[path]
    return None


def bounded() -> Iterator[None]:
    """Yield once for each entry that a branch may have, then raise Unavailable.

    A walk through a branch calls `next` for each entry. A folder that contains itself, which git's
    format allows, has no end.
    """
    yield from repeat(None, _MAX_ENTRIES)
    raise Unavailable(
        f"the branch has more than {_MAX_ENTRIES:,} files and folders",
        hint="Check its commits: a folder that contains itself can cause this.",
    )


def _changed_paths(
    repo: pygit2.Repository,
    old_id: pygit2.Oid | None,
    new_id: pygit2.Oid | None,
    turns: Iterator[None],
    prefix: str = "",
) -> Iterator[str]:
    """Yield the paths of the files that differ between two trees; None is an empty tree.

    `prefix` is the path of both trees with a final slash, or "". `turns` is an iterator of
    `bounded`. Folders with the same id on both sides are skipped; libgit2 would read every file in
    them. Folders nested too deeply for notes are not entered.
    """
    old_entries = _read_entries(repo, old_id)
    new_entries = _read_entries(repo, new_id)
    old_folders: dict[bytes, pygit2.Oid] = {}
    new_folders: dict[bytes, pygit2.Oid] = {}
    sides = (
        (old_entries - new_entries, old_folders),
        (new_entries - old_entries, new_folders),
    )
    for changed_entries, folders in sides:
        for mode, name, object_id in changed_entries:
            next(turns)
            if int(mode, 8) == FileMode.TREE:
                folders[name] = pygit2.Oid(raw=object_id)
            else:
                yield prefix + name.decode("utf-8", "surrogateescape")

    if prefix.count("/") >= MAX_PATH_PARTS:
        return  # no path of a note has more folders
    for name in old_folders | new_folders:
        decoded_name = name.decode("utf-8", "surrogateescape")
        old_folder = old_folders.get(name)
        new_folder = new_folders.get(name)
        inner_prefix = f"{prefix}{decoded_name}/"
        yield from _changed_paths(repo, old_folder, new_folder, turns, inner_prefix)


def _read_entries(
    repo: pygit2.Repository, tree_id: pygit2.Oid | None
) -> set[tuple[bytes, bytes, bytes]]:
    """Return the mode, name and id of each entry of a tree; an empty set for None."""
    if tree_id is None:
        return set()
    _, data = repo.odb.read(tree_id)
    return set(_TREE_ENTRY[len(tree_id.raw)].findall(data))


def _write_tree(
    repo: pygit2.Repository, tree: pygit2.Tree | None, blobs: _Blobs
) -> pygit2.Oid | None:
    """Write a tree with these files changed into the repository; return its id.

    `tree` is the old one, None for an empty one. `blobs` has the new blobs by path, None for a file
    to be deleted. Returns None if no file is left. Only folders that contain one of the files are
    written again. Raises AlreadyExists if a folder is in the place of a file, or a file in the
    place of a folder.
    """
    builder = repo.TreeBuilder()
    if tree is not None:
        builder = repo.TreeBuilder(tree)
    blobs_in_folders: dict[str, dict[_PathParts, pygit2.Oid | None]] = {}
    for (name, *rest), blob in _deleted_first(blobs):
        if rest:
            inner_blobs = blobs_in_folders.setdefault(name, {})
            inner_blobs[tuple(rest)] = blob
        else:
            old_entry = at(tree, name)
            _put_file(builder, old_entry, name, blob)

    for name, blobs_in_folder in blobs_in_folders.items():
        folder = builder.get(name)
        if folder is not None and not isinstance(folder, pygit2.Tree):
            raise already_exists(name)
        folder_id = _write_tree(repo, folder, blobs_in_folder)
        if folder_id is not None:
            builder.insert(name, folder_id, FileMode.TREE)
        elif folder is not None:
            builder.remove(name)

    if not len(builder):
        return None
    return builder.write()


def _deleted_first(blobs: _Blobs) -> list[tuple[_PathParts, pygit2.Oid | None]]:
    """Return the items, deleted files first: a folder may take the place of such a file."""
    return sorted(blobs.items(), key=lambda item: item[1] is not None)


def _put_file(
    builder: pygit2.TreeBuilder,
    old_entry: pygit2.Object | None,
    name: str,
    blob: pygit2.Oid | None,
) -> None:
    """Put a file into a tree, or remove it if `blob` is None.

    A file that was there keeps its mode. Raises AlreadyExists if a folder is in its place. To
    remove what is not there is no error.
    """
    if blob is None:
        if old_entry is not None:
            builder.remove(name)
        return

    if isinstance(old_entry, pygit2.Tree):
        raise already_exists(name)
    mode = FileMode.BLOB
    if old_entry is not None:
        mode = old_entry.filemode
    builder.insert(name, blob, mode)
