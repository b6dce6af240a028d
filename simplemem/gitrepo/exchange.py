"""Exchange commits between the repository of a vault and its remote.

`store/syncing.py` decides what to exchange and merges notes; `user_git.py` reaches the remote.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import pygit2
from pygit2.enums import DiffFind, FileMode, RepositoryState

from simplemem.errors import Unavailable
from simplemem.gitrepo.committing import TreeEntries, advance_branch, lock_index, write_tree
from simplemem.gitrepo.repository import (
    REGULAR_FILE_MODES,
    Checkout,
    open_repository,
    user_signature,
)
from simplemem.gitrepo.user_git import ADDRESS, PushRejected, find_git, run_git
from simplemem.note.names import is_path

_RENAME_THRESHOLD: Final = 60  # percent of a file that stays, if it counts as moved
_FETCHED_REF: Final = "refs/simplemem/theirs"  # in the temporary git directory
# What git prints if the remote has commits that we lack, or if another push has it locked. A remote
# on this computer names the lock in a line of its own, before the rejection.
_PUSHED_FIRST: Final = re.compile(
    r"\[(?:remote )?rejected\].*(?:fetch first|non-fast-forward|stale|lock)|fetch first"
    r"|cannot lock ref .*(?:but expected|already exists|File exists)"
)


class CommittedFile(NamedTuple):
    """A file of a commit.

    If `is_ours`, simplemem may write it, and `path` is its path in the vault. Otherwise, `path` is
    its path in the repository.
    """

    path: str
    data: bytes
    is_ours: bool


class TreeChange(NamedTuple):
    """A file before and after a change; None where there is no file."""

    old: CommittedFile | None
    new: CommittedFile | None

    @property
    def files(self) -> list[CommittedFile]:
        """The file before and after the change, as far as there was one."""
        return [file for file in self if file is not None]


@contextmanager
def open_exchange(root: Path, allowed: Sequence[str]) -> Iterator[Exchange]:
    """Open the repository of a vault for one exchange with its remote; contacts nobody yet.

    `allowed` is as in `open_repository`. Raises NotFound if there is no repository, and Unavailable
    if nothing can be exchanged.
    """
    with (
        open_repository(root, allowed) as (repo, checkout),
        tempfile.TemporaryDirectory(prefix="simplemem-") as git_dir,
    ):
        yield Exchange(repo, checkout, Path(git_dir))


class Exchange:
    """One attempt to exchange commits. Guards the newest commit of either side.

    `ours` is the newest commit of the branch here. `theirs` is the one that `fetch` found at the
    remote, None before `fetch` and if the remote has no such branch. A push does not change it.
    """

    def __init__(self, repo: pygit2.Repository, checkout: Checkout, git_dir: Path) -> None:
        """Prepare an exchange. Contacts nobody.

        `git_dir` is an empty temporary folder, which becomes the git directory that fetches and
        pushes. Raises Unavailable if the state of the repository, its remote or git's configuration
        does not allow an exchange.
        """
        self.repo = repo
        self._checkout = checkout
        self._git_dir = git_dir
        self.branch = _checked_out_branch(repo)
        if (checkout.common / "shallow").exists():
            raise Unavailable(
                "the repository is a shallow clone", hint="`git fetch --unshallow` completes it."
            )

        config_path = checkout.common / "config"
        config = pygit2.Config(str(config_path))
        settings = {entry.name: entry.value for entry in config if entry.name}

        name = self.branch.removeprefix("refs/heads/")
        remote = settings.get(f"branch.{name}.remote")
        their_branch = settings.get(f"branch.{name}.merge")
        self.remote = remote or "origin"
        self.their_branch = their_branch or self.branch
        their_name = self.their_branch.removeprefix("refs/heads/")
        self._tracking_ref = f"refs/remotes/{self.remote}/{their_name}"

        url = settings.get(f"remote.{self.remote}.url")
        self.url = self._address(url)
        if user_signature(repo) is None:
            hint = 'Run `git config --global user.name "Your Name"`, and the same for user.email.'
            raise Unavailable("git does not know your name and email address", hint=hint)

        self.ours = repo.head.peel(pygit2.Commit)
        self.theirs: pygit2.Commit | None = None

    def _address(self, url: str | None) -> str:
        """Return the URL of the remote; for a folder, its absolute path.

        Raises Unavailable if there is none, or if it is neither a folder nor a supported address.
        """
        if not url:
            raise Unavailable(
                "the repository has no remote", hint="Add one with `git remote add origin URL`."
            )
        if ADDRESS.fullmatch(url):
            return url

        path = self._checkout.top / os.path.expanduser(url)
        if path.is_dir() and not url.startswith("-"):
            return str(path)
        raise Unavailable(
            f"the address of the remote {self.remote} is not supported: {url!r}",
            hint=(
                "Set the URL of the remote to the path of a folder, or to an ssh or https address."
            ),
        )

    def fetch(self) -> None:
        """Fetch the commits of the remote into the repository; set `theirs` if it has any.

        Moves no branch. Raises Unavailable if the remote cannot be reached, or if its history was
        rewritten.
        """
        self._create_git_dir()
        remote_branch = self._git("ls-remote", "--heads", "--", self.url, self.their_branch)
        if not remote_branch.strip():
            return
        refspec = f"+{self.their_branch}:{_FETCHED_REF}"
        self._git("fetch", "--quiet", "--no-tags", "--", self.url, refspec)

        fetched_id = (self._git_dir / _FETCHED_REF).read_text().strip()
        self._copy_packs()
        fetched = self.repo.get(fetched_id)
        if not isinstance(fetched, pygit2.Commit):
            raise Unavailable(
                f"the branch {self.their_branch} of the remote does not point to a commit"
            )
        self.theirs = fetched
        self._check_not_rewritten(fetched)

    def _create_git_dir(self) -> None:
        """Create the temporary git directory, which borrows the objects of the repository.

        Its only branch is at our newest commit, so that git fetches only what we do not have.
        """
        heads = self._git_dir / "refs" / "heads"
        info = self._git_dir / "objects" / "info"
        heads.mkdir(parents=True)
        info.mkdir(parents=True)

        (self._git_dir / "HEAD").write_text("ref: refs/heads/ours\n")
        (self._git_dir / "config").write_text(
            "[core]\n\trepositoryformatversion = 0\n\tbare = true\n"
        )
        objects = os.fsencode(self._checkout.common / "objects")
        (info / "alternates").write_bytes(objects + b"\n")
        (heads / "ours").write_text(f"{self.ours.id}\n")

    def _copy_packs(self) -> None:
        """Copy the fetched packs into the repository, each in one step.

        The indexes come after the packs: git looks for the pack of every index.
        """
        packs = self._checkout.common / "objects" / "pack"
        packs.mkdir(exist_ok=True)
        fetched_packs = self._git_dir / "objects" / "pack"
        for suffix in (".pack", ".idx"):
            for fetched in fetched_packs.glob(f"*{suffix}"):
                pack = packs / fetched.name
                if pack.exists():
                    continue
                # If this is interrupted, `git prune` removes the file by its prefix.
                temp = packs / f"tmp_{os.getpid()}{suffix}"
                shutil.copyfile(fetched, temp)
                temp.chmod(0o444)
                temp.replace(pack)

        # The repository is open, and does not notice the new packs.
        fetched_objects = self._git_dir / "objects"
        self.repo.odb.add_disk_alternate(str(fetched_objects))

    def _check_not_rewritten(self, fetched: pygit2.Commit) -> None:
        """Raise Unavailable if the fetched commit does not descend from the one fetched before.

        The first exchange is always accepted.
        """
        last = self.repo.references.get(self._tracking_ref)
        if last is None or last.target == fetched.id:
            return
        if not self.repo.descendant_of(fetched.id, last.target):
            hint = "If that was intended, switch to the new history with `git pull` or `git reset`."
            raise Unavailable(f"the history of {self.remote} was rewritten", hint=hint)

    def push(self, commit: pygit2.Oid) -> None:
        """Push a commit to the branch of the remote, and move the tracking branch to it.

        Raises PushRejected if somebody else pushed first, and Unavailable if the remote cannot be
        reached. Never overwrites commits of others.
        """
        refspec = f"{commit}:{self.their_branch}"
        no_hooks = self._without_hooks()
        try:
            self._git("push", "--quiet", *no_hooks, "--", self.url, refspec)
        except Unavailable as error:
            if _PUSHED_FIRST.search(str(error)):
                raise PushRejected from error
            raise
        self.move_tracking_branch(commit)

    def _without_hooks(self) -> list[str]:
        """Return the options of a push that turn off the hooks of a remote on this computer.

        Such hooks would run as the user of this process. Returns no options for a remote elsewhere.
        """
        is_folder = self.url.startswith("file:") or not ADDRESS.fullmatch(self.url)
        if not is_folder:
            return []
        program = find_git(self._checkout.top)
        no_folder = self._git_dir / "none"
        option = f"core.hooksPath={no_folder}"
        command = shlex.join([program, "-c", option, "receive-pack"])
        return [f"--receive-pack={command}"]

    def move_tracking_branch(self, commit: pygit2.Oid) -> None:
        """Move the repository's tracking branch to a commit that the remote has as its newest.

        Contacts nobody. `theirs` stays as it is.
        """
        self.repo.references.create(self._tracking_ref, commit, force=True)

    def _git(self, *arguments: str) -> str:
        """Run the user's git in the temporary git directory; return what it prints.

        Raises Unavailable if it fails.
        """
        return run_git(self._git_dir, self._checkout.top, self.remote, *arguments)

    @property
    def base(self) -> pygit2.Commit | None:
        """The last common commit of both sides; None if there is none.

        It is `ours` before `fetch`, and if the remote has no such branch.
        """
        if self.theirs is None:
            return self.ours
        base_id = self.repo.merge_base(self.ours.id, self.theirs.id)
        if not base_id:
            return None
        return self.repo[base_id].peel(pygit2.Commit)

    def changes_since(self, base: pygit2.Commit, side: pygit2.Commit) -> list[TreeChange]:
        """Return what a side changed since the base. A file that it moved is one change.

        Files outside of the vault are among them; for these, `is_ours` is false.
        """
        diff = base.tree.diff_to_tree(side.tree)
        diff.find_similar(flags=DiffFind.FIND_RENAMES, rename_threshold=_RENAME_THRESHOLD)
        return [self._read_change(delta) for delta in diff.deltas]

    def _read_change(self, delta: pygit2.DiffDelta) -> TreeChange:
        """Return a change of a diff with the contents of its files."""
        status = delta.status_char()
        old_file = None
        new_file = None
        if status != "A":
            old_file = self._read_file(delta.old_file)
        if status != "D":
            new_file = self._read_file(delta.new_file)
        return TreeChange(old_file, new_file)

    def _read_file(self, file: pygit2.DiffFile) -> CommittedFile:
        """Return a file of a diff with its content, which is b"" for links and submodules."""
        blob = self.repo.get(file.id)
        is_regular = file.mode in REGULAR_FILE_MODES
        data = b""
        if is_regular and isinstance(blob, pygit2.Blob):
            data = blob.data

        path = file.path.removeprefix(self._checkout.prefix)
        is_in_vault = file.path.startswith(self._checkout.prefix)
        is_ours = is_in_vault and is_regular and is_path(path)
        return CommittedFile(path if is_ours else file.path, data, is_ours)

    def text_in_last_commit(self, path: str) -> bytes | None:
        """Return the content of a path of the vault in our newest commit; None if there is none."""
        name = self._checkout.prefix + path
        return read_blob(self.repo, self.ours.tree, name)

    def commit_merge(self, files: Mapping[str, bytes | None]) -> pygit2.Oid:
        """Commit merged files, and return the commit to which our branch then points.

        `files` has the content by path in the vault, None for a deleted file; all other files are
        those of our side. The parents are the commits of both sides. If our side has no commits of
        its own, and the result is what the remote has, no commit is made, and our branch moves on
        to their commit. Writes no file of the working tree. `fetch` must have set `theirs`. Raises
        Unavailable if the index or the branch is locked.
        """
        assert self.theirs is not None
        entries: TreeEntries = {}
        for path, data in files.items():
            name = self._checkout.prefix + path
            entries[name] = None
            if data is not None:
                blob = self.repo.create_blob(data)
                entries[name] = pygit2.IndexEntry(name, blob, FileMode.BLOB)

        with lock_index(self.repo, self._checkout) as index:
            tree = write_tree(self.repo, index, self.ours.tree, entries)
            new_commit = self.theirs.id
            has_own_commits = self.base != self.ours
            if has_own_commits or tree != self.theirs.tree.id:
                new_commit = self._create_merge(tree, self.theirs.id)
            advance_branch(self.repo, self._checkout, index, self.branch, new_commit)
        return new_commit

    def _create_merge(self, tree: pygit2.Oid, their_id: pygit2.Oid) -> pygit2.Oid:
        """Write a merge commit of both sides with this tree; return its id. Moves no branch."""
        user = user_signature(self.repo)
        assert user is not None
        message = "simplemem: sync\n"
        parents = [self.ours.id, their_id]
        return self.repo.create_commit(None, user, user, message, tree, parents)


def _checked_out_branch(repo: pygit2.Repository) -> str:
    """Return the full name of the branch that is checked out, such as "refs/heads/main".

    Raises Unavailable if there is none, if it has no commit, or while a merge or another operation
    of git is in progress.
    """
    state = repo.state()
    if state != RepositoryState.NONE:
        operation = state.name.lower().replace("_", " ")
        raise Unavailable(
            f"a {operation} is in progress in the repository", hint="Finish or abort it first."
        )

    branch = repo.lookup_reference("HEAD").target
    if not isinstance(branch, str) or repo.head_is_unborn:
        raise Unavailable(
            "no branch with a commit is checked out",
            hint="Check out a branch, and commit once.",
        )
    return branch


def read_blob(repo: pygit2.Repository, tree: pygit2.Tree, path: str) -> bytes | None:
    """Return the bytes of the file at a path in a tree of a repository; None if there is none.

    The bytes of a link are the path that it leads to.
    """
    if path not in tree:
        return None
    blob = repo.get(tree[path].id)
    if not isinstance(blob, pygit2.Blob):
        return None
    return blob.data
