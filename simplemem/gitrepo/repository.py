"""Open the git repository that a vault is in, and read files and the user's name from it.

No program, hook or filter is run, and nothing is fetched or pushed. A repository that could lead
outside of the vault, or make us wait, is refused before libgit2 opens it.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, TypeAlias

import pygit2
from pygit2.enums import FileMode, RepositoryOpenFlag

from simplemem.errors import NotFound, Unavailable

_MAX_RETRY_SECONDS = 2.0  # another git holds its locks for less time
_RETRY_PAUSE = 0.05
_MAX_TEXT_BYTES = 10_000_000
_MAX_POINTER_BYTES = 8192  # more than the longest path
_MAX_ALTERNATES_BYTES = 4000
_MAX_ALTERNATES_DEPTH = 5

_INCLUDE = re.compile(rb"\[\s*+include", re.IGNORECASE)  # a section may begin anywhere in a line
_LINE_ENDS = re.compile(r"[\r\n]+")
# The entries of a git directory that libgit2 reads, without the objects.
_GIT_DIR_ENTRIES = frozenset(
    """
    head config config.worktree index index.lock index.simplemem packed-refs shallow commondir
    gitdir refs logs info
    """.split()
)

REGULAR_FILE_MODES = (FileMode.BLOB, FileMode.BLOB_EXECUTABLE)


class Checkout(NamedTuple):
    """Where a repository is: its working tree, its git directories, and the vault in it."""

    top: Path  # the working tree
    git_dir: Path
    common: Path  # the git directory that all worktrees of the repository share
    prefix: str  # the path of the vault in the working tree: "" or "notes/deep/"
    ref: str = "HEAD"  # the branch that has the notes


RepositoryContext: TypeAlias = AbstractContextManager[tuple[pygit2.Repository, Checkout]]
"""What `open_repository` returns: a context that yields a repository and where it is."""


@contextmanager
def open_repository(
    root: Path, allowed: Sequence[str]
) -> Iterator[tuple[pygit2.Repository, Checkout]]:
    """Open the repository whose working tree is the folder of a vault, or a folder above it.

    Yields the repository and where it is. `allowed` are folders outside the working tree that parts
    of the repository may be in. Raises NotFound if there is no repository, and Unavailable if it is
    refused, or if libgit2 reports an error inside the `with` block.
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
        checkout = _checkout_at(top, vault, allowed)
        if checkout is not None:
            return checkout
    raise NotFound(
        "the vault is not in a git repository",
        hint="`git init` creates one; commit once after that.",
    )


def _checkout_at(top: Path, vault: Path, allowed: Sequence[str]) -> Checkout | None:
    """Return the checkout whose working tree is the folder `top`; None if `top` has no repository.

    `vault` is `top` or a folder in it. Raises Unavailable as `_find_checkout` does.
    """
    dot_git = top / ".git"
    git_dir = _resolve_git_dir(dot_git)
    common_dir = read_pointer(git_dir / "commondir") or "."
    common = _real_path(git_dir / common_dir)
    if not (git_dir / "HEAD").is_file() or not (common / "objects").is_dir():
        return None

    is_pointed_to = git_dir != dot_git  # `.git` is then a file, as in a worktree, or a link
    if common != git_dir and not is_pointed_to:
        raise Unavailable(
            f"the `commondir` of {dot_git} points to {common}, which is allowed only in a worktree"
        )
    for folder in dict.fromkeys((git_dir, common)):
        _check_inside(folder, top, allowed, "is in")
        _check_borrowed(folder / "objects", top, allowed)

    prefix = ""
    if vault != top:
        prefix = vault.relative_to(top).as_posix() + "/"
    return Checkout(top, git_dir, common, prefix)


def _real_path(path: str | Path) -> Path:
    """Return an absolute path without links in it."""
    return Path(os.path.realpath(path))


def _resolve_git_dir(dot_git: Path) -> Path:
    """Return the git directory that `.git` is, or to which it points if it is a file or a link.

    It need not exist.
    """
    git_dir = dot_git
    if dot_git.is_file():
        target = read_pointer(dot_git).removeprefix("gitdir:").strip()
        git_dir = dot_git.parent / target
    return _real_path(git_dir)


