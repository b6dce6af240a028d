"""Read what git knows of a note, and commit what our tools changed, with libgit2.

No program, hook or filter is run, and nothing is fetched or pushed. A repository that could lead
outside of the vault, or make us wait, is refused before libgit2 opens it.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import UTC, datetime
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

import pygit2
from pygit2.enums import DiffFind, FileMode, RepositoryOpenFlag, RepositoryState, SortMode
from pygit2.ffi import C

from simplemem.errors import NotFound, Unavailable

_MAX_RETRY_SECONDS = 2.0  # another git that is at work is done in a moment
_RETRY_PAUSE = 0.05
_MAX_WALK_SECONDS = 10.0  # through commits; nobody waits longer for a history
_MAX_TEXT_BYTES = 10_000_000
_MAX_POINTER_BYTES = 8192  # more than the longest path
_MAX_ALTERNATES_BYTES = 4000
_MAX_ALTERNATES_DEPTH = 5
_MAX_SUBJECT = 110
_MAX_TIMESTAMP = 253_402_300_799  # the end of the year 9999, where `datetime` ends
_ASSUME_UNCHANGED = 0x8000  # in the flags of an index entry
_SKIP_WORKTREE = 0x4000  # in its extended flags

_COMMIT_ID = re.compile(r"[0-9a-f]{7,64}")
_INCLUDE = re.compile(rb"\[\s*+include", re.IGNORECASE)  # a section may begin anywhere in a line
_VERSION_TRAILER = re.compile(r"^Simplemem-Version: (?P<id>v[0-9]{6,15})$", re.MULTILINE)
_LINE_ENDS = re.compile(r"[\r\n]+")
# The entries of a git directory that libgit2 reads, without the objects.
_GIT_DIR_ENTRIES = frozenset(
    """
    head config config.worktree index index.lock index.simplemem packed-refs shallow commondir
    gitdir refs logs info
    """.split()
)
_NO_OBJECT = pygit2.Oid(hex="0" * 40)

PLAIN = (FileMode.BLOB, FileMode.BLOB_EXECUTABLE)
"""The modes of regular files."""
Files = dict[str, pygit2.IndexEntry | None]
"""Entries by their path in the repository; None for a file that is deleted."""
Patch = tuple[str, str, bytes | None, bytes | None]
"""A change of a note: its path and its new path, its text before and after."""


class Commit(NamedTuple):
    """A commit that changed a note."""

    commit: str
    path: str  # of the note at that time
    old_path: str | None  # before a move
    op: str  # create, update, move or delete
    when: str  # UTC, by the author's clock
    who: str
    subject: str
    versions: set[str]  # if it is one of ours, the versions in our history that it contains
    before: bytes | None  # the text; None if there was none, or if this clone does not have it
    after: bytes | None


class Checkout(NamedTuple):
    """Where a repository is: its working tree, its git directories, and the vault in it."""

    top: Path
    git_dir: Path
    common: Path  # the git directory that all worktrees of the repository share
    prefix: str  # of the vault in the working tree: "" or "notes/deep/"
    ref: str = "HEAD"


# Opening a repository


def _find_checkout(root: Path, allowed: Sequence[str]) -> Checkout:
    """Return the checkout that a vault is in, without opening it.

    Raises NotFound if there is none, and Unavailable if a part of it is neither in the working tree
    nor in the `allowed` folders.
    """
    vault = _real_path(root)
    for top in (vault, *vault.parents):
        # Like git, do not look on another disk.
        if not top.exists() or top.stat().st_dev != vault.stat().st_dev:
            break

        dot_git = top / ".git"
        git_dir = _resolve_git_dir(dot_git)
        common_dir = _read_pointer(git_dir / "commondir") or "."
        common = _real_path(git_dir / common_dir)
        if not (git_dir / "HEAD").is_file() or not (common / "objects").is_dir():
            continue
        if git_dir == dot_git and common != git_dir:
            raise Unavailable(
                f"the `commondir` of {dot_git} points to {common}, "
                "which is allowed only in a worktree"
            )
        for folder in dict.fromkeys((git_dir, common)):
            _check_inside(folder, top, allowed, "is in")
            _check_borrowed(folder / "objects", top, allowed)

        prefix = ""
        if vault != top:
            prefix = vault.relative_to(top).as_posix() + "/"
        return Checkout(top, git_dir, common, prefix)
    raise NotFound(
        "the vault is not in a git repository",
        hint="`git init` creates one; commit once after that.",
    )


def _real_path(path: str | Path) -> Path:
    """Return an absolute path without links in it."""
    return Path(os.path.realpath(path))


def _resolve_git_dir(dot_git: Path) -> Path:
    """Return the git directory that `.git` is, or to which the file `.git` points."""
    git_dir = dot_git
    if dot_git.is_file():
        target = _read_pointer(dot_git).removeprefix("gitdir:").strip()
        git_dir = dot_git.parent / target
    return _real_path(git_dir)


def _check_inside(folder: Path, top: Path, allowed: Sequence[str], relation: str) -> None:
    """Raise Unavailable if a folder is neither in the working tree nor in an allowed folder.

    Such a folder may belong to anybody.
    """
    allowed_folders = [_real_path(os.path.expanduser(path)) for path in allowed]
    if any(folder.is_relative_to(parent) for parent in (top, *allowed_folders)):
        return
    raise Unavailable(
        f"the repository of {top} {relation} {folder}, which is outside of {top}",
        hint=(
            f"If the repository is yours, add {folder} or a folder above it to `git.folders` "
            "in your own settings."
        ),
    )


def _check_borrowed(objects: Path, top: Path, allowed: Sequence[str], depth: int = 0) -> None:
    """Raise Unavailable if objects are read from folders that are not allowed.

    They may be borrowed by links, or through `objects/info/alternates`.
    """
    _check_regular(objects)
    alternates = objects / "info" / "alternates"
    is_too_large = alternates.is_file() and alternates.stat().st_size > _MAX_ALTERNATES_BYTES
    if depth > _MAX_ALTERNATES_DEPTH or is_too_large:
        raise Unavailable(
            f"the repository of {top} borrows objects from too many other repositories"
        )

    # As in libgit2, a comment counts as a path too.
    for line in _LINE_ENDS.split(_read_pointer(alternates)):
        if not line:
            continue
        path = objects / line if line.startswith(".") else line
        folder = _real_path(path)
        _check_inside(folder, top, allowed, "borrows objects from")
        _check_borrowed(folder, top, allowed, depth + 1)


def _read_pointer(file: Path) -> str:
    """Return the text of a file in which git keeps a path; "" if there is no such file."""
    if not file.is_file():
        return ""
    with file.open("rb") as stream:
        data = stream.read(_MAX_POINTER_BYTES)
    return os.fsdecode(data).replace("\0", "\n").strip("\r\n")


@contextmanager
def opened(root: Path, allowed: Sequence[str]) -> Iterator[tuple[pygit2.Repository, Checkout]]:
    """Open the repository that a vault is in.

    Raises NotFound if there is none, and Unavailable if it is refused, or if libgit2 reports an
    error inside the `with` block.
    """
    checkout = _find_checkout(root, allowed)
    for folder in {checkout.git_dir, checkout.common}:
        _check_regular(folder, _GIT_DIR_ENTRIES)
    for file in (checkout.common / "config", checkout.git_dir / "config.worktree"):
        _check_no_includes(file)

    try:
        repo = pygit2.Repository(str(checkout.git_dir), RepositoryOpenFlag.NO_SEARCH)
        _check_working_tree(repo, checkout)
        yield repo, checkout
        repo.free()
    except pygit2.GitError as error:
        message = f"libgit2 cannot use the repository at {checkout.top}: {error}"
        raise Unavailable(message) from error


def _check_regular(folder: Path, only: Collection[str] = ()) -> None:
    """Raise Unavailable if something in a git directory is neither a folder nor a regular file.

    With `only`, just the entries with these names are looked at.
    """
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            if only and entry.name.casefold() not in only:
                continue
            if entry.is_dir(follow_symlinks=False):
                _check_regular(Path(entry.path))
            elif not entry.is_file(follow_symlinks=False):
                raise Unavailable(
                    f"{entry.path} is a link or not a regular file, "
                    "and simplemem does not read such a repository"
                )


def _check_no_includes(config: Path) -> None:
    """Raise Unavailable if a git configuration includes other files, which could be anywhere."""
    if config.exists() and _INCLUDE.search(config.read_bytes()):
        raise Unavailable(
            f"{config} includes other files, and simplemem does not read such a git configuration",
            hint="Replace each include with the settings that it includes.",
        )


def _check_working_tree(repo: pygit2.Repository, checkout: Checkout) -> None:
    """Raise Unavailable if the configuration of a repository names another working tree."""
    top = checkout.top
    git_dir = checkout.git_dir
    if repo.workdir is not None and _real_path(repo.workdir) == top:
        return
    raise Unavailable(
        f"{top}/.git points to {git_dir}, whose `core.worktree` is not {top}",
        hint=(
            f"If the repository is yours, run `git --git-dir={git_dir} config core.worktree {top}`."
        ),
    )


# Reading the history


Opened = AbstractContextManager[tuple[pygit2.Repository, Checkout]]
"""What `opened` returns."""


def history(repository: Opened, path: str, limit: int = 20) -> list[Commit]:
    """Return the commits that changed a note, newest first, also under its former paths.

    Raises Unavailable if git is too slow or reports an error.
    """
    with repository as (repo, checkout):
        return list(islice(_commits_of(repo, checkout, path), limit))


def text_at(repository: Opened, path: str, commit: str) -> tuple[str, bytes]:
    """Return the path and the text of a note at a commit, of which `commit` is the id or its start.

    Raises NotFound if there is no such commit, or if it does not contain the note.
    """
    with repository as (repo, checkout):
        match = _find_commit(repo, checkout, commit)
        if match is None:
            raise NotFound(f"no commit {commit[:64]!r}")

        former_paths = (change.path for change in _commits_of(repo, checkout, path))
        for name in chain([path], former_paths):
            file = _file_in(match.tree, checkout.prefix + name)
            if file is None or file.mode not in PLAIN:
                continue
            data = _text_of(repo, file)
            if data is not None:
                return name, data
    raise NotFound(f"commit {commit[:12]} does not contain {path!r} under any of its names")


def _find_commit(repo: pygit2.Repository, checkout: Checkout, name: str) -> pygit2.Commit | None:
    """Return the commit whose id begins so; None if there is not just one.

    In a vault that is a branch, only the commits of this branch are found.
    """
    commit_id = name.strip().lower()
    match = None
    with suppress(ValueError):  # several ids begin so
        match = repo.get(commit_id) if _COMMIT_ID.fullmatch(commit_id) else None
    if not isinstance(match, pygit2.Commit):
        return None

    branch = repo.references.get(checkout.ref)
    if branch is None or checkout.ref == "HEAD":
        return match
    tip = branch.resolve().target
    if tip == match.id or repo.descendant_of(tip, match.id):
        return match
    return None


def _commits_of(repo: pygit2.Repository, checkout: Checkout, path: str) -> Iterator[Commit]:
    """Yield the commits that changed a file, newest first. Follows the file to its former paths.

    A merge counts only if the file differs from that of each parent.
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
        new_file = _file_in(commit.tree, name)
        old_files = [_file_in(parent.tree, name) for parent in parents] or [None]
        if new_file in old_files:
            continue

        old_file = old_files[0]
        old_name = None
        if new_file is not None and old_file is None and parents:
            old_name = _renamed_from(commit, parents[0], name, checkout.prefix)
            if old_name is not None:
                old_file = _file_in(parents[0].tree, old_name)
        yield _describe(repo, checkout, commit, (old_name, old_file), (name, new_file))
        name = old_name or name