def _check_inside(folder: Path, top: Path, allowed: Sequence[str], relation: str) -> None:
    """Raise Unavailable if a folder is neither in the working tree nor in an allowed folder.

    Such a folder may belong to anybody. `relation` says in the message how the repository uses it,
    such as "is in".
    """
    if folder.is_relative_to(top):
        return
    for path in allowed:
        allowed_folder = _real_path(os.path.expanduser(path))
        if folder.is_relative_to(allowed_folder):
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

    Objects may be read through links, or borrowed from the folders that `objects/info/alternates`
    names, and these may borrow from others. `depth` is how many folders have been followed already.
    """
    _check_regular(objects)
    alternates = objects / "info" / "alternates"
    is_too_large = alternates.is_file() and alternates.stat().st_size > _MAX_ALTERNATES_BYTES
    if depth > _MAX_ALTERNATES_DEPTH or is_too_large:
        raise Unavailable(
            f"the repository of {top} borrows objects from too many other repositories"
        )

    # As in libgit2, a comment counts as a path too.
    paths = read_pointer(alternates)
    for path in _LINE_ENDS.split(paths):
        if not path:
            continue
        if path.startswith("."):
            folder = _real_path(objects / path)
        else:
            folder = _real_path(path)
        _check_inside(folder, top, allowed, "borrows objects from")
        _check_borrowed(folder, top, allowed, depth + 1)


def read_pointer(file: Path) -> str:
    """Return the text of a file in which git keeps a path; "" if there is no such file.

    Line ends around it are removed. At most 8 kB are read.
    """
    if not file.is_file():
        return ""
    with file.open("rb") as stream:
        data = stream.read(_MAX_POINTER_BYTES)
    return os.fsdecode(data).replace("\0", "\n").strip("\r\n")


def _check_regular(folder: Path, only: Collection[str] = ()) -> None:
    """Raise Unavailable if something in a git directory is neither a folder nor a regular file.

    Its folders are checked too. With `only`, just the entries of `folder` with these names, which
    are in lower case, are checked. A folder that does not exist is no error.
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
    """Raise Unavailable if a git configuration includes other files, which could be anywhere.

    A file that does not exist includes none.
    """
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


def find_file(tree: pygit2.Tree, path: str) -> pygit2.IndexEntry | None:
    """Return the entry of a file in a tree; None if there is none, or a folder.

    `path` is a path in the repository. The entry may be a link or a submodule.
    """
    if path not in tree:
        return None
    entry = tree[path]
    if entry.filemode == FileMode.TREE:
        return None
    return pygit2.IndexEntry(path, entry.id, entry.filemode)


def read_text(repo: pygit2.Repository, file: pygit2.IndexEntry | None) -> bytes | None:
    """Return the bytes of a file of a commit; None if `file` is None.

    None too if the file is over 10 MB, a submodule, or missing in this clone.
    """
    if file is None:
        return None
    blob = repo.get(file.id)
    if isinstance(blob, pygit2.Blob) and blob.size <= _MAX_TEXT_BYTES:
        return blob.data
    return None


def user_signature(repo: pygit2.Repository) -> pygit2.Signature | None:
    """Return the name and email address of the user; None if git does not know them."""
    try:
        return repo.default_signature
    except (KeyError, ValueError, pygit2.GitError):
        return None


def one_line(text: str, max_characters: int = 300) -> str:
    """Return a text as one line of printable characters, shortened to `max_characters`.

    Several lines could forge the trailers of a commit, or an entry of a log.
    """
    printable = "".join(character if character.isprintable() else " " for character in text)
    line = " ".join(printable.split())
    if len(line) > max_characters:
        line = line[: max_characters - 1] + "…"
    return line


def retry(action: Callable[[], object], failure: type[Exception]) -> None:
    """Call a function until it does not raise `failure`, for about two seconds.

    After that, `failure` is raised. Other exceptions are raised at once.
    """
    deadline = time.monotonic() + _MAX_RETRY_SECONDS
    while time.monotonic() < deadline:
        with suppress(failure):
            action()
            return
        time.sleep(_RETRY_PAUSE)
    action()