def _tip_of(repo: pygit2.Repository, checkout: Checkout) -> pygit2.Oid | str | None:
    """Return the newest commit of the branch; None if it has none yet."""
    branch = repo.references.get(checkout.ref)
    if branch is None:
        return None
    if checkout.ref == "HEAD" and repo.head_is_unborn:
        return None
    return branch.resolve().target


def _too_slow() -> Unavailable:
    return Unavailable(
        f"git did not answer within {_MAX_WALK_SECONDS:g} s",
        hint="To leave git commits out of the history, set git.history = false.",
    )


def _parents_of(repo: pygit2.Repository, commit: pygit2.Commit) -> list[pygit2.Commit]:
    """Return the parents of a commit that the repository has; a shallow clone lacks some."""
    objects: list[object] = [repo.get(parent_id) for parent_id in commit.parent_ids]
    return [parent for parent in objects if isinstance(parent, pygit2.Commit)]


def _renamed_from(
    commit: pygit2.Commit, parent: pygit2.Commit, name: str, prefix: str
) -> str | None:
    """Return the former path, in the vault, of a file that a commit renamed; None if it did not."""
    diff = parent.tree.diff_to_tree(commit.tree)
    diff.find_similar(flags=DiffFind.FIND_RENAMES)
    for delta in diff.deltas:
        old_name = str(delta.old_file.path)
        is_rename = delta.status_char() == "R" and delta.new_file.path == name
        if is_rename and old_name.startswith(prefix):
            return old_name
    return None


_NamedFile = tuple[str | None, pygit2.IndexEntry | None]


def _describe(
    repo: pygit2.Repository,
    checkout: Checkout,
    commit: pygit2.Commit,
    old: _NamedFile,
    new: tuple[str, pygit2.IndexEntry | None],
) -> Commit:
    """Return what a commit did to a file. The old name is that before a rename, else None."""
    old_name, old_file = old
    new_name, new_file = new
    timestamp = max(0, min(commit.author.time, _MAX_TIMESTAMP))
    subject, _, _ = commit.message.partition("\n")
    return Commit(
        commit=str(commit.id),
        path=new_name.removeprefix(checkout.prefix),
        old_path=None if old_name is None else old_name.removeprefix(checkout.prefix),
        op=_operation(old_name, old_file, new_file),
        when=datetime.fromtimestamp(timestamp, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        who=one_line(commit.author.name),
        subject=one_line(subject),
        versions=set(_VERSION_TRAILER.findall(commit.message)),
        before=_text_of(repo, old_file),
        after=_text_of(repo, new_file),
    )


def _operation(
    old_name: str | None,
    old_file: pygit2.IndexEntry | None,
    new_file: pygit2.IndexEntry | None,
) -> str:
    if old_name is not None:
        return "move"
    if old_file is None:
        return "create"
    if new_file is None:
        return "delete"
    return "update"


def _file_in(tree: pygit2.Tree, path: str) -> pygit2.IndexEntry | None:
    """Return the entry of a file in a tree; None if there is none, or a folder."""
    if path not in tree:
        return None
    entry = tree[path]
    if entry.filemode == FileMode.TREE:
        return None
    return pygit2.IndexEntry(path, entry.id, entry.filemode)


def _text_of(repo: pygit2.Repository, file: pygit2.IndexEntry | None) -> bytes | None:
    """Return the text of a file; None if it is too large, or if this clone does not have it."""
    if file is None:
        return None
    blob = repo.get(file.id)
    if isinstance(blob, pygit2.Blob) and blob.size <= _MAX_TEXT_BYTES:
        return blob.data
    return None


def one_line(text: str, most: int = 300) -> str:
    """Return a text as one line of printable characters, shortened to `most` of them.

    A text of several lines could forge a log entry, or a trailer of somebody else.
    """
    printable = "".join(character if character.isprintable() else " " for character in text)
    line = " ".join(printable.split())
    if len(line) > most:
        line = line[: most - 1] + "…"
    return line


# Committing


def commit(
    root: Path,
    patches: Sequence[Patch],
    subject: str,
    trailers: Mapping[str, str],
    when: int,
    allowed: Sequence[str] = (),
) -> None:
    """Commit changes of notes, all or none.

    Never commits what the user has staged or edited. Raises Unavailable if that is in the way, or
    if the repository cannot be used, and NotFound if there is none.
    """
    message = _compose_message(subject, trailers)
    with opened(root, allowed) as (repo, checkout), index_held(repo, checkout) as index:
        settle(repo, checkout)
        if repo.state() != RepositoryState.NONE:
            operation = repo.state().name.lower().replace("_", " ")
            raise Unavailable(f"a {operation} is in progress in the repository")
        branch = repo.lookup_reference("HEAD").target
        if not isinstance(branch, str) or repo.head_is_unborn:
            raise Unavailable("no branch with a commit is checked out")

        draft = _Draft(repo, checkout, index)
        for patch in patches:
            draft.apply(*patch)
        changed_files = draft.changed()
        if not changed_files:
            return

        tree = with_files(repo, index, draft.last_commit.tree, changed_files)
        committer = _committer(repo)
        author = pygit2.Signature(committer.name, committer.email, when, 0)
        parents = [draft.last_commit.id]
        new_commit = repo.create_commit(None, author, committer, message, tree, parents)
        go_on(repo, checkout, index, branch, new_commit)


def _compose_message(subject: str, trailers: Mapping[str, str]) -> str:
    lines = [one_line(subject, _MAX_SUBJECT), ""]
    for key, value in trailers.items():
        line = one_line(value)
        if line:
            lines.append(f"Simplemem-{key}: {line}")
    return "".join(f"{line}\n" for line in lines)


def with_files(
    repo: pygit2.Repository, index: pygit2.Index, tree: pygit2.Tree, files: Files
) -> pygit2.Oid:
    """Write a tree with these files; return its id. The files are put into the index too."""
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


def go_on(
    repo: pygit2.Repository,
    checkout: Checkout,
    index: pygit2.Index,
    branch: str,
    commit: pygit2.Oid,
) -> None:
    """Replace the user's index, then let their branch point to a commit.

    If a crash comes between the two, our change is staged, until `settle` moves the branch. Raises
    Unavailable if the branch is locked.
    """
    mark = _interrupted_mark(checkout)
    mark.write_text(f"{repo.head.target} {commit}")
    index_taken(index, checkout)

    committer = _committer(repo)
    repo.set_ident(committer.name, committer.email)
    pygit2.settings.enable_fsync_gitdir(True)
    try:
        patiently(lambda: repo.references[branch].set_target(commit, "simplemem"), OSError)
    except OSError as error:
        hint = "If no other git process is running, remove the file that ends with .lock."
        raise Unavailable(f"the branch cannot be updated: {error}", hint=hint) from error
    mark.unlink()


def settle(repo: pygit2.Repository, checkout: Checkout) -> None:
    """Finish a commit that a crash interrupted after the user's index was replaced."""
    mark = _interrupted_mark(checkout)
    old_id, _, new_id = _read_pointer(mark).partition(" ")
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
    """Return the path of the file that exists while the index and the branch are moved."""
    return checkout.git_dir / "simplemem.commit"


def _commit_with_id(repo: pygit2.Repository, commit_id: str) -> pygit2.Commit | None:
    if not _COMMIT_ID.fullmatch(commit_id):
        return None
    match = repo.get(commit_id)
    return match if isinstance(match, pygit2.Commit) else None


def _is_staged(index: pygit2.Index, old_tree: pygit2.Tree, new_tree: pygit2.Tree) -> bool:
    """Return whether the index has every file that differs between two trees as the new one has."""
    for delta in old_tree.diff_to_tree(new_tree).deltas:
        path = delta.new_file.path
        staged_id = index[path].id if path in index else _NO_OBJECT
        if staged_id != delta.new_file.id:
            return False
    return True


def signature(repo: pygit2.Repository) -> pygit2.Signature | None:
    """Return the name and email address of the user; None if git does not know them."""
    try:
        return repo.default_signature
    except (KeyError, ValueError, pygit2.GitError):
        return None


def _committer(repo: pygit2.Repository) -> pygit2.Signature:
    return signature(repo) or pygit2.Signature("simplemem", "simplemem@localhost")


def index_taken(index: pygit2.Index, checkout: Checkout) -> None:
    """Replace the user's index with our copy of it.

    This comes before the branch is moved. A crash between the two then leaves our change staged; in
    the other order, the undoing of our change would be staged.
    """
    index.write()
    copy = _index_copy(checkout)
    users_index = checkout.git_dir / "index"
    if users_index.exists():
        # git takes a file as possibly changed if it is not older than the index.
        shutil.copystat(users_index, copy)
    copy.replace(users_index)


def _index_copy(checkout: Checkout) -> Path:
    return checkout.git_dir / "index.simplemem"


def patiently(action: Callable[[], object], failure: type[Exception]) -> None:
    """Call a function again while it fails in this way, for a moment; then let it fail.

    Another git at work holds its locks only that long.
    """
    deadline = time.monotonic() + _MAX_RETRY_SECONDS
    while time.monotonic() < deadline:
        with suppress(failure):
            action()
            return
        time.sleep(_RETRY_PAUSE)
    action()


class _Draft:
    """Collects the files that a commit will change, on top of the last commit."""

    def __init__(self, repo: pygit2.Repository, checkout: Checkout, index: pygit2.Index) -> None:
        self._repo = repo
        self._checkout = checkout
        self._index = index
        self.last_commit = repo.head.peel(pygit2.Commit)
        self._files: Files = {}

    def changed(self) -> Files:
        """Return the files that differ from those of the last commit.

        Raises Unavailable if the user has staged a change of one of the files.
        """
        changed: Files = {}
        for path, file in self._files.items():
            committed_file = _file_in(self.last_commit.tree, path)
            staged_file = None
            with suppress(KeyError):
                staged_file = self._index[path]
            if staged_file not in (committed_file, file):
                raise Unavailable(f"{path!r} has staged changes")
            if file != committed_file:
                changed[path] = file
        return changed

    def apply(self, path: str, target: str, old_text: bytes | None, new_text: bytes | None) -> None:
        """Add a change of a note.

        A move to a path that git ignores counts as a deletion, one from such a path as a creation.
        Raises Unavailable if the user has changes of the note that are not committed.
        """
        path = self._checkout.prefix + path
        target = self._checkout.prefix + target
        ignored = {name for name in (path, target) if self._is_ignored(name)}
        if target in ignored:
            target = path
            new_text = None
        if path in ignored:
            path = target
            old_text = None
        if path in ignored:
            return

        old_id = self._store_text(path, old_text)
        new_id = self._store_text(target, new_text)
        self._put(path, target, old_id, new_id)

    def _put(
        self, path: str, target: str, old_id: pygit2.Oid | None, new_id: pygit2.Oid | None
    ) -> None:
        """Replace a file with one at `target`. The ids are those of the texts of a change."""
        last_file = self._files.get(path, _file_in(self.last_commit.tree, path))
        last_id = last_file.id if last_file is not None else None
        if last_id is not None and old_id == new_id:
            # The note was only moved: it keeps the committed text, whatever the user has edited.
            new_id = last_id
        elif last_id not in (old_id, new_id):
            raise Unavailable(f"{path!r} has changes that you have not committed")

        mode = last_file.mode if last_file is not None else FileMode.BLOB
        self._files[path] = None
        if new_id is None:
            self._files[target] = None
        else:
            self._files[target] = pygit2.IndexEntry(target, new_id, mode)

    def _is_ignored(self, path: str) -> bool:
        """Return whether the user told git to ignore a note.

        Raises Unavailable if the note could not be committed as git would.
        """
        self._check_rule_files(path)
        if self._repo.path_is_ignored(path) and path not in self._index:
            return True

        has_filter = self._repo.get_attr(path, "filter") not in (None, False)
        if has_filter or self._repo.get_attr(path, "working-tree-encoding"):
            # Without the filter, the repository would get a text that is to be encrypted, say.
            raise Unavailable(f"{path!r} has a git filter, and simplemem does not run filters")
        if self._is_unwatched(path):
            raise Unavailable(f"{path!r} is marked assume-unchanged or skip-worktree in git")
        return False

    def _check_rule_files(self, path: str) -> None:
        """Raise Unavailable if rules for a path could be read from outside of the repository."""
        top = self._checkout.top
        rule_files = [
            folder / name
            for folder in (top / path).parents
            if folder.is_relative_to(top)
            for name in (".gitignore", ".gitattributes")
        ]
        info = self._checkout.common / "info"
        for file in (*rule_files, info / "exclude", info / "attributes"):
            if os.path.lexists(file) and not file.is_file():
                raise Unavailable(f"{file}, which applies to {path!r}, is not a regular file")

    def _is_unwatched(self, path: str) -> bool:
        """Return whether the user told git not to look for changes of a file."""
        index = self._index._index  # noqa: SLF001  (pygit2 does not show the flags of an entry)
        entry = C.git_index_get_bypath(index, os.fsencode(path), 0)
        if not entry:
            return False
        is_assumed_unchanged = entry.flags & _ASSUME_UNCHANGED
        is_skipped = entry.flags_extended & _SKIP_WORKTREE
        return bool(is_assumed_unchanged or is_skipped)

    def _store_text(self, path: str, text: bytes | None) -> pygit2.Oid | None:
        """Store a text in the repository, with the line ends that its attributes ask for."""
        if text is None:
            return None
        if text and b"\0" not in text:
            line_end_filter = self._repo.load_filter_list(path)
            if line_end_filter is not None:
                text = line_end_filter.apply_to_buffer(text)
        return self._repo.create_blob(text)


@contextmanager
def index_held(repo: pygit2.Repository, checkout: Checkout) -> Iterator[pygit2.Index]:
    """Lock the user's index, as git does, and yield a copy of it.

    Meanwhile no other git changes or commits the index. Raises Unavailable if another git has the
    lock.
    """
    len(repo.index)  # raises an error if libgit2 cannot read the index
    lock = checkout.git_dir / "index.lock"
    try:
        patiently(lambda: lock.open("xb").close(), FileExistsError)
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
